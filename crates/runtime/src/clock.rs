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
