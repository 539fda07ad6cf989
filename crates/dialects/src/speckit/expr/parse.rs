//! The grammar, in the order in which the original tries it: a whole quoted string, a group, filters, `or`, `and`,
//! `not`, comparisons, literals, and finally a path. Every split is at the first match outside quotes and brackets.

use super::FINDINGS_MAX;
use super::body::Body;
use super::filter::{self, Problem};
use super::meant::shortened;
use super::scan::{self, AND, OR, Operators};
use std::ops::Range;
use windlass_ir::expr::{BinaryOp, Expr, Function, Node, python};
use windlass_ir::{Code, Diagnostic, Severity, Span, Value};

/// The maximum nesting of groups, lists, operators and arguments. Each level is scanned again, so this bounds the
/// time as well.
const DEPTH_MAX: usize = 100;
/// The maximum height of the tree, which also grows with long chains of `or`, filters or members.
const HEIGHT_MAX: usize = 240;

/// An expression and its height as a tree.
pub(super) struct Parsed {
    pub expr: Box<Expr>,
    pub height: usize,
}

pub(super) struct Parser<'a> {
    pub body: &'a Body<'a>,
    depth: usize,
    /// Whether the current part is always evaluated with the whole.
    certain: bool,
    /// Whether all paths consist of plain names, so that there is no reason to guess another intent.
    pub plain: bool,
    findings: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    pub fn new(body: &'a Body<'a>) -> Self {
        Self { body, depth: 0, certain: true, plain: true, findings: Vec::new() }
    }

    pub fn into_findings(self) -> Vec<Diagnostic> {
        self.findings
    }

    pub fn whole(&mut self) -> Expr {
        *self.expression(0..self.body.text.len()).expr
    }

    pub fn text(&self, range: &Range<usize>) -> &'a str {
        &self.body.text[range.clone()]
    }

    pub fn expression(&mut self, range: Range<usize>) -> Parsed {
        let range = self.body.strip(range);
        if self.depth == DEPTH_MAX {
            return self.too_deep(range);
        }
        self.depth += 1;
        let parsed = self.split(range);
        self.depth -= 1;
        parsed
    }

    fn split(&mut self, range: Range<usize>) -> Parsed {
        let text = self.text(&range);
        if let Some(content) = scan::literal(text) {
            return self.node(Node::Literal(Value::text(content)), range, 0);
        }
        if scan::is_group(text) {
            return self.expression(range.start + 1..range.end - 1);
        }
        let operators = Operators::find(text);
        if operators.pipe.is_some() {
            self.filters(range)
        } else if operators.or.is_some() {
            self.chain(BinaryOp::Or, OR, range)
        } else if operators.and.is_some() {
            self.chain(BinaryOp::And, AND, range)
        } else if text.starts_with("not ") {
            let inner = self.expression(range.start + "not ".len()..range.end);
            self.node(Node::Not(inner.expr), range, inner.height)
        } else if let Some((token, at)) = operators.comparison() {
            self.comparison(token, at, range)
        } else {
            self.operand(range)
        }
    }

    /// `a or b or c`: only the first operand is always evaluated.
    fn chain(&mut self, op: BinaryOp, token: &str, range: Range<usize>) -> Parsed {
        let certain = self.certain;
        let mut chain: Option<Parsed> = None;
        for part in scan::split(self.text(&range), token) {
            let part = range.start + part.start..range.start + part.end;
            let right = self.expression(part.clone());
            self.certain = false;
            chain = Some(match chain {
                None => right,
                Some(left) => {
                    let height = left.height.max(right.height);
                    let node = Node::Binary { op, left: left.expr, right: right.expr };
                    self.node(node, self.body.strip(range.start..part.end), height)
                }
            });
        }
        self.certain = certain;
        chain.unwrap_or_else(|| self.null(range))
    }

    fn comparison(&mut self, token: &str, at: usize, range: Range<usize>) -> Parsed {
        let left = self.expression(range.start..range.start + at);
        let right = self.expression(range.start + at + token.len()..range.end);
        let height = left.height.max(right.height);
        let op = match token {
            "!=" => BinaryOp::NotEqual,
            "==" => BinaryOp::Equal,
            ">=" => BinaryOp::GreaterOrEqual,
            "<=" => BinaryOp::LessOrEqual,
            ">" => BinaryOp::Greater,
            "<" => BinaryOp::Less,
            _ => return self.membership(token == " in ", left, right, range),
        };
        self.node(Node::Binary { op, left: left.expr, right: right.expr }, range, height)
    }

    fn membership(&mut self, holds: bool, left: Parsed, right: Parsed, range: Range<usize>) -> Parsed {
        let height = left.height.max(right.height);
        let node = Node::Call { function: Function::In, args: vec![*left.expr, *right.expr] };
        let found = self.node(node, range.clone(), height);
        if holds { found } else { self.node(Node::Not(found.expr), range, found.height) }
    }

    /// `head | filter | filter`. With an operator in the head, it is ambiguous what the filter applies to.
    fn filters(&mut self, range: Range<usize>) -> Parsed {
        let parts = scan::split(self.text(&range), "|").into_iter();
        let mut parts = parts.map(|part| self.body.strip(range.start + part.start..range.start + part.end));
        let head = parts.next().unwrap_or(range.clone());
        let text = self.text(&head);
        let not = text.starts_with("not ").then_some("not");
        if let Some(operator) = not.or_else(|| Operators::find(text).ambiguous()) {
            return self.raise(range, filter::ambiguous(operator, text));
        }
        let mut value = self.expression(head);
        for part in parts {
            let whole = range.start..part.end;
            value = match filter::read(self.text(&part)) {
                Ok((function, argument)) => self.apply(function, argument, value, part, whole),
                Err(problem) => return self.raise(self.or_pipe(part), problem),
            };
        }
        value
    }

    /// The location of a filter; if it is missing, the `|` before it.
    fn or_pipe(&self, part: Range<usize>) -> Range<usize> {
        let pipe = self.body.text[..part.start].rfind('|').unwrap_or_default();
        if part.is_empty() { pipe..pipe + 1 } else { part }
    }

    fn apply(
        &mut self,
        function: Function,
        argument: Option<Range<usize>>,
        value: Parsed,
        part: Range<usize>,
        whole: Range<usize>,
    ) -> Parsed {
        let mut height = value.height;
        let mut args = vec![*value.expr];
        match argument {
            Some(argument) => {
                let argument = self.expression(part.start + argument.start..part.start + argument.end);
                height = height.max(argument.height);
                args.push(*argument.expr);
            }
            None if function == Function::Default => {
                args.push(Expr::new(Node::Literal(Value::text("")), self.body.span(part)));
            }
            None => {}
        }
        self.node(Node::Call { function, args }, whole, height)
    }

    fn operand(&mut self, range: Range<usize>) -> Parsed {
        let text = self.text(&range);
        if let Some(number) = python::number(text) {
            return self.number(number, range);
        }
        let words = [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("none", Value::Null),
            ("null", Value::Null),
        ];
        if let Some((_, value)) = words.into_iter().find(|(word, _)| text.eq_ignore_ascii_case(word)) {
            return self.node(Node::Literal(value), range, 0);
        }
        if scan::is_list(text) { self.list(range) } else { self.path(range) }
    }

    /// A float that overflows is written in a form that a plan can hold, because JSON cannot represent it.
    fn number(&mut self, number: Value, range: Range<usize>) -> Parsed {
        let text = self.text(&range);
        if matches!(number, Value::Float(_)) && !text.contains('.') {
            let message = format!("`{}` does not fit into 64 bits, so it is not exact", shortened(text));
            let help = "use a smaller number, or put it in quotes if it is never compared";
            self.report(Diagnostic::warning(Code::BadNumber, message).help(help), range.clone());
        }
        match number {
            Value::Float(float) if float.is_infinite() => {
                let word = if float > 0.0 { "Infinity" } else { "-Infinity" };
                let text = Expr::new(Node::Literal(Value::text(word)), self.body.span(range.clone()));
                self.node(Node::Call { function: Function::FromJson, args: vec![text] }, range, 1)
            }
            finite => self.node(Node::Literal(finite), range, 0),
        }
    }

    /// Empty elements do not count, such as after a trailing comma.
    fn list(&mut self, range: Range<usize>) -> Parsed {
        let inside = range.start + 1..range.end - 1;
        let (mut items, mut height) = (Vec::new(), 0);
        for part in scan::split(self.text(&inside), ",") {
            let part = self.body.strip(inside.start + part.start..inside.start + part.end);
            if !part.is_empty() {
                let item = self.expression(part);
                height = height.max(item.height);
                items.push(*item.expr);
            }
        }
        self.node(Node::List(items), range, height)
    }
}

/// Nodes and findings.
impl Parser<'_> {
    /// `below` is the height of the tallest child.
    pub fn node(&mut self, node: Node, range: Range<usize>, below: usize) -> Parsed {
        if below >= HEIGHT_MAX {
            return self.too_deep(range);
        }
        Parsed { expr: Box::new(Expr::new(node, self.body.span(range))), height: below + 1 }
    }

    pub fn null(&mut self, range: Range<usize>) -> Parsed {
        self.node(Node::Literal(Value::Null), range, 0)
    }

    pub fn report(&mut self, finding: Diagnostic, range: Range<usize>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding.at(self.body.span(range)));
        }
    }

    /// Something that raises an error when it is evaluated. It is an error only if it is always evaluated.
    fn raise(&mut self, range: Range<usize>, problem: Problem) -> Parsed {
        let severity = if self.certain { Severity::Error } else { Severity::Warning };
        let finding = Diagnostic::new(severity, problem.code, problem.message.clone());
        let finding = finding.suggest(problem.suggest).help(problem.help);
        let finding = match problem.word {
            Some(word) => finding.reference(word),
            None => finding,
        };
        self.report(finding, range.clone());
        Parsed { expr: Box::new(fail(problem.message, self.body.span(range))), height: 2 }
    }

    /// Limits are ours, not the original's, so exceeding one is always an error.
    fn too_deep(&mut self, range: Range<usize>) -> Parsed {
        let message = format!("the expression is nested more than {DEPTH_MAX} levels deep");
        let finding = Diagnostic::error(Code::ExpressionLimit, message.clone());
        self.report(finding.help("split it into several expressions"), range.clone());
        Parsed { expr: Box::new(fail(message, self.body.span(range))), height: 2 }
    }
}

/// An expression that always raises an error.
pub(super) fn fail(message: String, span: Span) -> Expr {
    let args = vec![Expr::new(Node::Literal(Value::text(message)), span)];
    Expr::new(Node::Call { function: Function::Fail, args }, span)
}
