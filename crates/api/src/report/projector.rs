//! A run that follows its events as they come, and the public form of these events.

use super::Report;
use crate::refusal::Refusal;
use crate::types::{Event as Public, LineKind, LogLine, Sign, Stream, Streamed};
use std::sync::Arc;
use windlass_runtime::{Engine, Error, Event, Line, RunId, Stream as From, Timestamp, View, ids};

/// The view of a run after each of its events. It reads the events that it missed from the journal.
#[derive(Debug)]
pub struct Replay {
    engine: Arc<Engine>,
    run: RunId,
    view: Option<View>,
}

impl Replay {
    pub fn new(engine: Arc<Engine>, run: RunId) -> Self {
        Self { engine, run, view: None }
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The run so far. None before the first event.
    pub fn view(&self) -> Option<&View> {
        self.view.as_ref()
    }

    /// Passes the first events of the run without telling about them.
    pub fn skip(&mut self, events: &[Event]) -> Result<(), Refusal> {
        let view = match &mut self.view {
            Some(view) => view,
            none => none.insert(View::new(self.engine.program(&self.run)?)),
        };
        for event in events {
            view.apply(event).map_err(|cause| Error::contradictory(&self.run, cause))?;
        }
        Ok(())
    }

    /// The run after an event. None for an event that came before.
    pub fn apply(&mut self, seq: u64, event: &Event) -> Result<Option<&View>, Refusal> {
        let view = match &mut self.view {
            Some(view) => view,
            none => none.insert(View::new(self.engine.program(&self.run)?)),
        };
        if seq <= view.events {
            return Ok(None);
        }
        let contradictory = |cause| Refusal::from(Error::contradictory(&self.run, cause));
        if seq > view.events + 1 {
            let missed = self.engine.events(&self.run)?;
            let from = usize::try_from(view.events).unwrap_or(usize::MAX);
            let until = usize::try_from(seq - 1).unwrap_or(usize::MAX).min(missed.len());
            for event in missed.get(from..until).unwrap_or_default() {
                view.apply(event).map_err(contradictory)?;
            }
        }
        view.apply(event).map_err(contradictory)?;
        Ok(Some(view))
    }
}

/// Turns the events of a run into public ones.
#[derive(Debug)]
pub struct Projector(Replay);

impl Projector {
    pub fn new(engine: Arc<Engine>, run: RunId) -> Self {
        Self(Replay::new(engine, run))
    }

    /// Passes the first events of the run without their public form.
    pub fn skip(&mut self, events: &[Event]) -> Result<(), Refusal> {
        self.0.skip(events)
    }

    /// Whether this event follows the last one. Otherwise [`Projector::next`] reads the journal, which blocks.
    pub fn is_next(&self, seq: u64) -> bool {
        self.0.view.as_ref().is_some_and(|view| seq <= view.events + 1)
    }

    /// The public form of a line, or of a part of an answer, that a step has just printed.
    pub fn line(&self, line: &Line, at: Timestamp) -> Streamed {
        let path = &line.job.path;
        let step = match &self.0.view {
            Some(view) => ids::name(self.0.engine.dialects(), view, path).id,
            None => ids::rough(path),
        };
        let text = String::from_utf8_lossy(&line.bytes).into_owned();
        let stream = match line.stream {
            From::Stdout => Stream::Stdout,
            From::Stderr => Stream::Stderr,
            From::Answer => {
                let (path, attempt) = (path.to_string(), line.job.attempt);
                return Streamed::Sign(Sign::Delta { step, path, attempt, text });
            }
        };
        let hex = std::str::from_utf8(&line.bytes).is_err();
        Streamed::Line(Box::new(LogLine {
            kind: LineKind::Line,
            run_id: self.0.run.to_string(),
            step,
            path: path.to_string(),
            attempt: line.job.attempt,
            delivery: line.job.delivery,
            at: at.to_string(),
            stream,
            text,
            hex: hex.then(|| data_encoding::HEXLOWER.encode(&line.bytes)),
            cut: false,
        }))
    }

    /// The public form of an event. None for one that came before.
    pub fn next(&mut self, seq: u64, event: &Event) -> Result<Option<Public>, Refusal> {
        let (dialects, run) = (self.0.engine.dialects(), self.0.run.clone());
        let view = self.0.apply(seq, event)?;
        Ok(view.map(|view| Report::in_passing(dialects, &run, view).event(seq, event)))
    }
}
