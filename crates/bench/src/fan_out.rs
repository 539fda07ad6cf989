//! One run that does the same for each of many items.

use crate::child::Child;
use crate::limits;
use crate::report::{Row, Target, Unit, thousands};
use crate::setting::{Setting, engine, fan_out, items, journal_bytes};
use crate::stats::{interleaved, per_second};
use std::time::Instant;
use windlass::RunStatus;

pub const AT_ONCE: usize = 64;

/// Sizes that would take longer are left out: the whole benchmark should take less than 3 minutes.
const PATIENCE_S: f64 = 15.0;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let bytes = items_per_second(setting, 1_000).bytes_per_item;
    let (mut rows, mut pace, mut most) = (Vec::new(), f64::MAX, 1_000);
    for (count, rounds) in [(1_000usize, 3), (10_000, 3), (100_000, 1)] {
        let (key, what) = (
            format!("fan_out.{count}"),
            format!("fan-out of {}, {AT_ONCE} at once", thousands(count as f64)),
        );
        let takes_s = count as f64 / pace;
        if takes_s > PATIENCE_S {
            rows.push(Row::left_out(key, what, format!("would take {takes_s:.0} s")));
            continue;
        }
        let rounds = if takes_s * rounds as f64 > PATIENCE_S { 1 } else { rounds };
        let limit = || limits::grouped(setting, AT_ONCE, count.min(20_000), bytes);
        let compared = interleaved(rounds, limit, || items_per_second(setting, count).rate);
        (pace, most) = (compared.figure, count);
        let limit = format!("group commit of an item's size, {AT_ONCE} callers");
        rows.push(Row::of(key, what, compared, Unit::PerSecond).with(limit, Target::AtLeast(0.5)));
    }
    let bytes = (peak(setting, most) - peak(setting, most / 10)) * 1e6 / (most - most / 10) as f64;
    let what = format!("peak memory per settled item of {}", thousands(most as f64));
    rows.push(Row::under("fan_out.memory", what, bytes, Unit::Bytes, 64.0));
    rows
}

/// The peak memory, in megabytes, of a process that does nothing else.
fn peak(setting: &Setting, count: usize) -> f64 {
    let mut child = Child::start("fan", &setting.place(), count);
    child.says("done");
    child.resident_most()
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
        assert_eq!(run.outcome().await.expect("an end"), RunStatus::Success);
        per_second(count, started.elapsed())
    });
    let bytes_per_item = journal_bytes(&folder) / count;
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    FannedOut { rate, bytes_per_item }
}
