//! Writes values with expressions in native syntax. A literal `${{` is written as an expression that evaluates to it.

use super::yaml::{Map, Yaml};
use crate::swdl::WORDS;
use windlass_ir::expr::{Expr, Node, Piece, Printer, StepId, Template};
use windlass_ir::policy::Bindings;
use windlass_ir::workflow::{Bound, Condition};
use windlass_ir::{Span, Value};

const OPEN: &str = "${{";

/// Where the text is used, which determines how expressions are recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Text,
    /// A command, in which every expression is quoted unless it is raw.
    Command,
}

impl Reader {
    /// An expression that evaluates to a fixed text.
    fn verbatim(self, text: &str) -> String {
        let literal = literal(&Value::text(text));
        match self {
            Self::Text => braces(&literal),
            Self::Command => braces(&format!("raw({literal})")),
        }
    }
}

/// An expression without braces.
pub fn expr(expr: &Expr) -> String {
    let step = |id: StepId| id.0.to_string();
    Printer { words: &WORDS, step: &step }.expr(expr)
}

fn braces(expr: &str) -> String {
    format!("${{{{ {expr} }}}}")
}

/// A value of any shape.
pub fn any(bound: &Bound) -> Yaml {
    match &bound.template {
        // A null key is the same as an absent one.
        Template::Constant(Value::Null) => Yaml::Text(braces("null")),
        template => inner(template),
    }
}

fn inner(template: &Template) -> Yaml {
    match template {
        Template::Constant(value) => data(value),
        Template::Expression(e) => Yaml::Text(braces(&expr(e))),
        Template::Text(pieces) => Yaml::Text(joined(pieces, Reader::Text)),
        Template::List(items) => Yaml::List(items.iter().map(inner).collect()),
        Template::Map(entries) => {
            let mut map = Map::new();
            entries.iter().for_each(|(key, item)| map.put(&**key, inner(item)));
            map.into()
        }
    }
}

/// Data that is searched for expressions when it is read.
fn data(value: &Value) -> Yaml {
    match value {
        Value::Text(text) => Yaml::Text(plain(text, Reader::Text)),
        Value::List(items) => Yaml::List(items.iter().map(data).collect()),
        Value::Map(entries) => {
            let mut map = Map::new();
            entries.iter().for_each(|(key, item)| map.put(&**key, data(item)));
            map.into()
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Sealed(_) => value.into(),
    }
}

/// A value that is read as text; other values are written as expressions.
pub fn text(bound: &Bound) -> Yaml {
    Yaml::Text(text_of(&bound.template, Reader::Text))
}

pub fn command(bound: &Bound) -> Yaml {
    Yaml::Text(text_of(&bound.template, Reader::Command))
}

fn text_of(template: &Template, reader: Reader) -> String {
    match template {
        Template::Constant(Value::Text(text)) => plain(text, reader),
        Template::Constant(value) => braces(&literal(value)),
        Template::Expression(e) => braces(&expr(e)),
        Template::Text(pieces) => joined(pieces, reader),
        // No text field accepts these.
        Template::List(_) | Template::Map(_) => String::new(),
    }
}

fn plain(text: &str, reader: Reader) -> String {
    match text.contains(OPEN) {
        true => joined(&[Piece::Text(text.into())], reader),
        false => text.to_owned(),
    }
}

fn joined(pieces: &[Piece], reader: Reader) -> String {
    let opening = reader.verbatim(OPEN);
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(&text.replace(OPEN, &opening)),
            Piece::Expression(e) => out.push_str(&braces(&expr(e))),
        }
    }
    // A single expression would keep the type of its value, and a trailing line break would be dropped.
    let alone = match pieces {
        [Piece::Expression(_)] => reader == Reader::Text,
        [Piece::Expression(_), Piece::Text(end)] => &**end == "\n",
        [Piece::Text(text)] => text.strip_prefix(OPEN) == Some("\n"),
        _ => false,
    };
    if alone {
        out.push_str(&reader.verbatim(""));
    }
    out
}

pub fn bindings(bindings: &Bindings) -> Yaml {
    let mut map = Map::new();
    bindings.iter().for_each(|(name, bound)| map.put(&**name, inner(&bound.template)));
    map.into()
}

/// A whole expression, with braces only where they are required.
pub fn condition(condition: &Condition) -> Yaml {
    bare(&condition.expr)
}

pub fn bare(e: &Expr) -> Yaml {
    match &e.node {
        Node::Literal(Value::Bool(flag)) => Yaml::Bool(*flag),
        _ => {
            let text = expr(e);
            Yaml::Text(if text.contains(OPEN) { braces(&text) } else { text })
        }
    }
}

/// The condition of a stage. A condition that always holds would be dropped if it were written as plain data.
pub fn stage_condition(given: &Condition) -> Yaml {
    match condition(given) {
        Yaml::Bool(true) => Yaml::Text(braces("true")),
        other => other,
    }
}

/// The value of a `switch`.
pub fn switch(bound: &Bound) -> Yaml {
    match &bound.template {
        Template::Expression(e) => match bare(e) {
            // Data in this field is taken literally.
            Yaml::Bool(_) => Yaml::Text(braces(&expr(e))),
            other => other,
        },
        Template::Constant(text @ Value::Text(_)) => Yaml::Text(braces(&literal(text))),
        _ => any(bound),
    }
}

fn literal(value: &Value) -> String {
    expr(&Expr::new(Node::Literal(value.clone()), Span::default()))
}
