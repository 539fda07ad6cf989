//! `windlass-sim --seeds 0..1000 [--plan FILE | --coordinator | --runs]`: simulates the run of each seed, of a random plan or of the workflow
//! in a file, or the coordinator with many runs, or every run of a process. Prints totals, or the first seed that fails and how to
//! repeat it. `windlass-sim --runs --planted` plants each known bug and says which seed finds it.

use std::process::ExitCode;
use windlass_ir::Plan;
use windlass_sim::{Tally, coordinator, runs, simulate, simulate_plan, story};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let Arguments { range, what } = match arguments() {
        Ok(found) => found,
        Err(problem) => {
            eprintln!(
                "{problem}\nusage: windlass-sim --seeds FROM..TO [--plan FILE | --coordinator | --runs [--planted]]"
            );
            return ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| {}));
    let started = std::time::Instant::now();
    let count = range.end.saturating_sub(range.start);
    let result = match what {
        What::Plan(plan) => totals(range, |seed| simulate_plan((*plan).clone(), seed), Tally::add).map(debug),
        What::Plans => totals(range, simulate, Tally::add).map(debug),
        What::Coordinator => totals(range, coordinator::simulate, Tally::add).map(debug),
        What::Runs => totals(range, runs::simulate, runs::Tally::add).map(|all| format!("\n{all}")),
        What::Planted => runs::planted(range).map(|table| format!("\n{table}")),
    };
    match result {
        Ok(all) => {
            println!("{count} seeds in {:.1} s: {all}", started.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(broken) => {
            eprintln!("{broken}");
            ExitCode::FAILURE
        }
    }
}

fn debug(all: impl std::fmt::Debug) -> String {
    format!("{all:#?}")
}

/// Prints progress after this many seeds.
const SHOWN: u64 = 20_000;

/// The totals for a range of seeds, or the report about the first that fails.
#[expect(clippy::print_stderr, reason = "a program for people")]
fn totals<T: Default>(
    range: std::ops::Range<u64>,
    simulate: impl Fn(u64) -> Result<T, String>,
    add: fn(&mut T, &T),
) -> Result<T, String> {
    let mut all = T::default();
    for seed in range.clone() {
        add(&mut all, &simulate(seed)?);
        let done = seed + 1 - range.start;
        if done.is_multiple_of(SHOWN) {
            eprintln!("{done} of {} seeds", range.end - range.start);
        }
    }
    Ok(all)
}

struct Arguments {
    range: std::ops::Range<u64>,
    what: What,
}

/// The subject of the simulation: a random plan, the plan of a file, the coordinator, or all runs of a process.
enum What {
    Plans,
    Plan(Box<Plan>),
    Coordinator,
    Runs,
    /// All runs of a process, with each known bug in turn, until a seed finds it.
    Planted,
}

fn arguments() -> Result<Arguments, String> {
    let mut args = std::env::args().skip(1);
    let (mut range, mut what) = (None, What::Plans);
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--coordinator" => what = What::Coordinator,
            "--runs" => what = What::Runs,
            "--planted" => (what, range) = (What::Planted, range.or(Some(0..20_000))),
            "--seeds" => range = parse(&value()?),
            "--plan" => what = What::Plan(Box::new(story::plan_in(&value()?)?)),
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    range.map(|range| Arguments { range, what }).ok_or_else(|| "--seeds FROM..TO is missing".to_owned())
}

fn parse(range: &str) -> Option<std::ops::Range<u64>> {
    let (from, to) = range.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}
