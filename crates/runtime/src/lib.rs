//! Connects engine, store and executors: clock, owner lock, dispatch, recovery. No other crate knows all three.
//!
//! - `engine` opens a data folder and starts, resumes and reads runs; `scheduler` executes them.
//! - `follow` streams events and output to followers. `calls` executes calls of other workflows, which `library` finds.
//! - `clock` is the time of a run, `host` has the executors of its jobs, and `config` reads `windlass.toml`.
//! - `lock` makes one process the owner of a folder, and `ownership` refuses files of other users.
//! - `presence` knows which runs a process executes, `rows` builds the lists of runs, and `ids` names steps.
//! - `retry` determines what a new run keeps of an earlier one, and `triggers` starts runs on a schedule.
//! - `archive` exports and imports runs; `doctor`, `gc` and `backup` maintain a folder.

mod activity;
mod archive;
mod artifacts;
mod backup;
mod calls;
mod clock;
mod config;
mod coordinator;
mod doctor;
mod engine;
mod follow;
mod gc;
mod heads;
mod history;
mod host;
pub mod ids;
mod library;
mod lock;
mod masked;
mod mock;
mod ownership;
#[cfg(test)]
mod plain;
mod presence;
mod printed;
mod printing;
mod retry;
mod rows;
mod scheduler;
mod search;
mod status;
mod tape;
mod triggers;

pub use activity::Activity;
pub use archive::Carried;
pub use backup::{Copied, backup};
pub use clock::Clock;
pub use config::{BadConfig, Config, Fault, Limits, Recover, Runs};
pub use doctor::{Checkup, Finding, accept_older, examine, rebuild, renew_limits};
pub use engine::{Beginning, Engine, Error, Guest, Handle, RETRY_OF, Resuming, Start, new_id};
pub use follow::{Since, Update, Updates};
pub use gc::{KeptRun, Sweep, Swept, SweptRun};
pub use heads::keep_heads_in;
pub use host::Host;
pub use library::{Definition, Reader, Unfound, find as find_workflow, is_disabled};
pub use masked::data;
pub use ownership::{check_folder, check_peer, current_user, user_name};
pub use presence::{AskOwner, Executed};
pub use printed::Output;
pub use retry::{Again, Fate, Forecast, again, only};
pub use scheduler::Patience;
pub use search::upwards;
pub use status::{facts, is_resumable, run_status, while_executed};
pub use triggers::{Parked, PastFiring, Scheduled, Triggers, Unready};

/// The failure classes that Windlass itself uses.
pub const FAILURE_CLASSES: &[&str] = &class::ALL;

pub use windlass_engine::{
    Amount, Asker, Assignment, AssistantAsk, BudgetState, CHILD, Choice, Claim, Contradiction,
    CoordinatorEvent, CoordinatorState, CoordinatorWhat, Decision, Event, FailedAttempt, Failure,
    GateDecision, GateVote, HookTrace, Input, Job, JobKey, Kept, KeyState, Lineage, Outcome, Path, Program,
    Question, Reach, Reason, Refused, RunId, RunPhase, SkipReason, StepPhase, StepView, Timestamp, Undone,
    View, What, Work, class, is_abort, is_raised, says_no,
};
pub use windlass_executors::{
    BoxFuture, Context, Environment, Executor, FINDS_ORPHANS, Line, Problem, Returned, Script, Stream,
    Traits, agent_program,
};
pub use windlass_store::{
    Details, Durability, Entry, Error as StoreError, Logs, Printed, Printing, Query, RowWait, RowWaitKind,
    RunRow, glance, private,
};
