//! What the steps of a run have printed.

use super::runs::instant;
use super::sample;
use crate::code::Code;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform, limit};
use crate::refusal::Refusal;
use crate::report::Lines;
use crate::types::{LogLine, Page, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use windlass_runtime::Timestamp;

/// List the lines that the steps of a run have printed, in order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListLogs {
    pub run_id: String,
    /// Only this step: one instance, or a step of the file with all of its instances.
    #[serde(default)]
    pub step: Option<String>,
    /// Only this attempt.
    #[serde(default)]
    pub attempt: Option<u32>,
    #[serde(default)]
    pub stream: Option<Stream>,
    /// Only lines that contain this text; case does not matter.
    #[serde(default)]
    pub query: Option<String>,
    /// Only lines printed at this instant or later.
    #[serde(default)]
    pub since: Option<Time>,
    /// Only the last lines, this many.
    #[serde(default)]
    pub tail: Option<usize>,
    /// The number of lines that the caller has.
    #[serde(default)]
    pub after: Option<u64>,
    #[serde(default)]
    pub limit: Option<usize>,
}

impl ListLogs {
    /// All lines of a run.
    pub fn of(run_id: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            step: None,
            attempt: None,
            stream: None,
            query: None,
            since: None,
            tail: None,
            after: None,
            limit: None,
        }
    }

    /// Which lines are meant.
    fn filter(&self) -> Result<impl Fn(&LogLine) -> bool + use<>, Refusal> {
        let (attempt, stream) = (self.attempt, self.stream);
        let query = self.query.as_ref().map(|text| text.to_lowercase());
        let since = self.since.as_deref().map(|text| instant(text, "since")).transpose()?;
        Ok(move |line: &LogLine| {
            let late = |since: &Timestamp| instant(&line.at, "at").is_ok_and(|at| at >= *since);
            attempt.is_none_or(|attempt| line.attempt == attempt)
                && stream.is_none_or(|stream| line.stream == stream)
                && query.as_ref().is_none_or(|query| line.text.to_lowercase().contains(query))
                && since.as_ref().is_none_or(late)
        })
    }
}

impl Operation for ListLogs {
    type Reply = Page<LogLine>;
    const ABOUT: About = About {
        name: "logs.list",
        summary: "List the lines that the steps of a run have printed",
        subject: Subject::Run,
        errors: &[Code::NoStep],
        http: &[Route::get("/workflow-runs/{run_id}/logs")],
        cli: &["logs"],
        ..About::READS
    };

    fn example() -> Self {
        Self { limit: Some(10), ..Self::of(sample::FINISHED) }
    }
}

impl Perform for ListLogs {
    async fn perform(self, cx: &Context) -> Result<Page<LogLine>, Refusal> {
        let (run, limit) = (cx.run_id(&self.run_id)?, limit(self.limit)?);
        let after = self.after.unwrap_or(0);
        cx.read(move |engine| {
            let takes = self.filter()?;
            let lines = Lines::open(engine, run, self.step)?;
            lines.check_step(false)?;
            let lines = lines.filter(takes);
            if let Some(tail) = self.tail {
                let mut last = VecDeque::new();
                for line in lines {
                    if last.len() == tail.min(limit) {
                        last.pop_front();
                    }
                    last.push_back(line);
                }
                return Ok(Page { items: last.into(), next: None });
            }
            let skip = usize::try_from(after).unwrap_or(usize::MAX);
            let mut items: Vec<LogLine> = lines.skip(skip).take(limit + 1).collect();
            let more = items.len() > limit;
            items.truncate(limit);
            let next = more.then(|| after.saturating_add(limit as u64).to_string());
            Ok(Page { items, next })
        })
        .await
    }
}
