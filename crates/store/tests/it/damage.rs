//! A damaged record affects its own run and no other.

use crate::support::*;
use windlass_store::{BlobId, Error, Lsn, Options, Query, Record, Store};

/// Three runs of three records each; then SQL is applied to the file, and the store is opened again.
fn damaged(sql: &str, look: impl Fn(&Store)) {
    for mark in [20, 1] {
        let temp = Temp::new();
        let mut options = busy();
        options.tuning.row_records = mark;
        let store = Store::open(temp.path(), options.clone()).expect("a store");
        for key in ["x", "y", "z"] {
            for name in ["a", "b", "c"] {
                push(&store, &run(name), key);
            }
        }
        store.close().expect("closed");
        let connection = rusqlite::Connection::open(temp.file("journal.db")).expect("a database");
        connection.execute_batch(sql).expect("SQL");
        drop(connection);
        look(&Store::open(temp.path(), options.clone()).expect("the rest continues"));
        look(&Store::open_read_only(temp.path(), options).expect("the rest can be read"));
    }
}

/// Which runs cannot be read, and why; the others must be intact.
fn unreadable(store: &Store) -> String {
    let look = |name: &str| match store.journal.read(&run(name), None).wait() {
        Ok(records) => {
            assert_eq!(records.len(), 3, "{name}");
            None
        }
        Err(Error::Corrupt { run, lsn }) => Some(format!("{run}@{lsn}")),
        Err(other) => panic!("{other}"),
    };
    ["a", "b", "c"].into_iter().filter_map(look).collect::<Vec<_>>().join(" ")
}

#[test]
fn one_damaged_record_affects_one_run() {
    let check =
        |sql: &str, expected: &str| damaged(sql, |store| assert_eq!(unreadable(store), expected, "{sql}"));
    check("", "");
    check("UPDATE journal SET body = substr(body, 1, 30) WHERE lsn = 5", "b@5");
    check("UPDATE journal SET body = x'' WHERE lsn = 8", "b@8");
    check("UPDATE journal SET body = 'text' WHERE lsn = 9", "c@9");
    check("UPDATE journal SET body = 7 WHERE lsn = 9", "c@9");
    check("UPDATE journal SET prev = 1 WHERE lsn = 8", "b@8");
    check("UPDATE journal SET prev = 'text' WHERE lsn = 8", "b@8");
    check("UPDATE journal SET body = (SELECT body FROM journal WHERE lsn = 4) WHERE lsn = 5", "b@5");
    check("UPDATE journal SET body = x'ff' WHERE lsn IN (1, 9)", "a@1 c@9");
    check("DELETE FROM journal WHERE lsn = 4", "a@4");
}

/// If the name of the run is damaged, the run that lost its record must not continue as if it had never existed.
#[test]
fn a_record_under_a_wrong_name_affects_both_runs() {
    damaged("UPDATE journal SET run = (SELECT key FROM runs WHERE run = 'a') WHERE lsn = 8", |store| {
        assert!(unreadable(store).contains("b@8"), "{}", unreadable(store));
    });
    damaged("UPDATE journal SET run = 99 WHERE lsn = 8", |store| assert_eq!(unreadable(store), "b@8"));
}

/// The last record of a finished run is in a row of its own.
#[test]
fn a_finished_run_does_not_lose_its_end() {
    let check = |tail: &str, expected: Result<usize, Error>| {
        let temp = Temp::new();
        let store = Store::open(temp.path(), busy()).expect("a store");
        for (name, key) in [("a", "x"), ("b", "x"), ("a", "y"), ("b", "end"), ("a", "end")] {
            push(&store, &run(name), key);
        }
        store.close().expect("closed");
        let sql = format!("UPDATE runs SET tail = {tail} WHERE run = 'a'");
        rusqlite::Connection::open(temp.file("journal.db"))
            .expect("a database")
            .execute_batch(&sql)
            .expect("SQL");
        let store = Store::open(temp.path(), busy()).expect("a store");
        assert_eq!(
            store.journal.read(&run("a"), None).wait().map(|records| records.len()),
            expected,
            "{tail}"
        );
        assert_eq!(history(&store, &run("b")), "2:x 4:end");
    };
    let corrupt = |lsn| Err(Error::Corrupt { run: run("a"), lsn: Lsn(lsn) });
    check("5", Ok(3));
    check("3", corrupt(3));
    check("4", corrupt(4));
    check("99", corrupt(99));
}

#[test]
fn damage_is_reported_in_scan_and_view() {
    damaged(
        "UPDATE journal SET body = x'ff' WHERE lsn = 5; UPDATE journal SET run = 99 WHERE lsn = 6",
        |store| {
            let scanned = whole_scan(store);
            let errors: Vec<_> = scanned.iter().filter_map(|record| record.as_ref().err().cloned()).collect();
            assert_eq!(scanned.len(), 9);
            assert_eq!(
                errors,
                [Error::Corrupt { run: run("b"), lsn: Lsn(5) }, Error::Orphan { lsn: Lsn(6) }]
            );
            assert!(store.journal.tails().wait().expect("tails").unfinished.len() == 3);
        },
    );
    let temp = Temp::new();
    let store = Store::open(temp.path(), busy()).expect("a store");
    for key in ["x", "y", "z"] {
        push(&store, &run("a"), key);
    }
    push(&store, &run("b"), "x");
    store.close().expect("closed");
    let sql = "UPDATE journal SET body = x'ff' WHERE lsn = 2";
    rusqlite::Connection::open(temp.file("journal.db")).expect("a database").execute_batch(sql).expect("SQL");
    let store = Store::open(temp.path(), busy()).expect("a store");
    store.view.rebuild().wait().expect("rebuilt");
    let rows = store.view.list(&Query { limit: 9, ..Query::default() }).wait().expect("rows");
    let shown: Vec<_> = rows.iter().map(|row| (row.row.dialect_status.as_str(), row.broken)).collect();
    assert_eq!(shown, [("x", Some(Lsn(2))), ("x", None)]);
    push(&store, &run("b"), "y");
}

/// Bytes of the file are changed, cut off or overwritten. In every case opening terminates, and no readable run has a
/// different history: a run that may have lost a record is damaged, not shorter.
#[test]
fn no_damage_to_the_file_shortens_a_history() {
    let temp = Temp::new();
    let store = Store::open(temp.path(), busy()).expect("a store");
    let names: Vec<String> = (0..12).map(|n| format!("run-{n}")).collect();
    for key in 0..40 {
        for (n, name) in names.iter().enumerate().filter(|(n, _)| key < 10 + 3 * n) {
            push(&store, &run(name), if key == 9 + 3 * n && n % 3 == 0 { "end" } else { "x" });
        }
    }
    let whole: Vec<String> = names.iter().map(|name| history(&store, &run(name))).collect();
    store.close().expect("closed");
    let bytes = std::fs::read(temp.file("journal.db")).expect("the file");
    let head = std::fs::read(temp.file("head.json")).expect("the head");
    let mut seed = 7u64;
    let mut roll = move |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("small") % sides
    };
    let (mut refused, mut broken, mut unharmed) = (0, 0, 0);
    for _ in 0..300 {
        let mut spoilt = bytes.clone();
        match roll(8) {
            0 => spoilt.truncate(roll(bytes.len())),
            1 => {
                let (at, length) = (roll(bytes.len()), roll(9_000));
                spoilt.iter_mut().skip(at).take(length).for_each(|byte| *byte = 0);
            }
            2 => {
                let (from, to) = (roll(bytes.len() / 4096) * 4096, roll(bytes.len() / 4096) * 4096);
                spoilt[to..to + 4096].copy_from_slice(&bytes[from..from + 4096]);
            }
            _ => spoilt[roll(bytes.len())] ^= 1 << roll(8),
        }
        let copy = Temp::new();
        std::fs::write(copy.file("journal.db"), &spoilt).expect("written");
        std::fs::write(copy.file("head.json"), &head).expect("written");
        let Ok(store) = Store::open(copy.path(), busy()) else {
            refused += 1;
            continue;
        };
        let mut is_damaged = store.check_files().wait().map_or(true, |faults| !faults.is_empty());
        for (name, expected) in names.iter().zip(&whole) {
            match store.journal.read(&run(name), None).wait() {
                // Lost by name: the rest of it is under another name, or under none.
                Ok(records) if records.is_empty() => {
                    let scanned = store.journal.scan(Lsn(1), usize::MAX).wait();
                    let damage = scanned.map_or(true, |found| found.iter().any(Result::is_err));
                    assert!(damage || is_damaged, "{name} is lost without a report");
                }
                Ok(records) => assert_eq!(shown(&records), *expected, "{name}"),
                Err(_) => is_damaged = true,
            }
        }
        // If the rest continues, it does so correctly.
        if append_somewhere(&store).is_err() {
            is_damaged = true;
        }
        *(if is_damaged { &mut broken } else { &mut unharmed }) += 1;
    }
    println!("{refused} refused, {broken} damaged, {unharmed} intact");
    assert!(refused > 20 && broken > 20 && unharmed > 20);
}

fn append_somewhere(store: &Store) -> Result<windlass_store::Appended, Error> {
    let append = record(&run("fresh"), None, &[noted(1, "x", windlass_ir::Value::Null)]);
    store.journal.append(append).wait()
}

/// A record is missing. With intact rows it is known which run has lost it; otherwise every run without later records
/// may have.
#[test]
fn runs_that_may_have_lost_their_end_do_not_continue() {
    for (rows, idle) in [("", Ok(1)), ("UPDATE rows SET seal = x''", Err(Lsn(4)))] {
        let temp = Temp::new();
        let store = Store::open(temp.path(), busy()).expect("a store");
        push(&store, &run("idle"), "x");
        push(&store, &run("done"), "end");
        for _ in 0..5 {
            push(&store, &run("goes-on"), "x");
        }
        store.close().expect("closed");
        let sql = format!("DELETE FROM journal WHERE lsn = 4; {rows}");
        rusqlite::Connection::open(temp.file("journal.db"))
            .expect("a database")
            .execute_batch(&sql)
            .expect("SQL");
        // Opening it twice shows that updating the rows hides nothing.
        for (records, there) in [(6, 7), (7, 8)] {
            let store = Store::open(temp.path(), busy()).expect("the rest continues");
            let read = |name: &str| store.journal.read(&run(name), None).wait().map(|records| records.len());
            let corrupt = |name: &str, lsn| Error::Corrupt { run: run(name), lsn };
            assert_eq!(read("idle"), idle.map_err(|lsn| corrupt("idle", lsn)));
            assert_eq!(read("goes-on"), Err(corrupt("goes-on", Lsn(4))));
            assert_eq!(read("done"), Ok(1));
            assert_eq!(store.count().wait(), Ok((records, there)));
            store.view.rebuild().wait().expect("rebuilt");
            assert_eq!(read("idle"), idle.map_err(|lsn| corrupt("idle", lsn)));
            push(&store, &run("fresh"), "x");
        }
    }
}

/// Rows that are not as written would let runs lose their end.
#[test]
fn damaged_rows_are_not_trusted() {
    for sql in [
        "UPDATE rows SET applied = 60",
        "DELETE FROM rows",
        "UPDATE runs SET tail = 1 WHERE run = 'a'",
        "UPDATE runs SET closed = 1 WHERE run = 'a'",
        "UPDATE runs SET tail = NULL WHERE run = 'a'",
    ] {
        let temp = Temp::new();
        let store = Store::open(temp.path(), busy()).expect("a store");
        for name in ["a", "b", "a"] {
            push(&store, &run(name), "x");
        }
        for _ in 0..60 {
            push(&store, &run("c"), "x");
        }
        let expected = unfinished(&store);
        store.close().expect("closed");
        let connection = rusqlite::Connection::open(temp.file("journal.db")).expect("a database");
        connection.execute_batch(sql).expect("SQL");
        drop(connection);
        assert_eq!(unfinished(&Store::open(temp.path(), busy()).expect("a store")), expected, "{sql}");
    }
}

/// An outdated journal is reported, and nothing happens until the user accepts it.
#[test]
fn an_older_copy_is_detected() {
    let (temp, elsewhere) = (Temp::new(), Temp::new());
    let options = |accept_older| Options { heads: Some(elsewhere.path().into()), accept_older, ..busy() };
    let open = |accept| Store::open(temp.path(), options(accept));
    let fill = |count: usize| {
        let store = open(false).expect("a store");
        for _ in 0..count {
            push(&store, &run("a"), "x");
        }
        store.close().expect("closed");
    };
    let files = ["journal.db", "head.json"];
    let read = || files.map(|name| std::fs::read(temp.file(name)).expect("a file"));
    let restore = |copy: &[Vec<u8>; 2]| {
        for name in ["journal.db-wal", "journal.db-shm"] {
            drop(std::fs::remove_file(temp.file(name)));
        }
        files
            .iter()
            .zip(copy)
            .for_each(|(name, bytes)| std::fs::write(temp.file(name), bytes).expect("written"));
    };
    fill(3);
    let older = read();
    fill(2);
    let newer = read();
    restore(&older);
    let folder = temp.path().display().to_string();
    let expected = Error::Older { folder: folder.clone(), found: Lsn(3), known: Lsn(5) };
    assert_eq!(open(false).err(), Some(expected.clone()));
    let reader = Store::open_read_only(temp.path(), options(false)).expect("it can be read");
    assert_eq!(reader.check_head(temp.path(), &options(false)).wait(), Err(expected));
    assert_eq!(history(&reader, &run("a")), "1:x 2:x 3:x");
    drop(reader);
    // The newer one still works.
    restore(&newer);
    drop(open(false).expect("a store"));
    // Once accepted it is another journal and continues as such; so does the newer one, put back.
    restore(&older);
    drop(open(true).expect("accepted"));
    fill(4);
    let accepted = read();
    restore(&newer);
    drop(open(false).expect("a store"));
    restore(&accepted);
    assert_eq!(history(&open(false).expect("a store"), &run("a")).split(' ').count(), 7);
    // A copy that continued without being accepted has another record in place of the newer one's last.
    let other = Temp::new();
    files
        .iter()
        .zip(&older)
        .for_each(|(name, bytes)| std::fs::write(other.file(name), bytes).expect("written"));
    let alone = Store::open(other.path(), busy()).expect("it is unknown here");
    for _ in 0..4 {
        push(&alone, &run("b"), "x");
    }
    alone.close().expect("closed");
    restore(&files.map(|name| std::fs::read(other.file(name)).expect("a file")));
    assert_eq!(open(false).err(), Some(Error::Forked { folder, at: Lsn(5) }));
}

#[test]
fn damaged_plans_and_blobs_are_named() {
    let temp = Temp::new();
    let store = Store::open(temp.path(), busy()).expect("a store");
    store.plans.put(plan("p", "[1]")).wait().expect("stored");
    store.plans.put(plan("q", "[1]")).wait().expect("stored");
    let large = [noted(1, "k", windlass_ir::Value::text("x".repeat(80_000)))];
    store.journal.append(record(&run("a"), None, &large)).wait().expect("appended");
    let [id] =
        <[BlobId; 1]>::try_from(store.journal.read(&run("a"), None).wait().expect("a history")[0].names())
            .expect("one value");
    store.close().expect("closed");
    let sql = "UPDATE plans SET plan = '[2]' WHERE digest = 'p'";
    rusqlite::Connection::open(temp.file("journal.db")).expect("a database").execute_batch(sql).expect("SQL");
    std::fs::write(temp.file("blobs").join(&id.as_str()[..2]).join(id.as_str()), "x").expect("written");
    let store = Store::open(temp.path(), busy()).expect("a store");
    assert_eq!(store.plans.get("p").wait(), Err(Error::CorruptPlan { digest: "p".into() }));
    assert_eq!(store.plans.get("q").wait(), Ok(Some(plan("q", "[1]"))));
    assert_eq!(store.blobs.get(&id).wait(), Err(Error::CorruptBlob { id: id.clone() }));
    let damaged = store.journal.read(&run("a"), None).wait().expect("a history");
    assert!(Record::whole_events(&damaged, &*store.blobs).wait().is_err());
    // Writing the value again repairs it.
    store.journal.append(record(&run("b"), None, &large)).wait().expect("appended");
    assert_eq!(Record::whole_events(&damaged, &*store.blobs).wait(), Ok(large.to_vec()));
}
