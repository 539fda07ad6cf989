//! Random work on a folder that is closed, dropped and crashed, and the same work in memory: every answer must be the same. A
//! failure prints its seed; `SEED` in the environment runs that one alone.

#![cfg(feature = "sqlite")]

use crate::support::*;
use std::collections::BTreeMap;
use windlass_engine::{Event, RunId};
use windlass_ir::Value;
use windlass_store::{Appended, Lsn, Query, Record, Store, Wake};

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

    fn run(&mut self) -> RunId {
        run(&format!("r{}", self.roll(9)))
    }
}

struct World {
    dice: Dice,
    memory: Store,
    folder: InFolder,
    /// Always there between steps.
    store: Option<Store>,
    done: BTreeMap<&'static str, u32>,
}

fn whole(store: &Store, record: &Record) -> Vec<Event> {
    Record::whole_events(std::slice::from_ref(record), &*store.blobs).wait().expect("events")
}

impl World {
    fn both(&self) -> [&Store; 2] {
        [self.store.as_ref().expect("open between steps"), &self.memory]
    }

    /// Both stores answer the same.
    fn same<T: PartialEq + std::fmt::Debug>(&self, ask: impl Fn(&Store) -> T) {
        let [found, expected] = self.both().map(ask);
        assert_eq!(found, expected);
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
            let run = self.dice.run();
            let last = self.memory.journal.back(&run, None, 1).wait().expect("records").pop();
            let prev = match self.dice.roll(8) {
                0 => Some(Lsn(self.dice.roll(40))),
                _ => last.as_ref().map(|record| record.lsn),
            };
            let length = if self.dice.roll(20) == 0 { 70_000 } else { self.dice.roll(900) as usize };
            let (at, value) = (self.dice.roll(9).cast_signed(), Value::text("x".repeat(length)));
            let mut events = vec![noted(at, "k", value)];
            if self.dice.roll(5) == 0 {
                events.push(closed(1));
            }
            let reopens = last.is_some_and(|last| whole(&self.memory, &last).last() == Some(&closed(1)));
            let wake = [Wake::Unknown, Wake::Owes, Wake::Never][self.dice.roll(3) as usize];
            let append = |store: &Store| store.journal.append(record(&run, prev, &events).resting(wake));
            let [pending, expected] = self.both().map(append);
            let expected = expected.wait().expect("an answer");
            let kind = match (expected, reopens) {
                (Appended::Conflict { .. }, _) => "conflict",
                (Appended::At(_), true) => "append to a finished run",
                (Appended::At(_), false) => "append",
            };
            *self.done.entry(kind).or_default() += 1;
            waiting.push((pending, expected));
        }
        for (pending, expected) in waiting {
            assert_eq!(pending.wait(), Ok(expected));
        }
        "group of appends"
    }

    fn read_back(&mut self) -> &'static str {
        let (run, limit) = (self.dice.run(), self.dice.roll(9) as usize);
        self.same(|store| {
            let records = store.journal.back(&run, None, limit).wait().expect("records");
            records.iter().map(|record| (record.lsn, whole(store, record))).collect::<Vec<_>>()
        });
        "read back"
    }

    fn scan(&mut self) -> &'static str {
        self.same(|store| {
            let records = whole_scan(store).into_iter().map(|record| record.expect("a record"));
            records
                .map(|record| (record.lsn, record.run.clone(), record.prev, whole(store, &record)))
                .collect::<Vec<_>>()
        });
        "scan"
    }

    fn tails(&mut self) -> &'static str {
        self.same(|store| {
            let tails = store.journal.tails().wait().expect("tails");
            (tails.unfinished, tails.last)
        });
        "tails"
    }

    fn view(&mut self) -> &'static str {
        let (limit, unfinished_only) = (1 + self.dice.roll(9) as usize, self.dice.roll(2) == 0);
        let query = Query { limit, unfinished_only, ..Query::default() };
        self.same(|store| store.view.list(&query).wait().expect("rows"));
        "view"
    }

    fn plan(&mut self) -> &'static str {
        let plan = plan(&format!("d{}", self.dice.roll(5)), format!("[{}]", self.dice.roll(99)));
        self.same(|store| {
            store.plans.put(plan.clone()).wait().expect("stored");
            store.plans.get(&plan.digest).wait()
        });
        "plan"
    }

    /// After a crash only the rows know when a run wakes, and they may be behind.
    fn unfinished(&mut self) -> &'static str {
        let [found, expected] = self.both().map(|store| store.view.unfinished().wait().expect("runs"));
        assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
        for ((run, wake), (expected, known)) in found.iter().zip(&expected) {
            assert!(run == expected && (*wake == Wake::Unknown || wake == known), "{run} {wake:?}");
        }
        *self.done.entry("known wake").or_default() +=
            u32::from(found.iter().any(|(_, wake)| *wake != Wake::Unknown));
        "unfinished"
    }

    fn remove(&mut self) -> &'static str {
        let run = self.dice.run();
        if tail(&self.memory, &run).is_some() {
            self.same(|store| remove(store, &run));
        }
        "removal"
    }

    fn reclaim(&mut self) -> &'static str {
        self.same(|store| store.journal.reclaim().wait().is_ok());
        "reclaim"
    }

    fn rebuild(&mut self) -> &'static str {
        self.same(|store| store.view.rebuild().wait().is_ok());
        "rebuild"
    }

    fn reopen(&mut self) -> &'static str {
        self.store = None;
        self.store = Some(self.folder.open());
        "drop and open"
    }

    fn close(&mut self) -> &'static str {
        self.store.take().expect("open").close().expect("closed");
        self.store = Some(self.folder.open());
        "close and open"
    }

    fn crash(&mut self) -> &'static str {
        self.folder.crash();
        self.reopen();
        self.scan();
        self.tails();
        "crash"
    }
}

#[test]
fn a_folder_answers_as_memory_does() {
    let seeds = match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS,
    };
    let mut done = BTreeMap::new();
    for seed in seeds {
        println!("SEED={seed}");
        let mut folder = InFolder(Temp::new(), busy());
        let store = Some(folder.open());
        let mut world = World { dice: Dice(seed), memory: InMemory::new().open(), folder, store, done };
        (0..STEPS).for_each(|_| world.step());
        done = world.done;
    }
    println!("{done:?}");
    let kinds = "append, append to a finished run, close and open, conflict, crash, drop and open, group of appends, \
                 known wake, plan, read back, rebuild, reclaim, removal, scan, tails, unfinished, view";
    assert_eq!(done.into_keys().collect::<Vec<_>>().join(", "), kinds, "every kind of work has to occur");
}
