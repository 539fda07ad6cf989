//! What a data folder does beyond the guarantees of every backend: crashes, truncated logs, other owners, readers,
//! maintenance.

use crate::support::*;
use std::sync::mpsc;
use windlass_engine::{Event, RunId};
use windlass_ir::Value;
use windlass_store::{Appended, Error, Lsn, Options, Projection, Query, Record, Row, Store, Tuning};

fn open(temp: &Temp, options: Options) -> Store {
    Store::open(temp.path(), options).expect("a store")
}

/// Never checkpoints the log, so that the files only grow and a copy of them is a state of the disk.
fn growing() -> Options {
    Options { tuning: Tuning { log_bytes: u64::MAX, ..Tuning::default() }, ..busy() }
}

/// All records of a store, after checking that they are a prefix: no gaps, and every chain leads back to its start.
fn prefix(store: &Store) -> Vec<Record> {
    let records: Vec<Record> =
        whole_scan(store).into_iter().collect::<Result<_, _>>().expect("whole records");
    for (n, record) in (1..).zip(&records) {
        assert_eq!(record.lsn, Lsn(n));
        let before = records.iter().take_while(|other| other.lsn < record.lsn);
        assert_eq!(record.prev, before.filter(|other| other.run == record.run).map(|other| other.lsn).last());
    }
    records
}

#[test]
fn acknowledged_records_survive_a_crash() {
    let temp = Temp::new();
    let store = open(&temp, growing());
    let (acknowledged, heard) = mpsc::channel();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (store, acknowledged) = (store.clone(), acknowledged.clone());
            scope.spawn(move || {
                for key in 0..150 {
                    let run = run(&format!("r{n}-{}", key / 10));
                    let lsn = push(&store, &run, if key % 10 == 9 { "end" } else { "x" });
                    acknowledged.send((run, lsn)).expect("the test listens");
                }
            });
        }
        drop(acknowledged);
        let mut known = Vec::new();
        for image in 0..5 {
            known.extend(heard.iter().take(100));
            let copy = Temp::new();
            copy_journal(temp.path(), copy.path());
            let found = prefix(&open(&copy, busy()));
            for (run, lsn) in &known {
                let record = found.iter().find(|record| record.lsn == *lsn);
                assert_eq!(record.map(|record| &record.run), Some(run), "image {image}, record {lsn}");
            }
        }
    });
}

#[test]
fn a_log_cut_anywhere_leaves_a_prefix() {
    let temp = Temp::new();
    let store = open(&temp, growing());
    for n in 0..60 {
        push(&store, &run(&format!("r{}", n % 7)), if n % 9 == 8 { "end" } else { "x" });
    }
    let log = std::fs::read(temp.file("journal.db-wal")).expect("the log");
    let whole = prefix(&store);
    let mut lengths = std::collections::BTreeSet::new();
    for cut in (0..=log.len()).step_by(log.len() / 50) {
        let copy = Temp::new();
        copy_journal(temp.path(), copy.path());
        std::fs::write(copy.file("journal.db-wal"), &log[..cut]).expect("a cut log");
        let store = open(&copy, busy());
        let found = prefix(&store);
        assert_eq!(found, whole[..found.len()], "cut at {cut}");
        assert_eq!(push(&store, &run("next"), "x").0, found.len() as u64 + 1, "cut at {cut}");
        lengths.insert(found.len());
    }
    assert!(lengths.len() > 20, "too few different prefixes: {lengths:?}");
}

#[test]
fn newer_and_foreign_files_are_refused_unchanged() {
    let check = |prepare: &dyn Fn(&Temp), expected: &str| {
        let temp = Temp::new();
        prepare(&temp);
        let before = std::fs::read(temp.file("journal.db")).expect("the file");
        for refused in [Store::open(temp.path(), busy()), Store::open_read_only(temp.path(), busy())] {
            let message = refused.expect_err("refused").to_string();
            assert!(message.contains(expected), "{message}");
        }
        assert!(std::fs::read(temp.file("journal.db")).expect("the file") == before, "{expected}");
    };
    let sql = |temp: &Temp, sql: &str| {
        rusqlite::Connection::open(temp.file("journal.db"))
            .expect("a database")
            .execute_batch(sql)
            .expect("SQL");
    };
    let newer = |temp: &Temp| {
        open(temp, busy()).close().expect("closed");
        sql(temp, "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    };
    check(&newer, "has format 99, but this version of windlass reads up to 6");
    check(&|temp| sql(temp, "CREATE TABLE theirs (x)"), "was not created by windlass");
    check(
        &|temp| sql(temp, "PRAGMA user_version = 1; CREATE TABLE journal (x)"),
        "was not created by windlass",
    );
    let text = |temp: &Temp| std::fs::write(temp.file("journal.db"), "x".repeat(5_000)).expect("written");
    check(&text, "was not created by windlass");
}

#[test]
fn a_second_owner_overwrites_nothing() {
    let temp = Temp::new();
    let (first, second) = (open(&temp, busy()), open(&temp, busy()));
    push(&first, &run("a"), "x");
    let late = || second.journal.append(record(&run("b"), None, &[noted(1, "y", Value::Null)])).wait();
    assert!(matches!(late(), Err(Error::NotOwner { .. })));
    assert!(late().is_err_and(|error| error.is_fatal()), "a fatal error stays");
    push(&first, &run("a"), "z");
    assert_eq!(history(&first, &run("a")), "1:x 2:z");
    assert_eq!(history(&first, &run("b")), "");
}

#[test]
fn readers_see_what_the_owner_writes_and_write_nothing() {
    let temp = Temp::new();
    assert!(matches!(Store::open_read_only(temp.path(), busy()), Err(Error::Missing { .. })));
    let owner = open(&temp, busy());
    push(&owner, &run("a"), "x");
    let reader = Store::open_read_only(temp.path(), busy()).expect("a reader");
    let rows = |store: &Store| store.view.list(&Query { limit: 9, ..Query::default() }).wait().expect("rows");
    for n in 0..70 {
        push(&owner, &run("a"), "y");
        push(&owner, &run(&format!("b{n}")), if n % 2 == 0 { "end" } else { "z" });
        assert_eq!(unfinished(&reader), unfinished(&owner));
        assert_eq!(rows(&reader), rows(&owner));
    }
    assert_eq!(history(&reader, &run("b0")), "3:end");
    let refused = Some(Error::ReadOnly);
    let append = record(&run("a"), None, &[]);
    assert_eq!(reader.journal.append(append).wait().err(), refused);
    assert_eq!(reader.plans.put(plan("d", "{}")).wait().err(), refused);
    assert_eq!(reader.blobs.begin_sweep().wait().err(), refused);
    assert_eq!(reader.view.rebuild().wait().err(), refused);
    // A removed run is gone for readers, too.
    remove(&owner, &run("b1"));
    assert_eq!((history(&reader, &run("b1")).as_str(), rows(&reader)), ("", rows(&owner)));
    owner.journal.reclaim().wait().expect("reclaimed");
    assert_eq!((unfinished(&reader), rows(&reader)), (unfinished(&owner), rows(&owner)));
    // Also after the owner has ended.
    drop(owner);
    let alone = Store::open_read_only(temp.path(), busy()).expect("a reader");
    assert_eq!((rows(&alone), unfinished(&alone)), (rows(&reader), unfinished(&reader)));
}

#[test]
fn a_record_takes_little_more_space_than_its_body() {
    let temp = Temp::new();
    let store =
        open(&temp, Options { durability: windlass_store::Durability::Process, ..Options::default() });
    let (records, text) = (20_000, Value::text("x".repeat(220)));
    let body: usize =
        record(&run("r"), None, &[noted(1_770_372_005_250_000, "turn", text.clone())]).bytes() - 10;
    let mut tails: Vec<_> =
        (0..100).map(|n| (run(&format!("0198c0de-aaaa-7bbb-8ccc-{n:012}")), None)).collect();
    for _ in 0..records / tails.len() {
        let append = |(run, tail): &(RunId, Option<Lsn>)| {
            store.journal.append(record(run, *tail, &[noted(1_770_372_005_250_000, "turn", text.clone())]))
        };
        let waiting: Vec<_> = tails.iter().map(append).collect();
        for ((_, tail), pending) in tails.iter_mut().zip(waiting) {
            let Ok(Appended::At(lsn)) = pending.wait() else { panic!("not appended") };
            *tail = Some(lsn);
        }
    }
    store.close().expect("closed");
    let bytes = std::fs::metadata(temp.file("journal.db")).expect("the journal").len() as usize;
    let overhead = bytes / records - body;
    println!("{body} bytes of body, {overhead} bytes around each");
    assert!((10..=60).contains(&overhead), "{overhead}");
}

#[test]
fn the_log_is_kept_short() {
    let temp = Temp::new();
    let store = open(&temp, busy());
    push(&store, &run("waits"), "x");
    for n in 0..200 {
        push(&store, &run(&format!("r{n}")), "x");
        push(&store, &run(&format!("r{n}")), "end");
    }
    let log = std::fs::metadata(temp.file("journal.db-wal")).expect("the log").len();
    // Four times the threshold of a busy store, plus what arrives until it checks again.
    assert!(log < 700_000, "{log}");
    let tails = store.journal.tails().wait().expect("tails");
    assert!((242..=402).contains(&tails.low_water.0), "{tails:?}");
    store.close().expect("closed");
    assert_eq!(std::fs::metadata(temp.file("journal.db-wal")).map_or(0, |log| log.len()), 0);
    let again = open(&temp, busy()).journal.tails().wait().expect("tails");
    assert_eq!((again.low_water, again.unfinished), (Lsn(402), tails.unfinished));
}

/// Each process writes so little that it would never checkpoint by itself, and the next one reads all that is left.
#[test]
fn short_processes_do_not_leave_a_long_log() {
    let temp = Temp::new();
    let mut most = 0;
    for n in 0..60 {
        push(&open(&temp, busy()), &run(&format!("r{n}")), "x");
        most = most.max(std::fs::metadata(temp.file("journal.db-wal")).map_or(0, |log| log.len()));
    }
    assert!((4_000..100_000).contains(&most), "{most}");
}

/// Rows are used if they are as written, and rebuilt otherwise; they show the same in either case.
#[test]
fn unusable_rows_are_rebuilt() {
    let shown = |store: &Store| -> String {
        let rows = store.view.list(&Query { limit: 9, ..Query::default() }).wait().expect("rows");
        rows.iter().map(|row| format!("{}:{} ", row.run, row.row.dialect_status)).collect()
    };
    let check = |spoil: &str, expected: &str| {
        let temp = Temp::new();
        let store = open(&temp, busy());
        for name in ["a", "b", "a"] {
            push(&store, &run(name), "x");
        }
        store.close().expect("closed");
        let database = rusqlite::Connection::open(temp.file("journal.db")).expect("a database");
        database.execute_batch(&format!("UPDATE runs SET dialect_status = 'lie'; {spoil}")).expect("SQL");
        drop(database);
        assert_eq!(
            shown(&Store::open_read_only(temp.path(), busy()).expect("a reader")),
            expected,
            "{spoil}"
        );
        let store = open(&temp, busy());
        assert_eq!(shown(&store), expected, "{spoil}");
        store.view.rebuild().wait().expect("rebuilt");
        assert_eq!(shown(&store), "a:xx b:x ", "{spoil}");
        assert_eq!(unfinished(&store), "a@3 b@2");
    };
    // Rows in use are trusted, or this test would prove nothing.
    check("", "a:lie b:lie ");
    for spoil in [
        "UPDATE rows SET projection = 99",
        "UPDATE rows SET applied = 2",
        "UPDATE rows SET seal = x''",
        "DELETE FROM rows; INSERT INTO rows VALUES (0, 0, x'')",
        "UPDATE runs SET tail = 1 WHERE run = 'a'",
        "UPDATE runs SET tail = NULL",
        "UPDATE runs SET closed = 1 WHERE run = 'b'",
    ] {
        check(spoil, "a:xx b:x ");
    }
}

/// Files of every older version are read as they are, and migrated by an owner.
#[test]
fn older_files_are_read_and_migrated() {
    let temp = Temp::new();
    let store = open(&temp, calm());
    for (name, key) in [("a", "x"), ("b", "x"), ("a", "y"), ("b", "end"), ("c", "x")] {
        push(&store, &run(name), key);
    }
    let frames: Vec<Record> = prefix(&store);
    store.close().expect("closed");
    // The tables as version 2 created them.
    let old = Temp::new();
    let database = rusqlite::Connection::open(old.file("journal.db")).expect("a database");
    database.execute_batch(include_str!("../../golden/version-2.sql")).expect("SQL");
    for (key, name, tail) in [(1, "a", None), (2, "b", Some(4)), (3, "c", None)] {
        database.execute("INSERT INTO runs VALUES (?1, ?2, ?3)", (key, name, tail)).expect("SQL");
    }
    for record in &frames {
        let key = "abc".find(record.run.as_str()).map(|at| at + 1);
        let (lsn, prev) = (record.lsn.0 as i64, record.prev.map(|prev| prev.0 as i64));
        let row = (lsn, key.map(|key| key as i64), prev, record.frame());
        database.execute("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)", row).expect("SQL");
    }
    drop(database);
    std::fs::write(old.file("view.db"), "rows of an earlier version").expect("written");
    let check = |store: &Store| {
        assert_eq!(prefix(store), frames);
        assert_eq!(unfinished(store), "a@3 c@5");
        assert_eq!(
            (history(store, &run("a")), history(store, &run("b"))),
            ("1:x 3:y".into(), "2:x 4:end".into())
        );
        let rows = store.view.list(&Query { limit: 9, ..Query::default() }).wait().expect("rows");
        assert_eq!(rows.len(), 3);
        assert_eq!(store.view.unfinished().wait().expect("runs").len(), 2);
    };
    let before = std::fs::read(old.file("journal.db")).expect("the file");
    check(&Store::open_read_only(old.path(), calm()).expect("a reader"));
    assert!(std::fs::read(old.file("journal.db")).expect("the file") == before, "reading changes nothing");
    let store = open(&old, calm());
    check(&store);
    assert!(!old.file("view.db").exists());
    assert_eq!(push(&store, &run("b"), "z"), Lsn(6));
    store.close().expect("closed");
    assert_eq!(history(&open(&old, calm()), &run("b")), "2:x 4:end 6:z");
}

/// A resting run costs its row and no memory, and opening reads only the records after the rows.
#[test]
fn resting_runs_are_not_in_memory() {
    let temp = Temp::new();
    let store = open(&temp, busy());
    for n in 0..300 {
        push(&store, &run(&format!("r{n:03}")), "x");
    }
    let tails = store.journal.tails().wait().expect("tails");
    assert!(tails.unfinished.len() == 300 && tails.low_water.0 > 140, "{}", tails.low_water);
    drop(store);
    let store = open(&temp, busy());
    let tails = store.journal.tails().wait().expect("tails");
    assert_eq!((tails.low_water, tails.unfinished.len()), (Lsn(301), 300));
    assert_eq!(history(&store, &run("r007")), "8:x");
    assert_eq!(push(&store, &run("r007"), "y"), Lsn(301));
}

/// The writer applies records so that readers need not fold them in repeatedly.
#[test]
fn rows_follow_by_themselves() {
    struct Counting(mpsc::Sender<u64>);
    impl Projection for Counting {
        fn version(&self) -> u32 {
            1
        }

        fn apply(&self, _: &RunId, row: &mut Row, events: &[Event]) {
            row.dialect_status.push('x');
            self.0.send(events.len() as u64).expect("the test listens");
        }
    }
    let temp = Temp::new();
    let (sender, applied) = mpsc::channel();
    let projection = std::sync::Arc::new(Counting(sender));
    let store = open(&temp, Options { projection: Some(projection), ..busy() });
    for n in 0..50 {
        push(&store, &run(&format!("r{}", n % 3)), "x");
    }
    assert_eq!(applied.iter().take(50).sum::<u64>(), 50);
    drop(store);
    assert_eq!(applied.try_iter().count(), 0, "each record once");
}

/// Reads block no worker of a runtime; synchronous code may wait for them on any thread, including such a worker.
#[test]
fn results_are_awaited_or_waited_for() {
    let temp = Temp::new();
    let store = open(&temp, busy());
    push(&store, &run("a"), "x");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let task = runtime.spawn(async move {
        let mut found = Vec::new();
        for _ in 0..1_000 {
            found.push(store.journal.back(&run("a"), None, 1).await.map(|records| records.len()));
            found.push(store.journal.back(&run("a"), None, 1).wait().map(|records| records.len()));
        }
        found
    });
    let found = runtime.block_on(task).expect("the task ends");
    assert!(found.len() == 2_000 && found.iter().all(|found| *found == Ok(1)));
}
