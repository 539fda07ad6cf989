//! `kill -9`, and how long it takes until the runs continue.

use crate::child::Child;
use crate::report::{Row, Unit, thousands};
use crate::setting::Setting;
use crate::stats::ms;
use std::time::{Duration, Instant};

/// Until the first run continues, and until all do.
const FIRST_MS: f64 = 150.0;
const ALL_MS: f64 = 5_000.0;
/// Sizes that would take longer are left out: the whole benchmark should take less than 3 minutes.
const PATIENCE_MS: f64 = 40_000.0;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let (mut rows, mut each_ms) = (Vec::new(), 0.0);
    for runs in [1_000, 100_000] {
        let after = format!("after a kill with {} runs in progress", thousands(runs as f64));
        let takes_ms = each_ms * runs as f64;
        if takes_ms > PATIENCE_MS {
            let why = format!("would take {:.0} s", takes_ms / 1_000.0);
            rows.push(Row::left_out(
                format!("recovery.last.{runs}"),
                format!("{after}: until all continue"),
                why,
            ));
            continue;
        }
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
        each_ms = last_ms / runs as f64;
        rows.extend([
            Row::under(
                format!("recovery.first.{runs}"),
                format!("{after}: until the first continues"),
                first_ms,
                Unit::Milliseconds,
                FIRST_MS,
            ),
            Row::under(
                format!("recovery.last.{runs}"),
                format!("{after}: until all continue"),
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

/// The result of one long run whose process was killed halfway.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// It has finished.
    pub resumed: bool,
    /// Finished steps that were repeated.
    pub re_executed: usize,
    pub restart_to_next_step: Duration,
}

pub fn crash(setting: &Setting, steps: usize) -> Crash {
    let folder = setting.place();
    let mut child = Child::start("long", &folder, steps);
    let number = |line: &str| line.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>();
    let mut at_work = None;
    while at_work.is_none_or(|step| step < steps / 2) {
        at_work = Some(number(&child.line().expect("the next step")).unwrap_or(steps));
    }
    child.kill();
    // A step starts after the previous one was reported, and all before the last one were durable.
    while let Some(line) = child.line() {
        at_work = Some(number(&line).unwrap_or(steps));
    }
    let started = Instant::now();
    let mut child = Child::start("recover", &folder, 0);
    let first = child.line().unwrap_or_default();
    let restart_to_next_step = started.elapsed();
    // A run that had ended before the kill has no next step.
    let next = first.strip_prefix("next ").and_then(|step| number(step).ok());
    let last = if next.is_some() { child.line().unwrap_or_default() } else { first };
    Crash {
        resumed: last.starts_with("repeated "),
        re_executed: next.zip(at_work).map_or(0, |(next, at_work)| at_work.saturating_sub(next)),
        restart_to_next_step,
    }
}
