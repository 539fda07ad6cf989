//! One filter of a chain, the text between two `|`: `upper`, `join(', ')`. A [`Problem`] is something that the
//! original would raise for.

use super::meant::shortened;
use super::scan;
use std::ops::Range;
use windlass_ir::Code;
use windlass_ir::expr::{Function, python};
use windlass_ir::suggest::nearest;

const WITHOUT_ARGUMENT: [Function; 5] =
    [Function::FromJson, Function::Upper, Function::Lower, Function::Length, Function::ToJson];
const WITH_ARGUMENT: [Function; 5] =
    [Function::Default, Function::Join, Function::Map, Function::Contains, Function::Split];
const FORMS: &str = "use default, default('x'), join('sep'), map('attr'), contains('s'), split('sep'), \
    from_json, upper, lower, length or to_json";
/// Filters of other languages with another name here.
const FOREIGN: [(&str, &str); 6] = [
    ("len", "length"),
    ("count", "length"),
    ("size", "length"),
    ("tojson", "to_json"),
    ("fromjson", "from_json"),
    ("d", "default"),
];

/// Why a part of an expression raises an error.
pub(super) struct Problem {
    pub code: Code,
    pub message: String,
    pub help: String,
    /// The invalid word.
    pub word: Option<String>,
    pub suggest: Option<String>,
}

pub(super) fn ambiguous(operator: &str, head: &str) -> Problem {
    let head = shortened(head);
    Problem {
        code: Code::ExpressionSyntax,
        message: format!(
            "it is ambiguous whether the filter applies to all of `{head}` or only to the part after \
                `{operator}`"
        ),
        help: "put the filter and its value in parentheses, e.g. `a == (b | default('x'))`".into(),
        word: Some(operator.into()),
        suggest: None,
    }
}

/// The function of a filter, and the range of its argument.
pub(super) fn read(text: &str) -> Result<(Function, Option<Range<usize>>), Problem> {
    let name_end = text.find(|c| !python::is_word(c)).unwrap_or(text.len());
    let name = &text[..name_end];
    let named =
        |functions: &[Function]| functions.iter().copied().find(|function| function.filter_name() == name);
    if let Some(function) = named(&WITHOUT_ARGUMENT) {
        return if text == name { Ok((function, None)) } else { Err(misused(function, text)) };
    }
    let Some(function) = named(&WITH_ARGUMENT) else { return Err(unknown(name, text)) };
    match argument(&text[name_end..]) {
        Some(argument) => Ok((function, Some(name_end + argument.start..name_end + argument.end))),
        None if function == Function::Default && text == name => Ok((function, None)),
        None => Err(misused(function, text)),
    }
}

/// The range between the parentheses, if the text is one argument in them. A line break ends the original's pattern.
fn argument(text: &str) -> Option<Range<usize>> {
    let inside = text.strip_prefix('(')?.strip_suffix(')')?;
    let fits = !inside.is_empty() && !inside.contains('\n') && !scan::has(inside, ",");
    fits.then(|| 1..1 + inside.len())
}

fn misused(function: Function, text: &str) -> Problem {
    let name = function.filter_name();
    let rest = &text[name.len()..];
    let after = python::strip(&rest[scan::group_length(rest)..]);
    let spaced = WITH_ARGUMENT.contains(&function) && rest.starts_with(" (");
    let (code, message, help) = if scan::has_open_quote(rest) {
        (
            Code::ExpressionSyntax,
            format!("a quote is not closed after the filter `{name}`"),
            "close the quote",
        )
    } else if spaced {
        let message = format!("there is a space between the filter `{name}` and its argument");
        (Code::ExpressionSyntax, message, "write the parenthesis directly after the name")
    } else if !after.is_empty() {
        let message = format!("unexpected `{}` after the filter `{name}`", shortened(after));
        (
            Code::ExpressionSyntax,
            message,
            "put the filter and its value in parentheses, e.g. `(list | length) > 0`",
        )
    } else if rest.contains('\n') {
        let message = format!("the argument of the filter `{name}` contains a line break");
        (Code::ExpressionSyntax, message, "read the text with the line break from an input")
    } else if WITHOUT_ARGUMENT.contains(&function) {
        (Code::BadArity, format!("the filter `{name}` takes no argument and no parentheses"), FORMS)
    } else {
        (Code::BadArity, format!("the filter `{name}` takes one argument"), FORMS)
    };
    Problem { code, message, help: help.into(), word: Some(name.into()), suggest: None }
}

fn unknown(name: &str, text: &str) -> Problem {
    if text.is_empty() {
        let message = "missing filter after `|`".to_owned();
        let help = "write `or` for a logical or; a single `|` is followed by a filter, e.g. `value | \
            default('x')`";
        return Problem {
            code: Code::ExpressionSyntax,
            message,
            help: help.into(),
            word: None,
            suggest: None,
        };
    }
    let word = if name.is_empty() { text } else { name };
    let names = WITH_ARGUMENT.iter().chain(&WITHOUT_ARGUMENT).map(|function| function.filter_name());
    let foreign = FOREIGN.iter().find(|(other, _)| other.eq_ignore_ascii_case(word)).map(|(_, ours)| *ours);
    Problem {
        code: Code::UnknownFunction,
        message: format!("unknown filter `{}`", shortened(word)),
        help: FORMS.into(),
        word: Some(word.into()),
        suggest: foreign.or_else(|| nearest(word, names)).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(Function, Option<&str>), Code>) {
        let found = read(text).map(|(function, argument)| (function, argument.map(|range| &text[range])));
        assert_eq!(found.map_err(|problem| problem.code), expected, "{text}");
    }

    #[test]
    fn filter_forms() {
        check("upper", Ok((Function::Upper, None)));
        check("default", Ok((Function::Default, None)));
        check("default('a, b')", Ok((Function::Default, Some("'a, b'"))));
        check("join([1, 2])", Ok((Function::Join, Some("[1, 2]"))));
        check("default(0) > (5)", Ok((Function::Default, Some("0) > (5"))));
        check("default()", Err(Code::BadArity));
        check("join", Err(Code::BadArity));
        check("join(1, 2)", Err(Code::BadArity));
        check("upper()", Err(Code::BadArity));
        check("join ('a')", Err(Code::ExpressionSyntax));
        check("upper extra", Err(Code::ExpressionSyntax));
        check("default(0) > 5", Err(Code::ExpressionSyntax));
        check("join('\n')", Err(Code::ExpressionSyntax));
        check("", Err(Code::ExpressionSyntax));
        check("shout", Err(Code::UnknownFunction));
        check("'x'", Err(Code::UnknownFunction));
    }
}
