//! `windlass diff`: two runs beside each other: what they were given, what they ran, what became of it.

use super::refused;
use crate::answer::{Answer, Status};
use crate::show::Screen;
use crate::show::words::{clean, count, one_line, shorten};
use crate::{args, data};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use windlass_dialects::Dialect;
use windlass_ir::Plan;
use windlass_ir::plan::Parameters;
use windlass_runtime::{Engine, Error, RunId};

pub fn run(args: &args::Diff, screen: &Screen) -> Answer {
    let compared = || -> Result<Json, Error> {
        let engine = data::look(&data::folder(&args.data, None))?;
        let [before, after] = [engine.find(&args.before)?, engine.find(&args.after)?];
        Ok(compare(&side(&engine, &before)?, &side(&engine, &after)?))
    };
    match compared() {
        Ok(diff) if args.json => Answer::json(Status::Done, &diff),
        Ok(diff) => Answer { stdout: page(&diff, screen), ..Answer::new(Status::Done) },
        Err(error) => refused(&error),
    }
}

/// A run, and what it is a run of.
struct Side {
    result: Json,
    plan: Arc<Plan>,
}

fn side(engine: &Engine, run: &RunId) -> Result<Side, Error> {
    let view = engine.view(run)?;
    Ok(Side { result: engine.report(run, &view).result(), plan: view.program().plan.clone() })
}

fn compare(before: &Side, after: &Side) -> Json {
    let about = |side: &Side| {
        json!({
            "run_id": side.result["run_id"],
            "workflow": side.result["workflow"],
            "status": side.result["status"],
            "digest": side.plan.digest,
        })
    };
    json!({
        "type": "diff",
        "before": about(before),
        "after": about(after),
        "inputs": members(&before.result["inputs"], &after.result["inputs"]),
        "plan": plans(&before.plan, &after.plan),
        "outputs": members(&before.result["outputs"], &after.result["outputs"]),
        "error": pair(&before.result["error"], &after.result["error"]),
        "steps": steps(&before.result["steps"], &after.result["steps"]),
    })
}

/// What is different in two objects, by name; or the two, where one is no object.
fn members(before: &Json, after: &Json) -> Json {
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => {
            let differ = names(before, after).filter_map(|name| {
                let changed =
                    pair(before.get(name).unwrap_or(&Json::Null), after.get(name).unwrap_or(&Json::Null));
                (!changed.is_null()).then(|| (name.clone(), changed))
            });
            Json::Object(differ.collect())
        }
        (before, after) if before == after => json!({}),
        (before, after) => json!({"": {"before": before, "after": after}}),
    }
}

/// The names in either, in their order, each once.
fn names<'j>(
    before: &'j Map<String, Json>,
    after: &'j Map<String, Json>,
) -> impl Iterator<Item = &'j String> {
    before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)))
}

/// Both, if they differ.
fn pair(before: &Json, after: &Json) -> Json {
    if before == after { Json::Null } else { json!({"before": before, "after": after}) }
}

/// Which steps of two plans differ, and in what.
fn plans(before: &Plan, after: &Plan) -> Json {
    if before.digest == after.digest {
        return json!({"same": true, "steps": {}, "around": []});
    }
    let (old, new) = (described(before, after), described(after, before));
    let empty = Map::new();
    let map = |json: &'_ Json| json.as_object().cloned().unwrap_or_else(|| empty.clone());
    let (old, new) = (map(&old), map(&new));
    let steps = names(&old, &new).filter_map(|name| {
        let change = match (old.get(name), new.get(name)) {
            (Some(_), None) => json!({"change": "removed", "fields": []}),
            (None, Some(_)) => json!({"change": "added", "fields": []}),
            (Some(before), Some(after)) if before != after => {
                let fields: Vec<String> = match members(before, after) {
                    Json::Object(fields) => fields.keys().cloned().collect(),
                    _ => Vec::new(),
                };
                json!({"change": "changed", "fields": fields})
            }
            (_, _) => return None,
        };
        Some((name.clone(), change))
    });
    let steps: Map<String, Json> = steps.collect();
    json!({"same": false, "steps": steps, "around": around(before, after)})
}

/// What is different in two plans outside of their steps.
fn around(before: &Plan, after: &Plan) -> Vec<String> {
    let bare = |plan: &Plan| {
        let mut json = serde_json::to_value(plan).unwrap_or_default();
        if let Json::Object(fields) = &mut json {
            ["steps", "roots", "digest"].iter().for_each(|field| drop(fields.shift_remove(*field)));
        }
        json
    };
    match members(&bare(before), &bare(after)) {
        Json::Object(fields) => fields.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// The steps of a plan by name. Where both plans list the same steps, all that is kept of them is compared; otherwise the numbers in
/// it mean others, and what people are shown of them is.
fn described(plan: &Plan, other: &Plan) -> Json {
    let names = plan.names();
    if names == other.names() {
        let steps = names.into_iter().zip(&plan.steps).filter(|(_, step)| !step.implicit);
        let whole = |step| serde_json::to_value(step).unwrap_or_default();
        return Json::Object(steps.map(|(name, step)| (name, whole(step))).collect());
    }
    let words = Dialect::by_name(&plan.dialect).unwrap_or(Dialect::Swdl).words();
    serde_json::to_value(&plan.outline(words, &Parameters::default()).steps).unwrap_or_default()
}

/// What became of the steps of either run, where that differs.
fn steps(before: &Json, after: &Json) -> Json {
    let empty = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let differ = names(before, after).map(|name| {
        let nothing = json!({"status": null});
        let (old, new) = (before.get(name).unwrap_or(&nothing), after.get(name).unwrap_or(&nothing));
        let fields = ["status", "attempts", "input", "output", "error", "skipped_because"];
        let mut changed: Map<String, Json> = Map::new();
        for field in fields {
            let both = pair(&old[field], &new[field]);
            if !both.is_null() {
                changed.insert(field.to_owned(), both);
            }
        }
        let same = changed.is_empty();
        let took = json!({"before": old["duration_seconds"], "after": new["duration_seconds"]});
        changed.insert("duration_seconds".to_owned(), took);
        changed.insert("same".to_owned(), same.into());
        (name.clone(), Json::Object(changed))
    });
    Json::Object(differ.collect())
}

fn page(diff: &Json, screen: &Screen) -> String {
    let text = |value: &Json| one_line(value.as_str().unwrap_or_default());
    let mut page = String::new();
    for (mark, side) in [("-", &diff["before"]), ("+", &diff["after"])] {
        let (run, workflow, status) = (text(&side["run_id"]), text(&side["workflow"]), text(&side["status"]));
        page += &format!("{mark} {}  {workflow}  {status}\n", screen.bold(&run));
    }
    page += "\n";
    page += &changes("Inputs", &diff["inputs"], screen);
    page += &plan_page(&diff["plan"], screen);
    page += &changes("Outputs", &diff["outputs"], screen);
    page + &steps_page(&diff["steps"], screen)
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
    let mut page = format!("{}: another\n", screen.bold("Plan"));
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
        page += &format!("  ~ around the steps: {around}\n");
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
        page += &format!("  and {} that went the same way\n", count(same.len(), "step"));
    }
    page
}

/// A value of a step, or those of its members that are different.
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

/// How long it took in either run.
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
