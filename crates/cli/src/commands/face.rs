//! How a run is started, followed and reported: in the manner of Windlass, or of another program.

use super::follow::End;
use crate::answer::{Answer, Status};
use crate::{data, show};
use std::io::IsTerminal;
use std::path::Path;
use windlass_ir::Plan;
use windlass_ir::plan::Given;
use windlass_runtime::report;
use windlass_runtime::{BoxFuture, Door, Engine, Error, Query, RunId, Update, View};

/// The manner of a program.
pub trait Face {
    /// Whether the user is asked for inputs that are missing.
    fn asks_for_inputs(&self) -> bool;

    /// The values that were given on the command line.
    fn given(&self, plan: &Plan, params: Vec<(String, String)>) -> Vec<(String, Given)>;

    /// Whether a person can decide at gates.
    fn is_attended(&self) -> bool;

    /// A run of this plan is about to begin.
    fn begins(&self, plan: &Plan);

    /// Follows the run instead of the usual views.
    fn audience(&self, following: &Followed<'_>) -> Result<Option<Box<dyn Audience>>, Error>;

    /// The run is followed no longer.
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

/// Hears everything about a run while it is followed.
pub trait Audience {
    fn tell(&mut self, update: Update) -> Result<(), Error>;

    /// The user has asked the process to stop.
    fn stopping(&mut self);

    /// Waits for something else to do, and does it. May be dropped before it is done.
    fn next(&mut self) -> BoxFuture<'_, ()>;
}

/// That of Windlass.
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

    fn begins(&self, _: &Plan) {}

    fn audience(&self, _: &Followed<'_>) -> Result<Option<Box<dyn Audience>>, Error> {
        Ok(None)
    }

    fn ended(&self, engine: &Engine, run: &RunId, view: &View, end: End) -> Answer {
        let mut answer = Answer::new(match end {
            End::Rests(status) => status.into(),
            End::Stopped | End::Left => Status::Stopped,
        });
        let result = engine.result_of(run, view);
        if self.json {
            answer.stdout = format!("{result}\n");
        }
        match end {
            End::Stopped | End::Left => {
                answer.stderr = format!("stopped; go on with `windlass resume {run}`\n");
            }
            End::Rests(_) if self.json => {}
            End::Rests(_) => {
                answer.stderr = show::progress::ending(run, &result, report::is_resumable(view));
                answer.stderr += &others(engine, run);
            }
        }
        answer
    }
}

/// One line when other runs of the folder are not finished and no process executes them.
fn others(engine: &Engine, id: &RunId) -> String {
    let unfinished =
        engine.runs(&Query { limit: 1_000, unfinished_only: true, ..Query::default() }).unwrap_or_default();
    let others = unfinished
        .iter()
        .filter(|row| row.run != *id && !engine.is_live(&row.run) && row.row.ended_at.is_none())
        .count();
    match others {
        0 => String::new(),
        1 => "one other run is not finished: see `windlass runs --unfinished`\n".to_owned(),
        count => format!("{count} other runs are not finished: see `windlass runs --unfinished`\n"),
    }
}
