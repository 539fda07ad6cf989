//! Retries: which results a new run keeps of an earlier one, and from which steps it starts. A forecast starts the new run without
//! executing anything, to predict what happens to each step.

use crate::clock::Clock;
use crate::engine::{Beginning, Engine, Error};
use crate::ids;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_engine::{
    CoordinatorAnswer, Effect, Event, Input, Kept, Outcome, Path, Program, Reach, Renewed, Run, RunId, Start,
    StepPhase, StepView, View, What, kept, of_step, step_at,
};
use windlass_ir::dialect::Dialects;
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;
use windlass_ir::{Plan, Value};

/// A retry of a run.
#[derive(Debug)]
pub struct Again {
    pub beginning: Beginning,
    pub plan_changed: bool,
    pub inputs_changed: bool,
    /// The forecast for each step.
    pub steps: Vec<Forecast>,
}

#[derive(Debug)]
pub struct Forecast {
    /// The visible id of the step.
    pub step: String,
    pub fate: Fate,
}

#[derive(Debug)]
pub enum Fate {
    Kept,
    /// The step runs, and why.
    Again(String),
    /// It depends on the output of an earlier step.
    Perhaps(String),
    /// The step is skipped, and why.
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

/// Determines what a retry with this plan and these inputs keeps of an earlier run. It starts from the step `from`, or else from
/// the steps that failed.
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
    let renewed = if changed { Renewed::Changed } else { Renewed::Same };
    let keep = kept(&before, &events, &from, renewed);
    let after = match plan_changed {
        true => Arc::new(Program::new(plan.clone())?),
        false => before.clone(),
    };
    let begun = begin(after.clone(), inputs.clone(), &keep)?;
    let comparison = Comparison {
        dialects: engine.dialects(),
        before: &before,
        view: &view,
        after: &after,
        begun: &begun,
        from: &from,
        keep: &keep,
    };
    let steps = comparison.forecast();
    let beginning = Beginning { keep, of: Some(run.clone()), ..Beginning::default() };
    Ok(Again { beginning, plan_changed, inputs_changed, steps })
}

/// The beginning of a run that executes only one step, with the results of another run.
pub fn only(engine: &Engine, run: &RunId, step: &str, plan: &Plan) -> Result<Beginning, Error> {
    let (before, events, view) = (engine.program(run)?, engine.events(run)?, engine.view(run)?);
    let after = Program::new(plan.clone())?;
    let path = match find(engine.dialects(), run, &view, step) {
        Ok(path) => path,
        // The other run may not have reached this step.
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
    let keep = kept(&before, &events, std::slice::from_ref(&path), Renewed::Only);
    let needed = missing(&after, &view, &path, &keep).or_else(|| hidden(plan, id));
    if let Some(needed) = needed {
        return Err(Error::NoResult { run: run.clone(), step: step.to_owned(), needed });
    }
    Ok(Beginning { keep, of: Some(run.clone()), reach: Some(Reach::Only(path)), ..Beginning::default() })
}

/// The first step without a result that the step at a path needs.
fn missing(program: &Program, view: &View, path: &Path, keep: &[Kept]) -> Option<String> {
    let mut around = Path::default();
    for segment in path.segments() {
        let id = step_at(program, &around.child(segment.name.clone(), None))?;
        let missing = program.plan.step(id).needs.iter().find_map(|need| {
            let path = around.child(program.plan.step(*need).id.clone(), None);
            let recorded = keep.iter().any(|kept| kept.path == path);
            let without = |step: StepView<'_>| is_skipped(&step) || step.phase == StepPhase::Dormant;
            (!recorded && !view.step(&path).is_some_and(without))
                .then(|| program.plan.step(*need).id.to_string())
        });
        if missing.is_some() {
            return missing;
        }
        around = around.child(segment.name.clone(), segment.ordinal);
    }
    None
}

/// A step inside a scope beside this step that this step reads. The new run keeps such a scope as a whole, without its steps.
fn hidden(plan: &Plan, id: StepId) -> Option<String> {
    let outwards = |step: StepId| std::iter::successors(Some(step), |step| plan.step(*step).parent);
    let around: Vec<StepId> = outwards(id).collect();
    let own = (0..plan.steps.len()).filter_map(|at| u32::try_from(at).ok()).map(StepId);
    let own = own.filter(|step| outwards(*step).any(|step| step == id));
    let mut reads = own.flat_map(|step| plan.step(step).reads.iter().copied());
    let is_hidden = |read: &StepId| {
        let scopes = outwards(*read).skip(1);
        let mut scopes = scopes.filter(|scope| !matches!(plan.step(*scope).kind, Kind::Guard(_)));
        scopes.any(|scope| !around.contains(&scope))
    };
    let within = |read: &StepId| outwards(*read).any(|step| step == id);
    reads.find(|read| !within(read) && is_hidden(read)).map(|read| plan.step(read).id.to_string())
}

/// The path of a step in the plan, outside of items and rounds.
fn planned(plan: &Plan, step: &str) -> Option<Path> {
    let id = plan.find(step)?;
    let mut chain: Vec<_> = std::iter::successors(Some(id), |step| plan.step(*step).parent).collect();
    chain.reverse();
    let steps = chain.into_iter().map(|step| plan.step(step));
    Some(steps.fold(Path::default(), |path, step| path.child(step.id.clone(), None)))
}

/// Finds an instance by its visible id, else the first instance of the step with that id in the file.
pub(crate) fn find(dialects: Dialects, run: &RunId, view: &View, step: &str) -> Result<Path, Error> {
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

/// The steps whose failure ended the run or a scope, else all failed steps. Excludes the scopes themselves.
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

/// The state of a run that has just begun. Executes nothing and grants all claims.
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

/// Compares the earlier run with the beginning of the new one.
struct Comparison<'a> {
    dialects: Dialects,
    before: &'a Program,
    view: &'a View,
    after: &'a Program,
    begun: &'a View,
    from: &'a [Path],
    keep: &'a [Kept],
}

impl Comparison<'_> {
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
            let why = if step_at(self.before, path).is_none() {
                "it is new"
            } else {
                "the earlier run did not reach it"
            };
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
                _ => "the retry starts from it".into(),
            });
        }
        let Some(_) = kept else { return Fate::Again(self.why_not_kept(step)) };
        let same = step_at(self.before, path).is_some_and(|old| {
            of_step(&self.before.plan, self.before.step(old))
                == of_step(&self.after.plan, self.after.step(id))
        });
        match (same, now.map(|now| now.phase)) {
            (false, _) => Fate::Again("it changed".into()),
            (true, None | Some(StepPhase::Pending | StepPhase::Dormant)) => {
                Fate::Perhaps("kept if its inputs stay the same".into())
            }
            (true, Some(_)) => Fate::Again("its inputs changed".into()),
        }
    }

    /// Whether the retry keeps a step or a scope around it.
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
                    true => "it runs again".into(),
                    false => format!("it comes after {}", from.join(", ")),
                }
            }
            StepPhase::Settled(Outcome::Failed(failure)) => {
                format!("it failed ({}): {}", failure.class, failure.message)
            }
            StepPhase::Settled(Outcome::Skipped(skip)) => format!("it was skipped ({})", skip.reason.word()),
            StepPhase::Settled(Outcome::Cancelled(_)) => "it was canceled".into(),
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
