//! DCC-MCP: the files in `fixtures/dcc/cases`, each with what is expected of it beside it.
//!
//! `NAME.workflow.expected.yaml` lists lives of `NAME.workflow.yaml`; `files.yaml` and `schedules.yaml` are tables of small files that
//! are accepted or not. The headers of the files tell the same for people.

mod files;
mod fires;
mod life;
mod tools;

use super::{Case, Source};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

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

pub fn sources() -> Vec<Source> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the cases")
        .map(|entry| entry.expect("a folder that can be listed").file_name().to_string_lossy().into_owned())
        .filter_map(|name| Some(name.strip_suffix(".expected.yaml")?.to_owned()))
        .collect();
    names.sort_unstable();
    let lives =
        names.into_iter().map(|name| Source::new("dcc", format!("{name}: "), move || lives_of(&name)));
    let tables = [
        Source::new("dcc", "files: ", files::workflows),
        Source::new("dcc", "schedules: ", files::schedules),
    ];
    lives.chain(tables).collect()
}

/// The lives of one file.
fn lives_of(name: &str) -> Vec<Case> {
    let Json::Array(lives) = yaml(&folder().join(format!("{name}.expected.yaml"))) else {
        panic!("{name} has no list of lives")
    };
    let case = |expected: Json| {
        let file = folder().join(format!("{name}.yaml"));
        let name = format!("{name}: {}", expected["name"].as_str().expect("a life has a name"));
        let decision = decision(&expected);
        Case::new("dcc", name, move |program, id| life::live(program, id, &file, &expected)).decided(decision)
    };
    lives.into_iter().map(case).collect()
}

/// The decision that an expectation names.
fn decision(expected: &Json) -> Option<&'static str> {
    let named = expected.get("decided")?;
    let known = DECISIONS.into_iter().find(|decision| named == decision);
    Some(known.unwrap_or_else(|| panic!("there is no decision {named} about DCC-MCP")))
}

/// Those that make ours differ from DCC-MCP.
const DECISIONS: [&str; 10] = ["D6", "D19", "D20", "D21", "D22", "D23", "D34", "D35", "D41", "D42"];

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
