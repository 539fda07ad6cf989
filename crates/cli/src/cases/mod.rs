//! Finds the test cases of workflows, simulates them, and compares the results with the
//! expectations. `compare` finds the differences; `update` writes the actual results into the file.

mod compare;
mod update;

pub use compare::Difference;
pub use update::updated;

use crate::answer::Refused;
use crate::args::Reading;
use crate::commands::pure;
use crate::files::{self, Unreadable};
use crate::load::{self, Refusal};
use crate::walk;
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_api::Code as Word;
use windlass_api::operations::{Local, SimulateWorkflow};
use windlass_api::types::{Ref, Simulation};
use windlass_dialects::cases::{Case, Cases, ENDINGS, Script as Answers, read_cases};
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{Action, Kind};
use windlass_ir::{Code, Diagnostic, Severity, Sources, Span};

/// A file of cases and their results.
#[derive(Debug)]
pub struct Tested {
    pub file: PathBuf,
    pub sources: Sources,
    pub cases: Vec<Done>,
}

/// A case that was run.
#[derive(Debug)]
pub struct Done {
    pub name: Arc<str>,
    pub case: Case,
    /// The result of the run.
    pub seen: Json,
    pub differences: Vec<Difference>,
    /// Notices that the run printed.
    pub notices: Vec<String>,
}

/// The case files that an argument names.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let named = files::by_name(path)?;
    let path = named.as_deref().unwrap_or(path);
    let none = |message: &str, help: String| {
        let finding = Box::new(Diagnostic::error(Code::Unreadable, message).help(help));
        Refusal::from(Unreadable::new(path.display().to_string(), finding))
    };
    if path.is_dir() {
        let found = walk::files(path, &|_, name| is_cases(name));
        return match found.is_empty() {
            true => Err(none(
                "this folder contains no test cases",
                format!("write them into a file NAME{}", ENDINGS[0]),
            )),
            false => Ok(found),
        };
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if is_cases(name) {
        return Ok(vec![path.to_owned()]);
    }
    // Reading a missing file reports the error.
    files::read(path)?;
    let stem = path.with_extension("");
    let beside = ENDINGS.iter().map(|ending| PathBuf::from(format!("{}{ending}", stem.display())));
    match beside.clone().find(|file| file.is_file()) {
        Some(found) => Ok(vec![found]),
        None => {
            let expected = beside.clone().next().unwrap_or_default();
            Err(none("this workflow has no test cases", format!("write them into {}", expected.display())))
        }
    }
}

fn is_cases(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Executes all cases of a file, or returns what is wrong with it.
pub fn run(file: &Path) -> Result<Tested, Refused> {
    let content = files::read(file)?;
    let name = content.name.clone();
    let mut read = read_cases(content.into());
    // An expectation under a misspelled key would always pass.
    for finding in read.diagnostics.iter_mut().filter(|finding| finding.code == Code::UnknownKey) {
        finding.severity = Severity::Error;
    }
    if read.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Refusal::of(name, read.sources, read.diagnostics).into());
    }
    let workflow = workflow_of(file, &read)?;
    let asked = load::ask(&workflow, &Reading::default(), true)?;
    let mut cases = Vec::new();
    for case in std::mem::take(&mut read.cases) {
        let request = match request(&asked.of, &workflow, file, &case) {
            Ok(request) => request,
            Err(finding) => return Err(found(name, read.sources, *finding)),
        };
        let unknown = unknown_names(request.mock.as_ref(), &workflow);
        let simulated = pure(request);
        let Simulation { run, mut notices, .. } = match simulated {
            Ok(simulation) => simulation,
            Err(refusal) if refusal.code == Word::InvalidWorkflow => return Err(asked.refused(refusal)),
            Err(refusal) => return Err(found(name, read.sources, *refused(&case, &refusal))),
        };
        notices.extend(unknown);
        let seen = serde_json::to_value(run).unwrap_or_default();
        let differences = case.expect.as_ref().map(|expect| compare::differences(expect, &seen));
        let differences = differences.unwrap_or_else(|| vec![Difference::nothing_expected(case.span)]);
        cases.push(Done { name: case.name.clone(), case, seen, differences, notices });
    }
    Ok(Tested { file: file.to_owned(), sources: read.sources, cases })
}

/// Mock responses for steps that the workflow does not have.
fn unknown_names(mock: Option<&Json>, workflow: &Path) -> Vec<String> {
    let (Some(mock), Ok(opened)) = (mock, load::open(workflow, &Reading::default())) else {
        return Vec::new();
    };
    let steps = &opened.plan.steps;
    // A called workflow has steps of its own.
    let calls = steps.iter().any(|step| matches!(step.kind, Kind::Action(Action::Call(_))));
    let tasks = steps.iter().filter_map(|step| match &step.kind {
        Kind::Action(Action::Task(task)) => Some(&*task.task),
        Kind::Action(Action::Tool(tool)) => Some(&*tool.tool),
        _ => None,
    });
    let names: Vec<&str> = steps.iter().map(|step| &*step.id).chain(tasks).collect();
    let mut unknown = Vec::new();
    for section in ["steps", "agents", "gates"] {
        for id in mock[section].as_object().into_iter().flat_map(|entries| entries.keys()) {
            let is_known = id.split(['[', ':', '/', '.']).any(|part| names.contains(&part));
            let near = nearest(id, names.iter().copied());
            if is_known || names.contains(&id.as_str()) || near.is_none() && calls {
                continue;
            }
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            unknown.push(format!("`script.{section}` names `{id}`, but the workflow has no such step{near}"));
        }
    }
    unknown
}

fn found(name: String, sources: Sources, finding: Diagnostic) -> Refused {
    Refusal::of(name, sources, vec![finding]).into()
}

/// The workflow of the cases: the one they name, else the one with the same file name.
fn workflow_of(file: &Path, cases: &Cases) -> Result<PathBuf, Refusal> {
    let folder = file.parent().unwrap_or(Path::new(""));
    if let Some(named) = &cases.workflow {
        return Ok(folder.join(&*named.value));
    }
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let beside = ["yaml", "yml", "json"].map(|ending| folder.join(format!("{stem}.{ending}")));
    beside.into_iter().find(|workflow| workflow.is_file()).ok_or_else(|| {
        let message = format!("found no workflow {stem}.yaml, {stem}.yml or {stem}.json beside it");
        let finding = Diagnostic::error(Code::Unreadable, message).help("name its file with `workflow:`");
        Refusal::from(Unreadable::new(file.display().to_string(), Box::new(finding)))
    })
}

fn local(workflow: &Path, case: &Case) -> Local {
    let folder = workflow.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut variables: IndexMap<OsString, OsString> =
        case.env.iter().map(|(name, value)| ((&**name).into(), (&**value).into())).collect();
    if case.runs_commands {
        // Without PATH almost no command can be found.
        variables.extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
    }
    Local {
        file: load::location(workflow),
        reader: Some(Arc::new(load::Files)),
        directory: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
        variables,
        runs_commands: case.runs_commands,
    }
}

/// A request that simulates the case.
fn request(of: &Ref, workflow: &Path, file: &Path, case: &Case) -> Result<SimulateWorkflow, Box<Diagnostic>> {
    Ok(SimulateWorkflow {
        of: of.clone(),
        inputs: case.inputs.as_ref().and_then(|(value, _)| value.to_json()),
        mock: mock(file, case)?,
        now: case.now.as_ref().map(|now| now.value.to_string()),
        by: case.by.as_ref().map(ToString::to_string),
        wait: case.waits,
        local: local(workflow, case),
    })
}

/// Why a case cannot be run, at the part of the case that is to blame.
fn refused(case: &Case, refusal: &windlass_api::Refusal) -> Box<Diagnostic> {
    let head = case.span.head();
    let span = match (refusal.code, refusal.field.as_deref()) {
        (Word::BadParameter | Word::MissingParameter, _) => case.inputs.as_ref().map(|(_, span)| *span),
        (Word::BadMock, _) => case.script.as_ref().map(|script| match script {
            Answers::Here(_, span) => *span,
            Answers::File(name) => name.span,
        }),
        (_, Some("now")) => case.now.as_ref().map(|now| now.span),
        (_, _) => None,
    };
    let causes: Vec<&str> = refusal.diagnostics.iter().map(|finding| finding.message.as_str()).collect();
    let cause = if causes.is_empty() { refusal.message.clone() } else { causes.join("; ") };
    wrong(case, span.unwrap_or(head), &cause)
}

fn wrong(case: &Case, span: Span, cause: &str) -> Box<Diagnostic> {
    let finding =
        Diagnostic::error(Code::WrongShape, format!("the case `{}` cannot be run: {cause}", case.name));
    Box::new(finding.at(span).help("change the case, or the workflow"))
}

fn mock(file: &Path, case: &Case) -> Result<Option<Json>, Box<Diagnostic>> {
    match &case.script {
        None => Ok(None),
        Some(Answers::Here(value, _)) => Ok(value.to_json()),
        Some(Answers::File(name)) => {
            let path = file.parent().unwrap_or(Path::new("")).join(&*name.value);
            let read = load::object(&path).map_err(|refusal| {
                let cause =
                    refusal.findings.first().map(|finding| finding.message.as_str()).unwrap_or_default();
                wrong(case, name.span, &format!("{}: {cause}", path.display()))
            });
            Ok(read?.to_json())
        }
    }
}
