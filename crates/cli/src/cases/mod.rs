//! Test cases beside workflows: found, run in memory with a clock that jumps, and held against what they expect. `compare` finds the
//! differences and `update` writes what was seen in their place.

mod compare;
mod update;

pub use compare::Difference;
pub use update::updated;

use crate::args::Reading;
use crate::files::{self, Unreadable};
use crate::load::{self, Opened, Refusal};
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_dialects::DIALECTS;
use windlass_dialects::cases::{Case, Cases, ENDINGS, Script as Answers, read_cases};
use windlass_ir::plan::Given;
use windlass_ir::{Code, Diagnostic, Severity, Sources, Span, Value};
use windlass_runtime::{
    Beginning, Clock, Engine, Environment, Error, Host, Lineage, Patience, RunId, Script, Start, Timestamp,
    Update,
};

/// A file of cases and what became of them.
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
    /// What came of the run.
    pub seen: Json,
    pub differences: Vec<Difference>,
    /// What was said meanwhile.
    pub notices: Vec<String>,
}

/// Deeper folders and more files than this are not looked at.
const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 10_000;

/// When a case begins that does not say when.
const NOW: &str = "2026-01-01T00:00:00Z";

/// The files of cases that a name on the command line means.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let none = |message: &str, help: String| {
        let finding = Box::new(Diagnostic::error(Code::Unreadable, message).help(help));
        Refusal::from(Unreadable { name: path.display().to_string(), finding })
    };
    if path.is_dir() {
        let mut found = Vec::new();
        walk(path, 0, &mut found);
        found.sort();
        return match found.is_empty() {
            true => Err(none(
                "there are no cases in this folder",
                format!("write them into a file NAME{}", ENDINGS[0]),
            )),
            false => Ok(found),
        };
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if is_cases(name) {
        return Ok(vec![path.to_owned()]);
    }
    // That there is no such file at all is told as of any other.
    files::read(path)?;
    let stem = path.with_extension("");
    let beside = ENDINGS.iter().map(|ending| PathBuf::from(format!("{}{ending}", stem.display())));
    match beside.clone().find(|file| file.is_file()) {
        Some(found) => Ok(vec![found]),
        None => {
            let expected = beside.clone().next().unwrap_or_default();
            Err(none(
                "there are no cases beside this workflow",
                format!("write them into {}", expected.display()),
            ))
        }
    }
}

fn is_cases(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        if found.len() >= FILES_MAX || name.starts_with('.') || name == "node_modules" || name == "target" {
            continue;
        }
        if kind.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), depth + 1, found);
        } else if is_cases(&name) {
            found.push(entry.path());
        }
    }
}

/// Runs all cases of a file, or says what is wrong with it.
pub async fn run(file: &Path) -> Result<Tested, Refusal> {
    let content = files::read(file)?;
    let name = content.name.clone();
    let mut read = read_cases(content.into());
    // An expectation under a wrong name would pass whatever happens.
    for finding in read.diagnostics.iter_mut().filter(|finding| finding.code == Code::UnknownKey) {
        finding.severity = Severity::Error;
    }
    if read.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Refusal { file: Some(name), sources: read.sources, findings: read.diagnostics });
    }
    let workflow = workflow_of(file, &read)?;
    let opened = load::open(&workflow, &Reading::default())?;
    let mut cases = Vec::new();
    for case in std::mem::take(&mut read.cases) {
        match run_case(&opened, &workflow, file, &case).await {
            Ok((seen, notices)) => {
                let differences = case.expect.as_ref().map(|expect| compare::differences(expect, &seen));
                let differences =
                    differences.unwrap_or_else(|| vec![Difference::nothing_expected(case.span)]);
                cases.push(Done { name: case.name.clone(), case, seen, differences, notices });
            }
            Err(finding) => {
                return Err(Refusal { file: Some(name), sources: read.sources, findings: vec![*finding] });
            }
        }
    }
    Ok(Tested { file: file.to_owned(), sources: read.sources, cases })
}

/// The workflow that the cases are about: the one that they name, or that of the same name.
fn workflow_of(file: &Path, cases: &Cases) -> Result<PathBuf, Refusal> {
    let folder = file.parent().unwrap_or(Path::new(""));
    if let Some(named) = &cases.workflow {
        return Ok(folder.join(&*named.value));
    }
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let beside = ["yaml", "yml", "json"].map(|ending| folder.join(format!("{stem}.{ending}")));
    beside.into_iter().find(|workflow| workflow.is_file()).ok_or_else(|| {
        let message = format!("there is no workflow {stem}.yaml, {stem}.yml or {stem}.json beside it");
        let finding = Diagnostic::error(Code::Unreadable, message).help("name its file with `workflow:`");
        Refusal::from(Unreadable { name: file.display().to_string(), finding: Box::new(finding) })
    })
}

async fn run_case(
    opened: &Opened,
    workflow: &Path,
    file: &Path,
    case: &Case,
) -> Result<(Json, Vec<String>), Box<Diagnostic>> {
    let folder = workflow.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let directory = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut variables: IndexMap<std::ffi::OsString, std::ffi::OsString> =
        case.env.iter().map(|(name, value)| ((&**name).into(), (&**value).into())).collect();
    if case.runs_commands {
        // Without this hardly any command is found.
        variables.extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
    }
    let mut host = Host::new(Environment { variables, directory });
    host.runs_commands = case.runs_commands;
    host.script = Some(Arc::new(script(file, case)?));
    let at = |error: &Error| wrong(case, case.span.head(), &error.to_string());
    let start = Start {
        run: Some(RunId::new("test").map_err(|error| at(&error.into()))?),
        inputs: inputs(opened, case)?,
        by: case.by.clone(),
        source: String::new(),
        overrides: String::new(),
        file: load::location(workflow),
        host,
        clock: Clock::Virtual(now(case)?),
        patience: if case.waits { Patience::Deadlines } else { Patience::Work },
        claims: Vec::new(),
        lineage: Lineage::default(),
        parents: Vec::new(),
        budgets: Vec::new(),
        // The same every time.
        beginning: Beginning { seed: Some(0), ..Beginning::default() },
    };
    let engine = Engine::in_memory(DIALECTS);
    engine.read_with(Arc::new(load::Files));
    let mut handle = engine.start(&opened.plan, start).await.map_err(|error| at(&error))?;
    let mut notices = Vec::new();
    while let Some(update) = handle.updates.recv().await {
        if let Update::Notice(text) = update {
            notices.push(text);
        }
    }
    let ended = handle.done.await.map_err(|error| wrong(case, case.span.head(), &error.to_string()))?;
    ended.map_err(|error| at(&error))?;
    let seen = engine.result(&handle.id).map_err(|error| at(&error))?;
    Ok((seen, notices))
}

fn wrong(case: &Case, span: Span, cause: &str) -> Box<Diagnostic> {
    let finding =
        Diagnostic::error(Code::WrongShape, format!("the case `{}` cannot be run: {cause}", case.name));
    Box::new(finding.at(span).help("change the case, or the workflow"))
}

fn script(file: &Path, case: &Case) -> Result<Script, Box<Diagnostic>> {
    let (value, span) = match &case.script {
        None => return Ok(Script::default()),
        Some(Answers::Here(value, span)) => (value.clone(), *span),
        Some(Answers::File(name)) => {
            let path = file.parent().unwrap_or(Path::new("")).join(&*name.value);
            let read = load::object(&path).map_err(|refusal| {
                let cause =
                    refusal.findings.first().map(|finding| finding.message.as_str()).unwrap_or_default();
                wrong(case, name.span, &format!("{}: {cause}", path.display()))
            });
            (read?, name.span)
        }
    };
    Script::parse(&value).map_err(|problems| {
        let problems: Vec<String> =
            problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect();
        wrong(case, span, &format!("its script is wrong: {}", problems.join("; ")))
    })
}

fn inputs(opened: &Opened, case: &Case) -> Result<Value, Box<Diagnostic>> {
    let span = case.inputs.as_ref().map_or(case.span.head(), |(_, span)| *span);
    let parameters = match &case.inputs {
        Some((Value::Map(map), _)) => {
            let given: IndexMap<String, Given> =
                map.iter().map(|(name, value)| (name.to_string(), Given::Value(value.clone()))).collect();
            opened.plan.parameters(&given, opened.words)
        }
        Some((whole, _)) => opened.plan.whole_input(whole.clone(), opened.words),
        None => opened.plan.parameters(&IndexMap::new(), opened.words),
    };
    parameters.map(|parameters| parameters.to_value()).map_err(|findings| {
        let causes: Vec<String> = findings.into_iter().map(|finding| finding.message).collect();
        wrong(case, span, &causes.join("; "))
    })
}

fn now(case: &Case) -> Result<Timestamp, Box<Diagnostic>> {
    let text = case.now.as_ref().map_or(NOW, |now| &now.value);
    let span = case.now.as_ref().map_or(case.span.head(), |now| now.span);
    let instant: Result<jiff::Timestamp, _> = text.parse();
    let instant = instant.map_err(|_| wrong(case, span, &format!("`{text}` is no instant such as {NOW}")))?;
    Ok(Timestamp(instant.as_microsecond()))
}
