//! The words of the language, what other languages call them, and the findings about unknown ones.

use windlass_ir::expr::{Function, Namespace};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};

/// Looks like a function, but its path is part of the expression.
pub(super) const QUERY: &str = "jsonpath";
/// Looks like a function, but reads the time of the decision.
pub(super) const NOW: &str = "now";

pub(super) const NAMESPACES: &[Namespace] = &[
    Namespace::Inputs,
    Namespace::Steps,
    Namespace::Context,
    Namespace::Env,
    Namespace::Run,
    Namespace::Workflow,
    Namespace::Item,
    Namespace::Index,
    Namespace::Loops,
    Namespace::Host,
    Namespace::Failure,
    Namespace::Undo,
    Namespace::Secrets,
    Namespace::Class,
    Namespace::ExitCode,
    Namespace::Message,
    Namespace::Attempt,
];

/// Words of other languages that have another name here.
const FOREIGN_NAMESPACES: &[(&str, &str)] = &[
    ("params", "parameters"),
    ("inputs", "parameters"),
    ("vars", "parameters"),
    ("steps", "stages"),
    ("needs", "stages"),
    ("jobs", "stages"),
];
const FOREIGN_FUNCTIONS: &[(&str, &str)] = &[
    ("len", "length"),
    ("size", "length"),
    ("count", "length"),
    ("includes", "contains"),
    ("coalesce", "default"),
    ("tojson", "toJSON"),
    ("fromjson", "fromJSON"),
    ("concat", "format"),
    ("sprintf", "format"),
    ("sub", "replace"),
    ("sequence", "range"),
    ("timestamp", "now"),
];

/// The swdl word for a namespace.
pub fn namespace_word(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Inputs => "parameters",
        Namespace::Steps => "stages",
        Namespace::Context => "context",
        Namespace::Env => "env",
        Namespace::Run => "run",
        Namespace::Workflow => "workflow",
        Namespace::Item => "item",
        Namespace::Index => "index",
        Namespace::Loops => "loops",
        Namespace::Host => "host",
        Namespace::Failure => "failure",
        Namespace::Undo => "undo",
        Namespace::FanIn => "fan_in",
        Namespace::Root => "$",
        Namespace::Secrets => "secrets",
        Namespace::Class => "class",
        Namespace::ExitCode => "exit_code",
        Namespace::Message => "message",
        Namespace::Attempt => "attempt",
    }
}

/// Shortens a long token for messages.
pub(super) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn foreign(word: &str, table: &[(&str, &'static str)]) -> Option<&'static str> {
    table.iter().find(|(other, _)| *other == word.to_ascii_lowercase()).map(|(_, ours)| *ours)
}

pub(super) fn unknown_function(word: &str) -> Diagnostic {
    let suggest = foreign(word, FOREIGN_FUNCTIONS).or_else(|| nearest(word, function_names()));
    let found = Diagnostic::error(Code::UnknownFunction, format!("unknown function `{}`", shortened(word)))
        .reference(word)
        .suggest(suggest);
    if suggest.is_some() {
        return found;
    }
    found.help(format!("use one of {}", function_names().collect::<Vec<_>>().join(", ")))
}

/// Everything that is written like a call.
fn function_names() -> impl Iterator<Item = &'static str> {
    Function::ALL.iter().map(|function| function.name()).chain([QUERY, NOW])
}

pub(super) fn bad_arity(function: Function, given: usize) -> Diagnostic {
    let message = format!("`{}` takes {}, got {given}", function.name(), function.arity());
    let help = format!("write `{}`", function.usage());
    Diagnostic::error(Code::BadArity, message).help(help).reference(function.name())
}

/// `after` is the text after the word: it distinguishes a path from an unquoted string.
pub(super) fn unknown_namespace(word: &str, after: &str) -> Diagnostic {
    const WORDS: [&str; 3] = ["true", "false", "null"];
    let names = || NAMESPACES.iter().map(|namespace| namespace_word(*namespace));
    let suggest = foreign(word, FOREIGN_NAMESPACES).or_else(|| nearest(word, names().chain(WORDS)));
    let short = shortened(word);
    let found = Diagnostic::error(Code::UnknownNamespace, format!("unknown name `{short}`"))
        .reference(word)
        .suggest(suggest);
    if suggest.is_some() {
        return found;
    }
    let after = after.trim_start();
    if function_names().any(|name| name == word) {
        let usage = Function::by_name(word).map_or("now()", Function::usage);
        found.help(format!("call the function: `{usage}`"))
    } else if [".outputs", ".status", ".outcome"].iter().any(|member| after.starts_with(member)) {
        found.help(format!("read a stage as `stages.{short}`"))
    } else if after.starts_with(['.', '[']) {
        found.help(format!("a path starts with one of {}", names().collect::<Vec<_>>().join(", ")))
    } else {
        found.help(format!("put strings in quotes: `'{short}'`; read values as `parameters.{short}`"))
    }
}
