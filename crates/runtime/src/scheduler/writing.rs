//! The way to the journal: batches that were handed over, in order, and what becomes of them.

use super::{Message, Scheduler};
use crate::clock::now;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use windlass_engine::{After, Body, Failure, Record, RunId, Wake, class};
use windlass_store::{Append, Appended, Error, Lsn, Pending, Prev, Ticket};

/// How long the first attempt after a failed write waits, and the longest such wait.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// A batch on its way.
struct Batch {
    from: u64,
    through: u64,
    pending: Pending<Vec<Appended>>,
}

#[derive(Default)]
pub(super) struct Writing {
    batches: VecDeque<Batch>,
    /// The last record of each stream that this process has handed over.
    last: HashMap<Option<RunId>, (u64, Ticket)>,
    /// Records that are not durable yet, in the order of their numbers.
    underway: VecDeque<(u64, Ticket)>,
    handed_over: u64,
    pause: Option<Duration>,
}

/// A batch that was answered.
pub(super) struct Answered {
    from: u64,
    through: u64,
    result: Result<Vec<Appended>, Error>,
}

impl Writing {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// What became of the oldest batch.
    pub async fn next(&mut self) -> Answered {
        let Some(batch) = self.batches.front_mut() else { return std::future::pending().await };
        let result = (&mut batch.pending).await;
        let (from, through) = (batch.from, batch.through);
        self.batches.pop_front();
        self.forget_through(through);
        Answered { from, through, result }
    }

    fn forget_through(&mut self, number: u64) {
        while self.underway.pop_front_if(|(oldest, _)| *oldest <= number).is_some() {}
    }

    pub fn forget(&mut self, run: &RunId) {
        self.last.remove(&Some(run.clone()));
    }

    /// A record in the words of the store.
    fn append(&mut self, record: Record) -> Result<Append, Error> {
        let prev = match record.after {
            After::Stored(lsn) => Prev::At(lsn.map(Lsn)),
            After::Record(number) => match self.last.get(&record.run) {
                Some((last, ticket)) if *last == number => Prev::After(ticket.clone()),
                // Nothing fits a ticket that was never used, so that this is not written.
                Some(_) | None => Prev::After(Ticket::default()),
            },
        };
        let append = match (&record.run, &record.body) {
            (Some(run), Body::Run(events)) => Append::sharing(run.clone(), prev, events.clone())?,
            (_, Body::Coordinator(events)) => Append::coordinator(prev, events)?,
            (None, Body::Run(_)) => return Err(Error::Stopped),
        };
        let needed = record.needs.and_then(|number| {
            let at = self.underway.binary_search_by_key(&number, |(underway, _)| *underway).ok()?;
            Some(self.underway[at].1.clone())
        });
        let append = append.needing(needed).resting(wake(record.wake));
        self.last.insert(record.run, (record.number, append.ticket().clone()));
        self.underway.push_back((record.number, append.ticket().clone()));
        Ok(append)
    }
}

fn wake(wake: Wake) -> windlass_store::Wake {
    match wake {
        Wake::Owes => windlass_store::Wake::Owes,
        Wake::At(due) => windlass_store::Wake::At(due),
        Wake::Never => windlass_store::Wake::Never,
    }
}

impl Scheduler {
    /// Hands over everything that was decided since the last time, as one batch.
    pub(super) fn hand_over(&mut self) {
        let records = self.runs.take_records();
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return };
        let (from, through) = (first.number, last.number);
        let Some(engine) = self.engine() else { return };
        let mut appends = Vec::with_capacity(records.len());
        for record in records {
            let number = record.number;
            match self.writing.append(record) {
                Ok(append) => appends.push(append),
                Err(error) => return self.cannot_store(from, through, number, &error),
            }
        }
        let pending = engine.store().journal.append_all(appends);
        self.writing.handed_over = through;
        self.writing.batches.push_back(Batch { from, through, pending });
    }

    /// One record of a batch is larger than the journal takes. The attempt that it reports fails; the rest is written.
    fn cannot_store(&mut self, from: u64, through: u64, number: u64, error: &Error) {
        let failure = Failure::new(class::ERROR, error.to_string());
        let handed_over = self.writing.handed_over;
        self.runs.unstorable(from, through, number, &failure, handed_over, now());
        self.carry_out();
    }

    pub(super) fn written(&mut self, answered: Answered) {
        let Answered { from, through, result } = answered;
        match result {
            Ok(appended) if appended.iter().all(|one| matches!(one, Appended::At(_))) => {
                self.writing.pause = None;
                self.runs.written(through, now());
            }
            Err(error) if error.is_fatal() => return self.fail(&error),
            result => {
                if let Err(error) = result {
                    let notice = format!("cannot write the journal, trying again: {error}");
                    self.watched.values().for_each(|watched| watched.notice(&notice));
                }
                self.runs.failed(from, through, self.writing.handed_over, now());
            }
        }
        self.carry_out();
    }

    /// Reads the coordinator again, after a pause that grows while the disk does not recover.
    pub(super) fn load_coordinator(&mut self) {
        let pause = self.writing.pause.map_or(RETRY_FIRST, |pause| (pause * 2).min(RETRY_MAX));
        self.writing.pause = Some(pause);
        let (Some(engine), Some(sender)) = (self.engine(), self.sender.upgrade()) else { return };
        tokio::spawn(async move {
            let mut pause = pause;
            loop {
                tokio::time::sleep(pause).await;
                let reader = engine.clone();
                let read =
                    tokio::task::spawn_blocking(move || crate::coordinator::read(reader.store())).await;
                match read.unwrap_or(Err(Error::Stopped)) {
                    Ok(found) => return drop(sender.send(Message::Coordinator(Box::new(found)))),
                    Err(error) if error.is_fatal() => return drop(sender.send(Message::Fatal(error))),
                    Err(_) => pause = (pause * 2).min(RETRY_MAX),
                }
            }
        });
    }
}
