//! The lines that the steps of a run have printed.

use super::item::item_name;
use crate::refusal::Refusal;
use crate::types::{LineKind, LogLine, Stream};
use std::sync::Arc;
use windlass_ir::suggest;
use windlass_runtime::{Engine, Error, Output, Path, Printed, Printing, RunId, View, ids};

/// The lines of a run in the order in which they were printed. It ends with the last line, and continues if more was printed since.
#[derive(Debug)]
pub struct Lines {
    engine: Arc<Engine>,
    run: RunId,
    view: View,
    output: Output,
    step: Option<String>,
    /// The step that printed last, its id, and what people call it.
    last: Option<(Path, String, String)>,
}

impl Lines {
    /// Of one step, or of all.
    pub fn open(engine: &Arc<Engine>, run: RunId, step: Option<String>) -> Result<Self, Refusal> {
        let (view, output) = (engine.view(&run)?, engine.output(&run)?);
        Ok(Self { engine: engine.clone(), run, view, output, step, last: None })
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    /// Begins with the first line again.
    pub fn rewind(&mut self) -> Result<(), Refusal> {
        self.output = self.engine.output(&self.run)?;
        Ok(())
    }

    /// Reads the run again, which may have more steps now.
    pub fn refresh(&mut self) -> Result<(), Refusal> {
        (self.view, self.last) = (self.engine.view(&self.run)?, None);
        Ok(())
    }

    /// Refuses a step that the run does not have. A follower may name a step that the plan has and the run has not reached.
    pub fn check_step(&self, follow: bool) -> Result<(), Refusal> {
        let Some(step) = &self.step else { return Ok(()) };
        let planned = || self.view.program().plan.steps.iter().any(|known| *known.id == **step);
        let mut hooks = self.view.hooks().map(|(path, _)| path);
        let known = hooks.any(|path| self.takes(path)) || self.view.steps().any(|(path, _)| self.takes(path));
        if known || follow && planned() {
            return Ok(());
        }
        let names: Vec<String> = self.view.steps().map(|(path, _)| self.name(path)).collect();
        let whose = format!("run `{}`", self.run);
        let names = names.iter().map(String::as_str);
        Err(match planned() && suggest::nearest(step, names.clone()).is_none() {
            true => {
                Error::NoStep { whose, step: step.clone(), instead: "the run has not reached it".to_owned() }
            }
            false => Error::no_step(whose, step, names),
        }
        .into())
    }

    fn name(&self, path: &Path) -> String {
        ids::name(self.engine.dialects(), &self.view, path).id
    }

    /// Whether a line at this path belongs to the step that was asked for.
    fn takes(&self, path: &Path) -> bool {
        let Some(step) = &self.step else { return true };
        let around = std::iter::successors(Some(path.clone()), Path::parent);
        around.filter(|path| !path.is_run()).any(|path| {
            let name = ids::name(self.engine.dialects(), &self.view, &path);
            name.id == *step
                || self.shown(&path) == *step
                || *name.plain == **step
                || ids::rough(&path) == *step
                || path.to_string() == *step
        })
    }

    /// How many lines of the log cannot be read.
    pub fn damaged(&self) -> u64 {
        self.output.damaged()
    }

    /// The next line, and what people call its step.
    pub fn next_named(&mut self) -> Option<(String, LogLine)> {
        let line = self.next()?;
        let name = self.last.as_ref().map(|(_, _, shown)| shown.clone());
        Some((name.unwrap_or_default(), line))
    }

    /// `build (mac, stable)` in an item with a name, else the id of the step.
    pub fn shown(&self, path: &Path) -> String {
        let name = ids::name(self.engine.dialects(), &self.view, path);
        match item_name(&self.view, path) {
            Some(item) => format!("{} ({item})", name.plain),
            None => name.id,
        }
    }

    fn line(&mut self, printed: &Printed) -> LogLine {
        // Consecutive lines mostly come from one step.
        if self.last.as_ref().is_none_or(|(path, ..)| *path != printed.path) {
            let path = &printed.path;
            self.last = Some((path.clone(), self.name(path), self.shown(path)));
        }
        let step = self.last.as_ref().map(|(_, id, _)| id.clone()).unwrap_or_default();
        let hex = std::str::from_utf8(&printed.bytes)
            .is_err()
            .then(|| data_encoding::HEXLOWER.encode(&printed.bytes));
        LogLine {
            kind: LineKind::Line,
            run_id: self.run.to_string(),
            step,
            path: printed.path.to_string(),
            attempt: printed.attempt,
            delivery: printed.delivery,
            at: printed.at.to_string(),
            stream: match printed.stream {
                Printing::Stdout => Stream::Stdout,
                Printing::Stderr => Stream::Stderr,
            },
            text: String::from_utf8_lossy(&printed.bytes).into_owned(),
            hex,
            cut: printed.cut,
        }
    }
}

impl Iterator for Lines {
    type Item = LogLine;

    fn next(&mut self) -> Option<LogLine> {
        loop {
            let printed = self.output.next()?;
            if self.takes(&printed.path) {
                return Some(self.line(&printed));
            }
        }
    }
}
