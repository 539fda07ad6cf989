//! The one thread that writes `journal.db`. It takes everything that queued while the last commit was on its way, writes
//! it in one transaction, and then tells everybody. Nothing else commits or checkpoints.

use super::codes::{of, translate};
use super::head::Heads;
use super::queue::{Command, Queue, Taken};
use super::read::{lsn, number};
use super::schema;
use super::signal::Signal;
use super::tails::{Tail, Tails, seal};
use crate::error::Error;
use crate::journal::{Append, Appended, Forget, Lsn};
use crate::pending::Answer;
use crate::plans::StoredPlan;
use crate::store::Tuning;
use rusqlite::{Connection, OptionalExtension as _, Statement};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use windlass_engine::RunId;

/// With nothing to write for this long, the log is folded in.
const IDLE: Duration = Duration::from_millis(200);

/// SQLite's own size of a page.
const PAGE_BYTES: u64 = 4096;

/// How long readers may hold up a log that has become too long.
const READERS: Duration = Duration::from_millis(100);

/// Starts the thread; returns when its statements are prepared.
pub(super) fn start(
    connection: Connection,
    path: &Path,
    queue: &Arc<Queue>,
    tails: &Arc<Mutex<Tails>>,
    signal: &Arc<Signal>,
    heads: Heads,
    tuning: Tuning,
) -> Result<JoinHandle<()>, Error> {
    let (ready, answer) = mpsc::channel();
    let shared = Shared {
        path: path.into(),
        queue: queue.clone(),
        tails: tails.clone(),
        signal: signal.clone(),
        heads,
        tuning,
    };
    let thread = std::thread::Builder::new()
        .name("journal".into())
        .spawn(move || {
            // Whichever way this thread ends, nobody must wait for it afterwards.
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
        .map_err(|error| Error::io(path, &error))?;
    answer.recv().unwrap_or(Err(Error::Stopped)).map(|()| thread)
}

struct Shared {
    path: PathBuf,
    queue: Arc<Queue>,
    tails: Arc<Mutex<Tails>>,
    signal: Arc<Signal>,
    heads: Heads,
    tuning: Tuning,
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
    /// The numbers that the next run and the next record get.
    next_key: i64,
    next_lsn: u64,
    /// About how much the write-ahead log has grown since it was last folded in.
    log_bytes: u64,
    /// The last record that is written down as such beside the journal.
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
    end_run: Statement<'c>,
    plan: Statement<'c>,
    mark: Statement<'c>,
    idle: Statement<'c>,
    not_idle: Statement<'c>,
    mark_seal: Statement<'c>,
    forget_record: Statement<'c>,
    forget_run: Statement<'c>,
    forget_plan: Statement<'c>,
    removed: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            record: connection
                .prepare("INSERT INTO journal (lsn, run, prev, body) VALUES (?1, ?2, ?3, ?4)")?,
            find_run: connection.prepare("SELECT key, tail FROM runs WHERE run = ?1")?,
            run: connection.prepare("INSERT INTO runs (key, run) VALUES (?1, ?2)")?,
            end_run: connection.prepare("UPDATE runs SET tail = ?2 WHERE key = ?1")?,
            plan: connection.prepare("INSERT OR IGNORE INTO plans VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?,
            mark: connection.prepare("UPDATE mark SET low_water = ?1")?,
            idle: connection.prepare("INSERT OR REPLACE INTO idle VALUES (?1, ?2)")?,
            not_idle: connection.prepare("DELETE FROM idle WHERE run = ?1")?,
            mark_seal: connection.prepare("UPDATE identity SET mark_seal = ?1")?,
            forget_record: connection.prepare("DELETE FROM journal WHERE lsn = ?1 AND run = ?2")?,
            forget_run: connection.prepare("DELETE FROM runs WHERE key = ?1")?,
            forget_plan: connection.prepare("DELETE FROM plans WHERE digest = ?1")?,
            removed: connection.prepare("UPDATE identity SET removed = removed + ?1")?,
        })
    }
}

/// What a batch does to the state in memory once it is durable. Runs are known by their numbers here: hashing names is
/// what costs most when hundreds of records share a commit.
#[derive(Default)]
struct Staged {
    /// One for each append of the batch, with the number of its run where it was written.
    appended: Vec<(Appended, i64)>,
    /// The last records of the runs that this batch has added to.
    tails: HashMap<i64, Lsn>,
    begun: HashMap<RunId, i64>,
    records: u64,
    bytes: u64,
    last_seal: Vec<u8>,
    mark: Option<(u64, HashMap<i64, Lsn>)>,
    /// One for each removal of the batch.
    forgotten: Vec<Vec<RunId>>,
    forgotten_plans: Vec<usize>,
    removed: u64,
}

impl Staged {
    fn for_batch(commands: usize) -> Self {
        Self {
            appended: Vec::with_capacity(commands),
            tails: HashMap::with_capacity(commands),
            ..Self::default()
        }
    }
}

impl<'c> Writer<'c> {
    fn new(connection: &'c Connection, shared: &'c Shared) -> rusqlite::Result<Self> {
        #[cfg(test)]
        if let Some(pages) = shared.tuning.pages_max {
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        let key_max: Option<i64> = connection.query_row("SELECT max(key) FROM runs", [], |row| row.get(0))?;
        let last = shared.tails.lock().unwrap_or_else(PoisonError::into_inner).last;
        Ok(Self {
            connection,
            shared,
            statements: Statements::new(connection)?,
            next_key: key_max.unwrap_or(0) + 1,
            next_lsn: last + 1,
            log_bytes: left_in_log(&shared.path),
            head: 0,
            broken: None,
        })
    }

    fn tails(&self) -> MutexGuard<'_, Tails> {
        self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&mut self) {
        let mut batch = VecDeque::new();
        loop {
            let patience = (self.log_bytes > 0 && self.broken.is_none()).then_some(IDLE);
            match self.shared.queue.take(&mut batch, self.shared.tuning.batch_bytes, patience) {
                Taken::Batch => {
                    if let Some(close) = self.commit(&mut batch) {
                        drop(close.send(self.tidy()));
                        return;
                    }
                    if self.log_bytes >= self.shared.tuning.log_bytes {
                        self.checkpoint();
                        self.write_head();
                    }
                }
                Taken::Idle => {
                    self.checkpoint();
                    self.write_head();
                }
                Taken::Closed => return,
            }
        }
    }

    /// Writes a batch, answers all of it and leaves it empty. Returns who asked for the end, if somebody did.
    fn commit(&mut self, batch: &mut VecDeque<Command>) -> Option<Answer<()>> {
        let written = match &self.broken {
            Some(error) => Err(error.clone()),
            None => self.write(batch),
        };
        let (staged, error) = match written {
            Ok(staged) => (self.settle(batch, staged), None),
            Err(error) => (Staged::default(), Some(error)),
        };
        let (mut appended, mut close) = (staged.appended.into_iter(), None);
        let mut forgotten = staged.forgotten.into_iter();
        let mut forgotten_plans = staged.forgotten_plans.into_iter();
        for command in batch.drain(..) {
            // Whoever no longer listens does not mind.
            match command {
                Command::Append(_, answer) => {
                    drop(answer.send(reply(&error, || appended.next().map(|(it, _)| it))));
                }
                Command::Plan(_, answer) => drop(answer.send(reply(&error, || Some(())))),
                Command::Forget(_, answer) => drop(answer.send(reply(&error, || forgotten.next()))),
                Command::ForgetPlans(_, answer) => {
                    drop(answer.send(reply(&error, || forgotten_plans.next())));
                }
                Command::Compact(answer) => drop(answer.send(self.compact())),
                Command::Close(answer) => close = Some(answer),
            }
        }
        close
    }

    fn write(&mut self, batch: &VecDeque<Command>) -> Result<Staged, Error> {
        self.transaction(batch).map_err(|error| {
            if !self.connection.is_autocommit() {
                // SQLite has often rolled back by itself; if this fails too the next BEGIN says so.
                drop(self.connection.execute_batch("ROLLBACK"));
            }
            // Whoever was to follow these does not.
            batch.iter().filter_map(Command::append).for_each(|append| append.ticket().clear());
            let error = translate(&self.shared.path, &error);
            if error.is_fatal() {
                self.broken = Some(error.clone());
            }
            error
        })
    }

    fn transaction(&mut self, batch: &VecDeque<Command>) -> rusqlite::Result<Staged> {
        self.statements.begin.execute([])?;
        let mut staged = Staged::for_batch(batch.len());
        for command in batch {
            match command {
                Command::Append(append, _) => {
                    let appended = self.append(append, &mut staged)?;
                    staged.appended.push(appended);
                }
                Command::Plan(plan, _) => self.plan(plan)?,
                Command::Forget(forget, _) => {
                    let forgotten = self.forget(forget, &mut staged)?;
                    staged.forgotten.push(forgotten);
                }
                Command::ForgetPlans(digests, _) => {
                    let mut forgotten = 0;
                    for digest in digests {
                        forgotten += self.statements.forget_plan.execute([digest])?;
                    }
                    staged.forgotten_plans.push(forgotten);
                }
                Command::Compact(_) | Command::Close(_) => {}
            }
        }
        self.move_mark(&mut staged)?;
        #[cfg(test)]
        self.fail_if_told()?;
        self.statements.commit.execute([])?;
        Ok(staged)
    }

    fn append(&mut self, append: &Append, staged: &mut Staged) -> rusqlite::Result<(Appended, i64)> {
        let tail = self.tail(append.run(), staged)?;
        let known = tail.map(|tail| tail.lsn);
        if !append.follows(known) {
            return Ok((Appended::Conflict { tail: known }, 0));
        }
        let key = match tail {
            Some(tail) => tail.key,
            None => self.begin_run(append.run(), staged)?,
        };
        let at = Lsn(self.next_lsn + staged.records);
        let frame = append.sealed(known);
        self.statements.record.execute((number(at), key, known.map(number), &frame))?;
        staged.last_seal.clear();
        staged.last_seal.extend(crate::record::seal(&frame));
        append.ticket().set(at);
        if append.ends() {
            self.statements.end_run.execute((key, number(at)))?;
        }
        staged.records += 1;
        staged.bytes += append.bytes() as u64;
        staged.tails.insert(key, at);
        Ok((Appended::At(at), key))
    }

    /// The run's last record: in this batch, in memory, or, for a finished run, in its own row.
    fn tail(&mut self, run: &RunId, staged: &Staged) -> rusqlite::Result<Option<Tail>> {
        let unfinished = self.tails().unfinished.get(run).copied();
        let known = match (unfinished, staged.begun.get(run)) {
            (Some(tail), _) => Some(tail),
            (None, Some(key)) => Some(Tail { key: *key, lsn: Lsn(0) }),
            (None, None) => self.finished_tail(run)?,
        };
        Ok(known.map(|tail| Tail { lsn: staged.tails.get(&tail.key).copied().unwrap_or(tail.lsn), ..tail }))
    }

    /// A run that is neither in memory nor finished has lost its records: no tail fits it, nothing is added to it.
    fn finished_tail(&mut self, run: &RunId) -> rusqlite::Result<Option<Tail>> {
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Tail { key: row.get(0)?, lsn: row.get::<_, Option<i64>>(1)?.map_or(Lsn(0), lsn) })
        };
        self.statements.find_run.query_row([run.as_str()], read).optional()
    }

    fn begin_run(&mut self, run: &RunId, staged: &mut Staged) -> rusqlite::Result<i64> {
        let key = self.next_key + staged.begun.len() as i64;
        self.statements.run.execute((key, run.as_str()))?;
        staged.begun.insert(run.clone(), key);
        Ok(key)
    }

    fn plan(&mut self, plan: &StoredPlan) -> rusqlite::Result<()> {
        let StoredPlan { digest, format, plan: text, source, overrides } = plan;
        self.statements.plan.execute((digest, format, text, source, overrides, plan.checksum()))?;
        Ok(())
    }

    /// Removes those of the runs that are finished and end with the record that the caller thinks.
    fn forget(&mut self, forget: &Forget, staged: &mut Staged) -> rusqlite::Result<Vec<RunId>> {
        let mut forgotten = Vec::new();
        for (run, tail, records) in &forget.0 {
            let unfinished = self.tails().unfinished.contains_key(run) || staged.begun.contains_key(run);
            let Some(known) = self.finished_tail(run)?.filter(|known| known.lsn == *tail && !unfinished)
            else {
                continue;
            };
            if staged.tails.contains_key(&known.key) {
                continue;
            }
            for record in records {
                staged.removed += self.statements.forget_record.execute((number(*record), known.key))? as u64;
            }
            self.statements.forget_run.execute([known.key])?;
            forgotten.push(run.clone());
        }
        Ok(forgotten)
    }

    /// Moves the low-water mark when it is far enough behind, and behind everything when records were removed: then the last number
    /// is not forgotten with its record, and whatever is missing after the mark was not removed. The runs that stand before it are written down, so that a
    /// run that waits for a month does not make every start read a month of records. It rides in the batch's commit.
    fn move_mark(&mut self, staged: &mut Staged) -> rusqlite::Result<()> {
        let distance = self.shared.tuning.mark_records.max(1);
        let tails = self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let low_water = if staged.removed > 0 {
            self.next_lsn
        } else if self.next_lsn.saturating_sub(tails.low_water) < distance.saturating_mul(2) {
            return Ok(());
        } else {
            self.next_lsn - distance
        };
        let (had, has) = (tails.idle.clone(), tails.idle_before(low_water));
        drop(tails);
        for key in had.keys().filter(|key| !has.contains_key(key)) {
            self.statements.not_idle.execute([key])?;
        }
        for (key, tail) in has.iter().filter(|(key, tail)| had.get(key) != Some(tail)) {
            self.statements.idle.execute((key, number(*tail)))?;
        }
        self.statements.mark.execute([number(Lsn(low_water))])?;
        self.statements.mark_seal.execute([seal(low_water, &has)])?;
        if staged.removed > 0 {
            self.statements.removed.execute([number(Lsn(staged.removed))])?;
        }
        staged.mark = Some((low_water, has));
        Ok(())
    }

    /// The batch is durable: memory follows.
    fn settle(&mut self, batch: &VecDeque<Command>, mut staged: Staged) -> Staged {
        self.next_lsn += staged.records;
        self.next_key += staged.begun.len() as i64;
        // What was written, the page that was only partly filled, and two more of the table of runs and its index.
        let pages = if staged.begun.is_empty() { 1 } else { 3 };
        self.log_bytes += staged.bytes + pages * PAGE_BYTES;
        let last = self.next_lsn - 1;
        let mut tails = self.tails();
        let appends = batch.iter().filter_map(Command::append);
        for (append, (appended, key)) in appends.zip(&staged.appended) {
            if let Appended::At(lsn) = *appended {
                tails.step(append.run(), Tail { key: *key, lsn }, append.ends());
            }
        }
        tails.last = last;
        tails.removed += staged.removed;
        if !staged.last_seal.is_empty() {
            tails.last_seal.clone_from(&staged.last_seal);
        }
        if let Some((low_water, idle)) = staged.mark.take() {
            (tails.low_water, tails.idle) = (low_water, idle);
        }
        drop(tails);
        self.shared.signal.publish(last, staged.removed > 0);
        staged
    }

    /// Notes how far the journal has come, off the way of whoever waits for a commit.
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

    /// Writes the whole database anew without the pages that nothing stands on.
    fn compact(&mut self) -> Result<(), Error> {
        match &self.broken {
            Some(error) => return Err(error.clone()),
            None => self.connection.execute_batch("VACUUM").map_err(of(&self.shared.path))?,
        }
        self.fold_log("TRUNCATE").map(drop).map_err(of(&self.shared.path))
    }

    /// Folds the log into the database. It is then written from its start again, unless somebody reads from it at that
    /// very moment; when that has happened too often in a row, readers are waited for.
    fn checkpoint(&mut self) {
        // Also when it fails: it is tried again when the log has grown as much once more.
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

    /// How many pages the log has, folded in or not. That somebody was in the way is no error.
    fn fold_log(&self, mode: &str) -> rusqlite::Result<u64> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let pages: i64 = self.connection.query_row(&sql, [], |row| row.get(1))?;
        Ok(u64::try_from(pages).unwrap_or(0))
    }

    /// The end that nobody waits for. What is left in the log is read by the next process, so it must not get long.
    fn leave(&mut self) {
        if self.log_bytes > self.shared.tuning.log_bytes / 4 && self.broken.is_none() {
            // The next process folds in what this one cannot.
            let _ = self.connection.busy_timeout(READERS).and_then(|()| self.fold_log("TRUNCATE"));
        }
        self.write_head();
    }

    /// The end: the log is folded in and emptied, unless somebody reads.
    fn tidy(&mut self) -> Result<(), Error> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => self.fold_log("TRUNCATE").map(drop).map_err(of(&self.shared.path)),
        }
    }

    #[cfg(test)]
    fn fail_if_told(&self) -> rusqlite::Result<()> {
        match self.shared.tuning.fault.load(std::sync::atomic::Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)),
        }
    }
}

/// About how much an earlier process has left in the log. It is folded in when there is time, and never nothing: that nothing is there may
/// only mean that nobody could look.
fn left_in_log(journal: &Path) -> u64 {
    let mut log = journal.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(1, |log| log.len().max(1))
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
            // Left behind at worst; a failing test has something better to say.
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    /// Opens a store in a folder of its own and removes it afterwards.
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
    fn a_full_disk_can_be_tried_again() {
        check("full", Tuning { pages_max: Some(40), ..Tuning::default() }, |store, open| {
            assert_eq!(append(store, "a", None, 100), Ok(Appended::At(Lsn(1))));
            // What does not fit leaves nothing behind, however often it is tried.
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
    fn a_batch_that_fails_is_answered_with_the_error() {
        let fault = Arc::new(AtomicI32::new(0));
        let told = |code: i32| fault.store(code, Ordering::Relaxed);
        check("fault", Tuning { fault: fault.clone(), ..Tuning::default() }, |store, open| {
            assert_eq!(append(store, "a", None, 10), Ok(Appended::At(Lsn(1))));
            told(ffi::SQLITE_FULL);
            assert!(is_io(&append(store, "a", Some(1), 10), false));
            // Even one that would be a conflict: what it was compared with did not become durable.
            assert!(is_io(&append(store, "a", None, 10), false));
            told(0);
            assert_eq!(append(store, "a", Some(1), 10), Ok(Appended::At(Lsn(2))));
            told(ffi::SQLITE_IOERR_FSYNC);
            assert!(is_io(&append(store, "a", Some(2), 10), true));
            told(0);
            // The disk would take it now. It is not asked.
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
