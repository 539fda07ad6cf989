//! `windlass approve`, `reject`, `signal`, `cancel` and `pause`.

use super::{call, call_once, several};
use crate::answer::{self, Answer, Exit, Refused};
use crate::args::{self, Data};
use crate::data;
use crate::show::gates;
use crate::show::words::{clean, one_line};
use std::path::Path;
use windlass_api::operations::{
    ApproveGate, Bulk, BulkAction, BulkRuns, Decide, GetRun, RejectGate, RunFilter, SignalRun,
};
use windlass_api::types::{Json, WaitKind};
use windlass_api::{Code, Refusal};
use windlass_ir::RunStatus;
use windlass_runtime::RunId;

pub fn decide(args: args::Decide, approve: bool) -> Result<Answer, Refused> {
    let (folder, run, step) = match &args.run {
        Some(name) => {
            let (folder, run) = found(&args.data, name)?;
            (folder, run, args.step)
        }
        None => {
            let (folder, run, gate) = only_gate(&args.data)?;
            several::confirmed(if approve { "approve" } else { "reject" }, args.json)?;
            (folder, run, Some(gate))
        }
    };
    let word = match (&args.choice, approve) {
        (Some(option), _) => clean(option).into_owned(),
        (None, true) => "approved".to_owned(),
        (None, false) => "rejected".to_owned(),
    };
    let fields = args.fields.iter().map(|(name, text)| (name.clone(), field(text)));
    let decide = Decide {
        run_id: run.to_string(),
        step,
        choice: args.choice,
        fields: Json::Object(fields.collect()),
        reason: args.reason,
        id: None,
        by: args.actor.by,
    };
    let key = args.once.key.as_deref();
    let gate = match approve {
        true => call_once(&folder, ApproveGate(decide), key)?,
        false => call_once(&folder, RejectGate(decide), key)?,
    };
    match args.json {
        true => Ok(Answer::json(Exit::Done, &gate)),
        false => match gates::progress(&gate).filter(|_| gate.decided.is_none()) {
            Some(progress) => acted(&format!("{word} ({progress})"), &folder, &run),
            None => acted(&word, &folder, &run),
        },
    }
}

/// The only gate that waits in a data folder, which is printed.
fn only_gate(at: &Data) -> Result<(std::path::PathBuf, RunId, String), Refused> {
    let folder = data::existing(at)?;
    let unfinished = RunFilter { unfinished: true, ..RunFilter::default() };
    let mut gates = Vec::new();
    for summary in several::all(&folder, &unfinished)? {
        let run = call(&folder, GetRun::of(&summary.run_id))?;
        let waits = run.waiting_on.into_iter().filter(|wait| wait.kind == WaitKind::Gate);
        gates.extend(waits.filter_map(|wait| Some((run.run_id.clone(), wait.step?, wait.message))));
    }
    let refused = |message: &str, help: String| Refusal::new(Code::NoGate, message).help(help);
    match gates.as_slice() {
        [(run, step, message)] => {
            let message = message.as_ref().and_then(Json::as_str).map(one_line);
            let message = message.map(|message| format!(": {message}")).unwrap_or_default();
            answer::remark(&format!("run {run} waits at gate `{}`{message}", clean(step)));
            let id = RunId::new(run).map_err(windlass_runtime::Error::from)?;
            Ok((folder, id, step.clone()))
        }
        [] => {
            let help = "`windlass runs` lists the runs, and what they wait for".to_owned();
            Err(refused("no gate waits for a decision", data::hinted(&help, &folder)).into())
        }
        several => {
            let names: Vec<String> = several.iter().map(|(run, step, _)| format!("`{run} {step}`")).collect();
            Err(refused("several gates wait for a decision", format!("name one of {}", names.join(", ")))
                .into())
        }
    }
}

/// JSON if it reads as JSON, else text.
fn field(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

pub fn signal(args: args::Signal) -> Result<Answer, Refused> {
    let (folder, run) = found(&args.data, &args.run)?;
    let value = json(args.value.as_deref())?;
    let signal =
        SignalRun { run_id: run.to_string(), name: args.name, value, id: args.id, by: args.actor.by };
    let sent = call_once(&folder, signal, args.once.key.as_deref())?;
    match args.json {
        true => Ok(Answer::json(Exit::Done, &sent)),
        false => acted("sent", &folder, &run),
    }
}

/// A value on the command line.
pub(super) fn json(text: Option<&str>) -> Result<Json, Refusal> {
    text.map_or(Ok(Json::Null), |text| {
        serde_json::from_str(text).map_err(|error| {
            let refusal = Refusal::new(Code::BadParameter, format!("the value is not JSON: {error}"));
            refusal.help("put text into double quotes, such as '\"done\"'")
        })
    })
}

/// What was done to a run, and what to do next.
fn acted(word: &str, folder: &Path, run: &RunId) -> Result<Answer, Refused> {
    let engine = data::look(folder)?;
    let status = engine.status(run)?;
    let next = match status {
        RunStatus::Success | RunStatus::Failed | RunStatus::Cancelled => {
            format!("; it has {}", ended(status))
        }
        _ if engine.executed().contains(run) => String::new(),
        _ => format!("; continue it with `windlass resume {run}`"),
    };
    let stderr = data::hinted(&format!("{word}: run {run}{next}\n"), folder);
    Ok(Answer { stderr, ..Answer::new(Exit::Done) })
}

/// How a run ended; completes "has …".
fn ended(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Success => "succeeded",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "been canceled",
        _ => "not ended",
    }
}

pub fn cancel(args: args::Cancel) -> Result<Answer, Refused> {
    let args::Cancel { runs, filter, several, actor, once, reason, json, data } = args;
    let (by, key) = (actor.by, once.key);
    let what = Several { verb: "cancel", done: "canceled", action: BulkAction::Cancel, reason, by, key };
    act_on(&what, &runs, &filter.members(), &several, json, &data)
}

pub fn pause(args: args::Pause) -> Result<Answer, Refused> {
    let args::Pause { runs, filter, several, actor, once, json, data } = args;
    let (by, key) = (actor.by, once.key);
    let what = Several { verb: "pause", done: "paused", action: BulkAction::Pause, reason: None, by, key };
    act_on(&what, &runs, &filter.members(), &several, json, &data)
}

/// How many runs one call takes.
const RUNS_MAX: usize = 1_000;

/// An action on several runs.
struct Several {
    verb: &'static str,
    done: &'static str,
    action: BulkAction,
    reason: Option<String>,
    by: Option<String>,
    key: Option<String>,
}

impl Several {
    fn request(&self, run_ids: Vec<String>, filter: RunFilter, dry_run: bool) -> BulkRuns {
        BulkRuns {
            action: self.action,
            filter,
            run_ids,
            all: true,
            reason: self.reason.clone(),
            inputs: None,
            by: self.by.clone(),
            dry_run,
            limit: Some(500),
            cursor: None,
        }
    }
}

fn act_on(
    what: &Several,
    names: &[String],
    filter: &RunFilter,
    several: &args::Several,
    json: bool,
    at: &Data,
) -> Result<Answer, Refused> {
    let folder = data::folder(at, None);
    let engine = data::look(&folder)?;
    let run_ids: Vec<String> = match names {
        [] => {
            // There is nothing to do for runs that have ended.
            let filter = RunFilter { unfinished: true, ..filter.clone() };
            several::all(&folder, &filter)?.into_iter().map(|run| run.run_id).collect()
        }
        names => {
            names.iter().map(|name| Ok(engine.find(name)?.to_string())).collect::<Result<_, Refused>>()?
        }
    };
    drop(engine);
    if run_ids.is_empty() {
        let nothing = Bulk { items: Vec::new(), next: None };
        return Ok(match json {
            true => Answer::json(Exit::Done, &nothing),
            false => Answer { stderr: "no matching runs\n".into(), ..Answer::new(Exit::Done) },
        });
    }
    if names.is_empty() && !several.dry_run {
        several::agreed(what.verb, &run_ids, several)?;
    }
    let mut bulk = Bulk { items: Vec::new(), next: None };
    for (number, run_ids) in run_ids.chunks(RUNS_MAX).enumerate() {
        let request = what.request(run_ids.to_vec(), RunFilter::default(), several.dry_run);
        // Each call has a key of its own.
        let key = what.key.as_ref().map(|key| match number {
            0 => key.clone(),
            number => format!("{key}.{number}"),
        });
        bulk.items.extend(call_once(&folder, request, key.as_deref())?.items);
    }
    // If the user named one run, its refusal is the result of the command.
    if let ([_], [only]) = (names, bulk.items.as_slice())
        && let Some(refusal) = only.error.clone()
    {
        return Err(refusal.into());
    }
    let refused = bulk.items.iter().any(|item| item.error.is_some());
    let exit = if refused { Exit::Refused } else { Exit::Done };
    if json {
        return Ok(Answer::json(exit, &bulk));
    }
    let mut answer = Answer::new(exit);
    for item in &bulk.items {
        match &item.error {
            Some(refusal) => {
                answer.stderr += &format!("error[{}]: {}\n", refusal.code, clean(&refusal.message));
            }
            None if several.dry_run => answer.stdout += &format!("{}\n", item.run_id),
            None => {
                let run = RunId::new(&item.run_id).map_err(windlass_runtime::Error::from)?;
                answer.stderr += &acted(what.done, &folder, &run)?.stderr;
            }
        }
    }
    if several.dry_run {
        answer.stderr += &format!("this would {} the runs above\n", what.verb);
    }
    Ok(answer)
}

fn found(at: &Data, name: &str) -> Result<(std::path::PathBuf, RunId), Refused> {
    let (folder, _, run) = data::find(at, name)?;
    Ok((folder, run))
}
