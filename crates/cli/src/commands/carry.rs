//! `windlass runs export` and `windlass runs import`: runs carried to another data folder.

use super::{block_on, refused};
use crate::answer::{Answer, Status, remark};
use crate::args::Data;
use crate::data;
use crate::show::words::{clean, count};
use serde_json::{Value as Json, json};
use std::path::Path;
use windlass_dialects::DIALECTS;
use windlass_runtime::{Carried, Door, Durability, Engine, Error, Query, RunId, Tables};

pub fn export(names: &[String], folder: &Path, json: bool, at: &Data) -> Answer {
    if names.is_empty() {
        let cause = "name the folder to write to after the runs, or a file with `--sqlite FILE`".to_owned();
        return refused(&Error::Export { folder: folder.to_owned(), cause });
    }
    let exported = || -> Result<Vec<Carried>, Error> {
        let engine = data::look(&data::folder(at, None))?;
        found(&engine, names)?.iter().map(|run| engine.export(run, folder)).collect()
    };
    match exported() {
        Ok(carried) => told(&carried, json, "written to"),
        Err(error) => refused(&error),
    }
}

/// Writes the named runs, or all, into a SQLite file.
pub fn export_tables(names: &[String], file: &Path, json: bool, at: &Data) -> Answer {
    let exported = || -> Result<Tables, Error> {
        let engine = data::look(&data::folder(at, None))?;
        let runs = match names {
            [] => engine.runs(&Query::default())?.into_iter().rev().map(|row| row.run).collect(),
            names => found(&engine, names)?,
        };
        engine.export_tables(&runs, file)
    };
    match exported() {
        Ok(tables) if json => Answer::json(
            Status::Done,
            &json!({
                "file": tables.file,
                "workflows": tables.workflows,
                "workflow_steps": tables.workflow_steps,
            }),
        ),
        Ok(Tables { file, workflows, workflow_steps }) => {
            let rows = [count(workflows, "run"), count(workflow_steps, "transition")].join(" and ");
            let stdout = format!("{rows} written to {}\n", clean(&file.display().to_string()));
            Answer { stdout, ..Answer::new(Status::Done) }
        }
        Err(error) => refused(&error),
    }
}

/// The runs with these names, each once. All are found before the first is written.
fn found(engine: &Engine, names: &[String]) -> Result<Vec<RunId>, Error> {
    let mut runs = names.iter().map(|name| engine.find(name)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = std::collections::HashSet::new();
    runs.retain(|run| seen.insert(run.clone()));
    Ok(runs)
}

pub fn import(folder: &Path, json: bool, at: &Data) -> Answer {
    let data = data::folder(at, None);
    let from = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // Looked at first, so that no data folder comes into being for nothing.
    if let Err(error) = std::fs::read_dir(&from) {
        return refused(&Error::Export { folder: from, cause: error.to_string() });
    }
    let imported = block_on(&data, async {
        Door::open(&data, Durability::Disk, DIALECTS, remark).await?.import(from).await
    });
    match imported {
        Ok(carried) => told(&carried, json, "taken over from"),
        Err(error) => refused(&error),
    }
}

fn told(carried: &[Carried], json: bool, done: &str) -> Answer {
    let is_refused = carried.iter().any(|run| run.refused.is_some());
    let mut answer = Answer::new(if is_refused { Status::Refused } else { Status::Done });
    if json {
        return Answer {
            status: answer.status,
            ..Answer::json(Status::Done, &carried.iter().map(as_json).collect())
        };
    }
    for Carried { folder, run, events, refused } in carried {
        let folder = clean(&folder.display().to_string()).into_owned();
        if let Some(run) = run {
            answer.stdout += &format!("{run}: {events} events {done} {folder}\n");
        }
        if let Some((code, message)) = refused {
            answer.stderr += &format!("error[{code}]: {}\n", clean(message));
        }
    }
    answer
}

fn as_json(carried: &Carried) -> Json {
    let error = carried.refused.as_ref().map(|(code, message)| json!({"code": code, "message": message}));
    json!({"run_id": carried.run, "folder": carried.folder, "events": carried.events, "error": error})
}
