//! `windlass serve`, `windlass resume --all` and the process behind `windlass run --detach`: executes every run of a folder.

use super::run::surroundings;
use super::signals::Signals;
use super::{cannot_start, executing, remark_on_orphans, wait};
use crate::answer::{self, Answer, Exit, Refused};
use crate::show::cells::{Cells, Tone};
use crate::show::marks::State;
use crate::show::words::{count, one_line};
use crate::show::{Screen, progress, times};
use crate::{args, data};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_api::library::Library;
use windlass_api::report::{Report, summary};
use windlass_api::types::RunSummary;
use windlass_api::{Code, Door, Listener, Refusal, Remark};
use windlass_ir::RunStatus;
use windlass_runtime::{
    Activity, Clock, Config, Durability, Engine, Error, Host, Query, Recover, RunId, Triggers,
};
use windlass_server::{Connections, Server, TOKEN_FILE, TokenFile, router};

/// The most unfinished runs to look at when the process stops.
const LEFT_MAX: usize = 1_000;

/// How long an owner with nothing to do waits for its first client.
const FIRST_GUEST: std::time::Duration = std::time::Duration::from_secs(10);

pub fn run(args: args::Serve, screen: &Screen) -> Result<Answer, Refused> {
    let folder = data::folder(&args.data, None);
    // Owners that end by themselves are not servers, unless someone asks for an address.
    let listen = match args.listen {
        Some(address) => Some(Listen::Asked(address)),
        None if args.until_idle || args.asked_only => None,
        None => Some(usual_address()?),
    };
    let how = How {
        listen,
        workflows: args.workflows,
        until_idle: args.until_idle,
        for_guests: true,
        awaits_guest: args.asked_only,
        serves_all: !args.asked_only,
        timers: true,
        schedules: args.schedules,
        json: args.json,
    };
    execute(&folder, args.mock.as_deref(), how, screen)
}

/// `windlass resume --all`.
pub fn resume_all(args: &args::Resume, screen: &Screen) -> Result<Answer, Refused> {
    let folder = match args.schedules.is_empty() {
        true => data::existing(&args.data)?,
        false => data::folder(&args.data, None),
    };
    let how = How {
        listen: None,
        workflows: Vec::new(),
        until_idle: true,
        for_guests: false,
        awaits_guest: false,
        serves_all: true,
        timers: false,
        schedules: args.schedules.clone(),
        json: args.driving.json.is_some(),
    };
    execute(&folder, args.driving.mock.as_deref(), how, screen)
}

struct How {
    /// Where the HTTP API is served.
    listen: Option<Listen>,
    /// Where workflows are looked up by name.
    workflows: Vec<PathBuf>,
    until_idle: bool,
    /// Accept clients.
    for_guests: bool,
    /// The process that started this one is about to connect.
    awaits_guest: bool,
    /// Execute every unfinished run, not only those that clients ask for.
    serves_all: bool,
    /// Keep running while a run waits for time.
    timers: bool,
    schedules: Vec<PathBuf>,
    /// Print notices as JSON.
    json: bool,
}

fn execute(folder: &Path, mock: Option<&Path>, how: How, screen: &Screen) -> Result<Answer, Refused> {
    let runtime = executing()?;
    let answer = runtime.block_on(execute_all(folder, mock, how, screen));
    // Running jobs end with the runtime; the journal records where to continue.
    drop(runtime);
    answer
}

async fn execute_all(
    folder: &Path,
    mock: Option<&Path>,
    how: How,
    screen: &Screen,
) -> Result<Answer, Refused> {
    let failed = |cause: String| Error::Folder { folder: folder.to_owned(), cause };
    let notice = answer::voice(how.json);
    // A file that cannot be served is refused before anything begins.
    let entries = crate::triggers::scheduled(&how.schedules, screen)?;
    let mut signals = Signals::new().map_err(|error| cannot_start(&error))?;
    let opened = tokio::select! {
        opened = Door::open(folder, Durability::Disk, notice) => opened?,
        _ = signals.next() => return Ok(Answer::new(Exit::Stopped)),
    };
    let engine = match opened {
        Door::Owner(engine) => engine,
        Door::Client(_) => return Err(Error::Owned(folder.to_owned()).into()),
    };
    remark_on_orphans(notice);
    let mut from = surroundings(mock, false, false)?;
    from.config = data::config(None, folder);
    engine.read_with(Arc::new(crate::load::Files));
    let mut listening = listen(&engine, notice)?;
    let http = Http::open(&engine, &how, notice).await?;
    let log = ServeLog { engine: engine.clone(), json: how.json, screen: *screen };
    let logging = how.for_guests.then(|| tokio::spawn(log.clone().follow(engine.observe())));
    let stop_listening = listening.abort_handle();
    let before = if how.for_guests { Vec::new() } else { unfinished(&engine)? };
    let disabled = entries.disabled;
    let (triggers, parked) = Triggers::load(&engine, entries.ready, Clock::Real.now()).await;
    if how.for_guests {
        log.begin(folder, &triggers, disabled, http.as_ref());
    }
    if how.serves_all {
        let config = from.config.as_deref().map(Config::read).transpose().map_err(Error::from)?;
        // `resume --all` resumes all runs regardless of the configuration.
        let recover = config.filter(|_| how.for_guests).map(|config| config.runs.recover).unwrap_or_default();
        tokio::select! {
            served = serve_all(&engine, from.host()?, recover, notice) => served?,
            _ = signals.next() => {
                stop(&engine, &mut signals).await;
                return Ok(Answer::new(Exit::Stopped));
            }
        }
    }
    if !entries.report.is_empty() {
        notice(entries.report.trim_end());
    }
    for (trigger, kind) in &entries.cannot_fire {
        notice(&format!(
            "warning: trigger {trigger} does not fire: this version cannot serve {kind} triggers"
        ));
    }
    for parked in parked {
        notice(&format!("trigger {} does not fire: {}", parked.trigger, parked.why));
    }
    if how.for_guests && how.schedules.is_empty() && !how.awaits_guest {
        not_served().iter().for_each(|text| notice(text));
    }
    let served = http.map(Http::serve);
    let firing = tokio::spawn(triggers.run());
    let idle = async {
        if how.awaits_guest && !engine.is_executing().await {
            let _ = tokio::time::timeout(FIRST_GUEST, engine.asked()).await;
        }
        engine.idle(how.timers).await;
        firing.abort();
        stop_listening.abort();
        // Serve a client that connected at the last moment.
        engine.idle(how.timers).await;
    };
    if how.until_idle {
        tokio::select! {
            () = idle => {}
            _ = signals.next() => {
                stop(&engine, &mut signals).await;
                log.end(logging).await;
                return Ok(Answer::new(Exit::Stopped));
            }
            error = engine.broken() => return Err(error.into()),
            cause = ended(&mut listening) => return Err(failed(cause).into()),
        }
    } else {
        tokio::select! {
            _ = signals.next() => {}
            error = engine.broken() => return Err(error.into()),
            cause = ended(&mut listening) => return Err(failed(cause).into()),
        }
        firing.abort();
        stop_listening.abort();
        if let Some(served) = served {
            served.stop().await;
        }
        stop(&engine, &mut signals).await;
        log.end(logging).await;
        return Ok(Answer::new(Exit::Done));
    }
    log.end(logging).await;
    Ok(if how.for_guests { Answer::new(Exit::Done) } else { resumed(&engine, &before, how.json) })
}

/// Where the HTTP API is served.
enum Listen {
    Asked(SocketAddr),
    /// The usual address, or if another server has it, a free port.
    Default,
}

/// The address in the environment, or else the default.
fn usual_address() -> Result<Listen, Refusal> {
    let Some(text) = std::env::var_os("WINDLASS_LISTEN").filter(|text| !text.is_empty()) else {
        return Ok(Listen::Default);
    };
    let address = text.to_str().and_then(|text| text.parse().ok());
    address.map(Listen::Asked).ok_or_else(|| {
        let message = format!("invalid address `{}` in WINDLASS_LISTEN", text.display());
        Refusal::new(Code::BadRequest, message).help("write an address and a port, such as 127.0.0.1:7421")
    })
}

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7421);

/// The HTTP API, bound to its address.
struct Http {
    connections: Connections,
    server: Server,
}

/// The HTTP API while it serves clients.
struct Serving {
    stopping: CancellationToken,
    task: JoinHandle<()>,
}

impl Http {
    async fn open(engine: &Arc<Engine>, how: &How, notice: Remark) -> Result<Option<Self>, Refusal> {
        let (address, is_default) = match how.listen {
            None => return Ok(None),
            Some(Listen::Asked(address)) => (address, false),
            Some(Listen::Default) => (ADDRESS, true),
        };
        if !address.ip().is_loopback() {
            let message = format!("cannot serve {address}: it is not a loopback address");
            let refusal = Refusal::new(Code::BadRequest, message).field("listen");
            return Err(refusal.help("listen on 127.0.0.1, and let a proxy with TLS serve other machines"));
        }
        let connections = match Connections::bind(address).await {
            Err(error) if is_default && error.kind() == ErrorKind::AddrInUse => {
                notice(&format!("{address} is in use, so this server picks a free port"));
                Connections::bind(SocketAddr::new(address.ip(), 0)).await
            }
            bound => bound,
        };
        let connections = connections.map_err(|error| {
            let refusal = Refusal::new(Code::Unreachable, format!("cannot listen on {address}: {error}"));
            refusal.help("choose another address with --listen; port 0 picks a free port")
        })?;
        let token = TokenFile::open(engine.folder()).map_err(|error| {
            let cause = format!("cannot write {TOKEN_FILE}: {error}");
            Refusal::from(Error::Folder { folder: engine.folder().to_owned(), cause })
        })?;
        let user = data::login(None);
        let server = Server::new(engine.clone(), token, &user, connections.address);
        Ok(Some(Self { connections, server: server.with_workflows(how.workflows.clone()) }))
    }

    fn url(&self) -> String {
        format!("http://{}", self.connections.address)
    }

    fn serve(self) -> Serving {
        let stopping = self.server.stopping.clone();
        let task = tokio::spawn(self.connections.serve(router(self.server), stopping.clone()));
        Serving { stopping, task }
    }
}

impl Serving {
    /// Ends streams, and lets other requests finish.
    async fn stop(self) {
        self.stopping.cancel();
        let _ = self.task.await;
    }
}

/// The most files to name in a message.
const FILES_NAMED_MAX: usize = 3;

/// How to serve the triggers of the workflows in this folder, if there are any.
fn not_served() -> Option<String> {
    let library = Library::scan(&[PathBuf::from(".")]);
    let files: Vec<PathBuf> = library.entries.into_iter().map(|entry| entry.file).collect();
    let found = crate::triggers::read(&files);
    let files: Vec<String> = found
        .iter()
        .filter(|file| !file.entries.is_empty())
        .map(|file| one_line(file.file.trim_start_matches("./")))
        .collect();
    let named: String =
        files.iter().take(FILES_NAMED_MAX).map(|file| format!(" --schedules {file}")).collect();
    let what = match files.len() {
        0 => return None,
        1 => "1 workflow here has triggers".to_owned(),
        some => format!("{some} workflows here have triggers"),
    };
    Some(format!("{what} that do not fire; serve them with `windlass serve{named}`"))
}

/// What a serving process says about its work: one line or one object each.
#[derive(Clone)]
struct ServeLog {
    engine: Arc<Engine>,
    json: bool,
    screen: Screen,
}

impl ServeLog {
    /// The folder, the triggers and the next firing.
    fn begin(&self, folder: &Path, triggers: &Triggers, disabled: usize, http: Option<&Http>) {
        let now = Clock::Real.now();
        let next = triggers.next(now);
        if self.json {
            let next = next.map(|(trigger, at)| json!({"trigger": trigger, "at": at.to_string()}));
            let line = json!({
                "type": "listening",
                "url": http.map(Http::url),
                "token_file": http.map(|http| &http.server.token.path),
                "folder": folder,
                "triggers": triggers.len(),
                "next": next,
            });
            answer::line(&line.to_string());
            return;
        }
        let off = if disabled > 0 { format!(" ({disabled} disabled)") } else { String::new() };
        let next =
            next.map(|(trigger, at)| format!(", next {} at {}", one_line(&trigger), times::clock(at, now)));
        let triggers = match triggers.len() {
            0 => "no triggers loaded".to_owned(),
            some => count(some, "trigger"),
        };
        let next = next.unwrap_or_default();
        answer::remark(&format!("serving {}: {triggers}{off}{next}", folder.display()));
        if let Some(http) = http {
            let token = http.server.token.path.display();
            answer::remark(&format!("listening on {}; the access token is in {token}", http.url()));
        }
    }

    /// Tells what happens until the process ends. Returns how many runs ended.
    async fn follow(self, mut activity: tokio::sync::mpsc::Receiver<Activity>) -> usize {
        let mut ended = 0;
        while let Some(activity) = activity.recv().await {
            if let Activity::Ended { .. } = activity {
                ended += 1;
            }
            let log = self.clone();
            // Reading the row of a run may wait for the disk.
            let told = tokio::task::spawn_blocking(move || log.tell(&activity));
            let _ = told.await;
        }
        ended
    }

    fn tell(&self, activity: &Activity) {
        match self.json {
            true => drop(answer::line(&self.object(activity).to_string())),
            false => answer::remark(&self.line(activity)),
        }
    }

    fn object(&self, activity: &Activity) -> serde_json::Value {
        match activity {
            Activity::Fired(firing) => {
                let (run, reason) = match &firing.came {
                    Ok(run) => (Some(run), None),
                    Err(why) => (None, Some(why)),
                };
                json!({
                    "type": "fired",
                    "trigger": firing.trigger,
                    "due_at": firing.due.to_string(),
                    "fired_at": firing.decided_at.to_string(),
                    "outcome": if run.is_some() { "started" } else { "skipped" },
                    "reason": reason,
                    "run_id": run,
                })
            }
            Activity::Started { run, workflow } => {
                json!({"type": "started", "run_id": run, "workflow": workflow})
            }
            Activity::Reopened(run) => json!({"type": "reopened", "run_id": run}),
            Activity::Ended { run, status } => {
                let run_id = run.to_string();
                let headline = self.summary(run).map(|run| run.headline);
                json!({"type": "ended", "run_id": run_id, "status": status, "headline": headline})
            }
        }
    }

    fn line(&self, activity: &Activity) -> String {
        let now = Clock::Real.now();
        let (state, text) = match activity {
            Activity::Fired(firing) => match &firing.came {
                Ok(run) => {
                    (State::Pending, format!("trigger {} fires: run {run}", one_line(&firing.trigger)))
                }
                Err(why) => {
                    let trigger = one_line(&firing.trigger);
                    (State::Skipped, format!("trigger {trigger} starts no run: {}", one_line(why)))
                }
            },
            Activity::Started { run, workflow } => {
                (State::Running, format!("run {run} of {} started", one_line(workflow)))
            }
            Activity::Reopened(run) => (State::Running, format!("run {run} continues")),
            Activity::Ended { run, status } => {
                let summary = self.summary(run);
                let headline = summary.as_ref().map_or(status.word(), |run| run.headline.as_str());
                let took = summary.as_ref().and_then(|run| run.duration_seconds);
                let took = took.map(|took| format!("; took {}", times::seconds(took))).unwrap_or_default();
                let sentence = progress::sentence(run.as_str(), *status, headline);
                (State::of_run(*status, &[]), format!("{sentence}{took}"))
            }
        };
        let line = Cells::default().with(Tone::Dim, &times::clock(now, now)).with(Tone::Plain, " ");
        let line = line.with(state.tone(), state.symbol(&self.screen));
        line.with(Tone::Plain, &format!(" {text}")).render(self.screen.color)
    }

    fn summary(&self, run: &RunId) -> Option<RunSummary> {
        let query = Query { prefix: run.to_string(), limit: 1, ..Query::default() };
        let rows = self.engine.runs(&query).ok()?;
        rows.iter().find(|row| row.run == *run).map(summary)
    }

    /// Tells what is left to tell, and what was done.
    async fn end(self, logging: Option<JoinHandle<usize>>) {
        let Some(logging) = logging else { return };
        // The observer ends with its only sender.
        drop(self.engine.observe());
        let ended = logging.await.unwrap_or_default();
        let interrupted = self.interrupted();
        if self.json {
            let line = json!({"type": "stopped", "runs_ended": ended, "runs_interrupted": interrupted});
            answer::line(&line.to_string());
            return;
        }
        let left = match interrupted {
            0 => String::new(),
            1 => ", 1 run is interrupted; `windlass serve` or `windlass resume` continues it".to_owned(),
            some => format!(
                ", {some} runs are interrupted; `windlass serve` or `windlass resume --all` continues them"
            ),
        };
        answer::remark(&format!("stopped serving; {} ended meanwhile{left}", count(ended, "run")));
    }

    /// How many runs were in progress when the process stopped. A run that waits for a person is not among them.
    fn interrupted(&self) -> usize {
        let query = Query { limit: LEFT_MAX, unfinished_only: true, ..Query::default() };
        let rows = self.engine.runs(&query).unwrap_or_default();
        let is_left = |run: &RunSummary| match run.status {
            RunStatus::Running | RunStatus::Interrupted => true,
            RunStatus::Pending
            | RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Success
            | RunStatus::Failed
            | RunStatus::Cancelled => false,
        };
        rows.iter().map(summary).filter(is_left).count()
    }
}

/// Executes every run, or marks unfinished runs as interrupted.
async fn serve_all(engine: &Arc<Engine>, host: Host, recover: Recover, notice: Remark) -> Result<(), Error> {
    match recover {
        Recover::Resume => {
            for (run, error) in engine.serve_all(host).await? {
                notice(&format!("run {run} is not executed: {error}"));
            }
        }
        Recover::Interrupt => match engine.serve_new(host).await? {
            0 => {}
            1 => notice("1 unfinished run is interrupted; `windlass runs --status interrupted` names it"),
            count => notice(&format!(
                "{count} unfinished runs are interrupted; `windlass resume RUN` continues one of them"
            )),
        },
    }
    Ok(())
}

/// Listens for clients of a folder that this process owns.
pub(super) fn listen(engine: &Arc<Engine>, notice: Remark) -> Result<JoinHandle<Infallible>, Refusal> {
    raise_file_limit();
    let listener = Listener::bind(engine.clone())?;
    Ok(tokio::spawn(listener.serve(notice)))
}

/// Waits until the listener ends, which happens only if it crashes.
async fn ended(listening: &mut JoinHandle<Infallible>) -> String {
    match listening.await {
        Err(error) if error.is_cancelled() => std::future::pending().await,
        Err(error) => format!("the listener for other commands ended: {error}"),
    }
}

/// The most files an owner may open. Steps inherit the limit, and some programs close every descriptor below it.
const FILES_MAX: u64 = 65_536;

/// A few hundred concurrent jobs use up the usual limit of 1,024.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES_MAX, |most| most.min(FILES_MAX));
    if limit.current.is_some_and(|current| current < wanted) {
        // With the lower limit the owner still works, but for fewer concurrent jobs.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

/// Stops the running jobs, unless the user asks to end at once.
async fn stop(engine: &Engine, signals: &mut Signals) {
    tokio::select! { () = engine.stop() => {}, () = signals.at_once() => {} }
}

fn unfinished(engine: &Engine) -> Result<Vec<RunId>, Error> {
    let rows = engine.runs(&Query { unfinished_only: true, ..Query::default() })?;
    Ok(rows.into_iter().filter(|row| row.row.ended_at.is_none()).map(|row| row.run).collect())
}

/// The resumed runs, and the worst of their results.
fn resumed(engine: &Arc<Engine>, runs: &[RunId], json: bool) -> Answer {
    let mut answer = Answer::new(Exit::Done);
    for run in runs {
        let exit = match engine.view(run) {
            Ok(view) => {
                let shown = Report::of(engine, run, &view).run();
                match json {
                    true => answer.stdout += &(serde_json::to_string(&shown).unwrap_or_default() + "\n"),
                    false => answer.stderr += &wait::line(&shown),
                }
                shown.status.into()
            }
            // Windlass does not execute a damaged run, and the command fails.
            Err(error) => {
                let refusal = Refusal::from(error);
                match json {
                    true => answer.stdout += &format!("{}\n", json!({"type": "refused", "error": refusal})),
                    false => answer.stderr += &format!("run {run} is not executed: {refusal}\n"),
                }
                refusal.code.exit()
            }
        };
        answer.status = Exit::worst([answer.status, exit]);
    }
    answer
}
