//! Makes the data flow between steps explicit: the file only declares dependencies, from which the input of each step
//! and the result of the run follow.

use std::sync::Arc;
use windlass_ir::expr::{Expr, Function, Namespace, Node, Read, Template};
use windlass_ir::workflow::Bound;
use windlass_ir::{Span, Value};

/// The input of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The input of the run.
    Run,
    /// The output of the only dependency.
    Step(Arc<str>),
    /// The outputs of several steps, by id.
    Several(Vec<Arc<str>>),
    /// The failure, for a step that handles one.
    Failure,
    /// The work to undo, for a compensation.
    Undo,
    /// One of the two, for a step that serves both purposes.
    FailureOrUndo,
}

impl Input {
    pub fn template(&self, span: Span) -> Template {
        match self.entries(span) {
            Some(entries) => Template::Map(
                entries.into_iter().map(|(key, value)| (key, Template::Expression(value))).collect(),
            ),
            None => Template::Expression(self.expr(span)),
        }
    }

    pub fn expr(&self, span: Span) -> Expr {
        match self {
            Self::Run => read(Namespace::Inputs, span),
            Self::Step(id) => output(id, span),
            Self::FailureOrUndo => Expr::new(
                Node::Choice {
                    when: Box::new(read(Namespace::Undo, span)),
                    then: Box::new(Self::Undo.expr(span)),
                    otherwise: Box::new(Self::Failure.expr(span)),
                },
                span,
            ),
            Self::Several(_) | Self::Failure | Self::Undo => {
                object(self.entries(span).unwrap_or_default(), span)
            }
        }
    }

    /// The members of a composed input; none for an input that is passed on unchanged.
    fn entries(&self, span: Span) -> Option<Vec<(Arc<str>, Expr)>> {
        let failure = |name: &str| member(read(Namespace::Failure, span), name);
        let undo = |name: &str| member(read(Namespace::Undo, span), name);
        match self {
            Self::Several(ids) => Some(ids.iter().map(|id| (id.clone(), output(id, span))).collect()),
            Self::Failure => {
                Some(vec![("failed_step".into(), failure("step")), ("error".into(), failure("message"))])
            }
            Self::Undo => Some(vec![
                ("original_step".into(), undo("step")),
                ("original_output".into(), undo("output")),
                ("trigger_step".into(), failure("step")),
                ("trigger_error".into(), failure("message")),
            ]),
            Self::Run | Self::Step(_) | Self::FailureOrUndo => None,
        }
    }

    pub fn bound(&self, field: impl Into<Arc<str>>, span: Span) -> Bound {
        Bound { template: self.template(span), field: field.into(), span }
    }
}

fn object(entries: Vec<(Arc<str>, Expr)>, span: Span) -> Expr {
    let literal = |key| Expr::new(Node::Literal(Value::Text(key)), span);
    let args = entries.into_iter().flat_map(|(key, value)| [literal(key), value]).collect();
    Expr::new(Node::Call { function: Function::Object, args }, span)
}

pub fn read(namespace: Namespace, span: Span) -> Expr {
    Expr::new(Node::Read(Read::Namespace(namespace)), span)
}

pub fn member(of: Expr, name: &str) -> Expr {
    let span = of.span;
    Expr::new(Node::Member { of: Box::new(of), name: name.into() }, span)
}

/// The output of a step.
pub fn output(id: &str, span: Span) -> Expr {
    member(member(read(Namespace::Steps, span), id), "outputs")
}

/// The value at a dotted path.
pub fn along(of: Expr, path: &str) -> Expr {
    path.split('.').fold(of, member)
}

/// The first of the two values that is not null.
pub fn or_else(first: Expr, second: Expr) -> Expr {
    let span = first.span;
    Expr::new(Node::Call { function: Function::Default, args: vec![first, second] }, span)
}

pub fn constant(value: Value, field: impl Into<Arc<str>>, span: Span) -> Bound {
    Bound { template: Template::Constant(value), field: field.into(), span }
}

pub fn computed(expr: Expr, field: impl Into<Arc<str>>) -> Bound {
    let span = expr.span;
    Bound { template: Template::Expression(expr), field: field.into(), span }
}
