//! `windlass show`: how a run stands, step by step.

use super::refused;
use crate::answer::{Answer, Status};
use crate::show::Screen;
use crate::show::fields::Fields;
use crate::show::words::{one_line, shorten};
use crate::{args, data};
use serde_json::Value as Json;

pub fn run(args: &args::Show, screen: &Screen) -> Answer {
    let shown = data::find(&args.data, &args.run).and_then(|(_, engine, run)| engine.result(&run));
    match shown {
        Ok(result) if args.json => Answer::json(Status::Done, &result),
        Ok(result) => Answer { stdout: page(&result, screen), ..Answer::new(Status::Done) },
        Err(error) => refused(&error),
    }
}

fn page(result: &Json, screen: &Screen) -> String {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let mut fields = Fields::default();
    fields.add("Run", text(&result["run_id"]));
    fields.add("Workflow", text(&result["workflow"]));
    let paused = if result["paused"] == true { ", paused" } else { "" };
    fields.add("Status", text(&result["status"]) + paused);
    if result["scripted"] == true {
        fields.add("Scripted", "answers came from a script");
    }
    if let Some(error) = result["error"].as_object() {
        let step = error["step"].as_str().map(|step| format!(" in {step}")).unwrap_or_default();
        fields
            .add("Error", one_line(&format!("{}{step}: {}", text(&error["code"]), text(&error["message"]))));
    }
    for wait in result["waiting_on"].as_array().into_iter().flatten() {
        let place = wait["position"].as_u64().map(|place| format!(", number {place} in line"));
        let since = wait["since"].as_str().map(|since| format!(", since {since}"));
        let more = [place, since].into_iter().flatten().collect::<String>();
        let step = wait["step"].as_str().map(|step| format!("{step} ")).unwrap_or_default();
        let what = format!("{step}({}) {}{more}", text(&wait["kind"]), text(&wait["message"]));
        fields.add("Waiting on", one_line(&what));
    }
    let mut page = fields.render(0, screen) + "\n";
    for (id, step) in result["steps"].as_object().into_iter().flatten() {
        page += &line(id, step, screen);
    }
    page
}

fn line(id: &str, step: &Json, screen: &Screen) -> String {
    let status = step["status"].as_str().unwrap_or_default();
    let mark = match status {
        "success" | "completed" => "+",
        "failed" | "timed_out" => "x",
        "running" => ">",
        "waiting" | "paused" => "?",
        "recovered" => "~",
        "skipped" => "-",
        "cancelled" => "!",
        _ => ".",
    };
    let attempts =
        step["attempts"].as_u64().filter(|count| *count > 1).map(|count| format!("  {count} attempts"));
    let took = step["duration_seconds"].as_f64().map(|seconds| format!("  {seconds:.1}s"));
    let why = step["skipped_because"].as_str().map(str::to_owned);
    let why = why.or_else(|| {
        step["error"]["message"].as_str().map(|message| shorten(&one_line(message), 100).into_owned())
    });
    let rest = [attempts, took, why.map(|why| format!("  {why}"))].into_iter().flatten().collect::<String>();
    format!("  {mark} {:<24} {status}{rest}\n", screen.bold(id))
}
