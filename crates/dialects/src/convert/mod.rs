//! Converts a workflow of any dialect to a file of the native dialect that looks as if a person wrote it. Defaults
//! are left out, and nothing else: the new file is read back, and its plan must equal the plan of the original.
//!
//! `syntax` keeps the dialect and only changes between YAML and JSON.
//!
//! `document`, `stage`, `work` and `policy` turn the representation into data with the keys of SWDL, `values` prints
//! expressions, `yaml` writes the data, the formatter lays it out, and `same` compares the meaning of two files.

mod document;
mod policy;
mod same;
mod stage;
mod syntax;
mod values;
mod work;
mod yaml;

pub use same::{difference, plan_difference, trigger_difference};
pub use syntax::to_syntax;

use crate::text::Format;
use crate::{Dialect, FileKind, Loaded, Options, Text, finish, fmt, format_of, load, parse};
use windlass_ir::resolve::simplify;
use windlass_ir::{Code, Diagnostic, SourceId, Sources, Span, Workflow};

/// A workflow in another dialect or syntax.
#[derive(Clone, Debug)]
pub struct Converted {
    pub text: String,
    /// The original file, with its warnings.
    pub loaded: Loaded,
    /// Whether comments of the original are missing in the text.
    pub comments_lost: bool,
}

/// Writes a workflow as SWDL. Returns the loaded file instead if it is invalid or cannot be converted without loss.
pub fn to_swdl(file: Text, options: Options) -> Result<Converted, Box<Loaded>> {
    let parsed = parse(file, options);
    let workflow = parsed.workflow.clone();
    let mut loaded = finish(parsed);
    let Some(workflow) = workflow.filter(|_| loaded.is_valid()) else { return Err(Box::new(loaded)) };
    let comments = leading_comments(&loaded.sources, loaded.dialect);
    let comments_lost = has_other_comments(&loaded.sources, &comments);
    let text = in_form(comments + &document(workflow));
    match lost(&loaded, &text) {
        None => Ok(Converted { text, loaded, comments_lost }),
        Some(what) => {
            loaded.diagnostics.push(not_convertible("the native dialect", &what));
            loaded.plan = None;
            Err(Box::new(loaded))
        }
    }
}

/// The text of a workflow whose names are not resolved yet.
pub fn write(workflow: Workflow) -> String {
    in_form(document(workflow))
}

fn document(mut workflow: Workflow) -> String {
    simplify(&mut workflow);
    yaml::document(&document::write(&workflow))
}

/// Formatted, unless the formatter cannot preserve something, such as a key of a thousand characters.
fn in_form(text: String) -> String {
    fmt::format(&text, Format::Yaml, Some(FileKind::Workflow(Dialect::Swdl))).unwrap_or(text)
}

/// The first difference between the text and the original file.
fn lost(loaded: &Loaded, text: &str) -> Option<String> {
    let file = Text { name: "WORKFLOW.yaml".into(), bytes: text.as_bytes().to_vec() };
    let back = load(file, Options { dialect: Some(Dialect::Swdl), ..Options::default() });
    let error = back.diagnostics.iter().find(|finding| finding.is_error());
    match error {
        Some(error) => Some(format!("{}: {}", error.code, error.message)),
        None => difference(loaded, &back),
    }
}

fn not_convertible(target: &str, what: &str) -> Diagnostic {
    const CHARS_MAX: usize = 200;
    let short: String = what.chars().take(CHARS_MAX).collect();
    let message = format!("this workflow cannot be converted to {target} without loss ({short})");
    Diagnostic::error(Code::NotConvertible, message)
        .at(Span::new(SourceId(0), 0, 0))
        .help("simplify the part named above, or keep the file as it is; nothing was written")
}

/// Whether a file has comments besides those at its top.
fn has_other_comments(sources: &Sources, top: &str) -> bool {
    sources.iter().next().is_some_and(|source| {
        let is_yaml = format_of(source) == Some(Format::Yaml);
        is_yaml && fmt::comments(&source.text) > top.lines().filter(|line| line.starts_with('#')).count()
    })
}

/// The comments at the top of a YAML file, which describe the whole file. The line that names a schema for editors is
/// dropped because it is for the old dialect.
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
