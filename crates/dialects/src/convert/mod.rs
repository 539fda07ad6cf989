//! A workflow of any dialect written as a file of the house dialect, as a person would have written it. What equals the
//! defaults is left out; nothing else is: the new file is read again, and its plan must equal that of the old one.
//!
//! `document`, `stage`, `work` and `policy` turn the representation into data with the keys of swdl, `values` spells
//! expressions, `yaml` writes the data down, the formatter gives it its form, `same` compares two files by what they mean.

mod document;
mod policy;
mod same;
mod stage;
mod values;
mod work;
mod yaml;

pub use same::{difference, plan_difference, trigger_difference};

use crate::text::Format;
use crate::{Dialect, FileKind, Loaded, Options, Text, finish, fmt, format_of, load, parse};
use windlass_ir::resolve::simplify;
use windlass_ir::{Code, Diagnostic, SourceId, Sources, Span, Workflow};

/// A workflow in the house dialect.
#[derive(Clone, Debug)]
pub struct Converted {
    pub text: String,
    /// The file it was made from, with the warnings about that.
    pub loaded: Loaded,
}

/// Writes a workflow as swdl. What was read comes back instead when it is not valid, or could not be written without loss.
pub fn to_swdl(file: Text, options: Options) -> Result<Converted, Box<Loaded>> {
    let parsed = parse(file, options);
    let workflow = parsed.workflow.clone();
    let mut loaded = finish(parsed);
    let Some(workflow) = workflow.filter(|_| loaded.is_valid()) else { return Err(Box::new(loaded)) };
    let comments = leading_comments(&loaded.sources, loaded.dialect);
    let text = in_form(comments + &document(workflow));
    match lost(&loaded, &text) {
        None => Ok(Converted { text, loaded }),
        Some(what) => {
            loaded.diagnostics.push(not_convertible(&what));
            loaded.plan = None;
            Err(Box::new(loaded))
        }
    }
}

/// The text of a workflow whose names are not tied to anything yet.
pub fn write(workflow: Workflow) -> String {
    in_form(document(workflow))
}

fn document(mut workflow: Workflow) -> String {
    simplify(&mut workflow);
    yaml::document(&document::write(&workflow))
}

/// As the formatter writes it. What that cannot keep, such as a key of a thousand letters, stays as it is.
fn in_form(text: String) -> String {
    fmt::format(&text, Format::Yaml, Some(FileKind::Workflow(Dialect::Swdl))).unwrap_or(text)
}

/// What the text says otherwise than the file that it was made from.
fn lost(loaded: &Loaded, text: &str) -> Option<String> {
    let file = Text { name: "WORKFLOW.yaml".into(), bytes: text.as_bytes().to_vec() };
    let back = load(file, Options { dialect: Some(Dialect::Swdl), ..Options::default() });
    let error = back.diagnostics.iter().find(|finding| finding.is_error());
    match error {
        Some(error) => Some(format!("{}: {}", error.code, error.message)),
        None => difference(loaded, &back),
    }
}

fn not_convertible(what: &str) -> Diagnostic {
    const CHARS_MAX: usize = 200;
    let short: String = what.chars().take(CHARS_MAX).collect();
    let message = format!("this workflow cannot be written in the house dialect without loss ({short})");
    Diagnostic::error(Code::NotConvertible, message)
        .at(Span::new(SourceId(0), 0, 0))
        .help("simplify what is named there, or keep the file in its own dialect; nothing was written")
}

/// The comments at the top of a YAML file, which are about the whole of it. A line for editors names the schema of the old
/// dialect, so it stays behind.
fn leading_comments(sources: &Sources, dialect: Dialect) -> String {
    let Some(source) = sources.iter().next() else { return String::new() };
    if format_of(source) != Some(Format::Yaml) {
        return String::new();
    }
    let lines = source.text.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty());
    let for_editors = |line: &&str| line.starts_with("# yaml-language-server:") && dialect != Dialect::Swdl;
    let kept: Vec<&str> = lines.filter(|line| !for_editors(line)).map(str::trim_end).collect();
    match kept.join("\n").trim_matches('\n') {
        "" => String::new(),
        comments => format!("{comments}\n\n"),
    }
}
