//! `windlass budgets`: caps and spending.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::args::BudgetCommand;
use crate::show::Screen;
use crate::{args, data};
use windlass_api::operations::{ListBudgets, SetBudget};
use windlass_api::types::{Amounts, Budget};
use windlass_api::{Code, Refusal};
use windlass_ir::Duration;

pub fn run(args: args::Budgets, screen: &Screen) -> Result<Answer, Refused> {
    let folder = match &args.command {
        // Caps can be set before the first run.
        Some(BudgetCommand::Set { .. }) => data::folder(&args.data, None),
        Some(BudgetCommand::Reset { .. }) => data::existing(&args.data)?,
        Some(BudgetCommand::Show { .. }) | None => data::listed(&args.data),
    };
    let (done, request) = match args.command {
        None => return list(&folder, None, args.json, screen),
        Some(BudgetCommand::Show { budget }) => return list(&folder, budget, args.json, screen),
        Some(BudgetCommand::Set { budget, tokens, usd, calls, time, zone }) => {
            let seconds = time.as_deref().map(seconds).transpose()?;
            let cap = Some(Amounts { tokens, usd, calls, seconds });
            ("set", SetBudget { key: budget, cap, zone, reset: false })
        }
        Some(BudgetCommand::Reset { budget }) => {
            ("reset", SetBudget { key: budget, cap: None, zone: None, reset: true })
        }
    };
    let budget = call(&folder, request)?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &budget),
        false => Answer { stderr: format!("{done}: {}\n", budget.key), ..Answer::new(Exit::Done) },
    })
}

fn seconds(text: &str) -> Result<f64, Refusal> {
    let length = Duration::parse(text).ok_or_else(|| {
        let refusal = Refusal::new(Code::BadBudget, format!("invalid duration `{text}`")).field("time");
        refusal.help("write a duration such as 3h")
    });
    Ok(length?.as_secs_f64())
}

fn list(
    folder: &std::path::Path,
    key: Option<String>,
    json: bool,
    screen: &Screen,
) -> Result<Answer, Refused> {
    let budgets = call(folder, ListBudgets { key })?;
    Ok(match json {
        true => Answer::json(Exit::Done, &budgets),
        false if budgets.items.is_empty() => {
            Answer { stderr: "no budgets have caps or spending\n".into(), ..Answer::new(Exit::Done) }
        }
        false => {
            let stdout = budgets.items.iter().map(|budget| page(budget, screen)).collect();
            Answer { stdout, ..Answer::new(Exit::Done) }
        }
    })
}

fn page(budget: &Budget, screen: &Screen) -> String {
    let mut page = format!("{}\n", screen.bold(&budget.key));
    let cap = budget.cap.clone().unwrap_or_default();
    let number = |count: Option<u64>| count.map(|count| count as f64);
    let rows = [
        ("tokens", number(cap.tokens), number(budget.spent.tokens), number(budget.reserved.tokens)),
        ("usd", cap.usd, budget.spent.usd, budget.reserved.usd),
        ("calls", number(cap.calls), number(budget.spent.calls), number(budget.reserved.calls)),
        ("seconds", cap.seconds, budget.spent.seconds, budget.reserved.seconds),
    ];
    for (what, cap, spent, reserved) in rows {
        let (spent, reserved) = (spent.unwrap_or_default(), reserved.unwrap_or_default());
        if cap.is_none() && spent == 0.0 && reserved == 0.0 {
            continue;
        }
        let cap = cap.map_or_else(|| "no cap".to_owned(), |cap| format!("of {cap}"));
        let reserved = if reserved > 0.0 { format!(", {reserved} reserved") } else { String::new() };
        page += &format!("  {what:<8} {spent} {cap}{reserved}\n");
    }
    if let Some(window) = &budget.window {
        let ends = window.ends_at.as_deref().unwrap_or_default();
        page += &format!("  resets at {ends} ({})\n", window.zone);
    }
    page
}
