//! The steps of a run, a page at a time.

use super::sample;
use crate::code::Code;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Cursor, Perform, limit};
use crate::refusal::Refusal;
use crate::report::Report;
use crate::types::{Page, StepView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List the steps of a run in the order of the file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListSteps {
    pub run_id: String,
    /// The run as it was after this event.
    #[serde(default)]
    pub event: Option<u64>,
    #[serde(default)]
    pub limit: Option<usize>,
    #[serde(default)]
    pub cursor: Option<String>,
}

impl Operation for ListSteps {
    type Reply = Page<StepView>;
    const ABOUT: About = About {
        name: "steps.list",
        summary: "List the steps of a run",
        subject: Subject::Run,
        errors: &[Code::NoEvent, Code::BadCursor],
        http: &[Route::get("/workflow-runs/{run_id}/steps")],
        cli: &["show"],
        ..About::READS
    };

    fn example() -> Self {
        Self { run_id: sample::FINISHED.into(), event: None, limit: Some(10), cursor: None }
    }
}

impl Perform for ListSteps {
    async fn perform(self, cx: &Context) -> Result<Page<StepView>, Refusal> {
        let (run, limit) = (cx.run_id(&self.run_id)?, limit(self.limit)?);
        let list = (self.run_id, self.event);
        let from = match &self.cursor {
            Some(text) => Cursor::read(text, &list)?.at,
            None => 0,
        };
        let from = usize::try_from(from).unwrap_or_default();
        cx.read(move |engine| {
            let view = match list.1 {
                Some(event) => engine.view_at(&run, event)?,
                None => engine.view(&run)?,
            };
            let report = match list.1 {
                // At that moment a process executed the run.
                Some(_) => Report::new(engine.dialects(), &run, &view, true),
                None => Report::of(engine, &run, &view),
            };
            let (items, more) = report.page(from, limit);
            let at = i64::try_from(from + items.len()).unwrap_or(i64::MAX);
            let next = more.then(|| Cursor { at, id: String::new() }.write(&list));
            Ok(Page { items, next })
        })
        .await
    }
}
