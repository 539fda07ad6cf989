//! Exports and imports runs. An export is a folder with everything about one run, in files that people and programs can read.
//!
//! An import writes one journal record, after everything else. After a crash the run exists completely or not at all.

use crate::artifacts;
use crate::engine::{Engine, Error};
use crate::status;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use windlass_engine::{Event, Program, Run, RunId, What};
use windlass_ir::plan::{Digest, FORMAT as PLAN_FORMAT};
use windlass_ir::{Plan, Value};
use windlass_store::{Append, Appended, StoredPlan, private, read_event};

/// The version of the export format.
const FORMAT: u32 = 1;

const ABOUT: &str = "run.json";
const PLAN: &str = "plan.json";
const EVENTS: &str = "events.jsonl";
const RESULT: &str = "result.json";
const DEFINITION: &str = "definition";
const OVERRIDES: &str = "overrides";
const LOG: &str = "log.jsonl";
/// The folder of the artifacts that the run refers to.
const ARTIFACTS: &str = "artifacts";

/// The manifest of an export.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    format: u32,
    run_id: RunId,
    workflow: Arc<str>,
    dialect: Arc<str>,
    status: String,
    /// The digest of the plan.
    plan: String,
    plan_format: u32,
    events: usize,
    /// The BLAKE3 hash of each file.
    files: BTreeMap<String, String>,
}

/// The result of exporting or importing one run.
#[derive(Debug)]
pub struct Carried {
    pub folder: PathBuf,
    pub run: Option<RunId>,
    /// The number of its events.
    pub events: usize,
    /// Why the import refused it.
    pub refused: Option<Error>,
}

impl Engine {
    /// Exports a run into a new subfolder of `into`, named after the run.
    pub fn export(&self, run: &RunId, into: &FilePath, result: &impl Serialize) -> Result<Carried, Error> {
        let folder = into.join(run.as_str());
        if folder.exists() {
            return Err(bad(&folder, "this folder already exists; remove it or choose another"));
        }
        // The folder gets its name only when it is complete.
        let partial = into.join(format!(".{run}.partial"));
        let written = self.write_export(run, &partial, result).and_then(|events| {
            std::fs::rename(&partial, &folder).map_err(failed(&folder))?;
            Ok(events)
        });
        match written {
            Ok(events) => Ok(Carried { folder, run: Some(run.clone()), events, refused: None }),
            Err(error) => {
                // If this fails, the next export removes the folder.
                let _ = std::fs::remove_dir_all(&partial);
                Err(error)
            }
        }
    }

    fn write_export(&self, run: &RunId, folder: &FilePath, result: &impl Serialize) -> Result<usize, Error> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(failed(folder))?;
        }
        private::create_folder(folder).map_err(failed(folder))?;
        let stored = self.stored_plan(run)?;
        let events = self.events(run)?;
        let view = self.view(run)?;
        let status = status::run_status(&view, self.executes(run, &view));
        let mut lines = Vec::new();
        for event in &events {
            serde_json::to_writer(&mut lines, event).map_err(|error| bad(folder, &error.to_string()))?;
            lines.push(b'\n');
        }
        let mut files = BTreeMap::new();
        let mut write = |name: &str, bytes: &[u8]| {
            let file = folder.join(name);
            files.insert(name.to_owned(), blake3::hash(bytes).to_hex().to_string());
            private::write(&file, bytes).map_err(failed(&file))
        };
        write(PLAN, stored.plan.as_bytes())?;
        write(DEFINITION, stored.source.as_bytes())?;
        write(OVERRIDES, stored.overrides.as_bytes())?;
        write(EVENTS, &lines)?;
        let result = serde_json::to_string_pretty(result).map_err(|error| bad(folder, &error.to_string()))?;
        write(RESULT, (result + "\n").as_bytes())?;
        if let Some(hash) = self.copy_log(run, &folder.join(LOG))? {
            files.insert(LOG.to_owned(), hash);
        }
        for hash in artifacts::named_in(&lines).collect::<BTreeSet<_>>() {
            let Some(from) = self.artifacts.file(&hash).filter(|file| file.exists()) else { continue };
            private::create_folder(&folder.join(ARTIFACTS)).map_err(failed(folder))?;
            let name = format!("{ARTIFACTS}/{hash}");
            let copied = copy(&from, &folder.join(&name))?;
            files.insert(name, copied);
        }
        let plan = &view.program().plan;
        let about = About {
            format: FORMAT,
            run_id: run.clone(),
            workflow: plan.header.id.clone(),
            dialect: plan.dialect.clone(),
            status: status.word().to_owned(),
            plan: stored.digest,
            plan_format: stored.format,
            events: events.len(),
            files,
        };
        let file = folder.join(ABOUT);
        let text = serde_json::to_string_pretty(&about).map_err(|error| bad(folder, &error.to_string()))?;
        private::write(&file, text + "\n").map_err(failed(&file))?;
        Ok(events.len())
    }

    /// Copies the log of a run and hashes it in the same pass, because it may be large.
    fn copy_log(&self, run: &RunId, to: &FilePath) -> Result<Option<String>, Error> {
        let Some(from) = self.logs().map(|logs| logs.file(run)).filter(|file| file.exists()) else {
            return Ok(None);
        };
        copy(&from, to).map(Some)
    }

    /// Imports an exported run, or all exported runs in a folder. A refused run does not stop the others.
    pub async fn import(&self, from: &FilePath) -> Result<Vec<Carried>, Error> {
        let mut all = Vec::new();
        for folder in exports(from)? {
            let carried = match self.import_one(&folder).await {
                Ok((run, events)) => Carried { folder, run: Some(run), events, refused: None },
                Err(error) => Carried { folder, run: None, events: 0, refused: Some(error) },
            };
            all.push(carried);
        }
        Ok(all)
    }

    async fn import_one(&self, folder: &FilePath) -> Result<(RunId, usize), Error> {
        let about: About = serde_json::from_slice(&read(&folder.join(ABOUT))?)
            .map_err(|error| bad(folder, &format!("{ABOUT} is damaged: {error}")))?;
        if about.format > FORMAT {
            let cause =
                format!("it has format {}, but this version of Windlass reads up to {FORMAT}", about.format);
            return Err(bad(folder, &cause));
        }
        let run = about.run_id.clone();
        if !self.store().journal.back(&run, None, 1).await?.is_empty() {
            return Err(Error::RunExists(run));
        }
        let events = events(folder, &about.checked(folder, EVENTS)?)?;
        let text = |name: &str| {
            String::from_utf8(about.checked(folder, name)?)
                .map_err(|_| bad(folder, &format!("{name} is not UTF-8")))
        };
        let stored = StoredPlan {
            digest: about.plan.clone(),
            format: about.plan_format,
            plan: text(PLAN)?,
            source: text(DEFINITION)?,
            overrides: text(OVERRIDES)?,
        };
        let plan: Plan = stored.read(PLAN_FORMAT)?;
        if plan.digest.as_str() != about.plan
            || plan.format == PLAN_FORMAT && Digest::of(&plan) != plan.digest
        {
            return Err(bad(folder, "its plan does not match its digest"));
        }
        check(folder, &run, &plan, &events)?;
        let (source, overrides) = (stored.source, stored.overrides);
        self.stored(&plan, source, overrides).await?;
        self.import_log(folder, &about)?;
        self.import_artifacts(folder, &about)?;
        let append = Append::new(run.clone(), None, &events)?;
        let appended = self.store().journal.append(append).await;
        self.artifacts.release(&run);
        match appended? {
            Appended::At(_) => Ok((run, events.len())),
            // Another client started or imported it in the meantime.
            Appended::Conflict { .. } => Err(Error::RunExists(run)),
        }
    }

    /// Runs before the run exists. If the import fails later, the next run with this id replaces the log.
    fn import_log(&self, folder: &FilePath, about: &About) -> Result<(), Error> {
        let (Some(hash), Some(logs)) = (about.files.get(LOG), self.logs()) else { return Ok(()) };
        let to = logs.file(&about.run_id);
        let partial = to.with_extension("partial");
        if let Some(around) = to.parent() {
            private::create_folder(around).map_err(failed(around))?;
        }
        if copy(&folder.join(LOG), &partial)? != *hash {
            // The error below matters more than a file left behind.
            let _ = std::fs::remove_file(&partial);
            return Err(bad(folder, &format!("{LOG} changed after the export")));
        }
        std::fs::rename(&partial, &to).map_err(failed(&to))
    }
}

impl Engine {
    /// Runs before the run exists. If the import fails later, a sweep removes the artifacts.
    fn import_artifacts(&self, folder: &FilePath, about: &About) -> Result<(), Error> {
        for name in about.files.keys() {
            let Some(hash) = name.strip_prefix(ARTIFACTS).and_then(|name| name.strip_prefix('/')) else {
                continue;
            };
            let file = folder.join(ARTIFACTS).join(hash);
            let mut content = std::fs::File::open(&file).map_err(failed(&file))?;
            let (stored, _) = self.artifacts.put(&about.run_id, &mut content).map_err(failed(&file))?;
            if stored != hash {
                self.artifacts.release(&about.run_id);
                return Err(bad(folder, &format!("{name} changed after the export")));
            }
        }
        Ok(())
    }
}

impl About {
    /// Reads a file of the export and checks its hash.
    fn checked(&self, folder: &FilePath, name: &str) -> Result<Vec<u8>, Error> {
        let bytes = read(&folder.join(name))?;
        match self.files.get(name) {
            Some(hash) if *hash == *blake3::hash(&bytes).to_hex() => Ok(bytes),
            Some(_) => Err(bad(folder, &format!("{name} changed after the export"))),
            None => Err(bad(folder, &format!("{ABOUT} does not list {name}"))),
        }
    }
}

/// The exported runs in a folder: the folder itself, or its subfolders.
fn exports(from: &FilePath) -> Result<Vec<PathBuf>, Error> {
    if from.join(ABOUT).is_file() {
        return Ok(vec![from.to_owned()]);
    }
    let entries = std::fs::read_dir(from).map_err(failed(from))?;
    let is_whole = |folder: &PathBuf| {
        let hidden = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        !hidden && folder.join(ABOUT).is_file()
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_whole).collect();
    folders.sort();
    match folders.is_empty() {
        true => Err(bad(from, &format!("it contains no exported run: there is no {ABOUT}"))),
        false => Ok(folders),
    }
}

fn events(folder: &FilePath, lines: &[u8]) -> Result<Vec<Event>, Error> {
    let lines = (1usize..).zip(lines.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty());
    lines
        .map(|(number, line)| {
            read_event(line).map_err(|cause| bad(folder, &format!("{EVENTS}, line {number}: {cause}")))
        })
        .collect()
}

/// Checks that the events are the complete history of a run of this plan.
fn check(folder: &FilePath, run: &RunId, plan: &Plan, events: &[Event]) -> Result<(), Error> {
    let of_plan = match events.first().map(|event| &event.what) {
        Some(What::Started { about, .. }) => {
            about.get("plan").and_then(Value::as_str) == Some(plan.digest.as_str())
        }
        _ => false,
    };
    if !of_plan {
        return Err(bad(folder, "its events do not belong to a run of its plan"));
    }
    let program = Arc::new(Program::new(plan.clone())?);
    // Someone may have invented the events and computed matching hashes.
    let run = Run::replay(run.clone(), program, events)
        .map_err(|contradiction| bad(folder, &format!("its events do not fit its plan: {contradiction}")))?;
    match run.outcome() {
        Some(_) => Ok(()),
        None => Err(bad(
            folder,
            "the run was not finished when it was exported, and only one data folder can continue a run; finish it, then export it again",
        )),
    }
}

fn copy(from: &FilePath, to: &FilePath) -> Result<String, Error> {
    let mut reader = std::fs::File::open(from).map_err(failed(from))?;
    let mut writer = private::create(to).map_err(failed(to))?;
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; 256 << 10];
    loop {
        match std::io::Read::read(&mut reader, &mut chunk).map_err(failed(from))? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            bytes => {
                hasher.update(&chunk[..bytes]);
                writer.write_all(&chunk[..bytes]).map_err(failed(to))?;
            }
        }
    }
}

fn read(file: &FilePath) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(failed(file))
}

fn failed(path: &FilePath) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |error| bad(&path, &error.to_string())
}

fn bad(folder: &FilePath, cause: &str) -> Error {
    Error::Export { folder: folder.to_owned(), cause: cause.to_owned() }
}
