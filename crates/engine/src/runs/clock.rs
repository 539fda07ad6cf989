//! The clock of one run. It starts at the wall-clock time when the run is loaded and then follows the machine's
//! steady clock, so setting the wall clock does not affect timers.

use crate::keys::Timestamp;
use windlass_ir::Duration;

/// Both clocks of the machine, read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Set by people; it can jump.
    pub wall: Timestamp,
    /// Microseconds since the machine started, including time asleep; it never jumps.
    pub steady: u64,
}

/// Smaller shifts between the wall clock and the steady clock are adjustments, not settings, in microseconds.
const SLEW_MAX: i64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// It read `began` when the steady clock read `at`.
    Steady { began: Timestamp, at: u64 },
    /// Jumps from deadline to deadline.
    Virtual(Timestamp),
}

impl Clock {
    pub fn starting(now: Now) -> Self {
        Self::Steady { began: now.wall, at: now.steady }
    }

    pub fn read(&self, now: Now) -> Timestamp {
        match self {
            Self::Steady { began, at } => began.plus(Duration(now.steady.saturating_sub(*at))),
            Self::Virtual(instant) => *instant,
        }
    }

    /// The same clock, moved forward to `seen` if it is behind.
    #[must_use]
    pub fn not_before(self, seen: Timestamp, now: Now) -> Self {
        match self {
            Self::Virtual(instant) => Self::Virtual(instant.max(seen)),
            Self::Steady { .. } if self.read(now) < seen => Self::Steady { began: seen, at: now.steady },
            steady @ Self::Steady { .. } => steady,
        }
    }

    /// The steady-clock time of an instant of this clock. A virtual clock never gets there by itself.
    pub fn alarm(&self, instant: Timestamp) -> Option<u64> {
        match self {
            Self::Steady { began, at } => Some(at.saturating_add(instant.since(*began).0)),
            Self::Virtual(_) => None,
        }
    }

    /// How far the wall clock is ahead of this one, in microseconds. Small differences, from gradual adjustment or
    /// from reading the two clocks one after the other, do not count.
    pub fn wall_ahead(&self, now: Now) -> i64 {
        match self {
            Self::Steady { .. } => match now.wall.0.saturating_sub(self.read(now).0) {
                ahead if ahead.abs() < SLEW_MAX => 0,
                ahead => ahead,
            },
            Self::Virtual(_) => 0,
        }
    }

    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }
}

/// A wall clock that never goes back: it follows when the clock is set forward, and continues steadily when it is set
/// back. The coordinator uses it.
#[derive(Clone, Copy, Debug)]
pub struct Onward {
    last: Timestamp,
    at: u64,
}

impl Onward {
    pub fn starting(now: Now) -> Self {
        Self { last: now.wall, at: now.steady }
    }

    pub fn read(&mut self, now: Now) -> Timestamp {
        let passed = self.last.plus(Duration(now.steady.saturating_sub(self.at)));
        *self = Self { last: now.wall.max(passed), at: now.steady };
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    fn now(wall: i64, steady: u64) -> Now {
        Now { wall: Timestamp(wall), steady }
    }

    #[test]
    fn a_clock_that_has_run_for_a_while_does_not_jump_ahead() {
        let clock = Clock::starting(now(10 * HOUR, 0));
        let later = now(11 * HOUR, HOUR as u64);
        let check = |seen: i64, expected: i64| {
            assert_eq!(clock.not_before(Timestamp(seen), later).read(later), Timestamp(expected), "{seen}");
        };
        check(10 * HOUR, 11 * HOUR);
        check(11 * HOUR, 11 * HOUR);
        check(12 * HOUR, 12 * HOUR);
    }

    #[test]
    fn setting_the_wall_clock_moves_no_timer() {
        let clock = Clock::starting(now(10 * HOUR, 7));
        assert_eq!(clock.alarm(Timestamp(11 * HOUR)), Some(HOUR as u64 + 7));
        assert_eq!(clock.read(now(99 * HOUR, HOUR as u64 + 7)), Timestamp(11 * HOUR));
    }

    #[test]
    fn shared_time_never_goes_back() {
        let check = |wall: i64, expected: i64| {
            let mut onward = Onward::starting(now(10 * HOUR, 0));
            assert_eq!(onward.read(now(wall, 5)), Timestamp(expected), "{wall}");
        };
        check(10 * HOUR + 5, 10 * HOUR + 5);
        check(9 * HOUR + 5, 10 * HOUR + 5);
        check(11 * HOUR + 5, 11 * HOUR + 5);
    }
}
