//! Decides what happens next in a run: a function from inputs to events and effects.
//!
//! This crate has no clock, randomness, threads or files. Time and answers come in through [`Run::handle`], requests
//! go out as [`Effect`]s, and the only state that must be stored is a list of [`Event`]s.

mod coordinator;
mod event;
mod input;
mod job;
mod keep;
mod keys;
mod outcome;
mod run;
mod runs;

pub use coordinator::{
    Address, Amount, Ask, Asker, BudgetState, Came, Claim, Coordinator, CoordinatorAnswer, CoordinatorEffect,
    CoordinatorEvent, CoordinatorInput, CoordinatorRefused, CoordinatorState, CoordinatorTurn,
    CoordinatorWhat, Day, Denial, End, Fired, Firing, Full, Hold, Key, KeyState, Message, Order, Overlap,
    Position as QueuePosition, Subscription, Waiter,
};
pub use event::{
    AddedPlan, Assignment, Decision, Event, IdempotencyKey, Kept, Listening, Question, Reach, Repeated,
    RunBudget, Settled, Shares, Undone, Waiting, What,
};
pub use input::{Choice, Effect, GateDecision, Input, Lineage, Refused, Start};
pub use job::{AssistantAsk, AssistantWork, Job, Request, RequestAuth, RequestBody, Round, Work};
pub use keep::{Renewed, kept, of_action, of_gate, of_step, step_at};
pub use keys::{BadRunId, JobKey, OperationKey, Path, Reason, RunId, Segment, Timestamp};
pub use outcome::{Failure, Outcome, Skip, SkipReason, class};
pub use run::{
    Answer, CHILD, CancelRequest, Contradiction, FailedAttempt, GateVote, HookTrace, Program, Run, RunPhase,
    StepPhase, StepView, Unrunnable, View, budget_of, fits, is_abort, is_raised, says_no,
};
#[cfg(feature = "planted-bugs")]
pub use runs::plant;
pub use runs::{
    After, Begin, Body, Bug, Clock, Execution, Found, Left, Loaded, Mail, NoLimits, Now, Onward,
    Order as RunsOrder, Policy, Presence, Record, Reply, ReplyTo, Resume, Runs, Serves, Still, Wake,
};
