//! The ratios by commit: `bench/history.jsonl`, one line for each commit and machine.

use crate::report::{Row, Target, ratio};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

pub const FILE: &str = "bench/history.jsonl";
/// Larger changes are shown.
const DROP: f64 = 0.15;

/// Compares the rows with the last line of the same machine, adds theirs, and reports what got worse.
pub fn keep(rows: &[Row]) -> Result<String, String> {
    let (commit, machine) = (commit()?, machine());
    let file = Path::new(FILE);
    let known = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{FILE}: {error}")),
    };
    let lines: Vec<Value> = known
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{FILE}: {error}: {line}")))
        .collect::<Result<_, _>>()?;
    let others = lines.into_iter().filter(|line| line["commit"] != commit || line["machine"] != machine);
    let mut lines: Vec<Value> = others.collect();
    let before = lines.iter().rev().find(|line| line["machine"] == machine.as_str());
    let said = match before {
        Some(before) => drops(rows, before),
        None => format!("the first ratios of this machine: {machine}\n"),
    };
    lines.push(json!({ "commit": commit, "machine": machine, "ratios": ratios(rows) }));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(file, text))
        .map_err(|error| format!("{FILE}: {error}"))?;
    Ok(said)
}

/// Three digits are enough.
fn ratios(rows: &[Row]) -> Map<String, Value> {
    let ratios = rows.iter().filter_map(|row| Some((row.key.clone(), row.limit.as_ref()?.ratio)));
    ratios.map(|(key, ratio)| (key, json!((ratio * 1_000.0).round() / 1_000.0))).collect()
}

fn drops(rows: &[Row], before: &Value) -> String {
    let since = before["commit"].as_str().unwrap_or("?");
    let drops = rows.iter().filter_map(|row| {
        let (limit, before) = (row.limit.as_ref()?, before["ratios"][&row.key].as_f64()?);
        // For a rate, higher is better; the same applies to rows without a target.
        let loss = limit.target.unwrap_or(Target::AtLeast(0.0)).loss(before, limit.ratio);
        (loss > DROP).then(|| {
            let (before, now) = (ratio(before), ratio(limit.ratio));
            format!("worse by {:.0} % since {since}: {} ({before} then, {now} now)\n", loss * 100.0, row.what)
        })
    });
    let drops: String = drops.collect();
    if drops.is_empty() {
        return format!("no ratio is worse by more than {:.0} % since {since}\n", DROP * 100.0);
    }
    drops
}

/// The measured commit, with `+` if files were changed since.
fn commit() -> Result<String, String> {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().map_err(|error| format!("git: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench", ":!docs"])?;
    Ok(if changed.is_empty() { commit } else { commit + "+" })
}

/// The kind of machine, not its identity.
pub fn machine() -> String {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.trim_start_matches([' ', '\t', ':']))
}

#[cfg(test)]
mod tests {
    use super::{drops, ratios};
    use crate::report::{Row, Target, Unit};
    use crate::stats::Compared;
    use serde_json::json;

    #[test]
    fn only_worse_ratios_are_reported() {
        let row = |key: &str, ratio| {
            Row::of(key, key, Compared { figure: ratio, limit: 1.0, ratio }, Unit::PerSecond)
        };
        let rows = [
            row("many", 0.5).with("limit", Target::AtLeast(0.6)),
            row("start", 1.2).with("limit", Target::AtMost(1.0)),
            row("fan", 0.9).with("limit", Target::AtLeast(0.5)),
            row("new", 0.1).with("limit", Target::AtLeast(0.5)),
        ];
        let before = json!({"commit": "abc", "ratios": {"many": 0.8, "start": 0.9, "fan": 1.0}});
        let said = drops(&rows, &before);
        assert_eq!(
            said,
            "worse by 38 % since abc: many (80 % then, 50 % now)\n\
             worse by 25 % since abc: start (90 % then, 120 % now)\n"
        );
        let same = json!({"commit": "abc", "ratios": ratios(&rows)});
        assert_eq!(drops(&rows, &same), "no ratio is worse by more than 15 % since abc\n");
    }
}
