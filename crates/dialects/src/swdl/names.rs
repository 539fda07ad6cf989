//! The rules for ids, names, versions and references.

use super::table::Table;
use std::sync::Arc;
use windlass_ir::{Code, Spanned};

/// Lower-case words of letters and digits separated by single hyphens, starting with a letter.
pub fn is_kebab(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// What an expression can write after a dot.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

pub const NAME_RULE: &str =
    "start with a letter or an underscore, then use letters, digits, underscores and hyphens";

/// A name that a shell accepts for a variable.
pub fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

pub const VARIABLE_RULE: &str =
    "start with a letter or an underscore, then use letters, digits and underscores";

/// `1.2.3`, with an optional pre-release and build part.
pub fn is_semver(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_pre = |part: &str| is_word(part) && (!part.bytes().all(|b| b.is_ascii_digit()) || is_number(part));
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.into_iter().all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

/// The closest kebab-case spelling of a text, if any characters remain.
fn to_kebab(text: &str) -> Option<String> {
    let mut spaced = String::with_capacity(text.len());
    let mut after_small = false;
    for letter in text.chars() {
        if after_small && letter.is_ascii_uppercase() {
            spaced.push(' ');
        }
        after_small = letter.is_ascii_lowercase();
        spaced.push(letter.to_ascii_lowercase());
    }
    let words: Vec<&str> =
        spaced.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    Some(words.join("-")).filter(|kebab| text.is_ascii() && is_kebab(kebab))
}

/// Reports an id that is not kebab-case. Under the rules of another dialect, ids follow that dialect.
pub fn check_id(table: &Table<'_>, key: &str, id: &Spanned<Arc<str>>) {
    if is_kebab(&id.value) || table.context.foreign {
        return;
    }
    let message = match id.value.is_empty() {
        true => "the id is empty".to_owned(),
        false => format!("invalid id `{}`: ids are kebab-case", id.value),
    };
    let finding =
        table.error(Code::BadId, key, id.span, message).reference(&*id.value).suggest(to_kebab(&id.value));
    table.report(match finding.help.is_empty() {
        true => finding.help("write lower-case words separated by hyphens, such as `ship-it`"),
        false => finding,
    });
}

/// Reports a reference that does not have the form `kind:name`.
pub fn check_artifact(table: &Table<'_>, key: &str, reference: &Spanned<Arc<str>>) {
    const KINDS: [&str; 4] = ["agent", "skill", "mcp", "command"];
    let text = &reference.value;
    let kind = text.split_once(':').filter(|(_, name)| !name.trim().is_empty()).map(|(kind, _)| kind);
    if kind.is_some_and(|kind| KINDS.contains(&kind)) {
        return;
    }
    let finding =
        table.error(Code::BadArtifactRef, key, reference.span, format!("invalid agent reference `{text}`"));
    table.report(
        finding.reference(&**text).help("write `agent:name`, `skill:name`, `mcp:name` or `command:name`"),
    );
}

/// Reports a context module that does not have the form `ctx:name`.
pub fn check_module(table: &Table<'_>, key: &str, reference: &Spanned<Arc<str>>) {
    let text = &reference.value;
    if text.strip_prefix("ctx:").is_some_and(|name| !name.trim().is_empty()) {
        return;
    }
    let finding =
        table.error(Code::BadArtifactRef, key, reference.span, format!("invalid context module `{text}`"));
    table.report(finding.reference(&**text).help("write `ctx:name`"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kebab_case() {
        for good in ["a", "ship-it", "a1-b2", "frontend-impl"] {
            assert!(is_kebab(good), "{good}");
        }
        for bad in ["", "Not Kebab", "-a", "a-", "a--b", "1a", "a_b", "é"] {
            assert!(!is_kebab(bad), "{bad}");
        }
        assert_eq!(to_kebab("Not Kebab").as_deref(), Some("not-kebab"));
        assert_eq!(to_kebab("buildAll").as_deref(), Some("build-all"));
        assert_eq!(to_kebab("__"), None);
        assert_eq!(to_kebab("größe"), None);
    }

    #[test]
    fn semantic_versions() {
        for good in ["1.0.0", "0.1.0", "10.20.30", "1.0.0-rc.1", "1.0.0-alpha+build.5", "1.0.0+x"] {
            assert!(is_semver(good), "{good}");
        }
        for bad in ["one-ish", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.x", "v1.0.0", "1.0.0-01"] {
            assert!(!is_semver(bad), "{bad}");
        }
    }
}
