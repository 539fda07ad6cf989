//! The workflows of a project: the workflow files below some folders, and those that skills declare there.
//!
//! A search only reads files. It stays within the folders, skips links that lead out of them, and has limits, so that it can run
//! in any folder. A file that cannot be used is an entry like the others, with its first error.

mod read;
mod skill;
mod walk;

pub use read::read;
pub use skill::SkillFiles;
pub use walk::{Walked, is_skipped, walk};

use crate::code::Code;
use crate::refusal::Refusal;
use crate::types::{Diagnostic, NamedText, Workflow};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use windlass_dialects::cases::ENDINGS;
use windlass_dialects::dcc::skill::{is_skill_file, read_skill, workflow_name};
use windlass_dialects::swdl::OVERRIDES_FILE;
use windlass_dialects::text::{self, Format, Kind, Limits};
use windlass_dialects::{Dialect, FileKind, Options, Text, is_overrides, load, read_overrides, speckit};
use windlass_ir::suggest::nearest;
use windlass_ir::{Source, SourceId};

/// The file names that a workflow folder may use.
pub const WORKFLOW_FILES: [&str; 4] = ["WORKFLOW.yaml", "WORKFLOW.yml", "WORKFLOW.json", "workflow.yml"];

/// File names of workflows end with one of these.
const WORKFLOW_ENDINGS: [&str; 3] = [".workflow.yaml", ".workflow.yml", ".workflow.json"];

/// The most files and folders to look at.
const ENTRIES_MAX: usize = 50_000;
/// The same for shell completion, which must be fast.
const ENTRIES_AT_A_GLANCE: usize = 1_000;

/// The most names to list in a message.
const NAMES_MAX: usize = 20;

/// The workflows below some folders, sorted by name.
#[derive(Debug, Default)]
pub struct Library {
    pub entries: Vec<Entry>,
    /// Windlass did not look at everything, because there are too many files.
    pub is_cut: bool,
}

/// A workflow file.
#[derive(Debug)]
pub struct Entry {
    /// Without its text and its outline.
    pub workflow: Workflow,
    /// As found below one of the folders.
    pub file: PathBuf,
    /// The folder that was searched.
    pub folder: PathBuf,
    /// The name of the file without extensions, or of the folder around a `WORKFLOW.yaml`.
    stem: String,
    /// Words that the skill wants its workflows to be found by.
    hint: Option<String>,
}

impl Entry {
    /// The name that no other skill has: `SKILL.NAME`, or the name alone.
    pub fn full_name(&self) -> String {
        self.workflow.full_name()
    }

    /// Whether a text occurs in its name, its tags, its description or the search hint of its skill; case does not matter.
    pub fn matches(&self, query: &str) -> bool {
        let Workflow { workflow, name, skill, description, tags, .. } = &self.workflow;
        let query = query.to_lowercase();
        let texts = [Some(workflow), Some(name), skill.as_ref(), description.as_ref(), self.hint.as_ref()];
        texts.into_iter().flatten().chain(tags).any(|text| text.to_lowercase().contains(&query))
    }

    /// The text of the file, and what belongs to it: the overlays of an installed Spec Kit workflow, and the project's overrides.
    pub fn texts(&self) -> Result<(NamedText, Option<NamedText>, Vec<NamedText>), Refusal> {
        let text = |file: &Path| -> Result<NamedText, Refusal> {
            let name = file.display().to_string();
            let unreadable = |cause: String| Refusal::new(Code::Unreadable, format!("{name}: {cause}"));
            let bytes = read(file).map_err(|error| unreadable(error.to_string()))?;
            let text =
                String::from_utf8(bytes).map_err(|_| unreadable("the file is not UTF-8".to_owned()))?;
            Ok(NamedText { name, text })
        };
        let overrides = self.folder.join(OVERRIDES_FILE);
        let overrides = overrides.is_file().then(|| text(&overrides)).transpose()?;
        let has_block = |named: &NamedText| {
            read_overrides(named.clone().into()).workflows.contains(&self.workflow.workflow)
        };
        let overlays = overlays(&self.file).iter().map(|overlay| text(overlay)).collect::<Result<_, _>>()?;
        Ok((text(&self.file)?, overrides.filter(has_block), overlays))
    }
}

/// The overlays of a workflow that is installed in a Spec Kit project, sorted by name.
pub fn overlays(file: &Path) -> Vec<PathBuf> {
    let Some(folder) = file.to_str().and_then(speckit::overlay_folder) else { return Vec::new() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml");
    let mut found: Vec<PathBuf> = entries.filter(is_yaml).collect();
    found.sort();
    found
}

/// The result of looking up a name.
#[derive(Debug)]
pub enum Lookup<'a> {
    Found(&'a Entry),
    /// Several workflows have this name.
    Ambiguous(Vec<&'a Entry>),
    Missing,
}

impl Library {
    /// Searches folders for workflows.
    pub fn scan(folders: &[PathBuf]) -> Self {
        Self::search(folders, ENTRIES_MAX, None)
    }

    /// Searches only as far as shell completion can wait.
    pub fn glance(folders: &[PathBuf]) -> Self {
        Self::search(folders, ENTRIES_AT_A_GLANCE, None)
    }

    /// Searches for the workflows that a name can mean. It loads only these.
    pub fn about(folders: &[PathBuf], name: &str) -> Self {
        Self::search(folders, ENTRIES_MAX, Some(name))
    }

    fn search(folders: &[PathBuf], entries_max: usize, name: Option<&str>) -> Self {
        let (mut library, mut seen) = (Self::default(), HashSet::new());
        let mut found: Vec<Candidate> = Vec::new();
        for folder in folders {
            let walked = walk(folder, entries_max, &|_, name| is_skill_file(name) || may_be_workflow(name));
            library.is_cut |= walked.is_cut;
            let (skills, files): (Vec<PathBuf>, Vec<PathBuf>) =
                walked.files.into_iter().partition(|file| is_skill_file(&file.to_string_lossy()));
            // A file that a skill declares belongs to the skill, so skills come first.
            let of_skills = skills.iter().flat_map(|skill| of_skill(skill, folder));
            let plain = files.into_iter().map(|file| Candidate::plain(file, folder));
            found.extend(of_skills.chain(plain));
        }
        for candidate in found {
            let place = std::fs::canonicalize(&candidate.file).unwrap_or_else(|_| candidate.file.clone());
            if seen.insert(place) {
                library.entries.extend(candidate.load(name));
            }
        }
        library.entries.sort_by_cached_key(|entry| (entry.full_name(), entry.file.clone()));
        library
    }

    /// The workflow with this name: its id, `SKILL.NAME`, or else the name of its file.
    pub fn find(&self, name: &str) -> Lookup<'_> {
        let by_id = |entry: &&Entry| entry.workflow.workflow == name || entry.full_name() == name;
        let by_file = |entry: &&Entry| entry.stem == name;
        let mut meant: Vec<&Entry> = self.entries.iter().filter(by_id).collect();
        if meant.is_empty() {
            meant = self.entries.iter().filter(by_file).collect();
        }
        match meant.as_slice() {
            [] => Lookup::Missing,
            [only] => Lookup::Found(only),
            _ => Lookup::Ambiguous(meant),
        }
    }

    /// The most similar name. Short names have none, because almost any other short name is similar.
    pub fn near(&self, name: &str) -> Option<String> {
        const LENGTH_MIN: usize = 3;
        if name.chars().count() < LENGTH_MIN {
            return None;
        }
        let names: Vec<String> = self.entries.iter().flat_map(names).collect();
        nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// The refusal of a name that no workflow has.
    pub fn missing(&self, name: &str) -> Refusal {
        let refusal = Refusal::new(Code::NoWorkflow, format!("unknown workflow `{name}`")).field("workflow");
        let mut known: Vec<String> = self.entries.iter().map(Entry::full_name).collect();
        known.dedup();
        let more = known.len().saturating_sub(NAMES_MAX);
        known.truncate(NAMES_MAX);
        refusal.help(match (self.near(name), known.as_slice(), more) {
            (Some(near), _, _) => format!("did you mean `{near}`?"),
            (None, [], _) => "no workflow was found here; name a file, or go to your project".to_owned(),
            (None, known, 0) => format!("the workflows here are {}", known.join(", ")),
            (None, known, more) => {
                format!("some workflows here are {} ({more} more: see `windlass list`)", known.join(", "))
            }
        })
    }
}

/// The names that an entry can be found by.
fn names(entry: &Entry) -> Vec<String> {
    vec![entry.workflow.workflow.clone(), entry.full_name(), entry.stem.clone()]
}

/// The refusal of a name that several workflows have.
pub fn ambiguous(name: &str, entries: &[&Entry]) -> Refusal {
    let message = format!("{} workflows are called `{name}`", entries.len());
    let shown = entries.iter().take(NAMES_MAX).map(|entry| {
        let file = entry.file.display();
        match entry.full_name() {
            full if full != name && entry.workflow.skill.is_some() => format!("`{full}` ({file})"),
            _ => format!("`{file}`"),
        }
    });
    let shown: Vec<String> = shown.collect();
    let refusal = Refusal::new(Code::AmbiguousWorkflow, message).field("workflow");
    refusal.help(format!("name one of them: {}", shown.join(", ")))
}

/// A file that may be a workflow.
#[derive(Debug)]
struct Candidate {
    file: PathBuf,
    folder: PathBuf,
    skill: Option<String>,
    hint: Option<String>,
    /// A workflow by its name or by its skill, whatever it contains.
    is_named: bool,
}

impl Candidate {
    fn plain(file: PathBuf, folder: &Path) -> Self {
        let is_named = file.file_name().and_then(|name| name.to_str()).is_some_and(is_workflow_name);
        Self { file, folder: folder.to_owned(), skill: None, hint: None, is_named }
    }

    /// Reads the file. None if it is not a workflow, or not one that the name can mean.
    fn load(self, name: Option<&str>) -> Option<Entry> {
        let stem = stem(&self.file);
        let bytes = match read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if self.is_named => return Some(self.unreadable(stem, &error)),
            Err(_) => return None,
        };
        // Searching for a word is much cheaper than reading a workflow.
        let part = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
        if name.is_some_and(|name| stem != name && !mentions(&bytes, &part(name))) {
            return None;
        }
        let text = Text { name: self.file.display().to_string(), bytes };
        if !self.is_named && !is_workflow(&text) || is_overrides(&text) {
            return None;
        }
        let id = workflow_name(&text);
        let updated_at = std::fs::metadata(&self.file).and_then(|about| about.modified()).ok();
        let overlays = overlays(&self.file).into_iter().filter_map(|overlay| {
            let bytes = read(&overlay).ok()?;
            Some(Text { name: overlay.display().to_string(), bytes })
        });
        let options = Options { overlays: overlays.collect(), ..Options::default() };
        let etag = etag(&text.bytes);
        let loaded = load(text, options);
        let workflow = Workflow {
            skill: self.skill,
            file: Some(self.file.display().to_string()),
            updated_at: updated_at.and_then(|at| jiff::Timestamp::try_from(at).ok()).map(|at| at.to_string()),
            ..Workflow::of(&loaded, &id, etag)
        };
        Some(Entry { workflow, file: self.file, folder: self.folder, stem, hint: self.hint })
    }

    fn unreadable(self, stem: String, error: &std::io::Error) -> Entry {
        let file = self.file.display().to_string();
        let finding =
            Diagnostic::error(Code::Unreadable, &format!("the file cannot be read: {error}"), &file, None);
        let workflow = Workflow {
            skill: self.skill,
            file: Some(file),
            diagnostics: vec![finding],
            ..Workflow::unknown(&stem)
        };
        Entry { workflow, file: self.file, folder: self.folder, stem, hint: self.hint }
    }
}

/// The workflows of a skill.
fn of_skill(file: &Path, folder: &Path) -> Vec<Candidate> {
    let Ok(bytes) = read(file) else { return Vec::new() };
    let skill = read_skill(&Text { name: file.display().to_string(), bytes });
    let around = file.parent().unwrap_or(Path::new(""));
    // `windlass validate` reports problems of the skill itself.
    let files = SkillFiles::list(around, &skill).find(&skill.workflows, &mut Vec::new());
    let own = || std::path::absolute(around).ok()?.file_name()?.to_str().map(str::to_owned);
    let name = skill.name.as_deref().map(str::to_owned).or_else(own);
    let hint = skill.search_hint.as_deref().map(str::to_owned);
    let candidate = |path: String| Candidate {
        file: around.join(path),
        folder: folder.to_owned(),
        skill: name.clone(),
        hint: hint.clone(),
        is_named: true,
    };
    files.into_iter().map(candidate).collect()
}

fn is_workflow_name(name: &str) -> bool {
    WORKFLOW_FILES.contains(&name) || WORKFLOW_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn may_be_workflow(name: &str) -> bool {
    let has_ending = [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
    has_ending && !name.starts_with('.') && !ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn mentions(bytes: &[u8], word: &str) -> bool {
    word.is_empty() || bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a file is a workflow, judging by its keys. Files of other programs have some of them too, so all that a dialect needs
/// must be there. A file with a syntax error has no keys, so its lines decide.
fn is_workflow(file: &Text) -> bool {
    if !mentions(&file.bytes, "stages") && !mentions(&file.bytes, "steps") {
        return false;
    }
    let Ok(decoded) = text::decode(&file.bytes) else { return false };
    let format = if file.name.ends_with(".json") { Format::Json } else { Format::Yaml };
    let source = Source::new(file.name.as_str(), decoded);
    let Some(root) = text::read(&source, SourceId(0), format, &Limits::default()).root else {
        let starts = |start: &str| source.text.lines().any(|line| line.starts_with(start));
        return starts("workflow:") && (starts("stages:") || starts("steps:"));
    };
    let has = |key: &str| matches!(&root.kind, Kind::Map(map) if map.get(key).is_some());
    match FileKind::guess(&root) {
        Some(FileKind::Workflow(Dialect::Swdl)) => has("workflow"),
        Some(FileKind::Workflow(Dialect::Speckit)) => has("workflow") && has("steps"),
        Some(FileKind::Workflow(Dialect::Dcc)) => has("steps") && has("name"),
        Some(FileKind::Workflow(Dialect::Dagnats)) => has("name") || has("Name"),
        Some(FileKind::Schedules | FileKind::Skill | FileKind::Overlay) | None => false,
    }
}

/// The name of a file without extensions, or of the folder around a file with a fixed name.
fn stem(file: &Path) -> String {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if WORKFLOW_FILES.contains(&name) {
        let around = std::path::absolute(file).ok();
        let folder = around.as_deref().and_then(Path::parent).and_then(Path::file_name);
        return folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.strip_suffix(".workflow").unwrap_or(stem).to_owned()
}

/// A hash of a text, which changes if and only if the text changes.
pub(crate) fn etag(text: &[u8]) -> String {
    format!("blake3:{}", blake3::hash(text).to_hex())
}

/// The folder of the workflows that belong to a data folder: the project around a `.windlass`.
pub fn around(data: &Path) -> Vec<PathBuf> {
    let is_ours = data.file_name().is_some_and(|name| name == ".windlass");
    data.parent().filter(|_| is_ours).map(Path::to_owned).into_iter().collect()
}
