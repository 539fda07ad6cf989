//! What Python would do with a value: its text form, its order, its idea of blanks. Workflows that were written against
//! those rules compare and print by them.

use super::eval::{EvalError, Meter, compare_numbers, sealed};
use crate::value::Value;
use std::cmp::Ordering;
use std::fmt::Write;

/// Without the blanks around it, as `str.strip` sees them.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Unicode white space and the four separators of ASCII, which Python counts as blanks too.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// The order of two values, or none: numbers and texts that hold numbers by value, otherwise two texts, two lists.
pub(super) fn order(a: &Value, b: &Value, meter: &mut Meter) -> Result<Option<Ordering>, EvalError> {
    if matches!(a, Value::Sealed(_)) || matches!(b, Value::Sealed(_)) {
        return Err(sealed("compared"));
    }
    if let (Some(a), Some(b)) = (as_number(a), as_number(b)) {
        return Ok(compare_numbers(&a, &b));
    }
    raw_order(a, b, meter)
}

fn raw_order(a: &Value, b: &Value, meter: &mut Meter) -> Result<Option<Ordering>, EvalError> {
    meter.work(1)?;
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Ok(Some(a.cmp(b))),
        (Value::List(a), Value::List(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                let order = raw_order(a, b, meter)?;
                if order != Some(Ordering::Equal) {
                    return Ok(order);
                }
            }
            Ok(Some(a.len().cmp(&b.len())))
        }
        (a, b) => match (plain_number(a), plain_number(b)) {
            (Some(a), Some(b)) => Ok(compare_numbers(&a, &b)),
            (_, _) => Ok(None),
        },
    }
}

fn plain_number(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(flag) => Some(Value::Int(i64::from(*flag))),
        Value::Int(_) | Value::Float(_) => Some(value.clone()),
        Value::Null | Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => None,
    }
}

fn as_number(value: &Value) -> Option<Value> {
    match value {
        Value::Text(text) => {
            let text = strip(text);
            text.parse().map(Value::Int).or_else(|_| text.parse().map(Value::Float)).ok()
        }
        other => plain_number(other),
    }
}

/// `str(value)`.
pub(super) fn text(value: &Value, meter: &mut Meter) -> Result<String, EvalError> {
    let mut out = String::new();
    match value {
        Value::Text(text) => out.push_str(text),
        other => repr(other, &mut out, meter)?,
    }
    meter.make(out.len())?;
    Ok(out)
}

fn repr(value: &Value, out: &mut String, meter: &mut Meter) -> Result<(), EvalError> {
    meter.work(1)?;
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(flag) => out.push_str(if *flag { "True" } else { "False" }),
        Value::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Value::Float(float) => float_text(*float, out),
        Value::Text(text) => quoted(text, out),
        Value::Sealed(_) => return Err(sealed("turned into plain text")),
        Value::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                repr(item, out, meter)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (place, (key, item)) in map.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                quoted(key, out);
                out.push_str(": ");
                repr(item, out, meter)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn float_text(float: f64, out: &mut String) {
    let magnitude = float.abs();
    if float.is_nan() {
        out.push_str("nan");
    } else if float.is_infinite() {
        out.push_str(if float > 0.0 { "inf" } else { "-inf" });
    } else if float != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        let _ = write!(out, "{float:?}");
    }
}

/// Single quotes, unless the text has some and no double ones.
fn quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}
