//! `windlass doctor`: checks a data folder.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::show::Screen;
use crate::show::words::{clean, count, one_line};
use crate::{args, data};
use windlass_api::operations::{CheckData, DataReport, RepairData};

pub fn run(args: &args::Doctor, screen: &Screen) -> Result<Answer, Refused> {
    let folder = data::folder(&args.data, None);
    let repair = RepairData {
        rebuild: args.rebuild,
        accept_older: args.accept_older,
        renew_limits: args.renew_limits,
    };
    let report = match args.rebuild || args.accept_older || args.renew_limits {
        true => call(&folder, repair)?,
        false => call(&folder, CheckData {})?,
    };
    let exit = if report.healthy { Exit::Done } else { Exit::Failed };
    Ok(match args.json {
        true => Answer::json(exit, &report),
        false => Answer { stdout: page(&report, screen), stderr: repaired(args), status: exit },
    })
}

fn repaired(args: &args::Doctor) -> String {
    let done = [
        (args.accept_older, "accepted this state of the journal\n"),
        (args.renew_limits, "reset the limits\n"),
        (args.rebuild, "rebuilt the lists of runs\n"),
    ];
    done.into_iter().filter(|(asked, _)| *asked).map(|(_, line)| line).collect()
}

fn page(report: &DataReport, screen: &Screen) -> String {
    let mut page = String::new();
    for finding in &report.findings {
        let place = match &finding.run_id {
            Some(run) => format!("run {run}"),
            None => finding.place.clone(),
        };
        page += &format!(
            "{} {}[{}]: {}\n  help: {}\n",
            if screen.unicode { "✗" } else { "x" },
            screen.bold(&place),
            finding.code,
            clean(&one_line(&finding.message)),
            finding.help
        );
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let checked = [
        count(report.runs, "run"),
        count(number(report.records), "record"),
        count(report.plans, "plan"),
        count(report.values, "large value"),
    ];
    let verdict = match report.findings.len() {
        0 => "no damage found".to_owned(),
        found => count(found, "problem"),
    };
    page + &format!("{}: {verdict}\n", checked.join(", "))
}
