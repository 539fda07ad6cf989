//! Triggers declared by workflows, and schedules that a separate file binds to workflows. Nothing fires here: these
//! are the declarations and the times at which they are due.

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
    /// The maximum number of concurrent runs of this trigger. `None` means no limit.
    pub runs_max: Option<u32>,
    /// What happens to a firing beyond that limit.
    pub overlap: Overlap,
    pub debounce: Option<Debounce>,
    #[serde(skip)]
    pub span: Span,
}

/// The inputs of the started run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerInput {
    /// One value per parameter.
    Parameters(Bindings),
    /// The whole input.
    Whole(Bound),
    /// The event that fired the trigger, in an envelope with the trigger's id, its source and the time.
    Envelope,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerSource {
    Cron(CronTrigger),
    /// A POST request, signed with `secret`.
    Webhook {
        path: Arc<str>,
        secret: Option<SigningSecret>,
    },
    /// A request that waits for the run's response.
    Http(HttpTrigger),
    /// A message published under a name or a pattern of names.
    Message {
        name: Arc<str>,
    },
    /// A kind provided by a worker.
    External {
        kind: Arc<str>,
        config: Value,
    },
}

impl TriggerSource {
    /// The secret that signs requests to this trigger.
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
    /// Each firing is delayed by a random time up to this.
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
    #[error("invalid cron pattern: {}", .0.message)]
    Pattern(#[from] CronError),
    #[error(transparent)]
    Zone(#[from] UnknownZone),
}

impl Times {
    /// The first instant after the given one, both in microseconds since the Unix epoch.
    pub fn next_micros(&self, after: i64) -> Option<i64> {
        let after = Timestamp::from_microsecond(after).ok()?;
        self.pattern.next_after(after, &self.zone).map(Timestamp::as_microsecond)
    }
}

/// What happens to a firing while the trigger has as many active runs as allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The firing is dropped.
    #[default]
    Skip,
    /// The new run waits for its turn.
    Queue,
    /// The active runs are canceled.
    Cancel,
}

/// Which firings that were missed while Windlass was not running are made up for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    #[default]
    None,
    Last,
    /// The latest ones, up to this number.
    All(u32),
}

impl CatchUp {
    /// How many are made up for by default.
    pub const USUAL: u32 = 100;
}

/// The fields of a pattern and the meaning of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CronSyntax {
    /// Five fields, or six with seconds in front; 0 and 7 are Sunday; a match in either day field is enough.
    House,
    /// Five fields; 0 to 6, Sunday is 0; no names; a match in either day field is enough.
    Posix,
    /// Six or seven fields with seconds in front and the year last; 1 to 7, Sunday is 1; both day fields must match.
    SecondsFirst,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SigningSecret {
    /// A secret declared in the file.
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
    /// How callers should authenticate; a description only.
    pub authentication: Option<Value>,
}

/// Firings in quick succession are combined into one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Debounce {
    /// Quiet time after the last firing.
    pub period: Duration,
    /// The longest time that the first firing waits.
    pub timeout: Option<Duration>,
    /// A dotted path into the payload; each of its values is debounced separately.
    pub key: Option<Arc<str>>,
}

/// One entry of a schedules file: a trigger and the workflow it starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schedule {
    pub workflow: Spanned<Arc<str>>,
    pub trigger: Trigger,
}

/// The parameters that a trigger passes, by name; `None` if it passes a whole input.
impl TriggerInput {
    pub fn parameters(&self) -> Option<&IndexMap<Arc<str>, Bound>> {
        match self {
            Self::Parameters(bindings) => Some(bindings),
            Self::Whole(_) | Self::Envelope => None,
        }
    }
}
