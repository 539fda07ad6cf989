//! `format` and `replace`: text built from other text.

use super::eval::{EvalError, text_within};
use super::functions::Call;
use crate::diagnostic::Code;
use crate::value::Value;

impl Call<'_> {
    /// `{0}` is the first argument after the pattern. A doubled brace is a brace.
    pub(super) fn format(&mut self) -> Result<Value, EvalError> {
        let pattern = self.text(0)?;
        let mut out = String::new();
        let mut rest = pattern;
        while let Some(at) = rest.find(['{', '}']) {
            self.add(&mut out, &rest[..at])?;
            let brace = &rest[at..at + 1];
            if rest[at + 1..].starts_with(brace) {
                self.add(&mut out, brace)?;
                rest = &rest[at + 2..];
                continue;
            }
            let inside = rest[at + 1..].split_once('}').filter(|_| brace == "{");
            let Some((number, after)) = inside else {
                return Err(self.bad_pattern("the pattern of `format` has a single brace".to_owned()));
            };
            let text = self.formatted(number)?;
            self.add(&mut out, &text)?;
            rest = after;
        }
        self.add(&mut out, rest)?;
        Ok(Value::text(out))
    }

    fn add(&mut self, out: &mut String, text: &str) -> Result<(), EvalError> {
        self.meter.make(text.len()).map_err(|e| e.at(self.span))?;
        out.push_str(text);
        Ok(())
    }

    /// The text form of the argument with this number.
    fn formatted(&mut self, number: &str) -> Result<std::sync::Arc<str>, EvalError> {
        let plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let at = number.parse::<usize>().ok().filter(|_| plain).and_then(|number| number.checked_add(1));
        let Some(arg) = at.and_then(|at| self.args.get(at)) else {
            let given = self.args.len() - 1;
            return Err(self.bad_pattern(format!(
                "`{{{}}}` in the pattern of `format` is not the number of an argument, of which there are {given}",
                number.chars().take(20).collect::<String>()
            )));
        };
        text_within(&arg.value, self.semantics, self.meter).map_err(|e| e.at(arg.span))
    }

    fn bad_pattern(&self, message: String) -> EvalError {
        let help = "write `{0}` for the first value, `{1}` for the second, and `{{` or `}}` for a brace";
        EvalError::new(Code::ExpressionValue, message, help).at(self.args[0].span)
    }

    /// Replaces every occurrence, from the left, without searching the replacement again.
    pub(super) fn replace(&mut self) -> Result<Value, EvalError> {
        let (text, part, with) = (self.text(0)?, self.text(1)?, self.text(2)?);
        if part.is_empty() {
            let message = "`replace` needs a part that is not empty";
            let help = "write the text to replace, e.g. `replace(text, ' ', '-')`";
            return Err(EvalError::new(Code::ExpressionValue, message, help).at(self.args[1].span));
        }
        let count = text.matches(part).count();
        let bytes = (text.len() - count * part.len()).saturating_add(count.saturating_mul(with.len()));
        self.meter.make(bytes).map_err(|e| e.at(self.span))?;
        Ok(Value::text(text.replace(part, with)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::functions::tests::call_by;
    use crate::expr::{Function, Semantics};

    fn check(function: Function, args: &str, expected: Result<&str, (Code, u32)>) {
        let Ok(Value::List(args)) = serde_json::from_str::<Value>(args) else {
            panic!("a list of arguments")
        };
        let found = call_by(&Semantics::HOUSE, function, &args);
        let expected = expected.map(Value::text);
        assert_eq!(found.map_err(|error| (error.code, error.span.start)), expected, "{args:?}");
    }

    const TYPE: Code = Code::ExpressionType;
    const VALUE: Code = Code::ExpressionValue;

    #[test]
    fn patterns_are_filled_in() {
        use Function::Format;
        check(Format, r#"["{0} of {1}", 2, "x"]"#, Ok("2 of x"));
        check(Format, r#"["{1}{0}{1}", "a", null]"#, Ok("a"));
        check(Format, r#"["{0}", [1, {"a": 2}]]"#, Ok(r#"[1,{"a":2}]"#));
        check(Format, r#"["{{{0}}} {{}}", 7]"#, Ok("{7} {}"));
        check(Format, r#"["plain"]"#, Ok("plain"));
        check(Format, r#"["größe {0}", "ß"]"#, Ok("größe ß"));
        check(Format, r#"["{0}", "{1}"]"#, Ok("{1}"));
        check(Format, r#"["{1}", "a"]"#, Err((VALUE, 0)));
        check(Format, r#"["{}", "a"]"#, Err((VALUE, 0)));
        check(Format, r#"["{+0}", "a"]"#, Err((VALUE, 0)));
        check(Format, r#"["{x}", "a"]"#, Err((VALUE, 0)));
        check(Format, r#"["{99999999999999999999}", "a"]"#, Err((VALUE, 0)));
        check(Format, r#"["a { b", "a"]"#, Err((VALUE, 0)));
        check(Format, r#"["a } b", "a"]"#, Err((VALUE, 0)));
        check(Format, "[1]", Err((TYPE, 0)));
    }

    #[test]
    fn parts_are_replaced() {
        use Function::Replace;
        check(Replace, r#"["a b c", " ", "-"]"#, Ok("a-b-c"));
        check(Replace, r#"["aaa", "aa", "a"]"#, Ok("aa"));
        check(Replace, r#"["abc", "x", "y"]"#, Ok("abc"));
        check(Replace, r#"["abc", "b", ""]"#, Ok("ac"));
        check(Replace, r#"["abc", "", "y"]"#, Err((VALUE, 1)));
        check(Replace, r#"["abc", "b", null]"#, Err((TYPE, 2)));
        let long = Value::text("a".repeat(1 << 20));
        let result =
            call_by(&Semantics::HOUSE, Replace, &[long, Value::text("a"), Value::text("b".repeat(64))]);
        assert_eq!(result.map_err(|error| error.code), Err(Code::ExpressionLimit));
    }
}
