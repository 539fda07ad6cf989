//! `windlass fmt`: formats files in place, or only compares them with their canonical form.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args::Fmt;
use crate::files::{self, STDIN, WORKFLOW_FILES};
use crate::load;
use crate::replace::replace;
use crate::show::words::{clean, count};
use crate::show::{Screens, diagnostics};
use crate::unified::unified;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use windlass_api::library::Library;
use windlass_api::operations::EditWorkflow;
use windlass_api::types::{Edit, Edited, NamedText, Ref};
use windlass_api::{Code, Refusal};
use windlass_ir::Sources;

pub fn run(args: &Fmt, screens: &Screens) -> Result<Answer, Refused> {
    let is_stdin = |file: &PathBuf| file == Path::new(STDIN);
    let is_dry = args.check || args.diff;
    let is_filter = args.files.iter().any(is_stdin) && !is_dry;
    if is_filter && args.files.len() > 1 {
        let refusal =
            Refusal::new(Code::BadRequest, "`-` writes to standard output, so it must be the only file");
        return Err(refusal.help("name `-` alone, or add --check").into());
    }
    let (files, is_list) = expand(&args.files);
    if let ([only], false) = (files.as_slice(), is_list) {
        let file = Looked::new(only, is_dry)?;
        return Ok(match (args.json, is_filter) {
            (true, _) => Answer::json(file.status(is_dry), &file.to_json()),
            (false, true) => Answer { stdout: file.edited.source, ..Answer::new(Exit::Done) },
            (false, false) => answer(&[Ok(file)], args, screens),
        });
    }
    let looked: Vec<Result<Looked, Refused>> = files.iter().map(|file| Looked::new(file, is_dry)).collect();
    if args.json {
        let entries: Vec<Value> =
            files.iter().zip(&looked).map(|(file, looked)| entry(file, looked)).collect();
        return Ok(Answer::json(status(&looked, is_dry), &entries));
    }
    Ok(answer(&looked, args, screens))
}

/// The files that the arguments name, and whether the JSON is a list even for one file. A folder stands for its only workflow
/// file, else for every workflow in it.
fn expand(named: &[PathBuf]) -> (Vec<PathBuf>, bool) {
    let mut is_list = named.len() > 1;
    let mut files = Vec::new();
    for path in named {
        let fixed = WORKFLOW_FILES.iter().filter(|name| path.join(name).exists()).count();
        let inside = match path.is_dir() && fixed != 1 {
            true => Library::scan(std::slice::from_ref(path)).entries,
            false => Vec::new(),
        };
        if inside.is_empty() {
            files.push(path.clone());
            continue;
        }
        is_list = true;
        let mut inside: Vec<PathBuf> = inside.into_iter().map(|entry| entry.file).collect();
        inside.sort();
        files.extend(inside);
    }
    (files, is_list)
}

fn status(looked: &[Result<Looked, Refused>], check: bool) -> Exit {
    Exit::worst(looked.iter().map(|file| match file {
        Ok(file) => file.status(check),
        Err(refused) => refused.refusal.code.exit(),
    }))
}

fn answer(looked: &[Result<Looked, Refused>], args: &Fmt, screens: &Screens) -> Answer {
    let is_dry = args.check || args.diff;
    let shown = |file: &Looked| match args.diff {
        true => unified(&file.file, &file.before, &file.edited.source),
        false => file.line(is_dry),
    };
    let stdout = looked.iter().flatten().map(shown).collect();
    let refused = looked.iter().filter_map(|file| file.as_ref().err());
    let refusals: String = refused
        .map(|Refused { refusal, sources }| match refusal.diagnostics.as_slice() {
            [] => diagnostics::refusal(refusal, sources, &screens.stderr),
            findings => diagnostics::list(findings, sources, &screens.stderr),
        })
        .collect();
    let pages = if refusals.is_empty() { "" } else { diagnostics::PAGES };
    let stderr = refusals + pages + &summary(looked, is_dry);
    Answer { stdout, stderr, status: status(looked, is_dry) }
}

/// One of several files as JSON.
fn entry(file: &Path, looked: &Result<Looked, Refused>) -> Value {
    match looked {
        Ok(looked) => json!(looked.to_json()),
        Err(refused) => {
            json!({"type": "refused", "file": file.display().to_string(), "error": refused.refusal})
        }
    }
}

/// A file in canonical form. Without `--check` it has been written.
#[derive(Debug)]
struct Looked {
    file: String,
    changed: bool,
    before: String,
    edited: Edited,
}

/// The same as JSON.
#[derive(Debug, Serialize)]
struct Formatted<'a> {
    file: &'a str,
    changed: bool,
    #[serde(flatten)]
    edited: &'a Edited,
}

impl Looked {
    fn new(path: &Path, check: bool) -> Result<Self, Refused> {
        let path = files::find_workflow(path)?;
        let content = files::read(&path)?;
        let NamedText { name, text } = content.text()?;
        let mut sources = Sources::default();
        sources.add(load::shown(&NamedText { name: name.clone(), text: text.clone() }));
        let request = EditWorkflow { of: Ref::text(&name, &text), edits: vec![Edit::Format] };
        let edited = pure(request).map_err(|refusal| Refused { refusal: Box::new(refusal), sources })?;
        let changed = edited.source != text;
        if changed && !check && path != Path::new(STDIN) {
            replace(&path, edited.source.as_bytes()).map_err(|error| not_written(&name, &error))?;
        }
        Ok(Self { file: name, changed, before: text, edited })
    }

    fn status(&self, check: bool) -> Exit {
        if check && self.changed { Exit::Failed } else { Exit::Done }
    }

    fn line(&self, check: bool) -> String {
        let word = if check { "not formatted" } else { "formatted" };
        if self.changed { format!("{}: {word}\n", clean(&self.file)) } else { String::new() }
    }

    fn to_json(&self) -> Formatted<'_> {
        Formatted { file: &self.file, changed: self.changed, edited: &self.edited }
    }
}

fn not_written(file: &str, error: &std::io::Error) -> Refusal {
    let refusal = Refusal::new(Code::Unwritable, format!("cannot write {file}: {error}"));
    refusal.help("change the permissions of the file and its folder, or format it with `-`")
}

/// `1 file formatted, 2 unchanged, 1 refused`.
fn summary(looked: &[Result<Looked, Refused>], check: bool) -> String {
    let done = looked.iter().flatten();
    let changed = done.clone().filter(|file| file.changed).count();
    let canonical = done.count() - changed;
    let refused = looked.len() - changed - canonical;
    let word = if check { "not formatted" } else { "formatted" };
    let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
    format!("{} {word}, {canonical} unchanged{refused}\n", count(changed, "file"))
}
