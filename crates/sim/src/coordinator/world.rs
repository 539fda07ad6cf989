//! One coordinator, many runs, and faults between them, from a seed.
//!
//! Runs and coordinator share one journal that is durable up to a point. A crash loses the memory and any part of the
//! journal after that point. Then everything is restored from the rest, and the runs do what a runtime does after a
//! restart.

use super::goods::{self, Goods};
use super::ledger::{Ledger, fresh};
use super::life::{Ended, Life, Part, Phase};
use crate::{Random, Tally};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use windlass_engine::{
    Address, Amount, Asker, Claim, Coordinator, CoordinatorAnswer, CoordinatorEffect, CoordinatorEvent,
    CoordinatorInput, CoordinatorRefused, CoordinatorState, CoordinatorWhat, End, Firing, Key, Overlap, Path,
    RunId, Subscription, Timestamp,
};
use windlass_ir::value::Map;
use windlass_ir::{Duration, Value};

/// The size of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of concurrent runs.
    pub runs: usize,
    /// The most steps of a run.
    pub steps: usize,
    /// The number of keys of each kind.
    pub keys: usize,
    /// The number of actions before faults end.
    pub acts: u64,
}

impl Size {
    pub fn draw(random: &mut Random) -> Self {
        let (runs, steps, keys) = (2 + random.below(9), 1 + random.below(3), 1 + random.below(3));
        Self { runs, steps, keys, acts: 20 + random.below(160) as u64 }
    }

    /// Slightly smaller variants.
    pub fn smaller(self) -> Vec<Self> {
        let acts = [self.acts / 2, self.acts * 3 / 4, self.acts.saturating_sub(1)];
        let shorter = acts.into_iter().map(|acts| Self { acts, ..self });
        let others = [
            Self { runs: self.runs.saturating_sub(1).max(1), ..self },
            Self { steps: self.steps.saturating_sub(1).max(1), ..self },
            Self { keys: self.keys.saturating_sub(1).max(1), ..self },
        ];
        others.into_iter().chain(shorter).filter(|smaller| *smaller != self).collect()
    }
}

#[derive(Debug)]
pub struct World {
    pub(super) random: Random,
    size: Size,
    pub(super) goods: Goods,
    pub(super) now: Timestamp,
    pub(super) coordinator: Coordinator,
    /// The same coordinator, built only from events.
    follower: Coordinator,
    pub(super) runs: BTreeMap<RunId, Life>,
    pub(super) ledger: Ledger,
    pub(super) kept: Kept,
    /// Records that may still be lost.
    loose: Vec<Record>,
    /// The number of records written, and the number of durable ones.
    written: u64,
    durable: u64,
    /// Pending effects, with the record that must be durable first.
    mail: Vec<(u64, CoordinatorEffect)>,
    /// Inputs that arrive late.
    late: Vec<CoordinatorInput>,
    /// From now on, nothing is lost, repeated or late.
    pub(super) calm: bool,
    /// Whether events are serialized and parsed again.
    as_text: bool,
    named: u32,
    pub(super) values: i64,
    pub tally: Tally,
    /// `None` while no failure is to be shown.
    pub log: Option<Vec<String>>,
}

/// The durable state.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) journal: Vec<CoordinatorEvent>,
    runs: BTreeMap<RunId, Life>,
    ledger: Ledger,
}

#[derive(Debug)]
enum Record {
    Coordinator { now: Timestamp, input: Box<CoordinatorInput>, events: Vec<CoordinatorEvent> },
    Run(Box<Life>),
}

/// A task after a crash.
enum Chore {
    /// Release a resource that is no longer needed.
    LetGo(Asker),
    /// Release the keys of a finished step.
    FreeKeys(RunId, Path),
    Gone(RunId),
    Ask(RunId, usize),
    Subscribe(Box<Subscription>),
    Unsubscribe(Address),
    Owed(CoordinatorEffect),
}

const MESSAGES: usize = 2;
const TRIGGERS: usize = 2;

impl World {
    pub fn new(size: Size, seed: u64, logs: bool) -> Self {
        let mut random = Random::new(seed);
        let goods = Goods::draw(&mut random, size.keys);
        let as_text = random.chance(5);
        Self {
            random,
            size,
            goods,
            now: Timestamp(1_770_000_000_000_000),
            coordinator: Coordinator::default(),
            follower: Coordinator::default(),
            runs: BTreeMap::new(),
            ledger: Ledger::default(),
            kept: Kept::default(),
            loose: Vec::new(),
            written: 0,
            durable: 0,
            mail: Vec::new(),
            late: Vec::new(),
            calm: false,
            as_text,
            named: 0,
            values: 0,
            tally: Tally::default(),
            log: logs.then(Vec::new),
        }
    }

    /// Simulates from start to end. Panics if a guarantee is broken.
    pub fn simulate(&mut self) {
        while self.tally.steps < self.size.acts {
            self.tally.steps += 1;
            self.act();
        }
        self.become_calm();
    }

    fn act(&mut self) {
        match self.random.below(100) {
            0..=9 => self.come(),
            10..=31 => self.ask(),
            32..=35 => self.ask_again(),
            36..=50 => self.finish_one(),
            51..=52 => self.cancel_part(),
            53 => self.cancel_run(),
            54..=57 => self.wind_up(),
            58..=60 => self.subscribe(),
            61 => self.unsubscribe(),
            62..=65 => self.publish(),
            66..=68 => self.fire(),
            69..=70 => self.change_budget(),
            71..=81 => self.pass_time(),
            82..=89 => self.be_late(),
            90..=95 => self.flush(),
            96..=97 => self.crash(),
            98 => self.compact(),
            _ => self.say_again(),
        }
        while self.random.chance(65) && self.carry_out_one() {}
    }

    // The coordinator and its journal

    pub(super) fn offer(&mut self, input: CoordinatorInput) {
        let before = self.coordinator.state().last_at.max(self.now);
        let is_tick = input == CoordinatorInput::Tick;
        match self.coordinator.handle(self.now, input.clone()) {
            Err(refused) => {
                self.tally.count("fault", "refusal");
                self.tell("refused", &input);
                check_refusal(self.coordinator.state(), &input, refused);
            }
            Ok(turn) => {
                self.count_input(&input);
                // Skip ticks without effect in the log.
                if !is_tick || !turn.events.is_empty() {
                    self.tell("input", &input);
                }
                for event in &turn.events {
                    self.count_event(event);
                    self.tell("  event", &event.what);
                    self.follower.apply(event);
                }
                for effect in &turn.effects {
                    self.count_effect(effect);
                    self.tell("  effect", effect);
                }
                self.ledger.apply(self.now, &input, &turn.events);
                self.ledger.check_effects(&input, &turn.events, &turn.effects);
                if !turn.events.is_empty() {
                    let input = Box::new(input);
                    self.write(Record::Coordinator { now: self.now, input, events: turn.events });
                }
                for effect in turn.effects {
                    self.send(effect);
                }
            }
        }
        assert!(self.coordinator == self.follower, "the live coordinator differs from its events");
        self.ledger.check(self.now, self.coordinator.state());
        if is_tick {
            let next = self.coordinator.next_deadline();
            assert!(next.is_none_or(|next| next > before), "time has passed and changed nothing");
        }
    }

    fn tell(&mut self, kind: &str, what: &impl Debug) {
        let seconds = self.now.0 / 1_000_000 % 10_000_000;
        if let Some(log) = &mut self.log {
            log.push(format!("{seconds:>9} {kind:<8} {what:?}"));
        }
    }

    fn count_input(&mut self, input: &CoordinatorInput) {
        self.tally.saw("input", input);
        if let CoordinatorInput::Release { end, .. } = input {
            self.tally.saw("end", end);
        }
        if let CoordinatorInput::Fire(fire) = input {
            self.tally.saw("overlap", &fire.overlap);
        }
    }

    fn count_event(&mut self, event: &CoordinatorEvent) {
        self.tally.saw("event", &event.what);
        if let CoordinatorWhat::Fired(fired) = &event.what {
            self.tally.saw("came", &fired.came);
        }
    }

    fn count_effect(&mut self, effect: &CoordinatorEffect) {
        self.tally.saw("effect", effect);
        if let CoordinatorEffect::Answer { answer, .. } = effect {
            self.tally.saw("answer", answer);
        }
        if let CoordinatorEffect::Answer { answer: CoordinatorAnswer::Denied(denial), .. } = effect {
            self.tally.saw("denied", denial);
        }
    }

    fn write(&mut self, record: Record) {
        self.loose.push(record);
        self.written += 1;
    }

    /// Records the state of a run.
    pub(super) fn note(&mut self, life: &Life) {
        self.runs.insert(life.id.clone(), life.clone());
        self.write(Record::Run(Box::new(life.clone())));
    }

    /// On one machine, an effect can be carried out before its record is durable, because both are in one journal.
    fn send(&mut self, effect: CoordinatorEffect) {
        let after = if self.random.chance(50) { 0 } else { self.written };
        if !self.calm && self.random.chance(3) {
            self.tally.count("fault", "doubled effect");
            self.mail.push((after, effect.clone()));
        }
        if !self.calm && self.random.chance(3) {
            self.tally.count("fault", "lost effect");
            return;
        }
        self.mail.push((after, effect));
    }

    pub(super) fn flush(&mut self) {
        let all = self.loose.len();
        self.keep(all);
    }

    /// Makes this many records durable.
    fn keep(&mut self, count: usize) {
        for record in self.loose.drain(..count) {
            match record {
                Record::Coordinator { now, input, events } => {
                    self.kept.ledger.apply(now, &input, &events);
                    self.kept.journal.extend(events);
                }
                Record::Run(life) => drop(self.kept.runs.insert(life.id.clone(), *life)),
            }
        }
        self.durable = self.written - self.loose.len() as u64;
    }

    fn crash(&mut self) {
        self.tally.count("fault", "crash");
        let kept = self.random.below(self.loose.len() + 1);
        let lost = self.loose.len() - kept;
        (0..lost).for_each(|_| self.tally.count("fault", "lost record"));
        self.tell("crash", &lost);
        self.keep(kept);
        self.loose.clear();
        self.written = self.durable;
        self.mail.clear();
        self.late.clear();
        if self.as_text {
            self.kept.journal = read_again(&self.kept.journal);
        }
        self.coordinator = Coordinator::replay(&self.kept.journal).expect("a journal without contradictions");
        self.follower = self.coordinator.clone();
        self.runs = self.kept.runs.clone();
        self.ledger = self.kept.ledger.clone();
        self.recover();
    }

    /// Replaces the journal by a snapshot.
    pub(super) fn compact(&mut self) {
        self.tally.count("fault", "compaction");
        self.flush();
        let old = self.coordinator.state().clone();
        let now = self.now.max(old.last_at);
        let mut events = self.coordinator.snapshot(self.now);
        if self.as_text {
            events = read_again(&events);
        }
        events.iter().for_each(|event| self.count_event(event));
        self.tell("compact", &events.len());
        check_same(&old, self.coordinator.state(), now);
        self.follower = Coordinator::replay(&events).expect("a snapshot without contradictions");
        assert!(self.coordinator == self.follower, "the live coordinator differs from its snapshot");
        assert_eq!(self.coordinator.snapshot(now), events, "two snapshots differ");
        self.ledger.is_at(now);
        self.kept.ledger.is_at(now);
        self.ledger.check(self.now, self.coordinator.state());
        self.kept.journal = events;
    }

    /// What a runtime does after a restart, in any order. It may crash again meanwhile.
    fn recover(&mut self) {
        let mut chores = self.chores();
        while !chores.is_empty() {
            let chore = chores.swap_remove(self.random.below(chores.len()));
            if !self.calm && self.random.chance(1) {
                return self.crash();
            }
            self.do_chore(chore);
        }
    }

    fn chores(&self) -> Vec<Chore> {
        let mut chores = Vec::new();
        let is_over = |run: &RunId| self.runs.get(run).is_none_or(|life| life.over);
        let wants = |asker: &Asker| self.runs.get(&asker.run).is_some_and(|life| life.wants(asker));
        // The slot that a trigger holds for a run that has not begun is still needed.
        let is_ordered = |run: &RunId| self.coordinator.state().orders.contains_key(run);
        for asker in self.coordinator.askers().filter(|asker| !wants(asker) && !is_ordered(&asker.run)) {
            chores.push(Chore::LetGo(asker.clone()));
        }
        for (run, path) in self.coordinator.key_owners() {
            if !self.runs.get(run).is_some_and(|life| life.continues(path)) {
                chores.push(Chore::FreeKeys(run.clone(), path.clone()));
            }
        }
        for address in self.coordinator.state().subscribed.keys() {
            let known = self.runs.get(&address.run);
            let subscribes = known.is_some_and(|life| {
                life.subscriptions.iter().any(|subscription| subscription.address == *address)
            });
            if !subscribes {
                chores.push(Chore::Unsubscribe(address.clone()));
            }
        }
        for life in self.runs.values().filter(|life| !life.over) {
            let waits = |(_, part): &(usize, &Part)| part.phase == Phase::Waiting;
            let waiting = life.parts.iter().enumerate().filter(waits);
            chores.extend(waiting.map(|(number, _)| Chore::Ask(life.id.clone(), number)));
            chores.extend(
                life.subscriptions
                    .iter()
                    .map(|subscription| Chore::Subscribe(Box::new(subscription.clone()))),
            );
        }
        let over = self.runs.keys().filter(|run| is_over(run));
        chores.extend(over.map(|run| Chore::Gone(run.clone())));
        chores.extend(self.coordinator.outstanding().into_iter().map(Chore::Owed));
        chores
    }

    fn do_chore(&mut self, chore: Chore) {
        match chore {
            Chore::LetGo(asker) => {
                let end = self.runs.get(&asker.run).map(|life| life.end_of(&asker));
                let (used, end) = end.unwrap_or((Amount::default(), End::Over));
                self.offer(CoordinatorInput::Release { asker, used, end });
            }
            Chore::FreeKeys(run, path) => {
                let asker = Asker { run, path, attempt: 0 };
                self.offer(CoordinatorInput::Release { asker, used: Amount::default(), end: End::Over });
            }
            Chore::Gone(run) => self.offer(CoordinatorInput::Gone { run }),
            Chore::Ask(run, part) => {
                let life = &self.runs[&run];
                if life.parts[part].phase == Phase::Waiting {
                    self.offer(CoordinatorInput::Ask(life.ask(part)));
                }
            }
            Chore::Subscribe(subscription) => {
                if self.runs[&subscription.address.run].subscriptions.contains(&subscription) {
                    self.offer(CoordinatorInput::Subscribe(subscription));
                }
            }
            Chore::Unsubscribe(address) => self.offer(CoordinatorInput::Unsubscribe(address)),
            Chore::Owed(effect) => self.carry_out(effect),
        }
    }

    // Effects on runs

    fn carry_out_one(&mut self) -> bool {
        let durable = self.durable;
        let ready = |(_, (after, _)): &(usize, &(u64, CoordinatorEffect))| *after <= durable;
        let ready: Vec<usize> = self.mail.iter().enumerate().filter(ready).map(|(at, _)| at).collect();
        if ready.is_empty() {
            return false;
        }
        let (_, effect) = self.mail.remove(*self.random.pick(&ready));
        self.carry_out(effect);
        true
    }

    /// Carries out all effects and late inputs.
    pub(super) fn catch_up(&mut self) {
        loop {
            self.flush();
            if !self.carry_out_one() && !self.say_late() {
                return;
            }
        }
    }

    pub(super) fn carry_out(&mut self, effect: CoordinatorEffect) {
        self.tell("done", &effect);
        match effect {
            CoordinatorEffect::Answer { asker, answer } => self.answered(&asker, answer),
            CoordinatorEffect::Deliver { to, message } => self.delivered(to, message.id),
            CoordinatorEffect::Cancel { run, .. } => {
                if self.runs.get(&run).is_some_and(|life| !life.over) {
                    self.end_run(&run, &End::Over);
                }
            }
            CoordinatorEffect::Start(order) => {
                if !self.runs.contains_key(&order.run) {
                    let mut life = Life::new(order.run.clone(), 0, Vec::new());
                    life.needs(order.claims, 0);
                    self.add_steps(&mut life);
                    self.note(&life);
                }
                self.offer(CoordinatorInput::Arrived { run: order.run });
            }
        }
    }

    fn answered(&mut self, asker: &Asker, answer: CoordinatorAnswer) {
        let Some(mut life) = self.runs.get(&asker.run).cloned() else { return };
        let Some(number) = life.part_at(&asker.path) else { return };
        let part = &mut life.parts[number];
        if life.over || part.attempt != asker.attempt || part.phase != Phase::Waiting {
            return;
        }
        match answer {
            CoordinatorAnswer::Granted => {
                assert!(
                    self.coordinator.state().holds.contains_key(asker),
                    "{asker} begins without holding anything"
                );
                part.phase = Phase::Holding;
                self.note(&life);
            }
            CoordinatorAnswer::Found(_) | CoordinatorAnswer::Denied(_) if number == 0 => {
                self.end_run(&asker.run, &End::Over);
            }
            CoordinatorAnswer::Found(value) => {
                self.end_part(life, number, End::Done(value), Amount::default());
            }
            CoordinatorAnswer::Denied(_) => {
                let end = if self.random.chance(40) { End::Attempt } else { End::Over };
                self.end_part(life, number, end, Amount::default());
            }
        }
    }

    fn delivered(&mut self, to: Address, id: Arc<str>) {
        assert!(self.ledger.sent.contains(&(to.clone(), id.clone())), "{id} reaches {to:?} by mistake");
        if let Some(mut life) = self.runs.get(&to.run).cloned().filter(|life| !life.over)
            && life.subscriptions.iter().any(|subscription| subscription.address == to)
        {
            assert!(life.received.insert((to.path.clone(), id.clone())), "{id} reaches {to:?} twice");
            life.subscriptions.retain(|subscription| subscription.address != to);
            self.note(&life);
        }
        self.say(CoordinatorInput::Acknowledge { id, to });
    }

    /// Sends an input to the coordinator, now or later.
    fn say(&mut self, input: CoordinatorInput) {
        match !self.calm && self.random.chance(15) {
            true => {
                self.tally.count("fault", "late");
                self.late.push(input);
            }
            false => self.offer(input),
        }
    }

    fn be_late(&mut self) {
        self.say_late();
    }

    fn say_late(&mut self) -> bool {
        if self.late.is_empty() {
            return false;
        }
        let late = self.late.remove(self.random.below(self.late.len()));
        self.offer(late);
        true
    }

    // Actions of runs

    /// The runs and parts that match.
    pub(super) fn parts(&self, wanted: impl Fn(&Life, usize, &Part) -> bool) -> Vec<(RunId, usize)> {
        let mut found = Vec::new();
        for life in self.runs.values().filter(|life| !life.over) {
            let parts = life.parts.iter().enumerate().filter(|(number, part)| wanted(life, *number, part));
            found.extend(parts.map(|(number, _)| (life.id.clone(), number)));
        }
        found
    }

    fn pick_part(&mut self, wanted: impl Fn(&Life, usize, &Part) -> bool) -> Option<(RunId, usize)> {
        let found = self.parts(wanted);
        (!found.is_empty()).then(|| self.random.pick(&found).clone())
    }

    fn pick_run(&mut self, wanted: impl Fn(&Life) -> bool) -> Option<RunId> {
        let found = self.runs.values().filter(|life| !life.over && wanted(life));
        let found: Vec<&RunId> = found.map(|life| &life.id).collect();
        (!found.is_empty()).then(|| (*self.random.pick(&found)).clone())
    }

    fn come(&mut self) {
        if self.runs.values().filter(|life| !life.over).count() >= self.size.runs {
            return;
        }
        let called_by = match self.random.chance(35) {
            true => self.pick_run(|life| life.has_begun() && life.depth < goods::DEPTHS),
            false => None,
        };
        let caller = called_by.map(|run| self.runs[&run].clone());
        self.come_from(caller.as_ref());
    }

    pub(super) fn come_from(&mut self, caller: Option<&Life>) -> RunId {
        self.named += 1;
        let id = run_id(&format!("run{}", self.named));
        let depth = caller.map_or(0, |caller| caller.depth + 1);
        let mut ancestors = caller.map(|caller| caller.ancestors.clone()).unwrap_or_default();
        ancestors.extend(caller.map(|caller| caller.id.clone()));
        let mut life = Life::new(id.clone(), depth, ancestors);
        let held = caller.map(|caller| caller.parts[0].claims.clone()).unwrap_or_default();
        let claims = self.goods.of_run(&mut self.random, depth, &held, self.calm);
        let ahead = if self.calm { 0 } else { self.goods.ahead(&mut self.random) };
        life.needs(claims, ahead);
        self.add_steps(&mut life);
        self.note(&life);
        id
    }

    /// Adds a run that asks for one slot, for itself or for its only step.
    pub(super) fn come_for(&mut self, claim: Claim, is_run: bool) -> RunId {
        self.named += 1;
        let id = run_id(&format!("run{}", self.named));
        let mut life = Life::new(id.clone(), 0, Vec::new());
        if !is_run {
            life.needs(Vec::new(), 0);
        }
        life.needs(vec![claim], 0);
        self.note(&life);
        id
    }

    fn add_steps(&mut self, life: &mut Life) {
        let own = life.parts[0].claims.clone();
        for _ in 0..1 + self.random.below(self.size.steps) {
            let claims = self.goods.of_step(&mut self.random, &own, self.calm);
            let ahead = if self.calm { 0 } else { self.goods.ahead(&mut self.random) };
            life.needs(claims, ahead);
        }
    }

    fn ask(&mut self) {
        let may = |life: &Life, number: usize, part: &Part| match part.phase {
            Phase::Idle => number == 0 || life.has_begun(),
            Phase::Between => true,
            Phase::Waiting | Phase::Holding | Phase::Over => false,
        };
        if let Some((run, number)) = self.pick_part(may) {
            self.ask_for(&run, number);
        }
    }

    pub(super) fn ask_for(&mut self, run: &RunId, number: usize) {
        let mut life = self.runs[run].clone();
        (life.parts[number].phase, life.parts[number].since) = (Phase::Waiting, self.now);
        self.note(&life);
        self.offer(CoordinatorInput::Ask(life.ask(number)));
    }

    /// Repeats a waiting request.
    fn ask_again(&mut self) {
        if let Some((run, number)) = self.pick_part(|_, _, part| part.phase == Phase::Waiting) {
            self.offer(CoordinatorInput::Ask(self.runs[&run].ask(number)));
        }
    }

    fn finish_one(&mut self) {
        if let Some((run, number)) =
            self.pick_part(|_, number, part| number > 0 && part.phase == Phase::Holding)
        {
            self.finish(&run, number);
        }
    }

    /// Ends a step that holds something, in a random way.
    pub(super) fn finish(&mut self, run: &RunId, number: usize) {
        let life = self.runs[run].clone();
        let used = goods::used(&mut self.random);
        let end = match self.random.below(20) {
            0..=10 => End::Done(self.value()),
            11..=14 => End::Attempt,
            15 => return self.lose(life, number),
            _ => End::Over,
        };
        self.end_part(life, number, end, used);
    }

    pub(super) fn value(&mut self) -> Value {
        self.values += 1;
        Value::Int(self.values)
    }

    /// An attempt is lost and dispatched again under the same name.
    fn lose(&mut self, mut life: Life, number: usize) {
        let asker = life.asker(number);
        life.parts[number].phase = Phase::Waiting;
        self.note(&life);
        // An answer to the earlier delivery must not count for the next one.
        self.mail.retain(
            |(_, effect)| !matches!(effect, CoordinatorEffect::Answer { asker: to, .. } if *to == asker),
        );
        self.offer(CoordinatorInput::Release { asker, used: Amount::default(), end: End::Lost });
        self.offer(CoordinatorInput::Ask(life.ask(number)));
    }

    /// Ends an attempt, and its step unless there will be another attempt.
    pub(super) fn end_part(&mut self, mut life: Life, number: usize, end: End, used: Amount) {
        let asker = life.asker(number);
        let continues = end == End::Attempt;
        let own = life.parts[0].claims.clone();
        let part = &mut life.parts[number];
        part.ended = Some(Ended { attempt: part.attempt, used, end: end.clone() });
        if continues {
            part.attempt += 1;
            part.phase = Phase::Between;
            // The next attempt may need other resources.
            if self.random.chance(5) {
                part.claims = self.goods.of_step(&mut self.random, &own, self.calm);
            }
        } else {
            part.phase = Phase::Over;
        }
        self.note(&life);
        self.say(CoordinatorInput::Release { asker, used, end });
    }

    fn cancel_part(&mut self) {
        let open = |_: &Life, number: usize, part: &Part| number > 0 && part.phase != Phase::Over;
        if let Some((run, number)) = self.pick_part(open) {
            let used = goods::used(&mut self.random);
            self.end_part(self.runs[&run].clone(), number, End::Over, used);
        }
    }

    fn cancel_run(&mut self) {
        if let Some(run) = self.pick_run(|_| true) {
            self.end_run(&run, &End::Over);
        }
    }

    /// Ends a run after its steps and its called runs have ended.
    fn wind_up(&mut self) {
        let lives: Vec<&Life> = self.runs.values().filter(|life| !life.over).collect();
        let is_done = |life: &&&Life| {
            life.has_begun()
                && life.parts[1..].iter().all(|part| part.phase == Phase::Over)
                && !lives.iter().any(|other| other.ancestors.contains(&life.id))
        };
        let done: Vec<RunId> = lives.iter().filter(is_done).map(|life| life.id.clone()).collect();
        for run in done {
            let end = if self.random.chance(70) { End::Done(self.value()) } else { End::Over };
            self.end_run(&run, &end);
        }
    }

    /// Ends a run with all its steps and called runs.
    pub(super) fn end_run(&mut self, run: &RunId, end: &End) {
        let called = self.runs.values().filter(|life| !life.over && life.ancestors.contains(run));
        let called: Vec<RunId> = called.map(|life| life.id.clone()).collect();
        let mut life = self.runs[run].clone();
        let mut released = Vec::new();
        for number in 0..life.parts.len() {
            let asker = life.asker(number);
            let part = &mut life.parts[number];
            if part.phase != Phase::Over {
                let end = if number == 0 { end.clone() } else { End::Over };
                let used = goods::used(&mut self.random);
                part.ended = Some(Ended { attempt: part.attempt, used, end: end.clone() });
                released.push(CoordinatorInput::Release { asker, used, end });
                part.phase = Phase::Over;
            }
        }
        life.over = true;
        life.subscriptions.clear();
        self.note(&life);
        // A canceled run may release everything by ending.
        if *end != End::Over || self.random.chance(50) {
            released.into_iter().for_each(|release| self.say(release));
        }
        self.say(CoordinatorInput::Gone { run: run.clone() });
        for run in called {
            if !self.runs[&run].over {
                self.end_run(&run, &End::Over);
            }
        }
    }

    /// Repeats an old release.
    fn say_again(&mut self) {
        let over = |_: &Life, _: usize, part: &Part| part.phase == Phase::Over && part.ended.is_some();
        if let Some((run, number)) = self.pick_part(over) {
            let life = &self.runs[&run];
            let Some(Ended { used, end, .. }) = life.parts[number].ended.clone() else { return };
            self.offer(CoordinatorInput::Release { asker: life.asker(number), used, end });
        }
    }

    // Messages, triggers, budgets, time

    fn subscribe(&mut self) {
        let Some(run) = self.pick_run(|life| life.subscriptions.len() < 3) else { return };
        let mut life = self.runs[&run].clone();
        let whole = !life.received.iter().any(|(path, _)| path.is_run()) && self.random.chance(30);
        self.named += 1;
        let path = match whole {
            true => Path::default(),
            false => Path::default().child(format!("wait{}", self.named).into(), None),
        };
        // A step that received a message does not subscribe again.
        if life.subscriptions.iter().any(|subscription| subscription.address.path == path) {
            return;
        }
        let address = Address { run, path };
        let two = whole && self.random.chance(50);
        for number in 0..if two { 2 } else { 1 } {
            let name = format!("news{}", self.random.below(MESSAGES)).into();
            let mut matching = Map::new();
            if self.random.chance(50) {
                matching.insert("k".into(), Value::Int(self.random.below(2) as i64));
            }
            let until = self.random.chance(30).then(|| self.now.plus(Duration::from_secs(20)));
            let address = address.clone();
            life.subscriptions.push(Subscription { address, name, matching, until, number, as_text: false });
        }
        self.note(&life);
        let subscriptions =
            life.subscriptions.iter().filter(|subscription| subscription.address == address).cloned();
        let subscriptions: Vec<Subscription> = subscriptions.collect();
        subscriptions
            .into_iter()
            .for_each(|subscription| self.offer(CoordinatorInput::Subscribe(Box::new(subscription))));
    }

    fn unsubscribe(&mut self) {
        let Some(run) = self.pick_run(|life| {
            life.subscriptions.iter().any(|subscription| !subscription.address.path.is_run())
        }) else {
            return;
        };
        let mut life = self.runs[&run].clone();
        let subscriptions: Vec<Address> =
            life.subscriptions.iter().map(|subscription| subscription.address.clone()).collect();
        let address = self.random.pick(&subscriptions).clone();
        if address.path.is_run() {
            return;
        }
        life.subscriptions.retain(|subscription| subscription.address != address);
        self.note(&life);
        self.say(CoordinatorInput::Unsubscribe(address));
    }

    fn publish(&mut self) {
        // Some arrive twice.
        let repeated = self.named > 0 && self.random.chance(20);
        let id = if repeated { self.random.below(self.named as usize + 1) as u32 } else { self.named + 1 };
        self.named = self.named.max(id);
        let name = format!("news{}", self.random.below(MESSAGES)).into();
        let value = Value::map([("k", Value::Int(self.random.below(2) as i64))]);
        self.offer(CoordinatorInput::Published {
            id: format!("m{id}").into(),
            name,
            by: "eve".into(),
            value,
        });
    }

    /// Fires a trigger: for the first time, again, or for an instant long past.
    fn fire(&mut self) {
        let trigger: Key = format!("timer{}", self.random.below(TRIGGERS)).into();
        let last = self.coordinator.state().firings.get(&trigger).map_or(0, |last| last.0 / 60_000_000);
        let number = match self.random.below(5) {
            0 => last,
            1 => (last - 1).max(1),
            2 => last + 2,
            _ => last + 1,
        };
        let run = run_id(&format!("{trigger}-{number}"));
        let runs_max = self.random.chance(80).then(|| 1 + self.random.below(2) as u32);
        let overlap = *self.random.pick(&[Overlap::Skip, Overlap::Queue, Overlap::Cancel]);
        let skip = self.random.chance(10).then(|| Arc::from("it is switched off"));
        let (due, plan) = (Timestamp(number * 60_000_000), "plan".into());
        let inputs = Value::Null;
        self.offer(CoordinatorInput::Fire(Box::new(Firing {
            trigger,
            due,
            run,
            plan,
            inputs,
            next: None,
            runs_max,
            overlap,
            skip,
        })));
    }

    fn change_budget(&mut self) {
        let budget = match self.random.chance(5) {
            true => "unknown".into(),
            false => self.random.pick(&self.goods.budgets).clone(),
        };
        if self.random.chance(40) {
            return self.offer(CoordinatorInput::Reset { budget });
        }
        let zone = match self.random.below(8) {
            0 => Some("Nowhere/Land".into()),
            1 | 2 => Some("Europe/Berlin".into()),
            3 => Some("UTC".into()),
            _ => None,
        };
        let cap = goods::cap(&mut self.random);
        self.offer(CoordinatorInput::Cap { budget, cap, zone });
    }

    /// Moves to the next deadline, past it, or only a little; sometimes far, sometimes back.
    fn pass_time(&mut self) {
        let micros = self.random.below(20_000_000) as i64;
        let next = self.coordinator.next_deadline();
        let moved = match (self.random.below(20), next) {
            (0..=1, _) => -micros,
            (2..=3, _) => 0,
            (4, _) => 86_400_000_000,
            (5..=6, _) => micros * 10,
            (7..=14, Some(next)) => (next.0 - self.now.0).max(0),
            (15..=16, Some(next)) => (next.0 - self.now.0).max(0) + micros,
            _ => micros,
        };
        self.now = Timestamp(self.now.0 + moved);
        self.offer(CoordinatorInput::Tick);
    }
}

pub fn run_id(text: &str) -> RunId {
    RunId::new(text).expect("a good name")
}

fn check_refusal(state: &CoordinatorState, input: &CoordinatorInput, refused: CoordinatorRefused) {
    let expected = match (input, refused) {
        (CoordinatorInput::Cap { zone, .. }, CoordinatorRefused::NoSuchZone) => {
            zone.as_deref() == Some("Nowhere/Land")
        }
        (CoordinatorInput::Reset { budget }, CoordinatorRefused::NoSuchBudget) => {
            !state.budgets.contains_key(budget)
        }
        _ => false,
    };
    assert!(expected, "{input:?} was refused: {refused}");
}

/// Events after a round trip through text.
fn read_again(events: &[CoordinatorEvent]) -> Vec<CoordinatorEvent> {
    let read = events.iter().map(|event| {
        let text = serde_json::to_string(event).expect("an event is JSON");
        let read: CoordinatorEvent = serde_json::from_str(&text).expect("a written event can be read");
        assert_eq!(read, *event, "an event changed in a round trip");
        read
    });
    read.collect()
}

/// A snapshot describes the same state, without expired entries.
fn check_same(old: &CoordinatorState, new: &CoordinatorState, now: Timestamp) {
    let mut same = old.clone();
    (same.last_at, same.next) = (new.last_at, new.next);
    same.keys = fresh(&same.keys, now);
    same.rates.retain(|key, until| *until > now || new.rates.contains_key(key));
    assert!(same == *new, "the snapshot describes another state:\n{same:?}\n{new:?}");
}
