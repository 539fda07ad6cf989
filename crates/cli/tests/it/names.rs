//! Workflows by name, lists of workflows, templates, and what Windlass means if the user names nothing.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use serde_json::Value as Json;
use std::path::Path;

const HELLO: &str = "workflow: { id: hello, name: Hello, description: Say hello }\nstages: [{ id: a, type: shell, run: echo hi }]\n";

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a writable folder");
    std::fs::write(file, text).expect("a writable folder");
}

fn call(folder: &Path, args: &[&str]) -> Seen {
    windlass_in(folder, args).env("PATH", "/usr/bin:/bin").env("USER", "ann").see()
}

fn check(folder: &Path, args: &[&str], status: i32, part: &str) -> Seen {
    let seen = call(folder, args);
    assert_eq!(seen.status, status, "{seen}");
    assert!(seen.stdout.contains(part) || seen.stderr.contains(part), "no `{part}` in\n{seen}");
    seen
}

/// A project with a workflow of each kind.
fn project(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    let here = scratch.path();
    write(here, "windlass.toml", "");
    write(here, "flows/hello.yaml", HELLO);
    write(
        here,
        "flows/broken.yaml",
        "workflow: { id: broken, name: B }\nstages: [{ id: a, type: spiral }]\n",
    );
    write(here, "dag.json", r#"{"name": "dag", "version": "1.0.0", "steps": [{"id": "b", "task": "c"}]}"#);
    let installed = "schema_version: \"1.0\"\nworkflow: {id: plan, name: Plan, version: \"1.0.0\"}\nsteps:\n  - {id: a, type: shell, run: echo}\n";
    write(here, ".specify/workflows/plan/workflow.yml", installed);
    write(here, ".specify/workflows/runs/r1/workflow.yml", installed);
    let dcc = |name: &str| format!("name: {name}\nsteps:\n  - {{id: a, tool: t}}\n");
    write(
        here,
        "skills/one/SKILL.md",
        "---\nname: one\nmetadata:\n  dcc-mcp.workflows: 'w/*.yaml, x.yaml'\n  dcc-mcp.workflows.search-hint: turntable\n---\n",
    );
    write(here, "skills/one/w/tidy.yaml", &dcc("tidy"));
    write(here, "skills/one/x.yaml", &dcc("extra"));
    write(
        here,
        "skills/two/SKILL.md",
        "---\nname: two\nmetadata:\n  dcc-mcp:\n    workflows: tidy.yaml\n---\n",
    );
    write(here, "skills/two/tidy.yaml", &dcc("tidy"));
    // Files of other programs, and of folders that are not part of the project.
    write(here, "azure-pipelines.yml", "stages:\n  - stage: build\n");
    write(here, "package.json", r#"{"name": "p", "version": "1.0.0", "scripts": {"steps": "x"}}"#);
    write(here, "node_modules/x/hello.yaml", HELLO);
    write(here, "target/hello.yaml", HELLO);
    scratch
}

#[test]
fn a_list_has_every_workflow_of_the_project_and_survives_broken_files() {
    let scratch = project("list");
    let outside = Scratch::new("list-outside");
    write(outside.path(), "out.yaml", HELLO);
    std::os::unix::fs::symlink(outside.path().join("out.yaml"), scratch.path().join("link.yaml"))
        .expect("a link");
    let seen = check(&scratch.path().join("flows"), &["list"], 0, "invalid");
    insta::assert_snapshot!("list", seen.to_string());
    let page = call(scratch.path(), &["list", "--json"]).json();
    let names: Vec<&str> =
        page["items"].as_array().into_iter().flatten().filter_map(|item| item["workflow"].as_str()).collect();
    assert_eq!(names, ["broken", "dag", "hello", "extra", "tidy", "plan", "tidy"]);
    let broken = &page["items"][0];
    assert_eq!((&broken["valid"], &broken["digest"]), (&Json::Bool(false), &Json::Null));
    assert_eq!(broken["diagnostics"].as_array().map(Vec::len), Some(1), "only the first error");
    check(scratch.path(), &["list", "TURNTABLE"], 0, "one.extra");
    check(scratch.path(), &["list", "say hello"], 0, "flows/hello.yaml");
    check(scratch.path(), &["list", "--skill", "two"], 0, "skills/two/tidy.yaml");
    check(scratch.path(), &["list", "--dialect", "dagnats"], 0, "dag.json");
    check(scratch.path(), &["list", "--tag", "none"], 0, "no matching workflows");
}

#[test]
fn commands_take_the_name_of_a_workflow() {
    let scratch = project("names");
    let here = &scratch.path().join("skills");
    check(here, &["show", "hello"], 0, "Say hello");
    check(here, &["validate", "hello"], 0, "../flows/hello.yaml: valid");
    check(here, &["plan", "hello"], 0, "Batch 1");
    check(here, &["graph", "hello"], 0, "echo hi");
    check(here, &["fmt", "--check", "hello"], 0, "1 unchanged");
    check(here, &["triggers", "next", "hello"], 0, "");
    check(here, &["test", "hello"], 2, "has no test cases");
    check(here, &["run", "hello", "--run-id", "h1"], 0, "succeeded");
    check(here, &["show", "one.tidy"], 0, "tidy");
    let seen = check(here, &["plan", "tidy"], 2, "error[ambiguous_workflow]: 2 workflows are called `tidy`");
    assert!(seen.stderr.contains("`one.tidy` (") && seen.stderr.contains("`two.tidy` ("), "{seen}");
    check(here, &["run", "nosuch"], 2, "the workflows here are broken, dag, hello, one.extra");
    check(here, &["run", "helo"], 2, "did you mean `hello`?");
    check(here, &["run", "ci"], 2, "the workflows here are");
    check(here, &["run", "broken"], 2, "spiral");
}

#[test]
fn the_last_run_and_the_only_gate_need_no_name() {
    let scratch = Scratch::new("unnamed");
    let here = scratch.path();
    write(
        here,
        "g.yaml",
        "workflow: { id: g, name: G }\nstages: [{ id: ask, type: gate, gate: { message: 'Go on?' } }]\n",
    );
    check(here, &["run", "g.yaml", "--run-id", "one-abcd"], 3, "waiting at `ask` for a decision");
    check(here, &["show"], 0, "one-abcd");
    check(here, &["events"], 0, "started");
    check(here, &["logs"], 0, "no output");
    check(here, &["wait"], 3, "one-abcd is waiting");
    check(here, &["show", "abcd"], 0, "one-abcd");
    check(here, &["run", "g.yaml", "--run-id", "two"], 3, "waiting");
    check(here, &["approve"], 2, "name one of `two ask`, `one-abcd ask`");
    check(here, &["cancel", "two"], 0, "canceled");
    check(here, &["approve"], 0, "run one-abcd waits at gate `ask`: Go on?");
    check(here, &["reject"], 2, "error[no_gate]: no gate waits");
    check(here, &["show", "one-abcd"], 0, "success");
}

#[test]
fn messages_name_a_data_folder_that_is_not_the_usual_one() {
    let scratch = Scratch::new("hints");
    let here = scratch.path();
    let gate = "workflow: { id: g, name: G }\nstages: [{ id: ask, type: gate, gate: {} }]\n";
    write(here, "project/.git/HEAD", "");
    write(here, "project/g.yaml", gate);
    write(here, "plain/flows/g.yaml", gate);
    let elsewhere = here.join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a writable folder");
    let file = here.join("project/g.yaml").display().to_string();
    let data = here.join("project/.windlass").display().to_string();
    check(&elsewhere, &["run", &file, "--run-id", "r"], 3, &format!("`windlass resume r --data {data}`"));
    // Without a project, runs are stored in the current folder, and the hints work as they are.
    let plain = here.join("plain");
    let seen = check(&plain, &["run", "flows/g.yaml", "--run-id", "r"], 3, "`windlass approve r ask`");
    assert!(!seen.stderr.contains("--data"), "{seen}");
    check(&plain, &["approve", "r", "ask"], 0, "approved");
    let ignored = std::fs::read_to_string(plain.join(".windlass/.gitignore"));
    assert_eq!(ignored.ok().as_deref(), Some("*\n"));
}

#[test]
fn templates_run_as_they_are_and_overwrite_nothing() {
    let scratch = Scratch::new("init");
    let here = scratch.path();
    for template in ["release", "ci", "nightly"] {
        let folder = here.join(template);
        check(here, &["init", template, template], 0, "windlass test");
        let file = format!("{template}.yaml");
        check(&folder, &["validate", ".", "--strict"], 0, "valid");
        check(&folder, &["fmt", "--check", "."], 0, "0 files not formatted");
        check(&folder, &["test", &file], 0, "2 cases passed, 0 failed");
        let status = if template == "release" { 3 } else { 0 };
        check(&folder, &["run", template], status, "run ");
        check(here, &["init", template, template], 2, "error[unwritable]");
    }
    check(&here.join("release"), &["approve"], 0, "Publish version 1.0.0?");
    check(&here.join("release"), &["resume"], 0, "approved by ann");
    write(here, ".gitignore", "mine\n");
    check(here, &["init"], 0, "left as it is: .gitignore");
    assert_eq!(std::fs::read_to_string(here.join(".gitignore")).ok().as_deref(), Some("mine\n"));
    check(here, &["init", "--list"], 0, "nightly");
    check(here, &["init", "relase"], 2, "did you mean `release`?");
}

const NEEDS: &str = r#"
workflow: { id: needs, name: Needs }
config: { secrets: [ONE, TWO, THREE] }
stages:
  - { id: a, type: shell, run: "no-such-program x", env: { T: "${{ secrets.ONE }}" } }
  - { id: b, type: shell, run: "echo", cwd: missing, env: { T: "${{ secrets.TWO }}" } }
  - { id: c, type: shell, condition: "false", run: "echo", env: { T: "${{ secrets.THREE }}" } }
  - { id: d, type: gate, gate: { show_file: report.md } }
"#;

#[test]
fn everything_that_is_missing_is_reported_before_a_run_starts() {
    let scratch = Scratch::new("needs");
    let here = scratch.path();
    write(here, "needs.yaml", NEEDS);
    let refused = call(here, &["run", "needs.yaml", "--json"]);
    let error = &refused.json()["error"];
    assert_eq!((refused.status, error["code"].as_str()), (2, Some("not_runnable")), "{refused}");
    let findings: Vec<(&str, &str, u64)> = error["diagnostics"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|found| {
            Some((found["severity"].as_str()?, found["message"].as_str()?, found["line"].as_u64()?))
        })
        .collect();
    let expected = [
        ("error", "the secret `ONE` is not set", 5),
        ("warning", "the secret `THREE` is not set", 7),
        ("error", "the secret `TWO` is not set", 6),
        ("warning", "there is no program `no-such-program` in your PATH", 5),
        ("warning", "the folder `missing` does not exist", 6),
        ("warning", "the file `report.md`, which the gate shows, does not exist", 8),
    ];
    assert_eq!(findings, expected, "{refused}");
    assert!(!here.join(".windlass").exists(), "nothing was started");
    let plan = call(here, &["plan", "needs.yaml", "--json"]);
    let found = plan.json()["diagnostics"].to_string();
    assert!(plan.status == 0 && expected.iter().all(|(_, message, _)| found.contains(message)), "{plan}");
    let set = windlass_in(here, &["run", "needs.yaml", "--mock", "mock.yaml"]);
    write(here, "mock.yaml", "{}\n");
    let mocked = set.env("PATH", "/usr/bin:/bin").see();
    assert_eq!(mocked.status, 1, "it starts: {mocked}");
}

const SCOPES: &str = r#"
workflow: { id: scopes, name: Scopes }
stages:
  - id: lp
    type: loop
    loop: { until: index >= 1, max: 3, stages: [{ id: rnd, type: shell, run: "printf r${{ index }}" }] }
    outputs: { last: { type: string, source: "${{ stages.rnd.outputs.stdout }}" } }
  - id: bl
    type: block
    stages: [{ id: inb, type: shell, run: printf inblock }]
    outputs: { x: { type: string, source: "${{ stages.inb.outputs.stdout }}" } }
  - id: br
    type: branch
    branch: { if: "true", then: [{ id: intrue, type: shell, run: printf intrue }] }
    outputs: { x: { type: string, source: "${{ stages.intrue.outputs.stdout }}" } }
  - { id: many, type: fan_out, fan_out: { source: [1, 2, 3], stage_template: { type: shell, run: "printf ${{ item }}" } } }
  - { id: as, type: assign, set: { n: 5 } }
  - id: sum
    type: shell
    depends_on: [lp, bl, br, as, many]
    run: >-
      echo lp=${{ stages.lp.outputs.last }} bl=${{ stages.bl.outputs.x }} br=${{ stages.br.outputs.x }}
      as=${{ stages.as.outputs.n }} many=${{ length(stages.many.outputs) }}
"#;

#[test]
fn a_single_step_gets_the_recorded_outputs_of_scopes() {
    let scratch = Scratch::new("only-scopes");
    let here = scratch.path();
    write(here, "s.yaml", SCOPES);
    let line = "sum | lp=r1 bl=inblock br=intrue as=5 many=3";
    check(here, &["run", "s.yaml", "--run-id", "full"], 0, line);
    check(here, &["run", "s.yaml", "--only", "sum", "--inputs-from", "full"], 0, line);
    // A scope that did not finish has no result, even if steps inside it have one.
    let failing = SCOPES
        .replace("printf r${{ index }}", "test ${{ index }} = 0")
        .replace("max: 3,", "max: 3, delay: 1ms,");
    let failing = failing.replace("type: loop\n", "type: loop\n    error_policy: { on_failure: halt }\n");
    write(
        here,
        "f.yaml",
        &failing.replace(
            "type: shell, run: \"test",
            "type: shell, error_policy: { retry: { max_attempts: 1 } }, run: \"test",
        ),
    );
    check(here, &["run", "f.yaml", "--run-id", "half"], 1, "failed in");
    check(here, &["run", "s.yaml", "--only", "sum", "--inputs-from", "half"], 2, "error[no_result]");
}

const NESTED: &str = r#"
schema_version: "1.0"
workflow: { id: n, name: N, version: "1.0.0" }
steps:
  - { id: c, type: if, condition: "{{ true }}", then: [{ id: inner, type: shell, run: echo hi }] }
  - { id: last, type: shell, run: "echo got {{ steps.inner.output.stdout }}" }
"#;

#[test]
fn a_step_inside_a_kept_scope_is_still_read() {
    let scratch = Scratch::new("kept-inside");
    let here = scratch.path();
    write(here, "n.yml", NESTED);
    check(here, &["run", "n.yml", "--run-id", "full"], 0, "last | got hi");
    check(here, &["retry", "full", "--from-step", "last"], 0, "last | got hi");
    check(here, &["run", "n.yml", "--only", "last", "--inputs-from", "full"], 2, "no result of `inner`");
}

#[test]
fn a_diff_shows_what_the_formatter_would_change() {
    let scratch = Scratch::new("fmt-diff");
    let here = scratch.path();
    write(
        here,
        "a/x.yaml",
        "workflow: {id: x, name: X}\nstages:\n    - {type: shell, id: a, run: \"true\"}\n",
    );
    write(here, "other.yaml", "a:   b\n");
    let seen =
        check(here, &["fmt", "--diff", "."], 1, "-workflow: {id: x, name: X}\n+workflow: { id: x, name: X }");
    assert!(seen.stdout.starts_with("--- ./a/x.yaml\n") && !seen.stdout.contains("other"), "{seen}");
    check(here, &["fmt", "."], 0, "1 file formatted");
    check(here, &["fmt", "--diff", "."], 0, "0 files not formatted, 1 unchanged");
}

#[test]
fn resume_says_which_steps_keep_an_old_value() {
    let scratch = Scratch::new("rendered");
    let here = scratch.path();
    write(
        here,
        "g.yaml",
        "workflow: { id: g, name: G }\nconfig: { parameters: { x: { type: string, default: a } } }\nstages: [{ id: ask, type: gate, gate: { message: 'is it ${{ parameters.x }}?' } }]\n",
    );
    check(here, &["run", "g.yaml", "--run-id", "r"], 3, "is it a?");
    check(here, &["resume", "r", "-p", "x=b"], 3, "`ask` keeps the old value of `x`");
    let same = call(here, &["resume", "r", "-p", "x=b"]);
    assert!(!same.stderr.contains("old value"), "{same}");
}

#[test]
fn completion_offers_workflows_steps_and_waiting_gates() {
    let scratch = Scratch::new("completion");
    let here = scratch.path();
    let gate = "workflow: { id: g, name: G }\nstages:\n  - { id: build, type: shell, run: echo }\n  - { id: sign-off, type: gate, depends_on: [build], gate: {} }\n";
    write(here, "flows/g.yaml", gate);
    check(here, &["run", "g", "--run-id", "r1", "--data", "d"], 3, "waiting");
    let complete = |words: &[&str]| {
        let args: Vec<&str> = ["--", "windlass"].iter().chain(words).copied().collect();
        let index = words.len().to_string();
        let call =
            windlass_in(here, &args).env("WINDLASS_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", &index);
        let seen = call.env("_CLAP_IFS", "\n").see();
        assert_eq!(seen.status, 0, "{seen}");
        let values = seen.stdout.lines().filter(|line| !line.starts_with("--"));
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["approve", "--data", "d", "r1", ""]), ["sign-off"]);
    assert_eq!(complete(&["logs", "--data", "d", "r1", "b"]), ["build"]);
    assert_eq!(complete(&["run", "g", "--until", ""]), ["build", "sign-off"]);
    assert_eq!(complete(&["plan", "g"]), ["g"]);
    assert_eq!(complete(&["init", "n"]), ["nightly"]);
}
