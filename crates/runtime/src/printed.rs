//! What the steps of a run have printed: from its log, and from its events where the log has nothing. A log is a convenience and may be
//! gone; what a step has as outputs is in its events and is as durable as they are.

use crate::engine::{Engine, Error};
use std::collections::{HashMap, HashSet};
use windlass_engine::{Event, Outcome, Path, RunId, Timestamp, What};
use windlass_ir::Value;
use windlass_store::{LogReader, Logs, Printed, Printing};

/// The output of a run, in the order in which it was printed.
#[derive(Debug)]
pub struct Output {
    /// Where the log is, or will be.
    file: Option<(Logs, RunId)>,
    log: Option<LogReader>,
    /// What only the events have, the latest first.
    recorded: Vec<Printed>,
    /// A line of the log that comes after something that was recorded.
    next: Option<Printed>,
}

impl Engine {
    /// What a run has printed so far.
    pub fn output(&self, run: &RunId) -> Result<Output, Error> {
        let failed = |error: std::io::Error| {
            let folder = self.logs().map(|logs| logs.file(run)).unwrap_or_default();
            Error::Folder { folder, cause: error.to_string() }
        };
        let mut log = self.logs().map(|logs| logs.reader(run)).transpose().map_err(failed)?.flatten();
        let mut recorded = recorded(&self.events(run)?);
        if let Some(log) = log.as_mut().filter(|_| !recorded.is_empty()) {
            let logged: HashSet<(Path, u32)> = log.by_ref().map(|line| (line.path, line.attempt)).collect();
            recorded.retain(|line| !logged.contains(&(line.path.clone(), line.attempt)));
            log.rewind().map_err(failed)?;
        }
        recorded.reverse();
        Ok(Output { file: self.logs().map(|logs| (logs, run.clone())), log, recorded, next: None })
    }
}

impl Output {
    /// How many lines of the log cannot be read.
    pub fn damaged(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.damaged)
    }
}

/// Ends with what there is. Asked again it goes on, if more has been printed.
impl Iterator for Output {
    type Item = Printed;

    fn next(&mut self) -> Option<Printed> {
        if let (None, Some((logs, run))) = (&self.log, &self.file) {
            // It comes into being with the first line. One that cannot be read has none.
            self.log = logs.reader(run).ok().flatten();
        }
        let next = self.next.take().or_else(|| self.log.as_mut().and_then(Iterator::next));
        match (next, self.recorded.last()) {
            (Some(next), Some(recorded)) if recorded.at < next.at => {
                self.next = Some(next);
                self.recorded.pop()
            }
            (Some(next), _) => Some(next),
            (None, _) => self.recorded.pop(),
        }
    }
}

/// What commands have printed according to their outcomes, oldest first.
fn recorded(events: &[Event]) -> Vec<Printed> {
    let mut jobs: HashMap<&Path, (u32, u32)> = HashMap::new();
    let mut all = Vec::new();
    for Event { at, what } in events {
        match what {
            What::Scheduled { path, attempt, delivery, .. } => drop(jobs.insert(path, (*attempt, *delivery))),
            What::AttemptFailed { path, failure, .. } => {
                all.extend(printed(path, jobs.get(path), *at, failure.detail.as_ref()));
            }
            What::Settled(settled) => {
                let outputs = match &settled.outcome {
                    Outcome::Done(value) | Outcome::Continue(value) => Some(value),
                    Outcome::Failed(failure) => failure.detail.as_ref(),
                    Outcome::Skipped(_) | Outcome::Cancelled(_) => None,
                };
                all.extend(printed(&settled.path, jobs.get(&settled.path), *at, outputs));
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
            | What::SentBack { .. }
            | What::Concluded { .. }
            | What::Closed => {}
        }
    }
    all
}

/// The two streams of a command. A step that was never handed out has printed nothing.
fn printed(path: &Path, job: Option<&(u32, u32)>, at: Timestamp, outputs: Option<&Value>) -> Vec<Printed> {
    let (Some((attempt, delivery)), Some(outputs)) = (job, outputs) else { return Vec::new() };
    if outputs.get("exit_code").is_none() {
        return Vec::new();
    }
    let streams = [(Printing::Stdout, "stdout"), (Printing::Stderr, "stderr")];
    let lines = streams.into_iter().flat_map(|(stream, name)| {
        let text = outputs.get(name).and_then(Value::as_str).unwrap_or_default();
        text.split_inclusive('\n').map(move |line| (stream, line.as_bytes().to_vec()))
    });
    let (attempt, delivery) = (*attempt, *delivery);
    lines
        .map(|(stream, bytes)| Printed {
            path: path.clone(),
            attempt,
            delivery,
            at,
            stream,
            bytes,
            cut: false,
        })
        .collect()
}
