//! `windlass run` of a file with one step, from the start of the process to its exit, in an existing data folder.

use crate::limits;
use crate::report::{Row, Target, Unit};
use crate::setting::{Setting, windlass, workflow};
use crate::stats::{interleaved, median, ms};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 5;
const STARTS: usize = 10;
const COMMITS: usize = 100;
/// The maximum size of the commits of a one-step run.
const BYTES: usize = 500;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let limit = || 15.0 + 3.0 * ms(limits::commit(setting, COMMITS, BYTES));
    let compared = interleaved(ROUNDS, limit, starts(setting));
    let row = Row::of("start", "`windlass run` of one shell step `true`", compared, Unit::Milliseconds);
    vec![row.with("15 ms + 3 single commits", Target::AtMost(1.0))]
}

/// The median time of a start, in milliseconds; measured at each call.
pub fn starts(setting: &Setting) -> impl FnMut() -> f64 {
    let folder = setting.place();
    let stages = "stages:\n  - {id: one, type: shell, run: \"true\"}\n";
    std::fs::write(folder.join("one.yaml"), workflow(stages)).expect("written");
    run(&folder, "one.yaml");
    move || median((0..STARTS).map(|_| run(&folder, "one.yaml")).collect())
}

/// How long the program takes for a file in this folder, in milliseconds.
pub fn run(folder: &Path, file: &str) -> f64 {
    let mut command = Command::new(windlass());
    command.args(["run", file, "--data", "data"]).current_dir(folder).stdin(Stdio::null());
    let started = Instant::now();
    let ended = command.output().expect("the program runs");
    let took = ms(started.elapsed());
    assert!(ended.status.success(), "windlass run {file}: {}", String::from_utf8_lossy(&ended.stderr));
    took
}
