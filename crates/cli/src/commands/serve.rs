//! `windlass serve`, `windlass resume --all` and the process behind `windlass run --detach`: drives every run of a folder.

use super::run::surroundings;
use super::signals::Signals;
use super::{refused, remark_on_orphans};
use crate::answer::{self, Answer, Status};
use crate::show::Screen;
use crate::{args, data};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;
use windlass_dialects::DIALECTS;
use windlass_ir::RunStatus;
use windlass_runtime::{
    Clock, Config, Door, Durability, Engine, Error, Host, Listener, Query, Recover, Triggers,
};

/// How long an owner that has nothing to do waits for the first who wants something of it.
const FIRST_GUEST: std::time::Duration = std::time::Duration::from_secs(10);

pub fn run(args: args::Serve, screen: &Screen) -> Answer {
    let folder = data::folder(&args.data, None);
    let how = How {
        until_idle: args.until_idle,
        for_guests: true,
        serves_all: !args.asked_only,
        timers: true,
        schedules: args.schedules,
    };
    drive(&folder, args.script.as_deref(), how, screen)
}

/// `windlass resume --all`.
pub fn resume_all(args: &args::Resume, screen: &Screen) -> Answer {
    let folder = data::folder(&args.data, None);
    let how = How {
        until_idle: true,
        for_guests: false,
        serves_all: true,
        timers: false,
        schedules: args.schedules.clone(),
    };
    drive(&folder, args.driving.script.as_deref(), how, screen)
}

struct How {
    until_idle: bool,
    /// Somebody is expected to come.
    for_guests: bool,
    /// Execute every unfinished run, not only those that clients ask for.
    serves_all: bool,
    /// Stay while a run waits for time.
    timers: bool,
    schedules: Vec<PathBuf>,
}

fn drive(folder: &Path, script: Option<&Path>, how: How, screen: &Screen) -> Answer {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let stderr = format!("error: cannot start: {error}\n");
            return Answer { stderr, ..Answer::new(Status::Refused) };
        }
    };
    let answer = runtime.block_on(drive_all(folder, script, how, screen));
    // Whatever is still at work is ended with the runtime; the journal knows where to go on.
    drop(runtime);
    match answer {
        Ok(answer) => answer,
        Err(error) => refused(&error),
    }
}

async fn drive_all(folder: &Path, script: Option<&Path>, how: How, screen: &Screen) -> Result<Answer, Error> {
    let failed = |cause: String| Error::Folder { folder: folder.to_owned(), cause };
    let mut signals = Signals::new().map_err(|error| failed(error.to_string()))?;
    let opened = tokio::select! {
        opened = Door::open(folder, Durability::Disk, DIALECTS, answer::remark) => opened?,
        _ = signals.next() => return Ok(Answer::new(Status::Stopped)),
    };
    let engine = match opened {
        Door::Owner(engine) => engine,
        Door::Client(_) => return Err(Error::Owned(folder.to_owned())),
    };
    remark_on_orphans();
    let mut from = match surroundings(script, false, false) {
        Ok(from) => from,
        Err(refusal) => return Err(failed(refusal.findings[0].message.clone())),
    };
    from.config = data::config(None, folder);
    engine.read_with(Arc::new(crate::load::Files));
    let mut listening = listen(&engine)?;
    let stop_listening = listening.abort_handle();
    let before = if how.for_guests { Vec::new() } else { unfinished(&engine)? };
    if how.serves_all {
        let config = from.config.as_deref().map(Config::read).transpose()?;
        // To resume all runs is what `resume --all` asks for, whatever the file says.
        let recover = config.filter(|_| how.for_guests).map(|config| config.runs.recover).unwrap_or_default();
        tokio::select! {
            served = serve_all(&engine, from.host()?, recover) => served?,
            _ = signals.next() => {
                stop(&engine, &mut signals).await;
                return Ok(Answer::new(Status::Stopped));
            }
        }
    }
    let (entries, findings) = crate::triggers::scheduled(&how.schedules, screen);
    if !findings.is_empty() {
        answer::remark(findings.trim_end());
    }
    let (triggers, parked) = Triggers::load(&engine, entries, Clock::Real.now()).await;
    for parked in parked {
        answer::remark(&format!("trigger {} does not fire: {}", parked.trigger, parked.why));
    }
    let firing = tokio::spawn(triggers.run());
    let idle = async {
        if how.for_guests && !engine.is_driving().await {
            // Whoever started this process is about to come.
            let _ = tokio::time::timeout(FIRST_GUEST, engine.asked()).await;
        }
        engine.idle(how.timers).await;
        firing.abort();
        stop_listening.abort();
        // Whoever came at the last moment is served.
        engine.idle(how.timers).await;
    };
    if how.until_idle {
        tokio::select! {
            () = idle => {}
            _ = signals.next() => {
                stop(&engine, &mut signals).await;
                return Ok(Answer::new(Status::Stopped));
            }
            error = engine.broken() => return Err(error),
            cause = ended(&mut listening) => return Err(failed(cause)),
        }
    } else {
        tokio::select! {
            _ = signals.next() => {}
            error = engine.broken() => return Err(error),
            cause = ended(&mut listening) => return Err(failed(cause)),
        }
        firing.abort();
        stop_listening.abort();
        stop(&engine, &mut signals).await;
        return Ok(Answer::new(Status::Done));
    }
    Ok(if how.for_guests { Answer::new(Status::Done) } else { told(&engine, &before) })
}

/// Executes every run, or leaves alone those that it finds unfinished.
async fn serve_all(engine: &Arc<Engine>, host: Host, recover: Recover) -> Result<(), Error> {
    match recover {
        Recover::Resume => {
            for (run, error) in engine.serve_all(host).await? {
                answer::remark(&format!("run {run} is left alone: {error}"));
            }
        }
        Recover::Interrupt => match engine.serve_new(host).await? {
            0 => {}
            1 => answer::remark("1 unfinished run is interrupted; `windlass resume last` continues it"),
            count => answer::remark(&format!(
                "{count} unfinished runs are interrupted; `windlass resume RUN` continues one of them"
            )),
        },
    }
    Ok(())
}

/// Listens for clients of a folder that this process owns.
pub(super) fn listen(engine: &Arc<Engine>) -> Result<JoinHandle<Infallible>, Error> {
    raise_file_limit();
    let listener = Listener::bind(engine.clone())?;
    Ok(tokio::spawn(listener.serve(answer::remark)))
}

/// Waits until the listener ends by itself, which it does not.
async fn ended(listening: &mut JoinHandle<Infallible>) -> String {
    match listening.await {
        Err(error) if error.is_cancelled() => std::future::pending().await,
        Err(error) => format!("the listener for other commands ended: {error}"),
    }
}

/// So many files an owner may have open. Steps inherit the limit, and some programs close every number below it.
const FILES_MAX: u64 = 65_536;

/// The usual limit of 1,024 is used up by a few hundred jobs at once.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES_MAX, |most| most.min(FILES_MAX));
    if limit.current.is_some_and(|current| current < wanted) {
        // With the lower limit the owner works too, only for fewer jobs at once.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

/// Ends what is at work, unless somebody cannot wait for that.
async fn stop(engine: &Engine, signals: &mut Signals) {
    tokio::select! { () = engine.stop() => {}, () = signals.at_once() => {} }
}

fn unfinished(engine: &Engine) -> Result<Vec<windlass_runtime::RunId>, Error> {
    let rows = engine.runs(&Query { unfinished_only: true, ..Query::default() })?;
    Ok(rows.into_iter().filter(|row| row.row.ended_at.is_none()).map(|row| row.run).collect())
}

/// How those stand that were not finished.
fn told(engine: &Arc<Engine>, runs: &[windlass_runtime::RunId]) -> Answer {
    let mut answer = Answer::new(Status::Done);
    for run in runs {
        let status = match engine.status(run) {
            Ok(status) => status,
            // A run whose journal contradicts its plan is parked.
            Err(error) if error.code() == "contradictory_journal" => RunStatus::Interrupted,
            Err(_) => continue,
        };
        answer.stderr += &format!("{run}: {status}\n");
        let status = match status.into() {
            Status::Stopped => Status::Waiting,
            status => status,
        };
        if status == Status::Failed || answer.status == Status::Done {
            answer.status = status;
        }
    }
    answer
}
