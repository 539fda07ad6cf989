//! Compares the dcc dialect with the known behavior of the original program: accepted files, order of steps, delays.

use crate::support::{load_as, load_text, read};
use std::collections::BTreeSet;
use std::path::Path;
use windlass_dialects::{Dialect, Loaded, Options, load};
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::Backoff;
use windlass_ir::{Duration, Plan, Severity};

pub fn dcc(text: &str) -> Loaded {
    load_as(Dialect::Dcc, text)
}

/// A file with one step.
pub fn one(step: &str) -> String {
    format!("name: w\nsteps:\n  - {step}\n")
}

/// The codes of a file's errors, or of all other findings if there are no errors.
fn verdict(text: &str) -> (bool, Vec<&'static str>) {
    let loaded = dcc(text);
    let is_valid = loaded.is_valid();
    let shown = loaded.diagnostics.iter().filter(|finding| is_valid || finding.is_error());
    (is_valid, shown.map(|finding| finding.code.as_str()).collect())
}

/// A file without errors and with these warnings and hints.
fn check_valid(text: &str, codes: &[&str]) {
    assert_eq!(verdict(text), (true, codes.to_vec()), "{text}");
}

/// A file with these errors.
fn check_refused(text: &str, codes: &[&str]) {
    assert_eq!(verdict(text), (false, codes.to_vec()), "{text}");
}

fn ok(step: &str) {
    check_valid(&one(step), &[]);
}

fn warned(step: &str, codes: &[&str]) {
    check_valid(&one(step), codes);
}

fn refused(step: &str, codes: &[&str]) {
    check_refused(&one(step), codes);
}

#[test]
fn top_level_keys() {
    let step = "steps: [{id: a, tool: echo}]";
    check_refused(step, &["missing_field"]);
    check_valid(&format!("name: ''\n{step}"), &[]);
    check_valid(&format!("name: 5\n{step}"), &[]);
    assert_eq!(dcc(&format!("name: 5\n{step}")).workflow.as_deref(), Some("5"));
    for none in ["name: w", "name: w\nsteps: []", "name: w\nsteps:"] {
        check_refused(none, &["no_stages"]);
    }
    check_valid(&format!("name: w\nversion: 1\n{step}"), &["unknown_key"]);
    check_valid(&format!("name: w\ninputs: [a]\n{step}"), &[]);
    check_valid(r#"{"name": "w", "steps": [{"id": "a", "tool": "echo"}]}"#, &[]);
    check_refused(&format!("name: w\n{step}\n---\nname: v\n{step}"), &["syntax"]);
    check_refused(&format!("name: w\nname: v\n{step}"), &["duplicate_key"]);
    check_refused("", &["syntax"]);
    check_refused("- id: a", &["wrong_shape"]);
    check_refused("name: [", &["syntax"]);
    check_refused("name: w\ntasks: [{name: a, tool: echo}]", &["tasks_dialect"]);
    check_valid(&format!("name: w\ntasks: []\n{step}"), &["unknown_key"]);
}

#[test]
fn ids() {
    refused("{tool: echo}", &["missing_field"]);
    refused("{id: '', tool: echo}", &["bad_id"]);
    refused("{id: 5, tool: echo}", &["wrong_shape"]);
    ok("{id: 'a b.c', tool: echo}");
    refused("{id: a, tool: echo}\n  - {id: a, tool: echo}", &["duplicate_stage_id"]);
    refused(
        "{id: a, tool: echo}\n  - {id: b, kind: parallel, steps: [{id: a, tool: echo}]}",
        &["duplicate_stage_id"],
    );
    refused(
        "{id: b, kind: branch, on: $.inputs.x, then: [{id: a, tool: x}], else: [{id: a, tool: x}]}",
        &["duplicate_stage_id"],
    );
    refused("echo", &["wrong_shape"]);
}

#[test]
fn kinds() {
    ok("{id: a, tool: echo}");
    ok("{id: a, kind: tool, tool: echo, args: {x: 1}}");
    warned("{id: a, tool: echo, colour: red}", &["unknown_key"]);
    warned("{id: a, tool: echo, depends_on: [z]}", &["unknown_stage"]);
    refused("{id: a, kind: sleep}", &["bad_enum"]);
    refused("{id: a}", &["missing_field"]);
    refused("{id: a, tool: echo, dcc: maya}", &["missing_field"]);
    warned("{id: a, kind: tool, tool: echo, dcc: maya}", &["ignored_key"]);
    ok("{id: a, kind: tool_remote, dcc: maya, tool: echo}");
    refused("{id: a, kind: tool_remote, tool: echo}", &["missing_field"]);
    ok("{id: a, kind: tool_remote, dcc: '', tool: echo}");
    refused("{id: a, tool: null}", &["missing_field"]);
    refused("{id: a, kind: tool}", &["missing_field"]);
    refused("{id: a, kind: Tool, tool: echo}", &["bad_enum"]);
    refused("{id: a, kind: toolRemote, tool: echo, dcc: x}", &["bad_enum"]);
    refused("{id: a, tool: 5}", &["wrong_shape"]);
    refused("{id: a, kind: approve, prompt: 5}", &["wrong_shape"]);
}

#[test]
fn tools() {
    warned("{id: a, tool: scene.get_info}", &["bad_name"]);
    ok("{id: a, tool: maya_x__y}");
    ok("{id: a, tool: -x}");
    ok("{id: a, tool: 9a}");
    ok(&format!("{{id: a, tool: {}}}", "t".repeat(64)));
    refused(&format!("{{id: a, tool: {}}}", "t".repeat(65)), &["bad_name"]);
    refused("{id: a, tool: '{{inputs.t}}'}", &["bad_name"]);
    for name in ["a/b", "a b", "é", "''", "a..b", ".a", "a."] {
        refused(&format!("{{id: a, tool: {name}}}"), &["bad_name"]);
    }
    ok("{id: a, tool: echo, args: [1, x]}");
    ok("{id: a, tool: echo, args: 7}");
    ok("{id: a, tool: echo, args: null}");
    warned("{id: a, tool: echo, args: {x: '{{oops'}}", &["expression_syntax"]);
    warned("{id: a, tool: echo, args: {x: '{{nowhere.a}}'}}", &["unknown_namespace"]);
}

#[test]
fn loops_and_branches() {
    let body = "steps: [{id: b, tool: echo}]";
    ok(&format!("{{id: a, kind: foreach, items: $.inputs.xs, {body}}}"));
    refused(&format!("{{id: a, kind: foreach, {body}}}"), &["missing_field"]);
    ok("{id: a, kind: foreach, items: $.inputs.xs}");
    warned("{id: a, kind: foreach, items: $.inputs.xs, body: []}", &["unknown_key"]);
    refused("{id: a, kind: foreach, items: [1, 2]}", &["wrong_shape"]);
    refused("{id: a, kind: foreach, items: '{{inputs.xs}}'}", &["expression_syntax"]);
    refused("{id: a, kind: foreach, items: inputs.xs}", &["expression_syntax"]);
    ok("{id: a, kind: foreach, items: '$.inputs.xs[?@.n > 1]'}");
    ok("{id: a, kind: foreach, items: '$.inputs.xs[*].p'}");
    ok("{id: a, kind: foreach, items: $.inputs.xs, concurrency: 4}");
    for count in ["0", "-1", "1.5", "'4'", "many"] {
        refused(
            &format!("{{id: a, kind: foreach, items: $.inputs.xs, concurrency: {count}}}"),
            &["bad_number"],
        );
    }
    refused(&format!("{{id: a, items: $.inputs.xs, {body}}}"), &["missing_field"]);
    refused(&format!("{{id: a, foreach: $.inputs.xs, {body}}}"), &["missing_field", "missing_field"]);
    ok(&format!("{{id: a, kind: parallel, {body}}}"));
    ok("{id: a, kind: parallel}");
    refused("{id: a, kind: parallel, branches: [[{id: b, tool: a/b}]]}", &["bad_name"]);
    ok("{id: a, kind: parallel, branches: [[{id: b, tool: x}, {id: c, tool: x}], {id: d, tool: x}, []]}");
    refused(&format!("{{id: a, kind: parallel, {body}, branches: []}}"), &["conflicting_keys"]);
    refused("{id: a, kind: parallel, on_any_fail: banana}", &["bad_enum"]);
    ok("{id: a, kind: parallel, on_any_fail: abort}");
    ok("{id: a, kind: approve, prompt: 'Ship it?'}");
    ok("{id: a, kind: approve}");
    ok("{id: a, kind: branch, on: $.inputs.x, then: [{id: b, tool: x}]}");
    refused("{id: a, kind: branch, then: []}", &["missing_field"]);
    ok("{id: a, kind: branch, on: $.inputs.x}");
    for path in ["'$['", "''", "'@.x'", "'$.inputs.x == 3'"] {
        refused(&format!("{{id: a, kind: branch, on: {path}}}"), &["expression_syntax"]);
    }
    ok("{id: a, kind: branch, on: '$.inputs[?length(@.x) > 2]'}");
}

#[test]
fn policies() {
    let with = |policy: &str| format!("{{id: a, tool: echo, {policy}}}");
    for timeout in ["0", "1.5", "-1", "'5'"] {
        refused(&with(&format!("timeout_secs: {timeout}")), &["bad_number"]);
    }
    ok(&with("timeout_secs: 1"));
    ok(&with("timeout_secs: null"));
    ok(&with("timeout_secs: 18446744073709551615"));
    refused(&with("retry: {}"), &["missing_field"]);
    refused(&with("retry: {backoff: fixed}"), &["missing_field"]);
    refused(&with("retry: 3"), &["wrong_shape"]);
    ok(&with("retry: null"));
    refused(&with("retry: {max_attempts: 0}"), &["bad_number"]);
    refused(&with("retry: {max_attempts: 2, initial_delay_ms: 20, max_delay_ms: 10}"), &["bad_number"]);
    refused(&with("retry: {max_attempts: 2, initial_delay_ms: 20000}"), &["bad_number"]);
    refused(&with("retry: {max_attempts: 2, max_delay_ms: 100}"), &["bad_number"]);
    refused(&with("retry: {max_attempts: 2, backoff: quadratic}"), &["bad_enum"]);
    refused(&with("retry: {max_attempts: 2, backoff: Fixed}"), &["bad_enum"]);
    warned(&with("retry: {max_attempts: 2, colour: red}"), &["unknown_key"]);
    for jitter in ["5", "-1", ".nan", ".inf"] {
        warned(&with(&format!("retry: {{max_attempts: 2, jitter: {jitter}}}")), &["bad_number"]);
    }
    refused(&with("retry: {max_attempts: 2, jitter: much}"), &["bad_number"]);
    ok(&with("retry: {max_attempts: 2, jitter: 1}"));
    ok(&with("retry: {max_attempts: 2, retry_on: []}"));
    ok(&with("retry: {max_attempts: 2, retry_on: [transient, timeout]}"));
    ok(&with("policy: {timeout_secs: 5}"));
    ok(&with("policy: {timeout_secs: 5}, timeout_secs: 5"));
    refused(&with("policy: {timeout_secs: 5}, timeout_secs: 6"), &["conflicting_keys"]);
    warned(&with("policy: {colour: red}"), &["unknown_key"]);
    warned("{id: a, kind: approve, retry: {max_attempts: 2}}", &["ignored_key"]);
    warned("{id: a, kind: approve, policy: {idempotency_key: k}}", &["ignored_key"]);
}

#[test]
fn idempotency_keys() {
    let with = |key: &str| format!("{{id: a, tool: echo, idempotency_key: {key}}}");
    ok(&with("'k_{{inputs.x}}'"));
    refused(&with("'k_{{scene}}'"), &["unknown_namespace"]);
    for inputs in ["{scene: {type: string}}", "{type: object, properties: {scene: {}}}"] {
        let text = format!("inputs: {inputs}\n{}", one(&with("'{{scene}}'")));
        check_valid(&text, &["bare_name"]);
    }
    warned(&with("'{{a}}'"), &["bare_name", "not_an_ancestor"]);
    warned(&format!("{}\n  - {{id: z, tool: echo}}", with("'{{z.q}}'")), &["bare_name", "not_an_ancestor"]);
    warned(&with("'{{env.HOME}}'"), &["bare_name"]);
    for key in ["'{{inputs.xs[0]}}'", "'{{inputs.a-b}}'", "'{{inputs'", "'{{ }}'", "'{{inputs.0}}'"] {
        refused(&with(key), &["expression_syntax"]);
    }
    let looped =
        |key: &str| format!("{{id: l, kind: foreach, items: $.inputs.xs, as: row, steps: [{}]}}", with(key));
    refused(&looped("'{{row.id}}'"), &["unknown_namespace"]);
    ok(&looped("'{{item.id}}'"));
    ok(&with("''"));
    ok(&with("k, idempotency_scope: global"));
    refused(&with("k, idempotency_scope: session"), &["bad_enum"]);
    ok(&with("k, idempotency_ttl_secs: 0"));
    ok(&with("k, idempotency_ttl_secs: 9"));
    refused(&with("5"), &["wrong_shape"]);
    warned("{id: a, tool: echo, idempotency_ttl_secs: 9}", &["ignored_key"]);
}

#[test]
fn merge_keys_merge() {
    let text = "name: w\nsteps:\n  - &p {id: a, tool: x, timeout_secs: 7}\n  - {<<: *p, id: b}\n";
    check_valid(text, &["merge_key"]);
    assert_eq!(step(&plan(text), "b").policy.timeout, Some(Duration::from_secs(7)));
}

pub fn plan(text: &str) -> Plan {
    let loaded = dcc(text);
    loaded.plan.unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics))
}

pub fn step<'p>(plan: &'p Plan, id: &str) -> &'p PlanStep {
    plan.step(plan.find(id).unwrap_or_else(|| panic!("no step {id}")))
}

#[test]
fn retry_settings_are_kept() {
    let retry = |retry: &str| {
        step(&plan(&one(&format!("{{id: a, tool: x, retry: {retry}}}"))), "a").policy.retry.clone()
    };
    let plain = retry("{max_attempts: 3}");
    assert_eq!((plain.attempts_max, plain.backoff.initial, plain.backoff.max), (3, ms(500), ms(10_000)));
    assert_eq!((plain.backoff.jitter, plain.only), (0.0, Vec::new()));
    assert_eq!(retry("{max_attempts: 3, retry_on: []}").attempts_max, 1);
    let kinds = retry("{max_attempts: 3, retry_on: [transient, timeout]}").only;
    assert_eq!(kinds.iter().map(|kind| &**kind).collect::<Vec<_>>(), ["transient", "timeout"]);
    for (written, used) in [("5", 1.0), ("-1", 0.0), (".nan", 0.0), (".inf", 0.0), ("0.25", 0.25)] {
        assert_eq!(
            retry(&format!("{{max_attempts: 3, jitter: {written}}}")).backoff.jitter,
            used,
            "{written}"
        );
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn backoff(kind: &str, initial: &str, max: &str) -> Backoff {
    let retry = format!(
        "{{max_attempts: 9, backoff: {kind}, initial_delay_ms: {initial}, max_delay_ms: {max}, jitter: 0.5}}"
    );
    step(&plan(&one(&format!("{{id: a, tool: x, retry: {retry}}}"))), "a").policy.retry.backoff.clone()
}

/// The delays in milliseconds before attempts 2 to 8, then 64, 65, 66, 100 and the last possible one.
fn check_delays(kind: &str, initial: &str, max: &str, expected: [u64; 12]) {
    let backoff = backoff(kind, initial, max);
    let attempts = [2, 3, 4, 5, 6, 7, 8, 64, 65, 66, 100, u32::MAX];
    // Attempt n follows the failure of attempt n - 1.
    let delays = attempts.map(|attempt| backoff.delay_after(attempt - 1));
    assert_eq!(delays, expected.map(ms), "{kind} {initial} {max}");
}

#[test]
fn delays_match_the_original() {
    const U64_MAX: &str = "18446744073709551615";
    check_delays("fixed", "500", "10000", [500; 12]);
    let mut linear = [500, 1000, 1500, 2000, 2500, 3000, 3500, 10000, 10000, 10000, 10000, 10000];
    check_delays("linear", "500", "10000", linear);
    linear = [100, 200, 300, 350, 350, 350, 350, 350, 350, 350, 350, 350];
    check_delays("linear", "100", "350", linear);
    check_delays("linear", "1", U64_MAX, [1, 2, 3, 4, 5, 6, 7, 63, 64, 65, 99, 4_294_967_294]);
    let long = [500, 1000, 2000, 4000, 8000, 10000, 10000, 10000, 10000, 10000, 10000, 10000];
    check_delays("exponential", "500", "10000", long);
    check_delays("exponential", "100", "350", [100, 200, 350, 350, 350, 350, 350, 350, 350, 350, 350, 350]);
    // The original counts to 2^63 ms; our durations are microseconds in 64 bits, which end at 2^54 ms or 584,000
    // years.
    let most = u64::MAX;
    check_delays("exponential", "1", U64_MAX, [1, 2, 4, 8, 16, 32, 64, most, most, most, most, most]);
    for kind in ["fixed", "linear", "exponential"] {
        check_delays(kind, "0", "0", [0; 12]);
    }
}

#[test]
fn steps_run_in_the_order_of_the_file() {
    let plan = plan(
        "name: w\nsteps:\n  - {id: a, tool: x}\n  - id: p\n    kind: parallel\n    branches:\n      - [{id: b, tool: x}, {id: c, tool: x}]\n      \
         - {id: d, tool: x}\n  - {id: e, tool: x}\n",
    );
    let needs = |id: &str| -> Vec<String> {
        step(&plan, id).needs.iter().map(|need| plan.step(*need).id.to_string()).collect()
    };
    let expected: [(&str, &[&str]); 6] =
        [("a", &[]), ("p", &["a"]), ("b", &[]), ("c", &["b"]), ("d", &[]), ("e", &["p"])];
    for (id, before) in expected {
        assert_eq!(needs(id), before, "{id}");
    }
}

/// Whether `depends_on: TARGET` on the step `me` is redundant.
fn check_depends_on(text: &str, severity: Severity) {
    let loaded = dcc(&format!("name: w\nsteps:\n{text}"));
    let found: Vec<Severity> = loaded.diagnostics.iter().map(|finding| finding.severity).collect();
    assert_eq!(found, [severity], "{text}");
}

#[test]
fn depends_on_is_compared_with_the_order() {
    let me = "{id: me, tool: x, depends_on: [t]}";
    let (hint, warning) = (Severity::Hint, Severity::Warning);
    check_depends_on(&format!("  - {{id: t, tool: x}}\n  - {me}\n"), hint);
    check_depends_on("  - {id: t, tool: x}\n  - {id: me, tool: x, depends_on: t}\n", hint);
    check_depends_on(&format!("  - {me}\n  - {{id: t, tool: x}}\n"), warning);
    check_depends_on("  - {id: t, tool: x, depends_on: [t]}\n", warning);
    check_depends_on(&format!("  - {{id: p, kind: parallel, steps: [{{id: t, tool: x}}, {me}]}}\n"), warning);
    check_depends_on(
        &format!("  - {{id: p, kind: parallel, branches: [[{{id: t, tool: x}}, {me}]]}}\n"),
        hint,
    );
    check_depends_on(
        &format!(
            "  - {{id: p, kind: parallel, branches: [[{{id: t, tool: x}}], [{{id: u, tool: x}}, {me}]]}}\n"
        ),
        warning,
    );
    check_depends_on(
        &format!("  - {{id: p, kind: parallel, steps: [{{id: t, tool: x}}]}}\n  - {me}\n"),
        hint,
    );
    check_depends_on(&format!("  - {{id: t, kind: parallel, steps: [{me}]}}\n"), warning);
    let arms = format!("then: [{{id: t, tool: x}}], else: [{me}]");
    check_depends_on(&format!("  - {{id: b, kind: branch, on: $.inputs.x, {arms}}}\n"), warning);
}

#[test]
fn the_dialect_is_recognized() {
    for text in [one("{id: a, tool: echo}"), one("{id: a, kind: approve}"), "name: w\ntasks: []\n".to_owned()]
    {
        assert_eq!(load_text(&text).dialect, Dialect::Dcc, "{text}");
    }
}

#[test]
fn the_example_has_no_findings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dcc/vendor-intake.workflow.yaml");
    let loaded = load(read(&path), Options::default());
    assert_eq!((loaded.dialect, loaded.diagnostics.as_slice()), (Dialect::Dcc, [].as_slice()));
    let words: BTreeSet<&str> =
        loaded.plan.iter().flat_map(|plan| &plan.steps).map(|step| &*step.word).collect();
    assert_eq!(words.len(), 6, "all kinds of steps: {words:?}");
}

/// Files that try to be expensive are read quickly, whatever the result.
#[test]
fn hostile_files_are_read() {
    let deep = |levels: usize| {
        (0..levels).fold("{id: x, tool: x}".to_owned(), |inner, at| {
            format!("{{id: s{at}, kind: parallel, steps: [{inner}]}}")
        })
    };
    ok(&deep(48));
    refused(&deep(49), &["too_deep"]);
    refused(&deep(120), &["too_deep"]);
    let loops = (0..48).fold("{id: x, tool: x, args: '{{a0}}{{item}}'}".to_owned(), |inner, at| {
        format!("{{id: s{at}, kind: foreach, items: $.item, as: a{at}, steps: [{inner}]}}")
    });
    check_valid(&one(&loops), &["not_available_here"]);
    let paths = [
        format!("$[?{}", "count(@[?".repeat(400)),
        format!("$[?{}", "length(".repeat(500)),
        "$[".repeat(1000),
        format!("$.{}", "a".repeat(100_000)),
    ];
    for path in paths {
        refused(&format!("{{id: a, kind: branch, on: '{path}'}}"), &["expression_syntax"]);
    }
    let references = "{{x}}".repeat(20_000);
    assert!(dcc(&one(&format!("{{id: a, tool: x, args: '{references}'}}"))).is_valid());
}
