//! The plain figures as one line of JSON, for comparing several engines. Sizes come from the environment.

use crate::latency::{self, Load};
use crate::limits::Limits;
use crate::setting::{Setting, strict};
use crate::stats::{median, ms, percentile};
use crate::{fan_out, many, memory, recovery, sequential, start};
use serde_json::{Value, json};

/// How much of each is measured.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    seq: usize,
    runs: usize,
    fan: usize,
    lat: usize,
    mem_runs: usize,
}

impl Sizes {
    pub fn from_environment() -> Result<Self, String> {
        Ok(Self {
            seq: size("SEQ", 1_000)?,
            runs: size("RUNS", 2_000)?,
            fan: size("FAN", 10_000)?,
            lat: size("LAT", 500)?,
            mem_runs: size("MEMRUNS", 10_000)?,
        })
    }
}

const IN_FLIGHT: usize = 64;
const STARTS: usize = 3;

pub fn line(setting: &Setting, sizes: Sizes) -> Value {
    let Sizes { seq, runs, fan, lat, mem_runs } = sizes;
    let before = Limits::now(setting);
    let seq_steps_per_s = sequential::steps_per_second(setting, &strict(seq), seq);
    let steps_per_s = many::steps_per_second(setting, runs, IN_FLIGHT.min(runs)).rate;
    let fanout_items_per_s = fan_out::items_per_second(setting, fan).rate;
    let mut times = latency::times(setting, lat, Load::Idle);
    let mut starts = start::starts(setting);
    let start_ms = median((0..STARTS).map(|_| starts()).collect());
    let [rss_idle_mb, rss_after_mb] = memory::idle_and_after(setting, mem_runs);
    let crash = recovery::crash(setting, seq);
    let after = Limits::now(setting);
    let mean = |of: fn(&Limits) -> f64| f64::midpoint(of(&before), of(&after));
    json!({
        "seq_steps_per_s": seq_steps_per_s,
        "runs_per_s": steps_per_s / many::STEPS as f64,
        "fanout_items_per_s": fanout_items_per_s,
        "lat_p50_ms": percentile(&mut times, 50.0),
        "lat_p99_ms": percentile(&mut times, 99.0),
        "start_ms": start_ms,
        "rss_idle_mb": rss_idle_mb,
        "rss_after_mb": rss_after_mb,
        "crash": {
            "resumed": crash.resumed,
            "re_executed": crash.re_executed,
            "restart_to_next_step_ms": ms(crash.restart_to_next_step),
        },
        "limits": {
            "fdatasync_per_s": mean(|limits| limits.flushes),
            "commits_per_s": mean(|limits| limits.single),
            "group_commit_records_per_s": mean(|limits| limits.grouped),
        },
    })
}

fn size(name: &str, default: usize) -> Result<usize, String> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else { return Ok(default) };
    let number = text.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("{name}: expected a number above zero instead of `{}`", text.display()))
}
