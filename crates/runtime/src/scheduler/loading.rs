//! Reads runs in batches, off the scheduler's task and off tokio's workers.

use super::{Hosted, Message, Scheduler};
use crate::engine::{Engine, Error};
use crate::history::{History, about};
use crate::host::Host;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_engine::{Execution, Found, Loaded, Now, Run, RunId};

/// The number of runs that one task reads.
const CHUNK: usize = 64;

/// The result of reading a run.
pub(crate) struct Reading {
    found: Found,
    /// The host of its jobs; `None` if this process only records inputs for the run.
    host: Option<Arc<Host>>,
    error: Option<Error>,
    /// The number of earlier mocked decisions of each gate.
    decided: HashMap<String, usize>,
}

impl Scheduler {
    /// Reads the requested runs.
    pub(super) fn load(&mut self) {
        let Some(engine) = self.engine().filter(|_| !self.loads.is_empty()) else { return };
        let hosted = |(run, execute): (RunId, bool)| {
            let host = self.hosts.get(&run).map(|hosted| hosted.host.clone());
            (run, execute, host)
        };
        let mut loads = self.loads.drain(..).map(hosted).peekable();
        while loads.peek().is_some() {
            let chunk: Vec<_> = loads.by_ref().take(CHUNK).collect();
            let (engine, sender) = (engine.clone(), self.sender.clone());
            tokio::spawn(async move {
                let Ok(_turn) = engine.reading.acquire().await else { return };
                let reader = engine.clone();
                let read = move || {
                    let read = |(run, execute, host): (RunId, bool, Option<Arc<Host>>)| {
                        let reading = reader.read_run(&run, execute, host);
                        (run, reading)
                    };
                    chunk.into_iter().map(read).collect()
                };
                if let (Ok(read), Some(sender)) = (tokio::task::spawn_blocking(read).await, sender.upgrade())
                {
                    // A stopped scheduler needs none of them.
                    let _ = sender.send(Message::Loaded(read));
                }
            });
        }
    }

    pub(super) fn loaded(&mut self, run: &RunId, reading: Reading, now: Now) {
        let Reading { found, host, error, decided } = reading;
        if let Some(host) = host {
            self.engine().into_iter().for_each(|engine| engine.note_executed(run));
            match self.hosts.get_mut(run) {
                Some(hosted) if hosted.player.is_some() => hosted.host = host,
                Some(_) | None => drop(self.hosts.insert(run.clone(), Hosted::new(host, self.dialects))),
            }
        }
        if let Some(error) = error.filter(|_| self.recovery.waiting.contains(run)) {
            self.recovery.parked.push((run.clone(), error));
        }
        self.runs.loaded(run, found, now);
        self.recovery.waiting.remove(run);
        self.resume_mock_client(run, decided, now);
        self.tell_recovered();
    }
}

impl Engine {
    /// Reads and replays a run. Before execution, ends the processes that an earlier owner left running. Blocks.
    fn read_run(&self, run: &RunId, execute: bool, host: Option<Arc<Host>>) -> Reading {
        match self.try_read_run(run, execute, host) {
            Ok(reading) => reading,
            Err(Error::NoRun(_)) => {
                Reading { found: Found::Nothing, host: None, error: None, decided: HashMap::new() }
            }
            Err(error) => {
                Reading { found: Found::Unusable, host: None, error: Some(error), decided: HashMap::new() }
            }
        }
    }

    fn try_read_run(&self, run: &RunId, execute: bool, host: Option<Arc<Host>>) -> Result<Reading, Error> {
        let history = self.history(run)?;
        let program = self.program_of(run, &history)?;
        let about = about(&history.events);
        let hosted = || match host {
            Some(host) => Some(Arc::unwrap_or_clone(host)),
            None => self.default_host_for(about),
        };
        let host = if execute { hosted() } else { None };
        let host = host.map(|host| self.equip(host.where_started(about)));
        if host.is_some() {
            self.end_orphans(run)?;
        }
        let History { events, tail } = &history;
        let replayed = Run::replay(run.clone(), program, events).map_err(|contradiction| {
            windlass_store::Error::Contradictory { run: run.clone(), contradiction: Box::new(contradiction) }
        })?;
        let execution = host.clone().map(|host| self.execution(host));
        let mocked = host.as_ref().is_some_and(|host| host.script.is_some());
        let decided =
            if mocked { crate::mock::decided(self.dialects(), &replayed, events) } else { HashMap::new() };
        let loaded = Loaded {
            last_at: replayed.last_at(),
            run: replayed,
            tail: tail.map_or(0, |lsn| lsn.0),
            events: events.len() as u64,
            execution,
        };
        Ok(Reading { found: Found::Run(Box::new(loaded)), host, error: None, decided })
    }

    /// How this process executes a run with this host.
    pub(crate) fn execution(&self, host: Arc<Host>) -> Execution {
        let (virtual_from, patient) = (host.virtual_from, host.patient);
        Execution { policy: Arc::new(self.policy(host)), virtual_from, patient }
    }
}
