//! A run as it goes by: events as JSON for programs and as lines for people.

use super::words::{clean, one_line, shorten};
use serde_json::{Value as Json, json};
use windlass_ir::Value;
use windlass_runtime::ids;
use windlass_runtime::{Decision, Event, Line, Outcome, Path, RunId, Timestamp, What};

/// The contract that programs read: the event with its number, time and run.
pub fn event_json(run: &RunId, seq: u64, event: &Event) -> Json {
    let mut object = json!({"type": "event", "seq": seq, "at": event.at.to_string(), "run_id": run});
    let Ok(Json::Object(fields)) = serde_json::to_value(&event.what) else { return object };
    for (key, value) in fields {
        object[&key] = value;
    }
    let instants = match &event.what {
        What::Scheduled { deadline, .. } => deadline.map(|at| ("/deadline", at)),
        What::TimerSet { until, .. } => Some(("/until", *until)),
        What::Entered { decision: Decision::Wait(waiting), .. } => {
            waiting.until.map(|at| ("/decision/wait/until", at))
        }
        _ => None,
    };
    if let Some((place, at)) = instants
        && let Some(field) = object.pointer_mut(place)
    {
        *field = if at == Timestamp::NEVER { Json::Null } else { json!(at.to_string()) };
    }
    if let Some(path) = path_of(&event.what) {
        object["path"] = json!(path.to_string());
        object["step"] = json!(name(path));
    } else if object.get("path").is_some() {
        object["path"] = json!(Path::default().to_string());
    }
    object
}

fn path_of(what: &What) -> Option<&Path> {
    match what {
        What::Entered { path, .. }
        | What::Scheduled { path, .. }
        | What::Asked { path, .. }
        | What::Spent { path, .. }
        | What::Noted { path, .. }
        | What::AttemptFailed { path, .. }
        | What::Lost { path, .. }
        | What::Joined { path, .. }
        | What::TimerSet { path, .. }
        | What::TimerFired { path, .. }
        | What::Rebound { path, .. }
        | What::Decided { path, .. } => Some(path),
        What::Settled(settled) => Some(&settled.path),
        What::Kept(kept) => Some(&kept.path),
        What::SentBack { gate, .. } => Some(gate),
        What::Signalled { path, .. } => path.as_ref(),
        What::CancelRequested { path, .. } | What::Admitted { path, .. } => {
            Some(path).filter(|path| !path.is_run())
        }
        What::Started { .. }
        | What::Paused { .. }
        | What::Resumed { .. }
        | What::Interrupted
        | What::Continued
        | What::InputsChanged { .. }
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
        What::Settled(settled) => format!(": {}", outcome_words(&settled.outcome)),
        What::Concluded { outcome, .. } => format!(": {}", outcome_words(outcome)),
        What::AttemptFailed { failure, delay, .. } => {
            format!(": {} ({}), next attempt in {delay}", failure.class, one_line(&failure.message))
        }
        What::Scheduled { attempt, delivery, .. } | What::Lost { attempt, delivery, .. } => {
            format!(": attempt {attempt}, delivery {delivery}")
        }
        What::Asked { attempt, .. } | What::Admitted { attempt, .. } => format!(": attempt {attempt}"),
        What::Spent { used, .. } => format!(": {} tokens, {} calls", used.tokens, used.calls),
        What::TimerSet { until, .. } if *until == Timestamp::NEVER => ": stands still".to_owned(),
        What::TimerSet { until, .. } => format!(": until {until}"),
        What::Entered { decision, .. } => {
            decision_words(decision).map(|words| format!(": {words}")).unwrap_or_default()
        }
        What::Joined { key, .. } => format!(": {}", one_line(key)),
        What::Decided { by, .. } => format!(" by {by}"),
        What::Signalled { name, by, .. } => format!(" {} by {by}", one_line(name)),
        What::SentBack { steps, .. } => format!(": {} steps once more", steps.len()),
        What::CancelRequested { why, by, .. } => format!(" by {by}: {}", one_line(why)),
        What::Paused { by, .. }
        | What::Resumed { by }
        | What::InputsChanged { by, .. }
        | What::Reopened { by, .. } => format!(" by {by}"),
        What::Started { .. }
        | What::Interrupted
        | What::Continued
        | What::Kept(_)
        | What::Noted { .. }
        | What::TimerFired { .. }
        | What::Rebound { .. }
        | What::Closed => String::new(),
    };
    format!("{}  {word}{about}{detail}", event.at)
}

/// What was decided, where that is more than that it goes on.
fn decision_words(decision: &Decision) -> Option<String> {
    Some(match decision {
        Decision::Steps => return None,
        Decision::Arm { arm, .. } => one_line(arm),
        Decision::Items { items: Value::List(items), .. } => format!("{} items", items.len()),
        Decision::Items { .. } => "no items".to_owned(),
        Decision::Round { number, .. } => format!("round {}", number + 1),
        Decision::Again { number, delay, .. } => format!("round {} in {delay}", number + 1),
        Decision::Gate(_) => "waits for a decision".to_owned(),
        Decision::Wait(waiting) => match (&waiting.signal, waiting.until) {
            (Some(signal), _) => format!("waits for {}", one_line(&signal.name)),
            (None, Some(until)) => format!("waits until {until}"),
            (None, None) => "waits".to_owned(),
        },
        Decision::Fragment { plan, .. } => format!("workflow {}", plan.whole()?.header.id),
        Decision::Planned { plan, .. } => format!("adds {} steps", plan.whole()?.steps.len()),
        Decision::TakenOver { by, .. } => format!("taken over by {by}"),
        Decision::Finally => "finally".to_owned(),
        Decision::Undo { uncertain: false, .. } => "undone".to_owned(),
        Decision::Undo { uncertain: true, .. } => "undone, although it may not have run".to_owned(),
        Decision::Finish { outcome } => outcome_words(outcome),
    })
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

/// What people are told while a run goes on.
#[derive(Debug, Default)]
pub struct Progress {
    last: Option<String>,
}

impl Progress {
    /// What a person wants to see, if this is such a thing. A step and what stands for it say the same only once.
    pub fn line(&mut self, event: &Event) -> Option<String> {
        let line = progress(event)?;
        let again = self.last.as_ref() == Some(&line);
        self.last = Some(line.clone());
        (!again).then_some(line)
    }
}

fn progress(event: &Event) -> Option<String> {
    Some(match &event.what {
        What::Settled(settled) if settled.path.is_hook() => match &settled.outcome {
            Outcome::Failed(failure) => {
                format!("  ! {} cannot start: {}", settled.path, one_line(&failure.message))
            }
            _ => return None,
        },
        what if path_of(what).is_some_and(Path::is_hook) => return None,
        What::Scheduled { path, attempt: 1, .. } => format!("  > {}", numbered(path)),
        What::Scheduled { path, attempt, .. } => format!("  > {} (attempt {attempt})", numbered(path)),
        What::AttemptFailed { path, failure, delay, .. } => {
            format!("  ~ {} failed ({}), next attempt in {delay}", numbered(path), one_line(&failure.message))
        }
        What::Entered { path, decision: decision @ (Decision::Gate(_) | Decision::Wait(_)) } => {
            format!("  ? {} {}", numbered(path), decision_words(decision).unwrap_or_default())
        }
        What::SentBack { gate, steps, .. } => {
            let steps: Vec<String> = steps.iter().map(|step| numbered(&step.path)).collect();
            format!("  < {} sends back: {}", numbered(gate), steps.join(", "))
        }
        What::Settled(settled) => {
            let mark = match &settled.outcome {
                Outcome::Done(_) | Outcome::Continue(_) => '+',
                Outcome::Failed(_) => 'x',
                Outcome::Skipped(_) => '-',
                Outcome::Cancelled(_) => '!',
            };
            format!("  {mark} {}: {}", numbered(&settled.path), outcome_words(&settled.outcome))
        }
        What::Started { .. }
        | What::Kept(_)
        | What::Entered { .. }
        | What::Asked { .. }
        | What::Admitted { .. }
        | What::Spent { .. }
        | What::Noted { .. }
        | What::Lost { .. }
        | What::Joined { .. }
        | What::TimerSet { .. }
        | What::TimerFired { .. }
        | What::Decided { .. }
        | What::Signalled { .. }
        | What::CancelRequested { .. }
        | What::Paused { .. }
        | What::Resumed { .. }
        | What::Interrupted
        | What::Continued
        | What::InputsChanged { .. }
        | What::Rebound { .. }
        | What::Reopened { .. }
        | What::Concluded { .. }
        | What::Closed => return None,
    })
}

/// The step with the numbers of the items and rounds that it is in.
fn numbered(path: &Path) -> String {
    ids::rough(path)
}

/// A line that a job printed.
pub fn output(line: &Line) -> String {
    let text = String::from_utf8_lossy(&line.bytes);
    format!("    {} | {}", numbered(&line.job.path), clean(text.trim_end_matches('\n')))
}

/// The last words about a run.
pub fn ending(id: &RunId, result: &Json, resumable: bool) -> String {
    let status = result["status"].as_str().unwrap_or_default();
    let mut text = match result["error"].as_object() {
        Some(error) => {
            let step = error["step"].as_str().map(|step| format!(" in `{step}`")).unwrap_or_default();
            let cause = error["message"].as_str().map(one_line).unwrap_or_default();
            let advice = match error["code"].as_str() {
                Some("gate_rejected") => String::new(),
                _ if !resumable => String::new(),
                _ => format!("go on with `windlass resume {id}`\n"),
            };
            format!("run {id} {status}{step}: {cause}\n{advice}")
        }
        None if result["waiting_on"].as_array().is_some_and(|waits| !waits.is_empty()) => {
            format!("run {id} waits\n")
        }
        None if status == "paused" => {
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
        if wait["kind"] == "signal" {
            let signal = wait["message"].as_str().map(one_line).unwrap_or_default();
            text += &format!(
                "waiting at `{step}` for `{signal}`\nsend it with `windlass signal {id} {signal}`, then `windlass resume {id}`\n"
            );
        }
    }
    if result["scripted"] == true {
        text += "answers came from a script\n";
    }
    text
}
