//! Many runs of one workflow that share limits, left to an owner which is killed again and again: the limits hold at every
//! instant, runs start in their order, and every run ends.

use super::checks::Result;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use windlass_runtime::{CoordinatorEvent, CoordinatorWhat, Engine, Executed};

/// Runs of the workflow at once, and tasks of its kind.
const RUNS_MAX: usize = 5;
const TASKS_MAX: usize = 3;

/// What was done. Printed by the long form.
#[derive(Debug)]
pub struct Shared {
    pub runs: u64,
    pub kills: u64,
    /// How often a run started while another one with a lower priority waited.
    pub in_order: u64,
    pub seconds: f64,
}

impl std::fmt::Display for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "runs that share limits    {:>6}", self.runs)?;
        writeln!(f, "kills of their owner      {:>6}", self.kills)?;
        writeln!(f, "pairs let in in order     {:>6}", self.in_order)?;
        writeln!(f, "seconds                   {:>6.1}", self.seconds)
    }
}

/// How many owners may come and go until every run has ended.
const OWNERS_MAX: usize = 20;

struct Folder {
    windlass: PathBuf,
    work: PathBuf,
    data: PathBuf,
}

pub fn shared_test(windlass: &Path, folder: &Path, runs: u64, kills: u64) -> Result<Shared> {
    let folder = Folder { windlass: windlass.into(), work: folder.into(), data: folder.join("data") };
    folder.prepare();
    let begun = Instant::now();
    let mut killed = 0;
    folder.serve();
    for number in 0..runs {
        folder.start(number)?;
        // Spread evenly over the starts, and one after the last.
        if killed < kills && (number + 1) * kills / runs > killed {
            folder.let_some_end()?;
            killed += folder.kill_owner();
            folder.serve();
        }
    }
    while killed < kills && !folder.all_ended()? {
        folder.start(runs)?;
        folder.let_some_end()?;
        killed += folder.kill_owner();
        folder.serve();
    }
    folder.let_all_end()?;
    folder.kill_owner();
    let in_order = folder.check()?;
    Ok(Shared { runs, kills: killed, in_order, seconds: begun.elapsed().as_secs_f64() })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Folder {
    fn prepare(&self) {
        let workflow = format!(
            r#"{{"name": "shared", "version": "1", "concurrency": {{"max_runs": {RUNS_MAX}}},
            "priority": {{"key": "p", "rules": {{"high": 600, "low": -600}}, "default_offset": 0}},
            "steps": [
                {{"id": "first", "task": "work", "type": "normal", "max_task_concurrency": {TASKS_MAX}}},
                {{"id": "second", "task": "work", "type": "normal", "depends_on": ["first"], "max_task_concurrency": {TASKS_MAX}}}
            ]}}"#
        );
        // A lock ends with its process, even after a kill. A task that finds no free lock is one too many.
        let script = format!(
            "cat >/dev/null\nfor i in $(seq {TASKS_MAX}); do\n  exec 9>place$i\n  if flock -n 9; then sleep 0.03; echo 1; exit 0; fi\ndone\necho \"$WINDLASS_JOB\" >> too-many\necho 0\n"
        );
        let config = "[tasks.work]\ncommand = [\"sh\", \"task.sh\"]\n";
        std::fs::create_dir_all(&self.work).expect("a folder for the test");
        for (name, content) in [("wf.json", &*workflow), ("task.sh", &*script), ("windlass.toml", config)] {
            std::fs::write(self.work.join(name), content).expect("a file of the test");
        }
    }

    /// Starts an owner that executes every run of the folder, also those that a killed one left.
    fn serve(&self) {
        for _ in 0..OWNERS_MAX {
            let mut command = Command::new(&self.windlass);
            command.args(["serve", "--until-idle", "--data"]).arg(&self.data).current_dir(&self.work);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut owner = command.spawn().expect("the program was built before");
            let mut lines = BufReader::new(owner.stderr.take().expect("a piped stream")).lines();
            // A process that was asked for one run may have been faster; then it is the owner.
            if lines.next().is_some_and(|line| line.is_ok_and(|line| !line.starts_with("error"))) {
                std::thread::spawn(move || {
                    lines.for_each(drop);
                    drop(owner.wait());
                });
                return;
            }
            drop(owner.wait());
        }
    }

    fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.windlass);
        command.args(words).arg("--data").arg(&self.data).current_dir(&self.work);
        command.stdin(Stdio::null()).output().expect("the program was built before")
    }

    /// Leaves a run to the owner, which may be killed at any moment: until it is known.
    fn start(&self, number: u64) -> Result<()> {
        let id = format!("run-{number:04}");
        let p = ["p=high", "p=middle", "p=low"][(number % 3) as usize];
        for _ in 0..50 {
            let output = self.command(&["run", "wf.json", "--detach", "--run-id", &id, "-i", p]);
            if output.status.success() || text(&output.stderr).contains("run_exists") {
                return Ok(());
            }
        }
        Err(format!("{id} cannot be started"))
    }

    /// Kills the owner of the data folder. Returns how many processes that were.
    fn kill_owner(&self) -> u64 {
        let marks = ["serve".to_owned(), self.data.display().to_string()];
        let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
        let mut killed = 0;
        for process in processes.flatten() {
            let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let words: Vec<String> = words.split(|byte| *byte == 0).map(text).collect();
            if marks.iter().all(|mark| words.contains(mark)) {
                let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
                killed += u64::from(status.is_ok_and(|status| status.success()));
            }
        }
        killed
    }

    fn rows(&self) -> Result<Vec<Json>> {
        let output = self.command(&["runs", "--json", "--limit", "100000"]);
        let page: Json = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{error}: {}", text(&output.stderr)))?;
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }

    fn all_ended(&self) -> Result<bool> {
        Ok(self.left()?.is_empty())
    }

    /// The runs that have not ended: first those that execute, then those that wait, in the order in which they may start.
    fn left(&self) -> Result<Vec<String>> {
        let mut left: Vec<(bool, u64, String)> = Vec::new();
        for row in self.rows()? {
            let waits = row["status"] == "pending";
            let ended = ["success", "failed", "cancelled"].iter().any(|word| row["status"] == *word);
            if !ended {
                let id = row["run_id"].as_str().unwrap_or_default().to_owned();
                let number = id.rsplit('-').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
                // The priorities alternate; see `start`.
                left.push((waits, number % 3, id));
            }
        }
        left.sort();
        Ok(left.into_iter().map(|(_, _, id)| id).collect())
    }

    fn wait_for(&self, runs: &[String]) -> Output {
        let words: Vec<&str> = ["wait"].into_iter().chain(runs.iter().map(String::as_str)).collect();
        self.command(&words)
    }

    /// Lets as many runs end as execute at once before the next kill, since a job that is lost five times fails. Returns at once
    /// if so few are left that the owner might end before it is killed.
    fn let_some_end(&self) -> Result<()> {
        let left = self.left()?;
        if left.len() <= RUNS_MAX {
            return Ok(());
        }
        let output = self.wait_for(&left[..RUNS_MAX]);
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("some runs do not end: {}", text(&output.stderr))),
        }
    }

    /// Waits for the owner to finish every run. If it was killed, another process takes over.
    fn let_all_end(&self) -> Result<()> {
        let mut said = String::new();
        // An owner that executes only the runs it was asked for may hold the folder a moment longer.
        for _ in 0..OWNERS_MAX {
            self.wait_for(&self.left()?);
            if self.all_ended()? {
                return Ok(());
            }
            said = text(&self.command(&["resume", "--all"]).stderr);
        }
        match self.all_ended()? {
            true => Ok(()),
            false => Err(format!("not all runs end: {said}")),
        }
    }

    fn check(&self) -> Result<u64> {
        if let Ok(jobs) = std::fs::read_to_string(self.work.join("too-many")) {
            return Err(format!("more than {TASKS_MAX} tasks at once: {jobs}"));
        }
        for row in self.rows()? {
            if row["status"] != "success" {
                return Err(format!("a run has not completed: {row}"));
            }
            self.check_run(row["run_id"].as_str().unwrap_or_default())?;
        }
        self.check_limits()
    }

    /// No step was done twice, whatever was killed.
    fn check_run(&self, run: &str) -> Result<()> {
        let output = self.command(&["events", run, "--json"]);
        let settled = text(&output.stdout).matches("\"event\":\"settled\"").count();
        if settled == 2 { Ok(()) } else { Err(format!("{run} has settled {settled} steps, not 2")) }
    }

    /// Goes through all decisions of the coordinator: never more holders than the limit, and none before one that waits with a
    /// higher priority.
    fn check_limits(&self) -> Result<u64> {
        let failed = |error: windlass_runtime::Error| error.to_string();
        let events = Engine::look(&self.data, windlass_dialects::DIALECTS, |_| Executed::nothing())
            .and_then(|engine| engine.shared_events())
            .map_err(failed)?;
        let (mut waiting, mut held) = (BTreeMap::new(), BTreeMap::new());
        let mut in_order = 0;
        for CoordinatorEvent { what, .. } in events {
            match what {
                CoordinatorWhat::Snapshot => {
                    waiting.clear();
                    held.clear();
                }
                CoordinatorWhat::Queued { ask, position, .. } => {
                    let key = ask.claims.first().map(|claim| claim.key().clone());
                    waiting.insert(ask.asker, (key, position));
                }
                CoordinatorWhat::Withdrawn { asker } => drop(waiting.remove(&asker)),
                CoordinatorWhat::Released { asker, .. } => drop(held.remove(&asker)),
                CoordinatorWhat::Granted { asker, ask } => {
                    let waited = waiting.remove(&asker);
                    let first = ask.and_then(|ask| ask.claims.first().map(|claim| claim.key().clone()));
                    let key = first.or(waited.as_ref().and_then(|(key, _)| key.clone())).unwrap_or_default();
                    for (other, (queue, position)) in &waiting {
                        let same = queue.as_ref() == Some(&key);
                        if same && waited.as_ref().is_none_or(|(_, own)| position < own) {
                            return Err(format!("{asker} came before {other}"));
                        }
                        in_order += u64::from(same);
                    }
                    held.insert(asker, key);
                    for (key, most) in [("runs:shared", RUNS_MAX), ("task:work", TASKS_MAX)] {
                        let count = held.values().filter(|other| &***other == key).count();
                        if count > most {
                            return Err(format!("{count} hold `{key}`, and {most} may"));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(in_order)
    }
}
