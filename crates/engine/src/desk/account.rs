//! Accounts: what may be spent, what was, and what is set aside for work that is under way.

use super::claim::{Ask, Claim, Key};
use super::event::{Day, DeskWhat};
use super::{DeskRefused, Turn};
use crate::desk::Amount;
use crate::keys::Timestamp;
use std::sync::Arc;
use windlass_ir::policy::Budget;

impl Turn<'_> {
    pub(super) fn cap(
        &mut self,
        account: Key,
        cap: Budget,
        zone: Option<Arc<str>>,
    ) -> Result<(), DeskRefused> {
        let before = self.state.accounts.get(&account).cloned().unwrap_or_default();
        let day = match zone {
            Some(zone) => Some(Day { ends: end_of_day(&zone, self.now)?, zone }),
            None => before.day,
        };
        self.emit(DeskWhat::AccountIs { account, cap: Some(cap), spent: before.spent, day });
        Ok(())
    }

    pub(super) fn reset(&mut self, account: Key) -> Result<(), DeskRefused> {
        let before = self.state.accounts.get(&account).ok_or(DeskRefused::NoSuchAccount)?;
        let (cap, day) = (before.cap.clone(), before.day.clone());
        self.emit(DeskWhat::AccountIs { account, cap, spent: Amount::default(), day });
        Ok(())
    }

    /// An account whose day is over begins a new one before anything is taken from it.
    pub(super) fn renew_accounts(&mut self, ask: &Ask) {
        for claim in &ask.claims {
            let Claim::Spend { account, .. } = claim else { continue };
            let Some(known) = self.state.accounts.get(account) else { continue };
            let Some(day) = known.day.as_ref().filter(|day| day.ends <= self.now) else { continue };
            let zone = day.zone.clone();
            let Ok(ends) = end_of_day(&zone, self.now) else { continue };
            let (account, cap) = (account.clone(), known.cap.clone());
            let day = Some(Day { zone, ends });
            self.emit(DeskWhat::AccountIs { account, cap, spent: Amount::default(), day });
        }
    }
}

fn end_of_day(zone: &str, now: Timestamp) -> Result<Timestamp, DeskRefused> {
    windlass_ir::time::end_of_day(zone, now.0).map(Timestamp).ok_or(DeskRefused::NoSuchZone)
}
