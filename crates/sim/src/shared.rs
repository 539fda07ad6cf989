//! Many real runs and the real desk over one journal, as the runtime joins them: what a run asks, what the desk says and what the
//! run does because of that are records one after the other, any end of which is lost in a crash; nothing is carried out before
//! all of it is written.

use crate::Random;
use crate::story::plan_of;
use crate::world::REPLAYS;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use windlass_engine::{
    Asker, Desk, DeskAnswer, DeskEffect, DeskEvent, DeskInput, Effect, Event, Failure, Input, JobKey, Letter,
    Outcome, Path, Program, Refused, Run, RunId, Start, Timestamp,
};
use windlass_ir::Value;

/// The workflows that compete, with the inputs that their runs are drawn from.
const WORKFLOWS: [(&str, &str); 4] = [
    (
        "dagnats",
        r#"{"name": "limited", "version": "1", "concurrency": {"max_runs": 2},
        "priority": {"key": "k", "rules": {"a": 60}, "default_offset": 0},
        "default_retry": {"max_attempts": 2, "strategy": "fixed", "initial_delay": "1s", "max_delay": "1s"},
        "steps": [{"id": "one", "task": "paint", "type": "normal", "max_task_concurrency": 1},
            {"id": "two", "task": "call", "type": "normal", "rate_limit": {"limit": 2, "period": "10s"}},
            {"id": "three", "task": "paint", "type": "normal", "max_task_concurrency": 1, "depends_on": ["one", "two"]}]}"#,
    ),
    (
        "dcc",
        "name: keyed\nsteps:\n  - {id: e, tool: maya__export, idempotency_key: \"x_{{inputs.k}}\", idempotency_scope: global, idempotency_ttl_secs: 30, retry: {max_attempts: 2}}\n",
    ),
    (
        "dagnats",
        r#"{"name": "alone", "version": "1", "singleton": {"mode": "cancel", "key": "k"},
        "cancel_on": [{"event": "stop", "match": {"left": "k", "op": "eq", "right": "input.k"}}],
        "steps": [{"id": "w", "type": "wait_for_event", "config": {"event": "go", "match": {"left": "k", "op": "eq", "right": "input.k"}, "timeout": "1m"}},
            {"id": "t", "task": "paint", "type": "normal", "max_task_concurrency": 1, "depends_on": ["w"]}]}"#,
    ),
    (
        "swdl",
        "workflow: {id: spends, name: Spends}\nconfig: {budget: {calls: 3}, timeout: none}\nerror_policy: {default_retry: {max_attempts: 2, initial_interval: 1s, jitter: 0}}\nstages:\n  - {id: a, type: task, task: a}\n  - {id: b, type: task, task: b, task_concurrency: 2}\n  - {id: c, type: task, task: c, depends_on: [a, b]}\n",
    ),
];

/// How many may hold what.
const LIMITS: [(&str, usize); 3] = [("runs:limited", 2), ("task:paint", 1), ("task:b", 2)];

fn programs() -> &'static [Arc<Program>] {
    static PROGRAMS: OnceLock<Vec<Arc<Program>>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let program = |(dialect, text): &(&str, &str)| {
            let plan = plan_of(dialect, text).expect("a good workflow");
            Arc::new(Program::new(plan).expect("a plan that can be run"))
        };
        WORKFLOWS.iter().map(program).collect()
    })
}

/// What happened over a range of seeds.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub steps: u64,
    pub records: u64,
    pub crashes: u64,
    /// Records that were lost in them.
    pub lost_records: u64,
    pub runs: u64,
    pub found: u64,
    pub denied: u64,
    pub replaced: u64,
    pub heard: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.records += other.records;
        self.crashes += other.crashes;
        self.lost_records += other.lost_records;
        self.runs += other.runs;
        self.found += other.found;
        self.denied += other.denied;
        self.replaced += other.replaced;
        self.heard += other.heard;
    }
}

/// Lives the world of one seed. An error is what was broken, with the last things that happened.
pub fn live(seed: u64) -> Result<Tally, String> {
    let mut world = World::new(seed);
    let lived = catch_unwind(AssertUnwindSafe(|| world.live()));
    lived.map(|()| world.tally.clone()).map_err(|panic| {
        let why = panic.downcast_ref::<String>().cloned();
        let why = why.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
        let last = world.log.len().saturating_sub(60);
        format!(
            "seed {seed}: {why}\n{}\nrepeat: cargo run --release -p windlass-sim -- --shared --seeds {seed}..{}",
            world.log[last..].join("\n"),
            seed + 1
        )
    })
}

/// One record of the journal.
#[derive(Clone, Debug)]
enum Record {
    Run(RunId, Vec<Event>),
    Desk(Vec<DeskEvent>),
}

struct Live {
    run: Run,
    program: Arc<Program>,
    inputs: Value,
    /// Jobs at work, and whether they were told to stop.
    jobs: BTreeMap<JobKey, bool>,
}

struct World {
    random: Random,
    now: Timestamp,
    journal: Vec<Record>,
    desk: Desk,
    runs: BTreeMap<RunId, Live>,
    /// Said by the desk and not heard yet.
    mail: VecDeque<(RunId, Input)>,
    letters: VecDeque<(windlass_engine::Address, Letter)>,
    messages: u32,
    calm: bool,
    tally: Tally,
    log: Vec<String>,
}

/// When the world becomes calm, and how long it may take from then on.
const CALM_AFTER: u64 = 150;
const CALM_MAX: u64 = 3_000;

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            now: Timestamp(1_000_000_000),
            journal: Vec::new(),
            desk: Desk::default(),
            runs: BTreeMap::new(),
            mail: VecDeque::new(),
            letters: VecDeque::new(),
            messages: 0,
            calm: false,
            tally: Tally::default(),
            log: Vec::new(),
        }
    }

    fn live(&mut self) {
        while !self.calm || !self.runs.values().all(|live| live.run.outcome().is_some()) {
            self.calm = self.tally.steps > CALM_AFTER;
            assert!(self.tally.steps < CALM_AFTER + CALM_MAX, "not every run ends: {:?}", self.open());
            self.tally.steps += 1;
            self.step();
            self.check();
        }
        self.check_empty();
    }

    fn open(&self) -> Vec<String> {
        let open = self.runs.values().filter(|live| live.run.outcome().is_none());
        open.map(|live| {
            let asks: Vec<String> = live.run.asks().map(|asker| asker.to_string()).collect();
            format!("{} jobs {:?} asks {asks:?}", live.run.id(), live.jobs.keys().collect::<Vec<_>>())
        })
        .collect()
    }

    fn step(&mut self) {
        let trouble = if self.calm { 60 } else { 100 };
        match self.random.below(trouble) {
            0..=29 => self.report(),
            30..=44 => self.hear(),
            45..=59 => self.pass_time(),
            60..=74 => self.start(),
            75..=79 => self.publish(),
            80..=83 => self.lose(),
            84..=86 => self.cancel(),
            87..=90 => self.hear(),
            91..=93 => self.now = Timestamp(self.now.0 + self.random.below(20_000_000) as i64),
            _ => self.crash(self.journal.len()),
        }
    }

    fn start(&mut self) {
        if self.runs.len() >= 8 {
            return;
        }
        self.tally.runs += 1;
        let id = RunId::new(&format!("run-{}", self.runs.len())).expect("a good name");
        let program = self.random.pick(programs()).clone();
        let inputs = Value::map([("k", Value::text(*self.random.pick(&["a", "b"])))]);
        let run = Run::new(id.clone(), program.clone());
        self.runs.insert(id.clone(), Live { run, program, inputs: inputs.clone(), jobs: BTreeMap::new() });
        self.offer(&id, Input::Start(Box::new(Start { seed: 1, ..Start::with(inputs) })));
    }

    /// Hands an input to a run, with whatever the desk says at once. All of it is written before any of it is carried out, and
    /// a crash may come between any two records.
    fn offer(&mut self, id: &RunId, input: Input) {
        let before = self.journal.len();
        let mut inputs = VecDeque::from([input]);
        let mut effects = Vec::new();
        while let Some(input) = inputs.pop_front() {
            self.log.push(format!("{:>9} {id} {}", self.now.0 / 1_000, short(&input)));
            let asker = match &input {
                Input::Answered { asker, answer: DeskAnswer::Granted } => Some(asker.clone()),
                _ => None,
            };
            let Some(live) = self.runs.get_mut(id) else { return };
            let handled = live.run.handle(self.now, input);
            assert!(!matches!(handled, Err(Refused::Broken(_))), "{handled:?}");
            let Ok(answer) = handled else {
                // Granted to somebody who is not there any more.
                if let Some(asker) = asker.filter(|asker| !live.run.needs(asker)) {
                    let (used, end) = (windlass_engine::Amount::default(), windlass_engine::End::Attempt);
                    self.tell(DeskInput::Release { asker, used, end });
                }
                continue;
            };
            if !answer.events.is_empty() {
                self.journal.push(Record::Run(id.clone(), answer.events));
            }
            for effect in answer.effects {
                let told = match effect {
                    Effect::Ask { ask, .. } => DeskInput::Ask(ask),
                    Effect::Release { asker, used, end } => DeskInput::Release { asker, used, end },
                    Effect::Listen(listener) => DeskInput::Listen(listener),
                    Effect::Deaf(address) => DeskInput::Deaf(address),
                    Effect::Conclude(_) => DeskInput::Gone { run: id.clone() },
                    other @ (Effect::Dispatch(_) | Effect::Abort(_)) => {
                        effects.push(other);
                        continue;
                    }
                };
                self.tell(told);
            }
            // What the desk says to this run at once comes at once, mostly.
            let own = self.mail.iter().position(|(run, _)| run == id).filter(|_| self.random.chance(80));
            inputs.extend(own.and_then(|at| self.mail.remove(at)).map(|(_, input)| input));
            if answer.again {
                inputs.push_back(Input::Tick);
            }
        }
        if !self.calm && self.random.chance(4) {
            return self.crash(before);
        }
        effects.into_iter().for_each(|effect| self.carry_out(id, effect));
    }

    fn tell(&mut self, input: DeskInput) {
        let turn = self.desk.handle(self.now, input).expect("nothing here is refused");
        if !turn.events.is_empty() {
            self.journal.push(Record::Desk(turn.events));
        }
        for effect in turn.effects {
            match effect {
                DeskEffect::Answer { asker, answer } => {
                    match &answer {
                        DeskAnswer::Granted => {}
                        DeskAnswer::Found(_) => self.tally.found += 1,
                        DeskAnswer::Denied(_) => self.tally.denied += 1,
                    }
                    self.mail.push_back((asker.run.clone(), Input::Answered { asker, answer }));
                }
                DeskEffect::Deliver { to, letter } => self.letters.push_back((to, letter)),
                DeskEffect::Cancel { run, why } => {
                    self.tally.replaced += 1;
                    self.mail
                        .push_back((run, Input::Cancel { path: Path::default(), why, by: "desk".into() }));
                }
                DeskEffect::Start(_) => {}
            }
        }
    }

    fn carry_out(&mut self, id: &RunId, effect: Effect) {
        let Some(live) = self.runs.get_mut(id) else { return };
        match effect {
            Effect::Dispatch(job) => {
                if !job.work.claims.is_empty() {
                    let first = Asker { run: id.clone(), path: job.key.path.clone(), attempt: 0 };
                    let held = self.desk.state().holds.range(&first..).next();
                    let held = held.is_some_and(|(asker, _)| asker.run == *id && asker.path == job.key.path);
                    assert!(held, "{} was handed out and holds nothing", job.key);
                }
                live.jobs.insert(job.key, false);
            }
            Effect::Abort(key) => {
                if let Some(told) = live.jobs.get_mut(&key) {
                    *told = true;
                }
            }
            Effect::Ask { .. }
            | Effect::Release { .. }
            | Effect::Listen(_)
            | Effect::Deaf(_)
            | Effect::Conclude(_) => {}
        }
    }

    fn a_job(&mut self) -> Option<(JobKey, bool)> {
        let jobs: Vec<(JobKey, bool)> = self
            .runs
            .values()
            .flat_map(|live| live.jobs.iter().map(|(key, told)| (key.clone(), *told)))
            .collect();
        (!jobs.is_empty()).then(|| self.random.pick(&jobs).clone())
    }

    fn report(&mut self) {
        let Some((job, told)) = self.a_job() else { return };
        let run = job.run.clone();
        self.runs.get_mut(&run).expect("a run").jobs.remove(&job);
        let outcome = match self.random.below(10) {
            _ if told => Outcome::Cancelled("told to".into()),
            0 if !self.calm => Outcome::Failed(Failure::new("auth_failure", "no")),
            1 | 2 if !self.calm => Outcome::Failed(Failure::new("transient", "it broke")),
            _ => Outcome::Done(Value::map([("n", Value::Int(1))])),
        };
        self.offer(&run, Input::Reported { job, outcome });
    }

    fn lose(&mut self) {
        let Some((job, _)) = self.a_job() else { return };
        let run = job.run.clone();
        self.runs.get_mut(&run).expect("a run").jobs.remove(&job);
        self.offer(&run, Input::Lost { job, started: true });
    }

    fn hear(&mut self) {
        if !self.letters.is_empty() && self.random.chance(50) {
            let at = self.random.below(self.letters.len());
            if let Some((to, letter)) = self.letters.remove(at) {
                return self.take_letter(to, letter);
            }
        }
        if !self.mail.is_empty() {
            let at = self.random.below(self.mail.len());
            if let Some((run, input)) = self.mail.remove(at) {
                self.offer(&run, input);
            }
        }
    }

    fn take_letter(&mut self, to: windlass_engine::Address, letter: Letter) {
        self.tally.heard += 1;
        let Letter { id, name, by, value } = letter;
        let input = match to.path.is_run() {
            true => Input::Cancel { path: Path::default(), why: "a message".into(), by },
            false => Input::Signal { id: id.clone(), name, by, value, to: Some(to.path.clone()) },
        };
        let crashes = self.tally.crashes;
        self.offer(&to.run.clone(), input);
        if self.tally.crashes == crashes {
            self.tell(DeskInput::Heard { id, to });
        }
    }

    /// Goes to the next instant at which something is due, mostly.
    fn pass_time(&mut self) {
        let runs = self.runs.values().filter_map(|live| live.run.next_deadline());
        let due = runs.chain(self.desk.next_deadline()).min();
        if let Some(due) = due {
            self.now = self.now.max(due);
        }
        self.tell(DeskInput::Tick);
        let due: Vec<RunId> = self
            .runs
            .values()
            .filter(|live| live.run.next_deadline().is_some_and(|due| due <= self.now))
            .map(|live| live.run.id().clone())
            .collect();
        due.iter().for_each(|run| self.offer(run, Input::Tick));
    }

    fn publish(&mut self) {
        self.messages += 1;
        let name = *self.random.pick(&["go", "go", "stop"]);
        let value = Value::map([("k", Value::text(*self.random.pick(&["a", "b"])))]);
        let id = format!("m{}", self.messages).into();
        self.tell(DeskInput::Published { id, name: name.into(), by: "eve".into(), value });
    }

    fn cancel(&mut self) {
        let runs: Vec<RunId> = self.runs.keys().cloned().collect();
        if !runs.is_empty() {
            let run = self.random.pick(&runs).clone();
            self.offer(&run, Input::Cancel { path: Path::default(), why: "enough".into(), by: "bob".into() });
        }
    }

    /// The owner dies. What was written after `known` may or may not have reached the disk; everything else has. Then another one does
    /// what the runtime does.
    fn crash(&mut self, known: usize) {
        let cut = known + self.random.below(self.journal.len() - known + 1);
        self.tally.crashes += 1;
        self.tally.lost_records += (self.journal.len() - cut) as u64;
        self.log.push(format!("-- crash, {} records are lost --", self.journal.len() - cut));
        self.journal.truncate(cut);
        self.mail.clear();
        self.letters.clear();
        self.replay();
        let runs: Vec<RunId> = self.runs.keys().cloned().collect();
        for id in &runs {
            self.settle_accounts(id);
        }
        for id in runs {
            let live = &self.runs[&id];
            if !self.journal.iter().any(|record| matches!(record, Record::Run(run, _) if *run == id)) {
                // Nobody has heard of it: whoever wanted it starts it again.
                let inputs = live.inputs.clone();
                self.offer_calmly(&id, Input::Start(Box::new(Start { seed: 1, ..Start::with(inputs) })));
                continue;
            }
            let lost = live.run.outstanding().into_iter().filter_map(|effect| match effect {
                Effect::Dispatch(job) => Some(job.key),
                Effect::Abort(key) => Some(key),
                Effect::Ask { .. }
                | Effect::Release { .. }
                | Effect::Listen(_)
                | Effect::Deaf(_)
                | Effect::Conclude(_) => None,
            });
            let lost: Vec<JobKey> = lost.collect();
            self.offer_calmly(&id, Input::TakenUp);
            lost.into_iter().for_each(|job| self.offer_calmly(&id, Input::Lost { job, started: true }));
            for listener in self.runs[&id].run.listeners() {
                self.tell(DeskInput::Listen(Box::new(listener)));
            }
            for effect in self.runs[&id].run.owed_asks() {
                if let Effect::Ask { ask, .. } = effect {
                    self.tell(DeskInput::Ask(ask));
                }
            }
        }
        for effect in self.desk.outstanding() {
            match effect {
                DeskEffect::Deliver { to, letter } => self.letters.push_back((to, letter)),
                DeskEffect::Cancel { run, why } => {
                    self.mail
                        .push_back((run, Input::Cancel { path: Path::default(), why, by: "desk".into() }));
                }
                DeskEffect::Start(_) | DeskEffect::Answer { .. } => {}
            }
        }
    }

    /// Without another crash in it.
    fn offer_calmly(&mut self, id: &RunId, input: Input) {
        let calm = std::mem::replace(&mut self.calm, true);
        self.offer(id, input);
        self.calm = calm;
    }

    fn settle_accounts(&mut self, id: &RunId) {
        let run = &self.runs[id].run;
        let own: Vec<Asker> = self.desk.askers().filter(|asker| asker.run == *id).cloned().collect();
        let begun = self.journal.iter().any(|record| matches!(record, Record::Run(run, _) if run == id));
        let over: Vec<_> = own
            .into_iter()
            .filter(|asker| !begun || !run.needs(asker))
            .map(|asker| (run.ended(&asker), asker))
            .collect();
        let ended = run.outcome().is_some();
        for ((used, end), asker) in over {
            self.tell(DeskInput::Release { asker, used, end });
        }
        if ended {
            self.tell(DeskInput::Gone { run: id.clone() });
        }
    }

    fn replay(&mut self) {
        let desk = self.journal.iter().flat_map(|record| match record {
            Record::Desk(events) => events.as_slice(),
            Record::Run(..) => &[],
        });
        self.desk = Desk::replay(desk);
        for live in self.runs.values_mut() {
            let id = live.run.id().clone();
            let events = self.journal.iter().flat_map(|record| match record {
                Record::Run(run, events) if *run == id => events.as_slice(),
                Record::Run(..) | Record::Desk(_) => &[],
            });
            live.run = Run::replay(id.clone(), live.program.clone(), events).expect(REPLAYS);
            live.jobs.clear();
        }
    }

    fn check(&mut self) {
        self.tally.records = self.journal.len() as u64;
        for (key, limit) in LIMITS {
            let holders = self.desk.state().slots.get(key).map_or(0, BTreeSet::len);
            assert!(holders <= limit, "{holders} hold {key}, and {limit} may");
        }
        for (key, account) in &self.desk.state().accounts {
            let cap = account.cap.clone().unwrap_or_default();
            assert_eq!(account.committed().beyond(&cap), None, "{key} is overspent: {account:?}");
        }
        for live in self.runs.values() {
            let begun = live.run.asks().filter(|asker| asker.path.is_run()).count();
            assert!(begun == 0 || live.jobs.is_empty(), "{} works and was not let in", live.run.id());
        }
        if self.tally.steps.is_multiple_of(16) {
            let desk = self.journal.iter().flat_map(|record| match record {
                Record::Desk(events) => events.as_slice(),
                Record::Run(..) => &[],
            });
            assert!(Desk::replay(desk) == self.desk, "the desk is not what its stream says");
        }
    }

    /// Once all has ended nobody holds or waits for anything.
    fn check_empty(&mut self) {
        while !self.letters.is_empty() || !self.mail.is_empty() {
            self.hear();
        }
        let desk = self.desk.state();
        assert!(desk.holds.is_empty(), "held for ever: {:?}", desk.holds.keys().collect::<Vec<_>>());
        assert!(desk.waiting.is_empty(), "waited for ever: {:?}", desk.waiting.keys().collect::<Vec<_>>());
        assert!(desk.promisers.is_empty(), "promised for ever: {:?}", desk.promisers);
        assert!(desk.ears.is_empty(), "listened for ever: {:?}", desk.ears);
        assert!(desk.letters.is_empty(), "owed for ever: {:?}", desk.letters);
        let reserved = desk.accounts.values().all(|account| account.reserved.is_empty());
        assert!(reserved, "set aside for ever: {:?}", desk.accounts);
    }
}

fn short(input: &Input) -> String {
    format!("{input:?}").chars().take(150).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_and_one_desk_keep_every_promise() {
        let asked = std::env::var("SIM_SEEDS").ok().and_then(|count| count.parse().ok());
        let mut all = Tally::default();
        for seed in 0..asked.unwrap_or(300) {
            match live(seed) {
                Ok(tally) => all.add(&tally),
                Err(broken) => panic!("{broken}"),
            }
        }
        let happened = [all.crashes, all.lost_records, all.found, all.denied, all.replaced, all.heard];
        assert!(
            asked.is_some() || happened.iter().all(|count| *count > 0),
            "something never occurred: {all:?}"
        );
    }
}
