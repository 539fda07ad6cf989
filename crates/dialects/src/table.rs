//! Reads one mapping of a file key by key. It checks the shape of each value, remembers which keys were read, and
//! reports the rest, so that no key is ever ignored silently. All dialects use it; their expressions are handled in
//! their own folders.

use crate::text::{Entry, Kind, Mapping, Node, Scalar, Style};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::suggest::{GUESSES_MAX, nearest};
use windlass_ir::{Code, Diagnostic, Severity, Sources, Span, Spanned, Value};

/// Shared by all tables of one file: its text, and the findings so far.
#[derive(Debug)]
pub struct Context<'a> {
    pub sources: &'a Sources,
    pub diagnostics: RefCell<Vec<Diagnostic>>,
    pub keys: Keys,
    /// What opens an expression; fields without expressions are searched for it. Empty if there are no expressions.
    pub opens: &'static str,
    /// The native dialect under the rules of another: names are free, and there are no default limits.
    pub foreign: bool,
}

/// How the keys of a file are compared with the known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    Exact,
    /// Keys may differ in case, which is worth a hint.
    AnyCase,
}

impl<'a> Context<'a> {
    pub fn new(sources: &'a Sources, keys: Keys, opens: &'static str) -> Self {
        Self { sources, diagnostics: RefCell::new(Vec::new()), keys, opens, foreign: false }
    }
}

/// The location of a table: its step, and the path from there, with a trailing dot.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub step: Option<Arc<str>>,
    pub prefix: String,
}

impl Place {
    pub fn child(&self, key: &str) -> Self {
        Self { step: self.step.clone(), prefix: format!("{}{key}.", self.prefix) }
    }

    pub fn field(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

#[derive(Debug)]
pub struct Table<'a> {
    pub context: &'a Context<'a>,
    pub map: &'a Mapping,
    pub span: Span,
    pub place: Place,
    asked: RefCell<Vec<&'static str>>,
    /// Keys that have been reported already.
    reported: RefCell<Vec<&'static str>>,
}

impl<'a> Table<'a> {
    pub fn new(context: &'a Context<'a>, map: &'a Mapping, span: Span, place: Place) -> Self {
        Self { context, map, span, place, asked: RefCell::default(), reported: RefCell::default() }
    }

    /// A node that must be a mapping.
    pub fn of(context: &'a Context<'a>, node: &'a Node, place: Place) -> Option<Self> {
        match &node.kind {
            Kind::Map(map) => Some(Self::new(context, map, node.span, place)),
            Kind::Scalar(_) | Kind::List(_) => {
                let field = place.prefix.trim_end_matches('.');
                let finding = wrong_shape(node, "a mapping").step_of(&place).field(field);
                context.diagnostics.borrow_mut().push(finding);
                None
            }
        }
    }

    // Findings

    pub fn report(&self, finding: Diagnostic) {
        self.context.diagnostics.borrow_mut().push(finding);
    }

    /// A finding about one key of this table, located at its value.
    pub fn error(&self, code: Code, key: &str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(span).step_of(&self.place).field(self.place.field(key))
    }

    pub fn warning(&self, code: Code, key: &str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(code, message).at(span).step_of(&self.place).field(self.place.field(key))
    }

    pub fn missing(&self, key: &str, help: impl Into<String>) {
        let message = format!("`{}` is missing", self.place.field(key));
        self.report(self.error(Code::MissingField, key, self.span.head(), message).help(help));
    }

    /// Reports a missing required key, unless it is present in a wrong shape, which has already been reported.
    pub fn demand(&self, key: &str, help: impl Into<String>) {
        if !self.has(key) {
            self.missing(key, help);
        }
    }

    /// Whether another suggestion is worth its cost.
    pub fn may_guess(&self) -> bool {
        self.context.diagnostics.borrow().len() < GUESSES_MAX
    }

    // Reading

    /// The entry of a key, marked as known. An explicit null is the same as an absent key.
    pub fn entry(&self, key: &'static str) -> Option<&'a Entry> {
        self.asked.borrow_mut().push(key);
        self.lookup(key).filter(|entry| !is_null(&entry.value))
    }

    /// The entry of a key as spelled in the file, null or not.
    pub fn lookup(&self, key: &str) -> Option<&'a Entry> {
        match self.context.keys {
            Keys::Exact => self.map.get(key),
            Keys::AnyCase => {
                let same = |entry: &&'a Entry| entry.key.text.eq_ignore_ascii_case(key);
                self.map.get(key).or_else(|| self.map.entries.iter().find(same))
            }
        }
    }

    pub fn node(&self, key: &'static str) -> Option<&'a Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The location of a key, or the start of the table if it is absent.
    pub fn key_span(&self, key: &str) -> Span {
        self.lookup(key).map_or(self.span.head(), |entry| entry.key.span)
    }

    pub fn has(&self, key: &str) -> bool {
        self.lookup(key).is_some_and(|entry| !is_null(&entry.value))
    }

    pub fn table(&self, key: &'static str) -> Option<Table<'a>> {
        Table::of(self.context, self.node(key)?, self.place.child(key))
    }

    pub fn list(&self, key: &'static str) -> Option<&'a [Node]> {
        let node = self.node(key)?;
        match &node.kind {
            Kind::List(items) => Some(items),
            Kind::Scalar(scalar) => {
                let help = format!("write a list: `{key}: [{}]`", scalar.text);
                self.report(self.error(Code::WrongShape, key, node.span, "this must be a list").help(help));
                None
            }
            Kind::Map(_) => {
                self.report(wrong_shape(node, "a list").step_of(&self.place).field(self.place.field(key)));
                None
            }
        }
    }

    pub fn scalar(&self, key: &'static str, wanted: &str) -> Option<(&'a Scalar, Span)> {
        let node = self.node(key)?;
        match &node.kind {
            Kind::Scalar(scalar) => Some((scalar, node.span)),
            Kind::List(_) | Kind::Map(_) => {
                self.report(wrong_shape(node, wanted).step_of(&self.place).field(self.place.field(key)));
                None
            }
        }
    }

    /// Text as written; numbers and words like `true` are taken literally. Expressions are not evaluated in it.
    pub fn text(&self, key: &'static str) -> Option<Spanned<Arc<str>>> {
        let (scalar, span) = self.scalar(key, "text")?;
        self.no_expression(key, &scalar.text, span);
        Some(Spanned::new(scalar.text.clone(), span))
    }

    /// Text for people, displayed as it is.
    pub fn prose(&self, key: &'static str) -> Option<Arc<str>> {
        self.scalar(key, "text").map(|(scalar, _)| scalar.text.clone())
    }

    fn no_expression(&self, key: &str, text: &str, span: Span) {
        let Context { foreign, opens, .. } = self.context;
        if !foreign && !opens.is_empty() && text.contains(opens) {
            let message =
                format!("`{}` is taken literally: expressions are not evaluated here", self.place.field(key));
            let finding = self.error(Code::NotAvailableHere, key, span, message);
            self.report(finding.help("write the value itself, or use a key that accepts expressions"));
        }
    }

    pub fn plain_text(&self, key: &'static str) -> Option<Arc<str>> {
        self.text(key).map(|text| text.value)
    }

    /// A list of strings; other values are reported and left out.
    pub fn texts(&self, key: &'static str) -> Vec<Spanned<Arc<str>>> {
        let items = self.list(key).unwrap_or_default();
        items.iter().filter_map(|item| self.item_text(key, item)).collect()
    }

    fn item_text(&self, key: &str, item: &Node) -> Option<Spanned<Arc<str>>> {
        match &item.kind {
            Kind::Scalar(scalar) if !is_null(item) => {
                self.no_expression(key, &scalar.text, item.span);
                Some(Spanned::new(scalar.text.clone(), item.span))
            }
            Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => {
                self.report(wrong_shape(item, "text").step_of(&self.place).field(self.place.field(key)));
                None
            }
        }
    }

    /// The text of one entry of a mapping with names chosen by the author.
    pub fn entry_text(&self, entry: &'a Entry) -> Option<Arc<str>> {
        self.item_text(&entry.key.text, &entry.value).map(|text| text.value)
    }

    pub fn plain_texts(&self, key: &'static str) -> Vec<Arc<str>> {
        self.texts(key).into_iter().map(|text| text.value).collect()
    }

    pub fn boolean(&self, key: &'static str) -> Option<bool> {
        let (scalar, span) = self.scalar(key, "true or false")?;
        match scalar.to_value() {
            Value::Bool(value) => Some(value),
            _ => {
                let message = match scalar.style {
                    Style::Plain => format!("`{}` is neither true nor false", scalar.text),
                    _ => format!("\"{}\" is a string, not true or false", scalar.text),
                };
                self.report(
                    self.error(Code::WrongShape, key, span, message)
                        .help("write true or false, without quotes"),
                );
                None
            }
        }
    }

    /// A whole number from `min` to `max`.
    pub fn integer(&self, key: &'static str, min: u64, max: u64) -> Option<u64> {
        let (scalar, span) = self.scalar(key, "a whole number")?;
        let value = match scalar.to_value() {
            Value::Int(value) => u64::try_from(value).ok(),
            _ => None,
        };
        match value.filter(|value| (min..=max).contains(value)) {
            Some(value) => Some(value),
            None => {
                let wanted = if max >= u64::from(u32::MAX) {
                    format!("of at least {min}")
                } else {
                    format!("from {min} to {max}")
                };
                self.bad_number(key, scalar, span, &format!("a whole number {wanted}"));
                None
            }
        }
    }

    /// A count from 1 up to the maximum of 32 bits.
    pub fn count(&self, key: &'static str) -> Option<u32> {
        self.integer(key, 1, u64::from(u32::MAX)).map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// A number that satisfies `fits`; `wanted` describes it.
    pub fn number(&self, key: &'static str, wanted: &str, fits: impl Fn(f64) -> bool) -> Option<f64> {
        let (scalar, span) = self.scalar(key, "a number")?;
        let value = match scalar.to_value() {
            Value::Int(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            _ => None,
        };
        match value.filter(|value| value.is_finite() && fits(*value)) {
            Some(value) => Some(value),
            None => {
                self.bad_number(key, scalar, span, wanted);
                None
            }
        }
    }

    fn bad_number(&self, key: &str, scalar: &Scalar, span: Span, wanted: &str) {
        let quoted = scalar.style != Style::Plain && scalar.text.parse::<f64>().is_ok();
        let (message, help) = match quoted {
            true => {
                (format!("\"{}\" is a string, not a number", scalar.text), "remove the quotes".to_owned())
            }
            false => (format!("`{}` is not {wanted}", scalar.text), format!("write {wanted}")),
        };
        self.report(self.error(Code::BadNumber, key, span, message).reference(&*scalar.text).help(help));
    }

    /// One of a few words.
    pub fn word<T: Clone>(&self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        self.word_or(key, words, &[])
    }

    /// The same where another shape is allowed, with these forms.
    pub fn word_or<T: Clone>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
        forms: &[&'static str],
    ) -> Option<T> {
        let text = self.text(key)?;
        match words.iter().find(|(word, _)| **word == *text.value) {
            Some((_, value)) => Some(value.clone()),
            None => {
                let all = words.iter().map(|(word, _)| *word).chain(forms.iter().copied());
                self.report(self.bad_word(key, &text, all));
                None
            }
        }
    }

    pub fn bad_word(
        &self,
        key: &str,
        text: &Spanned<Arc<str>>,
        words: impl Iterator<Item = &'static str>,
    ) -> Diagnostic {
        let words: Vec<&str> = words.collect();
        let message = format!("invalid value `{}` for `{}`", text.value, self.place.field(key));
        self.error(Code::BadEnum, key, text.span, message)
            .reference(&*text.value)
            .suggest(nearest(&text.value, words.iter().copied()))
            .help(match words.as_slice() {
                [only] => format!("use {only}"),
                words => format!("use one of {}", words.join(", ")),
            })
    }

    // The rest

    /// Reports keys that were not read: unknown ones, and those of `others`, which have no meaning here; `here`
    /// explains why and what to do.
    pub fn finish(&self, others: &[&str], here: impl Fn(&str) -> (String, &'static str)) {
        let asked = self.asked.borrow();
        // Keys that the table already has are of no use in a list of those it can have.
        let free: Vec<&str> = unique(&asked).into_iter().filter(|key| self.lookup(key).is_none()).collect();
        let mut counting: HashMap<&str, &Entry> = HashMap::new();
        for entry in &self.map.entries {
            let key: &str = &entry.key.text;
            if let Some(known) = asked.iter().find(|known| self.is_same(known, key)) {
                if *known != key {
                    let counts = counting.entry(known).or_insert_with(|| self.lookup(known).unwrap_or(entry));
                    self.report(self.other_case(entry, known, counts));
                }
                continue;
            }
            if others.iter().any(|other| self.is_same(other, key)) {
                let (why, help) = here(key);
                let finding = self.warning(
                    Code::IgnoredKey,
                    key,
                    entry.key.span,
                    format!("`{key}` has no effect {why}"),
                );
                self.report(finding.reference(key).help(help));
                continue;
            }
            if self.reported.borrow().contains(&key) {
                continue;
            }
            let suggest = nearest(key, asked.iter().chain(others).copied());
            let finding = self.warning(Code::UnknownKey, key, entry.key.span, format!("unknown key `{key}`"));
            let finding = finding.reference(key).suggest(suggest);
            self.report(match suggest {
                Some(_) => finding,
                None if free.is_empty() => finding.help("remove it"),
                None => finding.help(format!("use one of {}", free.join(", "))),
            });
        }
    }

    fn is_same(&self, known: &str, key: &str) -> bool {
        match self.context.keys {
            Keys::Exact => known == key,
            Keys::AnyCase => known.eq_ignore_ascii_case(key),
        }
    }

    /// A key in another spelling is a hint; if the correct spelling is present as well, it would be lost.
    fn other_case(&self, entry: &Entry, known: &str, counts: &Entry) -> Diagnostic {
        let key = &*entry.key.text;
        if counts.key.text != entry.key.text {
            let message = format!("`{key}` and `{}` are the same key", counts.key.text);
            return self
                .error(Code::DuplicateKey, key, entry.key.span, message)
                .label(counts.key.span, "also given here")
                .reference(key)
                .help("remove or rename one of them");
        }
        let message = format!("`{key}` is read as `{known}`");
        Diagnostic::new(Severity::Hint, Code::KeyCase, message)
            .at(entry.key.span)
            .step_of(&self.place)
            .field(self.place.field(key))
            .reference(key)
            .help(format!("write `{known}`"))
            .suggest(Some(known))
    }

    /// Reports every key that was not read as unknown.
    pub fn finish_all(&self) {
        self.finish(&[], |_| (String::new(), ""));
    }

    /// Whether the table has a key that no reader has asked for.
    pub fn is_unread(&self, key: &str) -> bool {
        self.has(key) && !self.asked.borrow().contains(&key)
    }

    /// Remembers that a key has been reported, so that it is not reported again.
    pub fn reported(&self, key: &'static str) {
        self.reported.borrow_mut().push(key);
    }

    /// Marks keys as known that are reserved for other programs and have no effect on a run.
    pub fn known(&self, keys: &[&'static str]) {
        self.asked.borrow_mut().extend(keys);
    }
}

fn unique<'k>(keys: &[&'k str]) -> Vec<&'k str> {
    let mut seen: Vec<&str> = Vec::with_capacity(keys.len());
    for key in keys {
        if !seen.contains(key) {
            seen.push(key);
        }
    }
    seen
}

/// Adds the step of a location to a finding.
pub trait StepOf {
    #[must_use]
    fn step_of(self, place: &Place) -> Self;
}

impl StepOf for Diagnostic {
    fn step_of(mut self, place: &Place) -> Self {
        self.step = place.step.as_ref().map(ToString::to_string);
        self
    }
}

pub fn wrong_shape(node: &Node, wanted: &str) -> Diagnostic {
    let found = match &node.kind {
        Kind::Scalar(_) if is_null(node) => "nothing",
        Kind::Scalar(_) => "a single value",
        Kind::List(_) => "a list",
        Kind::Map(_) => "a mapping",
    };
    Diagnostic::error(Code::WrongShape, format!("expected {wanted}, found {found}"))
        .at(node.span)
        .help(format!("replace it with {wanted}"))
}

pub fn is_null(node: &Node) -> bool {
    matches!(&node.kind, Kind::Scalar(scalar) if scalar.to_value() == Value::Null)
}
