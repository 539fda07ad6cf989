//! Handles requests to end this process: Ctrl-C, `kill`, or a closed terminal.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Catches signals that would otherwise end the process.
#[derive(Debug)]
pub struct Signals {
    interrupted: Option<Signal>,
    terminated: Option<Signal>,
    hung_up: Option<Signal>,
}

/// The kind of request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user or another program asked. A second request means at once.
    Asked,
    /// The terminal is closed. A shell may send this twice, so a second one means nothing more.
    HungUp,
}

impl Signals {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupted: heard(SignalKind::interrupt())?,
            terminated: heard(SignalKind::terminate())?,
            hung_up: heard(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Stop {
        tokio::select! {
            () = received(&mut self.interrupted) => Stop::Asked,
            () = received(&mut self.terminated) => Stop::Asked,
            () = received(&mut self.hung_up) => Stop::HungUp,
        }
    }

    /// Waits until the user asks to end at once.
    pub async fn at_once(&mut self) {
        while self.next().await != Stop::Asked {}
    }
}

/// Leaves a signal ignored if the parent process ignores it, as `nohup` does.
fn heard(kind: SignalKind) -> std::io::Result<Option<Signal>> {
    if is_ignored(kind) { Ok(None) } else { signal(kind).map(Some) }
}

/// Reads the mask that Linux reports; other systems report none.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
