//! The memory of a process that is idle, that has done many runs, and whose runs wait.

use crate::child::Child;
use crate::report::{Row, Unit, thousands};
use crate::setting::{Setting, windlass};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 10_000;
const WAITING: usize = 100_000;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let [idle, after] = idle_and_after(setting, RUNS);
    let mut gates = Child::start("gates", &setting.place(), WAITING);
    gates.says("some wait");
    let (some, at) = (gates.resident(), Instant::now());
    gates.tell();
    gates.says("all wait");
    let took = at.elapsed().as_secs_f64();
    let (all, half) = (gates.resident(), WAITING / 2);
    let more = WAITING - half;
    vec![
        Row::under(
            "memory.serve",
            "memory of an idle `windlass serve`",
            serve(setting),
            Unit::Megabytes,
            25.0,
        ),
        Row::under("memory.idle", "memory of an idle process with an engine", idle, Unit::Megabytes, 25.0),
        Row::under(
            "memory.after",
            format!("memory after {} runs", thousands(RUNS as f64)),
            after,
            Unit::Megabytes,
            60.0,
        ),
        Row::plain(
            "memory.some",
            format!("memory with {} runs at a gate", thousands(half as f64)),
            some,
            Unit::Megabytes,
        ),
        Row::plain(
            "memory.all",
            format!("memory with {} runs at a gate", thousands(WAITING as f64)),
            all,
            Unit::Megabytes,
        ),
        Row::under(
            "memory.waiting",
            "memory per waiting run",
            (all - some) * 1e6 / more as f64,
            Unit::Bytes,
            500.0,
        ),
        Row::plain("memory.gates", "runs started up to their gate", more as f64 / took, Unit::PerSecond),
    ]
}

/// Of one process with an engine, in megabytes.
pub fn idle_and_after(setting: &Setting, runs: usize) -> [f64; 2] {
    let mut child = Child::start("runs", &setting.place(), runs);
    child.says("idle");
    let idle = child.resident();
    child.tell();
    child.says("done");
    [idle, child.resident()]
}

/// How long `windlass serve` may take until it listens.
const SERVING: Duration = Duration::from_secs(10);

fn serve(setting: &Setting) -> f64 {
    let folder = setting.place();
    let mut command = Command::new(windlass());
    let child = Child::of(command.arg("serve").arg("--data").arg(&folder).stderr(Stdio::null()));
    let started = Instant::now();
    while !folder.join("owner.sock").exists() {
        assert!(started.elapsed() < SERVING, "windlass serve does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    // It is at rest when it has nothing more to set up.
    std::thread::sleep(Duration::from_millis(300));
    child.resident()
}
