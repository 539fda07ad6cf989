//! `windlass run` and `windlass resume`: drives a run, or follows the owner that does, until it ends or waits for people.

use super::follow::{self, End, Watching};
use super::signals::Signals;
use super::{block_on, inputs, plan, refused};
use crate::answer::{self, Answer, Status};
use crate::args::{self, Driving};
use crate::load::{self, Refusal};
use crate::show::{Screen, Screens};
use crate::{data, show};
use serde_json::{Value as Value_, json};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use windlass_dialects::Dialect;
use windlass_ir::Value;
use windlass_ir::plan::{Given, PlanStep};
use windlass_ir::workflow::{Action, BuiltinKind, Kind, Words};
use windlass_runtime::report::{self, Standing};
use windlass_runtime::{
    Clock, Config, Door, Durability, Engine, Error, Program, Query, Request, RunId, Surroundings, View,
    listen, new_id,
};

pub fn run(args: args::Run, screens: &Screens) -> Answer {
    let file = args.what.file.clone();
    let json = args.driving.json.is_some();
    let refuse = |refusal: &Refusal| match json {
        true => refusal.answer_with_json(&screens.stderr),
        false => refusal.answer(&screens.stderr),
    };
    let mut what = args.what;
    if !json {
        what.params.extend(inputs::asked(&what, &screens.stderr));
    }
    let (opened, parameters) = match plan::prepare(what) {
        Ok(prepared) => prepared,
        Err(refusal) => return refuse(&refusal),
    };
    let mut from = match driven_from(&args.driving) {
        Ok(from) => from,
        Err(refusal) => return refuse(&refusal),
    };
    let folder = data::folder(&args.data, Some(&file));
    from.config = data::config(Some(&file), &folder);
    let config = match from.config.as_deref().map(Config::read).transpose() {
        Ok(config) => config,
        Err(bad) => return refused_start(&bad.into(), json),
    };
    if args.run_id.as_deref() == Some("last") {
        let stderr =
            "error[bad_run_id]: `last` always means the run that was started last: choose another id\n";
        return Answer { stderr: stderr.into(), ..Answer::new(Status::Refused) };
    }
    let run = match args.run_id.as_deref().map(RunId::new).transpose() {
        // One that is left to another process has its id before that hears of it.
        Ok(None) if args.detach => new_id(&Clock::Real).map(Some),
        run => run,
    };
    let run = match run {
        Ok(run) => run,
        Err(error) => return refused_start(&Error::RunId(error), json),
    };
    if let Err(error) = Program::new(opened.plan.clone()) {
        return refused_start(&error.into(), json);
    }
    let nobody = opened.plan.steps.iter().find(|step| is_for_others(step, config.as_ref()));
    if let (None, Some(step)) = (&from.script, nobody) {
        let (step, kind, task) = (step.id.to_string(), step.word.to_string(), task(step));
        return refused_start(&Error::NobodyFor { step, kind, task }, json);
    }
    let note = opened.note(&screens.stderr);
    if !note.is_empty() {
        answer::remark(note.trim_end());
    }
    let by = data::login(args.by);
    let texts: Vec<String> = opened.sources.iter().map(|source| source.text.to_string()).collect();
    let request = Request::Start {
        source: texts.first().cloned().unwrap_or_default(),
        overrides: texts.get(1).cloned().unwrap_or_default(),
        file: load::location(&file),
        plan: Box::new(opened.plan),
        inputs: parameters.to_value(),
        by: Some(by.clone()),
        run: run.clone(),
        from,
        detach: args.detach,
    };
    match run.filter(|_| args.detach) {
        Some(run) => detach(&folder, run, &request, json),
        None => drive(&folder, request, &args.driving, &by, &screens.stderr),
    }
}

/// Leaves a run to the owner of the folder, which is started if there is none.
fn detach(folder: &Path, run: RunId, request: &Request, json: bool) -> Answer {
    match left_to_owner(folder, run, request) {
        Ok(run) if json => Answer {
            stdout: format!("{}\n", json!({"type": "started", "run_id": run})),
            ..Answer::new(Status::Done)
        },
        Ok(run) => {
            let stderr = format!("run {run}\nwait for it with `windlass wait {run}`\n");
            Answer { stdout: format!("{run}\n"), stderr, ..Answer::new(Status::Done) }
        }
        Err(error) => refused_start(&error, json),
    }
}

/// An owner that was about to end may not have heard it: then the next one does. It is told once, since the run has its id already.
fn left_to_owner(folder: &Path, run: RunId, request: &Request) -> Result<RunId, Error> {
    let mut tried = false;
    loop {
        let door = owner_of(folder)?;
        match block_on(folder, door.drive(request.clone())) {
            Ok(following) => return Ok(following.id),
            Err(Error::ByOwner { code, .. }) if tried && code == "run_exists" => return Ok(run),
            Err(Error::Unreachable { .. }) if !tried => tried = true,
            Err(error) => return Err(error),
        }
    }
}

/// How long a process that was started to own a folder may take until it listens.
const OWNER_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(20);

fn owner_of(folder: &Path) -> Result<Door, Error> {
    let failed =
        |error: std::io::Error| Error::Folder { folder: folder.to_owned(), cause: error.to_string() };
    let deadline = std::time::Instant::now() + OWNER_WAIT_MAX;
    let mut child: Option<std::process::Child> = None;
    loop {
        if let Some(door) = Door::of_owner(folder) {
            return Ok(door);
        }
        let gone = match &mut child {
            Some(child) => child.try_wait().map_err(failed)?.is_some(),
            None => true,
        };
        if std::time::Instant::now() > deadline {
            return Err(failed(std::io::Error::other("nobody listens there")));
        }
        // Another process may have been faster, and be about to end.
        if gone {
            child = Some(start_owner(folder).map_err(failed)?);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A process of its own, that has nothing open of this one.
fn start_owner(folder: &Path) -> std::io::Result<std::process::Child> {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    std::fs::create_dir_all(folder)?;
    Command::new(std::env::current_exe()?)
        .args(["serve", "--until-idle", "--data"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// The task of a worker.
fn task(step: &PlanStep) -> Option<String> {
    let Kind::Action(Action::Task(task)) = &step.kind else { return None };
    Some(task.task.to_string())
}

/// Work that this program has no executor for yet.
fn is_for_others(step: &PlanStep, config: Option<&Config>) -> bool {
    match &step.kind {
        Kind::Action(action) => match action {
            Action::Shell(_) | Action::Assistant(_) | Action::Call(_) => false,
            Action::Builtin(builtin) => match builtin.what {
                BuiltinKind::SpeckitInit | BuiltinKind::GithubAddLabel => false,
                BuiltinKind::Respond => true,
            },
            Action::Task(task) => !config.is_some_and(|config| config.tasks.contains_key(&task.task)),
            Action::Agent(_) | Action::Tool(_) | Action::Http(_) => true,
        },
        Kind::Gate(_)
        | Kind::Wait(_)
        | Kind::Assign(_)
        | Kind::Finish(_)
        | Kind::Slot(_)
        | Kind::Block(_)
        | Kind::Parallel(_)
        | Kind::ForEach(_)
        | Kind::Repeat(_)
        | Kind::Choose(_)
        | Kind::Guard(_) => false,
    }
}

pub fn resume(args: args::Resume, screen: &Screen) -> Answer {
    let json = args.driving.json.is_some();
    let Some(name) = &args.run else { return super::serve::resume_all(&args, screen) };
    let (folder, engine, run) = match data::find(&args.data, name) {
        Ok(found) => found,
        Err(error) => return refused_start(&error, json),
    };
    let view = match engine.view(&run) {
        Ok(view) => view,
        Err(error) => return refused_start(&error, json),
    };
    let changes = match changed_inputs(&view, args.params) {
        Ok(changes) => changes,
        Err(answer) => return *answer,
    };
    drop(engine);
    let mut from = match driven_from(&args.driving) {
        Ok(from) => from,
        Err(refusal) => {
            return Answer {
                stderr: refusal.findings[0].message.clone() + "\n",
                ..Answer::new(Status::Refused)
            };
        }
    };
    from.config = Config::recorded(&view).or_else(|| data::config(None, &folder));
    let by = data::login(args.by);
    let request = Request::Resume { run, changes, by: by.clone(), from };
    drive(&folder, request, &args.driving, &by, screen)
}

/// Parameters given anew, converted by the types that the run's plan declares.
fn changed_inputs(view: &View, params: Vec<(String, String)>) -> Result<Value, Box<Answer>> {
    if params.is_empty() {
        return Ok(Value::map::<&str>([]));
    }
    let mut given: indexmap::IndexMap<String, Given> = match &view.inputs {
        Value::Map(inputs) => {
            inputs.iter().map(|(name, value)| (name.to_string(), Given::Value(value.clone()))).collect()
        }
        Value::Null => indexmap::IndexMap::new(),
        other => {
            let stderr = format!(
                "error[bad_parameter]: the run was started with {}, so no single value of it can be changed\n",
                other.kind()
            );
            return Err(Box::new(Answer { stderr, ..Answer::new(Status::Refused) }));
        }
    };
    let names: Vec<String> = params.iter().map(|(name, _)| name.clone()).collect();
    given.extend(params.into_iter().map(|(name, text)| (name, Given::Text(text))));
    let plan = &view.program().plan;
    let all = plan.parameters(&given, words(&plan.dialect)).map_err(|findings| {
        let lines: Vec<String> = findings
            .iter()
            .map(|finding| format!("error[{}]: {} ({})\n", finding.code, finding.message, finding.help))
            .collect();
        Box::new(Answer { stderr: lines.concat(), ..Answer::new(Status::Refused) })
    })?;
    let changed = all.values.into_iter().filter(|(name, _)| names.iter().any(|changed| **changed == **name));
    Ok(Value::map(changed.map(|(name, (value, _))| (name, value))))
}

/// The words of the dialect that a plan was written in.
fn words(dialect: &str) -> &'static Words {
    Dialect::by_name(dialect).unwrap_or(Dialect::Swdl).words()
}

fn driven_from(driving: &Driving) -> Result<Surroundings, Refusal> {
    surroundings(driving.script.as_deref(), driving.virtual_time, driving.wait || is_attended())
}

/// Whoever sits at a terminal can decide there or in another one, or end this with Ctrl-C.
pub(super) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Those of this process, with a script in place of what it cannot do.
pub(super) fn surroundings(
    script: Option<&Path>,
    virtual_time: bool,
    wait: bool,
) -> Result<Surroundings, Refusal> {
    let script = script.map(load::object).transpose()?;
    Ok(Surroundings { script, virtual_time, wait, ..Surroundings::here() })
}

fn refused_start(error: &Error, json: bool) -> Answer {
    let answer = refused(error);
    match json {
        true => {
            let object = json!({"type": "refused", "error": {"code": error.code(), "message": error.to_string(), "step": null, "field": null}, "diagnostics": []});
            Answer { stdout: format!("{object}\n"), ..answer }
        }
        false => answer,
    }
}

fn drive(folder: &Path, request: Request, driving: &Driving, by: &str, screen: &Screen) -> Answer {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Answer {
                stderr: format!("error: cannot start: {error}\n"),
                ..Answer::new(Status::Refused)
            };
        }
    };
    let answer = runtime.block_on(follow_to_the_end(folder, request, driving, by, screen));
    // Whatever is still at work is ended with the runtime; the journal knows where to go on.
    drop(runtime);
    answer
}

/// How often an owner that goes away is followed by another one.
const UNREACHABLE_MAX: u32 = 5;

async fn follow_to_the_end(
    folder: &Path,
    request: Request,
    driving: &Driving,
    by: &str,
    screen: &Screen,
) -> Answer {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            return Answer {
                stderr: format!("error: cannot start: {error}\n"),
                ..Answer::new(Status::Refused)
            };
        }
    };
    let json = driving.json.is_some();
    let durability = match driving.durability {
        args::Durability::Disk => Durability::Disk,
        args::Durability::Process => {
            answer::remark(
                "finished steps survive the end of this program, but not the loss of power (--durability process)",
            );
            Durability::Process
        }
    };
    let mut tries = 0;
    let (door, listening, following) = loop {
        let door = match Door::open(folder, durability) {
            Ok(door) => door,
            Err(error) => return refused_start(&error, json),
        };
        let listening = match &door {
            Door::Owner(engine) => {
                engine.read_with(Arc::new(load::Files));
                Some((engine.clone(), tokio::spawn(listen(engine.clone()))))
            }
            Door::Client(_) => None,
        };
        match door.drive(request.clone()).await {
            Ok(following) => break (door, listening, following),
            // The owner was about to end, and has heard nothing.
            Err(Error::Unreachable { .. }) if tries < UNREACHABLE_MAX => tries += 1,
            Err(error) => return refused_start(&error, json),
        }
    };
    let id = following.id.clone();
    let watching = Watching {
        folder,
        json: driving.json,
        virtual_time: driving.virtual_time,
        attended: is_attended(),
        by,
        screen,
    };
    match follow::attend(following, &door, &mut signals, &watching).await {
        // What is true stands on the disk, and another process has to read it.
        Err(Error::Store(error)) if error.is_fatal() => {
            let answer = refused(&error.into());
            let stderr = answer.stderr + &format!("stopped; go on with `windlass resume {id}`\n");
            Answer { stderr, ..Answer::new(Status::Stopped) }
        }
        Ok(End::Left) => {
            let stderr = format!(
                "left; the run goes on in another process: see `windlass show {id}`, or `windlass wait {id}`\n"
            );
            Answer { stderr, ..Answer::new(Status::Stopped) }
        }
        Ok(End::Stopped) => {
            let stderr = format!("stopped; go on with `windlass resume {id}`\n");
            let stdout =
                if json { result(&door, folder, &id, Standing::Going, true).stdout } else { String::new() };
            Answer { stdout, stderr, status: Status::Stopped }
        }
        Ok(End::Rests(standing)) => {
            let answer = result(&door, folder, &id, standing, json);
            if let Some((engine, listening)) = listening {
                // Clients follow their runs in this process. Whoever comes after the last of them is not let in.
                let left = async {
                    engine.idle().await;
                    listening.abort();
                    // Ends with the word that it was told to end.
                    let _ = listening.await;
                    engine.idle().await;
                };
                tokio::select! {
                    () = left => {}
                    _ = signals.next() => {
                        tokio::select! { () = engine.stop() => {}, () = signals.at_once() => {} }
                    }
                }
            }
            answer
        }
        Err(error) => refused(&error),
    }
}

fn result(door: &Door, folder: &Path, id: &RunId, standing: Standing, json: bool) -> Answer {
    let looked;
    let engine = match door {
        Door::Owner(engine) => &**engine,
        Door::Client(_) => match Engine::look(folder) {
            Ok(engine) => {
                looked = engine;
                &looked
            }
            Err(error) => return refused(&error),
        },
    };
    let view = match engine.view(id) {
        Ok(view) => view,
        Err(error) => return refused(&error),
    };
    let status = match standing {
        Standing::Success => Status::Done,
        Standing::Failed => Status::Failed,
        Standing::Cancelled => Status::Cancelled,
        Standing::Waiting => Status::Waiting,
        Standing::Going => Status::Stopped,
    };
    let result: Value_ = match engine.result(id) {
        Ok(result) => result,
        Err(error) => return refused(&error),
    };
    let mut answer = Answer::new(status);
    if json {
        answer.stdout = format!("{result}\n");
    } else {
        answer.stderr = show::progress::ending(id, &result, report::is_resumable(&view));
        answer.stderr += &others(engine, id);
    }
    answer
}

/// One line when other runs of the folder are waiting for somebody to go on with them.
fn others(engine: &Engine, id: &RunId) -> String {
    let unfinished =
        engine.runs(&Query { limit: 1_000, unfinished_only: true, ..Query::default() }).unwrap_or_default();
    let others = unfinished
        .iter()
        .filter(|row| row.run != *id && !engine.is_live(&row.run) && row.row.ended_at.is_none())
        .count();
    match others {
        0 => String::new(),
        1 => "one other run is not finished: see `windlass runs --unfinished`\n".to_owned(),
        count => format!("{count} other runs are not finished: see `windlass runs --unfinished`\n"),
    }
}
