//! What people see of runs: `run`, `show`, `runs`, `wait`, `logs` and `serve`, whole. Times and durations are replaced.

use crate::support::{Seen, folder, windlass_in};
use std::path::PathBuf;

const EVERYTHING: &str = r#"
workflow: { id: everything, name: Everything }
config: { parameters: { env: { type: string, default: prod } } }
error_policy: { default_retry: { max_attempts: 2, initial_interval: 1ms } }
outputs:
  channel: { type: string, source: "${{ parameters.env }}" }
  count: { type: integer, source: "${{ 3 }}" }
stages:
  - { id: flaky, type: shell, run: 'test $WINDLASS_ATTEMPT = 2 || { echo boom >&2; exit 3; }' }
  - { id: only-qa, type: shell, depends_on: [flaky], run: echo qa, condition: "parameters.env == 'qa'" }
  - id: pick
    type: branch
    depends_on: [only-qa]
    branch:
      if: "parameters.env == 'prod'"
      then: [{ id: deploy, type: shell, run: echo deployed }]
      else: [{ id: dry-run, type: shell, run: echo dry }]
  - id: build
    type: fan_out
    depends_on: [pick]
    fan_out:
      matrix: { os: [linux, mac], channel: [beta, stable] }
      concurrency: 1
      on_failure: continue
      stage_template:
        type: shell
        run: 'test ${{ item.os }} = linux || test ${{ item.channel }} = stable'
        error_policy: { retry: { max_attempts: 1 } }
  - id: poll
    type: loop
    depends_on: [build]
    loop:
      until: "stages.check.outputs.stdout == 'never'"
      max: 2
      stages: [{ id: check, type: shell, run: printf once }]
hooks:
  on_complete: { run: "echo from the hook; exit 3" }
"#;

const TRIP: &str = r#"
workflow: { id: trip, name: Trip }
error_policy: { on_stage_failure: rollback, default_retry: { max_attempts: 1 } }
stages:
  - { id: car, type: shell, run: "true", compensate: undo-car }
  - { id: flight, type: shell, depends_on: [car], run: "true", compensate: { type: shell, run: "true" } }
  - { id: hotel, type: shell, depends_on: [flight], run: "echo full >&2; exit 1", finally: { type: shell, run: "true" } }
  - { id: undo-car, type: shell, run: "true" }
"#;

const GATED: &str = r##"
workflow: { id: gated, name: Gated }
config: { timeout: 2d }
stages:
  - { id: draft, type: shell, run: "echo '# Notes' > notes.md; echo more >> notes.md" }
  - id: sign-off
    type: gate
    depends_on: [draft]
    gate:
      kind: manual_approval
      approvers: [ann, bob]
      quorum: 2
      timeout: 23h
      on_timeout: reject
      message: Publish it?
      show_file: notes.md
      form:
        channel: { type: string, choices: [blog, mail], default: blog, description: Where to publish }
        ticket: { type: string, required: true, description: The ticket that asked for it }
  - { id: publish, type: shell, depends_on: [sign-off], run: "true" }
"##;

struct Setup(PathBuf);

impl Setup {
    fn new(test: &str) -> Self {
        let files = [
            ("everything.yaml", EVERYTHING),
            ("trip.yaml", TRIP),
            ("gated.yaml", GATED),
            ("notes.md", "to be written\n"),
        ];
        Self(folder(test, &files))
    }

    fn call(&self, line: &str) -> Seen {
        let args = [line.split(' ').collect(), vec!["--data", "data"]].concat();
        windlass_in(&self.0, &args).env("PATH", "/usr/bin:/bin").env("TZ", "UTC").env("USER", "dana").see()
    }

    /// The command and everything that it prints.
    fn see(&self, line: &str) -> String {
        steady(&self.call(line).to_string())
    }
}

/// Replaces what differs from run to run.
fn steady(text: &str) -> String {
    let replace = |text: String, pattern: &str, with: &str| {
        regex::Regex::new(pattern).expect("a pattern").replace_all(&text, with).into_owned()
    };
    let text = replace(text.to_owned(), r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", "DAY CLOCK");
    let text = replace(text, r"\d\d:\d\d:\d\d", "CLOCK");
    let text = replace(text, r" in 22h \d\dm", " in 22h MM");
    let text = replace(text, r" +\d+(\.\d)?(ms|s)( |\b)", " TOOK$3");
    replace(text, r"TOOK +", "TOOK ")
}

#[test]
fn a_run_with_everything() {
    let setup = Setup::new("views_everything");
    insta::assert_snapshot!("views_run", setup.see("run everything.yaml --run-id all --by dana"));
    insta::assert_snapshot!("views_show", setup.see("show all"));
    insta::assert_snapshot!("views_logs", setup.see("logs all --timestamps --tail 2"));
    assert_eq!(setup.call("logs all hook:on_complete").stdout, "hook:on_complete | from the hook\n");
    let retried = setup.call("retry all --from poll --run-id again --by dana");
    assert_eq!(retried.status, 0, "{retried}");
    insta::assert_snapshot!("views_show_retried", setup.see("show again"));
    let hooks = setup.call("show all --json").json();
    assert_eq!(hooks["hooks"][0]["status"], "failed", "{hooks:#}");
    assert_eq!(hooks["headline"], "succeeded with 1 of 4 items failed");
    assert_eq!(hooks["steps"]["build"]["children"]["by_status"]["success"], 3);
    assert_eq!(hooks["steps"]["build[1]"]["item"], "beta, mac");
}

#[test]
fn a_run_that_is_undone() {
    let setup = Setup::new("views_undone");
    insta::assert_snapshot!("views_run_undone", setup.see("run trip.yaml --run-id trip --by dana"));
    insta::assert_snapshot!("views_show_undone", setup.see("show trip"));
    let shown = setup.call("show trip --json").json();
    assert_eq!((&shown["undone"], &shown["steps"]["car"]["undone"]), (&"all".into(), &true.into()));
}

#[test]
fn a_gate_with_a_quorum() {
    let setup = Setup::new("views_gate");
    insta::assert_snapshot!("views_run_waits", setup.see("run gated.yaml --run-id gated --by dana"));
    let approved = setup.call("approve gated --by ann --field ticket=T-1 --reason fine");
    let expected = "approved (1 of 2 approvals: ann): run gated; continue it with `windlass resume gated";
    assert!(approved.stderr.starts_with(expected), "{approved}");
    insta::assert_snapshot!("views_show_waits", setup.see("show gated"));
    insta::assert_snapshot!("views_wait", setup.see("wait gated"));
    let gate = setup.call("approve gated --by bob --field ticket=T-2 --json").json();
    assert_eq!(gate["decided"]["by"], "bob");
    assert_eq!(gate["quorum"]["have"][0]["reason"], "fine");
    assert_eq!(gate["quorum"]["have"][0]["fields"], serde_json::json!({"channel": "blog", "ticket": "T-1"}));
    assert_eq!(setup.call("resume gated").status, 0);
    insta::assert_snapshot!("views_show_decided", setup.see("show gated"));
    assert_eq!(setup.call("run gated.yaml --run-id other").status, 3);
    let canceled = setup.call("cancel other --by ann --reason too-early");
    assert_eq!(canceled.status, 0, "{canceled}");
    insta::assert_snapshot!("views_show_canceled", setup.see("show other"));
    insta::assert_snapshot!("views_runs", setup.see("runs"));
    let page = setup.call("runs --json").json();
    let run = &page["items"][1];
    assert_eq!(
        (&run["by"], &run["progress"]["done"], &run["progress"]["total"]),
        (&"dana".into(), &3.into(), &3.into())
    );
    let events = setup.call("events gated --json").stdout;
    let decided = events.lines().filter(|line| line.contains("\"event\":\"decided\""));
    let finals: Vec<bool> = decided.map(|line| line.contains("\"final\":true")).collect();
    assert_eq!(finals, [false, true]);
}

const UNATTENDED: &str = r#"
workflow: { id: unattended, name: Unattended }
stages:
  - id: sign-off
    type: gate
    gate:
      kind: manual_approval
      timeout: 5s
      on_timeout: auto_approve
      form: { channel: { type: string, default: blog } }
  - id: second
    type: gate
    depends_on: [sign-off]
    gate: { kind: manual_approval, timeout: 5s, on_timeout: reject }
"#;

#[test]
fn a_gate_that_no_one_decides_says_so() {
    let here = folder("views_unattended", &[("unattended.yaml", UNATTENDED), ("none.json", "{}")]);
    let see = |line: &str| {
        let args: Vec<&str> = line.split(' ').chain(["--data", "data"]).collect();
        windlass_in(&here, &args).env("TZ", "UTC").env("USER", "dana").see()
    };
    let ran = see("run unattended.yaml --run-id r --mock none.json --virtual-time --wait");
    assert!(ran.stderr.contains("approved by timeout after 5s, channel=blog"), "{ran}");
    insta::assert_snapshot!("views_run_unattended", steady(&ran.to_string()));
    insta::assert_snapshot!("views_show_unattended", steady(&see("show r").to_string()));
}

#[test]
fn a_failure_says_where_to_look() {
    let head = "workflow: { id: w, name: W }\nconfig: { parameters: { n: { type: integer } } }\nstages:\n";
    let output = "  - { id: out, type: shell, run: 'true', outputs: { count: { type: integer } } }\n";
    let sum = "  - { id: sum, type: shell, run: 'echo ${{ parameters.n + 1 }}' }\n";
    let files = [("output.yaml", format!("{head}{output}")), ("sum.yaml", format!("{head}{sum}"))];
    let here = folder("views_cure", &files.each_ref().map(|(name, text)| (*name, text.as_str())));
    let check = |file: &str, expected: &str| {
        let seen = windlass_in(&here, &["run", file, "--data", "data"]).env("PATH", "/usr/bin:/bin").see();
        assert!(seen.status == 1 && seen.stderr.contains(expected), "{seen}");
    };
    check(
        "output.yaml",
        "let its command write `count=VALUE` to \"$WINDLASS_OUTPUT\", or change `outputs`\n",
    );
    check("sum.yaml", "the expression is in `run` of `sum`\n");
}

#[test]
fn serving_says_what_it_does() {
    let schedules = r#"schedules:
  - {id: nightly, workflow: tidy, trigger: {kind: cron, expression: "0 0 3 1 1 * 2099"}}
  - {id: off, workflow: tidy, enabled: false, trigger: {kind: cron, expression: "@daily"}}
  - {id: hook, workflow: tidy, trigger: {kind: webhook, path: /x}}
"#;
    let tidy = "name: tidy\nsteps: [{id: a, kind: tool, tool: scene_tidy}]\n";
    let plain = "workflow: {id: w, name: W}\nstages: [{id: a, type: shell, run: x}]\n";
    let files = [
        ("s.schedules.yaml", schedules),
        ("workflows/tidy.workflow.yaml", tidy),
        ("plain.yaml", plain),
        ("bad.schedules.yaml", "schedules: 3\n"),
    ];
    let here = folder("views_serve", &files);
    let serve = |args: &[&str]| {
        let args = [&["serve", "--until-idle", "--data", "data"], args].concat();
        windlass_in(&here, &args).env("TZ", "UTC").see()
    };
    insta::assert_snapshot!("views_serve_idle", serve(&[]));
    let timed = "workflow: {id: timed, name: T}\ntriggers: [{cron: '0 3 * * *'}]\nstages: [{id: a, type: shell, run: x}]\n";
    std::fs::write(here.join("timed.yaml"), timed).expect("a writable folder");
    let told = serve(&[]);
    let expected = "1 workflow here has triggers that do not fire; serve them with `windlass serve --schedules timed.yaml`";
    assert!(told.stderr.contains(expected), "{told}");
    insta::assert_snapshot!("views_serve", serve(&["--schedules", "s.schedules.yaml"]));
    insta::assert_snapshot!("views_serve_json", serve(&["--schedules", "s.schedules.yaml", "--json"]));
    for refused in ["missing.yaml", "bad.schedules.yaml", "plain.yaml"] {
        let seen = serve(&["--schedules", refused]);
        assert_eq!(seen.status, 2, "{seen}");
        assert!(seen.stderr.contains("error[bad_request]"), "{seen}");
    }
}
