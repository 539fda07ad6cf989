//! `windlass runs`: the runs of a data folder.

use super::{carry, logs, refused, show};
use crate::answer::{Answer, Status};
use crate::args::RunsCommand;
use crate::show::words::{one_line, shorten};
use crate::show::{Screen, Screens};
use crate::{args, data};
use serde_json::{Value as Json, json};
use windlass_runtime::{Error, RunRow, StoreError};

pub fn run(args: args::Runs, screens: &Screens) -> Answer {
    match args.command {
        Some(RunsCommand::Export { names, sqlite: Some(file), json, data }) => {
            carry::export_tables(&names, &file, json, &data)
        }
        Some(RunsCommand::Export { mut names, sqlite: None, json, data }) => {
            let folder = names.pop().unwrap_or_default();
            carry::export(&names, folder.as_ref(), json, &data)
        }
        Some(RunsCommand::Import { folder, json, data }) => carry::import(&folder, json, &data),
        None => one_or_all(args, screens),
    }
}

fn one_or_all(args: args::Runs, screens: &Screens) -> Answer {
    let args::Runs { json, data, .. } = args;
    match args.run {
        Some(run) if args.logs => logs::run(&args::Logs { run, step: None, follow: false, json, data }),
        Some(name) => show::run(&args::Show { name, at: None, all: false, json, data }, screens),
        None => list(&args::Runs { data, ..args }, &screens.stdout),
    }
}

fn list(args: &args::Runs, screen: &Screen) -> Answer {
    match rows(args) {
        Ok(rows) if args.json => Answer::json(Status::Done, &rows.iter().map(as_json).collect()),
        Ok(rows) if rows.is_empty() => {
            let none = if args.filter.is_empty() { "no runs\n" } else { "no such runs\n" };
            Answer { stderr: none.into(), ..Answer::new(Status::Done) }
        }
        Ok(rows) => {
            let width = rows.iter().map(|row| row.run.as_str().len()).max().unwrap_or_default();
            let lines = rows.iter().map(|row| line(row, width, screen));
            Answer { stdout: lines.collect(), ..Answer::new(Status::Done) }
        }
        Err(error) => refused(&error),
    }
}

fn rows(args: &args::Runs) -> Result<Vec<RunRow>, Error> {
    let folder = data::folder(&args.data, None);
    match data::look(&folder) {
        Ok(engine) => engine.runs(&args.filter.query(args.limit)),
        Err(Error::Store(StoreError::Missing { .. })) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn as_json(row: &RunRow) -> Json {
    json!({
        "run_id": row.run,
        "workflow": row.row.workflow,
        "dialect": row.row.dialect,
        "status": row.row.status,
        "dialect_status": row.row.dialect_status,
        "started_at": row.row.started_at.map(|at| at.to_string()),
        "ended_at": row.row.ended_at.map(|at| at.to_string()),
        "has_failures": row.row.has_failures,
        "waiting_on": row.row.waiting,
        "reason": reason(row),
        "failed_step": reason(row).and(row.row.failed_step.as_ref()),
        "damaged": row.broken.is_some(),
    })
}

fn line(row: &RunRow, width: usize, screen: &Screen) -> String {
    let started = row.row.started_at.map(|at| at.to_string()).unwrap_or_default();
    let started = started.get(..19).unwrap_or(&started).replace('T', " ");
    let waiting = row.row.waiting.join(", ");
    let step = row.row.failed_step.as_ref().map(|step| format!("{step}: ")).unwrap_or_default();
    let remark = match (reason(row), waiting.is_empty()) {
        _ if row.broken.is_some() => "damaged: see `windlass doctor`".to_owned(),
        (Some(reason), _) => shorten(&one_line(&(step + reason)), 100).into_owned(),
        (None, false) => one_line(&format!("waiting at {waiting}")),
        (None, true) => String::new(),
    };
    let text = format!(
        "{}{}  {started}  {:<11}  {}  {remark}",
        screen.bold(row.run.as_str()),
        " ".repeat(width.saturating_sub(row.run.as_str().len())),
        row.row.status,
        one_line(&row.row.workflow)
    );
    text.trim_end().to_owned() + "\n"
}

/// Why it has ended as it has.
fn reason(row: &RunRow) -> Option<&String> {
    row.row.reason.as_ref().filter(|_| row.row.ended_at.is_some())
}
