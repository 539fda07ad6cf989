//! `windlass gc`: removes finished runs and unused data.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::show::Screen;
use crate::show::words::{bytes, count, one_line};
use crate::{args, data};
use windlass_api::operations::{CollectGarbage, GcReport, RemovedRun};
use windlass_api::{Code, Refusal};
use windlass_ir::Duration;
use windlass_runtime::{Error, StoreError};

pub fn run(args: args::Gc, screen: &Screen) -> Result<Answer, Refused> {
    let older_than_seconds = args.older_than.as_deref().map(age).transpose()?;
    let folder = data::folder(&args.data, None);
    // Without a folder there is nothing to remove, and none is created.
    if !folder.join("journal.db").exists() {
        return Err(Error::from(StoreError::Missing { folder: folder.display().to_string() }).into());
    }
    let dry_run = args.dry_run;
    let report =
        call(&folder, CollectGarbage { status: args.status, older_than_seconds, keep: args.keep, dry_run })?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &report),
        false => Answer {
            stdout: report.runs.iter().map(|run| line(run, screen)).collect(),
            stderr: summary(&report, dry_run),
            ..Answer::new(Exit::Done)
        },
    })
}

fn age(text: &str) -> Result<f64, Refusal> {
    let length = Duration::parse(text).ok_or_else(|| {
        let refusal = Refusal::new(Code::BadRequest, format!("invalid duration `{}`", one_line(text)));
        refusal.field("older_than").help("write a duration such as 30d")
    });
    Ok(length?.as_secs_f64())
}

fn line(run: &RemovedRun, screen: &Screen) -> String {
    let ended = run.ended_at.as_deref().and_then(|at| at.get(..19)).unwrap_or_default().replace('T', " ");
    format!("{}  {ended}  {:<9}  {}\n", screen.bold(&run.run_id), run.status, one_line(&run.workflow))
}

fn summary(report: &GcReport, dry_run: bool) -> String {
    let mut lines = String::new();
    for kept in &report.kept {
        lines += &format!("run {} stays: {}\n", kept.run_id, one_line(&kept.because));
    }
    if report.damaged {
        lines += "large values and artifacts stay because the journal is damaged: see `windlass doctor`\n";
    }
    let parts = [
        count(report.runs.len(), "run"),
        count(report.plans, "plan"),
        format!("{} ({})", count(report.values, "large value"), bytes(report.value_bytes)),
        format!("{} ({})", count(report.artifacts, "artifact"), bytes(report.artifact_bytes)),
        count(report.logs, "log"),
    ];
    lines += &format!("{}: {}\n", if dry_run { "would remove" } else { "removed" }, parts.join(", "));
    if !dry_run && report.journal_bytes > 0 {
        lines += &format!("the journal is {} smaller\n", bytes(report.journal_bytes));
    } else if !dry_run && report.free_bytes > 0 && !report.runs.is_empty() {
        lines += &format!("{} of the journal are free for new records\n", bytes(report.free_bytes));
    }
    lines
}
