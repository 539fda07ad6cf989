//! Data, expressions, templates and ports.

use super::Dice;
use std::sync::Arc;
use windlass_ir::expr::{BinaryOp, Expr, Function, Namespace, Node, Piece, Query, Read, Template};
use windlass_ir::policy::Bindings;
use windlass_ir::workflow::{Bound, Condition, Input, Output, Parameter};
use windlass_ir::{Span, Type, Value};

impl Dice {
    // Data and expressions

    pub(super) fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => Value::Bool(self.maybe()),
            2 => Value::Int(*self.pick(&[0, -7, 12, i64::MAX, i64::MIN])),
            3 => Value::Float(*self.pick(&[0.5, -2.0, 1e20, 1e-9, 3.0])),
            4 => Value::text(self.odd()),
            5 => Value::list((0..self.roll(3)).map(|_| self.value(depth - 1))),
            _ => {
                Value::map((0..self.roll(3)).map(|_| (self.odd(), self.value(depth - 1))).collect::<Vec<_>>())
            }
        }
    }

    pub(super) fn expr(&mut self, depth: usize) -> Expr {
        let node = if self.foreign { self.any_node(depth) } else { self.house_node() };
        Expr::new(node, Span::default())
    }

    pub(super) fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    pub(super) fn any_node(&mut self, depth: usize) -> Node {
        const READS: &[Namespace] = &[
            Namespace::Inputs,
            Namespace::Steps,
            Namespace::Context,
            Namespace::Item,
            Namespace::Index,
            Namespace::Host,
            Namespace::Failure,
            Namespace::Undo,
            Namespace::Run,
        ];
        const OPS: &[BinaryOp] = &[
            BinaryOp::Equal,
            BinaryOp::NotEqual,
            BinaryOp::Less,
            BinaryOp::LessOrEqual,
            BinaryOp::Greater,
            BinaryOp::GreaterOrEqual,
            BinaryOp::And,
            BinaryOp::Or,
        ];
        let Some(below) = depth.checked_sub(1) else {
            return match self.maybe() {
                true => Node::Literal(self.value(1)),
                false => Node::Read(Read::Namespace(*self.pick(READS))),
            };
        };
        match self.roll(9) {
            0 => Node::Literal(self.value(2)),
            1 => Node::List((0..self.roll(3)).map(|_| self.expr(below)).collect()),
            2 => Node::Member { of: self.boxed(below), name: self.odd().into() },
            3 => Node::Index { of: self.boxed(below), at: self.boxed(below) },
            4 => {
                let function = *self.pick(Function::ALL);
                let arity = function.arity();
                let count = arity.min + self.roll(arity.max.unwrap_or(arity.min + 3) - arity.min + 1);
                Node::Call { function, args: (0..count).map(|_| self.expr(below)).collect() }
            }
            5 => {
                let path = *self.pick(&["$", "$.a[*].b", "$['it''s']", "$..x", "$[?@.n > 1]"]);
                let path = Query::parse(path).unwrap_or_else(|_| Query::parse("$.a").expect("a path"));
                Node::Query { of: self.boxed(below), path }
            }
            6 => Node::Not(self.boxed(below)),
            7 => Node::Binary { op: *self.pick(OPS), left: self.boxed(below), right: self.boxed(below) },
            _ => Node::Choice {
                when: self.boxed(below),
                then: self.boxed(below),
                otherwise: self.boxed(below),
            },
        }
    }

    /// Values that can be read everywhere except in triggers, and match every type.
    pub(super) fn house_node(&mut self) -> Node {
        let parameters = self.parameters.clone();
        let Some(name) = (!parameters.is_empty()).then(|| self.pick(&parameters).clone()) else {
            return Node::Literal(self.value(1));
        };
        let read = Expr::new(Node::Read(Read::Namespace(Namespace::Inputs)), Span::default());
        let member = Expr::new(Node::Member { of: Box::new(read), name }, Span::default());
        match self.roll(4) {
            0 => member.node,
            1 => Node::Not(Box::new(member)),
            2 => {
                Node::Binary { op: BinaryOp::Equal, left: Box::new(member.clone()), right: Box::new(member) }
            }
            _ => Node::Literal(self.value(1)),
        }
    }

    pub(super) fn template(&mut self, depth: usize) -> Template {
        match self.roll(if depth == 0 { 3 } else { 5 }) {
            0 => Template::Constant(self.value(2)),
            1 => Template::Expression(self.expr(3)),
            2 => Template::Text(self.pieces()),
            3 => Template::List((0..self.roll(3)).map(|_| self.template(depth - 1)).collect()),
            _ => {
                let count = self.roll(3);
                Template::Map((0..count).map(|_| (self.odd().into(), self.template(depth - 1))).collect())
            }
        }
    }

    pub(super) fn pieces(&mut self) -> Vec<Piece> {
        (0..self.roll(4))
            .map(|_| match self.maybe() {
                true => Piece::Expression(self.expr(2)),
                false => Piece::Text(self.odd().into()),
            })
            .collect()
    }

    pub(super) fn bound_to(template: Template) -> Bound {
        Bound { template, field: "".into(), span: Span::default() }
    }

    pub(super) fn any(&mut self) -> Bound {
        Self::bound_to(self.template(2))
    }

    /// For a key that is read as text.
    pub(super) fn words(&mut self) -> Bound {
        Self::bound_to(self.template(0))
    }

    pub(super) fn command(&mut self) -> Bound {
        let foreign = self.foreign;
        let pieces = (0..self.roll(4)).map(|_| match self.maybe() {
            true => {
                let function = if foreign { Function::Raw } else { Function::ShellQuote };
                let args = vec![self.expr(2)];
                Piece::Expression(Expr::new(Node::Call { function, args }, Span::default()))
            }
            false if foreign => Piece::Text(self.odd().into()),
            false => Piece::Text(" make it \n".into()),
        });
        Self::bound_to(Template::Text(pieces.collect()))
    }

    pub(super) fn bindings(&mut self) -> Bindings {
        self.map(2, Self::any)
    }

    pub(super) fn variables(&mut self) -> Bindings {
        self.map(2, Self::any)
    }

    pub(super) fn condition(&mut self) -> Condition {
        Condition { expr: self.expr(3), field: "".into() }
    }

    pub(super) fn ty(&mut self) -> Type {
        let schema =
            serde_json::json!({"type": "object", "properties": {"a": {"const": null}}, "maxProperties": 3});
        match self.roll(6) {
            0 => Type::Integer,
            1 => Type::Array(Box::new(Type::Array(Box::new(Type::String)))),
            2 => Type::Schema(Arc::new(schema)),
            _ => Type::Any,
        }
    }

    /// A default that matches every type, if the type is any.
    pub(super) fn default(&mut self, ty: &Type) -> Option<Value> {
        let value = self.value(2);
        let fits = *ty == Type::Any && (self.foreign || value != Value::Null);
        (fits && self.maybe()).then_some(value)
    }

    pub(super) fn parameter(&mut self) -> Parameter {
        let ty = if self.foreign { self.ty() } else { Type::Any };
        let default = self.default(&ty);
        Parameter {
            required: default.is_some() && self.maybe(),
            choices: match self.foreign && self.maybe() {
                true => vec![self.value(0), self.value(1)],
                false => Vec::new(),
            },
            description: self.some(|dice| dice.odd().into()),
            span: Span::default(),
            default,
            ty,
        }
    }

    pub(super) fn input(&mut self) -> Input {
        Input {
            ty: Type::Any,
            source: self.some(Self::any),
            required: self.maybe(),
            description: self.some(|dice| dice.odd().into()),
            span: Span::default(),
        }
    }

    pub(super) fn output(&mut self, computed: bool) -> Output {
        let ty = if self.foreign { self.ty() } else { Type::Any };
        Output {
            required: self.maybe(),
            default: self.default(&ty),
            description: self.some(|dice| dice.odd().into()),
            source: computed.then(|| self.any()),
            span: Span::default(),
            ty,
        }
    }
}
