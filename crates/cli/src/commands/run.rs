//! `windlass run` and `windlass resume`: drives a run, or follows the owner that does, until it ends or waits for people.

use super::face::{Face, Followed, Own};
use super::follow::{self, End, Watching};
use super::serve::listen;
use super::signals::Signals;
use super::{block_on, inputs, plan, refused, remark_on_orphans};
use crate::answer::{self, Answer, Status};
use crate::args::{self, Driving};
use crate::load::{self, Opened, Refusal};
use crate::show::{Screen, Screens};
use crate::{data, files, specify};
use serde_json::json;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;
use windlass_dialects::DIALECTS;
use windlass_dialects::Dialect;
use windlass_ir::plan::{Given, Parameters, PlanStep};
use windlass_ir::workflow::{Action, BuiltinKind, Kind, RunInput, Words};
use windlass_ir::{Diagnostic, Plan, Value};
use windlass_runtime::{
    Beginning, Clock, Config, Door, Durability, Engine, Error, Following, Program, Reach, Request, RunId,
    Surroundings, View, new_id, private,
};

pub fn run(mut args: args::Run, screens: &Screens) -> Answer {
    if args.driving.compat.is_some() {
        return specify::start(args, screens);
    }
    let file = &args.what.file;
    let found =
        files::by_name(file).and_then(|found| files::enabled(found.as_ref().unwrap_or(file)).map(|()| found));
    match found {
        Ok(found) => args.what.file = found.unwrap_or(args.what.file),
        Err(unreadable) => return refused_file(&unreadable.into(), &args.driving, screens),
    }
    let face = Own { json: args.driving.json.is_some() };
    begin(args, &face, screens)
}

pub fn refused_file(refusal: &Refusal, driving: &Driving, screens: &Screens) -> Answer {
    match driving.json.is_some() {
        true => refusal.answer_with_json(&screens.stderr),
        false => refusal.answer(&screens.stderr),
    }
}

/// Starts a run and follows it.
pub fn begin(mut args: args::Run, face: &dyn Face, screens: &Screens) -> Answer {
    let file = args.what.file.clone();
    let json = args.driving.json.is_some();
    let folder = data::folder(&args.data, Some(&file));
    if face.asks_for_inputs() && args.going.only.is_none() {
        let asked = inputs::asked(&args.what, &screens.stderr);
        args.what.params.extend(asked);
    }
    let prepared = match &args.going.only {
        None => {
            let given = |plan: &Plan, params| face.given(plan, params);
            plan::prepare(args.what, given).map_err(|refusal| refused_file(&refusal, &args.driving, screens))
        }
        Some(_) => recorded(&folder, &args.what, &args.going, (&args.driving, face), screens),
    };
    let (opened, inputs) = match prepared {
        Ok(prepared) => prepared,
        Err(answer) => return answer,
    };
    let mut from = match surroundings_of(&args.driving, face, screens) {
        Ok(from) => from,
        Err(answer) => return *answer,
    };
    from.config = data::config(Some(&file), &folder);
    let beginning = match beginning(&folder, &opened.plan, &args.going) {
        Ok(beginning) => beginning,
        Err(error) => return refused_start(&error, json),
    };
    let runs = |step: &PlanStep| args.going.only.as_ref().is_none_or(|only| **only == *step.id);
    if let Some(error) = nobody_for(&opened.plan, &from, runs) {
        return refused_start(&error, json);
    }
    let note = opened.note(&screens.stderr);
    if !note.is_empty() {
        answer::remark(note.trim_end());
    }
    let (source, overrides) = opened.texts();
    let (file, inputs) = (load::location(&file), inputs.to_value());
    let by = data::login(args.by);
    let start = Start { plan: opened.plan, source, overrides, file, inputs, by, from, beginning };
    launch(&folder, start, args.run_id.as_deref(), args.detach, (&args.driving, face), &screens.stderr)
}

/// A workflow with what a run was started with, and the parameters laid over that.
fn recorded(
    folder: &Path,
    what: &args::Plan,
    going: &args::Going,
    (driving, face): (&Driving, &dyn Face),
    screens: &Screens,
) -> Result<(Opened, Parameters), Answer> {
    let opened =
        load::open(&what.file, &what.reading).map_err(|refusal| refused_file(&refusal, driving, screens))?;
    let view = || {
        let engine = data::look(folder)?;
        engine.view(&engine.find(going.inputs_from.as_deref().unwrap_or_default())?)
    };
    let view = view().map_err(|error| refused_start(&error, driving.json.is_some()))?;
    let given = face.given(&opened.plan, what.params.clone());
    let inputs = laid_over(&opened.plan, view.inputs(), given).map_err(|answer| *answer)?;
    Ok((opened, inputs))
}

/// When a run begins and how far it goes.
fn beginning(folder: &Path, plan: &Plan, going: &args::Going) -> Result<Beginning, Error> {
    let at = going.at;
    if let (Some(step), Some(run)) = (&going.only, &going.inputs_from) {
        let engine = data::look(folder)?;
        let run = engine.find(run)?;
        return Ok(Beginning { at, ..windlass_runtime::only(&engine, &run, step, plan)? });
    }
    let reach = match &going.until {
        Some(step) if plan.find(step).is_none() => return Err(Error::no_step_in(plan, step)),
        Some(step) => Some(Reach::Until(step.as_str().into())),
        None => None,
    };
    Ok(Beginning { at, reach, ..Beginning::default() })
}

/// A run that is ready to be started.
pub(super) struct Start {
    pub plan: Plan,
    pub source: String,
    pub overrides: String,
    /// Where its workflow stands.
    pub file: Option<PathBuf>,
    pub inputs: Value,
    /// Who starts it.
    pub by: String,
    pub from: Surroundings,
    pub beginning: Beginning,
}

/// Starts a run and follows it, or leaves it to the owner of the folder.
pub(super) fn launch(
    folder: &Path,
    start: Start,
    id: Option<&str>,
    detach: bool,
    (driving, face): (&Driving, &dyn Face),
    screen: &Screen,
) -> Answer {
    let json = driving.json.is_some();
    if id == Some("last") {
        let stderr =
            "error[bad_run_id]: `last` always means the run that was started last: choose another id\n";
        return Answer { stderr: stderr.into(), ..Answer::new(Status::Refused) };
    }
    let run = match id.map(RunId::new).transpose() {
        // One that is left to another process has its id before that hears of it.
        Ok(None) if detach => new_id(&Clock::Real).map(Some),
        run => run,
    };
    let run = match run {
        Ok(run) => run,
        Err(error) => return refused_start(&Error::RunId(error), json),
    };
    if let Err(error) = Program::new(start.plan.clone()) {
        return refused_start(&error.into(), json);
    }
    face.begins(&start.plan);
    if let (Some(at), false) = (start.beginning.at, json || detach) {
        answer::remark(&format!("the run begins at {at}; Ctrl-C leaves it to `windlass serve`"));
    }
    let Start { plan, source, overrides, file, inputs, by, from, beginning } = start;
    let request = Request::Start {
        source,
        overrides,
        file,
        plan: Box::new(plan),
        inputs,
        by: Some(by.clone()),
        run: run.clone(),
        from,
        detach,
        beginning,
    };
    match run.filter(|_| detach) {
        Some(run) => self::detach(folder, run, &request, json),
        None => drive(folder, request, (driving, face), &by, screen),
    }
}

/// Why a run could not go to its end: nobody here does one of the steps that it would come to.
pub(super) fn nobody_for(
    plan: &Plan,
    from: &Surroundings,
    runs: impl Fn(&PlanStep) -> bool,
) -> Option<Error> {
    let config = match from.config.as_deref().map(Config::read).transpose() {
        Ok(config) => config,
        Err(bad) => return Some(bad.into()),
    };
    let nobody = plan.steps.iter().find(|step| is_for_others(step, config.as_ref()) && runs(step));
    nobody.filter(|_| from.script.is_none()).map(|step| {
        let kind = match server(step) {
            Some(server) => format!("{}, {server}", step.word),
            None => step.word.to_string(),
        };
        Error::NobodyFor { step: step.id.to_string(), kind, task: task(step) }
    })
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
    block_on(folder, async {
        let mut tried = false;
        loop {
            match owner_of(folder).await?.drive(request.clone()).await {
                Ok(following) => return Ok(following.id),
                Err(Error::ByOwner { code, .. }) if tried && code == "run_exists" => return Ok(run),
                Err(Error::Unreachable { .. }) if !tried => tried = true,
                Err(error) => return Err(error),
            }
        }
    })
}

/// How long a process that was started to own a folder may take until it listens.
const OWNER_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(20);

async fn owner_of(folder: &Path) -> Result<Door, Error> {
    let failed =
        |error: std::io::Error| Error::Folder { folder: folder.to_owned(), cause: error.to_string() };
    let deadline = std::time::Instant::now() + OWNER_WAIT_MAX;
    let mut child: Option<std::process::Child> = None;
    loop {
        if let Some(door) = Door::of_owner(folder, answer::remark).await? {
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
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// A process of its own, that has nothing open of this one.
fn start_owner(folder: &Path) -> std::io::Result<std::process::Child> {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    private::create_folder(folder)?;
    Command::new(std::env::current_exe()?)
        .args(["serve", "--until-idle", "--asked-only", "--data"])
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

/// The tool that is asked for elsewhere, and where.
fn server(step: &PlanStep) -> Option<String> {
    let Kind::Action(Action::Tool(tool)) = &step.kind else { return None };
    Some(format!("`{}` of `{}`", tool.tool, tool.server.as_ref()?))
}

/// Work that this program has no executor for yet.
fn is_for_others(step: &PlanStep, config: Option<&Config>) -> bool {
    match &step.kind {
        Kind::Action(action) => match action {
            Action::Shell(_) | Action::Assistant(_) | Action::Call(_) => false,
            Action::Builtin(builtin) => match builtin.what {
                BuiltinKind::InitProject | BuiltinKind::GithubAddLabel => false,
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

pub fn resume(args: args::Resume, screens: &Screens) -> Answer {
    if args.driving.compat.is_some() {
        return specify::resume(args, screens);
    }
    let face = Own { json: args.driving.json.is_some() };
    go_on(args, &face, screens)
}

/// Resumes a run and follows it.
pub fn go_on(args: args::Resume, face: &dyn Face, screens: &Screens) -> Answer {
    let json = args.driving.json.is_some();
    let Some(name) = &args.run else { return super::serve::resume_all(&args, &screens.stderr) };
    let (folder, engine, run) = match data::find(&args.data, name) {
        Ok(found) => found,
        Err(error) => return refused_start(&error, json),
    };
    let view = match engine.view(&run) {
        Ok(view) => view,
        Err(error) => return refused_start(&error, json),
    };
    let changes = match changed_inputs(&view, args.params, face) {
        Ok(changes) => changes,
        Err(answer) => return *answer,
    };
    drop(engine);
    let mut from = match surroundings_of(&args.driving, face, screens) {
        Ok(from) => from,
        Err(answer) => return *answer,
    };
    from.config = Config::recorded(view.about()).or_else(|| data::config(None, &folder));
    let by = data::login(args.by);
    let request = Request::Resume { run, changes, by: by.clone(), from };
    drive(&folder, request, (&args.driving, face), &by, &screens.stderr)
}

/// The parameters that are given again, converted by the types that the run's plan declares.
fn changed_inputs(view: &View, params: Vec<(String, String)>, face: &dyn Face) -> Result<Value, Box<Answer>> {
    if params.is_empty() {
        return Ok(Value::map::<&str>([]));
    }
    let plan = &view.program().plan;
    let given = face.given(plan, params);
    let names: Vec<String> = given.iter().map(|(name, _)| name.clone()).collect();
    let all = laid_over(plan, view.inputs(), given)?;
    let changed = all.values.into_iter().filter(|(name, _)| names.iter().any(|changed| **changed == **name));
    Ok(Value::map(changed.map(|(name, (value, _))| (name, value))))
}

/// What a run was started with, as far as a plan knows it, with parameters laid over it.
pub(super) fn laid_over(
    plan: &Plan,
    before: &Value,
    params: Vec<(String, Given)>,
) -> Result<Parameters, Box<Answer>> {
    let declared = |name: &str| plan.input != RunInput::Declared || plan.parameters.contains_key(name);
    let mut given: indexmap::IndexMap<String, Given> = match before {
        Value::Map(inputs) => inputs
            .iter()
            .filter(|(name, _)| declared(name))
            .map(|(name, value)| (name.to_string(), Given::Value(value.clone())))
            .collect(),
        Value::Null => indexmap::IndexMap::new(),
        whole if params.is_empty() => {
            return plan
                .whole_input(whole.clone(), words(&plan.dialect))
                .map_err(|findings| bad_parameters(&findings));
        }
        other => {
            let stderr = format!(
                "error[bad_parameter]: the run was started with {}, so no single value of it can be changed\n",
                other.kind()
            );
            return Err(Box::new(Answer { stderr, ..Answer::new(Status::Refused) }));
        }
    };
    given.extend(params);
    plan.parameters(&given, words(&plan.dialect)).map_err(|findings| bad_parameters(&findings))
}

fn bad_parameters(findings: &[Diagnostic]) -> Box<Answer> {
    let lines = findings
        .iter()
        .map(|finding| format!("error[{}]: {} ({})\n", finding.code, finding.message, finding.help));
    Box::new(Answer { stderr: lines.collect(), ..Answer::new(Status::Refused) })
}

/// The words of the dialect that a plan was written in.
fn words(dialect: &str) -> &'static Words {
    Dialect::by_name(dialect).unwrap_or(Dialect::Swdl).words()
}

/// Where a run is driven from, or why that is refused.
pub(super) fn surroundings_of(
    driving: &Driving,
    face: &dyn Face,
    screens: &Screens,
) -> Result<Surroundings, Box<Answer>> {
    let wait = driving.wait || face.is_attended();
    let from = surroundings(driving.script.as_deref(), driving.virtual_time, wait);
    from.map_err(|refusal| Box::new(refused_file(&refusal, driving, screens)))
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

pub(super) fn refused_start(error: &Error, json: bool) -> Answer {
    let answer = refused(error);
    match json {
        true => {
            let object = json!({"type": "refused", "error": {"code": error.code(), "message": error.to_string(), "step": null, "field": null}, "diagnostics": []});
            Answer { stdout: format!("{object}\n"), ..answer }
        }
        false => answer,
    }
}

fn drive(
    folder: &Path,
    request: Request,
    (driving, face): (&Driving, &dyn Face),
    by: &str,
    screen: &Screen,
) -> Answer {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Answer {
                stderr: format!("error: cannot start: {error}\n"),
                ..Answer::new(Status::Refused)
            };
        }
    };
    let answer = runtime.block_on(follow_to_the_end(folder, request, (driving, face), by, screen));
    // Whatever is still at work is ended with the runtime; the journal knows where to go on.
    drop(runtime);
    answer
}

/// How often an owner that goes away is followed by another one.
const UNREACHABLE_MAX: u32 = 5;

async fn follow_to_the_end(
    folder: &Path,
    request: Request,
    (driving, face): (&Driving, &dyn Face),
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
    let begun = tokio::select! {
        begun = begun(folder, &request, durability) => begun,
        _ = signals.next() => {
            let stderr = "stopped before the run was confirmed; it may still begin: see `windlass runs`\n";
            return Answer { stderr: stderr.into(), ..Answer::new(Status::Stopped) };
        }
    };
    let (door, listening, following) = match begun {
        Ok(begun) => begun,
        Err(error) => return refused_start(&error, json),
    };
    let id = following.id.clone();
    let watching = Watching {
        folder,
        json: driving.json,
        virtual_time: driving.virtual_time,
        attended: face.is_attended(),
        by,
        screen,
    };
    let audience = match face.audience(&Followed { run: &id, door: &door, folder, by }) {
        Ok(audience) => audience,
        Err(error) => return refused(&error),
    };
    match follow::attend(following, &door, &mut signals, &watching, audience).await {
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
        Ok(end @ End::Stopped) => result(&door, folder, &id, end, face),
        Ok(end @ End::Rests(_)) => {
            let answer = result(&door, folder, &id, end, face);
            if let Some((engine, listening)) = listening {
                // Clients follow their runs in this process. Whoever comes after the last of them is not let in.
                let left = async {
                    engine.idle(false).await;
                    listening.abort();
                    // Ends with the word that it was told to end.
                    let _ = listening.await;
                    engine.idle(false).await;
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

type Listening = Option<(Arc<Engine>, JoinHandle<Infallible>)>;

/// Has a run started or resumed, here or by the owner of the folder.
async fn begun(
    folder: &Path,
    request: &Request,
    durability: Durability,
) -> Result<(Door, Listening, Following), Error> {
    let mut tries = 0;
    loop {
        let door = Door::open(folder, durability, DIALECTS, answer::remark).await?;
        let listening = match &door {
            Door::Owner(engine) => {
                if matches!(request, Request::Resume { .. }) {
                    remark_on_orphans();
                }
                engine.read_with(Arc::new(load::Files));
                Some((engine.clone(), listen(engine)?))
            }
            Door::Client(_) => None,
        };
        match door.drive(request.clone()).await {
            Ok(following) => return Ok((door, listening, following)),
            // The owner was about to end, and has heard nothing.
            Err(Error::Unreachable { .. }) if tries < UNREACHABLE_MAX => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

fn result(door: &Door, folder: &Path, run: &RunId, end: End, face: &dyn Face) -> Answer {
    let engine = match door {
        Door::Owner(engine) => Ok(engine.clone()),
        Door::Client(_) => data::look(folder),
    };
    match engine.and_then(|engine| Ok((engine.view(run)?, engine))) {
        Ok((view, engine)) => face.ended(&engine, run, &view, end),
        Err(error) => refused(&error),
    }
}
