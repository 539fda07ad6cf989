//! Failing simulations: their panic messages, and the smallest one that fails.

use crate::Tally;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a simulation and returns its panic message as an error.
pub(crate) fn caught(simulate: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(simulate)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// Shrinks a failing simulation as long as it fails, with its own seed or with one of the others. Returns the last
/// failure.
pub(crate) fn shrink<T>(
    first: (T, u64),
    others: std::ops::Range<u64>,
    smaller: impl Fn(&T) -> Vec<T>,
    simulate: impl Fn(&T, u64) -> Result<Tally, String>,
) -> String {
    let broken = simulate(&first.0, first.1).err().unwrap_or_default();
    let mut best = (first.0, first.1, broken);
    let mut tries = 0;
    'smaller: loop {
        for candidate in smaller(&best.0) {
            for seed in [best.1].into_iter().chain(others.clone()) {
                tries += 1;
                if tries > 4_000 {
                    return best.2;
                }
                if let Err(broken) = simulate(&candidate, seed) {
                    best = (candidate, seed, broken);
                    continue 'smaller;
                }
            }
        }
        return best.2;
    }
}

/// The last lines of a log.
pub(crate) fn last_of(log: &[String], count: usize) -> String {
    log[log.len().saturating_sub(count)..].join("\n")
}

/// Simulates `count` seeds, or `SIM_SEEDS` of them. Only the default range must cover all of `everything`.
#[cfg(test)]
pub(crate) fn check_seeds(count: u64, everything: &str, simulate: impl Fn(u64) -> Result<Tally, String>) {
    let asked = std::env::var("SIM_SEEDS").ok().and_then(|count| count.parse().ok());
    let mut all = Tally::default();
    for seed in 0..asked.unwrap_or(count) {
        match simulate(seed) {
            Ok(tally) => all.add(&tally),
            Err(broken) => panic!("{broken}"),
        }
    }
    let missing = all.missing(everything);
    assert!(asked.is_some() || missing.is_empty(), "never occurred: {missing:?}");
}
