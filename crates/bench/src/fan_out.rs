//! One run that does the same for each of many items.

use crate::limits;
use crate::report::{Row, Target, Unit};
use crate::setting::{Setting, engine, fan_out, items, journal};
use crate::stats::{interleaved, per_second};
use std::time::Instant;
use windlass::report::Standing;

const AT_ONCE: usize = 64;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let bytes = items_per_second(setting, 1_000).bytes_per_item;
    let mut rows = Vec::new();
    for (count, rounds) in [(1_000, 3), (10_000, 3), (100_000, 1)] {
        let limit = || limits::grouped(setting, AT_ONCE, count.min(20_000), bytes);
        let compared = interleaved(rounds, limit, || items_per_second(setting, count).rate);
        let what = format!("fan-out of {count}, {AT_ONCE} at once");
        rows.push(
            Row::of(format!("fan_out.{count}"), what, compared, Unit::PerSecond)
                .with(format!("group commit of an item's size, {AT_ONCE} callers"), Target::AtLeast(0.5)),
        );
    }
    rows
}

#[derive(Clone, Copy, Debug)]
pub struct FannedOut {
    /// Items per second.
    pub rate: f64,
    pub bytes_per_item: usize,
}

pub fn items_per_second(setting: &Setting, count: usize) -> FannedOut {
    let folder = setting.place();
    let (plan, items) = (fan_out(AT_ONCE), items(count));
    let rate = setting.runtime.block_on(async {
        let engine = engine(&folder);
        let started = Instant::now();
        let run = engine.run(&plan, items).await.expect("a start");
        assert_eq!(run.outcome().await.expect("an end"), Standing::Success);
        per_second(count, started.elapsed())
    });
    let bytes_per_item = journal(&folder).bytes / count;
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    FannedOut { rate, bytes_per_item }
}
