//! What happened at simulated desks, for the totals, and to see that everything that can happen has.

use std::collections::BTreeMap;
use windlass_engine::{Came, Denial, DeskAnswer, DeskEffect, DeskEvent, DeskInput, DeskWhat, End, Overlap};

#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub steps: u64,
    pub inputs: u64,
    pub events: u64,
    pub crashes: u64,
    /// Records that a crash took with it.
    pub lost_records: u64,
    pub compactions: u64,
    pub lost_effects: u64,
    pub doubled_effects: u64,
    pub late: u64,
    pub refusals: u64,
    /// Worlds in which others kept coming while somebody waited.
    pub crowds: u64,
    /// How often each kind of input, event, effect and reason occurred.
    pub seen: BTreeMap<String, u64>,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.inputs += other.inputs;
        self.events += other.events;
        self.crashes += other.crashes;
        self.lost_records += other.lost_records;
        self.compactions += other.compactions;
        self.lost_effects += other.lost_effects;
        self.doubled_effects += other.doubled_effects;
        self.late += other.late;
        self.refusals += other.refusals;
        self.crowds += other.crowds;
        other.seen.iter().for_each(|(name, count)| *self.seen.entry(name.clone()).or_default() += count);
    }

    fn saw(&mut self, name: &str) {
        match self.seen.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.seen.insert(name.to_owned(), 1)),
        }
    }

    pub fn input(&mut self, input: &DeskInput) {
        self.inputs += 1;
        self.saw(input_word(input));
        match input {
            DeskInput::Release { end, .. } => self.saw(match end {
                End::Attempt => "end attempt",
                End::Lost => "end lost",
                End::Done(_) => "end done",
                End::Over => "end over",
            }),
            DeskInput::Fire(fire) => self.saw(match fire.overlap {
                Overlap::Skip => "overlap skip",
                Overlap::Queue => "overlap queue",
                Overlap::Cancel => "overlap cancel",
            }),
            DeskInput::Ask(_)
            | DeskInput::Gone { .. }
            | DeskInput::Listen(_)
            | DeskInput::Deaf(_)
            | DeskInput::Published { .. }
            | DeskInput::Heard { .. }
            | DeskInput::Cap { .. }
            | DeskInput::Reset { .. }
            | DeskInput::Arrived { .. }
            | DeskInput::Tick => {}
        }
    }

    pub fn event(&mut self, event: &DeskEvent) {
        self.events += 1;
        self.saw(event_word(&event.what));
        if let DeskWhat::Fired(fired) = &event.what {
            self.saw(match fired.came {
                Came::Started(_) => "came started",
                Came::Skipped { .. } => "came skipped",
            });
        }
    }

    pub fn effect(&mut self, effect: &DeskEffect) {
        self.saw(match effect {
            DeskEffect::Answer { answer: DeskAnswer::Granted, .. } => "answer granted",
            DeskEffect::Answer { answer: DeskAnswer::Found(_), .. } => "answer found",
            DeskEffect::Answer { answer: DeskAnswer::Denied(denial), .. } => match denial {
                Denial::Taken { .. } => "denied taken",
                Denial::WouldDeadlock { .. } => "denied would_deadlock",
                Denial::BudgetExceeded { .. } => "denied budget_exceeded",
                Denial::TooMuch { .. } => "denied too_much",
            },
            DeskEffect::Deliver { .. } => "effect deliver",
            DeskEffect::Cancel { .. } => "effect cancel",
            DeskEffect::Start(_) => "effect start",
        });
    }
}

pub fn input_word(input: &DeskInput) -> &'static str {
    match input {
        DeskInput::Ask(_) => "input ask",
        DeskInput::Release { .. } => "input release",
        DeskInput::Gone { .. } => "input gone",
        DeskInput::Listen(_) => "input listen",
        DeskInput::Deaf(_) => "input deaf",
        DeskInput::Published { .. } => "input published",
        DeskInput::Heard { .. } => "input heard",
        DeskInput::Cap { .. } => "input cap",
        DeskInput::Reset { .. } => "input reset",
        DeskInput::Fire(_) => "input fire",
        DeskInput::Arrived { .. } => "input arrived",
        DeskInput::Tick => "input tick",
    }
}

pub fn event_word(what: &DeskWhat) -> &'static str {
    match what {
        DeskWhat::Begun => "event begun",
        DeskWhat::Queued { .. } => "event queued",
        DeskWhat::Moved { .. } => "event moved",
        DeskWhat::Insisted { .. } => "event insisted",
        DeskWhat::Granted { .. } => "event granted",
        DeskWhat::Withdrawn { .. } => "event withdrawn",
        DeskWhat::Evicted { .. } => "event evicted",
        DeskWhat::Released { .. } => "event released",
        DeskWhat::Broken { .. } => "event broken",
        DeskWhat::Kept { .. } => "event kept",
        DeskWhat::Promised { .. } => "event promised",
        DeskWhat::RateIs { .. } => "event rate_is",
        DeskWhat::AccountIs { .. } => "event account_is",
        DeskWhat::Listening(_) => "event listening",
        DeskWhat::Deaf { .. } => "event deaf",
        DeskWhat::Published { .. } => "event published",
        DeskWhat::Heard { .. } => "event heard",
        DeskWhat::Fired(_) => "event fired",
        DeskWhat::Arrived { .. } => "event arrived",
        DeskWhat::TurnsAre { .. } => "event turns_are",
    }
}

/// Everything that must have occurred over a large range of seeds.
pub const ALL: &[&str] = &[
    "answer found",
    "answer granted",
    "came skipped",
    "came started",
    "denied budget_exceeded",
    "denied taken",
    "denied too_much",
    "denied would_deadlock",
    "effect cancel",
    "effect deliver",
    "effect start",
    "end attempt",
    "end done",
    "end lost",
    "end over",
    "event account_is",
    "event arrived",
    "event begun",
    "event broken",
    "event deaf",
    "event evicted",
    "event fired",
    "event granted",
    "event heard",
    "event insisted",
    "event kept",
    "event listening",
    "event moved",
    "event promised",
    "event published",
    "event queued",
    "event rate_is",
    "event released",
    "event turns_are",
    "event withdrawn",
    "input arrived",
    "input ask",
    "input cap",
    "input deaf",
    "input fire",
    "input gone",
    "input heard",
    "input listen",
    "input published",
    "input release",
    "input reset",
    "input tick",
    "overlap cancel",
    "overlap queue",
    "overlap skip",
];
