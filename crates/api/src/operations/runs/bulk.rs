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
use windlass_ir::RunStatus;

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
        let chosen = self.choose(cx).await?;
        if !self.dry_run {
            cx.choose(serde_json::to_value(&chosen).unwrap_or_default());
        }
        let mut items = Vec::new();
        for (number, ChosenRun { run_id, run }) in chosen.runs.into_iter().enumerate() {
            let done =
                if self.dry_run { Ok(false) } else { self.act(cx, &run_id, number).await.map(|()| true) };
            items.push(BulkItem::of(run_id, run, done));
        }
        Ok(Bulk { items, next: chosen.next })
    }

    /// Acts on the runs that the first call has chosen. An action that it has taken is done.
    async fn done(self, cx: &Context) -> Result<Bulk, Refusal> {
        let chosen: Option<Chosen> =
            cx.chosen().and_then(|chosen| serde_json::from_value(chosen.clone()).ok());
        let Some(chosen) = chosen else { return self.perform(cx).await };
        let mut items = Vec::new();
        for (number, ChosenRun { run_id, run }) in chosen.runs.into_iter().enumerate() {
            let done = match self.act(cx, &run_id, number).await {
                Ok(()) => Ok(true),
                Err(refusal) if self.has_done(cx, &run_id, run.as_ref(), &refusal).await => Ok(true),
                Err(refusal) => Err(refusal),
            };
            items.push(BulkItem::of(run_id, run, done));
        }
        Ok(Bulk { items, next: chosen.next })
    }
}

/// The runs that a call acts on.
#[derive(Debug, Serialize, Deserialize)]
struct Chosen {
    runs: Vec<ChosenRun>,
    next: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ChosenRun {
    run_id: String,
    /// None if it was named.
    run: Option<RunSummary>,
}

impl BulkItem {
    fn of(run_id: String, run: Option<RunSummary>, done: Result<bool, Refusal>) -> Self {
        let (done, error) = match done {
            Ok(done) => (done, None),
            Err(refusal) => (false, Some(refusal)),
        };
        Self { run_id, done, error, run }
    }
}

impl BulkRuns {
    async fn choose(&self, cx: &Context) -> Result<Chosen, Refusal> {
        let limit = limit(self.limit)?;
        if !self.run_ids.is_empty() {
            let named = |run_id: &String| ChosenRun { run_id: run_id.clone(), run: None };
            return Ok(Chosen { runs: self.run_ids.iter().map(named).collect(), next: None });
        }
        // A retry is about runs that have ended, the other actions about the rest.
        let unfinished = self.filter.unfinished || self.action != BulkAction::Retry;
        let filter = RunFilter { unfinished, ..self.filter.clone() };
        let cursor = self.cursor.clone();
        let page = cx.read(move |engine| page(engine, &filter, limit, cursor.as_deref())).await?;
        let found = |run: RunSummary| ChosenRun { run_id: run.run_id.clone(), run: Some(run) };
        Ok(Chosen { runs: page.items.into_iter().map(found).collect(), next: page.next })
    }

    /// Whether a refusal shows that an earlier call has done this.
    async fn has_done(
        &self,
        cx: &Context,
        run_id: &str,
        before: Option<&RunSummary>,
        refusal: &Refusal,
    ) -> bool {
        match (self.action, refusal.code) {
            (BulkAction::Cancel, Code::RunFinished) => {
                let Ok(run) = cx.run_id(run_id) else { return false };
                cx.run(&run).await.is_ok_and(|run| run.status == RunStatus::Cancelled)
            }
            (BulkAction::Pause, Code::AlreadyPaused) | (BulkAction::Retry, Code::RunExists) => true,
            // A run that was found unfinished has been resumed and has ended since.
            (BulkAction::Resume, Code::RunFinished) => before.is_some(),
            (BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume | BulkAction::Retry, _) => false,
        }
    }

    async fn act(&self, cx: &Context, run_id: &str, number: usize) -> Result<(), Refusal> {
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
                // Each retry needs an id of its own, and the same one if the call is repeated.
                let new_run_id = cx.new_run_id().map(|id| format!("{id}-{number}"));
                let inputs = self.inputs.clone();
                let retry = RetryRun { run_id, inputs, by, new_run_id, ..RetryRun::default() };
                retry.perform(cx).await.map(drop)
            }
        }
    }
}
