//! `windlass show`: a run with its steps, or a workflow.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::args::{self, Reading};
use crate::show::fields::Fields;
use crate::show::marks::State;
use crate::show::times::{self, instant};
use crate::show::words::{clean, one_line};
use crate::show::{Screen, Screens, names, progress, steps, workflow};
use crate::{data, load, named};
use std::path::PathBuf;
use windlass_api::operations::GetRun;
use windlass_api::report::Report;
use windlass_api::types::{Run, Undone};
use windlass_dialects::DIALECTS;
use windlass_ir::RunStatus;
use windlass_runtime::{Clock, Engine, Query, RunId, Timestamp};

pub fn run(args: &args::Show, screens: &Screens) -> Result<Answer, Refused> {
    let name = args.name.as_deref().unwrap_or(data::LAST);
    let (folder, engine, run) = match data::find(&args.data, name) {
        Ok(found) => found,
        Err(error) if error.code() == "no_run" && args.event.is_none() => {
            return of_workflow(args, name, screens)?.ok_or_else(|| error.into());
        }
        Err(error) => return Err(error.into()),
    };
    let shown = call(&folder, GetRun { event: args.event, ..GetRun::of(run.as_str()) })?;
    match args.json {
        true => Ok(Answer::json(Exit::Done, &shown)),
        false => of_run(args, &engine, &run, &shown, &screens.stdout),
    }
}

fn of_run(
    args: &args::Show,
    engine: &Engine,
    run: &RunId,
    shown: &Run,
    screen: &Screen,
) -> Result<Answer, Refused> {
    let view = match args.event {
        Some(event) => engine.view_at(run, event)?,
        None => engine.view(run)?,
    };
    let report = match args.event {
        // At that moment a process was executing the run.
        Some(_) => Report::new(DIALECTS, run, &view, true),
        None => Report::of(engine, run, &view),
    };
    // Without the coordinator only the positions in queues are unknown.
    let shared = engine.shared().ok().filter(|_| view.ended_at().is_none());
    let report = report.with_shared(shared.as_ref());
    let at = match args.event {
        Some(event) => engine.events(run)?.get(event as usize - 1).map(|event| event.at),
        None => None,
    };
    let now = at.unwrap_or_else(|| Clock::Real.now());
    let stdout = header(shown, at, now, screen).render(0, screen)
        + "\n"
        + &steps::render(&report.tree(), now, args.all, screen);
    let next: String = shown
        .waiting_on
        .iter()
        .filter_map(|wait| progress::next_action(&shown.run_id, wait))
        .map(|next| next + "\n")
        .collect();
    let stderr = if args.event.is_none() { data::hinted(&next, engine.folder()) } else { String::new() };
    Ok(Answer { stdout, stderr, ..Answer::new(Exit::Done) })
}

fn header(run: &Run, at: Option<Timestamp>, now: Timestamp, screen: &Screen) -> Fields {
    let clock = |text: &String| instant(text).map_or_else(|| text.clone(), |at| times::clock(at, now));
    let mut fields = Fields::default();
    fields.add("Run", run.run_id.clone());
    fields.add("Workflow", format!("{} ({})", one_line(&run.workflow), run.dialect));
    fields.add("Status", status(run, screen));
    let by = run.by.as_ref().map(|by| format!(" by {}", one_line(by))).unwrap_or_default();
    let took = run.duration_seconds.map(|took| format!(", took {}", times::seconds(took)));
    match &run.started_at {
        Some(at) => fields.add("Started", format!("{}{by}{}", clock(at), took.unwrap_or_default())),
        None => fields.add("Created", format!("{}{by}", clock(&run.created_at))),
    }
    fields.add("Retry of", run.retry_of.clone().unwrap_or_default());
    fields.add("Called by", run.parent_run_id.clone().unwrap_or_default());
    if let (Some(at), Some(event)) = (at, run.at_event) {
        fields.add("Shown", format!("as it was after event {event}, at {}", times::clock(at, now)));
    }
    if run.mocked {
        fields.add("Mocked", "some responses are mocked");
    }
    if let Some(error) = run.error.as_ref().filter(|_| run.status == RunStatus::Failed) {
        let step = error.step.as_ref().map(|step| format!("in {step}: ")).unwrap_or_default();
        fields.add("Error", one_line(&format!("{step}{}: {}", error.code, error.message)));
    }
    for wait in run.waiting_on.iter().filter(|wait| wait.step.is_none()) {
        fields.add("Waiting", one_line(&steps::wait_words(wait, now)));
    }
    fields.add_lines("Outputs", names::outputs(&run.outputs));
    fields
}

/// The mark and the word of its status, and one phrase about it.
fn status(run: &Run, screen: &Screen) -> String {
    let state = State::of_run(run.status, &run.waiting_on);
    let about = match run.status {
        RunStatus::Failed => match run.undone {
            Some(Undone::All) => ", everything undone".to_owned(),
            Some(Undone::Part) => ", only partly undone".to_owned(),
            None => String::new(),
        },
        RunStatus::Success => run.headline.trim_start_matches("succeeded").to_owned(),
        RunStatus::Cancelled => run.headline.trim_start_matches("canceled").to_owned(),
        RunStatus::Interrupted => {
            format!(": no process executes it; continue it with `windlass resume {}`", run.run_id)
        }
        RunStatus::Paused => format!("; continue it with `windlass resume {}`", run.run_id),
        RunStatus::Pending | RunStatus::Running | RunStatus::Waiting => {
            run.headline.trim_start_matches(run.status.word()).to_owned()
        }
    };
    one_line(&format!("{} {}{about}", state.symbol(screen), run.status))
}

/// The workflow with this name: a file, a workflow of the project, or one that has run here.
fn of_workflow(args: &args::Show, name: &str, screens: &Screens) -> Result<Option<Answer>, Refused> {
    let path = PathBuf::from(name);
    let file = match path.exists() {
        true => Some(path),
        false if named::is_name(name) => named::find(name)?,
        false => None,
    };
    let Some(file) = file else { return of_last_run(args, name, &screens.stdout) };
    let opened = load::open(&file, &Reading::default())?;
    let stderr = opened.note(&screens.stderr);
    Ok(Some(match args.json {
        true => Answer { stderr, ..Answer::json(Exit::Done, &workflow::as_json(&opened.plan, Some(&file))) },
        false => Answer {
            stdout: workflow::render(&opened.plan, Some(&file), &screens.stdout),
            stderr,
            status: Exit::Done,
        },
    }))
}

/// The plan of the last run of a workflow.
fn of_last_run(args: &args::Show, name: &str, screen: &Screen) -> Result<Option<Answer>, Refused> {
    let Ok(engine) = data::look(&data::folder(&args.data, None)) else { return Ok(None) };
    let query = Query { workflows: vec![name.to_owned()], limit: 1, ..Query::default() };
    let Some(row) = engine.runs(&query)?.into_iter().next() else { return Ok(None) };
    let plan = engine.view(&row.run)?.program().plan.clone();
    let stderr = format!("no file `{}`: showing the plan of run {}\n", clean(name), row.run);
    Ok(Some(match args.json {
        true => Answer { stderr, ..Answer::json(Exit::Done, &workflow::as_json(&plan, None)) },
        false => Answer { stdout: workflow::render(&plan, None, screen), stderr, status: Exit::Done },
    }))
}
