//! Bugs that Windlass once had, each at its old place. The simulator switches one on to show that it would be found; without the
//! feature `planted-bugs` none of them is compiled in.

/// A bug that can be switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A caller's clock jumps ahead by its own age whenever a called run ends.
    CallerClock,
    /// A gate's or a signal's timer that is more than a minute away is dropped.
    FarTimers,
    /// Mail that arrives while a run is loaded is written beside its driver, which carries out nothing of it.
    MailBesideDriver,
    /// Runs that have failed are loaded at every start.
    FailedAtStart,
    /// A later record acknowledges an input of the coordinator that was never written.
    EarlyAck,
    /// A run that rests answers that it is finished.
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

/// Switches one bug on for this thread.
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
