//! `windlass diff`: compares two runs.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::show::Screen;
use crate::show::words::{clean, count, one_line, shorten};
use crate::{args, data};
use serde_json::Value as Json;
use windlass_api::operations::{DiffRuns, RunDiff, members};

pub fn run(args: &args::Diff, screen: &Screen) -> Result<Answer, Refused> {
    let folder = data::folder(&args.data, None);
    let engine = data::look(&folder)?;
    let [run_id, with] = [&args.before, &args.after].map(|name| engine.find(name).map(|run| run.to_string()));
    let diff = call(&folder, DiffRuns { run_id: run_id?, with: with? })?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &diff),
        false => Answer { stdout: page(&diff, screen), ..Answer::new(Exit::Done) },
    })
}

fn page(diff: &RunDiff, screen: &Screen) -> String {
    let mut page = String::new();
    for (mark, side) in [("-", &diff.before), ("+", &diff.after)] {
        let (run, workflow) = (screen.bold(&side.run_id), one_line(&side.workflow));
        page += &format!("{mark} {run}  {workflow}  {}\n", side.status);
    }
    page += "\n";
    page += &changes("Inputs", &diff.inputs, screen);
    page += &plan_page(&diff.plan, screen);
    page += &changes("Outputs", &diff.outputs, screen);
    page + &steps_page(&diff.steps, screen)
}

fn changes(title: &str, changed: &Json, screen: &Screen) -> String {
    let mut page = String::new();
    for (name, both) in changed.as_object().into_iter().flatten() {
        let name = if name.is_empty() { String::new() } else { format!("{}: ", one_line(name)) };
        for (mark, side) in [("-", "before"), ("+", "after")] {
            page += &format!("  {mark} {name}{}\n", value(&both[side]));
        }
    }
    match page.is_empty() {
        true => format!("{}: the same\n", screen.bold(title)),
        false => format!("{}:\n{page}", screen.bold(title)),
    }
}

fn value(value: &Json) -> String {
    shorten(&one_line(&value.to_string()), 200).into_owned()
}

fn plan_page(plan: &Json, screen: &Screen) -> String {
    if plan["same"] == true {
        return format!("{}: the same\n", screen.bold("Plan"));
    }
    let list = |value: &Json| {
        let words = value.as_array().into_iter().flatten().filter_map(Json::as_str);
        one_line(&words.collect::<Vec<_>>().join(", "))
    };
    let mut page = format!("{}: changed\n", screen.bold("Plan"));
    for (step, change) in plan["steps"].as_object().into_iter().flatten() {
        let (mark, what) = match change["change"].as_str() {
            Some("added") => ("+", String::new()),
            Some("removed") => ("-", String::new()),
            _ => ("~", format!(": {}", list(&change["fields"]))),
        };
        page += &format!("  {mark} {}{what}\n", clean(step));
    }
    let around = list(&plan["around"]);
    if !around.is_empty() {
        page += &format!("  ~ outside the steps: {around}\n");
    }
    page
}

fn steps_page(steps: &Json, screen: &Screen) -> String {
    let all: Vec<(&String, &Json)> = steps.as_object().into_iter().flatten().collect();
    let (same, differ): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, step)| step["same"] == true);
    let mut page = match differ.is_empty() {
        true => format!("{}: the same\n", screen.bold("Steps")),
        false => format!("{}:\n", screen.bold("Steps")),
    };
    for (id, step) in &differ {
        page += &format!("  {}{}\n", screen.bold(&clean(id)), took(&step["duration_seconds"]));
        for field in ["status", "attempts", "skipped_because", "input", "output", "error"] {
            if let Some(both) = step[field].as_object() {
                page += &changed(&field.replace('_', " "), &both["before"], &both["after"]);
            }
        }
    }
    if !same.is_empty() && !differ.is_empty() {
        page += &format!("  and {} with the same result\n", count(same.len(), "step"));
    }
    page
}

/// A value of a step, or only its members that differ.
fn changed(name: &str, before: &Json, after: &Json) -> String {
    let inside = match (before.is_object() && after.is_object(), members(before, after)) {
        (true, Json::Object(inside)) if !before.as_object().is_some_and(|map| map.contains_key("code")) => {
            inside
        }
        (_, _) => return format!("    {name}: {} -> {}\n", short(before), short(after)),
    };
    let lines = inside.iter().map(|(member, both)| {
        format!("    {name}.{}: {} -> {}\n", one_line(member), short(&both["before"]), short(&both["after"]))
    });
    lines.collect()
}

fn short(value: &Json) -> String {
    match value {
        Json::Null => "none".to_owned(),
        Json::String(text) => shorten(&one_line(text), 80).into_owned(),
        Json::Object(object) if object.contains_key("code") => {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            shorten(&one_line(&format!("{}: {}", text("code"), text("message"))), 80).into_owned()
        }
        other => shorten(&one_line(&other.to_string()), 80).into_owned(),
    }
}

/// The durations in both runs.
fn took(both: &Json) -> String {
    let seconds = |side: &str| both[side].as_f64().map(|seconds| format!("{seconds:.1}s"));
    match (seconds("before"), seconds("after")) {
        (None, None) => String::new(),
        (before, after) => {
            let or_not = |took: Option<String>| took.unwrap_or_else(|| "not at all".to_owned());
            format!("  ({} -> {})", or_not(before), or_not(after))
        }
    }
}
