//! Not shipped: a deterministic simulator of runs. `plan` makes random plans, `world` lives them badly, and every promise
//! of the engine is checked after every step. A failing seed is a bug report: the same seed fails again.

mod plan;
mod random;
mod world;

pub use random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use windlass_engine::Program;
pub use world::{Tally, World};

/// Lives the run of one seed. An error is what was broken, with the last things that happened.
pub fn live(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let size = 1 + random.below(6);
    let plan = plan::generate(&mut random, size);
    let program = Arc::new(Program::new(plan).map_err(|error| error.to_string())?);
    let mut world = World::new(random.draw(), program.clone());
    let lived = catch_unwind(AssertUnwindSafe(|| world.live()));
    lived.map(|()| world.tally.clone()).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
        let tail = world.log.iter().rev().take(30).rev().cloned().collect::<Vec<_>>().join("\n");
        let steps: Vec<String> = program.plan.steps.iter().map(describe).collect();
        format!("seed {seed}: {text}\nplan:\n{}\nlast inputs:\n{tail}\nrepeat: cargo run --release -p windlass-sim -- --seeds {seed}..{}", steps.join("\n"), seed + 1)
    })
}

fn describe(step: &windlass_ir::plan::PlanStep) -> String {
    let needs: Vec<String> = step.needs.iter().map(|need| need.0.to_string()).collect();
    let kind = format!("{:?}", step.kind);
    let kind = kind.split(['(', ' ', '{']).take(2).collect::<Vec<_>>().join(" ");
    format!(
        "  {:<5} needs [{}] {kind} {:?} attempts {}",
        step.id,
        needs.join(" "),
        step.policy.on_failure,
        step.policy.retry.attempts_max
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_seeds_keeps_every_promise() {
        let mut all = Tally::default();
        for seed in 0..1_500 {
            match live(seed) {
                Ok(tally) => all.add(&tally),
                Err(broken) => panic!("{broken}"),
            }
        }
        let names = [
            "started",
            "entered",
            "scheduled",
            "attempt_failed",
            "timer_set",
            "timer_fired",
            "signalled",
            "cancel_requested",
            "paused",
            "resumed",
            "reopened",
            "settled",
            "concluded",
            "closed",
        ];
        for name in names {
            assert!(all.events.contains(name), "no run ever had the event {name}");
        }
        let faults = [
            all.crashes,
            all.conflicts,
            all.failed_appends,
            all.duplicates,
            all.losses,
            all.cancels,
            all.reopens,
        ];
        assert!(faults.iter().all(|count| *count > 0), "some fault never occurred: {all:?}");
    }
}
