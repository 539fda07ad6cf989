//! Evaluates a single expression of any dialect against the values of a context.

use crate::{Dialect, dagnats, dcc, speckit, swdl};
use std::ops::Range;
use windlass_ir::expr::{EvalError, Expr, Limits, Semantics, Template, holds, render};
use windlass_ir::{Diagnostic, Severity, Source, SourceId, Sources, Span, Value};

/// The name of the expression in messages.
const NAME: &str = "expression";

/// An expression and how to evaluate it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub dialect: Dialect,
    pub expression: &'a str,
    /// The values that the expression can read: an object, or null for none.
    pub context: &'a Value,
    /// Whether the result is true or false, as in a condition.
    pub condition: bool,
    /// Whether warnings are errors.
    pub strict: bool,
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub sources: Sources,
    /// Present if and only if there are no errors.
    pub value: Option<Value>,
    pub diagnostics: Vec<Diagnostic>,
}

pub fn evaluate(question: &Question<'_>) -> Evaluated {
    let mut sources = Sources::default();
    let id = sources.add(Source::new(NAME, question.expression));
    let (template, mut diagnostics) = question.parse(id);
    if question.strict {
        let warnings = diagnostics.iter_mut().filter(|finding| finding.severity == Severity::Warning);
        warnings.for_each(|finding| finding.severity = Severity::Error);
    }
    let value = match template.filter(|_| !diagnostics.iter().any(Diagnostic::is_error)) {
        None => None,
        Some(template) => {
            question.value(&template).map_err(|error| diagnostics.push(error.into_diagnostic())).ok()
        }
    };
    Evaluated { sources, value, diagnostics }
}

impl Question<'_> {
    fn value(&self, template: &Template) -> Result<Value, EvalError> {
        let semantics = match self.dialect {
            Dialect::Swdl => Semantics::HOUSE,
            Dialect::Speckit => Semantics::SPECKIT,
            Dialect::Dagnats => Semantics::DAGNATS,
            Dialect::Dcc => Semantics::DCC,
        };
        let limits = Limits::default();
        let value = match self.dialect {
            Dialect::Swdl => render(template, &swdl::scope(self.context), &semantics, &limits),
            Dialect::Speckit => render(template, &speckit::expr::scope(self.context), &semantics, &limits),
            Dialect::Dagnats => render(template, &dagnats::scope(self.context), &semantics, &limits),
            Dialect::Dcc => render(template, &dcc::scope(self.context), &semantics, &limits),
        }?;
        match self.condition {
            true => holds(&value, &semantics).map(Value::Bool),
            false => Ok(value),
        }
    }

    fn parse(&self, id: SourceId) -> (Option<Template>, Vec<Diagnostic>) {
        let text = self.expression;
        let locate = move |range: Range<usize>| Span::new(id, range.start, range.end);
        let whole = |(template, found): (Template, Vec<Diagnostic>)| (Some(template), found);
        match self.dialect {
            Dialect::Swdl => self.parse_swdl(&locate),
            Dialect::Speckit if self.condition => whole(speckit::expr::parse_any_condition(text, &locate)),
            Dialect::Speckit => whole(speckit::expr::parse_template(text, &locate)),
            Dialect::Dagnats => {
                let (expr, found) = dagnats::parse_skip_if(text, &locate);
                (expr.map(Template::Expression), found)
            }
            Dialect::Dcc if text.trim_start().starts_with('$') => {
                let before = text.len() - text.trim_start().len();
                let shifted = move |range: Range<usize>| locate(range.start + before..range.end + before);
                as_template(dcc::path::parse_path(text.trim(), &shifted))
            }
            Dialect::Dcc => {
                let (template, found) = dcc::template::parse_template(text, &locate);
                (Some(dcc::template::against(template, self.context)), found)
            }
        }
    }

    fn parse_swdl(&self, locate: &dyn Fn(Range<usize>) -> Span) -> (Option<Template>, Vec<Diagnostic>) {
        let mut diagnostics = swdl::unused(self.context);
        let (template, found) = match self.expression.contains("${{") {
            true => {
                let (template, found) = swdl::expr::parse_template(self.expression, locate);
                (Some(template), found)
            }
            false => as_template(swdl::expr::parse_expression(self.expression, locate)),
        };
        diagnostics.extend(found);
        diagnostics.extend(template.iter().flat_map(|template| swdl::subtractions(template, self.context)));
        (template, diagnostics)
    }
}

fn as_template(parsed: Result<Expr, Vec<Diagnostic>>) -> (Option<Template>, Vec<Diagnostic>) {
    match parsed {
        Ok(expr) => (Some(Template::Expression(expr)), Vec::new()),
        Err(found) => (None, found),
    }
}
