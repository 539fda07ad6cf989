//! Ways to read a mapping that only swdl needs: durations, and values with expressions.

use super::duration;
use super::expr::{parse_condition, parse_template};
pub use crate::table::{Context, Place, StepOf, Table, is_null, wrong_shape};
use crate::text::{Entry, Kind, Locator, Node, Scalar};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Node as ExprNode, Template};
use windlass_ir::policy::Bindings;
use windlass_ir::workflow::{Bound, Condition};
use windlass_ir::{Code, Diagnostic, Duration, Span, Value};

impl Context<'_> {
    /// Other dialects allow longer and shorter durations.
    pub fn parse_length(&self, text: &str) -> Option<Duration> {
        if self.foreign { Duration::parse_any(text) } else { Duration::parse(text) }
    }
}

impl Table<'_> {
    /// A duration above zero.
    pub fn duration(&self, key: &'static str) -> Option<Duration> {
        self.length(key, self.context.foreign)
    }

    /// A duration that may be zero: a pause.
    pub fn pause(&self, key: &'static str) -> Option<Duration> {
        self.length(key, true)
    }

    /// A timeout: a duration, `none`, or the default.
    pub fn timeout(&self, key: &'static str, default: Option<Duration>) -> Option<Duration> {
        match self.node(key) {
            None => default,
            Some(Node { kind: Kind::Scalar(scalar), .. }) if &*scalar.text == "none" => None,
            Some(_) => self.duration(key),
        }
    }

    fn length(&self, key: &'static str, zero: bool) -> Option<Duration> {
        let (scalar, span) = self.scalar(key, "a duration")?;
        let message = match self.context.parse_length(&scalar.text) {
            Some(Duration::ZERO) if !zero => "the duration must be greater than zero".to_owned(),
            Some(length) => return Some(length),
            None => format!("invalid duration `{}`", scalar.text),
        };
        let finding = self.error(Code::BadDuration, key, span, message).reference(&*scalar.text);
        self.report(finding.suggest(duration::suggest(&scalar.text)).help(duration::HELP));
        None
    }

    /// A value of any shape that may contain expressions.
    pub fn bound(&self, key: &'static str) -> Option<Bound> {
        self.node(key).map(|node| self.bound_node(key, node))
    }

    pub fn bound_node(&self, key: &str, node: &Node) -> Bound {
        let field: Arc<str> = self.place.field(key).into();
        let template = self.template(node, &field);
        Bound { template, field, span: node.span }
    }

    /// Text that may contain expressions; other types are reported.
    pub fn bound_text(&self, key: &'static str) -> Option<Bound> {
        let (scalar, span) = self.scalar(key, "text")?;
        let field: Arc<str> = self.place.field(key).into();
        let template = self
            .text_template(scalar, span, &field)
            .unwrap_or_else(|| Template::Constant(Value::Text(scalar.text.clone())));
        Some(Bound { template, field, span })
    }

    fn template(&self, node: &Node, field: &Arc<str>) -> Template {
        match &node.kind {
            Kind::Scalar(scalar) => {
                let constant = || Template::Constant(scalar.to_value());
                self.text_template(scalar, node.span, field).unwrap_or_else(constant)
            }
            Kind::List(items) => constant_or(items.iter().map(|item| self.template(item, field)).collect()),
            Kind::Map(map) => {
                let entries = map
                    .entries
                    .iter()
                    .map(|entry| (entry.key.text.clone(), self.template(&entry.value, field)));
                constant_or_map(entries.collect())
            }
        }
    }

    /// The template of a text with expressions; `None` if it has none.
    fn text_template(&self, scalar: &Scalar, span: Span, field: &Arc<str>) -> Option<Template> {
        if !scalar.text.contains("${{") {
            return None;
        }
        let locator = Locator::of_scalar(scalar, span, self.context.sources.get(span.source));
        let (template, findings) = parse_template(&scalar.text, &|range| locator.span(range));
        self.report_expressions(findings, field);
        Some(template)
    }

    pub fn condition(&self, key: &'static str) -> Option<Condition> {
        let (scalar, span) = self.scalar(key, "an expression")?;
        let field: Arc<str> = self.place.field(key).into();
        let locator = Locator::of_scalar(scalar, span, self.context.sources.get(span.source));
        match parse_condition(&scalar.text, &|range| locator.span(range)) {
            Ok(expr) => Some(Condition { expr, field }),
            Err(findings) => {
                self.report_expressions(findings, &field);
                // Reading continues, so that other problems are reported as well.
                Some(Condition { expr: Expr::new(ExprNode::Literal(Value::Bool(true)), span), field })
            }
        }
    }

    fn report_expressions(&self, findings: Vec<Diagnostic>, field: &Arc<str>) {
        for finding in findings {
            self.report(finding.step_of(&self.place).field(&**field));
        }
    }

    /// A mapping of names to values that may contain expressions.
    pub fn bindings(&self, key: &'static str) -> Bindings {
        self.bindings_named(key, |_| true, "")
    }

    /// The same, with a rule for the names.
    pub fn bindings_named(&self, key: &'static str, is_name: impl Fn(&str) -> bool, rule: &str) -> Bindings {
        let Some(table) = self.table(key) else { return IndexMap::new() };
        let bad = |entry: &&Entry| !self.context.foreign && !is_name(&entry.key.text);
        for entry in table.map.entries.iter().filter(bad) {
            let message = format!("invalid name `{}`", entry.key.text);
            let finding = table.error(Code::BadName, &entry.key.text, entry.key.span, message);
            self.report(finding.reference(&*entry.key.text).help(rule));
        }
        let entries = table.map.entries.iter();
        entries
            .map(|entry| (entry.key.text.clone(), table.bound_node(&entry.key.text, &entry.value)))
            .collect()
    }
}

fn constant(template: &Template) -> Option<Value> {
    match template {
        Template::Constant(value) => Some(value.clone()),
        Template::Expression(_) | Template::Text(_) | Template::List(_) | Template::Map(_) => None,
    }
}

/// A list without expressions is plain data.
fn constant_or(items: Vec<Template>) -> Template {
    match items.iter().map(constant).collect::<Option<Vec<Value>>>() {
        Some(values) => Template::Constant(Value::list(values)),
        None => Template::List(items),
    }
}

fn constant_or_map(entries: IndexMap<Arc<str>, Template>) -> Template {
    match entries.iter().map(|(key, item)| Some((key.clone(), constant(item)?))).collect::<Option<Vec<_>>>() {
        Some(values) => Template::Constant(Value::map(values)),
        None => Template::Map(entries),
    }
}
