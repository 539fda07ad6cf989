//! SWDL's expressions: values, findings and their places, limits, and that no text makes the parser panic.

use std::ops::Range;
use windlass_dialects::swdl::expr::{
    DEPTH_MAX, FINDINGS_MAX, parse_condition, parse_expression, parse_template,
};
use windlass_ir::expr::{EvalError, Limits, Namespace, Read, Scope, Semantics, evaluate, render};
use windlass_ir::{Code, Diagnostic, SourceId, Span, Value};

/// Locations are offsets into the text itself, so that a span can be read back.
fn locate(range: Range<usize>) -> Span {
    Span::new(SourceId(0), range.start, range.end)
}

fn under(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

fn json(text: &str) -> Value {
    serde_json::from_str::<serde_json::Value>(text).map(|json| Value::from(&json)).expect("test data is JSON")
}

/// A run in which one stage has succeeded.
struct Tour;

impl Scope for Tour {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        let namespace = match read {
            Read::Namespace(namespace) => namespace,
            Read::Now => return Ok(Value::text("2027-01-31T09:00:00Z")),
            _ => return Ok(Value::Null),
        };
        Ok(match namespace {
            Namespace::Inputs => json(
                r#"{"branch": "release-7", "limit": 3, "dry": false, "labels": ["red", "blue"],
                    "blob": "{\"a\": {\"b-c\": [10, 20]}}", "empty": "", "n-1": "hyphen"}"#,
            ),
            Namespace::Steps => json(
                r#"{"pick-files": {"status": "success", "outputs":
                    {"files": ["a", "b"], "meta": {"k": 1}, "note": null}}}"#,
            ),
            Namespace::Env => json(r#"{"WHERE": "br/release-7"}"#),
            Namespace::Run => json(r#"{"id": "r-1"}"#),
            Namespace::Workflow => json(r#"{"id": "expression-tour", "version": "3.2.1"}"#),
            Namespace::Item => json(r#"{"name": "it's"}"#),
            Namespace::Index => Value::Int(2),
            Namespace::Secrets => Value::map([("TOKEN", Value::secret("TOKEN"))]),
            Namespace::Context
            | Namespace::Loops
            | Namespace::Host
            | Namespace::Failure
            | Namespace::Undo
            | Namespace::FanIn
            | Namespace::Root
            | Namespace::Class
            | Namespace::ExitCode
            | Namespace::Message
            | Namespace::Attempt => Value::Null,
        })
    }
}

/// The value as JSON, or each finding as its code and the text under its span.
fn outcome(text: &str) -> Result<String, Vec<(&'static str, String)>> {
    let expr = parse_expression(text, &locate).map_err(|found| summary(text, &found))?;
    evaluate(&expr, &Tour, &Semantics::HOUSE, &Limits::default())
        .map(|value| value.to_json_text().unwrap_or_else(|| "secret".to_owned()))
        .map_err(|error| summary(text, &[error.into_diagnostic()]))
}

fn summary(text: &str, found: &[Diagnostic]) -> Vec<(&'static str, String)> {
    let place = |found: &Diagnostic| found.span.map_or("nowhere", |span| under(text, span)).to_owned();
    found.iter().map(|found| (found.code.as_str(), place(found))).collect()
}

fn check(text: &str, expected: &str) {
    assert_eq!(outcome(text), Ok(expected.to_owned()), "{text}");
}

fn check_error(text: &str, expected: &[(&'static str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(code, place)| (*code, (*place).to_owned())).collect();
    assert_eq!(outcome(text), Err(expected), "{text}");
}

#[test]
fn the_tour_of_the_language() {
    check("parameters.limit == 3", "true");
    check("parameters.limit == 3.0", "true");
    check("parameters.dry == 0", "false");
    check("1 == true", "false");
    check("\"a\" == 'a'", "true");
    check("!parameters.dry", "true");
    check("true || false && false", "true");
    check("(true || false) && false", "false");
    check("length(stages.pick-files.outputs.files) > 1", "true");
    check("length(stages.pick-files.outputs.files) <= 1", "false");
    check("length(stages.pick-files.outputs.meta)", "1");
    check("contains(parameters.branch, 'release')", "true");
    check("contains(parameters.labels, 'blu')", "false");
    check("contains('Release', 'release')", "false");
    check("fromJSON(parameters.blob).a.b-c", "[10,20]");
    check("fromJSON(parameters.blob).a['b-c'][1]", "20");
    check("stages['pick-files'].outputs.files[5]", "null");
    check("stages.pick-files.outputs.note == null", "true");
    check("stages.pick-files.status == 'success'", "true");
    check("stages.pick-files.outputs.meta.none.deeper", "null");
    check("stages.pick-files.outputs.note || 'none'", "\"none\"");
    check("workflow.version", "\"3.2.1\"");
    check("env.WHERE", "\"br/release-7\"");
    check("'a }} b'", "\"a }} b\"");
    check(
        "length(stages.pick-files.outputs.files) >= parameters.limit ? true : contains(parameters.branch, 'release')",
        "true",
    );
}

#[test]
fn the_errors_of_the_tour() {
    check_error("parameters.limit -1", &[("expression_syntax", "-")]);
    check_error("parameters.limit + 'a'", &[("expression_type", "parameters.limit + 'a'")]);
    check_error("1 / 0", &[("expression_value", "1 / 0")]);
    check_error("9223372036854775807 + 1", &[("expression_value", "9223372036854775807 + 1")]);
    check_error("1 < 2 < 3", &[("expression_syntax", "<")]);
    check_error("parameters.limit =", &[("expression_syntax", "=")]);
    check_error("vault.x", &[("unknown_namespace", "vault")]);
    check_error("shout('x')", &[("unknown_function", "shout")]);
    check_error("length()", &[("bad_arity", "length()")]);
    check_error(
        "stages.pick-files.outputs.note > 3",
        &[("expression_type", "stages.pick-files.outputs.note > 3")],
    );
    check_error(
        "length(stages.pick-files.outputs.note)",
        &[("expression_type", "stages.pick-files.outputs.note")],
    );
    check_error("fromJSON('{')", &[("expression_value", "'{'")]);
}

#[test]
fn literals() {
    check("-12", "-12");
    check("-9223372036854775808", "-9223372036854775808");
    check("3.50", "3.5");
    check("3.0", "3.0");
    check("[]", "[]");
    check("[1, 'a', [null, true]]", "[1,\"a\",[null,true]]");
    check(r"'it\'s'", "\"it's\"");
    check(r#""say \"hi\"""#, r#""say \"hi\"""#);
    check(r"'a\n\t\r\\b'", r#""a\n\t\r\\b""#);
    check(r"'\u00e9\ud83d\ude00'", "\"é😀\"");
    check(r"'\d+'", r#""\\d+""#);
    check("'two\nlines'", r#""two\nlines""#);
}

#[test]
fn operators_have_precedence() {
    check("false ? 1 : false ? 2 : 3", "3");
    check("true ? false ? 1 : 2 : 3", "2");
    check("false || null ? 'yes' : 'no'", "\"no\"");
    check("1 == 2 || 3 == 3 && 4 != 4", "false");
    check("1 < 2 == 3 > 2", "true");
    check("!true == false", "true");
    check("!!'x'", "true");
    check("![]", "false");
    check("'' || 0 || null", "null");
    check("1 && 'last'", "\"last\"");
    check("false && fromJSON('{')", "false");
    check("true || fromJSON('{')", "true");
    check("true ? 1 : fromJSON('{')", "1");
    check("'10' < '9'", "true");
    check("(1 < 2) == true", "true");
}

#[test]
fn arithmetic() {
    check("1 + 2 * 3", "7");
    check("(1 + 2) * 3", "9");
    check("10 - 2 - 3", "5");
    check("7 % 4 * 2", "6");
    check("8 / 2 / 2", "2.0");
    check("2 - -1", "3");
    check("-2 - 1", "-3");
    check("1+2", "3");
    check("2*3", "6");
    check("parameters.limit - 1", "2");
    check("parameters.n-1", "\"hyphen\"");
    check("parameters.limit + 1 > 3 && !parameters.dry", "true");
    check("1 + 1 == 2", "true");
    check("!parameters.dry == (1 + 1 == 2)", "true");
    check("parameters.labels[length(parameters.labels) - 1]", "\"blue\"");
    check("range(parameters.limit)", "[0,1,2]");
    check("range(3, 0, -1)", "[3,2,1]");
    check("format('{0}-{1}', parameters.branch, index)", "\"release-7-2\"");
    check("replace(parameters.branch, '-', '/')", "\"release/7\"");
    check("now()", "\"2027-01-31T09:00:00Z\"");
    check("default(null, now())", "\"2027-01-31T09:00:00Z\"");
    check_error("range(2000000)", &[("expression_limit", "range(2000000)")]);
    check_error("secrets.TOKEN + 1", &[("expression_type", "secrets.TOKEN + 1")]);
    check_template("${{ parameters.limit + 1 }}", "4");
}

#[test]
fn paths() {
    check("parameters.labels[1]", "\"blue\"");
    check("parameters.labels[1.0]", "\"blue\"");
    check("parameters.labels[0.5]", "null");
    check("parameters.labels[-1]", "null");
    check("parameters.labels['red']", "null");
    check("parameters[0]", "null");
    check("parameters.branch.length", "null");
    check("parameters.branch[0]", "null");
    check("parameters.n-1", "\"hyphen\"");
    check("parameters . labels [ 0 ]", "\"red\"");
    check("stages[parameters.empty || 'pick-files'].status", "\"success\"");
    check("[[1, 2], [3]][0][1]", "2");
    check("('x')", "\"x\"");
    check("index", "2");
    check("item.name", "\"it's\"");
    check("context.repo.deep", "null");
}

#[test]
fn mistakes_point_to_their_word() {
    for (text, place) in [
        ("n", "n"),
        ("parameters.a &  parameters.b", "&"),
        ("parameters.a | parameters.b", "|"),
        ("parameters.n -1", "-"),
        ("parameters.n -parameters.a", "-"),
        ("parameters.n- 1", "1"),
        ("1-1", "-"),
        ("1 -1", "-"),
        ("(1)-1", "-"),
        ("1 +", ""),
        ("+ 1", "+"),
        ("1 * / 2", "/"),
        ("1 + 2 < 3 < 4", "<"),
        ("-parameters.n", "-"),
        ("- 1", "-"),
        ("parameters.a and parameters.b", "and"),
        ("parameters.a or parameters.b", "or"),
        ("not parameters.a", "not"),
        ("'a' in parameters.labels", "in"),
        ("parameters.a = 1", "="),
        ("parameters.a === 1", "="),
        ("1 == 2 == 3", "=="),
        ("1 < 2 >= 3", ">="),
        (".5", "."),
        ("5.", "5."),
        ("1e5", "1e5"),
        ("0x10", "0x10"),
        ("1_000", "1_"),
        ("99999999999999999999", "99999999999999999999"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("'open", "'open"),
        ("'open\\'", "'open\\'"),
        (r"'a\u12'", r"\u"),
        (r"'a\ud800b'", r"\u"),
        ("parameters.0", "0"),
        ("parameters.", ""),
        ("parameters..a", "."),
        ("parameters.a(1)", "("),
        ("(1", ""),
        ("(1]", "]"),
        ("[1, 2", ""),
        ("[1,]", "]"),
        ("length(1 2)", "2"),
        ("length(,)", ","),
        ("parameters.labels[]", "]"),
        ("true ? 1", ""),
        ("true ? : 1", ":"),
        ("1 2", "2"),
        ("1 'a'", "'a'"),
        ("parameters.é", "é"),
        ("“a”", "“"),
        ("{}", "{"),
        ("${{ item }}", "$"),
        ("item )", ")"),
        ("", ""),
        ("  ", "  "),
        ("!", ""),
    ] {
        let code = if text == "n" { "unknown_namespace" } else { "expression_syntax" };
        check_error(text, &[(code, place)]);
    }
}

#[test]
fn unknown_names_do_not_stop_the_parser() {
    check_error(
        "parameter.x == shout(vault) && length(1, 2)",
        &[
            ("unknown_namespace", "parameter"),
            ("unknown_function", "shout"),
            ("unknown_namespace", "vault"),
            ("bad_arity", "length(1, 2)"),
        ],
    );
    check_error("vault.x == ", &[("unknown_namespace", "vault"), ("expression_syntax", "")]);
}

fn check_words(text: &str, message: &str, help: &str) {
    let found = parse_expression(text, &locate).expect_err(text);
    let words: Vec<_> = found.iter().map(|found| (found.message.as_str(), found.help.as_str())).collect();
    assert_eq!(words, [(message, help)], "{text}");
}

#[test]
fn messages_say_what_to_do_next() {
    check_words("parameter.x", "unknown name `parameter`", "did you mean `parameters`?");
    check_words("params.x", "unknown name `params`", "did you mean `parameters`?");
    check_words("True", "unknown name `True`", "did you mean `true`?");
    check_words(
        "stages.a.status == approved",
        "unknown name `approved`",
        "put strings in quotes: `'approved'`; read values as `parameters.approved`",
    );
    check_words("pick-files.outputs.x", "unknown name `pick-files`", "read a stage as `stages.pick-files`");
    check_words(
        "vault['x']",
        "unknown name `vault`",
        "a path starts with one of parameters, stages, context, env, run, workflow, item, index, loops, host, failure, undo, secrets, \
         class, exit_code, message, attempt",
    );
    check_words("toJson(1)", "unknown function `toJson`", "did you mean `toJSON`?");
    check_words("len(1)", "unknown function `len`", "did you mean `length`?");
    check_words(
        "contains('a')",
        "`contains` takes 2 arguments, got 1",
        "write `contains(string or list, value)`",
    );
    check_words("join()", "`join` takes 1 to 2 arguments, got 0", "write `join(list, separator)`");
    check_words("min()", "`min` takes at least 1 argument, got 0", "write `min(a, b)`");
    check_words("1 = 1", "`=` is not part of the language", "write `==` for equality");
    check_words("true and true", "`and` is not part of the language", "write `&&`");
    check_words(
        "parameters.n -1",
        "a minus needs a space on both sides",
        "write `a - b` to subtract; without spaces a hyphen is part of a name",
    );
    check_words(
        "-parameters.n",
        "a minus in front of a value is only allowed in a number such as `-3`",
        "write `0 - value`",
    );
    check_words("now", "unknown name `now`", "call the function: `now()`");
    check_words("now(1)", "`now` takes no arguments, got 1", "write `now()`");
    check_words("concat('a', 'b')", "unknown function `concat`", "did you mean `format`?");
    check_words(
        "1 < 2 < 3",
        "comparisons cannot be chained",
        "compare twice and join with `&&`, e.g. `a < b && b < c`",
    );
    check_words("(1", "expected `)`, but the expression ends here", "finish the expression");
}

#[test]
fn unclosed_brackets_show_where_they_were_opened() {
    let found = parse_expression("length(item", &locate).expect_err("not closed");
    let label = &found[0].labels[0];
    assert_eq!((under("length(item", label.span), label.text.as_str()), ("(", "opened here"));
}

#[test]
fn every_node_covers_exactly_its_text() {
    let text = " ( item.a || !contains( parameters.b , 'x') ) && [1, -2][0] >= 3 ? null : stages['s'] ";
    let expr = parse_expression(text, &locate).expect("valid");
    let mut places = Vec::new();
    expr.walk(&mut |part| places.push(under(text, part.span)));
    assert_eq!(
        places,
        [
            "( item.a || !contains( parameters.b , 'x') ) && [1, -2][0] >= 3 ? null : stages['s']",
            "( item.a || !contains( parameters.b , 'x') ) && [1, -2][0] >= 3",
            "item.a || !contains( parameters.b , 'x')",
            "item.a",
            "item",
            "!contains( parameters.b , 'x')",
            "contains( parameters.b , 'x')",
            "parameters.b",
            "parameters",
            "'x'",
            "[1, -2][0] >= 3",
            "[1, -2][0]",
            "[1, -2]",
            "1",
            "-2",
            "0",
            "3",
            "null",
            "stages['s']",
            "stages",
            "'s'",
        ]
    );
}

fn rendered(text: &str) -> Result<Value, Vec<(&'static str, String)>> {
    let (template, found) = parse_template(text, &locate);
    if !found.is_empty() {
        return Err(summary(text, &found));
    }
    render(&template, &Tour, &Semantics::HOUSE, &Limits::default())
        .map_err(|error| summary(text, &[error.into_diagnostic()]))
}

fn check_template(text: &str, expected: &str) {
    assert_eq!(rendered(text), Ok(json(expected)), "{text}");
}

#[test]
fn templates() {
    check_template("plain", "\"plain\"");
    check_template("", "\"\"");
    check_template("a $ {{ b }} }} ${ c }", "\"a $ {{ b }} }} ${ c }\"");
    check_template("${{ parameters.limit }}", "3");
    check_template("${{parameters.labels}}", "[\"red\",\"blue\"]");
    check_template("${{ parameters.labels }}\n", "[\"red\",\"blue\"]");
    check_template("${{ parameters.limit }}\n\n", r#""3\n\n""#);
    check_template(" ${{ parameters.limit }}", "\" 3\"");
    check_template("${{ parameters.limit }} ", "\"3 \"");
    check_template("${{ 1 }}${{ 2 }}", "\"12\"");
    check_template("br/${{ parameters.branch }}", "\"br/release-7\"");
    check_template("${{ 'a }} b' }} c", "\"a }} b c\"");
    check_template("${{ '${{' }}!", "\"${{!\"");
    check_template(
        "n=${{ length(stages.pick-files.outputs.files) }} dry=${{ parameters.dry }} \
         note=[${{ stages.pick-files.outputs.note }}]",
        "\"n=2 dry=false note=[]\"",
    );
    check_template("${{ stages.pick-files.outputs.meta }};${{ [1.0, null] }}", r#""{\"k\":1};[1.0,null]""#);
    check_template("grüß ${{ 'ö' }} dich", "\"grüß ö dich\"");
}

#[test]
fn a_template_reports_each_expression() {
    let check_error = |text: &str, expected: &[(&'static str, &str)]| {
        let expected = expected.iter().map(|(code, place)| (*code, (*place).to_owned())).collect();
        assert_eq!(rendered(text), Err(expected), "{text}");
    };
    check_error(
        "a ${{ vault.x }} b ${{ 1 -1 }}",
        &[("unknown_namespace", "vault"), ("expression_syntax", "-")],
    );
    check_error("a ${{ }} b", &[("expression_syntax", "${{ }}")]);
    check_error("${{}}", &[("expression_syntax", "${{}}")]);
    check_error("a ${{ item", &[("expression_syntax", "${{")]);
    check_error("${{ 'a }} b", &[("expression_syntax", "'a }} b")]);
    check_error("${{ item } }", &[("expression_syntax", "${{")]);
    check_error("${{ item ${{ item }}", &[("expression_syntax", "$")]);
    check_error("x ${{ length(null) }}", &[("expression_type", "null")]);
}

#[test]
fn secrets_stay_whole() {
    assert_eq!(rendered("${{ secrets.TOKEN }}"), Ok(Value::secret("TOKEN")));
    assert!(matches!(rendered("Bearer ${{ secrets.TOKEN }}"), Ok(Value::Sealed(_))));
    check("secrets.NONE", "null");
    check("true ? secrets.TOKEN : 1", "secret");
    for text in [
        "secrets.TOKEN == 'a'",
        "secrets.TOKEN < 'a'",
        "secrets.TOKEN.a",
        "secrets.TOKEN[0]",
        "parameters[secrets.TOKEN]",
    ] {
        check_error(text, &[("expression_type", text)]);
    }
    check_error("secrets.TOKEN ? 1 : 2", &[("expression_type", "secrets.TOKEN")]);
    check_error("!secrets.TOKEN", &[("expression_type", "secrets.TOKEN")]);
    check_error("secrets.TOKEN || 1", &[("expression_type", "secrets.TOKEN")]);
    check_error("default(secrets.TOKEN, 1)", &[("expression_type", "secrets.TOKEN")]);
    check_error("toJSON(secrets)", &[("expression_type", "secrets")]);
}

fn check_condition(text: &str, expected: Result<&str, (&'static str, &str)>) {
    let found = parse_condition(text, &locate).map(|expr| under(text, expr.span).to_owned());
    let expected = expected.map(str::to_owned).map_err(|(code, place)| vec![(code, place.to_owned())]);
    assert_eq!(found.map_err(|found| summary(text, &found)), expected, "{text}");
}

#[test]
fn conditions() {
    check_condition("item == 1", Ok("item == 1"));
    check_condition(" ${{ item == 1 }}\n", Ok("item == 1"));
    check_condition("item == '${{'", Ok("item == '${{'"));
    check_condition("${{ item == '}}' }}", Ok("item == '}}'"));
    check_condition("", Err(("expression_syntax", "")));
    check_condition("${{ }}", Err(("expression_syntax", "${{ }}")));
    check_condition("${{ item }} == 1", Err(("expression_syntax", "== 1")));
    check_condition("1 == ${{ item }}", Err(("expression_syntax", "1 ==")));
    check_condition("${{ item }} && ${{ index }}", Err(("expression_syntax", "&& ${{ index }}")));
    check_condition("${{ item", Err(("expression_syntax", "${{")));
    check_condition("vault", Err(("unknown_namespace", "vault")));
    let two = parse_condition("${{ item }} && ${{ index }}", &locate).expect_err("two pairs of braces");
    assert_eq!(two[0].message, "this condition has more than one `${{ … }}`");
}

#[test]
fn hostile_texts_are_refused() {
    let limit = |text: &str| {
        let found = parse_expression(text, &locate).expect_err("over a limit");
        assert_eq!(found.last().map(|found| found.code), Some(Code::ExpressionLimit), "{}", &text[..20]);
    };
    limit(&"(".repeat(10_000));
    limit(&"!".repeat(1 << 20));
    limit(&"!".repeat(60_000));
    limit(&format!("item{}", ".a".repeat(10_000)));
    limit(&format!("item{}", "[0]".repeat(10_000)));
    limit(&"[".repeat(10_000));
    limit(&"first(".repeat(10_000));
    limit(&format!("1{}", "||1".repeat(10_000)));
    limit(&"1?1:".repeat(10_000));
    limit(&format!("[{}1]", "1,".repeat(40_000)));
    let mistakes = parse_expression(&"x||".repeat(200), &locate).expect_err("unknown names");
    assert!(mistakes.len() <= FINDINGS_MAX + 1, "{}", mistakes.len());
    let (_, mistakes) = parse_template(&"${{}}".repeat(200_000), &locate);
    assert_eq!(mistakes.len(), FINDINGS_MAX);
    let (_, mistakes) = parse_template(&r"${{ '\}} ${{ \'".repeat(50_000), &locate);
    assert!(!mistakes.is_empty());
}

#[test]
fn texts_within_the_limits_are_parsed_and_evaluated() {
    let deep = |open: &str, close: &str, count: usize| {
        outcome(&format!("{}null{}", open.repeat(count), close.repeat(count))).map(|_| ())
    };
    assert_eq!(deep("(", ")", DEPTH_MAX - 1), Ok(()));
    assert_eq!(deep("!", "", DEPTH_MAX - 1), Ok(()));
    assert_eq!(deep("[", "]", DEPTH_MAX - 1), Ok(()));
    assert_eq!(deep("null[", "]", DEPTH_MAX - 1), Ok(()));
    assert_eq!(deep("1==2||(", ")", 100), Ok(()));
    assert_eq!(outcome(&format!("length([{}1])", "1,".repeat(30_000))), Ok("30001".to_owned()));
}

/// Pseudorandom numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % sides
    }

    fn pick(&mut self, words: &[&str]) -> String {
        words[self.roll(words.len())].to_owned()
    }
}

/// How tightly a binary operator binds, the loosest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Or,
    And,
    Equality,
    Ordering,
    Sum,
    Product,
    Operand,
}

impl Level {
    fn tighter(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Equality,
            Self::Equality => Self::Ordering,
            Self::Ordering => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Operand => Self::Operand,
        }
    }
}

/// A fully parenthesized expression, and the same one with only the necessary parentheses.
fn generate(dice: &mut Dice, depth: usize, weakest: Level) -> (String, String) {
    let operator = |dice: &mut Dice, level: Level, signs: &[&str], chains: bool| {
        let sign = dice.pick(signs);
        let (left, bare_left) = generate(dice, depth - 1, if chains { level } else { level.tighter() });
        let (right, bare_right) = generate(dice, depth - 1, level.tighter());
        let bare = format!("{bare_left} {sign} {bare_right}");
        let bare = if level >= weakest { bare } else { format!("( {bare})") };
        (format!("({left} {sign} {right})"), bare)
    };
    match if depth == 0 { 0 } else { dice.roll(11) } {
        0 => {
            let words =
                ["item", "parameters.a-b", "'}}'", "\"\\\"\"", "-1", "2.5", "true", "null", "stages['x']"];
            let word = dice.pick(&words);
            (word.clone(), word)
        }
        1 => operator(dice, Level::Or, &["||"], true),
        2 => operator(dice, Level::And, &["&&"], true),
        3 => operator(dice, Level::Equality, &["==", "!="], false),
        4 => operator(dice, Level::Ordering, &["<", "<=", ">", ">="], false),
        5 => {
            let (inner, bare) = generate(dice, depth - 1, Level::Operand);
            (format!("!({inner})"), format!("!{bare}"))
        }
        6 => {
            let (inner, bare) = generate(dice, depth - 1, Level::Or);
            (format!("default({inner}, [{inner}])"), format!("default ({bare},[ {bare} ] )"))
        }
        7 => {
            let (inner, bare) = generate(dice, depth - 1, Level::Or);
            (format!("item.a[{inner}].b"), format!("item . a[ {bare}] .b"))
        }
        8 => operator(dice, Level::Sum, &["+", "-"], true),
        9 => operator(dice, Level::Product, &["*", "/", "%"], true),
        _ => {
            let (when, bare_when) = generate(dice, depth - 1, Level::Or);
            let (then, bare_then) = generate(dice, depth - 1, Level::Or);
            let (other, bare_other) = generate(dice, depth - 1, Level::Or);
            let full = format!("(({when}) ? ({then}) : ({other}))");
            (full, format!("( {bare_when} ? {bare_then} : {bare_other})"))
        }
    }
}

/// Spans are not serialized, so trees from two texts can be compared.
fn tree(text: &str) -> serde_json::Value {
    let expr = parse_expression(text, &locate).unwrap_or_else(|found| panic!("{text}: {found:?}"));
    serde_json::to_value(expr).expect("trees have no secrets")
}

#[test]
fn precedence_means_the_same_as_parentheses() {
    let mut dice = Dice(1);
    for _ in 0..2_000 {
        let (full, bare) = generate(&mut dice, 4, Level::Or);
        assert_eq!(tree(&full), tree(&bare), "{full}\n{bare}");
    }
}

#[test]
fn the_text_of_every_node_means_that_node() {
    let mut dice = Dice(2);
    for _ in 0..300 {
        let (_, text) = generate(&mut dice, 4, Level::Or);
        let expr = parse_expression(&text, &locate).expect("generated texts are valid");
        expr.walk(&mut |part| {
            let expected = serde_json::to_value(part).expect("trees have no secrets");
            assert_eq!(tree(under(&text, part.span)), expected, "{text}");
        });
    }
}

#[test]
fn random_tokens_never_panic() {
    const WORDS: &[&str] = &[
        "${{",
        "}}",
        "'",
        "\"",
        "\\",
        "\\u12",
        "item",
        ".",
        "[",
        "]",
        "(",
        ")",
        ",",
        "-",
        "1",
        "0.5",
        "!",
        "=",
        "==",
        "&&",
        "|",
        "?",
        ":",
        " ",
        "\n",
        "é",
        "length",
        "toJSON",
        "null",
        "secrets.TOKEN",
        "{",
        "$",
    ];
    let mut dice = Dice(3);
    for _ in 0..20_000 {
        let text: String = (0..dice.roll(24)).map(|_| dice.pick(WORDS)).collect();
        // `summary` reads the text under each span, so an invalid span would panic.
        if let Ok(value) = rendered(&text) {
            assert!(!matches!(value, Value::Float(_)) || text.contains('.'), "{text}");
        }
        if let Err(found) = parse_condition(&text, &locate) {
            assert!(!summary(&text, &found).is_empty(), "{text}");
        }
    }
}
