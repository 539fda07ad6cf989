//! The evaluator: turns an expression and a [`Scope`] into a value or an error with a location.
//!
//! Evaluation has no loops and no side effects, and [`Limits`] bounds everything that could grow. The helpers at the
//! end (truth, equality, text form) apply the same rules to values outside of expressions.

use super::arithmetic;
use super::functions::{Argument, Call, Function};
use super::python;
use super::semantics::{Comparison, ConditionText, IndexRule, Logic, Semantics, TextForm, Truthiness};
use super::tree::{BinaryOp, Expr, Node, Read};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::{Map, SealedPart, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Where reads get their values. A namespace is read as a whole; anything missing is null. Only a read that is not
/// allowed in this place is an error, and the evaluator adds its location.
pub trait Scope {
    fn read(&self, read: Read) -> Result<Value, EvalError>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    pub code: Code,
    pub message: String,
    pub help: String,
    pub span: Span,
}

impl EvalError {
    /// Creates an error without a location; see [`EvalError::at`].
    pub fn new(code: Code, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into(), span: Span::default() }
    }

    #[must_use]
    pub fn at(self, span: Span) -> Self {
        Self { span, ..self }
    }

    pub fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::error(self.code, self.message).at(self.span).help(self.help)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes visited, elements inspected and KiB of text read by one evaluation.
    pub steps_max: usize,
    /// Levels of the expression, and levels of lists and objects in its result.
    pub depth_max: usize,
    /// Bytes allocated on the way to the result, and the size of the result with shared parts counted each time.
    pub bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // Parsers accept 256 levels; lowering may add a few more.
        Self { steps_max: 10_000_000, depth_max: 256 + 16, bytes_max: 16 << 20 }
    }
}

pub fn evaluate(
    expr: &Expr,
    scope: &dyn Scope,
    semantics: &Semantics,
    limits: &Limits,
) -> Result<Value, EvalError> {
    let mut evaluator = Evaluator::new(scope, semantics, limits);
    let value = evaluator.expr(expr)?;
    limits.check_result(&value).map_err(|e| e.at(expr.span))?;
    Ok(value)
}

impl Limits {
    /// Parts of a result may be shared many times, so its size counts as if it were written out.
    pub(super) fn check_result(&self, value: &Value) -> Result<(), EvalError> {
        measure(value, self.bytes_max, self.depth_max).map(|_| ()).ok_or_else(|| {
            let message = format!(
                "the result is larger than {} bytes or nested deeper than {} levels",
                self.bytes_max, self.depth_max
            );
            EvalError::new(Code::ExpressionLimit, message, "use only the part you need, or pass a file")
        })
    }
}

/// The bytes left after writing the value out roughly as JSON; `None` if it does not fit.
fn measure(value: &Value, bytes: usize, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => bytes.checked_sub(1),
        Value::Text(text) => bytes.checked_sub(text.len() + 2),
        Value::Sealed(parts) => parts.iter().try_fold(bytes, |left, part| match part {
            SealedPart::Text(text) | SealedPart::Secret(text) => left.checked_sub(text.len() + 2),
        }),
        Value::List(items) => {
            items.iter().try_fold(bytes.checked_sub(2)?, |left, item| measure(item, left, depth))
        }
        Value::Map(map) => map.iter().try_fold(bytes.checked_sub(2)?, |left, (key, item)| {
            measure(item, left.checked_sub(key.len() + 3)?, depth)
        }),
    }
}

/// The remaining budget of one evaluation.
#[derive(Debug)]
pub(super) struct Meter {
    limits: Limits,
    steps_left: usize,
    bytes_left: usize,
    depth: usize,
}

/// The cost of an element in a new list, besides its content.
const ELEMENT_BYTES: usize = 8;

impl Meter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, steps_left: limits.steps_max, bytes_left: limits.bytes_max, depth: 0 }
    }

    pub(super) fn work(&mut self, steps: usize) -> Result<(), EvalError> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or_else(|| {
            let message =
                format!("the expression needs more than {} steps to evaluate", self.limits.steps_max);
            EvalError::new(
                Code::ExpressionLimit,
                message,
                "work on less data, or compute the value in a step",
            )
        })?;
        Ok(())
    }

    /// Charges for reading `bytes` of text.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.work(bytes >> 10)
    }

    /// Charges for allocating `bytes` of new data.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.read(bytes)?;
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| self.too_much())?;
        Ok(())
    }

    fn too_much(&self) -> EvalError {
        let message = format!("the expression allocates more than {} bytes", self.limits.bytes_max);
        EvalError::new(Code::ExpressionLimit, message, "use only the part you need, or pass a file")
    }

    pub(super) fn make_elements(&mut self, count: usize) -> Result<(), EvalError> {
        self.work(count)?;
        self.make(count.saturating_mul(ELEMENT_BYTES))
    }

    pub(super) fn enter(&mut self) -> Result<(), EvalError> {
        self.work(1)?;
        if self.depth == self.limits.depth_max {
            let message = format!("the expression is nested more than {} levels deep", self.limits.depth_max);
            return Err(EvalError::new(Code::ExpressionLimit, message, "split it into several expressions"));
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}

pub(super) struct Evaluator<'a> {
    scope: &'a dyn Scope,
    pub(super) semantics: &'a Semantics,
    pub(super) meter: Meter,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(scope: &'a dyn Scope, semantics: &'a Semantics, limits: &Limits) -> Self {
        Self { scope, semantics, meter: Meter::new(limits) }
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> Result<Value, EvalError> {
        self.meter.enter().map_err(|e| e.at(expr.span))?;
        let value = self.node(expr);
        self.meter.leave();
        value
    }

    fn node(&mut self, expr: &Expr) -> Result<Value, EvalError> {
        match &expr.node {
            Node::Literal(value) => Ok(value.clone()),
            Node::List(items) => self.list(items, expr.span),
            Node::Read(read) => self.scope.read(*read).map_err(|e| e.at(expr.span)),
            Node::Member { of, name } => self.member(of, name, expr.span),
            Node::Index { of, at } => self.index(of, at, expr.span),
            Node::Call { function, args } => self.call(*function, args, expr.span),
            Node::Query { of, path } => {
                let value = self.expr(of)?;
                path.find(&value, &mut self.meter).map_err(|e| e.at(expr.span))
            }
            Node::Not(inner) => Ok(Value::Bool(!self.truth(inner)?)),
            Node::Binary { op, left, right } => self.binary(*op, left, right, expr.span),
            Node::Choice { when, then, otherwise } => {
                let chosen = if self.truth(when)? { then } else { otherwise };
                self.expr(chosen)
            }
        }
    }

    fn list(&mut self, items: &[Expr], span: Span) -> Result<Value, EvalError> {
        self.meter.make_elements(items.len()).map_err(|e| e.at(span))?;
        let values: Result<Vec<Value>, EvalError> = items.iter().map(|item| self.expr(item)).collect();
        Ok(Value::List(values?.into()))
    }

    fn member(&mut self, of: &Expr, name: &str, span: Span) -> Result<Value, EvalError> {
        let value = self.expr(of)?;
        if matches!(value, Value::Sealed(_)) {
            return Err(sealed("taken apart").at(span));
        }
        Ok(value.get(name).cloned().unwrap_or(Value::Null))
    }

    /// Missing members are null, even if the key has a type that can never be a key of the value.
    fn index(&mut self, of: &Expr, at: &Expr, span: Span) -> Result<Value, EvalError> {
        let (value, key) = (self.expr(of)?, self.expr(at)?);
        if matches!((&value, &key), (Value::Sealed(_), _) | (_, Value::Sealed(_))) {
            return Err(sealed("taken apart or used as an index").at(span));
        }
        let found = match (&value, &key) {
            (Value::List(items), Value::Int(_) | Value::Float(_)) => {
                position(&key, items.len(), self.semantics.index).and_then(|at| items.get(at))
            }
            (Value::Map(map), Value::Text(key)) => map.get(key),
            (_, _) => None,
        };
        Ok(found.cloned().unwrap_or(Value::Null))
    }

    fn call(&mut self, function: Function, args: &[Expr], span: Span) -> Result<Value, EvalError> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(Argument { value: self.expr(arg)?, span: arg.span });
        }
        Call { function, args: &values, span, semantics: self.semantics, meter: &mut self.meter }.run()
    }

    fn truth(&mut self, expr: &Expr) -> Result<bool, EvalError> {
        let value = self.expr(expr)?;
        is_truthy(&value, self.semantics).map_err(|e| e.at(expr.span))
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span) -> Result<Value, EvalError> {
        match op {
            BinaryOp::And | BinaryOp::Or => self.either(op == BinaryOp::Or, left, right),
            BinaryOp::Equal | BinaryOp::NotEqual => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                if self.semantics.comparison == Comparison::SameKind && !same_kind(&left, &right, true) {
                    return Ok(Value::Bool(false));
                }
                let same = equals_within(&left, &right, self.semantics, &mut self.meter);
                Ok(Value::Bool(same.map_err(|e| e.at(span))? == (op == BinaryOp::Equal)))
            }
            BinaryOp::Less => self.ordered(left, right, span, Ordering::is_lt),
            BinaryOp::LessOrEqual => self.ordered(left, right, span, Ordering::is_le),
            BinaryOp::Greater => self.ordered(left, right, span, Ordering::is_gt),
            BinaryOp::GreaterOrEqual => self.ordered(left, right, span, Ordering::is_ge),
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Remainder => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                arithmetic::compute(op, &left, &right).map_err(|e| e.at(span))
            }
        }
    }

    fn ordered(
        &mut self,
        left: &Expr,
        right: &Expr,
        span: Span,
        holds: fn(Ordering) -> bool,
    ) -> Result<Value, EvalError> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let bytes = left.as_str().map_or(0, str::len);
        self.meter.read(bytes).map_err(|e| e.at(span))?;
        let order = match self.semantics.comparison {
            Comparison::Strict => compare(&left, &right),
            Comparison::Python => python::order(&left, &right, &mut self.meter),
            Comparison::SameKind if same_kind(&left, &right, false) => compare(&left, &right),
            Comparison::SameKind => Ok(None),
        };
        let order = order.map_err(|e| e.at(span))?;
        // Values without an order, such as NaN, fail every comparison.
        Ok(Value::Bool(order.is_some_and(holds)))
    }

    /// Evaluates `&&` and `||`. If the truth of the first operand is `decisive`, the second is not evaluated. The
    /// result is the deciding operand or its truth, depending on the dialect.
    fn either(&mut self, decisive: bool, left: &Expr, right: &Expr) -> Result<Value, EvalError> {
        let value = self.expr(left)?;
        let decided = is_truthy(&value, self.semantics).map_err(|e| e.at(left.span))? == decisive;
        match self.semantics.logic {
            Logic::Operand if decided => Ok(value),
            Logic::Operand => self.expr(right),
            Logic::Boolean if decided => Ok(Value::Bool(decisive)),
            Logic::Boolean => self.truth(right).map(Value::Bool),
        }
    }
}

/// A number as a list index: whole, and not negative unless indices may count from the end. `2.0` is the same as `2`.
fn position(key: &Value, length: usize, rule: IndexRule) -> Option<usize> {
    let whole = match key {
        Value::Int(int) => *int,
        Value::Float(float) if compare_int_float(*float as i64, *float) == Some(Ordering::Equal) => {
            *float as i64
        }
        Value::Float(_) => return None,
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => {
            return None;
        }
    };
    match (usize::try_from(whole), rule) {
        (Ok(place), _) => Some(place),
        (Err(_), IndexRule::FromStart) => None,
        (Err(_), IndexRule::FromBothEnds) => length.checked_sub(usize::try_from(whole.unsigned_abs()).ok()?),
    }
}

/// The error for an operation that is not allowed on a secret.
pub(super) fn sealed(action: &str) -> EvalError {
    let help = "pass it as a whole to an environment variable or a header";
    EvalError::new(Code::ExpressionType, format!("a secret cannot be {action}"), help)
}

/// The kind of a value with its article.
pub(super) fn a_kind(value: &Value) -> String {
    match value {
        Value::Null => value.kind().to_owned(),
        Value::Int(_) | Value::Map(_) => format!("an {}", value.kind()),
        Value::Bool(_) | Value::Float(_) | Value::Text(_) | Value::Sealed(_) | Value::List(_) => {
            format!("a {}", value.kind())
        }
    }
}

/// Whether a value counts as true. Secrets cannot be tested.
pub fn is_truthy(value: &Value, semantics: &Semantics) -> Result<bool, EvalError> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(b) => Ok(*b),
        Value::Int(int) => Ok(*int != 0),
        Value::Float(float) => Ok(*float != 0.0),
        Value::Text(text) => Ok(!text.is_empty()),
        Value::List(items) => Ok(semantics.truthiness == Truthiness::House || !items.is_empty()),
        Value::Map(map) => Ok(semantics.truthiness == Truthiness::House || !map.is_empty()),
        Value::Sealed(_) => Err(sealed("used as a condition")),
    }
}

/// Whether a value counts as true in a condition.
pub fn holds(value: &Value, semantics: &Semantics) -> Result<bool, EvalError> {
    match (semantics.condition, value) {
        (ConditionText::Spoken, Value::Text(text)) if python::strip(text).eq_ignore_ascii_case("true") => {
            Ok(true)
        }
        (ConditionText::Spoken, Value::Text(text)) if python::strip(text).eq_ignore_ascii_case("false") => {
            Ok(false)
        }
        (ConditionText::Spoken | ConditionText::AsAny, value) => is_truthy(value, semantics),
    }
}

/// Whether two values are equal. Lists and objects are compared in depth; the order of keys does not matter.
pub fn equals(a: &Value, b: &Value, semantics: &Semantics) -> Result<bool, EvalError> {
    equals_within(a, b, semantics, &mut Meter::new(&Limits::default()))
}

pub(super) fn equals_within(
    a: &Value,
    b: &Value,
    semantics: &Semantics,
    meter: &mut Meter,
) -> Result<bool, EvalError> {
    meter.work(1)?;
    let python = semantics.comparison == Comparison::Python;
    match (a, b) {
        (Value::Sealed(_), _) | (_, Value::Sealed(_)) => Err(sealed("compared")),
        (Value::Bool(flag), number @ (Value::Int(_) | Value::Float(_)))
        | (number @ (Value::Int(_) | Value::Float(_)), Value::Bool(flag))
            if python =>
        {
            Ok(compare_numbers(&Value::Int(i64::from(*flag)), number) == Some(Ordering::Equal))
        }
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            Ok(compare_numbers(a, b) == Some(Ordering::Equal))
        }
        (Value::Text(a), Value::Text(b)) => {
            meter.read(a.len().min(b.len()))?;
            Ok(a == b)
        }
        (Value::List(a), Value::List(b)) => lists_equal(a, b, semantics, meter),
        (Value::Map(a), Value::Map(b)) => maps_equal(a, b, semantics, meter),
        // Values of different kinds are never equal.
        (_, _) => Ok(false),
    }
}

fn lists_equal(
    a: &[Value],
    b: &[Value],
    semantics: &Semantics,
    meter: &mut Meter,
) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        if !equals_within(a, b, semantics, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(a: &Map, b: &Map, semantics: &Semantics, meter: &mut Meter) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, a) in a {
        let Some(b) = b.get(key) else { return Ok(false) };
        if !equals_within(a, b, semantics, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two numbers or two strings (by code point); `None` if one of the numbers is NaN.
pub(super) fn compare(a: &Value, b: &Value) -> Result<Option<Ordering>, EvalError> {
    match (a, b) {
        (Value::Sealed(_), _) | (_, Value::Sealed(_)) => Err(sealed("compared")),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => Ok(compare_numbers(a, b)),
        (Value::Text(a), Value::Text(b)) => Ok(Some(a.cmp(b))),
        (_, _) => Err(not_ordered(a, b)),
    }
}

/// Whether both are numbers or both are strings; for equality, also whether both are booleans.
fn same_kind(a: &Value, b: &Value, equality: bool) -> bool {
    match (a, b) {
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => true,
        (Value::Text(_), Value::Text(_)) => true,
        (Value::Bool(_), Value::Bool(_)) => equality,
        (Value::Sealed(_), _) | (_, Value::Sealed(_)) => true,
        (_, _) => false,
    }
}

fn not_ordered(a: &Value, b: &Value) -> EvalError {
    let message = format!("{} and {} cannot be ordered", a_kind(a), a_kind(b));
    let help = match (a, b) {
        (Value::Null, _) | (_, Value::Null) => {
            "a value is missing; provide one with `default(value, …)`, or check for null first"
        }
        (_, _) => "compare two numbers or two strings",
    };
    EvalError::new(Code::ExpressionType, message, help)
}

pub(super) fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Float(b)) => compare_int_float(*a, *b),
        (Value::Float(a), Value::Int(b)) => compare_int_float(*b, *a).map(Ordering::reverse),
        (_, _) => None,
    }
}

/// Exact: converting the integer to a float would make neighbors beyond 2^53 equal.
fn compare_int_float(int: i64, float: f64) -> Option<Ordering> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        None
    } else if float >= TWO_TO_63 {
        Some(Ordering::Less)
    } else if float < -TWO_TO_63 {
        Some(Ordering::Greater)
    } else {
        let whole = float.trunc();
        let fraction = 0.0.partial_cmp(&(float - whole))?;
        Some(int.cmp(&(whole as i64)).then(fraction))
    }
}

/// The text form of a value. Secrets have none.
pub fn text_form(value: &Value, semantics: &Semantics) -> Result<Arc<str>, EvalError> {
    text_within(value, semantics, &mut Meter::new(&Limits::default()))
}

pub(super) fn text_within(
    value: &Value,
    semantics: &Semantics,
    meter: &mut Meter,
) -> Result<Arc<str>, EvalError> {
    meter.work(1)?;
    match value {
        Value::Null => Ok(Arc::from("")),
        Value::Text(text) => Ok(text.clone()),
        Value::Sealed(_) => Err(sealed("converted to text")),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => {
            match semantics.text {
                TextForm::Json => json_text(value, meter).map(Arc::from),
                TextForm::Python => python::text(value, meter).map(Arc::from),
            }
        }
    }
}

pub(super) fn json_text(value: &Value, meter: &mut Meter) -> Result<String, EvalError> {
    let mut out = Bounded { bytes: Vec::new(), bytes_max: meter.bytes_left };
    match serde_json::to_writer(&mut out, value) {
        Ok(()) => {
            meter.make(out.bytes.len())?;
            Ok(String::from_utf8(out.bytes).expect("JSON is written as UTF-8"))
        }
        Err(error) if error.is_io() => Err(meter.too_much()),
        Err(_) => Err(sealed("converted to JSON")),
    }
}

/// A buffer with a size limit: a value whose parts are shared can be huge when written out.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if more.len() > self.bytes_max - self.bytes.len() {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Namespace;
    use crate::source::SourceId;

    const HOUSE: Semantics = Semantics::HOUSE;

    /// A scope that returns the same value for every read.
    struct Always(Value);

    impl Scope for Always {
        fn read(&self, read: Read) -> Result<Value, EvalError> {
            match read {
                Read::Namespace(Namespace::Context) => {
                    Err(EvalError::new(Code::NotAvailableHere, "not here", "elsewhere"))
                }
                _ => Ok(self.0.clone()),
            }
        }
    }

    fn json(text: &str) -> Value {
        serde_json::from_str(text).expect("test data is JSON")
    }

    fn expr(node: Node) -> Expr {
        Expr::new(node, Span::new(SourceId(0), 7, 9))
    }

    fn literal(value: Value) -> Box<Expr> {
        Box::new(Expr::new(Node::Literal(value), Span::default()))
    }

    fn read(namespace: Namespace) -> Expr {
        expr(Node::Read(Read::Namespace(namespace)))
    }

    fn binary(op: BinaryOp, left: Value, right: Value) -> Result<Value, EvalError> {
        let node = Node::Binary { op, left: literal(left), right: literal(right) };
        evaluate(&expr(node), &Always(Value::Null), &HOUSE, &Limits::default())
    }

    fn check_equal(a: &str, b: &str, expected: bool) {
        let (a, b) = (json(a), json(b));
        assert_eq!(equals(&a, &b, &HOUSE), Ok(expected), "{a:?} == {b:?}");
        assert_eq!(equals(&b, &a, &HOUSE), Ok(expected), "{b:?} == {a:?}");
        assert_eq!(binary(BinaryOp::NotEqual, a, b), Ok(Value::Bool(!expected)));
    }

    #[test]
    fn equality_never_converts_types() {
        check_equal("3", "3.0", true);
        check_equal("0", "-0.0", true);
        check_equal("1", "true", false);
        check_equal("0", "false", false);
        check_equal("1", "\"1\"", false);
        check_equal("null", "false", false);
        check_equal("null", "\"\"", false);
        check_equal("null", "null", true);
        check_equal("\"a\"", "\"A\"", false);
        check_equal("[1, [2.0]]", "[1.0, [2]]", true);
        check_equal("[1, 2]", "[2, 1]", false);
        check_equal("[1]", "[1, 2]", false);
        check_equal(r#"{"a": 1, "b": [2]}"#, r#"{"b": [2.0], "a": 1}"#, true);
        check_equal(r#"{"a": null}"#, r#"{"b": null}"#, false);
        check_equal("[]", "{}", false);
        check_equal("9007199254740993", "9007199254740992.0", false);
        check_equal("9007199254740992", "9007199254740992.0", true);
        check_equal("9223372036854775807", "9223372036854775808.0", false);
        check_equal("-9223372036854775808", "-9223372036854775808.0", true);
        let nan = Value::Float(f64::NAN);
        assert_eq!(equals(&nan, &nan, &HOUSE), Ok(false));
        assert_eq!(equals(&Value::list([nan.clone()]), &Value::list([nan]), &HOUSE), Ok(false));
    }

    /// The ordering operators that hold between `a` and `b`.
    fn check_order(a: &Value, b: &Value, expected: &str) {
        let orderings = [BinaryOp::Less, BinaryOp::LessOrEqual, BinaryOp::Greater, BinaryOp::GreaterOrEqual];
        let holds = |op: &BinaryOp| binary(*op, a.clone(), b.clone()) == Ok(Value::Bool(true));
        let found: Vec<&str> = orderings.iter().filter(|op| holds(op)).map(|op| op.symbol()).collect();
        assert_eq!(found.join(" "), expected, "{a:?} {b:?}");
    }

    #[test]
    fn ordering_numbers_is_exact() {
        check_order(&Value::Int(1), &Value::Int(2), "< <=");
        check_order(&Value::Int(2), &Value::Float(2.0), "<= >=");
        check_order(&Value::Int(-3), &Value::Float(-3.5), "> >=");
        check_order(&Value::Float(-3.5), &Value::Int(-3), "< <=");
        check_order(&Value::Int(9_007_199_254_740_993), &Value::Float(9_007_199_254_740_992.0), "> >=");
        check_order(&Value::Int(i64::MAX), &Value::Float(9_223_372_036_854_775_808.0), "< <=");
        check_order(&Value::Int(i64::MIN), &Value::Float(-9_223_372_036_854_775_808.0), "<= >=");
        check_order(&Value::Int(i64::MAX), &Value::Float(f64::INFINITY), "< <=");
        check_order(&Value::Int(i64::MIN), &Value::Float(f64::NEG_INFINITY), "> >=");
        check_order(&Value::Int(0), &Value::Float(f64::NAN), "");
        check_order(&Value::Float(f64::NAN), &Value::Float(f64::NAN), "");
        check_order(&Value::text("10"), &Value::text("9"), "< <=");
        check_order(&Value::text("Z"), &Value::text("a"), "< <=");
        check_order(&Value::text("\u{ffff}"), &Value::text("\u{10000}"), "< <=");
    }

    #[test]
    fn ordering_needs_two_values_of_one_kind() {
        let check = |a: &str, b: &str, message: &str| {
            let error = binary(BinaryOp::Less, json(a), json(b)).expect_err(message);
            assert_eq!((error.code, error.message.as_str()), (Code::ExpressionType, message));
            assert_eq!(error.span.start, 7);
        };
        check("null", "3", "null and an integer cannot be ordered");
        check("3", "\"3\"", "an integer and a string cannot be ordered");
        check("true", "false", "a boolean and a boolean cannot be ordered");
        check("[1]", "{}", "a list and an object cannot be ordered");
        check("1.5", "null", "a number and null cannot be ordered");
    }

    #[test]
    fn only_false_null_zero_and_empty_text_are_falsy() {
        let check = |value: &str, expected: bool| {
            assert_eq!(is_truthy(&json(value), &HOUSE), Ok(expected), "{value}");
        };
        for value in ["null", "false", "0", "0.0", "-0.0", "\"\""] {
            check(value, false);
        }
        for value in ["true", "1", "-0.5", "\"0\"", "\"false\"", "[]", "{}"] {
            check(value, true);
        }
    }

    #[test]
    fn values_have_text_forms() {
        let check = |value: &str, expected: &str| {
            assert_eq!(text_form(&json(value), &HOUSE).as_deref(), Ok(expected), "{value}");
        };
        check("null", "");
        check("true", "true");
        check("-3", "-3");
        check("3.0", "3.0");
        check("0.1", "0.1");
        check("\"a\\nb\"", "a\nb");
        check(r#"[1, "a", null]"#, r#"[1,"a",null]"#);
        check(r#"{"z": {}, "a": [true]}"#, r#"{"z":{},"a":[true]}"#);
    }

    #[test]
    fn secrets_cannot_be_inspected() {
        let secret = Value::secret("API");
        assert!(is_truthy(&secret, &HOUSE).is_err());
        assert!(text_form(&secret, &HOUSE).is_err());
        assert!(text_form(&Value::list([secret.clone()]), &HOUSE).is_err());
        assert!(equals(&secret, &secret, &HOUSE).is_err());
        assert!(equals(&Value::list([secret.clone()]), &Value::list([Value::Null]), &HOUSE).is_err());
        let error = binary(BinaryOp::Less, secret, Value::text("a")).expect_err("a secret has no order");
        assert_eq!(error.into_diagnostic().help, "pass it as a whole to an environment variable or a header");
    }

    #[test]
    fn errors_of_the_scope_get_a_location() {
        let error = evaluate(&read(Namespace::Context), &Always(Value::Null), &HOUSE, &Limits::default());
        let found = error.map_err(EvalError::into_diagnostic).expect_err("not available");
        assert_eq!((found.code, found.span), (Code::NotAvailableHere, Some(Span::new(SourceId(0), 7, 9))));
    }

    const SMALL: Limits = Limits { steps_max: 1_000, depth_max: 10, bytes_max: 100 };

    fn check_limit(node: Node, data: Value, fits: bool) {
        let expr = expr(node);
        let found = evaluate(&expr, &Always(data), &HOUSE, &SMALL).map(|_| ()).map_err(|e| e.code);
        assert_eq!(found, if fits { Ok(()) } else { Err(Code::ExpressionLimit) }, "{expr:?}");
    }

    fn call(function: Function, args: Vec<Expr>) -> Node {
        Node::Call { function, args }
    }

    #[test]
    fn evaluation_is_bounded() {
        let item = || read(Namespace::Item);
        let text = |length: usize| Value::text("x".repeat(length));
        check_limit(item().node, text(98), true);
        check_limit(item().node, text(99), false);
        check_limit(call(Function::Length, vec![item()]), text(5_000), true);
        check_limit(call(Function::Upper, vec![item()]), text(101), false);
        check_limit(call(Function::ToJson, vec![item()]), Value::list([text(101)]), false);
        let measured = || expr(call(Function::Length, vec![expr(call(Function::ToJson, vec![item()]))]));
        check_limit(measured().node, Value::list([text(60)]), true);
        check_limit(Node::List(vec![measured(); 2]), Value::list([text(60)]), false);
        check_limit(call(Function::Split, vec![item(), *literal(Value::text("x"))]), text(50), false);
        check_limit(call(Function::FromJson, vec![item()]), Value::text("[".repeat(50)), false);
        let numbers = |count: i64| Value::list((0..count).map(Value::Int));
        check_limit(call(Function::Contains, vec![item(), *literal(Value::Int(900))]), numbers(901), true);
        check_limit(call(Function::Contains, vec![item(), *literal(Value::Int(999))]), numbers(1_000), false);
        check_limit(call(Function::Length, vec![expr(Node::List(vec![item(); 12]))]), Value::Null, true);
        check_limit(call(Function::Length, vec![expr(Node::List(vec![item(); 13]))]), Value::Null, false);
        let nested = |levels: usize| {
            (0..levels).fold(*literal(Value::Null), |inner, _| expr(Node::Not(Box::new(inner))))
        };
        check_limit(nested(9).node, Value::Null, true);
        check_limit(nested(10).node, Value::Null, false);
        let deep = |levels: usize| (1..levels).fold(Value::Null, |inner, _| Value::list([inner]));
        check_limit(item().node, deep(10), true);
        check_limit(item().node, deep(11), false);
    }

    #[test]
    fn shared_data_counts_each_time() {
        let bomb = (0..60).fold(Value::text("x"), |inner, _| Value::list([inner.clone(), inner]));
        let scope = Always(bomb.clone());
        let limits = Limits { steps_max: 100_000, depth_max: 100, bytes_max: 1 << 20 };
        let item = read(Namespace::Item);
        let code = |expr: &Expr| evaluate(expr, &scope, &HOUSE, &limits).map(|_| ()).map_err(|e| e.code);
        assert_eq!(code(&item), Err(Code::ExpressionLimit));
        assert_eq!(code(&expr(call(Function::ToJson, vec![item.clone()]))), Err(Code::ExpressionLimit));
        assert_eq!(code(&expr(call(Function::ShellQuote, vec![item.clone()]))), Err(Code::ExpressionLimit));
        let same = Node::Binary { op: BinaryOp::Equal, left: Box::new(item.clone()), right: Box::new(item) };
        assert_eq!(code(&expr(same)), Err(Code::ExpressionLimit));
        assert!(text_form(&bomb, &HOUSE).is_err());
    }
}
