//! Arithmetic on numbers, and `range`. Integers stay integers except under `/`. Nothing is converted, and no result is
//! silently wrong: an overflow, a division by zero and a number that is not finite are errors.

use super::eval::{EvalError, a_kind, sealed};
use super::functions::Call;
use super::tree::BinaryOp;
use crate::diagnostic::Code;
use crate::value::Value;

/// The maximum number of elements of a `range`, the same as the maximum number of items of a fan-out.
pub const RANGE_ELEMENTS_MAX: u64 = 1_000_000;

/// The result of an arithmetic operator. Other operators have no result here.
pub(super) fn compute(op: BinaryOp, left: &Value, right: &Value) -> Result<Value, EvalError> {
    match (left, right) {
        (Value::Sealed(_), _) | (_, Value::Sealed(_)) => Err(sealed("used in arithmetic")),
        (Value::Int(a), Value::Int(b)) if op != BinaryOp::Divide => integers(op, *a, *b),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            floats(op, as_float(left), as_float(right))
        }
        (_, _) => Err(not_numbers(op, left, right)),
    }
}

fn integers(op: BinaryOp, a: i64, b: i64) -> Result<Value, EvalError> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Subtract => a.checked_sub(b),
        BinaryOp::Multiply => a.checked_mul(b),
        BinaryOp::Remainder if b == 0 => return Err(by_zero()),
        // The remainder by -1 is 0, even if the quotient would overflow.
        BinaryOp::Remainder => Some(a.wrapping_rem(b)),
        BinaryOp::Divide
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessOrEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterOrEqual
        | BinaryOp::And
        | BinaryOp::Or => None,
    };
    let too_large = || {
        let message = format!("the result of `{a} {} {b}` does not fit into 64 bits", op.symbol());
        EvalError::new(Code::ExpressionValue, message, "use smaller numbers, or decimals such as `1.0`")
    };
    result.map(Value::Int).ok_or_else(too_large)
}

fn floats(op: BinaryOp, a: f64, b: f64) -> Result<Value, EvalError> {
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide | BinaryOp::Remainder if b == 0.0 => return Err(by_zero()),
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder => a % b,
        BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessOrEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterOrEqual
        | BinaryOp::And
        | BinaryOp::Or => f64::NAN,
    };
    if result.is_finite() {
        return Ok(Value::Float(result));
    }
    let message = format!("the result of `{}` is not a finite number", op.symbol());
    Err(EvalError::new(Code::ExpressionValue, message, "use smaller numbers"))
}

fn as_float(value: &Value) -> f64 {
    match value {
        Value::Int(int) => *int as f64,
        Value::Float(float) => *float,
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => {
            f64::NAN
        }
    }
}

fn by_zero() -> EvalError {
    let help = "check the divisor first, e.g. `n == 0 ? 0 : total / n`";
    EvalError::new(Code::ExpressionValue, "division by zero", help)
}

fn not_numbers(op: BinaryOp, left: &Value, right: &Value) -> EvalError {
    let message = format!("`{}` needs two numbers, not {} and {}", op.symbol(), a_kind(left), a_kind(right));
    let help = match (op, left, right) {
        (BinaryOp::Add, Value::Text(_), _) | (BinaryOp::Add, _, Value::Text(_)) => JOIN_HELP,
        (_, Value::Null, _) | (_, _, Value::Null) => {
            "a value is missing; provide one with `default(value, …)`, or check for null first"
        }
        (_, Value::Text(_), _) | (_, _, Value::Text(_)) => "read a number from text with `fromJSON(text)`",
        (_, _, _) => "calculate with numbers only",
    };
    EvalError::new(Code::ExpressionType, message, help)
}

/// The advice for an addition of strings.
pub const JOIN_HELP: &str = "to join strings, write `format('{0}{1}', a, b)`";

impl Call<'_> {
    /// `range(end)`, `range(start, end)` or `range(start, end, step)`.
    pub(super) fn range(&mut self) -> Result<Value, EvalError> {
        let numbers =
            (0..self.args.len()).map(|number| self.integer(number)).collect::<Result<Vec<_>, _>>()?;
        let (start, end, step) = match numbers.as_slice() {
            [end] => (0, *end, 1),
            [start, end] => (*start, *end, 1),
            [start, end, step, ..] => (*start, *end, *step),
            [] => (0, 0, 1),
        };
        if step == 0 {
            let message = "the step of `range` must not be 0";
            return Err(EvalError::new(Code::ExpressionValue, message, self.usage_help()).at(self.span));
        }
        let distance = if (start < end) == (step > 0) { start.abs_diff(end) } else { 0 };
        let count = distance.div_ceil(step.unsigned_abs());
        if count > RANGE_ELEMENTS_MAX {
            let message = format!("a `range` of {count} numbers exceeds the limit of {RANGE_ELEMENTS_MAX}");
            let help = "use a smaller range, or a larger step";
            return Err(EvalError::new(Code::ExpressionLimit, message, help).at(self.span));
        }
        self.meter.make_elements(count as usize).map_err(|e| e.at(self.span))?;
        // No element is beyond `end`, so none overflows.
        let element = |at: u64| start.wrapping_add(step.wrapping_mul(at.cast_signed()));
        Ok(Value::list((0..count).map(|at| Value::Int(element(at)))))
    }

    fn integer(&self, number: usize) -> Result<i64, EvalError> {
        match self.args[number].value {
            Value::Int(int) => Ok(int),
            _ => Err(self.wrong_kind(number, "an integer")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::functions::tests::call_by;
    use crate::expr::{Function, Semantics};

    fn check(op: BinaryOp, left: &str, right: &str, expected: Result<&str, Code>) {
        let json = |text: &str| serde_json::from_str::<Value>(text).expect("test data is JSON");
        let found = compute(op, &json(left), &json(right));
        let found = found.map(|value| value.to_json_text().expect("no secrets")).map_err(|error| error.code);
        assert_eq!(found, expected.map(str::to_owned), "{left} {} {right}", op.symbol());
    }

    const TYPE: Code = Code::ExpressionType;
    const VALUE: Code = Code::ExpressionValue;

    #[test]
    fn integers_stay_integers_except_under_division() {
        use BinaryOp::{Add, Divide, Multiply, Remainder, Subtract};
        check(Add, "2", "3", Ok("5"));
        check(Subtract, "2", "3", Ok("-1"));
        check(Multiply, "-4", "3", Ok("-12"));
        check(Divide, "6", "3", Ok("2.0"));
        check(Divide, "7", "2", Ok("3.5"));
        check(Remainder, "7", "3", Ok("1"));
        check(Remainder, "-7", "3", Ok("-1"));
        check(Remainder, "-9223372036854775808", "-1", Ok("0"));
        check(Add, "1", "0.5", Ok("1.5"));
        check(Multiply, "2.0", "2", Ok("4.0"));
        check(Remainder, "7.5", "2", Ok("1.5"));
    }

    #[test]
    fn what_has_no_result_is_an_error() {
        use BinaryOp::{Add, Divide, Multiply, Remainder, Subtract};
        check(Add, "9223372036854775807", "1", Err(VALUE));
        check(Subtract, "-9223372036854775808", "1", Err(VALUE));
        check(Multiply, "9223372036854775807", "2", Err(VALUE));
        check(Multiply, "1e308", "10.0", Err(VALUE));
        check(Divide, "1", "0", Err(VALUE));
        check(Divide, "1.0", "0.0", Err(VALUE));
        check(Remainder, "1", "0", Err(VALUE));
        check(Add, "\"a\"", "\"b\"", Err(TYPE));
        check(Add, "1", "null", Err(TYPE));
        check(Subtract, "true", "1", Err(TYPE));
        check(Multiply, "[1]", "2", Err(TYPE));
        let error = compute(Add, &Value::text("a"), &Value::Int(1)).expect_err("not numbers");
        assert_eq!(error.help, JOIN_HELP);
        assert!(compute(Add, &Value::secret("S"), &Value::Int(1)).is_err());
    }

    #[test]
    fn ranges() {
        let range = |numbers: &[i64]| {
            let args: Vec<Value> = numbers.iter().copied().map(Value::Int).collect();
            call_by(&Semantics::HOUSE, Function::Range, &args)
                .map(|value| value.to_json_text().expect("numbers"))
                .map_err(|error| error.code)
        };
        let check = |numbers: &[i64], expected: &str| assert_eq!(range(numbers), Ok(expected.to_owned()));
        check(&[3], "[0,1,2]");
        check(&[0], "[]");
        check(&[-2], "[]");
        check(&[2, 5], "[2,3,4]");
        check(&[5, 2], "[]");
        check(&[5, 0, -2], "[5,3,1]");
        check(&[0, 7, 3], "[0,3,6]");
        check(&[i64::MAX - 1, i64::MAX], "[9223372036854775806]");
        check(&[i64::MIN, i64::MAX, i64::MAX], "[-9223372036854775808,-1,9223372036854775806]");
        assert_eq!(range(&[0, 5, 0]), Err(VALUE));
        assert_eq!(range(&[1_000_001]), Err(Code::ExpressionLimit));
        assert_eq!(range(&[i64::MIN, i64::MAX]), Err(Code::ExpressionLimit));
        assert!(range(&[1_000_000]).is_ok());
        let error = call_by(&Semantics::HOUSE, Function::Range, &[Value::Float(2.0)]).expect_err("a decimal");
        assert_eq!(error.code, TYPE);
    }
}
