//! A large value is stored once, even if several steps pass it on, and is complete when the folder is opened again.

use std::path::{Path, PathBuf};
use windlass::{BoxFuture, Context, Engine, Executor, Job, Outcome, Returned, Value, Workflow};

const FILE: &str = r#"
workflow: {id: large, name: Large}
stages:
  - {id: make, type: task, task: make, outputs: {text: {type: string}}}
  - {id: pass, type: assign, depends_on: [make], set: {text: "${{ stages.make.outputs.text }}"}}
outputs: {text: {type: string, source: "${{ stages.pass.outputs.text }}"}}
"#;

struct Make;

impl Executor for Make {
    fn start(&self, _: Job, _: Context) -> BoxFuture<'_, Returned> {
        Box::pin(async { Outcome::Done(Value::map([("text", Value::text("x".repeat(300_000)))])).into() })
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn a_large_value_is_written_once() {
    let folder = std::env::temp_dir().join(format!("windlass-large-{}", std::process::id()));
    let workflow = Workflow::read("large.yaml", FILE.as_bytes().to_vec());
    let engine = Engine::open(&folder).expect("a folder").with_executor(Make);
    let run = engine.run(workflow.plan().expect("valid"), Value::map::<&str>([])).await.expect("a start");
    let id = run.id.clone();
    run.outcome().await.expect("an end");
    drop(engine);
    assert_eq!(files(&folder.join("blobs")).len(), 1, "one value, one file");
    let engine = Engine::open(&folder).expect("the folder again");
    let result = engine.result(&id).expect("a run");
    for text in [&result.outputs["text"], &result.steps["make"].output["text"]] {
        assert_eq!(text.as_str().map(str::len), Some(300_000));
    }
    drop(engine);
    std::fs::remove_dir_all(folder).expect("ours");
}

const ITEMS: &str = r#"
workflow: {id: items, name: Items}
config: {parameters: {items: {type: array<integer>, required: true}}}
stages:
  - id: each
    type: fan_out
    fan_out: {source: "${{ parameters.items }}", stage_template: {type: assign, set: {n: "${{ item }}"}}}
"#;

#[tokio::test]
async fn a_view_keeps_finished_items() {
    let workflow = Workflow::read("items.yaml", ITEMS.as_bytes().to_vec());
    let engine = Engine::in_memory();
    let inputs = Value::map([("items", Value::list((0..3_000).map(Value::Int)))]);
    let run = engine.run(workflow.plan().expect("valid"), inputs).await.expect("a start");
    let id = run.id.clone();
    run.outcome().await.expect("an end");
    let whole = engine.view(&id).expect("the run");
    assert_eq!(whole.steps().len(), 1 + 2 * 3_000, "the step, its items, and a step in each");
    let result = engine.result(&id).expect("a run");
    let results = &result.steps["each"].output;
    assert_eq!(results.as_array().map(Vec::len), Some(3_000));
    assert_eq!(results[2_999]["n"], 2_999);
}
