//! The program under test: starting it, following what it prints, killing it, asking it afterwards.

use super::checks::{Journals, Result};
use super::loss::Power;
use super::workflows::Workflow;
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const WAITS: i32 = 3;
/// Far longer than any run here takes: a process that is not done by then hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// One run, and the commands that act on it.
pub struct Program {
    pub windlass: PathBuf,
    pub work: PathBuf,
    pub data: PathBuf,
    pub run: String,
    pub workflow: &'static Workflow,
    /// There when a kill is a loss of power.
    pub power: Option<Power>,
}

/// A process that drives the run, or wants to.
pub struct Life {
    child: Child,
    lines: Receiver<String>,
    started: Instant,
    /// Whether it stays when only people can move the run.
    waits: bool,
    /// The exit status of an undisturbed run.
    ends: i32,
    /// What it has shown of what happened.
    pub heard: Vec<Json>,
}

#[derive(Debug)]
pub enum End {
    Succeeded,
    /// It ended because only people can move it.
    Waits,
    Killed,
    /// It still runs, and waits at a gate.
    Asked,
    Other(String),
}

/// An `approve` under way in a process of its own.
pub struct Approval(Child);

impl Program {
    pub fn start(&self, wait: bool) -> Life {
        self.live(&["run", self.workflow.main(), "--run-id", &self.run, "--json"], wait)
    }

    pub fn resume(&self, wait: bool) -> Life {
        self.live(&["resume", &self.run, "--json"], wait)
    }

    fn live(&self, words: &[&str], wait: bool) -> Life {
        let mut command = self.command(words);
        command.args(wait.then_some("--wait"));
        if self.workflow.is_scripted() {
            command.args(["--script", "script.yaml"]);
        }
        let started = Instant::now();
        let mut child = command.spawn().expect("the program was built before");
        let stdout = BufReader::new(child.stdout.take().expect("a piped stdout"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(std::result::Result::ok).try_for_each(|line| sender.send(line))
        });
        Life { child, lines, started, waits: wait, ends: self.workflow.ends, heard: Vec::new() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.windlass);
        command.args(words).arg("--data").arg(&self.data).current_dir(&self.work);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(power) = &self.power {
            power.around(&mut command);
        }
        command
    }

    fn ask(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program was built before")
    }

    /// What the journal says about the run and those that it has called; nothing when there is no such run.
    pub fn events(&self) -> Result<Journals> {
        let mut journals = Journals::new();
        let mut left = vec![self.run.clone()];
        while let Some(run) = left.pop() {
            let events = self.events_of(&run)?;
            let notes = events.iter().filter(|event| event["event"] == "noted");
            left.extend(notes.filter_map(|note| note["child_run_id"].as_str().map(str::to_owned)));
            if !events.is_empty() {
                journals.insert(run, events);
            }
        }
        Ok(journals)
    }

    fn events_of(&self, run: &str) -> Result<Vec<Json>> {
        let output = self.ask(&["events", run, "--json"]);
        let (stdout, stderr) = texts(&output);
        match output.status.code() {
            Some(0) => {
                Ok(stdout.lines().map(|line| serde_json::from_str(line).expect("an event is JSON")).collect())
            }
            Some(2) if stdout.contains("\"code\":\"no_run\"") => Ok(Vec::new()),
            status => Err(format!("events: exit {status:?}: {stdout}{stderr}")),
        }
    }

    pub fn result(&self) -> Result<Json> {
        let output = self.ask(&["show", &self.run, "--json"]);
        let (stdout, stderr) = texts(&output);
        serde_json::from_str(&stdout).map_err(|error| format!("show: {error}: {stderr}"))
    }

    /// A run that has ended stays as it is.
    pub fn refuses_to_go_on(&self) -> Result<()> {
        let before = self.events()?;
        let output = self.ask(&["resume", &self.run]);
        match (output.status.code(), self.events()? == before) {
            (Some(2), true) => Ok(()),
            (status, same) => {
                Err(format!("resume of a finished run: exit {status:?}, journal the same: {same}"))
            }
        }
    }

    pub fn waits_at_gate(&self) -> Result<bool> {
        Ok(self.result()?["waiting_on"]
            .as_array()
            .is_some_and(|waits| waits.iter().any(|wait| wait["kind"] == "gate")))
    }

    pub fn approve(&self) -> Approval {
        let words = ["approve", &self.run, "sign-off", "--by", "dana"];
        Approval(self.command(&words).spawn().expect("the program was built before"))
    }

    /// The power fails: what was not flushed is lost in part. Says how many sectors of the disk were.
    pub fn lose_power(&self, random: &mut super::Random) -> Result<u64> {
        self.power.as_ref().map_or(Ok(0), |power| power.fails(random))
    }

    /// The lines that the steps left, in words.
    pub fn trace(&self) -> Vec<Vec<String>> {
        // No step may have started yet.
        let text = std::fs::read_to_string(self.work.join("trace")).unwrap_or_default();
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }
}

impl Life {
    /// Follows the process until it ends or enters a gate, or kills it at an instant after its start.
    pub fn end_by(&mut self, instant: Option<Duration>) -> End {
        let end = self.started + instant.unwrap_or(PATIENCE);
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let said: Option<Json> = serde_json::from_str(&line).ok();
                    let asks = said.as_ref().is_some_and(|said| said["as"] == "gate");
                    self.heard.extend(said.filter(|said| said["type"] == "event"));
                    if self.waits && asks {
                        return End::Asked;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.ended(),
                Err(RecvTimeoutError::Timeout) => {
                    self.kill();
                    let hangs = || End::Other(format!("it was not done after {PATIENCE:?}"));
                    return instant.map_or_else(hangs, |_| End::Killed);
                }
            }
        }
    }

    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What it had printed before that.
        for line in &self.lines {
            let said: Option<Json> = serde_json::from_str(&line).ok();
            self.heard.extend(said.filter(|said| said["type"] == "event"));
        }
    }

    fn ended(&mut self) -> End {
        let status = self.child.wait().expect("our own child");
        let mut stderr = String::new();
        // What it says is only for the report.
        let _ = self.child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut stderr));
        match status.code() {
            Some(end) if end == self.ends => End::Succeeded,
            Some(WAITS) => End::Waits,
            status => End::Other(format!("exit {status:?}: {stderr}")),
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // Only when the test fails is it still there.
        self.kill();
    }
}

impl Approval {
    pub fn finished(self) -> Result<()> {
        let output = self.0.wait_with_output().expect("our own child");
        match output.status.code() {
            Some(0) => Ok(()),
            status => Err(format!("approve: exit {status:?}: {}", texts(&output).1)),
        }
    }

    /// The owner was killed meanwhile: the decision may be lost, but not after it was accepted.
    pub fn durable_if_accepted(self, program: &Program, random: &mut super::Random) -> Result<()> {
        let output = self.0.wait_with_output().expect("our own child");
        program.lose_power(random)?;
        let is_durable = program.events()?.values().flatten().any(|event| event["event"] == "decided");
        match (output.status.code(), is_durable) {
            (Some(0), false) => Err("a decision that was accepted is not in the journal".to_owned()),
            (Some(0 | 2 | 5), _) => Ok(()),
            (status, _) => Err(format!("approve: exit {status:?}: {}", texts(&output).1)),
        }
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
