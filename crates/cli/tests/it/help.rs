//! What the program says about itself, and about a command line that it does not understand.

use crate::support::windlass;

#[test]
fn every_command_explains_itself() {
    for command in [
        "",
        "validate",
        "fmt",
        "plan",
        "graph",
        "convert",
        "schema",
        "eval",
        "run",
        "resume",
        "retry",
        "test",
        "cancel",
        "triggers",
        "triggers check",
        "triggers next",
        "triggers history",
        "doctor",
        "gc",
        "backup",
        "runs",
        "runs export",
        "runs import",
        "show",
        "logs",
        "events",
        "diff",
        "completions",
    ] {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let name = if command.is_empty() { "help".to_owned() } else { command.replace(' ', "_") };
        insta::assert_snapshot!(format!("help_{name}"), windlass(&args).see());
    }
}

#[test]
fn it_tells_its_version() {
    let seen = windlass(&["--version"]).see();
    assert_eq!(
        (seen.status, seen.stdout.as_str()),
        (0, concat!("windlass ", env!("CARGO_PKG_VERSION"), "\n"))
    );
}

#[test]
fn bad_usage_is_refused() {
    let check = |args: &[&str], part: &str| {
        let seen = windlass(args).see();
        assert_eq!((seen.status, seen.stdout.as_str()), (2, ""), "{seen}");
        assert!(seen.stderr.contains(part), "{seen}");
    };
    check(&[], "Usage: windlass <COMMAND>");
    check(&["validte", "x.yaml"], "'validate'");
    check(&["validate"], "<FILE>");
    check(&["plan", "x.yaml", "-p", "novalue"], "write it as NAME=VALUE");
    check(&["graph", "x.yaml", "--format", "svg"], "[possible values: mermaid, dot]");
    check(&["schema", "x"], "[possible values: swdl, speckit, dagnats, dcc, schedules, cases]");
    check(&["eval", "1", "--dialect", "x"], "[possible values: swdl, speckit, dagnats, dcc]");
}

#[test]
fn help_is_a_command_too() {
    let seen = windlass(&["help", "plan"]).see();
    assert_eq!(seen.status, 0);
    assert_eq!(seen.stdout, windlass(&["plan", "--help"]).see().stdout);
}
