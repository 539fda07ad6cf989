//! Events and output of a run as lines of text.

use super::Screen;
use super::cells::{Cells, Tone};
use super::gates;
use super::marks::State;
use super::names;
use super::times::{length, precise};
use super::words::{clean, one_line, shorten};
use std::sync::Arc;
use windlass_api::Refusal;
use windlass_api::report::{Replay, Report, event_name};
use windlass_api::types::{Run, Wait, WaitKind};
use windlass_dialects::DIALECTS;
use windlass_ir::workflow::Kind;
use windlass_ir::{RunStatus, Value};
use windlass_runtime::{
    Decision, Engine, Event, Line, Outcome, Path, RunId, StepPhase, StepView, Timestamp, View, What, ids,
};

/// One event as one line.
pub fn event_line(event: &Event) -> String {
    let word = event_name(&event.what);
    let path = event.what.path().filter(|path| !path.is_run());
    let about = path.map(|path| format!(" {path}")).unwrap_or_default();
    let detail = match &event.what {
        What::Settled(settled) => format!(": {}", outcome_words(&settled.outcome)),
        What::Concluded { outcome, .. } => format!(": {}", outcome_words(outcome)),
        What::AttemptFailed { failure, delay, .. } => {
            format!(
                ": {} ({}), next attempt in {}",
                failure.class,
                one_line(&failure.message),
                length(*delay)
            )
        }
        What::Scheduled { attempt, delivery, .. } | What::Lost { attempt, delivery, .. } => {
            format!(": attempt {attempt}, delivery {delivery}")
        }
        What::Asked { attempt, .. } | What::Admitted { attempt, .. } => format!(": attempt {attempt}"),
        What::Spent { used, .. } => format!(": {} tokens, {} calls", used.tokens, used.calls),
        What::TimerSet { until, .. } if *until == Timestamp::NEVER => ": stopped".to_owned(),
        What::TimerSet { until, .. } => format!(": until {}", precise(*until)),
        What::Entered { decision, .. } => {
            decision_words(decision).map(|words| format!(": {words}")).unwrap_or_default()
        }
        What::Joined { key, .. } => format!(": {}", one_line(key)),
        What::Decided { by, .. } => format!(" by {by}"),
        What::Signalled { name, by, .. } => format!(" {} by {by}", one_line(name)),
        What::SentBack { steps, .. } => format!(": repeats {} steps", steps.len()),
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
    format!("{}  {word}{about}{detail}", precise(event.at))
}

/// A decision in words; none for a scope that begins.
fn decision_words(decision: &Decision) -> Option<String> {
    Some(match decision {
        Decision::Steps => return None,
        Decision::Arm { arm, .. } => one_line(arm),
        Decision::Items { items: Value::List(items), .. } => format!("{} items", items.len()),
        Decision::Items { .. } => "no items".to_owned(),
        Decision::Round { number, .. } => format!("round {}", number + 1),
        Decision::Again { number, delay, .. } => format!("round {} in {}", number + 1, length(*delay)),
        Decision::Gate(_) => "waits for a decision".to_owned(),
        Decision::Wait(waiting) => match (&waiting.signal, waiting.until) {
            (Some(signal), _) => format!("waits for {}", one_line(&signal.name)),
            (None, Some(until)) => format!("waits until {}", precise(until)),
            (None, None) => "waits".to_owned(),
        },
        Decision::Fragment { plan, .. } => format!("workflow {}", plan.whole()?.header.id),
        Decision::Planned { plan, .. } => format!("adds {} steps", plan.whole()?.steps.len()),
        Decision::TakenOver { by, .. } => format!("handled by {by}"),
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

/// The lines that a run prints while it executes, where no live view can be shown.
#[derive(Debug)]
pub struct Progress {
    replay: Replay,
    screen: Screen,
}

impl Progress {
    pub fn new(engine: Arc<Engine>, run: RunId, screen: Screen) -> Self {
        Self { replay: Replay::new(engine, run), screen }
    }

    /// The line for the next event, if it has one.
    pub fn line(&mut self, seq: u64, event: &Event) -> Result<Option<String>, Refusal> {
        let (run, screen) = (self.replay.run().clone(), self.screen);
        let told = self.replay.apply(seq, event)?.and_then(|view| Told { run: &run, view }.line(event));
        Ok(told.map(|(state, text)| {
            let mark = Cells::default().with(Tone::Plain, "  ").with(state.tone(), state.symbol(&screen));
            mark.with(Tone::Plain, &format!(" {text}")).render(screen.color)
        }))
    }

    /// A line that a job printed.
    pub fn output(&self, line: &Line) -> String {
        let path = &line.job.path;
        let step = self.replay.view().map_or_else(|| ids::rough(path), |view| names::step(view, path));
        output(&step, line)
    }
}

/// A run after one of its events.
struct Told<'v> {
    run: &'v RunId,
    view: &'v View,
}

impl Told<'_> {
    fn report(&self) -> Report<'_> {
        Report::in_passing(DIALECTS, self.run, self.view)
    }

    fn line(&self, event: &Event) -> Option<(State, String)> {
        let name = |path: &Path| names::step(self.view, path);
        match &event.what {
            // The owner of the run says when a hook failed.
            what if what.path().is_some_and(Path::is_hook) => None,
            What::Scheduled { path, attempt, .. } => {
                let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let undoes = self.undoes(path).map(|step| format!(", undoes {step}")).unwrap_or_default();
                Some((State::Running, format!("{}{again}{undoes}", name(path))))
            }
            What::AttemptFailed { path, attempt, failure, delay } => {
                let (class, message) = (&failure.class, one_line(&failure.message));
                let next = format!("attempt {} in {}", attempt + 1, length(*delay));
                Some((State::Waiting, format!("{}: {class}: {message}; {next}", name(path))))
            }
            What::Entered { path, decision: decision @ (Decision::Gate(_) | Decision::Wait(_)) } => {
                let state =
                    if matches!(decision, Decision::Gate(_)) { State::Asking } else { State::Waiting };
                let words = match self.report().gate(path, "") {
                    Some(gate) => gates::headline(&gate, true, event.at),
                    None => decision_words(decision),
                };
                Some((state, format!("{}: {}", name(path), words.unwrap_or_default())))
            }
            What::Decided { path, .. } => {
                let gate = self.report().gate(path, "")?;
                Some((State::Asking, format!("{}: {}", name(path), gates::progress(&gate)?)))
            }
            What::SentBack { gate, steps, .. } => {
                let steps: Vec<String> = steps.iter().map(|step| name(&step.path)).collect();
                Some((State::Waiting, format!("{} sends back: {}", name(gate), steps.join(", "))))
            }
            What::Settled(settled) => {
                let step = self.view.step(&settled.path)?;
                self.settled(&settled.path, &step, event.at)
            }
            What::CancelRequested { path, why, by, .. } if path.is_run() => {
                Some((State::Cancelled, format!("canceled by {by}: {}", one_line(why))))
            }
            What::Paused { by, reached } => {
                let why = if *reached {
                    "paused at the step it was to reach".to_owned()
                } else {
                    format!("paused by {by}")
                };
                Some((State::Paused, why))
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
            | What::Signalled { .. }
            | What::CancelRequested { .. }
            | What::Resumed { .. }
            | What::Interrupted
            | What::Continued
            | What::InputsChanged { .. }
            | What::Rebound { .. }
            | What::Reopened { .. }
            | What::Concluded { .. }
            | What::Closed => None,
        }
    }

    fn settled(&self, path: &Path, step: &StepView<'_>, now: Timestamp) -> Option<(State, String)> {
        let StepPhase::Settled(outcome) = &step.phase else { return None };
        // Items and rounds end with the steps inside them, and a guard with the step that it guards.
        if step.frame.is_some() || self.guards_settled(path, step, outcome) {
            return None;
        }
        let took = step.started_at.zip(step.ended_at).map(|(start, end)| length(end.since(start)));
        let took = took.map(|took| format!(" {took}")).unwrap_or_default();
        let report = self.report();
        let name = names::step(self.view, path);
        let because = || report.because(path, step).unwrap_or_default();
        Some(match outcome {
            Outcome::Done(_) | Outcome::Continue(_) => {
                let state = if step.recovered { State::Recovered } else { State::Done };
                let gate = report.gate(path, "").and_then(|gate| gates::headline(&gate, false, now));
                let note = match step.kept {
                    true => Some("kept from the earlier run".to_owned()),
                    false => gate
                        .or_else(|| report.decided(path, step))
                        .or_else(|| report.failed_items(path, step)),
                };
                (state, format!("{name}{took}{}", note.map(|note| format!(", {note}")).unwrap_or_default()))
            }
            Outcome::Failed(failure) => {
                let message = shorten(&one_line(&failure.message), 200).into_owned();
                let state = if step.recovered { State::Recovered } else { State::Failed };
                (state, format!("{name}{took}: {}: {message}", failure.class))
            }
            Outcome::Skipped(_) => (State::Skipped, format!("{name}: {}", because())),
            Outcome::Cancelled(_) => (State::Cancelled, format!("{name}: {}", because())),
        })
    }

    /// Whether this is a guard whose step has already been told to end in the same way.
    fn guards_settled(&self, path: &Path, step: &StepView<'_>, outcome: &Outcome) -> bool {
        let known = self.view.plan_step(step);
        let inner = self.view.step(&path.child(known.id.clone(), None));
        matches!(known.kind, Kind::Guard(_))
            && inner.is_some_and(|inner| match &inner.phase {
                StepPhase::Settled(other) => {
                    std::mem::discriminant(*other) == std::mem::discriminant(outcome)
                }
                _ => false,
            })
    }

    /// The step that this one undoes.
    fn undoes(&self, path: &Path) -> Option<String> {
        let around = path.parent()?;
        self.view.step(&around)?.undone?;
        Some(names::step(self.view, &around))
    }
}

/// A line that a job printed, with the name of its step.
pub fn output(step: &str, line: &Line) -> String {
    let text = String::from_utf8_lossy(&line.bytes);
    format!("    {step} | {}", clean(text.trim_end_matches('\n')))
}

/// A run in one sentence.
pub fn sentence(run: &str, status: RunStatus, headline: &str) -> String {
    let headline = one_line(headline);
    match status {
        RunStatus::Success | RunStatus::Failed => format!("run {run} {headline}"),
        RunStatus::Cancelled => format!("run {run} was {headline}"),
        RunStatus::Interrupted => {
            format!("run {run} is {headline}; continue it with `windlass resume {run}`")
        }
        RunStatus::Paused => format!("run {run} is {headline}; continue it with `windlass resume {run}`"),
        RunStatus::Pending | RunStatus::Running | RunStatus::Waiting => format!("run {run} is {headline}"),
    }
}

/// How a run ended or what it waits for, its outputs, and what the user can do next.
pub fn ending(run: &Run) -> String {
    let id = &run.run_id;
    let mut text = sentence(id, run.status, &run.headline) + "\n";
    if let Some(undone) = undone(run) {
        text += &format!("{undone}\n");
    }
    text.extend(cure(run).map(|cure| cure + "\n"));
    if let (Some(error), true) = (&run.error, run.resumable)
        && error.code != "gate_rejected"
    {
        text += &format!("continue it with `windlass resume {id}`\n");
    }
    text.extend(run.waiting_on.iter().filter_map(|wait| next_action(id, wait)).map(|next| next + "\n"));
    if run.status == RunStatus::Success {
        text.extend(names::outputs(&run.outputs).iter().map(|line| format!("  {line}\n")));
    }
    if run.mocked {
        text += "some responses were mocked\n";
    }
    text
}

/// Where to look after a failure whose message does not say it: the output that a command did not leave, or the place of an
/// expression.
fn cure(run: &Run) -> Option<String> {
    let error = run.error.as_ref()?;
    let (step, field) = (error.step.as_deref()?, error.field.as_deref()?);
    let is_command = run.steps.get(step).is_some_and(|step| step.kind == "shell");
    match (error.code.as_str(), field.strip_prefix("outputs.")) {
        ("contract_violation", Some(output)) if is_command => Some(format!(
            "`{step}` declares the output `{output}`: let its command write `{output}=VALUE` to \"$WINDLASS_OUTPUT\", or change `outputs`"
        )),
        ("expression_error", _) => Some(format!("the expression is in `{field}` of `{step}`")),
        (_, _) => None,
    }
}

/// What became of the completed steps of a run that failed.
pub fn undone(run: &Run) -> Option<&'static str> {
    run.undone.map(|undone| match undone {
        windlass_api::types::Undone::All => "everything that was done is undone",
        windlass_api::types::Undone::Part => "what was done is only partly undone",
    })
}

/// What the user can do about a gate or a signal that a run waits for.
pub fn next_action(id: &str, wait: &Wait) -> Option<String> {
    let step = wait.step.as_deref().unwrap_or_default();
    match wait.kind {
        WaitKind::Gate => {
            let form = wait.form.iter().flatten();
            let fields: String = form
                .filter(|(_, field)| field.required && field.default.is_null())
                .map(|(name, _)| format!(" --field {name}=VALUE"))
                .collect();
            Some(format!(
                "approve it with `windlass approve {id} {step}{fields}`, then `windlass resume {id}`"
            ))
        }
        WaitKind::Signal => {
            let signal = wait.message.as_ref().map(gates::text).unwrap_or_default();
            Some(format!("send it with `windlass signal {id} {signal}`, then `windlass resume {id}`"))
        }
        WaitKind::Timer | WaitKind::Slot | WaitKind::Run => None,
    }
}
