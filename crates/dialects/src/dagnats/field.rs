//! Ways to read a key that only this dialect needs.

use crate::table::{StepOf, Table, is_null, wrong_shape};
use crate::text::Kind;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::{Code, Diagnostic, Severity, Span, Spanned};

/// Text; empty text is the same as an absent key.
pub fn filled(table: &Table<'_>, key: &'static str) -> Option<Spanned<Arc<str>>> {
    table.text(key).filter(|text| !text.value.is_empty())
}

/// Required text that must not be empty.
pub fn demanded(table: &Table<'_>, key: &'static str, help: &str) -> Option<Spanned<Arc<str>>> {
    let text = table.text(key);
    match &text {
        Some(text) if text.value.is_empty() => {
            let message = format!("`{}` is empty", table.place.field(key));
            table.report(table.error(Code::MissingField, key, text.span, message).help(help));
        }
        Some(_) => {}
        None => table.demand(key, help),
    }
    text.filter(|text| !text.value.is_empty())
}

/// A required whole number from `min` to `max`.
pub fn count(table: &Table<'_>, key: &'static str, min: u32, max: u32, help: &str) -> Option<u32> {
    table.demand(key, help);
    optional_count(table, key, min, max)
}

pub fn optional_count(table: &Table<'_>, key: &'static str, min: u32, max: u32) -> Option<u32> {
    let count = table.integer(key, u64::from(min), u64::from(max))?;
    u32::try_from(count).ok()
}

/// A mapping of names to strings.
pub fn text_map(table: &Table<'_>, key: &'static str) -> IndexMap<Arc<str>, Arc<str>> {
    let Some(inner) = table.table(key) else { return IndexMap::new() };
    let entries = inner.map.entries.iter();
    entries
        .filter_map(|entry| match &entry.value.kind {
            Kind::Scalar(scalar) if !is_null(&entry.value) => {
                Some((entry.key.text.clone(), scalar.text.clone()))
            }
            Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => {
                let finding = wrong_shape(&entry.value, "text").step_of(&inner.place);
                table.report(finding.field(inner.place.field(&entry.key.text)));
                None
            }
        })
        .collect()
}

/// A dotted path into data.
pub fn path(table: &Table<'_>, key: &'static str) -> Option<Spanned<Arc<str>>> {
    filled(table, key).filter(|path| check_path(table, key, path, &path.value))
}

/// The maximum number of names in one path.
const NAMES_MAX: usize = 64;

/// Whether `path`, which is all or the end of the written text, has a name between any two dots, and not too many.
pub fn check_path(table: &Table<'_>, key: &str, written: &Spanned<Arc<str>>, path: &str) -> bool {
    let text = &*written.value;
    let is_long = path.split('.').nth(NAMES_MAX).is_some();
    let (code, message) = if is_long {
        (Code::ExpressionLimit, format!("the path has more than {NAMES_MAX} names"))
    } else if path.split('.').any(str::is_empty) {
        let cause = "a name is missing before, after or between the dots";
        (Code::ExpressionSyntax, format!("invalid path `{text}`: {cause}"))
    } else {
        return true;
    };
    let finding = table.error(code, key, written.span, message).reference(text);
    table.report(finding.help("write a few names separated by single dots, such as `customer.id`"));
    false
}

/// Reports that a key has no effect, and why.
pub fn ignored(
    table: &Table<'_>,
    severity: Severity,
    key: &str,
    span: Span,
    why: &str,
    help: &str,
) -> Diagnostic {
    Diagnostic::new(severity, Code::IgnoredKey, format!("`{}` has no effect{why}", table.place.field(key)))
        .at(span)
        .step_of(&table.place)
        .field(table.place.field(key))
        .reference(key)
        .help(help)
}

/// Every error found by `read` violates the rule with this number.
pub fn ruled<T>(table: &Table<'_>, rule: u8, read: impl FnOnce() -> T) -> T {
    let before = table.context.diagnostics.borrow().len();
    let value = read();
    let mut diagnostics = table.context.diagnostics.borrow_mut();
    let found = diagnostics.iter_mut().skip(before);
    found.filter(|finding| finding.is_error()).for_each(|finding| finding.rule = Some(rule));
    value
}
