//! The output of the steps of a run: from its log, and from its events where the log has nothing. A log may be missing, but the
//! outputs of steps are durable in the events.

use crate::engine::{Engine, Error};
use std::collections::{HashMap, HashSet};
use windlass_engine::{Event, Outcome, Path, RunId, Timestamp, What};
use windlass_ir::Value;
use windlass_store::{LogReader, Logs, Printed, Printing};

/// The output of a run in chronological order.
#[derive(Debug)]
pub struct Output {
    /// The location of the log, which may not exist yet.
    file: Option<(Logs, RunId)>,
    log: Option<LogReader>,
    /// Output that only the events have, the latest first.
    recorded: Vec<Printed>,
    /// The next line of the log, if recorded output comes before it.
    next: Option<Printed>,
}

impl Engine {
    /// The output of a run so far.
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
    /// The number of damaged lines in the log.
    pub fn damaged(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.damaged)
    }
}

/// Ends at the current end of the output. Call `next` again later for new lines.
impl Iterator for Output {
    type Item = Printed;

    fn next(&mut self) -> Option<Printed> {
        if let (None, Some((logs, run))) = (&self.log, &self.file) {
            // The first line of output creates the log. An unreadable log counts as missing.
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

/// The output of commands according to their outcomes, oldest first.
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

/// Both streams of a command. A step that never started a job has no output.
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
