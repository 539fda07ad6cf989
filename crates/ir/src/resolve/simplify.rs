//! Normalizes equivalent spellings: joins pieces of text, turns literals into data, and `a['b']` into `a.b`. This
//! makes plans equal for files in different dialects that mean the same.

use super::fields::{Slot, of_step, of_workflow};
use crate::expr::{Expr, Function, Node, Piece, Template};
use crate::value::{Map, Value};
use crate::workflow::{Step, Workflow};
use std::convert::Infallible;
use std::sync::Arc;

/// Simplifies every expression and every template, without changing any result.
pub fn simplify(workflow: &mut Workflow) {
    list(&mut workflow.steps);
    of_workflow(workflow, &mut |slot, place| simplify_slot(slot, place.command));
}

fn list(steps: &mut [Step]) {
    for step in steps {
        of_step(step, &mut |slot, place| simplify_slot(slot, place.command));
        step.kind.bodies_mut().into_iter().for_each(|body| list(body));
    }
}

fn simplify_slot(slot: Slot<'_>, command: bool) {
    match slot {
        Slot::Condition(condition) => change(&mut condition.expr),
        Slot::Bound(bound) => {
            let template = std::mem::replace(&mut bound.template, Template::Constant(Value::Null));
            bound.template = if command { of_command(template) } else { of_template(template) };
        }
    }
}

fn change(expr: &mut Expr) {
    let taken = std::mem::replace(expr, Expr::new(Node::Literal(Value::Null), expr.span));
    *expr = of_expr(taken);
}

fn of_template(template: Template) -> Template {
    match template {
        Template::Constant(value) => Template::Constant(value),
        Template::Expression(expr) => match of_expr(expr) {
            Expr { node: Node::Literal(value), .. } => Template::Constant(value),
            expr => Template::Expression(expr),
        },
        Template::Text(pieces) => joined(pieces, |expr| match expr.node {
            Node::Literal(Value::Text(text)) => Piece::Text(text),
            _ => Piece::Expression(expr),
        }),
        Template::List(items) => {
            let items: Vec<Template> = items.into_iter().map(of_template).collect();
            let values: Option<Vec<Value>> = items.iter().map(constant).collect();
            values.map_or(Template::List(items), |values| Template::Constant(Value::list(values)))
        }
        Template::Map(entries) => {
            let entries = entries.into_iter().map(|(key, item)| (key, of_template(item)));
            let entries: indexmap::IndexMap<Arc<str>, Template> = entries.collect();
            let values = entries.iter().map(|(key, item)| Some((key.clone(), constant(item)?)));
            let values: Option<Map> = values.collect();
            values.map_or(Template::Map(entries), |map| Template::Constant(Value::Map(Arc::new(map))))
        }
    }
}

/// A command always remains text, and only `raw` expressions are merged with the text around them.
fn of_command(template: Template) -> Template {
    let pieces = match template {
        Template::Text(pieces) => pieces,
        Template::Expression(expr) => vec![Piece::Expression(expr)],
        other @ (Template::Constant(_) | Template::List(_) | Template::Map(_)) => return of_template(other),
    };
    joined(pieces, |expr| match expr.node {
        Node::Call { function: Function::Raw, args } => match <[Expr; 1]>::try_from(args) {
            Ok([Expr { node: Node::Literal(Value::Text(text)), .. }]) => Piece::Text(text),
            Ok([arg]) => Piece::Expression(raw(vec![arg], expr.span)),
            Err(args) => Piece::Expression(raw(args, expr.span)),
        },
        node => Piece::Expression(Expr::new(node, expr.span)),
    })
}

fn raw(args: Vec<Expr>, span: crate::Span) -> Expr {
    Expr::new(Node::Call { function: Function::Raw, args }, span)
}

fn constant(template: &Template) -> Option<Value> {
    match template {
        Template::Constant(value) => Some(value.clone()),
        Template::Expression(_) | Template::Text(_) | Template::List(_) | Template::Map(_) => None,
    }
}

/// Merges adjacent pieces of text; the result is plain data if only text is left.
fn joined(pieces: Vec<Piece>, of: impl Fn(Expr) -> Piece) -> Template {
    let mut whole: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut text = String::new();
    for piece in pieces {
        let piece = match piece {
            Piece::Text(text) => Piece::Text(text),
            Piece::Expression(expr) => of(of_expr(expr)),
        };
        match piece {
            Piece::Text(part) => text.push_str(&part),
            Piece::Expression(expr) => {
                flush(&mut text, &mut whole);
                whole.push(Piece::Expression(expr));
            }
        }
    }
    if whole.is_empty() {
        return Template::Constant(Value::text(text));
    }
    flush(&mut text, &mut whole);
    Template::Text(whole)
}

fn flush(text: &mut String, whole: &mut Vec<Piece>) {
    if !text.is_empty() {
        whole.push(Piece::Text(std::mem::take(text).into()));
    }
}

fn of_expr(expr: Expr) -> Expr {
    let simplified: Result<Expr, Infallible> =
        expr.try_map(&mut |part| Ok(Expr { node: of_node(part.node), ..part }));
    match simplified {
        Ok(expr) => expr,
        Err(never) => match never {},
    }
}

fn of_node(node: Node) -> Node {
    match node {
        Node::Index { of, at } => match at.node {
            Node::Literal(Value::Text(name)) => Node::Member { of, name },
            _ => Node::Index { of, at },
        },
        Node::List(items) => match items.iter().map(literal).collect::<Option<Vec<Value>>>() {
            Some(values) => Node::Literal(Value::list(values)),
            None => Node::List(items),
        },
        Node::Call { function: Function::Object, args } => match literal_object(&args) {
            Some(map) => Node::Literal(Value::Map(Arc::new(map))),
            None => Node::Call { function: Function::Object, args },
        },
        other => other,
    }
}

fn literal(expr: &Expr) -> Option<Value> {
    match &expr.node {
        Node::Literal(value) => Some(value.clone()),
        _ => None,
    }
}

/// The object built from alternating keys and values, if all of them are constant and no key is repeated.
fn literal_object(args: &[Expr]) -> Option<Map> {
    let mut map = Map::new();
    for pair in args.chunks(2) {
        let [key, value] = pair else { return None };
        let Value::Text(key) = literal(key)? else { return None };
        if map.insert(key, literal(value)?).is_some() {
            return None;
        }
    }
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Namespace, Read};
    use crate::source::Span;

    fn expr(node: Node) -> Expr {
        Expr::new(node, Span::default())
    }

    fn item() -> Expr {
        expr(Node::Read(Read::Namespace(Namespace::Item)))
    }

    fn word(text: &str) -> Expr {
        expr(Node::Literal(Value::text(text)))
    }

    fn call(function: Function, args: Vec<Expr>) -> Expr {
        expr(Node::Call { function, args })
    }

    #[test]
    fn text_is_joined_and_literals_become_data() {
        let check = |given: Template, expected: Template| assert_eq!(of_template(given), expected);
        let text = |text: &str| Piece::Text(text.into());
        check(Template::Expression(word("a")), Template::Constant(Value::text("a")));
        check(
            Template::Text(vec![text("a"), Piece::Expression(word("${{")), text("")]),
            Template::Constant(Value::text("a${{")),
        );
        check(
            Template::Text(vec![Piece::Expression(item()), Piece::Expression(word(""))]),
            Template::Text(vec![Piece::Expression(item())]),
        );
        let list = Template::List(vec![Template::Expression(word("a")), Template::Constant(Value::Null)]);
        check(list, Template::Constant(Value::list([Value::text("a"), Value::Null])));
    }

    #[test]
    fn in_a_command_only_raw_text_is_merged() {
        let check = |given: Expr, expected: Template| {
            assert_eq!(of_command(Template::Expression(given)), expected);
        };
        check(call(Function::Raw, vec![word("x")]), Template::Constant(Value::text("x")));
        let quoted = call(Function::ShellQuote, vec![word("x")]);
        check(quoted.clone(), Template::Text(vec![Piece::Expression(quoted)]));
    }

    #[test]
    fn members_lists_and_objects_have_one_spelling() {
        let check = |given: Node, expected: Node| assert_eq!(of_expr(expr(given)).node, expected);
        let member = |name: &str| Node::Member { of: Box::new(item()), name: name.into() };
        check(Node::Index { of: Box::new(item()), at: Box::new(word("a b")) }, member("a b"));
        let list = Node::List(vec![word("a"), expr(Node::List(Vec::new()))]);
        check(list, Node::Literal(Value::list([Value::text("a"), Value::list([])])));
        let object = call(Function::Object, vec![word("a"), word("b")]);
        check(object.node, Node::Literal(Value::map([("a", Value::text("b"))])));
        let twice = call(Function::Object, vec![word("a"), word("b"), word("a"), word("c")]).node;
        check(twice.clone(), twice);
        let open = call(Function::Object, vec![word("a"), item()]).node;
        check(open.clone(), open);
    }
}
