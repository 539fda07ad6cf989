//! Random work against a model that is too simple to be wrong. A failure prints its seed; `SEED` in the environment runs
//! that one alone.

use crate::support::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use windlass_engine::{Event, RunId};
use windlass_ir::Value;
use windlass_store::{Appended, Lsn, Projection as _, Query, RunRow, Store, StoredPlan, Wake};

const SEEDS: u64 = 6;
const STEPS: u64 = 150;

/// SplitMix64: small, and the same for ever.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

#[derive(Default)]
struct Model {
    /// Those of removed runs stay here and are passed over.
    records: Vec<(RunId, Option<Lsn>, Vec<Event>)>,
    removed: HashSet<Lsn>,
    tails: BTreeMap<RunId, Lsn>,
    wakes: HashMap<RunId, Wake>,
    plans: HashMap<String, StoredPlan>,
}

impl Model {
    fn append(&mut self, run: &RunId, prev: Option<Lsn>, events: &[Event]) -> Appended {
        let tail = self.tails.get(run).copied();
        if tail != prev {
            return Appended::Conflict { tail };
        }
        self.records.push((run.clone(), prev, events.to_vec()));
        let lsn = Lsn(self.records.len() as u64);
        self.tails.insert(run.clone(), lsn);
        Appended::At(lsn)
    }

    fn of(&self, lsn: Lsn) -> &(RunId, Option<Lsn>, Vec<Event>) {
        &self.records[usize::try_from(lsn.0).expect("small") - 1]
    }

    fn ended(&self, lsn: Lsn) -> bool {
        self.of(lsn).2.last() == Some(&closed(1))
    }

    fn there(&self) -> impl Iterator<Item = (Lsn, &(RunId, Option<Lsn>, Vec<Event>))> {
        (1..).map(Lsn).zip(&self.records).filter(|(lsn, _)| !self.removed.contains(lsn))
    }

    fn history(&self, run: &RunId) -> Vec<(Lsn, Vec<Event>)> {
        let numbered = self.there();
        numbered.filter(|(_, record)| record.0 == *run).map(|(lsn, record)| (lsn, record.2.clone())).collect()
    }

    fn row(&self, run: &RunId, tail: Lsn) -> RunRow {
        let mut row = windlass_store::Row::default();
        self.history(run).iter().for_each(|(_, events)| Shown.apply(run, &mut row, events));
        RunRow { run: run.clone(), tail, ended: self.ended(tail), broken: None, row }
    }
}

struct World<'b> {
    dice: Dice,
    model: Model,
    backend: &'b mut dyn Backend,
    /// Always there between steps.
    store: Option<Store>,
    done: BTreeMap<&'static str, u32>,
}

impl World<'_> {
    fn store(&self) -> &Store {
        self.store.as_ref().expect("open between steps")
    }

    fn whole(&self, record: &windlass_store::Record) -> Vec<Event> {
        windlass_store::Record::whole_events(std::slice::from_ref(record), &*self.store().blobs)
            .wait()
            .expect("events")
    }

    fn step(&mut self) {
        let kind = match self.dice.roll(100) {
            0..60 => self.appends(),
            60..68 => self.read_back(),
            68..72 => self.scan(),
            72..78 => self.tails(),
            78..82 => self.view(),
            82..85 => self.unfinished(),
            85..88 => self.plan(),
            88..89 => self.rebuild(),
            89..90 => self.reclaim(),
            90..93 => self.remove(),
            93..95 => self.reopen(),
            95..97 => self.close(),
            _ => self.crash(),
        };
        *self.done.entry(kind).or_default() += 1;
    }

    /// Several at once, so that they meet in one commit; some with a wrong tail, some that end or reopen their run, some
    /// with a large value.
    fn appends(&mut self) -> &'static str {
        let mut waiting = Vec::new();
        for _ in 0..=self.dice.roll(6) {
            let run = run(&format!("r{}", self.dice.roll(9)));
            let tail = self.model.tails.get(&run).copied();
            let wrong = self.dice.roll(8) == 0;
            let prev = if wrong { Some(Lsn(self.dice.roll(40))) } else { tail };
            let mut events = vec![noted(
                self.dice.roll(9).cast_signed(),
                "k",
                Value::text("x".repeat(if self.dice.roll(20) == 0 {
                    70_000
                } else {
                    self.dice.roll(900) as usize
                })),
            )];
            if self.dice.roll(5) == 0 {
                events.push(closed(1));
            }
            let reopens = tail.is_some_and(|tail| self.model.ended(tail));
            let wake = [Wake::Unknown, Wake::Owes, Wake::Never][self.dice.roll(3) as usize];
            let expected = self.model.append(&run, prev, &events);
            if let Appended::At(_) = expected {
                self.model.wakes.insert(run.clone(), wake);
            }
            let kind = match (expected, reopens) {
                (Appended::Conflict { .. }, _) => "conflict",
                (Appended::At(_), true) => "append to a finished run",
                (Appended::At(_), false) => "append",
            };
            *self.done.entry(kind).or_default() += 1;
            waiting.push((self.store().journal.append(record(&run, prev, &events).resting(wake)), expected));
        }
        for (pending, expected) in waiting {
            assert_eq!(pending.wait(), Ok(expected));
        }
        "group of appends"
    }

    fn read_back(&mut self) -> &'static str {
        let run = run(&format!("r{}", self.dice.roll(10)));
        let limit = self.dice.roll(9) as usize;
        let expected = self.model.history(&run);
        let records = self.store().journal.back(&run, None, limit).wait().expect("records");
        let found: Vec<_> = records.iter().map(|record| (record.lsn, self.whole(record))).collect();
        assert_eq!(found, expected.into_iter().rev().take(limit).collect::<Vec<_>>());
        "read back"
    }

    fn scan(&mut self) -> &'static str {
        let found = whole_scan(self.store());
        assert_eq!(found.len(), self.model.there().count());
        for (found, (lsn, (run, prev, events))) in found.iter().zip(self.model.there()) {
            let found = found.as_ref().expect("a record");
            let events_found = self.whole(found);
            assert_eq!((found.lsn, &found.run, &found.prev, &events_found), (lsn, run, prev, events));
        }
        "scan"
    }

    fn tails(&mut self) -> &'static str {
        let found = self.store().journal.tails().wait().expect("tails");
        let open = self.model.tails.iter().filter(|(_, lsn)| !self.model.ended(**lsn));
        assert_eq!(found.unfinished, open.map(|(run, lsn)| (run.clone(), *lsn)).collect::<Vec<_>>());
        assert_eq!(found.last.map_or(0, |lsn| lsn.0), self.model.records.len() as u64);
        "tails"
    }

    fn view(&mut self) -> &'static str {
        let (limit, unfinished_only) = (1 + self.dice.roll(9) as usize, self.dice.roll(2) == 0);
        let query = Query { limit, unfinished_only, ..Query::default() };
        let mut expected: Vec<_> =
            self.model.tails.iter().map(|(run, tail)| self.model.row(run, *tail)).collect();
        expected.retain(|row| !(query.unfinished_only && row.ended));
        expected.sort_by(|a, b| b.row.started_at.cmp(&a.row.started_at).then_with(|| a.run.cmp(&b.run)));
        expected.truncate(query.limit);
        assert_eq!(self.store().view.list(&query).wait().expect("rows"), expected);
        "view"
    }

    fn plan(&mut self) -> &'static str {
        let plan = plan(&format!("d{}", self.dice.roll(5)), format!("[{}]", self.dice.roll(99)));
        self.store().plans.put(plan.clone()).wait().expect("stored");
        let expected = self.model.plans.entry(plan.digest.clone()).or_insert(plan).clone();
        assert_eq!(self.store().plans.get(&expected.digest).wait(), Ok(Some(expected)));
        "plan"
    }

    /// After a crash only the rows know when a run wakes, and they may be behind.
    fn unfinished(&mut self) -> &'static str {
        let found = self.store().view.unfinished().wait().expect("runs");
        let open = self.model.tails.iter().filter(|(_, lsn)| !self.model.ended(**lsn)).map(|(run, _)| run);
        assert_eq!(found.iter().map(|(run, _)| run).collect::<Vec<_>>(), open.collect::<Vec<_>>());
        for (run, wake) in &found {
            assert!(*wake == Wake::Unknown || *wake == self.model.wakes[run], "{run} {wake:?}");
        }
        *self.done.entry("known wake").or_default() +=
            u32::from(found.iter().any(|(_, wake)| *wake != Wake::Unknown));
        "unfinished"
    }

    fn remove(&mut self) -> &'static str {
        let run = run(&format!("r{}", self.dice.roll(9)));
        if self.model.tails.contains_key(&run) {
            let records: Vec<Lsn> = self.model.history(&run).into_iter().map(|(lsn, _)| lsn).collect();
            self.model.removed.extend(records);
            self.model.tails.remove(&run);
            self.model.records.push((run.clone(), None, Vec::new()));
            let at = Lsn(self.model.records.len() as u64);
            self.model.removed.insert(at);
            assert_eq!(remove(self.store(), &run), Appended::At(at));
        }
        "removal"
    }

    fn reclaim(&mut self) -> &'static str {
        self.store().journal.reclaim().wait().expect("reclaimed");
        "reclaim"
    }

    fn rebuild(&mut self) -> &'static str {
        self.store().view.rebuild().wait().expect("rebuilt");
        "rebuild"
    }

    fn reopen(&mut self) -> &'static str {
        self.store = None;
        self.store = Some(self.backend.open());
        "drop and open"
    }

    fn close(&mut self) -> &'static str {
        self.store.take().expect("open").close().expect("closed");
        self.store = Some(self.backend.open());
        "close and open"
    }

    fn crash(&mut self) -> &'static str {
        self.backend.crash();
        self.reopen();
        self.scan();
        self.tails();
        "crash"
    }
}

fn check(backend: impl Fn() -> Box<dyn Backend>) {
    let seeds = match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS,
    };
    let mut done = BTreeMap::new();
    for seed in seeds {
        println!("SEED={seed}");
        let mut backend = backend();
        let store = Some(backend.open());
        let mut world = World {
            dice: Dice(seed),
            model: Model::default(),
            backend: &mut *backend,
            store,
            done: std::mem::take(&mut done),
        };
        (0..STEPS).for_each(|_| world.step());
        done = std::mem::take(&mut world.done);
    }
    println!("{done:?}");
    let kinds = [
        "append",
        "append to a finished run",
        "close and open",
        "conflict",
        "crash",
        "drop and open",
        "group of appends",
        "known wake",
        "plan",
        "read back",
        "rebuild",
        "reclaim",
        "removal",
        "scan",
        "tails",
        "unfinished",
        "view",
    ];
    assert_eq!(done.keys().copied().collect::<Vec<_>>(), kinds, "every kind of work has to occur");
}

#[test]
fn memory() {
    check(|| Box::new(InMemory::new()));
}

#[cfg(feature = "sqlite")]
#[test]
fn folder() {
    check(|| Box::new(InFolder(Temp::new(), busy())));
}
