//! The visible ids of step instances: the step in the file, and what distinguishes its items, rounds and handlers. The dialect
//! defines the format. Reports, mock files and gate decisions all use these ids.

use std::sync::Arc;
use windlass_engine::{Path, Run, View};
use windlass_ir::dialect::{Dialect, Dialects, Occurrence, Within};
use windlass_ir::expr::StepId;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, Kind};

/// The source of names: a run in memory, or a view of one.
pub trait Steps {
    fn dialect(&self) -> &str;

    /// The step of the plan that an instance belongs to.
    fn step(&self, path: &Path) -> Option<(StepId, &PlanStep)>;

    /// The number of attempts at the same step before a gate sent it back.
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

/// The names of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The visible id, such as `images[3]`.
    pub id: String,
    /// The id in the file, which all items, rounds and passes share.
    pub plain: Arc<str>,
}

pub fn name(dialects: Dialects, view: &(impl Steps + ?Sized), path: &Path) -> Name {
    if path.is_hook() {
        // Its number only keeps paths apart.
        return Name { id: last(path).to_string(), plain: last(path) };
    }
    let id = within(dialects, view, path);
    let id = match call_around(view, path) {
        Some(call) => format!("{}/{id}", name(dialects, view, &call).id),
        None => id,
    };
    Name { id, plain: label(view, path).into() }
}

/// The id of an instance within its own workflow, without the call around it.
pub fn within(dialects: Dialects, view: &(impl Steps + ?Sized), path: &Path) -> String {
    with_occurrence(dialects, view, path, |dialect, occurrence| dialect.step_id(occurrence))
}

/// The name of an instance in a mock file, which distinguishes items and rounds even if they share an id.
pub fn mocked(dialects: Dialects, view: &(impl Steps + ?Sized), path: &Path) -> Name {
    let name = name(dialects, view, path);
    match dialects.named(view.dialect()).shares_ids() {
        true => {
            let id = with_occurrence(dialects, view, path, |_, occurrence| occurrence.numbered());
            Name { id, ..name }
        }
        false => name,
    }
}

fn with_occurrence(
    dialects: Dialects,
    view: &(impl Steps + ?Sized),
    path: &Path,
    id: impl FnOnce(&dyn Dialect, &Occurrence<'_>) -> String,
) -> String {
    let (plain, numbers) = (label(view, path), numbers(path));
    let frame = path.parent().and_then(|around| innermost(&around));
    let frame = frame.and_then(|(frame, owner, number)| {
        let is_item = matches!(view.step(&frame)?.1.kind, Kind::ForEach(_));
        Some((within(dialects, view, &owner), number, is_item))
    });
    let within = frame.as_ref().map(|(owner, number, is_item)| Within {
        owner: owner.as_str(),
        number: *number,
        is_item: *is_item,
    });
    id(dialects.named(view.dialect()), &Occurrence { plain: &plain, numbers: &numbers, within })
}

/// The name of the innermost step with the numbers of the items and rounds around it, without a plan.
pub fn rough(path: &Path) -> String {
    if path.is_hook() {
        return last(path).to_string();
    }
    let (plain, numbers) = (last(path), numbers(path));
    Occurrence { plain: &plain, numbers: &numbers, within: None }.numbered()
}

fn last(path: &Path) -> Arc<str> {
    path.segments().last().map_or_else(|| "".into(), |segment| segment.name.clone())
}

fn numbers(path: &Path) -> Vec<u32> {
    path.segments().iter().filter_map(|segment| segment.ordinal).collect()
}

fn outwards(path: &Path) -> impl Iterator<Item = Path> {
    std::iter::successors(Some(path.clone()), Path::parent)
}

/// The id in the file. A handler without an id is named after its step.
fn label(view: &(impl Steps + ?Sized), path: &Path) -> String {
    let Some((id, known)) = view.step(path) else { return last(path).to_string() };
    match path.parent().filter(|_| known.implicit) {
        Some(around) => label(view, &around) + handler(view, &around, id).unwrap_or_default(),
        None => known.id.to_string(),
    }
}

/// The kind of handler that a step is for the guard around it.
fn handler(view: &(impl Steps + ?Sized), around: &Path, step: StepId) -> Option<&'static str> {
    let Kind::Guard(guard) = &view.step(around)?.1.kind else { return None };
    let within = |list: &Option<Vec<_>>| list.as_ref().is_some_and(|list| list.contains(&step));
    match (within(&guard.compensate), within(&guard.finally)) {
        (true, _) => Some(".compensate"),
        (_, true) => Some(".finally"),
        (false, false) => None,
    }
}

/// Whether an instance is a handler.
pub fn is_handler(view: &(impl Steps + ?Sized), path: &Path) -> bool {
    let around = path.parent().zip(view.step(path));
    around.is_some_and(|(around, (step, _))| handler(view, &around, step).is_some())
}

/// The item or round at this path, with the step that owns it.
fn innermost(path: &Path) -> Option<(Path, Path, u32)> {
    path.frames().last().filter(|(frame, _, _)| frame == path)
}

/// The call that an instance is inside of.
fn call_around(view: &(impl Steps + ?Sized), path: &Path) -> Option<Path> {
    outwards(path).skip(1).find(|path| {
        view.step(path).is_some_and(|(_, step)| matches!(step.kind, Kind::Action(Action::Call(_))))
    })
}

/// Whether an instance belongs to a called workflow, which shows only its outputs.
pub fn is_called(view: &(impl Steps + ?Sized), path: &Path) -> bool {
    call_around(view, path).is_some()
}
