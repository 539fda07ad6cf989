//! `windlass doctor`: the state of a data folder.

use super::{block_on, refused};
use crate::answer::{Answer, Status, remark};
use crate::show::Screen;
use crate::show::words::{clean, count, one_line};
use crate::{args, data};
use std::path::Path;
use windlass_dialects::DIALECTS;
use windlass_runtime::{Checkup, Door, Error, accept_older, examine, rebuild, renew_limits};

pub fn run(args: &args::Doctor, screen: &Screen) -> Answer {
    let folder = data::folder(&args.data, None);
    let examined = mend(args, &folder).and_then(|done| Ok((done, examine(&folder, DIALECTS)?)));
    match examined {
        Ok((_, checkup)) if args.json => match serde_json::to_value(&checkup) {
            Ok(json) => Answer::json(status(&checkup), &json),
            Err(error) => Answer::bug(&error),
        },
        Ok((done, checkup)) => {
            Answer { stdout: page(&checkup, screen), stderr: done, status: status(&checkup) }
        }
        Err(error) => refused(&error),
    }
}

fn status(checkup: &Checkup) -> Status {
    if checkup.healthy { Status::Done } else { Status::Failed }
}

/// Does what was asked for, and says so.
fn mend(args: &args::Doctor, folder: &Path) -> Result<String, Error> {
    let mut done = String::new();
    if args.accept_older {
        accept_older(folder, DIALECTS)?;
        done += "this state of the journal is accepted\n";
    }
    if args.renew_limits {
        renew_limits(folder, DIALECTS)?;
        done += "the limits were reset\n";
    }
    if args.rebuild {
        let owner = block_on(folder, Door::of_owner(folder, remark))?;
        match owner {
            Some(owner) => block_on(folder, owner.rebuild())?,
            None => rebuild(folder, DIALECTS)?,
        }
        done += "the lists of runs were rebuilt\n";
    }
    Ok(done)
}

fn page(checkup: &Checkup, screen: &Screen) -> String {
    let mut page = String::new();
    for finding in &checkup.findings {
        let place = match &finding.run_id {
            Some(run) => format!("run {run}"),
            None => finding.place.clone(),
        };
        page += &format!(
            "{} {}[{}]: {}\n  {}\n",
            if screen.unicode { "✗" } else { "x" },
            screen.bold(&place),
            finding.code,
            clean(&one_line(&finding.message)),
            finding.help
        );
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let looked = [
        count(checkup.runs, "run"),
        count(number(checkup.records), "record"),
        count(checkup.plans, "plan"),
        count(checkup.values, "large value"),
    ];
    let verdict = match checkup.findings.len() {
        0 => "all is well".to_owned(),
        found => count(found, "finding"),
    };
    page + &format!("{}: {verdict}\n", looked.join(", "))
}
