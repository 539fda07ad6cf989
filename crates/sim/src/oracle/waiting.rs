//! Gates and waits: their questions, their answers, and rejections.

use super::Oracle;
use super::reading::{Reader, entries, expression_error, laid_over, violation};
use super::tree::{At, Listening, State};
use std::sync::Arc;
use windlass_engine::{Choice, Failure, GateDecision, Outcome, Timestamp, class};
use windlass_ir::cron::Cron;
use windlass_ir::expr::{StepId, equals, text_form};
use windlass_ir::trigger::CronSyntax;
use windlass_ir::workflow::{Gate, Kind, OnReject, OnTimeout, Wait, WaitFor, WaitTimeout};
use windlass_ir::{Duration, Value};

/// A stored signal.
#[derive(Clone, Debug)]
pub struct Kept {
    name: Arc<str>,
    value: Value,
}

impl Oracle {
    /// Asks, unless the decision input already has a value.
    pub fn ask(&mut self, at: At, gate: &Gate) -> Result<(), Failure> {
        let reader = Reader::new(self, at);
        let shown = gate.message.iter().chain(&gate.show_file);
        shown.map(|bound| reader.render(&bound.template)).try_for_each(|value| value.map(drop))?;
        match self.verdict_given(gate)? {
            Some(option) => self.decided(at, gate, &option, &Answer::by("input"), gate.quorum),
            None => self.ask_people(at, gate),
        }
        Ok(())
    }

    /// Checks the decision inputs of open gates after the inputs changed.
    pub fn look_at_verdicts(&mut self) {
        for at in self.tree.all() {
            let plan = self.plan.clone();
            let gate = self.tree[at].step.map(|step| &plan.step(step).kind);
            let (State::Asking { .. }, Some(Kind::Gate(gate))) = (&self.tree[at].state, gate) else {
                continue;
            };
            match self.verdict_given(gate) {
                Ok(Some(option)) => self.decided(at, gate, &option, &Answer::by("input"), gate.quorum),
                Ok(None) => {}
                Err(failure) => self.end(at, Outcome::Failed(failure)),
            }
        }
    }

    fn ask_people(&mut self, at: At, gate: &Gate) {
        let until = gate.timeout.map(|limit| self.now.plus(limit));
        self.tree[at].state = State::Asking { until, yes: 0 };
    }

    /// The option in the decision input, if it is not empty.
    fn verdict_given(&self, gate: &Gate) -> Result<Option<Arc<str>>, Failure> {
        let value = gate.verdict_input.as_ref().and_then(|name| self.inputs.get(&name.value));
        let Some(value) = value else { return Ok(None) };
        let text = text_form(value, &self.plan.semantics).map_err(expression_error)?;
        if text.is_empty() {
            return Ok(None);
        }
        let option = gate.options.iter().find(|option| same_word(option, &text));
        option.cloned().map(Some).ok_or_else(|| violation("the verdict"))
    }

    pub fn decide(&mut self, at: At, decision: &GateDecision) {
        let plan = self.plan.clone();
        let Kind::Gate(gate) = &plan.step(self.tree[at].step.expect("a gate is a step")).kind else { return };
        let first = |no: bool| gate.options.iter().find(|option| says_no(option) == no);
        let option = match &decision.choice {
            Choice::Approve => first(false),
            Choice::Reject => first(true),
            Choice::Option(word) => gate.options.iter().find(|option| same_word(option, word)),
        };
        let answer = Answer {
            by: Value::Text(decision.by.clone()),
            reason: decision.reason.clone().map_or(Value::Null, Value::Text),
            form: decision.form.clone(),
        };
        if let Some(option) = option {
            self.decided(at, gate, option, &answer, 1);
        }
    }

    /// A decision that counts for this many votes.
    fn decided(&mut self, at: At, gate: &Gate, option: &Arc<str>, answer: &Answer, voices: u32) {
        let value = left_behind(gate, Some(option), answer);
        if says_no(option) {
            return self.said_no(at, gate, value, answer);
        }
        let (before, until) = match self.tree[at].state {
            State::Asking { until, yes } => (yes, until),
            _ => (0, None),
        };
        let yes = before + voices;
        if yes >= gate.quorum {
            self.end(at, Outcome::Done(value));
        } else {
            self.tree[at].state = State::Asking { until, yes };
        }
    }

    fn said_no(&mut self, at: At, gate: &Gate, value: Value, answer: &Answer) {
        match &gate.on_reject {
            OnReject::Fail | OnReject::Abort => self.reject(at),
            OnReject::Skip => self.end(at, Outcome::Done(value)),
            OnReject::Retry => {
                if let Some(name) = &gate.verdict_input {
                    let emptied = Value::map([(name.value.clone(), Value::Null)]);
                    self.inputs = laid_over(&self.inputs, &emptied);
                }
                self.ask_people(at, gate);
            }
            OnReject::Back { to, times_max } => {
                let why = Value::map([
                    ("step", Value::Text(self.step(at).id.clone())),
                    ("class", Value::text(class::GATE_REJECTED)),
                    ("message", answer.reason.clone()),
                    ("detail", value),
                ]);
                if !self.send_back(at, &to.value, *times_max, &why) {
                    self.reject(at);
                }
            }
        }
    }

    fn reject(&mut self, at: At) {
        self.end(at, Outcome::Failed(Failure::new(class::GATE_REJECTED, "rejected")));
    }

    /// Creates new instances of the steps from the target up to the gate; false if the limit is reached.
    fn send_back(&mut self, gate: At, target: &str, times_max: u32, why: &Value) -> bool {
        let (Some(list), Some(step)) = (self.tree[gate].list, self.tree[gate].step) else { return false };
        let times = self.tree.lists[list].sent_back.iter().filter(|gate| **gate == step).count();
        let target = self.siblings(step).iter().copied().find(|step| &*self.plan.step(*step).id == target);
        let Some(target) = target.filter(|_| times < times_max as usize) else { return false };
        self.tree.lists[list].sent_back.push(step);
        let again: Vec<At> = self
            .tree
            .members(list)
            .into_iter()
            .filter(|at| {
                let between = self.tree[*at].step;
                between
                    .is_some_and(|between| self.needs_step(between, target) && self.needs_step(step, between))
            })
            .collect();
        self.tree[gate].state = State::Left;
        for old in again {
            let Some(step) = self.tree[old].step else { continue };
            self.tree[old].superseded = true;
            let new = self.add_member(list, step, self.tree[old].pass + 1);
            self.tree[new].feedback = why.clone();
        }
        true
    }

    /// Whether a step is another one or depends on it, directly or not.
    fn needs_step(&self, step: StepId, before: StepId) -> bool {
        step == before || self.plan.step(step).needs.iter().any(|need| self.needs_step(*need, before))
    }

    /// Handles the timeout of a gate or a wait.
    pub fn waited(&mut self, at: At) {
        let plan = self.plan.clone();
        match &plan.step(self.tree[at].step.expect("a wait is a step")).kind {
            Kind::Gate(gate) => match gate.on_timeout {
                OnTimeout::Halt => {
                    self.end(at, Outcome::Failed(Failure::new(class::TIMEOUT, "no decision in time")));
                }
                OnTimeout::Reject => self.reject(at),
                OnTimeout::AutoApprove => {
                    let yes = gate.options.iter().find(|option| !says_no(option));
                    self.end(at, Outcome::Done(left_behind(gate, yes, &Answer::by("timeout"))));
                }
            },
            Kind::Wait(Wait {
                what: WaitFor::Signal { .. } | WaitFor::Message { .. }, on_timeout, ..
            }) => match on_timeout {
                WaitTimeout::Fail => {
                    self.end(at, Outcome::Failed(Failure::new(class::TIMEOUT, "no signal in time")));
                }
                WaitTimeout::Done(value) => self.came(at, value),
            },
            Kind::Wait(_) => self.came(at, &Value::Null),
            _ => {}
        }
    }

    pub fn wait(&mut self, at: At, wait: &Wait) -> Result<(), Failure> {
        match &wait.what {
            WaitFor::Duration(_) | WaitFor::Instant(_) | WaitFor::Cron(_) => {
                let until = self.instant(at, &wait.what)?;
                self.wait_until(at, until);
            }
            WaitFor::Signal { name, matching } => {
                let matching = Reader::new(self, at).render_all(matching)?;
                self.listen(at, Listening { name: name.clone(), matching, message: false }, wait.timeout);
            }
            WaitFor::Message { name, matching } => {
                let matching = Reader::new(self, at).render_all(matching)?;
                self.listen(at, Listening { name: name.clone(), matching, message: true }, wait.timeout);
            }
        }
        Ok(())
    }

    /// The end of a wait for time.
    fn instant(&self, at: At, what: &WaitFor) -> Result<Timestamp, Failure> {
        let wrong = |class: &str| Failure::new(class, "not an instant");
        let reader = Reader::new(self, at);
        match what {
            WaitFor::Duration(bound) => {
                let length = reader.render(&bound.template)?;
                let length = length.as_str().and_then(Duration::parse_any);
                length.map(|length| self.now.plus(length)).ok_or_else(|| wrong(class::EXPRESSION_ERROR))
            }
            WaitFor::Instant(bound) => match reader.render(&bound.template)? {
                Value::Int(millis) => Ok(Timestamp(self.now.0.saturating_add(millis.saturating_mul(1000)))),
                value => {
                    let instant = value.as_str().and_then(windlass_ir::time::instant);
                    instant.map(Timestamp).ok_or_else(|| wrong(class::EXPRESSION_ERROR))
                }
            },
            WaitFor::Cron(pattern) => {
                let cron = Cron::parse(pattern, CronSyntax::House).ok();
                let next = cron.and_then(|cron| cron.next_micros(self.now.0));
                next.map(Timestamp).ok_or_else(|| wrong(class::ERROR))
            }
            WaitFor::Signal { .. } | WaitFor::Message { .. } => Ok(Timestamp::NEVER),
        }
    }

    /// Takes the first stored signal that matches, or waits for one.
    fn listen(&mut self, at: At, signal: Listening, timeout: Option<Duration>) {
        match self.signals.iter().position(|kept| self.is_answer(&signal, &kept.name, &kept.value)) {
            Some(place) => {
                let kept = self.signals.remove(place);
                self.came(at, &kept.value);
            }
            None => {
                let until = timeout.map(|limit| self.now.plus(limit));
                self.tree[at].state = State::Waiting { until, signal: Some(signal) };
            }
        }
    }

    fn wait_until(&mut self, at: At, until: Timestamp) {
        if until <= self.now {
            self.came(at, &Value::Null);
        } else {
            self.tree[at].state = State::Waiting { until: Some(until), signal: None };
        }
    }

    fn came(&mut self, at: At, value: &Value) {
        self.end(at, Outcome::Done(Value::map([("value", value.clone())])));
    }

    /// Delivers a signal to the first wait that matches, or stores it.
    pub fn signal(&mut self, name: &Arc<str>, value: &Value) {
        let answers = |at: &At| match &self.tree[*at].state {
            State::Waiting { signal: Some(signal), .. } => self.is_answer(signal, name, value),
            _ => false,
        };
        match self.tree.all().find(answers) {
            Some(at) => self.came(at, value),
            None => self.signals.push(Kept { name: name.clone(), value: value.clone() }),
        }
    }

    /// Delivers a message to the wait that the caller matched.
    pub fn deliver(&mut self, path: &windlass_engine::Path, value: &Value) {
        let waits = |at: &At| matches!(self.tree[*at].state, State::Waiting { signal: Some(_), .. });
        if let Some(at) = self.tree.all().find(|at| self.tree[*at].path == *path && waits(at)) {
            self.came(at, value);
        }
    }

    fn is_answer(&self, signal: &Listening, name: &str, value: &Value) -> bool {
        let carries = |path: &str, wanted: &Value| {
            let found = path.split('.').try_fold(value, |value, part| value.get(part));
            equals(found.unwrap_or(&Value::Null), wanted, &self.plan.semantics) == Ok(true)
        };
        !signal.message
            && &*signal.name == name
            && signal.matching.iter().all(|(path, wanted)| carries(path, wanted))
    }
}

/// The decision at a gate.
struct Answer {
    by: Value,
    reason: Value,
    form: Value,
}

impl Answer {
    /// A decision that no person made.
    fn by(what: &str) -> Self {
        Self { by: Value::text(what), reason: Value::Null, form: Value::Null }
    }
}

fn left_behind(gate: &Gate, option: Option<&Arc<str>>, answer: &Answer) -> Value {
    let given = entries(&answer.form);
    let field = |name: &str| given.get(name).filter(|value| **value != Value::Null).cloned();
    let form = gate.form.iter().map(|(name, declared)| {
        let value = field(name).or_else(|| declared.default.clone()).unwrap_or(Value::Null);
        (name.clone(), value)
    });
    let decision = if option.is_some_and(|option| says_no(option)) { "rejected" } else { "approved" };
    let decided: [(Arc<str>, Value); 4] = [
        ("decision".into(), Value::text(decision)),
        ("by".into(), answer.by.clone()),
        ("reason".into(), answer.reason.clone()),
        ("choice".into(), option.map_or(Value::Null, |option| Value::Text(option.clone()))),
    ];
    Value::map(decided.into_iter().chain(form))
}

fn says_no(option: &str) -> bool {
    same_word(option, "reject") || same_word(option, "abort")
}

fn same_word(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}
