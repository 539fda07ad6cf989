//! The built-in functions: their names, arities and implementations.
//!
//! Functions only see values. Everything that grows with the arguments is charged to the [`Meter`].

use super::eval::{EvalError, Meter, a_kind, compare, equals_within, json_text, sealed, text_within};
use super::python;
use super::semantics::{FunctionRules, Semantics};
use crate::diagnostic::Code;
use crate::source::Span;
use crate::value::{Map, Value};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// The number of elements in a list, characters in a string, or entries in an object.
    Length,
    /// Whether a string contains another (case-sensitive), a list contains an equal element, or an object has a key.
    Contains,
    /// Compact JSON, with keys in their original order.
    ToJson,
    /// Parses JSON; integers stay integers.
    FromJson,
    /// Whether a string begins with another (case-sensitive).
    StartsWith,
    /// Whether a string ends with another (case-sensitive).
    EndsWith,
    /// A string in lower case, in any script.
    Lower,
    /// A string in upper case, in any script.
    Upper,
    /// The text forms of all elements of a list, joined with a separator (a comma by default).
    Join,
    /// The parts of a string between separators; an empty string has one empty part.
    Split,
    /// The first argument, or the second if the first is null.
    Default,
    /// The keys of an object, in order.
    Keys,
    /// The values of an object, in order.
    Values,
    /// The first element of a list; null if the list is empty.
    First,
    /// The last element of a list; null if the list is empty.
    Last,
    /// Flattens a list of lists by one level; other elements stay.
    Flatten,
    /// The smallest of several numbers or strings, passed as arguments or as one list; null for an empty list.
    Min,
    /// The largest of several numbers or strings, passed as arguments or as one list; null for an empty list.
    Max,
    /// A member of each object in a list, by name or dotted path; other elements stay. An empty list if the argument
    /// is not a list.
    Map,
    /// Whether the first argument is part of the second: a string, a list, or the keys of an object.
    In,
    /// The text form of a value.
    Text,
    /// A string without surrounding blanks.
    Trim,
    /// A value as a list: null is empty, a list is itself, anything else becomes the only element.
    AsList,
    /// An object built from alternating keys and values.
    Object,
    /// The integers from 0, or from the first argument, up to but not including another one.
    Range,
    /// A string with `{0}`, `{1}` and so on replaced by the text forms of the other arguments.
    Format,
    /// A string with every occurrence of another one replaced by a third.
    Replace,
    /// Always fails, with its argument as the message.
    Fail,
    /// Returns its argument. Inside a shell command, it disables quoting.
    Raw,
    /// The text form quoted for a POSIX shell; each element of a list is quoted separately. The second argument is
    /// the quote character that is open around it: it is closed before and reopened after. No dialect can write this
    /// function; lowering wraps it around every expression in a shell command.
    ShellQuote,
}

/// The number of arguments a function takes; without `max`, any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    pub min: usize,
    pub max: Option<usize>,
}

impl Arity {
    const fn exactly(count: usize) -> Self {
        Self { min: count, max: Some(count) }
    }

    pub fn accepts(self, count: usize) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

impl std::fmt::Display for Arity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count: usize| if count == 1 { "argument" } else { "arguments" };
        match self.max {
            Some(max) if max == self.min => write!(f, "{max} {}", plural(max)),
            Some(max) => write!(f, "{} to {max} arguments", self.min),
            None => write!(f, "at least {} {}", self.min, plural(self.min)),
        }
    }
}

impl Function {
    /// All functions that workflow files can use.
    pub const ALL: &'static [Self] = &[
        Self::Length,
        Self::Contains,
        Self::ToJson,
        Self::FromJson,
        Self::StartsWith,
        Self::EndsWith,
        Self::Lower,
        Self::Upper,
        Self::Join,
        Self::Split,
        Self::Default,
        Self::Keys,
        Self::Values,
        Self::First,
        Self::Last,
        Self::Flatten,
        Self::Min,
        Self::Max,
        Self::Map,
        Self::In,
        Self::Text,
        Self::Trim,
        Self::AsList,
        Self::Object,
        Self::Range,
        Self::Format,
        Self::Replace,
        Self::Fail,
        Self::Raw,
    ];

    /// The name in SWDL. `ShellQuote` cannot be written there; its name is only for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Contains => "contains",
            Self::ToJson => "toJSON",
            Self::FromJson => "fromJSON",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::Lower => "lower",
            Self::Upper => "upper",
            Self::Join => "join",
            Self::Split => "split",
            Self::Default => "default",
            Self::Keys => "keys",
            Self::Values => "values",
            Self::First => "first",
            Self::Last => "last",
            Self::Flatten => "flatten",
            Self::Min => "min",
            Self::Max => "max",
            Self::Map => "map",
            Self::In => "isIn",
            Self::Text => "text",
            Self::Trim => "trim",
            Self::AsList => "asList",
            Self::Object => "object",
            Self::Range => "range",
            Self::Format => "format",
            Self::Replace => "replace",
            Self::Fail => "fail",
            Self::Raw => "raw",
            Self::ShellQuote => "shell_quote",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name() == name)
    }

    pub fn arity(self) -> Arity {
        match self {
            Self::Contains
            | Self::StartsWith
            | Self::EndsWith
            | Self::Split
            | Self::Default
            | Self::Map
            | Self::In => Arity::exactly(2),
            Self::Object => Arity { min: 0, max: None },
            Self::Join | Self::ShellQuote => Arity { min: 1, max: Some(2) },
            Self::Min | Self::Max | Self::Format => Arity { min: 1, max: None },
            Self::Range => Arity { min: 1, max: Some(3) },
            Self::Replace => Arity::exactly(3),
            Self::Length
            | Self::ToJson
            | Self::FromJson
            | Self::Lower
            | Self::Upper
            | Self::Keys
            | Self::Values
            | Self::First
            | Self::Last
            | Self::Flatten
            | Self::Text
            | Self::Trim
            | Self::AsList
            | Self::Fail
            | Self::Raw => Arity::exactly(1),
        }
    }

    /// A sample call for help texts.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Length => "length(value)",
            Self::Contains => "contains(string or list, value)",
            Self::ToJson => "toJSON(value)",
            Self::FromJson => "fromJSON(text)",
            Self::StartsWith => "startsWith(string, prefix)",
            Self::EndsWith => "endsWith(string, suffix)",
            Self::Lower => "lower(text)",
            Self::Upper => "upper(text)",
            Self::Join => "join(list, separator)",
            Self::Split => "split(string, separator)",
            Self::Default => "default(value, fallback)",
            Self::Keys => "keys(object)",
            Self::Values => "values(object)",
            Self::First => "first(list)",
            Self::Last => "last(list)",
            Self::Flatten => "flatten(list)",
            Self::Min => "min(a, b)",
            Self::Max => "max(a, b)",
            Self::Map => "map(list, member)",
            Self::In => "isIn(value, string or list)",
            Self::Text => "text(value)",
            Self::Trim => "trim(text)",
            Self::AsList => "asList(value)",
            Self::Object => "object(key, value)",
            Self::Range => "range(start, end, step)",
            Self::Format => "format('{0} of {1}', a, b)",
            Self::Replace => "replace(string, part, with)",
            Self::Fail => "fail(message)",
            Self::Raw => "raw(value)",
            Self::ShellQuote => "shell_quote(value)",
        }
    }

    /// The functions available as filters: their names and sample usage.
    const FILTERS: [(Self, &'static str, &'static str); 10] = [
        (Self::Length, "length", "list | length"),
        (Self::Contains, "contains", "text | contains('part')"),
        (Self::ToJson, "to_json", "value | to_json"),
        (Self::FromJson, "from_json", "text | from_json"),
        (Self::Lower, "lower", "text | lower"),
        (Self::Upper, "upper", "text | upper"),
        (Self::Join, "join", "list | join(', ')"),
        (Self::Split, "split", "text | split(',')"),
        (Self::Default, "default", "value | default('fallback')"),
        (Self::Map, "map", "list | map('member')"),
    ];

    /// The name of the function as a filter.
    pub fn filter_name(self) -> &'static str {
        Self::FILTERS.iter().find(|filter| filter.0 == self).map_or_else(|| self.name(), |filter| filter.1)
    }

    /// A sample call in filter syntax.
    fn filter_usage(self) -> &'static str {
        Self::FILTERS.iter().find(|filter| filter.0 == self).map_or_else(|| self.usage(), |filter| filter.2)
    }
}

/// An argument of a function and its location.
pub(super) struct Argument {
    pub(super) value: Value,
    pub(super) span: Span,
}

/// A call being evaluated. Errors about an argument point to that argument.
pub(super) struct Call<'a> {
    pub(super) function: Function,
    pub(super) args: &'a [Argument],
    pub(super) span: Span,
    pub(super) semantics: &'a Semantics,
    pub(super) meter: &'a mut Meter,
}

impl<'a> Call<'a> {
    pub(super) fn run(mut self) -> Result<Value, EvalError> {
        self.check()?;
        match self.semantics.functions {
            FunctionRules::House => self.run_house(),
            FunctionRules::Python => self.run_filter(),
        }
    }

    pub(super) fn run_house(&mut self) -> Result<Value, EvalError> {
        match self.function {
            Function::Length => self.length(),
            Function::Contains => self.contains(),
            Function::ToJson => self.json().map(Value::text),
            Function::FromJson => self.parse_json(),
            Function::StartsWith => Ok(Value::Bool(self.text(0)?.starts_with(self.text(1)?))),
            Function::EndsWith => Ok(Value::Bool(self.text(0)?.ends_with(self.text(1)?))),
            Function::Lower => self.change_case(str::to_lowercase),
            Function::Upper => self.change_case(str::to_uppercase),
            Function::Join => self.join(),
            Function::Split => self.split(),
            Function::Default => Ok(self.default()),
            Function::Keys => self.collect(|map| map.keys().cloned().map(Value::Text).collect()),
            Function::Values => self.collect(|map| map.values().cloned().collect()),
            Function::First => Ok(self.list(0)?.first().cloned().unwrap_or(Value::Null)),
            Function::Last => Ok(self.list(0)?.last().cloned().unwrap_or(Value::Null)),
            Function::Flatten => self.flatten(),
            Function::Min => self.extreme(Ordering::Less),
            Function::Max => self.extreme(Ordering::Greater),
            Function::Map => self.map(),
            Function::In => self.is_in(),
            Function::Text => text_within(&self.args[0].value, self.semantics, self.meter)
                .map(Value::Text)
                .map_err(|e| e.at(self.span)),
            Function::Trim => Ok(Value::text(python::strip(self.text(0)?))),
            Function::AsList => Ok(self.as_list()),
            Function::Object => self.object(),
            Function::Range => self.range(),
            Function::Format => self.format(),
            Function::Replace => self.replace(),
            Function::Fail => Err(self.failure()?),
            Function::Raw => Ok(self.args[0].value.clone()),
            Function::ShellQuote => self.shell_quote(),
        }
    }

    /// Parsers check the number of arguments when they read a file; this check covers stored plans.
    fn check(&mut self) -> Result<(), EvalError> {
        let arity = self.function.arity();
        if !arity.accepts(self.args.len()) {
            let message = format!("`{}` takes {arity}, got {}", self.name(), self.args.len());
            return Err(EvalError::new(Code::BadArity, message, self.usage_help()).at(self.span));
        }
        match self.args.iter().find(|arg| matches!(arg.value, Value::Sealed(_))) {
            Some(arg) if self.function == Function::ShellQuote => Err(secret_in_command().at(arg.span)),
            Some(arg) => Err(sealed(&format!("passed to `{}`", self.name())).at(arg.span)),
            None => self.pay_for_texts(),
        }
    }

    /// Functions read each text at most once, so each is charged once.
    fn pay_for_texts(&mut self) -> Result<(), EvalError> {
        let bytes = self.args.iter().filter_map(|arg| arg.value.as_str()).map(str::len).sum();
        self.meter.read(bytes).map_err(|e| e.at(self.span))
    }

    /// The name of the function in the syntax of the dialect.
    pub(super) fn name(&self) -> &'static str {
        match self.semantics.functions {
            FunctionRules::House => self.function.name(),
            FunctionRules::Python => self.function.filter_name(),
        }
    }

    pub(super) fn usage_help(&self) -> String {
        match self.semantics.functions {
            FunctionRules::House => format!("write `{}`", self.function.usage()),
            FunctionRules::Python => format!("write `{}`", self.function.filter_usage()),
        }
    }

    pub(super) fn text(&self, number: usize) -> Result<&'a str, EvalError> {
        self.args[number].value.as_str().ok_or_else(|| self.wrong_kind(number, "a string"))
    }

    fn list(&self, number: usize) -> Result<&'a Arc<[Value]>, EvalError> {
        let Value::List(items) = &self.args[number].value else {
            return Err(self.wrong_kind(number, "a list"));
        };
        Ok(items)
    }

    pub(super) fn wrong_kind(&self, number: usize, wanted: &str) -> EvalError {
        let Argument { value, span } = &self.args[number];
        let message = format!("`{}` expects {wanted}, not {}", self.name(), a_kind(value));
        let help = match (value, self.semantics.functions) {
            (Value::Null, FunctionRules::House) => {
                "the value is missing; provide one with `default(value, …)`, or check for null first"
                    .to_owned()
            }
            (Value::Null, FunctionRules::Python) => {
                "the value is missing; provide one with `| default('…')`, or check for null first".to_owned()
            }
            (_, FunctionRules::House | FunctionRules::Python) => self.usage_help(),
        };
        EvalError::new(Code::ExpressionType, message, help).at(*span)
    }

    fn length(&self) -> Result<Value, EvalError> {
        let length = match &self.args[0].value {
            Value::List(items) => items.len(),
            Value::Map(map) => map.len(),
            Value::Text(text) => text.chars().count(),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Sealed(_) => {
                return Err(self.wrong_kind(0, "a list, a string or an object"));
            }
        };
        Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
    }

    fn contains(&mut self) -> Result<Value, EvalError> {
        let found = match &self.args[0].value {
            Value::Text(text) => text.contains(self.text(1)?),
            Value::List(items) => self.has_element(items)?,
            Value::Map(map) => map.contains_key(self.text(1)?),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Sealed(_) => {
                return Err(self.wrong_kind(0, "a string, a list or an object"));
            }
        };
        Ok(Value::Bool(found))
    }

    fn has_element(&mut self, items: &[Value]) -> Result<bool, EvalError> {
        for item in items {
            let same = equals_within(item, &self.args[1].value, self.semantics, self.meter);
            if same.map_err(|e| e.at(self.span))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn map(&mut self) -> Result<Value, EvalError> {
        let path = self.text(1)?;
        let Value::List(items) = &self.args[0].value else { return Ok(Value::list([])) };
        self.meter.make_elements(items.len()).map_err(|e| e.at(self.span))?;
        Ok(Value::list(items.iter().map(|item| match item {
            Value::Map(_) => {
                path.split('.').try_fold(item, |here, name| here.get(name)).cloned().unwrap_or(Value::Null)
            }
            other => other.clone(),
        })))
    }

    fn is_in(&mut self) -> Result<Value, EvalError> {
        let found = match (&self.args[0].value, &self.args[1].value) {
            (Value::Text(part), Value::Text(whole)) => whole.contains(&**part),
            (Value::Text(key), Value::Map(map)) => map.contains_key(key),
            (_, Value::List(items)) => {
                for item in items.iter() {
                    let same = equals_within(item, &self.args[0].value, self.semantics, self.meter);
                    if same.map_err(|e| e.at(self.span))? {
                        return Ok(Value::Bool(true));
                    }
                }
                false
            }
            (_, _) => false,
        };
        Ok(Value::Bool(found))
    }

    fn as_list(&self) -> Value {
        match &self.args[0].value {
            Value::Null => Value::list([]),
            list @ Value::List(_) => list.clone(),
            other => Value::list([other.clone()]),
        }
    }

    fn object(&mut self) -> Result<Value, EvalError> {
        self.meter.make_elements(self.args.len()).map_err(|e| e.at(self.span))?;
        let mut map = Map::with_capacity(self.args.len() / 2);
        for pair in self.args.chunks(2) {
            let (Some(key), [_, value]) = (pair[0].value.as_str(), pair) else {
                let message = "`object` takes alternating keys and values, and each key must be a string";
                return Err(EvalError::new(Code::ExpressionType, message, self.usage_help()).at(pair[0].span));
            };
            map.insert(key.into(), value.value.clone());
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn json(&mut self) -> Result<String, EvalError> {
        json_text(&self.args[0].value, self.meter).map_err(|e| e.at(self.args[0].span))
    }

    fn parse_json(&mut self) -> Result<Value, EvalError> {
        let text = self.text(0)?;
        let span = self.args[0].span;
        self.pay_for_json(text)?;
        // The JSON parser refuses more than 128 levels.
        serde_json::from_str(text).map_err(|error| {
            let message = format!("`fromJSON` was given text that is not valid JSON: {error}");
            EvalError::new(Code::ExpressionValue, message, "check the step that produced the text").at(span)
        })
    }

    pub(super) fn pay_for_json(&mut self, text: &str) -> Result<(), EvalError> {
        // Each of these characters starts at most one element, so counting them bounds the memory in advance.
        let elements = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        let paid = self.meter.make_elements(elements).and_then(|()| self.meter.make(text.len()));
        paid.map_err(|e| e.at(self.args[0].span))
    }

    fn failure(&self) -> Result<EvalError, EvalError> {
        let help = "correct the expression; it fails every time it is evaluated";
        Ok(EvalError::new(Code::ExpressionValue, self.text(0)?, help).at(self.span))
    }

    fn change_case(&mut self, change: fn(&str) -> String) -> Result<Value, EvalError> {
        let text = self.text(0)?;
        self.meter.make(text.len()).map_err(|e| e.at(self.span))?;
        Ok(Value::text(change(text)))
    }

    fn join(&mut self) -> Result<Value, EvalError> {
        let items = self.list(0)?;
        let separator = if self.args.len() > 1 { self.text(1)? } else { "," };
        self.joined(items, separator, |text, out| out.push_str(text)).map(Value::text)
    }

    /// Joins the text forms of `items`, each appended by `add`, with `separator` between them.
    fn joined(
        &mut self,
        items: &[Value],
        separator: &str,
        add: fn(&str, &mut String),
    ) -> Result<String, EvalError> {
        let mut out = String::new();
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                self.meter.make(separator.len()).map_err(|e| e.at(self.span))?;
                out.push_str(separator);
            }
            let before = out.len();
            let text = text_within(item, self.semantics, self.meter).map_err(|e| e.at(self.args[0].span))?;
            add(&text, &mut out);
            self.meter.make(out.len() - before).map_err(|e| e.at(self.span))?;
        }
        Ok(out)
    }

    fn split(&mut self) -> Result<Value, EvalError> {
        let (text, separator) = (self.text(0)?, self.text(1)?);
        if separator.is_empty() {
            let message = "`split` needs a separator that is not empty";
            let help = "write the text that separates the parts, e.g. `split(text, ',')`";
            return Err(EvalError::new(Code::ExpressionValue, message, help).at(self.args[1].span));
        }
        self.meter.make(text.len()).map_err(|e| e.at(self.span))?;
        let mut parts = Vec::new();
        for part in text.split(separator) {
            self.meter.make_elements(1).map_err(|e| e.at(self.span))?;
            parts.push(Value::text(part));
        }
        Ok(Value::List(parts.into()))
    }

    fn default(&self) -> Value {
        let chosen = usize::from(self.args[0].value == Value::Null);
        self.args[chosen].value.clone()
    }

    fn collect(&mut self, part: fn(&Map) -> Arc<[Value]>) -> Result<Value, EvalError> {
        let Value::Map(map) = &self.args[0].value else {
            return Err(self.wrong_kind(0, "an object"));
        };
        self.meter.make_elements(map.len()).map_err(|e| e.at(self.span))?;
        Ok(Value::List(part(map)))
    }

    fn flatten(&mut self) -> Result<Value, EvalError> {
        let mut flat = Vec::new();
        for item in self.list(0)?.iter() {
            let items = match item {
                Value::List(inner) => inner.as_ref(),
                other => std::slice::from_ref(other),
            };
            self.meter.make_elements(items.len() + 1).map_err(|e| e.at(self.span))?;
            flat.extend_from_slice(items);
        }
        Ok(Value::List(flat.into()))
    }

    /// The first value that no other value beats by the `wanted` ordering.
    fn extreme(&mut self, wanted: Ordering) -> Result<Value, EvalError> {
        let candidates: Vec<&Value> = match self.args {
            [Argument { value: Value::List(items), .. }] => items.iter().collect(),
            args => args.iter().map(|arg| &arg.value).collect(),
        };
        self.meter.work(candidates.len()).map_err(|e| e.at(self.span))?;
        let Some((first, rest)) = candidates.split_first() else {
            return Ok(Value::Null);
        };
        let mut best = *first;
        // A single value is compared with itself so that its kind is checked too.
        for candidate in std::iter::once(first).chain(rest) {
            let Ok(order) = compare(candidate, best) else {
                return Err(self.not_comparable(candidate, best));
            };
            if order == Some(wanted) {
                best = candidate;
            }
        }
        Ok(best.clone())
    }

    fn not_comparable(&self, a: &Value, b: &Value) -> EvalError {
        let name = self.function.name();
        if matches!(a, Value::Sealed(_)) {
            return sealed(&format!("passed to `{name}`")).at(self.span);
        }
        let found = if a.kind() == b.kind() { a_kind(a) } else { format!("{} and {}", a_kind(b), a_kind(a)) };
        let message = format!("`{name}` expects only numbers or only strings, not {found}");
        EvalError::new(Code::ExpressionType, message, self.usage_help()).at(self.span)
    }

    fn shell_quote(&mut self) -> Result<Value, EvalError> {
        let Argument { value, span } = &self.args[0];
        let items = if let Value::List(items) = value { items.as_ref() } else { std::slice::from_ref(value) };
        // Only secrets have no text form.
        let text = self.joined(items, " ", quote).map_err(|error| {
            if error.code == Code::ExpressionType { secret_in_command().at(*span) } else { error }
        })?;
        if text.contains('\0') {
            return Err(nul_in_command().at(*span));
        }
        match self.args.get(1) {
            None => Ok(Value::text(text)),
            Some(_) => {
                let around = self.text(1)?;
                Ok(Value::text(format!("{around}{text}{around}")))
            }
        }
    }
}

/// Inside single quotes a POSIX shell takes every character literally, except the single quote itself.
fn quote(text: &str, out: &mut String) {
    out.push('\'');
    out.push_str(&text.replace('\'', r"'\''"));
    out.push('\'');
}

fn secret_in_command() -> EvalError {
    let help = "pass it as a whole to an environment variable and read that variable in the command, e.g. \"$TOKEN\"";
    EvalError::new(Code::ExpressionType, "a secret cannot be inserted into a command", help)
}

fn nul_in_command() -> EvalError {
    let help = "pass the value through a file instead";
    EvalError::new(Code::ExpressionValue, "a command cannot contain the NUL character", help)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::expr::{Expr, Limits, Node, Read, Scope, evaluate};

    struct Nothing;

    impl Scope for Nothing {
        fn read(&self, _: Read) -> Result<Value, EvalError> {
            Ok(Value::Null)
        }
    }

    fn json(text: &str) -> Value {
        serde_json::from_str(text).expect("test data is JSON")
    }

    fn call(function: Function, args: &[Value]) -> Result<Value, EvalError> {
        call_by(&Semantics::HOUSE, function, args)
    }

    /// Calls with the given values; the span of each argument is its index.
    pub fn call_by(semantics: &Semantics, function: Function, args: &[Value]) -> Result<Value, EvalError> {
        let place = |number: usize| Span::new(Default::default(), number, number + 1);
        let args = args.iter().enumerate();
        let args =
            args.map(|(number, value)| Expr::new(Node::Literal(value.clone()), place(number))).collect();
        let call = Expr::new(Node::Call { function, args }, place(90));
        evaluate(&call, &Nothing, semantics, &Limits::default())
    }

    /// Takes the arguments as one JSON list; the expected result is JSON, or the code and the index of the invalid
    /// argument.
    fn check(function: Function, args: &str, expected: Result<&str, (Code, u32)>) {
        let Value::List(args) = json(args) else { panic!("arguments are a list") };
        let found =
            call(function, &args).map(|value| value.to_json_text().expect("no secrets in these tests"));
        let expected = expected.map(str::to_owned);
        assert_eq!(found.map_err(|e| (e.code, e.span.start)), expected, "{}({args:?})", function.name());
    }

    const TYPE: Code = Code::ExpressionType;
    const VALUE: Code = Code::ExpressionValue;

    #[test]
    fn measure_and_search() {
        use Function::{Contains, EndsWith, Length, StartsWith};
        check(Length, r#"[[1, 2]]"#, Ok("2"));
        check(Length, r#"["größe"]"#, Ok("5"));
        check(Length, r#"[{"a": 1}]"#, Ok("1"));
        check(Length, "[null]", Err((TYPE, 0)));
        check(Length, "[3]", Err((TYPE, 0)));
        check(Contains, r#"["release-7", "ease"]"#, Ok("true"));
        check(Contains, r#"["release-7", "EASE"]"#, Ok("false"));
        check(Contains, r#"["3", 3]"#, Err((TYPE, 1)));
        check(Contains, "[[1, 2], 2.0]", Ok("true"));
        check(Contains, "[[1, 2], true]", Ok("false"));
        check(Contains, r#"[[{"a": [1], "b": 2}], {"b": 2, "a": [1.0]}]"#, Ok("true"));
        check(Contains, r#"[{"a": null}, "a"]"#, Ok("true"));
        check(Contains, r#"[{"a": null}, "b"]"#, Ok("false"));
        check(Contains, r#"[null, "b"]"#, Err((TYPE, 0)));
        check(StartsWith, r#"["abc", "ab"]"#, Ok("true"));
        check(StartsWith, r#"["abc", "Ab"]"#, Ok("false"));
        check(StartsWith, r#"[["a"], "a"]"#, Err((TYPE, 0)));
        check(EndsWith, r#"["abc", "bc"]"#, Ok("true"));
        check(EndsWith, r#"["abc", 1]"#, Err((TYPE, 1)));
    }

    #[test]
    fn read_and_write_json() {
        use Function::{FromJson, ToJson};
        check(
            ToJson,
            r#"[{"b": [1, 2.0, "x\n"], "a": null}]"#,
            Ok(r#""{\"b\":[1,2.0,\"x\\n\"],\"a\":null}""#),
        );
        check(ToJson, "[null]", Ok("\"null\""));
        check(
            FromJson,
            r#"[" {\"b\": 1, \"a\": [2.0, 9007199254740993]} "]"#,
            Ok(r#"{"b":1,"a":[2.0,9007199254740993]}"#),
        );
        check(FromJson, r#"["{"]"#, Err((VALUE, 0)));
        check(FromJson, r#"[""]"#, Err((VALUE, 0)));
        check(FromJson, "[null]", Err((TYPE, 0)));
        let deep = |levels: usize| Value::text("[".repeat(levels) + &"]".repeat(levels));
        assert!(call(FromJson, &[deep(100)]).is_ok());
        assert_eq!(call(FromJson, &[deep(100_000)]).map_err(|e| e.code), Err(VALUE));
    }

    #[test]
    fn work_on_strings() {
        use Function::{Join, Lower, Split, Upper};
        check(Lower, r#"["ÄB"]"#, Ok("\"äb\""));
        check(Upper, r#"["straße"]"#, Ok("\"STRASSE\""));
        check(Upper, "[1]", Err((TYPE, 0)));
        check(Join, r#"[["a", 1, null, true, [2]]]"#, Ok("\"a,1,,true,[2]\""));
        check(Join, r#"[["a", "b"], " - "]"#, Ok("\"a - b\""));
        check(Join, "[[]]", Ok("\"\""));
        check(Join, r#"["ab"]"#, Err((TYPE, 0)));
        check(Join, r#"[["ab"], 1]"#, Err((TYPE, 1)));
        check(Split, r#"["a,b,,c", ","]"#, Ok(r#"["a","b","","c"]"#));
        check(Split, r#"["", ","]"#, Ok(r#"[""]"#));
        check(Split, r#"["abc", ""]"#, Err((VALUE, 1)));
        check(Split, r#"[null, ","]"#, Err((TYPE, 0)));
    }

    #[test]
    fn select_from_lists_and_objects() {
        use Function::{Default, First, Flatten, Keys, Last, Max, Min, Raw, Values};
        check(Default, "[null, 1]", Ok("1"));
        check(Default, "[false, 1]", Ok("false"));
        check(Default, r#"["", 1]"#, Ok("\"\""));
        check(Keys, r#"[{"b": 1, "a": 2}]"#, Ok(r#"["b","a"]"#));
        check(Values, r#"[{"b": 1, "a": 2}]"#, Ok("[1,2]"));
        check(Keys, "[[1]]", Err((TYPE, 0)));
        check(First, "[[1, 2]]", Ok("1"));
        check(Last, "[[1, 2]]", Ok("2"));
        check(First, "[[]]", Ok("null"));
        check(Last, "[[]]", Ok("null"));
        check(First, r#"["ab"]"#, Err((TYPE, 0)));
        check(Flatten, "[[[1, [2]], 3, [], null]]", Ok("[1,[2],3,null]"));
        check(Min, "[3, 1.5, 2]", Ok("1.5"));
        check(Max, "[[3, 1.5, 2]]", Ok("3"));
        check(Max, "[9007199254740993, 9007199254740992.0]", Ok("9007199254740993"));
        check(Min, r#"["b", "a"]"#, Ok("\"a\""));
        check(Max, "[[]]", Ok("null"));
        check(Min, r#"[1, "a"]"#, Err((TYPE, 90)));
        check(Max, "[1, null]", Err((TYPE, 90)));
        check(Max, "[true]", Err((TYPE, 90)));
        check(Max, "[[1], [2]]", Err((TYPE, 90)));
        check(Raw, "[[1]]", Ok("[1]"));
    }

    fn check_quoted(value: &str, expected: &str) {
        let quoted = call(Function::ShellQuote, &[json(value)]).map_err(|e| e.message);
        assert_eq!(quoted, Ok(Value::text(expected)), "{value}");
    }

    #[test]
    fn quote_for_a_shell() {
        check_quoted(r#""plain""#, "'plain'");
        check_quoted(r#""""#, "''");
        check_quoted("null", "''");
        check_quoted(r#""it's""#, r"'it'\''s'");
        check_quoted(r#""'''""#, r"''\'''\'''\'''");
        check_quoted(r#""$(rm -rf /) `x` \\ \" ; & | \n !""#, "'$(rm -rf /) `x` \\ \" ; & | \n !'");
        check_quoted("3", "'3'");
        check_quoted("false", "'false'");
        check_quoted(r#"["a b", "c'd", null, 1, ["x y"]]"#, r#"'a b' 'c'\''d' '' '1' '["x y"]'"#);
        check_quoted("[]", "");
        check_quoted(r#"{"k": "it's"}"#, r#"'{"k":"it'\''s"}'"#);
        check(Function::ShellQuote, r#"["a\u0000b"]"#, Err((VALUE, 0)));
    }

    #[test]
    fn no_function_accepts_a_secret() {
        let secret = Value::secret("API");
        for function in Function::ALL.iter().copied().chain([Function::ShellQuote]) {
            let args = vec![secret.clone(); function.arity().min.max(1)];
            let error = call(function, &args).expect_err(function.name());
            assert_eq!((error.code, error.span.start), (TYPE, 0), "{}", function.name());
            assert!(error.help.contains("environment variable"), "{}", error.help);
        }
        let inside = [Value::list([secret])];
        for function in [Function::ToJson, Function::Join, Function::Min, Function::ShellQuote] {
            let error = call(function, &inside).expect_err(function.name());
            assert!(error.message.starts_with("a secret cannot be"), "{}", error.message);
        }
        let search = [inside[0].clone(), Value::text("guess")];
        assert_eq!(call(Function::Contains, &search).map_err(|e| e.code), Err(TYPE));
    }

    #[test]
    fn names_and_arities() {
        for function in Function::ALL {
            assert_eq!(Function::by_name(function.name()), Some(*function));
            assert!(function.usage().starts_with(&format!("{}(", function.name())), "{}", function.usage());
            let empty = function.arity().accepts(0);
            assert_eq!(empty, *function == Function::Object, "{}", function.name());
        }
        assert_eq!(Function::by_name("shell_quote"), None);
        assert_eq!(serde_json::to_string(&Function::ToJson).ok().as_deref(), Some("\"to_json\""));
        check(Function::Length, "[]", Err((Code::BadArity, 90)));
        check(Function::Join, "[[], ',', 1]".replace('\'', "\"").as_str(), Err((Code::BadArity, 90)));
    }

    #[test]
    fn mistakes_are_explained() {
        let words = |function, args: &str| {
            let Value::List(args) = json(args) else { panic!("arguments are a list") };
            call(function, &args).map_err(|e| (e.message, e.help)).expect_err("a mistake")
        };
        assert_eq!(
            words(Function::Length, "[3]"),
            (
                "`length` expects a list, a string or an object, not an integer".into(),
                "write `length(value)`".into()
            )
        );
        assert_eq!(
            words(Function::Upper, "[null]"),
            (
                "`upper` expects a string, not null".into(),
                "the value is missing; provide one with `default(value, …)`, or check for null first".into()
            )
        );
        assert_eq!(
            words(Function::Min, r#"[1, "a"]"#).0,
            "`min` expects only numbers or only strings, not an integer and a string"
        );
    }
}
