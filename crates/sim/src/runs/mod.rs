//! All runs of a process, in a hostile environment: the real [`windlass_engine::Runs`], a failing journal, two clocks
//! that drift apart, executors that lose jobs, clients that act at the wrong moment, and processes that die.
//!
//! `world` is the main loop, `process` starts a process and carries out its orders, `store` is the journal,
//! `executors` do the jobs and calls, `clients` are the people, `checks` are the invariants, `calm` finishes every
//! run, `workflows` are the executed workflows, and `tally` counts.

mod calm;
mod checks;
mod clients;
mod executors;
mod process;
mod store;
mod tally;
mod workflows;
mod world;

use crate::broken;
use std::ops::Range;
pub use tally::{Fault, Tally};
use windlass_engine::{Bug, plant};
use world::World;

/// The number of log lines in a report.
const LINES: usize = 80;

/// A broken guarantee.
#[derive(Debug)]
struct Broken {
    what: String,
    steps: u64,
    log: Vec<String>,
}

/// Simulates one seed. An error names the broken guarantee and contains the last log lines.
pub fn simulate(seed: u64) -> Result<Tally, String> {
    let quiet = match simulate_logged(seed, false) {
        Ok(tally) => return Ok(tally),
        Err(broken) => broken,
    };
    // Logging is expensive, so only a failing seed is simulated again with a log.
    let report = simulate_logged(seed, true).err().unwrap_or(quiet);
    Err(format!(
        "seed {seed}, step {}: {}\n{}\nrepeat: cargo run --release -p windlass-sim -- --runs --seeds {seed}..{}",
        report.steps,
        report.what,
        broken::last_of(&report.log, LINES),
        seed + 1
    ))
}

fn simulate_logged(seed: u64, logs: bool) -> Result<Tally, Broken> {
    let mut world = World::new(seed, logs);
    let simulated = broken::caught(|| world.simulate());
    simulated.map(|()| world.tally.clone()).map_err(|what| Broken {
        what,
        steps: world.tally.steps,
        log: world.log.take().unwrap_or_default(),
    })
}

/// Plants each bug that Windlass once had, and reports in Markdown which seed finds it.
pub fn planted(seeds: Range<u64>) -> Result<String, String> {
    let mut table = String::from("| bug | seed | steps | report |\n|---|---:|---:|---|\n");
    for bug in Bug::ALL {
        let (seed, broken) =
            find(bug, seeds.clone()).ok_or_else(|| format!("{table}no seed finds {bug:?}"))?;
        let what: String = broken.what.lines().next().unwrap_or_default().chars().take(110).collect();
        table += &format!("| `{bug:?}` | {seed} | {} | {what} |\n", broken.steps);
    }
    Ok(table)
}

fn find(bug: Bug, mut seeds: Range<u64>) -> Option<(u64, Broken)> {
    plant(Some(bug));
    let found = seeds.find_map(|seed| Some((seed, simulate_logged(seed, false).err()?)));
    plant(None);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SIM_SEEDS` sets the number of seeds. Only the default range must cover every fault in every state.
    #[test]
    fn all_runs_of_a_process_survive_faults() {
        let asked = std::env::var("SIM_SEEDS").ok().and_then(|count| count.parse().ok());
        let mut all = Tally::default();
        for seed in 0..asked.unwrap_or(250) {
            match simulate(seed) {
                Ok(tally) => all.add(&tally),
                Err(broken) => panic!("{broken}"),
            }
        }
        let everything = all.faults.iter().flatten().all(|count| *count > 0);
        assert!(asked.is_some() || everything, "a fault never hit a run in one of the states:\n{all}");
    }

    #[test]
    fn the_simulator_finds_every_planted_bug() {
        for bug in Bug::ALL {
            assert!(find(bug, 0..500).is_some(), "{bug:?} is not found");
        }
    }
}
