//! `windlass fmt`: files in canonical form, written in their place or only compared.

use crate::answer::{Answer, Status};
use crate::args::Fmt;
use crate::files::{self, Content, STDIN};
use crate::load::Refusal;
use crate::replace::replace;
use crate::show::words::{clean, count};
use crate::show::{Screens, diagnostics};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windlass_dialects::fmt::{Formatted, format_file};
use windlass_ir::{Code, Diagnostic, Sources};

pub fn run(args: &Fmt, screens: &Screens) -> Answer {
    let is_stdin = |file: &PathBuf| file == Path::new(STDIN);
    let is_filter = args.files.iter().any(is_stdin) && !args.check;
    if is_filter && (args.json || args.files.len() > 1) {
        let stderr =
            "`-` goes to standard output: name it alone and without --json, or add --check\n".to_owned();
        return Answer { stderr, ..Answer::new(Status::Refused) };
    }
    if is_filter {
        return filter(screens);
    }
    let looked: Vec<Looked> = args.files.iter().map(|file| Looked::new(file, args.check)).collect();
    let status = looked.iter().map(|file| file.status(args.check)).max().unwrap_or(Status::Done);
    if args.json {
        return Answer::json(status, &looked.iter().map(Looked::to_json).collect());
    }
    let stdout = looked.iter().map(|file| file.line(args.check)).collect();
    let refusals: String = looked.iter().filter_map(|file| file.refusal(screens)).collect();
    let pages = if refusals.is_empty() { "" } else { diagnostics::PAGES };
    Answer { stdout, stderr: refusals + pages + &summary(&looked, args.check), status }
}

/// From standard input to standard output.
fn filter(screens: &Screens) -> Answer {
    let content = match files::read(Path::new(STDIN)) {
        Ok(content) => content,
        Err(unreadable) => return Refusal::from(unreadable).answer(&screens.stderr),
    };
    let Formatted { sources, text } = format_file(content.into());
    match text {
        Ok(stdout) => Answer { stdout, ..Answer::new(Status::Done) },
        Err(findings) => Refusal { file: Some(STDIN.to_owned()), sources, findings }.answer(&screens.stderr),
    }
}

/// What became of one file.
#[derive(Debug)]
struct Looked {
    file: String,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Canonical,
    /// Another form is canonical, and unless the files were only checked, the file has it now.
    Changed,
    Refused(Refusal),
}

impl Looked {
    fn new(path: &Path, check: bool) -> Self {
        let read = files::find_workflow(path).and_then(|found| Ok((files::read(&found)?, found)));
        match read {
            Ok((content, found)) => Self::read(content, &found, check),
            Err(unreadable) => {
                Self { file: unreadable.name.clone(), outcome: Outcome::Refused(unreadable.into()) }
            }
        }
    }

    fn read(content: Content, path: &Path, check: bool) -> Self {
        let (file, before) = (content.name.clone(), content.bytes.clone());
        let Formatted { sources, text } = format_file(content.into());
        let refused =
            |findings, sources| Outcome::Refused(Refusal { file: Some(file.clone()), sources, findings });
        let outcome = match text {
            Err(findings) => refused(findings, sources),
            Ok(text) if text.as_bytes() == before => Outcome::Canonical,
            Ok(_) if check => Outcome::Changed,
            Ok(text) => match replace(path, text.as_bytes()) {
                Ok(()) => Outcome::Changed,
                Err(error) => refused(vec![not_written(&error)], Sources::default()),
            },
        };
        Self { file, outcome }
    }

    fn status(&self, check: bool) -> Status {
        match self.outcome {
            Outcome::Canonical => Status::Done,
            Outcome::Changed => {
                if check {
                    Status::Failed
                } else {
                    Status::Done
                }
            }
            Outcome::Refused(_) => Status::Refused,
        }
    }

    fn line(&self, check: bool) -> String {
        let word = if check { "not formatted" } else { "formatted" };
        match self.outcome {
            Outcome::Changed => format!("{}: {word}\n", clean(&self.file)),
            Outcome::Canonical | Outcome::Refused(_) => String::new(),
        }
    }

    fn refusal(&self, screens: &Screens) -> Option<String> {
        match &self.outcome {
            Outcome::Refused(refusal) => Some(diagnostics::render(
                &refusal.findings,
                &refusal.sources,
                Some(&self.file),
                &screens.stderr,
            )),
            Outcome::Canonical | Outcome::Changed => None,
        }
    }

    fn to_json(&self) -> Value {
        match &self.outcome {
            Outcome::Canonical => json!({"file": self.file, "changed": false}),
            Outcome::Changed => json!({"file": self.file, "changed": true}),
            Outcome::Refused(refusal) => {
                let findings = diagnostics::to_json(&refusal.findings, &refusal.sources, Some(&self.file));
                json!({"file": self.file, "changed": false, "diagnostics": findings})
            }
        }
    }
}

fn not_written(error: &std::io::Error) -> Diagnostic {
    let finding = Diagnostic::error(Code::Unreadable, format!("it cannot be written: {error}"));
    finding.help("change its permissions or those of its folder, or format it with `-`")
}

/// `1 file formatted, 2 unchanged, 1 refused`.
fn summary(looked: &[Looked], check: bool) -> String {
    let number = |is: fn(&Outcome) -> bool| looked.iter().filter(|file| is(&file.outcome)).count();
    let changed = count(number(|outcome| matches!(outcome, Outcome::Changed)), "file");
    let canonical = number(|outcome| matches!(outcome, Outcome::Canonical));
    let refused = number(|outcome| matches!(outcome, Outcome::Refused(_)));
    let word = if check { "not formatted" } else { "formatted" };
    let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
    format!("{changed} {word}, {canonical} unchanged{refused}\n")
}
