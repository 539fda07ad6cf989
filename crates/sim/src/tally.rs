//! What happened in simulated runs, for the totals, and to see that everything that can happen has.

use std::collections::BTreeMap;
use windlass_engine::{Decision, Event, Input, Reason, StepView, View, What};

#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub steps: u64,
    pub events: u64,
    pub crashes: u64,
    pub conflicts: u64,
    pub failed_appends: u64,
    pub duplicates: u64,
    pub losses: u64,
    pub cancels: u64,
    pub pauses: u64,
    pub reopens: u64,
    pub refusals: u64,
    /// How often each kind of input, event, decision, timer and step occurred.
    pub seen: BTreeMap<String, u64>,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.events += other.events;
        self.crashes += other.crashes;
        self.conflicts += other.conflicts;
        self.failed_appends += other.failed_appends;
        self.duplicates += other.duplicates;
        self.losses += other.losses;
        self.cancels += other.cancels;
        self.pauses += other.pauses;
        self.reopens += other.reopens;
        self.refusals += other.refusals;
        other.seen.iter().for_each(|(name, count)| *self.seen.entry(name.clone()).or_default() += count);
    }

    fn saw(&mut self, kind: &str, name: &str) {
        *self.seen.entry(format!("{kind} {name}")).or_default() += 1;
    }

    pub fn input(&mut self, input: &Input) {
        self.saw("input", input_word(input));
    }

    pub fn event(&mut self, event: &Event, view: &View) {
        self.events += 1;
        self.saw("event", event_word(&event.what));
        match &event.what {
            What::Entered { decision, path } => {
                self.saw("decision", decision_word(decision));
                let word = |step: StepView<'_>| view.plan_step(&step).word.to_string();
                if let Some(word) = view.step(path).map(word) {
                    self.saw("step", &word);
                }
            }
            What::TimerFired { reason, path } => {
                let word = match reason {
                    Reason::Retry => "retry",
                    Reason::Timeout if path.is_run() => "timeout of the run",
                    Reason::Timeout => "timeout",
                    Reason::Wait => "wait",
                    Reason::Grace => "grace",
                };
                self.saw("timer", word);
            }
            _ => {}
        }
    }
}

fn input_word(input: &Input) -> &'static str {
    match input {
        Input::Start(_) => "start",
        Input::Reported { .. } => "reported",
        Input::Lost { .. } => "lost",
        Input::Answered { .. } => "answered",
        Input::Spent { .. } => "spent",
        Input::Noted { .. } => "noted",
        Input::Decide { .. } => "decide",
        Input::Signal { .. } => "signal",
        Input::TakenUp => "taken_up",
        Input::ClockSet => "clock_set",
        Input::Interrupt => "interrupt",
        Input::Continue => "continue",
        Input::Tick => "tick",
        Input::Cancel { .. } => "cancel",
        Input::Pause { .. } => "pause",
        Input::Resume { .. } => "resume",
        Input::Change { .. } => "change",
        Input::Reopen { .. } => "reopen",
        Input::Close => "close",
    }
}

fn event_word(what: &What) -> &'static str {
    match what {
        What::Started { .. } => "started",
        What::Kept(_) => "kept",
        What::Entered { .. } => "entered",
        What::Scheduled { .. } => "scheduled",
        What::Asked { .. } => "asked",
        What::Admitted { .. } => "admitted",
        What::Spent { .. } => "spent",
        What::Noted { .. } => "noted",
        What::AttemptFailed { .. } => "attempt_failed",
        What::Joined { .. } => "joined",
        What::Lost { .. } => "lost",
        What::TimerSet { .. } => "timer_set",
        What::TimerFired { .. } => "timer_fired",
        What::Decided { .. } => "decided",
        What::Signalled { .. } => "signalled",
        What::CancelRequested { .. } => "cancel_requested",
        What::Paused { .. } => "paused",
        What::Resumed { .. } => "resumed",
        What::Interrupted => "interrupted",
        What::Continued => "continued",
        What::InputsChanged { .. } => "inputs_changed",
        What::Rebound { .. } => "rebound",
        What::Reopened { .. } => "reopened",
        What::SentBack { .. } => "sent_back",
        What::Settled(_) => "settled",
        What::Concluded { .. } => "concluded",
        What::Closed => "closed",
    }
}

fn decision_word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Steps => "steps",
        Decision::Arm { .. } => "arm",
        Decision::Items { .. } => "items",
        Decision::Round { .. } => "round",
        Decision::Again { .. } => "again",
        Decision::Gate(_) => "gate",
        Decision::Wait(_) => "wait",
        Decision::Fragment { .. } => "fragment",
        Decision::Planned { .. } => "planned",
        Decision::TakenOver { .. } => "taken_over",
        Decision::Finally => "finally",
        Decision::Undo { .. } => "undo",
        Decision::Finish { .. } => "finish",
    }
}

/// Everything that must have occurred over a large range of seeds.
pub const ALL: &[&str] = &[
    "decision again",
    "decision arm",
    "decision finally",
    "decision finish",
    "decision gate",
    "decision items",
    "decision round",
    "decision steps",
    "decision taken_over",
    "decision undo",
    "decision wait",
    "event attempt_failed",
    "event cancel_requested",
    "event closed",
    "event concluded",
    "event decided",
    "event entered",
    "event inputs_changed",
    "event joined",
    "event lost",
    "event noted",
    "event paused",
    "event reopened",
    "event resumed",
    "event scheduled",
    "event sent_back",
    "event settled",
    "event signalled",
    "event started",
    "event timer_fired",
    "event timer_set",
    "input cancel",
    "input change",
    "input decide",
    "input lost",
    "input noted",
    "input pause",
    "input reopen",
    "input reported",
    "input resume",
    "input signal",
    "input start",
    "input taken_up",
    "input tick",
    "step block",
    "step fan_out",
    "step gate",
    "step if",
    "step loop",
    "step parallel",
    "step switch",
    "step wait",
    "timer grace",
    "timer retry",
    "timer timeout",
    "timer timeout of the run",
    "timer wait",
];
