//! The end of a simulation. Sometimes new runs keep coming first, and the waiting requests must be granted
//! regardless. Then no new run comes: every request is granted, everything is released, and nothing is left at the
//! coordinator.

use super::life::Phase;
use super::world::World;
use std::collections::BTreeSet;
use windlass_engine::{
    Amount, Ask, Asker, Came, Claim, CoordinatorInput, CoordinatorWhat, End, Full, RunId, Timestamp,
};

impl World {
    pub(super) fn become_calm(&mut self) {
        self.calm = true;
        self.catch_up();
        self.ask_all_again();
        if self.random.chance(15) {
            self.crowd();
        }
        self.serve_all();
        let left: Vec<RunId> =
            self.runs.values().filter(|life| !life.over).map(|life| life.id.clone()).collect();
        for run in left {
            if !self.runs[&run].over {
                self.end_run(&run, &End::Over);
            }
        }
        self.catch_up();
        self.check_received();
        self.compact();
        self.check_left();
        assert!(self.coordinator.outstanding().is_empty(), "effects are outstanding at the end");
        assert_eq!(self.coordinator.next_deadline(), None, "a deadline is left at the end");
    }

    /// Repeats requests whose answers were lost, and carries out pending effects.
    fn ask_all_again(&mut self) {
        for (run, number) in self.parts_in(Phase::Waiting) {
            if self.runs[&run].parts[number].phase == Phase::Waiting {
                self.offer(CoordinatorInput::Ask(self.runs[&run].ask(number)));
            }
        }
        for effect in self.coordinator.outstanding() {
            self.carry_out(effect);
        }
        self.catch_up();
    }

    fn parts_in(&self, phase: Phase) -> Vec<(RunId, usize)> {
        self.parts(|_, _, part| part.phase == phase)
    }

    /// Adds new runs until the currently waiting requests are granted, which must not take forever.
    fn crowd(&mut self) {
        self.tally.count("fault", "crowd");
        self.give_up(&[Phase::Idle]);
        self.catch_up();
        let mut waiting: BTreeSet<Asker> = self.ledger.waits.keys().cloned().collect();
        // After the clock went back, new requests seem older for a while, and a slow rate serves one of them in seven
        // rounds.
        let mut rounds = 200 + 15 * waiting.len();
        while !waiting.is_empty() {
            assert!(rounds > 0, "{waiting:?} starve");
            rounds -= 1;
            self.tally.steps += 1;
            if self.ledger.waits.len() < 12 {
                for _ in 0..1 + self.random.below(3) {
                    let run = self.come_from(None);
                    let parts = self.runs[&run].parts.len();
                    let first = usize::from(self.runs[&run].has_begun());
                    (first..if first == 0 { 1 } else { parts }).for_each(|number| self.ask_for(&run, number));
                    self.catch_up();
                }
            }
            self.jostle(&waiting);
            self.pass(3_000_000);
            for (run, number) in self.parts_in(Phase::Between) {
                self.ask_for(&run, number);
            }
            self.catch_up();
            self.give_back_some(50);
            self.catch_up();
            waiting.retain(|asker| self.ledger.waits.contains_key(asker));
        }
    }

    /// Adds requests that each want only one of the resources that a waiting request needs.
    fn jostle(&mut self, waiting: &BTreeSet<Asker>) {
        let wanted = waiting.iter().filter_map(|asker| self.ledger.waits.get(asker));
        let several = wanted.filter(|(ask, _)| ask.claims.len() > 1).map(|(ask, _)| ask.clone());
        for ask in several.collect::<Vec<_>>() {
            for claim in ask.claims {
                let Claim::Slot { key, limit: limit @ 1.., .. } = claim else { continue };
                let only =
                    |ask: &Ask| matches!(&ask.claims[..], [Claim::Slot { key: own, .. }] if *own == key);
                if self.ledger.waits.values().filter(|(ask, _)| only(ask)).count() >= 2 {
                    continue;
                }
                let is_run = ask.asker.path.is_run();
                let run = self.come_for(Claim::Slot { key, limit, full: Full::Wait }, is_run);
                self.ask_for(&run, usize::from(!is_run));
                self.catch_up();
            }
        }
    }

    fn pass(&mut self, micros: i64) {
        self.now = Timestamp(self.now.0 + micros);
        self.offer(CoordinatorInput::Tick);
        self.catch_up();
    }

    /// Some holders release everything for good.
    fn give_back_some(&mut self, percent: u64) {
        for (run, number) in self.holding_parts() {
            let life = self.runs[&run].clone();
            if life.over || life.parts[number].phase != Phase::Holding || !self.random.chance(percent) {
                continue;
            }
            let end = if self.random.chance(60) { End::Done(self.value()) } else { End::Over };
            match number {
                0 => self.end_run(&run, &end),
                _ => self.end_part(life, number, end, Amount::default()),
            }
        }
    }

    /// Steps that hold something, and runs that have nothing left to do.
    fn holding_parts(&self) -> Vec<(RunId, usize)> {
        let mut found = Vec::new();
        for life in self.runs.values().filter(|life| !life.over) {
            for (number, _) in life.parts.iter().enumerate().filter(|(_, part)| part.phase == Phase::Holding)
            {
                let busy = |part: &super::life::Part| matches!(part.phase, Phase::Waiting | Phase::Holding);
                let called = |run: &RunId| {
                    self.runs.values().any(|other| !other.over && other.ancestors.contains(run))
                };
                let needed = number == 0 && (life.parts[1..].iter().any(busy) || called(&life.id));
                if !needed {
                    found.push((life.id.clone(), number));
                }
            }
        }
        found
    }

    /// No new run comes, and every waiting request must be granted.
    fn serve_all(&mut self) {
        let mut rounds = 60 + 20 * self.ledger.waits.len();
        loop {
            self.tally.steps += 1;
            self.give_up(&[Phase::Idle, Phase::Between]);
            self.give_back_some(100);
            self.catch_up();
            if self.ledger.waits.is_empty() && self.holding_parts().is_empty() {
                return;
            }
            assert!(rounds > 0, "still waiting at the end: {:?}", self.ledger.waits.keys());
            rounds -= 1;
            let next = self.coordinator.next_deadline().unwrap_or(self.now);
            self.pass((next.0 - self.now.0).max(0));
        }
    }

    /// Ends steps that have not asked or would ask again, and runs that have not begun.
    fn give_up(&mut self, phases: &[Phase]) {
        let lives: Vec<RunId> =
            self.runs.values().filter(|life| !life.over).map(|life| life.id.clone()).collect();
        for run in lives {
            if !self.runs[&run].over && self.runs[&run].parts[0].phase == Phase::Idle {
                self.end_run(&run, &End::Over);
                continue;
            }
            for number in 1..self.runs[&run].parts.len() {
                let life = self.runs[&run].clone();
                if !life.over && phases.contains(&life.parts[number].phase) {
                    self.end_part(life, number, End::Over, Amount::default());
                }
            }
        }
    }

    /// Each message has reached its subscribers, unless they unsubscribed or ended.
    fn check_received(&self) {
        for (to, id) in &self.ledger.sent {
            let Some(life) = self.runs.get(&to.run) else { continue };
            let subscribed = life.subscriptions.iter().any(|subscription| subscription.address == *to);
            let received = life.received.contains(&(to.path.clone(), id.clone()));
            assert!(received || !subscribed, "{id} never reached {to:?}");
        }
    }

    /// At the end, no run holds, waits or subscribes, and no message or order is left.
    fn check_left(&self) {
        for event in &self.kept.journal {
            let may_stay = match &event.what {
                CoordinatorWhat::Snapshot | CoordinatorWhat::Kept { .. } | CoordinatorWhat::RateIs { .. } => {
                    true
                }
                // Message ids and the last instants of triggers remain.
                CoordinatorWhat::Published { to, .. } => to.is_empty(),
                CoordinatorWhat::Fired(fired) => matches!(fired.came, Came::Skipped { .. }),
                CoordinatorWhat::BudgetIs { .. } => true,
                _ => false,
            };
            assert!(may_stay, "left at the end: {event:?}");
        }
    }
}
