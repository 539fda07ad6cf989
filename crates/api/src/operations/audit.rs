//! The audit log.

use crate::code::Code;
use crate::operation::{About, Operation, Role, Route};
use crate::operations::runs::instant;
use crate::perform::{Context, Cursor, Perform, limit};
use crate::refusal::Refusal;
use crate::types::{AuditEntry, Face, Page, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::Timestamp;

/// List who changed what, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListAudit {
    /// Only this actor or principal.
    pub by: Option<String>,
    /// Only this operation, such as `runs.cancel`.
    pub operation: Option<String>,
    /// Only entries about the object with this id.
    pub object: Option<String>,
    pub face: Option<Face>,
    /// At this instant or later.
    pub since: Option<Time>,
    /// Before this instant.
    pub before: Option<Time>,
    /// The most items of a page: 1 to 500, 50 by default.
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    pub cursor: Option<String>,
}

impl Operation for ListAudit {
    type Reply = Page<AuditEntry>;
    const ABOUT: About = About {
        name: "audit.list",
        summary: "List who changed what, the newest first",
        role: Role::Admin,
        errors: &[Code::BadCursor],
        http: &[Route::get("/audit")],
        cli: &["audit"],
        ..About::READS
    };

    fn example() -> Self {
        Self { operation: Some("runs.start".into()), limit: Some(10), ..Self::default() }
    }
}

impl ListAudit {
    /// Which entries are meant.
    fn filter(&self) -> Result<impl Fn(&AuditEntry) -> bool + use<>, Refusal> {
        let bound = |text: &Option<Time>, field| text.as_deref().map(|text| instant(text, field)).transpose();
        let (since, before) = (bound(&self.since, "since")?, bound(&self.before, "before")?);
        let Self { by, operation, object, face, .. } = self.clone();
        Ok(move |entry: &AuditEntry| {
            let at = instant(&entry.at, "at").unwrap_or(Timestamp(0));
            let names = |object: &String| entry.objects.iter().any(|one| one.id == *object);
            by.as_ref().is_none_or(|by| entry.by == *by || entry.principal == *by)
                && operation.as_ref().is_none_or(|operation| entry.operation == *operation)
                && object.as_ref().is_none_or(names)
                && face.is_none_or(|face| entry.face == face)
                && since.is_none_or(|since| at >= since)
                && before.is_none_or(|before| at < before)
        })
    }
}

/// How many entries are read at once.
const READ: usize = 500;

impl Perform for ListAudit {
    async fn perform(self, cx: &Context) -> Result<Page<AuditEntry>, Refusal> {
        let (limit, takes) = (limit(self.limit)?, self.filter()?);
        let cursor = self.cursor.clone();
        let filter = Self { limit: None, cursor: None, ..self };
        let mut before =
            cursor.map(|text| Cursor::read(&text, &filter)).transpose()?.map(|at| at.at.cast_unsigned());
        let empty = Page { items: Vec::new(), next: None };
        cx.read_or(empty, move |engine| {
            let mut items: Vec<AuditEntry> = Vec::new();
            while items.len() <= limit {
                let read = engine.log(before, READ)?;
                let Some((last, _)) = read.last() else { break };
                before = Some(*last);
                let entries = read.iter().filter_map(|(id, body)| {
                    let entry: AuditEntry = serde_json::from_slice(body).ok()?;
                    Some(AuditEntry { id: *id, ..entry })
                });
                items.extend(entries.filter(&takes));
            }
            let more = items.len() > limit;
            items.truncate(limit);
            let next = items.last().filter(|_| more);
            let next =
                next.map(|last| Cursor { at: last.id.cast_signed(), id: String::new() }.write(&filter));
            Ok(Page { items, next })
        })
        .await
    }
}
