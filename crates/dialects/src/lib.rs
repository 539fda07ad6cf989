//! Text becomes a [`Plan`] and diagnostics. One folder per dialect; each knows how its files look and nothing about
//! running them. `text` reads YAML and JSON into a tree in which every node has its place, `table` asks its mappings key by
//! key, `detect` tells the dialects apart, `fmt` writes a file in canonical form, `convert` writes a workflow of any dialect
//! in the house dialect, `cases` reads test cases beside a workflow.
//!
//! This crate owns syntax. It opens no file: whoever calls [`load`] brings the bytes.

pub mod cases;
pub mod convert;
pub mod dagnats;
pub mod dcc;
mod detect;
pub mod fmt;
pub mod keys;
pub mod speckit;
pub mod swdl;
mod table;
pub mod text;
mod times;

pub use dcc::schedules::{Schedules, read_schedules};
pub use detect::{Dialect, FileKind};

use std::collections::HashSet;
use text::{Format, Limits};
use windlass_ir::diagnostic::sort_by_place;
use windlass_ir::trigger::Trigger;
use windlass_ir::workflow::Words;
use windlass_ir::{Code, Diagnostic, Plan, Source, SourceId, Sources, Span, Workflow, resolve};

/// A file as it was found. `name` is what messages call it; its ending says how it is written.
#[derive(Clone, Debug)]
pub struct Text {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// What comes with a file, and what is known about it beforehand.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Found by looking at the file unless given.
    pub dialect: Option<Dialect>,
    /// A project's file whose blocks are laid over swdl workflows.
    pub overrides: Option<Text>,
    /// Edits of the steps of a speckit workflow.
    pub overlays: Vec<Text>,
    /// What Spec Kit finds wrong with an expression only when it is evaluated is a warning, and fails the run there.
    pub raises_late: bool,
}

impl Options {
    pub fn overridden(overrides: Option<Text>) -> Self {
        Self { overrides, ..Self::default() }
    }
}

/// All that is known about a file after reading it.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub sources: Sources,
    pub dialect: Dialect,
    pub words: &'static Words,
    /// The id of the workflow, when it could be read.
    pub workflow: Option<String>,
    /// There exactly when there is no error.
    pub plan: Option<Plan>,
    pub triggers: Vec<Trigger>,
    /// Everything found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    pub fn is_valid(&self) -> bool {
        self.plan.is_some()
    }
}

/// Reads a workflow and checks all that can be checked without running it.
pub fn load(file: Text, options: Options) -> Loaded {
    let raises_late = options.raises_late;
    let mut parsed = parse(file, options);
    if raises_late && parsed.dialect == Dialect::Speckit {
        parsed.diagnostics.iter_mut().for_each(speckit::expr::raise_late);
    }
    finish(parsed)
}

/// Ties the names of a file that was read, and lowers it to a plan.
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

/// By what stands in it; its name decides where the content does not.
pub fn file_kind(file: &Text) -> FileKind {
    let root = read(file.clone(), &mut Sources::default(), &mut Vec::new());
    FileKind::of(root.as_ref(), &file.name)
}

/// A file as its dialect reads it, names not yet tied to anything.
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

/// What comes with a file is for one dialect only; with another it changes nothing.
fn unused(dialect: Dialect, overrides: Option<&text::Node>, overlays: &[text::Node]) -> Vec<Diagnostic> {
    let finding = |node: &text::Node, what: &str, help: &str| {
        let message = format!("{what} workflows only, and this one is {}", dialect.name());
        let finding = Diagnostic::warning(Code::UnusedOverride, message).at(place_of(Some(node)));
        finding.reference(dialect.name()).help(help)
    };
    let overrides = overrides.filter(|_| dialect != Dialect::Swdl).map(|node| {
        finding(node, "overrides are laid over swdl", "leave them out, and change the workflow itself")
    });
    let overlays = overlays
        .iter()
        .filter(|_| dialect != Dialect::Speckit)
        .map(|node| finding(node, "overlays edit speckit", "leave it out, and change the workflow itself"));
    overrides.into_iter().chain(overlays).collect()
}

/// Where a finding about a whole file is put: at its first key.
fn place_of(root: Option<&text::Node>) -> Span {
    root.map_or_else(Span::default, |root| match &root.kind {
        text::Kind::Map(map) => map.entries.first().map_or(root.span, |entry| entry.key.span),
        text::Kind::Scalar(_) | text::Kind::List(_) => root.span.head(),
    })
}

/// One mistake is one finding: a default that many stages inherit is reported once, and so is a step read in vain by
/// several expressions of one reader.
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

/// What is read as a strange name, and is null, needs no second finding that nothing has that name.
fn drop_explained(diagnostics: &mut Vec<Diagnostic>) {
    let nulls = diagnostics.iter().filter(|finding| finding.code == Code::SilentNull);
    let nulls: HashSet<(SourceId, u32)> =
        nulls.filter_map(|finding| finding.span).map(|span| (span.source, span.start)).collect();
    diagnostics.retain(|finding| {
        let about_a_name = matches!(finding.code, Code::UnknownParameter | Code::UnknownStage);
        !about_a_name || finding.span.is_none_or(|span| !nulls.contains(&(span.source, span.start)))
    });
}

/// Reads one file into a tree; the source is there for messages even when the file is not readable.
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

/// The keys of Spec Kit have types, so that `yes` and `"yes"` are two. Which dialect a file is written in is known only once it
/// was read, so a file with keys that looked the same is read a second time.
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

/// Adds a file to the sources and tells how it is written.
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

/// By the ending of the name; text from a pipe is JSON when it reads as JSON.
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
    let message = format!("`{}` is no name of a workflow file", source.name);
    let help = "name it with the ending .yaml, .yml or .json";
    Diagnostic::error(Code::UnknownExtension, message).at(Span::new(id, 0, 0)).help(help)
}
