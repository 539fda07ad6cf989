//! Translates the names in an expression to the shared vocabulary: `steps.x.output` becomes the outputs of a step,
//! `context` the run and the workflow, and `fan_in` the results that it stands for.

use std::cell::Cell;
use std::convert::Infallible;
use windlass_ir::expr::{Expr, Function, Namespace, Node, Read, Template};
use windlass_ir::{Code, Diagnostic, Span, Value};

/// How many copies of a value a file may request by writing it once.
#[derive(Debug)]
pub struct Budget(Cell<usize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(200_000))
    }
}

impl Budget {
    /// False once the budget is used up.
    pub fn spend(&self, count: usize) -> bool {
        let left = self.0.get().checked_sub(count);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// Binds the expressions of one field. `results` are the results that a fan-in collects; they exist nowhere else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Binder<'a> {
    pub results: Option<(&'a Expr, &'a Budget)>,
}

impl Binder<'_> {
    pub fn template(&self, template: Template, findings: &mut Vec<Diagnostic>) -> Template {
        let bound = template.map_expressions::<Infallible>(&mut |expr| Ok(self.expr(expr, findings)));
        bound.unwrap_or_else(|never| match never {})
    }

    /// First whole paths, then the remaining first words.
    pub fn expr(&self, expr: Expr, findings: &mut Vec<Diagnostic>) -> Expr {
        let paths = expr.try_map::<Infallible>(&mut |part| Ok(self.path(part, findings)));
        let paths = paths.unwrap_or_else(|never| match never {});
        let words = paths.try_map::<Infallible>(&mut |part| Ok(self.word(part, findings)));
        words.unwrap_or_else(|never| match never {})
    }

    fn path(&self, part: Expr, findings: &mut Vec<Diagnostic>) -> Expr {
        let span = part.span;
        let Node::Member { of, name } = part.node else { return part };
        match (&of.node, &*name) {
            (Node::Read(Read::Namespace(Namespace::Context)), "run_id") => member(Namespace::Run, "id", span),
            (Node::Read(Read::Namespace(Namespace::Context)), "workflow_dir") => {
                member(Namespace::Workflow, "dir", span)
            }
            (Node::Read(Read::Namespace(Namespace::Context)), _) => {
                findings.push(no_such_context(&name, span));
                null(span)
            }
            (Node::Read(Read::Namespace(Namespace::FanIn)), "results") => self.results(span, findings),
            (Node::Member { of: steps, .. }, "output") if is_steps(steps) => {
                Expr::new(Node::Member { of, name: "outputs".into() }, span)
            }
            // In the shared vocabulary this would be the results, which have another name in Spec Kit.
            (Node::Member { of: steps, .. }, "outputs") if is_steps(steps) => {
                findings.push(outputs_for_output(span));
                null(span)
            }
            (Node::Member { of: steps, .. }, field) if is_steps(steps) && !RECORD.contains(&field) => {
                findings.push(no_such_field(field, span));
                null(span)
            }
            (_, _) => Expr::new(Node::Member { of, name }, span),
        }
    }

    fn word(&self, part: Expr, findings: &mut Vec<Diagnostic>) -> Expr {
        let span = part.span;
        let Node::Read(Read::Namespace(namespace)) = part.node else { return part };
        if namespace == Namespace::FanIn {
            let results = self.results(span, findings);
            return if self.results.is_some() { object([("results", results)], span) } else { results };
        }
        if namespace == Namespace::Context {
            let run = member(Namespace::Run, "id", span);
            let folder = member(Namespace::Workflow, "dir", span);
            return object([("run_id", run), ("workflow_dir", folder)], span);
        }
        part
    }

    fn results(&self, span: Span, findings: &mut Vec<Diagnostic>) -> Expr {
        let Some((results, budget)) = self.results else {
            let message = "`fan_in` has a value only in the `output` of a fan-in, so this is null";
            let help = "read `steps.ID.output.results` of the fan-in instead";
            findings.push(Diagnostic::warning(Code::NotAvailableHere, message).at(span).help(help));
            return null(span);
        };
        if budget.spend(results.children().len()) {
            return Expr::new(results.node.clone(), span);
        }
        let message = "`fan_in` is read too often for the number of steps in `wait_for`";
        let help = "wait for fewer steps, or read `steps.ID.output` of the ones you need";
        findings.push(Diagnostic::error(Code::ExpressionLimit, message).at(span).help(help));
        null(span)
    }
}

fn is_steps(expr: &Expr) -> bool {
    expr.node == Node::Read(Read::Namespace(Namespace::Steps))
}

fn no_such_context(name: &str, span: Span) -> Diagnostic {
    const KNOWN: [&str; 2] = ["run_id", "workflow_dir"];
    Diagnostic::warning(Code::UnknownField, format!("`context` has no field `{name}`, so this is null"))
        .at(span)
        .reference(name)
        .suggest(windlass_ir::suggest::nearest(name, KNOWN))
        .help("use run_id or workflow_dir")
}

/// The fields in the record of a step.
const RECORD: [&str; 10] = [
    "output",
    "status",
    "error",
    "type",
    "input",
    "integration",
    "model",
    "options",
    "integration_args",
    "integration_options",
];

fn no_such_field(field: &str, span: Span) -> Diagnostic {
    let near = windlass_ir::suggest::nearest(field, RECORD).map(str::to_owned);
    Diagnostic::warning(Code::UnknownField, format!("a step has no field `{field}`, so this is null"))
        .at(span)
        .reference(field)
        .suggest(Some(near.unwrap_or_else(|| format!("output.{field}"))))
        .help("the results of a step are in `output`")
}

fn outputs_for_output(span: Span) -> Diagnostic {
    Diagnostic::warning(Code::UnknownField, "a step has no field `outputs`, so this is null")
        .at(span)
        .reference("outputs")
        .suggest(Some("output"))
}

pub fn null(span: Span) -> Expr {
    Expr::new(Node::Literal(Value::Null), span)
}

pub fn text(text: &str, span: Span) -> Expr {
    Expr::new(Node::Literal(Value::text(text)), span)
}

pub fn member(namespace: Namespace, name: &str, span: Span) -> Expr {
    let of = Box::new(Expr::new(Node::Read(Read::Namespace(namespace)), span));
    Expr::new(Node::Member { of, name: name.into() }, span)
}

/// `steps.ID.outputs`
pub fn outputs_of(id: &str, span: Span) -> Expr {
    let of = Box::new(member(Namespace::Steps, id, span));
    Expr::new(Node::Member { of, name: "outputs".into() }, span)
}

pub fn call<const N: usize>(function: Function, args: [Expr; N], span: Span) -> Expr {
    Expr::new(Node::Call { function, args: args.into() }, span)
}

pub fn object<const N: usize>(entries: [(&str, Expr); N], span: Span) -> Expr {
    let args = entries.into_iter().flat_map(|(key, value)| [text(key, span), value]).collect();
    Expr::new(Node::Call { function: Function::Object, args }, span)
}
