//! Checks a data folder for damage: its files, runs, plans, values and lists. Each finding suggests a repair.

use crate::engine::{Engine, Error, options};
use crate::lock::Lock;
use crate::presence::Executed;
use crate::rows::Rows;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use windlass_engine::{Program, RunId};
use windlass_ir::Plan;
use windlass_ir::dialect::Dialects;
use windlass_ir::plan::FORMAT;
use windlass_store::{Durability, Error as StoreError, Lsn, Options, Query, RunRow, Store, fold_all};

/// A problem with a data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// An error code from `docs/errors`.
    pub code: String,
    /// The affected file or part of the folder.
    pub place: String,
    /// The damaged run, if the finding concerns one.
    pub run_id: Option<RunId>,
    pub message: String,
    pub help: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checkup {
    pub healthy: bool,
    pub runs: usize,
    pub records: u64,
    pub plans: usize,
    pub values: usize,
    pub findings: Vec<Finding>,
}

const RESTORE: &str = "restore the data folder from a backup (docs/guides/data-folder.md)";
const PARKED: &str =
    "it is parked, and all other runs continue; to continue it, restore the data folder from a backup";
const NEWER: &str =
    "it is parked, and all other runs continue; use the version of Windlass that wrote it, or a newer one";

/// Checks everything in a data folder without changing it. Another process may own the folder.
pub fn examine(folder: &Path, dialects: Dialects) -> Result<Checkup, Error> {
    let mut checkup = Checkup::default();
    match Engine::look(folder, dialects, |_| Executed::nothing()) {
        Ok(engine) => checkup.check(&engine, folder)?,
        Err(error @ Error::Store(StoreError::Missing { .. })) => return Err(error),
        Err(error) => checkup.find(&error, "journal.db", RESTORE),
    }
    checkup.healthy = checkup.findings.is_empty();
    Ok(checkup)
}

impl Checkup {
    fn check(&mut self, engine: &Engine, folder: &Path) -> Result<(), Error> {
        let store = engine.store();
        match store.check_files().wait() {
            Ok(faults) => faults.into_iter().for_each(|fault| self.journal(fault)),
            Err(error) => self.journal(error.to_string()),
        }
        if let Err(error) =
            store.check_head(folder, &options(Durability::default(), engine.dialects())).wait()
        {
            let help =
                "restore the newer one, or continue from this one with `windlass doctor --accept-older`";
            self.find(&error.into(), "journal.db", help);
        }
        self.count(store);
        self.find_lost(store)?;
        self.check_runs(engine)?;
        self.check_plans(store)?;
        if let Err(error) = engine.shared() {
            let help = "restore the data folder from a backup, or reset the limits with `windlass doctor --renew-limits`";
            self.find(&error, "limits", help);
        }
        self.check_values(store)?;
        self.check_rows(store, engine.dialects())
    }

    fn find(&mut self, error: &Error, place: &str, help: &str) {
        self.findings.push(Finding {
            code: error.code().to_owned(),
            place: place.to_owned(),
            run_id: None,
            message: error.to_string(),
            help: help.to_owned(),
        });
    }

    fn count(&mut self, store: &Store) {
        // If counting fails, the check of the files has already reported the damage.
        let Ok((there, expected)) = store.count().wait() else { return };
        self.records = there;
        if there < expected {
            self.journal(format!("{} of {expected} records are missing", expected - there));
        }
    }

    fn journal(&mut self, message: String) {
        self.findings.push(Finding {
            code: "storage".into(),
            place: "journal.db".into(),
            run_id: None,
            message,
            help: RESTORE.into(),
        });
    }

    /// Finds records so damaged that their run is unknown.
    fn find_lost(&mut self, store: &Store) -> Result<(), Error> {
        let (mut next, mut lost): (Lsn, Option<(Lsn, Lsn)>) = (Lsn(1), None);
        loop {
            let scanned = store.journal.scan(next, 1_000).wait()?;
            let done = scanned.is_empty();
            for found in scanned {
                let at = match &found {
                    Ok(record) => Some(record.lsn),
                    Err(error) => error.place(),
                };
                let at = at.unwrap_or(next);
                next = Lsn((at.0 + 1).max(next.0));
                match (&found, lost) {
                    (Err(StoreError::Orphan { .. }), Some((first, last))) if last.0 + 1 == at.0 => {
                        lost = Some((first, at));
                    }
                    (Err(StoreError::Orphan { .. }), before) => {
                        self.lost(before);
                        lost = Some((at, at));
                    }
                    (Ok(_) | Err(_), _) => {}
                }
            }
            if done {
                self.lost(lost);
                return Ok(());
            }
        }
    }

    fn lost(&mut self, lost: Option<(Lsn, Lsn)>) {
        let Some((first, last)) = lost else { return };
        self.journal(match first == last {
            true => format!("record {first} cannot be read, and its run is unknown"),
            false => format!("records {first} to {last} cannot be read, and their runs are unknown"),
        });
    }

    fn check_runs(&mut self, engine: &Engine) -> Result<(), Error> {
        let rows = engine.runs(&Query { limit: usize::MAX, ..Query::default() })?;
        let unfinished = engine.store().journal.tails().wait()?.unfinished.into_iter().map(|(run, _)| run);
        let runs: BTreeSet<RunId> = rows.into_iter().map(|row| row.run).chain(unfinished).collect();
        self.runs = runs.len();
        for run in runs {
            let Err(error) = engine.check(&run) else { continue };
            let help = match &error {
                Error::Store(StoreError::Unreadable { .. } | StoreError::UnreadablePlan { .. }) => NEWER,
                _ => PARKED,
            };
            self.findings.push(Finding {
                code: error.code().to_owned(),
                place: "journal.db".into(),
                run_id: Some(run),
                message: error.to_string(),
                help: help.to_owned(),
            });
        }
        Ok(())
    }

    fn check_plans(&mut self, store: &Store) -> Result<(), Error> {
        let digests = match store.plans.list().wait() {
            Ok(digests) => digests,
            Err(error) => {
                self.find(&error.into(), "plans", RESTORE);
                return Ok(());
            }
        };
        self.plans = digests.len();
        for digest in digests {
            let read = store.plans.get(&digest).wait().map_err(Error::from).and_then(|plan| match plan {
                Some(plan) => Program::new(plan.read::<Plan>(FORMAT)?).map(drop).map_err(Error::from),
                None => Ok(()),
            });
            if let Err(error) = read {
                self.find(
                    &error,
                    "plans",
                    "the runs of this plan are parked; restore the data folder from a backup",
                );
            }
        }
        Ok(())
    }

    fn check_values(&mut self, store: &Store) -> Result<(), Error> {
        let values = store.blobs.list().wait()?;
        self.values = values.len();
        for (id, _) in values {
            if let Err(error) = store.blobs.get(&id).wait() {
                self.find(
                    &error.into(),
                    "blobs",
                    "the runs that name it are parked; restore this file from a backup",
                );
            }
        }
        Ok(())
    }

    /// Compares the lists with the journal. Lists that are not in use do not matter: Windlass rebuilds them.
    fn check_rows(&mut self, store: &Store, dialects: Dialects) -> Result<(), Error> {
        let Ok(Some((applied, stored))) = store.view.stored().wait() else { return Ok(()) };
        let expected = fold_all(&*store.journal, &Rows { dialects }, applied)?;
        // The findings already contain the damaged runs.
        let damaged: BTreeSet<&RunId> =
            self.findings.iter().filter_map(|finding| finding.run_id.as_ref()).collect();
        let is_wrong = |row: &&RunRow| !damaged.contains(&row.run) && expected.get(&row.run) != Some(*row);
        // The owner may have added records in the meantime.
        let wrong = stored.iter().filter(|row| row.tail <= applied).filter(is_wrong);
        let wrong = wrong.count() + expected.len().saturating_sub(stored.len());
        if wrong > 0 {
            self.findings.push(Finding {
                code: "storage".into(),
                place: "lists".into(),
                run_id: None,
                message: format!("the lists show {wrong} runs differently from the journal"),
                help: "rebuild them with `windlass doctor --rebuild`; nothing is lost".into(),
            });
        }
        Ok(())
    }
}

/// Accepts a journal that is older than its last known state. From then on it no longer counts as a copy of another one.
pub fn accept_older(folder: &Path, dialects: Dialects) -> Result<(), Error> {
    let lock = own(folder)?;
    let options = Options { accept_older: true, ..options(Durability::default(), dialects) };
    Store::open(folder, options)?.close()?;
    drop(lock);
    Ok(())
}

/// Resets the limits that runs share, so that Windlass can execute runs again.
pub fn renew_limits(folder: &Path, dialects: Dialects) -> Result<(), Error> {
    let lock = own(folder)?;
    let store = Store::open(folder, options(Durability::default(), dialects))?;
    crate::coordinator::renew(&store)?;
    store.close()?;
    drop(lock);
    Ok(())
}

/// Rebuilds the lists of runs of a folder without an owner.
pub fn rebuild(folder: &Path, dialects: Dialects) -> Result<(), Error> {
    let lock = own(folder)?;
    let store = Store::open(folder, options(Durability::default(), dialects))?;
    store.view.rebuild().wait()?;
    store.close()?;
    drop(lock);
    Ok(())
}

fn own(folder: &Path) -> Result<Lock, Error> {
    if !folder.join("journal.db").exists() {
        return Err(StoreError::Missing { folder: folder.display().to_string() }.into());
    }
    Lock::take(folder)
}

impl Engine {
    /// Rebuilds the lists of runs. Runs in progress wait for it.
    pub async fn rebuild_view(&self) -> Result<(), Error> {
        Ok(self.store().view.rebuild().await?)
    }
}
