//! Checks of the whole repository: dependencies between crates, documents that name real files, a page for every code, module
//! comments, the lock file, fuzz targets and test habits. Each test lists all problems, not only the first.

use crate::support::root;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_ir::Code;
use windlass_runtime::FAILURE_CLASSES;

/// The crates that each crate may depend on, in dependencies and dev-dependencies alike. `docs/ARCHITECTURE.md` draws the same
/// arrows.
const ARROWS: &[(&str, &[&str])] = &[
    ("ir", &[]),
    ("dialects", &["ir"]),
    ("engine", &["ir"]),
    ("store", &["ir", "engine"]),
    ("executors", &["ir", "engine"]),
    ("runtime", &["ir", "engine", "store", "executors"]),
    ("api", &["ir", "dialects", "runtime", "tools"]),
    ("server", &["ir", "dialects", "runtime", "api"]),
    ("cli", &["ir", "dialects", "runtime", "api", "server", "tools"]),
    ("windlass", &["ir", "dialects", "runtime", "api"]),
    // Not shipped: its scenarios are written in the dialects.
    ("sim", &["ir", "dialects", "engine"]),
    // Not shipped: it also measures the store alone.
    ("bench", &["engine", "store", "runtime", "windlass"]),
    // Not shipped: tools that start the built program, for tests and for people.
    ("tools", &["ir", "dialects", "runtime"]),
    // Not shipped, and not a default member.
    ("fuzz", &["ir", "dialects"]),
];

/// Crates that others may use only in tests.
const NEVER_SHIPPED: &[&str] = &["sim", "bench", "tools", "fuzz"];

/// Tests wait for events, not for time to pass. These are the banned habits and the reasons.
const HABITS: &[(&str, &str)] = &[
    ("#[ignore", "the test never runs"),
    ("thread::sleep", "it waits for time to pass"),
    ("time::sleep", "it waits for time to pass"),
    ("yield_now", "it asks again and again; use `windlass_tools::watch`, `wait` or `events -f`"),
    ("Instant::now() >", "it asks again until a deadline; use `watch`, `wait` or `events -f`"),
    ("elapsed() <", "it asks again until a deadline, or depends on the speed of the machine"),
];

/// Allowed uses: the file, the habit, and the reason.
const JUSTIFIED: &[(&str, &str, &str)] = &[
    ("crates/executors/src/capture.rs", "time::sleep", "the clock is paused: it jumps"),
    ("crates/runtime/src/follow.rs", "time::sleep", "the clock is paused: it jumps"),
    (
        "crates/runtime/src/triggers/mod.rs",
        "time::sleep",
        "the program itself, below a test module at the top",
    ),
    ("crates/tools/src/bin/record.rs", "thread::sleep", "it shows a person who thinks, and is not a test"),
];

pub const DOCUMENT_ROOTS: &[&str] = &["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples"];
const NAMED_FOLDERS: &[&str] = &["crates/", "docs/", "examples/", "fuzz/", ".ci/", ".githooks/"];
const NAMED_FILES: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "LICENSE",
    "Makefile",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "rustfmt.toml",
];
const PAGE_HEADINGS: &[&str] = &["## What happened", "## How to fix it", "## Usual causes"];
const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

#[test]
fn crates_have_only_allowed_dependencies() {
    let metadata = cargo_metadata();
    let packages = metadata["packages"].as_array().expect("cargo lists the packages");
    assert!(packages.len() >= 3, "cargo must list every crate of the workspace");
    none(packages.iter().flat_map(|package| {
        let user = short(&package["name"]);
        let dependencies = package["dependencies"].as_array().expect("cargo lists the dependencies");
        let ours = dependencies.iter().filter(|dependency| dependency["path"].is_string());
        let shipped = ours.clone().filter(|dependency| dependency["kind"] != "dev");
        let shipped = shipped.map(|dependency| short(&dependency["name"]));
        let shipped = shipped.filter(|name| NEVER_SHIPPED.contains(name));
        let shipped = shipped.map(|name| format!("`{user}` ships `{name}`, which is only for tests"));
        let crossed = crossed(user, ours.map(|dependency| short(&dependency["name"])));
        crossed.into_iter().chain(shipped).collect::<Vec<_>>()
    }));
}

#[test]
fn a_forbidden_dependency_and_an_unknown_crate_are_found() {
    assert_eq!(crossed("dialects", ["ir", "engine"].into_iter()).len(), 1);
    assert_eq!(crossed("utils", [].into_iter()).len(), 1);
    assert!(crossed("runtime", ["ir", "store"].into_iter()).is_empty());
}

fn crossed<'a>(user: &str, used: impl Iterator<Item = &'a str>) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == user) else {
        return vec![format!("crate `{user}` has no row in ARROWS; add one that says what it may use")];
    };
    used.filter(|name| !allowed.contains(name))
        .map(|name| format!("`{user}` uses `{name}`, which no arrow allows"))
        .collect()
}

/// The names of dialects.
const DIALECTS: &[&str] = &["speckit", "dagnats", "dcc", "swdl"];

/// Crates that execute plans and ask a `Dialect` for everything specific to a dialect.
const WITHOUT_DIALECTS: &[&str] = &["engine", "executors", "runtime"];

/// Files that contain such a name, and the reason.
const NAMES_A_DIALECT: &[(&str, &str)] = &[
    ("crates/executors/src/assistant/docker_agent.rs", "the environment variable of an integration"),
    ("crates/executors/src/assistant/integrations.rs", "commands and environment variables of agents"),
    ("crates/executors/src/assistant/project.rs", "files in which agents find commands"),
    ("crates/executors/src/builtin/init.rs", "an environment variable of the `specify` program"),
];

#[test]
fn crates_without_dialects_name_none() {
    let is_listed = |path: &Path| NAMES_A_DIALECT.iter().any(|(file, _)| root().join(file) == path);
    let folders = WITHOUT_DIALECTS.iter().map(|name| root().join("crates").join(name).join("src"));
    let files: Vec<PathBuf> = folders.flat_map(|folder| files(&folder, "rs")).collect();
    assert!(files.len() > 50, "the sources are found");
    none(files.iter().flat_map(|path| {
        let named = dialects_in(&read(path));
        match (is_listed(path), named.is_empty()) {
            (true, true) => vec![format!("{}: names no dialect; remove it from the list", shown(path))],
            (true, false) | (false, true) => Vec::new(),
            (false, false) => named.iter().map(|name| format!("{}: names `{name}`", shown(path))).collect(),
        }
    }));
}

#[test]
fn a_dialect_is_found_in_any_spelling() {
    assert_eq!(dialects_in("ResultShapes::Speckit, DCC-MCP"), ["speckit", "dcc"]);
    assert!(dialects_in("// Spec Kit succeeded").is_empty());
}

/// A substring search is enough: `dcc` is not part of any English word in the sources.
fn dialects_in(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    DIALECTS.iter().copied().filter(|name| text.contains(name)).collect()
}

/// Runs offline: all dependencies are already present.
fn cargo_metadata() -> serde_json::Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs this test, so it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

/// `windlass-ir` is `ir` in the table; the facade is just `windlass`.
fn short(name: &serde_json::Value) -> &str {
    let name = name.as_str().expect("a package has a name");
    name.strip_prefix("windlass-").unwrap_or(name)
}

#[test]
fn documents_name_only_existing_files() {
    let documents: Vec<PathBuf> =
        DOCUMENT_ROOTS.iter().flat_map(|name| files(&root().join(name), "md")).collect();
    assert!(documents.len() > DOCUMENT_ROOTS.len(), "the folders of documents must be found");
    none(documents.iter().flat_map(|document| {
        let folder = document.parent().expect("a file lies in a folder");
        let mentions = mentions(&read(document));
        let links = mentions.links.into_iter().map(|name| (folder.join(&name), name));
        let paths = mentions.paths.into_iter().map(|name| (root().join(&name), name));
        let gone = links.chain(paths).filter(|(path, _)| !path.exists());
        gone.map(|(_, name)| format!("{}: `{name}` does not exist", shown(document))).collect::<Vec<_>>()
    }));
}

#[test]
fn mentions_are_links_inline_code_and_shell_words() {
    let check = |text: &str, links: &[&str], paths: &[&str]| {
        let found = mentions(text);
        assert_eq!((found.links, found.paths), (owned(links), owned(paths)), "{text}");
    };
    check("see [here](a/b.md#part) and [`c`](../c.md)", &["a/b.md", "../c.md"], &[]);
    check("[web](https://x.y/z), [below](#part), [any](<x>.md)", &[], &[]);
    check("run `cat docs/a.md`, then `Makefile`", &[], &["docs/a.md", "Makefile"]);
    check("`docs/errors/<code>.md`, `crates/*/src`, `src/lib.rs`", &[], &[]);
    check("`crates/ir/src/lib.rs:12`, `docs/`, plain docs/x.md", &[], &["crates/ir/src/lib.rs", "docs/"]);
    check("```sh\nwindlass graph examples/a.yaml\n```\n`fuzz/x`", &[], &["examples/a.yaml", "fuzz/x"]);
    check("```yaml\nsource: docs/a.md\n```", &[], &[]);
}

#[derive(Default)]
struct Mentions {
    /// Relative to the document.
    links: Vec<String>,
    /// Relative to the repository.
    paths: Vec<String>,
}

fn mentions(text: &str) -> Mentions {
    let mut found = Mentions::default();
    let mut fence = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), fence) {
            (Some(language), None) => fence = Some(language),
            (Some(_), Some(_)) => fence = None,
            (None, Some("sh")) => found.paths.extend(paths(line)),
            (None, Some(_)) => {}
            (None, None) => prose(line, &mut found),
        }
    }
    found
}

/// Text in backticks is code: `a `b` c` splits into text, code, text.
fn prose(line: &str, found: &mut Mentions) {
    for (number, part) in line.split('`').enumerate() {
        if number % 2 == 1 {
            found.paths.extend(paths(part));
        } else {
            found.links.extend(links(part));
        }
    }
}

fn links(text: &str) -> impl Iterator<Item = String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    targets.filter(|name| is_literal(name) && !name.contains(':')).map(str::to_owned)
}

fn paths(code: &str) -> impl Iterator<Item = String> {
    let words = code.split_whitespace().filter(|word| is_literal(word));
    let names = words.filter_map(|word| word.split([':', '#']).next());
    names.filter(|name| is_ours(name)).map(str::to_owned)
}

fn is_ours(name: &str) -> bool {
    NAMED_FILES.contains(&name) || NAMED_FOLDERS.iter().any(|folder| name.starts_with(folder))
}

/// Not a pattern or a placeholder such as `<code>.md`.
fn is_literal(word: &str) -> bool {
    !word.is_empty() && !word.contains(['<', '*', '…', '{'])
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let of_files = Code::ALL.iter().map(|code| code.as_str());
    let refusals: Vec<String> = windlass_api::Code::ALL.iter().map(ToString::to_string).collect();
    let of_runs = refusals.iter().map(String::as_str).chain(FAILURE_CLASSES.iter().copied());
    let codes: BTreeSet<&str> = of_files.chain(of_runs).collect();
    let mut pages = files(&root().join("docs/errors"), "md");
    pages.retain(|page| !page.ends_with("README.md"));
    let named: BTreeSet<&str> =
        pages.iter().filter_map(|page| page.file_stem().and_then(OsStr::to_str)).collect();
    let without_page = codes.difference(&named).map(|code| format!("docs/errors/{code}.md is missing"));
    let without_code = named.difference(&codes).map(|page| format!("docs/errors/{page}.md explains no code"));
    let index = read(&root().join("docs/errors/README.md"));
    let unlisted = codes.iter().filter(|code| index.matches(&format!("]({code}.md)")).count() != 1);
    let unlisted = unlisted.map(|code| format!("docs/errors/README.md must list `{code}` once"));
    let unfinished = pages.iter().flat_map(|page| {
        let text = read(page);
        let missing = PAGE_HEADINGS.iter().filter(move |heading| !text.lines().any(|line| line == **heading));
        missing.map(move |heading| format!("{} has no `{heading}`", shown(page)))
    });
    none(without_page.chain(without_code).chain(unlisted).chain(unfinished));
}

#[test]
fn every_source_file_has_a_module_comment() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//!"));
    none(silent.map(|(path, _)| format!("{} does not open with `//!`", shown(&path))));
}

#[test]
fn the_lock_file_names_crates_io_only() {
    let text = read(&root().join("Cargo.lock"));
    let foreign = text.lines().filter(|line| line.contains("://") && *line != CRATES_IO);
    none(foreign.map(|line| format!("Cargo.lock names another host: {line}")));
}

/// `make fuzz` runs the targets that cargo lists.
#[test]
fn every_fuzz_target_is_run() {
    let metadata = cargo_metadata();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let fuzz = packages.into_iter().find(|package| short(&package["name"]) == "fuzz");
    let targets = fuzz.and_then(|fuzz| fuzz["targets"].as_array()).expect("the targets of `fuzz`");
    let known: BTreeSet<&str> = targets.iter().filter_map(|target| target["src_path"].as_str()).collect();
    let folder = root().join("fuzz/fuzz_targets").canonicalize().expect("the fuzz targets");
    let files = files(&folder, "rs");
    assert!(!files.is_empty(), "the fuzz targets are found");
    let forgotten = files.iter().filter(|file| !known.contains(file.to_str().expect("text")));
    none(forgotten.map(|file| format!("{} is not in fuzz/Cargo.toml", shown(file))));
}

#[test]
fn tests_never_sleep_and_are_never_ignored() {
    let sources = sources();
    // This file names the habits.
    let others = sources.iter().filter(|(path, _)| !path.ends_with(file!()));
    let found: Vec<(String, &str, &str)> = others
        .flat_map(|(path, text)| {
            let tests = test_part(path, text);
            let found = HABITS.iter().filter(move |(habit, _)| tests.contains(habit));
            found.map(|(habit, why)| (shown(path), *habit, *why))
        })
        .collect();
    let is_justified = |file: &str, habit: &str| JUSTIFIED.iter().any(|one| (one.0, one.1) == (file, habit));
    let habits = found.iter().filter(|(file, habit, _)| !is_justified(file, habit));
    let habits = habits.map(|(file, habit, why)| format!("{file}: `{habit}` in a test: {why}"));
    let stale = JUSTIFIED.iter().filter(|one| !found.iter().any(|it| (&*it.0, it.1) == (one.0, one.1)));
    let stale = stale.map(|one| format!("{} has no `{}` any more; remove it from JUSTIFIED", one.0, one.1));
    none(habits.chain(stale));
}

/// All of a file under `tests/` or in the tools, which are tests; otherwise the part after `#[cfg(test)]`.
fn test_part<'a>(path: &Path, text: &'a str) -> &'a str {
    let is_test = path.components().any(|part| part.as_os_str() == "tests");
    if is_test || path.starts_with(root().join("crates/tools")) {
        return text;
    }
    text.find("#[cfg(test)]").map_or("", |start| &text[start..])
}

/// Every Rust file of our crates, with its text.
pub fn sources() -> Vec<(PathBuf, String)> {
    let paths = files(&root().join("crates"), "rs");
    assert!(paths.len() > 10, "the source files must be found");
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// The files at or below `start` with this extension, in a fixed order.
pub fn files(start: &Path, extension: &str) -> Vec<PathBuf> {
    if start.is_file() {
        return Vec::from_iter((start.extension() == Some(OsStr::new(extension))).then(|| start.to_owned()));
    }
    let entries = std::fs::read_dir(start).unwrap_or_else(|error| panic!("{}: {error}", shown(start)));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path, extension)).collect()
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", shown(path)))
}

pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

pub fn none(problems: impl Iterator<Item = String>) {
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
