//! `windlass eval`: one expression against values from a file.

use crate::answer::{Answer, Status};
use crate::args::{self, Dialect};
use crate::load::{self, Refusal};
use crate::show::{Screen, Screens, diagnostics};
use std::ops::Range;
use std::path::Path;
use windlass_dialects::swdl::expr::{namespace_word, parse_expression, parse_template};
use windlass_ir::expr::{EvalError, Expr, Limits, Namespace, Node, Read, Scope, Semantics, Template, render};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic, Source, SourceId, Sources, Span, Value};

/// What a context may hold; everything else in it is probably a slip.
const CONTEXT_KEYS: [&str; 12] = [
    "parameters",
    "stages",
    "env",
    "run",
    "workflow",
    "context",
    "item",
    "index",
    "class",
    "exit_code",
    "message",
    "attempt",
];

pub fn run(args: &args::Eval, screens: &Screens) -> Answer {
    match context(args.context.as_deref()) {
        Ok(context) => match args.dialect {
            Dialect::Swdl | Dialect::Speckit | Dialect::Dagnats | Dialect::Dcc => {
                swdl(&args.expression, &context, &screens.stderr)
            }
        },
        Err(refusal) => refusal.answer(&screens.stderr),
    }
}

fn context(file: Option<&Path>) -> Result<Context, Refusal> {
    let Some(path) = file else { return Ok(Context { values: Value::Null, findings: Vec::new() }) };
    let values = load::object(path)?;
    let findings = match &values {
        Value::Map(map) => {
            map.keys().filter(|key| !CONTEXT_KEYS.contains(&&***key)).map(|key| unused(key)).collect()
        }
        _ => Vec::new(),
    };
    Ok(Context { values, findings })
}

fn unused(key: &str) -> Diagnostic {
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

fn swdl(text: &str, context: &Context, screen: &Screen) -> Answer {
    let mut sources = Sources::default();
    let id = sources.add(Source::new("expression", text));
    let mut findings = context.findings.clone();
    let value = parse(text, id, &mut findings).and_then(|template| {
        findings.extend(subtractions(&template, context));
        if findings.iter().any(Diagnostic::is_error) {
            return None;
        }
        let value = render(&template, context, &Semantics::HOUSE, &Limits::default());
        value.map_err(|error| findings.push(error.into_diagnostic())).ok()
    });
    let stderr = diagnostics::render(&findings, &sources, None, screen);
    match value.and_then(|value| value.to_json_text()) {
        Some(json) => Answer { stdout: json + "\n", stderr, status: Status::Done },
        None => Answer { stderr: stderr + diagnostics::PAGES, ..Answer::new(Status::Failed) },
    }
}

fn parse(text: &str, id: SourceId, findings: &mut Vec<Diagnostic>) -> Option<Template> {
    let locate = |range: Range<usize>| Span::new(id, range.start, range.end);
    if text.contains("${{") {
        let (template, found) = parse_template(text, &locate);
        findings.extend(found);
        return Some(template);
    }
    parse_expression(text, &locate).map(Template::Expression).map_err(|found| findings.extend(found)).ok()
}

/// What is not in the context is null. But a hyphen belongs to a name, so `parameters.limit-1` reads a parameter that
/// nobody has; when there is a `limit`, its author wanted to subtract.
fn subtractions(template: &Template, context: &Context) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut look = |expr: &Expr| match &expr.node {
        Node::Member { of, name } if matches!(of.node, Node::Read(Read::Namespace(Namespace::Inputs))) => {
            found.extend(context.subtraction(name, expr.span));
        }
        _ => {}
    };
    template.expressions().into_iter().for_each(|expr| expr.walk(&mut look));
    found
}

struct Context {
    /// An object, or null when no file was given.
    values: Value,
    /// What is odd about the file.
    findings: Vec<Diagnostic>,
}

impl Context {
    fn subtraction(&self, name: &str, span: Span) -> Option<Diagnostic> {
        let known = self.values.get(namespace_word(Namespace::Inputs))?;
        let (before, _) = name.split_once('-')?;
        if known.get(name).is_some() || known.get(before).is_none() {
            return None;
        }
        let finding = Diagnostic::error(Code::UnknownParameter, format!("there is no parameter `{name}`"));
        let help = "a hyphen belongs to the name, and there is no subtraction";
        Some(finding.at(span).reference(name).suggest(Some(before)).help(help))
    }
}

impl Scope for Context {
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
