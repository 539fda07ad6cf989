//! The kill test: runs of the real program are killed at random instants and resumed until they end, and must
//! then look as if nothing had happened. A short form runs with the tests, a long one as `make crash-test`.

mod checks;
mod loss;
mod process;
mod shared;
mod workflows;

use checks::{Result, Seen};
use process::{End, Life, Program};
pub use shared::shared_test;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workflows::{TOOLS, WORKFLOWS, Workflow};

/// A run is killed at most so often: an attempt is delivered five times before it counts as lost. One delivery is left for
/// a decision that is recorded while no process executes the run, which hands out the step after the gate on paper.
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
    /// Losses of power, and the sectors of the disk that were lost by them.
    pub losses: u64,
    pub sectors_lost: u64,
    /// What was shown before a kill, and was found in the journal after it.
    pub kept: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kills                     {:>6}", self.kills)?;
        writeln!(f, "  before the run existed  {:>6}", self.before_the_start)?;
        writeln!(f, "runs                      {:>6}", self.runs)?;
        writeln!(f, "steps                     {:>6}", self.steps)?;
        writeln!(f, "redeliveries              {:>6}", self.redeliveries)?;
        writeln!(f, "approvals by a client     {:>6}", self.approvals_by_client)?;
        writeln!(f, "approvals without owner   {:>6}", self.approvals_without_owner)?;
        writeln!(f, "events shown and kept     {:>6}", self.kept)?;
        writeln!(f, "losses of power           {:>6}", self.losses)?;
        writeln!(f, "  sectors lost            {:>6}", self.sectors_lost)
    }
}

/// Whether what was not flushed survives a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    Stays,
    Fails,
}

/// Kills runs of `windlass` until `kills` have been made, and as many runs as there are workflows have ended. Works in
/// `folder`, which is its own.
pub fn crash_test(windlass: &Path, folder: &Path, seed: u64, kills: u64, power: Power) -> Result<Counts> {
    let library = match power {
        Power::Stays => None,
        Power::Fails => Some(loss::library(folder)?.ok_or("there is no C compiler `cc`")?),
    };
    let mut test = CrashTest {
        windlass: windlass.to_owned(),
        folder: folder.to_owned(),
        library,
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

/// The end of a run of a workflow that is never killed.
struct Reference {
    workflow: &'static Workflow,
    result: serde_json::Value,
    took: Duration,
}

struct CrashTest {
    windlass: PathBuf,
    folder: PathBuf,
    library: Option<PathBuf>,
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
    fn program(&self, run: &str, workflow: &'static Workflow, data: &str) -> Program {
        let work = self.folder.join(run);
        for (file, text) in workflow.files.iter().chain(TOOLS) {
            let file = work.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder around it")).expect("a folder of our own");
            std::fs::write(file, text).expect("a folder of our own");
        }
        let data = self.folder.join("data").join(data);
        std::fs::create_dir_all(self.folder.join("data")).expect("a folder of our own");
        let power = self.library.as_ref().map(|library| loss::Power::new(library, &data));
        Program { windlass: self.windlass.clone(), work, data, run: run.to_owned(), workflow, power }
    }

    /// One run, killed and resumed until it ends.
    fn one(&mut self, run: &str, reference: &Reference) -> Result<()> {
        let data = if self.random.below(3) == 0 { run } else { "shared" };
        let program = self.program(run, reference.workflow, data);
        let kills_max = 1 + self.random.below(KILLS_PER_RUN_MAX);
        let mut seen = Seen::default();
        let mut kills = 0;
        let mut exists = false;
        loop {
            let wait = self.random.below(2) == 0;
            let mut life = if exists { program.resume(wait) } else { program.start(wait) };
            let length = u64::try_from(reference.took.as_micros()).unwrap_or(u64::MAX);
            let instant = (kills < kills_max).then(|| Duration::from_micros(self.random.below(length)));
            let end = self.live(&program, &mut life, instant)?;
            if let End::Killed = end {
                self.counts.losses += u64::from(program.power.is_some());
                self.counts.sectors_lost += program.lose_power(&mut self.random)?;
            }
            match end {
                End::Succeeded => break,
                End::Killed => kills += 1,
                End::Waits | End::Asked => {}
                End::Other(what) => return Err(format!("after {kills} kills: {what}")),
            }
            let events = program.events()?;
            checks::kept(&life.heard, &events)?;
            self.counts.kept += life.heard.len() as u64;
            exists = !events.is_empty();
            self.counts.before_the_start += u64::from(!exists);
            seen.look(&events, &program.trace())?;
            let own = events.get(run).into_iter().flatten();
            if own.clone().any(|event| event["event"] == "concluded") {
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
    fn live(&mut self, program: &Program, life: &mut Life, instant: Option<Duration>) -> Result<End> {
        loop {
            let end = life.end_by(instant);
            let End::Asked = end else { return Ok(end) };
            let approval = program.approve();
            if instant.is_some() && self.random.below(2) == 0 {
                life.kill();
                approval.durable_if_accepted(program, &mut self.random)?;
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
