//! Removes data that is no longer needed: finished runs by age, number and status, then plans, values, artifacts and logs that
//! belong to no run. A sweep first writes one journal record per removed run, then removes files. After a crash in between, the
//! next sweep removes the remaining files.

use crate::artifacts;
use crate::engine::{Engine, Error};
use crate::lock::Tidying;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_engine::{CoordinatorState, Input, KeyState, RunId, Timestamp, What};
use windlass_ir::{Duration, RunStatus, Value};
use windlass_store::{Append, Appended, BlobId, Error as StoreError, Lsn, Query, RunRow, Store, named_in};

/// Which finished runs to remove. All conditions must hold. Without conditions, a sweep removes only data that belongs to no run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Only runs that ended at least this long ago.
    pub older_than: Option<Duration>,
    /// Keeps this many of the newest matching runs.
    pub keep: Option<usize>,
    /// Only runs with these statuses: neutral words, or words of their dialects.
    pub statuses: Vec<String>,
    /// Removes nothing and only reports.
    pub dry_run: bool,
}

/// What a sweep removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    pub runs: Vec<SweptRun>,
    /// Matching runs that stay because something refers to them.
    pub kept: Vec<KeptRun>,
    pub records: u64,
    pub plans: usize,
    pub values: usize,
    pub value_bytes: u64,
    pub artifacts: usize,
    pub artifact_bytes: u64,
    pub logs: usize,
    /// How much the journal has shrunk, and how much of it is free for new records.
    pub journal_bytes: u64,
    pub free_bytes: u64,
    /// The journal is damaged. Values and artifacts stay, because unreadable records may refer to them.
    pub damaged: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptRun {
    pub run_id: RunId,
    pub workflow: String,
    pub status: RunStatus,
    pub ended_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRun {
    pub run_id: RunId,
    pub because: String,
}

/// A sweep compacts the journal only if at least this much is free.
const COMPACT_BYTES_MIN: u64 = 1 << 20;

impl Engine {
    /// Removes data that is no longer needed. Only the owner can do this.
    pub async fn sweep(self: &Arc<Self>, sweep: Sweep) -> Result<Swept, Error> {
        let failed = |error: std::io::Error| Error::Folder {
            folder: self.folder().to_owned(),
            cause: error.to_string(),
        };
        let busy = || Error::Folder {
            folder: self.folder().to_owned(),
            cause: "a backup is running; try again when it is done".to_owned(),
        };
        let _tidying = Tidying::take(self.folder()).map_err(failed)?.ok_or_else(busy)?;
        if !sweep.dry_run {
            self.store().ledger.expire(crate::clock::now().wall).await?;
        }
        // List files first, so that the lists contain no file created after this point.
        let logs = logs(self.folder());
        let artifacts = self.artifacts.begin_sweep().map_err(failed)?;
        let values = match sweep.dry_run {
            true => self.store().blobs.list().await?,
            false => self.store().blobs.begin_sweep().await?,
        };
        let swept = self.sweep_from(&sweep, logs, artifacts, values).await;
        // End both sweeps after an error too, so that they stop tracking new files.
        self.artifacts.sweep(&[], &HashSet::new(), true);
        self.store().blobs.sweep(Vec::new()).await.map(drop).or_else(|error| match error {
            StoreError::ReadOnly => Ok(()),
            other => Err(other),
        })?;
        swept
    }

    async fn sweep_from(
        self: &Arc<Self>,
        sweep: &Sweep,
        logs: Vec<PathBuf>,
        artifacts: Vec<(String, u64)>,
        values: Vec<(BlobId, u64)>,
    ) -> Result<Swept, Error> {
        let mut rows = self.all_runs().await?;
        let mut journal = Seen::of(self.store()).await?;
        if journal.unreadable {
            let cause = "the journal is damaged, so nothing can be removed; run `windlass doctor`".to_owned();
            return Err(Error::Folder { folder: self.folder().to_owned(), cause });
        }
        let Chosen { going, kept } = self.choose(sweep, &rows, &journal).await?;
        if !sweep.dry_run && self.close(&going, &rows).await? {
            rows = self.all_runs().await?;
            journal = Seen::of(self.store()).await?;
        }
        let mut swept = Swept { kept, damaged: journal.damaged, ..Swept::default() };
        let size = self.store().room().await?.0;
        let gone: Vec<&RunRow> = rows.iter().filter(|row| going.contains(&row.run)).collect();
        for row in self.remove(gone, sweep.dry_run).await? {
            swept.records += journal.records.get(&row.run).copied().unwrap_or(0);
            journal.named.remove(&row.run);
            journal.artifacts.remove(&row.run);
            swept.runs.push(swept_run(row));
        }
        let removed: HashSet<&RunId> = swept.runs.iter().map(|swept| &swept.run_id).collect();
        swept.plans = self.sweep_plans(&removed, sweep.dry_run).await?;
        let names: HashSet<&str> =
            rows.iter().map(|row| &row.run).filter(|run| !removed.contains(run)).map(RunId::as_str).collect();
        for log in logs.into_iter().filter(|log| !belongs(log, &names)) {
            let removed = sweep.dry_run || std::fs::remove_file(&log).is_ok();
            swept.logs += usize::from(removed);
        }
        if !journal.damaged {
            let used = self.sweep_values(values, journal, sweep.dry_run, &mut swept).await?;
            if let Some(used) = used {
                (swept.artifacts, swept.artifact_bytes) =
                    self.artifacts.sweep(&artifacts, &used, sweep.dry_run);
            }
        }
        if !sweep.dry_run {
            self.store().journal.reclaim().await?;
            let (_, free) = self.store().room().await?;
            if free >= COMPACT_BYTES_MIN && free >= size / 4 && !self.is_executing().await {
                self.store().journal.compact().await?;
            }
        }
        let (now, free) = self.store().room().await?;
        (swept.journal_bytes, swept.free_bytes) = (size.saturating_sub(now), free);
        Ok(swept)
    }

    async fn all_runs(&self) -> Result<Vec<RunRow>, Error> {
        Ok(self.store().view.list(&Query::default()).await?)
    }

    /// Removes closed runs, or returns those that it would remove. Runs that have continued in the meantime stay.
    async fn remove<'r>(&self, gone: Vec<&'r RunRow>, dry_run: bool) -> Result<Vec<&'r RunRow>, Error> {
        if dry_run {
            return Ok(gone);
        }
        let mut waiting = Vec::new();
        for row in gone.into_iter().filter(|row| row.ended) {
            let removal = Append::removal(row.run.clone(), Some(row.tail))?;
            waiting.push((row, self.store().journal.append(removal)));
        }
        let mut removed = Vec::new();
        for (row, pending) in waiting {
            match pending.await? {
                Appended::At(_) => removed.push(row),
                Appended::Conflict { .. } => {}
            }
        }
        Ok(removed)
    }

    async fn choose(&self, sweep: &Sweep, rows: &[RunRow], journal: &Seen) -> Result<Chosen, Error> {
        let coordinator = self.coordinator(CoordinatorState::clone).await?;
        Ok(chosen(sweep, rows, crate::Clock::Real.now(), |going| {
            let live = going.iter().filter(|run| self.is_live(run));
            let live = live.map(|run| (run.clone(), "it is running".to_owned()));
            referred(&coordinator, rows, journal, going).into_iter().chain(live).collect()
        }))
    }

    /// Closes the failed runs among these, so that no one can resume them. Returns whether there were any.
    async fn close(self: &Arc<Self>, going: &HashSet<RunId>, rows: &[RunRow]) -> Result<bool, Error> {
        let mut closed = false;
        for row in rows.iter().filter(|row| !row.ended && going.contains(&row.run)) {
            match self.tell(&row.run, Input::Close).await {
                Ok(()) => closed = true,
                // A user has resumed it, or its hooks are still running, so it stays.
                Err(Error::Refused(_) | Error::RunFinished { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(closed)
    }

    /// Removes plans that no run, order or pending start uses.
    async fn sweep_plans(&self, removed: &HashSet<&RunId>, dry_run: bool) -> Result<usize, Error> {
        let _storing = self.lock_plans().await;
        // A pending start holds its program until its run has a record. All other starts wait for the lock.
        let mut used: HashSet<String> = {
            let mut programs = self.programs();
            programs.retain(|_, program| Arc::strong_count(program) > 1);
            programs.keys().cloned().collect()
        };
        let rows = self.all_runs().await?;
        let pinned = rows.iter().filter(|row| !dry_run || !removed.contains(&row.run));
        used.extend(pinned.map(|row| row.row.plan.clone()));
        used.extend(self.orders().await?.into_iter().map(|order| order.plan.to_string()));
        // If the beginning of a run cannot be read, its plan is unknown.
        if rows.iter().any(|row| row.broken.is_some() && row.row.plan.is_empty()) {
            return Ok(0);
        }
        let mut unused = self.store().plans.list().await?;
        unused.retain(|digest| !used.contains(digest));
        if dry_run {
            return Ok(unused.len());
        }
        let forgotten = self.store().plans.forget(unused.clone()).await?;
        self.programs().retain(|digest, _| !unused.contains(digest));
        Ok(forgotten)
    }

    /// Removes values that no record refers to. Returns the artifacts that records and the remaining values refer to, or `None` if
    /// a value cannot be read.
    async fn sweep_values(
        &self,
        values: Vec<(BlobId, u64)>,
        journal: Seen,
        dry_run: bool,
        swept: &mut Swept,
    ) -> Result<Option<HashSet<String>>, Error> {
        let store = self.store();
        let mut named: BTreeSet<BlobId> = BTreeSet::new();
        let mut open: Vec<BlobId> = journal.named.into_values().flatten().collect();
        let mut artifacts = Some(journal.artifacts.into_values().flatten().collect::<HashSet<_>>());
        while let Some(id) = open.pop() {
            if !named.insert(id.clone()) {
                continue;
            }
            match store.blobs.get(&id).await.ok().flatten() {
                Some(content) => {
                    open.extend(named_in(&content));
                    artifacts.iter_mut().for_each(|used| used.extend(artifacts::named_in(&content)));
                }
                None => artifacts = None,
            }
        }
        let sizes: BTreeMap<BlobId, u64> = values.into_iter().filter(|(id, _)| !named.contains(id)).collect();
        let unused: Vec<BlobId> = sizes.keys().cloned().collect();
        let removed = if dry_run { unused } else { store.blobs.sweep(unused).await? };
        swept.values = removed.len();
        swept.value_bytes = removed.iter().map(|id| sizes[id]).sum();
        Ok(artifacts)
    }
}

/// Facts about all runs, read from the journal without their plans.
#[derive(Default)]
struct Seen {
    /// The number of records of each run.
    records: HashMap<RunId, u64>,
    /// The values that the records of each run name.
    named: HashMap<RunId, Vec<BlobId>>,
    /// The artifacts that the records of each run refer to.
    artifacts: HashMap<RunId, Vec<String>>,
    /// The runs that wait for each run.
    parents: HashMap<RunId, Vec<RunId>>,
    damaged: bool,
    /// Pages of the journal cannot be read, so nothing can be removed.
    unreadable: bool,
}

impl Seen {
    async fn of(store: &Store) -> Result<Self, Error> {
        let (mut seen, mut next) = (Self::default(), Lsn(1));
        loop {
            let scanned = store.journal.scan(next, 1_000).await?;
            if scanned.is_empty() {
                return Ok(seen);
            }
            for found in scanned {
                let at = match &found {
                    Ok(record) => Some(record.lsn),
                    Err(error) => error.place(),
                };
                next = Lsn(at.map_or(next.0 + 1, |at| (at.0 + 1).max(next.0)));
                let record = match found {
                    Ok(record) => record,
                    Err(error) => {
                        seen.damaged = true;
                        seen.unreadable |= matches!(error, StoreError::Orphan { .. });
                        continue;
                    }
                };
                *seen.records.entry(record.run.clone()).or_default() += 1;
                let named = record.names();
                if !named.is_empty() {
                    seen.named.entry(record.run.clone()).or_default().extend(named);
                }
                let artifacts: Vec<String> = artifacts::named_in(record.frame()).collect();
                if !artifacts.is_empty() {
                    seen.artifacts.entry(record.run.clone()).or_default().extend(artifacts);
                }
                if record.prev.is_none() && !record.run.is_coordinator() {
                    let parents =
                        record.events().ok().and_then(|events| parents(events.first()?.what.clone()));
                    seen.parents.extend(parents.map(|parents| (record.run.clone(), parents)));
                }
            }
        }
    }
}

fn parents(what: What) -> Option<Vec<RunId>> {
    match what {
        What::Started { shares: Some(shares), .. } if !shares.parents.is_empty() => Some(shares.parents),
        _ => None,
    }
}

/// Runs that something refers to, and why. Resuming a failed run needs the runs that it called, unless the sweep removes it too.
fn referred(
    coordinator: &CoordinatorState,
    rows: &[RunRow],
    journal: &Seen,
    going: &HashSet<RunId>,
) -> BTreeMap<RunId, String> {
    let mut referred = BTreeMap::new();
    let unfinished = rows.iter().filter(|row| !row.ended && !going.contains(&row.run));
    let unfinished: HashSet<&RunId> = unfinished.map(|row| &row.run).collect();
    for (child, parents) in &journal.parents {
        let family = || parents.iter().chain([child]);
        if let Some(waits) = family().find(|run| unfinished.contains(run)) {
            let because = |run: &RunId| match run == child {
                true => format!("run {waits}, which is not finished, called it"),
                false => format!("it called run {waits}, which is not finished"),
            };
            referred.extend(family().filter(|run| *run != waits).map(|run| (run.clone(), because(run))));
        }
    }
    let shared = |run: &RunId| (run.clone(), "it still holds a slot, a key or a subscription".to_owned());
    let askers = coordinator.holds.keys().chain(coordinator.waiting.keys());
    referred.extend(askers.map(|asker| shared(&asker.run)));
    let addresses = coordinator.subscribed.keys().chain(coordinator.deliveries.keys());
    referred.extend(addresses.map(|address| shared(&address.run)));
    for key in coordinator.keys.values() {
        match key {
            KeyState::Pending { run, .. } => referred.extend([shared(run)]),
            // Until the key expires, a start with the same key returns this run.
            KeyState::Kept { value: Value::Text(run), .. } => {
                let because = "a start with the same key still returns it".to_owned();
                referred.extend(RunId::new(run).ok().map(|run| (run, because)));
            }
            KeyState::Kept { .. } => {}
        }
    }
    referred
}

/// The runs to remove, and the matching runs that stay.
#[derive(Default)]
struct Chosen {
    going: HashSet<RunId>,
    kept: Vec<KeptRun>,
}

/// `referred` returns the runs that must stay and why, given the runs to remove.
fn chosen(
    sweep: &Sweep,
    rows: &[RunRow],
    now: Timestamp,
    referred: impl Fn(&HashSet<RunId>) -> BTreeMap<RunId, String>,
) -> Chosen {
    let mut chosen = Chosen::default();
    if sweep.older_than.is_none() && sweep.keep.is_none() && sweep.statuses.is_empty() {
        return chosen;
    }
    let fits = |row: &&RunRow| {
        let old = sweep.older_than.is_none_or(|age| row.row.ended_at.is_some_and(|at| now.since(at) >= age));
        let status = sweep.statuses.is_empty() || sweep.statuses.iter().any(|word| row.row.has_status(word));
        row.row.ended_at.is_some() && old && status
    };
    let mut fitting: Vec<&RunRow> = rows.iter().filter(fits).collect();
    fitting.sort_by_key(|row| std::cmp::Reverse((row.row.ended_at, row.tail)));
    chosen.going = fitting.into_iter().skip(sweep.keep.unwrap_or(0)).map(|row| row.run.clone()).collect();
    // A run that stays may keep others.
    loop {
        let referred = referred(&chosen.going);
        let before = chosen.going.len();
        for (run_id, because) in referred.into_iter().filter(|(run, _)| chosen.going.remove(run)) {
            chosen.kept.push(KeptRun { run_id, because });
        }
        if chosen.going.len() == before {
            return chosen;
        }
    }
}

fn swept_run(row: &RunRow) -> SweptRun {
    SweptRun {
        run_id: row.run.clone(),
        workflow: row.row.workflow.clone(),
        status: row.row.status,
        ended_at: row.row.ended_at.map(|at| at.to_string()),
    }
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("logs")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

/// Whether a log belongs to an existing run. It is named after the run, with up to two extensions.
fn belongs(log: &Path, runs: &HashSet<&str>) -> bool {
    let mut name = log.file_name();
    for _ in 0..3 {
        let Some(text) = name.and_then(|name| name.to_str()) else { return true };
        if runs.contains(text) {
            return true;
        }
        name = Path::new(text).file_stem().filter(|stem| *stem != text);
        if name.is_none() {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_store::Row;

    fn row(name: &str, status: RunStatus, ended_at: Option<i64>) -> RunRow {
        let word = if status == RunStatus::Success { "completed" } else { status.word() };
        let row =
            Row { status, dialect_status: word.into(), ended_at: ended_at.map(Timestamp), ..Row::default() };
        let run = RunId::new(name).expect("a run id");
        RunRow { run, tail: Lsn(1), ended: ended_at.is_some(), broken: None, row }
    }

    #[test]
    fn a_sweep_chooses_runs_by_age_number_and_status() {
        let rows = [
            row("a", RunStatus::Success, Some(10)),
            row("b", RunStatus::Failed, Some(20)),
            row("c", RunStatus::Success, Some(30)),
            row("d", RunStatus::Running, None),
            row("e", RunStatus::Success, Some(40)),
        ];
        let check = |sweep: Sweep, expected: &[&str]| {
            let in_use = |_: &_| BTreeMap::from([(RunId::new("e").expect("an id"), "in use".to_owned())]);
            let going = chosen(&sweep, &rows, Timestamp(50), in_use).going;
            let mut going: Vec<&str> = going.iter().map(RunId::as_str).collect();
            going.sort_unstable();
            assert_eq!(going, expected, "{sweep:?}");
        };
        let all = Sweep { keep: Some(0), ..Sweep::default() };
        check(Sweep::default(), &[]);
        check(all.clone(), &["a", "b", "c"]);
        check(Sweep { keep: Some(2), ..all.clone() }, &["a", "b"]);
        check(Sweep { older_than: Some(Duration(30)), ..Sweep::default() }, &["a", "b"]);
        check(Sweep { statuses: vec!["success".into()], ..Sweep::default() }, &["a", "c"]);
        check(Sweep { statuses: vec!["success".into()], ..Sweep { keep: Some(2), ..all } }, &["a"]);
        check(Sweep { statuses: vec!["completed".into()], ..Sweep::default() }, &["a", "c"]);
        check(Sweep { statuses: vec!["running".into()], ..Sweep::default() }, &[]);
    }

    #[test]
    fn logs_are_named_after_their_runs() {
        let runs = HashSet::from(["a", "b.c"]);
        let check = |log: &str, expected: bool| assert_eq!(belongs(Path::new(log), &runs), expected, "{log}");
        check("logs/a", true);
        check("logs/a.log", true);
        check("logs/a.log.idx", true);
        check("logs/b.c.log", true);
        check("logs/b.log", false);
        check("logs/ab.log", false);
    }
}
