//! Malformed and hostile files: Windlass refuses each of them quickly, with a cause and the right exit status.

use crate::support::{Seen, folder, windlass_in};
use std::fmt::Write;
use std::path::Path;

const VALID: &str = "workflow: {id: ok, name: Ok}\nstages:\n  - {id: a, type: shell, run: \"true\"}\n";

/// Appends the exit status of each command and the cause that `validate` reports.
fn row(folder: &Path, file: &str, stdin: &[u8], table: &mut String) {
    let call = |command: &str| windlass_in(folder, &[command, file]).stdin(stdin).see();
    let [validate, plan, graph] = ["validate", "plan", "graph"].map(call);
    for seen in [&plan, &graph] {
        assert!(seen.status == 0 || (seen.status == 2 && seen.stdout.is_empty()), "{seen}");
        assert!(!seen.stderr.contains("panicked"), "{seen}");
    }
    let statuses = [&validate, &plan, &graph].map(|seen| seen.status.to_string()).join(" ");
    writeln!(table, "{statuses}  {file}: {}", cause(&validate)).expect("a text");
}

fn cause(seen: &Seen) -> String {
    let code = seen.stdout.lines().next().unwrap_or_default();
    let message = seen.stdout.lines().nth(2).unwrap_or_default().trim_start_matches("  x ");
    format!("{code} {message}").trim_end().to_owned()
}

#[test]
fn each_file_has_its_own_error() {
    let folder = folder(
        "bad_input",
        &[
            ("ok.yaml", VALID),
            ("empty.yaml", ""),
            ("blank.yaml", "\n  \n# nothing\n"),
            ("text.yaml", "just words"),
            ("list.yaml", "- 1\n"),
            ("notes.txt", VALID),
            ("no-ending", VALID),
            ("syntax.yaml", "workflow: {id: x\nstages: ]\n"),
            ("syntax.json", "{\"workflow\": {\"id\": \"x\",}}"),
            ("tab.yaml", "workflow:\n\tid: x\n"),
            ("bomb.yaml", &bomb()),
            ("deep.yaml", &"[".repeat(10_000)),
            (
                "deep-blocks.yaml",
                &(0..10_000).fold(String::new(), |text, level| text + &" ".repeat(level % 500) + "a:\n"),
            ),
            ("deep.json", &"[".repeat(10_000)),
            ("flow/WORKFLOW.yaml", VALID),
            (
                "json-flow/WORKFLOW.json",
                r#"{"workflow": {"id": "ok", "name": "Ok"}, "stages": [{"id": "a", "type": "shell", "run": "x"}]}"#,
            ),
            ("both/WORKFLOW.yaml", VALID),
            ("both/WORKFLOW.json", "{}"),
            ("nothing/readme.md", ""),
        ],
    );
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("a writable folder");
    write("nul.yaml", b"workflow: {id: x\0}\n");
    write("latin1.yaml", b"workflow: {name: caf\xe9}\n");
    write("utf16.yaml", b"\xff\xfew\0o\0");
    let sparse = std::fs::File::create(folder.join("sparse.yaml")).expect("a writable folder");
    sparse.set_len(100 << 20).expect("a file system with sparse files");

    let mut table = String::from("validate, plan, graph: cause\n");
    let names = [
        "ok.yaml",
        "flow",
        "json-flow",
        "missing.yaml",
        "okk.yaml",
        "nothing",
        "both",
        "empty.yaml",
        "blank.yaml",
        "text.yaml",
        "list.yaml",
        "notes.txt",
        "no-ending",
        "syntax.yaml",
        "syntax.json",
        "tab.yaml",
        "bomb.yaml",
        "deep.yaml",
        "deep-blocks.yaml",
        "deep.json",
        "nul.yaml",
        "latin1.yaml",
        "utf16.yaml",
        "sparse.yaml",
    ];
    names.iter().for_each(|name| row(&folder, name, b"", &mut table));
    if cfg!(unix) {
        ["/dev/zero", "/dev/null"].iter().for_each(|name| row(&folder, name, b"", &mut table));
    }
    table.push_str("from standard input:\n");
    for stdin in
        [VALID.as_bytes(), b"", b"{\"workflow\": 3}", b"\0", b"stages: [", &vec![b' '; (16 << 20) + 1]]
    {
        row(&folder, "-", stdin, &mut table);
    }
    insta::assert_snapshot!("bad_input", table);
}

/// Ten levels of ten aliases each.
fn bomb() -> String {
    let levels = (1..10)
        .map(|level| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", ")));
    std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned()).chain(levels).collect()
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let stages = (0..2_000).map(|number| format!("  - {{id: s{number}, type: shell, run: \"true\"}}\n"));
    let long: String =
        std::iter::once("workflow: {id: long, name: Long}\nstages:\n".to_owned()).chain(stages).collect();
    for command in ["validate", "plan", "graph"] {
        let seen = windlass_in(Path::new("."), &[command, "-"]).stdin(long.as_str()).see_without_reader();
        assert_eq!((seen.status, seen.stderr.as_str()), (0, ""), "{seen}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_failed_write_of_the_output_is_reported() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let seen = windlass_in(Path::new("."), &["graph", "-"]).stdin(VALID).see_with_stdout(full.into());
    assert_eq!(seen.status, 2, "{seen}");
    assert!(seen.stderr.starts_with("cannot write the output: "), "{seen}");
}
