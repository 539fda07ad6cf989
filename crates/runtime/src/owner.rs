//! The owner of a data folder and its clients. Whoever holds the lock drives the runs and listens on a socket in the folder;
//! every other process sends it one request a connection, as lines of JSON, and hears what becomes of it.

use crate::archive::Carried;
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::{Beginning, Engine, Error, Handle, Start};
use crate::follow::Update;
use crate::follow::{Since, Updates};
use crate::gc::{Sweep, Swept};
use crate::host::Host;
use crate::ownership;
use crate::presence::Executed;
use crate::scheduler::Patience;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use windlass_engine::{Choice, Event, GateDecision, Input, Lineage, RunId};
use windlass_executors::{Environment, Line, Script, Stream};
use windlass_ir::dialect::Dialects;
use windlass_ir::policy::Budget;
use windlass_ir::{Plan, RunStatus, Value};
use windlass_store::Durability;

/// Where a run is to be driven from, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Surroundings {
    pub directory: PathBuf,
    /// The variables of the caller. Sent over the socket, which only the same user can open; never written down.
    pub variables: Vec<(OsString, OsString)>,
    pub script: Option<Value>,
    /// The `windlass.toml` in force.
    pub config: Option<PathBuf>,
    pub virtual_time: bool,
    /// Wait for people too.
    pub wait: bool,
}

impl Surroundings {
    /// Those of this process.
    pub fn here() -> Self {
        Self {
            directory: std::env::current_dir().unwrap_or_default(),
            variables: std::env::vars_os().collect(),
            script: None,
            config: None,
            virtual_time: false,
            wait: false,
        }
    }

    /// What the jobs of a run that is driven from there are done with.
    pub fn host(&self) -> Result<Host, Error> {
        let variables = self.variables.iter().cloned().collect();
        let mut host = Host::new(Environment { variables, directory: self.directory.clone() });
        if let Some(script) = &self.script {
            host.script = Some(Arc::new(Script::parse(script).map_err(Error::Script)?));
        }
        if let Some(config) = &self.config {
            host = host.with_config(Config::read(config)?);
        }
        Ok(host)
    }

    fn clock(&self) -> Clock {
        if self.virtual_time { Clock::starting_now() } else { Clock::Real }
    }

    fn patience(&self) -> Patience {
        if self.wait { Patience::Everything } else { Patience::Work }
    }
}

/// One thing that can be asked of the owner of a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    Start {
        plan: Box<Plan>,
        source: String,
        overrides: String,
        file: Option<PathBuf>,
        inputs: Value,
        by: Option<String>,
        run: Option<RunId>,
        from: Surroundings,
        /// It is not followed.
        detach: bool,
        #[serde(default)]
        beginning: Beginning,
    },
    Resume {
        run: RunId,
        changes: Value,
        by: String,
        from: Surroundings,
    },
    Tell {
        run: RunId,
        order: Order,
    },
    /// Hear what becomes of a run, without a word in it.
    Follow {
        run: RunId,
    },
    /// A message that names no run.
    Publish {
        id: String,
        name: String,
        value: Value,
        by: String,
    },
    /// Take over the runs that were exported into a folder.
    Import {
        folder: PathBuf,
    },
    /// Set the cap of an account, or forget what was spent from it.
    Budget {
        account: String,
        cap: Option<Budget>,
        zone: Option<String>,
    },
    /// Remove what nobody needs any more.
    Sweep(Sweep),
    /// Make the view anew.
    Rebuild,
    /// Which runs are executed?
    Executed,
}

/// Something a run is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// `step` may be left out when one gate waits.
    Decide {
        id: String,
        step: Option<String>,
        choice: Choice,
        by: String,
        reason: Option<String>,
        form: Value,
    },
    /// Send something to the run; `id` tells it apart from others of the same name.
    Signal {
        id: String,
        name: String,
        value: Value,
        by: String,
    },
    Cancel {
        why: String,
        by: String,
    },
    Pause {
        by: String,
    },
}

/// What the owner says back, one line after the other. `Done` or `Refused` is the last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
enum Reply {
    Driving { run: RunId },
    Event { seq: u64, event: Event },
    Line { job: windlass_engine::JobKey, stream: Stream, text: String },
    Notice { text: String },
    Done { status: RunStatus },
    Published { listeners: usize },
    Executed(Executed),
    Swept(Box<Swept>),
    Imported { runs: Vec<Carried> },
    Refused { code: String, message: String },
}

/// A run that is followed: driven here, or by another process.
#[derive(Debug)]
pub struct Following {
    pub id: RunId,
    pub updates: Updates,
    /// How it stands once nobody drives it any more.
    pub done: tokio::task::JoinHandle<Result<RunStatus, Error>>,
}

/// A data folder as a command finds it.
#[derive(Clone, Debug)]
pub enum Door {
    /// This process is the owner.
    Owner(Arc<Engine>),
    /// Another one is.
    Client(Client),
}

/// How to reach the owner of a folder from another process.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    report: Report,
}

/// Says something to the user while a command waits.
pub type Report = fn(&str);

impl Door {
    /// Becomes the owner of a folder, or the client of the one it has.
    pub async fn open(
        folder: &Path,
        durability: Durability,
        dialects: Dialects,
        report: Report,
    ) -> Result<Self, Error> {
        let client = Client { socket: folder.join(SOCKET), report };
        let deadline = Instant::now() + OWNER_WAIT_MAX;
        loop {
            match Engine::open(folder, durability, dialects) {
                Ok(engine) => return Ok(Self::Owner(engine)),
                Err(Error::Owned(_)) => {}
                Err(error) => return Err(error),
            }
            if client.finds_owner().await || Instant::now() >= deadline {
                return Ok(Self::Client(client));
            }
            // It is about to listen, or about to end, or only writes something down: a matter of a moment.
            tokio::time::sleep(OWNER_WAIT).await;
        }
    }

    /// Starts or takes up a run and follows it.
    pub async fn drive(&self, request: Request) -> Result<Following, Error> {
        match self {
            Self::Owner(engine) => handle(engine, request).await.map(following),
            Self::Client(client) => client.follow(&request).await,
        }
    }

    /// Publishes a message and says how many listened.
    pub async fn publish(&self, id: String, name: String, value: Value, by: String) -> Result<usize, Error> {
        match self {
            Self::Owner(engine) => engine.publish(id.into(), name.into(), by.into(), value).await,
            Self::Client(client) => match client.ask(&Request::Publish { id, name, value, by }).await? {
                Reply::Published { listeners } => Ok(listeners),
                _ => Ok(0),
            },
        }
    }

    /// Sets the cap of an account; without one what was spent from it is forgotten.
    pub async fn budget(
        &self,
        account: String,
        cap: Option<Budget>,
        zone: Option<String>,
    ) -> Result<(), Error> {
        match self {
            Self::Owner(engine) => budget(engine, account, cap, zone).await,
            Self::Client(client) => client.ask(&Request::Budget { account, cap, zone }).await.map(drop),
        }
    }

    /// Removes what nobody needs any more.
    pub async fn sweep(&self, sweep: Sweep) -> Result<Swept, Error> {
        match self {
            Self::Owner(engine) => engine.sweep(sweep).await,
            Self::Client(client) => match client.ask(&Request::Sweep(sweep)).await? {
                Reply::Swept(swept) => Ok(*swept),
                _ => Err(client.unreachable(&"it answered something else")),
            },
        }
    }

    /// Takes over the runs that were exported into a folder.
    pub async fn import(&self, folder: PathBuf) -> Result<Vec<Carried>, Error> {
        match self {
            Self::Owner(engine) => engine.import(&folder).await,
            Self::Client(client) => match client.ask(&Request::Import { folder }).await? {
                Reply::Imported { runs } => Ok(runs),
                _ => Ok(Vec::new()),
            },
        }
    }

    /// Makes the view anew.
    pub async fn rebuild(&self) -> Result<(), Error> {
        match self {
            Self::Owner(engine) => engine.rebuild_view().await,
            Self::Client(client) => client.ask(&Request::Rebuild).await.map(drop),
        }
    }

    /// The owner of a folder, if it has one.
    pub async fn of_owner(folder: &Path, report: Report) -> Result<Option<Self>, Error> {
        ownership::check(folder, ownership::current_user())?;
        let client = Client { socket: folder.join(SOCKET), report };
        Ok(client.finds_owner().await.then_some(Self::Client(client)))
    }

    /// Follows a run that somebody drives.
    pub async fn follow(&self, run: &RunId) -> Result<Following, Error> {
        match self {
            Self::Owner(engine) => engine.follow(run, Since::Now, Patience::Work).await.map(following),
            Self::Client(client) => client.follow(&Request::Follow { run: run.clone() }).await,
        }
    }

    /// Tells a run something and waits until that is durable. True when somebody drives the run.
    pub async fn tell(&self, run: &RunId, order: Order) -> Result<bool, Error> {
        match self {
            Self::Owner(engine) => {
                give(engine, run, order).await?;
                Ok(engine.is_live(run))
            }
            Self::Client(client) => {
                client.ask(&Request::Tell { run: run.clone(), order }).await.map(|_| true)
            }
        }
    }
}

/// The owner is not read from further ahead of the follower than this.
const UPDATES_AHEAD: usize = 64;

const SOCKET: &str = "owner.sock";

/// A longer request is cut, and then refused because it is no JSON.
const REQUEST_BYTES_MAX: u64 = 256 << 20;

/// How often, and how long, an owner is looked for that has the lock and does not listen.
const OWNER_WAIT: Duration = Duration::from_millis(10);
const OWNER_WAIT_MAX: Duration = Duration::from_secs(5);

/// An owner that takes longer to answer is reported.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// The socket of a folder that this process owns.
#[derive(Debug)]
pub struct Listener {
    engine: Arc<Engine>,
    socket: UnixListener,
}

/// How long an owner waits that cannot accept a client, mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Listener {
    pub fn bind(engine: Arc<Engine>) -> Result<Self, Error> {
        let path = engine.folder().join(SOCKET);
        let bound = || {
            // An earlier owner left it: the lock is ours, so no one listens there.
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let socket = UnixListener::bind(short(&path)?.path())?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            Ok(socket)
        };
        match bound() {
            Ok(socket) => Ok(Self { engine, socket }),
            Err(error) => Err(Error::Folder { folder: path, cause: format!("cannot listen there: {error}") }),
        }
    }

    /// Serves clients until it is dropped. `report` is called when it cannot accept them, and when it can again.
    pub async fn serve(self, report: impl Fn(&str)) -> std::convert::Infallible {
        let mut fails = false;
        loop {
            match self.socket.accept().await {
                Ok((stream, _)) => {
                    if std::mem::take(&mut fails) {
                        report("other commands can connect again");
                    }
                    let (engine, guest) = (self.engine.clone(), self.engine.guest());
                    tokio::spawn(async move {
                        let _guest = guest;
                        // A client that went away gets no answer.
                        let _ = serve(&engine, stream).await;
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut fails, true) {
                        report(&format!("other commands cannot connect: {error}; trying again"));
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// A path that fits into the address of a socket, however long the one it stands for is: through an open folder.
#[derive(Debug)]
struct Short {
    path: PathBuf,
    _folder: Option<std::fs::File>,
}

impl Short {
    fn path(&self) -> &Path {
        &self.path
    }
}

/// The longest path that every system takes as the address of a socket.
const ADDRESS_BYTES_MAX: usize = 100;

fn short(path: &Path) -> std::io::Result<Short> {
    use std::os::fd::AsRawFd;
    let (folder, name) = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if path.as_os_str().len() > ADDRESS_BYTES_MAX => (folder, name),
        _ => return Ok(Short { path: path.to_owned(), _folder: None }),
    };
    let folder = std::fs::File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok(Short { path, _folder: Some(folder) })
}

async fn serve(engine: &Arc<Engine>, stream: UnixStream) -> std::io::Result<()> {
    // Another user gets no answer, and nothing that they send is read.
    if check_peer(engine.folder(), &stream, ownership::current_user()).is_err() {
        return Ok(());
    }
    let (reading, mut writing) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reading.take(REQUEST_BYTES_MAX)).read_line(&mut line).await?;
    if line.is_empty() {
        // Somebody only looked whether anybody listens.
        return Ok(());
    }
    let request: Request = match serde_json::from_str(&line) {
        Ok(request) => request,
        Err(error) => {
            let reply = Reply::Refused { code: "bad_request".into(), message: error.to_string() };
            return send(&mut writing, &reply).await;
        }
    };
    // A client that only reads the folder is not waited for.
    if !matches!(request, Request::Executed) {
        engine.was_asked();
    }
    let detached = matches!(request, Request::Start { detach: true, .. });
    let request = match answered(engine, request).await {
        Ok(reply) => return send(&mut writing, &reply).await,
        Err(request) => request,
    };
    let mut followed = match handle(engine, request).await {
        Ok(handle) => following(handle),
        Err(error) => return send(&mut writing, &refused(&error)).await,
    };
    send(&mut writing, &Reply::Driving { run: followed.id.clone() }).await?;
    if detached {
        return send(&mut writing, &Reply::Done { status: RunStatus::Running }).await;
    }
    while let Some(update) = followed.updates.recv().await {
        send(&mut writing, &reply_of(update)).await?;
    }
    let last = match followed.done.await {
        Ok(Ok(status)) => Reply::Done { status },
        Ok(Err(error)) => refused(&error),
        Err(_) => refused(&Error::OwnerGone(followed.id)),
    };
    send(&mut writing, &last).await
}

/// Requests that have one answer; others are given back.
async fn answered(engine: &Arc<Engine>, request: Request) -> Result<Reply, Request> {
    let done = |result: Result<(), Error>| match result {
        Ok(()) => Reply::Done { status: RunStatus::Running },
        Err(error) => refused(&error),
    };
    Ok(match request {
        Request::Tell { run, order } => done(give(engine, &run, order).await),
        Request::Publish { id, name, value, by } => {
            match engine.publish(id.into(), name.into(), by.into(), value).await {
                Ok(listeners) => Reply::Published { listeners },
                Err(error) => refused(&error),
            }
        }
        Request::Import { folder } => match engine.import(&folder).await {
            Ok(runs) => Reply::Imported { runs },
            Err(error) => refused(&error),
        },
        Request::Budget { account, cap, zone } => done(budget(engine, account, cap, zone).await),
        Request::Sweep(sweep) => match engine.sweep(sweep).await {
            Ok(swept) => Reply::Swept(Box::new(swept)),
            Err(error) => refused(&error),
        },
        Request::Rebuild => done(engine.rebuild_view().await),
        Request::Executed => Reply::Executed(engine.executed()),
        other @ (Request::Start { .. } | Request::Resume { .. } | Request::Follow { .. }) => {
            return Err(other);
        }
    })
}

async fn budget(
    engine: &Engine,
    account: String,
    cap: Option<Budget>,
    zone: Option<String>,
) -> Result<(), Error> {
    match cap {
        Some(cap) => engine.set_budget(account.into(), cap, zone.map(Into::into)).await,
        None => engine.reset_budget(account.into()).await,
    }
}

/// The owner listens, and too many other clients wait for it.
fn is_busy(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock
}

type Lines = tokio::io::Lines<BufReader<UnixStream>>;

impl Client {
    fn unreachable(&self, cause: &dyn std::fmt::Display) -> Error {
        Error::Unreachable { socket: self.socket.clone(), cause: cause.to_string() }
    }

    async fn connect(&self) -> std::io::Result<UnixStream> {
        let short = short(&self.socket)?;
        UnixStream::connect(short.path()).await
    }

    async fn finds_owner(&self) -> bool {
        match self.connect().await {
            Ok(_) => true,
            Err(error) => is_busy(&error),
        }
    }

    /// Sends a request and returns the one answer to it.
    async fn ask(&self, request: &Request) -> Result<Reply, Error> {
        self.send(request).await.map(|(reply, _)| reply)
    }

    /// Sends a request and returns the first line of the answer, and the rest as it comes. An owner that takes long is reported,
    /// and waited for as long as the caller wants.
    async fn send(&self, request: &Request) -> Result<(Reply, Lines), Error> {
        let pid = OnceLock::new();
        let mut answer = std::pin::pin!(self.exchange(request, &pid));
        if let Ok(answered) = tokio::time::timeout(ANSWER_WAIT, &mut answer).await {
            return answered;
        }
        let folder = self.socket.parent().unwrap_or(&self.socket).display();
        let pid = pid.get().map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let waited = ANSWER_WAIT.as_secs();
        (self.report)(&format!(
            "the owner of {folder}{pid} has not answered for {waited} seconds; still waiting, Ctrl-C gives up"
        ));
        answer.await
    }

    async fn exchange(&self, request: &Request, pid: &OnceLock<i32>) -> Result<(Reply, Lines), Error> {
        let mut stream = loop {
            match self.connect().await {
                Ok(stream) => break stream,
                Err(error) if is_busy(&error) => tokio::time::sleep(OWNER_WAIT).await,
                Err(error) => return Err(self.unreachable(&error)),
            }
        };
        check_peer(&self.socket, &stream, ownership::current_user())?;
        if let Some(owner) = stream.peer_cred().ok().and_then(|owner| owner.pid()) {
            pid.get_or_init(|| owner);
        }
        let mut line = serde_json::to_vec(request).map_err(|error| self.unreachable(&error))?;
        line.push(b'\n');
        stream.write_all(&line).await.map_err(|error| self.unreachable(&error))?;
        let mut lines = BufReader::new(stream).lines();
        match next(&mut lines).await {
            Some(Reply::Refused { code, message }) => Err(Error::ByOwner { code, message }),
            Some(reply) => Ok((reply, lines)),
            None => Err(self.unreachable(&"it went away")),
        }
    }

    /// Sends a request about a run and follows what becomes of it.
    async fn follow(&self, request: &Request) -> Result<Following, Error> {
        let (Reply::Driving { run: id }, mut lines) = self.send(request).await? else {
            return Err(self.unreachable(&"it answered something else"));
        };
        let (sender, updates) = tokio::sync::mpsc::channel(UPDATES_AHEAD);
        let run = id.clone();
        let done = tokio::spawn(async move {
            while let Some(reply) = next(&mut lines).await {
                let update = match reply {
                    Reply::Done { status } => return Ok(status),
                    Reply::Refused { code, message } => return Err(Error::ByOwner { code, message }),
                    Reply::Driving { .. }
                    | Reply::Published { .. }
                    | Reply::Executed(_)
                    | Reply::Imported { .. }
                    | Reply::Swept(_) => continue,
                    Reply::Event { seq, event } => Update::Event { seq, event },
                    Reply::Notice { text } => Update::Notice(text),
                    Reply::Line { job, stream, text } => {
                        Update::Line(Line { job, stream, bytes: text.into_bytes() })
                    }
                };
                // If no one follows any more, the end is still waited for.
                let _ = sender.send(update).await;
            }
            Err(Error::OwnerGone(run))
        });
        Ok(Following { id, updates: Updates::elsewhere(updates), done })
    }
}

/// Which runs the owner of a folder executes. None if it does not say so in time. Blocks.
pub(crate) fn ask_executed(folder: &Path) -> std::io::Result<Option<Executed>> {
    use std::io::{BufRead as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(short(&folder.join(SOCKET))?.path())?;
    let mut ask = || -> std::io::Result<String> {
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        stream.set_write_timeout(Some(ANSWER_WAIT))?;
        let mut line = serde_json::to_vec(&Request::Executed)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        std::io::BufReader::new(&stream).read_line(&mut answer)?;
        Ok(answer)
    };
    Ok(match ask().map(|answer| serde_json::from_str(&answer)) {
        Ok(Ok(Reply::Executed(executed))) => Some(executed),
        _ => None,
    })
}

/// A request holds the variables of its sender: only a process of the same user may read it.
fn check_peer(socket: &Path, stream: &UnixStream, user: u32) -> Result<(), Error> {
    match stream.peer_cred().map(|peer| peer.uid()) {
        Ok(owner) if owner == user => Ok(()),
        Ok(owner) => Err(Error::Foreign { file: socket.to_owned(), owner, user }),
        Err(error) => Err(Error::Unreachable { socket: socket.to_owned(), cause: error.to_string() }),
    }
}

fn refused(error: &Error) -> Reply {
    Reply::Refused { code: error.code().to_owned(), message: error.to_string() }
}

fn reply_of(update: Update) -> Reply {
    match update {
        Update::Event { seq, event } => Reply::Event { seq, event },
        Update::Notice(text) => Reply::Notice { text },
        Update::Line(line) => Reply::Line {
            job: line.job,
            stream: line.stream,
            text: String::from_utf8_lossy(&line.bytes).into_owned(),
        },
    }
}

async fn send(writing: &mut (impl AsyncWriteExt + Unpin), reply: &Reply) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(reply).map_err(std::io::Error::other)?;
    line.push(b'\n');
    writing.write_all(&line).await
}

async fn handle(engine: &Arc<Engine>, request: Request) -> Result<Handle, Error> {
    match request {
        Request::Start { plan, source, overrides, file, inputs, by, run, from, beginning, .. } => {
            let start = Start {
                run,
                inputs,
                by: by.map(Into::into),
                source,
                overrides,
                file,
                host: from.host()?,
                clock: from.clock(),
                patience: from.patience(),
                claims: Vec::new(),
                lineage: Lineage::default(),
                parents: Vec::new(),
                budgets: Vec::new(),
                beginning,
            };
            engine.start(&plan, start).await
        }
        Request::Resume { run, changes, by, from } => {
            engine.resume(&run, changes, &by, from.host()?, from.clock(), from.patience()).await
        }
        Request::Follow { run } => engine.follow(&run, Since::Now, Patience::Work).await,
        Request::Tell { run, .. } => Err(Error::NoRun(run.to_string())),
        Request::Publish { name, .. } | Request::Budget { account: name, .. } => Err(Error::NoRun(name)),
        Request::Sweep(_) | Request::Rebuild | Request::Executed => Err(Error::NoRun(String::new())),
        Request::Import { folder } => Err(Error::NoRun(folder.display().to_string())),
    }
}

async fn give(engine: &Arc<Engine>, run: &RunId, order: Order) -> Result<(), Error> {
    let input = match order {
        Order::Decide { id, step, choice, by, reason, form } => {
            let whose = run.clone();
            let path = engine.looking(move |engine| engine.gate(&whose, step.as_deref())).await?;
            let decision = GateDecision { choice, by: by.into(), reason: reason.map(Into::into), form };
            Input::Decide { id: id.into(), path, decision }
        }
        Order::Signal { id, name, value, by } => {
            Input::Signal { id: id.into(), name: name.into(), by: by.into(), value, to: None }
        }
        Order::Cancel { why, by } => {
            Input::Cancel { path: windlass_engine::Path::default(), why: why.into(), by: by.into() }
        }
        Order::Pause { by } => Input::Pause { by: by.into() },
    };
    engine.tell(run, input).await
}

fn following(handle: Handle) -> Following {
    let id = handle.id.clone();
    let (updates, done) = handle.split();
    Following { id, updates, done: tokio::spawn(done) }
}

async fn next(lines: &mut Lines) -> Option<Reply> {
    let line = lines.next_line().await.ok()??;
    serde_json::from_str(&line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_process_of_the_same_user_is_spoken_to() {
        let (stream, _peer) = UnixStream::pair().expect("a pair of sockets");
        let (socket, user) = (Path::new("owner.sock"), ownership::current_user());
        check_peer(socket, &stream, user).expect("this process");
        let error = check_peer(socket, &stream, user + 1).expect_err("another user");
        assert_eq!(error.code(), "wrong_owner");
    }
}
