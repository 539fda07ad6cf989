//! Which steps of a run are listed, and under which ids.

use super::{Report, Shown, ids};
use indexmap::IndexMap;
use std::collections::HashMap;
use windlass_ir::dialect::{Listing, StepFacts, StepPhase};
use windlass_ir::expr::StepId;
use windlass_ir::workflow::{Choose, Kind};
use windlass_runtime::{Decision, Outcome, Path, RunPhase, StepPhase as Phase, StepView, View};

impl<'v> Report<'v> {
    pub(super) fn steps(&self) -> IndexMap<String, Shown> {
        match self.dialect().reporting().listing {
            Listing::Once => self.once(),
            Listing::WithItems => self.with_items(),
            Listing::WithUnnamed => self.with_unnamed(),
            Listing::Begun => self.begun(),
        }
    }

    fn once(&self) -> IndexMap<String, Shown> {
        let (plan, instances) = (&self.view.program().plan, instances(self.view));
        let names = plan.names();
        let named = (0u32..).map(StepId).zip(&plan.steps).filter(|(_, step)| !step.implicit);
        named.map(|(number, _)| (names[number.index()].clone(), self.last(&instances, number))).collect()
    }

    fn with_items(&self) -> IndexMap<String, Shown> {
        let (view, instances) = (self.view, instances(self.view));
        let plan = &view.program().plan;
        let names = plan.names();
        let mut all = IndexMap::new();
        for (number, _) in (0u32..).map(StepId).zip(&plan.steps).filter(|(_, step)| !step.implicit) {
            all.insert(names[number.index()].clone(), self.last(&instances, number));
            // The items of a step without a name inside are its own.
            let own = instances.get(&number);
            let inner = inside(view, number).and_then(|inner| instances.get(&inner));
            let numbered = own.into_iter().chain(inner).flatten();
            for (path, instance) in numbered.filter(|(path, _)| path.frames().next().is_some()) {
                all.insert(self.id(path), self.shown(path, instance));
            }
        }
        for (path, instance) in handlers(view) {
            all.insert(self.id(path), self.shown(path, &instance));
        }
        self.add_planned(&mut all);
        all
    }

    fn with_unnamed(&self) -> IndexMap<String, Shown> {
        let (plan, instances) = (&self.view.program().plan, instances(self.view));
        let mut all = IndexMap::new();
        for (number, step) in (0u32..).map(StepId).zip(&plan.steps) {
            if step.implicit {
                let own = instances.get(&number).into_iter().flatten();
                all.extend(own.map(|(path, item)| (self.id(path), self.shown(path, item))));
            } else {
                all.insert(step.id.to_string(), self.last(&instances, number));
            }
        }
        self.add_planned(&mut all);
        all
    }

    fn begun(&self) -> IndexMap<String, Shown> {
        let mut all = IndexMap::new();
        for (path, step) in self.recorded() {
            let name = ids::name(self.dialects, self.view, path);
            if *name.id != *name.plain && !self.is_template(path) {
                all.insert(name.plain.to_string(), self.shown(path, &step));
            }
            all.insert(name.id, self.shown(path, &step));
        }
        all
    }

    /// A step as its last instance left it.
    fn last(&self, instances: &Instances<'v>, number: StepId) -> Shown {
        let own = instances.get(&number).map(Vec::as_slice).unwrap_or_default();
        match last_called(own) {
            Some((path, instance)) => self.shown(path, &instance),
            None => self.unborn(instances, number),
        }
    }

    /// Adds the steps that workers have added to the run.
    fn add_planned(&self, all: &mut IndexMap<String, Shown>) {
        let added = self.view.steps().filter(|(_, step)| step.unit > 0 && step.frame.is_none());
        for (path, step) in added.filter(|(path, _)| !ids::is_called(self.view, path)) {
            all.insert(self.id(path), self.shown(path, &step));
        }
    }

    /// A step that never came into being: its arm was not taken, or its scope has not been reached.
    fn unborn(&self, instances: &Instances<'_>, id: StepId) -> Shown {
        let plan = &self.view.program().plan;
        let mut inner = id;
        while let Some(around) = plan.step(inner).parent {
            if let Some((_, scope)) = instances.get(&around).and_then(|born| last_called(born)) {
                return self.inside_of(&scope, inner, id);
            }
            inner = around;
        }
        match self.view.phase() {
            RunPhase::Ended(_) => self.nothing(id, StepPhase::Skipped, Some(NOT_TAKEN)),
            RunPhase::Pending | RunPhase::Running => self.nothing(id, StepPhase::Pending, None),
        }
    }

    /// What became of a step that its scope never came to.
    fn inside_of(&self, scope: &StepView<'_>, inner: StepId, id: StepId) -> Shown {
        match (&scope.phase, &self.view.plan_step(scope).kind) {
            (Phase::Settled(Outcome::Cancelled(_)), _) => self.nothing(id, StepPhase::Cancelled, None),
            (Phase::Settled(Outcome::Skipped(skip)), _) => {
                self.nothing(id, StepPhase::Skipped, Some(skip.reason.word()))
            }
            (Phase::Settled(_), _) => self.nothing(id, StepPhase::Skipped, Some(NOT_TAKEN)),
            (Phase::Inside, Kind::Choose(choose)) if !is_taken(scope, choose, inner) => {
                self.nothing(id, StepPhase::Skipped, Some(NOT_TAKEN))
            }
            (_, _) => self.nothing(id, StepPhase::Pending, None),
        }
    }

    /// A step that nothing has happened to.
    fn nothing(&self, id: StepId, phase: StepPhase, skipped: Option<&str>) -> Shown {
        let facts = StepFacts { unborn: true, ..StepFacts::new(phase, self.facts) };
        Shown::nothing(self.view.program().plan.step(id), self.words(&facts), skipped)
    }
}

/// Why a step was skipped whose branch was not chosen.
pub(super) const NOT_TAKEN: &str = "branch_not_taken";

/// The only step of a loop's body, where it has no name of its own.
fn inside(view: &View, number: StepId) -> Option<StepId> {
    let plan = &view.program().plan;
    let body = match &plan.step(plan.unguarded(number)).kind {
        Kind::ForEach(each) => &each.body,
        Kind::Repeat(repeat) => &repeat.body,
        _ => return None,
    };
    body.first().copied().filter(|inner| plan.step(*inner).implicit)
}

/// The instances of each step of the file, without items and rounds as such and what belongs to another workflow.
type Instances<'v> = HashMap<StepId, Vec<(&'v Path, StepView<'v>)>>;

fn instances(view: &View) -> Instances<'_> {
    let mut all = Instances::new();
    for (path, step) in view.steps().filter(|(_, step)| step.unit == 0 && step.frame.is_none()) {
        all.entry(step.step).or_default().push((path, step));
    }
    all
}

/// The last of these that is more than a place to be called from.
fn last_called<'v>(instances: &[(&'v Path, StepView<'v>)]) -> Option<(&'v Path, StepView<'v>)> {
    let called = instances.iter().rev().find(|(_, step)| step.phase != Phase::Dormant);
    called.or(instances.last()).copied()
}

/// Handlers without a name of their own that have come into being.
fn handlers(view: &View) -> impl Iterator<Item = (&Path, StepView<'_>)> {
    view.steps().filter(|(path, step)| {
        let unnamed = step.unit == 0 && step.frame.is_none() && view.plan_step(step).implicit;
        unnamed && ids::is_handler(view, path)
    })
}

fn is_taken(scope: &StepView<'_>, choose: &Choose<Vec<StepId>>, inner: StepId) -> bool {
    let Some(Decision::Arm { arm, .. }) = scope.entered else { return true };
    choose.arms().into_iter().any(|(name, body)| *name == **arm && body.contains(&inner))
}
