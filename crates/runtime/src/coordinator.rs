//! The coordinator's stream in the journal, and the claims that this machine adds to those of a plan.

use crate::clock::Clock;
use crate::config::Limits;
use crate::host::Host;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_engine::{
    Amount, Ask, Claim, Coordinator, CoordinatorEvent, CoordinatorState, CoordinatorWhat, Full, Job, Key,
    Policy, Run, RunId, Work,
};
use windlass_ir::dialect::Dialects;
use windlass_ir::policy::Budget;
use windlass_store::{Append, Appended, Error, Lsn, Prev, Store};

/// The prefixes of budgets that runs share.
const SHARED_BUDGETS: [&str; 3] = ["all", "day", "workflow:"];

/// The budgets with a cap that all runs share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budgets(Arc<Mutex<BTreeSet<Key>>>);

impl Budgets {
    pub fn note(&self, state: &CoordinatorState) {
        let shared = |key: &Key| SHARED_BUDGETS.iter().any(|kind| key.starts_with(kind));
        let capped = state.budgets.iter().filter(|(key, budget)| budget.cap.is_some() && shared(key));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = capped.map(|(key, _)| key.clone()).collect();
    }

    fn any(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn of_workflow(&self, workflow: &str) -> Vec<Key> {
        let capped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = format!("workflow:{workflow}");
        ["all", "day", &own].into_iter().filter_map(|key| capped.get(key).cloned()).collect()
    }
}

/// The claims that this machine adds to those of a plan: its limits and the shared budgets.
#[derive(Debug)]
pub(crate) struct Machine {
    pub host: Arc<Host>,
    pub budgets: Budgets,
    pub dialects: Dialects,
}

impl Policy for Machine {
    fn limits_jobs(&self) -> bool {
        let Limits { jobs, processes, .. } = self.host.limits;
        jobs.is_some() || processes.is_some() || self.budgets.any()
    }

    fn add_claims(&self, run: &Run, job: &Job, ask: &mut Ask) {
        let most = Amount { calls: 1, ..Amount::default() };
        let spends = matches!(
            job.work.work,
            Work::Agent { .. } | Work::Tool { .. } | Work::Task { .. } | Work::Http(_) | Work::Assistant(_)
        );
        if spends {
            let budgets = self.budgets.of_workflow(&run.program().plan.header.id).into_iter();
            ask.claims.extend(budgets.map(|budget| Claim::Spend { budget, cap: Budget::default(), most }));
        }
        let mocked = self.host.mocked(self.dialects, run, job).and_then(|answer| answer.most);
        for claim in &mut ask.claims {
            if let (Claim::Spend { most, .. }, Some(mocked)) = (claim, mocked) {
                *most = mocked;
            }
        }
        let processes =
            self.host.limits.processes.filter(|_| self.host.starts_process(self.dialects, run, job));
        for (key, limit) in [("machine:jobs", self.host.limits.jobs), ("machine:processes", processes)] {
            if let Some(limit) = limit {
                ask.claims.push(Claim::Slot { key: key.into(), limit, full: Full::Wait });
            }
        }
    }
}

/// Reads the coordinator from its stream. Returns it with the number of its last record and the number of events read. Ignores
/// records before the last snapshot, even damaged ones. A stream that contradicts itself is an error. Blocks.
pub(crate) fn read(store: &Store) -> Result<(Coordinator, Option<u64>, usize), Error> {
    let stream = RunId::coordinator();
    let mut records: Vec<Vec<CoordinatorEvent>> = Vec::new();
    let (mut before, mut tail, mut page) = (None, None, PAGE);
    'pages: loop {
        let found = match store.journal.back(&stream, before, page).wait() {
            Err(error) if page > 1 && error.is_of_one_run() => {
                // Read single records up to the damage; a snapshot may follow it.
                page = 1;
                continue;
            }
            found => found?,
        };
        let Some(last) = found.last() else { break };
        before = Some(last.lsn);
        for record in found {
            tail.get_or_insert(record.lsn);
            let events = record.coordinator_events(&*store.blobs).wait()?;
            let is_snapshot =
                matches!(events.first(), Some(first) if first.what == CoordinatorWhat::Snapshot);
            records.push(events);
            if is_snapshot {
                break 'pages;
            }
        }
    }
    let events: Vec<CoordinatorEvent> = records.into_iter().rev().flatten().collect();
    let coordinator = Coordinator::replay(&events)
        .map_err(|cause| Error::Contradictory { run: stream, contradiction: Box::new(cause) })?;
    Ok((coordinator, tail.map(|lsn: Lsn| lsn.0), events.len()))
}

/// The number of records in a page.
const PAGE: usize = 256;

/// Starts the coordinator's stream over after damage. This clears all slots, queues, keys and budgets.
pub(crate) fn renew(store: &Store) -> Result<(), Error> {
    let events = [CoordinatorEvent { at: Clock::Real.now(), what: CoordinatorWhat::Snapshot }];
    let mut prev = None;
    loop {
        let append = Append::coordinator(Prev::At(prev), &events)?;
        match store.journal.append(append).wait()? {
            Appended::At(_) => return Ok(()),
            // The journal knows the end of the stream even if it is damaged.
            Appended::Conflict { tail } => prev = tail,
        }
    }
}
