//! A run as it goes by: events as JSON for programs and as lines for people.

use super::words::{clean, one_line, shorten};
use serde_json::{Value as Json, json};
use windlass_runtime::{Event, Line, Outcome, Path, RunId, Timestamp, What};

/// The contract that programs read: the event with its number, time and run.
pub fn event_json(run: &RunId, seq: u64, event: &Event) -> Json {
    let mut object = json!({"type": "event", "seq": seq, "at": event.at.to_string(), "run_id": run});
    let Ok(Json::Object(fields)) = serde_json::to_value(&event.what) else { return object };
    for (key, value) in fields {
        object[&key] = value;
    }
    let instants = match &event.what {
        What::Scheduled { deadline, .. } => deadline.map(|at| ("deadline", at)),
        What::TimerSet { until, .. } => Some(("until", *until)),
        _ => None,
    };
    if let Some((key, at)) = instants {
        object[key] = if at == Timestamp::NEVER { Json::Null } else { json!(at.to_string()) };
    }
    if let Some(path) = path_of(&event.what) {
        object["path"] = json!(path.to_string());
        object["step"] = json!(name(path));
    }
    object
}

fn path_of(what: &What) -> Option<&Path> {
    match what {
        What::Entered { path, .. }
        | What::Scheduled { path, .. }
        | What::Noted { path, .. }
        | What::AttemptFailed { path, .. }
        | What::TimerSet { path, .. }
        | What::TimerFired { path, .. }
        | What::Signalled { path, .. }
        | What::Settled { path, .. } => Some(path),
        What::Started { .. }
        | What::CancelRequested { .. }
        | What::Paused { .. }
        | What::Resumed { .. }
        | What::Reopened { .. }
        | What::Concluded { .. }
        | What::Closed => None,
    }
}

fn name(path: &Path) -> String {
    path.segments().last().map(|segment| segment.name.to_string()).unwrap_or_default()
}

/// One event in one line.
pub fn event_line(event: &Event) -> String {
    let json = serde_json::to_value(&event.what).unwrap_or_default();
    let word = json["event"].as_str().unwrap_or_default();
    let about = path_of(&event.what).map(|path| format!(" {path}")).unwrap_or_default();
    let detail = match &event.what {
        What::Settled { outcome, .. } | What::Concluded { outcome, .. } => {
            format!(": {}", outcome_words(outcome))
        }
        What::AttemptFailed { failure, delay, .. } => {
            format!(": {} ({}), next attempt in {delay}", failure.class, one_line(&failure.message))
        }
        What::Scheduled { attempt, delivery, .. } => format!(": attempt {attempt}, delivery {delivery}"),
        What::TimerSet { until, .. } if *until == Timestamp::NEVER => ": stands still".to_owned(),
        What::TimerSet { until, .. } => format!(": until {until}"),
        What::CancelRequested { why, by } => format!(" by {by}: {}", one_line(why)),
        What::Paused { by } | What::Resumed { by } | What::Reopened { by, .. } => format!(" by {by}"),
        What::Started { .. }
        | What::Entered { .. }
        | What::Noted { .. }
        | What::TimerFired { .. }
        | What::Signalled { .. }
        | What::Closed => String::new(),
    };
    format!("{}  {word}{about}{detail}", event.at)
}

fn outcome_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(_) | Outcome::Continue(_) => "success".to_owned(),
        Outcome::Failed(failure) => {
            format!("failed ({}): {}", failure.class, shorten(&one_line(&failure.message), 200))
        }
        Outcome::Skipped(skip) => format!("skipped ({})", skip.reason.word()),
        Outcome::Cancelled(why) => format!("cancelled: {}", one_line(why)),
    }
}

/// What a person wants to see while a run goes on, if this is such a thing.
pub fn progress(event: &Event) -> Option<String> {
    Some(match &event.what {
        What::Scheduled { path, attempt: 1, .. } => format!("  > {}", name(path)),
        What::Scheduled { path, attempt, .. } => format!("  > {} (attempt {attempt})", name(path)),
        What::AttemptFailed { path, failure, delay, .. } => {
            format!("  ~ {} failed ({}), next attempt in {delay}", name(path), one_line(&failure.message))
        }
        What::Entered { path, decision }
            if serde_json::to_value(decision).is_ok_and(|json| json.get("gate").is_some()) =>
        {
            format!("  ? {} waits for a decision", name(path))
        }
        What::Settled { path, outcome, .. } => {
            let mark = match outcome {
                Outcome::Done(_) | Outcome::Continue(_) => '+',
                Outcome::Failed(_) => 'x',
                Outcome::Skipped(_) => '-',
                Outcome::Cancelled(_) => '!',
            };
            format!("  {mark} {}: {}", name(path), outcome_words(outcome))
        }
        What::Started { .. }
        | What::Entered { .. }
        | What::Noted { .. }
        | What::TimerSet { .. }
        | What::TimerFired { .. }
        | What::Signalled { .. }
        | What::CancelRequested { .. }
        | What::Paused { .. }
        | What::Resumed { .. }
        | What::Reopened { .. }
        | What::Concluded { .. }
        | What::Closed => return None,
    })
}

/// A line that a job printed.
pub fn output(line: &Line) -> String {
    let text = String::from_utf8_lossy(&line.bytes);
    format!("    {} | {}", name(&line.job.path), clean(text.trim_end_matches('\n')))
}

/// The last words about a run.
pub fn ending(id: &RunId, result: &Json) -> String {
    let status = result["status"].as_str().unwrap_or_default();
    let mut text = match result["error"].as_object() {
        Some(error) => {
            let step = error["step"].as_str().map(|step| format!(" in `{step}`")).unwrap_or_default();
            let cause = error["message"].as_str().map(one_line).unwrap_or_default();
            let advice = match error["code"].as_str() {
                Some("gate_rejected" | "cancelled") => String::new(),
                _ => format!("go on with `windlass resume {id}`\n"),
            };
            format!("run {id} {status}{step}: {cause}\n{advice}")
        }
        None if result["waiting_on"].as_array().is_some_and(|waits| !waits.is_empty()) => {
            format!("run {id} waits\n")
        }
        None if result["paused"] == true => {
            format!("run {id} is paused; go on with `windlass resume {id}`\n")
        }
        None => format!("run {id} {status}\n"),
    };
    for wait in result["waiting_on"].as_array().into_iter().flatten() {
        let step = wait["step"].as_str().unwrap_or_default();
        let message =
            wait["message"].as_str().map(|message| format!(": {}", one_line(message))).unwrap_or_default();
        let fields: String = wait["form"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, field)| field["required"] == true && field["default"].is_null())
            .map(|(name, _)| format!(" --field {name}=VALUE"))
            .collect();
        let approvers: Vec<&str> =
            wait["approvers"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let by =
            if approvers.is_empty() { String::new() } else { format!(" (by {})", approvers.join(" or ")) };
        if wait["kind"] == "gate" {
            text += &format!(
                "waiting at gate `{step}`{by}{message}\ndecide with `windlass approve {id} {step}{fields}`, then `windlass resume {id}`\n"
            );
        }
    }
    if result["scripted"] == true {
        text += "answers came from a script\n";
    }
    text
}
