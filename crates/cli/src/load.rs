//! Turns an argument into the texts of a request, or into a plan: reads the workflow, finds the project's overrides and the
//! overlays of an installed workflow, and collects all findings.

use crate::answer::Refused;
use crate::args::Reading;
use crate::files::{self, Content, Unreadable};
use crate::show::words::clean;
use crate::show::{Screen, diagnostics};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use windlass_api::library::overlays;
use windlass_api::types::{Diagnostic as Finding, NamedText, Ref};
use windlass_dialects::swdl::OVERRIDES_FILE;
use windlass_dialects::text::{self, Format, Limits};
use windlass_dialects::{Dialect, Loaded, Options, Text, harden_for_start, speckit};
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
    /// The overrides file in force, if it has a block for this workflow.
    pub overrides: Option<String>,
    /// Sources with no effect: the project's overrides of a workflow with overlays.
    unused: usize,
}

impl Opened {
    /// The text of the file, and of its overrides or overlays.
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

    /// Reports the overrides in force, if nothing else shows them, and warnings and hints.
    pub fn note(&self, screen: &Screen) -> String {
        let overrides =
            self.overrides.as_ref().map(|file| format!("with the overrides of {}\n", clean(file)));
        let findings = diagnostics::render(&self.findings, &self.sources, None, screen);
        let pages = if findings.is_empty() { "" } else { diagnostics::PAGES };
        overrides.unwrap_or_default() + &findings + pages
    }
}

/// Why the workflow cannot be used. Findings without a position refer to `file`, if it is set.
#[derive(Debug, Default)]
pub struct Refusal {
    pub file: Option<String>,
    pub sources: Sources,
    pub findings: Vec<Diagnostic>,
    /// Why a name was refused; none for a file, whose findings say it.
    pub code: Option<windlass_api::Code>,
}

impl Refusal {
    /// Findings about a file.
    pub fn of(file: String, sources: Sources, findings: Vec<Diagnostic>) -> Self {
        Self { file: Some(file), sources, findings, code: None }
    }
}

impl From<Unreadable> for Refusal {
    fn from(unreadable: Unreadable) -> Self {
        let Unreadable { name, finding, code } = unreadable;
        Self { code, ..Self::of(name, Sources::default(), vec![*finding]) }
    }
}

impl From<Content> for Text {
    fn from(content: Content) -> Self {
        Self { name: content.name, bytes: content.bytes }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        use windlass_api::Code as Word;
        if let (Some(code), [finding]) = (refusal.code, refusal.findings.as_slice()) {
            let named = windlass_api::Refusal::new(code, &*finding.message).help(&*finding.help);
            return named.field("workflow").into();
        }
        let findings = Finding::list(&refusal.findings, &refusal.sources, refusal.file.as_deref());
        let first = refusal.findings.iter().find(|finding| finding.is_error());
        let code = match first.map(|finding| finding.code) {
            Some(Code::Unreadable) => Word::Unreadable,
            Some(Code::TooLarge) => Word::TooLarge,
            Some(Code::MissingParameter) => Word::MissingParameter,
            Some(Code::BadParameter) => Word::BadParameter,
            // Without a file it is a value of the user, not a name in the workflow.
            Some(Code::UnknownParameter) if refusal.file.is_none() => Word::BadParameter,
            _ => Word::InvalidWorkflow,
        };
        let refusal_of = windlass_api::Refusal::found(code, findings);
        Self { refusal: Box::new(refusal_of), sources: refusal.sources }
    }
}

impl Refused {
    /// The same for a file that is not a workflow.
    pub fn instead_of_workflow(mut self, code: windlass_api::Code) -> Self {
        if self.refusal.code == windlass_api::Code::InvalidWorkflow {
            self.refusal.code = code;
        }
        self
    }
}

impl From<Unreadable> for Refused {
    fn from(unreadable: Unreadable) -> Self {
        Refusal::from(unreadable).into()
    }
}

impl Content {
    /// Its text in the form that a request contains.
    pub fn text(self) -> Result<NamedText, Unreadable> {
        let Self { name, bytes } = self;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(NamedText { name, text }),
            Err(error) => {
                let finding = text::decode(error.as_bytes()).err();
                let finding = finding
                    .unwrap_or_else(|| Box::new(Diagnostic::error(Code::NotUtf8, "the file is not UTF-8")));
                Err(Unreadable::new(name, finding))
            }
        }
    }
}

/// A text for excerpts, decoded the way its reader decodes it.
pub fn shown(named: &NamedText) -> Source {
    let text = text::decode(named.text.as_bytes()).unwrap_or_default();
    Source::new(named.name.as_str(), text)
}

/// A workflow in the form that a request names it, with the texts that findings refer to.
#[derive(Debug)]
pub struct Asked {
    pub of: Ref,
    pub sources: Sources,
    /// The project's overrides, if they apply because the user named none.
    project: Option<String>,
}

impl Asked {
    /// The name of the file.
    pub fn file(&self) -> &str {
        self.of.file.as_deref().unwrap_or_default()
    }

    /// Warnings and hints to show, and the name of the overrides in force. A project's file need not have a block for every
    /// workflow, so a missing block is not reported.
    pub fn sorted(&self, dialect: &str, mut findings: Vec<Finding>) -> (Vec<Finding>, Option<String>) {
        let unused = Code::UnusedOverride.as_str();
        let name = self.of.overrides.as_ref().map(|overrides| overrides.name.clone());
        let is_unused =
            dialect != Dialect::Swdl.name() || findings.iter().any(|finding| finding.code == unused);
        self.drop_unused(&mut findings);
        (findings, name.filter(|_| !is_unused))
    }

    fn drop_unused(&self, findings: &mut Vec<Finding>) {
        if self.project.is_some() {
            let unused = Code::UnusedOverride.as_str();
            findings.retain(|finding| finding.code != unused || finding.file != self.project);
        }
    }

    /// A refused request, with the texts for its excerpts.
    pub fn refused(self, mut refusal: windlass_api::Refusal) -> Refused {
        self.drop_unused(&mut refusal.diagnostics);
        Refused { refusal: Box::new(refusal), sources: self.sources }
    }
}

/// Reports the overrides in force, if nothing else shows them, and lists warnings and hints.
pub fn note(findings: &[Finding], overrides: Option<&str>, sources: &Sources, screen: &Screen) -> String {
    let overrides = overrides.map(|file| format!("with the overrides of {}\n", clean(file)));
    overrides.unwrap_or_default() + &diagnostics::explained(findings, sources, screen)
}

/// Reads a workflow and its related files for a request; with `in_project` also the overrides of the project.
pub fn ask(file: &Path, reading: &Reading, in_project: bool) -> Result<Asked, Unreadable> {
    let path = files::find_workflow(file)?;
    ask_about(files::read(&path)?.text()?, reading, in_project)
}

/// The same for a text that is already in memory.
pub fn ask_about(workflow: NamedText, reading: &Reading, in_project: bool) -> Result<Asked, Unreadable> {
    let project = match (&reading.overrides, in_project) {
        (None, true) => project_overrides(),
        (Some(_), _) | (None, false) => None,
    };
    let text = |path: &Path| files::read(path)?.text();
    let overrides = reading.overrides.as_deref().or(project.as_deref()).map(text).transpose()?;
    let mut laid = match reading.as_written {
        true => Vec::new(),
        false => overlays(Path::new(&workflow.name)),
    };
    laid.extend(reading.overlays.iter().cloned());
    let overlays = laid.iter().map(|overlay| text(overlay)).collect::<Result<Vec<_>, _>>()?;
    let mut sources = Sources::default();
    for named in std::iter::once(&workflow).chain(&overrides).chain(&overlays) {
        sources.add(shown(named));
    }
    let of = Ref {
        workflow: "-".to_owned(),
        source: Some(workflow.text),
        file: Some(workflow.name),
        dialect: reading.dialect.map(Into::into),
        overrides,
        overlays,
    };
    Ok(Asked { of, sources, project: project.map(|path| path.display().to_string()) })
}

/// Reads a workflow with the user's options. `project` contains the overrides of the project.
pub fn read(
    file: &Path,
    reading: &Reading,
    project: Option<Content>,
) -> Result<(String, Loaded), Unreadable> {
    let (text, options) = sources(file, reading, project)?;
    Ok((text.name.clone(), windlass_dialects::load(text, options)))
}

/// A workflow file and its related files.
pub fn sources(
    file: &Path,
    reading: &Reading,
    project: Option<Content>,
) -> Result<(Text, Options), Unreadable> {
    let text = files::read_workflow(file)?;
    let named = reading.overrides.as_deref().map(files::read).transpose()?;
    let mut laid = match reading.as_written {
        true => Vec::new(),
        false => overlays(Path::new(&text.name)),
    };
    laid.extend(reading.overlays.iter().cloned());
    let overlays = laid.iter().map(|overlay| files::read(overlay).map(Text::from));
    let options = Options {
        dialect: reading.dialect.map(Into::into),
        overrides: named.or(project).map(Into::into),
        overlays: overlays.collect::<Result<_, _>>()?,
        raises_late: reading.raises_late,
    };
    Ok((text.into(), options))
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
        // A project's file need not have a block for every workflow.
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
        }),
        None => Err(Refusal::of(name, sources, diagnostics)),
    }
}

/// The same for a run, which is refused if a step would run before a gate by mistake.
pub fn open_to_start(file: &Path, reading: &Reading) -> Result<Opened, Refusal> {
    let mut opened = open(file, reading)?;
    match harden_for_start(&opened.plan, opened.words, &mut opened.findings) {
        true => Err(Refusal::of(file.display().to_string(), opened.sources, opened.findings)),
        false => Ok(opened),
    }
}

/// The texts of a Spec Kit workflow and of the overlays of its project.
pub fn texts(file: &Path) -> Result<(String, String), Refusal> {
    let (file, options) = sources(file, &Reading::default(), None)?;
    let text = |text: &Text| String::from_utf8_lossy(&text.bytes).into_owned();
    let overlays: Vec<String> = options.overlays.iter().map(text).collect();
    Ok((text(&file), speckit::joined(overlays.iter().map(String::as_str))))
}

/// The absolute path of a workflow that the user names.
pub fn location(file: &Path) -> Option<PathBuf> {
    if file == Path::new(files::STDIN) {
        return None;
    }
    std::path::absolute(files::find_workflow(file).ok()?).ok()
}

/// Reads called workflows the same way as workflows that the user names.
#[derive(Debug)]
pub struct Files;

impl Reader for Files {
    fn read(&self, file: &Path) -> Result<Definition, String> {
        let opened = open_to_start(file, &Reading::default()).map_err(|refusal| {
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

/// Files and folders that mark the top folder of a project.
pub const PROJECT_MARKS: [&str; 3] = [".git", "windlass.toml", ".specify"];

/// The overrides of the project around the current folder. Outside a project only the current folder counts, so that a stray
/// file further up has no effect.
fn project_overrides() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let top =
        upwards(&here).iter().position(|folder| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists()));
    let ups = 0..=top.unwrap_or(0);
    ups.map(|count| "../".repeat(count) + OVERRIDES_FILE).map(PathBuf::from).find(|file| file.exists())
}

const OBJECT_HELP: &str = "write it as {\"name\": value}";

/// Reads an object from a JSON or YAML file.
pub fn object(path: &Path) -> Result<Value, Refusal> {
    data(path, true)
}

/// Reads any value from a JSON or YAML file.
pub fn value(path: &Path) -> Result<Value, Refusal> {
    data(path, false)
}

fn data(path: &Path, object: bool) -> Result<Value, Refusal> {
    let content = files::read(path)?;
    let mut sources = Sources::default();
    let text = match text::decode(&content.bytes) {
        Ok(text) => text,
        Err(finding) => return Err(Refusal::of(content.name, sources, vec![*finding])),
    };
    if text.trim().is_empty() {
        let finding =
            Diagnostic::error(Code::WrongShape, "the file is empty; an object is expected").help(OBJECT_HELP);
        return Err(Refusal::of(content.name, sources, vec![finding]));
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
        _ => Err(Refusal::of(content.name, sources, findings)),
    }
}

/// YAML by its extension, and for standard input, because YAML includes JSON.
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
