//! Runs carried from one data folder to another: a folder for each, with everything that is known about it in files that people and
//! programs can read.
//!
//! An import is one record of the journal, written last: after a crash the run is there as a whole or not at all.

use crate::artefacts;
use crate::engine::{Engine, Error};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use windlass_engine::{Event, Program, Run, RunId, What};
use windlass_ir::plan::{Digest, FORMAT as PLAN_FORMAT};
use windlass_ir::{Plan, Value};
use windlass_store::{Append, Appended, StoredPlan, private, read_event};

/// The number of the form of an export.
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

/// What stands in an export besides the files themselves.
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

/// A run that was carried, or what stood in the way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    pub folder: PathBuf,
    pub run: Option<RunId>,
    /// How many events it has.
    pub events: usize,
    /// Code and message.
    pub refused: Option<(String, String)>,
}

impl Engine {
    /// Writes a run into a new folder of this one, named by its id.
    pub fn export(&self, run: &RunId, into: &FilePath) -> Result<Carried, Error> {
        let folder = into.join(run.as_str());
        if folder.exists() {
            return Err(bad(&folder, "it is there already: remove it, or name another folder"));
        }
        // Seen under its name only when it is whole.
        let partial = into.join(format!(".{run}.partial"));
        let written = self.write_export(run, &partial).and_then(|events| {
            std::fs::rename(&partial, &folder).map_err(failed(&folder))?;
            Ok(events)
        });
        match written {
            Ok(events) => Ok(Carried { folder, run: Some(run.clone()), events, refused: None }),
            Err(error) => {
                // What cannot be removed now is in nobody's way: the next export begins by removing it.
                let _ = std::fs::remove_dir_all(&partial);
                Err(error)
            }
        }
    }

    fn write_export(&self, run: &RunId, folder: &FilePath) -> Result<usize, Error> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(failed(folder))?;
        }
        private::create_folder(folder).map_err(failed(folder))?;
        let stored = self.stored_plan(run)?;
        let events = self.events(run)?;
        let view = self.view(run)?;
        let report = self.report(run, &view);
        let (status, result) = (report.status(), report.result());
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
        write(RESULT, format!("{result:#}\n").as_bytes())?;
        if let Some(hash) = self.copy_log(run, &folder.join(LOG))? {
            files.insert(LOG.to_owned(), hash);
        }
        for hash in artefacts::named_in(&lines).collect::<BTreeSet<_>>() {
            let Some(from) = self.artefacts.file(&hash).filter(|file| file.exists()) else { continue };
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

    /// Copies what a run has printed, which may be much, and hashes it on the way.
    fn copy_log(&self, run: &RunId, to: &FilePath) -> Result<Option<String>, Error> {
        let Some(from) = self.logs().map(|logs| logs.file(run)).filter(|file| file.exists()) else {
            return Ok(None);
        };
        copy(&from, to).map(Some)
    }

    /// Takes over the runs that were exported into a folder: one, or each that has a folder in it. Each by itself: one that is refused does
    /// not stand in the way of the others.
    pub async fn import(&self, from: &FilePath) -> Result<Vec<Carried>, Error> {
        let mut all = Vec::new();
        for folder in exports(from)? {
            let carried = match self.take_over(&folder).await {
                Ok((run, events)) => Carried { folder, run: Some(run), events, refused: None },
                Err(error) => {
                    let refused = Some((error.code().to_owned(), error.to_string()));
                    Carried { folder, run: None, events: 0, refused }
                }
            };
            all.push(carried);
        }
        Ok(all)
    }

    async fn take_over(&self, folder: &FilePath) -> Result<(RunId, usize), Error> {
        let about: About = serde_json::from_slice(&read(&folder.join(ABOUT))?)
            .map_err(|error| bad(folder, &format!("{ABOUT} is damaged: {error}")))?;
        if about.format > FORMAT {
            let cause = format!("it has format {} and this version reads up to {FORMAT}", about.format);
            return Err(bad(folder, &cause));
        }
        let run = about.run_id.clone();
        if !self.store().journal.back(&run, None, 1).await?.is_empty() {
            return Err(Error::RunExists(run));
        }
        let events = events(folder, &about.checked(folder, EVENTS)?)?;
        let text = |name: &str| {
            String::from_utf8(about.checked(folder, name)?)
                .map_err(|_| bad(folder, &format!("{name} is no text")))
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
            return Err(bad(folder, "its plan is another one than its digest says"));
        }
        check(folder, &run, &plan, &events)?;
        let (source, overrides) = (stored.source, stored.overrides);
        self.stored(&plan, source, overrides).await?;
        self.take_log(folder, &about)?;
        self.take_artefacts(folder, &about)?;
        let append = Append::new(run.clone(), None, &events)?;
        let appended = self.store().journal.append(append).await;
        self.artefacts.release(&run);
        match appended? {
            Appended::At(_) => Ok((run, events.len())),
            // It was started, or imported, meanwhile.
            Appended::Conflict { .. } => Err(Error::RunExists(run)),
        }
    }

    /// Before the run is there: a log without a run is nobody's, and goes when one of that name begins.
    fn take_log(&self, folder: &FilePath, about: &About) -> Result<(), Error> {
        let (Some(hash), Some(logs)) = (about.files.get(LOG), self.logs()) else { return Ok(()) };
        let to = logs.file(&about.run_id);
        let partial = to.with_extension("partial");
        if let Some(around) = to.parent() {
            private::create_folder(around).map_err(failed(around))?;
        }
        if copy(&folder.join(LOG), &partial)? != *hash {
            // It is in nobody's way.
            let _ = std::fs::remove_file(&partial);
            return Err(bad(folder, &format!("{LOG} is not what was exported")));
        }
        std::fs::rename(&partial, &to).map_err(failed(&to))
    }
}

impl Engine {
    /// Before the run is there: a sweep removes artifacts that no run refers to.
    fn take_artefacts(&self, folder: &FilePath, about: &About) -> Result<(), Error> {
        for name in about.files.keys() {
            let Some(hash) = name.strip_prefix(ARTIFACTS).and_then(|name| name.strip_prefix('/')) else {
                continue;
            };
            let file = folder.join(ARTIFACTS).join(hash);
            let mut content = std::fs::File::open(&file).map_err(failed(&file))?;
            let (stored, _) = self.artefacts.put(&about.run_id, &mut content).map_err(failed(&file))?;
            if stored != hash {
                self.artefacts.release(&about.run_id);
                return Err(bad(folder, &format!("{name} is not what was exported")));
            }
        }
        Ok(())
    }
}

impl About {
    /// A file of the export, as it was written.
    fn checked(&self, folder: &FilePath, name: &str) -> Result<Vec<u8>, Error> {
        let bytes = read(&folder.join(name))?;
        match self.files.get(name) {
            Some(hash) if *hash == *blake3::hash(&bytes).to_hex() => Ok(bytes),
            Some(_) => Err(bad(folder, &format!("{name} is not what was exported"))),
            None => Err(bad(folder, &format!("{ABOUT} says nothing about {name}"))),
        }
    }
}

/// The folders in which there is a run: the folder itself, or those in it.
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
        true => Err(bad(from, &format!("no run was exported into it: there is no {ABOUT}"))),
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

/// What is taken over must be the whole history of a run of that plan.
fn check(folder: &FilePath, run: &RunId, plan: &Plan, events: &[Event]) -> Result<(), Error> {
    let of_plan = match events.first().map(|event| &event.what) {
        Some(What::Started { about, .. }) => {
            about.get("plan").and_then(Value::as_str) == Some(plan.digest.as_str())
        }
        _ => false,
    };
    if !of_plan {
        return Err(bad(folder, "its events are not those of a run of its plan"));
    }
    let program = Arc::new(Program::new(plan.clone())?);
    // The hashes match, but the events may still be invented.
    let run = Run::replay(run.clone(), program, events)
        .map_err(|contradiction| bad(folder, &format!("its events do not fit its plan: {contradiction}")))?;
    match run.outcome() {
        Some(_) => Ok(()),
        None => Err(bad(
            folder,
            "the run was not finished when it was exported, and only one folder can go on with a run: finish it, then export it again",
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
