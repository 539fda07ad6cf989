//! Starts runs: for a client, for a trigger, or again under the same start key.

use super::{Engine, Error, FILE, Handle, PLAN, RETRY_OF, STEPS, nothing};
use crate::clock::Clock;
use crate::config::RECORDED;
use crate::follow::Since;
use crate::host::Host;
use crate::scheduler::{Message, Patience, Watch};
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use tokio::sync::oneshot;
use windlass_engine::{
    BadRunId, Begin, Claim, CoordinatorInput, Full, Kept, Lineage, Order, Reach, Refused, Reply, Run,
    RunBudget, RunId, Timestamp,
};
use windlass_ir::plan::FORMAT;
use windlass_ir::{Duration, Plan, Value};
use windlass_store::Entry;

/// How long a second start with the same key returns the first run.
const START_KEY_TTL: Duration = Duration::from_secs(24 * 3600);

/// The actor recorded when a start with the same key continues an earlier run.
const BEFORE: &str = "limits";

/// How a run is started.
#[derive(Debug)]
pub struct Start {
    pub run: Option<RunId>,
    pub inputs: Value,
    /// The user who starts it, if known.
    pub by: Option<Arc<str>>,
    /// The source of the plan, stored for reports.
    pub source: String,
    pub overrides: String,
    /// The workflow file. Calls resolve relative to it.
    pub file: Option<PathBuf>,
    pub host: Host,
    pub clock: Clock,
    pub patience: Patience,
    /// Claims in addition to those of the plan.
    pub claims: Vec<Claim>,
    /// The workflows that have called it.
    pub lineage: Lineage,
    /// The runs that wait for it, the outermost first.
    pub parents: Vec<RunId>,
    /// The budgets of those runs.
    pub budgets: Vec<RunBudget>,
    pub beginning: Beginning,
}

/// Special conditions for the start of a run; none by default.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Beginning {
    /// The run does nothing before this time.
    pub at: Option<Timestamp>,
    /// How far the run goes, if not to its end.
    pub reach: Option<Reach>,
    /// The results that it keeps from an earlier run, and the id of that run.
    pub keep: Vec<Kept>,
    pub of: Option<RunId>,
    /// The seed of every random choice; random by default.
    pub seed: Option<u64>,
    /// Changes of the ledger, made together with the start.
    #[serde(skip)]
    pub entries: Vec<Entry>,
}

/// A new run, or an earlier run with the same start key.
pub(crate) enum Begun {
    New(RunId),
    Before(RunId),
}

impl Engine {
    /// Starts a run of a plan and follows it. The start is durable when this returns.
    pub async fn start(self: &Arc<Self>, plan: &Plan, start: Start) -> Result<Handle, Error> {
        let (host, clock, patience) = (start.host.clone(), start.clock, start.patience);
        let (reply, watching) = oneshot::channel();
        match self.begin(plan, start, Some(Watch { since: Since::Now, patience, reply })).await? {
            Begun::New(id) => self.handle(id, watching.await),
            Begun::Before(id) => self.started_before(&id, host, clock, patience).await,
        }
    }

    /// Starts a run of a plan. The start is durable when this returns.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        plan: &Plan,
        mut start: Start,
        watch: Option<Watch>,
    ) -> Result<Begun, Error> {
        start.host =
            start.host.in_project_of(self.dialects.named(&plan.dialect)).in_time(start.clock, start.patience);
        let about = about(plan, &start);
        let host = self.equip(start.host);
        let program = self.stored(plan, start.source, start.overrides).await?;
        let (id, is_new) = match start.run {
            Some(id) => (id, false),
            None => (new_id(&start.clock)?, true),
        };
        let mut claims = start.claims;
        // A called run shares the slot of its callers.
        if let Some(limit) = host.limits.runs.filter(|_| start.parents.is_empty()) {
            let (key, full) = ("machine:runs".into(), Full::Wait);
            claims.push(Claim::Slot { key, limit, full });
        }
        let Beginning { at, reach, keep, seed, of, entries } = start.beginning;
        // A retry is always a new run, even if its start key is the same.
        let once = match of {
            None => Run::new(id.clone(), program.clone()).start_key(&start.inputs)?,
            Some(_) => None,
        };
        let beginning = windlass_engine::Start {
            inputs: start.inputs,
            seed: seed.unwrap_or_else(rand::random),
            about,
            by: start.by,
            lineage: start.lineage,
            keep,
            claims,
            parents: start.parents,
            budgets: start.budgets,
            at,
            reach,
        };
        let begin = Begin {
            run: id,
            program,
            start: beginning,
            execution: self.execution(host.clone()),
            is_new,
            once: once.map(|key| (key, START_KEY_TTL)),
        };
        self.begin_once(begin, host, watch, entries).await
    }

    async fn begin_once(
        &self,
        begin: Begin,
        host: Arc<Host>,
        watch: Option<Watch>,
        entries: Vec<Entry>,
    ) -> Result<Begun, Error> {
        let id = begin.run.clone();
        let was_active = self.presence.note_active(&id);
        let again = begin.once.is_some().then(|| begin.clone());
        let message = |reply| Message::Begin { begin: Box::new(begin), host: host.clone(), watch, reply };
        let reply = self.ask(entries, message).await;
        // The refusal does not concern a run that was here before.
        if !was_active && !matches!(reply, Ok(Reply::Done)) {
            self.note_ended(&id);
        }
        match (reply?, again) {
            (Reply::Done, _) => Ok(Begun::New(id)),
            (Reply::Refused(Refused::AlreadyStarted), _) => Err(Error::RunExists(id)),
            (Reply::Refused(refused), _) => Err(Error::Refused(refused)),
            (Reply::Earlier(earlier), Some(begin)) => match self.exists(&earlier).await? {
                true => Ok(Begun::Before(earlier)),
                // An earlier process took the key and died before it started the run.
                false => {
                    let begin = Begin { run: earlier, once: None, is_new: false, ..begin };
                    Box::pin(self.begin_once(begin, host, None, Vec::new())).await
                }
            },
            (
                Reply::NoRun
                | Reply::Unusable
                | Reply::Published(_)
                | Reply::NotShared(_)
                | Reply::Earlier(_),
                _,
            ) => Err(Error::Store(windlass_store::Error::Stopped)),
        }
    }

    /// Follows or continues the run that was started earlier with the same key.
    async fn started_before(
        self: &Arc<Self>,
        id: &RunId,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let view = self.view_of_run(id).await?;
        if view.ended_at().is_none() {
            return self.resume(id, nothing(), BEFORE, host, clock, patience).await;
        }
        Ok(self.follow_resting(id, &view, Since::Now))
    }

    pub(crate) async fn exists(&self, id: &RunId) -> Result<bool, Error> {
        Ok(!self.store.journal.back(id, None, 1).await?.is_empty())
    }

    /// Starts a run that a trigger ordered, unless it has already begun.
    pub(crate) async fn start_ordered(self: &Arc<Self>, order: Order) {
        let _one_at_a_time = self.ordered.lock().await;
        let run = order.run.clone();
        let begun = match self.exists(&run).await {
            Ok(true) => Ok(run.clone()),
            Ok(false) => self.begin_ordered(order).await,
            Err(error) => Err(error),
        };
        if let Ok(begun) = begun {
            self.share(CoordinatorInput::Arrived { run: run.clone() });
            if begun != run {
                // Another run has its start key, so no run will ever release what this order holds.
                self.share(CoordinatorInput::Gone { run });
            }
        }
    }

    async fn begin_ordered(self: &Arc<Self>, order: Order) -> Result<RunId, Error> {
        let Order { run, plan, inputs, claims } = order;
        let missing = || Error::NoPlan(run.clone());
        let stored = self.store.plans.get(&plan).await?.ok_or_else(missing)?;
        let (source, overrides) = (stored.source.clone(), stored.overrides.clone());
        let plan = stored.read(FORMAT)?;
        let start = Start {
            run: Some(run),
            inputs,
            by: None,
            source,
            overrides,
            file: None,
            host: self
                .default_host()
                .unwrap_or_else(|| Host::new(windlass_executors::Environment::default())),
            clock: Clock::Real,
            patience: Patience::Work,
            claims,
            lineage: Lineage::default(),
            parents: Vec::new(),
            budgets: Vec::new(),
            beginning: Beginning::default(),
        };
        match self.begin(&plan, start, None).await? {
            Begun::New(id) | Begun::Before(id) => Ok(id),
        }
    }
}

/// The facts that the start of a run records about it.
fn about(plan: &Plan, start: &Start) -> Value {
    let text = |path: Option<&FilePath>| path.and_then(FilePath::to_str).map(Value::text);
    let file = start.file.as_deref();
    // Steps that only handle failures are not part of the way.
    let steps = plan.roots.iter().filter(|step| !plan.step(**step).takes_over).count();
    let steps = i64::try_from(steps).unwrap_or(i64::MAX);
    let always = [
        (PLAN, Value::text(plan.digest.as_str())),
        ("workflow", Value::Text(plan.header.id.clone())),
        ("dialect", Value::Text(plan.dialect.clone())),
        ("directory", Value::text(start.host.environment.directory.to_string_lossy())),
        ("scripted", Value::Bool(start.host.script.is_some())),
        (STEPS, Value::Int(steps)),
    ];
    let known = [
        (RECORDED, text(start.host.config.as_deref())),
        (FILE, text(file)),
        ("folder", text(file.and_then(FilePath::parent))),
        (RETRY_OF, start.beginning.of.as_ref().map(|of| Value::text(of.as_str()))),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Value::map(always.into_iter().chain(known))
}

/// A new run id: the start time, so that ids sort by time, and a number. Each process counts from a random number, which avoids
/// collisions.
pub fn new_id(clock: &Clock) -> Result<RunId, BadRunId> {
    static NUMBER: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(rand::random()));
    let now = clock.now().to_string();
    let digits: String = now.chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    RunId::new(&format!("{day}-{time}-{:08x}", NUMBER.fetch_add(1, Ordering::Relaxed)))
}
