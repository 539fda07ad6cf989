//! Schedules that fire while `windlass serve` runs: the first run it starts, and the inputs of that run. This takes a second, since
//! the wall clock fires.

use super::super::Program;
use super::super::program::json;
use super::{fits, list};
use crate::watch;
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Child, Stdio};

/// A server that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself, and then the check has failed.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

pub fn fire(program: &Program, folder: &Path, file: &str, expected: &Json) -> Result<(), String> {
    std::fs::write(folder.join("script.json"), expected["script"].to_string()).expect("a script");
    let mut command = program.command(folder);
    command.args(["serve", "--schedules", file, "--script", "script.json"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _serving = Serving(command.spawn().expect("the program starts"));
    let data = program.data(folder);
    let first = || {
        // There is no data folder to look at before the first run.
        let runs = json(&program.run(folder, &["runs", "--json"])).unwrap_or_default();
        list(&runs["items"]).last().and_then(|run| run["run_id"].as_str().map(str::to_owned))
    };
    let run = watch::until(&[folder, &data], first).ok_or("nothing was fired")?;
    let result = json(&program.run(folder, &["wait", &run, "--json"]))?;
    fits(&super::life::in_own_words(result), &expected["result"], "result")?;
    let history = json(&program.run(folder, &["triggers", "history", "--json"]))?;
    let fired = list(&history["items"])
        .iter()
        .find(|fire| fire["run_id"] == *run)
        .ok_or("it is not in the history")?;
    fits(&fired["trigger"], &expected["trigger"], "trigger")?;
    let others = list(&history).iter().find(|fire| fire["trigger"] != expected["trigger"]);
    others.map_or(Ok(()), |other| Err(format!("this was fired, too: {other}")))
}
