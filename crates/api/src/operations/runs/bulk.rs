//! Acting on every run that matches a filter.

use super::list::{RunFilter, page};
use super::{CancelRun, PauseRun, ResumeRun, RetryRun};
use crate::code::Code;
use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Perform, limit};
use crate::refusal::Refusal;
use crate::types::{Json, RunSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::{Clock, Error, new_id};

/// Cancel, pause, resume or retry every run that matches a filter, or that is listed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BulkRuns {
    pub action: BulkAction,
    #[serde(flatten)]
    pub filter: RunFilter,
    /// Instead of a filter, up to 1,000 runs.
    #[serde(default)]
    pub run_ids: Vec<String>,
    /// Needed if neither a filter nor runs are given.
    #[serde(default)]
    pub all: bool,
    #[serde(default)]
    pub reason: Option<String>,
    /// Inputs to change, for `resume` and `retry`.
    #[serde(default)]
    pub inputs: Option<Json>,
    #[serde(default)]
    pub by: Option<String>,
    /// Only list the runs.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub limit: Option<usize>,
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    Cancel,
    Pause,
    Resume,
    Retry,
}

/// How many runs a call may list.
const RUNS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bulk {
    pub items: Vec<BulkItem>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkItem {
    pub run_id: String,
    /// Whether it was done; false for a refusal and under `dry_run`.
    pub done: bool,
    pub error: Option<Refusal>,
    /// The run as it was before; null if it was named.
    pub run: Option<RunSummary>,
}

impl Operation for BulkRuns {
    type Reply = Bulk;
    const ABOUT: About = About {
        name: "runs.bulk",
        summary: "Cancel, pause, resume or retry every run that matches a filter",
        errors: &[Code::BadCursor],
        http: &[Route::post("/bulk/runs")],
        cli: &["cancel", "pause"],
        executes: true,
        ..About::CHANGES
    };

    fn example() -> Self {
        let filter = RunFilter { status: vec!["waiting".into()], ..RunFilter::default() };
        Self {
            action: BulkAction::Cancel,
            filter,
            run_ids: Vec::new(),
            all: false,
            reason: None,
            inputs: None,
            by: None,
            dry_run: true,
            limit: None,
            cursor: None,
        }
    }
}

impl Perform for BulkRuns {
    async fn perform(self, cx: &Context) -> Result<Bulk, Refusal> {
        if self.filter.is_empty() && self.run_ids.is_empty() && !self.all {
            let refusal = Refusal::new(Code::BadRequest, "neither a filter nor runs are given");
            return Err(refusal.help("set `all` to mean every unfinished run"));
        }
        if self.run_ids.len() > RUNS_MAX {
            let message = format!("{} runs are listed", self.run_ids.len());
            let refusal = Refusal::new(Code::TooLarge, message).field("run_ids");
            return Err(refusal.help(format!("list at most {RUNS_MAX} runs in a call")));
        }
        let limit = limit(self.limit)?;
        let (runs, next) = match self.run_ids.is_empty() {
            false => (self.run_ids.iter().map(|run| (run.clone(), None)).collect(), None),
            true => {
                // A retry is about runs that have ended, the other actions about the rest.
                let unfinished = self.filter.unfinished || self.action != BulkAction::Retry;
                let filter = RunFilter { unfinished, ..self.filter.clone() };
                let cursor = self.cursor.clone();
                let page = cx.read(move |engine| page(engine, &filter, limit, cursor.as_deref())).await?;
                let runs = page.items.into_iter().map(|run| (run.run_id.clone(), Some(run)));
                (runs.collect::<Vec<_>>(), page.next)
            }
        };
        let mut items = Vec::new();
        for (run_id, run) in runs {
            let done = if self.dry_run { Ok(false) } else { self.act(cx, &run_id).await.map(|()| true) };
            let (done, error) = match done {
                Ok(done) => (done, None),
                Err(refusal) => (false, Some(refusal)),
            };
            items.push(BulkItem { run_id, done, error, run });
        }
        Ok(Bulk { items, next })
    }
}

impl BulkRuns {
    async fn act(&self, cx: &Context, run_id: &str) -> Result<(), Refusal> {
        let (run_id, by) = (run_id.to_owned(), self.by.clone());
        match self.action {
            BulkAction::Cancel => {
                CancelRun { run_id, step: None, reason: self.reason.clone(), by }.perform(cx).await.map(drop)
            }
            BulkAction::Pause => PauseRun { run_id, by }.perform(cx).await.map(drop),
            BulkAction::Resume => {
                let resume = ResumeRun { run_id, inputs: self.inputs.clone(), wait_seconds: None, by };
                resume.perform(cx).await.map(drop)
            }
            BulkAction::Retry => {
                // The id of the call names one run only.
                let new_run_id = Some(new_id(&Clock::Real).map_err(Error::from)?.to_string());
                let inputs = self.inputs.clone();
                let retry = RetryRun { run_id, inputs, by, new_run_id, ..RetryRun::default() };
                retry.perform(cx).await.map(drop)
            }
        }
    }
}
