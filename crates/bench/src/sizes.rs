//! Steps with large outputs, and the disk space of a step with almost none.

use crate::limits;
use crate::many;
use crate::report::{Row, Unit};
use crate::sequential;
use crate::setting::{Setting, no_inputs, strict};
use crate::stats::{interleaved, per_second};
use std::time::Instant;
use windlass::RunStatus;
use windlass::{BoxFuture, Context, Engine, Executor, Job, Outcome, Returned, Value};

const ROUNDS: usize = 3;
const AT_ONCE: usize = 64;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    for (bytes, shown, steps) in [(1_000, "1 KB", 200), (100_000, "100 KB", 50), (10_000_000, "10 MB", 4)] {
        let limit = || limits::single(setting, steps, bytes);
        let compared = interleaved(ROUNDS, limit, || steps_per_second(setting, bytes, steps));
        let row = Row::of(
            format!("sizes.{bytes}"),
            format!("steps with outputs of {shown}"),
            compared,
            Unit::PerSecond,
        );
        rows.push(row.beside("two threads, one commit of that size each"));
    }
    let net = sequential::bytes_per_step(setting) as f64;
    rows.push(Row::under("sizes.net", "records of a trivial step, net", net, Unit::Bytes, 300.0));
    let (few, many) = (1_000, 3_000);
    let more = many::steps_per_second(setting, many, AT_ONCE).folder_bytes
        - many::steps_per_second(setting, few, AT_ONCE).folder_bytes;
    let whole = more / ((many - few) * many::STEPS) as f64;
    rows.push(Row::plain("sizes.folder", "the whole data folder, per step of runs of 5", whole, Unit::Bytes));
    rows
}

/// Returns this many bytes, which differ from step to step, because equal values are stored once.
struct Fat(usize);

impl Executor for Fat {
    fn start(&self, job: Job, _: Context) -> BoxFuture<'_, Returned> {
        let text = format!("{}{}", job.step, "x".repeat(self.0));
        Box::pin(std::future::ready(Outcome::Done(Value::map([("text", Value::text(text))])).into()))
    }
}

fn steps_per_second(setting: &Setting, bytes: usize, steps: usize) -> f64 {
    let (folder, plan) = (setting.place(), strict(steps));
    let rate = setting.runtime.block_on(async {
        let engine = Engine::open(&folder).expect("a data folder").with_executor(Fat(bytes));
        let started = Instant::now();
        let run = engine.run(&plan, no_inputs()).await.expect("a start");
        assert_eq!(run.outcome().await.expect("an end"), RunStatus::Success);
        per_second(steps, started.elapsed())
    });
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    rate
}
