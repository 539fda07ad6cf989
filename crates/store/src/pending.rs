//! A result that arrives later: tasks await it, threads block on it.

use crate::error::Error;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// The work is already in progress when a call returns this, in the order of the calls. Dropping it only discards the
/// result.
#[must_use = "nothing is durable before this resolves"]
pub struct Pending<T>(State<T>);

enum State<T> {
    Ready(Option<Result<T, Error>>),
    Waiting(Arc<Slot<T>>),
}

/// Holds the result until it is taken. Tokio's oneshot channel does not work here because it refuses to block inside
/// a runtime.
struct Slot<T>(Mutex<Filling<T>>);

struct Filling<T> {
    answer: Option<Result<T, Error>>,
    waker: Option<Waker>,
}

impl<T> Slot<T> {
    /// Held only within a single call.
    fn lock(&self) -> MutexGuard<'_, Filling<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the result. Dropping it unsent reports that the store has stopped.
pub(crate) struct Answer<T>(Arc<Slot<T>>);

impl<T> Answer<T> {
    pub(crate) fn send(self, answer: Result<T, Error>) {
        self.fill(answer);
    }

    fn fill(&self, answer: Result<T, Error>) {
        let mut slot = self.0.lock();
        if slot.answer.is_none() {
            slot.answer = Some(answer);
        }
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.fill(Err(Error::Stopped));
    }
}

impl<T> Pending<T> {
    pub(crate) fn ready(answer: Result<T, Error>) -> Self {
        Self(State::Ready(Some(answer)))
    }

    /// For a call that failed before its work began.
    pub fn refused(error: Error) -> Self {
        Self::ready(Err(error))
    }

    pub(crate) fn waiting() -> (Answer<T>, Self) {
        let slot = Arc::new(Slot(Mutex::new(Filling { answer: None, waker: None })));
        (Answer(slot.clone()), Self(State::Waiting(slot)))
    }

    /// Blocks the thread until the result arrives. Asynchronous code awaits it instead.
    pub fn wait(self) -> Result<T, Error> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let (mut pending, mut context) = (pin!(self), Context::from_waker(&waker));
        loop {
            match pending.as_mut().poll(&mut context) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The answer is never pinned.
impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Err(Error::Stopped))),
            State::Waiting(slot) => {
                let mut slot = slot.lock();
                match slot.answer.take() {
                    Some(answer) => Poll::Ready(answer),
                    None => {
                        slot.waker = Some(context.waker().clone());
                        Poll::Pending
                    }
                }
            }
        }
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pending")
    }
}
