//! Keeps the reference pages equal to the program: commands, codes, variables, mock files and `windlass.toml`.
//! `UPDATE_DOCS=1` rewrites what is generated.

use crate::help;
use crate::support::{folder, root, windlass_in};
use crate::tidy::{none, read, sources};
use regex::Regex;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use windlass_api::operations::operations;
use windlass_dialects::keys::{CONFIG, Language, MOCK};

/// Compares a committed file with what it should be, or writes it if `UPDATE_DOCS` is set.
pub fn check_copy(name: &str, text: &str) {
    let path = root().join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).expect("a file of the repository");
    }
    let copy = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(copy == text, "{name} is outdated; rewrite it with UPDATE_DOCS=1");
}

#[test]
fn the_page_of_commands_is_up_to_date() {
    const HEAD: &str = "# Commands\n\n\
        The help of every command, as `windlass COMMAND --help` prints it. This page is generated.\n";
    let sections = help::all().into_iter().map(|(words, help)| {
        let name = std::iter::once("windlass".to_owned()).chain(words).collect::<Vec<_>>().join(" ");
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end())
    });
    check_copy(
        "docs/reference/cli.md",
        &std::iter::once(HEAD.to_owned()).chain(sections).collect::<String>(),
    );
}

#[test]
fn the_page_of_objects_is_up_to_date() {
    const HEAD: &str = "# Operations and their objects\n\n\
        The requests and replies of every operation, as JSON. Commands print replies with `--json`; [JSON for\n\
        programs](json.md) explains how. This page is generated.\n";
    let mut objects: BTreeMap<String, Json> = BTreeMap::new();
    let mut page = HEAD.to_owned();
    for row in operations() {
        let about = &row.about;
        let codes: Vec<String> =
            about.errors.iter().map(|code| format!("[{code}](../errors/{code}.md)")).collect();
        let codes = if codes.is_empty() { "none of its own".to_owned() } else { codes.join(", ") };
        page +=
            &format!("\n## {}\n\n{}. Role: {}. Refusals: {codes}.\n", about.name, about.summary, about.role);
        for (title, schema) in [("Request", row.request.as_value()), ("Reply", row.reply.as_value())] {
            let definitions = schema["$defs"].as_object().into_iter().flatten();
            objects.extend(definitions.map(|(name, schema)| (name.clone(), schema.clone())));
            page += &format!("\n**{title}**\n\n{}", members(schema));
        }
    }
    page += "\n## Objects\n";
    for (name, schema) in &objects {
        let about = words(&schema["description"]);
        let about = if about.is_empty() { String::new() } else { format!("{about}\n\n") };
        page += &format!("\n### {name}\n\n{about}{}", members(schema));
    }
    check_copy("docs/reference/objects.md", &page);
}

/// A description on one line.
fn words(text: &Json) -> String {
    text.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The members of an object as a table, or the kind of any other value.
fn members(schema: &Json) -> String {
    let Some(properties) = schema["properties"].as_object().filter(|all| !all.is_empty()) else {
        let other = kind(schema);
        return if other == "object" {
            "An object without members.\n".to_owned()
        } else {
            format!("{other}.\n")
        };
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let rows = properties.iter().map(|(name, member)| {
        let optional = if required.iter().any(|one| one == name) { "" } else { ", optional" };
        format!("| `{name}` | {}{optional} | {} |\n", kind(member), words(&member["description"]))
    });
    let table: String = rows.collect();
    format!("| member | value | meaning |\n|---|---|---|\n{table}")
}

/// The kind of a value in words.
fn kind(schema: &Json) -> String {
    let several = |list: &[Json]| {
        let mut unique: Vec<String> = Vec::new();
        for kind in list.iter().map(kind) {
            if !unique.contains(&kind) {
                unique.push(kind);
            }
        }
        unique.join(" or ")
    };
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{}`", constant.as_str().map_or_else(|| constant.to_string(), str::to_owned));
    }
    if let Some(values) = schema["enum"].as_array() {
        let values =
            values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        return values.map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(list) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return several(list);
    }
    match &schema["type"] {
        Json::String(kind) if kind == "array" => format!("list of: {}", kind_of_items(schema)),
        Json::String(kind) if kind == "object" && schema["additionalProperties"].is_object() => {
            format!("name to: {}", self::kind(&schema["additionalProperties"]))
        }
        Json::String(kind) => kind.clone(),
        Json::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Json::as_str).map(|kind| match kind {
                "array" => format!("list of: {}", kind_of_items(schema)),
                other => other.to_owned(),
            });
            kinds.collect::<Vec<_>>().join(" or ")
        }
        _ => "any value".to_owned(),
    }
}

fn kind_of_items(schema: &Json) -> String {
    schema.get("items").map_or_else(|| "any value".to_owned(), kind)
}

/// The meaning of each code in the index is the first sentence of its page.
#[test]
fn the_index_of_codes_says_what_the_pages_say() {
    let row = Regex::new(r"^\| \[(\w+)\]\(\w+\.md\) \| .* \|$").expect("a pattern");
    let summary = |code: &str| {
        let page = read(&root().join(format!("docs/errors/{code}.md")));
        page.split("\n\n").nth(1).unwrap_or_default().trim().replace('\n', " ")
    };
    let lines = read(&root().join("docs/errors/README.md"));
    let lines = lines.lines().map(|line| match row.captures(line) {
        Some(found) => format!("| [{0}]({0}.md) | {1} |\n", &found[1], summary(&found[1])),
        None => format!("{line}\n"),
    });
    check_copy("docs/errors/README.md", &lines.collect::<String>());
}

/// Variables that are only read by tests and tools, or set for them.
const NOT_FOR_USERS: &[&str] = &["PATH", "CARGO", "LIBSQLITE"];

#[test]
fn every_variable_is_on_its_page() {
    let literal = Regex::new(
        r#""((?:WINDLASS|SPECKIT|SPECIFY|XDG)_[A-Z_]*[A-Z]|TERM|LANG|LC_[A-Z]+|USER|LOGNAME|HOME)""#,
    );
    let literal = literal.expect("a pattern");
    let shipped = ["api", "cli", "dialects", "engine", "executors", "ir", "runtime", "store", "windlass"];
    let is_shipped = |path: &Path| {
        shipped.iter().any(|name| path.starts_with(root().join("crates").join(name).join("src")))
    };
    let texts = sources().into_iter().filter(|(path, _)| is_shipped(path));
    let used: BTreeSet<String> = texts
        .flat_map(|(_, text)| {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            literal.captures_iter(&code).map(|found| found[1].to_owned()).collect::<Vec<_>>()
        })
        .filter(|name| !NOT_FOR_USERS.contains(&name.as_str()))
        .collect();
    assert!(used.contains("WINDLASS_DATA") && used.contains("WINDLASS_ATTEMPT"), "{used:?}");
    let page = read(&root().join("docs/reference/environment.md"));
    let named = Regex::new("`([A-Z][A-Z_]+)`").expect("a pattern");
    let named: BTreeSet<String> = named.captures_iter(&page).map(|found| found[1].to_owned()).collect();
    // Read by the library that prints colors.
    let by_others = ["NO_COLOR", "CLICOLOR_FORCE"].map(str::to_owned);
    let missing = used.difference(&named).map(|name| format!("environment.md does not name {name}"));
    let gone = named.iter().filter(|name| !used.contains(*name) && !by_others.contains(name));
    none(missing.chain(gone.map(|name| format!("environment.md names {name}, which nothing reads or sets"))));
}

/// The keys that the message about an unknown key lists.
fn listed(message: &str) -> BTreeSet<String> {
    let list = message
        .split_once("unknown ")
        .and_then(|(_, rest)| rest.split_once("; "))
        .map_or("", |(_, rest)| rest);
    list.lines().next().unwrap_or_default().split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn keys(language: &Language, block: &str) -> BTreeSet<String> {
    language.block(block).keys.iter().map(|key| key.name.to_owned()).collect()
}

/// The readers of these files are in crates that the tables do not know, so the messages of the program are compared.
#[test]
fn the_keys_of_mock_files_and_configuration_are_those_that_the_program_reads() {
    let workflow = "workflow: { id: w, name: W }\nstages: [{ id: a, type: task, task: t }]\n";
    let mut wrong = Vec::new();
    let mut checked = 0;
    let mut check = |language: &Language, block: &str, seen: &crate::support::Seen| {
        let printed = format!("{}{}", seen.stdout, seen.stderr);
        let (listed, known) = (listed(&printed), keys(language, block));
        checked += 1;
        if listed != known {
            wrong.push(format!("{} {block}: {listed:?}, not {known:?}\n{seen}", language.name));
        }
    };
    for (block, mock) in [
        ("file", "zzzzzzzzzz: 1"),
        ("response", "steps: { a: [{ output: 1, zzzzzzzzzz: 1 }] }"),
        ("error", "steps: { a: [{ error: { zzzzzzzzzz: 1 } }] }"),
        ("cost", "steps: { a: [{ output: 1, used: { zzzzzzzzzz: 1 } }] }"),
        ("decision", "gates: { g: [{ action: approve, zzzzzzzzzz: 1 }] }"),
        ("signal", "signals: [{ name: s, zzzzzzzzzz: 1 }]"),
    ] {
        let folder = folder("reference_mock", &[("w.yaml", workflow), ("mock.yaml", mock)]);
        check(
            &MOCK,
            block,
            &windlass_in(&folder, &["run", "w.yaml", "--mock", "mock.yaml", "--data", "data"]).see(),
        );
    }
    for (block, text) in [
        ("file", "[zzzzzzzzzz]\n"),
        ("task", "[tasks.t]\ncommand = [\"true\"]\nzzzzzzzzzz = 1\n"),
        ("limits", "[limits]\nzzzzzzzzzz = 1\n"),
        ("runs", "[runs]\nzzzzzzzzzz = 1\n"),
    ] {
        let folder = folder("reference_config", &[("windlass.toml", text)]);
        check(&CONFIG, block, &windlass_in(&folder, &["validate", "windlass.toml"]).see());
    }
    assert_eq!(checked, MOCK.blocks().count() + CONFIG.blocks().count(), "every block is compared");
    none(wrong.into_iter());
}

#[test]
fn the_plot_shows_the_committed_figures() {
    let figures = read(&root().join("bench/peers.json"));
    let plot = windlass_tools::plot::steps_per_second(&figures).expect("good figures");
    check_copy("docs/images/steps-per-second.svg", &plot);
}
