//! The ids that users see: which step of the file an instance belongs to, and how its items, rounds and handlers are told apart.
//! The dialect says what an id looks like; reports, mock files and decisions at gates all use it.

use std::sync::Arc;
use windlass_engine::{Path, Run, View};
use windlass_ir::dialect::{Dialect, Dialects, Occurrence, Within};
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
    /// The id as it is in the file, whichever item, round or pass this is.
    pub plain: Arc<str>,
}

pub fn name(dialects: Dialects, view: &(impl Steps + ?Sized), path: &Path) -> Name {
    let id = within(dialects, view, path);
    let id = match call_around(view, path) {
        Some(call) => format!("{}/{id}", name(dialects, view, &call).id),
        None => id,
    };
    Name { id, plain: label(view, path).into() }
}

/// What an instance is called in the workflow that it belongs to, without the call around it.
pub fn within(dialects: Dialects, view: &(impl Steps + ?Sized), path: &Path) -> String {
    with_occurrence(dialects, view, path, |dialect, occurrence| dialect.step_id(occurrence))
}

/// What a mock file calls an instance: it tells items and rounds apart even if they share an id.
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
