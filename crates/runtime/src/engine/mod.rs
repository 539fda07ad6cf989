//! A data folder, opened: runs are started and told things here. `looking` reads them, and `error` says what can go wrong.

use crate::artefacts::Shelf;
use crate::clock::Clock;
use crate::config::{Config, RECORDED};
use crate::coordinator::{Budgets, Machine};
use crate::follow::{Since, Updates, feed};
use crate::host::Host;
use crate::library::Reader;
use crate::lock::Lock;
use crate::ownership;
use crate::presence::Executed;
use crate::report;
use crate::rows::Rows;
use crate::scheduler::{Message, Patience, Scheduler, Sender, Watch, Watching};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use windlass_engine::{
    BadRunId, Begin, Claim, Coordinator, CoordinatorEvent, CoordinatorInput, CoordinatorState, Full, Input,
    JobKey, Kept, Lineage, Mail, Order, Outcome, Program, Reach, Refused, Reply, Resume, Run, RunBudget,
    RunId, Runs, Timestamp, View,
};
use windlass_executors::{Children, Notes, Recorded, end_orphans, orphaned_runs};
use windlass_ir::dialect::Dialects;
use windlass_ir::plan::FORMAT;
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Plan, RunStatus, Value};
use windlass_store::{Durability, Options, Store, StoredPlan};

mod error;
mod looking;

pub use error::Error;

/// The owner of a data folder, or a process that only looks at it.
#[derive(Debug)]
pub struct Engine {
    store: Store,
    folder: PathBuf,
    /// Itself, for the tasks that it starts.
    this: Weak<Self>,
    scheduler: OnceLock<Sender>,
    /// What the scheduler starts with; none for a process that only looks.
    opening: Mutex<Option<Opening>>,
    /// Where jobs record notes and costs, and the other end until the scheduler takes it.
    pub(crate) notes: Notes,
    pub(crate) artefacts: Arc<Shelf>,
    recorded: Mutex<Option<mpsc::UnboundedReceiver<Recorded>>>,
    /// This many tasks read runs at a time.
    pub(crate) reading: Semaphore,
    house: Mutex<Option<Host>>,
    budgets: Budgets,
    /// Reads the workflows that others call.
    reader: OnceLock<Arc<dyn Reader>>,
    children: Option<Arc<Children>>,
    /// The runs that an earlier owner of the folder has left processes of, once that was looked for.
    orphaned: OnceLock<BTreeSet<RunId>>,
    dialects: Dialects,
    /// Runs that were started or resumed here and have no result.
    active: Mutex<HashSet<RunId>>,
    /// The runs that this process executes; none for a process that only looks.
    executed: Option<Mutex<Executed>>,
    /// Programs by the digest of their plan, which is stored before its program is here.
    programs: Mutex<HashMap<String, Arc<Program>>>,
    /// Held while something is started that a trigger has ordered.
    ordered: tokio::sync::Mutex<()>,
    guests: Guests,
    /// Why this process must not use the folder any more, once that is so.
    broken: watch::Sender<Option<windlass_store::Error>>,
    /// Held while a plan is stored, and alone while unused ones are removed.
    storing: tokio::sync::RwLock<()>,
    /// None for a process that only looks.
    _lock: Option<Lock>,
}

/// What the scheduler starts with.
#[derive(Debug)]
struct Opening {
    /// The coordinator, the number of its last record, and how many events it has.
    coordinator: (Coordinator, Option<u64>, usize),
    /// Runs with a result that still hold something at the coordinator.
    settle: Vec<RunId>,
}

/// The clients that are being served.
#[derive(Debug, Default)]
struct Guests {
    here: Arc<()>,
    /// Whether a client has asked for anything.
    asked: AtomicBool,
    changed: Arc<Notify>,
}

/// How long starts with the same key are the same run.
const START_KEY_TTL: Duration = Duration::from_secs(24 * 3600);

/// What a run knows the digest of its plan by, and the file of its workflow.
pub(crate) const PLAN: &str = "plan";
pub(crate) const FILE: &str = "file";

/// Under which word a run knows the one that it takes over from.
pub const RETRY_OF: &str = "retry_of";

/// A client that neither listens nor goes away is not waited for longer than this.
const GUEST_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

/// Somebody who is being served.
#[derive(Debug)]
pub(crate) struct Guest {
    here: Option<Arc<()>>,
    left: Arc<Notify>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Gone first, told afterwards: whoever is woken counts who is left.
        self.here = None;
        self.left.notify_waiters();
    }
}

/// How a run is started.
#[derive(Debug)]
pub struct Start {
    pub run: Option<RunId>,
    pub inputs: Value,
    /// Who starts it, where that is known.
    pub by: Option<Arc<str>>,
    /// What the plan was made of, kept for whoever looks at the run later.
    pub source: String,
    pub overrides: String,
    /// Where it was read, for workflows that are called from there.
    pub file: Option<PathBuf>,
    pub host: Host,
    pub clock: Clock,
    pub patience: Patience,
    /// What it has to wait for beside what its plan says.
    pub claims: Vec<Claim>,
    /// The workflows that have called it.
    pub lineage: Lineage,
    /// The runs that wait for it, the outermost first.
    pub parents: Vec<RunId>,
    /// The budgets of those runs.
    pub budgets: Vec<RunBudget>,
    pub beginning: Beginning,
}

/// What is special about the beginning of a run: nothing, by default.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Beginning {
    /// It does nothing before.
    pub at: Option<Timestamp>,
    /// How far it goes, where that is not to its end.
    pub reach: Option<Reach>,
    /// What it takes over of an earlier run, and which one that is.
    pub keep: Vec<Kept>,
    pub of: Option<RunId>,
    /// What every random choice is drawn from, where that is not left to chance.
    pub seed: Option<u64>,
}

/// A run that is followed.
#[derive(Debug)]
pub struct Handle {
    pub id: RunId,
    pub updates: Updates,
    /// How it stands when its follower has seen enough.
    pub done: oneshot::Receiver<Result<RunStatus, Error>>,
    engine: Arc<Engine>,
}

impl Handle {
    /// Tells the run something and waits until that is durable.
    pub async fn tell(&self, input: Input) -> Result<(), Error> {
        self.engine.tell(&self.id, input).await
    }

    /// What happens, and how it stands in the end.
    pub(crate) fn split(self) -> (Updates, impl Future<Output = Result<RunStatus, Error>>) {
        let (done, id, engine) = (self.done, self.id, self.engine);
        (self.updates, async move { ended(done, id, &engine).await })
    }

    /// Waits until it has ended, or until its follower would wait for nothing else.
    pub async fn outcome(self) -> Result<RunStatus, Error> {
        drop(self.updates);
        ended(self.done, self.id, &self.engine).await
    }
}

/// How a run stands when its follower has seen enough. A run that was parked says why when it is read.
async fn ended(
    done: oneshot::Receiver<Result<RunStatus, Error>>,
    id: RunId,
    engine: &Arc<Engine>,
) -> Result<RunStatus, Error> {
    match done.await {
        Ok(status) => status,
        Err(_) => {
            let run = id.clone();
            engine.looking(move |engine| engine.check(&run)).await?;
            Err(Error::OwnerGone(id))
        }
    }
}

impl Engine {
    /// Becomes the owner of a data folder, which is made if it is not there.
    pub fn open(folder: &FilePath, durability: Durability, dialects: Dialects) -> Result<Arc<Self>, Error> {
        let failed =
            |error: std::io::Error| Error::Folder { folder: folder.to_owned(), cause: error.to_string() };
        let lock = Lock::take(folder)?;
        let store = Store::open(folder, options(durability, dialects))?;
        let children = Children::open(folder).map_err(failed)?;
        Self::of(store, folder, dialects, Some(Arc::new(children)), Some(lock), false)
    }

    fn of(
        store: Store,
        folder: &FilePath,
        dialects: Dialects,
        children: Option<Arc<Children>>,
        lock: Option<Lock>,
        looks: bool,
    ) -> Result<Arc<Self>, Error> {
        let opening = if looks { None } else { Some(Opening::of(&store)?) };
        let budgets = Budgets::default();
        if let Some(opening) = &opening {
            budgets.note(opening.coordinator.0.state());
        }
        let (notes, recorded) = Notes::channel();
        let artefacts = Shelf::of(folder);
        Ok(Arc::new_cyclic(|this| Self {
            store,
            folder: folder.to_owned(),
            this: this.clone(),
            scheduler: OnceLock::new(),
            opening: Mutex::new(opening),
            notes,
            artefacts,
            recorded: Mutex::new(Some(recorded)),
            reading: Semaphore::new(READERS),
            house: Mutex::default(),
            budgets,
            reader: OnceLock::new(),
            children,
            orphaned: OnceLock::new(),
            dialects,
            active: Mutex::default(),
            executed: (!looks).then(|| Mutex::new(Executed::nothing())),
            programs: Mutex::default(),
            ordered: tokio::sync::Mutex::default(),
            guests: Guests::default(),
            broken: watch::Sender::new(None),
            storing: tokio::sync::RwLock::default(),
            _lock: lock,
        }))
    }

    pub(crate) fn children(&self) -> Option<&Arc<Children>> {
        self.children.as_ref()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The scheduler, which is started when something needs it.
    fn scheduler(&self) -> &Sender {
        self.scheduler.get_or_init(|| {
            let opening = lock(&self.opening).take().expect("a process that only looks executes nothing");
            let sender = Scheduler::start(self.this.clone(), self.dialects, opening.coordinator);
            for run in opening.settle {
                // It is listening.
                let _ = sender.send(Message::Send { run, mail: Mail::Settle, reply: None });
            }
            if let Some(mut recorded) = lock(&self.recorded).take() {
                let sender = sender.downgrade();
                tokio::spawn(async move {
                    while let (Some(recorded), Some(sender)) = (recorded.recv().await, sender.upgrade()) {
                        // A scheduler that has ended records nothing more.
                        let _ = sender.send(Message::Recorded(recorded));
                    }
                });
            }
            sender
        })
    }

    /// Asks the scheduler something and waits for the answer.
    async fn ask(&self, message: impl FnOnce(oneshot::Sender<Reply>) -> Message) -> Result<Reply, Error> {
        let (reply, answer) = oneshot::channel();
        // If it is gone the answer says so.
        let _ = self.scheduler().send(message(reply));
        answer.await.map_err(|_| Error::Store(windlass_store::Error::Stopped))
    }

    /// Looks at the runs in memory.
    async fn look_at<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Runs) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let look = Box::new(move |runs: &Runs| drop(reply.send(look(runs))));
        // If it is gone the answer says so.
        let _ = self.scheduler().send(Message::Look(look));
        answer.await.map_err(|_| Error::Store(windlass_store::Error::Stopped))
    }

    /// Looks at the coordinator of this process.
    pub(crate) async fn coordinator<T: Send + 'static>(
        &self,
        look: impl FnOnce(&CoordinatorState) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.look_at(move |runs| look(runs.coordinator())).await
    }

    /// Does something that blocks, off tokio's workers.
    pub(crate) async fn looking<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let engine = self.clone();
        let looked = tokio::task::spawn_blocking(move || look(&engine)).await;
        looked.unwrap_or(Err(Error::Store(windlass_store::Error::Stopped)))
    }

    /// Everything that has happened in the coordinator's stream, also what it repeated since.
    pub fn shared_events(&self) -> Result<Vec<CoordinatorEvent>, Error> {
        let mut events = Vec::new();
        for record in self.store.journal.read(&RunId::coordinator(), None).wait()? {
            events.extend(record.coordinator_events(&*self.store.blobs).wait()?);
        }
        Ok(events)
    }

    /// What runs share, as the journal tells it.
    pub fn shared(&self) -> Result<CoordinatorState, Error> {
        Ok(read_coordinator(&self.store)?.0.state().clone())
    }

    pub(crate) fn note_budgets(&self, state: &CoordinatorState) {
        self.budgets.note(state);
    }

    /// Looks at a data folder that another process may own.
    pub fn look(folder: &FilePath, dialects: Dialects) -> Result<Arc<Self>, Error> {
        ownership::check(folder, ownership::current_user())?;
        let store = Store::open_read_only(folder, options(Durability::default(), dialects))?;
        Self::of(store, folder, dialects, None, None, true)
    }

    /// An engine that forgets everything with itself.
    pub fn in_memory(dialects: Dialects) -> Arc<Self> {
        let projection = Some(Arc::new(Rows { dialects }) as _);
        let store = Store::memory(Options { projection, ..Options::default() });
        Self::of(store, FilePath::new(""), dialects, None, None, false).expect("an empty store can be read")
    }

    /// Starts a run of a plan and follows it. It is durable when this returns.
    pub async fn start(self: &Arc<Self>, plan: &Plan, start: Start) -> Result<Handle, Error> {
        let (host, clock, patience) = (start.host.clone(), start.clock, start.patience);
        let (reply, watching) = oneshot::channel();
        match self.begin(plan, start, Some(Watch { since: Since::Now, patience, reply })).await? {
            Begun::New(id) => self.handle(id, watching.await),
            Begun::Before(id) => self.started_before(&id, host, clock, patience).await,
        }
    }

    fn handle(
        self: &Arc<Self>,
        id: RunId,
        watching: Result<Watching, oneshot::error::RecvError>,
    ) -> Result<Handle, Error> {
        let Watching { updates, done } = watching.map_err(|_| Error::OwnerGone(id.clone()))?;
        Ok(Handle { id, updates, done, engine: self.clone() })
    }

    /// Starts a run of a plan. It is durable when this returns.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        plan: &Plan,
        mut start: Start,
        watch: Option<Watch>,
    ) -> Result<Begun, Error> {
        start.host = self.equip(
            start.host.in_project_of(self.dialects.named(&plan.dialect)).in_time(start.clock, start.patience),
        );
        let about = about(plan, &start);
        let program = self.stored(plan, start.source, start.overrides).await?;
        let (id, is_new) = match start.run {
            Some(id) => (id, false),
            None => (new_id(&start.clock)?, true),
        };
        let mut claims = start.claims;
        // A run that others wait for has a slot with them.
        if let Some(limit) = start.host.limits.runs.filter(|_| start.parents.is_empty()) {
            let (key, full) = ("machine:runs".into(), Full::Wait);
            claims.push(Claim::Slot { key, limit, full });
        }
        let Beginning { at, reach, keep, seed, of } = start.beginning;
        // A run that is started once more means another one, whatever it was started with.
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
            execution: self.execution(&start.host),
            is_new,
            once: once.map(|key| (key, START_KEY_TTL)),
        };
        self.begin_once(begin, start.host, watch).await
    }

    async fn begin_once(&self, begin: Begin, host: Host, watch: Option<Watch>) -> Result<Begun, Error> {
        let id = begin.run.clone();
        self.note_active(&id);
        let again = begin.once.is_some().then(|| begin.clone());
        let message =
            |reply| Message::Begin { begin: Box::new(begin), host: Box::new(host.clone()), watch, reply };
        let reply = self.ask(message).await;
        if !matches!(reply, Ok(Reply::Done)) {
            self.note_ended(&id);
        }
        match (reply?, again) {
            (Reply::Done, _) => Ok(Begun::New(id)),
            (Reply::Refused(Refused::AlreadyStarted), _) => Err(Error::RunExists(id)),
            (Reply::Refused(refused), _) => Err(Error::Refused(refused)),
            (Reply::Earlier(earlier), Some(begin)) => match self.exists(&earlier).await? {
                true => Ok(Begun::Before(earlier)),
                // The process that wanted to start it died before it did.
                false => {
                    let begin = Begin { run: earlier, once: None, is_new: false, ..begin };
                    Box::pin(self.begin_once(begin, host, None)).await
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

    /// The run that was started with the same key before: it is followed, or continued.
    async fn started_before(
        self: &Arc<Self>,
        id: &RunId,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let run = id.clone();
        let view = self.looking(move |engine| engine.view(&run)).await?;
        if view.ended_at().is_none() {
            return self.resume(id, nothing(), BEFORE, host, clock, patience).await;
        }
        Ok(self.standing_still(id, &view, Since::Now))
    }

    /// Continues a run, whatever stopped it: a crash, a pause, a failure. `changes` are laid over its first inputs.
    pub async fn resume(
        self: &Arc<Self>,
        id: &RunId,
        changes: Value,
        by: &str,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let resume = Resume { wanted: Some((by.into(), changes)), reopens: false };
        let (reply, watching) = oneshot::channel();
        let host = host.in_time(clock, patience);
        let watch = Watch { since: Since::Now, patience, reply };
        self.continue_run(id, resume, host, Some(watch)).await?;
        self.handle(id.clone(), watching.await)
    }

    pub(crate) async fn continue_run(
        self: &Arc<Self>,
        id: &RunId,
        resume: Resume,
        host: Host,
        watch: Option<Watch>,
    ) -> Result<(), Error> {
        let host = Box::new(self.equip(host));
        let run = id.clone();
        self.note_active(id);
        let reply = self.ask(|reply| Message::Resume { run, resume, host, watch, reply }).await;
        if !matches!(reply, Ok(Reply::Done)) {
            self.note_ended(id);
        }
        match reply? {
            Reply::Refused(Refused::NotFailed | Refused::Finished | Refused::Undoing) => {
                let run = id.clone();
                let view = self.looking(move |engine| engine.view(&run)).await?;
                Err(finished(id, &view))
            }
            reply => self.done(id, reply).await,
        }
    }

    /// What an answer means for whoever asked.
    async fn done(self: &Arc<Self>, id: &RunId, reply: Reply) -> Result<(), Error> {
        match reply {
            Reply::Done | Reply::Published(_) | Reply::Earlier(_) => Ok(()),
            Reply::NoRun => Err(Error::NoRun(id.to_string())),
            Reply::NotShared(refused) => Err(Error::Budget(refused)),
            Reply::Refused(Refused::Finished) => {
                let run = id.clone();
                let view = self.looking(move |engine| engine.view(&run)).await?;
                Err(finished(id, &view))
            }
            Reply::Refused(refused) => Err(Error::Refused(refused)),
            // Reading it says what is wrong with it.
            Reply::Unusable => {
                let run = id.clone();
                self.looking(move |engine| engine.check(&run)).await
            }
        }
    }

    /// What the jobs of a run are executed with, here.
    pub(crate) fn equip(&self, mut host: Host) -> Host {
        if let Some(children) = &self.children {
            host.note_children(children);
        }
        host
    }

    pub(crate) fn policy(&self, host: &Host) -> Machine {
        Machine { host: host.clone(), budgets: self.budgets.clone(), dialects: self.dialects }
    }

    pub(crate) async fn exists(&self, id: &RunId) -> Result<bool, Error> {
        Ok(!self.store.journal.back(id, None, 1).await?.is_empty())
    }

    /// Starts a run that a trigger has ordered, unless it has begun already.
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
                // Its key was taken, so there is no such run that could give back what it holds.
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
            host: self.house().unwrap_or_else(|| Host::new(windlass_executors::Environment::default())),
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

    /// Tells the coordinator something; no one waits until that is durable.
    pub(crate) fn share(&self, input: CoordinatorInput) {
        // A scheduler that has ended owes it again after the next start.
        let _ = self.scheduler().send(Message::Share { input, reply: None });
    }

    /// A job that is elsewhere has ended.
    pub(crate) fn reported(&self, job: JobKey, outcome: Outcome) {
        let mail = Mail::Input(Input::Reported { job: job.clone(), outcome });
        // A scheduler that has ended asks again after the next start.
        let _ = self.scheduler().send(Message::Send { run: job.run, mail, reply: None });
    }

    /// Reads the workflows that others call with this, from now on.
    pub fn read_with(&self, reader: Arc<dyn Reader>) {
        // The first one stays.
        let _ = self.reader.set(reader);
    }

    pub(crate) fn reads(&self) -> bool {
        self.reader.get().is_some()
    }

    pub(crate) fn reader(&self) -> Option<&dyn Reader> {
        self.reader.get().map(|reader| &**reader)
    }

    /// Executes the runs that triggers order with this.
    pub fn set_house(&self, host: Host) {
        *lock(&self.house) = Some(host);
    }

    /// Executes every run of the folder from now on; `host` executes the jobs of runs that no client stands behind. Says which runs
    /// cannot be executed, once all others have been loaded.
    pub async fn serve_all(self: &Arc<Self>, host: Host) -> Result<Vec<(RunId, Error)>, Error> {
        self.set_house(host);
        let unfinished = self.unfinished().await?;
        self.execute(Executed::AllBut(HashSet::new()));
        let (reply, answer) = oneshot::channel();
        // If it is gone the answer says so.
        let _ = self.scheduler().send(Message::ServeAll { unfinished, reply });
        answer.await.map_err(|_| Error::Store(windlass_store::Error::Stopped))
    }

    /// Executes every run of the folder from now on except those that an earlier process left unfinished: these are marked as
    /// interrupted, and what they left running is ended. Says how many they are.
    pub async fn serve_new(self: &Arc<Self>, host: Host) -> Result<usize, Error> {
        self.set_house(host);
        let unfinished: Vec<RunId> = self.unfinished().await?.into_iter().map(|(run, _)| run).collect();
        let left = unfinished.clone();
        self.looking(move |engine| left.iter().try_for_each(|run| engine.end_orphans(run))).await?;
        let count = unfinished.len();
        self.execute(Executed::AllBut(unfinished.iter().cloned().collect()));
        // If it is gone, the next question says so.
        let _ = self.scheduler().send(Message::ServeAllBut(unfinished));
        Ok(count)
    }

    /// The runs without a result. The process may have run out of file descriptors for a moment, so it tries more than once.
    async fn unfinished(&self) -> Result<Vec<(RunId, windlass_store::Wake)>, Error> {
        let mut pause = UNREADABLE_FIRST;
        loop {
            match self.store.view.unfinished().await {
                Ok(unfinished) => return Ok(unfinished),
                Err(error) if pause > UNREADABLE_MAX => return Err(error.into()),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
    }

    fn house(&self) -> Option<Host> {
        lock(&self.house).clone()
    }

    /// What a run that no client stands behind is executed with. None if that is not possible here.
    pub(crate) fn house_for(&self, about: &Value) -> Option<Host> {
        let mut host = self.house()?;
        let mocked = about.get("scripted") == Some(&Value::Bool(true));
        if mocked && host.script.is_none() {
            return None;
        }
        let limits = host.limits;
        if let Some(config) = Config::recorded(about).and_then(|file| Config::read(&file).ok()) {
            host = host.with_config(config);
            host.limits = limits;
        }
        Some(host)
    }

    /// What an earlier owner left running must be gone before its step starts again. Blocks.
    pub(crate) fn end_orphans(&self, run: &RunId) -> Result<(), Error> {
        if self.children.is_none() {
            return Ok(());
        }
        let orphaned = match self.orphaned.get() {
            Some(orphaned) => orphaned,
            None => {
                let found = orphaned_runs(&self.folder)?;
                self.orphaned.get_or_init(|| found)
            }
        };
        if orphaned.contains(run) {
            end_orphans(&self.folder, |other| other == run)?;
        }
        Ok(())
    }

    /// The program of a plan, which is durable when this returns.
    pub(crate) async fn stored(
        &self,
        plan: &Plan,
        source: String,
        overrides: String,
    ) -> Result<Arc<Program>, Error> {
        // Waits for a sweep that removes plans; afterwards only plans that are stored are cached.
        let _storing = self.storing.read().await;
        if let Some(known) = self.programs().get(plan.digest.as_str()) {
            return Ok(known.clone());
        }
        let digest = plan.digest.as_str().to_owned();
        let json = serde_json::to_string(plan).expect("a plan holds no secret and no key but text");
        let stored =
            StoredPlan { digest: digest.clone(), format: plan.format, plan: json, source, overrides };
        let program = Arc::new(Program::new(plan.clone())?);
        self.store.plans.put(stored).await?;
        self.programs().insert(digest, program.clone());
        Ok(program)
    }

    /// No plan is stored while this is held.
    pub(crate) async fn storing_nothing(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.storing.write().await
    }

    /// Waits until this process must not use the folder any more, and says why.
    pub async fn broken(&self) -> Error {
        let mut broken = self.broken.subscribe();
        match broken.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => Error::Store(error),
            Ok(None) | Err(_) => Error::Store(windlass_store::Error::Stopped),
        }
    }

    /// What is true is on the disk, and another process has to read it.
    pub(crate) fn must_end(&self, error: &windlass_store::Error) {
        self.broken.send_replace(Some(error.clone()));
    }

    pub(crate) fn programs(&self) -> MutexGuard<'_, HashMap<String, Arc<Program>>> {
        lock(&self.programs)
    }

    pub fn folder(&self) -> &FilePath {
        &self.folder
    }

    /// Whether a run was started or resumed here and has no result.
    pub fn is_live(&self, id: &RunId) -> bool {
        lock(&self.active).contains(id)
    }

    fn note_active(&self, id: &RunId) {
        lock(&self.active).insert(id.clone());
        self.executed.iter().for_each(|executed| lock(executed).add(id));
    }

    /// Executes these runs from now on, and those that are started or resumed.
    fn execute(&self, runs: Executed) {
        if let Some(executed) = &self.executed {
            *lock(executed) = runs;
        }
    }

    /// The runs that a process executes: this one if it is the owner of the folder, or else the owner. Blocks.
    pub fn executed(&self) -> Executed {
        match &self.executed {
            Some(executed) => lock(executed).clone(),
            None => Executed::in_folder(&self.folder),
        }
    }

    pub fn dialects(&self) -> Dialects {
        self.dialects
    }

    pub(crate) fn note_ended(&self, id: &RunId) {
        self.executed.iter().for_each(|executed| lock(executed).forget(id));
        lock(&self.active).remove(id);
        self.artefacts.release(id);
    }

    /// Waits until no run does anything, with `timers` until none waits for time either, and until every client has heard the end of
    /// its run.
    pub async fn idle(&self, timers: bool) {
        loop {
            let (reply, answer) = oneshot::channel();
            // A scheduler that has ended does nothing any more.
            let _ = self.scheduler().send(Message::Idle { timers, reply });
            let _ = answer.await;
            let left = self.guests.changed.notified();
            if Arc::strong_count(&self.guests.here) == 1
                || tokio::time::timeout(GUEST_WAIT, left).await.is_err()
            {
                return;
            }
        }
    }

    /// Stops executing: nothing new is started, jobs are ended, and what became of them is durable when this returns.
    pub async fn stop(&self) {
        let (reply, answer) = oneshot::channel();
        // A scheduler that has ended does nothing any more.
        let _ = self.scheduler().send(Message::Stop(reply));
        let _ = answer.await;
        self.execute(Executed::nothing());
    }

    /// Whether runs do something here.
    pub async fn is_driving(&self) -> bool {
        self.look_at(|runs| runs.present().any(|run| runs.is_busy(run))).await.unwrap_or(false)
    }

    /// Waits until a client has asked for something.
    pub async fn asked(&self) {
        loop {
            let changed = self.guests.changed.notified();
            if self.guests.asked.load(Ordering::Acquire) {
                return;
            }
            changed.await;
        }
    }

    /// A client has asked for something.
    pub(crate) fn was_asked(&self) {
        self.guests.asked.store(true, Ordering::Release);
        self.guests.changed.notify_waiters();
    }

    /// A client is being served as long as this lives.
    pub(crate) fn guest(&self) -> Guest {
        Guest { here: Some(self.guests.here.clone()), left: self.guests.changed.clone() }
    }

    /// Tells a run something, whatever state it is in, and waits until that is durable.
    pub async fn tell(self: &Arc<Self>, id: &RunId, input: Input) -> Result<(), Error> {
        let (run, mail) = (id.clone(), Mail::Input(input));
        let reply = self.ask(|reply| Message::Send { run, mail, reply: Some(reply) }).await?;
        self.done(id, reply).await
    }

    /// Follows a run from one of its events on, without changing it. If no process executes the run, or it has ended, its follower
    /// hears what the journal has.
    pub async fn follow(
        self: &Arc<Self>,
        id: &RunId,
        since: Since,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let run = id.clone();
        let view = self.looking(move |engine| engine.view(&run)).await?;
        if view.ended_at().is_some() {
            return Ok(self.standing_still(id, &view, since));
        }
        let (reply, watching) = oneshot::channel();
        let message = Message::Watch { run: id.clone(), watch: Watch { since, patience, reply } };
        // If it is gone there is no answer.
        let _ = self.scheduler().send(message);
        match watching.await {
            Ok(watching) => self.handle(id.clone(), Ok(watching)),
            Err(_) => Ok(self.standing_still(id, &view, since)),
        }
    }

    /// A run that does nothing: its follower hears what the journal has, and nothing more.
    fn standing_still(self: &Arc<Self>, id: &RunId, view: &View, since: Since) -> Handle {
        let (sender, done) = oneshot::channel();
        let _ = sender.send(Ok(report::status(view, self.executed().contains(id))));
        let (follower, updates) = feed(self.clone(), id, since);
        follower.end();
        Handle { id: id.clone(), updates, done, engine: self.clone() }
    }

    /// Publishes a message that names no run. Says how many subscribers it has, once that is durable.
    pub async fn publish(
        &self,
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
    ) -> Result<usize, Error> {
        match self.told(CoordinatorInput::Published { id, name, by, value }).await? {
            Reply::Published(delivered) => Ok(delivered),
            _ => Ok(0),
        }
    }

    pub(crate) async fn told(&self, input: CoordinatorInput) -> Result<Reply, Error> {
        match self.ask(|reply| Message::Share { input, reply: Some(reply) }).await? {
            Reply::NotShared(refused) => Err(Error::Budget(refused)),
            reply => Ok(reply),
        }
    }

    /// Sets the cap of a budget; with a zone it starts over every day.
    pub async fn set_budget(
        &self,
        budget: Arc<str>,
        cap: Budget,
        zone: Option<Arc<str>>,
    ) -> Result<(), Error> {
        self.told(CoordinatorInput::Cap { budget, cap, zone }).await.map(drop)
    }

    /// Forgets what was spent from a budget.
    pub async fn reset_budget(&self, budget: Arc<str>) -> Result<(), Error> {
        self.told(CoordinatorInput::Reset { budget }).await.map(drop)
    }
}

/// A run that was begun, or the one that was started with the same key before.
pub(crate) enum Begun {
    New(RunId),
    Before(RunId),
}

impl Opening {
    /// Blocks.
    fn of(store: &Store) -> Result<Self, Error> {
        let coordinator = read_coordinator(store)?;
        let state = coordinator.0.state();
        let askers = coordinator.0.askers().map(|asker| asker.run.clone());
        let runs: BTreeSet<RunId> =
            askers.chain(state.subscribed.keys().map(|address| address.run.clone())).collect();
        let mut settle = Vec::new();
        for run in runs {
            let row = store.view.get(&run).wait()?;
            if row.is_some_and(|row| row.row.ended_at.is_some()) {
                settle.push(run);
            }
        }
        Ok(Self { coordinator, settle })
    }
}

fn read_coordinator(store: &Store) -> Result<(Coordinator, Option<u64>, usize), Error> {
    match crate::coordinator::read(store) {
        Err(error) if error.is_of_one_run() => Err(Error::Limits(error)),
        found => Ok(found?),
    }
}

/// What is recorded about a run when it is started.
fn about(plan: &Plan, start: &Start) -> Value {
    let text = |path: Option<&FilePath>| path.and_then(FilePath::to_str).map(Value::text);
    let file = start.file.as_deref();
    let always = [
        (PLAN, Value::text(plan.digest.as_str())),
        ("workflow", Value::Text(plan.header.id.clone())),
        ("dialect", Value::Text(plan.dialect.clone())),
        ("directory", Value::text(start.host.environment.directory.to_string_lossy())),
        ("scripted", Value::Bool(start.host.script.is_some())),
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

/// How long a folder whose runs cannot be read is tried again: the first wait, and the longest.
const UNREADABLE_FIRST: std::time::Duration = std::time::Duration::from_millis(50);
const UNREADABLE_MAX: std::time::Duration = std::time::Duration::from_secs(2);

/// This many tasks read runs at a time.
const READERS: usize = 4;

/// Who continues a run that was started before.
const BEFORE: &str = "limits";

/// How a folder is opened.
pub(crate) fn options(durability: Durability, dialects: Dialects) -> Options {
    let (projection, heads) = (Some(Arc::new(Rows { dialects }) as _), crate::heads::folder());
    Options { durability, projection, heads, ..Options::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn finished(id: &RunId, view: &View) -> Error {
    Error::RunFinished { run: id.clone(), status: report::status(view, false) }
}

/// No change of inputs.
pub(crate) fn nothing() -> Value {
    Value::map::<&str>([])
}

/// When it was started, so that ids sort by time, and a number: each process begins with a random one and counts on, so that two
/// never meet.
pub fn new_id(clock: &Clock) -> Result<RunId, BadRunId> {
    static NUMBER: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(rand::random()));
    let now = clock.now().to_string();
    let digits: String = now.chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    RunId::new(&format!("{day}-{time}-{:08x}", NUMBER.fetch_add(1, Ordering::Relaxed)))
}
