//! `specify workflow status`: one run, or all of them.

use super::folder::Folder;
use super::python::{self, Letters};
use super::{failed, state, unfound};
use crate::answer::{Answer, Exit};
use crate::args::WorkflowStatus;
use crate::data;
use crate::show::words::one_line;
use serde_json::{Map, Value as Json, json};
use windlass_runtime::{Engine, Error, Query, RunId, StoreError};

pub fn run(args: &WorkflowStatus) -> Answer {
    match &args.run_id {
        Some(name) => one(args, name).unwrap_or_else(|answer| answer),
        None => all(args).unwrap_or_else(|error| failed(&error.to_string())),
    }
}

fn one(args: &WorkflowStatus, name: &str) -> Result<Answer, Answer> {
    let (_, engine, run) = data::find(&args.data, name).map_err(|error| unfound(name, &error))?;
    let payload = payload(&engine, &run).map_err(|error| failed(&error.to_string()))?;
    Ok(printed(if args.json { pretty(&payload) } else { words(&payload) }))
}

fn payload(engine: &Engine, run: &RunId) -> Result<Json, Error> {
    let folder = Folder::open(engine, run)?;
    let (view, log) = (folder.view(), folder.log());
    let mut payload = state::report(run, view).payload();
    let steps = state::records(run, view, log).into_iter();
    let steps: Map<String, Json> = steps.map(|(id, record)| (id, record["status"].clone())).collect();
    payload["created_at"] = python::isoformat(view.started_at().unwrap_or_default()).into();
    payload["updated_at"] = python::isoformat(log.last_at).into();
    payload["steps"] = steps.into();
    Ok(payload)
}

fn words(payload: &Json) -> String {
    let text = |key: &str| payload[key].as_str().map(one_line).unwrap_or_default();
    let mut words = format!(
        "\nWorkflow Run: {}\n  Workflow: {}\n  Status:   {}\n  Created:  {}\n  Updated:  {}\n",
        text("run_id"),
        text("workflow_id"),
        text("status"),
        text("created_at"),
        text("updated_at")
    );
    if payload["current_step_id"].is_string() {
        words += &format!("  Current:  {}\n", text("current_step_id"));
    }
    if payload["error"].is_string() {
        words += &format!("  Error:    {}\n", text("error"));
    }
    let steps = payload["steps"].as_object();
    if let Some(steps) = steps.filter(|steps| !steps.is_empty()) {
        words += &format!("\n  Steps ({}):\n", steps.len());
        for (id, status) in steps {
            words += &format!("    ● {}: {}\n", one_line(id), status.as_str().unwrap_or_default());
        }
    }
    for scope in payload["workflow_scopes"].as_array().into_iter().flatten() {
        let path: Vec<&str> =
            scope["scope_path"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let part = |key: &str| scope[key].as_str().map(one_line).unwrap_or_default();
        words +=
            &format!("  {} → {}: {}\n", one_line(&path.join(" / ")), part("workflow_id"), part("status"));
    }
    words
}

/// Sorted by id, like the folders of a project.
fn all(args: &WorkflowStatus) -> Result<Answer, Error> {
    let engine = match data::look(&data::folder(&args.data, None)) {
        Ok(engine) => engine,
        Err(Error::Store(StoreError::Missing { .. })) => return Ok(listed(args.json, &[])),
        Err(error) => return Err(error),
    };
    let rows = engine.runs(&Query { limit: usize::MAX, ..Query::default() })?;
    let mut runs: Vec<RunId> =
        rows.into_iter().filter(|row| row.row.dialect == "speckit").map(|row| row.run).collect();
    runs.sort();
    let summary = |run: &RunId| -> Result<Json, Error> {
        let payload = state::report(run, &engine.view(run)?).payload();
        let last = engine.events(run)?.last().map(|event| event.at);
        let updated_at = python::isoformat(last.unwrap_or_default());
        Ok(json!({
            "run_id": run,
            "workflow_id": payload["workflow_id"],
            "status": payload["status"],
            "updated_at": updated_at,
        }))
    };
    // Skips a run that cannot be read.
    let runs: Vec<Json> = runs.iter().filter_map(|run| summary(run).ok()).collect();
    Ok(listed(args.json, &runs))
}

fn listed(json: bool, runs: &[Json]) -> Answer {
    if json {
        return printed(pretty(&json!({"runs": runs})));
    }
    if runs.is_empty() {
        return printed("No workflow runs found.\n".to_owned());
    }
    let line = |run: &Json| {
        let text = |key: &str| run[key].as_str().map(one_line).unwrap_or_default();
        format!(
            "  ● {}  {}  {}  {}\n",
            text("run_id"),
            text("workflow_id"),
            text("status"),
            text("updated_at")
        )
    };
    printed(format!("\nWorkflow Runs:\n\n{}", runs.iter().map(line).collect::<String>()))
}

fn pretty(payload: &Json) -> String {
    python::pretty(payload, Letters::Ascii) + "\n"
}

fn printed(stdout: String) -> Answer {
    Answer { stdout, ..Answer::new(Exit::Done) }
}
