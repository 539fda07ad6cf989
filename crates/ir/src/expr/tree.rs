//! The syntax tree. Every node has a span. Spans do not affect the meaning of an expression, so they are left out
//! when a plan is stored or digested.

use super::functions::Function;
use super::query::Query;
use crate::source::Span;
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The number of a step in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(pub u32);

impl StepId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expr {
    pub node: Node,
    #[serde(skip)]
    pub span: Span,
}

impl Expr {
    pub fn new(node: Node, span: Span) -> Self {
        Self { node, span }
    }

    /// The direct subexpressions.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.node {
            Node::Literal(_) | Node::Read(_) => Vec::new(),
            Node::List(items) | Node::Call { args: items, .. } => items.iter().collect(),
            Node::Member { of, .. } => vec![of],
            Node::Index { of, at } => vec![of, at],
            Node::Query { of: inner, .. } | Node::Not(inner) => vec![inner],
            Node::Binary { left, right, .. } => vec![left, right],
            Node::Choice { when, then, otherwise } => vec![when, then, otherwise],
        }
    }

    /// Visits this expression and all its subexpressions, parents before children, in the order of the text.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// The same expression with each part replaced by the result of `change`, children before parents. A path such as
    /// `steps.a.outputs` is visited as a whole after its prefixes.
    pub fn try_map<E>(self, change: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Expr, E> {
        let span = self.span;
        let node = match self.node {
            node @ (Node::Literal(_) | Node::Read(_)) => node,
            Node::List(items) => Node::List(try_map_all(items, change)?),
            Node::Member { of, name } => Node::Member { of: try_map_box(*of, change)?, name },
            Node::Index { of, at } => {
                Node::Index { of: try_map_box(*of, change)?, at: try_map_box(*at, change)? }
            }
            Node::Call { function, args } => Node::Call { function, args: try_map_all(args, change)? },
            Node::Query { of, path } => Node::Query { of: try_map_box(*of, change)?, path },
            Node::Not(inner) => Node::Not(try_map_box(*inner, change)?),
            Node::Binary { op, left, right } => {
                Node::Binary { op, left: try_map_box(*left, change)?, right: try_map_box(*right, change)? }
            }
            Node::Choice { when, then, otherwise } => Node::Choice {
                when: try_map_box(*when, change)?,
                then: try_map_box(*then, change)?,
                otherwise: try_map_box(*otherwise, change)?,
            },
        };
        change(Expr { node, span })
    }
}

type Change<'a, E> = dyn FnMut(Expr) -> Result<Expr, E> + 'a;

fn try_map_box<E>(expr: Expr, change: &mut Change<'_, E>) -> Result<Box<Expr>, E> {
    expr.try_map(change).map(Box::new)
}

fn try_map_all<E>(items: Vec<Expr>, change: &mut Change<'_, E>) -> Result<Vec<Expr>, E> {
    items.into_iter().map(|item| item.try_map(change)).collect()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    Literal(Value),
    List(Vec<Expr>),
    Read(Read),
    Member {
        of: Box<Expr>,
        name: Arc<str>,
    },
    Index {
        of: Box<Expr>,
        at: Box<Expr>,
    },
    Call {
        function: Function,
        args: Vec<Expr>,
    },
    /// The result of a JSONPath: null for no match, the value itself for one match, a list for several.
    Query {
        of: Box<Expr>,
        path: Query,
    },
    Not(Box<Expr>),
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Choice {
        when: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOp {
    /// The operator as written in every syntax that has it.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::And => "&&",
            Self::Or => "||",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    pub fn is_ordering(self) -> bool {
        matches!(self, Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual)
    }

    pub fn is_arithmetic(self) -> bool {
        matches!(self, Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Remainder)
    }

    pub fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }
}

/// A value that an expression reads from the run. Parsers produce `Namespace`; lowering narrows reads of steps to a
/// step number, so a run never looks up names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read {
    Namespace(Namespace),
    StepOutputs(StepId),
    StepStatus(StepId),
    /// How a step ended, in four words that all dialects share; null before its end.
    StepOutcome(StepId),
    /// The whole record of a step, in the shape of its dialect.
    StepRecord(StepId),
    /// The current item of the fan-out with this number.
    LoopItem(StepId),
    /// The index of that item, or of the round of that loop.
    LoopIndex(StepId),
    /// The time of the decision that evaluates the expression.
    Now,
}

/// The first word of a path. Each dialect has its own words (SWDL says `parameters` for `Inputs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespace {
    /// The inputs of the run.
    Inputs,
    /// All steps by id, each with `outputs` and `status`.
    Steps,
    Context,
    Env,
    Run,
    Workflow,
    /// The current item of a fan-out.
    Item,
    /// The index of the current item or loop round, from 0.
    Index,
    /// The enclosing loops by step id, each with `item` and `index`.
    Loops,
    /// The environment variables that the operator allows.
    Host,
    /// Only in a step that handles a failure: the failed step, with `step`, `class`, `message` and `detail`.
    Failure,
    /// Only in a step that undoes another: the undone step, with `step` and `output`.
    Undo,
    /// The inputs collected by a fan-in; only when an expression is evaluated on its own.
    FanIn,
    /// All namespaces by name; only when an expression is evaluated on its own.
    Root,
    Secrets,
    /// Only in a retry condition: class, exit code, message and number of the failed attempt.
    Class,
    ExitCode,
    Message,
    Attempt,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expr(node: Node) -> Expr {
        Expr::new(node, Span::default())
    }

    /// `steps.a.outputs == (!item ? [1] : length(item[0]))`: contains every kind of node once.
    fn sample() -> Expr {
        let read = |namespace| Box::new(expr(Node::Read(Read::Namespace(namespace))));
        let member = |of: Box<Expr>, name: &str| Box::new(expr(Node::Member { of, name: name.into() }));
        let number = |int| expr(Node::Literal(Value::Int(int)));
        let index = expr(Node::Index { of: read(Namespace::Item), at: Box::new(number(0)) });
        let choice = expr(Node::Choice {
            when: Box::new(expr(Node::Not(read(Namespace::Item)))),
            then: Box::new(expr(Node::List(vec![number(1)]))),
            otherwise: Box::new(expr(Node::Call { function: Function::Length, args: vec![index] })),
        });
        let left = member(member(read(Namespace::Steps), "a"), "outputs");
        expr(Node::Binary { op: BinaryOp::Equal, left, right: Box::new(choice) })
    }

    #[test]
    fn walk_visits_every_node_once() {
        let mut count = 0;
        sample().walk(&mut |_| count += 1);
        assert_eq!(count, 13);
    }

    #[test]
    fn a_path_is_replaced_as_a_whole() {
        let narrowed = sample().try_map::<()>(&mut |part| match &part.node {
            Node::Member { name, .. } if &**name == "outputs" => {
                Ok(expr(Node::Read(Read::StepOutputs(StepId(4)))))
            }
            _ => Ok(part),
        });
        let narrowed = narrowed.expect("nothing fails");
        let mut reads = Vec::new();
        narrowed
            .walk(&mut |part| reads.extend(if let Node::Read(read) = part.node { Some(read) } else { None }));
        let item = Read::Namespace(Namespace::Item);
        assert_eq!(reads, [Read::StepOutputs(StepId(4)), item, item]);
    }

    #[test]
    fn map_changes_nothing_else_and_stops_at_an_error() {
        assert_eq!(sample().try_map::<()>(&mut Ok), Ok(sample()));
        let mut seen = 0;
        let stopped = sample().try_map(&mut |part| {
            seen += 1;
            if seen == 5 { Err("stop") } else { Ok(part) }
        });
        assert_eq!((stopped, seen), (Err("stop"), 5));
    }
}
