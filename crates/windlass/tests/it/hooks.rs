//! Hooks: their commands run, and do not affect the run.

use std::path::Path;
use windlass::RunStatus;
use windlass::{Engine, Environment, Script, Update, Value, Workflow};

const WORKFLOW: &str = "
workflow: { id: wf, name: Wf }
hooks:
  on_start: { run: 'echo ${{ run.id }} >> begun' }
  on_complete: { run: 'echo done >> ended', notify: ann }
  on_failure: { run: 'echo failed >> ended; exit 3' }
error_policy: { default_retry: { max_attempts: 1 } }
stages: [{ id: a, type: shell, run: 'test ! -e broken' }]
";

/// The status of a run, and its notices.
async fn executed(engine: Engine, folder: &Path) -> (RunStatus, Vec<String>) {
    let environment = Environment { variables: std::env::vars_os().collect(), directory: folder.to_owned() };
    let engine = engine.with_environment(environment);
    let workflow = Workflow::read("wf.yaml", WORKFLOW.into());
    let mut run = engine.run(workflow.plan().expect("valid"), Value::map::<&str>([])).await.expect("a start");
    let mut notices = Vec::new();
    while let Some(update) = run.events.recv().await {
        if let Update::Notice(text) = update {
            notices.push(text);
        }
    }
    (run.outcome().await.expect("no trouble"), notices)
}

fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn commands_are_run_at_the_beginning_and_at_the_end() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hooks");
    // Left by an earlier test run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");

    let (status, notices) = executed(Engine::in_memory(), &folder).await;
    assert_eq!(status, RunStatus::Success);
    assert_eq!(
        notices,
        ["the hook `on_complete` failed: notify is not carried out yet; the run stays as it is"]
    );
    assert_eq!((lines(&folder, "begun").len(), lines(&folder, "ended")), (1, vec!["done".to_owned()]));

    std::fs::write(folder.join("broken"), "").expect("a folder of our own");
    let (status, notices) = executed(Engine::in_memory(), &folder).await;
    assert_eq!(status, RunStatus::Failed);
    assert_eq!(notices, ["the hook `on_failure` failed: exit status 3; the run stays as it is"]);
    assert_eq!(lines(&folder, "ended"), ["done", "failed"]);

    let script = Script::parse(&Value::from(
        &serde_json::json!({"steps": {"on_start": [{"output": 1}], "on_failure": [{"output": 1}]}}),
    ));
    let (status, notices) =
        executed(Engine::in_memory().with_script(script.expect("a script")), &folder).await;
    assert_eq!((status, notices.len()), (RunStatus::Failed, 0));
    assert_eq!((lines(&folder, "begun").len(), lines(&folder, "ended").len()), (2, 2));
}
