//! One file per command.

mod act;
mod audit;
mod backup;
mod budgets;
mod carry;
mod completions;
mod convert;
mod diff;
mod doctor;
mod eval;
mod events;
mod explain;
pub mod face;
mod fmt;
pub mod follow;
mod gc;
mod graph;
mod init;
mod inputs;
mod limits;
mod list;
mod logs;
mod plan;
mod publish;
mod retry;
pub mod run;
mod runs;
mod schema;
mod serve;
mod several;
mod show;
mod signals;
mod tail;
mod test;
mod tokens;
mod triggers;
mod validate;
mod wait;

use crate::answer::{self, Answer, Refused};
use crate::args::Command;
use crate::data;
use crate::show::Screens;
use std::path::Path;
use windlass_api::{Caller, Code, Context, Perform, Refusal, Remark, admit};

pub use init::names as template_names;

pub fn run(command: Command, screens: Screens) -> Answer {
    let json = command.json();
    match perform(command, &screens) {
        Ok(answer) => answer,
        Err(refused) => Answer::refused(&refused, json, &screens.stderr),
    }
}

fn perform(command: Command, screens: &Screens) -> Result<Answer, Refused> {
    Ok(match command {
        Command::Explain(args) => explain::run(args)?,
        Command::Init(args) => init::run(args, screens)?,
        Command::List(args) => list::run(args, screens)?,
        Command::Validate(args) => validate::run(&args, screens)?,
        Command::Fmt(args) => fmt::run(&args, screens)?,
        Command::Plan(args) => plan::run(args, screens)?,
        Command::Graph(args) => graph::run(&args, screens)?,
        Command::Convert(args) => convert::run(&args, screens)?,
        Command::Eval(args) => eval::run(args, screens)?,
        Command::Schema(args) => schema::run(&args)?,
        Command::Run(args) => run::run(args, screens)?,
        Command::Resume(args) => run::resume(args, screens)?,
        Command::Retry(args) => retry::run(&args, screens)?,
        Command::Test(args) => test::run(&args, screens)?,
        Command::Runs(args) => runs::run(args, screens)?,
        Command::Show(args) => show::run(&args, screens)?,
        Command::Logs(args) => logs::run(&args)?,
        Command::Events(args) => events::run(&args)?,
        Command::Diff(args) => diff::run(&args, &screens.stdout)?,
        Command::Approve(args) => act::decide(args, true)?,
        Command::Reject(args) => act::decide(args, false)?,
        Command::Signal(args) => act::signal(args)?,
        Command::Publish(args) => publish::run(args)?,
        Command::Wait(args) => wait::run(&args, &screens.stderr)?,
        Command::Serve(args) => serve::run(args, &screens.stderr)?,
        Command::Limits(args) => limits::run(&args, &screens.stdout)?,
        Command::Budgets(args) => budgets::run(args, &screens.stdout)?,
        Command::Cancel(args) => act::cancel(args)?,
        Command::Pause(args) => act::pause(args)?,
        Command::Triggers(args) => triggers::run(&args, screens)?,
        Command::Tokens(args) => tokens::run(args, &screens.stdout)?,
        Command::Audit(args) => audit::run(args, &screens.stdout)?,
        Command::Doctor(args) => doctor::run(&args, &screens.stdout)?,
        Command::Gc(args) => gc::run(args, &screens.stdout)?,
        Command::Backup(args) => backup::run(args)?,
        Command::Specify(args) => crate::specify::run(args, screens),
        Command::Completions(args) => completions::run(&args),
    })
}

/// Performs an operation that needs no data folder.
pub fn pure<T: Perform>(request: T) -> Result<T::Reply, Refusal> {
    let nowhere = Path::new("");
    block_on(admit(request, &Context::reading(nowhere, Caller::user(""))))
}

/// Calls an operation on a data folder, here or in the process that owns it.
fn call<T: Perform>(folder: &Path, request: T) -> Result<T::Reply, Refusal> {
    call_as(folder, request, Caller::user(&data::login(None)))
}

/// The same for a caller with an idempotency key.
fn call_once<T: Perform>(folder: &Path, request: T, key: Option<&str>) -> Result<T::Reply, Refusal> {
    call_as(folder, request, Caller::user(&data::login(None)).with_key(key))
}

fn call_as<T: Perform>(folder: &Path, request: T, caller: Caller) -> Result<T::Reply, Refusal> {
    block_on(windlass_api::call(folder, request, caller, answer::remark))
}

/// Waits for a future that may need an answer from another process.
fn block_on<T>(what: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| cannot_start(&error))?.block_on(what)
}

/// A runtime that executes runs.
fn executing() -> Result<tokio::runtime::Runtime, Refusal> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| cannot_start(&error))
}

/// The system refused threads, signals or files that a command needs.
fn cannot_start(error: &std::io::Error) -> Refusal {
    Refusal::new(Code::Storage, format!("Windlass cannot start: {error}"))
}

/// Warns that a recovered step may run beside leftovers of a killed process.
fn remark_on_orphans(remark: Remark) {
    if !windlass_runtime::FINDS_ORPHANS {
        remark(
            "this system has no /proc, so Windlass cannot find commands that a killed owner left running; \
             end them before you resume their run",
        );
    }
}
