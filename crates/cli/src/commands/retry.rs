//! `windlass retry`: starts a new run that keeps results of an earlier one, or shows what it would do.

use super::face::{Face, Own};
use super::run::{Start, laid_over, launch, remark_on, surroundings_of};
use super::several;
use crate::answer::{Answer, Exit, Refused};
use crate::load;
use crate::show::words::one_line;
use crate::show::{Screen, Screens};
use crate::{args, data, specify};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use windlass_api::Needs;
use windlass_api::operations::RetryPlan;
use windlass_ir::plan::PlanStep;
use windlass_ir::{RunStatus, Sources};
use windlass_runtime::{Again, Config, Engine, Error, Fate, RunId, View, again};

pub fn run(args: &args::Retry, screens: &Screens) -> Result<Answer, Refused> {
    let folder = data::folder(&args.data, None);
    let engine = data::look(&folder)?;
    let runs = args.runs.iter().map(|name| engine.find(name)).collect::<Result<Vec<_>, _>>()?;
    match runs.as_slice() {
        [] => all(args, &folder, &engine, screens),
        [only] => one(args, &folder, &engine, only.clone(), screens),
        _ => each(args, &folder, &engine, runs, screens),
    }
}

/// Retries every run that the filter selects and that failed or was canceled.
fn all(args: &args::Retry, folder: &Path, engine: &Engine, screens: &Screens) -> Result<Answer, Refused> {
    let rows = several::all(folder, &args.filter.members())?;
    let rows = rows.into_iter().filter(|run| matches!(run.status, RunStatus::Failed | RunStatus::Cancelled));
    let runs: Vec<String> = rows.map(|run| run.run_id).collect();
    if runs.is_empty() {
        let stderr = "no matching runs that failed or were canceled\n".into();
        return Ok(Answer { stderr, ..Answer::new(Exit::Done) });
    }
    if !args.several.dry_run {
        several::agreed("retry", &runs, &args.several)?;
    }
    let runs = runs.iter().map(|run| RunId::new(run)).collect::<Result<Vec<_>, _>>().map_err(Error::from)?;
    each(args, folder, engine, runs, screens)
}

/// Retries several runs, one after the other.
fn each(
    args: &args::Retry,
    folder: &Path,
    engine: &Engine,
    runs: Vec<RunId>,
    screens: &Screens,
) -> Result<Answer, Refused> {
    let mut whole = Answer::new(Exit::Done);
    for run in runs {
        let json = args.driving.json.is_some();
        let answer = one(args, folder, engine, run, screens)
            .unwrap_or_else(|refused| Answer::refused(&refused, json, &screens.stderr));
        whole.stdout += &answer.stdout;
        whole.stderr += &answer.stderr;
        whole.status = Exit::worst([whole.status, answer.status]);
    }
    Ok(whole)
}

fn one(
    args: &args::Retry,
    folder: &Path,
    engine: &Engine,
    run: RunId,
    screens: &Screens,
) -> Result<Answer, Refused> {
    let json = args.driving.json.is_some();
    let (own, other) = (Own { json }, specify::Manner::starting(&args.driving));
    let face: &dyn Face = if args.driving.compat.is_some() { &other } else { &own };
    let view = engine.view(&run)?;
    if view.ended_at().is_none() && !args.several.dry_run {
        return Err(Error::NotFinished(run).into());
    }
    let (plan, source, overrides) = match &args.plan {
        None => {
            let (source, overrides) = engine.stored_source(&run)?;
            (windlass_ir::Plan::clone(&view.program().plan), source, overrides)
        }
        Some(file) => {
            let opened = load::open_to_start(file, &args::Reading::default())?;
            let note = opened.note(&screens.stderr);
            if !note.is_empty() {
                crate::answer::remark(note.trim_end());
            }
            let (source, overrides) = opened.texts();
            (opened.plan, source, overrides)
        }
    };
    let same = args.params.is_empty() && plan.digest == view.program().plan.digest;
    let inputs = match same {
        true => view.inputs().clone(),
        false => {
            let given = Own { json }.given(&plan, args.params.clone());
            laid_over(&plan, view.inputs(), given)?.to_value()
        }
    };
    let found = again(engine, &run, args.from_step.as_deref(), &plan, &inputs)?;
    if args.several.dry_run {
        return Ok(forecast(&run, &found, json, &screens.stdout));
    }
    let mut from = surroundings_of(&args.driving, face)?;
    from.config = Config::recorded(view.about()).or_else(|| data::config(args.plan.as_deref(), folder));
    // The new run works in the folder of the earlier one.
    let directory = recorded(&view, "directory").filter(|directory| directory.is_dir());
    from.directory = directory.unwrap_or(from.directory);
    let kept = found.steps.iter().filter(|step| matches!(step.fate, Fate::Kept));
    let kept: HashSet<&str> = kept.map(|step| step.step.as_str()).collect();
    let runs = |step: &PlanStep| !kept.contains(&*step.id);
    let file = args.plan.as_deref().and_then(load::location).or_else(|| recorded(&view, "file"));
    let needs = Needs {
        plan: &plan,
        sources: &Sources::default(),
        file: file.as_deref(),
        from: &from,
        runs: &runs,
        to_the_end: true,
    };
    let warnings = needs.check()?;
    remark_on(&warnings, &Sources::default(), &screens.stderr);
    let by = data::login(args.actor.by.clone());
    let start = Start { plan, source, overrides, file, inputs, by, from, beginning: found.beginning };
    launch(folder, start, args.run_id.as_deref(), args.detach, (&args.driving, face), &screens.stderr)
}

/// A path from the start of the earlier run.
fn recorded(view: &View, what: &str) -> Option<PathBuf> {
    view.about().get(what).and_then(windlass_ir::Value::as_str).map(PathBuf::from)
}

/// Shows what would happen to each step.
fn forecast(run: &RunId, found: &Again, json: bool, screen: &Screen) -> Answer {
    if json {
        return Answer::json(Exit::Done, &RetryPlan::of(run, found));
    }
    let mut stdout = format!("retry of {}:\n", screen.bold(run.as_str()));
    for step in &found.steps {
        let (mark, word) = match &step.fate {
            Fate::Kept => ('+', "kept".to_owned()),
            Fate::Again(why) => ('>', format!("runs again: {why}")),
            Fate::Perhaps(why) => ('?', why.clone()),
            Fate::Skipped(why) => ('-', format!("skipped: {why}")),
            Fate::Gone => ('x', "not in the new plan".to_owned()),
        };
        stdout += &format!("  {mark} {}: {}\n", one_line(&step.step), one_line(&word));
    }
    Answer { stdout, stderr: "nothing was started\n".into(), ..Answer::new(Exit::Done) }
}
