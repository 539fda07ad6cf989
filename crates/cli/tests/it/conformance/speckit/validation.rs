//! Files that Spec Kit takes or refuses, all of them in one `windlass validate`.

use super::super::Program;
use super::super::program::json;
use super::{Case, DIALECT, fixtures};
use serde_json::Value as Json;

pub fn cases(program: &Program) -> Vec<Case> {
    let text = std::fs::read(fixtures().join("validation.json")).expect("files");
    let table: Json = serde_json::from_slice(&text).expect("JSON");
    let rows = table["cases"].as_array().expect("a list");
    let folder = program.folder("speckit validation");
    let files: Vec<String> = (0..rows.len()).map(|number| format!("{number}.yml")).collect();
    for (file, row) in files.iter().zip(rows) {
        std::fs::write(folder.join(file), row["workflow"].as_str().expect("text")).expect("a file");
    }
    let mut args = vec!["validate", "--json", "--dialect", "speckit"];
    args.extend(files.iter().map(String::as_str));
    let answers = json(&program.run(&folder, &args));
    let cases = rows.iter().enumerate().map(|(number, row)| {
        let checked = answers.as_ref().map_err(String::clone).and_then(|answers| {
            let answer = &answers[number];
            match answer["valid"] == row["valid"] {
                true => Ok(()),
                false => Err(format!("expected valid: {}, seen {answer}", row["valid"])),
            }
        });
        Case::new(DIALECT, format!("validation {}", row["about"].as_str().unwrap_or_default()), checked)
    });
    cases.collect()
}
