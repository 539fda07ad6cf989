//! Counts of simulated faults, inputs, events and decisions, for totals and for coverage.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub steps: u64,
    pub seen: BTreeMap<String, u64>,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        other.seen.iter().for_each(|(name, count)| *self.seen.entry(name.clone()).or_default() += count);
    }

    pub fn count(&mut self, kind: &str, name: &str) {
        *self.seen.entry(format!("{kind} {name}")).or_default() += 1;
    }

    /// Counts a value by the name of its variant.
    pub fn saw(&mut self, kind: &str, what: &impl Debug) {
        let mut name = Name(String::new());
        // Writing ends after the name.
        let _ = write!(name, "{what:?}");
        self.count(kind, &name.0);
    }

    /// The entries of a table that never occurred. A line of the table is a kind and the names of that kind.
    pub fn missing(&self, table: &str) -> Vec<String> {
        let lines = table.lines().filter_map(|line| line.split_once(": "));
        let wanted =
            lines.flat_map(|(kind, names)| names.split(", ").map(move |name| format!("{kind} {name}")));
        wanted.filter(|name| !self.seen.contains_key(name)).collect()
    }
}

/// Collects the first word that is written to it.
struct Name(String);

impl Write for Name {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = text.find(|letter: char| !letter.is_alphanumeric());
        self.0.push_str(&text[..end.unwrap_or(text.len())]);
        end.map_or(Ok(()), |_| Err(std::fmt::Error))
    }
}

/// Everything that must occur over a large range of seeds.
#[cfg(test)]
pub const EVERYTHING: &str = "\
decision: Again, Arm, Finally, Finish, Gate, Items, Round, Steps, TakenOver, Undo, Wait
event: AttemptFailed, CancelRequested, Closed, Concluded, Decided, Entered, InputsChanged, Joined, Lost, Noted, Paused
event: Reopened, Resumed, Scheduled, SentBack, Settled, Signalled, Started, TimerFired, TimerSet
fault: conflict, crash, duplicate, failed append, loss
input: Cancel, Change, Decide, Lost, Noted, Pause, Reopen, Reported, Resume, Signal, Start, TakenUp, Tick
step: block, fan_out, gate, if, loop, parallel, switch, wait
timer: Grace, Retry, Timeout, Timeout of the run, Wait";
