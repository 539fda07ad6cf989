//! A simulator of the desk alone: many simple runs, one desk, and every kind of trouble.
//!
//! `goods` is what there is to compete for, `life` what a run is here, `world` what happens, `calm` how it comes to an end,
//! `ledger` what should be so after every step.

mod calm;
mod goods;
mod ledger;
mod life;
mod tally;
mod told;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
pub use tally::{ALL, Tally};
use world::{Size, World};

use crate::Random;

/// How much of what happened is shown.
const LINES: usize = 60;

/// Lives the world of one seed. An error is what was broken, in the smallest world that breaks it, with the last things that
/// happened.
pub fn live(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let size = Size::draw(&mut random);
    let world_seed = random.draw();
    lived(size, world_seed).map_err(|_| {
        let broken = shrink(size, world_seed);
        format!(
            "seed {seed}: {broken}\nrepeat: cargo run --release -p windlass-sim -- --desk --seeds {seed}..{}",
            seed + 1
        )
    })
}

fn lived(size: Size, seed: u64) -> Result<Tally, String> {
    let mut world = World::new(size, seed);
    let lived = catch_unwind(AssertUnwindSafe(|| world.live()));
    lived.map(|()| world.tally.clone()).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let from = world.log.len().saturating_sub(LINES);
        let tail = world.log[from..].join("\n");
        format!("{}\nworld: {size:?}\nthe last that happened:\n{tail}", text.unwrap_or_default())
    })
}

/// Makes the world smaller as long as something breaks, in this one or in one of a few others.
fn shrink(size: Size, seed: u64) -> String {
    let broken = lived(size, seed).err().unwrap_or_default();
    let mut best = (size, seed, broken);
    let mut tries = 0;
    'smaller: loop {
        for candidate in best.0.smaller() {
            for other in [best.1].into_iter().chain(0..40) {
                tries += 1;
                if tries > 4_000 {
                    return best.2;
                }
                if let Err(broken) = lived(candidate, other) {
                    best = (candidate, other, broken);
                    continue 'smaller;
                }
            }
        }
        return best.2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SIM_SEEDS` says how many seeds are lived; only with all of them must everything have occurred.
    #[test]
    fn a_range_of_seeds_keeps_every_promise_of_the_desk() {
        let asked = std::env::var("SIM_SEEDS").ok().and_then(|count| count.parse().ok());
        let mut all = Tally::default();
        for seed in 0..asked.unwrap_or(1_000) {
            match live(seed) {
                Ok(tally) => all.add(&tally),
                Err(broken) => panic!("{broken}"),
            }
        }
        if asked.is_some() {
            return;
        }
        let missing: Vec<&&str> = ALL.iter().filter(|name| !all.seen.contains_key(**name)).collect();
        assert!(missing.is_empty(), "never occurred: {missing:?}");
        let faults = [all.crashes, all.lost_records, all.compactions, all.lost_effects, all.doubled_effects];
        assert!(faults.iter().all(|count| *count > 0), "some fault never occurred: {all:?}");
        assert!(all.late > 0 && all.crowds > 0 && all.refusals > 0, "some trouble never occurred: {all:?}");
    }
}
