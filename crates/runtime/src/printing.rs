//! Passes the output of jobs to the log and to followers.

use crate::clock::Clock;
use crate::follow::{Followers, Update};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use windlass_engine::{JobKey, Timestamp};
use windlass_executors::{Line, Output, Stream};
use windlass_store::{LogWriter, Printed, Printing};

/// The maximum number of buffered lines. Jobs that print more must wait.
const LINES_AT_ONCE: usize = 256;

/// Creates the output channel for the jobs of a run. The task ends with the last job.
pub(crate) fn channel(followers: Followers, log: Option<LogWriter>) -> (Output, JoinHandle<()>) {
    let (output, lines) = Output::channel(LINES_AT_ONCE);
    (output, tokio::spawn(print(lines, followers, log)))
}

/// Writes lines to the log before passing them to followers, so a follower finds each line in the log.
async fn print(mut lines: mpsc::Receiver<Line>, followers: Followers, mut log: Option<LogWriter>) {
    let (mut batch, mut failed) = (Vec::new(), false);
    while lines.recv_many(&mut batch, LINES_AT_ONCE).await > 0 {
        let at = Clock::Real.now();
        let printed = batch.iter().filter_map(|line| printed(line, at));
        let written = log.as_mut().map_or(Ok(()), |log| log.append(printed));
        if let (Err(error), false) = (&written, failed) {
            let notice = format!("cannot write the log of the run: {error}; the run continues without a log");
            followers.tell(&Update::Notice(notice));
        }
        failed = written.is_err();
        for line in batch.drain(..) {
            followers.room().await;
            followers.tell(&Update::Line(line));
        }
    }
}

/// Converts a line for the log. `None` for output that is only displayed.
fn printed(line: &Line, at: Timestamp) -> Option<Printed> {
    let JobKey { path, attempt, delivery, .. } = line.job.clone();
    let stream = match line.stream {
        Stream::Stdout => Printing::Stdout,
        Stream::Stderr => Printing::Stderr,
        Stream::Answer => return None,
    };
    Some(Printed { path, attempt, delivery, at, stream, bytes: line.bytes.clone(), cut: false })
}
