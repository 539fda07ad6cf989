//! One cron trigger with everything that its runs need: their plan, inputs and ids.

use super::due::Due;
use crate::engine::{Engine, Error};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_engine::{Firing, Input, Lineage, Overlap, Program, Run, RunId, Start, Timestamp};
use windlass_ir::expr::{EvalError, Limits, Namespace, Read, Scope, Semantics, render};
use windlass_ir::plan::Given;
use windlass_ir::trigger::{self, CronTrigger, TriggerInput};
use windlass_ir::workflow::{Bound, Words};
use windlass_ir::{Code, Plan, Value};

/// A cron trigger and the workflow that it starts.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// Unique in its data folder.
    pub id: Arc<str>,
    pub cron: CronTrigger,
    pub input: TriggerInput,
    pub runs_max: Option<u32>,
    pub overlap: trigger::Overlap,
    /// The rules of the file that contains the trigger.
    pub semantics: Semantics,
    pub plan: Plan,
    pub words: &'static Words,
    /// The source of the plan.
    pub source: String,
    pub overrides: String,
}

/// A trigger that can fire: its plan is stored, and its input is valid.
#[derive(Debug)]
pub(super) struct Ready {
    pub due: Due,
    plan: Plan,
    words: &'static Words,
    input: TriggerInput,
    semantics: Semantics,
    runs_max: Option<u32>,
    overlap: Overlap,
}

/// Why a trigger cannot fire.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    #[error(transparent)]
    Times(#[from] trigger::BadTimes),
    #[error("another trigger has the same id")]
    SameId,
    #[error("its input does not fit: {0}")]
    Input(String),
    #[error(transparent)]
    Engine(#[from] Error),
}

impl Ready {
    /// Stores the plan and checks that the trigger can fire.
    pub async fn new(engine: &Engine, entry: Scheduled, now: Timestamp) -> Result<Self, Unready> {
        let Scheduled { id, cron, input, runs_max, overlap, semantics, plan, words, source, overrides } =
            entry;
        let times = cron.times()?;
        let (jitter, catch_up) = (cron.jitter.unwrap_or_default(), cron.catch_up);
        let program = engine.stored(&plan, source, overrides).await?;
        let ready = Self {
            due: Due { trigger: id, times, jitter, catch_up },
            plan,
            words,
            input,
            semantics,
            runs_max,
            overlap: match overlap {
                trigger::Overlap::Skip => Overlap::Skip,
                trigger::Overlap::Queue => Overlap::Queue,
                trigger::Overlap::Cancel => Overlap::Cancel,
            },
        };
        ready.try_start(program, now)?;
        Ok(ready)
    }

    /// Starts a run and discards it.
    fn try_start(&self, program: Arc<Program>, now: Timestamp) -> Result<(), Unready> {
        let start = Start {
            inputs: self.inputs(now).map_err(Unready::Input)?,
            seed: 0,
            about: Value::Null,
            by: None,
            lineage: Lineage::default(),
            keep: Vec::new(),
            claims: Vec::new(),
            parents: Vec::new(),
            budgets: Vec::new(),
            at: None,
            reach: None,
        };
        let mut run = Run::new(self.run(now), program);
        run.handle(now, Input::Start(Box::new(start))).map_err(Error::Refused)?;
        Ok(())
    }

    /// The firing of an instant. `skip` is the reason to start no run.
    pub fn firing(&self, due: Timestamp, skip: Option<Arc<str>>) -> Firing {
        let (inputs, skip) = match (self.inputs(due), skip) {
            (_, Some(because)) => (Value::Null, Some(because)),
            (Ok(inputs), None) => (inputs, None),
            (Err(why), None) => (Value::Null, Some(format!("its input does not fit: {why}").into())),
        };
        Firing {
            trigger: self.due.trigger.clone(),
            due,
            next: self.due.next_after(due),
            run: self.run(due),
            plan: self.plan.digest.as_str().into(),
            inputs,
            runs_max: self.runs_max,
            overlap: self.overlap,
            skip,
        }
    }

    /// The id of the run of an instant. It is always the same, so the run starts only once.
    pub fn run(&self, due: Timestamp) -> RunId {
        run_id(&self.due.trigger, due)
    }

    /// The inputs of the run of an instant.
    pub fn inputs(&self, due: Timestamp) -> Result<Value, String> {
        let given = match &self.input {
            TriggerInput::Parameters(bindings) => {
                let values = bindings.iter().map(|(name, bound)| Ok((name.clone(), self.value(bound, due)?)));
                Value::map(values.collect::<Result<Vec<_>, String>>()?)
            }
            TriggerInput::Whole(bound) => self.value(bound, due)?,
            TriggerInput::Envelope => Value::map([
                ("trigger", Value::text("cron")),
                ("source", Value::Text(self.due.trigger.clone())),
                ("workflow_id", Value::Text(self.plan.header.id.clone())),
                ("timestamp", Value::text(due.to_string())),
                ("data", Value::Null),
            ]),
        };
        let parameters = match given {
            Value::Map(map) => {
                let each =
                    |(name, value): (&Arc<str>, &Value)| (name.to_string(), Given::Value(value.clone()));
                self.plan.parameters(&map.iter().map(each).collect(), self.words)
            }
            Value::Null => self.plan.parameters(&IndexMap::new(), self.words),
            whole => self.plan.whole_input(whole, self.words),
        };
        let all = |findings: Vec<windlass_ir::Diagnostic>| {
            findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; ")
        };
        parameters.map(|parameters| parameters.to_value()).map_err(all)
    }

    fn value(&self, bound: &Bound, due: Timestamp) -> Result<Value, String> {
        let item = Value::map([
            ("time", Value::text(due.to_string())),
            ("schedule_id", Value::Text(self.due.trigger.clone())),
            ("workflow", Value::Text(self.plan.header.id.clone())),
            ("payload", Value::map::<&str>([])),
        ]);
        render(&bound.template, &Item(item), &self.semantics, &Limits::default())
            .map_err(|error| error.message)
    }
}

/// The only value that expressions of a trigger can read.
struct Item(Value);

impl Scope for Item {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        match read {
            Read::Namespace(Namespace::Item) => Ok(self.0.clone()),
            Read::Namespace(_)
            | Read::StepOutputs(_)
            | Read::StepStatus(_)
            | Read::StepOutcome(_)
            | Read::Now
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_) => Err(EvalError::new(
                Code::NotAvailableHere,
                "a trigger can read only its own event",
                "read `item`",
            )),
        }
    }
}

/// How much of a trigger's id its run ids contain.
const NAME_MAX: usize = 39;

/// For example `nightly-20260329-030000-5c1f2ab9`: the allowed characters of the trigger, the instant, and a hash of both.
fn run_id(trigger: &str, due: Timestamp) -> RunId {
    let hash = blake3::Hasher::new().update(trigger.as_bytes()).update(&due.0.to_le_bytes()).finalize();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = trigger.chars().map(|c| if is_allowed(c) { c } else { '-' }).take(NAME_MAX).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let name = if name.is_empty() { "trigger" } else { name };
    let digits: String = due.to_string().chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    let text = format!("{name}-{day}-{time}-{}", &hash.to_hex()[..8]);
    RunId::new(&text).expect("the characters are allowed, and the id is short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_names_the_trigger_and_the_instant() {
        let at = Timestamp(1_774_753_200_000_000);
        let check = |trigger: &str, begins: &str| {
            let id = run_id(trigger, at);
            assert!(id.as_str().starts_with(begins), "{trigger}: {id}");
            assert!(id.as_str().len() <= 64, "{id}");
            assert_eq!(id, run_id(trigger, at));
            assert_ne!(id, run_id(trigger, Timestamp(at.0 + 1_000_000)));
        };
        check("nightly", "nightly-20260329-030000-");
        check("on push: 0 9 * * 1-5", "on-push--0-9-----1-5-2026");
        check("", "trigger-2026");
        check("夜", "trigger-2026");
        check(&"x".repeat(200), "xxx");
        assert_ne!(run_id("a b", at), run_id("a-b", at));
    }
}
