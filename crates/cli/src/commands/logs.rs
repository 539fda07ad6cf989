//! `windlass logs`: what the steps of a run have printed.

use super::{refused, tail};
use crate::answer::{Answer, Page, Status};
use crate::show::words::{clean, one_line};
use crate::{args, data};
use data_encoding::HEXLOWER;
use serde_json::json;
use windlass_dialects::DIALECTS;
use windlass_ir::suggest;
use windlass_runtime::ids;
use windlass_runtime::{
    Engine, Error, Outcome, Output, Path, Printed, Printing, RunId, RunPhase, Update, View,
};

pub fn run(args: &args::Logs) -> Answer {
    let (folder, engine, run) = match data::find(&args.data, &args.run) {
        Ok(found) => found,
        Err(error) => return refused(&error),
    };
    let done = shown(args, &engine, run).and_then(|mut shown| {
        let run = shown.run.clone();
        let mut stderr = match args.follow {
            true => tail::follow(&folder, &engine, &run, |update| match update {
                Some(Update::Event { seq, event }) => {
                    if seq == shown.view.events + 1 {
                        let applied = shown.view.apply(&event);
                        applied.map_err(|cause| Error::contradictory(&run, cause))?;
                    }
                    Ok(true)
                }
                // It is in the log by now.
                Some(Update::Line(_)) => Ok(shown.rest()),
                None => {
                    (shown.view, shown.last) = (engine.view(&run)?, None);
                    Ok(shown.rest())
                }
                Some(Update::Notice(notice)) => {
                    crate::answer::remark(&clean(&notice));
                    Ok(true)
                }
            })?,
            false => {
                shown.all(&engine)?;
                String::new()
            }
        };
        match shown.output.damaged() {
            0 => {}
            1 => stderr += "a line of the log is damaged and left out\n",
            lines => stderr += &format!("{lines} lines of the log are damaged and left out\n"),
        }
        if !shown.any && stderr.is_empty() {
            stderr += "nothing was printed\n";
        }
        Ok(stderr)
    });
    match done {
        Ok(stderr) => Answer { stderr, ..Answer::new(Status::Done) },
        Err(error) => refused(&error),
    }
}

struct Shown {
    page: Page,
    run: RunId,
    view: View,
    output: Output,
    step: Option<String>,
    json: bool,
    any: bool,
    /// The step that printed last, and its name.
    last: Option<(Path, String)>,
}

fn shown(args: &args::Logs, engine: &Engine, run: RunId) -> Result<Shown, Error> {
    let view = engine.view(&run)?;
    let output = engine.output(&run)?;
    let (step, json) = (args.step.clone(), args.json);
    let shown = Shown { page: Page::new(), run, view, output, step, json, any: false, last: None };
    shown.check_step(args.follow)?;
    Ok(shown)
}

impl Shown {
    /// One that follows may wait for a step that is still to come, if the plan has it.
    fn check_step(&self, follow: bool) -> Result<(), Error> {
        let Some(step) = &self.step else { return Ok(()) };
        let planned = || self.view.program().plan.steps.iter().any(|known| *known.id == **step);
        if self.view.steps().any(|(path, _)| self.is_meant(path)) || follow && planned() {
            return Ok(());
        }
        let names: Vec<String> =
            self.view.steps().map(|(path, _)| ids::name(DIALECTS, &self.view, path).id).collect();
        let whose = format!("run `{}`", self.run);
        match planned() && suggest::nearest(step, names.iter().map(String::as_str)).is_none() {
            true => {
                let instead = "it has not been reached".to_owned();
                Err(Error::NoStep { whose, step: step.clone(), instead })
            }
            false => Err(Error::no_step(whose, step, names.iter().map(String::as_str))),
        }
    }

    /// Whether something at this path belongs to the step that was asked for.
    fn is_meant(&self, path: &Path) -> bool {
        let Some(step) = &self.step else { return true };
        let around = std::iter::successors(Some(path.clone()), Path::parent);
        around.filter(|path| !path.is_run()).any(|path| {
            let name = ids::name(DIALECTS, &self.view, &path);
            name.id == *step
                || *name.plain == **step
                || ids::rough(&path) == *step
                || path.to_string() == *step
        })
    }

    /// Everything; of a run that has failed, the failing step first.
    fn all(&mut self, engine: &Engine) -> Result<(), Error> {
        let failure = match self.view.phase() {
            RunPhase::Ended(Outcome::Failed(failure)) if self.step.is_none() => Some(failure.clone()),
            RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => None,
        };
        let (Some(failure), Some(at)) = (failure, self.view.failed_at().cloned()) else {
            self.rest();
            return Ok(());
        };
        let is_failing = |path: &Path| path.segments().starts_with(at.segments());
        let name = ids::name(DIALECTS, &self.view, &at).id;
        let mut read = self.json
            || self.page.line(&format!(
                "--- {} failed ({}): {}",
                clean(&name),
                failure.class,
                one_line(&failure.message)
            ));
        while let Some(line) = self.output.next().filter(|_| read) {
            read = !is_failing(&line.path) || self.print(&line);
        }
        self.output = engine.output(&self.run)?;
        let mut others = false;
        while let Some(line) = self.output.next().filter(|_| read) {
            if !is_failing(&line.path) {
                if !std::mem::replace(&mut others, true) && !self.json {
                    read = self.page.line("--- the other steps");
                }
                read = read && self.print(&line);
            }
        }
        // That nobody reads any more is no failure.
        let _ = self.page.flush();
        Ok(())
    }

    /// What has come since, in the order in which it was printed. False when nobody reads any more.
    fn rest(&mut self) -> bool {
        while let Some(line) = self.output.next() {
            if self.is_meant(&line.path) && !self.print(&line) {
                return false;
            }
        }
        self.page.flush()
    }

    fn print(&mut self, line: &Printed) -> bool {
        self.any = true;
        // Who prints much prints many lines in a row.
        if self.last.as_ref().is_none_or(|(path, _)| *path != line.path) {
            self.last = Some((line.path.clone(), ids::name(DIALECTS, &self.view, &line.path).id));
        }
        let name = self.last.as_ref().map(|(_, name)| name.as_str()).unwrap_or_default();
        let text = match self.json {
            true => self.as_json(name, line),
            false => as_text(name, line),
        };
        self.page.line(&text)
    }

    fn as_json(&self, name: &str, line: &Printed) -> String {
        let stream = match line.stream {
            Printing::Stdout => "stdout",
            Printing::Stderr => "stderr",
        };
        let hex = std::str::from_utf8(&line.bytes).is_err().then(|| HEXLOWER.encode(&line.bytes));
        let object = json!({
            "type": "line",
            "run_id": self.run,
            "step": name,
            "path": line.path.to_string(),
            "attempt": line.attempt,
            "delivery": line.delivery,
            "at": line.at.to_string(),
            "stream": stream,
            "text": String::from_utf8_lossy(&line.bytes),
            "hex": hex,
            "cut": line.cut,
        });
        object.to_string()
    }
}

fn as_text(name: &str, line: &Printed) -> String {
    let which = match (line.attempt, line.delivery) {
        (..=1, ..=1) => String::new(),
        (attempt, ..=1) => format!(" (attempt {attempt})"),
        (attempt, delivery) => format!(" (attempt {attempt}, delivery {delivery})"),
    };
    let text = match line.cut {
        true => "[… more than is kept of one attempt: the rest is left out]".into(),
        false => String::from_utf8_lossy(&line.bytes),
    };
    format!("{}{which} | {}", clean(name), clean(text.trim_end_matches('\n').trim_end_matches('\r')))
}
