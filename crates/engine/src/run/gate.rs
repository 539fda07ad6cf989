//! Gates: who may decide, the effect of a decision, and timeouts.

use super::Turn;
use super::program::{option_of, says_no};
use super::records::{self, Verdict};
use super::state::{Phase, Place};
use crate::event::{Decision, Kept, Question, Repeated, What};
use crate::input::{Choice, GateDecision, Refused};
use crate::keys::{Path, Reason};
use crate::outcome::{Failure, Outcome, class};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::{GateRule, GateShape, StepId};
use windlass_ir::plan::PlanStep;
use windlass_ir::value::Map;
use windlass_ir::workflow::{FormField, Gate, Kind, OnReject, OnTimeout};

/// The actors of decisions made by an input and by a timeout.
const BY_INPUT: &str = "input";
const BY_TIMEOUT: &str = "timeout";

/// A valid decision.
struct Made {
    id: Arc<str>,
    choice: Arc<str>,
    by: Arc<str>,
    reason: Option<Arc<str>>,
    form: Map,
}

impl Turn<'_> {
    pub(super) fn start_gate(&mut self, place: Place, step: &PlanStep, gate: &Gate) -> Result<(), Failure> {
        let question = self.question(place, step, gate, None)?;
        let kept = self.state().kept.get(&self.at(place).path).cloned();
        let plan = &self.program(place).plan;
        let same =
            |kept: &Arc<Kept>| kept.unchanged || kept.seen == crate::keep::of_gate(plan, step, &question);
        if let Some(kept) = kept.filter(same).filter(|_| !self.has_verdict(place, gate)) {
            // An earlier run asked the same question and received a decision.
            self.settle(place, kept.outcome.clone());
            return Ok(());
        }
        self.ask(place, gate, question);
        self.take_verdict(place, gate)
    }

    /// Whether the gate's decision input has a value.
    fn has_verdict(&self, place: Place, gate: &Gate) -> bool {
        let Some(name) = &gate.verdict_input else { return false };
        match self.state().unit(Some(place)).inputs.get(&name.value) {
            None | Some(Value::Null) => false,
            Some(Value::Text(word)) => !word.is_empty(),
            Some(_) => true,
        }
    }

    fn question(
        &self,
        place: Place,
        step: &PlanStep,
        gate: &Gate,
        empties: Option<Arc<str>>,
    ) -> Result<Question, Failure> {
        let sight = self.sight(Some(place))?;
        Ok(Question {
            message: sight.optional(gate.message.as_ref())?,
            show_file: sight.optional(gate.show_file.as_ref())?,
            input: sight.inputs(step)?,
            on_timeout: gate.on_timeout,
            empties,
        })
    }

    fn ask(&mut self, place: Place, gate: &Gate, question: Question) {
        let path = self.path(place);
        self.emit(What::Entered { path: path.clone(), decision: Decision::Gate(Box::new(question)) });
        if let Some(timeout) = gate.timeout {
            self.emit(What::TimerSet { path, reason: Reason::Wait, until: self.now.plus(timeout) });
        }
    }

    fn gate_at(&self, place: Place) -> Option<Gate> {
        match self.state().kind(place) {
            Kind::Gate(gate) => Some(gate.clone()),
            _ => None,
        }
    }

    /// Decides with the value of the gate's decision input, if it has one.
    fn take_verdict(&mut self, place: Place, gate: &Gate) -> Result<(), Failure> {
        let Some(name) = &gate.verdict_input else { return Ok(()) };
        let given = self.state().unit(Some(place)).inputs.get(&name.value).cloned().unwrap_or(Value::Null);
        let word = match given {
            Value::Null => return Ok(()),
            Value::Text(word) if word.is_empty() => return Ok(()),
            Value::Text(word) => word,
            other => {
                let message = format!("the input `{}` must be text, but it is {}", name.value, other.kind());
                return Err(self.no_verdict(place, gate, message));
            }
        };
        let Some(choice) = option_of(gate, &Choice::Option(word.clone())) else {
            let options = gate.options.join(", ");
            let message = format!("`{word}` of the input `{}` is none of the options: {options}", name.value);
            return Err(self.no_verdict(place, gate, message));
        };
        let path = self.path(place);
        let id = format!("{BY_INPUT}:{path}").into();
        let form = if says_no(&choice) { Map::new() } else { defaults(gate) };
        self.decide(place, gate, Made { id, choice, by: BY_INPUT.into(), reason: None, form });
        Ok(())
    }

    fn no_verdict(&self, place: Place, gate: &Gate, message: String) -> Failure {
        let detail = records::undecided(self.state(), place, gate);
        Failure { detail, ..Failure::new(class::CONTRACT_VIOLATION, message).in_field("verdict_input") }
    }

    /// Checks the decision inputs of open gates after the inputs changed.
    pub(super) fn look_at_verdicts(&mut self) {
        for place in self.state().index.asking.clone() {
            let Some(gate) = self.gate_at(place).filter(|_| !self.state().index.stopping.contains(&place))
            else {
                continue;
            };
            if let Err(failure) = self.ask_again(place, &gate).and_then(|()| self.take_verdict(place, &gate))
            {
                self.settle(place, Outcome::Failed(failure));
            }
        }
    }

    /// Asks again at an open gate when the run resumes, if the dialect requires it.
    fn ask_again(&mut self, place: Place, gate: &Gate) -> Result<(), Failure> {
        let program = self.program(place);
        if program.plan.semantics.gates == GateRule::AskAgain {
            let question = self.question(place, program.step(self.at(place).step), gate, None)?;
            self.ask(place, gate, question);
        }
        Ok(())
    }

    /// The reply to a decision that is already recorded: the first reply got lost, or someone else decided first.
    pub(super) fn known_decision(&self, id: &Arc<str>, path: &Path) -> Result<Option<()>, Refused> {
        let Some(known) = self.state().decisions.get(path) else { return Ok(None) };
        if known.iter().any(|(known, _)| known == id) {
            return Ok(Some(()));
        }
        // A reopened gate asks again, but a decision with a known id does not count twice.
        let open = self.state().find(path).is_some_and(|place| !self.at(place).is_settled());
        match known.last() {
            Some((_, by)) if !open => Err(Refused::AlreadyDecided { path: path.clone(), by: by.clone() }),
            Some(_) | None => Ok(None),
        }
    }

    pub(super) fn decided(
        &mut self,
        id: &Arc<str>,
        path: &Path,
        decision: GateDecision,
    ) -> Result<(), Refused> {
        if self.known_decision(id, path)?.is_some() {
            return Ok(());
        }
        let place = self.state().find(path).ok_or_else(|| Refused::NoGate(path.clone()))?;
        let (Phase::Gate(asking), Some(gate)) = (&self.at(place).phase, self.gate_at(place)) else {
            return Err(Refused::NoGate(path.clone()));
        };
        let GateDecision { choice, by, reason, form } = decision;
        if !gate.approvers.is_empty() && !gate.approvers.contains(&by) {
            let approvers = gate.approvers.clone();
            return Err(Refused::NotAnApprover { path: path.clone(), by, approvers });
        }
        if !gate.self_approval && self.state().by.as_ref() == Some(&by) {
            return Err(Refused::OwnRun { path: path.clone(), by });
        }
        if asking.votes.iter().any(|(voter, _)| *voter == by) {
            return Err(Refused::AlreadyDecided { path: path.clone(), by });
        }
        let Some(choice) = option_of(&gate, &choice) else {
            let choice = match choice {
                Choice::Approve => "approve".into(),
                Choice::Reject => "reject".into(),
                Choice::Option(word) => word,
            };
            let options = gate.options.clone();
            return Err(Refused::NoSuchOption { path: path.clone(), choice, options });
        };
        let form = match says_no(&choice) {
            false => self.filled_in(&gate, path, place, &form)?,
            true => Map::new(),
        };
        self.decide(place, &gate, Made { id: id.clone(), choice, by, reason, form });
        Ok(())
    }

    /// Records a decision and its consequences.
    fn decide(&mut self, place: Place, gate: &Gate, made: Made) {
        let Made { id, choice, by, reason, form } = made;
        let approved = !says_no(&choice);
        let verdict = Verdict { choice: &choice, approved, by: &by, reason: reason.as_ref(), form: &form };
        let value = records::decided(self.state(), place, gate, verdict);
        let path = self.path(place);
        self.emit(What::Decided { id, path, by: by.clone(), value: value.clone() });
        if approved {
            let votes = match &self.at(place).phase {
                Phase::Gate(asking) => asking.votes.len(),
                _ => 0,
            };
            if &*by == BY_INPUT || votes >= gate.quorum as usize {
                self.settle(place, Outcome::Done(value));
            }
            return;
        }
        let message = match self.state().program(place).shapes().gate {
            GateShape::Approval => records::denied(reason.as_deref().unwrap_or("unspecified")),
            GateShape::Decision | GateShape::Question | GateShape::Description => {
                reason.unwrap_or_else(|| format!("rejected by {by}").into())
            }
        };
        self.rejected(place, gate, &by, value, message);
    }

    fn rejected(&mut self, place: Place, gate: &Gate, by: &str, value: Value, message: Arc<str>) {
        let failure = |detail: Value| {
            Outcome::Failed(Failure {
                detail: Some(detail),
                ..Failure::new(class::GATE_REJECTED, message.clone())
            })
        };
        match &gate.on_reject {
            OnReject::Fail => self.settle(place, failure(value)),
            OnReject::Abort => {
                let aborted = Value::map([("aborted", Value::Bool(true))]);
                self.settle(place, failure(super::merged(&value, &aborted)));
            }
            OnReject::Skip => self.settle(place, Outcome::Done(value)),
            OnReject::Retry => {
                let program = self.program(place);
                let step = program.step(self.at(place).step);
                let input = gate.verdict_input.as_ref().filter(|_| by == BY_INPUT);
                let empties = input.map(|name| name.value.clone());
                match self.question(place, step, gate, empties) {
                    Ok(question) => self.ask(place, gate, question),
                    Err(failure) => self.settle(place, Outcome::Failed(failure)),
                }
            }
            OnReject::Back { to, times_max } => {
                let may = self.at(place).sent_back < *times_max;
                match self.way_back(place, &to.value).filter(|_| may) {
                    Some(steps) => {
                        let gate_id = self.state().program(place).step(self.at(place).step).id.clone();
                        let rejection =
                            Failure { detail: Some(value), ..Failure::new(class::GATE_REJECTED, message) };
                        let because = super::state::failure_value(&gate_id, &rejection);
                        let gate = self.path(place);
                        self.emit(What::SentBack { gate, steps, because });
                    }
                    None => self.settle(place, failure(value)),
                }
            }
        }
    }

    /// The steps from a dependency of the gate up to the gate itself, in file order.
    fn way_back(&self, gate: Place, to: &str) -> Option<Vec<Repeated>> {
        let program = self.state().program(gate);
        let own = self.at(gate).step;
        let mut before: HashSet<StepId> = HashSet::from([own]);
        let mut queue = vec![own];
        while let Some(step) = queue.pop() {
            queue.extend(program.step(step).needs.iter().filter(|need| before.insert(**need)));
        }
        let target = before.iter().copied().find(|step| &*program.step(*step).id == to)?;
        let mut after: HashSet<StepId> = HashSet::from([target]);
        let mut queue = vec![target];
        while let Some(step) = queue.pop() {
            queue.extend(program.dependents(step).iter().filter(|next| after.insert(**next)));
        }
        let mut between: Vec<StepId> = before.intersection(&after).copied().collect();
        between.sort_unstable();
        let places = between.into_iter().map(|step| self.state().beside(gate, step));
        places
            .map(|place| Some(Repeated { path: self.path(place?), pass: self.at(place?).pass + 1 }))
            .collect()
    }

    /// The fields of the form with defaults filled in, each checked against its type and its choices.
    fn filled_in(&self, gate: &Gate, path: &Path, place: Place, given: &Value) -> Result<Map, Refused> {
        let bad = |problem: String| Refused::BadForm { path: path.clone(), problem };
        if let Value::Map(given) = given
            && let Some(strange) = given.keys().find(|name| !gate.form.contains_key(*name))
        {
            let known: Vec<&str> = gate.form.keys().map(|name| &**name).collect();
            return Err(bad(format!("unknown field `{strange}`, use {}", known.join(", "))));
        }
        let program = self.state().program(place);
        let mut fields = Map::new();
        for (name, field) in &gate.form {
            let value = given.get(name).or(field.default.as_ref()).cloned().unwrap_or(Value::Null);
            if value == Value::Null {
                if field.required {
                    return Err(bad(format!("`{name}` is missing")));
                }
            } else if let Err(violation) = program.check(&field.ty, &value) {
                return Err(bad(format!("`{name}`: {}", violation.message)));
            } else if !field.choices.is_empty() && !field.choices.contains(&value) {
                return Err(bad(format!("`{name}` is not one of the choices")));
            }
            fields.insert(name.clone(), value);
        }
        Ok(fields)
    }

    /// Handles a gate that timed out without a decision.
    pub(super) fn gate_timed_out(&mut self, place: Place) {
        let Phase::Gate(asking) = &self.at(place).phase else { return };
        let on_timeout = asking.question.on_timeout;
        let Some(gate) = self.gate_at(place) else { return };
        let limit = gate.timeout.unwrap_or_default();
        let message = match self.state().program(place).shapes().gate {
            GateShape::Approval => records::denied("timeout"),
            GateShape::Decision | GateShape::Question | GateShape::Description => {
                format!("nobody decided within {limit}").into()
            }
        };
        let failed = |class| Outcome::Failed(Failure::new(class, message));
        let outcome = match on_timeout {
            OnTimeout::AutoApprove => {
                let choice = option_of(&gate, &Choice::Approve).unwrap_or_else(|| "approve".into());
                let form = defaults(&gate);
                let verdict =
                    Verdict { choice: &choice, approved: true, by: BY_TIMEOUT, reason: None, form: &form };
                Outcome::Done(records::decided(self.state(), place, &gate, verdict))
            }
            OnTimeout::Reject => failed(class::GATE_REJECTED),
            OnTimeout::Halt => failed(class::TIMEOUT),
        };
        self.settle(place, outcome);
    }
}

/// The fields of a form that no one fills in.
fn defaults(gate: &Gate) -> Map {
    let default = |field: &FormField| field.default.clone().unwrap_or(Value::Null);
    gate.form.iter().map(|(name, field)| (name.clone(), default(field))).collect()
}
