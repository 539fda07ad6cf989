//! Follows a run: its events from any point on, and the output of its jobs.
//!
//! A follower that keeps up receives events when they are durable. One that starts late or falls behind reads the journal until
//! it has caught up. So each follower receives every event once, and few events are in memory. Output is not in the journal:
//! a slow follower briefly throttles the jobs; then Windlass drops lines for that follower and tells it so.

use crate::engine::Engine;
use crate::tape::Tape;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use windlass_engine::{Event, RunId};
use windlass_executors::Line;

/// Events in memory for one follower. If there are more, it reads the journal.
const EVENTS_MAX: usize = 1024;

/// Output in memory for one follower.
const BYTES_MAX: usize = 1024 * 1024;

/// The memory overhead of a line.
const LINE_BYTES: usize = 256;

/// A follower that takes nothing for this long stops throttling jobs until it has caught up.
const PATIENCE: Duration = Duration::from_secs(1);

/// What followers of a run receive.
#[derive(Clone, Debug)]
pub enum Update {
    /// A durable event.
    Event { seq: u64, event: Event },
    /// Output of a job, which is never an event.
    Line(Line),
    /// Information for people that does not affect the run.
    Notice(String),
}

/// The first event that a follower wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The next one.
    Now,
    /// The one after this number. 0 means from the beginning.
    Event(u64),
}

/// The followers of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followers(Arc<Mutex<Vec<Follower>>>);

impl Followers {
    pub fn add(&self, follower: Follower) {
        self.list().push(follower);
    }

    /// Removes a follower, which still receives what is in memory.
    pub fn remove(&self, follower: &Follower) {
        follower.end();
        self.list().retain(|other| !Arc::ptr_eq(&other.feed, &follower.feed));
    }

    pub fn tell(&self, update: &Update) {
        self.list().retain(|follower| follower.tell(update.clone()));
    }

    /// Passes on durable events, the first with the number `seq`.
    pub fn happened(&self, seq: u64, events: &[Event]) {
        self.list().retain(|follower| follower.happened(seq, events));
    }

    /// Waits until every follower has room for output or is too slow to wait for.
    pub async fn room(&self) {
        let all = self.list().clone();
        for follower in all {
            follower.room().await;
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Follower>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending end of a feed.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    feed: Arc<Feed>,
}

/// The queue between a run and one follower.
#[derive(Debug, Default)]
struct Feed {
    held: Mutex<Held>,
    /// Signals a new update, or the end.
    added: Notify,
    taken: Notify,
}

#[derive(Debug, Default)]
struct Held {
    updates: VecDeque<Update>,
    events: usize,
    /// Bytes of lines.
    bytes: usize,
    /// The number of the next event for `updates`; `None` before the first event.
    next: Option<u64>,
    /// Events up to this one happened before the follower joined.
    before: u64,
    /// The number of the last event.
    last: u64,
    /// The follower must read the journal.
    is_behind: bool,
    /// The follower no longer throttles jobs, and misses lines.
    is_slow: bool,
    dropped: u64,
    /// No more updates follow.
    is_over: bool,
    /// The follower no longer reads.
    is_gone: bool,
}

impl Feed {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiving end of a feed.
#[derive(Debug, Default)]
pub struct Updates(Source);

#[derive(Debug, Default)]
enum Source {
    /// Never has updates.
    #[default]
    None,
    /// A run of this process.
    Run(Box<Reader>),
    /// Another process. The bounded channel throttles reading from it.
    Elsewhere(mpsc::Receiver<Update>),
}

/// Reads the feed of a run of this process, and the journal when the feed has fallen behind.
#[derive(Debug)]
struct Reader {
    feed: Arc<Feed>,
    engine: Arc<Engine>,
    tape: Tape,
    /// Events from the journal, and the number of the first.
    page: VecDeque<Event>,
    seq: u64,
    /// Skip events up to this one.
    after: u64,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.feed.held().is_gone = true;
        self.feed.taken.notify_one();
    }
}

/// Creates a feed.
pub(crate) fn feed(engine: Arc<Engine>, run: &RunId, since: Since) -> (Follower, Updates) {
    let feed = Arc::new(Feed::default());
    let after = match since {
        Since::Now => 0,
        Since::Event(after) => {
            let mut held = feed.held();
            (held.is_behind, held.next) = (true, Some(1));
            after
        }
    };
    let tape = Tape::new(run.clone());
    let reader = Reader { feed: feed.clone(), engine, tape, page: VecDeque::new(), seq: 1, after };
    (Follower { feed }, Updates(Source::Run(Box::new(reader))))
}

impl Follower {
    /// Ends the feed. The follower still receives what is in memory or in the journal.
    pub fn end(&self) {
        let mut held = self.feed.held();
        held.note_dropped();
        held.is_over = true;
        drop(held);
        self.feed.added.notify_one();
    }

    /// Adds an update. Returns whether the follower still reads.
    fn tell(&self, update: Update) -> bool {
        let mut held = self.feed.held();
        match update {
            Update::Line(line) => held.print(line),
            Update::Notice(_) => held.updates.push_back(update),
            Update::Event { seq, event } => held.happened(seq, std::slice::from_ref(&event)),
        }
        self.added(&held)
    }

    /// Adds events. Returns whether the follower still reads.
    fn happened(&self, seq: u64, events: &[Event]) -> bool {
        let mut held = self.feed.held();
        held.happened(seq, events);
        self.added(&held)
    }

    fn added(&self, held: &Held) -> bool {
        self.feed.added.notify_one();
        !held.is_gone
    }

    async fn room(&self) {
        loop {
            let taken = self.feed.taken.notified();
            {
                let held = self.feed.held();
                if held.bytes < BYTES_MAX || held.is_slow || held.is_gone {
                    return;
                }
            }
            if tokio::time::timeout(PATIENCE, taken).await.is_err() {
                self.feed.held().is_slow = true;
            }
        }
    }
}

impl Held {
    fn happened(&mut self, seq: u64, events: &[Event]) {
        let Some(last) = (seq + events.len() as u64).checked_sub(1).filter(|last| *last >= seq) else {
            return;
        };
        let next = *self.next.get_or_insert_with(|| {
            self.before = seq - 1;
            seq
        });
        self.last = self.last.max(last);
        if self.is_behind || self.last < next {
            return;
        }
        if seq > next || self.events + events.len() > EVENTS_MAX {
            self.is_behind = true;
            return;
        }
        for (seq, event) in (seq..).zip(events).skip_while(|(seq, _)| *seq < next) {
            self.updates.push_back(Update::Event { seq, event: event.clone() });
            self.events += 1;
        }
        self.next = Some(self.last + 1);
    }

    fn print(&mut self, line: Line) {
        if self.is_slow && self.bytes <= BYTES_MAX / 2 {
            self.note_dropped();
        }
        if self.is_slow || self.bytes >= 2 * BYTES_MAX {
            self.is_slow = true;
            self.dropped += 1;
            return;
        }
        self.bytes += size(&line);
        self.updates.push_back(Update::Line(line));
    }

    fn note_dropped(&mut self) {
        self.is_slow = false;
        let count = std::mem::take(&mut self.dropped);
        if count > 0 {
            let lines = if count == 1 { "line" } else { "lines" };
            let notice =
                format!("{count} {lines} of output dropped here because this client reads too slowly");
            self.updates.push_back(Update::Notice(notice));
        }
    }

    fn take(&mut self) -> Option<Update> {
        let update = self.updates.pop_front()?;
        match &update {
            Update::Line(line) => self.bytes -= size(line),
            Update::Event { .. } => self.events -= 1,
            Update::Notice(_) => {}
        }
        Some(update)
    }
}

impl Updates {
    /// Updates from another process.
    pub fn elsewhere(updates: mpsc::Receiver<Update>) -> Self {
        Self(Source::Elsewhere(updates))
    }

    /// The next update; `None` at the end.
    pub async fn recv(&mut self) -> Option<Update> {
        match &mut self.0 {
            Source::None => None,
            Source::Run(reader) => reader.recv().await,
            Source::Elsewhere(updates) => updates.recv().await,
        }
    }

    /// Waits for the next update, then adds all that are ready, at most `count_max`. Returns how many it added; 0 at the end.
    pub async fn recv_many(&mut self, updates: &mut Vec<Update>, count_max: usize) -> usize {
        let before = updates.len();
        match self.recv().await {
            None => return 0,
            Some(first) => updates.push(first),
        }
        while updates.len() - before < count_max
            && let Some(more) = self.try_recv()
        {
            updates.push(more);
        }
        updates.len() - before
    }

    /// The next update, if it is ready.
    pub fn try_recv(&mut self) -> Option<Update> {
        match &mut self.0 {
            Source::None => None,
            Source::Run(reader) => reader.ready(),
            Source::Elsewhere(updates) => updates.try_recv().ok(),
        }
    }
}

/// What a follower does when no update is ready.
enum Next {
    Read,
    Wait,
    End,
}

impl Reader {
    async fn recv(&mut self) -> Option<Update> {
        loop {
            if let Some(update) = self.ready() {
                return Some(update);
            }
            let feed = self.feed.clone();
            let added = feed.added.notified();
            let next = {
                let held = feed.held();
                match () {
                    () if !held.updates.is_empty() => continue,
                    () if held.is_behind => Next::Read,
                    () if held.is_over => Next::End,
                    () => Next::Wait,
                }
            };
            match next {
                Next::Read => {
                    if let Err(error) = self.read().await {
                        // Reading the run reports the error in full.
                        let mut held = feed.held();
                        (held.is_behind, held.is_over) = (false, true);
                        return Some(Update::Notice(format!("cannot read the journal: {error}")));
                    }
                }
                Next::Wait => added.await,
                Next::End => return None,
            }
        }
    }

    fn ready(&mut self) -> Option<Update> {
        while let Some(event) = self.page.pop_front() {
            let seq = self.seq;
            self.seq += 1;
            if seq > self.after {
                self.after = seq;
                return Some(Update::Event { seq, event });
            }
        }
        loop {
            let update = self.feed.held().take()?;
            self.feed.taken.notify_one();
            match update {
                // The follower already has it from the journal.
                Update::Event { seq, .. } if seq <= self.after => {}
                Update::Event { seq, event } => {
                    self.after = seq;
                    return Some(Update::Event { seq, event });
                }
                update => return Some(update),
            }
        }
    }

    /// Reads the next page of the journal. At the end of the journal the follower has caught up, unless new events have come.
    async fn read(&mut self) -> Result<(), windlass_store::Error> {
        let first = self.tape.seq + 1;
        let events = self.tape.page(self.engine.store()).await?;
        let reached = self.tape.seq;
        let mut held = self.feed.held();
        self.after = self.after.max(held.before);
        if events.is_empty() && held.last <= reached {
            (held.is_behind, held.next) = (false, Some(reached + 1));
        }
        drop(held);
        (self.page, self.seq) = (events.into(), first);
        Ok(())
    }
}

fn size(line: &Line) -> usize {
    line.bytes.len() + LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{JobKey, Path, Timestamp, What};
    use windlass_executors::Stream;
    use windlass_store::Append;

    fn run() -> RunId {
        RunId::new("r").expect("a good id")
    }

    fn line(bytes: usize) -> Update {
        let job = JobKey { run: run(), path: Path::default(), attempt: 1, delivery: 1 };
        Update::Line(Line { job, stream: Stream::Stdout, bytes: vec![b'x'; bytes] })
    }

    fn events(count: usize) -> Vec<Event> {
        vec![Event { at: Timestamp(0), what: What::Interrupted }; count]
    }

    /// A run with followers.
    struct TestRun {
        engine: Arc<Engine>,
        followers: Followers,
        tail: Option<windlass_store::Lsn>,
        seq: u64,
    }

    impl TestRun {
        fn new() -> Self {
            Self {
                engine: Engine::in_memory(crate::plain::PLAIN),
                followers: Followers::default(),
                tail: None,
                seq: 0,
            }
        }

        fn follow(&self, since: Since) -> (Follower, Updates) {
            let (follower, updates) = feed(self.engine.clone(), &run(), since);
            self.followers.add(follower.clone());
            (follower, updates)
        }

        /// Appends one record with this many events.
        async fn happens(&mut self, count: usize) {
            let events = events(count);
            let append = Append::new(run(), self.tail, &events).expect("small");
            match self.engine.store().journal.append(append).await.expect("appending to memory succeeds") {
                windlass_store::Appended::At(lsn) => self.tail = Some(lsn),
                windlass_store::Appended::Conflict { .. } => panic!("there is no other writer"),
            }
            self.followers.happened(self.seq + 1, &events);
            self.seq += count as u64;
        }
    }

    /// The numbers of all events up to the end.
    async fn numbers(mut updates: Updates) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(update) = updates.recv().await {
            match update {
                Update::Event { seq, .. } => numbers.push(seq),
                Update::Line(_) | Update::Notice(_) => panic!("{update:?}"),
            }
        }
        numbers
    }

    #[tokio::test]
    async fn a_follower_that_falls_behind_reads_the_journal() {
        let mut followed = TestRun::new();
        followed.happens(3).await;
        let (late, from_start) = followed.follow(Since::Event(0));
        let (middle, from_second) = followed.follow(Since::Event(2));
        let (new, from_now) = followed.follow(Since::Now);
        for _ in 0..2_000 {
            followed.happens(2).await;
        }
        assert!(new.feed.held().updates.len() <= EVENTS_MAX, "memory is bounded");
        [late, middle, new].iter().for_each(|follower| followed.followers.remove(follower));
        assert_eq!(numbers(from_start).await, (1..=4_003).collect::<Vec<_>>());
        assert_eq!(numbers(from_second).await, (3..=4_003).collect::<Vec<_>>());
        assert_eq!(numbers(from_now).await, (4..=4_003).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_follower_joins_the_live_events_without_a_gap() {
        let mut followed = TestRun::new();
        let (follower, mut updates) = followed.follow(Since::Event(0));
        let mut received = Vec::new();
        // Between two records it reads none, some or all of the events.
        for round in 0..500_usize {
            followed.happens(1 + round % 3).await;
            for _ in 0..round % 7 {
                if received.len() as u64 == followed.seq {
                    break;
                }
                match updates.recv().await {
                    Some(Update::Event { seq, .. }) => received.push(seq),
                    other => panic!("{other:?}"),
                }
            }
        }
        followed.followers.remove(&follower);
        received.extend(numbers(updates).await);
        assert_eq!(received, (1..=followed.seq).collect::<Vec<_>>());
    }

    /// The number of lines that are ready, and the notices between them.
    fn ready(updates: &mut Updates) -> (usize, Vec<String>) {
        let (mut lines, mut notices) = (0, Vec::new());
        while let Some(update) = updates.try_recv() {
            match update {
                Update::Line(_) => lines += 1,
                Update::Notice(text) => notices.push(text),
                Update::Event { .. } => panic!("nothing has happened"),
            }
        }
        (lines, notices)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_follower_misses_no_line() {
        let followed = TestRun::new();
        let (follower, mut updates) = followed.follow(Since::Now);
        let reader = tokio::spawn(async move {
            let mut lines = 0;
            while let Some(update) = updates.recv().await {
                assert!(matches!(update, Update::Line(_)), "{update:?}");
                tokio::time::sleep(PATIENCE / 2).await;
                lines += 1;
            }
            lines
        });
        for _ in 0..100 {
            followed.followers.room().await;
            followed.followers.tell(&line(BYTES_MAX / 4));
        }
        followed.followers.remove(&follower);
        assert_eq!(reader.await.expect("no panic"), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_that_does_not_read_throttles_jobs_once_and_learns_what_it_missed() {
        let followed = TestRun::new();
        let (follower, mut updates) = followed.follow(Since::Now);
        let begun = tokio::time::Instant::now();
        for _ in 0..10_000 {
            followed.followers.room().await;
            followed.followers.tell(&line(BYTES_MAX / 4));
        }
        assert_eq!(begun.elapsed(), PATIENCE);
        assert!(follower.feed.held().bytes <= 2 * BYTES_MAX);
        assert_eq!(ready(&mut updates), (4, Vec::new()));
        followed.followers.tell(&line(1));
        let expected = "9996 lines of output dropped here because this client reads too slowly";
        assert_eq!(ready(&mut updates), (1, vec![expected.to_owned()]));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_for_lines_is_bounded_without_throttling() {
        let followed = TestRun::new();
        let (follower, mut updates) = followed.follow(Since::Now);
        (0..100).for_each(|_| followed.followers.tell(&line(BYTES_MAX / 4)));
        followed.followers.tell(&Update::Notice("something else".to_owned()));
        followed.followers.remove(&follower);
        let (lines, notices) = ready(&mut updates);
        assert!((4..=8).contains(&lines), "{lines}");
        let dropped =
            format!("{} lines of output dropped here because this client reads too slowly", 100 - lines);
        assert_eq!(notices, ["something else".to_owned(), dropped]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_follower_does_not_throttle_jobs() {
        let followed = TestRun::new();
        drop(followed.follow(Since::Now).1);
        (0..100).for_each(|_| followed.followers.tell(&line(BYTES_MAX / 4)));
        let begun = tokio::time::Instant::now();
        followed.followers.room().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(followed.followers.list().is_empty());
    }
}
