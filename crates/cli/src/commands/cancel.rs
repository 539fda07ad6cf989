//! `windlass cancel`: stops one run for good, or all that a filter means.

use super::decide::{Told, told_in};
use super::{refused, several};
use crate::answer::{Answer, Status};
use crate::{args, data};
use serde_json::{Value as Json, json};
use windlass_runtime::{Error, Order, RunId};

pub fn run(args: &args::Cancel) -> Answer {
    match cancelled(args) {
        Ok(answer) => answer,
        Err(error) => refused(&error),
    }
}

fn cancelled(args: &args::Cancel) -> Result<Answer, Error> {
    let folder = data::folder(&args.data, None);
    let engine = data::look(&folder)?;
    let rows = match &args.run {
        Some(name) => {
            let run = engine.find(name)?;
            engine
                .runs(&windlass_runtime::Query { prefix: run.to_string(), ..Default::default() })?
                .into_iter()
                .filter(|row| row.run == run)
                .collect()
        }
        None => several::meant(&engine, &args.filter, |row| row.row.ended_at.is_none())?,
    };
    drop(engine);
    if args.several.dry_run {
        let would: Vec<Json> =
            rows.iter().map(|row| json!({"run_id": row.run, "done": "would_cancel"})).collect();
        return Ok(match args.json {
            true => Answer::json(Status::Done, &would.into()),
            false if rows.is_empty() => {
                Answer { stderr: "no such runs\n".into(), ..Answer::new(Status::Done) }
            }
            false => Answer {
                stdout: several::list(&rows),
                stderr: "would be cancelled\n".into(),
                ..Answer::new(Status::Done)
            },
        });
    }
    if rows.is_empty() {
        return Ok(answer(&[], args.json));
    }
    if args.run.is_none()
        && let Err(answer) = several::agreed("cancel", &rows, &args.several)
    {
        return Ok(answer);
    }
    let by = data::login(args.by.clone());
    let order = || Order::Cancel { why: args.reason.clone(), by: by.clone() };
    let mut told: Vec<(RunId, Result<Told, Error>)> = Vec::new();
    for row in rows {
        let done = told_in(&folder, &row.run, order());
        told.push((row.run, done));
    }
    Ok(answer(&told, args.json))
}

/// What became of each. A run that has ended meanwhile is no reason to leave the others.
fn answer(told: &[(RunId, Result<Told, Error>)], json: bool) -> Answer {
    let failed = told.iter().any(|(_, done)| done.is_err());
    let status = if failed { Status::Refused } else { Status::Done };
    if json {
        let lines: Vec<Json> = told
            .iter()
            .map(|(run, done)| match done {
                Ok(_) => json!({"run_id": run, "done": "cancelled"}),
                Err(error) => {
                    json!({"run_id": run, "done": "refused", "error": {"code": error.code(), "message": error.to_string()}})
                }
            })
            .collect();
        return Answer::json(status, &lines.into());
    }
    let line = |(_, done): &(RunId, Result<Told, Error>)| match done {
        Ok(told) => format!("cancelled: {}\n", told.words()),
        Err(error) => refused(error).stderr,
    };
    let stderr = if told.is_empty() { "no such runs\n".to_owned() } else { told.iter().map(line).collect() };
    Answer { stderr, ..Answer::new(status) }
}
