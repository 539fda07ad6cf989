//! Files that tools return. If an entry of `file_refs` in the output of a tool has content or a path, Windlass stores the file in
//! the data folder under the hash of its content and replaces the entry with a reference. A sweep removes files that no run
//! refers to.

use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_engine::{Failure, Job, Outcome, RunId, Timestamp, Work, class};
use windlass_ir::Value;
use windlass_ir::expr::RecordShape;
use windlass_ir::value::Map;
use windlass_store::private;

/// Stores the artifacts of one run.
#[derive(Clone, Debug)]
pub struct Artifacts {
    shelf: Arc<Shelf>,
    run: RunId,
    /// The working folder of the step. A tool can return only files inside it.
    directory: PathBuf,
}

/// The artifacts of a data folder.
#[derive(Debug, Default)]
pub struct Shelf {
    /// `None` for an engine in memory, which computes references but stores nothing.
    folder: Option<PathBuf>,
    fresh: Mutex<Fresh>,
}

/// Artifacts that the journal may not mention yet.
#[derive(Debug, Default)]
struct Fresh {
    /// The artifacts that each unfinished run has stored since it was started or resumed.
    runs: HashMap<RunId, HashSet<String>>,
    /// During a sweep: the artifacts of `runs`, and those stored since the sweep began.
    sweep: Option<HashSet<String>>,
}

/// Numbers the unfinished files of this process.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

impl Shelf {
    pub fn of(data: &Path) -> Arc<Self> {
        let folder = (!data.as_os_str().is_empty()).then(|| data.join("artefacts"));
        Arc::new(Self { folder, fresh: Mutex::default() })
    }

    fn fresh(&self) -> MutexGuard<'_, Fresh> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of an artifact, whether or not it exists.
    pub fn file(&self, hash: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(hash))
    }

    /// Forgets the new artifacts of a run that has ended. The journal now mentions those that matter.
    pub fn release(&self, run: &RunId) {
        self.fresh().runs.remove(run);
    }

    /// Begins a sweep and lists all files with their sizes. Call this before reading the journal.
    pub fn begin_sweep(&self) -> io::Result<Vec<(String, u64)>> {
        {
            let mut fresh = self.fresh();
            fresh.sweep = Some(fresh.runs.values().flatten().cloned().collect());
        }
        let entries = match self.folder.as_ref().map(fs::read_dir) {
            None => return Ok(Vec::new()),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Some(entries) => entries?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_hash(&name) || is_abandoned(&name) {
                files.push((name, entry.metadata()?.len()));
            }
        }
        Ok(files)
    }

    /// Ends the sweep: removes the files that are neither `used` nor fresh. Returns their number and total size.
    pub fn sweep(&self, files: &[(String, u64)], used: &HashSet<String>, dry_run: bool) -> (usize, u64) {
        // The lock stays held, so a run that stores one of these files again waits and then puts it back.
        let mut fresh = self.fresh();
        let stays = fresh.sweep.take().unwrap_or_default();
        let unused = files.iter().filter(|(name, _)| !used.contains(name) && !stays.contains(name));
        let gone = unused
            .filter(|(name, _)| dry_run || self.file(name).is_some_and(|file| fs::remove_file(file).is_ok()));
        gone.fold((0, 0), |(count, bytes), (_, size)| (count + 1, bytes + size))
    }

    /// Stores content for a run and returns its hash and length. The content is durable when this returns.
    pub fn put(&self, run: &RunId, content: &mut dyn io::Read) -> io::Result<(String, u64)> {
        let Some(folder) = &self.folder else { return copy(content, &mut io::sink()) };
        private::create_folder(folder)?;
        let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("{UNFINISHED_NAME}{}-{number}", std::process::id()));
        let written = private::create(&draft).and_then(|mut file| {
            let put = copy(content, &mut file)?;
            file.sync_all()?;
            self.add(run, &put.0);
            fs::rename(&draft, folder.join(&put.0))?;
            File::open(folder)?.sync_all()?;
            Ok(put)
        });
        if written.is_err() {
            // The first error matters, not this one.
            drop(fs::remove_file(&draft));
        }
        written
    }

    fn add(&self, run: &RunId, hash: &str) {
        let mut fresh = self.fresh();
        fresh.runs.entry(run.clone()).or_default().insert(hash.to_owned());
        fresh.sweep.iter_mut().for_each(|sweep| sweep.extend([hash.to_owned()]));
    }
}

const UNFINISHED_NAME: &str = "unfinished-";

fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether an earlier process left this file unfinished. Only the owner of the folder stores files.
fn is_abandoned(name: &str) -> bool {
    let own = format!("{UNFINISHED_NAME}{}-", std::process::id());
    name.starts_with(UNFINISHED_NAME) && !name.starts_with(&own)
}

/// The artifacts that events refer to, by URI or by digest. Text that only looks like a reference counts too.
pub fn named_in(bytes: &[u8]) -> impl Iterator<Item = String> {
    const BEFORE: &[u8] = b"sha256";
    let starts = bytes.windows(BEFORE.len()).enumerate().filter(|(_, window)| *window == BEFORE);
    starts.filter_map(|(at, _)| {
        let hash = bytes.get(at + BEFORE.len() + 1..at + BEFORE.len() + 65)?;
        std::str::from_utf8(hash).ok().filter(|hash| is_hash(hash)).map(str::to_owned)
    })
}

impl Artifacts {
    pub fn new(shelf: Arc<Shelf>, run: RunId, directory: &Path) -> Self {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        Self { shelf, run, directory: directory.to_owned() }
    }

    /// Whether the output of a job may contain files.
    pub fn apply_to(job: &Job) -> bool {
        job.rules.results.record == RecordShape::WithFiles && matches!(job.work.work, Work::Tool { .. })
    }

    /// Stores the files that an outcome returns. If a file cannot be read, its entry stays and says why. If a tool must not return
    /// a file, the step fails.
    pub fn keep(&self, outcome: Outcome, at: Timestamp) -> Outcome {
        let Outcome::Done(Value::Map(output)) = outcome else { return outcome };
        let mut output = Arc::unwrap_or_clone(output);
        let mut kept = self.keep_listed(&mut output, at);
        if let (Ok(()), Some(Value::Map(context))) = (&kept, output.get_mut("context")) {
            kept = self.keep_listed(Arc::make_mut(context), at);
        }
        match kept {
            Ok(()) => Outcome::Done(Value::Map(Arc::new(output))),
            Err(refused) => Outcome::Failed(refused),
        }
    }

    fn keep_listed(&self, output: &mut Map, at: Timestamp) -> Result<(), Failure> {
        if let Some(Value::List(entries)) = output.get_mut("file_refs") {
            *entries = entries.iter().map(|entry| self.keep_entry(entry, at)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    fn keep_entry(&self, entry: &Value, at: Timestamp) -> Result<Value, Failure> {
        let Value::Map(given) = entry else { return Ok(entry.clone()) };
        let text = |key: &str| given.get(key).and_then(Value::as_str);
        let kept = match (text("uri"), text("inline_b64"), text("path")) {
            (Some(_), _, _) | (None, None, None) => return Ok(entry.clone()),
            (None, Some(content), _) => from_base64(content)
                .ok_or_else(|| "`inline_b64` is no base64".to_owned())
                .and_then(|content| {
                    self.shelf.put(&self.run, &mut content.as_slice()).map_err(|error| error.to_string())
                }),
            (None, None, Some(path)) => {
                let opened = open_inside(&self.directory, Path::new(path));
                match opened
                    .and_then(|mut file| self.shelf.put(&self.run, &mut file).map_err(Unopened::Failed))
                {
                    Ok(kept) => Ok(kept),
                    Err(Unopened::Failed(error)) => Err(format!("{path}: {error}")),
                    Err(Unopened::Refused(why)) => return Err(self.refused(path, why)),
                }
            }
        };
        let mut entry = Map::clone(given);
        match kept {
            Ok((hash, bytes)) => {
                entry.retain(|key, _| !matches!(&**key, "inline_b64" | "path"));
                entry.insert("uri".into(), Value::text(format!("artefact://sha256/{hash}")));
                entry.insert("digest".into(), Value::text(format!("sha256:{hash}")));
                entry.insert("size_bytes".into(), Value::Int(bytes.try_into().unwrap_or(i64::MAX)));
                entry.insert("created_at".into(), Value::text(at.to_string()));
            }
            Err(why) => drop(entry.insert("not_kept".into(), Value::text(why))),
        }
        Ok(Value::Map(Arc::new(entry)))
    }

    fn refused(&self, path: &str, why: &str) -> Failure {
        let message = format!(
            "the tool returned `{path}`, which {why}; a tool can only return regular files in {}",
            self.directory.display()
        );
        Failure::new(class::CONTRACT_VIOLATION, message).in_field("file_refs")
    }
}

/// Why a file was not opened.
enum Unopened {
    /// A tool must not return it.
    Refused(&'static str),
    Failed(io::Error),
}

const OUTSIDE: &str = "is outside the working folder of the step";
const NOT_A_FILE: &str = "is not a regular file";

/// Opens a regular file inside a folder without blocking. Follows only links that stay inside.
fn open_inside(folder: &Path, path: &Path) -> Result<File, Unopened> {
    let real = folder.canonicalize().map_err(Unopened::Failed)?;
    let inside = match path.is_absolute() {
        true => path.strip_prefix(folder).or_else(|_| path.strip_prefix(&real)),
        false => Ok(path),
    };
    let file = open_beneath(&real, inside.map_err(|_| Unopened::Refused(OUTSIDE))?)?;
    match file.metadata().map_err(Unopened::Failed)?.is_file() {
        true => Ok(file),
        false => Err(Unopened::Refused(NOT_A_FILE)),
    }
}

/// The kernel checks every component while it opens the file, so no component can change after the check.
#[cfg(target_os = "linux")]
fn open_beneath(folder: &Path, path: &Path) -> Result<File, Unopened> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let folder_file = File::open(folder).map_err(Unopened::Failed)?;
    match openat2(&folder_file, path, flags, Mode::empty(), beneath) {
        Ok(file) => Ok(file.into()),
        Err(Errno::XDEV | Errno::LOOP) => Err(Unopened::Refused(OUTSIDE)),
        // A socket, or a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => Err(Unopened::Refused(NOT_A_FILE)),
        // The kernel is older than 5.6, or a sandbox forbids the call.
        Err(Errno::NOSYS | Errno::PERM) => open_checked(folder, path),
        Err(error) => Err(Unopened::Failed(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
use open_checked as open_beneath;

/// Checks and opens in two steps, where the system cannot do both at once.
fn open_checked(folder: &Path, path: &Path) -> Result<File, Unopened> {
    let real = folder.join(path).canonicalize().map_err(Unopened::Failed)?;
    if !real.starts_with(folder) {
        return Err(Unopened::Refused(OUTSIDE));
    }
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    options.open(real).map_err(Unopened::Failed)
}

fn copy(from: &mut dyn io::Read, to: &mut dyn io::Write) -> io::Result<(String, u64)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut part = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut part)?;
        if read == 0 {
            return Ok((HEXLOWER.encode(&hash.finalize()), bytes));
        }
        hash.update(&part[..read]);
        to.write_all(&part[..read])?;
        bytes += read as u64;
    }
}

/// Decodes the standard alphabet. Ignores whitespace; padding is optional.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let encoding = if text.contains('=') { BASE64 } else { BASE64_NOPAD };
    let mut tolerant = encoding.specification();
    tolerant.ignore.push_str(" \t\r\n");
    tolerant.check_trailing_bits = false;
    tolerant.encoding().ok()?.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        for (text, content) in
            [("", ""), ("aA==", "h"), ("aGU=", "he"), ("aGVs\nbG8=", "hello"), ("aGVsbG8", "hello")]
        {
            assert_eq!(from_base64(text).as_deref(), Some(content.as_bytes()), "{text}");
        }
        for bad in ["a", "a===", "aGU==", "a*==", "=", "aG=U"] {
            assert_eq!(from_base64(bad), None, "{bad}");
        }
    }

    /// A new folder for a test, with `in.txt` and a folder `sub` inside, and a private file next to it.
    fn folder(test: &str) -> PathBuf {
        let around = std::env::temp_dir().join(format!("windlass-artifacts-{test}-{}", std::process::id()));
        let folder = around.join("work");
        drop(fs::remove_dir_all(&around));
        fs::create_dir_all(folder.join("sub")).expect("a writable folder");
        fs::write(folder.join("in.txt"), "inside").expect("writable");
        fs::write(around.join("private.key"), "outside").expect("writable");
        folder
    }

    fn keep(folder: &Path, entry: &str) -> Result<serde_json::Value, Failure> {
        let run = RunId::new("r").expect("an id");
        let artifacts = Artifacts::new(Shelf::of(&folder.join("data")), run, folder);
        let output =
            serde_json::from_str(&format!(r#"{{"context": {{"file_refs": [{entry}]}}}}"#)).expect("JSON");
        match artifacts.keep(Outcome::Done(output), Timestamp::default()) {
            Outcome::Done(output) => {
                Ok(output.to_json().expect("no secret")["context"]["file_refs"][0].clone())
            }
            Outcome::Failed(failure) => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_entry_that_cannot_be_stored_says_why() {
        let folder = folder("stays");
        let kept = |entry: &str| keep(&folder, entry).expect("done");
        assert_eq!(kept("7"), 7);
        assert_eq!(kept(r#"{"uri": "x", "path": "y"}"#), serde_json::json!({"uri": "x", "path": "y"}));
        assert_eq!(kept(r#"{"inline_b64": "*"}"#)["not_kept"], "`inline_b64` is no base64");
        let missing = kept(r#"{"path": "sub/nowhere"}"#);
        assert!(
            missing["not_kept"].as_str().is_some_and(|why| why.starts_with("sub/nowhere: ")),
            "{missing}"
        );
        assert_eq!(missing["path"], "sub/nowhere");
    }

    #[test]
    fn a_sweep_keeps_new_artifacts_that_the_journal_does_not_mention() {
        let shelf = Shelf::of(&folder("sweep").join("data"));
        let [first, second] = ["first", "second"].map(|run| RunId::new(run).expect("an id"));
        let put = |run: &RunId, content: &str| shelf.put(run, &mut content.as_bytes()).expect("stored").0;
        let sweep = |meanwhile: &dyn Fn(), used: &[&String], dry_run: bool| {
            let files = shelf.begin_sweep().expect("a list");
            meanwhile();
            shelf.sweep(&files, &used.iter().map(|hash| (*hash).clone()).collect(), dry_run)
        };
        let [a, b] = ["a", "bb"].map(|content| put(&first, content));
        assert_eq!(sweep(&|| {}, &[], false), (0, 0), "the run has not ended");
        shelf.release(&first);
        assert_eq!(sweep(&|| {}, &[&a], true), (1, 2));
        assert_eq!(sweep(&|| {}, &[&a], false), (1, 2));
        assert!(!shelf.file(&b).expect("a file").exists());
        // Another run stores the same content while the sweep reads the journal, and ends before the sweep removes files.
        let again = || {
            put(&second, "a");
            shelf.release(&second);
        };
        assert_eq!(sweep(&again, &[], false), (0, 0));
        fs::write(shelf.file("unfinished-0-1").expect("a file"), "half").expect("written");
        assert_eq!(sweep(&|| {}, &[], false), (2, 5));
        assert_eq!(Shelf::of(Path::new("")).begin_sweep().expect("nothing"), []);
    }

    #[test]
    fn references_are_uris_and_digests() {
        let hash = "0123456789abcdef".repeat(4);
        let text = format!(
            r#"{{"uri":"artefact://sha256/{hash}","digest":"sha256:{hash}","x":"sha256/{}"}}"#,
            &hash[1..]
        );
        assert_eq!(named_in(text.as_bytes()).collect::<Vec<_>>(), [hash.clone(), hash]);
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_inside_the_folder_are_stored() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = folder("inside");
        symlink("in.txt", folder.join("link")).expect("writable");
        symlink("../../private.key", folder.join("sub/out")).expect("writable");
        symlink("..", folder.join("up")).expect("writable");
        mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("writable");
        let absolute = folder.join("in.txt").display().to_string();
        for path in ["in.txt", "sub/../in.txt", "link", &absolute] {
            let kept = keep(&folder, &format!(r#"{{"path": "{path}"}}"#)).expect(path);
            assert_eq!(kept["size_bytes"], 6, "{path}: {kept}");
            let hash = kept["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:")).expect(path);
            let stored = fs::metadata(folder.join("data/artefacts").join(hash)).expect("stored");
            assert_eq!(stored.permissions().mode() & 0o777, 0o600, "{path}");
        }
        let outside = folder.join("../private.key").display().to_string();
        let refused = [
            ("../private.key", OUTSIDE),
            ("sub/../../private.key", OUTSIDE),
            (&outside, OUTSIDE),
            ("/etc/passwd", OUTSIDE),
            ("sub/out", OUTSIDE),
            ("up/private.key", OUTSIDE),
            ("pipe", NOT_A_FILE),
            ("sub", NOT_A_FILE),
        ];
        for (path, why) in refused {
            let failure = keep(&folder, &format!(r#"{{"path": "{path}"}}"#)).expect_err(path);
            assert_eq!(&*failure.class, class::CONTRACT_VIOLATION, "{path}");
            assert!(failure.message.contains(&format!("`{path}`, which {why}")), "{path}: {failure:?}");
            assert!(open_checked(&folder, Path::new(path)).is_err() || why == NOT_A_FILE, "{path}");
        }
    }
}
