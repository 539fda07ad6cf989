//! The objects of a stream. Those without a number are never stored.

use super::{Event, LogLine, Run, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One object of a stream, the same on every face.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Streamed {
    Event(Box<Event>),
    Line(Box<LogLine>),
    /// The last object: the run as it is now.
    Result(Box<Run>),
    Sign(Sign),
}

/// An object about the stream itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Sign {
    /// Windlass remarks something about the run.
    Notice { code: String, message: String },
    /// A part of the answer that a step is about to give.
    Delta { step: String, path: String, attempt: u32, text: String },
    /// The stream is alive; `seq` is the last event that was sent.
    Heartbeat { at: Time, seq: u64 },
    /// Lines were left out because the client was too slow.
    Dropped { lines: u64 },
    /// The stream ends here; continue after this event.
    Cut { after: u64, reason: CutReason },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CutReason {
    /// Streams end after an hour.
    MaxAge,
    /// The client accepted nothing for too long.
    Slow,
    /// The server is about to end.
    ShuttingDown,
}

impl Streamed {
    /// The number of an event; other objects have none.
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Event(event) => Some(event.seq),
            Self::Line(_) | Self::Result(_) | Self::Sign(_) => None,
        }
    }

    /// What kind of object it is: the name of an event, or the object's `type`.
    pub fn name(&self) -> &str {
        match self {
            Self::Event(event) => &event.event,
            Self::Line(_) => "line",
            Self::Result(_) => "result",
            Self::Sign(Sign::Notice { .. }) => "notice",
            Self::Sign(Sign::Delta { .. }) => "delta",
            Self::Sign(Sign::Heartbeat { .. }) => "heartbeat",
            Self::Sign(Sign::Dropped { .. }) => "dropped",
            Self::Sign(Sign::Cut { .. }) => "cut",
        }
    }
}
