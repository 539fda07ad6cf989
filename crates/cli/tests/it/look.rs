//! Inspecting runs: trees, logs, events, lists, comparison, export and import.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use std::path::Path;

const WORKFLOW: &str = r#"
workflow: { id: tour, name: Tour, description: A little of everything }
config:
  parameters:
    who: { type: string, default: world, description: Whom to greet }
stages:
  - id: hello
    type: shell
    run: 'printf "hello $WHO\n\033[31mred\n\377\n"; sleep 0.1; echo aside >&2'
    env: { WHO: '${{ parameters.who }}' }
  - id: each
    type: fan_out
    depends_on: [hello]
    fan_out: { source: '${{ [1, 2] }}', stage_template: { type: shell, run: echo item } }
  - id: pick
    type: branch
    depends_on: [hello]
    branch:
      if: '${{ parameters.who == "moon" }}'
      then: [{ id: far, type: shell, run: echo far }]
      else: [{ id: near, type: shell, run: echo near }]
  - id: boom
    type: shell
    depends_on: [each, pick]
    run: 'echo attempt $WINDLASS_ATTEMPT; exit 3'
    error_policy: { retry: { max_attempts: 2, initial_interval: 1ms } }
  - { id: never, type: shell, depends_on: [boom], run: echo never }
"#;

struct Setup(Scratch);

impl Setup {
    fn new(test: &str) -> Self {
        let scratch = Scratch::new(test);
        std::fs::write(scratch.path().join("tour.yaml"), WORKFLOW).expect("a writable folder");
        Self(scratch)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn call(&self, line: &str) -> Seen {
        windlass_in(self.path(), &line.split_whitespace().collect::<Vec<_>>())
            .env("PATH", "/usr/bin:/bin")
            .see()
    }

    /// The output of a command that succeeds.
    fn see(&self, line: &str) -> String {
        let seen = self.call(line);
        assert_eq!(seen.status, 0, "{seen}");
        seen.stdout
    }

    /// Checks the code of a refusal.
    fn refused(&self, line: &str, code: &str) {
        let seen = self.call(line);
        assert_eq!(seen.status, 2, "{seen}");
        assert!(seen.stderr.contains(&format!("error[{code}]")), "{seen}");
    }

    fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.see(line)).expect("JSON")
    }
}

#[test]
fn a_run_is_shown_at_any_event_and_its_output_is_kept() {
    let setup = Setup::new("look");
    assert_eq!(setup.call("run tour.yaml --run-id one --data d").status, 1);
    let page = setup.see("show one --data d");
    let tree = page.split("\n\n").nth(1).expect("a tree");
    let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let tree: Vec<String> = tree.lines().map(words).collect();
    assert_eq!(
        tree,
        [
            "+ hello success",
            "+ each success",
            "+ each (1)",
            "+ each (2)",
            "+ pick success",
            "+ near success",
            "- far skipped",
            "x boom failed",
            "attempt 1 at",
            "attempt 2 at",
            "/ never cancelled"
        ],
        "{page}"
    );
    assert!(page.contains("2 attempts") && page.contains("`boom` failed"), "{page}");

    let early = setup.see("show one --data d --at 1");
    assert!(early.contains("running") && early.contains(". boom"), "{early}");
    assert_eq!(setup.json("show one --data d --at 1 --json")["at_event"], 1);
    setup.refused("show one --data d --at 0", "no_event");
    setup.refused("show one --data d --at 999", "no_event");

    let logs = setup.see("logs one --data d");
    let (failing, others) = logs.split_once("--- other steps\n").expect("two parts");
    assert_eq!(
        failing,
        "--- boom failed (error): exit status 3\nboom | attempt 1\nboom (attempt 2) | attempt 2\n"
    );
    let hello = "hello | hello world\nhello | \u{fffd}[31mred\nhello | \u{fffd}\nhello | aside\n";
    assert!(others.starts_with(hello) && others.contains("each (2) | item\n"), "{others}");
    assert_eq!(
        windlass_in(setup.path(), &["logs", "one", "each (2)", "--data", "d"]).see().stdout,
        "each (2) | item\n"
    );
    assert_eq!(setup.see("logs one near --data d"), "near | near\n");
    assert_eq!(setup.see("logs one each --data d").lines().count(), 2);
    assert_eq!(setup.see("runs one --logs --data d"), logs);
    let lines: Vec<serde_json::Value> = setup
        .see("logs one hello --json --data d")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((&lines[2]["hex"], &lines[3]["stream"]), (&"ff0a".into(), &"stderr".into()));
    setup.refused("logs one nera --data d", "no_step");

    // Without the log, Windlass shows the output recorded in the results.
    std::fs::remove_dir_all(setup.path().join("d/logs")).expect("logs");
    let logs = setup.see("logs one --data d");
    assert!(
        logs.contains("boom (attempt 2) | attempt 2\n") && logs.contains("hello | hello world\n"),
        "{logs}"
    );

    let events = setup.see("events one --data d");
    assert_eq!(events, setup.see("events one -f --data d"));
    let json = setup.see("events one --json --data d");
    assert_eq!(json.lines().count(), events.lines().count());
}

#[test]
fn runs_are_found_and_compared() {
    let setup = Setup::new("find");
    assert_eq!(setup.call("run tour.yaml --run-id one --data d").status, 1);
    assert_eq!(setup.call("run tour.yaml --run-id two --data d -p who=moon").status, 1);
    let list = |filter: &str| {
        let rows = setup.json(&format!("runs --data d --json {filter}"));
        let ids = rows["items"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| row["run_id"].as_str().expect("an id").to_owned());
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(""), "two one");
    assert_eq!(list("--limit 1"), "two");
    assert_eq!(list("--status failed,success"), "two one");
    assert_eq!(list("--status success"), "");
    assert_eq!(list("--unfinished"), "");
    assert_eq!(list("--search MOON"), "two");
    assert_eq!(list("--workflow tour --dialect swdl --since 1h"), "two one");
    assert_eq!(list("--before 1h"), "");
    assert_eq!(list("--dialect dcc"), "");
    let lines = setup.see("runs --data d");
    assert!(lines.starts_with("RUN ") && lines.contains("in `boom`: exit status 3"), "{lines}");
    assert_eq!(setup.call("runs --data d --since soon").status, 2);
    assert_eq!(setup.call("runs one --status failed --data d").status, 2);

    let diff = setup.json("diff one two --data d --json");
    assert_eq!(diff["inputs"]["who"]["after"], "moon");
    assert_eq!(diff["plan"]["same"], true);
    assert_eq!(diff["steps"]["far"]["status"]["before"], "skipped");
    assert_eq!(diff["steps"]["boom"]["same"], true);
    let changed = WORKFLOW.replace("exit 3", "exit 4");
    std::fs::write(setup.path().join("other.yaml"), changed).expect("a writable folder");
    assert_eq!(setup.call("run other.yaml --run-id three --data d").status, 1);
    let diff = setup.json("diff one three --data d --json");
    assert_eq!(
        diff["plan"]["steps"].as_object().map(|steps| steps.keys().cloned().collect()),
        Some(vec!["boom".to_owned()])
    );
    let page = setup.see("diff one three --data d");
    assert!(page.contains("error: error: exit status 3 -> error: exit status 4"), "{page}");

    let workflow = setup.json("show tour.yaml --data d --json");
    assert_eq!(
        (&workflow["inputs"]["who"]["default"], &workflow["steps"][0]["id"]),
        (&"world".into(), &"hello".into())
    );
    setup.refused("show tour --data d", "ambiguous_workflow");
    std::fs::remove_file(setup.path().join("other.yaml")).expect("a writable folder");
    assert!(setup.see("show tour --data d").contains("A little of everything"));
    setup.refused("show nothing --data d", "no_run");
}

#[test]
fn runs_are_imported_completely_or_not_at_all() {
    let setup = Setup::new("carry");
    assert_eq!(setup.call("run tour.yaml --run-id one --data d").status, 1);
    setup.see("runs export last out --data d");
    setup.refused("runs export one out --data d", "bad_export");
    setup.see("runs import out --data e");
    for look in ["show one", "logs one", "events one", "runs", "show one --json"] {
        assert_eq!(setup.see(&format!("{look} --data e")), setup.see(&format!("{look} --data d")), "{look}");
    }
    setup.refused("runs import out --data e", "run_exists");
    // The failed run can be resumed there.
    assert_eq!(setup.call("resume one --data e").status, 1);
    assert_eq!(setup.see("logs one boom --data e").lines().count(), 4);

    let file = |name: &str| setup.path().join("out/one").join(name);
    for name in ["events.jsonl", "plan.json", "log.jsonl", "definition"] {
        let whole = std::fs::read(file(name)).expect("exported");
        std::fs::write(file(name), [&whole[..], b" "].concat()).expect("a writable folder");
        setup.refused("runs import out --data f", "bad_export");
        std::fs::write(file(name), whole).expect("a writable folder");
    }
    assert_eq!(setup.see("runs --data f"), "");
    assert!(!setup.path().join("f/logs/one.jsonl").exists());
    std::fs::remove_file(file("run.json")).expect("exported");
    setup.refused("runs import out --data f", "bad_export");
}

#[test]
fn runs_are_exported_as_tables() {
    let setup = Setup::new("tables");
    assert_eq!(setup.call("run tour.yaml --run-id one --data d").status, 1);
    assert_eq!(setup.call("run tour.yaml -p who=moon --run-id two --data d").status, 1);
    assert!(setup.see("runs export --sqlite all.db --data d").starts_with("2 runs and "));
    let exported = setup.json("runs export two --sqlite two.db --json --data d");
    assert_eq!((&exported["file"], &exported["workflows"]), (&"two.db".into(), &1.into()));
    setup.refused("runs export two --sqlite two.db --data d", "bad_export");
    setup.refused("runs export nothing --sqlite none.db --data d", "no_run");
    assert!(!setup.path().join("none.db").exists());
    setup.refused("runs export two --data d", "bad_export");

    let database = rusqlite::Connection::open(setup.path().join("all.db")).expect("a database");
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).expect("the tables");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("texts")
    };
    let runs = "SELECT workflow_id || ' ' || root_job_id || ' ' || status || ' ' || (created_at < completed_at)
        || ' ' || json_extract(inputs_json, '$.who') || ' ' || json_extract(step_outputs_json, '$.near.stdout')
        || ' ' || json_valid(spec_json) || ' ' || (current_step_id IS NULL) FROM workflows WHERE workflow_id = 'one'";
    assert_eq!(rows(runs), ["one one failed 1 world near 1 1"]);
    let boom = "SELECT step_id || ' ' || status || ' ' || attempt || ' ' || coalesce(json_extract(result_json, '$.code'), '')
        FROM workflow_steps WHERE workflow_id = 'two' AND step_id IN ('boom', 'far', 'each[0]') ORDER BY rowid";
    let expected = [
        "each[0] running 1 ",
        "far running 1 ",
        "each[0] success 1 ",
        "far success 1 ",
        "boom running 1 ",
        "boom running 2 ",
        "boom failed 2 error",
    ];
    let mut found = rows(boom);
    // The item and the branch run in parallel, so their order varies.
    found[..4].sort_unstable_by_key(|row| (row.contains("success"), row.contains("far")));
    assert_eq!(found, expected);
    let order = "SELECT count(*) || '' FROM workflow_steps a JOIN workflow_steps b
        ON a.workflow_id = b.workflow_id AND a.rowid < b.rowid AND a.updated_at > b.updated_at";
    assert_eq!(rows(order), ["0"]);
}

#[test]
fn completion_offers_runs_and_workflows() {
    let setup = Setup::new("offer");
    assert_eq!(setup.call("run tour.yaml --run-id one --data .windlass").status, 1);
    let offered = |words: &[&str]| {
        let index = (words.len() - 1).to_string();
        let call = windlass_in(setup.path(), &[&["--", "windlass"], words].concat());
        let index = (index.parse::<usize>().expect("a number") + 1).to_string();
        call.env("WINDLASS_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", &index)
            .env("_CLAP_IFS", "\n")
            .see()
            .stdout
    };
    assert!(offered(&["logs", "o"]).lines().any(|line| line.trim() == "one"));
    assert!(offered(&["resume", ""]).lines().any(|line| line.trim() == "last"));
    assert!(offered(&["runs", "--workflow", "t"]).lines().any(|line| line.trim() == "tour"));
    assert!(offered(&["run", "to"]).lines().any(|line| line.trim() == "tour.yaml"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(setup.see(&format!("completions {shell}")).contains("WINDLASS_COMPLETE"));
    }
}
