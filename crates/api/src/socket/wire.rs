//! What goes over the socket.

use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_ir::{Plan, RunStatus, Value};
use windlass_runtime::{
    Beginning, Clock, Config, Environment, Error, Event, Host, JobKey, Patience, RunId, Script, Stream,
};

/// The owner's first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The version of the owner.
    pub windlass: String,
    pub api: u32,
}

impl Hello {
    pub fn here() -> Self {
        Self { windlass: env!("CARGO_PKG_VERSION").to_owned(), api: 1 }
    }
}

/// What a client asks for: an operation, or one of the names below.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Call {
    pub call: String,
    pub request: Json,
    /// Who calls.
    #[serde(default)]
    pub user: String,
    /// Where from, for an operation that executes steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Surroundings>,
    /// An idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Reply with a stream of objects.
    #[serde(default)]
    pub stream: bool,
}

impl Call {
    /// A call between processes of the same version.
    pub fn internal(name: &str, request: Json) -> Self {
        Self { call: name.to_owned(), request, user: String::new(), from: None, key: None, stream: false }
    }
}

/// Executes or follows a run; the request is an [`Execute`].
pub(super) const EXECUTE: &str = "runs.execute";

/// Which runs does the owner execute? The reply is an `Executed`.
pub(super) const EXECUTED: &str = "runs.executed";

/// Runs that a process hands to the owner, or wants to follow there. Only between processes of the same version: a plan and the
/// journal's own events travel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execute {
    Start {
        plan: Box<Plan>,
        source: String,
        overrides: String,
        file: Option<PathBuf>,
        inputs: Value,
        by: Option<String>,
        run: Option<RunId>,
        from: Surroundings,
        /// No one follows it.
        detach: bool,
        beginning: Box<Beginning>,
    },
    Resume {
        run: RunId,
        changes: Value,
        by: String,
        from: Surroundings,
    },
    /// Follow a run from the event after this one on, without changing it; from now on without a number.
    Follow {
        run: RunId,
        after: Option<u64>,
        /// Until the run ends, however long it waits.
        wait: bool,
    },
}

/// Where a run is executed from, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Surroundings {
    pub directory: PathBuf,
    /// The variables of the caller. They travel over the socket, which only the same user can open, and are never stored.
    pub variables: Vec<(OsString, OsString)>,
    /// Mock responses.
    pub mock: Option<Value>,
    /// The `windlass.toml` in force.
    pub config: Option<PathBuf>,
    pub virtual_time: bool,
    /// Wait for people too.
    pub wait: bool,
}

impl Surroundings {
    /// Those of this process.
    pub fn here() -> Self {
        Self {
            directory: std::env::current_dir().unwrap_or_default(),
            variables: std::env::vars_os().collect(),
            mock: None,
            config: None,
            virtual_time: false,
            wait: false,
        }
    }

    /// What the jobs of a run are executed with.
    pub fn host(&self) -> Result<Host, Error> {
        let variables = self.variables.iter().cloned().collect();
        let mut host = Host::new(Environment { variables, directory: self.directory.clone() });
        if let Some(mock) = &self.mock {
            host.script = Some(Arc::new(Script::parse(mock).map_err(Error::Script)?));
        }
        if let Some(config) = &self.config {
            host = host.with_config(Config::read(config)?);
        }
        Ok(host)
    }

    pub(crate) fn clock(&self) -> Clock {
        if self.virtual_time { Clock::starting_now() } else { Clock::Real }
    }

    pub(crate) fn patience(&self) -> Patience {
        if self.wait { Patience::Everything } else { Patience::Work }
    }
}

/// What the owner answers, one line after the other. `Reply`, `Done` or `Refused` is the last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Reply(Json),
    Refused(Box<Refusal>),
    /// The run that is executed or followed.
    Executing(RunId),
    Event {
        seq: u64,
        event: Event,
    },
    Line {
        job: JobKey,
        stream: Stream,
        text: String,
    },
    Notice(String),
    Done(RunStatus),
}

impl Answer {
    pub fn refused(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}
