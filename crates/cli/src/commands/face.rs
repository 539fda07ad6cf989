//! How to start, follow and report a run: in the style of Windlass or of another program.

use super::follow::End;
use crate::answer::{Answer, Exit};
use crate::{data, show};
use std::io::IsTerminal;
use std::path::Path;
use windlass_api::report::Report;
use windlass_api::{Door, Refusal};
use windlass_ir::Plan;
use windlass_ir::plan::Given;
use windlass_runtime::{BoxFuture, Engine, Error, Query, RunId, RunRow, Update, View};

/// The style of a program.
pub trait Face {
    /// Whether to ask the user for missing inputs.
    fn asks_for_inputs(&self) -> bool;

    /// The values from the command line.
    fn given(&self, plan: &Plan, params: Vec<(String, String)>) -> Vec<(String, Given)>;

    /// Whether the user can decide at gates.
    fn is_attended(&self) -> bool;

    /// Whether to warn about what is missing on this machine.
    fn warns(&self) -> bool;

    /// Called before a run of this plan begins.
    fn begins(&self, plan: &Plan);

    /// Follows the run instead of the usual views.
    fn audience(&self, following: &Followed<'_>) -> Result<Option<Box<dyn Audience>>, Refusal>;

    /// Called when Windlass stops following the run.
    fn ended(&self, engine: &Engine, run: &RunId, view: &View, end: End) -> Answer;
}

/// A run that a command begins to follow.
#[derive(Debug)]
pub struct Followed<'a> {
    pub run: &'a RunId,
    pub door: &'a Door,
    pub folder: &'a Path,
    pub by: &'a str,
}

impl Followed<'_> {
    /// An engine that reads the folder of the run.
    pub fn engine(&self) -> Result<std::sync::Arc<Engine>, Error> {
        match self.door {
            Door::Owner(engine) => Ok(engine.clone()),
            Door::Client(_) => data::look(self.folder),
        }
    }
}

/// Receives all updates about a run.
pub trait Audience {
    fn update(&mut self, update: Update) -> Result<(), Refusal>;

    /// The user asked the process to stop.
    fn stopping(&mut self);

    /// Waits for other work and does it. The future may be dropped early.
    fn next(&mut self) -> BoxFuture<'_, ()>;
}

/// The style of Windlass.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pub json: bool,
}

impl Face for Own {
    fn asks_for_inputs(&self) -> bool {
        !self.json
    }

    fn given(&self, _: &Plan, params: Vec<(String, String)>) -> Vec<(String, Given)> {
        params.into_iter().map(|(name, text)| (name, Given::Text(text))).collect()
    }

    fn is_attended(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    fn warns(&self) -> bool {
        true
    }

    fn begins(&self, _: &Plan) {}

    fn audience(&self, _: &Followed<'_>) -> Result<Option<Box<dyn Audience>>, Refusal> {
        Ok(None)
    }

    fn ended(&self, engine: &Engine, run: &RunId, view: &View, end: End) -> Answer {
        let mut answer = Answer::new(match end {
            End::Rests(status) => status.into(),
            End::Stopped | End::Left => Exit::Stopped,
        });
        // Without the coordinator only the queue positions are missing.
        let shared = engine.shared().ok();
        let result = Report::of(engine, run, view).with_shared(shared.as_ref()).run();
        if self.json {
            answer.stdout = serde_json::to_string(&result).unwrap_or_default() + "\n";
        }
        match end {
            End::Stopped | End::Left => {
                answer.stderr = format!("stopped; continue with `windlass resume {run}`\n");
            }
            End::Rests(_) if self.json => {}
            End::Rests(_) => {
                answer.stderr = show::progress::ending(&result);
                answer.stderr += &others(engine, run);
            }
        }
        answer.stderr = data::hinted(&answer.stderr, engine.folder());
        answer
    }
}

/// A reminder if other runs of the folder are unfinished and no process executes them.
fn others(engine: &Engine, id: &RunId) -> String {
    let unfinished =
        engine.runs(&Query { limit: 1_000, unfinished_only: true, ..Query::default() }).unwrap_or_default();
    let executed = engine.executed();
    let is_left = |row: &&RunRow| row.row.ended_at.is_none() && !executed.contains(&row.run);
    let others = unfinished.iter().filter(|row| row.run != *id).filter(is_left).count();
    match others {
        0 => String::new(),
        1 => "one other run is unfinished: see `windlass runs --unfinished`\n".to_owned(),
        count => format!("{count} other runs are unfinished: see `windlass runs --unfinished`\n"),
    }
}
