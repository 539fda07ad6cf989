//! `windlass convert`: a workflow of any dialect as a file of the house dialect.

use crate::answer::{Answer, Status};
use crate::args::{Convert, Target};
use crate::load::{self, Refusal};
use crate::replace::replace;
use crate::show::words::{clean, count};
use crate::show::{Screens, diagnostics};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use windlass_dialects::convert::{Converted, to_swdl};

pub fn run(args: &Convert, screens: &Screens) -> Answer {
    let Target::Swdl = args.to;
    let reading = args.reading();
    let (text, options) = match load::sources(&args.file, &reading, None) {
        Ok(sources) => sources,
        Err(unreadable) => return Refusal::from(unreadable).answer(&screens.stderr),
    };
    let name = text.name.clone();
    let converted = match to_swdl(text, options) {
        Ok(converted) => converted,
        Err(loaded) => {
            let refusal = Refusal { file: Some(name), sources: loaded.sources, findings: loaded.diagnostics };
            return refusal.answer(&screens.stderr);
        }
    };
    let mut findings =
        diagnostics::render(&converted.loaded.diagnostics, &converted.loaded.sources, None, &screens.stderr);
    findings.push_str(if findings.is_empty() { "" } else { diagnostics::PAGES });
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
    let stages = plan.flat_map(|plan| &plan.steps).filter(|step| !step.implicit).count();
    format!("{}: {}", clean(&output.display().to_string()), count(stages, "stage"))
}

/// Writes a file that must be new, or with `force` takes the place of another at once.
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
                    "error: {name} is there already\nhelp: name another file, or write over it with --force\n"
                )
            }
            _ => format!("error: {name} cannot be written: {error}\nhelp: name a file that can be written\n"),
        }
    })
}

fn create(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
