//! How fast files are read and planned: `make bench-parts`.
//!
//! Two sizes of one realistic workflow are loaded, and the same text is deserialised without looking at its meaning,
//! in turns, so that a busy machine slows all of them alike. What counts are the two ratios.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};
use windlass_dialects::{Options, Text, load};

const ROUNDS: usize = 9;
const SIZES: [usize; 2] = [5_000, 10_000];
/// Twice the stages may take little more than twice the time.
const GROWTH_MAX: f64 = 2.3;
/// Meaning may cost a few times what mere reading costs.
const OVER_PLAIN_MAX: f64 = 6.0;

fn main() {
    let texts = SIZES.map(workflow);
    let mut loads = [const { Vec::new() }; SIZES.len()];
    let mut plains = [const { Vec::new() }; SIZES.len()];
    for _ in 0..ROUNDS {
        for (place, text) in texts.iter().enumerate() {
            loads[place].push(timed(|| load_valid(text)));
            plains[place].push(timed(|| deserialise(text)));
        }
    }
    let (loads, plains) = (loads.map(median), plains.map(median));
    println!("{:>8}  {:>8}  {:>10}  {:>10}  {:>10}", "stages", "MiB", "load", "plain", "load/plain");
    for (place, size) in SIZES.iter().enumerate() {
        let mebibytes = texts[place].len() as f64 / f64::from(1 << 20);
        let ratio = ratio(loads[place], plains[place]);
        println!(
            "{size:>8}  {mebibytes:>8.2}  {:>10.1?}  {:>10.1?}  {ratio:>10.2}",
            loads[place], plains[place]
        );
    }
    let growth = ratio(loads[1], loads[0]);
    let over_plain = ratio(loads[1], plains[1]);
    println!("\ngrowth 10k/5k: {growth:.2} (target <= {GROWTH_MAX}) {}", verdict(growth <= GROWTH_MAX));
    println!(
        "load/plain:    {over_plain:.2} (target <= {OVER_PLAIN_MAX}) {}",
        verdict(over_plain <= OVER_PLAIN_MAX)
    );
    println!("median of {ROUNDS} rounds each");
}

/// Agents that read two earlier stages each, a condition on every third, a retry policy on every fifth.
fn workflow(stages: usize) -> String {
    let mut text =
        String::from("workflow: {id: bench, name: Bench, version: \"1.0.0\"}\nconfig:\n  parameters:\n");
    text.push_str("    topic: {type: string, default: speed}\n  timeout: 6h\nstages:\n");
    for number in 0..stages {
        stage(number, &mut text).expect("writing to a text cannot fail");
    }
    text
}

fn stage(number: usize, out: &mut String) -> std::fmt::Result {
    writeln!(out, "  - id: stage-{number}\n    name: \"Stage number {number}\"")?;
    let earlier: Vec<usize> = [number.checked_sub(1), number.checked_sub(17)].into_iter().flatten().collect();
    let needs: Vec<String> = earlier.iter().map(|need| format!("stage-{need}")).collect();
    writeln!(out, "    depends_on: [{}]", needs.join(", "))?;
    if let Some(before) = number.checked_sub(1).filter(|_| number.is_multiple_of(3)) {
        writeln!(
            out,
            "    condition: \"${{{{ stages.stage-{before}.outputs.score > 3 && parameters.topic != 'none' }}}}\""
        )?;
    }
    writeln!(
        out,
        "    roles:\n      primary:\n        artifact: \"agent:worker-{}\"\n        model: opus",
        number % 7
    )?;
    writeln!(
        out,
        "        instructions: >\n          Read what the stages before found out about ${{{{ parameters.topic }}}}"
    )?;
    writeln!(
        out,
        "          and write down what follows from it.\n      tools: [\"skill:search\", \"skill:notes\"]"
    )?;
    writeln!(out, "    inputs:\n      topic: {{type: string, source: \"${{{{ parameters.topic }}}}\"}}")?;
    for (name, need) in ["near", "far"].into_iter().zip(&earlier) {
        writeln!(
            out,
            "      {name}: {{type: string, source: \"${{{{ stages.stage-{need}.outputs.summary }}}}\"}}"
        )?;
    }
    writeln!(
        out,
        "    outputs:\n      summary: {{type: string, required: true}}\n      score: {{type: integer, required: false, default: 0}}"
    )?;
    if number.is_multiple_of(5) {
        writeln!(
            out,
            "    error_policy:\n      retry: {{max_attempts: 3, initial_interval: 10s}}\n      timeout: 20m"
        )?;
    }
    Ok(())
}

fn load_valid(text: &str) {
    let loaded =
        load(Text { name: "bench.yaml".to_owned(), bytes: text.as_bytes().to_vec() }, Options::default());
    assert!(loaded.is_valid(), "the generated workflow is valid: {:?}", loaded.diagnostics.first());
    black_box(loaded);
}

fn deserialise(text: &str) {
    // Its limits would refuse the larger file; ours allow it.
    let options = serde_saphyr::options! { budget: None };
    let value: serde_json::Value =
        serde_saphyr::from_str_with_options(text, options).expect("the text is YAML");
    black_box(value);
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn verdict(holds: bool) -> &'static str {
    if holds { "ok" } else { "MISSED" }
}
