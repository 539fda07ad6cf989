//! Resolves the first word of a reference: an input, a step, or the item of an enclosing loop.
//!
//! Both expression syntaxes produce chains of names over the whole context. This module turns them into typed reads,
//! so that a plan knows which steps are read. Forms that the original program only documents (`{{scene_id}}`,
//! `$.list.files`) are accepted with a finding that shows the full form.

use super::inventory::Inventory;
use super::template::{Locate, fail};
use indexmap::IndexMap;
use std::convert::Infallible;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Function, Namespace, Node, PathPart, Query, Read, Template};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic, Span, Value};

/// The maximum number of findings per field.
const FINDINGS_MAX: usize = 50;

/// An enclosing loop: the id of its step, if any, and the name of its item.
#[derive(Clone, Debug)]
pub struct Loop {
    pub step: Option<Arc<str>>,
    pub name: Arc<str>,
}

#[derive(Debug)]
pub struct Binder<'a> {
    inventory: &'a Inventory,
    /// From the outermost to the innermost.
    loops: &'a [Loop],
    /// The key being read, for findings.
    pub field: String,
    pub findings: Vec<Diagnostic>,
}

/// One part of a chain; the span covers the chain up to and including this part.
#[derive(Clone, Debug)]
enum Link {
    Name(Arc<str>, Span),
    Index(i64, Span),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Template,
    Path,
}

impl<'a> Binder<'a> {
    pub fn new(inventory: &'a Inventory, loops: &'a [Loop], field: String) -> Self {
        Self { inventory, loops, field, findings: Vec::new() }
    }

    /// Limits the number of messages for a field full of mistakes.
    pub fn note(&mut self, finding: Diagnostic) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding.field(&*self.field));
        }
    }

    pub fn template(&mut self, template: Template) -> Template {
        let Ok(bound) = template.map_expressions::<Infallible>(&mut |expr| Ok(self.reference(expr)));
        bound
    }

    fn reference(&mut self, expr: Expr) -> Expr {
        match links(&expr) {
            Some(links) => self.chain(&links, Surface::Template),
            None => expr,
        }
    }

    /// The static beginning of a path becomes plain reads; the rest is searched in their result.
    pub fn path(&mut self, query: &Query, locate: Locate<'_>) -> Expr {
        let span = locate(0..query.text().len());
        let leading = query.leading();
        let links: Vec<Link> = leading
            .iter()
            .map(|(part, range)| match part {
                PathPart::Name(name) => Link::Name(name.clone(), locate(range.clone())),
                PathPart::Index(index) => Link::Index(*index, locate(range.clone())),
            })
            .collect();
        if query.looks_back() || !matches!(links.first(), Some(Link::Name(..))) {
            return self.everywhere(query, links.first(), span);
        }
        let of = self.chain(&links, Surface::Path);
        let end = leading.last().map_or(1, |(_, range)| range.end);
        match query.after(end) {
            Some(path) if of.node != Node::Literal(Value::Null) => {
                Expr::new(Node::Query { of: Box::new(of), path }, span)
            }
            Some(_) | None => Expr { span, ..of },
        }
    }

    /// A path that cannot be narrowed may look anywhere, so it needs the whole context.
    fn everywhere(&mut self, query: &Query, first: Option<&Link>, span: Span) -> Expr {
        let mut known: IndexMap<Arc<str>, Expr> = IndexMap::new();
        known.insert("inputs".into(), read(Namespace::Inputs, span));
        known.insert("steps".into(), read(Namespace::Steps, span));
        for place in 0..self.loops.len() {
            known.insert(self.loops[place].name.clone(), self.element(place, span));
        }
        let item = if self.loops.is_empty() { null(span) } else { read(Namespace::Item, span) };
        known.insert("item".into(), item);
        if let Some(first @ Link::Name(name, _)) = first
            && !known.contains_key(name)
        {
            let found = self.chain(std::slice::from_ref(first), Surface::Path);
            known.insert(name.clone(), found);
        }
        let name = |key: Arc<str>| Expr::new(Node::Literal(Value::Text(key)), span);
        let args = known.into_iter().flat_map(|(key, value)| [name(key), value]).collect();
        let of = Expr::new(Node::Call { function: Function::Object, args }, span);
        match query.after(1) {
            Some(path) => Expr::new(Node::Query { of: Box::new(of), path }, span),
            None => of,
        }
    }

    /// A chain that starts with a name.
    fn chain(&mut self, links: &[Link], surface: Surface) -> Expr {
        let Some((Link::Name(name, span), rest)) = links.split_first() else { return null(Span::default()) };
        let (name, span) = (name.clone(), *span);
        if let Some(place) = self.binding(&name, surface) {
            self.note_shadowed(&name, place, span);
            return follow(self.element(place, span), rest);
        }
        match &*name {
            "inputs" => follow(read(Namespace::Inputs, span), rest),
            "steps" => self.steps(span, rest),
            "item" => follow(self.item(span), rest),
            _ => match surface {
                Surface::Template => self.bare(&name, span, rest),
                Surface::Path => self.docs_style(&name, span, rest),
            },
        }
    }

    /// The innermost loop with this name. In a path, `item` is the item of the innermost loop, whatever its name.
    fn binding(&self, name: &str, surface: Surface) -> Option<usize> {
        match surface {
            Surface::Path if name == "item" => self.loops.len().checked_sub(1),
            Surface::Template | Surface::Path => self.loops.iter().rposition(|each| &*each.name == name),
        }
    }

    fn note_shadowed(&mut self, name: &str, place: usize, span: Span) {
        if name != "item" || place + 1 == self.loops.len() {
            return;
        }
        let inner = self.loops.last().map_or("item", |each| &*each.name);
        let message = format!(
            "`item` is the item of an outer loop here, because the inner loop names its item `{inner}`"
        );
        let help = format!(
            "write `{{{{{inner}}}}}` for the inner item, or name the item of the outer loop with `as`"
        );
        let finding = Diagnostic::warning(Code::ShadowedBinding, message).at(span).reference(name);
        self.note(finding.help(help).suggest(Some(inner)));
    }

    /// The item of one of the enclosing loops.
    fn element(&self, place: usize, span: Span) -> Expr {
        match &self.loops[place].step {
            _ if place + 1 == self.loops.len() => read(Namespace::Item, span),
            Some(id) => member(member(read(Namespace::Loops, span), id, span), "item", span),
            None => null(span),
        }
    }

    fn item(&mut self, span: Span) -> Expr {
        if !self.loops.is_empty() {
            return read(Namespace::Item, span);
        }
        let message = "`item` only has a value inside a `foreach`, so this is null";
        let help = "move this into the steps of a `foreach`, or read an input or the output of a step";
        self.note(Diagnostic::warning(Code::NotAvailableHere, message).at(span).reference("item").help(help));
        null(span)
    }

    /// `steps.ID.output…`, `steps.ID.file_refs…`, or the whole record.
    fn steps(&mut self, span: Span, links: &[Link]) -> Expr {
        let all = read(Namespace::Steps, span);
        let Some((Link::Name(id, id_span), facets)) = links.split_first() else { return follow(all, links) };
        let step = member(all, id, *id_span);
        match facets.split_first() {
            Some((Link::Name(facet, at), rest)) if &**facet == "output" => {
                follow(member(step, "outputs", *at), rest)
            }
            Some((Link::Name(facet, at), _)) if &**facet != "file_refs" => {
                self.no_facet(id, facet, *at);
                null(span)
            }
            Some(_) | None => follow(step, facets),
        }
    }

    fn no_facet(&mut self, id: &str, facet: &str, span: Span) {
        let message = format!("a step has no `{facet}`, so this is null");
        let finding = Diagnostic::warning(Code::UnknownField, message).at(span).reference(facet);
        let help = format!("read `steps.{id}.output` or `steps.{id}.file_refs`");
        self.note(finding.suggest(nearest(facet, ["output", "file_refs"])).help(help));
    }

    /// A name that is not one of the first words: an input, the output of a step, or the environment.
    fn bare(&mut self, name: &Arc<str>, span: Span, rest: &[Link]) -> Expr {
        if self.inventory.parameters.contains_key(name) {
            self.hint(name, &format!("inputs.{name}"), span);
            return follow(member(read(Namespace::Inputs, span), name, span), rest);
        }
        if self.inventory.has_step(name) {
            self.hint(name, &format!("steps.{name}.output"), span);
            return follow(self.output(name, span), rest);
        }
        if &**name == "env" {
            let message = "`env` is the environment of the machine, limited to the variables that its operator \
                allows";
            let help = "pass the value as an input if possible";
            self.note(Diagnostic::hint(Code::BareName, message).at(span).reference("env").help(help));
            return follow(read(Namespace::Host, span), rest);
        }
        let message = format!("unknown name `{name}`");
        let failing = fail(&message, span);
        let finding = Diagnostic::warning(Code::UnknownNamespace, message).at(span).reference(&**name);
        let help = "start with `inputs`, `steps`, `item` or the name of an enclosing loop";
        self.note(finding.suggest(self.nearest_word(name)).help(help));
        failing
    }

    fn hint(&mut self, name: &str, full: &str, span: Span) {
        let finding = Diagnostic::hint(Code::BareName, format!("`{name}` is read as `{full}`")).at(span);
        let help = format!("write it out: `{full}`");
        self.note(finding.reference(name).help(help).suggest(Some(full)));
    }

    fn output(&self, id: &str, span: Span) -> Expr {
        member(member(read(Namespace::Steps, span), id, span), "outputs", span)
    }

    /// `$.list.files` for `$.steps.list.output.files`, as in the documentation of the original program.
    fn docs_style(&mut self, name: &Arc<str>, span: Span, rest: &[Link]) -> Expr {
        if self.inventory.has_step(name) {
            let message =
                format!("`$.{name}` is read as `$.steps.{name}.output`; other programs find nothing there");
            let finding = Diagnostic::warning(Code::DocsStylePath, message).at(span).reference(&**name);
            let full = format!("$.steps.{name}.output");
            let help = format!("write it out: `{full}`");
            self.note(finding.help(help).suggest(Some(full)));
            return follow(self.output(name, span), rest);
        }
        let is_input = self.inventory.parameters.contains_key(name);
        let suggest = if is_input { Some(format!("inputs.{name}")) } else { self.nearest_word(name) };
        let suggest = suggest.map(|word| format!("$.{word}"));
        let finding = Diagnostic::warning(
            Code::UnknownNamespace,
            format!("`$.{name}` matches nothing, so this is null"),
        );
        let help = "start with `$.inputs`, `$.steps`, `$.item` or the name of an enclosing loop";
        self.note(finding.at(span).reference(&**name).suggest(suggest).help(help));
        null(span)
    }

    fn nearest_word(&self, name: &str) -> Option<String> {
        let loops = self.loops.iter().map(|each| &*each.name);
        let inputs = self.inventory.parameters.keys().map(|name| &**name);
        let words = ["inputs", "steps", "item", "env"].into_iter().chain(loops).chain(inputs);
        nearest(name, words.chain(self.inventory.step_ids())).map(str::to_owned)
    }
}

/// The parts of a chain over the whole context; `None` for any other expression.
fn links(expr: &Expr) -> Option<Vec<Link>> {
    let mut links = Vec::new();
    let mut here = expr;
    loop {
        here = match &here.node {
            Node::Member { of, name } => {
                links.push(Link::Name(name.clone(), here.span));
                of
            }
            Node::Index { of, at } => {
                let Node::Literal(Value::Int(index)) = at.node else { return None };
                links.push(Link::Index(index, here.span));
                of
            }
            Node::Read(Read::Namespace(Namespace::Root)) => {
                links.reverse();
                return Some(links);
            }
            Node::Literal(_)
            | Node::List(_)
            | Node::Read(_)
            | Node::Call { .. }
            | Node::Query { .. }
            | Node::Not(_)
            | Node::Binary { .. }
            | Node::Choice { .. } => return None,
        };
    }
}

fn read(namespace: Namespace, span: Span) -> Expr {
    Expr::new(Node::Read(Read::Namespace(namespace)), span)
}

fn null(span: Span) -> Expr {
    Expr::new(Node::Literal(Value::Null), span)
}

fn member(of: Expr, name: &str, span: Span) -> Expr {
    Expr::new(Node::Member { of: Box::new(of), name: name.into() }, span)
}

fn follow(from: Expr, links: &[Link]) -> Expr {
    links.iter().fold(from, |of, link| match link {
        Link::Name(name, span) => member(of, name, *span),
        Link::Index(index, span) => {
            let at = Box::new(Expr::new(Node::Literal(Value::Int(*index)), *span));
            Expr::new(Node::Index { of: Box::new(of), at }, *span)
        }
    })
}
