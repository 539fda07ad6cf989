//! `windlass show`: how a run stands, as a tree of its steps; or what a workflow is.

use super::refused;
use crate::answer::{Answer, Status};
use crate::args::{self, Reading};
use crate::show::fields::Fields;
use crate::show::words::{clean, one_line};
use crate::show::{Screen, Screens, steps, workflow};
use crate::{data, load};
use serde_json::Value as Json;
use std::path::PathBuf;
use windlass_dialects::DIALECTS;
use windlass_runtime::report::Report;
use windlass_runtime::{Clock, Engine, Error, Query, RunId, Timestamp, Unfound, View, find_workflow};

pub fn run(args: &args::Show, screens: &Screens) -> Answer {
    let found = data::find(&args.data, &args.name);
    let (engine, run) = match found {
        Ok((_, engine, run)) => (engine, run),
        Err(error) if error.code() == "no_run" && args.at.is_none() => {
            return of_workflow(args, screens).unwrap_or_else(|| refused(&error));
        }
        Err(error) => return refused(&error),
    };
    match of_run(args, &engine, &run, &screens.stdout) {
        Ok(answer) => answer,
        Err(error) => refused(&error),
    }
}

fn of_run(args: &args::Show, engine: &Engine, run: &RunId, screen: &Screen) -> Result<Answer, Error> {
    let view = match args.at {
        Some(event) => engine.view_at(run, event)?,
        None => engine.view(run)?,
    };
    // Queues are those of now, not of then.
    let coordinator = match args.at {
        // Without the coordinator only the positions in queues are unknown.
        None if view.ended_at().is_none() => engine.shared().ok(),
        None | Some(_) => None,
    };
    let report = match args.at {
        // Then the run was executed.
        Some(_) => Report::new(DIALECTS, run, &view, true),
        None => engine.report(run, &view).with_shared(coordinator.as_ref()),
    };
    let mut result = report.result();
    if let (Some(event), Json::Object(result)) = (args.at, &mut result) {
        result.insert("at_event".into(), event.into());
    }
    if args.json {
        return Ok(Answer::json(Status::Done, &result));
    }
    let now = match args.at {
        Some(event) => engine.events(run)?.get(event as usize - 1).map(|event| event.at),
        None => None,
    };
    let tree = report.tree();
    let looked_at = now.unwrap_or_else(|| Clock::Real.now());
    let stdout = header(&result, &view, now).render(0, screen)
        + "\n"
        + &steps::render(&tree, looked_at, args.all, screen);
    Ok(Answer { stdout, ..Answer::new(Status::Done) })
}

fn header(result: &Json, view: &View, at: Option<Timestamp>) -> Fields {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let mut fields = Fields::default();
    fields.add("Run", text(&result["run_id"]));
    fields
        .add("Workflow", format!("{} ({})", one_line(&text(&result["workflow"])), text(&result["dialect"])));
    let failures = match result["has_failures"] == true && result["error"].is_null() {
        true => ", though steps have failed",
        false => "",
    };
    fields.add("Status", text(&result["status"]) + failures);
    let length = view.started_at().zip(view.ended_at()).map(|(start, end)| end.since(start));
    let took = length.map(|length| format!(", took {}", steps::length(length))).unwrap_or_default();
    fields.add("Started", view.started_at().map(|at| format!("{at}{took}")).unwrap_or_default());
    if let Some(at) = at {
        fields.add("Shown", format!("as it was after event {}, at {at}", view.events));
    }
    if result["scripted"] == true {
        fields.add("Scripted", "answers came from a script");
    }
    if let Some(error) = result["error"].as_object() {
        let step = error["step"].as_str().map(|step| format!(" in {step}")).unwrap_or_default();
        fields
            .add("Error", one_line(&format!("{}{step}: {}", text(&error["code"]), text(&error["message"]))));
    }
    for wait in result["waiting_on"].as_array().into_iter().flatten() {
        let step = wait["step"].as_str().map(|step| format!("{step} ")).unwrap_or_default();
        fields.add(
            "Waiting on",
            one_line(&format!("{step}({}) {}", text(&wait["kind"]), steps::wait_words(wait))),
        );
    }
    fields
}

/// The workflow with this name: a file, one that the project has, or one that has been run here. None if there is none.
fn of_workflow(args: &args::Show, screens: &Screens) -> Option<Answer> {
    let path = PathBuf::from(&args.name);
    let here = std::env::current_dir().unwrap_or_default();
    let file = match path.exists() {
        true => Some(path),
        false => match find_workflow(&load::Files, DIALECTS, &args.name, &here) {
            Ok(found) => Some(found.file),
            // Which says what is wrong with it.
            Err(Unfound::Bad { file, .. } | Unfound::Disabled { file }) => Some(file),
            Err(Unfound::Several(files)) => {
                let files: Vec<String> =
                    files.iter().map(|file| clean(&file.display().to_string()).into_owned()).collect();
                let stderr = format!(
                    "error[no_run]: there is no run `{}`, and several files hold a workflow of that name: name one of {}\n",
                    clean(&args.name),
                    files.join(", ")
                );
                return Some(Answer { stderr, ..Answer::new(Status::Refused) });
            }
            Err(Unfound::NotThere { .. }) => None,
        },
    };
    match file {
        Some(file) => Some(match load::open(&file, &Reading::default()) {
            Ok(opened) if args.json => Answer {
                stderr: opened.note(&screens.stderr),
                ..Answer::json(Status::Done, &workflow::as_json(&opened.plan, Some(&file)))
            },
            Ok(opened) => Answer {
                stdout: workflow::render(&opened.plan, Some(&file), &screens.stdout),
                stderr: opened.note(&screens.stderr),
                status: Status::Done,
            },
            Err(refusal) if args.json => refusal.answer_with_json(&screens.stderr),
            Err(refusal) => refusal.answer(&screens.stderr),
        }),
        None => of_last_run(args, &screens.stdout),
    }
}

/// The plan of the last run of a workflow.
fn of_last_run(args: &args::Show, screen: &Screen) -> Option<Answer> {
    let engine = data::look(&data::folder(&args.data, None)).ok()?;
    let query = Query { workflows: vec![args.name.clone()], limit: 1, ..Query::default() };
    let run = engine.runs(&query).ok()?.into_iter().next()?.run;
    let plan = match engine.view(&run) {
        Ok(view) => view.program().plan.clone(),
        Err(error) => return Some(refused(&error)),
    };
    let stderr = format!("as run {run} had it; there is no file `{}`\n", clean(&args.name));
    Some(match args.json {
        true => Answer { stderr, ..Answer::json(Status::Done, &workflow::as_json(&plan, None)) },
        false => Answer { stdout: workflow::render(&plan, None, screen), stderr, status: Status::Done },
    })
}
