//! A simulator of the coordinator alone: many simple runs, one coordinator, and every kind of trouble.
//!
//! `goods` is what runs compete for, `life` is a run as the coordinator sees it, `world` is what happens, `calm` brings a world to
//! its end, and `ledger` knows what must hold after every step.

mod calm;
mod goods;
mod ledger;
mod life;
mod world;

use crate::broken;
use crate::{Random, Tally};
use world::{Size, World};

/// This many of the last things that happened are shown.
const LINES: usize = 60;

/// Simulates the world of one seed. An error says what does not hold, in the smallest world that shows it, and the last things that
/// happened.
pub fn live(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let size = Size::draw(&mut random);
    let world_seed = random.draw();
    simulate(size, world_seed, false).map_err(|_| {
        let live = |size: &Size, seed| simulate(*size, seed, true);
        let broken = broken::shrink((size, world_seed), 0..40, |size| size.smaller(), live);
        let next = seed + 1;
        format!(
            "seed {seed}: {broken}\nrepeat: cargo run --release -p windlass-sim -- --coordinator --seeds {seed}..{next}"
        )
    })
}

fn simulate(size: Size, seed: u64, logs: bool) -> Result<Tally, String> {
    let mut world = World::new(size, seed, logs);
    broken::caught(|| world.live()).map(|()| world.tally.clone()).map_err(|what| {
        format!("{what}\nworld: {size:?}\n{}", broken::last_of(&world.log.take().unwrap_or_default(), LINES))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that must have occurred over a large range of seeds.
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
    fn a_range_of_seeds_keeps_every_promise_of_the_coordinator() {
        broken::check_seeds(1_000, EVERYTHING, live);
    }
}
