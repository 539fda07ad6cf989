//! Bugs that Windlass once had, in their original places. The simulator activates them to prove that it finds them.
//! They are compiled in only with the feature `planted-bugs`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A caller's clock jumps ahead by its own age whenever a called run ends.
    CallerClock,
    /// The engine drops the timer of a gate or a signal that is more than a minute away.
    FarTimers,
    /// Mail that arrives while a run is loading is recorded, but its effects are never carried out.
    MailBesideDriver,
    /// Every start loads all failed runs.
    FailedAtStart,
    /// A later record acknowledges an input of the coordinator that was never written.
    EarlyAck,
    /// A resting run replies that it is finished.
    FinishedAtRest,
}

impl Bug {
    pub const ALL: [Self; 6] = [
        Self::CallerClock,
        Self::FarTimers,
        Self::MailBesideDriver,
        Self::FailedAtStart,
        Self::EarlyAck,
        Self::FinishedAtRest,
    ];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Activates one bug on this thread.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

#[cfg(feature = "planted-bugs")]
pub(super) fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

#[cfg(not(feature = "planted-bugs"))]
pub(super) fn planted(_: Bug) -> bool {
    false
}
