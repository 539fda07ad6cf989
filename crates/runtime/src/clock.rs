//! The time of a run: the machine's, or one that jumps from deadline to deadline.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use windlass_engine::Timestamp;

#[derive(Clone, Copy, Debug)]
pub enum Clock {
    Real,
    /// The machine's time when a run was taken up, and what has passed since: setting the clock of the machine neither holds up nor
    /// hurries what is waited for. Time in which the machine sleeps counts.
    Steady {
        began: Timestamp,
        at: Passed,
    },
    /// For scripted runs only: nobody waits for anything.
    Virtual(Timestamp),
}

/// Time since the machine was started, which nobody can set.
#[derive(Clone, Copy, Debug)]
pub struct Passed(u64);

impl Passed {
    fn now() -> Self {
        #[cfg(target_os = "linux")]
        let passed = {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
            seconds * 1_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default() / 1_000
        };
        #[cfg(not(target_os = "linux"))]
        let passed = {
            static BEGAN: std::sync::LazyLock<std::time::Instant> =
                std::sync::LazyLock::new(std::time::Instant::now);
            u64::try_from(BEGAN.elapsed().as_micros()).unwrap_or(u64::MAX)
        };
        Self(passed)
    }
}

impl Clock {
    /// The clock of one run, which does not jump because somebody sets that of the machine.
    #[must_use]
    pub(crate) fn steady(self) -> Self {
        match self {
            Self::Real => Self::Steady { began: self.now(), at: Passed::now() },
            steady @ (Self::Steady { .. } | Self::Virtual(_)) => steady,
        }
    }

    /// A clock that jumps, starting at the machine's time.
    pub fn starting_now() -> Self {
        Self::Virtual(Self::Real.now())
    }

    /// The same clock, and it does not go back behind an instant that a run has seen.
    #[must_use]
    pub(crate) fn not_before(self, seen: Option<Timestamp>) -> Self {
        match (self, seen) {
            (Self::Virtual(now), Some(seen)) => Self::Virtual(now.max(seen)),
            // A clock that is behind starts again at `seen`; adding to `began` alone would count the time since `at` twice.
            (Self::Steady { .. }, Some(seen)) if self.now() < seen => {
                Self::Steady { began: seen, at: Passed::now() }
            }
            (clock, _) => clock,
        }
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Self::Virtual(now) => *now,
            Self::Steady { began, at } => {
                began.plus(windlass_ir::Duration(Passed::now().0.saturating_sub(at.0)))
            }
            Self::Real => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
        }
    }
}

/// The machine's time for whoever serves many runs: it follows when the clock is set forward, and when it is set back goes on from
/// where it was until the clock has caught up.
#[derive(Debug)]
pub(crate) struct Onward(Mutex<(Timestamp, Passed)>);

impl Onward {
    pub fn starting_now() -> Self {
        Self(Mutex::new((Clock::Real.now(), Passed::now())))
    }

    pub fn now(&self) -> Timestamp {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Self::after(*last, Clock::Real.now(), Passed::now());
        last.0
    }

    fn after((last, at): (Timestamp, Passed), wall: Timestamp, passed: Passed) -> (Timestamp, Passed) {
        (wall.max(last.plus(windlass_ir::Duration(passed.0.saturating_sub(at.0)))), passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_ir::Duration;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn time_goes_on_whatever_is_done_to_the_clock() {
        let check = |wall: i64, expected: i64| {
            let last = (Timestamp(10 * HOUR), Passed(0));
            assert_eq!(Onward::after(last, Timestamp(wall), Passed(5)).0, Timestamp(expected), "{wall}");
        };
        check(10 * HOUR + 5, 10 * HOUR + 5);
        check(9 * HOUR + 5, 10 * HOUR + 5);
        check(11 * HOUR + 5, 11 * HOUR + 5);
    }

    #[test]
    fn a_clock_that_has_run_for_a_while_does_not_jump_ahead() {
        let began = Timestamp(10 * HOUR);
        // It has been running since the machine was started.
        let aged = Clock::Steady { began, at: Passed(0) };
        let now = aged.now();
        let soon = now.plus(Duration::from_secs(60));
        for seen in [began, now] {
            assert!((now..soon).contains(&aged.not_before(Some(seen)).now()), "{seen}");
        }
        let later = now.plus(Duration::from_secs(3_600));
        let caught_up = aged.not_before(Some(later)).now();
        assert!((later..later.plus(Duration::from_secs(60))).contains(&caught_up), "{caught_up}");
    }

    #[test]
    fn the_clock_of_a_run_does_not_go_back_behind_it() {
        let seen = Clock::Real.now().plus(Duration::from_secs(3_600));
        for clock in [Clock::Real.steady(), Clock::starting_now()] {
            assert!(clock.not_before(Some(seen)).now() >= seen, "{clock:?}");
            assert!(clock.not_before(None).now() < seen, "{clock:?}");
        }
    }
}
