//! The clocks of this machine.

use std::time::SystemTime;
use windlass_engine::{Now, Timestamp};

/// The clock of a run.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    Real,
    /// Starts at this instant and jumps from deadline to deadline. For mocked runs only.
    Virtual(Timestamp),
}

impl Clock {
    /// A virtual clock that starts at the current time.
    pub fn starting_now() -> Self {
        Self::Virtual(now().wall)
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Self::Real => now().wall,
            Self::Virtual(instant) => *instant,
        }
    }
}

/// Reads both clocks.
pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Now { wall: Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)), steady: steady() }
}

/// Waits until the wall clock is set.
#[cfg(target_os = "linux")]
pub(crate) async fn set() -> std::io::Result<()> {
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
    // The kernel cancels a timer of this kind when the clock is set; it never expires by itself.
    let never = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: i64::from(u32::MAX) * 2, tv_nsec: 0 },
    };
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = rustix::time::timerfd_create(TimerfdClockId::Realtime, flags)?;
    let cancel = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    rustix::time::timerfd_settime(&timer, cancel, &never)?;
    // Tokio has no type for timers, but a pipe works too: both are descriptors that become readable.
    tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(timer)?.readable().await
}

/// Other systems do not report that the clock was set.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn set() -> std::io::Result<()> {
    std::future::pending().await
}

/// Microseconds since the machine started, including time asleep.
#[cfg(target_os = "linux")]
fn steady() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default() / 1_000
}

#[cfg(not(target_os = "linux"))]
fn steady() -> u64 {
    static BEGAN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    u64::try_from(BEGAN.elapsed().as_micros()).unwrap_or(u64::MAX)
}
