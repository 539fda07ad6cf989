//! `windlass logs`: the output of the steps of a run.

use super::tail;
use crate::answer::{Answer, Exit, Page, Refused};
use crate::show::times;
use crate::show::words::{clean, one_line};
use crate::{args, data};
use std::collections::VecDeque;
use windlass_api::Refusal;
use windlass_api::report::Lines;
use windlass_api::types::LogLine;
use windlass_runtime::{Outcome, RunPhase, Timestamp, Update};

pub fn run(args: &args::Logs) -> Result<Answer, Refused> {
    let (folder, engine, run) = data::find(&args.data, args.run.as_deref().unwrap_or(data::LAST))?;
    let lines = Lines::open(&engine, run.clone(), args.step.clone())?;
    lines.check_step(args.follow)?;
    let mut shown = Shown {
        page: Page::new(),
        lines,
        json: args.json,
        timestamps: args.timestamps,
        tail: args.tail,
        since: args.since,
        any: false,
    };
    let mut stderr = match args.follow {
        true => tail::follow(&folder, &engine, &run, |update| match update {
            Some(Update::Event { .. }) => Ok(true),
            // The line is already in the log.
            Some(Update::Line(_)) => Ok(shown.rest()),
            None => {
                shown.lines.refresh()?;
                Ok(shown.rest())
            }
            Some(Update::Notice(notice)) => {
                crate::answer::remark(&clean(&notice));
                Ok(true)
            }
        })?,
        false => {
            shown.all(args.step.is_none() && args.tail.is_none())?;
            String::new()
        }
    };
    match shown.lines.damaged() {
        0 => {}
        1 => stderr += "one line of the log is damaged and left out\n",
        lines => stderr += &format!("{lines} lines of the log are damaged and left out\n"),
    }
    if !shown.any && stderr.is_empty() {
        stderr += "no output\n";
    }
    Ok(Answer { stderr, ..Answer::new(Exit::Done) })
}

struct Shown {
    page: Page,
    lines: Lines,
    json: bool,
    timestamps: bool,
    /// How many of the lines so far to print; later lines are all printed.
    tail: Option<usize>,
    since: Option<Timestamp>,
    any: bool,
}

impl Shown {
    /// Everything; for a failed run the failing step first.
    fn all(&mut self, whole: bool) -> Result<(), Refusal> {
        let view = self.lines.view();
        let failed = match (view.phase(), view.failed_at()) {
            (RunPhase::Ended(Outcome::Failed(failure)), Some(at)) if whole => {
                let name = self.lines.shown(at);
                let title = format!(
                    "--- {} failed ({}): {}",
                    clean(&name),
                    failure.class,
                    one_line(&failure.message)
                );
                Some((at.to_string(), title))
            }
            _ => None,
        };
        let Some((at, title)) = failed else {
            self.rest();
            return Ok(());
        };
        let inside = format!("{at}/");
        let is_failing = |line: &LogLine| {
            line.path == at || line.path.starts_with(&inside) || line.path.starts_with(&format!("{at}["))
        };
        let mut read = self.json || self.page.line(&title);
        while let Some((step, line)) = self.lines.next_named().filter(|_| read) {
            read = !is_failing(&line) || self.print(&step, &line);
        }
        self.lines.rewind()?;
        let mut others = false;
        while let Some((step, line)) = self.lines.next_named().filter(|_| read) {
            if !is_failing(&line) {
                if !std::mem::replace(&mut others, true) && !self.json {
                    read = self.page.line("--- other steps");
                }
                read = read && self.print(&step, &line);
            }
        }
        // A closed pipe is not an error.
        let _ = self.page.flush();
        Ok(())
    }

    /// Prints the new lines in order. False if the reader closed the pipe.
    fn rest(&mut self) -> bool {
        match self.tail.take() {
            None => {
                while let Some((step, line)) = self.lines.next_named() {
                    if !self.print(&step, &line) {
                        return false;
                    }
                }
            }
            Some(count) => {
                let mut last = VecDeque::new();
                while let Some(named) = self.lines.next_named() {
                    last.push_back(named);
                    if last.len() > count {
                        last.pop_front();
                    }
                }
                if !last.iter().all(|(step, line)| self.print(step, line)) {
                    return false;
                }
            }
        }
        self.page.flush()
    }

    fn is_recent(&self, at: Option<Timestamp>) -> bool {
        self.since.is_none_or(|since| at.is_some_and(|at| at >= since))
    }

    fn print(&mut self, step: &str, line: &LogLine) -> bool {
        let at = times::instant(&line.at);
        if !self.is_recent(at) {
            return true;
        }
        self.any = true;
        let text = match (self.json, at.filter(|_| self.timestamps)) {
            (true, _) => serde_json::to_string(line).unwrap_or_default(),
            (false, Some(at)) => format!("{}  {}", times::precise(at), as_text(step, line)),
            (false, None) => as_text(step, line),
        };
        self.page.line(&text)
    }
}

fn as_text(step: &str, line: &LogLine) -> String {
    let which = match (line.attempt, line.delivery) {
        (..=1, ..=1) => String::new(),
        (attempt, ..=1) => format!(" (attempt {attempt})"),
        (attempt, delivery) => format!(" (attempt {attempt}, delivery {delivery})"),
    };
    let text = match line.cut {
        true => "[the rest of this attempt's output is omitted: it is too long]",
        false => &line.text,
    };
    format!("{}{which} | {}", clean(step), clean(text.trim_end_matches('\n').trim_end_matches('\r')))
}
