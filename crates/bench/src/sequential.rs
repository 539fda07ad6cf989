//! One run of many sequential steps: strict ones, which wait for their records, and pure ones, which do not.

use crate::limits;
use crate::report::{Row, Target, Unit, thousands};
use crate::setting::{Setting, engine, journal_bytes, no_inputs, pure, strict};
use crate::stats::{interleaved, per_second};
use std::time::Instant;
use windlass::Plan;
use windlass::RunStatus;

const LENGTHS: [(usize, usize); 2] = [(1_000, 3), (10_000, 2)];

pub fn measure(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    for (steps, rounds) in LENGTHS {
        let (chain, bytes) = (strict(steps), bytes_per_step(setting));
        let limit = || limits::single(setting, steps, bytes);
        let compared = interleaved(rounds, limit, || steps_per_second(setting, &chain, steps));
        let what = format!("one run of {} steps, strict", thousands(steps as f64));
        rows.push(
            Row::of(format!("sequential.strict.{steps}"), what, compared, Unit::PerSecond)
                .with("two threads, one commit of a step's size each", Target::AtLeast(0.8)),
        );
    }
    for (steps, rounds) in LENGTHS {
        let (chain, bytes) = (pure(steps), bytes_per_step(setting));
        let limit = || limits::single(setting, 500, bytes);
        let compared = interleaved(rounds, limit, || steps_per_second(setting, &chain, steps));
        let what = format!("one run of {} steps, pure", thousands(steps as f64));
        rows.push(
            Row::of(format!("sequential.pure.{steps}"), what, compared, Unit::PerSecond)
                .with("single commits", Target::AtLeast(20.0)),
        );
    }
    rows
}

/// From its start until its end.
pub fn steps_per_second(setting: &Setting, plan: &Plan, steps: usize) -> f64 {
    let folder = setting.place();
    let rate = setting.runtime.block_on(async {
        let engine = engine(&folder);
        let started = Instant::now();
        let run = engine.run(plan, no_inputs()).await.expect("a start");
        assert_eq!(run.outcome().await.expect("an end"), RunStatus::Success);
        per_second(steps, started.elapsed())
    });
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    rate
}

/// The records of a strict step.
pub fn bytes_per_step(setting: &Setting) -> usize {
    let of = |steps| {
        let folder = setting.place();
        setting.runtime.block_on(async {
            let run = engine(&folder).run(&strict(steps), no_inputs()).await.expect("a start");
            run.outcome().await.expect("an end")
        });
        journal_bytes(&folder)
    };
    (of(120) - of(20)) / 100
}
