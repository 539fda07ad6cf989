//! `windlass limits`: the limits that runs share.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::show::Screen;
use crate::show::words::one_line;
use crate::{args, data};
use windlass_api::operations::GetLimits;
use windlass_api::types::{Limits, Slot};

pub fn run(args: &args::Limits, screen: &Screen) -> Result<Answer, Refused> {
    let limits = call(&data::folder(&args.data, None), GetLimits::default())?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &limits),
        false => Answer { stdout: page(&limits, screen), ..Answer::new(Exit::Done) },
    })
}

fn page(limits: &Limits, screen: &Screen) -> String {
    let mut page = String::new();
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            page += &format!("{}\n{}", screen.bold(title), lines.concat());
        }
    };
    section("Slots", limits.slots.iter().map(slot).collect());
    let rates = limits
        .rates
        .iter()
        .map(|rate| format!("  {}: full again at {}\n", one_line(&rate.key), rate.full_at));
    section("Rates", rates.collect());
    let keys = limits.keys.iter().map(|key| {
        let name = one_line(&key.key);
        match (&key.run_id, &key.until) {
            (Some(run), _) => {
                format!("  {name}: run {run}{} is working on it\n", step(key.step.as_deref()))
            }
            (None, Some(until)) => format!("  {name}: done, used until {until}\n"),
            (None, None) => format!("  {name}: done\n"),
        }
    });
    section("Keys", keys.collect());
    let subscriptions = limits.subscriptions.iter().map(|subscription| {
        let step = step(subscription.step.as_deref());
        format!("  {}: run {}{step}\n", one_line(&subscription.name), subscription.run_id)
    });
    section("Subscriptions", subscriptions.collect());
    if page.is_empty() { "no limits are in use\n".to_owned() } else { page }
}

fn slot(slot: &Slot) -> String {
    let limit = slot.limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let mut lines = format!("  {}: {}{limit} in use\n", one_line(&slot.key), slot.holders.len());
    for holder in &slot.holders {
        let since = holder.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
        lines += &format!("    + {}{}{since}\n", holder.run_id, step(holder.step.as_deref()));
    }
    for waiter in &slot.waiting {
        lines += &format!("    ? {}{} since {}\n", waiter.run_id, step(waiter.step.as_deref()), waiter.since);
    }
    lines
}

fn step(step: Option<&str>) -> String {
    step.map(|step| format!(" {}", one_line(step))).unwrap_or_default()
}
