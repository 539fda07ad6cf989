//! Looking at runs: trees, logs, events, lists, comparison, and runs carried to another folder.

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

struct World(Scratch);

impl World {
    fn new(test: &str) -> Self {
        let scratch = Scratch::new(test);
        std::fs::write(scratch.path().join("tour.yaml"), WORKFLOW).expect("a folder of our own");
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

    /// What a command prints that is done.
    fn see(&self, line: &str) -> String {
        let seen = self.call(line);
        assert_eq!(seen.status, 0, "{seen}");
        seen.stdout
    }

    /// The code that a command is refused with.
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
fn a_run_is_shown_at_any_moment_and_its_output_is_kept() {
    let world = World::new("look");
    assert_eq!(world.call("run tour.yaml --run-id one --data d").status, 1);
    let page = world.see("show one --data d");
    let tree = page.split("\n\n").nth(1).expect("a tree");
    let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let tree: Vec<String> = tree.lines().map(words).collect();
    assert_eq!(
        tree,
        [
            "+ hello success",
            "+ each success",
            "+ each[0] success",
            "+ each[1] success",
            "+ pick success",
            "+ near success",
            "- far skipped",
            "x boom failed",
            "! never cancelled"
        ],
        "{page}"
    );
    assert!(page.contains("2 attempts (waited 0.0s)") && page.contains("because `boom` failed"), "{page}");

    let early = world.see("show one --data d --at 1");
    assert!(early.contains("running") && early.contains(". boom"), "{early}");
    assert_eq!(world.json("show one --data d --at 1 --json")["at_event"], 1);
    world.refused("show one --data d --at 0", "no_event");
    world.refused("show one --data d --at 999", "no_event");

    let logs = world.see("logs one --data d");
    let (failing, others) = logs.split_once("--- the other steps\n").expect("two parts");
    assert_eq!(
        failing,
        "--- boom failed (error): exit status 3\nboom | attempt 1\nboom (attempt 2) | attempt 2\n"
    );
    let hello = "hello | hello world\nhello | \u{fffd}[31mred\nhello | \u{fffd}\nhello | aside\n";
    assert!(others.starts_with(hello) && others.contains("each[1] | item\n"), "{others}");
    assert_eq!(world.see("logs one near --data d"), "near | near\n");
    assert_eq!(world.see("logs one each --data d").lines().count(), 2);
    assert_eq!(world.see("runs one --logs --data d"), logs);
    let lines: Vec<serde_json::Value> = world
        .see("logs one hello --json --data d")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((&lines[2]["hex"], &lines[3]["stream"]), (&"ff0a".into(), &"stderr".into()));
    world.refused("logs one nera --data d", "no_step");

    // Without the log there is what the outcomes have.
    std::fs::remove_dir_all(world.path().join("d/logs")).expect("logs");
    let logs = world.see("logs one --data d");
    assert!(
        logs.contains("boom (attempt 2) | attempt 2\n") && logs.contains("hello | hello world\n"),
        "{logs}"
    );

    let events = world.see("events one --data d");
    assert_eq!(events, world.see("events one -f --data d"));
    let json = world.see("events one --json --data d");
    assert_eq!(json.lines().count(), events.lines().count());
}

#[test]
fn runs_are_found_and_compared() {
    let world = World::new("find");
    assert_eq!(world.call("run tour.yaml --run-id one --data d").status, 1);
    assert_eq!(world.call("run tour.yaml --run-id two --data d -p who=moon").status, 1);
    let list = |filter: &str| {
        let rows = world.json(&format!("runs --data d --json {filter}"));
        let ids = rows
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
    let lines = world.see("runs --data d");
    assert!(lines.contains("boom: error: exit status 3"), "{lines}");
    assert_eq!(world.call("runs --data d --since soon").status, 2);
    assert_eq!(world.call("runs one --status failed --data d").status, 2);

    let diff = world.json("diff one two --data d --json");
    assert_eq!(diff["inputs"]["who"]["after"], "moon");
    assert_eq!(diff["plan"]["same"], true);
    assert_eq!(diff["steps"]["far"]["status"]["before"], "skipped");
    assert_eq!(diff["steps"]["boom"]["same"], true);
    let changed = WORKFLOW.replace("exit 3", "exit 4");
    std::fs::write(world.path().join("other.yaml"), changed).expect("a folder of our own");
    assert_eq!(world.call("run other.yaml --run-id three --data d").status, 1);
    let diff = world.json("diff one three --data d --json");
    assert_eq!(
        diff["plan"]["steps"].as_object().map(|steps| steps.keys().cloned().collect()),
        Some(vec!["boom".to_owned()])
    );
    let page = world.see("diff one three --data d");
    assert!(page.contains("error: error: exit status 3 -> error: exit status 4"), "{page}");

    let workflow = world.json("show tour.yaml --data d --json");
    assert_eq!(
        (&workflow["inputs"]["who"]["default"], &workflow["steps"][0]["id"]),
        (&"world".into(), &"hello".into())
    );
    assert!(world.see("show tour --data d").contains("A little of everything"));
    world.refused("show nothing --data d", "no_run");
}

#[test]
fn runs_are_carried_to_another_folder_whole_or_not_at_all() {
    let world = World::new("carry");
    assert_eq!(world.call("run tour.yaml --run-id one --data d").status, 1);
    world.see("runs export last out --data d");
    world.refused("runs export one out --data d", "bad_export");
    world.see("runs import out --data e");
    for look in ["show one", "logs one", "events one", "runs", "show one --json"] {
        assert_eq!(world.see(&format!("{look} --data e")), world.see(&format!("{look} --data d")), "{look}");
    }
    world.refused("runs import out --data e", "run_exists");
    // What failed can be gone on with there.
    assert_eq!(world.call("resume one --data e").status, 1);
    assert_eq!(world.see("logs one boom --data e").lines().count(), 4);

    let file = |name: &str| world.path().join("out/one").join(name);
    for name in ["events.jsonl", "plan.json", "log.jsonl", "definition"] {
        let whole = std::fs::read(file(name)).expect("exported");
        std::fs::write(file(name), [&whole[..], b" "].concat()).expect("a folder of our own");
        world.refused("runs import out --data f", "bad_export");
        std::fs::write(file(name), whole).expect("a folder of our own");
    }
    assert_eq!(world.see("runs --data f"), "");
    assert!(!world.path().join("f/logs/one.jsonl").exists());
    std::fs::remove_file(file("run.json")).expect("exported");
    world.refused("runs import out --data f", "bad_export");
}

#[test]
fn runs_are_exported_as_tables() {
    let world = World::new("tables");
    assert_eq!(world.call("run tour.yaml --run-id one --data d").status, 1);
    assert_eq!(world.call("run tour.yaml -p who=moon --run-id two --data d").status, 1);
    assert!(world.see("runs export --sqlite all.db --data d").starts_with("2 runs and "));
    let told = world.json("runs export two --sqlite two.db --json --data d");
    assert_eq!((&told["file"], &told["workflows"]), (&"two.db".into(), &1.into()));
    world.refused("runs export two --sqlite two.db --data d", "bad_export");
    world.refused("runs export nothing --sqlite none.db --data d", "no_run");
    assert!(!world.path().join("none.db").exists());
    world.refused("runs export two --data d", "bad_export");

    let database = rusqlite::Connection::open(world.path().join("all.db")).expect("a database");
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).expect("the tables");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("texts")
    };
    let runs = "SELECT workflow_id || ' ' || root_job_id || ' ' || status || ' ' || (created_at < completed_at)
        || ' ' || json_extract(inputs_json, '$.who') || ' ' || json_extract(step_outputs_json, '$.near.stdout')
        || ' ' || json_valid(spec_json) || ' ' || (current_step_id IS NULL) FROM workflows WHERE workflow_id = 'one'";
    assert_eq!(rows(runs), ["one one failed 1 world near\n 1 1"]);
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
    let mut told = rows(boom);
    // The item and the branch run side by side.
    told[..4].sort_unstable_by_key(|row| (row.contains("success"), row.contains("far")));
    assert_eq!(told, expected);
    let order = "SELECT count(*) || '' FROM workflow_steps a JOIN workflow_steps b
        ON a.workflow_id = b.workflow_id AND a.rowid < b.rowid AND a.updated_at > b.updated_at";
    assert_eq!(rows(order), ["0"]);
}

#[test]
fn a_shell_is_offered_runs_and_workflows() {
    let world = World::new("offer");
    assert_eq!(world.call("run tour.yaml --run-id one --data .windlass").status, 1);
    let offered = |words: &[&str]| {
        let index = (words.len() - 1).to_string();
        let call = windlass_in(world.path(), &[&["--", "windlass"], words].concat());
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
        assert!(world.see(&format!("completions {shell}")).contains("WINDLASS_COMPLETE"));
    }
}
