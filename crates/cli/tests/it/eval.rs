//! `windlass eval`: prints values as JSON and errors as findings.

use crate::support::{folder, windlass, windlass_in};

const CONTEXT: &str = "crates/cli/tests/it/fixtures/context.json";

#[test]
fn values_keep_their_types() {
    let check = |expression: &str, expected: &str| {
        let seen = windlass(&["eval", expression, "--context", CONTEXT]).see();
        assert_eq!((seen.stdout.trim_end(), seen.stderr.as_str(), seen.status), (expected, "", 0), "{seen}");
    };
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
    // A condition and two inputs of the same workflow.
    let condition = "length(stages.pick-files.outputs.files) >= parameters.limit ? true : contains(parameters.branch, 'release')";
    check(&format!("${{{{ {condition} }}}}"), "true");
    check("${{ stages.pick-files.outputs.meta }}", "{\"k\":1}");
    check(
        "n=${{ length(stages.pick-files.outputs.files) }} dry=${{ parameters.dry }} note=[${{ stages.pick-files.outputs.note }}]",
        "\"n=2 dry=false note=[]\"",
    );
    // Types and forms.
    check("3.0", "3.0");
    check("${{ parameters.limit }}", "3");
    check("-1", "-1");
    check("[1, 'a', null]", "[1,\"a\",null]");
    check("parameters.unheard-of", "null");
    check("item", "null");
    check("run.id", "\"r-1\"");
    check("parameters.limit - 1", "2");
    check("format('{0} of {1}', index, range(2))", "\" of [0,1]\"");
}

#[test]
fn errors_have_a_code_and_no_value() {
    let check = |expression: &str, code: &str| {
        let seen = windlass(&["eval", expression, "--context", CONTEXT]).see();
        assert_eq!((seen.stdout.as_str(), seen.status), ("", 1), "{seen}");
        assert!(seen.stderr.starts_with(&format!("error[{code}]\n")), "{seen}");
    };
    check("parameters.limit -1", "expression_syntax");
    check("1 / 0", "expression_value");
    check("now()", "not_available_here");
    check("parameters.limit-1", "unknown_parameter");
    check("1 < 2 < 3", "expression_syntax");
    check("parameters.limit =", "expression_syntax");
    check("vault.x", "unknown_namespace");
    check("shout('x')", "unknown_function");
    check("length()", "bad_arity");
    check("stages.pick-files.outputs.note > 3", "expression_type");
    check("length(stages.pick-files.outputs.note)", "expression_type");
    check("fromJSON('{')", "expression_value");
    check("a ${{ vault.x }} b", "unknown_namespace");
    check("a ${{ 1", "expression_syntax");
    check("", "expression_syntax");
    check("secrets.token", "not_available_here");
    check("attempt > 1", "not_available_here");
}

#[test]
fn an_error_points_into_the_expression() {
    insta::assert_snapshot!(
        "eval_error",
        windlass(&["eval", "parameters.limit-1 > 2", "--context", CONTEXT]).see()
    );
    let lines = "contains(\n  parameters.labels,\n\t'漢字' > 1\n)";
    insta::assert_snapshot!("eval_error_in_lines", windlass(&["eval", lines]).see());
}

#[test]
fn without_a_context_everything_is_null() {
    let check = |expression: &str, expected: &str| {
        let seen = windlass(&["eval", expression]).see();
        assert_eq!((seen.stdout.trim_end(), seen.status), (expected, 0), "{seen}");
    };
    check("parameters.anything.at.all", "null");
    check("stages.a.outputs.b == null && !env.X", "true");
}

#[test]
fn a_context_can_hold_the_values_of_a_retry_condition() {
    let folder = folder(
        "eval_retry",
        &[("c.json", r#"{"class": "timeout", "attempt": 2}"#), ("c.yaml", "index: 4\n")],
    );
    let check = |expression: &str, context: &str, expected: &str| {
        let seen = windlass_in(&folder, &["eval", expression, "--context", context]).see();
        assert_eq!((seen.stdout.trim_end(), seen.stderr.as_str()), (expected, ""), "{seen}");
    };
    check("class == 'timeout' && attempt < 3", "c.json", "true");
    check("index", "c.yaml", "4");
}

#[test]
fn a_context_must_be_an_object() {
    let files = [
        ("list.json", "[1]"),
        ("broken.json", "{\"parameters\": "),
        ("empty.json", ""),
        ("slip.json", r#"{"parameter": {}}"#),
    ];
    let folder = folder("eval_context", &files);
    let mut shown = String::new();
    for context in ["list.json", "broken.json", "empty.json", "missing.json", ".", "slip.json"] {
        shown += &windlass_in(&folder, &["eval", "parameters.x", "--context", context]).see().to_string();
        shown.push('\n');
    }
    insta::assert_snapshot!("eval_context", shown);
}
