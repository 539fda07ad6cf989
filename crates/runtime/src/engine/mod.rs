//! A data folder, opened: runs are started and told things here. `looking` reads them, `take_up` takes up what was left, `opened` puts a
//! driver to work, and `error` says what can go wrong.

use crate::clock::Clock;
use crate::config::{Config, RECORDED};
use crate::desk::Keeper;
use crate::drive::{Fatal, Live, Mail, Patience, Replayed, Told};
use crate::follow::{Followers, Updates};
use crate::host::Host;
use crate::library::Reader;
use crate::lock::Lock;
use crate::ownership;
use crate::report::Standing;
use crate::rows::Rows;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use windlass_engine::{
    BadRunId, Claim, DeskEvent, DeskInput, DeskState, Full, Input, Kept, Lineage, Order, Program, Reach,
    Refused, Run, RunBudget, RunId, Timestamp, View,
};
use windlass_executors::Children;
use windlass_ir::plan::FORMAT;
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Plan, Value};
use windlass_store::{Durability, Options, Store, StoredPlan};

mod claims;
mod error;
mod looking;
mod opened;
mod take_up;

use claims::Claims;
pub use error::Error;

/// The owner of a data folder, or a process that only looks at it.
#[derive(Debug)]
pub struct Engine {
    store: Store,
    /// None for a process that only looks.
    desk: Option<Keeper>,
    house: Mutex<Option<(Host, Patience)>>,
    /// Reads the workflows that others call.
    reader: OnceLock<Arc<dyn Reader>>,
    /// Whether a client has asked for anything.
    served: AtomicBool,
    folder: PathBuf,
    children: Option<Arc<Children>>,
    live: Live,
    /// Programs by the digest of their plan, which is stored before its program stands here.
    programs: Mutex<HashMap<String, Arc<Program>>>,
    claims: Claims,
    /// The runs that an earlier owner of the folder has left processes of, once that was looked for.
    orphaned: OnceLock<BTreeSet<RunId>>,
    /// Held by whoever starts what a trigger has ordered.
    ordered: tokio::sync::Mutex<()>,
    /// Told whenever a run is not driven any more.
    ended: Arc<Notify>,
    /// Shared with everybody who is being served.
    guests: Arc<()>,
    /// Why this process must not go on with the folder, once that is so.
    broken: watch::Sender<Option<windlass_store::Error>>,
    /// Held by whoever stores a plan, and alone by whoever removes those that nobody uses.
    storing: tokio::sync::RwLock<()>,
    /// None for a process that only looks.
    _lock: Option<Lock>,
}

/// How long starts with the same key are the same run.
const START_KEY_TTL: Duration = Duration::from_secs(24 * 3600);

/// What a run knows the digest of its plan by, and the file of its workflow.
pub(crate) const PLAN: &str = "plan";
const FILE: &str = "file";

/// The file that a run was read from, where that is known.
pub(crate) fn file_of(view: &View) -> Option<PathBuf> {
    view.about.get(FILE).and_then(Value::as_str).map(PathBuf::from)
}

/// Under which word a run knows the one that it takes over from.
pub const RETRY_OF: &str = "retry_of";

/// Who takes up a run that was started before.
const DESK: &str = "desk";

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

/// A run under way in this process.
#[derive(Debug)]
pub struct Handle {
    pub id: RunId,
    pub updates: Updates,
    /// How it stands when this process is done with it.
    pub done: JoinHandle<Result<Standing, Fatal>>,
    mail: mpsc::UnboundedSender<Mail>,
}

impl Handle {
    /// Tells the run something and waits until that is durable.
    pub async fn tell(&self, input: Input) -> Result<(), Refused> {
        let (reply, answer) = oneshot::channel();
        if self.mail.send(Mail { told: Told::Input(input, None), reply: Some(reply) }).is_err() {
            return Err(Refused::Finished);
        }
        answer.await.unwrap_or(Err(Refused::Finished))
    }

    /// Waits until this process is done with it. Nothing is kept for who does not listen any more.
    pub async fn outcome(self) -> Result<Standing, Fatal> {
        drop(self.updates);
        self.done.await.unwrap_or(Ok(Standing::Going))
    }
}

impl Engine {
    /// Becomes the owner of a data folder, which is made if it is not there.
    pub fn open(folder: &FilePath, durability: Durability) -> Result<Arc<Self>, Error> {
        let failed =
            |error: std::io::Error| Error::Folder { folder: folder.to_owned(), cause: error.to_string() };
        let lock = Lock::take(folder)?;
        let store = Store::open(folder, options(durability))?;
        let children = Children::open(folder).map_err(failed)?;
        let engine = Self::of(store, folder, Some(Arc::new(children)), Some(lock), false)?;
        engine.settle_accounts()?;
        Ok(engine)
    }

    fn of(
        store: Store,
        folder: &FilePath,
        children: Option<Arc<Children>>,
        lock: Option<Lock>,
        looks: bool,
    ) -> Result<Arc<Self>, Error> {
        let live = Live::default();
        let read = |store: &Store| match crate::desk::read(store) {
            Err(error) if error.is_of_one_run() => Err(Error::Desk(error)),
            found => Ok(found?),
        };
        let found = if looks { None } else { Some(read(&store)?) };
        let engine = Arc::new_cyclic(|engine| {
            let desk = found.map(|found| Keeper::open(store.clone(), live.clone(), engine.clone(), found));
            Self {
                desk,
                house: Mutex::default(),
                reader: OnceLock::new(),
                served: AtomicBool::new(false),
                store,
                folder: folder.to_owned(),
                children,
                live,
                programs: Mutex::default(),
                claims: Claims::default(),
                orphaned: OnceLock::new(),
                ordered: tokio::sync::Mutex::default(),
                ended: Arc::default(),
                guests: Arc::default(),
                broken: watch::Sender::new(None),
                storing: tokio::sync::RwLock::default(),
                _lock: lock,
            }
        });
        Ok(engine)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The desk, which everybody has who may write.
    pub(crate) fn desk(&self) -> &Keeper {
        self.desk.as_ref().expect("whoever only looks drives nothing")
    }

    /// Everything that has happened at the desk, also what has been told anew since.
    pub fn shared_events(&self) -> Result<Vec<DeskEvent>, Error> {
        let mut events = Vec::new();
        for record in self.store.journal.read(&RunId::desk(), None).wait()? {
            events.extend(record.desk_events(&*self.store.blobs).wait()?);
        }
        Ok(events)
    }

    /// What runs share, as it stands.
    pub fn shared(&self) -> Result<DeskState, Error> {
        match &self.desk {
            Some(desk) => Ok(desk.look(DeskState::clone)),
            None => match crate::desk::read(&self.store) {
                Err(error) if error.is_of_one_run() => Err(Error::Desk(error)),
                found => Ok(found?.0.state().clone()),
            },
        }
    }

    /// Runs that have ended hold nothing, even if whoever drove them died before it could say so.
    fn settle_accounts(&self) -> Result<(), Error> {
        for run in self.desk().runs() {
            let row = self.store.view.get(&run).wait()?;
            if row.is_none_or(|row| row.row.ended_at.is_none()) {
                continue;
            }
            match self.replayed(&run) {
                Ok(ended) => self.desk().settle_accounts(&ended.run),
                // It has ended, and nobody can say what it used. One that is hurt keeps nobody waiting.
                Err(Error::Store(error)) if !error.is_of_one_run() => return Err(error.into()),
                Err(_) => drop(self.desk().tell(DeskInput::Gone { run }, None, None)),
            }
        }
        Ok(())
    }

    /// Looks at a data folder that another process may own.
    pub fn look(folder: &FilePath) -> Result<Arc<Self>, Error> {
        ownership::check(folder, ownership::current_user())?;
        let store = Store::open_read_only(folder, options(Durability::default()))?;
        Self::of(store, folder, None, None, true)
    }

    /// An engine that forgets everything with itself.
    pub fn in_memory() -> Arc<Self> {
        let store = Store::memory(Options { projection: Some(Arc::new(Rows)), ..Options::default() });
        Self::of(store, FilePath::new(""), None, None, false).expect("an empty store can be read")
    }

    /// Starts a run of a plan. It is durable when this returns.
    pub async fn start(&self, plan: &Plan, mut start: Start) -> Result<Handle, Error> {
        start.host = start.host.in_project_of(&plan.dialect);
        let config = start.host.config.as_ref().and_then(|file| file.to_str());
        let config = config.map(|file| (RECORDED, Value::text(file)));
        let about = [
            (PLAN, Value::text(plan.digest.as_str())),
            ("workflow", Value::Text(plan.header.id.clone())),
            ("dialect", Value::Text(plan.dialect.clone())),
            ("directory", Value::text(start.host.environment.directory.to_string_lossy())),
            ("scripted", Value::Bool(start.host.script.is_some())),
        ];
        let file = start.file.as_deref().and_then(FilePath::to_str).map(|file| (FILE, Value::text(file)));
        let folder = start.file.as_deref().and_then(FilePath::parent).and_then(FilePath::to_str);
        let folder = folder.map(|folder| ("folder", Value::text(folder)));
        let of = start.beginning.of.as_ref().map(|of| (RETRY_OF, Value::text(of.as_str())));
        let about = Value::map(about.into_iter().chain(config).chain(file).chain(folder).chain(of));
        self.desk().attend();
        let program = self.stored(plan, start.source, start.overrides).await?;
        let mut id = self.free_id(start.run.as_ref(), &start.clock)?;
        // Who starts a run once more means another one, whatever it was started with.
        if start.beginning.of.is_none()
            && let Some(key) = Run::new(id.clone(), program.clone()).start_key(&start.inputs)?
            && let Some(earlier) = self.desk().start_once(&key, &id, START_KEY_TTL)
        {
            if self.exists(&earlier)? {
                return self.started_before(&earlier, start.host, start.clock, start.patience).await;
            }
            // Whoever wanted to start it died before it did.
            id = earlier;
        }
        // From its first record on others could find it, before it is known to be driven here.
        let _claimed = self.claims.claim(&id).await;
        let mut claims = start.claims;
        // Whoever waits for a run has a place for both.
        if let Some(limit) = start.host.limits.runs.filter(|_| start.parents.is_empty()) {
            let (key, full) = ("house:runs".into(), Full::Wait);
            claims.push(Claim::Slot { key, limit, full, turns: true });
        }
        let fresh = Replayed {
            run: Run::new(id, program.clone()),
            view: View::of_driver(program, []),
            tail: None,
            last_at: None,
            decided: HashMap::new(),
        };
        let mut opened = self.driver(fresh, start.host, start.clock, start.patience);
        let Beginning { at, reach, keep, seed, .. } = start.beginning;
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
        match opened.driver.offer(Input::Start(Box::new(beginning))).await {
            Ok(Ok(())) => Ok(opened.go()),
            // Another start with the same id came between.
            Ok(Err(Refused::AlreadyStarted)) => Err(Error::RunExists(opened.driver.run.id().clone())),
            Ok(Err(refused)) => Err(Error::Refused(refused)),
            Err(Fatal(error)) => Err(Error::Store(error)),
        }
    }

    /// The run that was started with the same key before: it is followed, or taken up where nobody drives it.
    async fn started_before(
        &self,
        id: &RunId,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let unchanged = nothing();
        let view = self.view(id)?;
        if view.ended_at.is_none() {
            return self.resume(id, unchanged, DESK, host, clock, patience).await;
        }
        Ok(standing_still(id, &view))
    }

    pub(crate) fn exists(&self, id: &RunId) -> Result<bool, Error> {
        Ok(!self.store.journal.back(id, None, 1).wait()?.is_empty())
    }

    /// Starts a run that a trigger has ordered, unless it has begun already.
    pub(crate) async fn start_ordered(&self, order: Order) {
        let _one_at_a_time = self.ordered.lock().await;
        let run = order.run.clone();
        let begun = match self.exists(&run) {
            Ok(true) => Ok(run.clone()),
            Ok(false) => self.begin_ordered(order).await,
            Err(error) => Err(error),
        };
        if let Ok(begun) = begun {
            // It stands in the journal; that nobody has to start it any more is only noted.
            let _ = self.desk().tell(DeskInput::Arrived { run: run.clone() }, None, None);
            if begun != run {
                // Its key was taken, so there is no such run that could give back what it holds.
                let _ = self.desk().tell(DeskInput::Gone { run }, None, None);
            }
        }
    }

    async fn begin_ordered(&self, order: Order) -> Result<RunId, Error> {
        let Order { run, plan, inputs, claims } = order;
        let missing = || Error::NoPlan(run.clone());
        let stored = self.store.plans.get(&plan).await?.ok_or_else(missing)?;
        let (source, overrides) = (stored.source.clone(), stored.overrides.clone());
        let plan = stored.read(FORMAT)?;
        let nowhere = || (Host::new(windlass_executors::Environment::default()), Patience::Work);
        let (host, patience) = self.house().unwrap_or_else(nowhere);
        let start = Start {
            run: Some(run),
            inputs,
            by: None,
            source,
            overrides,
            file: None,
            host,
            clock: Clock::Real,
            patience,
            claims,
            lineage: Lineage::default(),
            parents: Vec::new(),
            budgets: Vec::new(),
            beginning: Beginning::default(),
        };
        self.start(&plan, start).await.map(|handle| handle.id)
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

    /// Serves every run of the folder from now on: `host` executes the jobs of runs that no client stands behind, and `patience`
    /// says how long such a run stays in memory while it waits for people.
    pub fn set_house(&self, host: Host, patience: Patience) {
        self.desk().drive_all();
        *self.house.lock().unwrap_or_else(PoisonError::into_inner) = Some((host, patience));
    }

    fn house(&self) -> Option<(Host, Patience)> {
        self.house.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a run that was left is done with: the house, where the run was started. None when nobody could go on with it.
    fn house_for(&self, view: &View) -> Option<(Host, Patience)> {
        let (mut host, patience) = self.house()?;
        let scripted = view.about.get("scripted") == Some(&Value::Bool(true));
        if scripted && host.script.is_none() {
            return None;
        }
        let limits = host.limits;
        if let Some(config) = Config::recorded(view).and_then(|file| Config::read(&file).ok()) {
            host = host.with_config(config);
            host.limits = limits;
        }
        Some((host, patience))
    }

    /// Goes on with a run that something has happened to, where all runs are driven.
    pub(crate) async fn wake(&self, id: &RunId) {
        if self.house().is_some() {
            // Whoever looks at the run sees why it does not go on.
            let _ = self.drive(id).await;
        }
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

    /// Nobody stores a plan while this is held.
    pub(crate) async fn storing_nothing(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.storing.write().await
    }

    /// Waits until this process must not go on with the folder, and says why.
    pub async fn broken(&self) -> Error {
        let mut broken = self.broken.subscribe();
        match broken.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => Error::Store(error),
            Ok(None) | Err(_) => Error::Store(windlass_store::Error::Stopped),
        }
    }

    /// What is true stands on the disk, and another process has to read it.
    pub(crate) fn must_end(&self, error: &windlass_store::Error) {
        self.broken.send_replace(Some(error.clone()));
    }

    pub(crate) fn programs(&self) -> MutexGuard<'_, HashMap<String, Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id that was asked for, if it is not taken, or a new one.
    fn free_id(&self, wanted: Option<&RunId>, clock: &Clock) -> Result<RunId, Error> {
        match wanted {
            None => Ok(new_id(clock)?),
            Some(id) if self.exists(id)? => Err(Error::RunExists(id.clone())),
            Some(id) => Ok(id.clone()),
        }
    }

    pub fn folder(&self) -> &FilePath {
        &self.folder
    }

    pub fn is_live(&self, id: &RunId) -> bool {
        lock(&self.live).contains_key(id)
    }

    /// Waits until this process drives no run, and everybody who was told about one has heard the end of it.
    pub async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if !lock(&self.live).is_empty() {
                ended.await;
            } else if Arc::strong_count(&self.guests) == 1
                || tokio::time::timeout(GUEST_WAIT, ended).await.is_err()
            {
                return;
            }
        }
    }

    /// Stops driving: nothing new is started, what is at work is ended, and what became of it is durable when this returns.
    pub async fn stop(&self) {
        loop {
            let ended = self.ended.notified();
            let drivers: Vec<_> = lock(&self.live).values().map(|(sender, _)| sender.clone()).collect();
            if drivers.is_empty() {
                return;
            }
            for driver in drivers {
                // One that has just come to its end needs no telling.
                let _ = driver.send(Mail { told: Told::Stop, reply: None });
            }
            ended.await;
        }
    }

    /// Whether runs are driven here.
    pub fn is_driving(&self) -> bool {
        !lock(&self.live).is_empty()
    }

    /// Waits until somebody has asked for something.
    pub async fn asked(&self) {
        loop {
            let ended = self.ended.notified();
            if self.served.load(Ordering::Acquire) {
                return;
            }
            ended.await;
        }
    }

    /// Somebody has asked for something.
    pub(crate) fn was_asked(&self) {
        self.served.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    /// Somebody is being served as long as this lives.
    pub(crate) fn guest(&self) -> Guest {
        Guest { here: Some(self.guests.clone()), left: self.ended.clone() }
    }

    /// Tells a run something: the one that is driven here, or one that only has a journal.
    pub async fn tell(&self, id: &RunId, input: Input) -> Result<(), Error> {
        let sender = lock(&self.live).get(id).map(|(sender, _)| sender.clone());
        if let Some(sender) = sender {
            let (reply, answer) = oneshot::channel();
            let told = Told::Input(input.clone(), None);
            let sent = sender.send(Mail { told, reply: Some(reply) }).is_ok();
            if sent && let Ok(answered) = answer.await {
                return answered.map_err(|refused| self.refusal(id, refused));
            }
        }
        // Nobody drives it, or whoever did has just left it.
        let claimed = self.claims.claim(id).await;
        let caller = self.write(id, input).await.map_err(|error| match error {
            Error::Refused(refused) => self.refusal(id, refused),
            other => other,
        })?;
        drop(claimed);
        self.desk().wake(id);
        if let Some(caller) = caller {
            self.desk().stir(&caller, id);
        }
        Ok(())
    }

    /// Why a run did not take something; that it is finished is told with its name.
    fn refusal(&self, id: &RunId, refused: Refused) -> Error {
        match (&refused, self.view(id)) {
            (Refused::Finished, Ok(view)) => finished(id, &view),
            (_, _) => Error::Refused(refused),
        }
    }

    /// Publishes a message that names no run. Says how many listened, once that is durable.
    pub async fn publish(
        &self,
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
    ) -> Result<usize, Error> {
        let (id, name, by) = (id.clone(), name.clone(), by.clone());
        let input = DeskInput::Published { id, name, by, value };
        Ok(self.desk().told(input).await?.delivered)
    }

    /// Sets the cap of an account; with a zone it begins anew every day.
    pub async fn set_budget(
        &self,
        account: Arc<str>,
        cap: Budget,
        zone: Option<Arc<str>>,
    ) -> Result<(), Error> {
        self.desk().told(DeskInput::Cap { account, cap, zone }).await.map(drop)
    }

    /// What was spent from an account is forgotten.
    pub async fn reset_budget(&self, account: Arc<str>) -> Result<(), Error> {
        self.desk().told(DeskInput::Reset { account }).await.map(drop)
    }

    /// Writes one input of a run down without driving it, and says which run waits for it.
    async fn write(&self, id: &RunId, input: Input) -> Result<Option<RunId>, Error> {
        let replayed = self.replayed(id)?;
        let host = Host::new(windlass_executors::Environment::default());
        let mut opened = self.driver(replayed, host, Clock::Real, Patience::Work);
        opened.driver.only_record = true;
        match opened.driver.offer(input).await {
            Ok(Ok(())) => Ok(opened.driver.run.parents().last().cloned()),
            Ok(Err(refused)) => Err(Error::Refused(refused)),
            Err(Fatal(error)) => Err(Error::Store(error)),
        }
    }
}

/// How a folder is opened.
pub(crate) fn options(durability: Durability) -> Options {
    let (projection, heads) = (Some(Arc::new(Rows) as _), crate::heads::folder());
    Options { durability, projection, heads, ..Options::default() }
}

fn lock(live: &Live) -> MutexGuard<'_, HashMap<RunId, (mpsc::UnboundedSender<Mail>, Followers)>> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

fn finished(id: &RunId, view: &View) -> Error {
    let result = crate::report::result(id, view);
    Error::RunFinished { run: id.clone(), status: result["status"].as_str().unwrap_or_default().to_owned() }
}

/// A run that nobody drives: nothing more is heard of it.
pub(crate) fn standing_still(id: &RunId, view: &View) -> Handle {
    let (mail, _) = mpsc::unbounded_channel();
    let updates = Updates::default();
    let done = tokio::spawn(std::future::ready(Ok(crate::report::standing(view))));
    Handle { id: id.clone(), updates, done, mail }
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
