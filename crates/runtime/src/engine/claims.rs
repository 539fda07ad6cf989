//! Runs that somebody is about to take up or to write to: one at a time each, so that two who want the same run do not both drive
//! it.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use windlass_engine::RunId;

#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: Mutex<HashSet<RunId>>,
    /// Told whenever one is given back.
    left: Notify,
}

impl Claims {
    /// Waits until nobody else has this run.
    pub async fn claim(&self, run: &RunId) -> Claimed<'_> {
        loop {
            // Made before the look, so that whoever leaves in between is heard.
            let left = self.left.notified();
            if self.held().insert(run.clone()) {
                return Claimed { claims: self, run: run.clone() };
            }
            left.await;
        }
    }

    fn held(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Claimed<'c> {
    claims: &'c Claims,
    run: RunId,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.claims.held().remove(&self.run);
        self.claims.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_is_had_by_one_at_a_time_and_others_do_not_wait_for_it() {
        let claims = Claims::default();
        let [one, other] = ["one", "other"].map(|id| RunId::new(id).expect("an id"));
        let first = claims.claim(&one).await;
        let _other = claims.claim(&other).await;
        let mut second = std::pin::pin!(claims.claim(&one));
        let waits = std::future::poll_fn(|cx| std::task::Poll::Ready(second.as_mut().poll(cx).is_pending()));
        assert!(waits.await);
        drop(first);
        second.await;
    }
}
