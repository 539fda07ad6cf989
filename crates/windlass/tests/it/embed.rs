//! Runs the embedding example, and configures tasks with a file.

use std::path::Path;
use windlass::RunStatus;
use windlass::{Engine, Value, Workflow};

#[path = "../../examples/embed.rs"]
mod example;

#[test]
fn the_example_runs() {
    example::main().expect("it ends well");
}

#[tokio::test]
async fn a_config_names_commands_for_tasks() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_config_names_commands");
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let file = folder.join("windlass.toml");
    std::fs::write(&file, "[tasks.greet]\ncommand = ['echo', '\"hello\"']\n").expect("a folder of our own");
    let text = br#"{"name": "w", "version": "1", "steps": [{"id": "say", "task": "greet"}]}"#;
    let workflow = Workflow::read("w.json", text.to_vec());
    let engine = Engine::in_memory().with_config(&file).expect("a good file");
    let run = engine.run(workflow.plan().expect("valid"), Value::Null).await.expect("it starts");
    let id = run.id.clone();
    assert_eq!(run.outcome().await.expect("it ends"), RunStatus::Success);
    assert_eq!(engine.result(&id).expect("a run").outputs, "hello");

    std::fs::write(&file, "task = 1").expect("a folder of our own");
    let error = Engine::in_memory().with_config(&file).expect_err("a wrong file");
    assert_eq!(error.code(), "bad_config");
}
