//! What an executor receives besides its job: the cancellation, channels for output and notes, and the caller's
//! environment.

use crate::secrets::Secrets;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use windlass_engine::{Amount, JobKey};
use windlass_ir::Value;

#[derive(Clone)]
pub struct Context {
    /// Canceled when the job must stop.
    pub abort: CancellationToken,
    /// Canceled before that if the job times out: then its report says what it produced.
    pub overdue: CancellationToken,
    pub output: Output,
    pub notes: Notes,
    pub environment: Arc<Environment>,
    pub secrets: Arc<dyn Secrets>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("environment", &self.environment).finish_non_exhaustive()
    }
}

/// Where and with which variables the run was started.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    pub variables: IndexMap<OsString, OsString>,
    pub directory: PathBuf,
}

/// Names only: the variables contain secrets of the caller.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.variables.keys().collect();
        f.debug_struct("Environment").field("directory", &self.directory).field("variables", &names).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
    /// Pieces of a response as it arrives: shown live, never kept in the log.
    Answer,
}

/// A line as printed, with secrets redacted. It ends with its newline, unless it is the last line without one or a
/// piece of a very long one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub job: JobKey,
    pub stream: Stream,
    pub bytes: Vec<u8>,
}

/// Where a job shows its output. A full channel slows the job down; a closed one discards everything.
#[derive(Clone, Debug)]
pub struct Output(Option<mpsc::Sender<Line>>);

impl Output {
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<Line>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self(Some(sender)), receiver)
    }

    /// For a caller that only needs the outcome.
    pub fn nowhere() -> Self {
        Self(None)
    }

    pub async fn send(&self, line: Line) {
        if let Some(sender) = &self.0 {
            // Live output is optional, so a missing viewer does not stop the work.
            let _ = sender.send(line).await;
        }
    }

    /// Streams a piece of a response.
    pub async fn delta(&self, job: &JobKey, text: &str) {
        self.send(Line { job: job.clone(), stream: Stream::Answer, bytes: text.into() }).await;
    }
}

/// A note that a job wants recorded, and whom to notify once it is durable.
#[derive(Debug)]
pub struct Recorded {
    pub job: JobKey,
    pub what: ToRecord,
    /// Dropped unsent if it is refused because the job is no longer outstanding.
    pub durable: oneshot::Sender<()>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ToRecord {
    /// The durable memory of the step, by key.
    Notes(Vec<(Arc<str>, Value)>),
    /// The cost of the job, in addition to what it reported before.
    Spent(Amount),
}

/// The channel from a job to the journal of its run.
#[derive(Clone, Debug)]
pub struct Notes(mpsc::UnboundedSender<Recorded>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the note was not recorded: the job was abandoned or its owner is shutting down")]
pub struct NotKept;

impl Notes {
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Recorded>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Returns when the note is durable: only then may the job continue with work that relies on it. On an error the
    /// job should end; its report will be discarded.
    pub async fn keep(&self, job: &JobKey, key: impl Into<Arc<str>>, value: Value) -> Result<(), NotKept> {
        self.keep_all(job, vec![(key.into(), value)]).await
    }

    /// The same for several notes, which become durable together.
    pub async fn keep_all(&self, job: &JobKey, notes: Vec<(Arc<str>, Value)>) -> Result<(), NotKept> {
        self.record(job, ToRecord::Notes(notes)).await
    }

    /// Adds to the cost of the job. Budgets include it when this returns.
    pub async fn spent(&self, job: &JobKey, used: Amount) -> Result<(), NotKept> {
        self.record(job, ToRecord::Spent(used)).await
    }

    async fn record(&self, job: &JobKey, what: ToRecord) -> Result<(), NotKept> {
        let (durable, kept) = oneshot::channel();
        self.0.send(Recorded { job: job.clone(), what, durable }).map_err(|_| NotKept)?;
        kept.await.map_err(|_| NotKept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{Path, RunId};

    fn job() -> JobKey {
        JobKey { run: RunId::new("r").expect("good"), path: Path::default(), attempt: 1, delivery: 1 }
    }

    #[tokio::test]
    async fn notes_are_recorded_when_the_owner_confirms() {
        let (notes, mut taken) = Notes::channel();
        let expected = vec![("turn".into(), Value::Int(1)), ("session".into(), Value::Int(2))];
        let owner = async {
            let recorded = taken.recv().await.expect("two notes");
            assert_eq!(recorded.what, ToRecord::Notes(expected.clone()));
            recorded.durable.send(()).expect("the job waits");
        };
        let key = job();
        let (kept, ()) = tokio::join!(notes.keep_all(&key, expected.clone()), owner);
        assert_eq!(kept, Ok(()));
    }

    #[tokio::test]
    async fn refused_notes_and_a_missing_owner_are_errors() {
        let (notes, mut taken) = Notes::channel();
        let key = job();
        let refuses = async { drop(taken.recv().await) };
        let (kept, ()) = tokio::join!(notes.spent(&key, Amount::default()), refuses);
        assert_eq!(kept, Err(NotKept));
        drop(taken);
        assert_eq!(notes.keep(&key, "turn", Value::Null).await, Err(NotKept));
    }

    #[test]
    fn values_of_variables_are_never_shown() {
        let variables = IndexMap::from([("API_TOKEN".into(), "hush-hush".into())]);
        let shown = format!("{:?}", Environment { variables, directory: "/tmp".into() });
        assert!(shown.contains("API_TOKEN") && !shown.contains("hush"), "{shown}");
    }
}
