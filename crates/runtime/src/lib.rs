//! The loop that joins engine, store and executors: clock, owner lock, dispatch, recovery. The only place where they meet.
//!
//! `engine` opens a data folder and starts or takes up runs, `drive` is the life of one run, `follow` who hears of it, `calls` the runs that it
//! calls and `library` where their workflows are found, `clock` its time, `host` what
//! its jobs are done with, `config` what `windlass.toml` adds to that, `lock` makes one process the owner of a folder, `ownership` refuses files of other users, `search` says how far up a project goes, `rows` what lists of runs show, `report` a run
//! as its user sees it, `ids` what its steps are called, `presence` which runs are executed, `retry` what a new run takes over of an earlier one, `archive` and `tables` export runs, `triggers` starts runs by the clock, `doctor`, `gc` and `backup` look after a folder.

mod archive;
mod artefacts;
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
mod mock;
mod owner;
mod ownership;
#[cfg(test)]
mod plain;
mod presence;
mod printed;
mod printing;
pub mod report;
mod retry;
mod rows;
mod scheduler;
mod search;
mod tables;
mod tape;
mod triggers;

pub use archive::Carried;
pub use backup::{Copied, backup};
pub use clock::Clock;
pub use config::{BadConfig, Config, Fault, Limits, Recover, Runs};
pub use doctor::{Checkup, Finding, accept_older, examine, rebuild, renew_limits};
pub use engine::{Beginning, Engine, Error, Handle, RETRY_OF, Start, new_id};
pub use follow::{Since, Update, Updates};
pub use gc::{KeptRun, Sweep, Swept, SweptRun};
pub use heads::keep_heads_in;
pub use host::Host;
pub use library::{Definition, Reader, Unfound, find as find_workflow, is_disabled};
pub use lock::Lock;
pub use owner::{Client, Door, Following, Listener, Order, Report, Request, Surroundings};
pub use ownership::{current_user, user_name};
pub use presence::Executed;
pub use printed::Output;
pub use retry::{Again, Fate, Forecast, again, only};
pub use scheduler::Patience;
pub use search::upwards;
pub use tables::Tables;
pub use triggers::{Parked, PastFiring, Scheduled, Triggers, Unready};

/// The failure classes that Windlass itself uses.
pub const FAILURE_CLASSES: &[&str] = &windlass_engine::class::ALL;

pub use windlass_engine::{
    Asker, Choice, Claim, CoordinatorEvent, CoordinatorState, CoordinatorWhat, Decision, Event, Failure,
    GateDecision, Input, Job, Kept, Lineage, Outcome, Path, Program, Reach, Refused, RunId, RunPhase,
    StepPhase, StepView, Timestamp, View, What, Work, is_abort, is_raised, says_no,
};
pub use windlass_executors::{
    BoxFuture, Context, Environment, Executor, FINDS_ORPHANS, Line, Problem, Returned, Script, Stream, Traits,
};
pub use windlass_store::{
    Durability, Error as StoreError, LogReader, Logs, Lsn, Printed, Printing, Query, RunRow, glance, private,
};
