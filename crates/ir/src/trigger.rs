//! What starts runs by itself: the triggers that a workflow declares, and the schedules that a file of their own binds to
//! workflows. Nothing here fires: this is what was declared, and when it would be due.

use crate::cron::{Cron, CronError};
use crate::policy::Bindings;
use crate::source::{Span, Spanned};
use crate::time::Duration;
use crate::value::Value;
use crate::workflow::Bound;
use crate::zone::{UnknownZone, zone};
use indexmap::IndexMap;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trigger {
    pub id: Option<Spanned<Arc<str>>>,
    pub enabled: bool,
    pub source: TriggerSource,
    pub input: TriggerInput,
    /// Runs of this trigger at once. None is no limit.
    pub runs_max: Option<u32>,
    /// What becomes of a fire beyond that.
    pub overlap: Overlap,
    pub debounce: Option<Debounce>,
    #[serde(skip)]
    pub span: Span,
}

/// What the run is started with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerInput {
    /// One value per parameter.
    Parameters(Bindings),
    /// The whole input.
    Whole(Bound),
    /// What fired it, in an envelope with the trigger's id, its source and the time.
    Envelope,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerSource {
    Cron(CronTrigger),
    /// A POST request; `secret` is what signs it.
    Webhook {
        path: Arc<str>,
        secret: Option<SigningSecret>,
    },
    /// A request that waits for the run's answer.
    Http(HttpTrigger),
    /// Something published under a name or a pattern of names.
    Message {
        name: Arc<str>,
    },
    /// A kind that a worker brings.
    External {
        kind: Arc<str>,
        config: Value,
    },
}

impl TriggerSource {
    /// What signs the requests that fire it.
    pub fn secret(&self) -> Option<&SigningSecret> {
        match self {
            Self::Webhook { secret, .. } | Self::Http(HttpTrigger { secret, .. }) => secret.as_ref(),
            Self::Cron(_) | Self::Message { .. } | Self::External { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CronTrigger {
    pub pattern: Spanned<Arc<str>>,
    pub syntax: CronSyntax,
    pub timezone: Option<Arc<str>>,
    /// Each fire is put off by a random time up to this.
    pub jitter: Option<Duration>,
    pub catch_up: CatchUp,
}

impl CronTrigger {
    /// When it is due, in its zone.
    pub fn times(&self) -> Result<Times, BadTimes> {
        let zone = self.timezone.as_deref().map_or(Ok(TimeZone::UTC), zone)?;
        Ok(Times { pattern: Cron::parse(&self.pattern.value, self.syntax)?, zone })
    }
}

/// The instants at which a clock fires.
#[derive(Clone, Debug)]
pub struct Times {
    pattern: Cron,
    zone: TimeZone,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum BadTimes {
    #[error("the pattern is wrong: {}", .0.message)]
    Pattern(#[from] CronError),
    #[error(transparent)]
    Zone(#[from] UnknownZone),
}

impl Times {
    /// The first one after an instant, both in microseconds since the Unix epoch.
    pub fn next_micros(&self, after: i64) -> Option<i64> {
        let after = Timestamp::from_microsecond(after).ok()?;
        self.pattern.next_after(after, &self.zone).map(Timestamp::as_microsecond)
    }
}

/// What becomes of a fire while as many runs of its trigger as there may be are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Nothing is started.
    #[default]
    Skip,
    /// The new run waits for its turn.
    Queue,
    /// The runs that are under way are told to stop.
    Cancel,
}

/// Which of the fires that were missed, because nobody was there, are made up for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    #[default]
    None,
    Last,
    /// The latest ones, up to so many.
    All(u32),
}

impl CatchUp {
    /// How many are made up for where nothing else is said.
    pub const USUAL: u32 = 100;
}

/// Which fields a pattern has and what its numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CronSyntax {
    /// Five fields, or six with seconds in front; 0 and 7 are Sunday; either of the two day fields may match.
    House,
    /// Five fields; 0 to 6 from Sunday; no names; either of the two day fields may match.
    Posix,
    /// Six or seven fields with seconds in front and the year last; 1 to 7 from Sunday; both day fields must match.
    SecondsFirst,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SigningSecret {
    /// A secret that the file declares.
    Declared(Spanned<Arc<str>>),
    /// A variable of the server's environment.
    Variable(Arc<str>),
    /// Written in the file itself.
    Literal(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HttpTrigger {
    pub path: Arc<str>,
    pub method: Arc<str>,
    pub timeout: Option<Duration>,
    pub body_bytes_max: Option<u64>,
    pub secret: Option<SigningSecret>,
    pub idempotency_header: Option<Arc<str>>,
    /// How callers are told to authenticate; a description only.
    pub authentication: Option<Value>,
}

/// Fires that follow each other are gathered into one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Debounce {
    /// Quiet time after the last one.
    pub period: Duration,
    /// The longest time that the first one waits.
    pub timeout: Option<Duration>,
    /// A dotted path into what fired; each value of it is gathered apart.
    pub key: Option<Arc<str>>,
}

/// One entry of a schedules file: a trigger and the workflow it starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schedule {
    pub workflow: Spanned<Arc<str>>,
    pub trigger: Trigger,
}

/// The parameters that a trigger gives, by name; none when it gives a whole input.
impl TriggerInput {
    pub fn parameters(&self) -> Option<&IndexMap<Arc<str>, Bound>> {
        match self {
            Self::Parameters(bindings) => Some(bindings),
            Self::Whole(_) | Self::Envelope => None,
        }
    }
}
