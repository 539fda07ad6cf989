//! Tests of the formatter: a folder of files with their results, and properties that hold for every file in the
//! repository.

use crate::support::folder;
use std::path::{Path, PathBuf};
use windlass_dialects::fmt::format;
use windlass_dialects::text::Format;
use windlass_dialects::{Dialect, FileKind, Options, Text, load};

/// How often each file is damaged.
const DAMAGES: u64 = 20;

/// Every YAML and JSON file below a folder.
fn files(start: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(start).unwrap_or_else(|error| panic!("{}: {error}", start.display()));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder that can be listed").path()).collect();
    paths.sort_unstable();
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    paths.into_iter().flat_map(below).filter(|path| format_of(path).is_some()).collect()
}

fn format_of(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "yaml" | "yml" => Some(Format::Yaml),
        "json" => Some(Format::Json),
        _ => None,
    }
}

/// All readable files: fixtures and examples.
fn all() -> Vec<(PathBuf, String, Format)> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let paths = [folder(""), examples].iter().flat_map(|start| files(start)).collect::<Vec<_>>();
    let texts = paths.into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(&path).ok()?;
        let format = format_of(&path)?;
        Some((path, text, format))
    });
    texts.collect()
}

fn digest(path: &Path, text: &str) -> Option<String> {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let plan = load(Text { name, bytes: text.as_bytes().to_vec() }, Options::default()).plan?;
    Some(plan.digest.as_str().to_owned())
}

/// Comments, as far as they can be recognized without parsing YAML: whole lines, outside of strings.
fn comment_lines(text: &str) -> usize {
    text.lines().filter(|line| line.trim_start().starts_with('#')).count()
}

fn check(input: &str, expected: &str) {
    let formatted = format(input, Format::Yaml, Some(FileKind::Workflow(Dialect::Swdl)))
        .unwrap_or_else(|found| panic!("{input}\n{found:#?}"));
    assert_eq!(formatted, expected, "{input}");
    assert_eq!(
        format(expected, Format::Yaml, Some(FileKind::Workflow(Dialect::Swdl))).as_deref(),
        Ok(expected),
        "a second time"
    );
}

#[test]
fn each_file_of_the_folder_produces_its_snapshot() {
    let paths = files(&folder("fmt"));
    assert!(paths.len() > 5, "only {} fixtures were found", paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let kind = format_of(&path).expect("YAML or JSON");
        let shown = match format(&text, kind, None) {
            Ok(formatted) => formatted,
            Err(found) => {
                found.iter().map(|finding| format!("{}: {}\n", finding.code, finding.message)).collect()
            }
        };
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(folder("fmt/snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!(name, shown));
    }
}

#[test]
fn formatting_is_idempotent_and_keeps_the_meaning() {
    let mut formatted_count = 0;
    for (path, text, kind) in all() {
        let Ok(once) = format(&text, kind, None) else { continue };
        formatted_count += 1;
        let name = path.display();
        assert_eq!(format(&once, kind, None).as_deref(), Ok(once.as_str()), "{name} a second time");
        assert_eq!(digest(&path, &once), digest(&path, &text), "the plan of {name}");
        assert!(comment_lines(&once) >= comment_lines(&text), "the comments of {name}\n{once}");
    }
    assert!(formatted_count > 100, "only {formatted_count} files were formatted");
}

#[test]
fn a_file_is_only_refused_with_a_cause() {
    for (path, text, kind) in all() {
        let Err(found) = format(&text, kind, None) else { continue };
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        assert!(!found.is_empty() && found.iter().all(|finding| !finding.help.is_empty()), "{name}");
        assert!(name.starts_with("err_"), "{name} could be formatted: {found:#?}");
    }
}

/// Lines are removed, duplicated, indented and joined, deterministically.
fn damaged(text: &str, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let change = |line: &str| match random(40) {
        0 => String::new(),
        1 => format!("{line}\n{line}\n"),
        2 => format!("  {line}\n"),
        3 => format!("{line}\n\n\n"),
        4 => format!("{line} # behind\n"),
        5 => format!("{}# above\n{line}\n", " ".repeat(random(6) as usize)),
        6 => format!("{line} "),
        7 => format!("{}\n", line.replacen(": ", ": # behind\n      ", 1)),
        8 => format!("{}\n", line.replacen(", ", ", # behind\n", 1)),
        9 => format!("{}\n", line.replacen(": ", ": &anchor ", 1)),
        10 => format!("{}\n", line.replacen(": ", ": |+\n        ", 1)),
        _ => format!("{line}\n"),
    };
    text.lines().map(change).collect()
}

#[test]
fn damaged_files_are_formatted_correctly_or_not_at_all() {
    let mut formatted_count = 0;
    for (path, text, kind) in all() {
        for seed in 0..DAMAGES {
            let text = damaged(&text, seed);
            let Ok(once) = format(&text, kind, None) else { continue };
            formatted_count += 1;
            let twice = format(&once, kind, None);
            assert_eq!(
                twice.as_deref(),
                Ok(once.as_str()),
                "{} {seed} a second time:\n{text}",
                path.display()
            );
        }
    }
    assert!(formatted_count > 500, "only {formatted_count} files were formatted");
}

#[test]
fn large_and_deep_files_take_linear_time() {
    let deep = |open: &str, close: &str, inside: &str| {
        format!("{}{inside}{}\n", open.repeat(200), close.repeat(200))
    };
    let texts = [
        deep("[\n", "\n]", &"x, ".repeat(2_000)),
        deep("[", "]", &"'x', ".repeat(10_000)),
        deep("{a: ", "}", &format!("[{}]", "{b: c}, ".repeat(5_000))),
        format!("{}x\n{}", "- ".repeat(200), "# c\n".repeat(10_000)),
        (0..10_000).map(|number| format!("k{number}: |\n  x\n\n")).collect(),
    ];
    for text in texts {
        let once = format(&text, Format::Yaml, None).expect("a file that can be read");
        assert_eq!(format(&once, Format::Yaml, None), Ok(once));
    }
}

#[test]
fn comments_stay_with_their_subject() {
    check(
        "# top\n\n# b\nstages: [] # s\n# w\nworkflow: {name: n, id: i}\n# end\n",
        "# top\n\n# w\nworkflow: { id: i, name: n }\n\n# b\nstages: []  # s\n# end\n",
    );
    check("# top\nstages: []\nworkflow: {}\n", "# top\nworkflow: {}\nstages: []\n");
    check(
        "a: # head\n    b: 1\n    # below b\n# above c\nc: 2\n",
        "a:  # head\n  b: 1\n  # below b\n# above c\nc: 2\n",
    );
    check("a:\n  # about the value\n  b # behind\n", "# about the value\na: b  # behind\n");
    check(
        "stages:\n- # first\n  type: x\n  # the id\n  id: a\n",
        "stages:\n  # first\n  # the id\n  - id: a\n    type: x\n",
    );
    check(
        "a: [ # one\n  x, # two\n  # three\n  y # four\n  # five\n]\n",
        "a: [\n  # one\n  x,  # two\n  # three\n  y  # four\n  # five\n]\n",
    );
    check("a: | # header\n  x\n\n# below\n", "a: |  # header\n  x\n\n# below\n");
    check("--- # start\na: 1\n...\n# end\n", "---  # start\na: 1\n...\n# end\n");
}

#[test]
fn multiline_strings_keep_their_lines() {
    check("a: |\n     x\n       y\n\n     z\nb: 1\n", "a: |\n  x\n    y\n\n  z\nb: 1\n");
    check("a: |4\n      x\n    y\n", "a: |2\n    x\n  y\n");
    check("a: |+\n  x\n\n\nb: |-\n  y\n\nc: >+\n\n\n", "a: |+\n  x\n\n\nb: |-\n  y\n\nc: >+\n\n\n");
    check("a: |\n  x", "a: |\n  x\n");
    check(
        "a: one\n   two\n\n   three\nb: \"one\n  two\\\n   three\"\n",
        "a: one\n  two\n\n  three\nb: \"one\n  two\\\n  three\"\n",
    );
    check("- >\n    x\n     y\n    z\n", "- >\n  x\n   y\n  z\n");
}

#[test]
fn anchors_come_before_their_aliases() {
    check("stages: [ &x {id: a} ]\n", "stages: [&x { id: a }]\n");
    check("x: &x {b: 1}\nstages:\n- <<: *x\n  id: a\n", "x: &x { b: 1 }\nstages:\n  - <<: *x\n    id: a\n");
    check(
        "stages:\n- name: n\n  id: a\n  env: &e\n    b: 1\n- &s\n  id: b\n  env: *e\n",
        "stages:\n  - id: a\n    name: n\n    env: &e\n      b: 1\n  - &s\n    id: b\n    env: *e\n",
    );
    check(
        "x: &x {k: 1}\nstages:\n- id: a\n  own: 2\n  <<: *x\n",
        "x: &x { k: 1 }\nstages:\n  - <<: *x\n    id: a\n    own: 2\n",
    );
    check("a: !!str 1\nb: !!int \"2\"\nc: &k k\n*k : 3\n", "a: !!str 1\nb: !!int \"2\"\nc: &k k\n*k : 3\n");
}

#[test]
fn indentation_brackets_and_line_endings_become_canonical() {
    check(
        "a:\r\n    - b\r\n    -   c:   1\r\n        d: 2\r\n\r\n\r\n    - - e\r\n      - f\r\n",
        "a:\n  - b\n  - c: 1\n    d: 2\n\n  - - e\n    - f\n",
    );
    check("a: { x: 1,\n  y: [ 2,3 ], z }\n", "a: { x: 1, y: [2, 3], z }\n");
    check("a: [b: c, {}, [], ? d]\n", "a: [{ b: c }, {}, [], { d }]\n");
    check("a: [why?, 'or: ?', {why?: 1}, b ?]\n", "a: [\"why?\", \"or: ?\", { \"why?\": 1 }, \"b ?\"]\n");
    check("a: why? so\n", "a: why? so\n");
    check("? a\n: b\n? c\n", "a: b\nc:\n");
    check("a:\nb: ~\nc: ''\nd: 'yes'\ne: yes\n", "a:\nb: ~\nc: \"\"\nd: \"yes\"\ne: yes\n");
}

/// In a step of each dialect, also if the type of the step is unknown.
#[test]
fn keys_are_in_the_order_of_their_tables() {
    let check = |kind: FileKind, input: &str, expected: &str| {
        let formatted = format(input, Format::Yaml, Some(kind)).unwrap_or_else(|found| panic!("{found:#?}"));
        assert_eq!(formatted, expected, "{input}");
    };
    let swdl = FileKind::Workflow(Dialect::Swdl);
    check(
        swdl,
        "stages: [{finally: {run: x, type: shell}, error_policy: {}, env: {z: 1, a: 2}, run: y, x: {b: 1, a: 2}, condition: c, depends_on: [], type: shell, name: n, id: i}]",
        "stages: [{ id: i, name: n, type: shell, depends_on: [], condition: c, run: y, env: { z: 1, a: 2 }, error_policy: {}, finally: { type: shell, run: x }, x: { b: 1, a: 2 } }]\n",
    );
    check(
        swdl,
        "stages: [{error_policy: {}, run: y, loop: {stages: [{run: x, id: j}], max: 2}, type: no-such, id: i}]",
        "stages: [{ id: i, type: no-such, run: y, loop: { max: 2, stages: [{ id: j, run: x }] }, error_policy: {} }]\n",
    );
    check(
        swdl,
        "stages: [{branch: {cases: {z: [{type: slot, id: b}], a: []}, switch: s}, type: branch, id: i}]",
        "stages: [{ id: i, type: branch, branch: { switch: s, cases: { z: [{ id: b, type: slot }], a: [] } } }]\n",
    );
    check(
        FileKind::Workflow(Dialect::Speckit),
        "steps: [{continue_on_error: true, steps: [{run: x, type: shell, id: b}], condition: c, type: while, id: a}]",
        "steps: [{ id: a, type: while, condition: c, steps: [{ id: b, type: shell, run: x }], continue_on_error: true }]\n",
    );
    check(
        FileKind::Workflow(Dialect::Dagnats),
        "Steps: [{Compensate: u, Retry: {Strategy: s, max_attempts: 1}, Config: {}, TASK: t, skip_if: {}, Depends_On: [], Type: agent, ID: a}]",
        "Steps: [{ ID: a, Type: agent, Depends_On: [], skip_if: {}, TASK: t, Config: {}, Retry: { max_attempts: 1, Strategy: s }, Compensate: u }]\n",
    );
    check(
        FileKind::Workflow(Dialect::Dcc),
        "steps: [{timeout_secs: 1, branches: [[{tool: t, id: c}], {tool: t, id: b}], kind: parallel, id: a}]",
        "steps: [{ id: a, kind: parallel, branches: [[{ id: c, tool: t }], { id: b, tool: t }], timeout_secs: 1 }]\n",
    );
    check(
        FileKind::Schedules,
        "schedules: [{inputs: {b: 1, a: 2}, trigger: {timezone: UTC, expression: e, kind: cron}, id: a}]",
        "schedules: [{ id: a, trigger: { kind: cron, expression: e, timezone: UTC }, inputs: { b: 1, a: 2 } }]\n",
    );
    check(FileKind::Overlay, "edits: []\nextends: a\nid: b\n", "edits: []\nextends: a\nid: b\n");
}
