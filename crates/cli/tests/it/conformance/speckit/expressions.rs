//! Expressions and conditions, one by one through `windlass eval`.

use super::super::Program;
use super::super::program::json;
use super::{Case, DIALECT, at_once, fixtures};
use serde_json::Value as Json;

pub fn cases(program: &Program) -> Vec<Case> {
    ["expressions", "more_expressions"].iter().flat_map(|name| table(program, name)).collect()
}

fn table(program: &Program, name: &str) -> Vec<Case> {
    let text = std::fs::read(fixtures().join(format!("{name}.json"))).expect("expressions");
    let table: Json = serde_json::from_slice(&text).expect("JSON");
    let folder = program.folder(&format!("speckit {name}"));
    std::fs::write(folder.join("context.json"), table["context"].to_string()).expect("a file");
    let lists = ["cases", "conditions"].iter().flat_map(|list| table[list].as_array().expect("a list"));
    let rows: Vec<&Json> = lists.collect();
    at_once(&rows, |row| {
        let expr = row["expr"].as_str().or_else(|| row["condition"].as_str());
        // A value that is no text stands for itself, and cannot be given to `eval`.
        let Some(expr) = expr else { return Vec::new() };
        let mut args = vec!["eval", "--dialect", "speckit", "--context", "context.json"];
        args.extend(row.get("condition").map(|_| "--condition"));
        args.extend(["--", expr]);
        let output = program.run(&folder, &args);
        let checked = match (row["error"] == true, output.status.code()) {
            (true, Some(1)) => Ok(()),
            (false, Some(0)) => {
                let expected = row.get("result").unwrap_or(&row["value"]);
                json(&output).and_then(|value| match value == *expected {
                    true => Ok(()),
                    false => Err(format!("expected {expected}, seen {value}")),
                })
            }
            (_, status) => Err(format!("{row}: exit status {status:?}")),
        };
        vec![Case::new(DIALECT, format!("{name} {expr}"), checked)]
    })
}
