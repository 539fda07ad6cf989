//! The stream of the coordinator in the journal, and what it adds to the limits of a machine.

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

/// What the budgets begin with that are not those of one run.
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

/// What this machine asks for beside what the plan of a run says.
#[derive(Debug)]
pub(crate) struct Machine {
    pub host: Host,
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

/// The coordinator as its stream tells it, the number of its last record, and how many events were read. Records before the last
/// beginning are not needed, and not looked at if they are damaged. Blocks.
pub(crate) fn read(store: &Store) -> Result<(Coordinator, Option<u64>, usize), Error> {
    let stream = RunId::coordinator();
    let mut records: Vec<Vec<CoordinatorEvent>> = Vec::new();
    let (mut before, mut tail, mut page) = (None, None, PAGE);
    'pages: loop {
        let found = match store.journal.back(&stream, before, page).wait() {
            Err(error) if page > 1 && error.is_of_one_run() => {
                // One at a time, up to the damage: a beginning may stand in front of it.
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
            let begins = matches!(events.first(), Some(first) if first.what == CoordinatorWhat::Snapshot);
            records.push(events);
            if begins {
                break 'pages;
            }
        }
    }
    let events: Vec<CoordinatorEvent> = records.into_iter().rev().flatten().collect();
    Ok((Coordinator::replay(&events), tail.map(|lsn: Lsn| lsn.0), events.len()))
}

/// Records of the stream that are read at once.
const PAGE: usize = 256;

/// Starts the coordinator's stream over behind damage that cannot be read: nothing is held, queued, kept or spent any more.
pub(crate) fn renew(store: &Store) -> Result<(), Error> {
    let events = [CoordinatorEvent { at: Clock::Real.now(), what: CoordinatorWhat::Snapshot }];
    let mut prev = None;
    loop {
        let append = Append::coordinator(Prev::At(prev), &events)?;
        match store.journal.append(append).wait()? {
            Appended::At(_) => return Ok(()),
            // The journal knows where its damaged end is.
            Appended::Conflict { tail } => prev = tail,
        }
    }
}
