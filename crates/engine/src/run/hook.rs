//! Hooks, which run after the start and after the end of a run and cannot change it.

use super::state::{Attempt, Stage};
use super::{Run, Turn, render};
use crate::event::{Assignment, Settled, What};
use crate::input::{Effect, Refused};
use crate::job::{Job, Request, RequestBody, Work};
use crate::keys::{JobKey, Path};
use crate::outcome::{Failure, Outcome, class};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::value::Sealable;
use windlass_ir::workflow::{Hook, HookAction, HookMoment, ShellOutput};

impl Run {
    pub(super) fn hook_job(&self, path: &Path, attempt: &Attempt) -> Job {
        Job {
            key: self.job_key(path, attempt),
            step: path.segments().first().map_or_else(|| "".into(), |segment| segment.name.clone()),
            work: attempt.assignment.clone(),
            secrets: self.program.plan.secrets.clone().into(),
            timeout: None,
            notes: IndexMap::new(),
            round: None,
            feedback: None,
            rules: self.program.plan.semantics,
        }
    }
}

impl Turn<'_> {
    /// Whether a job belongs to a hook that is still open.
    pub(super) fn hook_of(&self, job: &JobKey) -> bool {
        let current = self.state().hooks.open.get(&job.path);
        job.run == self.run.id && current.is_some_and(|hook| hook.delivery == job.delivery)
    }

    /// Settles a hook. Its outcome is recorded and does not affect the run.
    pub(super) fn hook_reported(&mut self, path: Path, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => Outcome::Done(Value::Null),
            Outcome::Failed(_) | Outcome::Cancelled(_) => outcome,
        };
        self.settle_hook(path, outcome);
    }

    /// A hook is dispatched only once.
    pub(super) fn hook_lost(&mut self, path: Path) {
        let failure = Failure::new(class::LOST, "the process that ran the hook has ended");
        self.settle_hook(path, Outcome::Failed(failure));
    }

    fn settle_hook(&mut self, path: Path, outcome: Outcome) {
        self.emit(What::Settled(Box::new(Settled::new(path, outcome))));
    }

    /// Runs the hooks for the outcome of the run, then closes the journal.
    pub(super) fn end_hooks(&mut self) -> bool {
        let Stage::Concluded(outcome) = &self.state().stage else { return false };
        let outcome = outcome.clone();
        if !self.state().hooks.ended {
            let before = self.answer.events.len();
            match &outcome {
                Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => {
                    self.hooks_at(HookMoment::Complete);
                }
                Outcome::Failed(_) => self.hooks_at(HookMoment::Failure),
                Outcome::Cancelled(_) => {}
            }
            if self.answer.events.len() > before {
                return true;
            }
        }
        if !self.state().hooks.open.is_empty() || self.run.is_reopenable(&outcome) {
            return false;
        }
        self.emit(What::Closed);
        true
    }

    /// Closes a run that could still be reopened.
    pub(super) fn close(&mut self) -> Result<(), Refused> {
        if !self.state().hooks.open.is_empty() {
            return Err(Refused::NotEnded);
        }
        if matches!(self.state().stage, Stage::Concluded(_)) {
            self.emit(What::Closed);
        }
        Ok(())
    }

    pub(super) fn hooks_at(&mut self, moment: HookMoment) {
        let program = self.run.program.clone();
        let word = match moment {
            HookMoment::Start => "on_start",
            HookMoment::Complete => "on_complete",
            HookMoment::Failure => "on_failure",
        };
        for hook in program.plan.hooks.iter().filter(|hook| hook.on == moment) {
            let path = Path::hook(word, self.state().hooks.begun);
            let assignment = match self.hook_work(hook) {
                Ok(assignment) => Some(Arc::new(assignment)),
                // The failure cannot change the run, but its record tells the author about it.
                Err(failure) => {
                    self.settle_hook(path, Outcome::Failed(failure));
                    continue;
                }
            };
            self.emit(What::Scheduled {
                path: path.clone(),
                attempt: 1,
                delivery: 1,
                assignment,
                deadline: None,
            });
            if let Some(hook) = self.state().hooks.open.get(&path) {
                let job = self.run.hook_job(&path, hook);
                self.answer.effects.push(Effect::Dispatch(Box::new(job)));
            }
        }
    }

    fn hook_work(&self, hook: &Hook) -> Result<Assignment, Failure> {
        let sight = self.inner_sight(None)?;
        let work = match &hook.action {
            HookAction::Notify(whom) => Work::Notify { whom: sight.value(whom)? },
            HookAction::Run(command) => Work::Shell {
                command: sight.value(command)?,
                cwd: None,
                stdin: None,
                output: ShellOutput::Text,
                shell: hook.shell.clone(),
            },
            HookAction::Webhook(url) => {
                let about = Value::map([
                    ("run", Value::text(self.run.id.as_str())),
                    ("workflow", Value::Text(self.run.program.plan.header.id.clone())),
                ]);
                let nothing = || Sealable(Value::map::<&str>([]));
                Work::Http(Box::new(Request {
                    method: "POST".into(),
                    url: Sealable(sight.value(url)?),
                    headers: nothing(),
                    query: nothing(),
                    body: RequestBody::Json(Sealable(about)),
                    auth: None,
                    expect: Vec::new(),
                }))
            }
        };
        let env = render::variables(&sight.env);
        Ok(Assignment { input: Value::Null, work, env, key: None, claims: Vec::new() })
    }
}
