//! `builtin`: functions of Spec Kit, done by the programs that it would use: `specify` and `gh`.

mod github;
mod init;

use crate::children::Children;
use crate::context::Context;
use crate::executor::{BoxFuture, Executor, Returned, Traits};
use crate::process::{Ended, GRACE, Prepared, check_directory, surround};
use crate::secrets::Unsealer;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_ir::Value;
use windlass_ir::value::Map;
use windlass_ir::workflow::BuiltinKind;

/// Of each stream.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Sets up Spec Kit projects and adds labels on GitHub. A missing program is a failure of class `not_runnable`.
#[derive(Clone, Debug)]
pub struct Builtins {
    /// How long a program may take to end after SIGTERM before it is killed.
    pub grace: Duration,
    /// Where process groups are recorded, so that a later owner can end what a crash of this one leaves.
    pub children: Option<Arc<Children>>,
}

impl Default for Builtins {
    fn default() -> Self {
        Self { grace: GRACE, children: None }
    }
}

impl Executor for Builtins {
    fn takes(&self, work: &Work) -> bool {
        Self::does(work)
    }

    fn traits(&self, _: &Work) -> Traits {
        Traits { process: true, ..Traits::default() }
    }

    fn start(&self, job: Job, context: Context) -> BoxFuture<'_, Returned> {
        Box::pin(async move { self.perform(&job, &context).await.unwrap_or_else(Outcome::Failed).into() })
    }
}

impl Builtins {
    /// Whether this executor handles it.
    pub fn does(work: &Work) -> bool {
        match work {
            Work::Builtin { what: BuiltinKind::InitProject | BuiltinKind::GithubAddLabel, .. } => true,
            Work::Builtin { what: BuiltinKind::Respond, .. }
            | Work::Agent { .. }
            | Work::Shell { .. }
            | Work::Tool { .. }
            | Work::Task { .. }
            | Work::Http(_)
            | Work::Call { .. }
            | Work::Assistant(_)
            | Work::Notify { .. } => false,
        }
    }

    async fn perform(&self, job: &Job, context: &Context) -> Result<Outcome, Failure> {
        check_directory(&context.environment.directory)?;
        let Work::Builtin { what, args } = &job.work.work else {
            return Err(Failure::new(class::ERROR, format!("`{}` is not a builtin step", job.step)));
        };
        match what {
            BuiltinKind::InitProject => self.init(args, job, context).await,
            BuiltinKind::GithubAddLabel => self.add_label(args, job, context).await,
            BuiltinKind::Respond => Err(Failure::new(
                class::ERROR,
                "there is no executor that responds to the request that started \
                    the run",
            )),
        }
    }

    /// Runs one program in the folder where the run was started.
    async fn program(
        &self,
        program: &Path,
        arguments: &[&str],
        stdin: Option<Arc<str>>,
        (job, context): (&Job, &Context),
    ) -> Result<Ended, Failure> {
        let mut unsealer = Unsealer::new(&*context.secrets);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&context.environment.directory);
        surround(&mut command, job, &context.environment, &mut unsealer, self.children.as_deref())?;
        let prepared = Prepared {
            command,
            stdin,
            redactor: unsealer.redactor(&job.secrets),
            stdout_bytes_max: OUTPUT_BYTES_MAX,
            stderr_bytes_max: OUTPUT_BYTES_MAX,
            prints_data: true,
            may_leave: false,
            grace: self.grace,
            children: self.children.as_deref(),
            too_long: "the values of the step are too long for a command line",
        };
        prepared.run(job, context).await
    }
}

fn broken(field: &'static str, message: String) -> Failure {
    Failure::new(class::CONTRACT_VIOLATION, message).in_field(field)
}

fn with_outputs(failure: Failure, outputs: Map) -> Failure {
    Failure { detail: Some(Value::Map(Arc::new(outputs))), ..failure }
}
