//! Many runs of one workflow that share limits, left to an owner which is killed again and again: the limits hold at every
//! instant, whoever comes first is let in first, and every run ends.

use super::checks::Result;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use windlass_runtime::{DeskEvent, DeskWhat, Engine};

/// Runs of the workflow at once, and tasks of its kind.
const RUNS_MAX: usize = 5;
const TASKS_MAX: usize = 3;

/// Far more than all of it takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// What was done. Printed by the long form.
#[derive(Debug)]
pub struct Shared {
    pub runs: u64,
    pub kills: u64,
    /// How often somebody was let in while another one with less of a right waited.
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
        folder.command(&["run", "wf.json", "--detach", "--run-id", "last-0", "-i", "p=low"]);
        folder.let_some_end()?;
        killed += folder.kill_owner();
        folder.serve();
    }
    let ends = begun + PATIENCE;
    while !folder.all_ended()? {
        let output = folder.command(&["resume", "--all"]);
        if Instant::now() > ends {
            return Err(format!("not all runs end: {}", text(&output.stderr)));
        }
    }
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
        // A lock is gone with the process that holds it, however that ends: whoever finds none free is one too many.
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
        let mut command = Command::new(&self.windlass);
        command.args(["serve", "--until-idle", "--data"]).arg(&self.data).current_dir(&self.work);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(command.spawn().expect("the program was built before"));
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

    /// Kills whoever drives the folder; how many were.
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
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", text(&output.stderr)))
    }

    fn all_ended(&self) -> Result<bool> {
        Ok(self.left()? == 0)
    }

    /// How many have not ended.
    fn left(&self) -> Result<usize> {
        let is_left = |row: &&Json| matches!(row["status"].as_str(), Some("pending" | "running"));
        Ok(self.rows()?.iter().filter(is_left).count())
    }

    /// A job that is lost five times has failed, so whatever is under way gets the time to end before the next kill; unless there
    /// is so little left that nobody would be there to be killed.
    fn let_some_end(&self) -> Result<()> {
        let before = self.left()?;
        let ends = Instant::now() + PATIENCE;
        while self.left()? + RUNS_MAX > before && self.left()? > RUNS_MAX {
            if Instant::now() > ends {
                return Err("no run ends".to_owned());
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<u64> {
        if let Ok(jobs) = std::fs::read_to_string(self.work.join("too-many")) {
            return Err(format!("more than {TASKS_MAX} tasks at once: {jobs}"));
        }
        for row in self.rows()? {
            if row["status"] != "completed" {
                return Err(format!("a run has not completed: {row}"));
            }
            self.check_run(row["run_id"].as_str().unwrap_or_default())?;
        }
        self.check_desk()
    }

    /// No step was done twice, whatever was killed.
    fn check_run(&self, run: &str) -> Result<()> {
        let output = self.command(&["events", run, "--json"]);
        let settled = text(&output.stdout).matches("\"event\":\"settled\"").count();
        if settled == 2 { Ok(()) } else { Err(format!("{run} has settled {settled} steps, not 2")) }
    }

    /// Goes through all that the desk has decided: never more holders than there may be, and nobody before one who waits and
    /// has more of a right.
    fn check_desk(&self) -> Result<u64> {
        let failed = |error: windlass_runtime::Error| error.to_string();
        let events = Engine::look(&self.data).and_then(|engine| engine.shared_events()).map_err(failed)?;
        let (mut waiting, mut held) = (BTreeMap::new(), BTreeMap::new());
        let mut in_order = 0;
        for DeskEvent { what, .. } in events {
            match what {
                DeskWhat::Begun => {
                    waiting.clear();
                    held.clear();
                }
                DeskWhat::Queued { ask, place, .. } => {
                    let key = ask.claims.first().map(|claim| claim.key().clone());
                    waiting.insert(ask.asker, (key, place));
                }
                DeskWhat::Withdrawn { asker } => drop(waiting.remove(&asker)),
                DeskWhat::Released { asker, .. } => drop(held.remove(&asker)),
                DeskWhat::Granted { asker, ask } => {
                    let waited = waiting.remove(&asker);
                    let first = ask.and_then(|ask| ask.claims.first().map(|claim| claim.key().clone()));
                    let key = first.or(waited.as_ref().and_then(|(key, _)| key.clone())).unwrap_or_default();
                    for (other, (line, place)) in &waiting {
                        let same = line.as_ref() == Some(&key);
                        if same && waited.as_ref().is_none_or(|(_, own)| place < own) {
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
