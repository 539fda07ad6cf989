//! The values that a standalone expression can read: a context of `parameters`, `stages` and so on, as an object.

use super::expr::namespace_word;
use windlass_ir::expr::{EvalError, Expr, Namespace, Node, Read, Scope, Template};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic, Span, Value};

/// The keys of a context; any other key is probably a typo.
const CONTEXT_KEYS: [&str; 17] = [
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
    "now",
];

/// The scope of a standalone expression.
pub fn scope(context: &Value) -> impl Scope {
    Whole { context }
}

struct Whole<'a> {
    context: &'a Value,
}

impl Scope for Whole<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        let namespace = match read {
            Read::Namespace(namespace) => namespace,
            // Only lowering writes these, and nothing is lowered here.
            Read::StepOutputs(_)
            | Read::StepStatus(_)
            | Read::StepOutcome(_)
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_) => return Ok(Value::Null),
            Read::Now => {
                let given = self.context.get("now").cloned();
                return given.ok_or_else(|| absent("`now()` has no value outside a run", "now"));
            }
        };
        let word = namespace_word(namespace);
        let given = self.context.get(word).cloned();
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
            Namespace::Root => Ok(self.context.clone()),
            Namespace::Class | Namespace::ExitCode | Namespace::Message | Namespace::Attempt => {
                given.ok_or_else(|| absent(&format!("`{word}` exists only in a retry condition"), word))
            }
            Namespace::Secrets => {
                let cause = "a secret has no value here: Windlass resolves secrets only for a running stage";
                Err(EvalError::new(Code::NotAvailableHere, cause, "remove it from the expression"))
            }
        }
    }
}

fn absent(cause: &str, key: &str) -> EvalError {
    EvalError::new(Code::NotAvailableHere, cause, format!("add \"{key}\" to the context to try one"))
}

/// Keys of the context that no expression can read.
pub fn unused(context: &Value) -> Vec<Diagnostic> {
    let Value::Map(map) = context else { return Vec::new() };
    map.keys().filter(|key| !CONTEXT_KEYS.contains(&&***key)).map(|key| unused_key(key)).collect()
}

fn unused_key(key: &str) -> Diagnostic {
    let message = format!("the context has `{key}`, which no expression can read");
    let finding = Diagnostic::warning(Code::UnknownNamespace, message);
    let finding = finding.reference(key).suggest(nearest(key, CONTEXT_KEYS));
    match finding.help.is_empty() {
        true => finding.help(format!("expressions read {}", CONTEXT_KEYS[..8].join(", "))),
        false => finding,
    }
}

/// A value that is not in the context is null. But a hyphen belongs to a name, so `parameters.limit-1` reads a parameter that
/// does not exist; if there is a `limit`, the author meant a subtraction.
pub fn subtractions(template: &Template, context: &Value) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut look = |expr: &Expr| match &expr.node {
        Node::Member { of, name } if matches!(of.node, Node::Read(Read::Namespace(Namespace::Inputs))) => {
            found.extend(subtraction(context, name, expr.span));
        }
        _ => {}
    };
    template.expressions().into_iter().for_each(|expr| expr.walk(&mut look));
    found
}

fn subtraction(context: &Value, name: &str, span: Span) -> Option<Diagnostic> {
    let known = context.get(namespace_word(Namespace::Inputs))?;
    let (before, _) = name.split_once('-')?;
    if known.get(name).is_some() || known.get(before).is_none() {
        return None;
    }
    let finding = Diagnostic::error(Code::UnknownParameter, format!("unknown parameter `{name}`"));
    let help = "a hyphen is part of the name; to subtract, write spaces on both sides";
    Some(finding.at(span).reference(name).suggest(Some(before)).help(help))
}
