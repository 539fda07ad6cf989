//! `windlass desk`: what runs share.

use super::refused;
use crate::answer::{Answer, Status};
use crate::show::Screen;
use crate::show::words::one_line;
use crate::{args, data};
use serde_json::Value as Json;
use windlass_runtime::{Clock, Engine, report};

pub fn run(args: &args::Desk, screen: &Screen) -> Answer {
    let folder = data::folder(&args.data, None);
    let state = Engine::look(&folder).and_then(|engine| engine.shared());
    let desk = match state {
        Ok(state) => report::desk(&state, Clock::Real.now()),
        Err(error) => return refused(&error),
    };
    match args.json {
        true => Answer::json(Status::Done, &desk),
        false => Answer { stdout: page(&desk, screen), ..Answer::new(Status::Done) },
    }
}

fn page(desk: &Json, screen: &Screen) -> String {
    let mut page = String::new();
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            page += &format!("{}\n{}", screen.bold(title), lines.concat());
        }
    };
    let list = |name: &str| desk[name].as_array().cloned().unwrap_or_default();
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
    section("Places", slots.collect());
    let rates = list("rates");
    let rates = rates
        .iter()
        .map(|rate| format!("  {}: whole again at {}\n", text(&rate["key"]), text(&rate["whole_at"])));
    section("Rates", rates.collect());
    let promises = list("promises");
    let promises = promises.iter().map(|promise| match promise["state"].as_str() {
        Some("pending") => {
            format!(
                "  {}: {}{} does it\n",
                text(&promise["key"]),
                text(&promise["run"]),
                text(&promise["step"])
            )
        }
        _ => {
            let until = promise["until"].as_str().map(|until| format!(" until {until}")).unwrap_or_default();
            format!("  {}: done{until}\n", text(&promise["key"]))
        }
    });
    section("Promises", promises.collect());
    let accounts = list("accounts");
    let accounts = accounts.iter().map(|account| {
        let spent = &account["spent"];
        format!(
            "  {}: {} tokens, {} usd, {} calls, {} seconds\n",
            text(&account["account"]),
            spent["tokens"],
            spent["usd"],
            spent["calls"],
            spent["seconds"]
        )
    });
    section("Accounts", accounts.collect());
    let listeners = list("listeners");
    let listeners = listeners.iter().map(|listener| {
        format!("  {}: {}{}\n", text(&listener["name"]), text(&listener["run"]), text(&listener["step"]))
    });
    section("Listeners", listeners.collect());
    let fires = list("fires");
    let fires = fires.iter().map(|fire| {
        let next = fire["next"].as_str().map(|next| format!(", next {next}")).unwrap_or_default();
        format!("  {}: last due {}{next}\n", text(&fire["trigger"]), text(&fire["last"]))
    });
    section("Triggers", fires.collect());
    if page.is_empty() { "nothing is shared at the moment\n".to_owned() } else { page }
}
