//! `windlass runs export` and `windlass runs import`: copy runs between data folders.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::args::Data;
use crate::data;
use crate::show::words::{clean, count};
use serde_json::json;
use std::path::Path;
use windlass_api::operations::{CarriedRun, CarriedRuns, ExportRuns, ImportRuns};
use windlass_api::{Tables, export_tables};
use windlass_runtime::{Engine, Error, Query, RunId};

pub fn export(names: &[String], folder: &Path, json: bool, at: &Data) -> Result<Answer, Refused> {
    if names.is_empty() {
        let cause = "name the folder to write to after the runs, or a file with `--sqlite FILE`".to_owned();
        return Err(Error::Export { folder: folder.to_owned(), cause }.into());
    }
    let from = data::folder(at, None);
    let runs = found(&*data::look(&from)?, names)?;
    let run_ids = runs.iter().map(ToString::to_string).collect();
    let exported = call(&from, ExportRuns { run_ids, folder: folder.to_owned() })?;
    Ok(answer(&exported, json, "written to"))
}

/// Writes the named runs, or all runs, into a SQLite file.
pub fn export_sqlite(names: &[String], file: &Path, json: bool, at: &Data) -> Result<Answer, Refused> {
    let engine = data::look(&data::folder(at, None))?;
    let runs = match names {
        [] => engine.runs(&Query::default())?.into_iter().rev().map(|row| row.run).collect(),
        names => found(&engine, names)?,
    };
    let Tables { file, workflows, workflow_steps } = export_tables(&engine, &runs, file)?;
    Ok(match json {
        true => {
            let object = json!({"file": file, "workflows": workflows, "workflow_steps": workflow_steps});
            Answer::json(Exit::Done, &object)
        }
        false => {
            let rows = [count(workflows, "run"), count(workflow_steps, "transition")].join(" and ");
            let stdout = format!("{rows} written to {}\n", clean(&file.display().to_string()));
            Answer { stdout, ..Answer::new(Exit::Done) }
        }
    })
}

/// The runs with these names, each once. Windlass finds all of them before it writes the first.
fn found(engine: &Engine, names: &[String]) -> Result<Vec<RunId>, Error> {
    let mut runs = names.iter().map(|name| engine.find(name)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = std::collections::HashSet::new();
    runs.retain(|run| seen.insert(run.clone()));
    Ok(runs)
}

pub fn import(folder: &Path, json: bool, at: &Data) -> Result<Answer, Refused> {
    let from = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // Check first, so that a mistake does not create a data folder.
    if let Err(error) = std::fs::read_dir(&from) {
        return Err(Error::Export { folder: from, cause: error.to_string() }.into());
    }
    let imported = call(&data::folder(at, None), ImportRuns { folder: from })?;
    Ok(answer(&imported, json, "imported from"))
}

fn answer(carried: &CarriedRuns, json: bool, done: &str) -> Answer {
    let refused = carried.items.iter().any(|run| run.error.is_some());
    let mut answer = Answer::new(if refused { Exit::Refused } else { Exit::Done });
    if json {
        return Answer::json(answer.status, carried);
    }
    for CarriedRun { folder, run_id, events, error } in &carried.items {
        let folder = clean(&folder.display().to_string()).into_owned();
        if let Some(run) = run_id {
            answer.stdout += &format!("{run}: {events} events {done} {folder}\n");
        }
        if let Some(refusal) = error {
            answer.stderr += &format!("error[{}]: {}\n", refusal.code, clean(&refusal.message));
        }
    }
    answer
}
