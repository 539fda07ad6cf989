//! The view: one row per run, folded from the journal by a projection that knows the meaning of events. It is a
//! cache: rebuilding it loses only the times at which resting runs have to be loaded.

use crate::error::Error;
use crate::journal::{Lsn, Record};
use crate::pending::Pending;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use windlass_engine::{Event, Path, RunId, Timestamp};
use windlass_ir::RunStatus;

/// What lists show about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub workflow: String,
    pub dialect: String,
    /// The digest of its plan.
    pub plan: String,
    /// As far as the journal tells: a run whose process has died counts as running.
    pub status: RunStatus,
    /// The same in the dialect's own words.
    pub dialect_status: String,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Why it failed or was canceled; before its end, the last failure that may become the reason.
    pub reason: Option<String>,
    /// The step that the reason is from.
    pub failed_step: Option<String>,
    pub has_failures: bool,
    /// Where the run is. Its status depends on it until it ends.
    pub progress: Progress,
    /// Its inputs as text, up to a searchable length.
    pub inputs: String,
    pub details: Details,
}

/// What lists show and no query asks for, stored together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    pub by: Option<String>,
    /// When it began, if it did not begin at once.
    pub began_at: Option<Timestamp>,
    /// The run that called it.
    pub parent: Option<String>,
    /// The outermost of the runs that wait for it.
    pub root: Option<String>,
    pub retry_of: Option<String>,
    pub mocked: bool,
    /// The class and the message of the failure in `reason`.
    pub failure: Option<(String, String)>,
    /// Whether everything was undone.
    pub undone: Option<bool>,
    /// A gate ended it for good.
    pub aborted: bool,
    pub events: u64,
    /// Where it failed.
    pub failed_at: Option<Path>,
    /// What it waits for, up to a limit.
    pub waits: Vec<RowWait>,
    /// The outermost steps of its plan, and how many of them are over.
    pub steps: Option<u32>,
    pub steps_over: u32,
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowWait {
    /// As people see it; none for the run itself.
    pub step: Option<String>,
    pub kind: RowWaitKind,
    /// The question, the signal or the called run, up to a readable length.
    pub message: Option<String>,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowWaitKind {
    Gate,
    Signal,
    Run,
    /// Its start time.
    Start,
    /// A slot, before it begins.
    Slot,
}

/// Everything that the status of an unfinished run depends on. Sets, so that each event costs the same regardless of
/// the number of open steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// It needs slots before it begins.
    pub needs_slots: bool,
    pub awaits_slots: bool,
    pub awaits_start: bool,
    pub paused: bool,
    pub interrupted: bool,
    /// The steps that wait for a decision, a signal or a called run.
    pub waiting: BTreeSet<Path>,
    /// The steps that wait for a slot, a rate or a budget.
    pub queued: BTreeSet<Path>,
    /// The steps that advance without outside input.
    pub moving: BTreeSet<Path>,
    /// The loops that have begun.
    pub loops: BTreeSet<Path>,
    /// The open steps that call a run, and whether it is known.
    pub calls: BTreeSet<Path>,
    pub called: BTreeSet<Path>,
}

impl Row {
    /// Whether this is its status: a neutral word, or else a word of its dialect.
    pub fn has_status(&self, word: &str) -> bool {
        match RunStatus::by_word(word) {
            Some(status) => self.status == status,
            None => self.dialect_status == word,
        }
    }
}

/// A run in the view: what the store knows about it, and the projection of its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub run: RunId,
    /// Its last record.
    pub tail: Lsn,
    /// Whether that record closed it.
    pub ended: bool,
    /// The first unreadable record; the row does not know what happened from there on.
    pub broken: Option<Lsn>,
    pub row: Row,
}

/// How events change a row. The store knows no dialect, so its caller provides this.
pub trait Projection: Send + Sync {
    /// A different number rebuilds the view, for changes that affect existing rows.
    fn version(&self) -> u32;

    /// Applies one record. Must depend only on its arguments; each record is applied once, in order.
    fn apply(&self, run: &RunId, row: &mut Row, events: &[Event]);
}

/// Which runs to list: those that match every part. The default matches all.
#[derive(Clone, Debug)]
pub struct Query {
    pub limit: usize,
    /// Runs that are not closed: there may be work left for them.
    pub unfinished_only: bool,
    /// Those without a result.
    pub going_only: bool,
    /// Runs whose ids have this prefix.
    pub prefix: String,
    /// Runs with any of these or of the next, if not both are empty.
    pub statuses: Vec<RunStatus>,
    pub dialect_statuses: Vec<String>,
    /// Runs with any of these, if not empty.
    pub workflows: Vec<String>,
    pub dialect: Option<String>,
    /// Started at this or later.
    pub since: Option<Timestamp>,
    /// Started earlier than this.
    pub before: Option<Timestamp>,
    /// Occurs in the id, the workflow, the inputs or the reason. Case does not matter.
    pub search: Option<String>,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            limit: usize::MAX,
            unfinished_only: false,
            going_only: false,
            prefix: String::new(),
            statuses: Vec::new(),
            dialect_statuses: Vec::new(),
            workflows: Vec::new(),
            dialect: None,
            since: None,
            before: None,
            search: None,
        }
    }
}

impl Query {
    /// Whether a run matches. Backends may filter earlier, but never more strictly.
    pub(crate) fn takes(&self, run: &RunRow) -> bool {
        let row = &run.row;
        let open = !(self.unfinished_only && run.ended || self.going_only && row.ended_at.is_some());
        let named = run.run.as_str().starts_with(&self.prefix);
        let any = |list: &[String], word: &String| list.is_empty() || list.contains(word);
        let dialect = self.dialect.as_ref().is_none_or(|dialect| *dialect == row.dialect);
        let since = self.since.is_none_or(|since| row.started_at.is_some_and(|at| at >= since));
        let before = self.before.is_none_or(|before| row.started_at.is_some_and(|at| at < before));
        let found = self.search.as_ref().is_none_or(|text| finds(run, &text.to_lowercase()));
        open && named
            && self.takes_status(row.status, &row.dialect_status)
            && any(&self.workflows, &row.workflow)
            && dialect
            && since
            && before
            && found
    }
}

impl Query {
    /// Whether runs with this status are among those that are asked for.
    pub fn takes_status(&self, status: RunStatus, dialect_status: &str) -> bool {
        (self.statuses.is_empty() && self.dialect_statuses.is_empty())
            || self.statuses.contains(&status)
            || self.dialect_statuses.iter().any(|word| word == dialect_status)
    }
}

fn finds(run: &RunRow, text: &str) -> bool {
    let row = &run.row;
    let places = [run.run.as_str(), &row.workflow, &row.inputs, row.reason.as_deref().unwrap_or_default()];
    places.iter().any(|place| place.to_lowercase().contains(text))
}

/// Answers are up to date with the journal at the time of the call: records newer than the stored rows are folded in.
pub trait View: Send + Sync + std::fmt::Debug {
    /// Runs, the latest started first; ties by id.
    fn list(&self, query: &Query) -> Pending<Vec<RunRow>>;

    fn get(&self, run: &RunId) -> Pending<Option<RunRow>>;

    /// Every run without a result, by id. Recovery relies on: no such run is left out, and only an owner's last
    /// record says anything but [`Wake::Unknown`].
    fn unfinished(&self) -> Pending<Vec<(RunId, Wake)>>;

    /// The last record in the stored rows, and the rows. `None` if they cannot be used.
    fn stored(&self) -> Pending<Option<(Lsn, Vec<RunRow>)>>;

    /// Discards every row and folds the whole journal again. Nothing is written meanwhile.
    fn rebuild(&self) -> Pending<()>;
}

/// When a resting run has to be loaded again, according to its last record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// Only its journal can tell.
    #[default]
    Unknown,
    /// It has work to do.
    Owes,
    /// Its next timer fires at this time.
    At(Timestamp),
    /// Only when something is sent to it.
    Never,
}

impl RunRow {
    pub(crate) fn new(run: RunId) -> Self {
        Self { run, tail: Lsn(0), ended: false, broken: None, row: Row::default() }
    }

    /// Applies a record unless the row already includes it.
    pub(crate) fn fold(&mut self, projection: &dyn Projection, record: &Record) {
        if record.lsn <= self.tail {
            return;
        }
        if record.prev.is_none() {
            // Another run had this name before and was removed.
            *self = Self::new(self.run.clone());
        }
        (self.tail, self.ended) = (record.lsn, record.ends());
        match record.events() {
            Ok(events) if self.broken.is_none() => projection.apply(&self.run, &mut self.row, &events),
            Ok(_) => {}
            Err(_) => self.damage(record.lsn),
        }
    }

    pub(crate) fn damage(&mut self, lsn: Lsn) {
        self.tail = self.tail.max(lsn);
        self.broken.get_or_insert(lsn);
    }

    /// The order of lists.
    pub(crate) fn order(&self) -> impl Ord + use<'_> {
        (std::cmp::Reverse(self.row.started_at), &self.run)
    }
}

/// Folds one result of a scan into the row that `find` returns for its run.
pub(crate) fn fold<'r>(
    projection: &dyn Projection,
    scanned: &Result<Record, Error>,
    find: impl FnOnce(&RunId) -> Result<&'r mut RunRow, Error>,
) -> Result<(), Error> {
    match scanned {
        // The coordinator has no row.
        Ok(record) if record.run.is_coordinator() => {}
        Ok(record) => find(&record.run)?.fold(projection, record),
        Err(Error::Corrupt { run, .. }) if run.is_coordinator() => {}
        Err(Error::Corrupt { run, lsn }) => find(run)?.damage(*lsn),
        // A record without a run has no row.
        Err(Error::Orphan { .. }) => {}
        Err(other) => return Err(other.clone()),
    }
    Ok(())
}

/// Every row up to a record, folded from the journal alone.
pub fn fold_all(
    journal: &dyn crate::journal::Journal,
    projection: &dyn Projection,
    until: Lsn,
) -> Result<BTreeMap<RunId, RunRow>, Error> {
    let (mut rows, mut next) = (BTreeMap::new(), Lsn(1));
    loop {
        let scanned = journal.scan(next, 1_000).wait()?;
        if scanned.is_empty() || next > until {
            return Ok(rows);
        }
        for record in &scanned {
            let at = record.as_ref().map_or_else(Error::place, |record| Some(record.lsn));
            next = at.map_or(next, |at| next.max(Lsn(at.0 + 1)));
            if at.is_some_and(|at| at <= until) {
                fold(projection, record, |run| {
                    Ok(rows.entry(run.clone()).or_insert_with(|| RunRow::new(run.clone())))
                })?;
            }
        }
    }
}
