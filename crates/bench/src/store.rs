//! The store alone, with and without its view, compared with the simplest loop that does the same. Not part of the
//! default: for finding out what costs time between a run and the disk.

use crate::limits;
use crate::report::{Row, Unit};
use crate::setting::{Setting, in_flight};
use crate::stats::{interleaved, per_second};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use windlass_engine::{Event, RunId, Timestamp, What};
use windlass_store::{Append, Appended, Options, Projection, Row as ViewRow, Store};

const ROUNDS: usize = 5;
const BYTES: usize = 300;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    for (callers, records) in [(1, 500), (64, 20_000), (512, 40_000)] {
        for (name, projection) in
            [("alone", None), ("with a view", Some(Arc::new(Few) as Arc<dyn Projection>))]
        {
            let limit = || limits::grouped(setting, callers, records, BYTES);
            let figure = || records_per_second(setting, projection.clone(), callers, records);
            let compared = interleaved(ROUNDS, limit, figure);
            let what = format!("store {name}, {callers} callers");
            rows.push(
                Row::of(format!("store.{name}.{callers}"), what, compared, Unit::PerSecond)
                    .beside("bare table, the same callers"),
            );
        }
    }
    rows
}

/// Each caller appends one record at a time to its own run.
fn records_per_second(
    setting: &Setting,
    projection: Option<Arc<dyn Projection>>,
    callers: usize,
    records: usize,
) -> f64 {
    let folder = setting.place();
    let store = Store::open(&folder, Options { projection, ..Options::default() }).expect("a store");
    let (events, next) = (Arc::new(events()), Arc::new(AtomicUsize::new(0)));
    let (started, each) = (Instant::now(), records / callers);
    let writing = store.clone();
    setting.runtime.block_on(in_flight(callers, callers, move || {
        let (store, events, n) = (writing.clone(), events.clone(), next.fetch_add(1, Ordering::Relaxed));
        async move {
            let run = RunId::new(&format!("run-{n}")).expect("a run id");
            let mut tail = None;
            for _ in 0..each {
                let append = Append::new(run.clone(), tail, &events).expect("a record");
                match store.journal.append(append).await {
                    Ok(Appended::At(lsn)) => tail = Some(lsn),
                    other => panic!("{other:?}"),
                }
            }
        }
    }));
    let rate = per_second(each * callers, started.elapsed());
    store.close().expect("closed");
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    rate
}

/// An event that makes a record of the wanted size.
fn events() -> Vec<Event> {
    let of = |length: usize| {
        let what = What::Paused { by: "x".repeat(length).into(), reached: false };
        vec![Event { at: Timestamp(1_770_372_005_250_000), what }]
    };
    let run = RunId::new("r").expect("a run id");
    let around = Append::new(run, None, &of(0)).expect("a record").bytes();
    of(BYTES - around)
}

/// Similar to the real one: a few strings per run.
struct Few;

impl Projection for Few {
    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, run: &RunId, row: &mut ViewRow, events: &[Event]) {
        if row.workflow.is_empty() {
            row.workflow = format!("workflow of {run}");
        }
        row.started_at = row.started_at.or(events.first().map(|event| event.at));
    }
}
