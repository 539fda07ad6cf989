//! Random expressions and workflows in Windlass and in the programs that the dialects come from: `make differential`.
//!
//! `--python FILE` is an interpreter that can import them, `--seed N`, `--expressions N`, `--documents N` and `--workflows N`
//! say what is tried, and `--workflow N` shows only that one. What is tried depends on the seed alone, not on how many threads try it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test for people prints what it found")]

mod dcc;
mod decisions;
mod dice;
mod expression_texts;
mod expressions;
mod oracle;
mod report;
mod shrink;
mod workflow_trees;
mod workflows;

use oracle::Oracle;
use report::Report;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use windlass_tools::windlass_beside;
use workflows::Workshop;

fn main() -> ExitCode {
    let python = PathBuf::from(option("--python").unwrap_or_else(|| "target/differential/bin/python".into()));
    let seed = number("--seed", 1);
    if let Some(only) = option("--workflow").and_then(|text| text.parse().ok()) {
        print!("{}", workflows::show(seed, only, &workshop(), &mut Oracle::start(&python)));
        return ExitCode::SUCCESS;
    }
    let mut report = expressions(&python, seed, number("--expressions", 200_000));
    report.merge(documents(&python, seed, number("--documents", 20_000)));
    report.merge(workflows(&python, seed, number("--workflows", 500)));
    print!("seed {seed}\n{report}");
    let wanted = [expressions::OPERATIONS, workflows::KINDS, dcc::KINDS].concat();
    let missing: Vec<&str> = report.missing(&wanted).collect();
    if !missing.is_empty() {
        println!("never seen to succeed: {}", missing.join(", "));
    }
    if report.disagreements == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn expressions(python: &Path, seed: u64, count: u64) -> Report {
    // Whether the evaluator panics is asked; what it says on the way is noise.
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let report = spread("expressions", python, count.div_ceil(expressions::BATCH), |part, oracle, report| {
        let size = expressions::BATCH.min(count - part * expressions::BATCH);
        expressions::batch(seed, part, size, oracle, report);
    });
    std::panic::set_hook(before);
    report
}

fn documents(python: &Path, seed: u64, count: u64) -> Report {
    spread("DCC-MCP workflows", python, count.div_ceil(dcc::BATCH), |part, oracle, report| {
        dcc::batch(seed, part, dcc::BATCH.min(count - part * dcc::BATCH), oracle, report);
    })
}

fn workshop() -> Workshop {
    let scratch = std::env::temp_dir().join(format!("windlass-differential-{}", std::process::id()));
    Workshop { windlass: windlass_beside(), scratch }
}

fn workflows(python: &Path, seed: u64, count: u64) -> Report {
    let workshop = workshop();
    let report = spread("workflows", python, count, |part, oracle, report| {
        workflows::one(seed, part, &workshop, oracle, report);
    });
    // The system clears away what this cannot.
    let _ = std::fs::remove_dir_all(&workshop.scratch);
    report
}

/// Works on all parts with a thread and an oracle for each core.
fn spread(
    name: &str,
    python: &Path,
    parts: u64,
    work: impl Fn(u64, &mut Oracle, &mut Report) + Sync,
) -> Report {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, whole, begun) = (AtomicU64::new(0), Mutex::new(Report::default()), Instant::now());
    let lane = || {
        let (mut oracle, mut report) = (Oracle::start(python), Report::default());
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                break;
            }
            work(part, &mut oracle, &mut report);
            if (part + 1) % parts.div_ceil(20) == 0 {
                let seconds = begun.elapsed().as_secs();
                eprintln!(
                    "{name}: {} of {parts} parts after {seconds} s, {} disagree",
                    part + 1,
                    report.disagreements
                );
            }
        }
        whole.lock().expect("no thread panics while it holds it").merge(report);
    };
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(lane)));
    });
    whole.into_inner().expect("no thread panics while it holds it")
}

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|word| word != name).nth(1)
}

fn number(name: &str, otherwise: u64) -> u64 {
    option(name).map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} takes a number, not `{text}`"))
    })
}
