//! `windlass limits`: what runs share.

use super::refused;
use crate::answer::{Answer, Status};
use crate::show::Screen;
use crate::show::words::one_line;
use crate::{args, data};
use serde_json::Value as Json;
use windlass_runtime::{Clock, report};

pub fn run(args: &args::Limits, screen: &Screen) -> Answer {
    let folder = data::folder(&args.data, None);
    let state = data::look(&folder).and_then(|engine| engine.shared());
    let limits = match state {
        Ok(state) => report::limits(&state, Clock::Real.now()),
        Err(error) => return refused(&error),
    };
    match args.json {
        true => Answer::json(Status::Done, &limits),
        false => Answer { stdout: page(&limits, screen), ..Answer::new(Status::Done) },
    }
}

fn page(limits: &Json, screen: &Screen) -> String {
    let mut page = String::new();
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            page += &format!("{}\n{}", screen.bold(title), lines.concat());
        }
    };
    let list = |name: &str| limits[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Json| one_line(value.as_str().unwrap_or_default());
    let slots = list("slots");
    let slots = slots.iter().map(|slot| {
        let limit = slot["limit"].as_u64().map(|limit| format!(" of {limit}")).unwrap_or_default();
        let held = slot["holders"].as_array().map_or(0, Vec::len);
        let mut lines = format!("  {}: {held}{limit} taken\n", text(&slot["key"]));
        for (mark, who) in [("+", "holders"), ("?", "waiting")] {
            for asker in slot[who].as_array().into_iter().flatten() {
                let step = asker["step"].as_str().map(one_line).unwrap_or_default();
                lines +=
                    &format!("    {mark} {}{step} since {}\n", text(&asker["run"]), text(&asker["since"]));
            }
        }
        lines
    });
    section("Slots", slots.collect());
    let rates = list("rates");
    let rates = rates
        .iter()
        .map(|rate| format!("  {}: full again at {}\n", text(&rate["key"]), text(&rate["whole_at"])));
    section("Rates", rates.collect());
    let keys = list("keys");
    let keys = keys.iter().map(|key| match key["state"].as_str() {
        Some("pending") => {
            format!("  {}: {}{} is working on it\n", text(&key["key"]), text(&key["run"]), text(&key["step"]))
        }
        _ => {
            let until = key["until"].as_str().map(|until| format!(" until {until}")).unwrap_or_default();
            format!("  {}: done{until}\n", text(&key["key"]))
        }
    });
    section("Keys", keys.collect());
    let budgets = list("budgets");
    let budgets = budgets.iter().map(|budget| {
        let spent = &budget["spent"];
        format!(
            "  {}: {} tokens, {} usd, {} calls, {} seconds\n",
            text(&budget["key"]),
            spent["tokens"],
            spent["usd"],
            spent["calls"],
            spent["seconds"]
        )
    });
    section("Budgets", budgets.collect());
    let subscriptions = list("subscriptions");
    let subscriptions = subscriptions.iter().map(|subscription| {
        format!(
            "  {}: {}{}\n",
            text(&subscription["name"]),
            text(&subscription["run"]),
            text(&subscription["step"])
        )
    });
    section("Subscriptions", subscriptions.collect());
    let firings = list("firings");
    let firings = firings.iter().map(|firing| {
        let next = firing["next"].as_str().map(|next| format!(", next {next}")).unwrap_or_default();
        format!("  {}: last due {}{next}\n", text(&firing["trigger"]), text(&firing["last"]))
    });
    section("Triggers", firings.collect());
    if page.is_empty() { "no limit is in use\n".to_owned() } else { page }
}
