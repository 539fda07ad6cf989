//! Renders the tables as a page for people: every key of every dialect and its effect.

use super::schema::sentence;
use super::{
    Block, Default, ELSEWHERE, Key, LANGUAGES, Language, Rule, Shape, Status, Subject, Unknown, not_yet,
};

const HEAD: &str = "\
# Every key of every dialect

This page is generated from the same tables as the [schemas for editors](../guides/editors.md), and a test compares every row with the
reader of its dialect. [swdl](../dialects/swdl.md) explains how the keys of the native dialect work together.

| here | meaning |
|---|---|
| supported | Windlass reads and checks the key, and it has the stated effect |
| not yet | Windlass reads and checks the key, but the stated effect is [not implemented yet](#not-implemented-yet) |
| hint | Windlass accepts the key without effect and reports a hint |
| warning | the key has no effect, and Windlass reports a warning |
| error | Windlass refuses the file |

A key that is in no table is reported as `unknown_key`: a warning, or an error where a section says so. Windlass never ignores a
key silently. A key with the value null counts as absent, unless it is required.

## Not implemented yet

Windlass validates the following and keeps it in the plan, but does not act on it.

| dialect | key or type | missing |
|---|---|---|
";

/// The text of `docs/reference/keys.md`.
pub fn page() -> String {
    let missing = not_yet().map(|(language, subject, note)| {
        let subject = match subject {
            Subject::Key(block, key) => format!("`{key}` of {}", link(language, block)),
            Subject::Block(block) => link(language, block),
        };
        format!("| {} | {subject} | {note} |\n", language.name)
    });
    let is_here = |language: &&Language| ELSEWHERE.iter().all(|other| other.name != language.name);
    let sections = LANGUAGES.into_iter().filter(is_here).map(language);
    std::iter::once(HEAD.to_owned()).chain(missing).chain(sections).collect()
}

/// The page of a kind of file that is not part of the dialects.
pub fn page_of(language: &Language, about: &str) -> String {
    let (title, name) = (language.title, language.name);
    let head = format!(
        "# {title}\n\n{about}\n\nThis page is generated, like the schema that `windlass schema {name}` prints.\n"
    );
    let blocks = language.blocks().map(|block| section(language, block, "##"));
    std::iter::once(head).chain(blocks).collect()
}

fn language(language: &Language) -> String {
    let head = format!("\n## {}\n\n{}\n", language.name, sentence(language.about));
    let blocks = language.blocks().map(|block| section(language, block, "###"));
    std::iter::once(head).chain(blocks).collect()
}

fn section(language: &Language, block: &Block, level: &str) -> String {
    let mut text = format!("\n{level} {}\n\n{}", heading(language, block.name), sentence(block.about));
    let includes: Vec<String> = block.includes.iter().map(|name| link(language, name)).collect();
    if !includes.is_empty() {
        text += &format!(" Also has the keys of {}.", listed(&includes, "and"));
    }
    if let Some(variants) = &block.variants {
        let links = variants.of.iter().map(|(word, name)| format!("`{word}`: {}", link(language, name)));
        let links: Vec<String> = links.collect();
        text += &format!(" Additional keys by `{}`: {}.", variants.by, links.join(", "));
    }
    for rule in block.rules {
        text += &format!(" {}", rule_text(rule));
    }
    if block.unknown == Unknown::Refused {
        text += " Any other key is an error.";
    }
    if let Some(note) = block.not_yet {
        text += &format!(" [Not implemented yet](#not-implemented-yet): {note}.");
    }
    text.push('\n');
    if !block.keys.is_empty() {
        text += "\n| key | value | default | meaning | here |\n|---|---|---|---|---|\n";
        text.extend(block.keys.iter().map(|key| row(language, key)));
    }
    text
}

fn heading(language: &Language, name: &str) -> String {
    format!("{}: {}", language.name, name.replace('_', " "))
}

fn link(language: &Language, name: &str) -> String {
    let anchor = heading(language, name).replace(": ", " ").replace(' ', "-");
    format!("[{}](#{anchor})", name.replace('_', " "))
}

fn rule_text(rule: &Rule) -> String {
    let keys = |keys: &[&str], last: &str| listed(&code(keys), last);
    match rule {
        Rule::OneOf(names) => format!("Exactly one of {}.", keys(names, "and")),
        Rule::AtMostOneOf(names) => format!("At most one of {}.", keys(names, "and")),
        Rule::AnyOf(names) => format!("At least one of {}.", keys(names, "and")),
        Rule::NeedsWhen(key, value, other) => format!("`{key}: {value}` needs `{other}`."),
        Rule::Needs(key, other) => format!("`{key}` needs `{other}`."),
    }
}

fn row(language: &Language, key: &Key) -> String {
    let default = match key.default {
        _ if key.required => "required".to_owned(),
        Default::None => String::new(),
        Default::Value(value) => format!("`{value}`"),
        Default::Words(words) => words.to_owned(),
    };
    let about = match key.beside {
        Some(other) => format!("{}; next to `{other}`", key.about),
        None => key.about.to_owned(),
    };
    let status = match key.status {
        Status::Supported => key.not_yet.map_or("supported".to_owned(), |_| "not yet".to_owned()),
        Status::NoEffect(note) => format!("hint: {note}"),
        Status::Warned(note) => format!("warning: {note}"),
        Status::Refused(note) => format!("error: {note}"),
    };
    let cells = [format!("`{}`", key.name), value(language, &key.shape), default, about, status];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

fn value(language: &Language, shape: &Shape) -> String {
    match shape {
        Shape::Any | Shape::AnyOrNull => "any value".into(),
        Shape::Template => "any value, with expressions".into(),
        Shape::Text | Shape::String => "text".into(),
        Shape::TextTemplate | Shape::StringTemplate => "text with expressions".into(),
        Shape::Condition => "an expression".into(),
        Shape::Form(form) => form.what.into(),
        Shape::Words(words) => listed(&code(words), "or"),
        Shape::Boolean => "`true` or `false`".into(),
        Shape::Integer { min, max: i64::MAX } => format!("whole number, at least {min}"),
        Shape::Integer { min: i64::MIN, max } => format!("whole number, at most {max}"),
        Shape::Integer { min, max } => format!("whole number from {min} to {max}"),
        Shape::Number => "number".into(),
        Shape::NotNegative => "number, at least 0".into(),
        Shape::Positive => "number above 0".into(),
        Shape::Share => "number from 0 to 1".into(),
        Shape::List(item) | Shape::Several(item) => format!("list of: {}", value(language, item)),
        Shape::Sized(of, min, max) if min == max => format!("{} ({min})", value(language, of)),
        Shape::Sized(of, min, max) => format!("{} ({min} to {max})", value(language, of)),
        Shape::Containing(form) => format!("list of strings, one of them {}", form.what),
        Shape::Map(item) | Shape::Named(_, item) => format!("name to: {}", value(language, item)),
        Shape::Block(name) => link(language, name),
        Shape::Null => "null".into(),
        Shape::Schema => "JSON Schema".into(),
        Shape::Either(shapes) => {
            let shapes: Vec<String> = shapes.iter().map(|shape| value(language, shape)).collect();
            listed(&shapes, "or")
        }
    }
}

fn code(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| format!("`{word}`")).collect()
}

/// `a, b and c`.
fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}
