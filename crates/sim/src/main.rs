//! `windlass-sim --seeds 0..1000 [--plan FILE | --desk | --shared]`: lives the run of each seed, of a random plan or of the workflow in a file,
//! or a desk with many runs, and prints totals, or the first seed that broke a promise with the smallest plan or world that
//! breaks it.

use std::process::ExitCode;
use windlass_ir::Plan;
use windlass_sim::{Tally, desk, live, live_plan, shared, story};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let Arguments { range, what } = match arguments() {
        Ok(found) => found,
        Err(problem) => {
            eprintln!("{problem}\nusage: windlass-sim --seeds FROM..TO [--plan FILE | --desk | --shared]");
            return ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| {}));
    let started = std::time::Instant::now();
    let count = range.end.saturating_sub(range.start);
    let lived = match what {
        What::Plan(plan) => totals(range, |seed| live_plan((*plan).clone(), seed), Tally::add),
        What::Plans => totals(range, live, Tally::add),
        What::Desk => totals(range, desk::live, desk::Tally::add),
        What::Shared => totals(range, shared::live, shared::Tally::add),
    };
    match lived {
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

/// What happened over a range of seeds, or what the first of them broke.
fn totals<T: Default + std::fmt::Debug>(
    range: std::ops::Range<u64>,
    live: impl Fn(u64) -> Result<T, String>,
    add: fn(&mut T, &T),
) -> Result<String, String> {
    let mut all = T::default();
    for seed in range {
        add(&mut all, &live(seed)?);
    }
    Ok(format!("{all:#?}"))
}

struct Arguments {
    range: std::ops::Range<u64>,
    what: What,
}

/// What is lived: a random plan for each seed, the plan of a file, or a desk.
enum What {
    Plans,
    Plan(Box<Plan>),
    Desk,
    Shared,
}

fn arguments() -> Result<Arguments, String> {
    let mut args = std::env::args().skip(1);
    let (mut range, mut what) = (None, What::Plans);
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} wants a value"));
        match flag.as_str() {
            "--desk" => what = What::Desk,
            "--shared" => what = What::Shared,
            "--seeds" => range = parse(&value()?),
            "--plan" => what = What::Plan(Box::new(story::plan_in(&value()?)?)),
            _ => return Err(format!("{flag} is not known")),
        }
    }
    range.map(|range| Arguments { range, what }).ok_or_else(|| "--seeds FROM..TO is missing".to_owned())
}

fn parse(range: &str) -> Option<std::ops::Range<u64>> {
    let (from, to) = range.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}
