//! `windlass validate`: everything that is wrong with some files.

use crate::answer::{Answer, Status};
use crate::args::Validate;
use crate::load;
use crate::show::words::{clean, count};
use crate::show::{Screen, Screens, diagnostics};
use serde_json::{Value, json};
use std::path::Path;
use windlass_dialects::Loaded;
use windlass_ir::{Diagnostic, Severity, Sources};

pub fn run(args: &Validate, screens: &Screens) -> Answer {
    let checked: Vec<Checked> = args.files.iter().map(|file| Checked::new(file, args)).collect();
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
        if !stdout.is_empty() && !file.findings.is_empty() {
            stdout.push('\n');
        }
        stdout.push_str(&file.render(&screens.stdout));
    }
    if checked.iter().any(|file| !file.findings.is_empty()) {
        stdout.push('\n');
        stdout.push_str(diagnostics::PAGES);
    }
    Answer { stdout, ..Answer::new(status) }
}

/// What became of one file.
#[derive(Debug)]
struct Checked {
    file: String,
    sources: Sources,
    findings: Vec<Diagnostic>,
    workflow: Option<String>,
    verdict: Verdict,
}

#[derive(Debug)]
enum Verdict {
    Valid { dialect: &'static str, steps: String },
    Invalid { dialect: &'static str, strict: bool },
    Unreadable,
}

impl Checked {
    fn new(path: &Path, args: &Validate) -> Self {
        match load::read(path, &args.reading, None) {
            Ok((file, loaded)) => Self::read(file, loaded, args.strict),
            Err(unreadable) => Self {
                file: unreadable.name,
                sources: Sources::default(),
                findings: vec![*unreadable.finding],
                workflow: None,
                verdict: Verdict::Unreadable,
            },
        }
    }

    fn read(file: String, loaded: Loaded, strict: bool) -> Self {
        let dialect = loaded.words.dialect;
        let warned = loaded.diagnostics.iter().any(|finding| finding.severity == Severity::Warning);
        let verdict = match &loaded.plan {
            Some(_) if strict && warned => Verdict::Invalid { dialect, strict },
            Some(plan) => {
                let steps = plan.steps.iter().filter(|step| !step.implicit).count();
                Verdict::Valid { dialect, steps: count(steps, loaded.words.step) }
            }
            None => Verdict::Invalid { dialect, strict: false },
        };
        Self {
            file,
            sources: loaded.sources,
            findings: loaded.diagnostics,
            workflow: loaded.workflow,
            verdict,
        }
    }

    fn status(&self) -> Status {
        match self.verdict {
            Verdict::Valid { .. } => Status::Done,
            Verdict::Invalid { .. } => Status::Failed,
            Verdict::Unreadable => Status::Refused,
        }
    }

    fn to_json(&self) -> Value {
        let (valid, dialect) = match self.verdict {
            Verdict::Valid { dialect, .. } => (true, Some(dialect)),
            Verdict::Invalid { dialect, .. } => (false, Some(dialect)),
            Verdict::Unreadable => (false, None),
        };
        json!({
            "file": self.file,
            "valid": valid,
            "dialect": dialect,
            "workflow": self.workflow,
            "diagnostics": diagnostics::to_json(&self.findings, &self.sources, Some(&self.file)),
        })
    }

    fn render(&self, screen: &Screen) -> String {
        let findings = diagnostics::render(&self.findings, &self.sources, Some(&self.file), screen);
        format!("{findings}{}: {}\n", screen.bold(&clean(&self.file)), self.summary())
    }

    fn summary(&self) -> String {
        let tally = diagnostics::tally(&self.findings);
        match &self.verdict {
            Verdict::Valid { dialect, steps } if tally.is_empty() => format!("valid ({dialect}, {steps})"),
            Verdict::Valid { dialect, steps } => format!("valid ({dialect}, {steps}), {tally}"),
            Verdict::Invalid { strict: true, .. } => format!("{tally}; not valid under --strict"),
            Verdict::Invalid { strict: false, .. } => tally,
            Verdict::Unreadable => "not read".to_owned(),
        }
    }
}
