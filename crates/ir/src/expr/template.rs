//! Data that contains expressions: a field of a file that may hold `${{ … }}` or its equivalents.
//!
//! A field that consists of a single expression keeps the type of its value; with text around the expression it
//! becomes text.

use super::eval::{EvalError, Evaluator, Limits, Scope, text_within};
use super::semantics::Semantics;
use super::tree::Expr;
use crate::source::Span;
use crate::value::{Map, SealedPart, Value};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Template {
    Constant(Value),
    Expression(Expr),
    Text(Vec<Piece>),
    List(Vec<Template>),
    Map(IndexMap<Arc<str>, Template>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    Text(Arc<str>),
    Expression(Expr),
}

impl Template {
    /// All expressions in the order of the text; subexpressions are not listed.
    pub fn expressions(&self) -> Vec<&Expr> {
        let mut found = Vec::new();
        self.visit(&mut |expr| found.push(expr));
        found
    }

    fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Self::Constant(_) => {}
            Self::Expression(expr) => visit(expr),
            Self::Text(pieces) => pieces.iter().filter_map(Piece::expression).for_each(visit),
            Self::List(items) => items.iter().for_each(|item| item.visit(visit)),
            Self::Map(map) => map.values().for_each(|item| item.visit(visit)),
        }
    }

    /// Whether a text has several lines, whatever the values in it.
    pub fn has_lines(&self) -> bool {
        let text: String = match self {
            Self::Constant(Value::Text(text)) => text.to_string(),
            Self::Text(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text,
                    Piece::Expression(_) => "value",
                })
                .collect(),
            Self::Constant(_) | Self::Expression(_) | Self::List(_) | Self::Map(_) => return false,
        };
        text.trim().contains('\n')
    }

    /// The literal parts of a text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (whole, pieces) = match self {
            Self::Constant(Value::Text(text)) => (Some(&**text), &[][..]),
            Self::Text(pieces) => (None, pieces.as_slice()),
            Self::Constant(_) | Self::Expression(_) | Self::List(_) | Self::Map(_) => (None, &[][..]),
        };
        whole.into_iter().chain(pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(&**text),
            Piece::Expression(_) => None,
        }))
    }

    /// The location to report for the template as a whole; only its expressions have locations.
    fn place(&self) -> Span {
        self.expressions().first().map(|expr| expr.span).unwrap_or_default()
    }

    /// The same template with each expression replaced by the result of `change`.
    pub fn map_expressions<E>(self, change: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Self, E> {
        Ok(match self {
            Self::Constant(value) => Self::Constant(value),
            Self::Expression(expr) => Self::Expression(change(expr)?),
            Self::Text(pieces) => {
                let pieces = pieces.into_iter().map(|piece| piece.map_expression(change));
                Self::Text(pieces.collect::<Result<_, E>>()?)
            }
            Self::List(items) => {
                let items = items.into_iter().map(|item| item.map_expressions(change));
                Self::List(items.collect::<Result<_, E>>()?)
            }
            Self::Map(map) => {
                let entries = map.into_iter().map(|(key, item)| Ok((key, item.map_expressions(change)?)));
                Self::Map(entries.collect::<Result<_, E>>()?)
            }
        })
    }
}

impl Piece {
    fn expression(&self) -> Option<&Expr> {
        match self {
            Self::Text(_) => None,
            Self::Expression(expr) => Some(expr),
        }
    }

    /// The number of bytes of plain text.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Expression(_) => 0,
        }
    }

    fn map_expression<E>(self, change: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Self, E> {
        match self {
            Self::Text(text) => Ok(Self::Text(text)),
            Self::Expression(expr) => change(expr).map(Self::Expression),
        }
    }
}

/// Evaluates a template. One set of limits applies to the whole template.
pub fn render(
    template: &Template,
    scope: &dyn Scope,
    semantics: &Semantics,
    limits: &Limits,
) -> Result<Value, EvalError> {
    let mut evaluator = Evaluator::new(scope, semantics, limits);
    let value = evaluator.template(template)?;
    limits.check_result(&value).map_err(|e| e.at(template.place()))?;
    Ok(value)
}

impl Evaluator<'_> {
    fn template(&mut self, template: &Template) -> Result<Value, EvalError> {
        match template {
            Template::Constant(value) => Ok(value.clone()),
            Template::Expression(expr) => self.expr(expr),
            Template::Text(pieces) => {
                let bytes = pieces.iter().map(Piece::bytes).sum();
                self.meter.make(bytes).map_err(|e| e.at(template.place()))?;
                self.text(pieces)
            }
            Template::List(items) => {
                self.enter(template, items.len())?;
                let values: Result<Vec<Value>, EvalError> =
                    items.iter().map(|item| self.template(item)).collect();
                self.meter.leave();
                Ok(Value::List(values?.into()))
            }
            Template::Map(map) => {
                self.enter(template, map.len())?;
                let entries = map.iter().map(|(key, item)| Ok((key.clone(), self.template(item)?)));
                let entries = entries.collect::<Result<Map, EvalError>>();
                self.meter.leave();
                Ok(Value::Map(Arc::new(entries?)))
            }
        }
    }

    fn enter(&mut self, template: &Template, count: usize) -> Result<(), EvalError> {
        self.meter.make_elements(count).and_then(|()| self.meter.enter()).map_err(|e| e.at(template.place()))
    }

    fn text(&mut self, pieces: &[Piece]) -> Result<Value, EvalError> {
        let mut joined = Joined::default();
        for piece in pieces {
            match piece {
                Piece::Text(text) => joined.text.push_str(text),
                Piece::Expression(expr) => {
                    let value = self.expr(expr)?;
                    self.append(&value, &mut joined).map_err(|e| e.at(expr.span))?;
                }
            }
        }
        Ok(joined.finish())
    }

    fn append(&mut self, value: &Value, joined: &mut Joined) -> Result<(), EvalError> {
        if let Value::Sealed(parts) = value {
            self.meter.make_elements(parts.len())?;
            joined.seal(parts);
            return Ok(());
        }
        let text = text_within(value, self.semantics, &mut self.meter)?;
        self.meter.make(text.len())?;
        joined.text.push_str(&text);
        Ok(())
    }
}

/// Text under construction: plain until the first secret is added.
#[derive(Default)]
struct Joined {
    parts: Vec<SealedPart>,
    text: String,
}

impl Joined {
    fn seal(&mut self, parts: &[SealedPart]) {
        for part in parts {
            match part {
                SealedPart::Text(text) => self.text.push_str(text),
                SealedPart::Secret(_) => {
                    self.flush();
                    self.parts.push(part.clone());
                }
            }
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(SealedPart::Text(std::mem::take(&mut self.text).into()));
        }
    }

    fn finish(mut self) -> Value {
        if self.parts.is_empty() {
            return Value::text(self.text);
        }
        self.flush();
        Value::Sealed(self.parts.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;
    use crate::expr::{Function, Namespace, Node, Read};
    use crate::source::SourceId;

    /// A scope with two names and a secret.
    struct Data;

    impl Scope for Data {
        fn read(&self, read: Read) -> Result<Value, EvalError> {
            Ok(match read {
                Read::Namespace(Namespace::Item) => Value::list([Value::Int(1), Value::Null]),
                Read::Namespace(Namespace::Secrets) => Value::secret("API"),
                _ => Value::Null,
            })
        }
    }

    fn read(namespace: Namespace) -> Expr {
        Expr::new(Node::Read(Read::Namespace(namespace)), Span::new(SourceId(0), 3, 4))
    }

    fn item() -> Expr {
        read(Namespace::Item)
    }

    fn text(pieces: &[Piece]) -> Template {
        Template::Text(pieces.to_vec())
    }

    fn check(template: &Template, expected: Value) {
        assert_eq!(
            render(template, &Data, &Semantics::HOUSE, &Limits::default()),
            Ok(expected),
            "{template:?}"
        );
    }

    fn sample() -> Template {
        let greeting = text(&[Piece::Text("n=".into()), Piece::Expression(item()), Piece::Text("!".into())]);
        let list = Template::List(vec![
            Template::Expression(item()),
            Template::Constant(Value::Bool(true)),
            greeting,
        ]);
        Template::Map(IndexMap::from([
            ("b".into(), list),
            ("a".into(), Template::Expression(read(Namespace::Env))),
        ]))
    }

    #[test]
    fn structure_is_preserved_and_text_is_joined() {
        let items = Value::list([Value::Int(1), Value::Null]);
        check(&Template::Constant(Value::Int(3)), Value::Int(3));
        check(&Template::Expression(item()), items.clone());
        let list = Value::list([items, Value::Bool(true), Value::text("n=[1,null]!")]);
        check(&sample(), Value::map([("b", list), ("a", Value::Null)]));
    }

    #[test]
    fn a_secret_seals_the_surrounding_text() {
        let secret = || Piece::Expression(read(Namespace::Secrets));
        let plain = |text: &str| SealedPart::Text(text.into());
        let hidden = || SealedPart::Secret("API".into());
        let sealed = |parts: &[SealedPart]| Value::Sealed(parts.into());
        check(&Template::Expression(read(Namespace::Secrets)), sealed(&[hidden()]));
        check(&text(&[secret(), secret()]), sealed(&[hidden(), hidden()]));
        check(
            &text(&[
                Piece::Text("Bearer ".into()),
                secret(),
                Piece::Text(";".into()),
                Piece::Expression(item()),
            ]),
            sealed(&[plain("Bearer "), hidden(), plain(";[1,null]")]),
        );
        let list = Expr::new(Node::List(vec![read(Namespace::Secrets)]), Span::new(SourceId(0), 5, 6));
        let inside = text(&[Piece::Text("x".into()), Piece::Expression(list)]);
        let error =
            render(&inside, &Data, &Semantics::HOUSE, &Limits::default()).expect_err("a secret in JSON");
        assert_eq!((error.code, error.span.start), (Code::ExpressionType, 5));
    }

    #[test]
    fn expressions_are_listed_and_replaced() {
        assert_eq!(sample().expressions(), [&item(), &item(), &read(Namespace::Env)]);
        let quoted = sample().map_expressions::<()>(&mut |expr| {
            let span = expr.span;
            Ok(Expr::new(Node::Call { function: Function::Length, args: vec![expr] }, span))
        });
        let quoted = quoted.expect("nothing fails");
        let calls = quoted.expressions().into_iter().filter(|expr| matches!(expr.node, Node::Call { .. }));
        assert_eq!(calls.count(), 3);
        assert_eq!(sample().map_expressions(&mut |_| Err("stop")), Err("stop"));
    }

    #[test]
    fn a_template_is_stored_without_locations() {
        let stored = serde_json::to_string(&sample()).expect("no secrets");
        assert!(
            stored.starts_with(r#"{"map":{"b":{"list":[{"expression":{"read":{"namespace":"item"}}},"#),
            "{stored}"
        );
        let back: Template = serde_json::from_str(&stored).expect("what was written");
        assert_eq!(serde_json::to_string(&back).ok(), Some(stored));
        assert_eq!(back.expressions()[0].span, Span::default());
    }

    #[test]
    fn limits_apply_to_the_whole_template() {
        let limits = Limits { bytes_max: 100, steps_max: 50, depth_max: 5 };
        let check = |template: &Template, expected: Option<Code>| {
            let found = render(template, &Data, &Semantics::HOUSE, &limits);
            assert_eq!(found.err().map(|error| error.code), expected);
        };
        let constant = |length: usize| Template::Constant(Value::text("x".repeat(length)));
        check(&constant(98), None);
        check(&constant(99), Some(Code::ExpressionLimit));
        check(&Template::List(vec![constant(40), constant(40)]), None);
        check(&Template::List(vec![constant(40), constant(60)]), Some(Code::ExpressionLimit));
        let many = |count: usize| text(&vec![Piece::Expression(read(Namespace::Env)); count]);
        check(&many(25), None);
        check(&many(26), Some(Code::ExpressionLimit));
        let nested = |levels: usize| (0..levels).fold(constant(1), |inner, _| Template::List(vec![inner]));
        check(&nested(4), None);
        check(&nested(5), Some(Code::ExpressionLimit));
        check(&nested(6), Some(Code::ExpressionLimit));
    }
}
