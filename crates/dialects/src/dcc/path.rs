//! The syntax of `items` and `on`: one JSONPath (RFC 9535) over the context of a run.

use super::template::{Locate, OPEN};
use windlass_ir::expr::{Expr, Namespace, Node, Query, Read};
use windlass_ir::{Code, Diagnostic, Span};

/// Parses a path over the whole context; `bind` narrows it to what the file reads.
pub fn parse_path(text: &str, locate: Locate<'_>) -> Result<Expr, Vec<Diagnostic>> {
    let span = locate(0..text.len());
    let path = parse_query(text, span).map_err(|finding| vec![*finding])?;
    let of = Box::new(Expr::new(Node::Read(Read::Namespace(Namespace::Root)), span));
    Ok(Expr::new(Node::Query { of, path }, span))
}

/// The path alone.
pub fn parse_query(text: &str, span: Span) -> Result<Query, Box<Diagnostic>> {
    Query::parse(text).map_err(|error| {
        let message = if text.trim().is_empty() {
            "the path is empty".to_owned()
        } else if error.is_limit() {
            format!("unsupported path: {error}")
        } else {
            format!("invalid JSONPath `{}`", shortened(text))
        };
        let (suggest, help) = advice(text, error.is_limit());
        let finding = Diagnostic::error(Code::ExpressionSyntax, message).at(span).reference(shortened(text));
        Box::new(finding.suggest(suggest).help(help))
    })
}

fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What the author probably meant, and what to write.
fn advice(text: &str, is_limit: bool) -> (Option<String>, &'static str) {
    let bare = text.trim();
    let inside = bare.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix("}}")).unwrap_or(bare).trim();
    let guess = match inside.strip_prefix('@') {
        Some(rest) => format!("${rest}"),
        None if inside.starts_with('$') => inside.to_owned(),
        None if inside.contains('.') => format!("$.{inside}"),
        None => String::new(),
    };
    let suggest =
        Some(guess).filter(|guess| guess != text && !inside.is_empty() && Query::parse(guess).is_ok());
    let help = if is_limit {
        "use a shorter path with fewer nested brackets and calls"
    } else if text.contains(OPEN) {
        "write a JSONPath here, not a template"
    } else if ["==", "!=", "<", ">"].iter().any(|sign| text.contains(sign)) && !text.contains('?') {
        "comparisons are only allowed inside a filter, such as `$.inputs.rows[?@.size > 3]`"
    } else {
        "start with `$`, such as `$.inputs.files` or `$.steps.list.output.files[*].name`"
    };
    (suggest, help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcc::scope;
    use windlass_ir::expr::{Limits, Semantics, evaluate};

    fn check(text: &str, expected: &str) {
        let context = serde_json::from_str(
            r#"{"inputs": {"rows": [{"p": [1, 2], "size": 4}], "xs": [1, 2, 3]}, "steps": {}, "item": null}"#,
        );
        let context = context.expect("JSON");
        let parsed = parse_path(text, &|_| Span::default()).unwrap_or_else(|_| panic!("{text}"));
        let value = evaluate(&parsed, &scope(&context), &Semantics::DCC, &Limits::default());
        let value = value.map(|value| value.to_json_text().expect("no secrets"));
        assert_eq!(value.as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn paths_search_the_whole_context() {
        check("$.inputs.xs", "[1,2,3]");
        check("$.inputs.xs[-1]", "3");
        check("$.inputs.xs[?@ > 1]", "[2,3]");
        check("$.inputs.rows[*].p", "[1,2]");
        check("$.inputs.rows[?length(@.p) > 1].size", "4");
        check("$.item", "null");
        check("$.nowhere", "null");
    }

    fn check_refused(text: &str, suggest: Option<&str>, help: &str) {
        let findings = parse_path(text, &|_| Span::default()).expect_err(text);
        let found: Vec<_> =
            findings.iter().map(|finding| (finding.code, finding.suggest.as_deref())).collect();
        assert_eq!(found, [(Code::ExpressionSyntax, suggest)], "{text}");
        assert!(findings[0].help.ends_with(help), "{text}: {}", findings[0].help);
    }

    #[test]
    fn invalid_paths_are_explained() {
        let begin = "start with `$`, such as `$.inputs.files` or `$.steps.list.output.files[*].name`";
        let compare = "comparisons are only allowed inside a filter, such as `$.inputs.rows[?@.size > 3]`";
        check_refused("", None, begin);
        check_refused("$[", None, begin);
        check_refused("@.x", Some("$.x"), begin);
        check_refused("inputs.xs", Some("$.inputs.xs"), begin);
        check_refused(" $.inputs.xs", Some("$.inputs.xs"), begin);
        check_refused("{{ inputs.xs }}", Some("$.inputs.xs"), "write a JSONPath here, not a template");
        check_refused("$.inputs.x == 3", None, compare);
        let shorter = "use a shorter path with fewer nested brackets and calls";
        check_refused(&format!("$[?{}", "count(@[?".repeat(100)), None, shorter);
    }
}
