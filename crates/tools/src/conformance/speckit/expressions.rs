//! Expressions and conditions, one by one through `windlass eval`.

use super::super::program::json;
use super::super::{Checked, Program};
use super::{Case, DIALECT, fixtures};
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

pub const TABLES: [&str; 2] = ["expressions", "more_expressions"];

pub fn cases(table: &'static str) -> Vec<Case> {
    let text = std::fs::read(fixtures().join(format!("{table}.json"))).expect("expressions");
    let mut rows: Json = serde_json::from_slice(&text).expect("JSON");
    let context: Arc<str> = rows["context"].to_string().into();
    let lists = ["cases", "conditions"].map(|list| rows[list].take());
    let rows = lists.into_iter().flat_map(|list| match list {
        Json::Array(rows) => rows,
        _ => panic!("{table}.json lacks a list"),
    });
    // A value that is not text stands for itself, and `eval` cannot take it.
    let texts = rows.filter_map(|row| {
        let text = row["expr"].as_str().or_else(|| row["condition"].as_str())?.to_owned();
        Some((text, row))
    });
    let case = |(number, (text, row)): (usize, (String, Json))| {
        let (name, context) = (format!("{table} `{text}`"), Arc::clone(&context));
        Case::new(DIALECT, name, move |program, _| {
            let folder = program.folder(&format!("speckit {table} {number}"));
            std::fs::write(folder.join("context.json"), &*context).expect("a file");
            check(program, &folder, &text, &row)
        })
    };
    texts.enumerate().map(case).collect()
}

fn check(program: &Program, folder: &Path, text: &str, row: &Json) -> Checked {
    let mut args = vec!["eval", "--dialect", "speckit", "--context", "context.json"];
    args.extend(row.get("condition").map(|_| "--condition"));
    args.extend(["--", text]);
    let output = program.run(folder, &args);
    match (row["error"] == true, output.status.code()) {
        (true, Some(1)) => Ok(()),
        (false, Some(0)) => {
            let expected = row.get("result").unwrap_or(&row["value"]);
            json(&output).and_then(|value| match value == *expected {
                true => Ok(()),
                false => Err(format!("expected {expected}, seen {value}")),
            })
        }
        (_, status) => Err(format!("{row}: exit status {status:?}")),
    }
}
