//! Not shipped: a deterministic simulator of runs. `sketch` draws random plans and makes them smaller, `plan` lowers them, `world`
//! lives them badly, `oracle` knows what should come of it, and every promise of the engine is checked after every step. A
//! failing seed is a bug report: the same seed fails again.

mod broken;
pub mod coordinator;
pub mod exhaustive;
mod oracle;
mod plan;
mod random;
pub mod runs;
mod sketch;
pub mod story;
mod tally;
mod world;

pub use random::Random;
use sketch::{Pencil, Sketch};
use std::sync::Arc;
pub use tally::Tally;
use windlass_engine::Program;
use windlass_ir::Plan;
pub use world::{Trouble, World};

/// Lives the run of one seed. An error is what was broken, with the smallest plan that breaks it and the last things that
/// happened.
pub fn live(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let size = 1 + random.below(5);
    let sketch = Pencil::new(&mut random).draw(size);
    let world_seed = random.draw();
    live_sketch(&sketch, seed, world_seed).map_err(|_| {
        // A smaller sketch that cannot be made into a plan is no failure.
        let live = |sketch: &Sketch, world| match live_sketch(sketch, seed, world) {
            Err(broken) if broken.starts_with("the generator") => Ok(Tally::default()),
            lived => lived,
        };
        let broken = broken::shrink((sketch, world_seed), 1..4, Sketch::smaller, live);
        format!("{broken}\nrepeat: cargo run --release -p windlass-sim -- --seeds {seed}..{}", seed + 1)
    })
}

/// Lives one run of a plan of one's own.
pub fn live_plan(plan: Plan, seed: u64) -> Result<Tally, String> {
    let program = Program::new(plan).map_err(|error| error.to_string())?;
    lived(&Arc::new(program), seed, seed)
}

fn live_sketch(sketch: &Sketch, seed: u64, world_seed: u64) -> Result<Tally, String> {
    let plan = plan::plan(sketch)?;
    let program = Arc::new(Program::new(plan).map_err(|error| error.to_string())?);
    lived(&program, seed, world_seed)
}

fn lived(program: &Arc<Program>, seed: u64, world_seed: u64) -> Result<Tally, String> {
    let mut world = World::new(world_seed, program.clone());
    let lived = broken::caught(|| {
        world.live();
        if seed.is_multiple_of(100) {
            world.check_prefixes();
        }
    });
    lived.map(|()| world.tally.clone()).map_err(|text| {
        let tail = broken::last_of(&world.log, LINES);
        let steps: Vec<String> = program.plan.steps.iter().map(describe).collect();
        let policy = &program.plan.policy;
        let limits = format!(
            "timeout {:?}, agents {}, steps {:?}, flat {}",
            policy.timeout.map(|timeout| timeout.to_string()),
            policy.concurrency.agents_per_run,
            policy.concurrency.steps_per_run,
            program.is_flat(),
        );
        format!("seed {seed}: {text}\nplan: {limits}\n{}\nlast inputs and events:\n{tail}", steps.join("\n"))
    })
}

/// Runs that have nothing but good answers come to the same in any order.
pub fn in_any_order(seed: u64) -> Result<bool, String> {
    let mut random = Random::new(seed);
    let size = 1 + random.below(5);
    let sketch = Pencil::new(&mut random).draw(size);
    if !sketch.is_order_free() {
        return Ok(false);
    }
    let plan = plan::plan(&sketch)?;
    let program = Arc::new(Program::new(plan).map_err(|error| error.to_string())?);
    let ends = [1, 2, 3].map(|world| {
        let mut world = World::new(seed.wrapping_mul(31).wrapping_add(world), program.clone());
        world.trouble = Trouble::OnlyOrder;
        world.live();
        world.end()
    });
    match ends[0] == ends[1] && ends[1] == ends[2] {
        true => Ok(true),
        false => Err(format!("seed {seed}: the order of answers matters:\n{:#?}\n{:#?}", ends[0], ends[1])),
    }
}

/// How much of what happened is shown.
const LINES: usize = 80;

fn describe(step: &windlass_ir::plan::PlanStep) -> String {
    let needs: Vec<String> = step.needs.iter().map(|need| need.0.to_string()).collect();
    let parent = step.parent.map(|parent| parent.0.to_string()).unwrap_or_default();
    let policy = &step.policy;
    let timeout = policy.timeout.map(|timeout| format!(" timeout {timeout}")).unwrap_or_default();
    let undo = policy.compensate.as_ref().map(|by| format!(" undone by {}", by.value)).unwrap_or_default();
    let after = match &policy.on_failure {
        windlass_ir::policy::OnFailure::Goto(to) => format!("goto {}", to.value),
        other => format!("{other:?}"),
    };
    format!(
        "  {:<5} in {parent:<3} needs [{}] {:<8} {after} attempts {}{timeout}{undo}{}{}",
        step.id,
        needs.join(" "),
        step.word,
        policy.retry.attempts_max,
        if step.implicit { " implicit" } else { "" },
        if step.takes_over { " target" } else { "" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn stories() -> Vec<PathBuf> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("stories");
        let files = std::fs::read_dir(folder).expect("the folder of stories");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        files.retain(|file| file.is_file());
        files.sort();
        files
    }

    fn ends_with(path: &Path, ending: &str) -> bool {
        path.extension().is_some_and(|found| found == ending)
    }

    /// The journals are written anew with `UPDATE_JOURNALS=1`; the old ones must stay readable all the same.
    #[test]
    fn every_story_is_true_and_its_journal_is_the_one_that_was_kept() {
        let update = std::env::var_os("UPDATE_JOURNALS").is_some();
        let mut wrong = Vec::new();
        for path in stories().into_iter().filter(|path| ends_with(path, "story")) {
            let text = std::fs::read_to_string(&path).expect("a story");
            let journal = path.with_extension("journal");
            let told = story::tell(&text).and_then(|told| {
                told.check_prefixes()?;
                if update {
                    std::fs::write(&journal, told.written()).map_err(|error| error.to_string())?;
                }
                let kept =
                    std::fs::read_to_string(&journal).map_err(|error| format!("its journal: {error}"))?;
                match kept == told.written() {
                    true => Ok(()),
                    false => {
                        Err("its journal is another one now; if that is right, UPDATE_JOURNALS=1".into())
                    }
                }
            });
            wrong.extend(told.err().map(|problem| format!("{}: {problem}", path.display())));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }

    #[test]
    fn every_journal_that_was_kept_can_be_replayed() {
        let journals: Vec<PathBuf> =
            stories().into_iter().filter(|path| ends_with(path, "journal")).collect();
        assert!(!journals.is_empty(), "there are journals");
        for path in journals {
            let written = std::fs::read_to_string(&path).expect("a journal");
            let replayed = story::replay(&written);
            assert!(replayed.is_ok(), "{}: {replayed:?}", path.display());
            let earlier = story::replay(&written.replace(r#","in_order":true"#, ""));
            assert_eq!(earlier, replayed, "{}: as an earlier version wrote it", path.display());
            assert!(path.with_extension("story").is_file(), "{} belongs to no story", path.display());
        }
    }

    /// Plans of format 1 name their rules by the set that they are from. These journals are never renewed.
    #[test]
    fn journals_of_plan_format_1_mean_what_they_meant() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("stories/format_1");
        let files = std::fs::read_dir(folder).expect("the journals of format 1");
        let files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        assert!(files.len() > 10, "there are journals of format 1");
        for path in files {
            let name = path.file_name().expect("a name");
            let today = path.ancestors().nth(2).expect("the folder of stories").join(name);
            let [old, new] = [&path, &today].map(|file| std::fs::read_to_string(file).expect("a journal"));
            assert!(old.starts_with(r#"{"format":1,"#), "{}", path.display());
            assert_eq!(story::rules(&old), story::rules(&new), "{}", path.display());
            assert_eq!(story::replay(&old), story::replay(&new), "{}", path.display());
        }
    }

    /// Journals contain these digests. If one changes, a run that keeps steps of an earlier one does them again after an upgrade:
    /// leave a new field out of the serialized form while it has its default.
    #[test]
    fn digests_of_steps_and_their_work_never_change() {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("stories/digests.txt");
        let mut digests = String::new();
        for path in stories().into_iter().filter(|path| ends_with(path, "journal")) {
            let written = std::fs::read_to_string(&path).expect("a journal");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let digest = story::digest(&written).unwrap_or_else(|problem| panic!("{name}: {problem}"));
            digests += &format!("{name} {digest:016x}\n");
        }
        if std::env::var_os("UPDATE_JOURNALS").is_some() {
            std::fs::write(&file, &digests).expect("written");
        }
        let known = std::fs::read_to_string(&file).expect("the digests");
        let changed: Vec<&str> = digests.lines().filter(|line| !known.contains(*line)).collect();
        assert!(changed.is_empty(), "{changed:?}");
    }

    #[test]
    fn a_range_of_seeds_keeps_every_promise() {
        broken::check_seeds(2_000, tally::EVERYTHING, live);
    }

    /// Small plans, each lived in every way.
    #[test]
    fn small_plans_keep_every_promise_in_every_order() {
        let mut states = 0;
        for seed in 0..120 {
            let mut random = Random::new(seed);
            let sketch = Pencil::new(&mut random).draw(2);
            let plan = plan::plan(&sketch).expect("a valid plan");
            let program = Arc::new(Program::new(plan).expect("a plan that can be run"));
            states += exhaustive::explore(&program, exhaustive::Bounds { depth: 7, states: 1_500 });
        }
        assert!(states > 20_000, "only {states} states were seen");
    }

    #[test]
    fn good_answers_lead_to_the_same_end_in_any_order() {
        let mut compared = 0;
        for seed in 0..1_500 {
            match in_any_order(seed) {
                Ok(order_free) => compared += u32::from(order_free),
                Err(broken) => panic!("{broken}"),
            }
        }
        assert!(compared > 50, "only {compared} plans were free of order");
    }
}
