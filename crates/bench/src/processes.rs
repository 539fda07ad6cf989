//! Steps that are processes, compared with a bare loop that starts the same ones.

use crate::limits;
use crate::report::{Row, Target, Unit};
use crate::setting::{Setting, workflow};
use crate::start;
use crate::stats::{interleaved, ms};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const ROUNDS: usize = 2;
const AT_ONCE: usize = 8;
/// The approximate size of the record of such a step.
const BYTES: usize = 500;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let shell = "type: shell, run: \"true\"";
    let chain: String = (0..500)
        .map(|n| match n {
            0 => format!("  - {{id: s0, {shell}}}\n"),
            n => format!("  - {{id: s{n}, {shell}, depends_on: [s{}]}}\n", n - 1),
        })
        .collect();
    let looped = format!(
        "  - {{id: again, type: loop, loop: {{until: \"false\", max: 1000, stages: [{{id: s, {shell}}}]}}}}\n"
    );
    let items = (0..500).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let fan = format!(
        "  - {{id: fan, type: fan_out, fan_out: {{source: [{items}], concurrency: {AT_ONCE}, \
         stage_template: {{{shell}}}}}}}\n"
    );
    let sequential = "the same processes with a commit between them";
    [
        ("chain", "500 shell steps `true`", chain, 500, 1, sequential),
        ("loop", "1,000 rounds of a loop with a shell step", looped, 1_000, 1, sequential),
        (
            "fan_out",
            "fan-out of 500 shell steps, 8 at once",
            fan,
            500,
            AT_ONCE,
            "the same processes, 8 at once",
        ),
    ]
    .into_iter()
    .map(|(key, what, stages, processes, at_once, limit)| {
        let bare = || match at_once {
            1 => one_by_one(setting, processes),
            _ => several(processes, at_once),
        };
        let compared = interleaved(ROUNDS, bare, || run(setting, &stages));
        Row::of(format!("processes.{key}"), what, compared, Unit::Milliseconds)
            .with(limit, Target::AtMost(1.3))
    })
    .collect()
}

/// The whole of `windlass run`.
fn run(setting: &Setting, stages: &str) -> f64 {
    let folder = setting.place();
    std::fs::write(folder.join("all.yaml"), workflow(&format!("stages:\n{stages}"))).expect("written");
    start::run(&folder, "all.yaml")
}

/// Like a shell step: no input, and the output is read.
fn process() {
    let mut command = Command::new("/bin/sh");
    let ended = command.args(["-c", "true"]).stdin(Stdio::null()).output().expect("a shell");
    assert!(ended.status.success());
}

fn one_by_one(setting: &Setting, count: usize) -> f64 {
    let database = limits::database(&setting.place().join("bare.db"));
    let mut insert = database.prepare("INSERT INTO journal (run, body) VALUES (1, ?1)").expect("SQL");
    let body = vec![7u8; BYTES];
    let started = Instant::now();
    for _ in 0..count {
        process();
        insert.execute([&body]).expect("committed");
    }
    ms(started.elapsed())
}

fn several(count: usize, at_once: usize) -> f64 {
    let (next, started) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    process();
                }
            });
        }
    });
    ms(started.elapsed())
}
