//! The run folder, `.specify/workflows/runs/<id>/`. Windlass writes it from the journal's events and never reads it, so any
//! later process, for example after a crash, can bring it up to date.

use super::log::{Begun, Log};
use super::python::{self, Letters};
use super::state::{self, Origin, Rest};
use crate::answer;
use serde_json::{Value as Json, json};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;
use windlass_runtime::{Engine, Error, Event, RunId, View};

/// The shortest time between two writes of the state. Writing takes at most a tenth of the time.
const PAUSE: Duration = Duration::from_millis(100);
const SHARE: u32 = 9;

pub struct Folder {
    run: RunId,
    view: View,
    log: Log,
    origin: Origin,
    /// The number of log lines already in the file.
    logged: usize,
    is_changed: bool,
    due: Instant,
    /// A write failed, and the user has seen the error.
    has_failed: bool,
}

impl Folder {
    /// Reads the state of a run from the journal. Writes nothing yet.
    pub fn open(engine: &Engine, run: &RunId) -> Result<Self, Error> {
        let events = engine.events(run)?;
        let program = engine.view(run)?.program().clone();
        let (source, overlays) = engine.stored_source(run)?;
        let mut folder = Self {
            run: run.clone(),
            view: View::new(program),
            log: Log::new(run),
            origin: Origin::default(),
            logged: 0,
            is_changed: true,
            due: Instant::now(),
            has_failed: false,
        };
        events.iter().try_for_each(|event| folder.apply(event))?;
        folder.origin = Origin::of(&folder.view, &source, &overlays);
        Ok(folder)
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    pub fn apply(&mut self, event: &Event) -> Result<(), Error> {
        self.view.apply(event).map_err(|cause| Error::contradictory(&self.run, cause))?;
        self.log.apply(&self.view, event);
        self.is_changed = true;
        Ok(())
    }

    /// The steps that have begun since the last call.
    pub fn begun(&mut self) -> Vec<Begun> {
        std::mem::take(&mut self.log.begun)
    }

    /// When to write the state again.
    pub fn due(&self) -> Option<Instant> {
        self.is_changed.then_some(self.due)
    }

    /// Creates the folder with everything the journal contains so far.
    pub fn begin(&mut self) {
        self.write_whole(Rest::None);
    }

    /// Appends new events.
    pub fn write(&mut self) {
        let logged = self.logged;
        self.attempt(|folder, path| {
            let lines = text(&folder.log.lines[logged..]);
            OpenOptions::new().append(true).open(path.join("log.jsonl"))?.write_all(lines.as_bytes())
        });
        self.write_state(Rest::None);
    }

    /// Writes the final state.
    pub fn close(&mut self, rest: Rest) {
        self.log.rest(&self.view, rest);
        self.write_whole(rest);
    }

    fn write_whole(&mut self, rest: Rest) {
        self.attempt(|folder, path| {
            std::fs::create_dir_all(path)?;
            if let Some(definition) = &folder.origin.definition {
                replace(&path.join("workflow.yml"), definition.yaml().as_bytes(), 0o644)?;
            }
            replace(&path.join("log.jsonl"), text(&folder.log.lines).as_bytes(), 0o644)
        });
        self.write_state(rest);
    }

    fn write_state(&mut self, rest: Rest) {
        let began = Instant::now();
        self.attempt(|folder, path| {
            let state = state::of(&folder.run, &folder.view, &folder.origin, &folder.log, rest);
            let inputs = json!({"inputs": state["inputs"]});
            replace(&path.join("state.json"), python::pretty(&state, Letters::All).as_bytes(), 0o600)?;
            replace(&path.join("inputs.json"), python::pretty(&inputs, Letters::All).as_bytes(), 0o600)
        });
        self.logged = self.log.lines.len();
        self.is_changed = false;
        self.due = Instant::now() + PAUSE.max(began.elapsed() * SHARE);
    }

    /// Performs a write. The run continues even if it fails; the user sees the error once.
    fn attempt(&mut self, write: impl FnOnce(&Self, &Path) -> io::Result<()>) {
        let Some(path) = self.origin.folder(&self.run).filter(|_| !self.has_failed) else { return };
        if let Err(error) = write(self, &path) {
            answer::remark(&format!("cannot write the run folder {}: {error}", path.display()));
            self.has_failed = true;
        }
    }
}

fn text(lines: &[Json]) -> String {
    lines.iter().map(|line| python::line(line, Letters::All) + "\n").collect()
}

/// Replaces a file atomically, so that readers never see a partial one.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let beside: PathBuf = path.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    let done = file.write_all(bytes).and_then(|()| std::fs::rename(&beside, path));
    if done.is_err() {
        // Report the first error.
        let _ = std::fs::remove_file(&beside);
    }
    done
}
