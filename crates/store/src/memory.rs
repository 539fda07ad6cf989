//! The backend that forgets: for tests, simulations and runs that nobody wants to keep.

use crate::blobs::{BlobId, Blobs};
use crate::error::Error;
use crate::journal::{Append, Appended, Forget, Journal, Lsn, Record, Tails};
use crate::pending::Pending;
use crate::plans::{Plans, StoredPlan};
use crate::view::{self, Projection, Query, RunRow, View};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_engine::RunId;

pub(crate) struct Memory {
    /// Held for the lines of one call.
    state: Mutex<State>,
    projection: Option<Arc<dyn Projection>>,
}

#[derive(Default)]
struct State {
    /// The record with number `n` is at `n - 1`; those of removed runs are gone.
    records: Vec<Option<Record>>,
    tails: BTreeMap<RunId, Lsn>,
    plans: HashMap<String, StoredPlan>,
    blobs: HashMap<BlobId, Vec<u8>>,
    rows: HashMap<RunId, RunRow>,
    /// How many records are in the rows.
    applied: usize,
}

impl Memory {
    pub(crate) fn new(projection: Option<Arc<dyn Projection>>) -> Self {
        Self { state: Mutex::default(), projection }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with every record in its rows.
    fn applied_state(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut guard = self.state();
        let state = &mut *guard;
        if let Some(projection) = &self.projection {
            for record in state.records[state.applied..].iter().flatten() {
                view::fold(&**projection, &Ok(record.clone()), |run| {
                    Ok(state.rows.entry(run.clone()).or_insert_with(|| RunRow::new(run.clone())))
                })?;
            }
            state.applied = state.records.len();
        }
        Ok(guard)
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

    fn append(&mut self, append: Append) -> Appended {
        let tail = self.tails.get(append.run()).copied();
        if !append.follows(tail) {
            return Appended::Conflict { tail };
        }
        let lsn = Lsn(self.records.len() as u64 + 1);
        append.ticket().set(lsn);
        self.tails.insert(append.run().clone(), lsn);
        self.records.push(Some(append.at(lsn, tail)));
        Appended::At(lsn)
    }
}

impl Journal for Memory {
    fn append(&self, append: Append) -> Pending<Appended> {
        Pending::ready(Ok(self.state().append(append)))
    }

    fn back(&self, run: &RunId, before: Option<Lsn>, limit: usize) -> Result<Vec<Record>, Error> {
        let state = self.state();
        let mut next = match before {
            None => state.tails.get(run).copied(),
            Some(lsn) => state.record(lsn).filter(|record| record.run == *run).and_then(|record| record.prev),
        };
        let mut found = Vec::new();
        while let Some(record) = next.and_then(|lsn| state.record(lsn)).filter(|_| found.len() < limit) {
            next = record.prev;
            found.push(record.clone());
        }
        Ok(found)
    }

    fn tails(&self) -> Result<Tails, Error> {
        let state = self.state();
        let is_open = |lsn: &Lsn| state.record(*lsn).is_some_and(|record| !record.ends());
        let open = state.tails.iter().filter(|(run, lsn)| is_open(lsn) && !run.is_desk());
        Ok(Tails {
            low_water: Lsn(1),
            last: (!state.records.is_empty()).then_some(Lsn(state.records.len() as u64)),
            unfinished: open.map(|(run, lsn)| (run.clone(), *lsn)).collect(),
        })
    }

    fn scan(&self, from: Lsn, limit: usize) -> Result<Vec<Result<Record, Error>>, Error> {
        let skip = usize::try_from(from.0.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(self.state().records.iter().skip(skip).flatten().take(limit).cloned().map(Ok).collect())
    }

    fn forget(&self, runs: Forget) -> Pending<Vec<RunId>> {
        let mut state = self.state();
        let mut forgotten = Vec::new();
        for (run, tail, _) in runs.0 {
            let finished = state.record(tail).is_some_and(Record::ends);
            if !finished || state.tails.get(&run) != Some(&tail) {
                continue;
            }
            state.tails.remove(&run);
            state.rows.remove(&run);
            let of_run = |record: &Option<Record>| record.as_ref().is_some_and(|record| record.run == run);
            state.records.iter_mut().filter(|record| of_run(record)).for_each(|record| *record = None);
            forgotten.push(run);
        }
        Pending::ready(Ok(forgotten))
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

    fn list(&self) -> Result<Vec<String>, Error> {
        Ok(self.state().plans.keys().cloned().collect())
    }

    fn forget(&self, digests: Vec<String>) -> Pending<usize> {
        let mut state = self.state();
        let gone = digests.iter().filter(|digest| state.plans.remove(*digest).is_some()).count();
        Pending::ready(Ok(gone))
    }

    fn get(&self, digest: &str) -> Result<Option<StoredPlan>, Error> {
        Ok(self.state().plans.get(digest).cloned())
    }
}

impl Blobs for Memory {
    fn put(&self, content: &[u8]) -> Result<BlobId, Error> {
        let id = BlobId::of(content);
        self.state().blobs.entry(id.clone()).or_insert_with(|| content.to_vec());
        Ok(id)
    }

    fn list(&self) -> Result<Vec<(BlobId, u64)>, Error> {
        Ok(self.state().blobs.iter().map(|(id, content)| (id.clone(), content.len() as u64)).collect())
    }

    /// All of them were put since this store was opened.
    fn forget(&self, _: &BlobId) -> Result<bool, Error> {
        Ok(false)
    }

    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.state().blobs.get(id).cloned())
    }
}

impl View for Memory {
    fn list(&self, query: &Query) -> Result<Vec<RunRow>, Error> {
        let state = self.applied_state()?;
        let mut rows: Vec<_> = state.rows.values().filter(|row| query.takes(row)).collect();
        rows.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(rows.into_iter().take(query.limit).cloned().collect())
    }

    fn get(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        Ok(self.applied_state()?.rows.get(run).cloned())
    }

    fn applied(&self) -> Result<Option<Lsn>, Error> {
        let applied = self.applied_state()?.applied as u64;
        Ok((applied > 0).then_some(Lsn(applied)))
    }

    fn stored(&self) -> Result<Option<Vec<RunRow>>, Error> {
        Ok(Some(self.applied_state()?.rows.values().cloned().collect()))
    }

    fn rebuild(&self) -> Result<(), Error> {
        {
            let mut state = self.state();
            state.rows.clear();
            state.applied = 0;
        }
        self.applied_state().map(drop)
    }
}
