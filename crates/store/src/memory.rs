//! The backend that keeps everything in memory: for tests, simulations and runs that need no storage.

use crate::blobs::{BlobId, Blobs, ReadBlob};
use crate::error::Error;
use crate::journal::{Append, Appended, Journal, Lsn, Record, Tails};
use crate::ledger::{Entry, Ledger};
use crate::pending::Pending;
use crate::plans::{Plans, StoredPlan};
use crate::view::{self, Projection, Query, RunRow, View, Wake};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_engine::{RunId, Timestamp};

pub(crate) struct Memory {
    /// Held only within a single call.
    state: Mutex<State>,
    projection: Option<Arc<dyn Projection>>,
}

#[derive(Default)]
struct State {
    /// The record with number `n` is at `n - 1`; those of removed runs are gone.
    records: Vec<Option<Record>>,
    /// The last record of each run and its wake.
    tails: BTreeMap<RunId, (Lsn, Wake)>,
    plans: HashMap<String, StoredPlan>,
    blobs: HashMap<BlobId, Vec<u8>>,
    documents: BTreeMap<(&'static str, String), Document>,
    log: Vec<Vec<u8>>,
    /// During a sweep: the values that new records refer to.
    fresh: Option<HashSet<BlobId>>,
    rows: HashMap<RunId, RunRow>,
    /// The number of records in the rows.
    applied: usize,
}

/// A document of the ledger, and when it may be removed.
type Document = (Vec<u8>, Option<Timestamp>);

impl Memory {
    pub(crate) fn new(projection: Option<Arc<dyn Projection>>) -> Self {
        Self { state: Mutex::default(), projection }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers from the state with every record in its rows.
    fn applied<T>(&self, look: impl FnOnce(&State) -> T) -> Pending<T> {
        let mut guard = self.state();
        let state = &mut *guard;
        for record in state.records[state.applied..].iter().flatten() {
            let Some(projection) = &self.projection else { break };
            let folded = view::fold(&**projection, &Ok(record.clone()), |run| {
                Ok(state.rows.entry(run.clone()).or_insert_with(|| RunRow::new(run.clone())))
            });
            if let Err(error) = folded {
                return Pending::refused(error);
            }
        }
        state.applied = state.records.len();
        Pending::ready(Ok(look(state)))
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} records)", self.state().records.len())
    }
}

impl State {
    fn record(&self, lsn: Lsn) -> Option<&Record> {
        self.records.get(usize::try_from(lsn.0.checked_sub(1)?).ok()?)?.as_ref()
    }

    fn tail(&self, run: &RunId) -> Option<Lsn> {
        self.tails.get(run).map(|(lsn, _)| *lsn)
    }

    /// Writes all of them or none.
    fn append(&mut self, appends: &[Append]) -> Vec<Appended> {
        let mut tails: HashMap<&RunId, Option<Lsn>> = HashMap::new();
        for (append, at) in appends.iter().zip(self.records.len() as u64 + 1..) {
            let tail = tails.get(append.run()).copied().unwrap_or_else(|| self.tail(append.run()));
            if !append.follows(tail) {
                appends.iter().for_each(|append| append.ticket().clear());
                let conflict = |append: &Append| Appended::Conflict { tail: self.tail(append.run()) };
                return appends.iter().map(conflict).collect();
            }
            append.ticket().set(Lsn(at));
            tails.insert(append.run(), (!append.removes()).then_some(Lsn(at)));
        }
        appends.iter().map(|append| Appended::At(self.write(append))).collect()
    }

    fn write(&mut self, append: &Append) -> Lsn {
        let (run, lsn) = (append.run(), Lsn(self.records.len() as u64 + 1));
        self.fresh.iter_mut().for_each(|fresh| fresh.extend(append.values().keys().cloned()));
        self.blobs.extend(append.values().iter().map(|(id, content)| (id.clone(), content.clone())));
        self.note(append.entries());
        if append.removes() {
            self.tails.remove(run);
            self.rows.remove(run);
            let of_run = |record: &Option<Record>| record.as_ref().is_some_and(|record| record.run == *run);
            self.records.iter_mut().filter(|record| of_run(record)).for_each(|record| *record = None);
            self.records.push(None);
        } else {
            self.records.push(Some(append.record(lsn, self.tail(run))));
            self.tails.insert(run.clone(), (lsn, append.wake()));
        }
        lsn
    }

    fn note(&mut self, entries: &[Entry]) {
        for entry in entries {
            match entry.clone() {
                Entry::Log(body) => self.log.push(body),
                Entry::Put { kind, key, body, until } => {
                    self.documents.insert((kind, key), (body, until));
                }
                Entry::Remove { kind, key } => drop(self.documents.remove(&(kind, key))),
            }
        }
    }

    fn back(&self, run: &RunId, before: Option<Lsn>, limit: usize) -> Vec<Record> {
        let mut next = match before {
            None => self.tail(run),
            Some(lsn) => self.record(lsn).filter(|record| record.run == *run).and_then(|record| record.prev),
        };
        let mut found = Vec::new();
        while let Some(record) = next.and_then(|lsn| self.record(lsn)).filter(|_| found.len() < limit) {
            next = record.prev;
            found.push(record.clone());
        }
        found
    }
}

impl Journal for Memory {
    fn append(&self, append: Append) -> Pending<Appended> {
        Pending::ready(self.state().append(&[append]).pop().ok_or(Error::Stopped))
    }

    fn append_all(&self, appends: Vec<Append>) -> Pending<Vec<Appended>> {
        Pending::ready(Ok(self.state().append(&appends)))
    }

    fn back(&self, run: &RunId, before: Option<Lsn>, limit: usize) -> Pending<Vec<Record>> {
        Pending::ready(Ok(self.state().back(run, before, limit)))
    }

    fn read(&self, run: &RunId, after: Option<Lsn>) -> Pending<Vec<Record>> {
        let mut records = self.state().back(run, None, usize::MAX);
        records.retain(|record| after.is_none_or(|after| record.lsn > after));
        records.reverse();
        Pending::ready(Ok(records))
    }

    fn tails(&self) -> Pending<Tails> {
        let state = self.state();
        let is_open = |lsn: &Lsn| state.record(*lsn).is_some_and(|record| !record.ends());
        let open = state.tails.iter().filter(|(run, (lsn, _))| is_open(lsn) && !run.is_coordinator());
        Pending::ready(Ok(Tails {
            low_water: Lsn(1),
            last: (!state.records.is_empty()).then_some(Lsn(state.records.len() as u64)),
            unfinished: open.map(|(run, (lsn, _))| (run.clone(), *lsn)).collect(),
        }))
    }

    fn scan(&self, from: Lsn, limit: usize) -> Pending<Vec<Result<Record, Error>>> {
        let skip = usize::try_from(from.0.saturating_sub(1)).unwrap_or(usize::MAX);
        let found = self.state().records.iter().skip(skip).flatten().take(limit).cloned().map(Ok).collect();
        Pending::ready(Ok(found))
    }

    fn reclaim(&self) -> Pending<()> {
        Pending::ready(Ok(()))
    }

    fn compact(&self) -> Pending<()> {
        Pending::ready(Ok(()))
    }
}

impl Plans for Memory {
    fn put(&self, plan: StoredPlan) -> Pending<()> {
        let checked = plan.check();
        if checked.is_ok() {
            self.state().plans.entry(plan.digest.clone()).or_insert(plan);
        }
        Pending::ready(checked)
    }

    fn list(&self) -> Pending<Vec<String>> {
        Pending::ready(Ok(self.state().plans.keys().cloned().collect()))
    }

    fn forget(&self, digests: Vec<String>) -> Pending<usize> {
        let mut state = self.state();
        let gone = digests.iter().filter(|digest| state.plans.remove(*digest).is_some()).count();
        Pending::ready(Ok(gone))
    }

    fn get(&self, digest: &str) -> Pending<Option<StoredPlan>> {
        Pending::ready(Ok(self.state().plans.get(digest).cloned()))
    }
}

impl Blobs for Memory {
    fn lend(&self, reader: Box<dyn FnOnce(&ReadBlob<'_>) + Send>) {
        reader(&|id| Ok(self.state().blobs.get(id).cloned()));
    }

    fn list(&self) -> Pending<Vec<(BlobId, u64)>> {
        let state = self.state();
        let all = state.blobs.iter().map(|(id, content)| (id.clone(), content.len() as u64)).collect();
        Pending::ready(Ok(all))
    }

    fn begin_sweep(&self) -> Pending<Vec<(BlobId, u64)>> {
        self.state().fresh = Some(HashSet::new());
        Blobs::list(self)
    }

    fn sweep(&self, mut unused: Vec<BlobId>) -> Pending<Vec<BlobId>> {
        let mut state = self.state();
        let Some(fresh) = state.fresh.take() else { return Pending::ready(Ok(Vec::new())) };
        unused.retain(|id| !fresh.contains(id) && state.blobs.remove(id).is_some());
        Pending::ready(Ok(unused))
    }
}

impl View for Memory {
    fn list(&self, query: &Query) -> Pending<Vec<RunRow>> {
        self.applied(|state| {
            let mut rows: Vec<_> = state.rows.values().filter(|row| query.takes(row)).collect();
            rows.sort_by(|a, b| a.order().cmp(&b.order()));
            rows.into_iter().take(query.limit).cloned().collect()
        })
    }

    fn get(&self, run: &RunId) -> Pending<Option<RunRow>> {
        self.applied(|state| state.rows.get(run).cloned())
    }

    fn unfinished(&self) -> Pending<Vec<(RunId, Wake)>> {
        self.applied(|state| {
            let open = |run: &RunId| state.rows.get(run).is_some_and(|row| row.row.ended_at.is_none());
            let runs = state.tails.iter().filter(|(run, _)| open(run));
            runs.map(|(run, (_, wake))| (run.clone(), *wake)).collect()
        })
    }

    fn stored(&self) -> Pending<Option<(Lsn, Vec<RunRow>)>> {
        self.applied(|state| Some((Lsn(state.applied as u64), state.rows.values().cloned().collect())))
    }

    fn rebuild(&self) -> Pending<()> {
        let mut state = self.state();
        state.rows.clear();
        state.applied = 0;
        drop(state);
        self.applied(|_| ())
    }
}

impl Ledger for Memory {
    fn write(&self, entries: Vec<Entry>) -> Pending<()> {
        self.state().note(&entries);
        Pending::ready(Ok(()))
    }

    fn get(&self, kind: &'static str, key: &str) -> Pending<Option<Vec<u8>>> {
        let found = self.state().documents.get(&(kind, key.to_owned())).map(|(body, _)| body.clone());
        Pending::ready(Ok(found))
    }

    fn list(&self, kind: &'static str, after: Option<&str>, limit: usize) -> Pending<Vec<(String, Vec<u8>)>> {
        let state = self.state();
        let of_kind = state.documents.iter().filter(|((of, _), _)| *of == kind);
        let later = of_kind.filter(|((_, key), _)| after.is_none_or(|after| key.as_str() > after));
        let found = later.take(limit).map(|((_, key), (body, _))| (key.clone(), body.clone())).collect();
        Pending::ready(Ok(found))
    }

    fn log(&self, before: Option<u64>, limit: usize) -> Pending<Vec<(u64, Vec<u8>)>> {
        let state = self.state();
        let numbered = state.log.iter().enumerate().rev().map(|(index, body)| (index as u64 + 1, body));
        let earlier = numbered.filter(|(number, _)| before.is_none_or(|before| *number < before));
        Pending::ready(Ok(earlier.take(limit).map(|(number, body)| (number, body.clone())).collect()))
    }

    fn expire(&self, now: Timestamp) -> Pending<()> {
        self.state().documents.retain(|_, (_, until)| until.is_none_or(|until| until > now));
        Pending::ready(Ok(()))
    }
}
