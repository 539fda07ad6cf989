//! The kill test: runs of the real program are killed at random instants and taken up again until they end, and must
//! then look as if nothing had happened. A short form runs with the tests, a long one as `make crash-test`.

mod checks;
mod process;
mod shared;
mod workflows;

use checks::{Result, Seen};
use process::{End, Life, Program};
pub use shared::shared_test;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workflows::{STEP, WORKFLOWS, Workflow};

/// A run is killed at most so often: an attempt is delivered five times before it counts as lost. One delivery is left for
/// a decision that is recorded while nobody drives the run, which hands out the step after the gate on paper.
const KILLS_PER_RUN_MAX: u64 = 3;

/// What was done. Printed by the long form.
#[derive(Debug, Default)]
pub struct Counts {
    pub kills: u64,
    pub runs: u64,
    /// Ends of steps that the journals know.
    pub steps: u64,
    pub redeliveries: u64,
    /// Kills so early that there was no run yet.
    pub before_the_start: u64,
    pub approvals_by_client: u64,
    pub approvals_without_owner: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kills                     {:>6}", self.kills)?;
        writeln!(f, "  before the run existed  {:>6}", self.before_the_start)?;
        writeln!(f, "runs                      {:>6}", self.runs)?;
        writeln!(f, "steps                     {:>6}", self.steps)?;
        writeln!(f, "redeliveries              {:>6}", self.redeliveries)?;
        writeln!(f, "approvals by a client     {:>6}", self.approvals_by_client)?;
        writeln!(f, "approvals without owner   {:>6}", self.approvals_without_owner)
    }
}

/// Kills runs of `windlass` until `kills` have been made, and as many runs as there are workflows have ended. Works in
/// `folder`, which is its own.
pub fn crash_test(windlass: &Path, folder: &Path, seed: u64, kills: u64) -> Result<Counts> {
    let mut test = CrashTest {
        windlass: windlass.to_owned(),
        folder: folder.to_owned(),
        random: Random(seed),
        counts: Counts::default(),
    };
    let references: Vec<Reference> =
        WORKFLOWS.iter().map(|one| test.reference(one)).collect::<Result<_>>()?;
    for (number, reference) in references.iter().cycle().enumerate() {
        if test.counts.kills >= kills && number >= references.len() {
            break;
        }
        let name = format!("{}-{number}", reference.workflow.name);
        test.one(&name, reference).map_err(|problem| format!("seed {seed}, run {name}: {problem}"))?;
    }
    Ok(test.counts)
}

/// How a run of a workflow ends when nobody kills it.
struct Reference {
    workflow: &'static Workflow,
    result: serde_json::Value,
    took: Duration,
}

struct CrashTest {
    windlass: PathBuf,
    folder: PathBuf,
    random: Random,
    counts: Counts,
}

impl CrashTest {
    fn reference(&mut self, workflow: &'static Workflow) -> Result<Reference> {
        let program = self.program(&format!("{}-undisturbed", workflow.name), workflow, "undisturbed");
        let started = Instant::now();
        let mut end = program.start(false).end_by(None);
        if let End::Waits = end {
            program.approve().finished()?;
            end = program.resume(false).end_by(None);
        }
        let took = started.elapsed();
        match end {
            End::Succeeded => Ok(Reference { workflow, result: program.result()?, took }),
            End::Waits | End::Killed | End::Asked | End::Other(_) => {
                Err(format!("{} alone: {end:?}", workflow.name))
            }
        }
    }

    /// A folder for one run to work in. Some runs have a data folder of their own, so that its making is interrupted too.
    fn program(&self, run: &str, workflow: &Workflow, data: &str) -> Program {
        let work = self.folder.join(run);
        for (file, text) in [("WORKFLOW.yaml", workflow.text), ("step", STEP)] {
            std::fs::create_dir_all(&work).expect("a folder of our own");
            std::fs::write(work.join(file), text).expect("a folder of our own");
        }
        Program {
            windlass: self.windlass.clone(),
            work,
            data: self.folder.join("data").join(data),
            run: run.to_owned(),
        }
    }

    /// One run, killed and taken up again until it ends.
    fn one(&mut self, run: &str, reference: &Reference) -> Result<()> {
        let data = if self.random.below(3) == 0 { run } else { "shared" };
        let program = self.program(run, reference.workflow, data);
        let kills_max = 1 + self.random.below(KILLS_PER_RUN_MAX);
        let mut seen = Seen::default();
        let mut kills = 0;
        let mut exists = false;
        loop {
            let wait = self.random.below(2) == 0;
            let life = if exists { program.resume(wait) } else { program.start(wait) };
            let length = u64::try_from(reference.took.as_micros()).unwrap_or(u64::MAX);
            let instant = (kills < kills_max).then(|| Duration::from_micros(self.random.below(length)));
            let end = self.live(&program, life, instant)?;
            match end {
                End::Succeeded => break,
                End::Killed => kills += 1,
                End::Waits | End::Asked => {}
                End::Other(what) => return Err(format!("after {kills} kills: {what}")),
            }
            let events = program.events()?;
            exists = !events.is_empty();
            self.counts.before_the_start += u64::from(!exists);
            seen.look(&events, &program.trace())?;
            if events.iter().any(|event| event["event"] == "concluded") {
                // Killed after its last word.
                program.refuses_to_go_on()?;
                break;
            }
            if exists && program.waits_at_gate()? {
                program.approve().finished()?;
                self.counts.approvals_without_owner += 1;
            }
        }
        self.counts.runs += 1;
        self.counts.kills += kills;
        let events = program.events()?;
        seen.look(&events, &program.trace())?;
        let totals = checks::whole(&events, &program.trace(), kills)?;
        self.counts.steps += totals.steps;
        self.counts.redeliveries += totals.redeliveries;
        checks::same(&reference.result, &program.result()?)
    }

    /// Lets a process be until it ends, or is killed at an instant. When it waits at a gate another process approves, and
    /// half the time the owner is killed in the middle of that.
    fn live(&mut self, program: &Program, mut life: Life, instant: Option<Duration>) -> Result<End> {
        loop {
            let end = life.end_by(instant);
            let End::Asked = end else { return Ok(end) };
            let approval = program.approve();
            if instant.is_some() && self.random.below(2) == 0 {
                life.kill();
                approval.durable_if_accepted(program)?;
                return Ok(End::Killed);
            }
            approval.finished()?;
            self.counts.approvals_by_client += 1;
        }
    }
}

/// Small and good enough to draw instants from: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}
