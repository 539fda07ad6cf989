//! What a new run takes over of an earlier one: which steps it starts again from, what is kept, and what would become of each step,
//! found out by letting the new run begin without carrying anything out.

use crate::clock::Clock;
use crate::engine::{Beginning, Engine, Error};
use crate::ids;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_engine::{
    CoordinatorAnswer, Effect, Event, Input, Kept, Outcome, Path, Program, Reach, Run, RunId, Start,
    StepPhase, StepView, View, What, kept, of_step, step_at,
};
use windlass_ir::dialect::Dialects;
use windlass_ir::workflow::Kind;
use windlass_ir::{Plan, Value};

/// A run that is to be started once more.
#[derive(Debug)]
pub struct Again {
    pub beginning: Beginning,
    pub plan_changed: bool,
    pub inputs_changed: bool,
    /// What would become of each step.
    pub steps: Vec<Forecast>,
}

#[derive(Debug)]
pub struct Forecast {
    /// The id that the user sees.
    pub step: String,
    pub fate: Fate,
}

#[derive(Debug)]
pub enum Fate {
    Kept,
    /// It runs again, or for the first time, and why.
    Again(String),
    /// It depends on what a step before it will give it.
    Perhaps(String),
    /// It would be skipped at once, and why.
    Skipped(String),
    /// The new plan has no such step.
    Gone,
}

impl Fate {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Again(_) => "again",
            Self::Perhaps(_) => "perhaps",
            Self::Skipped(_) => "skipped",
            Self::Gone => "gone",
        }
    }

    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Again(why) | Self::Perhaps(why) | Self::Skipped(why) => Some(why),
            Self::Kept | Self::Gone => None,
        }
    }
}

impl Again {
    pub fn to_json(&self, run: &RunId) -> Json {
        let step = |forecast: &Forecast| json!({"step": forecast.step, "fate": forecast.fate.word(), "why": forecast.fate.why()});
        json!({
            "type": "forecast",
            "retry_of": run,
            "plan_changed": self.plan_changed,
            "inputs_changed": self.inputs_changed,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }
}

/// Finds out what a new run with this plan and these inputs keeps of an earlier one: started again from a step, or else from those
/// that failed.
pub fn again(
    engine: &Engine,
    run: &RunId,
    from: Option<&str>,
    plan: &Plan,
    inputs: &Value,
) -> Result<Again, Error> {
    let (before, events, view) = (engine.program(run)?, engine.events(run)?, engine.view(run)?);
    let plan_changed = plan.digest != before.plan.digest;
    let inputs_changed = inputs != view.inputs();
    let changed = plan_changed || inputs_changed;
    let unfinished = view.steps().any(|(_, step)| !is_done(&step) && !is_skipped(&step));
    let from = match from {
        Some(step) => vec![find(engine.dialects(), run, &view, step)?],
        None => failed(&view, &events),
    };
    if from.is_empty() && !changed && !unfinished {
        return Err(Error::NothingToRetry(run.clone()));
    }
    let keep = kept(&before, &events, &from, changed);
    let after = match plan_changed {
        true => Arc::new(Program::new(plan.clone())?),
        false => before.clone(),
    };
    let begun = begin(after.clone(), inputs.clone(), &keep)?;
    let looking = Looking {
        dialects: engine.dialects(),
        before: &before,
        view: &view,
        after: &after,
        begun: &begun,
        from: &from,
        keep: &keep,
    };
    let steps = looking.forecast();
    let beginning = Beginning { keep, of: Some(run.clone()), ..Beginning::default() };
    Ok(Again { beginning, plan_changed, inputs_changed, steps })
}

/// The beginning of a run that does one step only, with what is recorded in another one.
pub fn only(engine: &Engine, run: &RunId, step: &str, plan: &Plan) -> Result<Beginning, Error> {
    let (before, events, view) = (engine.program(run)?, engine.events(run)?, engine.view(run)?);
    let after = Program::new(plan.clone())?;
    let path = match find(engine.dialects(), run, &view, step) {
        Ok(path) => path,
        // One that the other run does not know yet.
        Err(unknown) => planned(plan, step).ok_or(unknown)?,
    };
    let id = step_at(&after, &path).ok_or_else(|| Error::no_step_in(plan, step))?;
    let mut inner = id;
    while let Some(around) = plan.step(inner).parent {
        if matches!(plan.step(around).kind, Kind::Repeat(_)) {
            let around = plan.step(around).id.to_string();
            return Err(Error::InLoop { step: step.to_owned(), around });
        }
        inner = around;
    }
    let keep = kept(&before, &events, std::slice::from_ref(&path), true);
    if let Some(needed) = missing(&after, &view, &path, &keep) {
        return Err(Error::NoResult { run: run.clone(), step: step.to_owned(), needed });
    }
    Ok(Beginning { keep, of: Some(run.clone()), reach: Some(Reach::Only(path)), ..Beginning::default() })
}

/// The first step that comes before the one at a path and of which nothing is recorded.
fn missing(program: &Program, view: &View, path: &Path, keep: &[Kept]) -> Option<String> {
    let mut around = Path::default();
    for segment in path.segments() {
        let id = step_at(program, &around.child(segment.name.clone(), None))?;
        let missing = program.plan.step(id).needs.iter().find_map(|need| {
            let path = around.child(program.plan.step(*need).id.clone(), None);
            let recorded = keep.iter().any(|kept| kept.path.segments().starts_with(path.segments()));
            let settled = view.step(&path).is_some_and(|step| is_done(&step) || is_skipped(&step));
            (!recorded && !settled).then(|| program.plan.step(*need).id.to_string())
        });
        if missing.is_some() {
            return missing;
        }
        around = around.child(segment.name.clone(), segment.ordinal);
    }
    None
}

/// The path of a step as it stands in the plan, where it is in no item and no round.
fn planned(plan: &Plan, step: &str) -> Option<Path> {
    let id = plan.find(step)?;
    let mut chain: Vec<_> = std::iter::successors(Some(id), |step| plan.step(*step).parent).collect();
    chain.reverse();
    let steps = chain.into_iter().map(|step| plan.step(step));
    Some(steps.fold(Path::default(), |path, step| path.child(step.id.clone(), None)))
}

/// The instance that a user means: by the id that is shown, else the first one with that id in the file.
fn find(dialects: Dialects, run: &RunId, view: &View, step: &str) -> Result<Path, Error> {
    let own = || view.steps().filter(|(_, found)| found.unit == 0 && found.frame.is_none());
    let shown = own().find(|(path, found)| {
        !view.plan_step(found).implicit
            && (ids::name(dialects, view, path).id == step || path.to_string() == step)
    });
    let plain = || own().find(|(path, _)| *ids::name(dialects, view, path).plain == *step);
    if let Some((path, _)) = shown.or_else(plain) {
        return Ok(path.clone());
    }
    let names: Vec<String> = own().map(|(path, _)| ids::name(dialects, view, path).id).collect();
    Err(Error::no_step(format!("run `{run}`"), step, names.iter().map(String::as_str)))
}

/// The steps whose failure has ended something, else all that failed: not the scopes around them.
fn failed(view: &View, events: &[Event]) -> Vec<Path> {
    let leaves = || {
        view.steps().filter(|(_, step)| {
            let scope = !view.plan_step(step).kind.bodies().is_empty();
            step.unit == 0 && !scope && matches!(step.phase, StepPhase::Settled(Outcome::Failed(_)))
        })
    };
    let weighty: Vec<&Path> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::Settled(settled) if settled.fails || settled.halts => Some(&settled.path),
            _ => None,
        })
        .collect();
    let ending: Vec<Path> =
        leaves().map(|(path, _)| path).filter(|path| weighty.contains(path)).cloned().collect();
    if ending.is_empty() { leaves().map(|(path, _)| path.clone()).collect() } else { ending }
}

fn is_done(step: &StepView<'_>) -> bool {
    matches!(step.phase, StepPhase::Settled(Outcome::Done(_)) | StepPhase::Dormant)
}

fn is_skipped(step: &StepView<'_>) -> bool {
    matches!(step.phase, StepPhase::Settled(Outcome::Skipped(_)))
}

/// How a run stands that has just begun. Nothing is carried out, and everybody is let in.
fn begin(program: Arc<Program>, inputs: Value, keep: &[Kept]) -> Result<View, Error> {
    let id = RunId::new("forecast")?;
    let mut run = Run::new(id, program.clone());
    let mut view = View::new(program);
    let start = Start { keep: keep.to_vec(), ..Start::with(inputs) };
    let mut inputs = vec![Input::Start(Box::new(start))];
    while let Some(input) = inputs.pop() {
        let answer = run.handle(Clock::Real.now(), input)?;
        let applied = answer.events.iter().try_for_each(|event| view.apply(event));
        applied.map_err(|cause| Error::contradictory(run.id(), cause))?;
        if answer.again {
            inputs.push(Input::Tick);
        }
        inputs.extend(answer.effects.into_iter().filter_map(|effect| match effect {
            Effect::Ask { ask, job: None } => {
                Some(Input::Answered { asker: ask.asker, answer: CoordinatorAnswer::Granted })
            }
            _ => None,
        }));
    }
    Ok(view)
}

/// The earlier run and the beginning of the new one, side by side.
struct Looking<'a> {
    dialects: Dialects,
    before: &'a Program,
    view: &'a View,
    after: &'a Program,
    begun: &'a View,
    from: &'a [Path],
    keep: &'a [Kept],
}

impl Looking<'_> {
    fn forecast(&self) -> Vec<Forecast> {
        let keep: HashMap<&Path, &Kept> = self.keep.iter().map(|kept| (&kept.path, kept)).collect();
        let leaf = |view: &View, step: &StepView<'_>| {
            let known = view.plan_step(step);
            let scope = !known.kind.bodies().is_empty();
            step.unit == 0 && step.frame.is_none() && step.phase != StepPhase::Dormant && !scope
        };
        let before = self.view.steps().filter(|(_, step)| leaf(self.view, step));
        let known = before.map(|(path, step)| {
            let fate = self.fate(path, &step, keep.get(path).copied());
            Forecast { step: ids::name(self.dialects, self.view, path).id, fate }
        });
        let begun = self
            .begun
            .steps()
            .filter(|(path, step)| leaf(self.begun, step) && self.view.step(path).is_none());
        let new = begun.map(|(path, step)| {
            let why =
                if step_at(self.before, path).is_none() { "it is new" } else { "it was not come to before" };
            let fate = settled_at_once(&step).unwrap_or_else(|| Fate::Again(why.into()));
            Forecast { step: ids::name(self.dialects, self.begun, path).id, fate }
        });
        known.chain(new).collect()
    }

    fn fate(&self, path: &Path, step: &StepView<'_>, kept: Option<&Kept>) -> Fate {
        if self.is_within_kept(path) {
            return Fate::Kept;
        }
        let Some(id) = step_at(self.after, path) else { return Fate::Gone };
        let now = self.begun.step(path);
        if let Some(fate) = now.and_then(|now| settled_at_once(&now)) {
            return fate;
        }
        if self.from.contains(path) {
            return Fate::Again(match &step.phase {
                StepPhase::Settled(Outcome::Failed(failure)) => {
                    format!("it failed ({}): {}", failure.class, failure.message)
                }
                _ => "you start again from it".into(),
            });
        }
        let Some(_) = kept else { return Fate::Again(self.why_not_kept(step)) };
        let same = step_at(self.before, path).is_some_and(|old| {
            of_step(&self.before.plan, self.before.step(old))
                == of_step(&self.after.plan, self.after.step(id))
        });
        match (same, now.map(|now| now.phase)) {
            (false, _) => Fate::Again("it was changed".into()),
            (true, None | Some(StepPhase::Pending | StepPhase::Dormant)) => {
                Fate::Perhaps("kept if what it is given stays the same".into())
            }
            (true, Some(_)) => Fate::Again("what it is given has changed".into()),
        }
    }

    /// Whether a step, or something around it, was taken over.
    fn is_within_kept(&self, path: &Path) -> bool {
        let outwards = std::iter::successors(Some(path.clone()), Path::parent);
        outwards.into_iter().any(|path| self.begun.step(&path).is_some_and(|step| step.kept))
    }

    fn why_not_kept(&self, step: &StepView<'_>) -> String {
        match &step.phase {
            StepPhase::Settled(Outcome::Done(_) | Outcome::Continue(_)) => {
                let from: Vec<String> = self
                    .from
                    .iter()
                    .map(|from| format!("`{}`", ids::name(self.dialects, self.view, from).id))
                    .collect();
                match from.is_empty() {
                    true => "it is done anew".into(),
                    false => format!("it comes after {}", from.join(", ")),
                }
            }
            StepPhase::Settled(Outcome::Failed(failure)) => {
                format!("it failed ({}): {}", failure.class, failure.message)
            }
            StepPhase::Settled(Outcome::Skipped(skip)) => format!("it was skipped ({})", skip.reason.word()),
            StepPhase::Settled(Outcome::Cancelled(_)) => "it was cancelled".into(),
            StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Queued { .. }
            | StepPhase::Running
            | StepPhase::Backoff { .. }
            | StepPhase::Asking { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Joined
            | StepPhase::Inside => "it was not finished".into(),
        }
    }
}

fn settled_at_once(now: &StepView<'_>) -> Option<Fate> {
    match &now.phase {
        StepPhase::Settled(_) if now.kept => Some(Fate::Kept),
        StepPhase::Settled(Outcome::Skipped(skip)) => Some(Fate::Skipped(skip.reason.word().to_owned())),
        _ => None,
    }
}
