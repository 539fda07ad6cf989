//! Everybody who follows a run, and what each has not heard yet. Events wait for as long as it takes, since they are few and
//! small. What jobs print is neither: so much of it waits for whoever is slow, then the jobs do for a moment, and then
//! lines are left out, which is said.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Notify, mpsc};
use windlass_engine::Event;
use windlass_executors::Line;

/// So much output waits for one follower.
const BYTES_MAX: usize = 1024 * 1024;

/// What a line takes beside its bytes.
const LINE_BYTES: usize = 256;

/// Whoever has heard nothing for so long is not waited for any more until it has caught up.
const PATIENCE: Duration = Duration::from_secs(1);

/// What followers of a run are told.
#[derive(Clone, Debug)]
pub enum Update {
    /// Something happened, and is durable.
    Event { seq: u64, event: Event },
    /// A job printed something. Live, and never an event.
    Line(Line),
    /// Something a person should know that changes nothing.
    Notice(String),
}

/// The followers of one run; there may be none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followers(Arc<Mutex<Vec<Follower>>>);

impl Followers {
    pub fn add(&self) -> (Follower, Updates) {
        let (follower, updates) = pair();
        self.list().push(follower.clone());
        (follower, updates)
    }

    pub fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    /// This one has seen enough: it comes to the end of what it was told.
    pub fn remove(&self, follower: &Follower) {
        follower.say_left_out();
        self.list().retain(|other| !Arc::ptr_eq(&other.behind, &follower.behind));
    }

    pub fn tell(&self, update: &Update) {
        self.list().retain(|follower| follower.tell(update.clone()));
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

/// Where updates go for one who follows.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    sender: mpsc::UnboundedSender<Update>,
    behind: Arc<Behind>,
}

/// Where they come from.
#[derive(Debug)]
pub struct Updates {
    receiver: mpsc::UnboundedReceiver<Update>,
    behind: Arc<Behind>,
}

/// How much output one follower has not heard yet.
#[derive(Debug, Default)]
struct Behind {
    bytes: AtomicUsize,
    /// Nobody waits for it, and lines are left out.
    is_slow: AtomicBool,
    left_out: AtomicU64,
    heard: Notify,
}

pub(crate) fn pair() -> (Follower, Updates) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let behind = Arc::<Behind>::default();
    (Follower { sender, behind: behind.clone() }, Updates { receiver, behind })
}

/// None, and none will come.
impl Default for Updates {
    fn default() -> Self {
        pair().1
    }
}

impl Follower {
    /// Whether anybody is there to hear it.
    pub fn tell(&self, update: Update) -> bool {
        let Update::Line(line) = &update else { return self.sender.send(update).is_ok() };
        let behind = &*self.behind;
        let bytes = behind.bytes.load(Ordering::Acquire);
        if behind.is_slow.load(Ordering::Acquire) && bytes <= BYTES_MAX / 2 {
            self.say_left_out();
        }
        if behind.is_slow.load(Ordering::Acquire) || bytes >= 2 * BYTES_MAX {
            behind.is_slow.store(true, Ordering::Release);
            behind.left_out.fetch_add(1, Ordering::AcqRel);
            return !self.sender.is_closed();
        }
        behind.bytes.fetch_add(size(line), Ordering::AcqRel);
        self.sender.send(update).is_ok()
    }

    pub async fn room(&self) {
        let behind = &*self.behind;
        let is_full = || behind.bytes.load(Ordering::Acquire) >= BYTES_MAX;
        while is_full() && !behind.is_slow.load(Ordering::Acquire) {
            tokio::select! {
                () = behind.heard.notified() => {}
                () = self.sender.closed() => return,
                () = tokio::time::sleep(PATIENCE) => behind.is_slow.store(true, Ordering::Release),
            }
        }
    }

    fn say_left_out(&self) {
        self.behind.is_slow.store(false, Ordering::Release);
        let count = self.behind.left_out.swap(0, Ordering::AcqRel);
        if count > 0 {
            let lines = if count == 1 { "line" } else { "lines" };
            let notice =
                format!("{count} {lines} of output left out here: they came faster than they were read");
            // Whoever is gone misses nothing.
            let _ = self.sender.send(Update::Notice(notice));
        }
    }
}

impl Updates {
    pub async fn recv(&mut self) -> Option<Update> {
        let update = self.receiver.recv().await;
        self.heard(update.as_ref());
        update
    }

    pub async fn recv_many(&mut self, updates: &mut Vec<Update>, count_max: usize) -> usize {
        let before = updates.len();
        let count = self.receiver.recv_many(updates, count_max).await;
        updates[before..].iter().for_each(|update| self.heard(Some(update)));
        count
    }

    pub fn try_recv(&mut self) -> Result<Update, TryRecvError> {
        let update = self.receiver.try_recv();
        self.heard(update.as_ref().ok());
        update
    }

    fn heard(&self, update: Option<&Update>) {
        if let Some(Update::Line(line)) = update {
            self.behind.bytes.fetch_sub(size(line), Ordering::AcqRel);
            self.behind.heard.notify_one();
        }
    }
}

fn size(line: &Line) -> usize {
    line.bytes.len() + LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{JobKey, Path, RunId};
    use windlass_executors::Stream;

    fn line(bytes: usize) -> Update {
        let run = RunId::new("r").expect("good");
        let job = JobKey { run, path: Path::default(), attempt: 1, delivery: 1 };
        Update::Line(Line { job, stream: Stream::Stdout, bytes: vec![b'x'; bytes] })
    }

    /// How many lines there are, and what is said between them.
    fn heard(updates: &mut Updates) -> (usize, Vec<String>) {
        let (mut lines, mut notices) = (0, Vec::new());
        while let Ok(update) = updates.try_recv() {
            match update {
                Update::Line(_) => lines += 1,
                Update::Notice(text) => notices.push(text),
                Update::Event { .. } => panic!("nothing has happened"),
            }
        }
        (lines, notices)
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_reads_misses_nothing() {
        let followers = Followers::default();
        let (follower, mut updates) = followers.add();
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
            followers.room().await;
            followers.tell(&line(BYTES_MAX / 4));
        }
        followers.remove(&follower);
        drop(follower);
        assert_eq!(reader.await.expect("no panic"), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_read_holds_nobody_up_for_long_and_is_told_what_it_missed() {
        let followers = Followers::default();
        let (_follower, mut updates) = followers.add();
        let begun = tokio::time::Instant::now();
        for _ in 0..10_000 {
            followers.room().await;
            followers.tell(&line(BYTES_MAX / 4));
        }
        assert_eq!(begun.elapsed(), PATIENCE, "waited for once");
        assert!(updates.behind.bytes.load(Ordering::Acquire) <= 2 * BYTES_MAX);
        let (lines, notices) = heard(&mut updates);
        assert_eq!((lines, notices), (4, Vec::new()));
        followers.tell(&line(1));
        let expected = "9996 lines of output left out here: they came faster than they were read";
        assert_eq!(heard(&mut updates), (1, vec![expected.to_owned()]));
    }

    #[tokio::test(start_paused = true)]
    async fn even_without_waiting_only_so_much_is_held() {
        let followers = Followers::default();
        let (follower, mut updates) = followers.add();
        (0..100).for_each(|_| followers.tell(&line(BYTES_MAX / 4)));
        followers.tell(&Update::Notice("something else".to_owned()));
        followers.remove(&follower);
        drop(follower);
        let (lines, notices) = heard(&mut updates);
        assert!((4..=8).contains(&lines), "{lines}");
        let left_out =
            format!("{} lines of output left out here: they came faster than they were read", 100 - lines);
        assert_eq!(notices, ["something else".to_owned(), left_out]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_gone_is_not_waited_for() {
        let followers = Followers::default();
        drop(followers.add().1);
        (0..100).for_each(|_| followers.tell(&line(BYTES_MAX / 4)));
        let begun = tokio::time::Instant::now();
        followers.room().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
