//! What starting, resuming and retrying have in common: where a run is executed from, and how long the caller waits.

use super::super::workflows::parameters;
use crate::code::Code;
use crate::perform::Context;
use crate::refusal::Refusal;
use crate::socket::{Needs, Surroundings};
use crate::types::{Ref, Run};
use indexmap::IndexMap;
use std::path::PathBuf;
use std::time::Duration;
use windlass_dialects::{Dialect, speckit};
use windlass_ir::plan::{Parameters, PlanStep};
use windlass_ir::workflow::RunInput;
use windlass_ir::{Plan, Sources, Value};
use windlass_runtime::{Beginning, Error, Handle, Lineage, Reach, RunId, Start, Timestamp};

/// A run that is ready to be started.
#[derive(Debug)]
pub struct Launch {
    pub run: Option<String>,
    pub by: String,
    pub source: String,
    pub overrides: String,
    /// The workflow file, if it was found by name.
    pub file: Option<PathBuf>,
    pub inputs: Value,
    pub beginning: Beginning,
    pub from: Surroundings,
}

impl Launch {
    /// Refuses a plan that cannot be executed here. `sources` are its texts, if it was not stored.
    pub fn check(
        &self,
        plan: &Plan,
        sources: &Sources,
        runs: impl Fn(&PlanStep) -> bool,
    ) -> Result<(), Refusal> {
        let to_the_end = !matches!(self.beginning.reach, Some(Reach::Until(_)));
        let file = self.file.as_deref();
        let needs = Needs { plan, sources, file, from: &self.from, runs: &runs, to_the_end };
        // The warnings are part of a plan; a reply about a run has no place for them.
        needs.check().map(drop)
    }

    pub async fn start(self, cx: &Context, plan: &Plan) -> Result<Handle, Refusal> {
        let start = Start {
            run: self
                .run
                .or_else(|| cx.new_run_id())
                .as_deref()
                .map(RunId::new)
                .transpose()
                .map_err(Error::from)?,
            inputs: self.inputs,
            by: Some(self.by.into()),
            source: self.source,
            overrides: self.overrides,
            file: self.file,
            host: self.from.host()?,
            clock: self.from.clock(),
            patience: self.from.patience(),
            claims: Vec::new(),
            lineage: Lineage::default(),
            parents: Vec::new(),
            budgets: Vec::new(),
            beginning: Beginning { entries: cx.entries(), ..self.beginning },
        };
        Ok(cx.owner()?.start(plan, start).await?)
    }
}

/// The text of a workflow, and the texts that change it: its overrides, or else its overlays.
pub fn texts(of: &Ref) -> (String, String) {
    let overrides = match &of.overrides {
        Some(overrides) => overrides.text.clone(),
        None => speckit::joined(of.overlays.iter().map(|overlay| overlay.text.as_str())),
    };
    (of.source.clone().unwrap_or_default(), overrides)
}

/// A reply comes after at most this many seconds.
const WAIT_SECONDS_MAX: f64 = 60.0;

/// How long a caller waits for a run.
pub fn wait(seconds: Option<f64>) -> Result<Duration, Refusal> {
    let seconds = seconds.unwrap_or(0.0);
    if !(0.0..=WAIT_SECONDS_MAX).contains(&seconds) {
        let refusal = Refusal::new(Code::BadRequest, format!("invalid wait of {seconds} seconds"));
        return Err(refusal.field("wait_seconds").help("wait 0 to 60 seconds, and ask again"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// The run once it has ended or needs a person, or once the time is over.
pub async fn ended(cx: &Context, handle: Handle, wait: Duration) -> Result<Run, Refusal> {
    let run = handle.id.clone();
    if !wait.is_zero() {
        // If the time is over first, the run continues without a follower.
        let _ = tokio::time::timeout(wait, handle.outcome()).await;
    }
    cx.run(&run).await
}

pub fn instant(text: &str, field: &str) -> Result<Timestamp, Refusal> {
    text.parse::<jiff::Timestamp>().map(|at| Timestamp(at.as_microsecond())).map_err(|_| {
        let refusal = Refusal::new(Code::BadRequest, format!("invalid instant `{text}` in `{field}`"));
        refusal.field(field).help("write it like `2026-03-01T09:30:00Z`")
    })
}

/// The inputs of an earlier run, as far as a plan knows them, with changes on top.
pub fn laid_over(plan: &Plan, before: &Value, changes: Option<Value>) -> Result<Parameters, Refusal> {
    let declared = |name: &str| plan.input != RunInput::Declared || plan.parameters.contains_key(name);
    let whole = match (before, changes) {
        (before, None | Some(Value::Null)) => before.clone(),
        (Value::Map(before), Some(Value::Map(changes))) => {
            let kept = before.iter().filter(|(name, _)| declared(name) && !changes.contains_key(&**name));
            let all = kept.chain(changes.iter()).map(|(name, value)| (name.clone(), value.clone()));
            Value::map(all)
        }
        (_, Some(changes)) => changes,
    };
    let whole = match whole {
        Value::Map(map) => {
            Value::map(map.iter().filter(|(name, _)| declared(name)).map(|(n, v)| (n.clone(), v.clone())))
        }
        whole => whole,
    };
    let words = Dialect::by_name(&plan.dialect).unwrap_or(Dialect::Swdl).words();
    parameters(plan, words, Some(whole), IndexMap::new())
}
