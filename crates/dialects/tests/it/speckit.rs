//! Tests of Spec Kit files: those of the behavior cases, which other tests run with the program, and small ones.

use crate::support::{folder, read};
use serde_json::{Value as Json, json};
use windlass_dialects::{Loaded, Options, Text, load};
use windlass_ir::workflow::{Action, Ask, Choose, ForEach, Items, Kind};
use windlass_ir::{Diagnostic, Plan, Severity};

fn cases() -> Vec<String> {
    let entries = std::fs::read_dir(folder("speckit/cases")).expect("the cases");
    let folders = entries.map(|entry| entry.expect("readable").path()).filter(|path| path.is_dir());
    folders.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// A case with overlays is about the workflow that they change.
fn load_case(name: &str) -> Loaded {
    let case = folder("speckit/cases").join(name);
    if name == "overlay" {
        let overlays = ["ov1.yml", "ov2.yml"].map(|file| read(&case.join(file))).to_vec();
        return load(read(&case.join("base/workflow.yml")), Options { overlays, ..Options::default() });
    }
    load(read(&case.join("workflow.yml")), Options::default())
}

fn load_steps(steps: &str) -> Loaded {
    let text = format!(
        "schema_version: '1.0'\nworkflow: {{id: w, name: W, version: 1.0.0, integration: claude}}\nsteps:\n{steps}"
    );
    load(Text { name: "workflow.yml".into(), bytes: text.into_bytes() }, Options::default())
}

fn plan_of(steps: &str) -> Plan {
    let loaded = load_steps(steps);
    loaded.plan.unwrap_or_else(|| panic!("{steps}: {:#?}", loaded.diagnostics))
}

fn errors(loaded: &Loaded) -> Vec<&Diagnostic> {
    loaded.diagnostics.iter().filter(|finding| finding.severity == Severity::Error).collect()
}

#[test]
fn every_finding_has_a_location_and_help() {
    for name in cases() {
        for finding in load_case(&name).diagnostics {
            let complete = finding.span.is_some() && !finding.message.is_empty() && !finding.help.is_empty();
            assert!(complete && finding.field.is_some(), "{name}: {finding:#?}");
        }
    }
}

#[test]
fn overlays_put_steps_where_they_belong() {
    let plan = load_case("overlay").plan.expect("valid");
    let ids = |list: &[windlass_ir::expr::StepId]| -> Vec<String> {
        list.iter().map(|id| plan.step(*id).id.to_string()).collect()
    };
    assert_eq!(ids(&plan.roots), ["one", "added2", "added", "two", "hook"]);
    let two = plan.step(plan.find("two").expect("a step"));
    let Kind::Choose(Choose::If { then, .. }) = &two.kind else { panic!("an if") };
    assert_eq!(ids(then), ["pre-nested", "nested"]);
}

#[test]
fn steps_inherit_from_the_workflow() {
    let check = |keys: &str, expected: Json| {
        let plan = plan_of(&format!("- {{id: a, command: plan, {keys}}}\n"));
        let Kind::Action(Action::Assistant(assistant)) = &plan.steps[0].kind else { panic!("an assistant") };
        assert_eq!(json!(assistant.integration.as_ref().map(|bound| &bound.template)), expected, "{keys}");
    };
    check("options: {}", json!({"constant": "claude"}));
    check("integration: ''", json!({"constant": "claude"}));
    check("integration: ~", json!({"constant": "claude"}));
    check("integration: codex", json!({"constant": "codex"}));
    let read = json!({"member": {"of": {"read": {"namespace": "inputs"}}, "name": "x"}});
    check("integration: '{{ inputs.x }}'", json!({"expression": read}));
}

#[test]
fn timeouts_and_limits_have_their_defaults() {
    let check = |step: &str, seconds: Option<f64>, bytes_max: Option<Option<u64>>| {
        let plan = plan_of(&format!("- {{id: a, {step}}}\n"));
        let step = &plan.steps[0];
        assert_eq!(step.policy.timeout.map(windlass_ir::Duration::as_secs_f64), seconds, "{step:?}");
        if let Kind::Action(Action::Assistant(assistant)) = &step.kind {
            assert_eq!(assistant.capture.map(|capture| capture.bytes_max), bytes_max, "{step:?}");
        }
    };
    check("type: shell, run: make", Some(300.0), None);
    check("type: shell, run: make, timeout: 0.5", Some(0.5), None);
    check("command: plan", None, None);
    check("command: plan, capture: true", Some(600.0), Some(Some(1 << 20)));
    check("command: plan, capture: yes, timeout: 1:30", Some(90.0), Some(Some(1 << 20)));
    check("command: plan, capture: true, capture_max_bytes: -1", Some(600.0), Some(None));
    check("type: prompt, prompt: hi", Some(300.0), None);
    check("type: prompt, prompt: hi, capture: true, capture_max_bytes: 7", Some(300.0), Some(Some(7)));
    check(
        "type: github, operation: add-label, target: issue, repository: a/b, number: 3, label: x",
        Some(60.0),
        None,
    );
}

#[test]
fn a_prompt_is_a_template_and_a_command_is_not() {
    let plan = plan_of(
        "- {id: a, command: '{{ inputs.x }}', input: {args: 'x {{ inputs.x }}', deep: ['{{ inputs.x }}']}}\n",
    );
    let Kind::Action(Action::Assistant(assistant)) = &plan.steps[0].kind else { panic!("an assistant") };
    let Ask::Command { command, input, .. } = &assistant.ask else { panic!("a command") };
    assert_eq!(&**command, "{{ inputs.x }}");
    assert_eq!(input["args"].template.expressions().len(), 1);
    assert_eq!(json!(input["deep"].template), json!({"constant": ["{{ inputs.x }}"]}));
}

#[test]
fn items_run_in_parallel_only_above_one() {
    let check = |written: &str, expected: u32| {
        let plan = plan_of(&format!(
            "- {{id: fan, type: fan-out, items: [1], max_concurrency: {written}, step: {{id: t, type: shell, run: x}}}}\n"
        ));
        let Kind::ForEach(ForEach { concurrency, isolated, items: Items::List(_), .. }) = &plan.steps[0].kind
        else {
            panic!("a fan-out")
        };
        assert_eq!((*concurrency, *isolated), (Some(expected), true), "{written}");
    };
    for (written, expected) in [
        ("4", 4),
        ("'4'", 4),
        ("2.7", 2),
        ("0", 1),
        ("-3", 1),
        ("true", 1),
        (".inf", 1),
        ("many", 1),
        ("~", 1),
    ] {
        check(written, expected);
    }
}

#[test]
fn case_keys_are_what_python_prints() {
    let plan = plan_of(
        "- {id: s, type: switch, expression: '{{ inputs.x }}', cases: {yes: [], 1: [], 1.50: [], ~: [], on-call: []}}\n",
    );
    let Kind::Choose(Choose::Switch { value, cases, .. }) = &plan.steps[0].kind else { panic!("a switch") };
    assert_eq!(cases.keys().map(|key| &**key).collect::<Vec<_>>(), ["1", "1.5", "None", "True", "on-call"]);
    let shown = json!(value.template);
    assert_eq!(shown["expression"]["call"]["function"], "trim", "{shown}");
    assert_eq!(shown["expression"]["call"]["args"][0]["call"]["function"], "text", "{shown}");
}

/// Several ids are equally close; every run of the program suggests the same one.
#[test]
fn the_first_of_equally_close_steps_is_suggested() {
    let ids = ["step-1", "step-3", "step-5", "step-7", "step-8", "step-9"];
    let steps: String = ids.iter().map(|id| format!("- {{id: {id}, type: shell, run: x}}\n")).collect();
    let join = format!("{steps}- {{id: join, type: fan-in, wait_for: [step-x]}}\n");
    let loaded = load_steps(&join);
    assert_eq!(errors(&loaded)[0].suggest.as_deref(), Some("step-1"), "{:#?}", loaded.diagnostics);
    let text = |name: &str, text: String| Text { name: name.into(), bytes: text.into_bytes() };
    let header = "schema_version: '1.0'\nworkflow: {id: w, name: W, version: 1.0.0}\n";
    let overlay = text("o.yml", "id: o\nextends: w\nedits: [{remove: step-x}]\n".into());
    let base = text("workflow.yml", format!("{header}steps:\n{steps}"));
    let loaded = load(base, Options { overlays: vec![overlay], ..Options::default() });
    assert_eq!(errors(&loaded)[0].suggest.as_deref(), Some("step-1"), "{:#?}", loaded.diagnostics);
}

#[test]
fn keys_are_shown_as_written() {
    let check = |steps: &str, expected: &str| {
        let loaded = load_steps(steps);
        let messages: Vec<&str> = loaded.diagnostics.iter().map(|finding| finding.message.as_str()).collect();
        assert!(messages.contains(&expected), "{steps}: {messages:#?}");
    };
    check("- {id: a, type: shell, run: x, on: push}\n", "unknown key `on`");
    check("- {id: a, type: shell, run: x, 0x10: y}\n", "unknown key `0x10`");
    let switch = "- {id: a, type: switch, expression: '{{ inputs.x }}', cases: {CASES}}\n";
    check(&switch.replace("CASES", "off: 7"), "case `off` must be a list of steps, not the number `7`");
    check(&switch.replace("CASES", "on: [], yes: []"), "duplicate key `yes` in two spellings");
}

#[test]
fn overrides_are_for_another_dialect() {
    let file = |name: &str, text: &str| Text { name: name.into(), bytes: text.as_bytes().to_vec() };
    let base = "schema_version: '1.0'\nworkflow: {id: w, name: W, version: 1.0.0}\nsteps: [{id: a, type: shell, run: x}]\n";
    let overrides = Some(file("project.yaml", "# ours\noverrides: {w: {}}\n"));
    let loaded = load(file("workflow.yml", base), Options { overrides, ..Options::default() });
    let [finding] = loaded.diagnostics.as_slice() else { panic!("{:#?}", loaded.diagnostics) };
    assert_eq!((finding.code.as_str(), finding.severity), ("unused_override", Severity::Warning));
    assert_eq!(finding.message, "overrides apply to swdl workflows only, but this workflow is speckit");
    let span = finding.span.expect("a place");
    assert_eq!((&*loaded.sources.get(span.source).name, span.start), ("project.yaml", 7));
    assert!(loaded.is_valid());
}

#[test]
fn a_fan_in_knows_what_it_collects() {
    let plan = plan_of(
        "- {id: a, type: shell, run: x}\n- {id: b, type: fan-in, wait_for: [a], output: {all: '{{ fan_in }}', list: '{{ fan_in.results }}', seven: 7}}\n",
    );
    let Kind::Assign(set) = &plan.steps[1].kind else { panic!("an assignment") };
    assert_eq!(set.keys().map(|key| &**key).collect::<Vec<_>>(), ["results", "all", "list", "seven"]);
    assert_eq!(json!(set["results"].template), json!(set["list"].template));
    let shown = json!(set["results"].template);
    assert_eq!(
        shown,
        json!({"expression": {"list": [{"call": {"function": "default", "args": [
            {"read": {"step_outputs": 0}}, {"literal": {}}]}}]}})
    );
    let all = json!(set["all"].template);
    assert_eq!(all["expression"]["call"]["function"], "object");
    assert_eq!(all["expression"]["call"]["args"][0], json!({"literal": "results"}));
    assert_eq!(json!(set["seven"].template), json!({"constant": 7}));
    assert_eq!(plan.steps[1].reads, [windlass_ir::expr::StepId(0)]);
}

#[test]
fn shell_values_are_not_quoted() {
    let plan = plan_of("- {id: a, type: shell, run: 'echo {{ steps.a.type }} {{ context.run_id }}'}\n");
    let Kind::Action(Action::Shell(shell)) = &plan.steps[0].kind else { panic!("a shell step") };
    for expr in shell.run.template.expressions() {
        assert_eq!(json!(expr)["call"]["function"], "raw");
    }
    assert_eq!(plan.env.keys().map(|key| &**key).collect::<Vec<_>>(), ["SPECKIT_WORKFLOW_DIR"]);
}

/// Nested steps with the given number of levels.
fn nested(depth: usize, id: &str) -> String {
    let open: String =
        (0..depth).map(|at| format!("{{id: {id}{at}, type: if, condition: true, then: [")).collect();
    format!("{open}{{id: x, type: shell, run: x}}{}", "]}".repeat(depth))
}

/// The codes of all errors, without duplicates.
fn codes(loaded: &Loaded) -> Vec<&'static str> {
    let mut codes: Vec<&str> = errors(loaded).iter().map(|finding| finding.code.as_str()).collect();
    codes.dedup();
    codes
}

#[test]
fn depth_is_bounded_with_overlays() {
    let check = |depth: usize, overlay: usize, expected: &[&str]| {
        let text = |name: &str, text: String| Text { name: name.into(), bytes: text.into_bytes() };
        let header = "schema_version: '1.0'\nworkflow: {id: w, name: W, version: 1.0.0}\n";
        let base = text("workflow.yml", format!("{header}steps:\n- {}\n", nested(depth, "a")));
        let edit = format!("{{replace: x, step: {}}}", nested(overlay, "b"));
        let overlay = text("o.yml", format!("id: o\nextends: w\nedits:\n- {edit}\n"));
        let loaded = load(base, Options { overlays: vec![overlay], ..Options::default() });
        assert_eq!(codes(&loaded), expected, "{depth}");
    };
    check(30, 33, &[]);
    check(30, 34, &["too_deep"]);
    check(120, 120, &["too_deep"]);
}

#[test]
fn copies_are_bounded() {
    let steps: String = (0..1000).map(|at| format!("- {{id: s{at}, type: shell, run: x}}\n")).collect();
    let ids: Vec<String> = (0..1000).map(|at| format!("s{at}")).collect();
    let output: Vec<String> = (0..1000).map(|at| format!("k{at}: '{{{{ fan_in }}}}'")).collect();
    let (ids, output) = (ids.join(", "), output.join(", "));
    let fan_in = format!("- {{id: f, type: fan-in, wait_for: [{ids}], output: {{{output}}}}}\n");
    assert_eq!(codes(&load_steps(&format!("{steps}{fan_in}"))), ["expression_limit"]);
}

#[test]
fn the_tour_shows_every_type_and_has_no_findings() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/speckit-tour/workflow.yml");
    let loaded = load(read(&path), Options::default());
    assert_eq!(loaded.diagnostics, []);
    let plan = loaded.plan.expect("valid");
    let shown: std::collections::BTreeSet<&str> = plan.steps.iter().map(|step| &*step.word).collect();
    assert_eq!(shown.len(), 14, "{shown:?}");
}

/// For any value after a colon, reading produces complete findings.
#[test]
fn strange_values_in_any_place_are_handled() {
    let path = folder("speckit/ok_all_types.yml");
    let text = std::fs::read_to_string(&path).expect("a fixture");
    for (at, _) in text.match_indices(": ") {
        let start = at + 2;
        let end = text[start..].find([',', '}', '\n']).map_or(text.len(), |length| start + length);
        for strange in ["~", "[[]]", "{a: {}}", "-0x1", "\"{{ steps\""] {
            let file = format!("{}{strange}{}", &text[..start], &text[end..]);
            let loaded =
                load(Text { name: "workflow.yml".into(), bytes: file.into_bytes() }, Options::default());
            for finding in errors(&loaded) {
                assert!(
                    finding.span.is_some() && !finding.help.is_empty(),
                    "{strange} at {start}: {finding:#?}"
                );
            }
        }
    }
}
