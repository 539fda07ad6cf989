//! Many short runs, with some of them in flight at a time.

use crate::limits;
use crate::report::{Row, Target, Unit};
use crate::setting::{Setting, engine, journal, no_inputs, strict};
use crate::stats::{interleaved, per_second};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 3;
const RUNS: usize = 2_000;
pub const STEPS: usize = 5;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    let bytes = steps_per_second(setting, 100, 64).bytes_per_step;
    for in_flight in [1, 64, 512] {
        let limit = || limits::grouped(setting, in_flight, RUNS * STEPS, bytes);
        let compared = interleaved(ROUNDS, limit, || steps_per_second(setting, RUNS, in_flight).rate);
        let what = format!("{RUNS} runs of {STEPS} steps, {in_flight} in flight");
        let row = Row::of(format!("many.{in_flight}"), what, compared, Unit::PerSecond);
        let limit = format!("group commit of a step's size, {in_flight} callers");
        rows.push(match in_flight {
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
}

pub fn steps_per_second(setting: &Setting, runs: usize, in_flight: usize) -> Many {
    let folder = setting.place();
    let rate = setting.runtime.block_on(async {
        let engine = Arc::new(engine(&folder));
        let plan = Arc::new(strict(STEPS));
        let started = Instant::now();
        let workers: Vec<_> = (0..in_flight)
            .map(|worker| {
                let (engine, plan) = (engine.clone(), plan.clone());
                tokio::spawn(async move {
                    for _ in (worker..runs).step_by(in_flight) {
                        let run = engine.run(&plan, no_inputs()).await.expect("a start");
                        run.outcome().await.expect("an end");
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.expect("a worker");
        }
        per_second(runs * STEPS, started.elapsed())
    });
    let bytes_per_step = journal(&folder).bytes / (runs * STEPS);
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    Many { rate, bytes_per_step }
}
