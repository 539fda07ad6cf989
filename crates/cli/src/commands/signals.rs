//! Somebody outside wants this process to end: Ctrl-C, `kill`, or a terminal that was closed.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// From here on a signal is heard, and not what ends the process by itself.
#[derive(Debug)]
pub struct Signals {
    interrupted: Option<Signal>,
    terminated: Option<Signal>,
    hung_up: Option<Signal>,
}

/// How this process was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By somebody who, saying it again, cannot wait.
    Asked,
    /// The terminal is gone. A shell may say the same once more without meaning more.
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

    /// Waits until somebody cannot wait any longer for what is under way.
    pub async fn at_once(&mut self) {
        while self.next().await != Stop::Asked {}
    }
}

/// A signal that whoever started us wants ignored stays so: `nohup` means it.
fn heard(kind: SignalKind) -> std::io::Result<Option<Signal>> {
    if is_ignored(kind) { Ok(None) } else { signal(kind).map(Some) }
}

/// As Linux tells it; elsewhere none is.
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
