//! Computes when a trigger fires, including jitter and missed instants. Pure arithmetic: instants in, decisions out.

use std::collections::VecDeque;
use std::sync::Arc;
use windlass_engine::Timestamp;
use windlass_ir::Duration;
use windlass_ir::trigger::{CatchUp, Times};

/// A firing later than this counts as missed, because the machine was asleep.
const LATE: Duration = Duration::from_secs(60);

/// The maximum number of missed instants to count.
const COUNTED_MAX: u64 = 10_000;

/// The initial window when searching for instants from the end.
const WINDOW: Duration = Duration::from_secs(3_600);

/// When one trigger fires.
#[derive(Debug)]
pub(super) struct Due {
    pub trigger: Arc<str>,
    pub times: Times,
    pub jitter: Duration,
    pub catch_up: CatchUp,
}

/// The decisions due now, in the order of their instants, and when to check again.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Agenda {
    pub decide: Vec<(Timestamp, Doing)>,
    pub next: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Doing {
    Fire,
    Skip(Arc<str>),
}

impl Due {
    /// `last` is the last decided instant. `since` is when this process began to watch the clock.
    pub fn agenda(&self, last: Timestamp, since: Timestamp, now: Timestamp) -> Agenda {
        let mut missed = Missed::new(self.catch_up);
        let (mut at, mut fires_at, mut on_time) = (last, Timestamp(i64::MIN), Vec::new());
        let next = loop {
            let Some(due) = self.after(at) else { break None };
            // Decide instants in order, whatever their jitter.
            fires_at = fires_at.max(self.fires_at(due));
            if fires_at > now {
                break Some(fires_at);
            }
            at = due;
            if fires_at >= since && now.since(fires_at) <= LATE {
                on_time.push((due, Doing::Fire));
            } else if missed.push(due) {
                at = at.max(self.tail(now, missed.kept_max));
            }
        };
        let mut decide = missed.decided();
        decide.append(&mut on_time);
        Agenda { decide, next }
    }

    fn after(&self, at: Timestamp) -> Option<Timestamp> {
        self.times.next_micros(at.0).map(Timestamp)
    }

    /// The time of the first firing after an instant.
    pub fn next_after(&self, due: Timestamp) -> Option<Timestamp> {
        self.after(due).map(|next| self.fires_at(next))
    }

    /// The instant, delayed by a share of the jitter. The share is always the same for an instant.
    pub fn fires_at(&self, due: Timestamp) -> Timestamp {
        let hash =
            blake3::Hasher::new().update(self.trigger.as_bytes()).update(&due.0.to_le_bytes()).finalize();
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        let share = u128::from(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
        let late = (share * (u128::from(self.jitter.0) + 1)) >> 64;
        due.plus(Duration(u64::try_from(late).unwrap_or(u64::MAX)))
    }

    /// An instant with at least `count` missed instants after it, but not many more.
    fn tail(&self, now: Timestamp, count: usize) -> Timestamp {
        let mut window = Duration(WINDOW.0.saturating_add(self.jitter.0).saturating_add(LATE.0));
        loop {
            let from = Timestamp(now.0.saturating_sub(i64::try_from(window.0).unwrap_or(i64::MAX)));
            let due = std::iter::successors(self.after(from), |at| self.after(*at));
            let missed = due.take_while(|due| now.since(self.fires_at(*due)) > LATE).take(count).count();
            if missed == count || from.0 < 0 {
                return from;
            }
            window = Duration(window.0.saturating_mul(2));
        }
    }
}

/// The number of missed instants, and the latest of them.
struct Missed {
    count: u64,
    /// Whether there may be more than `count`.
    and_more: bool,
    fired_max: usize,
    /// The number of instants to catch up on, plus one.
    kept_max: usize,
    latest: VecDeque<Timestamp>,
}

impl Missed {
    fn new(catch_up: CatchUp) -> Self {
        let fired_max = match catch_up {
            CatchUp::None => 0,
            CatchUp::Last => 1,
            CatchUp::All(most) => usize::try_from(most).unwrap_or(usize::MAX),
        };
        let kept_max = fired_max.saturating_add(1);
        Self { count: 0, and_more: false, fired_max, kept_max, latest: VecDeque::new() }
    }

    /// Returns whether to skip ahead to the latest instants.
    fn push(&mut self, due: Timestamp) -> bool {
        self.count += 1;
        self.latest.push_back(due);
        if self.latest.len() > self.kept_max {
            self.latest.pop_front();
        }
        let leap = self.count == COUNTED_MAX + self.fired_max as u64;
        self.and_more |= leap;
        leap
    }

    fn decided(mut self) -> Vec<(Timestamp, Doing)> {
        let fired = self.latest.split_off(self.latest.len().saturating_sub(self.fired_max));
        let dropped = match self.and_more {
            true => format!("at least {COUNTED_MAX}"),
            false => (self.count - fired.len() as u64).to_string(),
        };
        let because = format!("{dropped} missed while Windlass was not running");
        let skipped = self.latest.back().map(|due| (*due, Doing::Skip(because.into())));
        skipped.into_iter().chain(fired.into_iter().map(|due| (due, Doing::Fire))).collect()
    }
}
