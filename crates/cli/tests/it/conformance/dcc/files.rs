//! Small files that are accepted or not, as tables: workflows by `windlass validate`, files of schedules by `windlass triggers check`. In a
//! text `ID` is a word that no other file has.

use super::super::program::json;
use super::super::{Case, Program};
use super::{decided, fits, folder, list, yaml};
use serde_json::{Value as Json, json};

pub fn workflows(program: &Program) -> Vec<Case> {
    table(program, "files", ".workflow.yaml", &["validate", "--dialect", "dcc", "--json"])
}

pub fn schedules(program: &Program) -> Vec<Case> {
    table(program, "schedules", ".schedules.yaml", &["triggers", "check", "--json"])
}

/// All files of a table are judged by one process, each by itself.
fn table(program: &Program, table: &str, ending: &str, command: &[&str]) -> Vec<Case> {
    let place = program.folder(&format!("dcc {table}"));
    let rows = yaml(&folder().join(format!("{table}.yaml")));
    let names: Vec<String> = (0..list(&rows).len()).map(|number| format!("f{number}{ending}")).collect();
    for (number, (name, row)) in names.iter().zip(list(&rows)).enumerate() {
        let text = row["text"].as_str().expect("a row has a text");
        std::fs::write(place.join(name), text.replace("ID", &format!("f{number}"))).expect("a file");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let output = program.run(&place, &[command, &names].concat());
    let verdicts = json(&output);
    let cases = names.iter().zip(list(&rows)).map(|(name, row)| {
        let checked = verdicts.clone().and_then(|verdicts| {
            let found = list(&verdicts).iter().find(|verdict| verdict["file"] == *name);
            check(found.ok_or_else(|| format!("no word about {name}"))?, row)
        });
        let text = row["text"].as_str().unwrap_or_default().trim().lines().next_back().unwrap_or_default();
        decided(Case::new("dcc", format!("{table}: {}", row["name"].as_str().unwrap_or(text)), checked), row)
    });
    cases.collect()
}

fn check(verdict: &Json, row: &Json) -> Result<(), String> {
    let codes: Vec<&Json> = list(&verdict["diagnostics"]).iter().map(|found| &found["code"]).collect();
    let codes = json!(codes);
    fits(&verdict["valid"], &row["valid"], "valid").map_err(|how| format!("{how} {codes}"))?;
    row.get("codes").map_or(Ok(()), |expected| fits(&codes, expected, "codes"))
}
