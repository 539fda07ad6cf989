//! Spec Kit's expressions: the original's results for hundreds of templates and conditions, the findings, and the
//! conversion to native syntax and back.

use crate::support::folder;
use std::fmt::Write as _;
use std::ops::Range;
use windlass_dialects::speckit::expr::{parse_any_condition, parse_condition, parse_template, scope};
use windlass_dialects::swdl;
use windlass_ir::expr::{Expr, Limits, Namespace, Node, Printer, Read, Semantics, Template, holds, render};
use windlass_ir::{Diagnostic, SourceId, Span, Value};

fn locate(range: Range<usize>) -> Span {
    Span::new(SourceId(0), range.start, range.end)
}

fn json(name: &str) -> Value {
    let path = folder("speckit/cases").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("a file of JSON")
}

fn list<'a>(table: &'a Value, key: &str) -> &'a [Value] {
    let Some(Value::List(items)) = table.get(key) else { panic!("{key} is a list") };
    items
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case.get(key).and_then(Value::as_str).expect("a text")
}

/// The typed value, or that it raises an error.
fn rendered(template: &str, context: &Value) -> Option<Value> {
    let (template, _) = parse_template(template, &locate);
    render(&template, &scope(context), &Semantics::SPECKIT, &Limits::default()).ok()
}

/// Only text is evaluated; any other value is the condition itself.
fn condition(condition: &Value, context: &Value) -> Option<bool> {
    let template = match condition {
        Value::Text(text) => parse_any_condition(text, &locate).0,
        other => Template::Constant(other.clone()),
    };
    let value = render(&template, &scope(context), &Semantics::SPECKIT, &Limits::default()).ok()?;
    holds(&value, &Semantics::SPECKIT).ok()
}

/// Values are compared as JSON, which distinguishes integers and floats.
fn check(case: &Value, context: &Value) -> Option<String> {
    let shown = |value: Option<Value>| value.map(|value| value.to_json_text().expect("no secrets"));
    let (found, expected) = match case.get("condition") {
        None => {
            let raises = case.get("error") == Some(&Value::Bool(true));
            let expected = (!raises).then(|| case.get("value").cloned().unwrap_or(Value::Null));
            (shown(rendered(text(case, "expr"), context)), shown(expected))
        }
        Some(given) => {
            let found = condition(given, context).map(Value::Bool);
            (shown(found), shown(case.get("result").cloned()))
        }
    };
    (found != expected).then(|| format!("{} gives {found:?}", case.to_json_text().unwrap_or_default()))
}

fn check_all(name: &str, cases_min: usize) {
    let table = json(name);
    let context = table.get("context").expect("a context");
    let cases = || list(&table, "cases").iter().chain(list(&table, "conditions"));
    assert!(cases().count() >= cases_min, "the cases must be found");
    let problems: Vec<String> = cases().filter_map(|case| check(case, context)).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_case_of_the_original_gives_the_same_result() {
    check_all("expressions.json", 200);
}

#[test]
fn every_additional_case_gives_the_same_result() {
    check_all("more_expressions.json", 150);
}

#[test]
fn a_wrong_case_is_detected() {
    let context = Value::map([("inputs", Value::map([("n", Value::Int(3))]))]);
    let case = |key, text, result, value| Value::map([(key, Value::text(text)), (result, value)]);
    let wrong = [
        case("expr", "{{ inputs.n }}", "value", Value::Float(3.0)),
        case("expr", "{{ inputs.n }}", "error", Value::Bool(true)),
        case("expr", "{{ inputs.n | nothing }}", "value", Value::Null),
        case("condition", "{{ inputs.n }}", "result", Value::Bool(false)),
    ];
    assert!(wrong.iter().all(|case| check(case, &context).is_some()));
    assert_eq!(check(&case("expr", "{{ inputs.n }}", "value", Value::Int(3)), &context), None);
}

/// A finding in one line: its code, the text it points at, and its message.
fn show(text: &str, finding: &Diagnostic) -> String {
    let span = finding.span.expect("every finding has a place");
    let place = &text[span.start as usize..span.end as usize];
    let severity = format!("{:?}", finding.severity).to_lowercase();
    assert!(!finding.help.is_empty(), "{finding:?}");
    format!("{severity} {} at {place:?}: {}\n    help: {}", finding.code, finding.message, finding.help)
}

fn findings(texts: &[&str], read: fn(&str) -> Vec<Diagnostic>) -> String {
    let mut shown = String::new();
    for text in texts {
        writeln!(shown, "{text:?}").expect("text");
        for finding in read(text) {
            writeln!(shown, "  {}", show(text, &finding)).expect("text");
        }
    }
    shown
}

#[test]
fn silent_nulls_are_reported() {
    let read = |text: &str| {
        parse_template(&format!("{{{{ {text} }}}}"), &|range| locate(range.start - 3..range.end - 3)).1
    };
    insta::assert_snapshot!(findings(
        &[
            "inputs.name",
            "inputs.with space",
            "steps.loop:body:1.output.stdout",
            "item[0]",
            "not(inputs.a)",
            "!inputs.a",
            "inputs.a && inputs.b",
            "inputs.a AND inputs.b",
            "(inputs.a)and(inputs.b)",
            "inputs.map[\"k\"]",
            "inputs.list[0][1]",
            "inputs.list[inputs.n]",
            "[1, 2][0]",
            "(inputs.a).b",
            "inputs.n + 1",
            "inputs.a if inputs.b else 'c'",
            "inputs.a ? 'b' : 'c'",
            "inputs.name.upper()",
            "length(inputs.list)",
            "inputs.a is defined",
            "inputs.a = 1",
            "inputs.a === 1",
            "inputs.a ==",
            "1e3",
            "0x10",
            "99999999999999999999",
            "{ inputs.a }",
            "{'a': 1}",
            "$inputs.a",
            "input.name",
            "parameters.name",
            "approve",
            "inputs.a == 'open",
            "bogus == 1 or other",
        ],
        read
    ));
}

#[test]
fn errors_of_the_original_are_reported() {
    let read = |text: &str| {
        parse_template(&format!("{{{{ {text} }}}}"), &|range| locate(range.start - 3..range.end - 3)).1
    };
    insta::assert_snapshot!(findings(
        &[
            "(inputs.list | length) > 0",
            "inputs.list | length > 0",
            "inputs.a == inputs.b | default('x')",
            "not inputs.a | default('x')",
            "inputs.a | default('x') == 'x'",
            "inputs.a || inputs.b",
            "inputs.a | shout",
            "inputs.a | tojson",
            "inputs.a | uper",
            "inputs.a | join",
            "inputs.a | join (',')",
            "inputs.a | join(',', 'x')",
            "inputs.a | upper()",
            "inputs.a | default()",
            "inputs.a | join('\n')",
            "inputs.a or (inputs.b | shout)",
            "(inputs.a | shout) and inputs.b",
        ],
        read
    ));
}

#[test]
fn blocks_and_braces_are_checked() {
    let read = |text: &str| parse_template(text, &locate).1;
    let texts = ["plain", "{{ }} x", "a {{ inputs.a", "a {{ inputs.a | default('x }} b", "{{{ inputs.a }}}"];
    insta::assert_snapshot!(findings(&texts, read));
}

#[test]
fn conditions_are_one_block() {
    let read = |text: &str| parse_condition(text, &locate).1;
    insta::assert_snapshot!(findings(
        &[
            "",
            " True ",
            "false",
            "{{ inputs.a }}",
            "   ",
            "inputs.count > 100",
            "prefix {{ inputs.ready",
            "{{ inputs.count > 100",
            "inputs.name ==",
            "inputs.name == 'abc",
            "bogus > 1",
            "inputs.n + 1 > 2",
            "inputs.blob | shout",
            "{{ true }} and {{ inputs.ready",
            "{{ inputs.a }} and {{ inputs.b }}",
            "not {{ inputs.a }}",
            "{{ }}",
            "{{ inputs.a | default('x }}",
            "{{ inputs.a == '}}'",
            "{{ input.a }}",
        ],
        read
    ));
    let step = |text: &str| parse_condition(text, &locate).0.node;
    assert_eq!(step(""), Node::Literal(Value::Bool(false)));
    assert_eq!(step(" TRUE\n"), Node::Literal(Value::Bool(true)));
    assert_eq!(step("inputs.a"), Node::Literal(Value::Bool(true)));
}

/// The blocks of a page that are marked with `text` and the kind of their lines, and the codes of each line.
fn examples(page: &str) -> Vec<(String, String, Vec<String>)> {
    let (mut found, mut open) = (Vec::new(), None::<Vec<&str>>);
    for line in page.lines() {
        match (line.strip_prefix("```"), &open) {
            (Some(_), Some(_)) => open = None,
            (Some(words), None) => open = Some(words.split(' ').collect()),
            (None, Some(words)) if words.len() > 1 && words[0] == "text" => {
                let codes = words[2..].iter().skip(1).map(|code| (*code).to_owned()).collect();
                found.push((words[1].to_owned(), line.to_owned(), codes));
            }
            (None, _) => {}
        }
    }
    found
}

#[test]
fn the_examples_on_error_pages_are_correct() {
    for page in
        ["silent_null", "condition_without_braces", "condition_block_unclosable", "condition_not_one_block"]
    {
        let path = format!("{}/../../docs/errors/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let examples = examples(&text);
        assert!(examples.iter().any(|(_, _, codes)| codes == &[page]), "{page} shows how it comes about");
        for (kind, line, expected) in examples {
            let found = match kind.as_str() {
                "template" => parse_template(&line, &locate).1,
                "condition" => parse_condition(&line, &locate).1,
                other => panic!("{page}: unknown kind of block: {other}"),
            };
            let found: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
            assert_eq!(found, expected, "{page}: {line}");
        }
    }
}

/// Pseudorandom numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % sides
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.roll(words.len())]
    }
}

const VALUES: &[&str] = &[
    "inputs.name",
    "inputs.with space",
    "inputs.my-key[-1].ключ",
    "inputs.",
    "inputs.it's",
    "steps.loop:body:1.output.stdout",
    "item[0]",
    "context.run_id",
    "'it\"s'",
    "\"a\\b\n'c\"",
    "''",
    "7",
    "-4",
    "-9223372036854775808",
    "2.5",
    "-0.0",
    "1.0e20",
    "1.5e-300",
    "1.0e400",
    "-1.0e400",
    "99999999999999999999",
    "true",
    "None",
    "bogus",
    "[]",
    "[1, 'a', item]",
];
const FILTERS: &[&str] = &[
    "default",
    "default('x')",
    "join(', ')",
    "map('a.b')",
    "contains(1)",
    "split(',')",
    "upper",
    "lower",
    "length",
    "from_json",
    "to_json",
    "shout",
    "join",
    "",
];

fn generate(dice: &mut Dice, depth: usize) -> String {
    let inner = |dice: &mut Dice| generate(dice, depth - 1);
    match if depth == 0 { 0 } else { dice.roll(8) } {
        0 | 1 => dice.pick(VALUES).to_owned(),
        2 => {
            format!("{} {} {}", inner(dice), dice.pick(&["==", "!=", "<", ">=", "in", "not in"]), inner(dice))
        }
        3 => format!("{} {} {}", inner(dice), dice.pick(&["and", "or"]), inner(dice)),
        4 => format!("not {}", inner(dice)),
        5 => format!("({})", inner(dice)),
        6 => format!("({}) | {}", inner(dice), dice.pick(FILTERS)),
        _ => format!("[{}, {}]", inner(dice), inner(dice)),
    }
}

/// A tree without its source locations.
fn meaning(expr: &Expr) -> serde_json::Value {
    serde_json::to_value(expr).expect("trees have no secrets")
}

fn check_house(expr: &Expr) {
    let printer = Printer { words: &swdl::WORDS, step: &|_| String::new() };
    let printed = printer.expr(expr);
    let again = swdl::expr::parse_expression(&printed, &locate);
    let again = again.unwrap_or_else(|found| panic!("{printed}: {found:?}"));
    assert_eq!(meaning(&again), meaning(expr), "{printed}");
}

#[test]
fn native_syntax_can_express_every_expression() {
    let mut dice = Dice(7);
    for _ in 0..5_000 {
        let (expr, _) = parse_condition(&format!("{{{{ {} }}}}", generate(&mut dice, 4)), &locate);
        check_house(&expr);
    }
}

#[test]
fn random_tokens_never_panic() {
    const WORDS: &[&str] = &[
        "{{", "}}", "{", "}", "'", "\"", "(", ")", "[", "]", "|", ",", ".", " ", "\n", "\u{3000}", "é",
        "inputs", "item", "name", " or ", " and ", "not ", " in ", "==", "<", "!", "=", "-", "1", "0.5", "_",
        "default", "upper", "&&", "null",
    ];
    let context = json("expressions.json");
    let context = context.get("context").expect("a context");
    let mut dice = Dice(3);
    for _ in 0..20_000 {
        let text: String = (0..dice.roll(24)).map(|_| dice.pick(WORDS)).collect();
        let (template, found) = parse_any_condition(&text, &locate);
        let certain = found.iter().any(Diagnostic::is_error);
        // `show` reads the text under each span, so an invalid span would panic.
        found.iter().for_each(|finding| assert!(!show(&text, finding).is_empty()));
        template.expressions().into_iter().filter(|expr| !reads_fan_in(expr)).for_each(check_house);
        let value = render(&template, &scope(context), &Semantics::SPECKIT, &Limits::default());
        assert!(!certain || value.is_err(), "{text:?} was said to fail");
    }
}

fn reads_fan_in(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= part.node == Node::Read(Read::Namespace(Namespace::FanIn)));
    found
}

#[test]
fn hostile_texts_are_refused() {
    let limited = |body: &str| {
        let (_, found) = parse_template(&format!("{{{{ {body} }}}}"), &locate);
        let limit =
            found.iter().any(|finding| finding.code.as_str() == "expression_limit" && finding.is_error());
        assert!(limit, "{}", &body[..20]);
        assert!(found.len() <= 50, "{}", found.len());
    };
    limited(&format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000)));
    limited(&format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)));
    limited(&"not ".repeat(10_000));
    limited(&"1 == ".repeat(10_000));
    limited(&"item or ".repeat(5_000));
    limited(&format!("item{}", ".a".repeat(10_000)));
    limited(&format!("item{}", " | upper".repeat(5_000)));
    limited(&format!("item{}1{}", " | default(item".repeat(3_000), ")".repeat(3_000)));
    limited(&"x".repeat(70_000));
    let (_, found) = parse_template(&"a{{}}".repeat(200_000), &locate);
    assert_eq!(found.len(), 50);
    let (_, found) = parse_template(&"{{ x ".repeat(100_000), &locate);
    assert_eq!(found.len(), 1);
}
