//! What became of trigger firings.

use super::runs::instant;
use crate::code::Code;
use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Cursor, Perform, limit};
use crate::refusal::Refusal;
use crate::types::{Page, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::PastFiring;

/// List trigger firings, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListFirings {
    /// Only those of this trigger.
    pub trigger: Option<String>,
    pub outcome: Option<FiringOutcome>,
    /// Due at this instant or later.
    pub since: Option<Time>,
    /// Due before this instant.
    pub before: Option<Time>,
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    pub cursor: Option<String>,
}

/// One instant at which a trigger was due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Firing {
    /// The trigger and the instant.
    pub firing_id: String,
    pub trigger: String,
    pub due_at: Time,
    pub fired_at: Time,
    pub outcome: FiringOutcome,
    /// Why no run was started.
    pub reason: Option<String>,
    pub run_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FiringOutcome {
    Started,
    Skipped,
}

impl Operation for ListFirings {
    type Reply = Page<Firing>;
    const ABOUT: About = About {
        name: "firings.list",
        summary: "List trigger firings, the newest first",
        errors: &[Code::BadCursor],
        http: &[Route::get("/firings")],
        cli: &["triggers history"],
        ..About::READS
    };

    fn example() -> Self {
        Self { limit: Some(20), ..Self::default() }
    }
}

impl ListFirings {
    /// Which firings are meant.
    fn filter(&self) -> Result<impl Fn(&PastFiring) -> bool + use<>, Refusal> {
        let bound = |text: &Option<Time>, field| text.as_deref().map(|text| instant(text, field)).transpose();
        let (since, before) = (bound(&self.since, "since")?, bound(&self.before, "before")?);
        let (trigger, outcome) = (self.trigger.clone(), self.outcome);
        Ok(move |firing: &PastFiring| {
            let came = if firing.came.is_ok() { FiringOutcome::Started } else { FiringOutcome::Skipped };
            trigger.as_ref().is_none_or(|trigger| **trigger == *firing.trigger)
                && outcome.is_none_or(|outcome| outcome == came)
                && since.is_none_or(|since| firing.due >= since)
                && before.is_none_or(|before| firing.due < before)
        })
    }
}

impl Perform for ListFirings {
    async fn perform(self, cx: &Context) -> Result<Page<Firing>, Refusal> {
        let (limit, takes) = (limit(self.limit)?, self.filter()?);
        let filter = (self.trigger, self.outcome, self.since, self.before);
        let after = self.cursor.map(|text| Cursor::read(&text, &filter)).transpose()?;
        let empty = Page { items: Vec::new(), next: None };
        cx.read_or(empty, move |engine| {
            let mut found =
                engine.firings(after.map(|cursor| cursor.at.cast_unsigned()), limit + 1, takes)?;
            let more = found.len() > limit;
            found.truncate(limit);
            let next = found
                .last()
                .filter(|_| more)
                .map(|last| Cursor { at: last.position.cast_signed(), id: String::new() }.write(&filter));
            Ok(Page { items: found.into_iter().map(shown).collect(), next })
        })
        .await
    }
}

fn shown(firing: PastFiring) -> Firing {
    let (outcome, reason, run_id) = match firing.came {
        Ok(run) => (FiringOutcome::Started, None, Some(run.to_string())),
        Err(because) => (FiringOutcome::Skipped, Some(because.to_string()), None),
    };
    Firing {
        firing_id: format!("{}@{}", firing.trigger, firing.due),
        trigger: firing.trigger.to_string(),
        due_at: firing.due.to_string(),
        fired_at: firing.decided_at.to_string(),
        outcome,
        reason,
        run_id,
    }
}
