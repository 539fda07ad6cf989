//! `skip_if`: one comparison with a field of a step's output. On a step it decides whether that step runs; on its own
//! it can be evaluated against given outputs.

use super::field::{demanded, ruled};
use super::flow;
use super::step::Draft;
use crate::table::{Context, Keys, Place, Table, is_null};
use crate::text::{self, Format, Limits};
use std::ops::Range;
use std::sync::Arc;
use windlass_ir::expr::{BinaryOp, EvalError, Expr, Namespace, Node, Read, Scope};
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::Condition;
use windlass_ir::{Code, Diagnostic, Source, Sources, Span, Spanned, Value};

const OPERATORS: [(&str, BinaryOp); 6] = [
    ("==", BinaryOp::Equal),
    ("!=", BinaryOp::NotEqual),
    ("<", BinaryOp::Less),
    (">", BinaryOp::Greater),
    ("<=", BinaryOp::LessOrEqual),
    (">=", BinaryOp::GreaterOrEqual),
];

/// A comparison as written.
struct SkipIf {
    step: Spanned<Arc<str>>,
    field: Spanned<Arc<str>>,
    op: BinaryOp,
    value: Expr,
    span: Span,
}

/// The step that a comparison names.
fn named(table: &Table<'_>) -> Option<Spanned<Arc<str>>> {
    ruled(table, 11, || demanded(table, "step_id", "name the step whose output decides"))
}

impl SkipIf {
    fn read(table: &Table<'_>, step: Option<Spanned<Arc<str>>>) -> Option<Self> {
        let field = demanded(table, "field", "name the field of its output to compare");
        let op = ruled(table, 12, || operator(table));
        let value = value(table, op);
        table.finish_all();
        Some(Self { step: step?, field: field?, op: op?, value: value?, span: table.span })
    }

    /// The comparison, given the output of the step.
    fn compare(self, output: Expr) -> Expr {
        let left = Expr { span: self.field.span, ..flow::member(output, &self.field.value) };
        let (left, right) = (Box::new(left), Box::new(self.value));
        Expr::new(Node::Binary { op: self.op, left, right }, self.span)
    }
}

/// Operators of other languages.
const FOREIGN: [(&str, &str); 12] = [
    ("=", "=="),
    ("===", "=="),
    ("eq", "=="),
    ("!", "!="),
    ("<>", "!="),
    ("ne", "!="),
    ("=<", "<="),
    ("lt", "<"),
    ("lte", "<="),
    ("=>", ">="),
    ("gt", ">"),
    ("gte", ">="),
];

fn operator(table: &Table<'_>) -> Option<BinaryOp> {
    let text = demanded(table, "op", "use one of ==, !=, <, >, <=, >=")?;
    if let Some((_, op)) = OPERATORS.iter().find(|(word, _)| **word == *text.value) {
        return Some(*op);
    }
    let meant = FOREIGN.iter().find(|(word, _)| **word == *text.value).map(|(_, meant)| *meant);
    let message = format!("invalid operator `{}`", text.value);
    let finding = table.error(Code::BadEnum, "op", text.span, message).reference(&*text.value);
    table.report(finding.suggest(meant).help("use one of ==, !=, <, >, <=, >="));
    None
}

/// The value to compare with. Only some values can be equal to, or ordered with, another.
fn value(table: &Table<'_>, op: Option<BinaryOp>) -> Option<Expr> {
    table.known(&["value"]);
    let Some(entry) = table.lookup("value") else {
        table.missing("value", "state the value to compare the field with");
        return None;
    };
    let (value, span) = (entry.value.to_value(), entry.value.span);
    let cause = match &value {
        Value::Bool(_) if op.is_some_and(BinaryOp::is_ordering) => "true and false cannot be ordered",
        Value::Null if is_null(&entry.value) => "nothing is ever equal to null, or different from it",
        Value::List(_) | Value::Map(_) => "only numbers, strings, true and false can be compared",
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Sealed(_) => "",
    };
    if !cause.is_empty() {
        let message = format!("{cause}, so this step is never skipped");
        let finding = table.warning(Code::NeverTrue, "value", span, message);
        table.report(finding.help("compare with a number or a string, or remove `skip_if`"));
    }
    Some(Expr::new(Node::Literal(value), span))
}

/// The step runs unless the comparison holds. Missing values compare as false, so the step runs.
pub fn of_step(draft: &Draft<'_>) -> Option<Condition> {
    let table = draft.table.table("skip_if")?;
    let step = named(&table);
    let stranger = step.as_ref().filter(|step| !draft.needs.iter().any(|need| need.value == step.value));
    stranger.iter().for_each(|step| table.report(not_before(draft, &table, step)));
    let is_stranger = stranger.is_some();
    let skip_if = SkipIf::read(&table, step).filter(|_| !is_stranger)?;
    // Unknown steps are reported in `depends_on`.
    draft.document.roster.card(&skip_if.step.value)?;
    let (output, span) = (flow::output(&skip_if.step.value, skip_if.step.span), skip_if.span);
    let expr = Expr::new(Node::Not(Box::new(skip_if.compare(output))), span);
    Some(Condition { expr, field: "skip_if".into() })
}

fn not_before(draft: &Draft<'_>, table: &Table<'_>, step: &Spanned<Arc<str>>) -> Diagnostic {
    let (id, roster) = (&step.value, &draft.document.roster);
    let finding = match roster.card(id) {
        Some(_) => {
            let message = format!("`{id}` is not in `depends_on`, so it may not have run yet");
            let finding = table.error(Code::NotAnAncestor, "step_id", step.span, message);
            finding.help(format!("add \"{id}\" to `depends_on`"))
        }
        None => {
            let message = format!("unknown step `{id}`");
            let finding = table.error(Code::UnknownStage, "step_id", step.span, message);
            let needs = draft.needs.iter().map(|need| &*need.value);
            finding.suggest(nearest(id, needs)).help("name a step that is in `depends_on`")
        }
    };
    finding.reference(&**id).rule(11)
}

/// Parses a standalone comparison from JSON. It is true if the step would be skipped; see [`scope`]. Warnings are
/// returned with it.
pub fn parse_skip_if(text: &str, locate: &dyn Fn(Range<usize>) -> Span) -> (Option<Expr>, Vec<Diagnostic>) {
    let mut sources = Sources::default();
    let id = sources.add(Source::new("skip_if", text));
    let read = text::read(sources.get(id), id, Format::Json, &Limits::default());
    let context = Context::new(&sources, Keys::AnyCase, "");
    let expr = read.root.as_ref().and_then(|root| {
        let table = Table::of(&context, root, Place::default())?;
        let skip_if = SkipIf::read(&table, named(&table))?;
        let root = flow::read(Namespace::Root, skip_if.step.span);
        let output = flow::member(root, &skip_if.step.value);
        Some(skip_if.compare(output))
    });
    let mut found = read.diagnostics;
    found.extend(context.diagnostics.into_inner());
    found.iter_mut().for_each(|finding| place(finding, locate));
    let expr = expr.filter(|_| !found.iter().any(Diagnostic::is_error));
    let expr = expr
        .map(|expr| expr.try_map(&mut |part| placed(part, locate)).unwrap_or_else(|never| match never {}));
    (expr, found)
}

fn placed(part: Expr, locate: &dyn Fn(Range<usize>) -> Span) -> Result<Expr, std::convert::Infallible> {
    Ok(Expr { span: moved(part.span, locate), ..part })
}

fn place(finding: &mut Diagnostic, locate: &dyn Fn(Range<usize>) -> Span) {
    finding.span = finding.span.map(|span| moved(span, locate));
    finding.labels.iter_mut().for_each(|label| label.span = moved(label.span, locate));
}

fn moved(span: Span, locate: &dyn Fn(Range<usize>) -> Span) -> Span {
    locate(span.start as usize..span.end as usize)
}

/// The outputs of steps by id, for a standalone comparison.
pub fn scope(context: &Value) -> impl Scope {
    Outputs(context.clone())
}

struct Outputs(Value);

impl Scope for Outputs {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        Ok(match read {
            Read::Namespace(Namespace::Root) => self.0.clone(),
            Read::Namespace(_)
            | Read::StepOutputs(_)
            | Read::StepStatus(_)
            | Read::StepOutcome(_)
            | Read::Now
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_) => Value::Null,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_ir::SourceId;
    use windlass_ir::expr::{Limits, Semantics, evaluate};

    fn locate(range: Range<usize>) -> Span {
        Span::new(SourceId(0), range.start, range.end)
    }

    /// Whether a step is skipped, given the output of `lint`.
    fn check(output: &str, op: &str, value: &str, expected: bool) {
        let text = format!(r#"{{"step_id": "lint", "field": "n", "op": "{op}", "value": {value}}}"#);
        let (expr, found) = parse_skip_if(&text, &locate);
        let expr = expr.unwrap_or_else(|| panic!("{text}: {found:#?}"));
        let context: Value = serde_json::from_str(&format!(r#"{{"lint": {output}}}"#)).expect("JSON");
        let found = evaluate(&expr, &scope(&context), &Semantics::DAGNATS, &Limits::default());
        assert_eq!(found, Ok(Value::Bool(expected)), "{output} {op} {value}");
    }

    #[test]
    fn numbers_strings_and_booleans_are_compared() {
        check(r#"{"n": 0}"#, "==", "0", true);
        check(r#"{"n": 0.0}"#, "==", "0", true);
        check(r#"{"n": 3}"#, "!=", "0", true);
        check(r#"{"n": 3}"#, "<", "4", true);
        check(r#"{"n": 3}"#, ">=", "3.5", false);
        check(r#"{"n": "b"}"#, ">", "\"a\"", true);
        check(r#"{"n": "10"}"#, "<", "\"9\"", true);
        check(r#"{"n": true}"#, "==", "true", true);
        check(r#"{"n": false}"#, "!=", "true", true);
    }

    #[test]
    fn incomparable_values_never_skip() {
        for op in ["==", "!=", "<", ">", "<=", ">="] {
            check(r#"{"n": "3"}"#, op, "3", false);
            check(r#"{"n": null}"#, op, "3", false);
            check(r#"{"m": 3}"#, op, "3", false);
            check("[3]", op, "3", false);
            check("3", op, "3", false);
            check("null", op, "3", false);
            check(r#"{"n": null}"#, op, "null", false);
            check(r#"{"n": [1]}"#, op, "[1]", false);
        }
        check(r#"{"n": true}"#, ">", "false", false);
        check(r#"{"n.x": 1, "n": {"x": 1}}"#, "==", "1", false);
    }

    #[test]
    fn mistakes_are_reported_with_their_location() {
        let check = |text: &str, expected: &[(Code, Option<u8>, &str)]| {
            let (expr, found) = parse_skip_if(text, &locate);
            assert_eq!(expr, None, "{text}");
            let place = |span: Option<Span>| span.map_or("", |s| &text[s.start as usize..s.end as usize]);
            let found: Vec<_> = found.iter().map(|d| (d.code, d.rule, place(d.span))).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("", &[(Code::Syntax, None, "")]);
        check("[]", &[(Code::WrongShape, None, "[]")]);
        check(
            r#"{"step_id": "", "field": "n", "op": "=~", "value": 1}"#,
            &[(Code::MissingField, Some(11), "\"\""), (Code::BadEnum, Some(12), "\"=~\"")],
        );
        check(
            "{}",
            &[
                (Code::MissingField, Some(11), ""),
                (Code::MissingField, None, ""),
                (Code::MissingField, Some(12), ""),
                (Code::MissingField, None, ""),
            ],
        );
    }
}
