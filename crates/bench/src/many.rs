//! Many short runs, with some of them in flight at a time.

use crate::limits;
use crate::report::{Row, Target, Unit, thousands};
use crate::setting::{Setting, engine, folder_bytes, in_flight, journal_bytes, no_inputs, strict};
use crate::stats::{interleaved, per_second};
use std::sync::Arc;
use std::time::Instant;

const RUNS: usize = 2_000;
pub const STEPS: usize = 5;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    let bytes = steps_per_second(setting, 100, 64).bytes_per_step;
    for (count, rounds) in [(1, 1), (64, 5), (512, 3)] {
        let limit = || limits::grouped(setting, count, RUNS * STEPS, bytes);
        let compared = interleaved(rounds, limit, || steps_per_second(setting, RUNS, count).rate);
        let what = format!("{} runs of {STEPS} steps, {count} in flight", thousands(RUNS as f64));
        let row = Row::of(format!("many.{count}"), what, compared, Unit::PerSecond);
        let limit = format!("group commit of a step's size, {count} callers");
        rows.push(match count {
            64 => row.with(limit, Target::AtLeast(0.6)),
            _ => row.beside(limit),
        });
    }
    rows
}

#[derive(Clone, Copy, Debug)]
pub struct Many {
    /// Steps per second.
    pub rate: f64,
    pub bytes_per_step: usize,
    /// Of all its files, after closing.
    pub folder_bytes: f64,
}

pub fn steps_per_second(setting: &Setting, runs: usize, in_flight_max: usize) -> Many {
    let folder = setting.place();
    let rate = setting.runtime.block_on(async {
        let engine = Arc::new(engine(&folder));
        let plan = Arc::new(strict(STEPS));
        let started = Instant::now();
        in_flight(runs, in_flight_max, move || {
            let (engine, plan) = (engine.clone(), plan.clone());
            async move {
                let run = engine.run(&plan, no_inputs()).await.expect("a start");
                run.outcome().await.expect("an end");
            }
        })
        .await;
        per_second(runs * STEPS, started.elapsed())
    });
    let bytes_per_step = journal_bytes(&folder) / (runs * STEPS);
    let folder_bytes = folder_bytes(&folder) as f64;
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    Many { rate, bytes_per_step, folder_bytes }
}
