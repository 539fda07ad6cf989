//! DCC-MCP: the files in `fixtures/dcc/cases`, each with what is expected of it beside it.
//!
//! `NAME.workflow.expected.yaml` lists lives of `NAME.workflow.yaml`; `files.yaml` and `schedules.yaml` are tables of small files that
//! are accepted or not. The headers of the files tell the same for people.

mod files;
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

/// One thing to do, and what its expectation says.
struct Task {
    /// The file, and which of its lives this is.
    name: String,
    expected: Json,
    check: Box<dyn Fn(&Program, &str, &Json) -> Result<(), String> + Send + Sync>,
}

pub fn cases(program: &Program) -> Vec<Case> {
    let tasks: Vec<Task> = lives().into_iter().chain(files::tasks()).collect();
    let share = tasks.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let shares: Vec<_> = tasks
            .chunks(share)
            .map(|tasks| scope.spawn(|| tasks.iter().map(|task| case(program, task)).collect::<Vec<_>>()))
            .collect();
        shares.into_iter().flat_map(|share| share.join().expect("a case does not panic")).collect()
    })
}

fn case(program: &Program, task: &Task) -> Case {
    let case = Case::new("dcc", &*task.name, (task.check)(program, &task.name, &task.expected));
    match DECISIONS.iter().find(|number| task.expected["decided"] == **number) {
        Some(number) => case.decided(number),
        None => case,
    }
}

/// Those that make ours differ from DCC-MCP.
const DECISIONS: [&str; 10] = ["D6", "D19", "D20", "D21", "D22", "D23", "D34", "D35", "D41", "D42"];

fn lives() -> Vec<Task> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the cases")
        .map(|entry| entry.expect("a folder that can be listed").file_name().to_string_lossy().into_owned())
        .filter_map(|name| Some(name.strip_suffix(".expected.yaml")?.to_owned()))
        .collect();
    names.sort_unstable();
    names.into_iter().flat_map(|name| lives_of(&name)).collect()
}

fn lives_of(name: &str) -> Vec<Task> {
    let file = folder().join(format!("{name}.yaml"));
    let expected = yaml(&folder().join(format!("{name}.expected.yaml")));
    let lives = list(&expected).iter().map(|expected| {
        let what = expected["name"].as_str().expect("a life has a name");
        let file = file.clone();
        Task {
            name: format!("{name}: {what}"),
            expected: expected.clone(),
            check: Box::new(move |program, name, expected| life::live(program, name, &file, expected)),
        }
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
