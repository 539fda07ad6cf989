//! Following a run: its events from any point on, and what its jobs print meanwhile.
//!
//! A follower that keeps up hears of events when they are durable. One that starts late, or falls behind, reads the journal
//! until it has caught up, so no event is missed, none comes twice, and little of it is held in memory. What jobs print is
//! not in the journal: a slow follower briefly throttles the jobs, and then lines are left out, which it is told.

use crate::engine::Engine;
use crate::tape::Tape;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use windlass_engine::{Event, RunId};
use windlass_executors::Line;

/// Events that one follower holds. If there are more, it reads the journal.
const EVENTS_MAX: usize = 1024;

/// Output that waits for one follower.
const BYTES_MAX: usize = 1024 * 1024;

/// Memory that a line takes beside its bytes.
const LINE_BYTES: usize = 256;

/// A follower that takes nothing for this long no longer holds up jobs until it has caught up.
const PATIENCE: Duration = Duration::from_secs(1);

/// What followers of a run hear.
#[derive(Clone, Debug)]
pub enum Update {
    /// Something happened, and is durable.
    Event { seq: u64, event: Event },
    /// A job printed something. Live, and never an event.
    Line(Line),
    /// Something a person should know that changes nothing.
    Notice(String),
}

/// The first event that a follower wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The next one.
    Now,
    /// The one after this number; 0 is the beginning of the run.
    Event(u64),
}

/// The followers of one run; there may be none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followers(Arc<Mutex<Vec<Follower>>>);

impl Followers {
    pub fn add(&self, follower: Follower) {
        self.list().push(follower);
    }

    /// This one has seen enough: it comes to the end of what there is.
    pub fn remove(&self, follower: &Follower) {
        follower.end();
        self.list().retain(|other| !Arc::ptr_eq(&other.feed, &follower.feed));
    }

    pub fn tell(&self, update: &Update) {
        self.list().retain(|follower| follower.tell(update.clone()));
    }

    /// Events that are durable, of which the first has the number `seq`.
    pub fn happened(&self, seq: u64, events: &[Event]) {
        self.list().retain(|follower| follower.happened(seq, events));
    }

    /// Waits until there is room for what jobs print, or until it is clear that there will be none soon.
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

/// Where updates go for one follower.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    feed: Arc<Feed>,
}

/// What lies between a run and one follower of it.
#[derive(Debug, Default)]
struct Feed {
    held: Mutex<Held>,
    /// Something was added, or nothing more will be.
    added: Notify,
    taken: Notify,
}

#[derive(Debug, Default)]
struct Held {
    updates: VecDeque<Update>,
    events: usize,
    /// Bytes of lines.
    bytes: usize,
    /// The number of the next event that belongs into `updates`; none until the first one comes.
    next: Option<u64>,
    /// Events up to this one happened before the follower came.
    before: u64,
    /// The number of the last event that happened.
    last: u64,
    /// The follower has to read the journal.
    is_behind: bool,
    /// It holds up no one, and lines are left out.
    is_slow: bool,
    left_out: u64,
    /// Nothing more will be added.
    is_over: bool,
    /// The follower has gone away.
    is_gone: bool,
}

impl Feed {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where updates come from.
#[derive(Debug, Default)]
pub struct Updates(Source);

#[derive(Debug, Default)]
enum Source {
    /// There are none, and none will come.
    #[default]
    None,
    /// A run of this process.
    Run(Box<Reader>),
    /// Another process, which is not read from faster than these are taken.
    Elsewhere(mpsc::Receiver<Update>),
}

/// The follower's end of a feed.
#[derive(Debug)]
struct Reader {
    feed: Arc<Feed>,
    engine: Arc<Engine>,
    tape: Tape,
    /// Events that were read from the journal, and the number of the first.
    page: VecDeque<Event>,
    seq: u64,
    /// Events up to this one are not wanted.
    after: u64,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.feed.held().is_gone = true;
        self.feed.taken.notify_one();
    }
}

/// Both ends of a new feed.
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
    /// The run ends, or the follower has waited long enough: what it has not heard yet still comes.
    pub fn end(&self) {
        let mut held = self.feed.held();
        held.say_left_out();
        held.is_over = true;
        drop(held);
        self.feed.added.notify_one();
    }

    /// Whether the follower is still there.
    fn tell(&self, update: Update) -> bool {
        let mut held = self.feed.held();
        match update {
            Update::Line(line) => held.print(line),
            Update::Notice(_) => held.updates.push_back(update),
            Update::Event { seq, event } => held.happened(seq, std::slice::from_ref(&event)),
        }
        self.added(&held)
    }

    /// The same.
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
            self.say_left_out();
        }
        if self.is_slow || self.bytes >= 2 * BYTES_MAX {
            self.is_slow = true;
            self.left_out += 1;
            return;
        }
        self.bytes += size(&line);
        self.updates.push_back(Update::Line(line));
    }

    fn say_left_out(&mut self) {
        self.is_slow = false;
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            let lines = if count == 1 { "line" } else { "lines" };
            let notice =
                format!("{count} {lines} of output left out here: they came faster than they were read");
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
    /// Those that another process sends.
    pub(crate) fn elsewhere(updates: mpsc::Receiver<Update>) -> Self {
        Self(Source::Elsewhere(updates))
    }

    /// The next one; none at the end.
    pub async fn recv(&mut self) -> Option<Update> {
        match &mut self.0 {
            Source::None => None,
            Source::Run(reader) => reader.recv().await,
            Source::Elsewhere(updates) => updates.recv().await,
        }
    }

    /// Adds the next one and those that can be had without waiting, at most `count_max`. None were added at the end.
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

    /// The next one if it can be had without waiting.
    pub fn try_recv(&mut self) -> Option<Update> {
        match &mut self.0 {
            Source::None => None,
            Source::Run(reader) => reader.at_hand(),
            Source::Elsewhere(updates) => updates.try_recv().ok(),
        }
    }
}

/// What a follower does when nothing is at hand.
enum Next {
    Read,
    Wait,
    End,
}

impl Reader {
    async fn recv(&mut self) -> Option<Update> {
        loop {
            if let Some(update) = self.at_hand() {
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
                        // What is wrong with the run is said when it is looked at.
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

    fn at_hand(&mut self) -> Option<Update> {
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
                // It was read from the journal already.
                Update::Event { seq, .. } if seq <= self.after => {}
                Update::Event { seq, event } => {
                    self.after = seq;
                    return Some(Update::Event { seq, event });
                }
                update => return Some(update),
            }
        }
    }

    /// Reads what the journal has beyond the last event. At its end the follower has caught up, unless more happened since.
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

    /// A run whose events become durable and are told to its followers.
    struct Story {
        engine: Arc<Engine>,
        followers: Followers,
        tail: Option<windlass_store::Lsn>,
        seq: u64,
    }

    impl Story {
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

        /// So many events in one record.
        async fn happens(&mut self, count: usize) {
            let events = events(count);
            let append = Append::new(run(), self.tail, &events).expect("small");
            match self.engine.store().journal.append(append).await.expect("memory takes everything") {
                windlass_store::Appended::At(lsn) => self.tail = Some(lsn),
                windlass_store::Appended::Conflict { .. } => panic!("no one else writes"),
            }
            self.followers.happened(self.seq + 1, &events);
            self.seq += count as u64;
        }
    }

    /// The numbers of the events at hand or in the journal, up to the end.
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
    async fn a_follower_that_does_not_keep_up_reads_the_journal() {
        let mut story = Story::new();
        story.happens(3).await;
        let (late, from_start) = story.follow(Since::Event(0));
        let (middle, from_second) = story.follow(Since::Event(2));
        let (new, from_now) = story.follow(Since::Now);
        for _ in 0..2_000 {
            story.happens(2).await;
        }
        assert!(new.feed.held().updates.len() <= EVENTS_MAX, "memory is bounded");
        [late, middle, new].iter().for_each(|follower| story.followers.remove(follower));
        assert_eq!(numbers(from_start).await, (1..=4_003).collect::<Vec<_>>());
        assert_eq!(numbers(from_second).await, (3..=4_003).collect::<Vec<_>>());
        assert_eq!(numbers(from_now).await, (4..=4_003).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_follower_joins_the_live_events_without_a_gap() {
        let mut story = Story::new();
        let (follower, mut updates) = story.follow(Since::Event(0));
        let mut heard = Vec::new();
        // Between any two events it reads nothing, some or all of what there is.
        for round in 0..500_usize {
            story.happens(1 + round % 3).await;
            for _ in 0..round % 7 {
                if heard.len() as u64 == story.seq {
                    break;
                }
                match updates.recv().await {
                    Some(Update::Event { seq, .. }) => heard.push(seq),
                    other => panic!("{other:?}"),
                }
            }
        }
        story.followers.remove(&follower);
        heard.extend(numbers(updates).await);
        assert_eq!(heard, (1..=story.seq).collect::<Vec<_>>());
    }

    /// How many lines there are, and the notices between them.
    fn at_hand(updates: &mut Updates) -> (usize, Vec<String>) {
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
    async fn a_reader_that_reads_misses_no_line() {
        let story = Story::new();
        let (follower, mut updates) = story.follow(Since::Now);
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
            story.followers.room().await;
            story.followers.tell(&line(BYTES_MAX / 4));
        }
        story.followers.remove(&follower);
        assert_eq!(reader.await.expect("no panic"), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_read_holds_jobs_up_once_and_hears_what_it_missed() {
        let story = Story::new();
        let (follower, mut updates) = story.follow(Since::Now);
        let begun = tokio::time::Instant::now();
        for _ in 0..10_000 {
            story.followers.room().await;
            story.followers.tell(&line(BYTES_MAX / 4));
        }
        assert_eq!(begun.elapsed(), PATIENCE);
        assert!(follower.feed.held().bytes <= 2 * BYTES_MAX);
        assert_eq!(at_hand(&mut updates), (4, Vec::new()));
        story.followers.tell(&line(1));
        let expected = "9996 lines of output left out here: they came faster than they were read";
        assert_eq!(at_hand(&mut updates), (1, vec![expected.to_owned()]));
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_no_one_waits_for_are_bounded_too() {
        let story = Story::new();
        let (follower, mut updates) = story.follow(Since::Now);
        (0..100).for_each(|_| story.followers.tell(&line(BYTES_MAX / 4)));
        story.followers.tell(&Update::Notice("something else".to_owned()));
        story.followers.remove(&follower);
        let (lines, notices) = at_hand(&mut updates);
        assert!((4..=8).contains(&lines), "{lines}");
        let left_out =
            format!("{} lines of output left out here: they came faster than they were read", 100 - lines);
        assert_eq!(notices, ["something else".to_owned(), left_out]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_that_went_away_holds_up_no_one() {
        let story = Story::new();
        drop(story.follow(Since::Now).1);
        (0..100).for_each(|_| story.followers.tell(&line(BYTES_MAX / 4)));
        let begun = tokio::time::Instant::now();
        story.followers.room().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(story.followers.list().is_empty());
    }
}
