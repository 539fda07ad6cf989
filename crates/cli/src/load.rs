//! From a name on the command line to a plan: reads the workflow, finds the project's overrides, and gathers
//! everything that stands in the way.

use crate::args::Reading;
use crate::files::{self, Companions, Content, Unreadable};
use crate::show::words::clean;
use crate::show::{Screen, diagnostics};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use windlass_dialects::swdl::OVERRIDES_FILE;
use windlass_dialects::text::{self, Format, Limits};
use windlass_dialects::{Dialect, Loaded, Options, Text, speckit};
use windlass_ir::workflow::Words;
use windlass_ir::{Code, Diagnostic, Plan, Source, Sources, Value};
use windlass_runtime::{Definition, Reader, upwards};

/// A valid workflow.
#[derive(Debug)]
pub struct Opened {
    pub plan: Plan,
    pub words: &'static Words,
    pub sources: Sources,
    /// Warnings and hints.
    pub findings: Vec<Diagnostic>,
    /// The file that was laid over the workflow, if one had a block for it.
    pub overrides: Option<String>,
    pub companions: Companions,
    /// Sources that change nothing in it: overrides of the project, beside overlays.
    unused: usize,
}

impl Opened {
    /// The text of the file, and of what was laid over it.
    pub fn texts(&self) -> (String, String) {
        let mut texts = self.sources.iter().map(|source| &*source.text);
        let file = texts.next().unwrap_or_default().to_owned();
        let over: Vec<&str> = texts.skip(self.unused).collect();
        let over = match over.as_slice() {
            [] => String::new(),
            [only] => (*only).to_owned(),
            several => speckit::joined(several.iter().copied()),
        };
        (file, over)
    }

    /// Says which overrides are in force, where nothing else shows them, and what else is worth knowing.
    pub fn note(&self, screen: &Screen) -> String {
        let overrides =
            self.overrides.as_ref().map(|file| format!("with the overrides of {}\n", clean(file)));
        let findings = diagnostics::render(&self.findings, &self.sources, None, screen);
        let pages = if findings.is_empty() { "" } else { diagnostics::PAGES };
        overrides.unwrap_or_default() + &findings + pages
    }
}

/// Why there is nothing to work with. Findings without a place are about `file`, if that is there.
#[derive(Debug, Default)]
pub struct Refusal {
    pub file: Option<String>,
    pub sources: Sources,
    pub findings: Vec<Diagnostic>,
}

impl From<Unreadable> for Refusal {
    fn from(unreadable: Unreadable) -> Self {
        Self { file: Some(unreadable.name), findings: vec![*unreadable.finding], ..Self::default() }
    }
}

impl From<Content> for Text {
    fn from(content: Content) -> Self {
        Self { name: content.name, bytes: content.bytes }
    }
}

/// Reads a workflow with what the user says about it. `project` are the overrides of the project around it.
pub fn read(
    file: &Path,
    reading: &Reading,
    project: Option<Content>,
) -> Result<(String, Loaded), Unreadable> {
    let (text, options) = sources(file, reading, project)?;
    Ok((text.name.clone(), windlass_dialects::load(text, options)))
}

/// A workflow file and what belongs to it.
pub fn sources(
    file: &Path,
    reading: &Reading,
    project: Option<Content>,
) -> Result<(Text, Options), Unreadable> {
    let text = files::read_workflow(file)?;
    let named = reading.overrides.as_deref().map(files::read).transpose()?;
    let mut overlays = match reading.as_written {
        true => Vec::new(),
        false => installed_overlays(&text.name),
    };
    overlays.extend(reading.overlays.iter().cloned());
    let overlays = overlays.iter().map(|overlay| files::read(overlay).map(Text::from));
    let options = Options {
        dialect: reading.dialect.map(Into::into),
        overrides: named.or(project).map(Into::into),
        overlays: overlays.collect::<Result<_, _>>()?,
        raises_late: reading.raises_late,
    };
    Ok((text.into(), options))
}

/// The overlays of a workflow that is installed in a Spec Kit project, in the order of their names.
fn installed_overlays(file: &str) -> Vec<PathBuf> {
    let Some(folder) = speckit::overlay_folder(file) else { return Vec::new() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml");
    let mut found: Vec<PathBuf> = entries.filter(is_yaml).collect();
    found.sort();
    found
}

pub fn open(file: &Path, reading: &Reading) -> Result<Opened, Refusal> {
    let project = match reading.overrides {
        Some(_) => None,
        None => project_overrides().map(|found| files::read(&found)).transpose()?,
    };
    let over_name = match &reading.overrides {
        Some(named) => Some(named.display().to_string()),
        None => project.as_ref().map(|content| content.name.clone()),
    };
    let (name, loaded) = read(file, reading, project)?;
    let Loaded { sources, dialect, words, plan, mut diagnostics, .. } = loaded;
    let unused =
        dialect != Dialect::Swdl || diagnostics.iter().any(|finding| finding.code == Code::UnusedOverride);
    if reading.overrides.is_none() {
        // A project's file holds blocks for some workflows; that this is none of them is worth no word.
        let about_project = |finding: &Diagnostic| {
            let file = finding.span.map(|span| &*sources.get(span.source).name);
            finding.code == Code::UnusedOverride && file == over_name.as_deref()
        };
        diagnostics.retain(|finding| !about_project(finding));
    }
    match plan {
        Some(plan) => Ok(Opened {
            plan,
            words,
            sources,
            findings: diagnostics,
            unused: usize::from(over_name.is_some() && dialect == Dialect::Speckit),
            overrides: over_name.filter(|_| !unused),
            companions: files::companions(&name),
        }),
        None => Err(Refusal { file: Some(name), sources, findings: diagnostics }),
    }
}

/// The text of a Spec Kit workflow and of the overlays of its project.
pub fn texts(file: &Path) -> Result<(String, String), Refusal> {
    let (file, options) = sources(file, &Reading::default(), None)?;
    let text = |text: &Text| String::from_utf8_lossy(&text.bytes).into_owned();
    let overlays: Vec<String> = options.overlays.iter().map(text).collect();
    Ok((text(&file), speckit::joined(overlays.iter().map(String::as_str))))
}

/// Where a workflow that the user names is, whoever asks for it from wherever.
pub fn location(file: &Path) -> Option<PathBuf> {
    if file == Path::new(files::STDIN) {
        return None;
    }
    std::path::absolute(files::find_workflow(file).ok()?).ok()
}

/// Reads the workflows that others call, as they would be read if the user named them.
#[derive(Debug)]
pub struct Files;

impl Reader for Files {
    fn read(&self, file: &Path) -> Result<Definition, String> {
        let opened = open(file, &Reading::default()).map_err(|refusal| {
            let error = refusal.findings.iter().find(|finding| finding.is_error());
            error.map_or_else(String::new, |finding| finding.message.clone())
        })?;
        let (source, overrides) = opened.texts();
        Ok(Definition {
            file: location(file).unwrap_or_else(|| file.to_owned()),
            plan: opened.plan,
            words: opened.words,
            source,
            overrides,
        })
    }
}

/// What marks the top folder of a project.
pub const PROJECT_MARKS: [&str; 3] = [".git", "windlass.toml", ".specify"];

/// The overrides of the project around the current folder. Outside a project only the current folder counts, so that
/// a stray file further up changes nothing.
fn project_overrides() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let top =
        upwards(&here).iter().position(|folder| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists()));
    let ups = 0..=top.unwrap_or(0);
    ups.map(|count| "../".repeat(count) + OVERRIDES_FILE).map(PathBuf::from).find(|file| file.exists())
}

const OBJECT_HELP: &str = "write it as {\"name\": value}";

/// An object from a JSON or YAML file.
pub fn object(path: &Path) -> Result<Value, Refusal> {
    data(path, true)
}

/// Any value from a JSON or YAML file.
pub fn value(path: &Path) -> Result<Value, Refusal> {
    data(path, false)
}

fn data(path: &Path, object: bool) -> Result<Value, Refusal> {
    let content = files::read(path)?;
    let mut sources = Sources::default();
    let text = match text::decode(&content.bytes) {
        Ok(text) => text,
        Err(finding) => return Err(Refusal { file: Some(content.name), sources, findings: vec![*finding] }),
    };
    if text.trim().is_empty() {
        let finding =
            Diagnostic::error(Code::WrongShape, "the file is empty; an object is expected").help(OBJECT_HELP);
        return Err(Refusal { file: Some(content.name), sources, findings: vec![finding] });
    }
    let source = Source::new(content.name.as_str(), text);
    let id = sources.add(source.clone());
    let read = text::read(&source, id, data_format(path), &Limits::default());
    let mut findings = read.diagnostics;
    let value = read.root.as_ref().map(text::Node::to_value);
    if let (Some(root), Some(other)) =
        (&read.root, value.as_ref().filter(|value| object && !matches!(value, Value::Map(_))))
    {
        let finding = Diagnostic::error(
            Code::WrongShape,
            format!("an object is expected here, not {}", article(other.kind())),
        );
        findings.push(finding.at(root.span.head()).help(OBJECT_HELP));
    }
    match value {
        Some(value) if !findings.iter().any(Diagnostic::is_error) => Ok(value),
        _ => Err(Refusal { file: Some(content.name), sources, findings }),
    }
}

/// YAML by its ending, and from a pipe, where JSON reads as YAML too.
fn data_format(path: &Path) -> Format {
    let ending = path.extension().map(OsStr::to_ascii_lowercase);
    match ending.as_deref().and_then(|ending| ending.to_str()) {
        Some("yaml" | "yml") => Format::Yaml,
        _ if path == Path::new(files::STDIN) => Format::Yaml,
        _ => Format::Json,
    }
}

fn article(kind: &str) -> String {
    match kind {
        "null" | "text" => kind.to_owned(),
        "integer" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
