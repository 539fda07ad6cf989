//! `windlass init`: writes a workflow, its test and a `.gitignore` to start from.

use crate::answer::{Answer, Exit, Refused};
use crate::args;
use crate::show::Screens;
use crate::show::words::clean;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use windlass_api::{Code, Refusal};
use windlass_ir::suggest::nearest;

/// A workflow that runs as it is.
struct Template {
    name: &'static str,
    about: &'static str,
    workflow: &'static str,
    test: &'static str,
    /// Commands to try after the test, with `FILE` for the workflow.
    next: &'static [&'static str],
}

const TEMPLATES: [Template; 3] = [
    Template {
        name: "release",
        about: "Build, test, wait for an approval, publish",
        workflow: include_str!("../templates/release.yaml"),
        test: include_str!("../templates/release.test.yaml"),
        next: &["windlass run FILE", "windlass approve", "windlass resume"],
    },
    Template {
        name: "ci",
        about: "Lint, test every combination of a matrix, report",
        workflow: include_str!("../templates/ci.yaml"),
        test: include_str!("../templates/ci.test.yaml"),
        next: &["windlass run FILE"],
    },
    Template {
        name: "nightly",
        about: "Run a job every night, with a timeout and a retry",
        workflow: include_str!("../templates/nightly.yaml"),
        test: include_str!("../templates/nightly.test.yaml"),
        next: &["windlass run FILE", "windlass triggers next FILE", "windlass serve --schedules FILE"],
    },
];

/// Runs are not part of the project.
const IGNORED: &str = ".windlass/\n";

pub fn run(args: args::Init, screens: &Screens) -> Result<Answer, Refused> {
    if args.list {
        return Ok(list(args.json, screens));
    }
    let template = find(args.template.as_deref().unwrap_or(TEMPLATES[0].name))?;
    let folder = args.folder.unwrap_or_default();
    let workflow = folder.join(format!("{}.yaml", template.name));
    let test = folder.join(format!("{}.test.yaml", template.name));
    if let Some(file) = [&workflow, &test].into_iter().find(|file| file.exists()) {
        let refusal = Refusal::new(Code::Unwritable, format!("{} exists already", file.display()));
        return Err(refusal.help("name another folder, or move the file").into());
    }
    if folder != Path::new("") {
        std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    }
    let ignore = folder.join(".gitignore");
    let mut files = Vec::new();
    for (file, text) in [(&workflow, template.workflow), (&test, template.test)] {
        write(file, text).map_err(|error| unwritable(file, &error))?;
        files.push(file.display().to_string());
    }
    let mut kept = Vec::new();
    match write(&ignore, IGNORED) {
        Ok(()) => files.push(ignore.display().to_string()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => kept.push(ignore.display().to_string()),
        Err(error) => return Err(unwritable(&ignore, &error).into()),
    }
    let name = workflow.display().to_string();
    let next = ["windlass test FILE"].iter().chain(template.next).map(|line| line.replace("FILE", &name));
    let next: Vec<String> = next.collect();
    if args.json {
        let done = json!({"template": template.name, "files": files, "kept": kept, "next": next});
        return Ok(Answer::json(Exit::Done, &done));
    }
    let lines = |lines: &[String], before: &str| -> String {
        lines.iter().map(|line| format!("{before}{}\n", clean(line))).collect()
    };
    let stderr = format!("{}\ntry it:\n{}", lines(&kept, "left as it is: "), lines(&next, "  "));
    Ok(Answer { stdout: lines(&files, ""), stderr: stderr.trim_start().to_owned(), status: Exit::Done })
}

/// The templates, and what each is for.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEMPLATES.iter().map(|template| (template.name, template.about))
}

fn find(name: &str) -> Result<&'static Template, Refusal> {
    TEMPLATES.iter().find(|template| template.name == name).ok_or_else(|| {
        let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        let refusal = Refusal::new(Code::BadRequest, format!("unknown template `{name}`")).field("template");
        refusal.help(match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the templates are {}; name a folder after the template", names.join(", ")),
        })
    })
}

fn list(json: bool, screens: &Screens) -> Answer {
    if json {
        let items = TEMPLATES.iter().map(|template| json!({"name": template.name, "about": template.about}));
        let page = json!({"items": items.collect::<Vec<_>>(), "next": null});
        return Answer::json(Exit::Done, &page);
    }
    let width = TEMPLATES.iter().map(|template| template.name.len()).max().unwrap_or_default();
    let line = |template: &Template| {
        let gap = " ".repeat(width - template.name.len());
        format!("{}{gap}  {}\n", screens.stdout.bold(template.name), template.about)
    };
    Answer { stdout: TEMPLATES.iter().map(line).collect(), ..Answer::new(Exit::Done) }
}

/// Writes a new file. Another process may have been faster, so an existing file is an error here too.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(file)?.write_all(text.as_bytes())
}

fn unwritable(file: &Path, error: &std::io::Error) -> Refusal {
    let refusal = Refusal::new(Code::Unwritable, format!("cannot write {}: {error}", file.display()));
    refusal.help("name a folder that you can write to")
}
