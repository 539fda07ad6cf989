//! Writes batches of records to the journal in order, and handles failures.

use super::{Message, Scheduler};
use crate::clock::now;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use windlass_engine::{After, Body, Failure, Record, RunId, Wake, class};
use windlass_store::{Append, Appended, Entry, Error, Lsn, Pending, Prev, Ticket};

/// The first and the longest pause after a failed write.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// A batch that the journal has not confirmed.
struct Batch {
    from: u64,
    through: u64,
    pending: Pending<Vec<Appended>>,
}

/// Changes of the ledger that belong to a reply.
pub(super) struct Note {
    pub entries: Vec<Entry>,
    /// A record that is being written has them.
    pub is_attached: bool,
}

#[derive(Default)]
pub(super) struct Writing {
    batches: VecDeque<Batch>,
    /// The last record of each stream that this process has sent to the journal.
    last: HashMap<Option<RunId>, (u64, Ticket)>,
    /// Records that are not durable yet, ordered by number.
    underway: VecDeque<(u64, Ticket)>,
    handed_over: u64,
    pause: Option<Duration>,
}

/// The result of writing a batch.
pub(super) struct Answered {
    from: u64,
    through: u64,
    result: Result<Vec<Appended>, Error>,
}

impl Writing {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Waits for the result of the oldest batch.
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

    /// Converts a record for the store.
    fn append(&mut self, record: Record) -> Result<Append, Error> {
        let prev = match record.after {
            After::Stored(lsn) => Prev::At(lsn.map(Lsn)),
            After::Record(number) => match self.last.get(&record.run) {
                Some((last, ticket)) if *last == number => Prev::After(ticket.clone()),
                // A new ticket matches no record, so the journal rejects this one.
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
    /// Sends all new decisions to the journal as one batch.
    pub(super) fn hand_over(&mut self) {
        let records = self.runs.take_records();
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return };
        let (from, through) = (first.number, last.number);
        let Some(engine) = self.engine() else { return };
        let mut notes = self.attach_notes(from);
        let mut appends = Vec::with_capacity(records.len());
        for record in records {
            let number = record.number;
            match self.writing.append(record) {
                Ok(append) => appends.push(match notes.remove(&number) {
                    Some(entries) => append.noting(entries),
                    None => append,
                }),
                Err(error) => return self.cannot_store(from, through, number, &error),
            }
        }
        let pending = engine.store().journal.append_all(appends);
        self.writing.handed_over = through;
        self.writing.batches.push_back(Batch { from, through, pending });
    }

    /// The changes of the ledger for each record from a number on.
    fn attach_notes(&mut self, first: u64) -> HashMap<u64, Vec<Entry>> {
        let mut notes: HashMap<u64, Vec<Entry>> = HashMap::new();
        if self.notes.is_empty() {
            return notes;
        }
        for (number, to) in self.runs.answered_from(first) {
            if let Some(note) = self.notes.get_mut(&to) {
                note.is_attached = true;
                notes.entry(number).or_default().extend(note.entries.iter().cloned());
            }
        }
        notes
    }

    /// Handles a record that is too large for the journal: the attempt that it reports fails, and the rest is written.
    fn cannot_store(&mut self, from: u64, through: u64, number: u64, error: &Error) {
        let failure = Failure::new(class::ERROR, error.to_string());
        self.notes.values_mut().for_each(|note| note.is_attached = false);
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
                    let notice = format!("cannot write the journal, retrying: {error}");
                    self.watched.values().for_each(|watched| watched.notice(&notice));
                }
                // What is decided again is written with its notes again.
                self.notes.values_mut().for_each(|note| note.is_attached = false);
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
                    // Neither a broken disk nor a damaged stream recovers.
                    Err(error) if error.is_fatal() || error.is_of_one_run() => {
                        return drop(sender.send(Message::Fatal(error)));
                    }
                    Err(_) => pause = (pause * 2).min(RETRY_MAX),
                }
            }
        });
    }
}
