//! From the start of a one-step run until its end: on an idle engine, and at half of its maximum load.

use crate::limits;
use crate::report::{Row, Target, Unit};
use crate::setting::{Setting, engine, in_flight, journal_bytes, no_inputs, strict};
use crate::stats::{Compared, median, ms, per_second, percentile};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use windlass::{Engine, Plan};

const ROUNDS: usize = 3;
const SAMPLES: usize = 300;
/// Runs that determine the maximum load.
const CAPACITY_RUNS: usize = 1_000;

pub fn measure(setting: &Setting) -> Vec<Row> {
    let bytes = bytes_per_commit(setting);
    let mut rows = Vec::new();
    for (key, load) in [("idle", Load::Idle), ("half", Load::Half)] {
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let before = Limit::now(setting, bytes);
            let mut times = times(setting, SAMPLES, load);
            let limit = before.mean(&Limit::now(setting, bytes));
            p50.push((percentile(&mut times, 50.0), 2.0 * limit.commit_ms + 0.5));
            p99.push((percentile(&mut times, 99.0), 3.0 * limit.two_commits_p99_ms));
        }
        let what = format!("submit to finish of one step, {}", load.words());
        for (percent, times, limit) in
            [("p50", p50, "2 single commits + 0.5 ms"), ("p99", p99, "3 × p99 of two commits")]
        {
            let row = Row::of(
                format!("latency.{key}.{percent}"),
                format!("{what}, {percent}"),
                compared(&times),
                Unit::Milliseconds,
            );
            rows.push(row.with(limit, Target::AtMost(1.0)));
        }
    }
    rows
}

#[derive(Clone, Copy, Debug)]
pub enum Load {
    Idle,
    Half,
}

impl Load {
    fn words(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Half => "at half load",
        }
    }
}

/// The commits in such a run that a caller waits for.
struct Limit {
    commit_ms: f64,
    two_commits_p99_ms: f64,
}

impl Limit {
    fn now(setting: &Setting, bytes: usize) -> Self {
        let commits: Vec<f64> = limits::commits(setting, 2 * SAMPLES, bytes).into_iter().map(ms).collect();
        let mut pairs: Vec<f64> = commits.chunks_exact(2).map(|pair| pair.iter().sum()).collect();
        Self { two_commits_p99_ms: percentile(&mut pairs, 99.0), commit_ms: median(commits) }
    }

    fn mean(&self, other: &Self) -> Self {
        Self {
            commit_ms: f64::midpoint(self.commit_ms, other.commit_ms),
            two_commits_p99_ms: f64::midpoint(self.two_commits_p99_ms, other.two_commits_p99_ms),
        }
    }
}

fn compared(rounds: &[(f64, f64)]) -> Compared {
    Compared {
        figure: median(rounds.iter().map(|round| round.0).collect()),
        limit: median(rounds.iter().map(|round| round.1).collect()),
        ratio: median(rounds.iter().map(|(figure, limit)| figure / limit).collect()),
    }
}

/// How long each of this many runs took, in milliseconds.
pub fn times(setting: &Setting, samples: usize, load: Load) -> Vec<f64> {
    let folder = setting.place();
    let times = setting.runtime.block_on(async {
        let (engine, plan) = (Arc::new(engine(&folder)), Arc::new(strict(1)));
        one(&engine, &plan).await;
        let stop = Arc::new(AtomicBool::new(false));
        let beside = match load {
            Load::Idle => None,
            Load::Half => {
                let rate = capacity(&engine, &plan).await / 2.0;
                Some(tokio::spawn(keep_busy(engine.clone(), plan.clone(), rate, stop.clone())))
            }
        };
        let mut times = Vec::with_capacity(samples);
        for _ in 0..samples {
            let started = Instant::now();
            one(&engine, &plan).await;
            times.push(ms(started.elapsed()));
        }
        stop.store(true, Ordering::Relaxed);
        if let Some(beside) = beside {
            beside.await.expect("the load");
        }
        times
    });
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    times
}

async fn one(engine: &Engine, plan: &Plan) {
    engine.run(plan, no_inputs()).await.expect("a start").outcome().await.expect("an end");
}

/// One-step runs per second at full load.
async fn capacity(engine: &Arc<Engine>, plan: &Arc<Plan>) -> f64 {
    let (engine, plan) = (engine.clone(), plan.clone());
    let started = Instant::now();
    in_flight(CAPACITY_RUNS, limits::CALLERS, move || {
        let (engine, plan) = (engine.clone(), plan.clone());
        async move { one(&engine, &plan).await }
    })
    .await;
    per_second(CAPACITY_RUNS, started.elapsed())
}

/// Starts runs at this rate, whether or not earlier ones have ended.
async fn keep_busy(engine: Arc<Engine>, plan: Arc<Plan>, rate: f64, stop: Arc<AtomicBool>) {
    let (begun, mut started) = (Instant::now(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * rate) as usize;
        while started.len() < due {
            let (engine, plan) = (engine.clone(), plan.clone());
            started.push(tokio::spawn(async move { one(&engine, &plan).await }));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for run in started {
        run.await.expect("a run");
    }
}

/// The size of each of the two commits of such a run.
fn bytes_per_commit(setting: &Setting) -> usize {
    let folder = setting.place();
    setting.runtime.block_on(async { one(&engine(&folder), &strict(1)).await });
    journal_bytes(&folder) / 2
}
