//! Runs from file to result inside this process, with a worker that records its jobs.

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass::RunStatus;
use windlass::{
    BoxFuture, Clock, Context, Engine, Executor, Failure, Job, Outcome, Patience, Returned, RunId, Value,
    Work, Workflow,
};

/// The folder of a dialect's cases.
pub fn cases(dialect: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures").join(dialect).join("cases")
}

pub fn done(json: &Json) -> Outcome {
    Outcome::Done(Value::from(json))
}

pub fn failed(class: &str, message: &str) -> Outcome {
    Outcome::Failed(Failure::new(class, message))
}

/// One job as the worker sees it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub step: String,
    pub input: Json,
    job: Job,
}

/// Answers a job, given the job and its number among the jobs of the same task or tool, from 0.
pub type Answer = dyn Fn(&Seen, usize) -> Outcome + Send + Sync;

/// Does all work at once, and records its jobs.
#[derive(Clone)]
pub struct Worker {
    answer: Arc<Answer>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Worker {
    pub fn new(answer: impl Fn(&Seen, usize) -> Outcome + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), seen: Arc::default() }
    }

    pub fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for Worker {
    fn start(&self, job: Job, _: Context) -> BoxFuture<'_, Returned> {
        let seen = Seen { step: job.step.to_string(), input: given(&job.work.work), job };
        let count = {
            let mut all = self.seen();
            let name = |seen: &Seen| seen.job.work.work.name().map(str::to_owned);
            let before = all.iter().filter(|other| name(other) == name(&seen)).count();
            all.push(seen.clone());
            before
        };
        Box::pin(async move { (self.answer)(&seen, count).into() })
    }
}

fn given(work: &Work) -> Json {
    let input = match work {
        Work::Task { input, .. } | Work::Call { input, .. } => input,
        Work::Tool { args, .. } => &args.0,
        other => panic!("{other:?}"),
    };
    input.to_json().expect("no secret")
}

/// A run, executed until it ends or waits for people.
pub struct Played {
    pub engine: Engine,
    pub id: RunId,
    pub status: RunStatus,
    pub result: Json,
}

impl Played {
    pub fn step(&self, id: &str) -> &Json {
        let step = &self.result["steps"][id];
        assert!(step.is_object(), "there is no `{id}` in {:#}", self.result);
        step
    }

    pub fn check(&self, status: &str, steps: &Json) {
        assert_eq!(self.result["dialect_status"], status, "{:#}", self.result);
        for (id, expected) in steps.as_object().expect("steps") {
            assert_eq!(self.step(id)["dialect_status"], *expected, "{id} of {:#}", self.result);
        }
    }
}

/// Executes a workflow with a clock that jumps.
pub async fn play(engine: Engine, workflow: &Workflow, inputs: &Json) -> Played {
    let plan = workflow.plan().expect("a valid case");
    let run = engine.run_with(plan, Value::from(inputs), Clock::starting_now(), Patience::Work).await;
    let run = run.unwrap_or_else(|error| panic!("{}: {error}", plan.header.id));
    let id = run.id.clone();
    let status = run.outcome().await.expect("no trouble");
    let result = serde_json::to_value(engine.result(&id).expect("a run")).expect("JSON");
    Played { engine, id, status, result }
}
