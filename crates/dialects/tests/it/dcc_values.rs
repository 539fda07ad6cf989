//! The values of references and paths of the dcc dialect, evaluated in the plan of a file at a given moment of a run.

use crate::dcc::{dcc, one, plan, step};
use crate::support::{folder, read};
use serde_json::{Value as Json, json};
use windlass_dialects::{Dialect, Options, load};
use windlass_ir::expr::{EvalError, Limits, Namespace, Read, Scope, StepId, evaluate, holds, render};
use windlass_ir::workflow::{Action, Choose, Items, Kind};
use windlass_ir::{Duration, Plan, Severity, Value};

#[test]
fn policies_of_a_scope_apply_inside() {
    let plan = plan(
        "name: w\nsteps:\n  - id: all\n    kind: foreach\n    items: $.inputs.xs\n    as: row\n    timeout_secs: 60\n    \
         retry: {max_attempts: 4}\n    idempotency_key: 'k_{{item.id}}'\n    idempotency_scope: global\n    steps:\n      \
         - {id: plain, tool: x}\n      - {id: own, tool: x, retry: {max_attempts: 2}, idempotency_key: mine}\n      \
         - {id: ask, kind: approve}\n",
    );
    let policy = |id: &str| step(&plan, id).policy.clone();
    assert_eq!(policy("all").timeout, Some(Duration::from_secs(60)));
    assert_eq!((policy("all").retry.attempts_max, policy("all").idempotency), (1, None));
    assert_eq!((policy("plain").timeout, policy("plain").retry.attempts_max), (None, 4));
    assert_eq!(policy("own").retry.attempts_max, 2);
    assert_eq!((policy("ask").retry.attempts_max, policy("ask").idempotency), (1, None));
    let key = |id: &str| {
        let idempotency = policy(id).idempotency.expect("a key");
        let context = json!({"loops": {"all": {"id": 7}}, "item": {"id": 7}});
        show(render(
            &idempotency.key.template,
            &Run { plan: &plan, context },
            &plan.semantics,
            &Limits::default(),
        ))
    };
    assert_eq!((key("plain").as_str(), key("own").as_str()), ("\"k_7/plain\"", "\"mine\""));
}

/// A moment of a run, constructed by hand: `inputs`, `steps`, `item` and the item of each loop by step id.
struct Run<'p> {
    plan: &'p Plan,
    context: Json,
}

impl Run<'_> {
    fn of(&self, step: StepId) -> &Json {
        &self.context["steps"][&*self.plan.step(step).id]
    }
}

impl Scope for Run<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        Ok(Value::from(match read {
            Read::StepOutputs(step) => &self.of(step)["output"],
            Read::StepRecord(step) => self.of(step),
            Read::LoopItem(step) => &self.context["loops"][&*self.plan.step(step).id],
            Read::Namespace(Namespace::Inputs) => &self.context["inputs"],
            Read::Namespace(Namespace::Steps) => &self.context["steps"],
            Read::Namespace(Namespace::Item) => &self.context["item"],
            Read::Namespace(Namespace::Host) => &self.context["env"],
            Read::StepStatus(_)
            | Read::StepOutcome(_)
            | Read::LoopIndex(_)
            | Read::Now
            | Read::Namespace(_) => &Json::Null,
        }))
    }
}

fn show(value: Result<Value, EvalError>) -> String {
    match value {
        Ok(value) => value.to_json_text().expect("no secrets"),
        Err(error) => format!("error {}", error.code),
    }
}

impl Run<'_> {
    fn args(&self, id: &str) -> String {
        let Kind::Action(Action::Tool(tool)) = &step(self.plan, id).kind else { panic!("{id} is no tool") };
        let args = tool.args.as_ref().expect("args");
        show(render(&args.template, self, &self.plan.semantics, &Limits::default()))
    }

    fn items(&self, id: &str) -> String {
        let Kind::ForEach(each) = &step(self.plan, id).kind else { panic!("{id} is no loop") };
        let Items::List(items) = &each.items else { panic!("{id} goes through a list") };
        show(render(&items.template, self, &self.plan.semantics, &Limits::default()))
    }

    fn decides(&self, id: &str) -> bool {
        let Kind::Choose(Choose::If { condition, .. }) = &step(self.plan, id).kind else {
            panic!("{id} is no branch")
        };
        let value =
            evaluate(&condition.expr, self, &self.plan.semantics, &Limits::default()).expect("a value");
        holds(&value, &self.plan.semantics).expect("no secret")
    }
}

fn case(name: &str) -> Plan {
    let path = folder("dcc/cases").join(format!("{name}.workflow.yaml"));
    let loaded = load(read(&path), Options::default());
    assert_eq!(loaded.dialect, Dialect::Dcc, "{name}");
    loaded.plan.unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics))
}

#[test]
fn values_are_passed_on_as_in_the_first_case() {
    let plan = case("01_linear_templates");
    let inputs = json!({"who": "Ada", "n": 3, "tags": ["x", "y"]});
    let first = json!({"n": 3, "label": "hi Ada #3", "tags": ["x", "y"], "second_tag": "y", "keep": true});
    let context =
        json!({"inputs": inputs, "steps": {"first": {"output": first}, "second": {"output": {"n": 3}}}});
    let run = Run { plan: &plan, context };
    assert_eq!(run.args("first"), first.to_string());
    let second = json!({"n": 3, "text": "tags=[\"x\",\"y\"] gone=[]", "gone": null, "all": first});
    assert_eq!(run.args("second"), second.to_string());
    assert_eq!(run.args("third"), json!({"padded": 3, "plain": "no braces"}).to_string());
    assert_eq!(step(&plan, "second").reads, [plan.find("first").expect("a step")]);
}

#[test]
fn an_unknown_first_word_fails_when_it_is_read() {
    let plan = case("02_unknown_root");
    let run = Run { plan: &plan, context: json!({}) };
    assert_eq!(run.args("bad"), "error expression_value");
    assert_eq!(run.args("ok"), r#"{"a":1}"#);
}

#[test]
fn loops_see_their_items_as_in_the_sixth_case() {
    let plan = case("06_foreach_nested");
    let groups = json!([{"name": "a", "xs": [1, 2]}, {"name": "b", "xs": [3]}]);
    let at = |group: usize, x: i64| Run {
        plan: &plan,
        context: json!({"inputs": {"groups": groups}, "item": x, "loops": {"outer": groups[group], "inner": x},
            "steps": {"pick": {"output": {"last": true}}}}),
    };
    assert_eq!(at(0, 1).items("outer"), groups.to_string());
    // The items of the inner loop are evaluated where the outer loop is the innermost.
    let outer = |group: usize| Run { plan: &plan, context: json!({"item": groups[group]}) };
    assert_eq!((outer(0).items("inner"), outer(1).items("inner")), ("[1,2]".into(), "[3]".into()));
    assert_eq!(at(0, 2).args("pick"), r#"{"g":"a","x":2,"inner":2}"#);
    assert_eq!(at(1, 3).args("pick"), r#"{"g":"b","x":3,"inner":3}"#);
    assert_eq!(at(1, 3).args("after"), r#"{"last":{"last":true}}"#);
}

#[test]
fn file_references_are_read_from_the_record_of_a_step() {
    let plan = case("12_file_refs");
    let (first, second) = (json!({"uri": "one"}), json!({"uri": "two"}));
    let make =
        json!({"output": {"file_refs": [first, second, {"uri": "three"}]}, "file_refs": [first, second]});
    let run = Run { plan: &plan, context: json!({"steps": {"make": make}}) };
    assert_eq!(run.args("use"), r#"{"first":"one","second":"two","third":null,"raw_third":"three"}"#);
}

#[test]
fn paths_in_the_documented_style_are_resolved() {
    let plan = case("16_docs_style_paths");
    let list = json!({"output": {"files": ["f1"], "passed": true}});
    let run = Run { plan: &plan, context: json!({"steps": {"list": list}}) };
    assert_eq!((run.items("docs_loop"), run.items("real_loop")), (r#"["f1"]"#.into(), r#"["f1"]"#.into()));
    assert!(run.decides("docs_gate"));
}

/// The items of a loop, in a loop `outer` over groups that contains `inner` with the path under test.
fn check_items(path: &str, expected: &str) {
    let text = format!(
        "name: w\nsteps:\n  - {{id: list, tool: x}}\n  - id: outer\n    kind: foreach\n    items: $.inputs.groups\n    as: group\n    \
         steps:\n      - {{id: inner, kind: foreach, items: {path:?}}}\n"
    );
    let plan = plan(&text);
    let context = json!({
        "inputs": {"groups": [{"xs": [1]}], "limit": 2, "one": 5, "empty": [], "rows": [{"p": [1, 2]}], "a b": [7]},
        "steps": {"list": {"output": {"files": ["f", "g"], "sizes": [1, 2, 3]}, "file_refs": []}},
        "item": {"xs": [1, 2, 3]}, "loops": {"outer": {"xs": [1, 2, 3]}},
    });
    assert_eq!(Run { plan: &plan, context }.items("inner"), expected, "{path}");
}

#[test]
fn narrowing_paths_does_not_change_the_result() {
    check_items("$.inputs.one", "[5]");
    check_items("$.inputs.empty", "[]");
    check_items("$.inputs.nowhere", "[]");
    check_items("$.inputs['a b']", "[7]");
    check_items("$.inputs.rows[*].p", "[1,2]");
    check_items("$.inputs.rows[0].p[1]", "[2]");
    check_items("$.inputs.rows[-1].p", "[1,2]");
    check_items("$.group.xs", "[1,2,3]");
    check_items("$.item.xs[?@ > 1]", "[2,3]");
    check_items("$.group.xs[?@ > $.inputs.limit]", "[3]");
    check_items("$.steps.list.output.files", r#"["f","g"]"#);
    check_items("$.steps.list.output.sizes[::2]", "[1,3]");
    check_items("$.steps.list.output['files']", r#"["f","g"]"#);
    check_items("$.steps[*].output.sizes", "[1,2,3]");
    check_items("$.steps.list.file_refs", "[]");
    check_items("$.list.sizes[?@ > $.inputs.limit]", "[3]");
    check_items("$..files[0]", r#"["f"]"#);
    check_items("$.*.limit", "[2]");
    check_items("$.nowhere[*]", "[]");
    check_items("$[0]", "[]");
}

#[test]
fn a_plan_knows_which_steps_a_path_reads() {
    let reads = |path: &str| {
        let text = format!(
            "name: w\nsteps:\n  - {{id: list, tool: x}}\n  - {{id: l, kind: foreach, items: {path:?}}}\n"
        );
        step(&plan(&text), "l").reads.len()
    };
    assert_eq!(reads("$.steps.list.output.files"), 1);
    assert_eq!(reads("$.steps.list.output.files[?@.x > 1]"), 1);
    assert_eq!(reads("$.list.files"), 1);
    assert_eq!(reads("$.inputs.files"), 0);
}

/// The value of a reference inside two loops, and the findings about it.
fn check_reference(loops: [&str; 2], reference: &str, expected: &str, codes: &[&str]) {
    let text = format!(
        "name: w\ninputs: {{scene: {{type: string}}, list: {{}}}}\nsteps:\n  - {{id: list, tool: x}}\n  - {{id: check, tool: x}}\n  \
         - id: out\n    kind: foreach\n    items: $.inputs.xs\n    as: {}\n    steps:\n      - id: in\n        kind: foreach\n        \
         items: $.item\n        as: {}\n        steps: [{{id: use, tool: x, args: {reference:?}}}]\n",
        loops[0], loops[1]
    );
    let loaded = dcc(&text);
    let found: Vec<&str> = loaded
        .diagnostics
        .iter()
        .filter(|finding| finding.field.as_deref() == Some("args") && finding.severity != Severity::Error)
        .map(|finding| finding.code.as_str())
        .collect();
    assert_eq!(found, codes, "{reference}");
    let context = json!({
        "inputs": {"scene": "s1", "list": "input"}, "item": "inner", "loops": {"out": "outer", "in": "inner"},
        "steps": {"list": {"output": {"x": 1}}, "check": {"output": {"ok": true}, "file_refs": ["f"]}}, "env": {"HOME": "/home"},
    });
    let plan = loaded.plan.expect("valid");
    assert_eq!(Run { plan: &plan, context }.args("use"), expected, "{reference}");
}

#[test]
fn first_words_are_resolved_from_the_inside_out() {
    let names = ["a", "b"];
    check_reference(names, "{{a}}", r#""outer""#, &[]);
    check_reference(names, "{{b}}", r#""inner""#, &[]);
    check_reference(names, "{{item}}", r#""inner""#, &[]);
    check_reference(["a", "a"], "{{a}}", r#""inner""#, &[]);
    check_reference(["item", "b"], "{{item}}", r#""outer""#, &["shadowed_binding"]);
    check_reference(["item", "item"], "{{item}}", r#""inner""#, &[]);
    check_reference(["steps", "b"], "{{steps}}", r#""outer""#, &[]);
    check_reference(["scene", "b"], "{{scene}}", r#""outer""#, &[]);
    check_reference(names, "{{scene}}", r#""s1""#, &["bare_name"]);
    check_reference(names, "{{list}}", r#""input""#, &["bare_name"]);
    check_reference(names, "{{check.ok}}", "true", &["bare_name"]);
    check_reference(names, "{{env.HOME}}", r#""/home""#, &["bare_name"]);
    check_reference(names, "{{steps.check.output.ok}}", "true", &[]);
    check_reference(names, "{{steps.check.file_refs[0]}}", r#""f""#, &[]);
    check_reference(names, "{{steps.check.status}}", "null", &["unknown_field"]);
    check_reference(names, "{{steps.check.outputs.ok}}", "null", &["unknown_field"]);
    check_reference(names, "{{steps.nowhere.output}}", "null", &["unknown_stage"]);
    check_reference(names, "{{steps.use.output}}", "null", &[]);
    check_reference(names, "{{nowhere}}", "error expression_value", &["unknown_namespace"]);
}

#[test]
fn an_approval_is_requested_although_part_of_it_is_missing() {
    let plan =
        plan(&one("{id: a, kind: approve, prompt: 'Ship {{nowhere}}{{inputs.what}}?', timeout_secs: 2}"));
    let Kind::Gate(gate) = &step(&plan, "a").kind else { panic!("a gate") };
    let run = Run { plan: &plan, context: json!({"inputs": {"what": "7"}}) };
    let message = gate.message.as_ref().expect("a question");
    assert_eq!(show(render(&message.template, &run, &plan.semantics, &Limits::default())), r#""Ship 7?""#);
    assert_eq!(gate.timeout, Some(Duration::from_secs(2)));
}
