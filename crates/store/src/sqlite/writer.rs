//! The only thread that writes `journal.db`. It takes everything queued during the last commit, writes it in one
//! transaction and answers all callers. Between commits it keeps the rows up to date. Nothing else commits or
//! checkpoints.

mod upkeep;

use super::blobs::Folder;
use super::codes::{of, translate};
use super::head::Heads;
use super::ledger;
use super::queue::{Command, Queue, Taken};
use super::read::{lsn, number};
use super::rows::{self, digest, seal};
use super::schema;
use super::tails::{Tail, Tails};
use crate::blobs::BlobId;
use crate::error::Error;
use crate::journal::{Append, Appended, Lsn, Record};
use crate::pending::Answer;
use crate::plans::StoredPlan;
use crate::store::{Durability, Tuning};
use crate::view::{Projection, Wake};
use rusqlite::{Connection, OptionalExtension as _, Statement};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use windlass_engine::RunId;

/// After this long without writes, rows are updated and the log is checkpointed.
const IDLE: Duration = Duration::from_millis(200);

/// SQLite's default page size.
const PAGE_BYTES: u64 = 4096;

/// How long readers may delay the checkpoint of a log that has become too long.
const READERS: Duration = Duration::from_millis(100);

/// The number of records of removed runs deleted in one transaction, and of records that a rebuild reads at once.
const CHUNK: usize = 1_000;

/// Records per run with new ones, up to this multiple of the configured number, before rows are updated.
const RECORDS_PER_RUN: usize = 10;
const BEHIND_MAX: usize = 8;

/// Rows are updated when the records in memory reach this many bytes.
const FRESH_BYTES_MAX: usize = 4 << 20;

/// Starts the thread; returns when its statements are prepared.
pub(super) fn start(connection: Connection, shared: Shared) -> Result<JoinHandle<()>, Error> {
    let (ready, answer) = mpsc::channel();
    let path = shared.path.clone();
    let thread = std::thread::Builder::new()
        .name("journal".into())
        .spawn(move || {
            // However this thread ends, no caller may wait for it afterwards.
            let _ending = Ending(&shared.queue);
            match Writer::new(&connection, &shared) {
                Ok(mut writer) => {
                    drop(ready.send(Ok(())));
                    writer.work();
                    writer.leave();
                }
                Err(error) => drop(ready.send(Err(translate(&shared.path, &error)))),
            }
        })
        .map_err(|error| Error::io(&path, &error))?;
    answer.recv().unwrap_or(Err(Error::Stopped)).map(|()| thread)
}

pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) queue: Arc<Queue>,
    /// Only this thread changes them.
    pub(super) tails: Arc<Mutex<Tails>>,
    pub(super) blobs: Arc<Folder>,
    pub(super) projection: Option<Arc<dyn Projection>>,
    pub(super) heads: Heads,
    pub(super) durability: Durability,
    pub(super) tuning: Tuning,
}

struct Ending<'q>(&'q Queue);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

struct Writer<'c> {
    connection: &'c Connection,
    shared: &'c Shared,
    statements: Statements<'c>,
    /// The numbers of the next run and the next record.
    next_key: i64,
    next_lsn: u64,
    /// Records newer than the rows, as far as they are in memory: all of them from the first one here on.
    fresh: Vec<Record>,
    fresh_bytes: usize,
    /// The rows are not as written, or were made by another projection: they have to be rebuilt.
    stale: bool,
    /// The sum that the seal of the rows covers.
    sum: u128,
    /// Runs were removed and have records left.
    has_removed: bool,
    reclaiming: Vec<Answer<()>>,
    /// During a sweep: the values that new records refer to.
    swept: Option<HashSet<BlobId>>,
    /// The approximate growth of the write-ahead log since the last checkpoint.
    log_bytes: u64,
    /// The last record that the head file names.
    head: u64,
    /// After a fatal error: the answer to everything from then on.
    broken: Option<Error>,
}

/// Prepared once.
struct Statements<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    record: Statement<'c>,
    find_run: Statement<'c>,
    run: Statement<'c>,
    row: Statement<'c>,
    tail: Statement<'c>,
    reach: Statement<'c>,
    seal: Statement<'c>,
    plan: Statement<'c>,
    forget_plan: Statement<'c>,
    remove_run: Statement<'c>,
    removed_run: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            record: connection
                .prepare("INSERT INTO journal (lsn, run, prev, body) VALUES (?1, ?2, ?3, ?4)")?,
            find_run: connection.prepare("SELECT key, tail, closed FROM runs WHERE run = ?1")?,
            run: connection.prepare("INSERT INTO runs (key, run) VALUES (?1, ?2)")?,
            row: connection.prepare(rows::UPDATE)?,
            tail: connection.prepare("UPDATE runs SET tail = ?2, closed = ?3, wake = ?4 WHERE key = ?1")?,
            reach: connection.prepare("UPDATE rows SET applied = ?1, projection = ?2, seal = ?3")?,
            seal: connection.prepare("UPDATE rows SET seal = ?1")?,
            plan: connection.prepare("INSERT OR IGNORE INTO plans VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?,
            forget_plan: connection.prepare("DELETE FROM plans WHERE digest = ?1")?,
            remove_run: connection.prepare("DELETE FROM runs WHERE key = ?1 RETURNING tail, closed")?,
            removed_run: connection.prepare("INSERT INTO removed VALUES (?1, ?2)")?,
        })
    }
}

/// The changes of a batch to the state in memory, applied once it is durable.
#[derive(Default)]
struct Staged {
    /// One list for each command that appends.
    appended: VecDeque<Vec<Appended>>,
    /// The last record of each run that the batch touched; `None` if it removed the run.
    latest: HashMap<RunId, Option<Tail>>,
    records: Vec<Record>,
    begun: i64,
    bytes: u64,
    last_seal: Vec<u8>,
    /// The sum of the seal without the runs that the batch removed.
    sum: u128,
    has_removed: bool,
    forgotten_plans: VecDeque<usize>,
}

impl<'c> Writer<'c> {
    fn new(connection: &'c Connection, shared: &'c Shared) -> rusqlite::Result<Self> {
        #[cfg(test)]
        if let Some(pages) = shared.tuning.pages_max {
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        let removed = number("SELECT max(key) FROM removed")?;
        let key_max = number("SELECT max(key) FROM runs")?.max(removed);
        let tails = shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let made_by = rows::reach(connection).map(|reach| reach.projection);
        Ok(Self {
            connection,
            shared,
            statements: Statements::new(connection)?,
            next_key: key_max.unwrap_or(0) + 1,
            next_lsn: tails.last + 1,
            fresh: Vec::new(),
            fresh_bytes: 0,
            stale: !tails.whole || made_by != Some(shared.version()),
            sum: if tails.whole { rows::sum(connection)? } else { 0 },
            has_removed: removed.is_some(),
            reclaiming: Vec::new(),
            swept: None,
            log_bytes: left_in_log(&shared.path),
            head: 0,
            broken: None,
        })
    }

    fn tails(&self) -> MutexGuard<'c, Tails> {
        self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&mut self) {
        if self.stale {
            // If this fails, only the rows are affected; the next attempt is made when there is time.
            drop(self.apply());
        }
        let mut batch = VecDeque::new();
        loop {
            let busy = self.broken.is_none() && (self.log_bytes > 0 || self.has_removed || self.behind());
            let patience =
                if self.reclaiming.is_empty() { busy.then_some(IDLE) } else { Some(Duration::ZERO) };
            match self.shared.queue.take(&mut batch, self.shared.tuning.batch_bytes, patience) {
                Taken::Batch => {
                    if let Some(close) = self.commit(&mut batch) {
                        close.send(self.tidy());
                        return;
                    }
                    if self.fresh.len() >= self.fresh_max() || self.fresh_bytes >= FRESH_BYTES_MAX {
                        drop(self.apply());
                    }
                    if !self.reclaiming.is_empty() {
                        self.reclaim();
                    }
                    if self.log_bytes >= self.shared.tuning.log_bytes {
                        self.checkpoint();
                        self.write_head();
                    }
                }
                Taken::Idle => {
                    if self.has_removed || !self.reclaiming.is_empty() {
                        self.reclaim();
                    } else {
                        drop(self.apply());
                        self.checkpoint();
                        self.write_head();
                    }
                }
                Taken::Closed => return,
            }
        }
    }

    /// Rows have a cost per run, so with many active runs they lag further behind.
    fn fresh_max(&self) -> usize {
        let records = usize::try_from(self.shared.tuning.row_records).unwrap_or(usize::MAX).max(1);
        (self.tails().recent.len() * RECORDS_PER_RUN).clamp(records, records.saturating_mul(BEHIND_MAX))
    }

    /// Whether there are records newer than the rows.
    fn behind(&self) -> bool {
        self.stale || self.tails().applied + 1 < self.next_lsn
    }

    /// Writes a batch, answers all of it and leaves it empty. Returns the answer to a command that ends the thread.
    fn commit(&mut self, batch: &mut VecDeque<Command>) -> Option<Answer<()>> {
        let written = match &self.broken {
            Some(error) => Err(error.clone()),
            None => self.write(batch),
        };
        let (mut staged, error) = match written {
            Ok(staged) => (self.settle(staged), None),
            Err(error) => (Staged::default(), Some(error)),
        };
        let mut close = None;
        for command in batch.drain(..) {
            match command {
                Command::Append(_, answer) => {
                    let only = || staged.appended.pop_front().and_then(|mut all| all.pop());
                    answer.send(reply(&error, only));
                }
                Command::AppendAll(_, answer) => answer.send(reply(&error, || staged.appended.pop_front())),
                Command::Plan(_, answer) | Command::Ledger(_, answer) | Command::Expire(_, answer) => {
                    answer.send(reply(&error, || Some(())));
                }
                Command::ForgetPlans(_, answer) => {
                    answer.send(reply(&error, || staged.forgotten_plans.pop_front()));
                }
                Command::BeginSweep(answer) => {
                    self.swept = Some(HashSet::new());
                    answer.send(Ok(()));
                }
                Command::Sweep(unused, answer) => answer.send(self.sweep(unused)),
                Command::Rebuild(answer) => {
                    self.stale = true;
                    answer.send(self.apply());
                }
                Command::Reclaim(answer) => self.reclaiming.push(answer),
                Command::Compact(answer) => answer.send(self.compact()),
                Command::Close(answer) => close = Some(answer),
            }
        }
        close
    }

    fn write(&mut self, batch: &VecDeque<Command>) -> Result<Staged, Error> {
        let values = || batch.iter().flat_map(Command::appends).flat_map(Append::values);
        if let Some(swept) = &mut self.swept {
            swept.extend(values().map(|(id, _)| id.clone()));
        }
        // Values come first: a record never refers to one that is not durable.
        let written = self.shared.blobs.put(values());
        let written = written.and_then(|()| self.transaction(batch).map_err(of(&self.shared.path)));
        written.inspect_err(|error| {
            self.roll_back();
            // Records that were to follow these are not written either.
            batch.iter().flat_map(Command::appends).for_each(|append| append.ticket().clear());
            if error.is_fatal() {
                self.broken = Some(error.clone());
            }
        })
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // SQLite has often rolled back by itself; if this fails too, the next BEGIN fails.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
    }

    fn transaction(&mut self, batch: &VecDeque<Command>) -> rusqlite::Result<Staged> {
        self.statements.begin.execute([])?;
        let mut staged = Staged { sum: self.sum, ..Staged::default() };
        for command in batch {
            match command {
                Command::Append(..) | Command::AppendAll(..) => {
                    let appended = self.append(command.appends(), &mut staged)?;
                    staged.appended.push_back(appended);
                }
                Command::Plan(plan, _) => self.plan(plan)?,
                Command::Ledger(entries, _) => ledger::write(self.connection, entries)?,
                Command::Expire(now, _) => ledger::expire(self.connection, *now)?,
                Command::ForgetPlans(digests, _) => {
                    let mut forgotten = 0;
                    for digest in digests {
                        forgotten += self.statements.forget_plan.execute([digest])?;
                    }
                    staged.forgotten_plans.push_back(forgotten);
                }
                Command::BeginSweep(_)
                | Command::Sweep(..)
                | Command::Rebuild(_)
                | Command::Reclaim(_)
                | Command::Compact(_)
                | Command::Close(_) => {}
            }
        }
        if staged.sum != self.sum {
            let applied = self.tails().applied;
            self.statements.seal.execute([seal(applied, staged.sum)])?;
        }
        #[cfg(test)]
        self.fail_if_planted()?;
        self.statements.commit.execute([])?;
        Ok(staged)
    }

    /// Writes all of the records or none.
    fn append(&mut self, appends: &[Append], staged: &mut Staged) -> rusqlite::Result<Vec<Appended>> {
        let mut latest: HashMap<&RunId, Option<Lsn>> = HashMap::new();
        for (append, at) in appends.iter().zip(self.next_lsn + staged.records.len() as u64..) {
            let tail = match latest.get(append.run()) {
                Some(tail) => *tail,
                None => self.tail(append.run(), staged)?.map(|tail| tail.lsn),
            };
            if !append.follows(tail) {
                appends.iter().for_each(|append| append.ticket().clear());
                let conflict = |append: &Append| {
                    let tail = self.tail(append.run(), staged)?.map(|tail| tail.lsn);
                    Ok(Appended::Conflict { tail })
                };
                return appends.iter().map(conflict).collect();
            }
            append.ticket().set(Lsn(at));
            if appends.len() > 1 {
                latest.insert(append.run(), (!append.removes()).then_some(Lsn(at)));
            }
        }
        appends.iter().map(|append| self.record(append, staged).map(Appended::At)).collect()
    }

    fn record(&mut self, append: &Append, staged: &mut Staged) -> rusqlite::Result<Lsn> {
        let tail = self.tail(append.run(), staged)?;
        let (at, prev) = (Lsn(self.next_lsn + staged.records.len() as u64), tail.map(|tail| tail.lsn));
        let key = match tail {
            Some(tail) => tail.key,
            None => {
                let key = self.next_key + staged.begun;
                staged.begun += 1;
                self.statements.run.execute((key, append.run().as_str()))?;
                key
            }
        };
        let frame = append.sealed(prev);
        self.statements.record.execute((number(at), key, prev.map(number), &frame))?;
        ledger::write(self.connection, append.entries())?;
        staged.last_seal.clear();
        staged.last_seal.extend(crate::record::seal(&frame));
        staged.bytes += frame.len() as u64;
        staged.records.push(append.record(at, prev));
        let tail = Tail { key, lsn: at, closed: append.ends(), wake: append.wake() };
        let gone = append.removes();
        if gone {
            self.remove(tail, staged)?;
        }
        staged.latest.insert(append.run().clone(), (!gone).then_some(tail));
        Ok(at)
    }

    /// From this transaction on the run does not exist. Its records are deleted later, from the last one back.
    fn remove(&mut self, tail: Tail, staged: &mut Staged) -> rusqlite::Result<()> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?));
        if let Some((Some(stored), Some(false))) =
            self.statements.remove_run.query_row([tail.key], read).optional()?
        {
            staged.sum ^= digest(tail.key, lsn(stored));
        }
        self.statements.removed_run.execute((tail.key, number(tail.lsn)))?;
        staged.has_removed = true;
        Ok(())
    }

    /// The run's last record: in this batch, in memory, or in its row. A run that is in none of them has lost its
    /// records, so nothing can be appended to it.
    fn tail(&mut self, run: &RunId, staged: &Staged) -> rusqlite::Result<Option<Tail>> {
        if let Some(tail) = staged.latest.get(run) {
            return Ok(*tail);
        }
        let tails = self.tails();
        if let Some(tail) = tails.recent.get(run) {
            return Ok(Some(*tail));
        }
        let whole = tails.whole;
        drop(tails);
        let read = |row: &rusqlite::Row<'_>| {
            let stored = row.get::<_, Option<i64>>(1)?.filter(|_| whole).map_or(Lsn(0), lsn);
            let closed = row.get::<_, Option<bool>>(2)?.unwrap_or_default();
            Ok(Tail { key: row.get(0)?, lsn: stored, closed, wake: Wake::Unknown })
        };
        self.statements.find_run.query_row([run.as_str()], read).optional()
    }

    fn plan(&mut self, plan: &StoredPlan) -> rusqlite::Result<()> {
        let StoredPlan { digest, format, plan: text, source, overrides } = plan;
        self.statements.plan.execute((digest, format, text, source, overrides, plan.checksum()))?;
        Ok(())
    }

    /// The batch is durable: update the state in memory.
    fn settle(&mut self, mut staged: Staged) -> Staged {
        self.next_lsn += staged.records.len() as u64;
        self.next_key += staged.begun;
        self.sum = staged.sum;
        self.has_removed |= staged.has_removed;
        // The records, the partly filled page, and two more for the table of runs and its index.
        let pages = if staged.begun == 0 { 1 } else { 3 };
        self.log_bytes += staged.bytes + pages * PAGE_BYTES;
        let mut tails = self.tails();
        for (run, tail) in staged.latest.drain() {
            match tail {
                Some(tail) => drop(tails.recent.insert(run, tail)),
                None => drop(tails.recent.remove(&run)),
            }
        }
        tails.last = self.next_lsn - 1;
        if !staged.last_seal.is_empty() {
            tails.last_seal.clone_from(&staged.last_seal);
        }
        drop(tails);
        self.fresh_bytes += staged.bytes as usize;
        self.fresh.append(&mut staged.records);
        staged
    }

    /// Removes values, and ends the sweep.
    fn sweep(&mut self, mut unused: Vec<BlobId>) -> Result<Vec<BlobId>, Error> {
        let Some(fresh) = self.swept.take() else { return Ok(Vec::new()) };
        unused.retain(|id| !fresh.contains(id));
        let mut removed = Vec::new();
        for id in unused {
            if self.shared.blobs.remove(&id)? {
                removed.push(id);
            }
        }
        Ok(removed)
    }

    /// Notes how far the journal got, while no caller waits for a commit.
    fn write_head(&mut self) {
        let tails = self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if self.broken.is_some() || self.head == tails.last {
            return;
        }
        let (id, last, seal) = (tails.id.clone(), tails.last, tails.last_seal.clone());
        drop(tails);
        self.head = last;
        if let Some(id) = id {
            self.shared.heads.write(&id, last, &seal);
        }
    }

    /// Rewrites the database without its free pages.
    fn compact(&mut self) -> Result<(), Error> {
        match &self.broken {
            Some(error) => return Err(error.clone()),
            None => self.connection.execute_batch("VACUUM").map_err(of(&self.shared.path))?,
        }
        self.fold_log("TRUNCATE").map(drop).map_err(of(&self.shared.path))
    }

    /// Checkpoints the log. It is then overwritten from its start, unless a reader is using it; after too many
    /// failures in a row, the writer waits for readers.
    fn checkpoint(&mut self) {
        // Also on failure: it is retried when the log has grown by the same amount again.
        self.log_bytes = 0;
        let done = self.fold_log("PASSIVE").and_then(|log_pages| {
            if log_pages.saturating_mul(PAGE_BYTES) < self.shared.tuning.log_bytes.saturating_mul(4) {
                return Ok(());
            }
            self.connection.busy_timeout(READERS)?;
            let restarted = self.fold_log("RESTART").map(drop);
            self.connection.busy_timeout(schema::BUSY)?;
            restarted
        });
        if let Err(error) = done.map_err(of(&self.shared.path))
            && error.is_fatal()
        {
            self.broken = Some(error);
        }
    }

    /// The number of pages in the log, checkpointed or not. A reader in the way is not an error.
    fn fold_log(&self, mode: &str) -> rusqlite::Result<u64> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let pages: i64 = self.connection.query_row(&sql, [], |row| row.get(1))?;
        Ok(u64::try_from(pages).unwrap_or(0))
    }

    /// The end of a store that is dropped. The next process reads the rest of the log, so it must not get long.
    fn leave(&mut self) {
        drop(self.apply());
        if self.log_bytes > self.shared.tuning.log_bytes / 4 && self.broken.is_none() {
            // The next process checkpoints what this one cannot.
            let _ = self.connection.busy_timeout(READERS).and_then(|()| self.fold_log("TRUNCATE"));
        }
        self.write_head();
    }

    /// The end of a store that is closed: the log is checkpointed and truncated, unless a reader is using it.
    fn tidy(&mut self) -> Result<(), Error> {
        drop(self.apply());
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => self.fold_log("TRUNCATE").map(drop).map_err(of(&self.shared.path)),
        }
    }

    #[cfg(test)]
    fn fail_if_planted(&self) -> rusqlite::Result<()> {
        match self.shared.tuning.fault.load(std::sync::atomic::Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)),
        }
    }
}

/// The approximate size of the log left by an earlier process. Never 0: a log that cannot be examined may still be
/// there.
fn left_in_log(journal: &Path) -> u64 {
    let mut log = journal.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(1, |log| log.len().max(1))
}

impl Shared {
    /// Which rows are requested.
    fn version(&self) -> u32 {
        self.projection.as_ref().map_or(0, |projection| projection.version())
    }
}

fn reply<T>(error: &Option<Error>, answer: impl FnOnce() -> Option<T>) -> Result<T, Error> {
    match error {
        Some(error) => Err(error.clone()),
        None => answer().ok_or(Error::Stopped),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Append, Appended, Durability, Error, Lsn, Options, Store, StoredPlan, Tuning};
    use rusqlite::ffi;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI32, Ordering};
    use windlass_engine::{Event, RunId, Timestamp, What};

    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            // A leftover folder is acceptable; the failing test has better information.
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    /// Opens a store in a temporary folder and removes it afterwards.
    fn check(name: &str, tuning: Tuning, body: impl FnOnce(&Store, &dyn Fn(Tuning) -> Store)) {
        let folder =
            Folder(std::env::temp_dir().join(format!("windlass-writer-{}-{name}", std::process::id())));
        let options = |tuning| Options { durability: Durability::Process, tuning, ..Options::default() };
        let open = |tuning| Store::open(&folder.0, options(tuning)).expect("a store");
        body(&open(tuning), &open);
    }

    fn append(store: &Store, run: &str, prev: Option<u64>, bytes: usize) -> Result<Appended, Error> {
        let run = RunId::new(run).expect("a run id");
        let events =
            [Event { at: Timestamp(1), what: What::Paused { by: "x".repeat(bytes).into(), reached: false } }];
        store.journal.append(Append::new(run, prev.map(Lsn), &events).expect("a record")).wait()
    }

    fn is_io(result: &Result<Appended, Error>, expected_fatal: bool) -> bool {
        matches!(result, Err(Error::Io { fatal, .. }) if *fatal == expected_fatal)
    }

    #[test]
    fn a_full_disk_can_be_retried() {
        check("full", Tuning { pages_max: Some(40), ..Tuning::default() }, |store, open| {
            assert_eq!(append(store, "a", None, 100), Ok(Appended::At(Lsn(1))));
            // A record that does not fit leaves nothing behind, however often it is retried.
            for _ in 0..3 {
                assert!(is_io(&append(store, "a", Some(1), 1_000_000), false));
                assert!(is_io(&append(store, "b", None, 1_000_000), false));
            }
            assert_eq!(append(store, "a", Some(1), 100), Ok(Appended::At(Lsn(2))));
            assert_eq!(append(store, "b", None, 100), Ok(Appended::At(Lsn(3))));
            let roomy = open(Tuning::default());
            assert_eq!(append(&roomy, "b", Some(3), 1_000_000), Ok(Appended::At(Lsn(4))));
        });
    }

    #[test]
    fn a_failed_batch_is_answered_with_the_error() {
        let fault = Arc::new(AtomicI32::new(0));
        let plant = |code: i32| fault.store(code, Ordering::Relaxed);
        check("fault", Tuning { fault: fault.clone(), ..Tuning::default() }, |store, open| {
            assert_eq!(append(store, "a", None, 10), Ok(Appended::At(Lsn(1))));
            plant(ffi::SQLITE_FULL);
            assert!(is_io(&append(store, "a", Some(1), 10), false));
            // Even a conflict gets the error: the record it was compared with did not become durable.
            assert!(is_io(&append(store, "a", None, 10), false));
            plant(0);
            assert_eq!(append(store, "a", Some(1), 10), Ok(Appended::At(Lsn(2))));
            plant(ffi::SQLITE_IOERR_FSYNC);
            assert!(is_io(&append(store, "a", Some(2), 10), true));
            plant(0);
            // The disk has space again, but no further write is attempted.
            assert!(is_io(&append(store, "a", Some(2), 10), true));
            let plan = StoredPlan {
                digest: "d".into(),
                format: 1,
                plan: "1".into(),
                source: String::new(),
                overrides: String::new(),
            };
            assert!(store.plans.put(plan).wait().is_err_and(|error| error.is_fatal()));
            assert!(store.clone().close().is_err_and(|error| error.is_fatal()));
            assert_eq!(append(store, "a", Some(2), 10), Err(Error::Stopped));
            assert_eq!(append(&open(Tuning::default()), "a", Some(2), 10), Ok(Appended::At(Lsn(3))));
        });
    }
}
