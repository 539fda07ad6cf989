//! `windlass run` and `windlass resume`: executes a run, or follows the owner that does, until it ends or waits for people.

use super::face::{Face, Followed, Own};
use super::follow::{self, End, Watching};
use super::serve::listen;
use super::signals::Signals;
use super::{block_on, cannot_start, executing, inputs, plan, remark_on_orphans};
use crate::answer::{self, Answer, Exit, Refused};
use crate::args::{self, Driving};
use crate::load::{self, Opened};
use crate::show::{Screen, Screens, diagnostics};
use crate::{data, files, specify};
use serde_json::{Value as Json, json};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;
use windlass_api::operations::GetRun;
use windlass_api::types::Diagnostic as Finding;
use windlass_api::{Code, Door, Execute, Following, Needs, Refusal, Remark, Surroundings};
use windlass_dialects::{DIALECTS, Dialect};
use windlass_ir::plan::{Given, Parameters, PlanStep};
use windlass_ir::workflow::{RunInput, Words};
use windlass_ir::{Diagnostic, Plan, Sources, Value};
use windlass_runtime::{
    Beginning, Clock, Config, Durability, Engine, Error, Program, Reach, RunId, StepPhase, View, ids, new_id,
    private,
};

pub fn run(mut args: args::Run, screens: &Screens) -> Result<Answer, Refused> {
    if args.driving.compat.is_some() {
        return Ok(specify::start(args, screens));
    }
    let file = &args.what.file;
    let found = files::by_name(file)?;
    files::enabled(found.as_ref().unwrap_or(file))?;
    args.what.file = found.unwrap_or(args.what.file);
    let face = Own { json: args.driving.json.is_some() };
    begin(args, &face, screens)
}

/// Starts a run and follows it.
pub fn begin(mut args: args::Run, face: &dyn Face, screens: &Screens) -> Result<Answer, Refused> {
    let file = args.what.file.clone();
    let folder = data::folder(&args.data, Some(&file));
    if face.asks_for_inputs() && args.going.only.is_none() {
        let asked = inputs::asked(&args.what, &screens.stderr);
        args.what.params.extend(asked);
    }
    let (opened, inputs) = match &args.going.only {
        None => plan::prepare(args.what, |plan: &Plan, params| face.given(plan, params))?,
        Some(_) => recorded(&folder, &args.what, &args.going, face)?,
    };
    let mut from = surroundings_of(&args.driving, face)?;
    from.config = data::config(Some(&file), &folder);
    let beginning = beginning(&folder, &opened.plan, &args.going)?;
    let runs = |step: &PlanStep| args.going.only.as_ref().is_none_or(|only| **only == *step.id);
    let location = load::location(&file);
    let needs = Needs {
        plan: &opened.plan,
        sources: &opened.sources,
        file: location.as_deref(),
        from: &from,
        runs: &runs,
        to_the_end: args.going.until.is_none(),
    };
    let warnings = needs.check().map_err(|refusal| refused(refusal, &opened.sources))?;
    match is_stream(&args.driving) {
        true => {
            let file = opened.sources.iter().next().map(|source| source.name.to_string());
            let findings = Finding::list(&opened.findings, &opened.sources, file.as_deref());
            findings.iter().chain(&warnings).for_each(|found| answer::notice(&found.code, &found.message));
        }
        false => {
            let note = opened.note(&screens.stderr);
            if !note.is_empty() {
                answer::remark(note.trim_end());
            }
            if face.warns() {
                remark_on(&warnings, &opened.sources, &screens.stderr);
            }
        }
    }
    let (source, overrides) = opened.texts();
    let (file, inputs) = (location, inputs.to_value());
    let by = data::login(args.actor.by);
    let start = Start { plan: opened.plan, source, overrides, file, inputs, by, from, beginning };
    launch(&folder, start, args.run_id.as_deref(), args.detach, (&args.driving, face), &screens.stderr)
}

/// Whether the command prints one object a line, which includes what it says meanwhile.
fn is_stream(driving: &Driving) -> bool {
    driving.json == Some(args::Json::All) && driving.compat.is_none()
}

/// A refusal with the texts for its excerpts.
fn refused(refusal: Refusal, sources: &Sources) -> Refused {
    Refused { refusal: Box::new(refusal), sources: sources.clone() }
}

/// Prints what is missing on this machine.
pub(super) fn remark_on(warnings: &[Finding], sources: &Sources, screen: &Screen) {
    let text = diagnostics::list(warnings, sources, screen);
    if !text.is_empty() {
        answer::remark(text.trim_end());
    }
}

/// A workflow with the inputs of an earlier run, and the given parameters on top.
fn recorded(
    folder: &Path,
    what: &args::Plan,
    going: &args::Going,
    face: &dyn Face,
) -> Result<(Opened, Parameters), Refused> {
    let opened = load::open_to_start(&what.file, &what.reading)?;
    let engine = data::look(folder)?;
    let view = engine.view(&engine.find(going.inputs_from.as_deref().unwrap_or_default())?)?;
    let given = face.given(&opened.plan, what.params.clone());
    let inputs = laid_over(&opened.plan, view.inputs(), given)?;
    Ok((opened, inputs))
}

/// When a run begins and where it stops.
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
    /// The workflow file.
    pub file: Option<PathBuf>,
    pub inputs: Value,
    /// The user who starts it.
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
) -> Result<Answer, Refused> {
    let json = driving.json.is_some();
    if id == Some("last") {
        let refusal = Refusal::new(Code::BadRunId, "`last` always means the run that was started last");
        return Err(refusal.help("choose another id").into());
    }
    let run = match id.map(RunId::new).transpose() {
        // A detached run gets its id before the other process receives it.
        Ok(None) if detach => new_id(&Clock::Real).map(Some),
        run => run,
    };
    let run = run.map_err(Error::from)?;
    Program::new(start.plan.clone()).map_err(Error::from)?;
    face.begins(&start.plan);
    if let (Some(at), false) = (start.beginning.at, json || detach) {
        answer::remark(&format!("the run begins at {at}; Ctrl-C leaves it to `windlass serve`"));
    }
    let Start { plan, source, overrides, file, inputs, by, from, beginning } = start;
    let request = Execute::Start {
        source,
        overrides,
        file,
        plan: Box::new(plan),
        inputs,
        by: Some(by.clone()),
        run: run.clone(),
        from,
        detach,
        beginning: Box::new(beginning),
    };
    match run.filter(|_| detach) {
        Some(run) => self::detach(folder, run, &request, json),
        None => execute(folder, request, (driving, face), &by, screen),
    }
}

/// Leaves a run to the owner of the folder, which is started if there is none.
fn detach(folder: &Path, run: RunId, request: &Execute, json: bool) -> Result<Answer, Refused> {
    let run = left_to_owner(folder, run, request)?;
    Ok(match json {
        true => Answer::json(Exit::Done, &super::call(folder, GetRun::of(run.as_str()))?),
        false => {
            let stderr = format!("run {run}\nwait for it with `windlass wait {run}`\n");
            let stderr = data::hinted(&stderr, folder);
            Answer { stdout: format!("{run}\n"), stderr, ..Answer::new(Exit::Done) }
        }
    })
}

/// An owner that was about to end may not have received the request; then the next one gets it. The run has its id already, so it
/// starts only once.
fn left_to_owner(folder: &Path, run: RunId, request: &Execute) -> Result<RunId, Refusal> {
    block_on(async {
        let mut tried = false;
        loop {
            match owner_of(folder).await?.execute(request.clone()).await {
                Ok(following) => return Ok(following.id),
                Err(refusal) if tried && refusal.code == Code::RunExists => return Ok(run),
                Err(refusal) if !tried && refusal.code == Code::Unreachable => tried = true,
                Err(refusal) => return Err(refusal),
            }
        }
    })
}

/// How long a process that was started to own a folder may take until it listens.
const OWNER_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(20);

async fn owner_of(folder: &Path) -> Result<Door, Refusal> {
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
            return Err(failed(std::io::Error::other("no process listens there")).into());
        }
        // Another process may have been faster, and may be about to end.
        if gone {
            child = Some(start_owner(folder).map_err(failed)?);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// A process of its own that inherits no open files.
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

pub fn resume(args: args::Resume, screens: &Screens) -> Result<Answer, Refused> {
    if args.driving.compat.is_some() {
        return Ok(specify::resume(args, screens));
    }
    let face = Own { json: args.driving.json.is_some() };
    resume_one(args, &face, screens)
}

/// Resumes a run and follows it.
pub fn resume_one(args: args::Resume, face: &dyn Face, screens: &Screens) -> Result<Answer, Refused> {
    if args.all {
        return super::serve::resume_all(&args, &screens.stderr);
    }
    let (folder, engine, run) = data::find(&args.data, args.run.as_deref().unwrap_or(data::LAST))?;
    let view = engine.view(&run)?;
    let changes = changed_inputs(&view, args.params, face)?;
    remark_on_rendered(&view, &changes, answer::voice(is_stream(&args.driving)));
    drop(engine);
    let mut from = surroundings_of(&args.driving, face)?;
    from.config = Config::recorded(view.about()).or_else(|| data::config(None, &folder));
    let by = data::login(args.actor.by);
    let request = Execute::Resume { run, changes, by: by.clone(), from };
    execute(&folder, request, (&args.driving, face), &by, &screens.stderr)
}

/// The parameters that are given again, converted by the types that the run's plan declares.
fn changed_inputs(view: &View, params: Vec<(String, String)>, face: &dyn Face) -> Result<Value, Refused> {
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

/// Says which steps keep the old value of a changed parameter, because Windlass has prepared them already.
fn remark_on_rendered(view: &View, changes: &Value, remark: Remark) {
    let Value::Map(changes) = changes else { return };
    for name in changes.keys().filter(|name| view.inputs().get(name) != changes.get(*name)) {
        let prepared = view.steps().filter(|(_, step)| match step.phase {
            StepPhase::Running | StepPhase::Backoff { .. } | StepPhase::Queued { .. } => {
                step.assignment.is_some()
            }
            StepPhase::Asking { .. } | StepPhase::Waiting { .. } => true,
            StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Joined
            | StepPhase::Inside
            | StepPhase::Settled(_) => false,
        });
        let keeps = prepared.filter(|(_, step)| reads_input(view.plan_step(step), name));
        let steps: Vec<String> =
            keeps.map(|(path, _)| format!("`{}`", ids::name(DIALECTS, view, path).id)).collect();
        if !steps.is_empty() {
            let verb = if steps.len() == 1 { "keeps" } else { "keep" };
            let steps = steps.join(", ");
            remark(&format!(
                "{steps} {verb} the old value of `{name}`, because it was in use before; later steps get the new one"
            ));
        }
    }
}

/// Whether an expression of a step reads this parameter.
fn reads_input(step: &PlanStep, name: &str) -> bool {
    fn is_in(json: &Json, member: &Json) -> bool {
        match json {
            Json::Array(items) => items.iter().any(|item| is_in(item, member)),
            Json::Object(fields) => {
                fields.get("member") == Some(member) || fields.values().any(|field| is_in(field, member))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
        }
    }
    let member = json!({"of": {"read": {"namespace": "inputs"}}, "name": name});
    is_in(&serde_json::to_value(step).unwrap_or_default(), &member)
}

/// What a run was started with, as far as a plan knows it, with parameters laid over it.
pub(super) fn laid_over(
    plan: &Plan,
    before: &Value,
    params: Vec<(String, Given)>,
) -> Result<Parameters, Refused> {
    let declared = |name: &str| plan.input != RunInput::Declared || plan.parameters.contains_key(name);
    let mut given: indexmap::IndexMap<String, Given> = match before {
        Value::Map(inputs) => inputs
            .iter()
            .filter(|(name, _)| declared(name))
            .map(|(name, value)| (name.to_string(), Given::Value(value.clone())))
            .collect(),
        Value::Null => indexmap::IndexMap::new(),
        whole if params.is_empty() => {
            return plan.whole_input(whole.clone(), words(&plan.dialect)).map_err(bad_parameters);
        }
        other => {
            let message = format!("the input of the run is {}, which has no parameters", other.kind());
            return Err(Refusal::new(Code::BadParameter, message).help("leave `-p` out").into());
        }
    };
    given.extend(params);
    plan.parameters(&given, words(&plan.dialect)).map_err(bad_parameters)
}

fn bad_parameters(findings: Vec<Diagnostic>) -> Refused {
    load::Refusal { findings, ..load::Refusal::default() }.into()
}

/// The words of the dialect that a plan was written in.
fn words(dialect: &str) -> &'static Words {
    Dialect::by_name(dialect).unwrap_or(Dialect::Swdl).words()
}

/// Where a run is executed from.
pub(super) fn surroundings_of(driving: &Driving, face: &dyn Face) -> Result<Surroundings, Refused> {
    surroundings(driving.mock.as_deref(), driving.virtual_time, driving.wait || face.is_attended())
}

/// The executors of this process, with mock responses from the file, if there is one.
pub(super) fn surroundings(
    mock: Option<&Path>,
    virtual_time: bool,
    wait: bool,
) -> Result<Surroundings, Refused> {
    let mock = mock.map(load::object).transpose()?;
    Ok(Surroundings { mock, virtual_time, wait, ..Surroundings::here() })
}

fn execute(
    folder: &Path,
    request: Execute,
    (driving, face): (&Driving, &dyn Face),
    by: &str,
    screen: &Screen,
) -> Result<Answer, Refused> {
    let runtime = executing()?;
    let answer = runtime.block_on(follow_to_the_end(folder, request, (driving, face), by, screen));
    // Running jobs end with the runtime; the journal records where to continue.
    drop(runtime);
    answer
}

/// The most attempts to send a request again after the owner ended.
const UNREACHABLE_MAX: u32 = 5;

async fn follow_to_the_end(
    folder: &Path,
    request: Execute,
    (driving, face): (&Driving, &dyn Face),
    by: &str,
    screen: &Screen,
) -> Result<Answer, Refused> {
    let mut signals = Signals::new().map_err(|error| cannot_start(&error))?;
    let remark = answer::voice(is_stream(driving));
    let durability = match driving.durability {
        args::Durability::Disk => Durability::Disk,
        args::Durability::Process => {
            remark(
                "completed steps survive a crash of Windlass, but not a power loss (--durability process)",
            );
            Durability::Process
        }
    };
    let begun = tokio::select! {
        begun = begun(folder, &request, durability, remark) => begun,
        _ = signals.next() => {
            let stderr = "stopped before the run was confirmed; it may still begin: see `windlass runs`\n";
            return Ok(Answer { stderr: stderr.into(), ..Answer::new(Exit::Stopped) });
        }
    };
    let (door, listening, following) = begun?;
    let id = following.id.clone();
    let watching = Watching {
        folder,
        json: driving.json,
        virtual_time: driving.virtual_time,
        attended: face.is_attended(),
        by,
        screen,
    };
    let audience = face.audience(&Followed { run: &id, door: &door, folder, by })?;
    let attended = follow::attend(following, &door, &mut signals, &watching, audience).await;
    let end = match attended {
        Ok(end) => end,
        // The run is interrupted. The journal is authoritative; another process has to read it.
        Err(refusal) if matches!(refusal.code, Code::Storage | Code::OwnerGone) => {
            let help = format!("the run stopped; continue it with `windlass resume {id}`");
            let refused = refusal.help(data::hinted(&help, folder));
            let answer = Answer::refused(&refused.into(), driving.json.is_some(), screen);
            return Ok(Answer { status: Exit::Stopped, ..answer });
        }
        Err(refusal) => return Err(refusal.into()),
    };
    match end {
        End::Left => {
            let stderr = format!(
                "left; another process continues the run: see `windlass show {id}` or `windlass wait {id}`\n"
            );
            Ok(Answer { stderr: data::hinted(&stderr, folder), ..Answer::new(Exit::Stopped) })
        }
        end @ End::Stopped => result(&door, folder, &id, end, face),
        end @ End::Rests(_) => {
            let answer = result(&door, folder, &id, end, face);
            if let Some((engine, listening)) = listening {
                serve_clients(&engine, listening, &mut signals).await;
            }
            answer
        }
    }
}

/// Waits until the last client of this process has seen the end of its run. Later clients are refused.
async fn serve_clients(engine: &Arc<Engine>, listening: JoinHandle<Infallible>, signals: &mut Signals) {
    let left = async {
        engine.idle(false).await;
        listening.abort();
        // It was aborted.
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

type Listening = Option<(Arc<Engine>, JoinHandle<Infallible>)>;

/// Starts or resumes a run, here or in the owner of the folder.
async fn begun(
    folder: &Path,
    request: &Execute,
    durability: Durability,
    remark: Remark,
) -> Result<(Door, Listening, Following), Refusal> {
    let mut tries = 0;
    loop {
        let door = Door::open(folder, durability, remark).await?;
        let listening = match &door {
            Door::Owner(engine) => {
                if matches!(request, Execute::Resume { .. }) {
                    remark_on_orphans(remark);
                }
                engine.read_with(Arc::new(load::Files));
                Some((engine.clone(), listen(engine, remark)?))
            }
            Door::Client(_) => None,
        };
        match door.execute(request.clone()).await {
            Ok(following) => return Ok((door, listening, following)),
            // The owner was about to end, and received nothing.
            Err(refusal) if refusal.code == Code::Unreachable && tries < UNREACHABLE_MAX => tries += 1,
            Err(refusal) => return Err(refusal),
        }
    }
}

fn result(door: &Door, folder: &Path, run: &RunId, end: End, face: &dyn Face) -> Result<Answer, Refused> {
    let engine = match door {
        Door::Owner(engine) => engine.clone(),
        Door::Client(_) => data::look(folder)?,
    };
    let view = engine.view(run)?;
    Ok(face.ended(&engine, run, &view, end))
}
