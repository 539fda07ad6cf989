//! What happens NEXT in a run: a function from inputs to events and effects.
//!
//! This crate owns decisions. It has no clock, no randomness, no threads and no files: time and answers come in through
//! [`Run::handle`], everything it wants done goes out as [`Effect`]s, and its whole memory is a list of [`Event`]s.

mod event;
mod input;
mod job;
mod keys;
mod outcome;
mod run;
mod view;

pub use event::{Assignment, Decision, Event, Question, What};
pub use input::{Effect, GateDecision, Input, Refused};
pub use job::{Job, Work};
pub use keys::{BadRunId, JobKey, OperationKey, Path, Reason, RunId, Segment, TimerKey, Timestamp};
pub use outcome::{Failure, Outcome, Skip, SkipReason, class};
pub use run::{Answer, Program, Run, Unrunnable, status_word};
pub use view::{RunPhase, StepPhase, StepView, View};
