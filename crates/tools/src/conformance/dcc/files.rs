//! Small files that are valid or not, as tables: workflows for `windlass validate`, files of schedules for `windlass triggers check`.
//! In a text, `ID` stands for an id.

use super::super::program::json;
use super::super::{Case, Checked, Program};
use super::{decision, fits, folder, list, yaml};
use serde_json::{Value as Json, json};
use std::path::Path;

pub fn workflows() -> Vec<Case> {
    table("files", "f.workflow.yaml", &["validate", "--dialect", "dcc", "--json"])
}

pub fn schedules() -> Vec<Case> {
    table("schedules", "f.schedules.yaml", &["triggers", "check", "--json"])
}

fn table(table: &'static str, file: &'static str, command: &'static [&str]) -> Vec<Case> {
    let Json::Array(rows) = yaml(&folder().join(format!("{table}.yaml"))) else {
        panic!("{table}.yaml is not a list")
    };
    let case = |(number, row): (usize, Json)| {
        let text = row["text"].as_str().expect("a row has a text");
        let last = text.trim().lines().next_back().unwrap_or_default();
        let name = format!("{table}: {}", row["name"].as_str().unwrap_or(last));
        let decision = decision(&row);
        let check = move |program: &Program, _: &str| {
            let place = program.folder(&format!("dcc {table} {number}"));
            judge(program, &place, file, command, &row)
        };
        Case::new("dcc", name, check).decided(decision)
    };
    rows.into_iter().enumerate().map(case).collect()
}

fn judge(program: &Program, place: &Path, file: &str, command: &[&str], row: &Json) -> Checked {
    let text = row["text"].as_str().expect("a row has a text");
    std::fs::write(place.join(file), text.replace("ID", "f")).expect("a folder of our own");
    let output = program.run(place, &[command, &[file]].concat());
    check(&json(&output)?, row)
}

fn check(verdict: &Json, row: &Json) -> Result<(), String> {
    let codes: Vec<&Json> = list(&verdict["diagnostics"]).iter().map(|found| &found["code"]).collect();
    let codes = json!(codes);
    fits(&verdict["valid"], &row["valid"], "valid").map_err(|how| format!("{how} {codes}"))?;
    row.get("codes").map_or(Ok(()), |expected| fits(&codes, expected, "codes"))
}
