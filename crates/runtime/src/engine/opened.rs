//! A run that is ready to be driven, and what happens around its driver.

use super::{Engine, Handle, lock};
use crate::clock::Clock;
use crate::drive::{Driver, Fatal, Live, Mail, Patience, Replayed, channels};
use crate::follow::{Followers, Updates};
use crate::host::Host;
use crate::rates::Rates;
use crate::report::Standing;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use windlass_engine::RunId;
use windlass_store::Prev;

/// A driver, and those who follow it.
pub(super) struct Opened {
    pub(super) driver: Driver,
    following: Updates,
    followers: Followers,
    sender: mpsc::UnboundedSender<Mail>,
    live: Live,
    ended: Arc<Notify>,
    broken: watch::Sender<Option<windlass_store::Error>>,
}

impl Opened {
    pub(super) fn go(mut self) -> Handle {
        self.driver.insists = true;
        let id = self.driver.run.id().clone();
        lock(&self.live).insert(id.clone(), (self.sender.clone(), self.followers.clone()));
        let leaving =
            Leaving { run: id.clone(), live: self.live, followers: self.followers, ended: self.ended };
        let (desk, caller) = (self.driver.desk.clone(), self.driver.run.parents().last().cloned());
        let run = id.clone();
        let done = tokio::spawn(async move {
            let leaving = leaving;
            let standing = self.driver.drive().await;
            drop(leaving);
            if let Err(Fatal(error)) = &standing
                && error.is_fatal()
            {
                self.broken.send_replace(Some(error.clone()));
            }
            let ended = matches!(standing, Ok(Standing::Success | Standing::Failed | Standing::Cancelled));
            if let Some(caller) = caller.filter(|_| ended) {
                desk.stir(&caller, &run);
            }
            standing
        });
        Handle { id, updates: self.following, done, mail: self.sender }
    }
}

impl Engine {
    pub(super) fn driver(
        &self,
        replayed: Replayed,
        mut host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Opened {
        let Replayed { run, view, tail, last_at, decided } = replayed;
        if let Some(children) = &self.children {
            host.note_children(children);
        }
        let (sender, mail) = mpsc::unbounded_channel();
        let followers = Followers::default();
        let following = followers.add();
        let log = self.logs().map(|logs| logs.writer(run.id(), tail.is_none()));
        let (output, printing, notes) = channels(&followers, &sender, log);
        let driver = Driver {
            run,
            view,
            tail: Prev::At(tail),
            store: self.store.clone(),
            desk: self.desk().clone(),
            ended: self.ended.clone(),
            host,
            clock: clock.steady().not_before(last_at),
            patience,
            mail,
            followers: followers.clone(),
            work: JoinSet::new(),
            jobs: HashMap::new(),
            overdue: HashMap::new(),
            keys: HashMap::new(),
            calls: HashMap::new(),
            output,
            printing: Some(printing),
            notes,
            agenda: BTreeMap::new(),
            planned: 0,
            decided,
            rates: Rates::default(),
            hooks: Vec::new(),
            due_at: None,
            only_record: false,
            insists: false,
        };
        Opened {
            driver,
            following,
            followers,
            sender,
            live: self.live.clone(),
            ended: self.ended.clone(),
            broken: self.broken.clone(),
        }
    }
}

/// Takes a run out of those that are driven, however its driver ends.
struct Leaving {
    run: RunId,
    live: Live,
    followers: Followers,
    ended: Arc<Notify>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        lock(&self.live).remove(&self.run);
        self.ended.notify_waiters();
        self.followers.dismiss();
    }
}
