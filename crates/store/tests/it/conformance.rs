//! What every backend promises, one check each.

use crate::support::*;
use windlass_engine::{DeskEvent, DeskWhat, RunId, Timestamp};
use windlass_ir::Value;
use windlass_store::{Append, Appended, BlobId, Error, Lsn, Prev, Query};

type Check = fn(&mut dyn Backend);

const CHECKS: [(&str, Check); 21] = [
    ("numbers rise without gaps", numbers_rise),
    ("a wrong tail is a conflict", wrong_tail),
    ("a conflict hurts nobody else", one_conflict),
    ("one of many wins a race", race),
    ("a run can be ahead of its answers", ahead),
    ("records that rest on others share their fate", resting),
    ("the desk has a stream beside the runs", desk),
    ("histories are read in both directions", histories),
    ("tails are found again", tails_again),
    ("a finished run can go on", finished_goes_on),
    ("runs that wait long are not lost", low_water),
    ("large records", large_records),
    ("many runs", many_runs),
    ("what could not be read is not written", unstorable),
    ("everything can be scanned", scan),
    ("plans", plans),
    ("deep and newer plans", deep_plans),
    ("blobs", blobs),
    ("the view", view),
    ("finished runs can be removed", removal),
    ("plans and values can be removed", removal_beside),
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
fn folder_that_tidies_all_the_time() {
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
    assert_eq!(store.journal.read(&a, None).expect("a history").len(), 10);
}

/// Numbers are given in order, so a caller who is alone can know the next one before it is told.
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
    assert_eq!(store.journal.read(&a, None).expect("a history").len(), 30);
}

/// A chain is handed over before any of it is durable; where one link is not written, none that rests on it is.
fn resting(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, b) = (run("a"), run("b"));
    push(&store, &a, "x");
    let apart = |run: &RunId, prev: Prev, key: &str| {
        Append::apart(run.clone(), prev, &[noted(1, key, Value::Null)], &*store.blobs).expect("a record")
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

fn desk(backend: &mut dyn Backend) {
    let store = backend.open();
    push(&store, &run("a"), "x");
    let events = [DeskEvent { at: Timestamp(1), what: DeskWhat::Begun }];
    let append = Append::desk(Prev::At(None), &events, &*store.blobs).expect("a record");
    assert_eq!(store.journal.append(append).wait(), Ok(Appended::At(Lsn(2))));
    drop(store);
    let store = backend.open();
    let records = store.journal.read(&RunId::desk(), None).expect("a stream");
    let read: Vec<DeskEvent> =
        records.iter().flat_map(|record| record.desk_events(&*store.blobs).expect("events")).collect();
    assert_eq!(read, events);
    // It is no run, and no list shows it.
    assert_eq!(unfinished(&store), "a@1");
    let query = Query { limit: 10, ..Query::default() };
    assert_eq!(store.view.list(&query).expect("rows").len(), 1);
    assert_eq!(RunId::new(RunId::desk().as_str()).ok(), None, "nobody can name a run like that");
}

fn histories(backend: &mut dyn Backend) {
    let store = backend.open();
    let (a, b) = (run("a"), run("b"));
    for key in ["p", "q", "r", "s"] {
        push(&store, &a, key);
        push(&store, &b, key);
    }
    let back =
        |before: Option<u64>, limit| told(&store.journal.back(&a, before.map(Lsn), limit).expect("records"));
    assert_eq!(back(None, 9), "7:s 5:r 3:q 1:p");
    assert_eq!(back(None, 2), "7:s 5:r");
    assert_eq!(back(Some(5), 1), "3:q");
    assert_eq!(back(Some(1), 9), "");
    assert_eq!(back(Some(4), 9), "", "a record of another run");
    assert_eq!(back(Some(99), 9), "", "a record of nobody");
    assert_eq!(back(None, 0), "");
    let after = |lsn| told(&store.journal.read(&a, Some(Lsn(lsn))).expect("records"));
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
    assert_eq!(store.journal.read(&long, None).expect("records").len(), 600);
    assert_eq!(store.journal.read(&long, Some(Lsn(8 + 88))).expect("records").len(), 512);
    assert_eq!(store.journal.read(&long, Some(Lsn(8 + 89))).expect("records").len(), 511);
}

fn tails_again(backend: &mut dyn Backend) {
    let store = backend.open();
    assert_eq!(store.journal.tails().expect("tails").last, None);
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
    assert_eq!(store.journal.tails().expect("tails").last, Some(Lsn(6)));
    store.clone().close().expect("closed");
    drop(store);
    assert_eq!(unfinished(&backend.open()), "a@3 c@4");
}

fn finished_goes_on(backend: &mut dyn Backend) {
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

/// Thirty runs of two records, all on their way at once.
fn short_runs(store: &windlass_store::Store, round: usize) {
    let last = store.journal.tails().expect("tails").last.map_or(0, |lsn| lsn.0);
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
    let (waits, goes_on, ends, reopened) = (run("waits"), run("goes-on"), run("ends"), run("reopened"));
    for run in [&waits, &goes_on, &ends] {
        push(&store, run, "x");
    }
    push(&store, &reopened, "end");
    for round in 0..6 {
        short_runs(&store, round);
        if let Some((run, key)) =
            [None, None, Some((&goes_on, "y")), Some((&ends, "end")), Some((&reopened, "y")), None][round]
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
        let records = store.journal.read(run, None).expect("a history");
        assert_eq!(records[0].events().expect("events"), [noted(1, "k", body(size))], "{size}");
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
    let found = store.journal.tails().expect("tails");
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
    let records = store.journal.read(&run("a"), None).expect("a history");
    assert_eq!(records[0].events().expect("events"), [noted(1, "k", fits)]);
}

fn scan(backend: &mut dyn Backend) {
    let store = backend.open();
    for (name, key) in [("a", "p"), ("b", "q"), ("a", "end"), ("c", "s")] {
        push(&store, &run(name), key);
    }
    let scan = |from, limit| {
        let records: Vec<_> = store.journal.scan(Lsn(from), limit).expect("a scan");
        told(&records.into_iter().collect::<Result<Vec<_>, _>>().expect("whole records"))
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
    assert_eq!(store.plans.get("d1"), Ok(Some(first)));
    assert_eq!(store.plans.get("d2"), Ok(Some(second)));
    assert_eq!(store.plans.get("d3"), Ok(Some(plan("d3", "[3]"))));
    assert_eq!(store.plans.get("d4"), Ok(None));
}

fn deep_plans(backend: &mut dyn Backend) {
    let store = backend.open();
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let stored = |plan: windlass_store::StoredPlan| {
        let digest = plan.digest.clone();
        store.plans.put(plan).wait()?;
        store.plans.get(&digest).map(|found| found.expect("the plan"))
    };
    let deep = stored(plan("deep", nested(2_000))).expect("a plan");
    let value: Value = deep.read(1).expect("deep, and within the bound");
    assert!(matches!(value, Value::List(_)));
    let cause = |error: Error| error.to_string();
    let hostile = stored(plan("hostile", nested(100_000))).map(drop).map_err(cause);
    assert!(hostile.expect_err("too deep").contains("nests 100000 levels, more than 2000"));
    let broken = stored(plan("broken", "{")).expect("text").read::<Value>(1).map_err(cause);
    assert!(broken.expect_err("no JSON").contains("`broken` cannot be read: EOF"));
    let newer = stored(windlass_store::StoredPlan { format: 2, ..plan("newer", "{}") }).expect("a plan");
    let refused = newer.read::<Value>(1).map_err(cause).expect_err("a newer format");
    assert!(refused.contains("has format 2 and this version reads up to 1"), "{refused}");
}

fn blobs(backend: &mut dyn Backend) {
    let store = backend.open();
    let contents: Vec<Vec<u8>> = [0, 1, 70_000, 3_000_000].iter().map(|n| vec![7; *n]).collect();
    let put = |content: &Vec<u8>| store.blobs.put(content).expect("stored");
    let ids: Vec<_> = contents.iter().map(put).collect();
    assert_eq!(contents.iter().map(put).collect::<Vec<_>>(), ids);
    backend.crash();
    drop(store);
    let store = backend.open();
    for (id, content) in ids.iter().zip(contents) {
        assert_eq!(*id, BlobId::of(&content));
        assert_eq!(store.blobs.get(id), Ok(Some(content)));
    }
    assert_eq!(store.blobs.get(&BlobId::of(b"never put")), Ok(None));
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
    let list = |store: &windlass_store::Store, limit, unfinished_only| {
        let rows = store.view.list(&Query { limit, unfinished_only, ..Query::default() }).expect("rows");
        let text = |row: &windlass_store::RunRow| format!("{}@{}:{}", row.run, row.tail, row.row.status);
        rows.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    let expect = |store: &windlass_store::Store| {
        assert_eq!(list(store, 9, false), "late@2:bc twin@4:e early@3:ad again@6:fg");
        assert_eq!(list(store, 9, true), "late@2:bc twin@4:e again@6:fg");
        assert_eq!(list(store, 2, false), "late@2:bc twin@4:e");
        assert_eq!(list(store, 0, false), "");
        let found = |query: Query| {
            let rows = store.view.list(&query).expect("rows");
            rows.iter().map(|row| row.run.to_string()).collect::<Vec<_>>().join(" ")
        };
        let all = Query::default;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(found(Query { prefix: "t".into(), ..all() }), "twin");
        assert_eq!(found(Query { prefix: "twins".into(), ..all() }), "");
        assert_eq!(found(Query { going_only: true, ..all() }), "late twin again");
        assert_eq!(found(Query { statuses: words(&["e"]), ..all() }), "twin");
        assert_eq!(found(Query { statuses: words(&["e", "ad"]), ..all() }), "twin early");
        assert_eq!(found(Query { workflows: words(&["workflow of late"]), ..all() }), "late");
        assert_eq!(found(Query { since: Some(Timestamp(20)), ..all() }), "late twin");
        assert_eq!(found(Query { before: Some(Timestamp(20)), ..all() }), "early again");
        assert_eq!(found(Query { search: Some("OF EARLY".into()), ..all() }), "early");
        assert_eq!(found(Query { search: Some("of".into()), limit: 3, ..all() }), "late twin early");
        assert_eq!(found(Query { dialect: Some("none".into()), ..all() }), "");
        assert_eq!(found(Query { or_waiting: true, ..all() }), "");
        assert_eq!(found(Query { or_waiting: true, statuses: words(&["ad"]), ..all() }), "early");
        let early = store.view.get(&run("early")).expect("an answer").expect("a row");
        assert_eq!((early.ended, early.row.ended_at), (true, Some(Timestamp(31))));
        assert_eq!(early.row.workflow, "workflow of early");
        assert_eq!(store.view.get(&run("nobody")), Ok(None));
    };
    expect(&store);
    store.view.rebuild().expect("rebuilt");
    assert_eq!(store.view.applied(), Ok(Some(Lsn(6))));
    expect(&store);
    backend.crash();
    drop(store);
    expect(&backend.open());
    expect(&backend.open());
}

fn removal(backend: &mut dyn Backend) {
    let store = backend.open();
    let (old, waits, reopened, newest) = (run("old"), run("waits"), run("reopened"), run("newest"));
    for (run, key) in [(&old, "x"), (&waits, "x"), (&old, "end"), (&reopened, "end"), (&reopened, "y")] {
        push(&store, run, key);
    }
    push(&store, &newest, "x");
    push(&store, &newest, "end");
    store.view.rebuild().expect("up to date");
    // Whatever is not finished stays, and so does a run that has gone on since it was looked at.
    let stale = windlass_store::Forget(vec![(old.clone(), Lsn(1), vec![Lsn(1)])]);
    assert_eq!(store.journal.forget(stale).wait(), Ok(vec![]));
    assert_eq!(forget(&store, &[&waits, &reopened, &run("nobody")]), []);
    assert_eq!(forget(&store, &[&old, &newest, &waits]), [old.clone(), newest.clone()]);
    let expect = |store: &windlass_store::Store, last: u64| {
        assert_eq!((history(store, &old).as_str(), history(store, &newest).as_str()), ("", ""));
        assert_eq!(history(store, &reopened), "4:end 5:y");
        assert_eq!(unfinished(store), "reopened@5 waits@2");
        assert_eq!(store.journal.tails().expect("tails").last, Some(Lsn(last)), "no number is forgotten");
        assert_eq!(whole_scan(store).len(), if last == 7 { 3 } else { 4 });
        let rows = store.view.list(&Query { limit: 9, ..Query::default() }).expect("rows");
        let names: Vec<&str> = rows.iter().map(|row| row.run.as_str()).collect();
        assert_eq!(names.iter().filter(|name| ["old", "newest"].contains(name)).count(), 0, "{names:?}");
    };
    expect(&store, 7);
    backend.crash();
    drop(store);
    let store = backend.open();
    expect(&store, 7);
    // No number is given twice, and the name of a removed run is free.
    assert_eq!(push(&store, &waits, "y"), Lsn(8));
    push(&store, &waits, "end");
    assert_eq!(forget(&store, &[&waits]), std::slice::from_ref(&waits));
    assert_eq!(push(&store, &old, "again"), Lsn(10));
    assert_eq!(history(&store, &old), "10:again");
    drop(store);
    let store = backend.open();
    assert_eq!((unfinished(&store).as_str(), history(&store, &waits).as_str()), ("old@10 reopened@5", ""));
    store.journal.compact().wait().expect("compacted");
    assert_eq!(history(&store, &old), "10:again");
    assert_eq!(push(&store, &reopened, "z"), Lsn(11));
    drop(store);
    let store = backend.open();
    assert_eq!(unfinished(&store), "old@10 reopened@11");
    // Nothing of the one that had the name before is shown.
    let fresh = run("fresh");
    push(&store, &fresh, "again");
    let status = |run: &RunId| store.view.get(run).expect("a view").map(|row| row.row.status);
    assert_eq!(status(&old), status(&fresh));
}

fn removal_beside(backend: &mut dyn Backend) {
    let store = backend.open();
    for digest in ["d1", "d2"] {
        store.plans.put(plan(digest, "{}")).wait().expect("stored");
    }
    assert_eq!(store.plans.forget(vec!["d1".into(), "d3".into()]).wait(), Ok(1));
    assert_eq!(store.plans.list(), Ok(vec!["d2".to_owned()]));
    assert_eq!(store.plans.get("d1"), Ok(None));
    let id = store.blobs.put(&[1; 70_000]).expect("stored");
    assert_eq!(store.blobs.list(), Ok(vec![(id.clone(), 70_000)]));
    assert_eq!(store.blobs.forget(&id), Ok(false), "the record that names it may be on its way");
    let large = Value::text("x".repeat(70_000));
    let append = Append::apart(run("a"), Prev::At(None), &[noted(1, "k", large)], &*store.blobs);
    store.journal.append(append.expect("a record")).wait().expect("appended");
    let record = store.journal.read(&run("a"), None).expect("a history").remove(0);
    let [named] = <[BlobId; 1]>::try_from(record.names()).expect("one name");
    assert!(store.blobs.get(&named).expect("an answer").is_some());
}
