//! Keeps docs/dialects/swdl.md correct: every example has the stated findings, every expression has the stated value, and
//! every type, key and function is documented.
//!
//! A yaml block is a whole file or a list of stages and has no findings, unless `warns CODE…` or `fails CODE…` after
//! the word yaml says otherwise. `overrides ID` applies to the example with that workflow id, and `fragment` is not
//! read at all. A block marked `text eval` contains lines of the form `EXPRESSION => JSON` or `=> error CODE`.

use crate::fixtures::codes_of;
use crate::support::load_text;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::path::Path;
use windlass_dialects::keys::{LANGUAGES, Status};
use windlass_dialects::swdl::expr::{namespace_word, parse_expression, parse_template};
use windlass_dialects::{Dialect, Loaded, Options, Text, load};
use windlass_ir::expr::{EvalError, Function, Limits, Read, Scope, Semantics, evaluate, render};
use windlass_ir::{Code, Diagnostic, Span, Value};

const TYPES: [&str; 18] = [
    "agent",
    "gate",
    "fan_out",
    "shell",
    "tool",
    "task",
    "http",
    "workflow",
    "loop",
    "branch",
    "wait",
    "assign",
    "finish",
    "block",
    "parallel",
    "assistant",
    "builtin",
    "slot",
];

/// The header for a list of stages.
const HEADER: &str = "\
workflow: {id: example, name: Example}
config:
  parameters: {branch: {type: string, default: main}, n: {type: integer, default: 3}}
  secrets: [API_TOKEN]
stages:
";

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects/swdl.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One fenced block: the words after the fence, the number of its first line, and its text.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    words: Vec<String>,
    line: usize,
    text: String,
}

impl Block {
    fn is(&self, words: &[&str]) -> bool {
        self.words.iter().map(String::as_str).take(words.len()).eq(words.iter().copied())
    }

    /// A list of stages gets a header; anything else is a complete file.
    fn file(&self) -> String {
        if !self.text.starts_with("- id:") {
            return self.text.clone();
        }
        let indented = self.text.lines().map(|line| format!("  {line}\n"));
        HEADER.to_owned() + &indented.collect::<String>()
    }

    /// A finding with its line on the page.
    fn show(&self, finding: &Diagnostic, loaded: &Loaded) -> String {
        let json = finding.to_json(&loaded.sources);
        let header = if self.text.starts_with("- id:") { HEADER.lines().count() as u64 } else { 0 };
        let line = (self.line as u64 + json["line"].as_u64().unwrap_or(1)).saturating_sub(header + 1);
        format!("line {line}: {} {}: {}", json["severity"], finding.code, finding.message)
    }

    fn failure(&self, why: &str) -> String {
        format!("docs/dialects/swdl.md:{}: ```{}\n{}{why}\n", self.line, self.words.join(" "), self.text)
    }
}

/// The fenced blocks of a page, and the text between them.
fn split(page: &str) -> (Vec<Block>, Vec<&str>) {
    let (mut blocks, mut prose, mut open) = (Vec::new(), Vec::new(), None::<Block>);
    for (line, text) in (1..).zip(page.lines()) {
        match (text.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                let words = info.split_whitespace().map(str::to_owned).collect();
                open = Some(Block { words, line: line + 1, text: String::new() });
            }
            (None, Some(block)) => block.text.extend([text, "\n"]),
            (None, None) => prose.push(text),
        }
    }
    assert_eq!(open, None, "a block is never closed");
    (blocks, prose)
}

fn load_as(name: &str, text: &str, overrides: Option<&str>) -> Loaded {
    let file = |name: &str, text: &str| Text { name: name.into(), bytes: text.as_bytes().to_vec() };
    load(file(name, text), Options::overridden(overrides.map(|text| file("overrides.yaml", text))))
}

/// How a block is read; `None` if it is not read.
fn load_block(block: &Block, all: &[Block]) -> Result<Option<Loaded>, String> {
    let kind: Vec<&str> = block.words.iter().map(String::as_str).collect();
    Ok(Some(match kind.as_slice() {
        ["yaml", "fragment"] | ["text", "eval"] | ["sh"] => return Ok(None),
        ["json"] => load_as("example.json", &block.text, None),
        ["yaml"] | ["yaml", "warns" | "fails", _, ..] => {
            let begins = ["workflow:", "- id:"].iter().any(|begin| block.text.starts_with(begin));
            if !begins {
                return Err("it starts neither with `workflow:` nor with `- id:`".into());
            }
            load_text(&block.file())
        }
        ["yaml", "overrides", id] => {
            let examples = all.iter().filter(|other| other.words == ["yaml"]);
            let base =
                examples.map(Block::file).find(|file| load_text(file).workflow.as_deref() == Some(*id));
            load_as("example.yaml", &base.ok_or(format!("no example has the id `{id}`"))?, Some(&block.text))
        }
        _ => return Err("unknown kind of block".into()),
    }))
}

/// Compares the expected findings and validity of a block with the actual ones.
fn check(block: &Block, all: &[Block]) -> Result<(), String> {
    let Some(loaded) = load_block(block, all)? else { return Ok(()) };
    let expects = |word| block.is(&["yaml", word]);
    let listed = if expects("warns") || expects("fails") { &block.words[2..] } else { &[] };
    let mut expected: Vec<&str> = listed.iter().map(String::as_str).collect();
    let mut found: Vec<&str> = loaded.diagnostics.iter().map(|finding| finding.code.as_str()).collect();
    expected.sort_unstable();
    found.sort_unstable();
    if found == expected && loaded.is_valid() != expects("fails") {
        return Ok(());
    }
    let shown: Vec<String> = loaded.diagnostics.iter().map(|finding| block.show(finding, &loaded)).collect();
    Err(format!("expected {expected:?}, found {}", shown.join("; ")))
}

/// Shows all failures instead of the first, because a change of the language affects many.
fn none(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_example_has_the_stated_findings() {
    let page = page();
    let (blocks, _) = split(&page);
    assert!(blocks.len() > 20, "the blocks must be found");
    none(blocks.iter().filter_map(|block| check(block, &blocks).err().map(|why| block.failure(&why))));
}

#[test]
fn wrong_examples_are_detected() {
    let good = "```yaml\nworkflow: {id: a, name: A}\nstages: [{id: b, type: shell, run: x}]\n```\n";
    let verdict = |page: &str| {
        let (blocks, _) = split(page);
        let last = blocks.last().expect("a block");
        check(last, &blocks).map_err(|why| (last.line, why))
    };
    assert_eq!(verdict(good), Ok(()));
    assert_eq!(
        verdict(&format!("{good}```yaml overrides a\noverrides: {{a: {{config: {{timeout: 1h}}}}}}\n```")),
        Ok(())
    );
    let refused = [
        "text\n```yaml\n- id: b\n  type: shell\n```",
        "text\n```yaml\n- id: b\n  type: shell\n  run: x\n  rum: y\n```",
        "text\n```yaml fails missing_field\n- id: b\n  type: shell\n  run: x\n```",
        "text\n```yaml warns unknown_key\n- id: b\n  type: shell\n  rum: y\n```",
        "text\n```yaml overrides a\noverrides: {a: {}}\n```",
        "text\n```yaml\nstages: []\n```",
        "text\n```yml\nworkflow: {}\n```",
    ];
    for page in refused {
        assert_eq!(verdict(page).map_err(|(line, _)| line), Err(3), "{page}");
    }
}

/// The values that the expressions of the page can read.
struct Example;

impl Scope for Example {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        let namespace = match read {
            Read::Namespace(namespace) => namespace,
            Read::Now => return Ok(Value::text("2027-01-31T09:00:00Z")),
            _ => panic!("nothing is lowered here"),
        };
        let context = json!({"parameters": {"branch": "main", "n": 3}});
        Ok(Value::from(&context[namespace_word(namespace)]))
    }
}

fn eval(text: &str) -> Result<Value, Code> {
    let place = |_| Span::default();
    if text.contains("${{") {
        let (template, findings) = parse_template(text, &place);
        return match findings.first() {
            Some(finding) => Err(finding.code),
            None => {
                render(&template, &Example, &Semantics::HOUSE, &Limits::default()).map_err(|error| error.code)
            }
        };
    }
    let parsed = parse_expression(text, &place).map_err(|findings| findings[0].code)?;
    evaluate(&parsed, &Example, &Semantics::HOUSE, &Limits::default()).map_err(|error| error.code)
}

fn check_eval(line: &str) -> Result<(), String> {
    let (text, expected) = line.rsplit_once("=>").ok_or("a line has the form `EXPRESSION => JSON`")?;
    let found = match eval(text.trim()) {
        Ok(value) => value.to_json_text().unwrap_or_default(),
        Err(code) => format!("error {code}"),
    };
    let expected = match serde_json::from_str::<Json>(expected.trim()) {
        Ok(json) => json.to_string(),
        Err(_) => expected.trim().to_owned(),
    };
    if found == expected { Ok(()) } else { Err(format!("`{}` gives {found}, not {expected}", text.trim())) }
}

#[test]
fn every_expression_has_the_stated_value() {
    let page = page();
    let (blocks, _) = split(&page);
    let lines =
        || blocks.iter().filter(|block| block.is(&["text", "eval"])).flat_map(|block| block.text.lines());
    assert!(lines().count() > 20, "the expressions must be found");
    none(lines().filter_map(|line| check_eval(line).err()));
    let unused = Function::ALL.iter().map(|function| function.name()).filter(|name| *name != "raw");
    let unused = unused.filter(|name| !lines().any(|line| line.contains(&format!("{name}("))));
    none(unused.map(|name| format!("no line shows a value of `{name}`")));
    for wrong in ["1 == 1.0 => false", "null < 1 => false", "1 => error expression_type", "1"] {
        assert!(check_eval(wrong).is_err(), "{wrong}");
    }
}

/// The words in inline code, split at all characters that keys do not contain.
fn words_in_code<'a>(prose: &[&'a str]) -> BTreeSet<&'a str> {
    let code = prose.iter().flat_map(|line| line.split('`').skip(1).step_by(2));
    code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect()
}

#[test]
fn every_stage_type_has_a_section_and_an_example() {
    let page = page();
    let (blocks, prose) = split(&page);
    let wrong = load_text("workflow: {id: a, name: A}\nstages: [{id: b, type: zzzzzzzz}]\n");
    let known = wrong.diagnostics.iter().find(|finding| finding.code == Code::BadEnum).expect("no such type");
    assert_eq!(known.help, format!("use one of {}", TYPES.join(", ")), "the list in this test");
    let plans = blocks.iter().filter_map(|block| load_block(block, &blocks).ok()??.plan);
    let shown: BTreeSet<String> =
        plans.flat_map(|plan| plan.steps).map(|step| step.word.to_string()).collect();
    none(
        TYPES
            .iter()
            .filter(|ty| !shown.contains(**ty))
            .map(|ty| format!("no example has a stage of type {ty}")),
    );
    let heading = |ty: &str| prose.contains(&format!("### `{ty}`").as_str());
    none(TYPES.iter().filter(|ty| !heading(ty)).map(|ty| format!("no section is called {ty}")));
}

#[test]
fn every_key_and_function_is_documented() {
    let page = page();
    let (_, prose) = split(&page);
    let words = words_in_code(&prose);
    let rows = LANGUAGES[0].blocks().flat_map(|block| block.keys);
    let keys: BTreeSet<&str> =
        rows.filter(|key| key.status == Status::Supported).map(|key| key.name).collect();
    assert!(
        ["stages", "depends_on", "max_attempts", "password", "goto"].iter().all(|key| keys.contains(*key)),
        "{keys:?}"
    );
    none(
        keys.iter()
            .filter(|key| !words.contains(*key))
            .map(|key| format!("the key `{key}` is not on the page")),
    );
    let functions = Function::ALL.iter().map(|function| function.name()).filter(|name| !words.contains(name));
    none(functions.map(|name| format!("the function `{name}` is not on the page")));
}

#[test]
fn every_code_is_in_the_section_about_checks() {
    let page = page();
    let section =
        page.split("\n## ").find(|section| section.starts_with("Checks\n")).expect("a section about checks");
    let lines: Vec<&str> = section.lines().collect();
    let named = words_in_code(&lines);
    let codes = codes_of(Dialect::Swdl);
    let missing = codes.iter().map(|code| code.as_str()).filter(|code| !named.contains(code));
    none(missing.map(|code| format!("the code `{code}` is not on the page")));
    let cells = lines.iter().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let cells = cells.flat_map(|cell| cell.split("`, `")).map(|code| code.trim_end_matches('`'));
    let gone = cells.filter(|cell| !Code::ALL.iter().any(|code| code.as_str() == *cell));
    none(gone.map(|code| format!("there is no code `{code}`")));
}
