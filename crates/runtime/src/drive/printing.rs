//! What jobs print and note, on its way to the log, to whoever follows the run, and into the run itself.

use super::{Mail, Told, Update};
use crate::clock::Clock;
use crate::follow::Followers;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use windlass_engine::{Input, JobKey, Timestamp};
use windlass_executors::{Line, Notes, Output, Stream};
use windlass_store::{LogWriter, Printed, Printing};

/// Passes on what jobs print and what they want remembered. Both end with the last job and the driver.
pub(crate) fn channels(
    followers: &Followers,
    sender: &mpsc::UnboundedSender<Mail>,
    log: Option<LogWriter>,
) -> (Output, JoinHandle<()>, Notes) {
    let (output, lines) = Output::channel(LINES_AT_ONCE);
    let printing = tokio::spawn(print(lines, followers.clone(), log));
    let (notes, mut kept) = Notes::channel(16);
    // Held weakly: the mailbox closes when nobody but this is left to write to it.
    let sender = sender.downgrade();
    tokio::spawn(async move {
        while let Some(note) = kept.recv().await {
            let Some(sender) = sender.upgrade() else { return };
            let (reply, answer) = oneshot::channel();
            let input = Input::Noted { job: note.job, key: note.key, value: note.value };
            let told = Told::Input(input, None);
            if sender.send(Mail { told, reply: Some(reply) }).is_ok() && matches!(answer.await, Ok(Ok(()))) {
                let _ = note.durable.send(());
            }
        }
    });
    (output, printing, notes)
}

/// So many lines are on their way at most; then jobs that print have to wait.
const LINES_AT_ONCE: usize = 256;

/// Writes down what jobs print, and then tells whoever follows the run: who is told of a line finds it in the log.
async fn print(mut lines: mpsc::Receiver<Line>, followers: Followers, mut log: Option<LogWriter>) {
    let (mut batch, mut failed) = (Vec::new(), false);
    while lines.recv_many(&mut batch, LINES_AT_ONCE).await > 0 {
        let at = Clock::Real.now();
        let written =
            log.as_mut().map_or(Ok(()), |log| log.append(batch.iter().map(|line| printed(line, at))));
        if let (Err(error), false) = (&written, failed) {
            let notice = format!("what steps print cannot be kept: {error}; the run goes on without");
            followers.tell(&Update::Notice(notice));
        }
        failed = written.is_err();
        for line in batch.drain(..) {
            followers.room().await;
            followers.tell(&Update::Line(line));
        }
    }
}

fn printed(line: &Line, at: Timestamp) -> Printed {
    let JobKey { path, attempt, delivery, .. } = line.job.clone();
    let stream = match line.stream {
        Stream::Stdout => Printing::Stdout,
        Stream::Stderr => Printing::Stderr,
    };
    Printed { path, attempt, delivery, at, stream, bytes: line.bytes.clone(), cut: false }
}
