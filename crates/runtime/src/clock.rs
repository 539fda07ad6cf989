//! The time of a run: the machine's, or one that jumps from deadline to deadline.

use std::time::SystemTime;
use windlass_engine::Timestamp;

#[derive(Clone, Copy, Debug)]
pub enum Clock {
    Real,
    /// For scripted runs only: nobody waits for anything.
    Virtual(Timestamp),
}

impl Clock {
    /// A clock that jumps, starting at the machine's time.
    pub fn starting_now() -> Self {
        Self::Virtual(Self::Real.now())
    }

    /// The same clock, and one that jumps does not go back behind an instant that a run has seen.
    #[must_use]
    pub(crate) fn not_before(self, seen: Option<Timestamp>) -> Self {
        match (self, seen) {
            (Self::Virtual(now), Some(seen)) => Self::Virtual(now.max(seen)),
            (clock, _) => clock,
        }
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Self::Virtual(now) => *now,
            Self::Real => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
        }
    }
}
