//! `windlass convert`: a workflow of any dialect as a file of the native dialect, or in the other syntax of its own.

use crate::answer::{Answer, Status};
use crate::args::{Convert, Target};
use crate::load::{self, Refusal};
use crate::replace::replace;
use crate::show::words::{clean, count};
use crate::show::{Screens, diagnostics};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use windlass_dialects::convert::{Converted, to_swdl, to_syntax};
use windlass_dialects::text::Format;

pub fn run(args: &Convert, screens: &Screens) -> Answer {
    let reading = args.reading();
    let syntax = match args.to {
        Target::Swdl => None,
        Target::Json => Some(Format::Json),
        Target::Yaml => Some(Format::Yaml),
    };
    if syntax.is_some() && (reading.overrides.is_some() || !reading.overlays.is_empty()) {
        let stderr = "error: overrides and overlays cannot be converted together with a workflow\n\
                      help: convert each file on its own, or merge them with `--to swdl`\n";
        return Answer { stderr: stderr.to_owned(), ..Answer::new(Status::Refused) };
    }
    let (text, options) = match load::sources(&args.file, &reading, None) {
        Ok(sources) => sources,
        Err(unreadable) => return Refusal::from(unreadable).answer(&screens.stderr),
    };
    let name = text.name.clone();
    let converted = match syntax {
        None => to_swdl(text, options),
        Some(syntax) => to_syntax(text, options.dialect, syntax),
    };
    let converted = match converted {
        Ok(converted) => converted,
        Err(loaded) => {
            let refusal = Refusal { file: Some(name), sources: loaded.sources, findings: loaded.diagnostics };
            return refusal.answer(&screens.stderr);
        }
    };
    let mut findings =
        diagnostics::render(&converted.loaded.diagnostics, &converted.loaded.sources, None, &screens.stderr);
    findings.push_str(if findings.is_empty() { "" } else { diagnostics::PAGES });
    if converted.comments_lost {
        findings.push_str("note: comments of the original file are not in the converted file\n");
    }
    match &args.output {
        None => Answer { stdout: converted.text, stderr: findings, status: Status::Done },
        Some(output) => match write(output, &converted.text, args.force) {
            Ok(()) => {
                let stderr = format!("{findings}{}\n", written(output, &converted));
                Answer { stderr, ..Answer::new(Status::Done) }
            }
            Err(why) => Answer { stderr: why, ..Answer::new(Status::Refused) },
        },
    }
}

fn written(output: &Path, converted: &Converted) -> String {
    let plan = converted.loaded.plan.iter();
    let steps = plan.flat_map(|plan| &plan.steps).filter(|step| !step.implicit).count();
    format!("{}: {}", clean(&output.display().to_string()), count(steps, "step"))
}

/// Writes a new file, or with `force` replaces an existing one atomically.
fn write(path: &Path, text: &str, force: bool) -> Result<(), String> {
    let result = match create(path, text) {
        Err(error) if force && error.kind() == ErrorKind::AlreadyExists => replace(path, text.as_bytes()),
        result => result,
    };
    result.map_err(|error| {
        let path = path.display().to_string();
        let name = clean(&path);
        match error.kind() {
            ErrorKind::AlreadyExists => {
                format!(
                    "error: {name} already exists\nhelp: choose another file, or overwrite it with --force\n"
                )
            }
            _ => format!("error: cannot write {name}: {error}\nhelp: choose a file that you can write\n"),
        }
    })
}

fn create(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
