//! The guarantees of every backend, one check each.

use crate::support::*;
use windlass_engine::{CoordinatorEvent, CoordinatorWhat, Event, RunId, Timestamp};
use windlass_ir::{RunStatus, Value};
use windlass_store::{
    Append, Appended, BlobId, Entry, Error, Lsn, Prev, Query, Record, Store, StoredPlan, Wake,
};

type Check = fn(&mut dyn Backend);

const CHECKS: [(&str, Check); 25] = [
    ("numbers rise without gaps", numbers_rise),
    ("a wrong tail is a conflict", wrong_tail),
    ("a conflict affects no other run", one_conflict),
    ("one of many wins a race", race),
    ("a run can be ahead of its answers", ahead),
    ("records that rest on others share their fate", resting),
    ("a group is written whole or not at all", groups),
    ("the coordinator has a stream beside the runs", coordinator),
    ("histories are read in both directions", histories),
    ("tails are found again", tails_again),
    ("a finished run can go on", finished_continues),
    ("runs that wait long are not lost", low_water),
    ("large records", large_records),
    ("many runs", many_runs),
    ("what could not be read is not written", unstorable),
    ("everything can be scanned", scan),
    ("plans", plans),
    ("deep and newer plans", deep_plans),
    ("blobs", blobs),
    ("the view", view),
    ("runs without a result and when they wake", unfinished_runs),
    ("runs can be removed", removal),
    ("plans can be removed", plan_removal),
    ("values that no record refers to can be removed", sweeps),
    ("the ledger changes together with a record", ledger),
];

fn check(backend: impl Fn() -> Box<dyn Backend>) {
    for (name, check) in CHECKS {
        println!("{name}");
        check(&mut *backend());
    }
}

#[test]
fn memory() {
    check(|| Box::new(InMemory::new()));
}

#[cfg(feature = "sqlite")]
#[test]
fn folder() {
    check(|| Box::new(InFolder(Temp::new(), calm())));
}

#[cfg(feature = "sqlite")]
#[test]
fn folder_with_constant_maintenance() {
    check(|| Box::new(InFolder(Temp::new(), busy())));
}

fn numbers_rise(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, b) = (run("a"), run("b"));
    let numbers: Vec<u64> = [&a, &b, &b, &a].map(|run| push(&store, run, "x").0).to_vec();
    assert_eq!(numbers, [1, 2, 3, 4]);
    drop(store);
    assert_eq!(push(&backend.open(), &a, "y"), Lsn(5));
}

fn wrong_tail(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, b) = (run("a"), run("b"));
    push(&store, &a, "x");
    push(&store, &b, "x");
    push(&store, &a, "y");
    let check = |run, prev: Option<u64>, tail: Option<u64>| {
        let append = record(run, prev.map(Lsn), &[noted(1, "z", Value::Null)]);
        let expected = Appended::Conflict { tail: tail.map(Lsn) };
        assert_eq!(store.journal.append(append).wait(), Ok(expected), "{run} after {prev:?}");
    };
    check(&a, None, Some(3));
    check(&a, Some(1), Some(3));
    check(&a, Some(2), Some(3));
    check(&a, Some(99), Some(3));
    check(&run("new"), Some(3), None);
    assert_eq!(history(&store, &a), "1:x 3:y");
    assert_eq!(history(&store, &run("new")), "");
    assert_eq!(push(&store, &b, "y"), Lsn(4));
}

fn one_conflict(backend: &mut dyn Backend) {
    let store = backend.open();
    push(&store, &run("taken"), "x");
    let names = ["a", "b", "taken", "c", "d"];
    let small = |name: &&str| record(&run(name), None, &[noted(1, "x", Value::Null)]);
    let waiting: Vec<_> = names.iter().map(|name| store.journal.append(small(name))).collect();
    let answers: Vec<_> = waiting.into_iter().map(|pending| pending.wait().expect("an answer")).collect();
    let at = |lsn| Appended::At(Lsn(lsn));
    assert_eq!(answers, [at(2), at(3), Appended::Conflict { tail: Some(Lsn(1)) }, at(4), at(5)]);
    assert_eq!(unfinished(&store), "a@2 b@3 c@4 d@5 taken@1");
}

fn race(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, rivals) = (run("a"), 8);
    for _ in 0..10 {
        let prev = tail(&store, &a);
        let attempt = || store.journal.append(record(&a, prev, &[noted(1, "x", Value::Null)])).wait();
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..rivals).map(|_| scope.spawn(attempt)).collect();
            let answers =
                threads.into_iter().map(|thread| thread.join().expect("a thread").expect("an answer"));
            answers.filter(|answer| matches!(answer, Appended::At(_))).count()
        });
        assert_eq!(won, 1);
    }
    assert_eq!(store.journal.read(&a, None).wait().expect("a history").len(), 10);
}

/// Numbers are assigned in order, so a single caller can know the next one in advance.
fn ahead(backend: &mut dyn Backend) {
    let store = backend.open();
    let a = run("a");
    let events = |n: u64| if n == 20 { [closed(1)] } else { [noted(1, "x", Value::Null)] };
    let prev = |n: u64| (n > 1).then(|| Lsn(n - 1));
    let waiting: Vec<_> = (1..=30).map(|n| store.journal.append(record(&a, prev(n), &events(n)))).collect();
    for (n, pending) in (1..).zip(waiting) {
        assert_eq!(pending.wait(), Ok(Appended::At(Lsn(n))));
    }
    assert_eq!(unfinished(&store), "a@30");
    assert_eq!(store.journal.read(&a, None).wait().expect("a history").len(), 30);
}

/// A chain is appended before any of it is durable; if one link is not written, none that depends on it is.
fn resting(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, b) = (run("a"), run("b"));
    push(&store, &a, "x");
    let apart = |run: &RunId, prev: Prev, key: &str| {
        Append::new(run.clone(), prev, &[noted(1, key, Value::Null)]).expect("a record")
    };
    let chain = |prev: Option<Lsn>| {
        let first = apart(&a, Prev::At(prev), "1");
        let beside = apart(&b, Prev::At(tail(&store, &b)), "2").needing(Some(first.ticket().clone()));
        let second =
            apart(&a, Prev::After(first.ticket().clone()), "3").needing(Some(beside.ticket().clone()));
        [first, beside, second]
            .map(|append| store.journal.append(append))
            .map(|pending| matches!(pending.wait(), Ok(Appended::At(_))))
    };
    assert_eq!(chain(Some(Lsn(9))), [false; 3], "the first follows nothing");
    assert_eq!(chain(tail(&store, &a)), [true; 3]);
    assert_eq!((&*history(&store, &a), &*history(&store, &b)), ("1:x 2:1 4:3", "3:2"));
    drop(store);
    let store = backend.open();
    assert_eq!((&*history(&store, &a), &*history(&store, &b)), ("1:x 2:1 4:3", "3:2"));
}

fn groups(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, b, c) = (run("a"), run("b"), run("c"));
    push(&store, &a, "x");
    let small = |run: &RunId, prev: Prev, key: &str| {
        Append::new(run.clone(), prev, &[noted(1, key, Value::Null)]).expect("a record")
    };
    let group = |prev: Option<u64>| {
        let first = small(&a, Prev::At(prev.map(Lsn)), "1");
        let second = small(&a, Prev::After(first.ticket().clone()), "2");
        let beside = small(&b, Prev::At(None), "3").needing(Some(second.ticket().clone()));
        vec![first, second, beside]
    };
    let stale = group(Some(9));
    let needs = stale[2].ticket().clone();
    let conflict = |tail: Option<u64>| Appended::Conflict { tail: tail.map(Lsn) };
    let answers = store.journal.append_all(stale).wait();
    assert_eq!(answers, Ok(vec![conflict(Some(1)), conflict(Some(1)), conflict(None)]));
    let after = store.journal.append(small(&c, Prev::At(None), "4").needing(Some(needs))).wait();
    assert_eq!(after, Ok(conflict(None)), "nothing rests on a record that was not written");
    // The last one does not match, so the first two are not written either.
    let mut late = group(Some(1));
    late.push(small(&a, Prev::At(Some(Lsn(1))), "5"));
    assert!(store.journal.append_all(late).wait().is_ok_and(|all| all.contains(&conflict(Some(1)))));
    assert_eq!((&*history(&store, &a), &*history(&store, &b)), ("1:x", ""));
    let at = |lsn| Appended::At(Lsn(lsn));
    assert_eq!(store.journal.append_all(group(Some(1))).wait(), Ok(vec![at(2), at(3), at(4)]));
    assert_eq!(store.journal.append_all(Vec::new()).wait(), Ok(Vec::new()));
    drop(store);
    let store = backend.open();
    assert_eq!((&*history(&store, &a), &*history(&store, &b)), ("1:x 2:1 3:2", "4:3"));
}

fn coordinator(backend: &mut dyn Backend) {
    let store = backend.open();
    push(&store, &run("a"), "x");
    let events = [CoordinatorEvent { at: Timestamp(1), what: CoordinatorWhat::Snapshot }];
    let append = Append::coordinator(None, &events).expect("a record");
    assert_eq!(store.journal.append(append).wait(), Ok(Appended::At(Lsn(2))));
    drop(store);
    let store = backend.open();
    let records = store.journal.read(&RunId::coordinator(), None).wait().expect("a stream");
    let read: Vec<CoordinatorEvent> = records
        .iter()
        .flat_map(|record| record.coordinator_events(&*store.blobs).wait().expect("events"))
        .collect();
    assert_eq!(read, events);
    // The shared stream is not a run, and no list shows it.
    assert_eq!(unfinished(&store), "a@1");
    let query = Query { limit: 10, ..Query::default() };
    assert_eq!(store.view.list(&query).wait().expect("rows").len(), 1);
    assert_eq!(RunId::new(RunId::coordinator().as_str()).ok(), None, "no run can have that name");
}

fn histories(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, b) = (run("a"), run("b"));
    for key in ["p", "q", "r", "s"] {
        push(&store, &a, key);
        push(&store, &b, key);
    }
    let back = |before: Option<u64>, limit| {
        shown(&store.journal.back(&a, before.map(Lsn), limit).wait().expect("records"))
    };
    assert_eq!(back(None, 9), "7:s 5:r 3:q 1:p");
    assert_eq!(back(None, 2), "7:s 5:r");
    assert_eq!(back(Some(5), 1), "3:q");
    assert_eq!(back(Some(1), 9), "");
    assert_eq!(back(Some(4), 9), "", "a record of another run");
    assert_eq!(back(Some(99), 9), "", "a record of no run");
    assert_eq!(back(None, 0), "");
    let after = |lsn| shown(&store.journal.read(&a, Some(Lsn(lsn))).wait().expect("records"));
    assert_eq!(history(&store, &a), "1:p 3:q 5:r 7:s");
    assert_eq!(after(1), "3:q 5:r 7:s");
    assert_eq!(after(4), "5:r 7:s");
    assert_eq!(after(7), "");
    let long = run("long");
    let prev = |n: u64| (n > 9).then(|| Lsn(n - 1));
    let waiting: Vec<_> = (9..609)
        .map(|n| store.journal.append(record(&long, prev(n), &[noted(1, "x", Value::Null)])))
        .collect();
    for pending in waiting {
        pending.wait().expect("appended");
    }
    assert_eq!(store.journal.read(&long, None).wait().expect("records").len(), 600);
    assert_eq!(store.journal.read(&long, Some(Lsn(8 + 88))).wait().expect("records").len(), 512);
    assert_eq!(store.journal.read(&long, Some(Lsn(8 + 89))).wait().expect("records").len(), 511);
}

fn tails_again(backend: &mut dyn Backend) {
    let store = backend.open();
    assert_eq!(store.journal.tails().wait().expect("tails").last, None);
    for (name, key) in [("a", "x"), ("b", "x"), ("a", "y"), ("c", "x"), ("b", "end"), ("d", "end")] {
        push(&store, &run(name), key);
    }
    assert_eq!(unfinished(&store), "a@3 c@4");
    drop(store);
    let store = backend.open();
    assert_eq!(unfinished(&store), "a@3 c@4");
    backend.crash();
    drop(store);
    let store = backend.open();
    assert_eq!(unfinished(&store), "a@3 c@4");
    assert_eq!(store.journal.tails().wait().expect("tails").last, Some(Lsn(6)));
    store.clone().close().expect("closed");
    drop(store);
    assert_eq!(unfinished(&backend.open()), "a@3 c@4");
}

fn finished_continues(backend: &mut dyn Backend) {
    let store = backend.open();
    let a = run("a");
    push(&store, &a, "x");
    push(&store, &a, "end");
    drop(store);
    let store = backend.open();
    assert_eq!((unfinished(&store).as_str(), history(&store, &a).as_str()), ("", "1:x 2:end"));
    let again = |prev: Option<u64>| {
        store.journal.append(record(&a, prev.map(Lsn), &[noted(2, "y", Value::Null)])).wait()
    };
    assert_eq!(again(None), Ok(Appended::Conflict { tail: Some(Lsn(2)) }));
    assert_eq!(again(Some(1)), Ok(Appended::Conflict { tail: Some(Lsn(2)) }));
    assert_eq!(again(Some(2)), Ok(Appended::At(Lsn(3))));
    assert_eq!(unfinished(&store), "a@3");
    push(&store, &a, "end");
    drop(store);
    let store = backend.open();
    let stale = store.journal.append(record(&a, Some(Lsn(2)), &[noted(2, "z", Value::Null)])).wait();
    assert_eq!(stale, Ok(Appended::Conflict { tail: Some(Lsn(4)) }));
    assert_eq!(history(&store, &a), "1:x 2:end 3:y 4:end");
}

/// Thirty runs of two records, all in flight at once.
fn short_runs(store: &Store, round: usize) {
    let last = store.journal.tails().wait().expect("tails").last.map_or(0, |lsn| lsn.0);
    let names = (0..30).map(|n| run(&format!("short-{round}-{n}")));
    let appends = names.zip((last + 1..).step_by(2)).flat_map(|(run, first)| {
        let begin = record(&run, None, &[noted(1, "x", Value::Null)]);
        [begin, record(&run, Some(Lsn(first)), &[closed(1)])]
    });
    let waiting: Vec<_> = appends.map(|append| store.journal.append(append)).collect();
    for (at, pending) in (last + 1..).zip(waiting) {
        assert_eq!(pending.wait(), Ok(Appended::At(Lsn(at))));
    }
}

fn low_water(backend: &mut dyn Backend) {
    let mut store = backend.open();
    let (waits, continues, ends, reopened) = (run("waits"), run("goes-on"), run("ends"), run("reopened"));
    for run in [&waits, &continues, &ends] {
        push(&store, run, "x");
    }
    push(&store, &reopened, "end");
    for round in 0..6 {
        short_runs(&store, round);
        if let Some((run, key)) =
            [None, None, Some((&continues, "y")), Some((&ends, "end")), Some((&reopened, "y")), None][round]
        {
            push(&store, run, key);
        }
        let expected = unfinished(&store);
        backend.crash();
        drop(store);
        store = backend.open();
        assert_eq!(unfinished(&store), expected, "round {round}");
    }
    assert_eq!(unfinished(&store), format!("goes-on@{} reopened@{} waits@1", 4 + 180 + 1, 4 + 300 + 3));
    assert_eq!(history(&store, &waits), "1:x");
    push(&store, &waits, "y");
}

fn large_records(backend: &mut dyn Backend) {
    let store = backend.open();
    let body = |n: usize| Value::text("x".repeat(n));
    let sizes = [10, 4_000, 5_000, 70_000, 1_500_000, 3_000_000, 3_000_000, 10];
    let names: Vec<_> = (0..sizes.len()).map(|n| run(&format!("r{n}"))).collect();
    let pairs = || names.iter().zip(sizes);
    let waiting: Vec<_> = pairs()
        .map(|(run, size)| store.journal.append(record(run, None, &[noted(1, "k", body(size))])))
        .collect();
    for (n, pending) in (1..).zip(waiting) {
        assert_eq!(pending.wait(), Ok(Appended::At(Lsn(n))));
    }
    backend.crash();
    drop(store);
    let store = backend.open();
    for (run, size) in pairs() {
        let records = store.journal.read(run, None).wait().expect("a history");
        let events = Record::whole_events(&records, &*store.blobs).wait().expect("events");
        assert_eq!(events, [noted(1, "k", body(size))], "{size}");
    }
    assert_eq!(whole_scan(&store).len(), sizes.len());
}

fn many_runs(backend: &mut dyn Backend) {
    let store = backend.open();
    let names: Vec<_> = (0..500).map(|n| run(&format!("run-{n:03}"))).collect();
    let mut tails = vec![None; names.len()];
    for _ in 0..3 {
        let waiting: Vec<_> = std::iter::zip(&names, &tails)
            .map(|(run, tail)| store.journal.append(record(run, *tail, &[noted(1, "x", Value::Null)])))
            .collect();
        for (tail, pending) in tails.iter_mut().zip(waiting) {
            let Ok(Appended::At(lsn)) = pending.wait() else { panic!("not appended") };
            *tail = Some(lsn);
        }
    }
    drop(store);
    let store = backend.open();
    let found = store.journal.tails().wait().expect("tails");
    let expected: Vec<_> =
        std::iter::zip(names, tails).map(|(run, tail)| (run, tail.expect("a tail"))).collect();
    assert_eq!((found.unfinished, found.last), (expected, Some(Lsn(1_500))));
}

fn unstorable(backend: &mut dyn Backend) {
    let store = backend.open();
    let deep = |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::list([inner]));
    let append = |value| Append::new(run("a"), None, &[noted(1, "k", value)]);
    for value in [Value::secret("token"), deep(2_500)] {
        assert!(matches!(append(value), Err(Error::Unstorable { .. })));
    }
    let fits = deep(1_500);
    assert_eq!(
        store.journal.append(append(fits.clone()).expect("a record")).wait(),
        Ok(Appended::At(Lsn(1)))
    );
    let records = store.journal.read(&run("a"), None).wait().expect("a history");
    assert_eq!(*records[0].events().expect("events"), [noted(1, "k", fits)]);
}

fn scan(backend: &mut dyn Backend) {
    let store = backend.open();
    for (name, key) in [("a", "p"), ("b", "q"), ("a", "end"), ("c", "s")] {
        push(&store, &run(name), key);
    }
    let scan = |from, limit| {
        let records: Vec<_> = store.journal.scan(Lsn(from), limit).wait().expect("a scan");
        shown(&records.into_iter().collect::<Result<Vec<_>, _>>().expect("whole records"))
    };
    assert_eq!(scan(0, 9), "1:p 2:q 3:end 4:s");
    assert_eq!(scan(1, 2), "1:p 2:q");
    assert_eq!(scan(3, 9), "3:end 4:s");
    assert_eq!(scan(5, 9), "");
}

fn plans(backend: &mut dyn Backend) {
    let store = backend.open();
    let (first, second) = (plan("d1", r#"{"steps":[1,"ü"]}"#), plan("d2", "{}"));
    store.plans.put(first.clone()).wait().expect("stored");
    store.plans.put(second.clone()).wait().expect("stored");
    store.plans.put(plan("d1", "{}")).wait().expect("kept as it was");
    let twice = [plan("d3", "[3]"), plan("d3", "[4]")].map(|plan| store.plans.put(plan));
    twice.into_iter().for_each(|pending| pending.wait().expect("stored"));
    backend.crash();
    drop(store);
    let store = backend.open();
    assert_eq!(store.plans.get("d1").wait(), Ok(Some(first)));
    assert_eq!(store.plans.get("d2").wait(), Ok(Some(second)));
    assert_eq!(store.plans.get("d3").wait(), Ok(Some(plan("d3", "[3]"))));
    assert_eq!(store.plans.get("d4").wait(), Ok(None));
}

fn deep_plans(backend: &mut dyn Backend) {
    let store = backend.open();
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let stored = |plan: StoredPlan| {
        let digest = plan.digest.clone();
        store.plans.put(plan).wait()?;
        store.plans.get(&digest).wait().map(|found| found.expect("the plan"))
    };
    let deep = stored(plan("deep", nested(2_000))).expect("a plan");
    let value: Value = deep.read(1).expect("deep, and within the bound");
    assert!(matches!(value, Value::List(_)));
    let cause = |error: Error| error.to_string();
    let hostile = stored(plan("hostile", nested(100_000))).map(drop).map_err(cause);
    assert!(hostile.expect_err("too deep").contains("nested 100000 levels deep, more than 2000"));
    let broken = stored(plan("broken", "{")).expect("text").read::<Value>(1).map_err(cause);
    assert!(broken.expect_err("no JSON").contains("`broken` cannot be read: EOF"));
    let newer = stored(StoredPlan { format: 2, ..plan("newer", "{}") }).expect("a plan");
    let refused = newer.read::<Value>(1).map_err(cause).expect_err("a newer format");
    assert!(refused.contains("has format 2, but this version reads up to 1"), "{refused}");
}

fn blobs(backend: &mut dyn Backend) {
    let store = backend.open();
    let a = run("a");
    let (once, large) = (Value::text("x".repeat(70_000)), Value::text("y".repeat(3_000_000)));
    let events = [noted(1, "k", Value::list([once.clone(), Value::Null, large])), noted(2, "k", once)];
    for prev in [None, Some(Lsn(1))] {
        let append = store.journal.append(record(&a, prev, &events)).wait();
        assert!(matches!(append, Ok(Appended::At(_))));
    }
    assert_eq!(store.blobs.list().wait().expect("values").len(), 2, "each value once");
    backend.crash();
    drop(store);
    let store = backend.open();
    for record in store.journal.read(&a, None).wait().expect("a history") {
        assert!(record.frame().len() < 1_000);
        assert_eq!(
            Record::whole_events(std::slice::from_ref(&record), &*store.blobs).wait().expect("events"),
            events
        );
        for id in record.names() {
            let content = store.blobs.get(&id).wait().expect("an answer").expect("a value");
            assert_eq!(BlobId::of(&content), id);
        }
    }
    assert_eq!(store.blobs.get(&BlobId::of(b"never put")).wait(), Ok(None));
}

fn view(backend: &mut dyn Backend) {
    let store = backend.open();
    let append = |name: &str, events: &[_]| {
        let run = run(name);
        store.journal.append(record(&run, tail(&store, &run), events)).wait().expect("appended")
    };
    append("early", &[noted(10, "a", Value::Null)]);
    append("late", &[noted(20, "b", Value::Null), noted(21, "c", Value::Null)]);
    append("early", &[noted(30, "d", Value::Null), closed(31)]);
    append("twin", &[noted(20, "e", Value::Null)]);
    append("again", &[noted(5, "f", Value::Null), closed(6)]);
    append("again", &[noted(7, "g", Value::Null)]);
    let list = |store: &Store, limit, unfinished_only| {
        let rows =
            store.view.list(&Query { limit, unfinished_only, ..Query::default() }).wait().expect("rows");
        let text =
            |row: &windlass_store::RunRow| format!("{}@{}:{}", row.run, row.tail, row.row.dialect_status);
        rows.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    let expect = |store: &Store| {
        assert_eq!(list(store, 9, false), "late@2:bc twin@4:e early@3:ad again@6:fg");
        assert_eq!(list(store, 9, true), "late@2:bc twin@4:e again@6:fg");
        assert_eq!(list(store, 2, false), "late@2:bc twin@4:e");
        assert_eq!(list(store, 0, false), "");
        let found = |query: Query| {
            let rows = store.view.list(&query).wait().expect("rows");
            rows.iter().map(|row| row.run.to_string()).collect::<Vec<_>>().join(" ")
        };
        let all = Query::default;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(found(Query { prefix: "t".into(), ..all() }), "twin");
        assert_eq!(found(Query { prefix: "twins".into(), ..all() }), "");
        assert_eq!(found(Query { going_only: true, ..all() }), "late twin again");
        assert_eq!(found(Query { dialect_statuses: words(&["e"]), ..all() }), "twin");
        assert_eq!(found(Query { dialect_statuses: words(&["e", "ad"]), ..all() }), "twin early");
        assert_eq!(found(Query { workflows: words(&["workflow of late"]), ..all() }), "late");
        assert_eq!(found(Query { since: Some(Timestamp(20)), ..all() }), "late twin");
        assert_eq!(found(Query { before: Some(Timestamp(20)), ..all() }), "early again");
        assert_eq!(found(Query { search: Some("OF EARLY".into()), ..all() }), "early");
        assert_eq!(found(Query { search: Some("of".into()), limit: 3, ..all() }), "late twin early");
        assert_eq!(found(Query { dialect: Some("none".into()), ..all() }), "");
        let success = || vec![RunStatus::Success];
        assert_eq!(found(Query { statuses: success(), ..all() }), "early");
        assert_eq!(found(Query { statuses: vec![RunStatus::Waiting], ..all() }), "");
        let either = Query { statuses: success(), dialect_statuses: words(&["e"]), ..all() };
        assert_eq!(found(either), "twin early");
        let early = store.view.get(&run("early")).wait().expect("an answer").expect("a row");
        assert_eq!((early.ended, early.row.ended_at), (true, Some(Timestamp(31))));
        assert_eq!(early.row.workflow, "workflow of early");
        assert_eq!(store.view.get(&run("unknown")).wait(), Ok(None));
    };
    expect(&store);
    store.view.rebuild().wait().expect("rebuilt");
    let stored = store.view.stored().wait().expect("an answer").expect("rows");
    assert_eq!((stored.0, stored.1.len()), (Lsn(6), 4));
    expect(&store);
    backend.crash();
    drop(store);
    expect(&backend.open());
    expect(&backend.open());
}

/// The last record of a run decides, and only its writer knows.
fn unfinished_runs(backend: &mut dyn Backend) {
    let store = backend.open();
    let push = |store: &Store, name: &str, events: &[Event], wake: Option<Wake>| {
        let append = record(&run(name), tail(store, &run(name)), events);
        let append = match wake {
            Some(wake) => append.resting(wake),
            None => append,
        };
        store.journal.append(append).wait().expect("appended")
    };
    let note = [noted(1, "x", Value::Null)];
    let at = Wake::At(Timestamp(77));
    for (name, wake) in [("at", at), ("never", Wake::Never), ("owes", Wake::Owes), ("woken", at)] {
        push(&store, name, &note, Some(wake));
    }
    push(&store, "silent", &note, None);
    push(&store, "done", &[noted(1, "x", Value::Null), closed(2)], Some(Wake::Never));
    push(&store, "woken", &note, None);
    let shown = |store: &Store| store.view.unfinished().wait().expect("runs");
    let named = |wakes: [(&str, Wake); 5]| wakes.map(|(name, wake)| (run(name), wake)).to_vec();
    let expected = named([
        ("at", at),
        ("never", Wake::Never),
        ("owes", Wake::Owes),
        ("silent", Wake::Unknown),
        ("woken", Wake::Unknown),
    ]);
    assert_eq!(shown(&store), expected);
    store.clone().close().expect("closed");
    drop(store);
    let store = backend.open();
    assert_eq!(shown(&store), expected);
    push(&store, "at", &note, Some(Wake::Never));
    push(&store, "done", &note, Some(at));
    remove(&store, &run("owes"));
    let expected = named([
        ("at", Wake::Never),
        ("done", at),
        ("never", Wake::Never),
        ("silent", Wake::Unknown),
        ("woken", Wake::Unknown),
    ]);
    assert_eq!(shown(&store), expected);
}

fn removal(backend: &mut dyn Backend) {
    let store = backend.open();
    let (old, waits, reopened, newest) = (run("old"), run("waits"), run("reopened"), run("newest"));
    for (run, key) in [(&old, "x"), (&waits, "x"), (&old, "end"), (&reopened, "end"), (&reopened, "y")] {
        push(&store, run, key);
    }
    push(&store, &newest, "x");
    push(&store, &newest, "end");
    store.view.rebuild().wait().expect("up to date");
    // A run that has continued since the caller looked stays.
    let stale = Append::removal(old.clone(), Some(Lsn(1))).expect("a record");
    assert_eq!(store.journal.append(stale).wait(), Ok(Appended::Conflict { tail: Some(Lsn(3)) }));
    let unknown = Append::removal(run("unknown"), Some(Lsn(1))).expect("a record");
    assert_eq!(store.journal.append(unknown).wait(), Ok(Appended::Conflict { tail: None }));
    assert_eq!(remove(&store, &old), Appended::At(Lsn(8)));
    assert_eq!(remove(&store, &newest), Appended::At(Lsn(9)));
    let expect = |store: &Store| {
        assert_eq!((history(store, &old).as_str(), history(store, &newest).as_str()), ("", ""));
        assert_eq!(history(store, &reopened), "4:end 5:y");
        assert_eq!(unfinished(store), "reopened@5 waits@2");
        let last = store.journal.tails().wait().expect("tails").last;
        assert_eq!(last, Some(Lsn(9)), "no number is forgotten");
        assert_eq!(whole_scan(store).len(), 3);
        let rows = store.view.list(&Query { limit: 9, ..Query::default() }).wait().expect("rows");
        let names: Vec<&str> = rows.iter().map(|row| row.run.as_str()).collect();
        assert_eq!(names, ["reopened", "waits"]);
        assert_eq!(store.view.get(&old).wait(), Ok(None));
    };
    expect(&store);
    backend.crash();
    drop(store);
    let store = backend.open();
    expect(&store);
    store.journal.reclaim().wait().expect("reclaimed");
    expect(&store);
    drop(store);
    let store = backend.open();
    expect(&store);
    // No number is used twice, and the id of a removed run is free.
    assert_eq!(push(&store, &waits, "y"), Lsn(10));
    assert_eq!(remove(&store, &waits), Appended::At(Lsn(11)));
    assert_eq!(push(&store, &old, "again"), Lsn(12));
    assert_eq!(history(&store, &old), "12:again");
    drop(store);
    let store = backend.open();
    assert_eq!((unfinished(&store).as_str(), history(&store, &waits).as_str()), ("old@12 reopened@5", ""));
    store.journal.reclaim().wait().expect("reclaimed");
    store.journal.compact().wait().expect("compacted");
    assert_eq!(history(&store, &old), "12:again");
    assert_eq!(push(&store, &reopened, "z"), Lsn(13));
    // In one group, too.
    let removal = Append::removal(old.clone(), Some(Lsn(12))).expect("a record");
    let begin = record(&old, None, &[noted(1, "third", Value::Null)]);
    let group = store.journal.append_all(vec![removal, begin]).wait();
    assert_eq!(group, Ok(vec![Appended::At(Lsn(14)), Appended::At(Lsn(15))]));
    drop(store);
    let store = backend.open();
    assert_eq!(unfinished(&store), "old@15 reopened@13");
    // The row shows nothing of the run that had the id before.
    assert_eq!(
        store.view.get(&old).wait().expect("a view").map(|row| row.row.dialect_status),
        Some("third".into())
    );
}

fn plan_removal(backend: &mut dyn Backend) {
    let store = backend.open();
    for digest in ["d1", "d2"] {
        store.plans.put(plan(digest, "{}")).wait().expect("stored");
    }
    assert_eq!(store.plans.forget(vec!["d1".into(), "d3".into()]).wait(), Ok(1));
    assert_eq!(store.plans.list().wait(), Ok(vec!["d2".to_owned()]));
    assert_eq!(store.plans.get("d1").wait(), Ok(None));
}

/// Also in a process that wrote them itself: only records that are written during the sweep protect a value.
fn sweeps(backend: &mut dyn Backend) {
    let store = backend.open();
    let text = |fill: &str| Value::text(fill.repeat(70_000));
    for (name, fill) in [("a", "x"), ("b", "y"), ("c", "z")] {
        let append = record(&run(name), None, &[noted(1, "k", text(fill))]);
        store.journal.append(append).wait().expect("appended");
    }
    let names = |name: &str| store.journal.read(&run(name), None).wait().expect("a history")[0].names();
    let (x, y, z) = (names("a"), names("b"), names("c"));
    assert_eq!(store.blobs.sweep(x.clone()).wait(), Ok(Vec::new()), "no sweep has begun");
    remove(&store, &run("a"));
    remove(&store, &run("b"));
    assert_eq!(store.blobs.begin_sweep().wait().expect("values").len(), 3);
    let append = record(&run("d"), None, &[noted(1, "k", text("y"))]);
    store.journal.append(append).wait().expect("appended");
    assert_eq!(store.blobs.sweep([x.clone(), y.clone()].concat()).wait(), Ok(x.clone()));
    let is_there = |id: &[BlobId]| store.blobs.get(&id[0]).wait().expect("an answer").is_some();
    assert_eq!([is_there(&x), is_there(&y), is_there(&z)], [false, true, true]);
}

fn ledger(backend: &mut dyn Backend) {
    let put = |key: &str, body: &str, until: Option<i64>| Entry::Put {
        kind: "key",
        key: key.into(),
        body: body.into(),
        until: until.map(Timestamp),
    };
    let store = backend.open();
    let get = |store: &Store, key: &str| store.ledger.get("key", key).wait().expect("readable");
    let first = record(&run("a"), None, &[noted(1, "x", Value::Null)]);
    let first = first.noting(vec![put("k", "1", None), Entry::Log(b"one".to_vec())]);
    assert_eq!(store.journal.append(first).wait(), Ok(Appended::At(Lsn(1))));
    assert_eq!(get(&store, "k").as_deref(), Some(&b"1"[..]));
    // A record that is not written changes nothing, and neither does the rest of its group.
    let wrong = record(&run("a"), None, &[noted(1, "y", Value::Null)]);
    let group = vec![wrong.noting(vec![put("k", "2", None), Entry::Log(b"two".to_vec())])];
    let refused = store.journal.append_all(group).wait().expect("readable");
    assert_eq!(refused, [Appended::Conflict { tail: Some(Lsn(1)) }]);
    assert_eq!(get(&store, "k").as_deref(), Some(&b"1"[..]));
    store.ledger.write(vec![put("l", "3", Some(10)), Entry::Log(b"three".to_vec())]).wait().expect("written");
    drop(store);
    let store = backend.open();
    let log = |before, limit| store.ledger.log(before, limit).wait().expect("readable");
    assert_eq!(log(None, 9), [(2, b"three".to_vec()), (1, b"one".to_vec())]);
    assert_eq!((log(Some(2), 9), log(None, 1)), (vec![(1, b"one".to_vec())], vec![(2, b"three".to_vec())]));
    let keys = |after: Option<&str>| -> Vec<String> {
        let found = store.ledger.list("key", after, 9).wait().expect("readable");
        found.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!((keys(None), keys(Some("k"))), (vec!["k".to_owned(), "l".to_owned()], vec!["l".to_owned()]));
    assert_eq!(store.ledger.get("token", "k").wait().expect("readable"), None);
    store.ledger.expire(Timestamp(10)).wait().expect("written");
    assert_eq!(keys(None), ["k"]);
    store.ledger.write(vec![Entry::Remove { kind: "key", key: "k".into() }]).wait().expect("written");
    assert_eq!(keys(None), Vec::<String>::new());
}
