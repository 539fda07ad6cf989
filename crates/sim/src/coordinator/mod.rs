//! A simulator of the coordinator alone: many simple runs, one coordinator, and all kinds of faults.
//!
//! `goods` defines the shared resources, `life` is a run as the coordinator sees it, `world` executes random actions,
//! `calm` ends a simulation, and `ledger` checks the invariants after every step.

mod calm;
mod goods;
mod ledger;
mod life;
mod world;

use crate::broken;
use crate::{Random, Tally};
use world::{Size, World};

/// The number of log lines in a report.
const LINES: usize = 60;

/// Simulates one seed. An error names the broken guarantee in the smallest simulation that shows it, with the last
/// log lines.
pub fn simulate(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let size = Size::draw(&mut random);
    let world_seed = random.draw();
    simulate_world(size, world_seed, false).map_err(|_| {
        let again = |size: &Size, seed| simulate_world(*size, seed, true);
        let broken = broken::shrink((size, world_seed), 0..40, |size| size.smaller(), again);
        let next = seed + 1;
        format!(
            "seed {seed}: {broken}\nrepeat: cargo run --release -p windlass-sim -- --coordinator --seeds {seed}..{next}"
        )
    })
}

fn simulate_world(size: Size, seed: u64, logs: bool) -> Result<Tally, String> {
    let mut world = World::new(size, seed, logs);
    broken::caught(|| world.simulate()).map(|()| world.tally.clone()).map_err(|what| {
        format!("{what}\nworld: {size:?}\n{}", broken::last_of(&world.log.take().unwrap_or_default(), LINES))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that must occur over a large range of seeds.
    const EVERYTHING: &str = "\
answer: Denied, Found, Granted
came: Skipped, Started
denied: BudgetExceeded, Taken, TooMuch, WouldDeadlock
effect: Answer, Cancel, Deliver, Start
end: Attempt, Done, Lost, Over
event: Acknowledged, Arrived, BudgetIs, Fired, Granted, Kept, KeyTaken, KeysFreed, Moved, Published, Queued
event: RateIs, Released, Replaced, Snapshot, Subscribed, Unsubscribed, Withdrawn
fault: compaction, crash, crowd, doubled effect, late, lost effect, lost record, refusal
input: Acknowledge, Arrived, Ask, Cap, Fire, Gone, Published, Release, Reset, Subscribe, Tick, Unsubscribe
overlap: Cancel, Queue, Skip";

    #[test]
    fn a_range_of_seeds_keeps_every_guarantee_of_the_coordinator() {
        broken::check_seeds(1_000, EVERYTHING, simulate);
    }
}
