//! `windlass gc`: removes finished runs and what belongs to none.

use super::{block_on, refused};
use crate::answer::{Answer, Status, remark};
use crate::show::Screen;
use crate::show::words::{bytes, count, one_line};
use crate::{args, data};
use windlass_dialects::DIALECTS;
use windlass_ir::Duration;
use windlass_runtime::{Door, Durability, Sweep, Swept};

pub fn run(args: args::Gc, screen: &Screen) -> Answer {
    let older_than = match args.older_than.as_deref().map(|text| (text, Duration::parse(text))) {
        Some((text, None)) => {
            let stderr = format!("error[bad_duration]: `{}` is no duration such as 30d\n", one_line(text));
            return Answer { stderr, ..Answer::new(Status::Refused) };
        }
        Some((_, age)) => age,
        None => None,
    };
    let folder = data::folder(&args.data, None);
    if !folder.join("journal.db").exists() {
        let missing = windlass_runtime::StoreError::Missing { folder: folder.display().to_string() };
        return refused(&missing.into());
    }
    let dry_run = args.dry_run;
    let sweep = Sweep { older_than, keep: args.keep, statuses: args.statuses, dry_run };
    let swept = block_on(&folder, async {
        Door::open(&folder, Durability::Disk, DIALECTS, remark).await?.sweep(sweep).await
    });
    match swept {
        Ok(swept) if args.json => match serde_json::to_value(&swept) {
            Ok(json) => Answer::json(Status::Done, &json),
            Err(error) => Answer::bug(&error),
        },
        Ok(swept) => Answer {
            stdout: listed(&swept, screen),
            stderr: told(&swept, dry_run),
            ..Answer::new(Status::Done)
        },
        Err(error) => refused(&error),
    }
}

/// The runs that went, one a line.
fn listed(swept: &Swept, screen: &Screen) -> String {
    let line = |run: &windlass_runtime::SweptRun| {
        let ended = run.ended_at.as_deref().and_then(|at| at.get(..19)).unwrap_or_default().replace('T', " ");
        format!(
            "{}  {ended}  {:<9}  {}\n",
            screen.bold(run.run_id.as_str()),
            run.status,
            one_line(&run.workflow)
        )
    };
    swept.runs.iter().map(line).collect()
}

fn told(swept: &Swept, dry_run: bool) -> String {
    let mut told = String::new();
    for kept in &swept.kept {
        told += &format!("run {} stays: {}\n", kept.run_id, one_line(&kept.because));
    }
    if swept.damaged {
        told += "large values and artifacts stay, since the journal is damaged: see `windlass doctor`\n";
    }
    let parts = [
        count(swept.runs.len(), "run"),
        count(swept.plans, "plan"),
        format!("{} ({})", count(swept.values, "large value"), bytes(swept.value_bytes)),
        format!("{} ({})", count(swept.artifacts, "artifact"), bytes(swept.artifact_bytes)),
        count(swept.logs, "log"),
    ];
    told += &format!("{}: {}\n", if dry_run { "would go" } else { "removed" }, parts.join(", "));
    if !dry_run && swept.journal_bytes > 0 {
        told += &format!("the journal is smaller by {}\n", bytes(swept.journal_bytes));
    } else if !dry_run && swept.free_bytes > 0 && !swept.runs.is_empty() {
        told += &format!("{} of the journal are free for new records\n", bytes(swept.free_bytes));
    }
    told
}
