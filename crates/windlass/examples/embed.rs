//! Runs a workflow inside another program, which executes the tasks with a function of its own.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what happens")]

use windlass::{BoxFuture, Context, Engine, Executor, Job, Outcome, Returned, Update, Value, Work, Workflow};

const FILE: &str = r#"
workflow: {id: greeting, name: Greeting}
config: {parameters: {name: {type: string, default: world}}}
stages:
  - {id: shout, type: task, task: upper-case, input: "${{ parameters.name }}", outputs: {text: {type: string}}}
  - {id: greet, type: assign, depends_on: [shout], set: {line: "Hello, ${{ stages.shout.outputs.text }}!"}}
outputs: {line: {type: string, source: "${{ stages.greet.outputs.line }}"}}
"#;

struct UpperCase;

impl Executor for UpperCase {
    fn start(&self, job: Job, _: Context) -> BoxFuture<'_, Returned> {
        let text = match &job.work.work {
            Work::Task { input, .. } => input.as_str().unwrap_or_default().to_uppercase(),
            _ => String::new(),
        };
        Box::pin(async move { Outcome::Done(Value::map([("text", Value::text(text))])).into() })
    }
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workflow = Workflow::read("greeting.yaml", FILE.as_bytes().to_vec());
    let folder = std::env::temp_dir().join(format!("windlass-embed-{}", std::process::id()));
    let engine = Engine::open(&folder)?.with_executor(UpperCase);
    let mut run = engine.run(workflow.plan()?, workflow.inputs([])?).await?;
    let id = run.id.clone();
    while let Some(update) = run.events.recv().await {
        if let Update::Event { seq, event } = update {
            eprintln!("{seq} {:?}", event.what);
        }
    }
    let status = run.outcome().await?;
    let result = engine.result(&id)?;
    println!("{status:?}: {}", result.outputs["line"]);
    Ok(std::fs::remove_dir_all(folder)?)
}
