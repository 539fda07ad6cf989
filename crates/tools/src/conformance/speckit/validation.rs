//! Files that Spec Kit accepts or rejects, each in a `windlass validate` of its own.

use super::super::program::json;
use super::super::{Checked, Program};
use super::{Case, DIALECT, fixtures};
use serde_json::Value as Json;

pub fn cases() -> Vec<Case> {
    let text = std::fs::read(fixtures().join("validation.json")).expect("files");
    let mut table: Json = serde_json::from_slice(&text).expect("JSON");
    let Json::Array(rows) = table["cases"].take() else { panic!("validation.json has no list of cases") };
    let case = |(number, row): (usize, Json)| {
        let name = format!("validation {}", row["about"].as_str().unwrap_or_default());
        Case::new(DIALECT, name, move |program, _| check(program, number, &row))
    };
    rows.into_iter().enumerate().map(case).collect()
}

fn check(program: &Program, number: usize, row: &Json) -> Checked {
    let folder = program.folder(&format!("speckit validation {number}"));
    std::fs::write(folder.join("workflow.yml"), row["workflow"].as_str().expect("text")).expect("a file");
    let answer =
        json(&program.run(&folder, &["validate", "--json", "--dialect", "speckit", "workflow.yml"]))?;
    match answer["valid"] == row["valid"] {
        true => Ok(()),
        false => Err(format!("expected valid: {}, seen {answer}", row["valid"])),
    }
}
