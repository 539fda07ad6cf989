//! Small files that are accepted or not, as tables: workflows by `windlass validate`, files of schedules by `windlass triggers check`.

use super::super::Program;
use super::super::program::json;
use super::{Task, fits, folder, list, yaml};
use serde_json::Value as Json;

pub fn tasks() -> Vec<Task> {
    let workflows = table("files", "w.workflow.yaml", &["validate"]);
    let schedules = table("schedules", "s.schedules.yaml", &["triggers", "check"]);
    workflows.into_iter().chain(schedules).collect()
}

fn table(name: &str, file: &'static str, command: &'static [&'static str]) -> Vec<Task> {
    let table = yaml(&folder().join(format!("{name}.yaml")));
    let rows = list(&table).iter().map(|row| {
        let text = row["text"].as_str().expect("a row has a text");
        Task {
            name: format!("{name}: {}", row["name"].as_str().unwrap_or(text).trim()),
            expected: row.clone(),
            check: Box::new(move |program, name, row| verdict(program, name, row, file, command)),
        }
    });
    rows.collect()
}

fn verdict(program: &Program, name: &str, row: &Json, file: &str, command: &[&str]) -> Result<(), String> {
    let folder = program.folder(&format!("dcc {name}"));
    std::fs::write(folder.join(file), row["text"].as_str().unwrap_or_default()).expect("a file");
    let dialect: &[&str] = if command == ["validate"] { &["--dialect", "dcc"] } else { &[] };
    let output = program.run(&folder, &[command, dialect, &["--json", file]].concat());
    let seen = json(&output)?;
    let seen = if seen.is_array() { &seen[0] } else { &seen };
    let codes: Vec<&Json> = list(&seen["diagnostics"]).iter().map(|found| &found["code"]).collect();
    fits(&seen["valid"], &row["valid"], "valid").map_err(|how| format!("{how} {codes:?}"))?;
    if let Some(expected) = row.get("codes") {
        fits(&serde_json::json!(codes), expected, "codes")?;
    }
    fits(
        &serde_json::json!(output.status.code()),
        &Json::from(i32::from(row["valid"] != true)),
        "exit status",
    )
}
