//! Files that tools hand over. What the output of a DCC-MCP tool lists under `file_refs` as content or as a path is kept in the data folder
//! under the hash of its content, and the entry becomes a reference to it.

use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_engine::{Failure, Job, Outcome, Timestamp, Work, class};
use windlass_ir::Value;
use windlass_ir::expr::ResultShapes;
use windlass_ir::value::Map;
use windlass_store::{private, to_hex};

/// Where artefacts are kept.
#[derive(Clone, Debug)]
pub struct Artefacts {
    /// Nowhere, where nothing is kept: then an artefact has only its address.
    folder: Option<PathBuf>,
    /// The folder that the step works in. Only files inside it can be kept.
    directory: PathBuf,
}

/// Makes the names of unfinished files differ within this process.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

impl Artefacts {
    pub fn new(data: &Path, directory: &Path) -> Self {
        let folder = (!data.as_os_str().is_empty()).then(|| data.join("artefacts"));
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        Self { folder, directory: directory.to_owned() }
    }

    /// Whether the output of a job may hand files over.
    pub fn concern(job: &Job) -> bool {
        job.results == ResultShapes::Dcc && matches!(job.work.work, Work::Tool { .. })
    }

    /// Keeps what an outcome hands over. A file that cannot be read stays as it was, and says why; the step fails if it names
    /// something that it must not hand over.
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
                .and_then(|content| self.put(&mut content.as_slice()).map_err(|error| error.to_string())),
            (None, None, Some(path)) => {
                let opened = open_inside(&self.directory, Path::new(path));
                match opened.and_then(|mut file| self.put(&mut file).map_err(Unopened::Failed)) {
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
            "the tool handed over `{path}`, which {why}; a tool can only hand over regular files in {}",
            self.directory.display()
        );
        Failure::new(class::CONTRACT_VIOLATION, message).in_field("file_refs")
    }

    /// The hash and the length of what was put. When this has returned it is there after any crash.
    fn put(&self, content: &mut dyn io::Read) -> io::Result<(String, u64)> {
        let Some(folder) = &self.folder else { return copy(content, &mut io::sink()) };
        private::create_folder(folder)?;
        let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("unfinished-{}-{number}", std::process::id()));
        let written = private::create(&draft).and_then(|mut file| {
            let put = copy(content, &mut file)?;
            file.sync_all()?;
            fs::rename(&draft, folder.join(&put.0))?;
            File::open(folder)?.sync_all()?;
            Ok(put)
        });
        if written.is_err() {
            // It may not even exist; the error that matters is on its way.
            drop(fs::remove_file(&draft));
        }
        written
    }
}

/// Why a file is not open.
enum Unopened {
    /// A tool must not hand it over.
    Refused(&'static str),
    Failed(io::Error),
}

const OUTSIDE: &str = "is outside the working folder of the step";
const NOT_A_FILE: &str = "is not a regular file";

/// Opens a regular file inside a folder. Links are followed as long as they stay inside, and opening never blocks.
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

/// The kernel checks every part of the path while it opens the file, so that no one can swap a part after the check.
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
        // A kernel before 5.6, or one that a sandbox keeps from doing this.
        Err(Errno::NOSYS | Errno::PERM) => open_checked(folder, path),
        Err(error) => Err(Unopened::Failed(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
use open_checked as open_beneath;

/// The same where the system cannot do it in one step.
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
            return Ok((to_hex(&hash.finalize()), bytes));
        }
        hash.update(&part[..read]);
        to.write_all(&part[..read])?;
        bytes += read as u64;
    }
}

/// The standard alphabet; what stands at the end to fill up may be left out.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let filled = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = &digits[..digits.len() - filled];
    if filled > 2 || digits.len() % 4 == 1 || filled > 0 && !(digits.len() + filled).is_multiple_of(4) {
        return None;
    }
    let mut content = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let bits = group.iter().try_fold(0, |bits, byte| Some(bits << 6 | digit(*byte)?))?;
        let bytes = (bits << (6 * (4 - group.len()))).to_be_bytes();
        content.extend_from_slice(&bytes[1..group.len()]);
    }
    Some(content)
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

    /// A folder of its own for a test, with `in.txt` and a folder `sub` in it, beside a file that is not in it.
    fn folder(test: &str) -> PathBuf {
        let around = std::env::temp_dir().join(format!("windlass-artefacts-{test}-{}", std::process::id()));
        let folder = around.join("work");
        drop(fs::remove_dir_all(&around));
        fs::create_dir_all(folder.join("sub")).expect("a writable folder");
        fs::write(folder.join("in.txt"), "inside").expect("writable");
        fs::write(around.join("private.key"), "outside").expect("writable");
        folder
    }

    fn keep(folder: &Path, entry: &str) -> Result<serde_json::Value, Failure> {
        let artefacts = Artefacts::new(&folder.join("data"), folder);
        let output =
            serde_json::from_str(&format!(r#"{{"context": {{"file_refs": [{entry}]}}}}"#)).expect("JSON");
        match artefacts.keep(Outcome::Done(output), Timestamp::default()) {
            Outcome::Done(output) => {
                Ok(output.to_json().expect("no secret")["context"]["file_refs"][0].clone())
            }
            Outcome::Failed(failure) => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_cannot_be_kept_stays_and_says_why() {
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

    #[cfg(unix)]
    #[test]
    fn only_regular_files_inside_the_folder_are_kept() {
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
