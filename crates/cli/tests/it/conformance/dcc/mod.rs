//! DCC-MCP: the files in `fixtures/dcc/cases`, each with what is expected of it beside it.
//!
//! `NAME.workflow.expected.yaml` lists lives of `NAME.workflow.yaml`; `files.yaml` and `schedules.yaml` are tables of small files that
//! are accepted or not. The headers of the files tell the same for people.

mod files;
mod fires;
mod life;
mod tools;

use super::{Case, Program};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

/// So many are lived at once.
const AT_ONCE: usize = 4;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures/dcc/cases")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(path: &Path) -> Json {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// One life of a file.
struct Life {
    name: String,
    file: PathBuf,
    expected: Json,
}

pub fn cases(program: &Program) -> Vec<Case> {
    let lives = lives();
    let share = lives.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let tables = [scope.spawn(|| files::workflows(program)), scope.spawn(|| files::schedules(program))];
        let lives: Vec<_> = lives
            .chunks(share)
            .map(|lives| scope.spawn(|| lives.iter().map(|life| case(program, life)).collect()))
            .collect();
        lives
            .into_iter()
            .chain(tables)
            .flat_map(|share| share.join().expect("a case does not panic"))
            .collect()
    })
}

fn case(program: &Program, life: &Life) -> Case {
    let Life { name, file, expected } = life;
    decided(Case::new("dcc", name.as_str(), life::live(program, name, file, expected)), expected)
}

/// With the decision that an expectation names.
fn decided(case: Case, expected: &Json) -> Case {
    match DECISIONS.iter().find(|number| expected["decided"] == **number) {
        Some(number) => case.decided(number),
        None if expected.get("decided").is_some() => panic!("{}: there is no such decision", case.name),
        None => case,
    }
}

/// Those that make ours differ from DCC-MCP.
const DECISIONS: [&str; 10] = ["D6", "D19", "D20", "D21", "D22", "D23", "D34", "D35", "D41", "D42"];

fn lives() -> Vec<Life> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the cases")
        .map(|entry| entry.expect("a folder that can be listed").file_name().to_string_lossy().into_owned())
        .filter_map(|name| Some(name.strip_suffix(".expected.yaml")?.to_owned()))
        .collect();
    names.sort_unstable();
    names.iter().flat_map(|name| lives_of(name)).collect()
}

fn lives_of(name: &str) -> Vec<Life> {
    let expected = yaml(&folder().join(format!("{name}.expected.yaml")));
    let lives = list(&expected).iter().map(|expected| Life {
        name: format!("{name}: {}", expected["name"].as_str().expect("a life has a name")),
        file: folder().join(format!("{name}.yaml")),
        expected: expected.clone(),
    });
    lives.collect()
}

/// Whether a value is what was expected. A mapping may have other keys; a list is compared whole.
fn fits(seen: &Json, expected: &Json, place: &str) -> Result<(), String> {
    match (seen, expected) {
        (Json::Object(seen), Json::Object(expected)) => expected.iter().try_for_each(|(key, expected)| {
            fits(seen.get(key).unwrap_or(&Json::Null), expected, &format!("{place}.{key}"))
        }),
        (Json::Array(seen), Json::Array(expected)) if seen.len() == expected.len() => {
            let pairs = seen.iter().zip(expected).enumerate();
            pairs
                .into_iter()
                .try_for_each(|(index, (seen, expected))| fits(seen, expected, &format!("{place}[{index}]")))
        }
        (Json::Number(one), Json::Number(other)) if one.as_f64() == other.as_f64() => Ok(()),
        (seen, expected) if seen == expected => Ok(()),
        (seen, expected) => Err(format!("{place}\n  expected: {expected}\n  seen:     {seen}")),
    }
}
