//! `windlass convert`: converts a workflow to the native dialect, or to the other syntax of its own dialect.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args::Convert;
use crate::load;
use crate::replace::replace;
use crate::show::words::{clean, count};
use crate::show::{Screens, diagnostics};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use windlass_api::operations::{EditWorkflow, ValidateWorkflow};
use windlass_api::types::{Edit, Edited, Ref};
use windlass_api::{Code, Refusal};

/// The JSON output.
#[derive(Debug, Serialize)]
struct Written<'a> {
    /// The file that was written; null for standard output.
    file: Option<String>,
    #[serde(flatten)]
    edited: &'a Edited,
}

pub fn run(args: &Convert, screens: &Screens) -> Result<Answer, Refused> {
    let asked = load::ask(&args.file, &args.reading(), false)?;
    let request = EditWorkflow { of: asked.of.clone(), edits: vec![Edit::Convert { to: args.to.into() }] };
    let edited = match pure(request) {
        Ok(edited) => edited,
        Err(refusal) => return Err(asked.refused(refusal)),
    };
    if let Some(output) = &args.output {
        write(output, &edited.source, args.force)?;
    }
    if args.json {
        let file = args.output.as_ref().map(|output| output.display().to_string());
        return Ok(Answer::json(Exit::Done, &Written { file, edited: &edited }));
    }
    let mut stderr = diagnostics::explained(&edited.diagnostics, &asked.sources, &screens.stderr);
    if edited.comments_lost {
        stderr.push_str("note: comments of the original file are not in the converted file\n");
    }
    Ok(match &args.output {
        None => Answer { stdout: edited.source, stderr, status: Exit::Done },
        Some(output) => {
            stderr.push_str(&written(output, &edited)?);
            Answer { stderr, ..Answer::new(Exit::Done) }
        }
    })
}

fn written(output: &Path, edited: &Edited) -> Result<String, Refusal> {
    let name = output.display().to_string();
    let of = Ref::text(&name, &edited.source);
    let found = pure(ValidateWorkflow { of, strict: false })?;
    Ok(format!("{}: {}\n", clean(&name), count(found.entries, "step")))
}

/// Writes a new file, or with `force` replaces an existing one atomically.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Refusal> {
    let result = match create(path, text) {
        Err(error) if force && error.kind() == ErrorKind::AlreadyExists => replace(path, text.as_bytes()),
        result => result,
    };
    result.map_err(|error| {
        let name = path.display();
        match error.kind() {
            ErrorKind::AlreadyExists => Refusal::new(Code::Unwritable, format!("{name} already exists"))
                .help("choose another file, or overwrite it with --force"),
            _ => Refusal::new(Code::Unwritable, format!("cannot write {name}: {error}"))
                .help("choose a file that you can write"),
        }
    })
}

fn create(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
