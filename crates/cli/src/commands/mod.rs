//! One file per command.

mod backup;
mod budgets;
mod cancel;
mod carry;
mod completions;
mod convert;
mod decide;
mod diff;
mod doctor;
mod eval;
mod events;
pub mod face;
mod fmt;
pub mod follow;
mod gc;
mod graph;
mod inputs;
mod limits;
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
mod triggers;
mod validate;
mod wait;

use crate::answer::{Answer, Status};
use crate::args::Command;
use crate::load::Refusal;
use crate::show::{Screen, Screens, diagnostics};

pub fn run(command: Command, screens: Screens) -> Answer {
    match command {
        Command::Validate(args) => validate::run(&args, &screens),
        Command::Fmt(args) => fmt::run(&args, &screens),
        Command::Plan(args) => plan::run(args, &screens),
        Command::Graph(args) => graph::run(&args, &screens),
        Command::Convert(args) => convert::run(&args, &screens),
        Command::Eval(args) => eval::run(&args, &screens),
        Command::Schema(args) => schema::run(&args),
        Command::Run(args) => run::run(args, &screens),
        Command::Resume(args) => run::resume(args, &screens),
        Command::Retry(args) => retry::run(&args, &screens),
        Command::Test(args) => test::run(&args, &screens),
        Command::Runs(args) => runs::run(args, &screens),
        Command::Show(args) => show::run(&args, &screens),
        Command::Logs(args) => logs::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Diff(args) => diff::run(&args, &screens.stdout),
        Command::Approve(args) => decide::decide(&args, true),
        Command::Reject(args) => decide::decide(&args, false),
        Command::Signal(args) => decide::signal(args),
        Command::Publish(args) => publish::run(args),
        Command::Wait(args) => wait::run(&args, &screens.stderr),
        Command::Serve(args) => serve::run(args, &screens.stderr),
        Command::Limits(args) => limits::run(&args, &screens.stdout),
        Command::Budgets(args) => budgets::run(args, &screens.stdout),
        Command::Cancel(args) => cancel::run(&args),
        Command::Pause(args) => decide::pause(args),
        Command::Triggers(args) => triggers::run(&args, &screens),
        Command::Doctor(args) => doctor::run(&args, &screens.stdout),
        Command::Gc(args) => gc::run(args, &screens.stdout),
        Command::Backup(args) => backup::run(&args),
        Command::Specify(args) => crate::specify::run(args, &screens),
        Command::Completions(args) => completions::run(&args),
    }
}

/// Waits for something that another process may have to answer.
fn block_on<T>(
    folder: &std::path::Path,
    what: impl Future<Output = Result<T, windlass_runtime::Error>>,
) -> Result<T, windlass_runtime::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed = |error: std::io::Error| windlass_runtime::Error::Folder {
        folder: folder.to_owned(),
        cause: error.to_string(),
    };
    runtime.map_err(failed)?.block_on(what)
}

/// Tells the user where a recovered step might run beside what a killed process left of it.
fn remark_on_orphans() {
    if !windlass_runtime::FINDS_ORPHANS {
        crate::answer::remark(
            "this system has no /proc, so Windlass cannot find commands that a killed owner left running; \
             end them before you resume their run",
        );
    }
}

/// Something about a run or its folder was refused, or failed.
fn refused(error: &windlass_runtime::Error) -> Answer {
    let status = match error.code() {
        "owner_gone" => Status::Stopped,
        _ => Status::Refused,
    };
    Answer { stderr: format!("error[{}]: {error}\n", error.code()), ..Answer::new(status) }
}

impl Refusal {
    /// What stands in the way, for people.
    pub fn answer(&self, screen: &Screen) -> Answer {
        let findings = diagnostics::render(&self.findings, &self.sources, self.file.as_deref(), screen);
        Answer { stderr: findings + diagnostics::PAGES, ..Answer::new(Status::Refused) }
    }

    /// The same for people and for a program.
    pub fn answer_with_json(&self, screen: &Screen) -> Answer {
        let first = self.findings.iter().find(|finding| finding.is_error());
        let json = serde_json::json!({
            "type": "refused",
            "error": first.map(|finding| serde_json::json!({
                "code": finding.code,
                "message": finding.message,
                "step": finding.step,
                "field": finding.field,
            })),
            "diagnostics": diagnostics::to_json(&self.findings, &self.sources, self.file.as_deref()),
        });
        Answer { stderr: self.answer(screen).stderr, stdout: format!("{json}\n"), status: Status::Refused }
    }
}
