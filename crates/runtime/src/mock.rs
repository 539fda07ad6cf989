//! Mock responses: an executor that responds for jobs, and a client that decides at gates and sends signals.

use crate::ids;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use windlass_engine::{Decision, Event, GateDecision, Input, Job, Path, Run, Timestamp, What, Work};
use windlass_executors::{Answer, BoxFuture, Context, Executor, GateAnswer, Returned, Script, Traits};
use windlass_ir::Duration;
use windlass_ir::dialect::Dialects;

/// The prefix of the ids of mocked decisions and signals.
const MOCK: &str = "script-";

/// Responds to one job from a mock file.
#[derive(Debug)]
pub(crate) struct Mock(pub Answer);

impl Executor for Mock {
    fn traits(&self, _: &Work) -> Traits {
        Traits { immediate: true, ..Traits::default() }
    }

    fn start(&self, _: Job, _: Context) -> BoxFuture<'_, Returned> {
        let Answer { outcome, after, hangs, used, .. } = self.0.clone();
        // A job that hangs ends after everything else that is due at the same instant.
        let after = after.plus(Duration(u64::from(hangs)));
        Box::pin(std::future::ready(Returned::Later { after, outcome, used }))
    }
}

/// An input that the mock client sends at an instant of the run's own time.
#[derive(Debug)]
pub(crate) struct Planned {
    pub at: Timestamp,
    pub input: Input,
    /// The gate, for a decision.
    pub gate: Option<Path>,
}

/// The number of mocked decisions of each gate, by its visible id.
pub(crate) fn decided(dialects: Dialects, run: &Run, events: &[Event]) -> HashMap<String, usize> {
    let mut decided = HashMap::new();
    for event in events {
        if let What::Decided { id, path, .. } = &event.what
            && id.starts_with(MOCK)
        {
            *decided.entry(ids::name(dialects, run, path).id).or_default() += 1;
        }
    }
    decided
}

/// The mock client of one run.
#[derive(Debug)]
pub(crate) struct Player {
    script: Arc<Script>,
    dialects: Dialects,
    /// The number of mocked decisions of each gate, by its visible id.
    decided: HashMap<String, usize>,
    /// The names of the gates seen so far.
    names: HashMap<Path, Gate>,
    /// Gates with a planned decision.
    pending: HashSet<Path>,
    has_signalled: bool,
}

#[derive(Clone, Debug)]
struct Gate {
    id: String,
    plain: Arc<str>,
    /// All iterations share the name of the gate, so each takes only one decision.
    takes_one: bool,
}

impl Player {
    pub fn new(script: Arc<Script>, dialects: Dialects) -> Self {
        let (decided, names, pending) = (HashMap::new(), HashMap::new(), HashSet::new());
        Self { script, dialects, decided, names, pending, has_signalled: false }
    }

    /// Plans the decisions and signals of a run that was just loaded, except earlier decisions.
    pub fn resumed(&mut self, run: &Run, decided: HashMap<String, usize>, now: Timestamp) -> Vec<Planned> {
        self.decided = decided;
        self.pending.clear();
        let open: Vec<Path> = run.open_gates().cloned().collect();
        let mut planned = self.signals(run.started_at());
        for path in open {
            self.learn(run, &path);
            planned.extend(self.next(&path, now));
        }
        planned
    }

    /// Remembers the name of a gate while the run is in memory.
    pub fn learn(&mut self, run: &Run, path: &Path) {
        let ids::Name { id, plain } = ids::name(self.dialects, run, path);
        let dialect = self.dialects.named(&run.program().plan.dialect);
        let takes_one = dialect.shares_ids() && path.frames().next().is_some();
        self.names.insert(path.clone(), Gate { id, plain, takes_one });
    }

    /// Plans the decisions and signals that follow from new events.
    pub fn receive(&mut self, events: &[Event], now: Timestamp) -> Vec<Planned> {
        let mut planned = Vec::new();
        for event in events {
            match &event.what {
                What::Started { .. } => planned.extend(self.signals(event.at)),
                What::Entered { path, decision: Decision::Gate(_) } => planned.extend(self.next(path, now)),
                What::Decided { id, path, .. } if id.starts_with(MOCK) => {
                    planned.extend(self.after_one(path, now));
                }
                // The next instance of the gate takes the next decision.
                What::SentBack { gate, .. } => {
                    self.pending.remove(gate);
                    planned.retain(|planned: &Planned| planned.gate.as_ref() != Some(gate));
                }
                _ => {}
            }
        }
        planned
    }

    /// Plans the next decision for a gate after one was made or refused.
    pub fn after_one(&mut self, path: &Path, now: Timestamp) -> Option<Planned> {
        let gate = self.names.get(path)?.clone();
        self.pending.remove(path);
        *self.decided.entry(gate.id).or_default() += 1;
        if gate.takes_one { None } else { self.next(path, now) }
    }

    /// Plans the signals, relative to the start of the run. The run ignores a repeated signal because of its id.
    fn signals(&mut self, started: Timestamp) -> Vec<Planned> {
        if std::mem::replace(&mut self.has_signalled, true) {
            return Vec::new();
        }
        let planned = |(number, signal): (usize, &windlass_executors::Signal)| Planned {
            at: started.plus(signal.at),
            input: Input::Signal {
                id: format!("{MOCK}signal-{number}").into(),
                name: signal.name.clone(),
                by: "script".into(),
                value: signal.value.clone(),
                to: None,
            },
            gate: None,
        };
        self.script.signals.iter().enumerate().map(planned).collect()
    }

    fn next(&mut self, path: &Path, now: Timestamp) -> Option<Planned> {
        if self.pending.contains(path) {
            return None;
        }
        let Gate { id, plain, .. } = self.names.get(path)?;
        let number = self.decided.get(id).copied().unwrap_or_default();
        let answer = self.script.gates.decision(id, plain, number)?.clone();
        let GateAnswer { choice, by, reason, fields, after } = answer;
        let by = by.unwrap_or_else(|| "script".into());
        let decision = GateDecision { choice, by, reason, form: fields };
        let id = format!("{MOCK}{id}-{number}").into();
        let input = Input::Decide { id, path: path.clone(), decision };
        self.pending.insert(path.clone());
        Some(Planned { at: now.plus(after), input, gate: Some(path.clone()) })
    }
}
