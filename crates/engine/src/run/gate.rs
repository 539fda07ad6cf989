//! Gates: who may decide, what a decision leads to, and what happens when nobody decides in time.

use super::Turn;
use super::state::{Phase, Place};
use crate::event::What;
use crate::input::{GateDecision, Refused};
use crate::keys::Path;
use crate::outcome::{Failure, Outcome, class};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Gate, Kind, OnTimeout};

impl Turn<'_> {
    pub(super) fn decided(
        &mut self,
        id: &Arc<str>,
        path: &Path,
        decision: GateDecision,
    ) -> Result<(), Refused> {
        if let Some((known, by)) = self.state().decisions.get(path) {
            // The same decision again: the first answer got lost on its way back.
            return if known == id {
                Ok(())
            } else {
                Err(Refused::AlreadyDecided { path: path.clone(), by: by.clone() })
            };
        }
        let place = self.state().find(path).filter(|place| self.state().is_gate_open(*place));
        let place = place.ok_or_else(|| Refused::NoGate(path.clone()))?;
        let program = self.run.program.clone();
        let Kind::Gate(gate) = &program.plan.step(self.at(place).step).kind else {
            return Err(Refused::NoGate(path.clone()));
        };
        if !gate.approvers.is_empty() && !gate.approvers.contains(&decision.by) {
            let approvers = gate.approvers.clone();
            return Err(Refused::NotAnApprover { path: path.clone(), by: decision.by, approvers });
        }
        let form = match decision.approve {
            true => self.filled_in(gate, path, &decision.form)?,
            false => Map::new(),
        };
        let value = outputs(
            if decision.approve { "approved" } else { "rejected" },
            &decision.by,
            decision.reason.clone(),
            form,
        );
        self.emit(What::Signalled {
            id: id.clone(),
            path: path.clone(),
            by: decision.by.clone(),
            value: value.clone(),
        });
        let outcome = match decision.approve {
            true => Outcome::Done(value),
            false => {
                let reason = decision.reason.unwrap_or_else(|| format!("rejected by {}", decision.by).into());
                Outcome::Failed(Failure { detail: Some(value), ..Failure::new(class::GATE_REJECTED, reason) })
            }
        };
        self.settle(place, outcome, false);
        Ok(())
    }

    /// The fields of the form, with defaults, each of its type and one of its choices.
    fn filled_in(&self, gate: &Gate, path: &Path, given: &Value) -> Result<Map, Refused> {
        let bad = |problem: String| Refused::BadForm { path: path.clone(), problem };
        if let Value::Map(given) = given
            && let Some(strange) = given.keys().find(|name| !gate.form.contains_key(*name))
        {
            let known: Vec<&str> = gate.form.keys().map(|name| &**name).collect();
            return Err(bad(format!("it has no field `{strange}`, only {}", known.join(", "))));
        }
        let mut fields = Map::new();
        for (name, field) in &gate.form {
            let value = given.get(name).or(field.default.as_ref()).cloned().unwrap_or(Value::Null);
            if value == Value::Null {
                if field.required {
                    return Err(bad(format!("`{name}` is missing")));
                }
            } else if let Err(violation) = self.run.program.check(&field.ty, &value) {
                return Err(bad(format!("`{name}`: {}", violation.message)));
            } else if !field.choices.is_empty() && !field.choices.contains(&value) {
                return Err(bad(format!("`{name}` is none of the choices")));
            }
            fields.insert(name.clone(), value);
        }
        Ok(fields)
    }

    /// Nobody decided in time.
    pub(super) fn gate_timed_out(&mut self, place: Place) {
        let Phase::Gate { question, .. } = &self.at(place).phase else { return };
        let program = self.run.program.clone();
        let step = program.plan.step(self.at(place).step);
        let limit = match &step.kind {
            Kind::Gate(gate) => gate.timeout.unwrap_or_default(),
            _ => return,
        };
        let outcome = match question.on_timeout {
            OnTimeout::AutoApprove => Outcome::Done(outputs("approved", "timeout", None, Map::new())),
            OnTimeout::Reject => {
                Outcome::Failed(Failure::new(class::GATE_REJECTED, format!("nobody decided within {limit}")))
            }
            OnTimeout::Halt => {
                Outcome::Failed(Failure::new(class::TIMEOUT, format!("nobody decided within {limit}")))
            }
        };
        self.settle(place, outcome, false);
    }
}

fn outputs(decision: &str, by: &str, reason: Option<Arc<str>>, form: Map) -> Value {
    let mut outputs = Map::new();
    outputs.insert("decision".into(), Value::text(decision));
    outputs.insert("by".into(), Value::text(by));
    outputs.insert("reason".into(), reason.map_or(Value::Null, Value::Text));
    outputs.extend(form);
    Value::Map(Arc::new(outputs))
}
