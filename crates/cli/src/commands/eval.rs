//! `windlass eval`: one expression against values from a file.

use crate::answer::{Answer, Status};
use crate::args::{self, Dialect};
use crate::load;
use crate::show::{Screens, diagnostics};
use std::ops::Range;
use windlass_dialects::swdl::expr::{namespace_word, parse_expression, parse_template};
use windlass_dialects::{dagnats, dcc, speckit};
use windlass_ir::expr::{
    EvalError, Expr, Limits, Namespace, Node, Read, Scope, Semantics, Template, holds, render,
};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic, Severity, Source, SourceId, Sources, Span, Value};

/// What a context may hold; everything else in it is probably a slip.
const CONTEXT_KEYS: [&str; 16] = [
    "parameters",
    "stages",
    "env",
    "run",
    "workflow",
    "context",
    "item",
    "index",
    "loops",
    "host",
    "failure",
    "undo",
    "class",
    "exit_code",
    "message",
    "attempt",
];

pub fn run(args: &args::Eval, screens: &Screens) -> Answer {
    let values = match args.context.as_deref().map(load::object).transpose() {
        Ok(values) => values.unwrap_or(Value::Null),
        Err(refusal) => return refusal.answer(&screens.stderr),
    };
    let mut sources = Sources::default();
    let id = sources.add(Source::new("expression", args.expression.as_str()));
    let mut trial = Trial { args, id, values, findings: Vec::new() };
    let value = trial.value();
    let stderr = diagnostics::render(&trial.findings, &sources, None, &screens.stderr);
    match value.and_then(|value| value.to_json_text()) {
        Some(json) => Answer { stdout: json + "\n", stderr, status: Status::Done },
        None => Answer { stderr: stderr + diagnostics::PAGES, ..Answer::new(Status::Failed) },
    }
}

/// One expression under trial.
struct Trial<'a> {
    args: &'a args::Eval,
    id: SourceId,
    /// What the expression can read: an object, or null when no file was given.
    values: Value,
    findings: Vec<Diagnostic>,
}

impl Trial<'_> {
    fn value(&mut self) -> Option<Value> {
        let template = self.parse()?;
        if self.args.strict {
            self.findings.iter_mut().filter(|found| found.severity == Severity::Warning).for_each(harden);
        }
        if self.findings.iter().any(Diagnostic::is_error) {
            return None;
        }
        let semantics = self.semantics();
        let value = self.render(&template, &semantics).and_then(|value| match self.args.condition {
            true => holds(&value, &semantics).map(Value::Bool),
            false => Ok(value),
        });
        value.map_err(|error| self.findings.push(error.into_diagnostic())).ok()
    }

    fn semantics(&self) -> Semantics {
        match self.args.dialect {
            Dialect::Swdl => Semantics::HOUSE,
            Dialect::Speckit => Semantics::SPECKIT,
            Dialect::Dagnats => Semantics::DAGNATS,
            Dialect::Dcc => Semantics::DCC,
        }
    }

    fn render(&self, template: &Template, semantics: &Semantics) -> Result<Value, EvalError> {
        let limits = Limits::default();
        match self.args.dialect {
            Dialect::Swdl => render(template, &Context { values: &self.values }, semantics, &limits),
            Dialect::Speckit => render(template, &speckit::expr::scope(&self.values), semantics, &limits),
            Dialect::Dagnats => render(template, &dagnats::scope(&self.values), semantics, &limits),
            Dialect::Dcc => render(template, &dcc::scope(&self.values), semantics, &limits),
        }
    }

    /// What was written, with findings about it kept.
    fn parse(&mut self) -> Option<Template> {
        let text = self.args.expression.as_str();
        let id = self.id;
        let locate = move |range: Range<usize>| Span::new(id, range.start, range.end);
        let (template, found) = match self.args.dialect {
            Dialect::Swdl => self.parse_swdl(&locate),
            Dialect::Speckit if self.args.condition => {
                let (template, found) = speckit::expr::parse_any_condition(text, &locate);
                (Some(template), found)
            }
            Dialect::Speckit => {
                let (template, found) = speckit::expr::parse_template(text, &locate);
                (Some(template), found)
            }
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
                (Some(dcc::template::against(template, &self.values)), found)
            }
        };
        self.findings.extend(found);
        template
    }

    fn parse_swdl(&mut self, locate: &dyn Fn(Range<usize>) -> Span) -> (Option<Template>, Vec<Diagnostic>) {
        self.findings.extend(unused(&self.values));
        let text = self.args.expression.as_str();
        let (template, mut found) = if text.contains("${{") {
            let (template, found) = parse_template(text, locate);
            (Some(template), found)
        } else {
            as_template(parse_expression(text, locate))
        };
        found.extend(template.iter().flat_map(|template| subtractions(template, &self.values)));
        (template, found)
    }
}

fn as_template(parsed: Result<Expr, Vec<Diagnostic>>) -> (Option<Template>, Vec<Diagnostic>) {
    match parsed {
        Ok(expr) => (Some(Template::Expression(expr)), Vec::new()),
        Err(found) => (None, found),
    }
}

fn harden(finding: &mut Diagnostic) {
    finding.severity = Severity::Error;
}

/// Words in the context that no expression can read.
fn unused(values: &Value) -> Vec<Diagnostic> {
    let Value::Map(map) = values else { return Vec::new() };
    map.keys().filter(|key| !CONTEXT_KEYS.contains(&&***key)).map(|key| unused_word(key)).collect()
}

fn unused_word(key: &str) -> Diagnostic {
    let finding = Diagnostic::warning(
        Code::UnknownNamespace,
        format!("the context has `{key}`, which no expression can read"),
    );
    let finding = finding.reference(key).suggest(nearest(key, CONTEXT_KEYS));
    if finding.help.is_empty() {
        finding.help(format!("expressions read {}", CONTEXT_KEYS[..8].join(", ")))
    } else {
        finding
    }
}

/// What is not in the context is null. But a hyphen belongs to a name, so `parameters.limit-1` reads a parameter that
/// nobody has; when there is a `limit`, its author wanted to subtract.
fn subtractions(template: &Template, values: &Value) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut look = |expr: &Expr| match &expr.node {
        Node::Member { of, name } if matches!(of.node, Node::Read(Read::Namespace(Namespace::Inputs))) => {
            found.extend(subtraction(values, name, expr.span));
        }
        _ => {}
    };
    template.expressions().into_iter().for_each(|expr| expr.walk(&mut look));
    found
}

fn subtraction(values: &Value, name: &str, span: Span) -> Option<Diagnostic> {
    let known = values.get(namespace_word(Namespace::Inputs))?;
    let (before, _) = name.split_once('-')?;
    if known.get(name).is_some() || known.get(before).is_none() {
        return None;
    }
    let finding = Diagnostic::error(Code::UnknownParameter, format!("there is no parameter `{name}`"));
    let help = "a hyphen belongs to the name, and there is no subtraction";
    Some(finding.at(span).reference(name).suggest(Some(before)).help(help))
}

/// The values of a swdl expression.
struct Context<'a> {
    values: &'a Value,
}

impl Scope for Context<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        let namespace = match read {
            Read::Namespace(namespace) => namespace,
            // Only lowering writes these, and nothing is lowered here.
            Read::StepOutputs(_)
            | Read::StepStatus(_)
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_) => return Ok(Value::Null),
        };
        let word = namespace_word(namespace);
        let given = self.values.get(word).cloned();
        match namespace {
            Namespace::Inputs
            | Namespace::Steps
            | Namespace::Context
            | Namespace::Env
            | Namespace::Run
            | Namespace::Workflow
            | Namespace::Item
            | Namespace::Index
            | Namespace::Loops
            | Namespace::Host
            | Namespace::Failure
            | Namespace::Undo
            | Namespace::FanIn => Ok(given.unwrap_or(Value::Null)),
            Namespace::Root => Ok(self.values.clone()),
            Namespace::Class | Namespace::ExitCode | Namespace::Message | Namespace::Attempt => given
                .ok_or_else(|| {
                    let cause = format!("`{word}` is there only in a retry condition");
                    EvalError::new(
                        Code::NotAvailableHere,
                        cause,
                        format!("put \"{word}\" into the context to try one"),
                    )
                }),
            Namespace::Secrets => {
                let cause = "a secret has no value here: only what runs a stage can resolve it";
                Err(EvalError::new(Code::NotAvailableHere, cause, "leave it out of the expression"))
            }
        }
    }
}
