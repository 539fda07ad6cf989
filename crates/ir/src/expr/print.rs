//! Prints a syntax tree in the syntax of the native dialect, with no more parentheses than needed.

use super::functions::Function;
use super::template::{Piece, Template};
use super::tree::{BinaryOp, Expr, Namespace, Node, Read, StepId};
use crate::value::Value;
use crate::workflow::Words;
use std::fmt::Write;

/// Prints expressions; holds the names that the tree does not contain.
#[expect(missing_debug_implementations, reason = "holds a closure")]
pub struct Printer<'a> {
    pub words: &'a Words,
    pub step: &'a dyn Fn(StepId) -> String,
}

/// How tightly a node binds; an operand that binds less tightly needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Choice,
    Or,
    And,
    Equality,
    Ordering,
    Sum,
    Product,
    Not,
    Access,
}

impl Printer<'_> {
    pub fn expr(&self, expr: &Expr) -> String {
        let mut out = String::new();
        self.write(expr, Binding::Choice, &mut out);
        out
    }

    /// A template as its author wrote it; structured data as JSON with the expressions in place.
    pub fn template(&self, template: &Template) -> String {
        match template {
            Template::Constant(Value::Text(text)) => text.to_string(),
            Template::Constant(value) => value.to_json_text().unwrap_or_default(),
            Template::Expression(expr) => self.block(expr),
            Template::Text(pieces) => pieces.iter().map(|piece| self.piece(piece)).collect(),
            Template::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.template(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Template::Map(map) => {
                let entries: Vec<String> =
                    map.iter().map(|(key, item)| format!("{key}: {}", self.template(item))).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    fn block(&self, expr: &Expr) -> String {
        format!("{} {} }}}}", self.words.opens, self.expr(expr))
    }

    fn piece(&self, piece: &Piece) -> String {
        match piece {
            Piece::Text(text) => text.to_string(),
            Piece::Expression(expr) => self.block(expr),
        }
    }

    fn write(&self, expr: &Expr, around: Binding, out: &mut String) {
        let own = binding(&expr.node);
        if own < around {
            out.push('(');
            self.node(&expr.node, out);
            out.push(')');
        } else {
            self.node(&expr.node, out);
        }
    }

    fn node(&self, node: &Node, out: &mut String) {
        match node {
            Node::Literal(value) => literal(value, out),
            Node::List(items) => self.list('[', items, ']', out),
            Node::Read(read) => out.push_str(&self.read(*read)),
            Node::Member { of, name } => {
                self.base(of, out);
                member(name, out);
            }
            Node::Index { of, at } => {
                self.base(of, out);
                out.push('[');
                self.write(at, Binding::Choice, out);
                out.push(']');
            }
            // Lowering added the quoting, so it is not printed.
            Node::Call { function: Function::ShellQuote, args } => {
                args.iter().take(1).for_each(|arg| self.write(arg, Binding::Choice, out));
            }
            // Parsers insert these calls where their dialect implies them.
            Node::Call {
                function: Function::Raw | Function::Trim | Function::Text | Function::AsList,
                args,
            } if self.words.opens == "{{" => {
                args.iter().for_each(|arg| self.write(arg, Binding::Choice, out));
            }
            Node::Call { function, args } => {
                out.push_str(function.name());
                self.list('(', args, ')', out);
            }
            Node::Query { of, path } => {
                out.push_str("jsonpath(");
                self.write(of, Binding::Choice, out);
                out.push_str(", ");
                quoted(path.text(), out);
                out.push(')');
            }
            Node::Not(inner) => {
                out.push('!');
                self.write(inner, Binding::Not, out);
            }
            Node::Binary { op, left, right } => self.binary(*op, left, right, out),
            Node::Choice { when, then, otherwise } => {
                self.write(when, Binding::Or, out);
                out.push_str(" ? ");
                self.write(then, Binding::Choice, out);
                out.push_str(" : ");
                self.write(otherwise, Binding::Choice, out);
            }
        }
    }

    /// The operand of a member access. A number would swallow the dot that follows it.
    fn base(&self, expr: &Expr, out: &mut String) {
        let is_number = matches!(expr.node, Node::Literal(Value::Int(_) | Value::Float(_)));
        let (open, close) = if is_number { ("(", ")") } else { ("", "") };
        out.push_str(open);
        self.write(expr, Binding::Access, out);
        out.push_str(close);
    }

    /// Comparisons do not chain, so both sides must bind more tightly; all other operators group from the left.
    fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr, out: &mut String) {
        let (on_left, on_right) = match op {
            BinaryOp::Or => (Binding::Or, Binding::And),
            BinaryOp::And => (Binding::And, Binding::Equality),
            BinaryOp::Equal | BinaryOp::NotEqual => (Binding::Ordering, Binding::Ordering),
            BinaryOp::Less | BinaryOp::LessOrEqual | BinaryOp::Greater | BinaryOp::GreaterOrEqual => {
                (Binding::Sum, Binding::Sum)
            }
            BinaryOp::Add | BinaryOp::Subtract => (Binding::Sum, Binding::Product),
            BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder => (Binding::Product, Binding::Not),
        };
        self.write(left, on_left, out);
        let _ = write!(out, " {} ", op.symbol());
        self.write(right, on_right, out);
    }

    fn list(&self, open: char, items: &[Expr], close: char, out: &mut String) {
        out.push(open);
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            self.write(item, Binding::Choice, out);
        }
        out.push(close);
    }

    fn read(&self, read: Read) -> String {
        let steps = (self.words.namespace)(Namespace::Steps);
        let loops = (self.words.namespace)(Namespace::Loops);
        let step = |step: StepId| {
            let mut link = String::new();
            member(&(self.step)(step), &mut link);
            link
        };
        match read {
            Read::Namespace(namespace) => (self.words.namespace)(namespace).to_owned(),
            Read::StepOutputs(id) => format!("{steps}{}.{}", step(id), self.words.outputs),
            Read::StepStatus(id) => format!("{steps}{}.status", step(id)),
            Read::StepOutcome(id) => format!("{steps}{}.outcome", step(id)),
            Read::StepRecord(id) => format!("{steps}{}", step(id)),
            Read::LoopItem(id) => format!("{loops}{}.item", step(id)),
            Read::LoopIndex(id) => format!("{loops}{}.index", step(id)),
            Read::Now => "now()".to_owned(),
        }
    }
}

fn binding(node: &Node) -> Binding {
    match node {
        Node::Choice { .. } => Binding::Choice,
        Node::Binary { op: BinaryOp::Or, .. } => Binding::Or,
        Node::Binary { op: BinaryOp::And, .. } => Binding::And,
        Node::Binary { op: BinaryOp::Equal | BinaryOp::NotEqual, .. } => Binding::Equality,
        Node::Binary { op: BinaryOp::Add | BinaryOp::Subtract, .. } => Binding::Sum,
        Node::Binary { op: BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder, .. } => {
            Binding::Product
        }
        Node::Binary { .. } => Binding::Ordering,
        Node::Not(_) => Binding::Not,
        Node::Literal(_)
        | Node::List(_)
        | Node::Read(_)
        | Node::Member { .. }
        | Node::Index { .. }
        | Node::Call { .. }
        | Node::Query { .. } => Binding::Access,
    }
}

fn literal(value: &Value, out: &mut String) {
    match value {
        Value::Text(text) => quoted(text, out),
        Value::Float(float) if float.is_finite() => decimal(*float, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                literal(item, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("object(");
            for (at, (key, item)) in map.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                quoted(key, out);
                out.push_str(", ");
                literal(item, out);
            }
            out.push(')');
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Sealed(_) => {
            out.push_str(&value.to_json_text().unwrap_or_default());
        }
    }
}

/// All digits and always a decimal point: the native dialect has no exponents, and a number without a point is an
/// integer.
fn decimal(float: f64, out: &mut String) {
    let start = out.len();
    let _ = write!(out, "{float}");
    if !out[start..].contains('.') {
        out.push_str(".0");
    }
}

fn quoted(text: &str, out: &mut String) {
    out.push('\'');
    for letter in text.chars() {
        match letter {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('\'');
}

/// `.name`, or `['any key']`.
fn member(name: &str, out: &mut String) {
    if is_name(name) {
        let _ = write!(out, ".{name}");
    } else {
        out.push('[');
        quoted(name, out);
        out.push(']');
    }
}

/// Whether a key can be written after a dot; other keys need brackets.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
