//! Formats workflow files: order of keys, indentation and quotes. Comments and meaning are preserved.
//!
//! A file is read, written and read again; if the result differs in meaning, the file is left alone. Dialects appear
//! only as tables of keys.

mod arrange;
mod json;
mod order;
mod print;
mod same;
pub(crate) mod scalar;
mod scan;
mod tree;
mod yaml;

use crate::text::{self, Format, Limits, Node};
use crate::{Dialect, FileKind, Text};
use order::KeyOrder;
use windlass_ir::{Code, Diagnostic, Source, SourceId, Sources, Span};
use yaml::Unfit;

/// The result of formatting a file: the sources that findings point into, and the canonical form.
#[derive(Clone, Debug)]
pub struct Formatted {
    pub sources: Sources,
    pub text: Result<String, Vec<Diagnostic>>,
}

/// [`format`] for a file, whose name determines the syntax.
pub fn format_file(file: Text) -> Formatted {
    let mut sources = Sources::default();
    let text = match crate::open(file, &mut sources, &Limits::default()) {
        Ok((id, kind)) => format(&sources.get(id).text, kind, None),
        Err(finding) => Err(vec![*finding]),
    };
    Formatted { sources, text }
}

/// The canonical form of a file, or why it has none: invalid YAML or JSON, with its errors. Unless given, the kind of
/// file is detected by its keys; if that fails, keys stay in place. Findings refer to source 0.
pub fn format(text: &str, format: Format, kind: Option<FileKind>) -> Result<String, Vec<Diagnostic>> {
    if is_only_remarks(text) && format == Format::Yaml {
        return Ok(with_plain_line_ends(text));
    }
    // Checked as it is, so that findings point into the user's file.
    readable(text, format)?;
    let text = with_plain_line_ends(text);
    let root = readable(&text, format)?;
    let order = kind.or_else(|| FileKind::guess(&root)).map_or(KeyOrder::Author, KeyOrder::of);
    let formatted = match format {
        Format::Yaml => print_yaml(&text, order).map_err(|unfit| vec![not_formatted(&unfit)])?,
        Format::Json => json::print(&text, &root, order),
    };
    let result = readable(&formatted, format).map_err(|_| vec![not_formatted(&Unfit { at: 0 })])?;
    match same::is_same(&root, &result, order)
        && (format == Format::Json || has_same_remarks(&text, &formatted))
    {
        true => Ok(formatted),
        false => Err(vec![not_formatted(&Unfit { at: 0 })]),
    }
}

fn readable(text: &str, format: Format) -> Result<Node, Vec<Diagnostic>> {
    let source = Source::new("", text);
    let read = text::read(&source, SourceId(0), format, &Limits::default());
    match read.root {
        Some(root) if !read.diagnostics.iter().any(Diagnostic::is_error) => Ok(root),
        Some(_) | None => with_typed_keys(&source, format).ok_or(read.diagnostics),
    }
}

/// Spec Kit's keys have types, so `yes` and `"yes"` are different keys.
fn with_typed_keys(source: &Source, format: Format) -> Option<Node> {
    let limits = Limits { typed_keys: true, ..Limits::default() };
    let read = text::read(source, SourceId(0), format, &limits);
    let root = read.root.filter(|_| !read.diagnostics.iter().any(Diagnostic::is_error))?;
    (FileKind::guess(&root) == Some(FileKind::Workflow(Dialect::Speckit))).then_some(root)
}

/// Only comments and blank lines, so there is nothing to format.
fn is_only_remarks(text: &str) -> bool {
    let text = text.trim_start_matches('\u{FEFF}');
    !text.is_empty() && text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

/// YAML and JSON readers treat all line endings alike.
fn with_plain_line_ends(text: &str) -> String {
    text.trim_start_matches('\u{FEFF}').replace("\r\n", "\n").replace('\r', "\n")
}

fn print_yaml(text: &str, order: KeyOrder) -> Result<String, Unfit> {
    let mut document = yaml::parse(text)?;
    arrange::arrange(&mut document.root, order);
    Ok(print::print(&document))
}

/// The number of comments in a YAML file. For a file that the formatter cannot read, only whole lines are counted.
pub(crate) fn comments(text: &str) -> usize {
    let text = with_plain_line_ends(text);
    match yaml::parse(&text) {
        Ok(document) => same::remarks(&document).iter().filter(|remark| remark.starts_with('#')).count(),
        Err(_) => text.lines().filter(|line| line.trim_start().starts_with('#')).count(),
    }
}

fn has_same_remarks(one: &str, other: &str) -> bool {
    match (yaml::parse(one), yaml::parse(other)) {
        (Ok(one), Ok(other)) => same::remarks(&one) == same::remarks(&other),
        (Ok(_) | Err(_), _) => false,
    }
}

fn not_formatted(unfit: &Unfit) -> Diagnostic {
    let message = "this file uses syntax that the formatter cannot preserve, so it was left alone";
    let help = "simplify this part, or format the file by hand";
    Diagnostic::error(Code::NotFormatted, message).at(Span::new(SourceId(0), unfit.at, unfit.at)).help(help)
}
