//! The built-in functions by the rules of Python filters: their arguments and errors. The native rules are in
//! `functions`; functions not listed here behave the same under both.

use super::eval::{EvalError, equals_within};
use super::functions::{Call, Function};
use super::python;
use super::python_json::{self, Unwritable};
use crate::diagnostic::Code;
use crate::value::Value;

impl Call<'_> {
    pub(super) fn run_filter(&mut self) -> Result<Value, EvalError> {
        match self.function {
            Function::Default => Ok(self.filter_default()),
            Function::Join => self.filter_join(),
            Function::Contains => self.filter_contains(),
            Function::Length => self.filter_length(),
            Function::FromJson => self.filter_from_json(),
            Function::ToJson => self.filter_to_json(),
            Function::Split
            | Function::Upper
            | Function::Lower
            | Function::Map
            | Function::In
            | Function::StartsWith
            | Function::EndsWith
            | Function::Keys
            | Function::Values
            | Function::First
            | Function::Last
            | Function::Flatten
            | Function::Min
            | Function::Max
            | Function::Text
            | Function::Trim
            | Function::AsList
            | Function::Object
            | Function::Range
            | Function::Format
            | Function::Replace
            | Function::Fail
            | Function::Raw
            | Function::ShellQuote => self.run_house(),
        }
    }

    /// Empty text counts as missing; zero, false and the empty list do not.
    fn filter_default(&self) -> Value {
        let is_missing = match &self.args[0].value {
            Value::Null => true,
            Value::Text(text) => text.is_empty(),
            Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Sealed(_)
            | Value::List(_)
            | Value::Map(_) => false,
        };
        self.args[usize::from(is_missing)].value.clone()
    }

    /// Anything that is not a list is read as text, including null.
    fn filter_join(&mut self) -> Result<Value, EvalError> {
        let separator = if self.args.len() > 1 { self.text(1)? } else { "," };
        let value = &self.args[0].value;
        let items = if let Value::List(items) = value { items.as_ref() } else { std::slice::from_ref(value) };
        let mut out = String::new();
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.meter.make(separator.len()).map_err(|e| e.at(self.span))?;
                out.push_str(separator);
            }
            out.push_str(&python::text(item, self.meter).map_err(|e| e.at(self.args[0].span))?);
        }
        Ok(Value::text(out))
    }

    fn filter_contains(&mut self) -> Result<Value, EvalError> {
        let found = match &self.args[0].value {
            Value::Text(text) => text.contains(self.text(1)?),
            Value::List(items) => {
                let mut found = false;
                for item in items.iter() {
                    let same = equals_within(item, &self.args[1].value, self.semantics, self.meter);
                    found = found || same.map_err(|e| e.at(self.span))?;
                }
                found
            }
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Sealed(_)
            | Value::Map(_) => false,
        };
        Ok(Value::Bool(found))
    }

    fn filter_length(&self) -> Result<Value, EvalError> {
        let length = match &self.args[0].value {
            Value::List(items) => items.len(),
            Value::Text(text) => text.chars().count(),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Sealed(_)
            | Value::Map(_) => {
                return Err(self.wrong_kind(0, "a list or a string"));
            }
        };
        Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
    }

    fn filter_from_json(&mut self) -> Result<Value, EvalError> {
        let text = self.text(0)?;
        self.pay_for_json(text)?;
        python_json::read(text).map_err(|why| {
            let message = format!("`{}` was given text that is not valid JSON: {why}", self.name());
            EvalError::new(Code::ExpressionValue, message, "check the step that produced the text")
                .at(self.args[0].span)
        })
    }

    fn filter_to_json(&mut self) -> Result<Value, EvalError> {
        let mut out = String::new();
        let written = python_json::write(&self.args[0].value, &mut out, self.meter);
        written.map_err(|why| match why {
            Unwritable::Error(error) => error.at(self.args[0].span),
            Unwritable::Number(float) => {
                let message = format!("JSON cannot represent the number {float}");
                let help = "remove the number before converting to JSON";
                EvalError::new(Code::ExpressionValue, message, help).at(self.args[0].span)
            }
        })?;
        Ok(Value::text(out))
    }
}

#[cfg(test)]
mod tests {
    use super::super::functions::tests::call_by;
    use super::*;
    use crate::expr::Semantics;

    /// Takes the arguments as one JSON list; the expected result is JSON, or `None` for an error.
    fn check(function: Function, args: &str, expected: Option<&str>) {
        let args: Value = serde_json::from_str(args).expect("test data is JSON");
        let Value::List(args) = args else { panic!("arguments are a list") };
        let found = call_by(&Semantics::SPECKIT, function, &args).ok();
        assert_eq!(
            found.and_then(|value| value.to_json_text()).as_deref(),
            expected,
            "{} {args:?}",
            function.name()
        );
    }

    #[test]
    fn filters_follow_python() {
        use Function::{Contains, Default, FromJson, In, Join, Length, Lower, Map, Split, ToJson, Upper};
        check(Default, r#"["", 1]"#, Some("1"));
        check(Default, "[null, 1]", Some("1"));
        check(Default, "[0, 1]", Some("0"));
        check(Default, "[false, 1]", Some("false"));
        check(Default, "[[], 1]", Some("[]"));
        check(Join, r#"[["a", 1, null, true, 2.0, ["x"]], "-"]"#, Some(r#""a-1-None-True-2.0-['x']""#));
        check(Join, r#"[null, "-"]"#, Some("\"None\""));
        check(Join, r#"["abc", "-"]"#, Some("\"abc\""));
        check(Join, r#"[{"a": 1}, "-"]"#, Some(r#""{'a': 1}""#));
        check(Join, r#"[["a"], 5]"#, None);
        check(
            Map,
            r#"[[{"a": {"b": 1}}, {"a": 2}, {}, "raw", null], "a.b"]"#,
            Some(r#"[1,null,null,"raw",null]"#),
        );
        check(Map, r#"["text", "a"]"#, Some("[]"));
        check(Map, "[null, 5]", None);
        check(Contains, r#"["abc", "b"]"#, Some("true"));
        check(Contains, r#"["abc", 5]"#, None);
        check(Contains, "[[1, 2], true]", Some("true"));
        check(Contains, r#"[{"a": 1}, "a"]"#, Some("false"));
        check(Contains, r#"[null, "a"]"#, Some("false"));
        check(Split, r#"["a,b,,c", ","]"#, Some(r#"["a","b","","c"]"#));
        check(Split, r#"["abc", ""]"#, None);
        check(Split, r#"[["a"], ","]"#, None);
        check(Split, r#"["a", 1]"#, None);
        check(Upper, r#"["straße"]"#, Some("\"STRASSE\""));
        check(Lower, "[1]", None);
        check(Length, r#"["a👍b"]"#, Some("3"));
        check(Length, r#"[{"a": 1}]"#, None);
        check(Length, "[null]", None);
        check(FromJson, r#"["-0"]"#, Some("0"));
        check(FromJson, r#"["{oops"]"#, None);
        check(FromJson, "[null]", None);
        check(
            ToJson,
            r#"[{"b": 1, "a": [1, 2.0], "ü": "ß"}]"#,
            Some(r#""{\"a\": [1, 2.0], \"b\": 1, \"ü\": \"ß\"}""#),
        );
        check(In, "[true, [1]]", Some("true"));
        check(In, r#"[1, "1"]"#, Some("false"));
        check(In, r#"[1, null]"#, Some("false"));
    }

    #[test]
    fn messages_use_filter_syntax() {
        let error = call_by(&Semantics::SPECKIT, Function::FromJson, &[Value::Int(3)]).expect_err("no text");
        assert_eq!(error.message, "`from_json` expects a string, not an integer");
        assert_eq!(error.help, "write `text | from_json`");
        let error = call_by(&Semantics::SPECKIT, Function::Length, &[Value::Null]).expect_err("nothing");
        assert_eq!(
            error.help,
            "the value is missing; provide one with `| default('…')`, or check for null first"
        );
    }

    #[test]
    fn fail_always_fails() {
        for semantics in [Semantics::HOUSE, Semantics::SPECKIT] {
            let error =
                call_by(&semantics, Function::Fail, &[Value::text("no such thing")]).expect_err("it must");
            assert_eq!((error.code, error.message.as_str()), (Code::ExpressionValue, "no such thing"));
        }
    }
}
