//! What is done around a run and cannot change it: after its start, and after its end.

use super::state::{Attempt, Stage};
use super::{Run, Turn, render};
use crate::event::{Assignment, Settled, What};
use crate::input::{Effect, Refused};
use crate::job::{Job, Request, RequestBody, Work};
use crate::keys::{JobKey, Path};
use crate::outcome::{Failure, Outcome};
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
    /// Whether a job is one of those around the run, and still waited for.
    pub(super) fn hook_of(&self, job: &JobKey) -> bool {
        let current = self.state().hooks.open.get(&job.path);
        job.run == self.run.id && current.is_some_and(|hook| hook.delivery == job.delivery)
    }

    /// Whatever came of it, the run goes on as it was.
    pub(super) fn hook_reported(&mut self, path: Path) {
        self.settle_hook(path, Outcome::Done(Value::Null));
    }

    fn settle_hook(&mut self, path: Path, outcome: Outcome) {
        let settled = Settled {
            path,
            outcome,
            halts: false,
            fails: false,
            recovered: false,
            abandoned: false,
            undoable: false,
            took: None,
        };
        self.emit(What::Settled(Box::new(settled)));
    }

    pub(super) fn start_hooks(&mut self) {
        self.hooks_at(HookMoment::Start);
    }

    /// The result is fixed: what is to be done after it is done, and then nothing more is written.
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

    fn hooks_at(&mut self, moment: HookMoment) {
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
                // It cannot change the run, but whoever wrote it has to know.
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
