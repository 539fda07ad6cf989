//! Whether a step costs more after many others in its run. Flushes cost the same everywhere and would only hide it,
//! so this part is measured without them: a cost that is flat here is flat with them.

use crate::report::{Row, Target, Unit};
use crate::setting::{Setting, beginning, no_inputs, strict};
use crate::stats::{Compared, median};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use windlass::{BoxFuture, Context, DIALECTS, Environment, Executor, Host, Job, Outcome, Returned, Value};
use windlass_runtime::{Durability, Engine};

const STEPS: usize = 100_000;
/// The costs of this many steps are averaged.
const WINDOW: usize = 10_000;
/// This many windows at the beginning are compared with as many at the end.
const COMPARED: usize = 3;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let costs = costs(setting);
    let (first, last) = (&costs[..COMPARED], &costs[costs.len() - COMPARED..]);
    let (limit, figure) = (median(first.to_vec()), median(last.to_vec()));
    let what = "cost of the last 30,000 of 100,000 steps, without flushes";
    let compared = Compared { figure, limit, ratio: figure / limit };
    vec![
        Row::of("flatness", what, compared, Unit::Microseconds)
            .with("cost of the first 30,000", Target::AtMost(1.1)),
    ]
}

/// Microseconds per step, window by window.
fn costs(setting: &Setting) -> Vec<f64> {
    let instants = Arc::new(Mutex::new(Vec::with_capacity(STEPS)));
    let (folder, plan) = (setting.place(), strict(STEPS));
    setting.runtime.block_on(async {
        let engine = Engine::open(&folder, Durability::Process, DIALECTS).expect("a data folder");
        let host = Host::new(Environment::default()).with_others(Notes(instants.clone()));
        let handle = engine.start(&plan, beginning(&host, no_inputs())).await.expect("a start");
        handle.outcome().await.expect("an end");
    });
    let instants = instants.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(instants.len(), STEPS, "every step was done once");
    let cost = |window: &[Instant]| (window[window.len() - 1] - window[0]).as_secs_f64() * 1e6;
    instants.chunks(WINDOW).map(|window| cost(window) / (window.len() - 1) as f64).collect()
}

/// Records when each step is done.
struct Notes(Arc<Mutex<Vec<Instant>>>);

impl Executor for Notes {
    fn start(&self, _: Job, _: Context) -> BoxFuture<'_, Returned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        Box::pin(std::future::ready(Outcome::Done(Value::Null).into()))
    }
}
