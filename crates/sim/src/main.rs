//! `windlass-sim --seeds 0..1000`: lives the run of each seed and prints totals, or the first seed that broke a promise.

use std::process::ExitCode;
use windlass_sim::{Tally, live};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let range = match (args.next().as_deref(), args.next()) {
        (Some("--seeds"), Some(range)) => parse(&range),
        _ => None,
    };
    let Some(range) = range else {
        eprintln!("usage: windlass-sim --seeds FROM..TO");
        return ExitCode::from(2);
    };
    std::panic::set_hook(Box::new(|_| {}));
    let started = std::time::Instant::now();
    let mut all = Tally::default();
    let count = range.end.saturating_sub(range.start);
    for seed in range {
        match live(seed) {
            Ok(tally) => all.add(&tally),
            Err(broken) => {
                eprintln!("{broken}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{count} seeds in {:.1} s: {all:#?}", started.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

fn parse(range: &str) -> Option<std::ops::Range<u64>> {
    let (from, to) = range.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}
