//! What an executor is given besides its job: the word to stop, where output and notes go, and the caller's surroundings.

use crate::secrets::Secrets;
use indexmap::IndexMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use windlass_engine::JobKey;
use windlass_ir::Value;

#[derive(Clone)]
pub struct Context {
    /// Cancelled when the job is to stop.
    pub abort: CancellationToken,
    /// Cancelled before that when it is because the time of the job is up: then what it reports says what it has come to.
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
#[derive(Clone, Default)]
pub struct Environment {
    pub variables: IndexMap<OsString, OsString>,
    pub directory: PathBuf,
}

/// Names only: secrets of the caller stand among the variables.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.variables.keys().collect();
        f.debug_struct("Environment").field("directory", &self.directory).field("variables", &names).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A line as it was printed, secrets redacted. It ends with its newline, unless it is the last one without or a piece of a
/// very long one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub job: JobKey,
    pub stream: Stream,
    pub bytes: Vec<u8>,
}

/// Where lines go while a job runs. A full channel slows the job down; one that nobody reads any more takes everything.
#[derive(Clone, Debug)]
pub struct Output(Option<mpsc::Sender<Line>>);

impl Output {
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<Line>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self(Some(sender)), receiver)
    }

    /// For a caller who only wants the outcome.
    pub fn nowhere() -> Self {
        Self(None)
    }

    pub async fn send(&self, line: Line) {
        if let Some(sender) = &self.0 {
            // Live output is for whoever looks; that nobody does is no reason to stop the work.
            let _ = sender.send(line).await;
        }
    }
}

/// Something a job wants remembered, and whom to tell once it is durable.
#[derive(Debug)]
pub struct Note {
    pub job: JobKey,
    pub key: Arc<str>,
    pub value: Value,
    /// Dropped unsent when the note is refused, because the job is not outstanding any more.
    pub durable: oneshot::Sender<()>,
}

/// The durable memory of a step.
#[derive(Clone, Debug)]
pub struct Notes(mpsc::Sender<Note>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the note was not kept: the job has been given up or its owner is going away")]
pub struct NotKept;

impl Notes {
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<Note>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self(sender), receiver)
    }

    /// Returns when the note is durable: only then may the job go on to what relies on it. On an error the job should end;
    /// its report will not be taken.
    pub async fn keep(&self, job: &JobKey, key: impl Into<Arc<str>>, value: Value) -> Result<(), NotKept> {
        let (durable, told) = oneshot::channel();
        let note = Note { job: job.clone(), key: key.into(), value, durable };
        self.0.send(note).await.map_err(|_| NotKept)?;
        told.await.map_err(|_| NotKept)
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
    async fn a_note_is_kept_when_the_owner_says_so() {
        let (notes, mut taken) = Notes::channel(1);
        let owner = async {
            let note = taken.recv().await.expect("a note");
            assert_eq!((&*note.key, &note.value), ("turn", &Value::Int(1)));
            note.durable.send(()).expect("the job waits");
        };
        let key = job();
        let (kept, ()) = tokio::join!(notes.keep(&key, "turn", Value::Int(1)), owner);
        assert_eq!(kept, Ok(()));
    }

    #[tokio::test]
    async fn a_refused_note_and_a_gone_owner_are_errors() {
        let (notes, mut taken) = Notes::channel(1);
        let key = job();
        let refuses = async { drop(taken.recv().await) };
        let (kept, ()) = tokio::join!(notes.keep(&key, "turn", Value::Null), refuses);
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
