//! The connected clients of an owner.

use super::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The connected clients.
#[derive(Debug, Default)]
pub(super) struct Guests {
    here: Arc<()>,
    /// Whether a client has sent a request.
    asked: AtomicBool,
    changed: Arc<Notify>,
}

/// The longest wait for clients that neither read nor disconnect.
const GUEST_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

/// A connected client.
#[derive(Debug)]
pub struct Guest {
    here: Option<Arc<()>>,
    left: Arc<Notify>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Drop the reference before waking waiters, because they count the remaining references.
        self.here = None;
        self.left.notify_waiters();
    }
}

impl Guests {
    /// Waits until a client leaves. Returns whether none is left to wait for.
    pub async fn one_left(&self) -> bool {
        let left = self.changed.notified();
        Arc::strong_count(&self.here) == 1 || tokio::time::timeout(GUEST_WAIT, left).await.is_err()
    }
}

impl Engine {
    /// Waits until a client has sent a request.
    pub async fn asked(&self) {
        loop {
            let changed = self.guests.changed.notified();
            if self.guests.asked.load(Ordering::Acquire) {
                return;
            }
            changed.await;
        }
    }

    /// Notes that a client has sent a request.
    pub fn was_asked(&self) {
        self.guests.asked.store(true, Ordering::Release);
        self.guests.changed.notify_waiters();
    }

    /// Counts a client as connected while the guest lives.
    pub fn guest(&self) -> Guest {
        Guest { here: Some(self.guests.here.clone()), left: self.guests.changed.clone() }
    }
}
