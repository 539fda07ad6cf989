//! What a script does in place of others: answers of jobs, decisions at gates, signals.

use super::{Driver, Fatal, Planned, SCRIPT};
use crate::report::Dialect;
use crate::report::ids::{self, Name};
use windlass_engine::{GateDecision, Input, Job, Path, StepPhase, Timestamp};
use windlass_executors::{Asker, GateAnswer};
use windlass_ir::Value;

impl Driver {
    pub(super) fn scripted(&self, job: &Job) -> Option<windlass_executors::Answer> {
        self.host.script.as_ref()?;
        let Name { id, plain } = ids::scripted(&self.view, &job.key.path);
        let attempt = job.key.attempt + ids::attempts_before(&self.view, &job.key.path);
        self.host.answer(job, Asker { id: &id, plain: &plain, attempt })
    }

    pub(super) fn plan(&mut self, at: Timestamp, planned: Planned) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), planned);
    }

    /// Gates that were open when the run was taken up.
    pub(super) fn plan_open_gates(&mut self) {
        let asking =
            self.view.steps.iter().filter(|(_, step)| matches!(step.phase, StepPhase::Asking { .. }));
        let open: Vec<Path> = asking.map(|(path, _)| path.clone()).collect();
        open.iter().for_each(|path| self.plan_decision(path));
    }

    /// Signals are counted from the start of the run. One that came before the run was taken up again is not heard twice.
    pub(super) fn plan_signals(&mut self) {
        let (Some(script), Some(started)) = (self.host.script.clone(), self.view.started_at) else { return };
        for (number, signal) in script.signals.iter().enumerate() {
            self.plan(started.plus(signal.at), Planned::Signal(number));
        }
    }

    /// The decision that a gate is given next, if there is one and it is not planned already.
    pub(super) fn scripted_decision(&self, path: &Path) -> Option<(String, usize, GateAnswer)> {
        let script = self.host.script.as_ref()?;
        let Name { id, plain } = ids::name(&self.view, path);
        let number = self.decided.get(&id).copied().unwrap_or_default();
        let answer = script.gates.decision(&id, &plain, number)?.clone();
        Some((id, number, answer))
    }

    pub(super) fn plan_decision(&mut self, path: &Path) {
        let is_planned = |planned: &Planned| matches!(planned, Planned::Decide(other) if other == path);
        if self.agenda.values().any(is_planned) {
            return;
        }
        if let Some((_, _, answer)) = self.scripted_decision(path) {
            self.plan(self.clock.now().plus(answer.after), Planned::Decide(path.clone()));
        }
    }

    pub(super) async fn decide(&mut self, path: Path) -> Result<(), Fatal> {
        let Some((step, number, answer)) = self.scripted_decision(&path) else { return Ok(()) };
        let GateAnswer { choice, by, reason, .. } = answer;
        let by = by.unwrap_or_else(|| "script".into());
        let id = format!("{SCRIPT}{step}-{number}").into();
        let decision = GateDecision { choice, by, reason, form: Value::Null };
        self.decided.insert(step, number + 1);
        // Before what follows from this one, so that it is heard even if the run ends at once. Where all iterations of a gate have one
        // name, the next one is for the next of them.
        if Dialect::of(&self.view) != Dialect::Dcc || path.frames().next().is_none() {
            self.plan_decision(&path);
        }
        if let Err(refused) = self.offer(Input::Decide { id, path, decision }).await? {
            self.notice(refused.to_string());
        }
        Ok(())
    }

    pub(super) async fn signal(&mut self, number: usize) -> Result<(), Fatal> {
        let signal = self.host.script.as_ref().and_then(|script| script.signals.get(number).cloned());
        let Some(signal) = signal else { return Ok(()) };
        let id = format!("{SCRIPT}signal-{number}").into();
        let input =
            Input::Signal { id, name: signal.name, by: "script".into(), value: signal.value, to: None };
        if let Err(refused) = self.offer(input).await? {
            self.notice(refused.to_string());
        }
        Ok(())
    }
}
