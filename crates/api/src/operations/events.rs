//! What happened in a run.

use super::sample;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform, limit};
use crate::refusal::Refusal;
use crate::report::Projector;
use crate::types::{Event, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List the events of a run, the oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListEvents {
    pub run_id: String,
    /// The number of the last event that the caller has.
    #[serde(default)]
    pub after: Option<u64>,
    #[serde(default)]
    pub limit: Option<usize>,
    /// What a stream has beside events.
    #[serde(default)]
    pub include: Vec<EventExtra>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventExtra {
    /// The lines that steps print.
    Lines,
    /// Parts of answers as they are given.
    Deltas,
}

impl Operation for ListEvents {
    type Reply = Page<Event>;
    const ABOUT: About = About {
        name: "events.list",
        summary: "List the events of a run, the oldest first",
        subject: Subject::Run,
        http: &[Route::get("/workflow-runs/{run_id}/events")],
        cli: &["events"],
        ..About::READS
    };

    fn example() -> Self {
        Self { run_id: sample::FINISHED.into(), after: None, limit: Some(10), include: Vec::new() }
    }
}

impl Perform for ListEvents {
    async fn perform(self, cx: &Context) -> Result<Page<Event>, Refusal> {
        let (run, limit) = (cx.run_id(&self.run_id)?, limit(self.limit)?);
        let after = self.after.unwrap_or(0);
        cx.read(move |engine| {
            let events = engine.events(&run)?;
            let mut projector = Projector::new(engine.clone(), run);
            let begin = usize::try_from(after).unwrap_or(usize::MAX).min(events.len());
            let end = begin.saturating_add(limit).min(events.len());
            projector.skip(&events[..begin])?;
            let mut items = Vec::new();
            for (seq, event) in (begin as u64 + 1..).zip(&events[begin..end]) {
                items.extend(projector.next(seq, event)?);
            }
            let next = (end < events.len()).then(|| end.to_string());
            Ok(Page { items, next })
        })
        .await
    }
}
