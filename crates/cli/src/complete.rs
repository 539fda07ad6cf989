//! What a shell offers while a command is being typed: run ids, workflows, and what the command line itself knows.
//!
//! A key was pressed and somebody waits: only the view is read, and nothing is said about what cannot be.

use crate::args::{Args, Data};
use crate::data;
use crate::files::WORKFLOW_FILES;
use crate::show::words::one_line;
use clap::builder::ValueHint;
use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use windlass_runtime::{Query, RunRow, glance, upwards};

/// Set by the code that `windlass completions` prints, when it asks what can be typed next.
const VARIABLE: &str = "WINDLASS_COMPLETE";

/// As many runs are offered, and as many are looked at to find the names of workflows.
const RUNS_MAX: usize = 200;

/// Answers a shell that asks what can be typed next. False when nobody does.
pub fn answer() -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(std::env::args_os(), here.as_deref())
}

/// The code that makes a shell ask.
pub fn registration(shell: &str) -> Option<String> {
    let shells = Shells::builtins();
    let mut code = Vec::new();
    shells
        .completer(shell)?
        .write_registration(VARIABLE, "windlass", "windlass", "windlass", &mut code)
        .ok()?;
    String::from_utf8(code).ok()
}

/// The command line, with what can stand in its arguments.
fn command() -> Command {
    with_values(Args::command())
}

fn with_values(command: Command) -> Command {
    command.mut_args(with_value).mut_subcommands(with_values)
}

/// By what the help calls a value, so that a new command has it for nothing.
fn with_value(arg: Arg) -> Arg {
    let names: Vec<String> = arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let is_option = arg.get_long().is_some();
    match (names.first().map(String::as_str), is_option) {
        (Some("RUN" | "BEFORE" | "AFTER"), _) => arg.add(ArgValueCompleter::new(runs)),
        (Some("NAME"), false) if arg.get_id() == "name" => {
            arg.add(ArgValueCompleter::new(runs_and_workflows))
        }
        (Some("FILE"), false) => arg.add(ArgValueCompleter::new(workflow_files)),
        (Some("ID"), true) if arg.get_id() == "workflow" => arg.add(ArgValueCompleter::new(workflow_ids)),
        (Some("FOLDER" | "DIR"), _) => arg.value_hint(ValueHint::DirPath),
        (_, _) => arg,
    }
}

fn rows(prefix: &str) -> Vec<RunRow> {
    // Another folder named in the same command is not known here.
    let named = std::env::var_os("WINDLASS_DATA").map(PathBuf::from);
    let folder = data::folder(&Data { folder: named }, None);
    glance(&folder, &Query { prefix: prefix.to_owned(), limit: RUNS_MAX, ..Query::default() })
}

fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let rows = rows(current);
    let last = (!rows.is_empty() && "last".starts_with(current))
        .then(|| candidate("last", "the run that was started last"));
    let runs = rows
        .iter()
        .map(|row| candidate(row.run.as_str(), &format!("{} {}", row.row.workflow, row.row.status)));
    last.into_iter().chain(runs).collect()
}

fn runs_and_workflows(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str() else { return Vec::new() };
    let named = known().into_iter().filter(|(name, _)| name.starts_with(text));
    let named = named.map(|(name, file)| candidate(&name, &file.display().to_string()));
    runs(current).into_iter().chain(named).chain(PathCompleter::any().complete(current)).collect()
}

fn workflow_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let here = std::env::current_dir().unwrap_or_default();
    let known = known().into_iter().filter_map(|(name, file)| {
        let shown = file.strip_prefix(&here).unwrap_or(&file).to_str()?.to_owned();
        // What stands in this folder is offered anyway.
        let elsewhere = shown.contains('/') && shown.starts_with(current.to_str()?);
        elsewhere.then(|| candidate(&shown, &name))
    });
    PathCompleter::any().complete(current).into_iter().chain(known).collect()
}

/// So many files of a folder are looked at.
const ENTRIES_MAX: usize = 1_000;

/// Workflows that can be named: those whose names files and folders here have, and those that are installed in a Spec Kit project.
/// What the files say is not looked at.
fn known() -> Vec<(String, PathBuf)> {
    let here = std::env::current_dir().unwrap_or_default();
    let mut above = upwards(&here).into_iter().map(|folder| folder.join(".specify/workflows"));
    let installed = above.find(|folder| folder.is_dir());
    let folders = std::iter::once(here).chain(installed);
    let entries = folders
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX));
    let mut found: Vec<(String, PathBuf)> =
        entries.filter_map(|entry| name_of(&entry.path()).map(|name| (name, entry.path()))).collect();
    found.sort();
    found
}

fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str().filter(|name| !name.starts_with('.'))?;
    if path.is_dir() {
        return WORKFLOW_FILES.iter().any(|file| path.join(file).is_file()).then(|| name.to_owned());
    }
    let endings = [".workflow.yaml", ".workflow.yml", ".workflow.json"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).map(str::to_owned)
}

fn workflow_ids(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let mut ids: Vec<String> = rows("").into_iter().map(|row| row.row.workflow).collect();
    ids.sort();
    ids.dedup();
    ids.iter().filter(|id| id.starts_with(current)).map(|id| CompletionCandidate::new(one_line(id))).collect()
}

fn candidate(value: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(one_line(value)).help(Some(one_line(about).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_its_code_and_asks_by_our_variable() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let code = registration(shell).expect("a shell that is known");
            assert!(code.contains(VARIABLE), "{shell}: {code}");
        }
        assert_eq!(registration("cmd"), None);
    }

    #[test]
    fn the_command_line_stays_well_formed() {
        command().debug_assert();
    }
}
