//! `kill -9`, and how long it takes until what was left goes on.

use crate::child::Child;
use crate::report::{Row, Unit};
use crate::setting::Setting;
use crate::stats::ms;
use std::time::{Duration, Instant};

/// Until the first goes on, and until all do.
const FIRST_MS: f64 = 150.0;
const ALL_MS: f64 = 5_000.0;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    for runs in [1_000, 100_000] {
        let folder = setting.place();
        let mut child = Child::start("hang", &folder, runs);
        child.says("hanging");
        child.kill();
        let started = Instant::now();
        let mut child = Child::start("recover", &folder, runs);
        child.says("next second");
        let first_ms = ms(started.elapsed());
        child.says("last");
        let last_ms = ms(started.elapsed());
        let repeated = child.line().expect("how many steps were repeated");
        let repeated = repeated.strip_prefix("repeated ").and_then(|count| count.parse().ok());
        let repeated = repeated.expect("a number");
        let after = format!("after a kill with {runs} runs at work");
        rows.extend([
            Row::under(
                format!("recovery.first.{runs}"),
                format!("{after}: until the first goes on"),
                first_ms,
                Unit::Milliseconds,
                FIRST_MS,
            ),
            Row::under(
                format!("recovery.last.{runs}"),
                format!("{after}: until all go on"),
                last_ms,
                Unit::Milliseconds,
                ALL_MS,
            ),
            Row::never(
                format!("recovery.repeated.{runs}"),
                format!("{after}: finished steps repeated"),
                repeated,
            ),
        ]);
    }
    rows
}

/// What became of one long run whose process was killed halfway.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// It has come to its end.
    pub resumed: bool,
    /// Finished steps that were done again.
    pub re_executed: usize,
    pub restart_to_next_step: Duration,
}

pub fn crash(setting: &Setting, steps: usize) -> Crash {
    let folder = setting.place();
    let mut child = Child::start("long", &folder, steps);
    let number = |line: &str| line.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>();
    let mut at_work = 0;
    while at_work < steps / 2 {
        at_work = number(&child.line().expect("the next step")).expect("a number");
    }
    child.kill();
    // Whatever began before the end had been said before; all before the last one were durable.
    while let Some(line) = child.line() {
        at_work = number(&line).unwrap_or(steps);
    }
    let started = Instant::now();
    let mut child = Child::start("recover", &folder, 0);
    let next = child.line().expect("the next step");
    let restart_to_next_step = started.elapsed();
    let next = number(&next).expect("a number");
    let resumed = child.line().is_some_and(|line| line.starts_with("repeated "));
    Crash { resumed, re_executed: at_work.saturating_sub(next), restart_to_next_step }
}
