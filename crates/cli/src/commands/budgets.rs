//! `windlass budgets`: what may be spent, and what was.

use super::{block_on, refused};
use crate::answer::{Answer, Status, remark};
use crate::args::BudgetCommand;
use crate::show::Screen;
use crate::{args, data};
use serde_json::{Value as Json, json};
use windlass_dialects::DIALECTS;
use windlass_ir::Duration;
use windlass_ir::policy::Budget;
use windlass_runtime::{Clock, Door, Durability, Error, report};

pub fn run(args: args::Budgets, screen: &Screen) -> Answer {
    match args.command {
        None => show(&args.data, None, args.json, screen),
        Some(BudgetCommand::Show { budget }) => show(&args.data, budget.as_deref(), args.json, screen),
        Some(BudgetCommand::Set { budget, tokens, usd, calls, time, zone }) => {
            let time = match time.as_deref().map(|text| (text, Duration::parse(text))) {
                Some((text, None)) => return wrong(&format!("`{text}` is not a duration such as 3h")),
                Some((_, time)) => time,
                None => None,
            };
            if usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
                return wrong("an amount of money must be 0 or more");
            }
            if let Some(message) = unknown_budget(&budget) {
                return wrong(&message);
            }
            let zone = match (&*budget, zone) {
                ("day", zone) => Some(zone.unwrap_or_else(|| "UTC".to_owned())),
                (_, Some(_)) => return wrong("only the budget `day` has a zone"),
                (_, None) => None,
            };
            let micro_usd = usd.map(|usd| (usd * 1e6).round() as u64);
            let cap = Budget { tokens, micro_usd, calls, time };
            change(&args.data, &budget, Some(cap), zone, args.json)
        }
        Some(BudgetCommand::Reset { budget }) => change(&args.data, &budget, None, None, args.json),
    }
}

fn unknown_budget(budget: &str) -> Option<String> {
    let named = |kind: &str| budget.strip_prefix(kind).is_some_and(|name| !name.is_empty());
    let known = matches!(budget, "all" | "day") || named("workflow:") || named("run:");
    (!known).then(|| format!("unknown budget `{budget}`; there are `all`, `day`, `workflow:ID` and `run:ID`"))
}

fn wrong(message: &str) -> Answer {
    Answer { stderr: format!("error[bad_budget]: {message}\n"), ..Answer::new(Status::Refused) }
}

fn change(place: &args::Data, budget: &str, cap: Option<Budget>, zone: Option<String>, json: bool) -> Answer {
    let folder = data::folder(place, None);
    let done = if cap.is_some() { "set" } else { "reset" };
    let changed = block_on(&folder, async {
        Door::open(&folder, Durability::Disk, DIALECTS, remark)
            .await?
            .budget(budget.to_owned(), cap, zone)
            .await
    });
    match changed {
        Ok(()) if json => Answer::json(Status::Done, &json!({"key": budget})),
        Ok(()) => Answer { stderr: format!("{done}: {budget}\n"), ..Answer::new(Status::Done) },
        Err(error) => refused(&error),
    }
}

fn show(place: &args::Data, only: Option<&str>, json: bool, screen: &Screen) -> Answer {
    let budgets = || -> Result<Vec<Json>, Error> {
        let state = data::look(&data::folder(place, None))?.shared()?;
        let limits = report::limits(&state, Clock::Real.now());
        let all = limits["budgets"].as_array().cloned().unwrap_or_default();
        Ok(all.into_iter().filter(|budget| only.is_none_or(|only| budget["key"] == only)).collect())
    };
    match budgets() {
        Ok(budgets) if json => Answer::json(Status::Done, &Json::Array(budgets)),
        Ok(budgets) if budgets.is_empty() => Answer {
            stderr: "nothing was spent, and nothing has a cap\n".into(),
            ..Answer::new(Status::Done)
        },
        Ok(budgets) => {
            let stdout = budgets.iter().map(|budget| page(budget, screen)).collect();
            Answer { stdout, ..Answer::new(Status::Done) }
        }
        Err(error) => refused(&error),
    }
}

fn page(budget: &Json, screen: &Screen) -> String {
    let mut page = format!("{}\n", screen.bold(budget["key"].as_str().unwrap_or_default()));
    for what in ["tokens", "usd", "calls", "seconds"] {
        let number = |of: &str| budget[of][what].as_f64().unwrap_or_default();
        let cap = budget["cap"][what].as_f64();
        if cap.is_none() && number("spent") == 0.0 && number("reserved") == 0.0 {
            continue;
        }
        let cap = cap.map_or_else(|| "no cap".to_owned(), |cap| format!("of {cap}"));
        let reserved = match number("reserved") {
            0.0 => String::new(),
            reserved => format!(", {reserved} set aside"),
        };
        page += &format!("  {what:<8} {} {cap}{reserved}\n", number("spent"));
    }
    if let Some(ends) = budget["day_ends"].as_str() {
        page += &format!("  resets at {ends} ({})\n", budget["zone"].as_str().unwrap_or_default());
    }
    page
}
