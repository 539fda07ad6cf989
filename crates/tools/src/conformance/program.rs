//! The program under test, and how it is started.

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[derive(Debug)]
pub struct Program {
    windlass: PathBuf,
    scratch: PathBuf,
}

impl Program {
    pub fn new(windlass: &Path, scratch: &Path) -> Self {
        Self { windlass: windlass.into(), scratch: scratch.into() }
    }

    /// An empty folder for one case.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.scratch.join(name.replace(['/', ' '], "-"));
        // An earlier test run may have left it.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// The program in a folder, with a data folder of its own there and no input.
    pub fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.windlass);
        command.current_dir(folder).env("WINDLASS_DATA", self.data(folder));
        command.stdin(std::process::Stdio::null());
        command
    }

    /// The data folder of the case in this folder.
    pub fn data(&self, folder: &Path) -> PathBuf {
        folder.join(".windlass-data")
    }

    pub fn run(&self, folder: &Path, args: &[&str]) -> Output {
        self.command(folder).args(args).output().expect("the program starts")
    }
}

/// The JSON that the program printed.
pub fn json(output: &Output) -> Result<Json, String> {
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        format!("no JSON ({error}): {stdout}{stderr}")
    })
}
