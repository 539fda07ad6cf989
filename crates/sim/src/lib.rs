//! Not shipped: a deterministic simulator of runs. `sketch` generates and shrinks random plans, `plan` lowers them,
//! `world` executes them with faults, and `oracle` computes the expected result. The simulator checks every guarantee
//! of the engine after every step. The same seed always fails in the same way.

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

/// Simulates the run of one seed. An error contains the broken guarantee, the smallest plan that breaks it, and the
/// last log lines.
pub fn simulate(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let size = 1 + random.below(5);
    let sketch = Pencil::new(&mut random).draw(size);
    let world_seed = random.draw();
    simulate_sketch(&sketch, seed, world_seed).map_err(|_| {
        // A smaller sketch that is not a valid plan does not count as a failure.
        let simulate = |sketch: &Sketch, world| match simulate_sketch(sketch, seed, world) {
            Err(broken) if broken.starts_with("the generator") => Ok(Tally::default()),
            result => result,
        };
        let broken = broken::shrink((sketch, world_seed), 1..4, Sketch::smaller, simulate);
        format!("{broken}\nrepeat: cargo run --release -p windlass-sim -- --seeds {seed}..{}", seed + 1)
    })
}

/// Simulates one run of a given plan.
pub fn simulate_plan(plan: Plan, seed: u64) -> Result<Tally, String> {
    let program = Program::new(plan).map_err(|error| error.to_string())?;
    simulate_program(&Arc::new(program), seed, seed)
}

fn simulate_sketch(sketch: &Sketch, seed: u64, world_seed: u64) -> Result<Tally, String> {
    let plan = plan::plan(sketch)?;
    let program = Arc::new(Program::new(plan).map_err(|error| error.to_string())?);
    simulate_program(&program, seed, world_seed)
}

fn simulate_program(program: &Arc<Program>, seed: u64, world_seed: u64) -> Result<Tally, String> {
    let mut world = World::new(world_seed, program.clone());
    let simulated = broken::caught(|| {
        world.simulate();
        if seed.is_multiple_of(100) {
            world.check_prefixes();
        }
    });
    simulated.map(|()| world.tally.clone()).map_err(|text| {
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

/// Runs with only successful answers must have the same result in any order.
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
        world.simulate();
        world.end()
    });
    match ends[0] == ends[1] && ends[1] == ends[2] {
        true => Ok(true),
        false => Err(format!("seed {seed}: the order of answers matters:\n{:#?}\n{:#?}", ends[0], ends[1])),
    }
}

/// The number of log lines in a report.
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
    use windlass_ir::expr::Semantics;

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

    /// Set `UPDATE_JOURNALS=1` to rewrite the journals. Old journals must stay readable.
    #[test]
    fn every_story_holds_and_its_journal_is_unchanged() {
        let update = std::env::var_os("UPDATE_JOURNALS").is_some();
        let mut wrong = Vec::new();
        for path in stories().into_iter().filter(|path| ends_with(path, "story")) {
            let text = std::fs::read_to_string(&path).expect("a story");
            let journal = path.with_extension("journal");
            let result = story::execute(&text).and_then(|story| {
                story.check_prefixes()?;
                if update {
                    std::fs::write(&journal, story.written()).map_err(|error| error.to_string())?;
                }
                let kept =
                    std::fs::read_to_string(&journal).map_err(|error| format!("its journal: {error}"))?;
                match kept == story.written() {
                    true => Ok(()),
                    false => Err("its journal changed; if that is intended, set UPDATE_JOURNALS=1".into()),
                }
            });
            wrong.extend(result.err().map(|problem| format!("{}: {problem}", path.display())));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }

    #[test]
    fn every_stored_journal_can_be_replayed() {
        let journals: Vec<PathBuf> =
            stories().into_iter().filter(|path| ends_with(path, "journal")).collect();
        assert!(!journals.is_empty(), "there are journals");
        for path in journals {
            let written = std::fs::read_to_string(&path).expect("a journal");
            let replayed = story::replay(&written);
            assert!(replayed.is_ok(), "{}: {replayed:?}", path.display());
            let earlier = story::replay(&written.replace(r#","in_order":true"#, ""));
            assert_eq!(earlier, replayed, "{}: as an earlier version wrote it", path.display());
            assert!(path.with_extension("story").is_file(), "{} has no story", path.display());
        }
    }

    /// Plans of format 1 refer to their rules by the name of the dialect. Those of the first format 2 have other native
    /// rules for commands and failures. These journals are never rewritten.
    #[test]
    fn journals_of_earlier_plans_keep_their_meaning() {
        for format in [1, 2] {
            keep_their_meaning(format);
        }
    }

    fn keep_their_meaning(format: u32) {
        let folder =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("stories").join(format!("format_{format}"));
        let files = std::fs::read_dir(folder).expect("the journals of a format");
        let files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        assert!(files.len() > 10, "there are journals of format {format}");
        for path in files {
            let name = path.file_name().expect("a name");
            let today = path.ancestors().nth(2).expect("the folder of stories").join(name);
            let [old, new] = [&path, &today].map(|file| std::fs::read_to_string(file).expect("a journal"));
            assert!(old.starts_with(&format!(r#"{{"format":{format},"#)), "{}", path.display());
            let rules = story::rules(&new).map(Semantics::of_format_1);
            assert_eq!(story::rules(&old), rules, "{}", path.display());
            assert_eq!(story::replay(&old), story::replay(&new), "{}", path.display());
        }
    }

    /// Journals contain these digests. If one changes, a run that keeps results of an earlier run repeats those steps
    /// after an upgrade: leave a new field out of the serialized form while it has its default.
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
    fn a_range_of_seeds_keeps_every_guarantee() {
        broken::check_seeds(2_000, tally::EVERYTHING, simulate);
    }

    /// Small plans, each explored exhaustively.
    #[test]
    fn small_plans_keep_every_guarantee_in_every_order() {
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
    fn successful_answers_have_the_same_result_in_any_order() {
        let mut compared = 0;
        for seed in 0..1_500 {
            match in_any_order(seed) {
                Ok(order_free) => compared += u32::from(order_free),
                Err(broken) => panic!("{broken}"),
            }
        }
        assert!(compared > 50, "only {compared} plans do not depend on the order");
    }
}
