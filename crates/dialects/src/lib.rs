//! Reads the text of workflow files into a [`Plan`] and diagnostics. Each dialect has a folder, which knows the
//! syntax of its files and nothing about running them. `text` parses YAML and JSON into a tree with locations,
//! `table` reads its mappings key by key, `detect` tells dialects apart, `fmt` formats files, `convert` converts
//! workflows to the native dialect, `cases` reads test cases, `beside` checks overrides and overlays on their own,
//! `evaluate` evaluates a single expression, and `start` names the warnings that a start refuses.
//!
//! This crate owns syntax. It opens no files: the caller of [`load`] provides the bytes.

mod beside;
pub mod cases;
pub mod convert;
pub mod dagnats;
pub mod dcc;
mod detect;
mod evaluate;
pub mod fmt;
pub mod keys;
pub mod speckit;
mod start;
pub mod swdl;
mod table;
pub mod text;
mod times;

pub use beside::{Beside, is_overrides, read_overlay, read_overrides};
pub use dcc::schedules::{Schedules, read_schedules};
pub use detect::{Dialect, FileKind};
pub use evaluate::{Evaluated, Question, evaluate};
pub use start::harden_for_start;

use std::collections::HashSet;
use text::{Format, Limits};
use windlass_ir::diagnostic::sort_by_place;
use windlass_ir::dialect::Dialects;
use windlass_ir::trigger::Trigger;
use windlass_ir::workflow::Words;
use windlass_ir::{Code, Diagnostic, Plan, Source, SourceId, Sources, Span, Workflow, resolve};

/// Every dialect as the rest of Windlass sees it.
pub const DIALECTS: Dialects = Dialects(&[&swdl::Swdl, &speckit::Speckit, &dagnats::Dagnats, &dcc::Dcc]);

/// A file to read. `name` is for messages; its extension determines the syntax.
#[derive(Clone, Debug)]
pub struct Text {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Files that come with a workflow, and what is known about it in advance.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Detected unless given.
    pub dialect: Option<Dialect>,
    /// A project's overrides of swdl workflows.
    pub overrides: Option<Text>,
    /// Edits of the steps of a speckit workflow.
    pub overlays: Vec<Text>,
    /// Errors in expressions that Spec Kit only finds during evaluation are warnings, and fail the run at that point.
    pub raises_late: bool,
}

impl Options {
    pub fn overridden(overrides: Option<Text>) -> Self {
        Self { overrides, ..Self::default() }
    }
}

/// The result of reading a file.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub sources: Sources,
    pub dialect: Dialect,
    pub words: &'static Words,
    /// The id of the workflow, if it could be read.
    pub workflow: Option<String>,
    /// Present if and only if there are no errors.
    pub plan: Option<Plan>,
    pub triggers: Vec<Trigger>,
    /// All findings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    pub fn is_valid(&self) -> bool {
        self.plan.is_some()
    }
}

/// Reads a workflow and does all checks that need no run.
pub fn load(file: Text, options: Options) -> Loaded {
    let raises_late = options.raises_late;
    let mut parsed = parse(file, options);
    if raises_late && parsed.dialect == Dialect::Speckit {
        parsed.diagnostics.iter_mut().for_each(speckit::expr::raise_late);
    }
    finish(parsed)
}

/// Resolves the names of a parsed file, and lowers it to a plan.
fn finish(parsed: Parsed) -> Loaded {
    let Parsed { sources, dialect, workflow, mut diagnostics } = parsed;
    let id = workflow.as_ref().map(|workflow| workflow.header.id.to_string()).filter(|id| !id.is_empty());
    let mut triggers = Vec::new();
    let plan = workflow.and_then(|mut workflow| {
        let mut found = resolve(&mut workflow);
        if dialect == Dialect::Dagnats {
            found.iter_mut().for_each(dagnats::number_rule);
        }
        diagnostics.extend(found);
        triggers = std::mem::take(&mut workflow.triggers);
        let valid = !diagnostics.iter().any(Diagnostic::is_error);
        valid.then(|| Plan::lower(workflow))
    });
    sort_by_place(&mut diagnostics);
    drop_repeats(&mut diagnostics);
    Loaded { sources, dialect, words: dialect.words(), workflow: id, plan, triggers, diagnostics }
}

/// Detected by its content, or by its name if the content is inconclusive.
pub fn file_kind(file: &Text) -> FileKind {
    let root = read(file.clone(), &mut Sources::default(), &mut Vec::new());
    FileKind::of(root.as_ref(), &file.name)
}

/// A file as its dialect reads it, with unresolved names.
#[derive(Debug)]
struct Parsed {
    sources: Sources,
    dialect: Dialect,
    workflow: Option<Workflow>,
    diagnostics: Vec<Diagnostic>,
}

fn parse(file: Text, options: Options) -> Parsed {
    let mut sources = Sources::default();
    let mut diagnostics = Vec::new();
    let name = file.name.clone();
    let root = read(file, &mut sources, &mut diagnostics);
    let other = detect::other(root.as_ref(), &name);
    let other = other.map(|other| (other.dialect(), other.finding(place_of(root.as_ref()))));
    let detected = || other.as_ref().map_or_else(|| detect::dialect(root.as_ref(), &name), |(of, _)| *of);
    let dialect = options.dialect.unwrap_or_else(detected);
    let root = root.filter(|_| other.is_none());
    let root = match dialect {
        Dialect::Speckit => root.and_then(|root| with_typed_keys(root, &sources, &mut diagnostics)),
        Dialect::Swdl | Dialect::Dagnats | Dialect::Dcc => root,
    };
    diagnostics.extend(other.map(|(_, finding)| finding));
    let overrides = options.overrides.and_then(|file| read(file, &mut sources, &mut diagnostics));
    let overlays: Vec<text::Node> =
        options.overlays.into_iter().filter_map(|file| read(file, &mut sources, &mut diagnostics)).collect();
    if root.is_some() {
        diagnostics.extend(unused(dialect, overrides.as_ref(), &overlays));
    }
    let (workflow, found) = match (root, dialect) {
        (None, _) => (None, Vec::new()),
        (Some(root), Dialect::Swdl) => swdl::read(root, overrides.as_ref(), &sources),
        (Some(root), Dialect::Speckit) => speckit::read(root, &overlays, &sources),
        (Some(root), Dialect::Dagnats) => dagnats::read(&root, &sources),
        (Some(root), Dialect::Dcc) => dcc::read(&root, &sources),
    };
    diagnostics.extend(found);
    Parsed { sources, dialect, workflow, diagnostics }
}

/// Overrides and overlays apply to one dialect only and have no effect on others.
fn unused(dialect: Dialect, overrides: Option<&text::Node>, overlays: &[text::Node]) -> Vec<Diagnostic> {
    let finding = |node: &text::Node, what: &str, help: &str| {
        let message = format!("{what} workflows only, but this workflow is {}", dialect.name());
        let finding = Diagnostic::warning(Code::UnusedOverride, message).at(place_of(Some(node)));
        finding.reference(dialect.name()).help(help)
    };
    let overrides = overrides.filter(|_| dialect != Dialect::Swdl).map(|node| {
        finding(node, "overrides apply to swdl", "leave them out, and change the workflow itself")
    });
    let overlays = overlays.iter().filter(|_| dialect != Dialect::Speckit).map(|node| {
        finding(node, "overlays apply to speckit", "leave it out, and change the workflow itself")
    });
    overrides.into_iter().chain(overlays).collect()
}

/// The location of a finding about a whole file: its first key.
fn place_of(root: Option<&text::Node>) -> Span {
    root.map_or_else(Span::default, |root| match &root.kind {
        text::Kind::Map(map) => map.entries.first().map_or(root.span, |entry| entry.key.span),
        text::Kind::Scalar(_) | text::Kind::List(_) => root.span.head(),
    })
}

/// Reports each mistake once: a default inherited by many stages, or a missing step read by several expressions of
/// one reader.
fn drop_repeats(diagnostics: &mut Vec<Diagnostic>) {
    let mut seen = HashSet::new();
    diagnostics.retain(|finding| match finding.code {
        Code::NotAnAncestor => {
            seen.insert((finding.code, None, finding.step.clone(), finding.reference.clone()))
        }
        code => seen.insert((code, finding.span, Some(finding.message.clone()), None)),
    });
    drop_explained(diagnostics);
}

/// A value that is reported as null because of its name needs no second finding that the name is unknown.
fn drop_explained(diagnostics: &mut Vec<Diagnostic>) {
    let nulls = diagnostics.iter().filter(|finding| finding.code == Code::SilentNull);
    let nulls: HashSet<(SourceId, u32)> =
        nulls.filter_map(|finding| finding.span).map(|span| (span.source, span.start)).collect();
    diagnostics.retain(|finding| {
        let about_a_name = matches!(finding.code, Code::UnknownParameter | Code::UnknownStage);
        !about_a_name || finding.span.is_none_or(|span| !nulls.contains(&(span.source, span.start)))
    });
}

/// Parses one file; its source is available for messages even if that fails.
fn read(file: Text, sources: &mut Sources, diagnostics: &mut Vec<Diagnostic>) -> Option<text::Node> {
    let limits = Limits::default();
    let (id, format) = match open(file, sources, &limits) {
        Ok(opened) => opened,
        Err(finding) => {
            diagnostics.push(*finding);
            return None;
        }
    };
    let read = text::read(sources.get(id), id, format, &limits);
    diagnostics.extend(read.diagnostics);
    read.root
}

/// Spec Kit's keys have types, so `yes` and `"yes"` are different keys. The dialect is known only after the file was
/// read, so a file with such keys is read a second time.
fn with_typed_keys(
    root: text::Node,
    sources: &Sources,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<text::Node> {
    let id = SourceId(0);
    let is_double = |finding: &Diagnostic| finding.code == Code::DuplicateKey;
    let format = format_of(sources.get(id)).filter(|_| diagnostics.iter().any(is_double));
    let Some(format) = format else { return Some(root) };
    let limits = Limits { typed_keys: true, ..Limits::default() };
    let read = text::read(sources.get(id), id, format, &limits);
    *diagnostics = read.diagnostics;
    read.root
}

/// Adds a file to the sources and determines its syntax.
fn open(file: Text, sources: &mut Sources, limits: &Limits) -> Result<(SourceId, Format), Box<Diagnostic>> {
    let text = match text::decode_within(&file.bytes, limits) {
        Ok(text) => text,
        Err(finding) => {
            let id = sources.add(Source::new(file.name, ""));
            return Err(Box::new(finding.at(Span::new(id, 0, 0))));
        }
    };
    let source = Source::new(file.name, text);
    let format = format_of(&source);
    let id = sources.add(source);
    format.map(|format| (id, format)).ok_or_else(|| Box::new(unknown_extension(sources.get(id), id)))
}

/// Determined by the extension; text from a pipe is JSON if it parses as JSON.
fn format_of(source: &Source) -> Option<Format> {
    let ending = source.name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("yaml" | "yml") => Some(Format::Yaml),
        Some("json") => Some(Format::Json),
        _ if &*source.name == "-" => {
            let json = text::read(source, SourceId(0), Format::Json, &Limits::default());
            Some(if json.root.is_some() { Format::Json } else { Format::Yaml })
        }
        Some(_) | None => None,
    }
}

fn unknown_extension(source: &Source, id: SourceId) -> Diagnostic {
    if dcc::skill::is_skill_file(&source.name) {
        return detect::skill_finding(Span::new(id, 0, 0));
    }
    let message = format!("`{}` does not have the name of a workflow file", source.name);
    let help = "use a name that ends in .yaml, .yml or .json";
    Diagnostic::error(Code::UnknownExtension, message).at(Span::new(id, 0, 0)).help(help)
}
