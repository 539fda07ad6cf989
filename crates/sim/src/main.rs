//! `windlass-sim --seeds 0..1000 [--plan FILE]`: lives the run of each seed, of a random plan or of the workflow in a file, and
//! prints totals, or the first seed that broke a promise with the smallest plan that breaks it.

use std::process::ExitCode;
use windlass_ir::Plan;
use windlass_sim::{Tally, live, live_plan, story};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let (range, plan) = match arguments() {
        Ok(found) => found,
        Err(problem) => {
            eprintln!("{problem}\nusage: windlass-sim --seeds FROM..TO [--plan FILE]");
            return ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| {}));
    let started = std::time::Instant::now();
    let mut all = Tally::default();
    let count = range.end.saturating_sub(range.start);
    for seed in range {
        let lived = match &plan {
            Some(plan) => live_plan(plan.clone(), seed),
            None => live(seed),
        };
        match lived {
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

fn arguments() -> Result<(std::ops::Range<u64>, Option<Plan>), String> {
    let mut args = std::env::args().skip(1);
    let (mut range, mut plan) = (None, None);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} wants a value"))?;
        match flag.as_str() {
            "--seeds" => range = parse(&value),
            "--plan" => plan = Some(story::plan_in(&value)?),
            _ => return Err(format!("{flag} is not known")),
        }
    }
    range.map(|range| (range, plan)).ok_or_else(|| "--seeds FROM..TO is missing".to_owned())
}

fn parse(range: &str) -> Option<std::ops::Range<u64>> {
    let (from, to) = range.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}
