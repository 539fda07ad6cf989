//! An answer that comes when it is durable: awaited by tasks, waited for by threads.

use crate::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// What was asked for is already on its way when this is returned, in the order of the calls; dropping it only means
/// that nobody hears the answer.
#[derive(Debug)]
#[must_use = "nothing is durable before this has answered"]
pub struct Pending<T>(State<T>);

#[derive(Debug)]
enum State<T> {
    Ready(Option<Result<T, Error>>),
    Waiting(oneshot::Receiver<Result<T, Error>>),
}

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Error>>;

impl<T> Pending<T> {
    pub(crate) fn ready(answer: Result<T, Error>) -> Self {
        Self(State::Ready(Some(answer)))
    }

    /// For what could not even be handed over.
    pub fn refused(error: Error) -> Self {
        Self::ready(Err(error))
    }

    pub(crate) fn waiting() -> (Answer<T>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(State::Waiting(receiver)))
    }

    /// Blocks the thread. Not for use inside an asynchronous task: await it there.
    pub fn wait(self) -> Result<T, Error> {
        match self.0 {
            State::Ready(answer) => answer.unwrap_or(Err(Error::Stopped)),
            State::Waiting(receiver) => receiver.blocking_recv().unwrap_or(Err(Error::Stopped)),
        }
    }
}

impl<T: Unpin> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Err(Error::Stopped))),
            State::Waiting(receiver) => {
                Pin::new(receiver).poll(context).map(|answer| answer.unwrap_or(Err(Error::Stopped)))
            }
        }
    }
}
