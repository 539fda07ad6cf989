//! The runs of a data folder, a page at a time.

use crate::code::Code;
use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Cursor, Perform, limit};
use crate::refusal::Refusal;
use crate::report::summary;
use crate::types::{Page, RunSummary, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::RunStatus;
use windlass_runtime::{Engine, Query, RunRow, Timestamp};

/// Selects runs. Different members combine with AND, the values of a list with OR.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunFilter {
    /// Neutral words, or words of a dialect.
    pub status: Vec<String>,
    pub workflow: Vec<String>,
    pub dialect: Option<String>,
    /// Started at this instant or later.
    pub since: Option<Time>,
    /// Started before this instant.
    pub before: Option<Time>,
    /// Occurs in the id, the workflow, the inputs or the reason; case does not matter.
    pub query: Option<String>,
    /// Only runs without a result.
    pub unfinished: bool,
}

impl RunFilter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn stored(&self) -> Result<Query, Refusal> {
        let (statuses, words) =
            self.status.iter().partition::<Vec<&String>, _>(|word| RunStatus::by_word(word).is_some());
        let instant = |text: &Option<Time>, field: &str| -> Result<Option<Timestamp>, Refusal> {
            let parsed = text.as_deref().map(str::parse::<jiff::Timestamp>).transpose();
            parsed.map(|at| at.map(|at| Timestamp(at.as_microsecond()))).map_err(|_| {
                let refusal = Refusal::new(Code::BadRequest, format!("invalid instant in `{field}`"));
                refusal.field(field).help("write it like `2026-03-01T09:30:00Z`")
            })
        };
        Ok(Query {
            going_only: self.unfinished,
            statuses: statuses.into_iter().filter_map(|word| RunStatus::by_word(word)).collect(),
            dialect_statuses: words.into_iter().cloned().collect(),
            workflows: self.workflow.clone(),
            dialect: self.dialect.clone(),
            since: instant(&self.since, "since")?,
            before: instant(&self.before, "before")?,
            search: self.query.clone(),
            ..Query::default()
        })
    }
}

/// List runs, the last started first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListRuns {
    #[serde(flatten)]
    pub filter: RunFilter,
    /// The most items of a page: 1 to 500, 50 by default.
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    pub cursor: Option<String>,
}

impl Operation for ListRuns {
    type Reply = Page<RunSummary>;
    const ABOUT: About = About {
        name: "runs.list",
        summary: "List runs, the last started first",
        errors: &[Code::BadCursor],
        http: &[Route::get("/workflow-runs")],
        cli: &["runs"],
        ..About::READS
    };

    fn example() -> Self {
        let filter = RunFilter { status: vec!["success".into()], ..RunFilter::default() };
        Self { filter, limit: Some(10), cursor: None }
    }
}

impl Perform for ListRuns {
    async fn perform(self, cx: &Context) -> Result<Page<RunSummary>, Refusal> {
        let limit = limit(self.limit)?;
        cx.read_or(Page { items: Vec::new(), next: None }, move |engine| {
            page(engine, &self.filter, limit, self.cursor.as_deref())
        })
        .await
    }
}

/// A page of the runs that a filter takes.
pub(super) fn page(
    engine: &Engine,
    filter: &RunFilter,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<RunSummary>, Refusal> {
    let mut query = filter.stored()?;
    let after = cursor.map(|text| Cursor::read(text, filter)).transpose()?;
    let mut rows = match &after {
        None => engine.runs(&Query { limit: limit + 1, ..query })?,
        Some(cursor) => {
            let at = Timestamp(cursor.at.saturating_add(1));
            query.before = Some(query.before.map_or(at, |before| before.min(at)));
            rows_after(engine, &query, cursor, limit + 1)?
        }
    };
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| {
        let at = last.row.started_at.unwrap_or_default().0;
        Cursor { at, id: last.run.to_string() }.write(filter)
    });
    Ok(Page { items: rows.iter().map(summary).collect(), next })
}

/// The rows behind a cursor. Runs that started at the same instant are told apart by their position.
fn rows_after(engine: &Engine, query: &Query, cursor: &Cursor, count: usize) -> Result<Vec<RunRow>, Refusal> {
    let mut wanted = count;
    loop {
        // One more for the run of the cursor itself.
        let rows = engine.runs(&Query { limit: wanted + 1, ..query.clone() })?;
        let whole = rows.len() <= wanted;
        let is_same = |row: &RunRow| row.row.started_at.unwrap_or_default().0 == cursor.at;
        let position = rows.iter().position(|row| row.run.as_str() == cursor.id);
        let first = position.map_or_else(|| rows.iter().take_while(|row| is_same(row)).count(), |at| at + 1);
        if whole || rows.len() - first >= count {
            return Ok(rows.into_iter().skip(first).take(count).collect());
        }
        wanted = wanted.saturating_mul(2);
    }
}
