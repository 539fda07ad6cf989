//! Budgets: caps, costs, and amounts reserved for running jobs.

use super::claim::{Ask, Claim, Key};
use super::event::{CoordinatorWhat, Day};
use super::{CoordinatorRefused, Turn};
use crate::coordinator::Amount;
use crate::keys::Timestamp;
use std::sync::Arc;
use windlass_ir::policy::Budget;

impl Turn<'_> {
    pub(super) fn cap(
        &mut self,
        budget: Key,
        cap: Budget,
        zone: Option<Arc<str>>,
    ) -> Result<(), CoordinatorRefused> {
        let before = self.state.budgets.get(&budget).cloned().unwrap_or_default();
        let day = match zone {
            Some(zone) => Some(Day { ends: end_of_day(&zone, self.now)?, zone }),
            None => before.day,
        };
        self.emit(CoordinatorWhat::BudgetIs { budget, cap: Some(cap), spent: before.spent, day });
        Ok(())
    }

    pub(super) fn reset(&mut self, budget: Key) -> Result<(), CoordinatorRefused> {
        let before = self.state.budgets.get(&budget).ok_or(CoordinatorRefused::NoSuchBudget)?;
        let (cap, day) = (before.cap.clone(), before.day.clone());
        self.emit(CoordinatorWhat::BudgetIs { budget, cap, spent: Amount::default(), day });
        Ok(())
    }

    /// Starts a new day of a budget before anything is reserved.
    pub(super) fn renew_budgets(&mut self, ask: &Ask) {
        for claim in &ask.claims {
            let Claim::Spend { budget, .. } = claim else { continue };
            let Some(known) = self.state.budgets.get(budget) else { continue };
            let Some(day) = known.day.as_ref().filter(|day| day.ends <= self.now) else { continue };
            let zone = day.zone.clone();
            let Ok(ends) = end_of_day(&zone, self.now) else { continue };
            let (budget, cap) = (budget.clone(), known.cap.clone());
            let day = Some(Day { zone, ends });
            self.emit(CoordinatorWhat::BudgetIs { budget, cap, spent: Amount::default(), day });
        }
    }
}

fn end_of_day(zone: &str, now: Timestamp) -> Result<Timestamp, CoordinatorRefused> {
    windlass_ir::time::end_of_day(zone, now.0).map(Timestamp).ok_or(CoordinatorRefused::NoSuchZone)
}
