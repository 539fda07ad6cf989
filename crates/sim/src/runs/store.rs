//! A journal that is durable by prefix. It writes batches in order or fails, and confirms them later, in order. A
//! crash loses any number of unconfirmed batches.

use crate::Random;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use windlass_engine::{
    After, Body, Coordinator, CoordinatorEvent, Event, Left, Outcome, Record, RunId, Timestamp, Wake, What,
};

#[derive(Debug, Default)]
pub struct Store {
    streams: BTreeMap<RunId, Vec<Stored>>,
    coordinator: Vec<(u64, Vec<CoordinatorEvent>)>,
    /// The number of the last record.
    last: u64,
    /// The number of the last confirmed record.
    durable: u64,
    /// Rows are up to date with this record.
    rows: u64,
    /// The journal numbers of the records of this process.
    written: HashMap<u64, u64>,
    failed: HashSet<u64>,
    queue: VecDeque<Vec<Record>>,
    answers: VecDeque<Answer>,
    handed_over: u64,
    /// This many batches fail.
    pub failing: u32,
}

#[derive(Debug)]
struct Stored {
    number: u64,
    events: Arc<Vec<Event>>,
    wake: Wake,
}

/// The result of a batch.
#[derive(Debug)]
pub struct Answer {
    pub from: u64,
    pub through: u64,
    pub written: bool,
    /// The last record of the journal after it.
    last: u64,
    /// The runs with records in it.
    pub runs: Vec<RunId>,
}

impl Store {
    pub fn hand_over(&mut self, batch: Vec<Record>) {
        if let Some(record) = batch.last() {
            self.handed_over = record.number;
            self.queue.push_back(batch);
        }
    }

    pub fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Whether nothing is pending.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.answers.is_empty()
    }

    /// Writes the next batch, or fails to.
    pub fn write(&mut self) {
        let Some(batch) = self.queue.pop_front() else { return };
        let (from, through) = (batch[0].number, batch[batch.len() - 1].number);
        let fails = self.failing > 0;
        self.failing = self.failing.saturating_sub(1);
        let fits = self.fits(&batch);
        assert!(
            fits || self.rests_on_a_failure(&batch),
            "the batch {from}..={through} does not fit the journal, although everything it depends on was written: {:?}",
            batch
                .iter()
                .map(|record| (record.number, &record.run, record.after, record.needs))
                .collect::<Vec<_>>()
        );
        let mut runs: Vec<RunId> = batch.iter().filter_map(|record| record.run.clone()).collect();
        runs.dedup();
        let written = fits && !fails;
        match written {
            true => batch.into_iter().for_each(|record| self.append(record)),
            false => self.failed.extend(from..=through),
        }
        self.answers.push_back(Answer { from, through, written, last: self.last, runs });
    }

    fn fits(&self, batch: &[Record]) -> bool {
        let mut tails: HashMap<Option<&RunId>, u64> = HashMap::new();
        batch.iter().all(|record| {
            let fits = match (record.after, tails.get(&record.run.as_ref())) {
                (After::Record(before), Some(tail)) => before == *tail,
                (After::Record(before), None) => self
                    .written
                    .get(&before)
                    .is_some_and(|before| Some(*before) == self.tail(record.run.as_ref())),
                (After::Stored(_), Some(_)) => false,
                (After::Stored(before), None) => before == self.tail(record.run.as_ref()),
            };
            let needs = record.needs.is_none_or(|needs| {
                self.written.contains_key(&needs) || (batch[0].number..record.number).contains(&needs)
            });
            tails.insert(record.run.as_ref(), record.number);
            fits && needs
        })
    }

    fn rests_on_a_failure(&self, batch: &[Record]) -> bool {
        let failed = |number: &u64| self.failed.contains(number);
        batch.iter().any(|record| {
            record.needs.as_ref().is_some_and(failed)
                || matches!(&record.after, After::Record(before) if failed(before))
        })
    }

    fn append(&mut self, record: Record) {
        self.last += 1;
        self.written.insert(record.number, self.last);
        match (record.run, record.body) {
            (Some(run), Body::Run(events)) => {
                let stored = Stored { number: self.last, events, wake: record.wake };
                self.streams.entry(run).or_default().push(stored);
            }
            (None, Body::Coordinator(events)) => self.coordinator.push((self.last, events)),
            (run, body) => panic!("a record of {run:?} holds {body:?}"),
        }
    }

    pub fn answer(&mut self) -> Option<Answer> {
        let answer = self.answers.pop_front()?;
        if answer.written {
            self.durable = answer.last;
        }
        Some(answer)
    }

    /// The number of the last record of a stream.
    pub fn tail(&self, run: Option<&RunId>) -> Option<u64> {
        match run {
            Some(run) => self.streams.get(run)?.last().map(|stored| stored.number),
            None => self.coordinator.last().map(|(number, _)| *number),
        }
    }

    /// Every event of a run that is certainly durable.
    pub fn events(&self, run: &RunId) -> impl Iterator<Item = &Event> {
        let stored = self.streams.get(run).into_iter().flatten();
        stored.take_while(|stored| stored.number <= self.durable).flat_map(|stored| stored.events.iter())
    }

    pub fn coordinator(&self) -> impl Iterator<Item = &CoordinatorEvent> {
        let durable = self.coordinator.iter().take_while(|(number, _)| *number <= self.durable);
        durable.flat_map(|(_, events)| events)
    }

    pub fn coordinator_state(&self) -> (Coordinator, Option<u64>, usize) {
        let coordinator = Coordinator::replay(self.coordinator()).expect("a journal without contradictions");
        (coordinator, self.tail(None), self.coordinator().count())
    }

    pub fn runs(&self) -> Vec<RunId> {
        self.streams.keys().cloned().collect()
    }

    pub fn has(&self, run: &RunId) -> bool {
        self.events(run).next().is_some()
    }

    /// Whether records of a run are pending.
    pub fn is_writing(&self, run: &RunId) -> bool {
        let queued = self.queue.iter().flatten().any(|record| record.run.as_ref() == Some(run));
        queued || self.answers.iter().any(|answer| answer.runs.contains(run))
    }

    pub fn remove(&mut self, run: &RunId) {
        self.streams.remove(run);
    }

    /// The process dies. Returns the number of lost records.
    pub fn crash(&mut self, random: &mut Random) -> u64 {
        while !self.queue.is_empty() && random.chance(50) {
            self.write();
        }
        let ends = self.answers.iter().filter(|answer| answer.written).map(|answer| answer.last);
        let ends: Vec<u64> = std::iter::once(self.durable).chain(ends).collect();
        let cut = *random.pick(&ends);
        let lost = self.last - cut + self.queue.iter().map(|batch| batch.len() as u64).sum::<u64>();
        for stream in self.streams.values_mut() {
            while stream.pop_if(|stored| stored.number > cut).is_some() {}
        }
        self.streams.retain(|_, stream| !stream.is_empty());
        while self.coordinator.pop_if(|(number, _)| *number > cut).is_some() {}
        // Rows are written in separate transactions, at any time.
        let rows = self.rows + random.below((cut.saturating_sub(self.rows) + 1) as usize) as u64;
        (self.last, self.durable, self.rows) = (cut, cut, rows);
        self.written.clear();
        self.failed.clear();
        self.queue.clear();
        self.answers.clear();
        (self.handed_over, self.failing) = (0, 0);
        lost
    }

    /// A run as a new process finds it.
    pub fn left(&self, run: &RunId) -> Left {
        let stream = self.streams.get(run).map_or(&[][..], Vec::as_slice);
        let row = stream.iter().rev().find(|stored| stored.number <= self.rows);
        let is_current = stream.last().is_some_and(|stored| stored.number <= self.rows);
        let wake = row.filter(|_| is_current).map(|stored| stored.wake);
        let (mut ended, mut closed) = (false, false);
        for event in stream.iter().flat_map(|stored| stored.events.iter()) {
            match &event.what {
                What::Concluded { .. } => ended = true,
                What::Reopened { .. } => ended = false,
                What::Closed => closed = true,
                _ => {}
            }
        }
        let last_at = row.and_then(|stored| stored.events.last()).map_or(Timestamp(0), |event| event.at);
        Left { ended, closed, wake, last_at }
    }

    /// The result of a run and the time of its end.
    pub fn result(&self, run: &RunId) -> Option<(Outcome, Timestamp)> {
        let mut result = None;
        for event in self.events(run) {
            match &event.what {
                What::Concluded { outcome, .. } => result = Some((outcome.clone(), event.at)),
                What::Reopened { .. } => result = None,
                _ => {}
            }
        }
        result
    }
}
