//! Parallel branches: the effect of one failed branch on the others.

use super::Turn;
use super::state::{Place, Role};
use crate::event::What;
use crate::outcome::Outcome;
use windlass_ir::policy::OnFailure;
use windlass_ir::workflow::{BranchFailure, Kind};

impl Turn<'_> {
    /// The failure policy of the enclosing parallel step, if the instance is one of its branches.
    pub(super) fn branch_rule(&self, place: Place) -> Option<BranchFailure> {
        let instance = self.at(place);
        let parent = instance.parent.filter(|_| instance.role == Role::Body && instance.frame.is_none())?;
        match self.state().kind(parent) {
            Kind::Parallel(parallel) => Some(parallel.on_failure),
            _ => None,
        }
    }

    /// Stops the other branches after one has failed.
    pub(super) fn abort_branches(&mut self, place: Place) {
        let program = self.program(place);
        let step = program.step(self.at(place).step);
        let tolerated = *program.on_failure(self.at(place).step) == OnFailure::Continue;
        let failed = matches!(self.at(place).outcome(), Some(Outcome::Failed(_))) && !tolerated;
        if !failed || self.branch_rule(place) != Some(BranchFailure::Abort) {
            return;
        }
        let Some(parent) = self.at(place).parent else { return };
        let open = self.state().list(Some(parent), Role::Body).is_some_and(|list| list.open > 0);
        if open {
            let why = format!("`{}` failed", step.id).into();
            let path = self.path(parent);
            self.emit(What::CancelRequested { path, why, by: "".into(), inside: true });
        }
    }

    /// The first failed branch in file order.
    pub(super) fn first_failed_branch(&self, place: Place) -> Option<Outcome> {
        let list = self.state().list(Some(place), Role::Body)?;
        let settled = list.places().filter_map(|branch| self.at(branch).settlement());
        settled.into_iter().find(|settlement| settlement.fails).map(|settlement| settlement.outcome.clone())
    }
}
