//! Values in shell commands, run by a real shell: every value stays one word and never becomes code.

use crate::support::load_text;
use std::process::Command;
use windlass_ir::expr::{EvalError, Limits, Read, Scope, Semantics, render};
use windlass_ir::workflow::{Action, Kind};
use windlass_ir::{Code, Value};

struct Given<'a>(&'a str);

impl Scope for Given<'_> {
    fn read(&self, _: Read) -> Result<Value, EvalError> {
        Ok(Value::map([("x", Value::text(self.0))]))
    }
}

/// The output of `sh` for a command with this value in it.
fn run(command: &str, value: &str) -> String {
    let stage = format!("{{id: a, type: shell, run: {}}}", serde_json::json!(command));
    let file = format!(
        "workflow: {{id: w, name: W}}\nconfig: {{parameters: {{x: {{type: string}}}}}}\nstages:\n  - {stage}\n"
    );
    let plan = load_text(&file).plan.unwrap_or_else(|| panic!("{command} is valid"));
    let Kind::Action(Action::Shell(shell)) = &plan.steps[0].kind else { panic!("a shell stage") };
    let text =
        render(&shell.run.template, &Given(value), &Semantics::HOUSE, &Limits::default()).expect("text");
    let output = Command::new("sh").arg("-c").arg(text.as_str().expect("text")).output().expect("a shell");
    String::from_utf8(output.stdout).expect("UTF-8")
}

const NASTY: [&str; 9] = [
    "plain",
    "two words",
    "it's",
    "\"quoted\"",
    "$(echo run)",
    "`echo run`",
    "$HOME",
    "a\nb; echo run",
    "\\",
];

#[test]
fn a_value_is_one_word_in_every_context() {
    for value in NASTY {
        assert_eq!(run("printf %s ${{ parameters.x }}", value), value);
        assert_eq!(run("printf %s \"${{ parameters.x }}\"", value), value);
        assert_eq!(run("printf %s '${{ parameters.x }}'", value), value);
        assert_eq!(run("printf %s \"<${{ parameters.x }}>\"", value), format!("<{value}>"));
        assert_eq!(run("printf %s pre-${{ parameters.x }}", value), format!("pre-{value}"));
        assert_eq!(
            run("x=${{ parameters.x }}; printf %s \"$(printf %s \"$x\".)\"", value),
            format!("{value}.")
        );
    }
}

#[test]
fn raw_values_are_inserted_without_quoting() {
    assert_eq!(run("printf %s ${{ raw(parameters.x) }}", "$(echo run)"), "run");
    assert_eq!(run("cat <<EOF\n${{ raw(parameters.x) }}\nEOF\n", "text"), "text\n");
}

#[test]
fn contexts_without_safe_quoting_are_refused() {
    let refused = [
        "true # ${{ parameters.x }}",
        "(true)# ${{ parameters.x }}",
        "cat <<EOF\n${{ parameters.x }}\nEOF",
        "cat <<E.F\nE\n${{ parameters.x }}",
        "echo \\${{ parameters.x }}",
        "echo \"$( (true); printf %s ${{ parameters.x }})\"",
        "echo \"$(case a in a) printf %s ${{ parameters.x }};; esac)\"",
        "echo \"${V:-${{ parameters.x }}}\"",
        "echo `cat ${{ parameters.x }}`",
    ];
    for command in refused {
        let stage = format!("{{id: a, type: shell, run: {}}}", serde_json::json!(command));
        let file = format!(
            "workflow: {{id: w, name: W}}\nconfig: {{parameters: {{x: {{type: string}}}}}}\nstages:\n  - {stage}\n"
        );
        let codes: Vec<Code> = load_text(&file).diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, [Code::UnsafeQuoting], "{command}");
    }
}
