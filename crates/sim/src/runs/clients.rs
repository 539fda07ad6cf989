//! Clients that start, cancel, decide, signal, pause, resume, publish and clean up, at any time and concurrently.

use super::process::For;
use super::tally::Fault;
use super::workflows::WORKFLOWS;
use super::world::{Spec, World, log};
use std::sync::Arc;
use windlass_engine::{
    Choice, CoordinatorEvent, CoordinatorInput, CoordinatorWhat, Event, GateDecision, Input, Mail, Path,
    Presence, Refused, Reply, Resume, RunId, Start, What,
};
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Value};

/// A client that waits for at most one reply at a time.
#[derive(Debug, Default)]
pub struct Client {
    waits: Option<Act>,
    /// The process died before it replied.
    unsure: Option<Act>,
}

/// A request of a client, with a unique name.
#[derive(Clone, Debug)]
pub struct Act {
    what: Want,
    name: Arc<str>,
    /// The run existed when the client asked.
    existed: bool,
    /// The client repeats a request under the same name.
    again: bool,
}

#[derive(Clone, Debug)]
enum Want {
    Start { run: RunId, spec: Spec, once: Option<Arc<str>> },
    Cancel { run: RunId, path: Path },
    Decide { run: RunId, gate: Path },
    Signal { run: RunId, signal: Arc<str> },
    Pause { run: RunId },
    Resume { run: RunId, changes: bool },
    Publish { message: &'static str, k: &'static str },
    Cap,
    Reset,
    Close { run: RunId },
}

impl Want {
    fn run(&self) -> Option<&RunId> {
        match self {
            Self::Start { run, .. }
            | Self::Cancel { run, .. }
            | Self::Decide { run, .. }
            | Self::Signal { run, .. }
            | Self::Pause { run }
            | Self::Resume { run, .. }
            | Self::Close { run } => Some(run),
            Self::Publish { .. } | Self::Cap | Self::Reset => None,
        }
    }

    /// Whether repeating the request under the same name has no further effect.
    fn has_id(&self) -> bool {
        match self {
            Self::Start { .. } | Self::Decide { .. } | Self::Signal { .. } | Self::Publish { .. } => true,
            Self::Cancel { .. }
            | Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Cap
            | Self::Reset
            | Self::Close { .. } => false,
        }
    }
}

impl Client {
    pub fn owner_died(&mut self) {
        self.unsure = self.waits.take().or(self.unsure.take());
    }
}

/// The budget that clients change.
const BUDGET: &str = "all";

/// The most runs that clients start.
const RUNS: usize = 7;

impl World {
    /// Lets one idle client make a request.
    pub fn ask(&mut self) {
        let free: Vec<usize> =
            (0..self.clients.len()).filter(|number| self.clients[*number].waits.is_none()).collect();
        if free.is_empty() {
            return;
        }
        let number = *self.random.pick(&free);
        let again = self.clients[number].unsure.take().filter(|act| act.what.has_id());
        let act = match again.filter(|_| self.random.chance(70)) {
            Some(act) => Act { again: true, ..act },
            None => {
                let Some(what) = self.want() else { return };
                let name = self.name("n").into();
                Act { what, name, existed: false, again: false }
            }
        };
        let existed = act.what.run().is_some_and(|run| self.store.has(run));
        let act = Act { existed, ..act };
        log!(self, "client {number} wants {act:?}");
        self.clients[number].waits = Some(act.clone());
        self.request(number, act);
    }

    fn want(&mut self) -> Option<Want> {
        let roots = self.specs.values().filter(|spec| spec.parents.is_empty()).count();
        if roots < RUNS && self.random.chance(if roots < 2 { 70 } else { 18 }) {
            return Some(self.want_run());
        }
        let runs: Vec<RunId> = self.specs.keys().cloned().collect();
        let run = (!runs.is_empty()).then(|| self.random.pick(&runs).clone())?;
        let workflow = &WORKFLOWS[self.specs[&run].workflow];
        Some(match self.random.below(20) {
            0..=4 if !workflow.gates.is_empty() => {
                let gate = *self.random.pick(workflow.gates);
                Want::Decide { run, gate: Path::default().child(gate.into(), None) }
            }
            5..=8 if !workflow.signals.is_empty() => {
                let signal = *self.random.pick(workflow.signals);
                Want::Signal { run, signal: signal.into() }
            }
            9 | 10 => Want::Cancel { path: self.path_in(&run), run },
            11 => Want::Pause { run },
            12 | 13 => Want::Resume { run, changes: self.random.chance(40) },
            14 => Want::Cap,
            15 => Want::Reset,
            16 if self.store.result(&run).is_some() => Want::Close { run },
            _ => {
                let message = *self.random.pick(&["go", "go", "stop"]);
                let k = *self.random.pick(&["a", "b"]);
                Want::Publish { message, k }
            }
        })
    }

    fn want_run(&mut self) -> Want {
        let workflows: Vec<usize> =
            (0..WORKFLOWS.len()).filter(|number| !WORKFLOWS[*number].is_called).collect();
        let workflow = *self.random.pick(&workflows);
        let is_virtual = self.random.chance(10);
        let spec = Spec { workflow, is_virtual, is_patient: self.random.chance(50), parents: Vec::new() };
        let once = self.random.chance(15).then(|| format!("once-{}", self.random.below(2)).into());
        let run = RunId::new(&self.name("r")).expect("a valid id");
        Want::Start { run, spec, once }
    }

    /// Usually the path of the run, otherwise that of one of its steps.
    fn path_in(&mut self, run: &RunId) -> Path {
        let jobs: Vec<Path> =
            self.executors.jobs.keys().filter(|job| job.run == *run).map(|job| job.path.clone()).collect();
        match !jobs.is_empty() && self.random.chance(40) {
            true => self.random.pick(&jobs).clone(),
            false => Path::default(),
        }
    }

    fn request(&mut self, number: usize, act: Act) {
        let (reply, name) = (For::Client(number), act.name);
        let by = name.clone();
        let (run, mail) = match act.what {
            Want::Start { run, spec, once } => {
                let mut begin = self.begin_of(&run, spec, |start| Start { by: Some(by.clone()), ..start });
                begin.is_new = !act.again;
                begin.once = once.map(|key| (key, Duration::from_secs(3_600)));
                self.tally.runs += u64::from(!act.again);
                (run, Mail::Begin(Box::new(begin)))
            }
            Want::Cancel { run, path } => {
                self.tally.met(Fault::Cancel, self.runs.presence(&run));
                (run, Mail::Input(Input::Cancel { path, why: name, by }))
            }
            Want::Decide { run, gate } => {
                let choice = if self.random.chance(80) { Choice::Approve } else { Choice::Reject };
                let form = Value::map::<&str>([]);
                let decision = GateDecision { choice, by, reason: None, form };
                (run, Mail::Input(Input::Decide { id: name, path: gate, decision }))
            }
            Want::Signal { run, signal } => {
                let value = Value::map([("n", Value::Int(1))]);
                (run, Mail::Input(Input::Signal { id: name, name: signal, by, value, to: None }))
            }
            Want::Pause { run } => (run, Mail::Input(Input::Pause { by })),
            Want::Resume { run, changes } => {
                let changes = changes.then(|| ("n", Value::Int(2)));
                let inputs = Value::map(changes);
                (run, Mail::Resume(Resume { wanted: Some((by, inputs)), reopens: false }))
            }
            Want::Close { run } => (run, Mail::Input(Input::Close)),
            Want::Publish { message, k } => {
                let value = Value::map([("k", Value::text(k))]);
                let input = CoordinatorInput::Published { id: name, name: message.into(), by, value };
                return self.tell(input, reply);
            }
            Want::Cap => {
                let calls = Some(1_000 + self.names);
                let cap = Budget { calls, ..Budget::default() };
                let input = CoordinatorInput::Cap { budget: BUDGET.into(), cap, zone: None };
                return self.tell(input, reply);
            }
            Want::Reset => return self.tell(CoordinatorInput::Reset { budget: BUDGET.into() }, reply),
        };
        self.send(&run, mail, Some(reply));
        self.sometimes_repeat_a_report();
    }

    fn tell(&mut self, input: CoordinatorInput, reply: For) {
        log!(self, "to the coordinator: {input:?}");
        let to = self.reply_to(reply);
        self.runs.tell(input, Some(to), self.time.now());
    }

    /// Delivers a report again, much too late.
    fn sometimes_repeat_a_report(&mut self) {
        if !self.reported.is_empty() && self.random.chance(8) {
            let (job, outcome) = self.random.pick(&self.reported).clone();
            if self.store.has(&job.run) {
                self.tally.met(Fault::LateMail, self.runs.presence(&job.run));
                let report = Mail::Input(Input::Reported { job: job.clone(), outcome });
                self.send(&job.run, report, Some(For::Nothing));
            }
        }
    }

    pub fn client_gets(&mut self, number: usize, reply: &Reply) {
        let act = self.clients[number].waits.take().expect("a request that waits for a reply");
        self.check_reply(&act, reply);
        if let (Want::Close { run }, Reply::Done) = (&act.what, reply) {
            self.remove(run);
        }
    }

    /// Removes a closed run from the journal.
    fn remove(&mut self, run: &RunId) {
        let is_alone = !self.store.is_writing(run) && self.runs.presence(run) == Presence::Resting;
        let is_root = self.specs.get(run).is_some_and(|spec| spec.parents.is_empty());
        if is_alone && is_root {
            log!(self, "{run} is removed");
            self.store.remove(run);
            self.process.shown.remove(run);
            self.specs.remove(run);
            self.damaged.remove(run);
            self.executors.jobs.retain(|job, _| job.run != *run);
            self.executors.started.retain(|job| job.run != *run);
            self.reported.retain(|(job, _)| job.run != *run);
            self.tally.removed += 1;
        }
    }

    /// A reply is true: an accepted request is durable, and a refused one changed nothing.
    fn check_reply(&self, act: &Act, reply: &Reply) {
        let Act { what, name, existed, again } = act;
        let removed = what.run().is_some_and(|run| !self.specs.contains_key(run));
        if removed {
            return;
        }
        let events = what.run().map_or_else(Vec::new, |run| self.store.events(run).collect());
        let found = events.iter().filter(|event| is_about(event, name)).count();
        let fail = |why: &str| panic!("{what:?} of `{name}` was answered with {reply:?}, and {why}");
        match (reply, what) {
            (Reply::Done, Want::Start { .. }) if events.is_empty() => fail("the run has no record"),
            (Reply::Done, Want::Close { .. }) => {
                if !events.iter().any(|event| event.what == What::Closed) {
                    fail("the run is not closed");
                }
            }
            // Nothing is recorded if the run was not paused and nothing changed.
            (Reply::Done, Want::Resume { .. }) => {}
            (Reply::Done, _) if found != 1 => fail(&format!("the journal contains it {found} times")),
            (Reply::Done, _) => {}
            (Reply::Published(_), _) => {
                let mut stream = self.store.coordinator();
                if !matches!(what, Want::Reset) && !stream.any(|event| is_recorded(event, what, name)) {
                    fail("the coordinator's journal does not contain it");
                }
            }
            (Reply::Refused(Refused::Finished), _)
                if !events.iter().any(|event| matches!(event.what, What::Concluded { .. })) =>
            {
                fail("the run has no result");
            }
            (Reply::Refused(_) | Reply::NotShared(_), _) if found > 0 && !again => {
                fail("the journal contains it");
            }
            (Reply::Refused(refused), Want::Decide { .. } | Want::Signal { .. }) if found > 0 => {
                fail(&format!("it was accepted before: {refused}"));
            }
            (Reply::Refused(_) | Reply::NotShared(_), _) => {}
            (Reply::NoRun, _) if *existed && !events.is_empty() => fail("the run exists"),
            (Reply::NoRun, _) => {}
            (Reply::Unusable, _) => {
                if !what.run().is_some_and(|run| self.damaged.contains(run)) {
                    fail("its journal is good");
                }
            }
            (Reply::Earlier(earlier), Want::Start { run, .. }) => {
                let known = self.store.has(earlier) || !self.specs.contains_key(earlier);
                if earlier == run || !known {
                    fail("there is no such run");
                }
            }
            (Reply::Earlier(_), _) => fail("it starts nothing"),
        }
    }
}

/// Whether the request with this name caused the event.
fn is_about(event: &Event, name: &Arc<str>) -> bool {
    match &event.what {
        What::Started { by, .. } => by.as_ref() == Some(name),
        What::Decided { id, .. } | What::Signalled { id, .. } => id == name,
        What::CancelRequested { why, .. } => why == name,
        What::Paused { by, .. } => by == name,
        _ => false,
    }
}

fn is_recorded(event: &CoordinatorEvent, what: &Want, name: &Arc<str>) -> bool {
    match (&event.what, what) {
        (CoordinatorWhat::Published { id, .. }, Want::Publish { .. }) => id == name,
        (CoordinatorWhat::BudgetIs { cap, .. }, Want::Cap) => {
            let calls = cap.as_ref().and_then(|cap| cap.calls);
            calls.is_some_and(|calls| name.strip_prefix('n').is_some_and(|n| n.parse() == Ok(calls - 1_000)))
        }
        (_, _) => false,
    }
}
