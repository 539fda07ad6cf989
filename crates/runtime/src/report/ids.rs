//! The ids that a user sees: which step of the file an instance belongs to, and how its items, rounds and handlers are told apart
//! in the words of its dialect. Reports, scripts and decisions at gates all go by these.

use super::Dialect;
use std::sync::Arc;
use windlass_engine::{Path, Run, View};
use windlass_ir::expr::StepId;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, Kind};

/// What names are made of: a run in memory, or a view of one.
pub trait Steps {
    fn dialect(&self) -> &str;

    /// The step of the plan that an instance belongs to.
    fn step(&self, path: &Path) -> Option<(StepId, &PlanStep)>;

    /// How many attempts were made at the same step before a gate sent it back.
    fn attempts_before(&self, path: &Path) -> u32;
}

impl Steps for Run {
    fn dialect(&self) -> &str {
        &self.program().plan.dialect
    }

    fn step(&self, path: &Path) -> Option<(StepId, &PlanStep)> {
        self.plan_step(path)
    }

    fn attempts_before(&self, path: &Path) -> u32 {
        self.attempts_in_earlier_passes(path)
    }
}

impl Steps for View {
    fn dialect(&self) -> &str {
        &self.program().plan.dialect
    }

    fn step(&self, path: &Path) -> Option<(StepId, &PlanStep)> {
        let step = View::step(self, path)?;
        Some((step.step, self.plan_step(&step)))
    }

    fn attempts_before(&self, path: &Path) -> u32 {
        self.attempts_in_earlier_passes(path)
    }
}

/// What an instance is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The id that the user sees, such as `images[3]`.
    pub id: String,
    /// The id as it stands in the file, whichever item, round or pass this is.
    pub plain: Arc<str>,
}

pub fn name(view: &(impl Steps + ?Sized), path: &Path) -> Name {
    let plain: Arc<str> = label(view, path).into();
    let id = match Dialect::named(view.dialect()) {
        Dialect::Swdl => format!("{plain}{}", ordinals(path)),
        Dialect::Speckit => qualified(view, path),
        Dialect::Dagnats => match path.frames().last() {
            Some((_, _, number)) => format!("{plain}.map.{number}"),
            None => plain.to_string(),
        },
        Dialect::Dcc => plain.to_string(),
    };
    let id = match call_around(view, path) {
        Some(call) => format!("{}/{id}", name(view, &call).id),
        None => id,
    };
    Name { id, plain }
}

/// What an instance is called in the workflow that it belongs to, without the call around it.
pub fn within(view: &(impl Steps + ?Sized), path: &Path) -> String {
    match Dialect::named(view.dialect()) {
        Dialect::Speckit => qualified(view, path),
        Dialect::Swdl | Dialect::Dagnats | Dialect::Dcc => name(view, path).id,
    }
}

/// What a script calls an instance. DCC-MCP shows a step once, whichever iteration this is; a script can tell them apart.
pub fn scripted(view: &(impl Steps + ?Sized), path: &Path) -> Name {
    let name = name(view, path);
    match Dialect::named(view.dialect()) {
        Dialect::Dcc => Name { id: format!("{}{}", name.plain, ordinals(path)), ..name },
        Dialect::Swdl | Dialect::Speckit | Dialect::Dagnats => name,
    }
}

/// The name of the innermost step with the numbers of the items and rounds around it, without a plan.
pub fn rough(path: &Path) -> String {
    format!("{}{}", last(path), ordinals(path))
}

fn last(path: &Path) -> Arc<str> {
    path.segments().last().map_or_else(|| "".into(), |segment| segment.name.clone())
}

fn ordinals(path: &Path) -> String {
    path.segments().iter().filter_map(|segment| segment.ordinal).map(|number| format!("[{number}]")).collect()
}

fn outwards(path: &Path) -> impl Iterator<Item = Path> {
    std::iter::successors(Some(path.clone()), Path::parent)
}

/// The id; a handler that has none is called after the step that it belongs to.
fn label(view: &(impl Steps + ?Sized), path: &Path) -> String {
    let Some((id, known)) = view.step(path) else { return last(path).to_string() };
    match path.parent().filter(|_| known.implicit) {
        Some(around) => label(view, &around) + handler(view, &around, id).unwrap_or_default(),
        None => known.id.to_string(),
    }
}

/// Which handler of the guard around it a step is.
fn handler(view: &(impl Steps + ?Sized), around: &Path, step: StepId) -> Option<&'static str> {
    let Kind::Guard(guard) = &view.step(around)?.1.kind else { return None };
    let within = |list: &Option<Vec<_>>| list.as_ref().is_some_and(|list| list.contains(&step));
    match (within(&guard.compensate), within(&guard.finally)) {
        (true, _) => Some(".compensate"),
        (_, true) => Some(".finally"),
        (false, false) => None,
    }
}

/// Whether an instance is a handler that has no name of its own.
pub fn is_handler(view: &(impl Steps + ?Sized), path: &Path) -> bool {
    let around = path.parent().zip(view.step(path));
    around.is_some_and(|(around, (step, _))| handler(view, &around, step).is_some())
}

/// Spec Kit's ids: `loop:step:2` is `step` in the third round of `loop`. The first round has plain ids, and so has everything
/// that does not stand in the loop directly.
fn qualified(view: &(impl Steps + ?Sized), path: &Path) -> String {
    let plain = || label(view, path);
    let Some((frame, owner, number)) = path.parent().and_then(|around| innermost(&around)) else {
        return plain();
    };
    let Some((_, around)) = view.step(&frame) else { return plain() };
    let first = match around.kind {
        Kind::ForEach(_) => 0,
        _ => 1,
    };
    match number >= first {
        true => format!("{}:{}:{number}", qualified(view, &owner), plain()),
        false => plain(),
    }
}

/// The item or round that this very path is, with the step that has it.
fn innermost(path: &Path) -> Option<(Path, Path, u32)> {
    path.frames().last().filter(|(frame, _, _)| frame == path)
}

/// The call of another workflow that an instance is inside of.
fn call_around(view: &(impl Steps + ?Sized), path: &Path) -> Option<Path> {
    outwards(path).skip(1).find(|path| {
        view.step(path).is_some_and(|(_, step)| matches!(step.kind, Kind::Action(Action::Call(_))))
    })
}

/// Whether an instance belongs to another workflow, which shows nothing but its outputs.
pub fn is_called(view: &(impl Steps + ?Sized), path: &Path) -> bool {
    call_around(view, path).is_some()
}
