//! `windlass triggers`: whether schedules and triggers are right, when they fire, and when they did.

use super::refused;
use crate::answer::{Answer, Status};
use crate::args::{Triggers, TriggersCheck, TriggersCommand, TriggersHistory, TriggersNext};
use crate::data;
use crate::show::words::{clean, count};
use crate::show::{Screen, Screens, diagnostics};
use crate::triggers::fires::Ask;
use crate::triggers::{Found, What, history, read};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use windlass_ir::Severity;
use windlass_runtime::{Error, StoreError};

pub fn run(args: &Triggers, screens: &Screens) -> Answer {
    match &args.command {
        TriggersCommand::Check(args) => check(args, screens),
        TriggersCommand::Next(args) => next(args, screens),
        TriggersCommand::History(args) => past(args, screens),
    }
}

fn check(args: &TriggersCheck, screens: &Screens) -> Answer {
    let checked: Vec<Checked> =
        read(&args.files).into_iter().map(|found| Checked { strict: args.strict, found }).collect();
    let status = checked.iter().map(Checked::status).max().unwrap_or(Status::Done);
    if args.json {
        let list: Vec<Value> = checked.iter().map(Checked::to_json).collect();
        return match list.as_slice() {
            [only] => Answer::json(status, only),
            several => Answer::json(status, &json!(several)),
        };
    }
    let mut stdout = String::new();
    for file in &checked {
        if !stdout.is_empty() && !file.found.findings.is_empty() {
            stdout.push('\n');
        }
        stdout.push_str(&file.render(&screens.stdout));
    }
    if checked.iter().any(|file| !file.found.findings.is_empty()) {
        stdout.push('\n');
        stdout.push_str(diagnostics::PAGES);
    }
    Answer { stdout, ..Answer::new(status) }
}

/// What is said about one file.
#[derive(Debug)]
struct Checked {
    found: Found,
    strict: bool,
}

impl Checked {
    fn status(&self) -> Status {
        match self.found.what {
            What::Unreadable => Status::Refused,
            What::Schedules | What::Skill { .. } | What::Workflow { .. } if self.is_valid() => Status::Done,
            What::Schedules | What::Skill { .. } | What::Workflow { .. } => Status::Failed,
        }
    }

    fn is_valid(&self) -> bool {
        let warned = self.found.findings.iter().any(|finding| finding.severity == Severity::Warning);
        self.found.is_valid() && !(self.strict && warned)
    }

    fn to_json(&self) -> Value {
        let Found { file, sources, findings, what, .. } = &self.found;
        let workflow = match what {
            What::Workflow { id, .. } => id.as_deref(),
            What::Schedules | What::Skill { .. } | What::Unreadable => None,
        };
        json!({
            "file": file,
            "valid": self.is_valid(),
            "dialect": self.found.dialect(),
            "workflow": workflow,
            "diagnostics": diagnostics::to_json(findings, sources, Some(file)),
        })
    }

    fn render(&self, screen: &Screen) -> String {
        let Found { file, sources, findings, .. } = &self.found;
        let shown = diagnostics::render(findings, sources, Some(file), screen);
        format!("{shown}{}: {}\n", screen.bold(&clean(file)), self.summary())
    }

    fn summary(&self) -> String {
        let tally = diagnostics::tally(&self.found.findings);
        match (&self.found.what, self.is_valid()) {
            (What::Unreadable, _) => "not read".to_owned(),
            (_, true) if tally.is_empty() => format!("valid ({})", self.inside()),
            (_, true) => format!("valid ({}), {tally}", self.inside()),
            (_, false) if self.found.is_valid() => format!("{tally}; not valid under --strict"),
            (_, false) => tally,
        }
    }

    fn inside(&self) -> String {
        let entries = self.found.entries.len();
        match &self.found.what {
            What::Schedules => count(entries, "schedule"),
            What::Skill { workflows, schedules } => {
                format!(
                    "skill, {}, {} of schedules",
                    count(*workflows, "workflow"),
                    count(*schedules, "file")
                )
            }
            What::Workflow { dialect, .. } => format!("{}, {}", dialect.name(), count(entries, "trigger")),
            What::Unreadable => String::new(),
        }
    }
}

fn next(args: &TriggersNext, screens: &Screens) -> Answer {
    let found = read(std::slice::from_ref(&args.file));
    let show =
        |file: &Found| diagnostics::render(&file.findings, &file.sources, Some(&file.file), &screens.stderr);
    let mut stderr: String = found.iter().map(show).collect();
    if !stderr.is_empty() {
        stderr.push_str(diagnostics::PAGES);
    }
    if !found.iter().all(Found::is_valid) {
        return Answer { stderr, ..Answer::new(Status::Refused) };
    }
    let ask = Ask {
        count: args.count.into(),
        from: args.from.unwrap_or_else(Timestamp::now),
        local: TimeZone::try_system().unwrap_or(TimeZone::UTC),
    };
    if args.json {
        let triggers = ask.to_json(&found);
        let json =
            json!({"from": ask.from.to_string(), "local_timezone": ask.local_name(), "triggers": triggers});
        return Answer { stderr, ..Answer::json(Status::Done, &json) };
    }
    Answer { stdout: ask.render(&found, &screens.stdout), stderr, ..Answer::new(Status::Done) }
}

fn past(args: &TriggersHistory, screens: &Screens) -> Answer {
    let folder = data::folder(&args.data, None);
    let firings = match data::look(&folder) {
        Ok(engine) => engine.firings(args.trigger.as_deref(), args.limit),
        Err(Error::Store(StoreError::Missing { .. })) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    match firings {
        Ok(firings) if args.json => {
            Answer::json(Status::Done, &firings.iter().map(history::to_json).collect())
        }
        Ok(firings) if firings.is_empty() => {
            Answer { stderr: "no firings\n".into(), ..Answer::new(Status::Done) }
        }
        Ok(firings) => {
            Answer { stdout: history::render(&firings, &screens.stdout), ..Answer::new(Status::Done) }
        }
        Err(error) => refused(&error),
    }
}
