//! A damaged record hurts its own run and no other.

use crate::support::*;
use windlass_store::{BlobId, Error, Lsn, Query, Store};

/// Three runs of three records each; then SQL is done to the file, and the store opened again.
fn damaged(sql: &str, look: impl Fn(&Store)) {
    for mark in [20, 1] {
        let temp = Temp::new();
        let mut options = busy();
        options.tuning.mark_records = mark;
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
        look(&Store::open(temp.path(), options.clone()).expect("the rest goes on"));
        look(&Store::open_read_only(temp.path(), options).expect("the rest can be read"));
    }
}

/// Which runs cannot be read, and why; the others have to be whole.
fn hurt(store: &Store) -> String {
    let look = |name: &str| match store.journal.read(&run(name), None) {
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
fn one_damaged_record_hurts_one_run() {
    let check = |sql: &str, expected: &str| damaged(sql, |store| assert_eq!(hurt(store), expected, "{sql}"));
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

/// If the name of the run is what is damaged, the run that lost its record must not go on as if it had never been.
#[test]
fn a_record_under_a_wrong_name_hurts_both() {
    damaged("UPDATE journal SET run = (SELECT key FROM runs WHERE run = 'a') WHERE lsn = 8", |store| {
        assert!(hurt(store).contains("b@8"), "{}", hurt(store));
    });
    damaged("UPDATE journal SET run = 99 WHERE lsn = 8", |store| assert_eq!(hurt(store), "b@8"));
}

/// The last record of a finished run stands in a row of its own.
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
        assert_eq!(store.journal.read(&run("a"), None).map(|records| records.len()), expected, "{tail}");
        assert_eq!(history(&store, &run("b")), "2:x 4:end");
    };
    let corrupt = |lsn| Err(Error::Corrupt { run: run("a"), lsn: Lsn(lsn) });
    check("5", Ok(3));
    check("3", corrupt(3));
    check("4", corrupt(4));
    check("99", corrupt(99));
}

#[test]
fn damage_has_its_place_in_scan_and_view() {
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
            assert!(store.journal.tails().expect("tails").unfinished.len() == 3);
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
    store.view.rebuild().expect("rebuilt");
    let rows = store.view.list(Query { limit: 9, unfinished_only: false }).expect("rows");
    let shown: Vec<_> = rows.iter().map(|row| (row.row.status.as_str(), row.broken)).collect();
    assert_eq!(shown, [("x", Some(Lsn(2))), ("x", None)]);
    push(&store, &run("b"), "y");
}

#[test]
fn damaged_plans_and_blobs_are_named() {
    let temp = Temp::new();
    let store = Store::open(temp.path(), busy()).expect("a store");
    store.plans.put(plan("p", "[1]")).wait().expect("stored");
    store.plans.put(plan("q", "[1]")).wait().expect("stored");
    let content = vec![1; 80_000];
    let id = store.blobs.put(&content).expect("stored");
    store.close().expect("closed");
    let sql = "UPDATE plans SET plan = '[2]' WHERE digest = 'p'";
    rusqlite::Connection::open(temp.file("journal.db")).expect("a database").execute_batch(sql).expect("SQL");
    std::fs::write(temp.file("blobs").join(&id.as_str()[..2]).join(id.as_str()), "x").expect("written");
    let store = Store::open(temp.path(), busy()).expect("a store");
    assert_eq!(store.plans.get("p"), Err(Error::CorruptPlan { digest: "p".into() }));
    assert_eq!(store.plans.get("q"), Ok(Some(plan("q", "[1]"))));
    assert_eq!(store.blobs.get(&id), Err(Error::CorruptBlob { id: id.clone() }));
    assert_eq!(store.blobs.put(&content), Ok(BlobId::of(&content)), "writing it again heals it");
    assert_eq!(store.blobs.get(&id), Ok(Some(content)));
}
