//! Shell steps: values are inserted into the command without quoting, as in Spec Kit.

use super::bind::{call, text};
use super::field::{bad, evaluated_text, given, needed, nothing, seconds};
use super::step::Work;
use crate::table::Table;
use std::convert::Infallible;
use windlass_ir::Duration;
use windlass_ir::Value;
use windlass_ir::expr::{Expr, Function, Node, Piece, Template};
use windlass_ir::workflow::{Action, Bound, Interpreter, Kind, Shell, ShellOutput};

const TIMEOUT: Duration = Duration::from_secs(300);

pub fn read(table: &Table<'_>) -> Work {
    let run = needed(table, "run", "write the command: `run: make test`");
    let run = run.and_then(|node| evaluated_text(table, "run", node));
    let shell = Shell {
        run: unquoted(run.unwrap_or_else(|| nothing(table, "run"))),
        cwd: None,
        stdin: None,
        output: output(table),
        shell: Interpreter::plain(),
    };
    (Kind::Action(Action::Shell(shell)), Some(seconds(table, "timeout").unwrap_or(TIMEOUT)))
}

fn output(table: &Table<'_>) -> ShellOutput {
    match given(table, "output_format") {
        None => ShellOutput::Text,
        Some(node) if node.to_value() == Value::text("json") => ShellOutput::Json,
        Some(node) => {
            bad(table, "output_format", node, "`json`");
            ShellOutput::Text
        }
    }
}

/// Every value goes into the command without quoting. A command that is a single value becomes the text of that
/// value. Null becomes `None` there, as in a joined list.
fn unquoted(run: Bound) -> Bound {
    let raw = |expr: Expr| {
        let span = expr.span;
        call(Function::Raw, [expr], span)
    };
    let template = match run.template {
        Template::Expression(expr) => {
            let span = expr.span;
            let alone = Expr::new(Node::List(vec![expr]), span);
            let text = call(Function::Join, [alone, text("", span)], span);
            Template::Text(vec![Piece::Expression(raw(text))])
        }
        other => other
            .map_expressions::<Infallible>(&mut |expr| Ok(raw(expr)))
            .unwrap_or_else(|never| match never {}),
    };
    Bound { template, ..run }
}
