//! Runs as two tables of a SQLite file, for programs that query them: a row for each run, and one for each transition of a step.

use crate::report::{Report, transitions};
use rusqlite::Connection;
use serde::Serialize;
use std::path::{Path, PathBuf};
use windlass_runtime::{Engine, Error, RunId, private};

/// The columns are a contract with programs that query them; `status` is the word of the dialect. Times are RFC 3339 in UTC.
const TABLES: &str = "
    CREATE TABLE workflows (workflow_id TEXT PRIMARY KEY, root_job_id TEXT NOT NULL, spec_json TEXT NOT NULL,
        inputs_json TEXT NOT NULL, status TEXT NOT NULL, current_step_id TEXT, step_outputs_json TEXT NOT NULL,
        created_at TEXT, completed_at TEXT);
    CREATE TABLE workflow_steps (workflow_id TEXT NOT NULL REFERENCES workflows, step_id TEXT NOT NULL,
        status TEXT NOT NULL, attempt INTEGER NOT NULL, result_json TEXT, updated_at TEXT NOT NULL);
    CREATE INDEX workflow_steps_by_workflow ON workflow_steps (workflow_id, step_id);";

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tables {
    pub file: PathBuf,
    /// How many rows each table has.
    pub workflows: usize,
    pub workflow_steps: usize,
}

/// Writes runs into a new SQLite file. It appears under its name when it is complete.
pub fn export_tables(engine: &Engine, runs: &[RunId], file: &Path) -> Result<Tables, Error> {
    if file.exists() {
        return Err(bad(file, "it exists already: remove it, or choose another name"));
    }
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    // One that an earlier export left behind.
    drop(std::fs::remove_file(&partial));
    let written = write_tables(engine, runs, &partial).and_then(|steps| {
        std::fs::rename(&partial, file).map_err(|error| bad(file, &error.to_string()))?;
        Ok(Tables { file: file.to_owned(), workflows: runs.len(), workflow_steps: steps })
    });
    if written.is_err() {
        // The error that matters is already known.
        drop(std::fs::remove_file(&partial));
    }
    written
}

fn write_tables(engine: &Engine, runs: &[RunId], file: &Path) -> Result<usize, Error> {
    private::create(file).map_err(|error| bad(file, &error.to_string()))?;
    let failed = |error: rusqlite::Error| bad(file, &error.to_string());
    let mut database = Connection::open(file).map_err(failed)?;
    let transaction = database.transaction().map_err(failed)?;
    transaction.execute_batch(TABLES).map_err(failed)?;
    let mut steps = 0;
    for run in runs {
        let (stored, program) = (engine.stored_plan(run)?, engine.program(run)?);
        let events = engine.events(run)?;
        let (view, transitions) = transitions(engine.dialects(), run, program, &events)
            .map_err(|cause| Error::contradictory(run, cause))?;
        let shown = Report::of(engine, run, &view).run();
        let done = shown.steps.iter().filter(|(_, step)| !step.output.is_null());
        let outputs: serde_json::Map<_, _> =
            done.map(|(id, step)| (id.clone(), step.output.clone())).collect();
        transaction
            .execute(
                "INSERT INTO workflows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                (
                    run.as_str(),
                    shown.root_run_id,
                    stored.plan,
                    shown.inputs.to_string(),
                    shown.dialect_status,
                    shown.current_step,
                    serde_json::Value::from(outputs).to_string(),
                    view.started_at().map(|at| at.to_string()),
                    view.ended_at().map(|at| at.to_string()),
                ),
            )
            .map_err(failed)?;
        for it in &transitions {
            let result = (!it.result.is_null()).then(|| it.result.to_string());
            let row = (run.as_str(), &it.step, it.status, it.attempt, result, it.at.to_string());
            transaction
                .execute("INSERT INTO workflow_steps VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row)
                .map_err(failed)?;
        }
        steps += transitions.len();
    }
    transaction.commit().map_err(failed)?;
    database.close().map_err(|(_, error)| failed(error))?;
    Ok(steps)
}

fn bad(file: &Path, cause: &str) -> Error {
    Error::Export { folder: file.to_owned(), cause: cause.to_owned() }
}
