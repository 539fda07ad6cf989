//! Schedules that fire while the program drives a data folder: the first run that is started, and what it is given. This takes a second,
//! since it is the clock of the machine that fires.

use super::super::Program;
use super::super::program::json;
use super::{fits, list};
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Ends with whoever started it.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself, which the check has seen.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

pub fn fire(program: &Program, folder: &Path, file: &str, expected: &Json) -> Result<(), String> {
    std::fs::write(folder.join("script.json"), expected["script"].to_string()).expect("a script");
    let mut command = program.command(folder);
    command.args(["serve", "--schedules", file, "--script", "script.json"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut serving = Serving(command.spawn().expect("the program starts"));
    let patience = Instant::now() + Duration::from_secs(60);
    let run = loop {
        // Nothing is there to look at before the first one.
        let runs = json(&program.run(folder, &["runs", "--json"])).unwrap_or_default();
        if let Some(run) = list(&runs).last().and_then(|run| run["run_id"].as_str()) {
            break run.to_owned();
        }
        if Instant::now() > patience || serving.0.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err("nothing was fired".to_owned());
        }
    };
    let result = json(&program.run(folder, &["wait", &run, "--json"]))?;
    fits(&result, &expected["result"], "result")?;
    let history = json(&program.run(folder, &["triggers", "history", "--json"]))?;
    let fired =
        list(&history).iter().find(|fire| fire["run_id"] == *run).ok_or("it is not in the history")?;
    fits(&fired["trigger"], &expected["trigger"], "trigger")?;
    let others = list(&history).iter().find(|fire| fire["trigger"] != expected["trigger"]);
    others.map_or(Ok(()), |other| Err(format!("this was fired, too: {other}")))
}
