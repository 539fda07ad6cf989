//! `windlass retry`: starts a run once more with what is kept of it, or says what that would do.

use super::face::{Face, Own};
use super::run::{Start, laid_over, launch, nobody_for, surroundings_of};
use super::{refused, several};
use crate::answer::{Answer, Status};
use crate::load;
use crate::show::words::one_line;
use crate::show::{Screen, Screens};
use crate::{args, data, specify};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_ir::RunStatus;
use windlass_runtime::{Again, Config, Engine, Error, Fate, RunId, RunRow, View, again};

pub fn run(args: &args::Retry, screens: &Screens) -> Answer {
    let folder = data::folder(&args.data, None);
    let named = || -> Result<(Arc<Engine>, Option<RunId>), Error> {
        let engine = data::look(&folder)?;
        let run = args.run.as_ref().map(|name| engine.find(name)).transpose()?;
        Ok((engine, run))
    };
    match named() {
        Ok((engine, Some(run))) => one(args, &folder, &engine, run, screens),
        Ok((engine, None)) => all(args, &folder, &engine, screens),
        Err(error) => super::run::refused_start(&error, args.driving.json.is_some()),
    }
}

/// Every run that a filter means and that has not come to a good end.
fn all(args: &args::Retry, folder: &Path, engine: &Engine, screens: &Screens) -> Answer {
    let ended_badly = |row: &RunRow| row.row.status.is_finished() && row.row.status != RunStatus::Success;
    let rows = match several::meant(engine, &args.filter, ended_badly) {
        Ok(rows) => rows,
        Err(error) => return refused(&error),
    };
    if rows.is_empty() {
        let stderr = "no such runs that have failed or were cancelled\n".into();
        return Answer { stderr, ..Answer::new(Status::Done) };
    }
    if !args.several.dry_run
        && let Err(answer) = several::agreed("retry", &rows, &args.several)
    {
        return answer;
    }
    let mut whole = Answer::new(Status::Done);
    for row in rows {
        let answer = one(args, folder, engine, row.run, screens);
        whole.stdout += &answer.stdout;
        whole.stderr += &answer.stderr;
        whole.status = whole.status.max(answer.status);
    }
    whole
}

fn one(args: &args::Retry, folder: &Path, engine: &Engine, run: RunId, screens: &Screens) -> Answer {
    let json = args.driving.json.is_some();
    let (own, other) = (Own { json }, specify::Manner::starting(&args.driving));
    let face: &dyn Face = if args.driving.compat.is_some() { &other } else { &own };
    let refuse = |error: &Error| super::run::refused_start(error, json);
    let view = match engine.view(&run) {
        Ok(view) => view,
        Err(error) => return refuse(&error),
    };
    if view.ended_at().is_none() && !args.several.dry_run {
        return refuse(&Error::NotFinished(run));
    }
    let (plan, source, overrides) = match &args.plan {
        None => match engine.stored_source(&run) {
            Ok((source, overrides)) => (windlass_ir::Plan::clone(&view.program().plan), source, overrides),
            Err(error) => return refuse(&error),
        },
        Some(file) => match load::open(file, &args::Reading::default()) {
            Ok(opened) => {
                let note = opened.note(&screens.stderr);
                if !note.is_empty() {
                    crate::answer::remark(note.trim_end());
                }
                let (source, overrides) = opened.texts();
                (opened.plan, source, overrides)
            }
            Err(refusal) if json => return refusal.answer_with_json(&screens.stderr),
            Err(refusal) => return refusal.answer(&screens.stderr),
        },
    };
    let same = args.params.is_empty() && plan.digest == view.program().plan.digest;
    let inputs = match same {
        true => view.inputs().clone(),
        false => match laid_over(&plan, view.inputs(), Own { json }.given(&plan, args.params.clone())) {
            Ok(inputs) => inputs.to_value(),
            Err(answer) => return *answer,
        },
    };
    let found = match again(engine, &run, args.from.as_deref(), &plan, &inputs) {
        Ok(found) => found,
        Err(error) => return refuse(&error),
    };
    if args.several.dry_run {
        return told(&run, &found, json, &screens.stdout);
    }
    let mut from = match surroundings_of(&args.driving, face, screens) {
        Ok(from) => from,
        Err(answer) => return *answer,
    };
    from.config = Config::recorded(view.about()).or_else(|| data::config(args.plan.as_deref(), folder));
    // What was done in a folder is done there again.
    let directory = recorded(&view, "directory").filter(|directory| directory.is_dir());
    from.directory = directory.unwrap_or(from.directory);
    let kept: HashSet<&str> = found
        .steps
        .iter()
        .filter(|step| matches!(step.fate, Fate::Kept))
        .map(|step| step.step.as_str())
        .collect();
    let runs = |step: &windlass_ir::plan::PlanStep| !kept.contains(&*step.id);
    if let Some(error) = nobody_for(&plan, &from, runs) {
        return refuse(&error);
    }
    let file = args.plan.as_deref().and_then(load::location).or_else(|| recorded(&view, "file"));
    let start = Start {
        plan,
        source,
        overrides,
        file,
        inputs,
        by: data::login(None),
        from,
        beginning: found.beginning,
    };
    launch(folder, start, args.run_id.as_deref(), args.detach, (&args.driving, face), &screens.stderr)
}

/// A path that the run was started with.
fn recorded(view: &View, what: &str) -> Option<PathBuf> {
    view.about().get(what).and_then(windlass_ir::Value::as_str).map(PathBuf::from)
}

/// What would become of each step.
fn told(run: &RunId, found: &Again, json: bool, screen: &Screen) -> Answer {
    if json {
        return Answer { stdout: format!("{}\n", found.to_json(run)), ..Answer::new(Status::Done) };
    }
    let mut stdout = format!("{} once more:\n", screen.bold(run.as_str()));
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
    Answer { stdout, stderr: "nothing was started\n".into(), ..Answer::new(Status::Done) }
}
