//! Files that tools hand over. What the output of a DCC-MCP tool lists under `file_refs` as content or as a path is kept in the data folder
//! under the hash of its content, and the entry becomes a reference to it.

use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_engine::{Job, Outcome, Timestamp, Work};
use windlass_ir::Value;
use windlass_ir::expr::ResultShapes;
use windlass_ir::value::Map;
use windlass_store::{private, to_hex};

/// Where artefacts are kept.
#[derive(Clone, Debug)]
pub struct Artefacts {
    /// Nowhere, where nothing is kept: then an artefact has only its address.
    folder: Option<PathBuf>,
    /// What the paths that tools name are counted from.
    directory: PathBuf,
}

/// Makes the names of unfinished files differ within this process.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

impl Artefacts {
    pub fn new(data: &Path, directory: &Path) -> Self {
        let folder = (!data.as_os_str().is_empty()).then(|| data.join("artefacts"));
        Self { folder, directory: directory.to_owned() }
    }

    /// Whether the output of a job may hand files over.
    pub fn concern(job: &Job) -> bool {
        job.results == ResultShapes::Dcc && matches!(job.work.work, Work::Tool { .. })
    }

    /// Keeps what an outcome hands over. What cannot be kept stays as it was, and says why.
    pub fn keep(&self, outcome: Outcome, at: Timestamp) -> Outcome {
        let Outcome::Done(Value::Map(output)) = outcome else { return outcome };
        let mut output = Arc::unwrap_or_clone(output);
        self.keep_listed(&mut output, at);
        if let Some(Value::Map(context)) = output.get_mut("context") {
            self.keep_listed(Arc::make_mut(context), at);
        }
        Outcome::Done(Value::Map(Arc::new(output)))
    }

    fn keep_listed(&self, output: &mut Map, at: Timestamp) {
        if let Some(Value::List(entries)) = output.get_mut("file_refs") {
            *entries = entries.iter().map(|entry| self.keep_entry(entry, at)).collect();
        }
    }

    fn keep_entry(&self, entry: &Value, at: Timestamp) -> Value {
        let Value::Map(given) = entry else { return entry.clone() };
        let text = |key: &str| given.get(key).and_then(Value::as_str);
        let kept = match (text("uri"), text("inline_b64"), text("path")) {
            (Some(_), _, _) | (None, None, None) => return entry.clone(),
            (None, Some(content), _) => from_base64(content)
                .ok_or_else(|| "`inline_b64` is no base64".to_owned())
                .and_then(|content| self.put(&mut content.as_slice()).map_err(|error| error.to_string())),
            (None, None, Some(path)) => {
                let read = File::open(self.directory.join(path)).and_then(|mut file| self.put(&mut file));
                read.map_err(|error| format!("{path}: {error}"))
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
        Value::Map(Arc::new(entry))
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

    fn kept(entry: &str) -> serde_json::Value {
        let artefacts = Artefacts::new(Path::new(""), Path::new(""));
        let output =
            serde_json::from_str(&format!(r#"{{"context": {{"file_refs": [{entry}]}}}}"#)).expect("JSON");
        let Outcome::Done(output) = artefacts.keep(Outcome::Done(output), Timestamp::default()) else {
            panic!()
        };
        output.to_json().expect("no secret")["context"]["file_refs"][0].clone()
    }

    #[test]
    fn what_cannot_be_kept_stays_and_says_why() {
        assert_eq!(kept("7"), 7);
        assert_eq!(kept(r#"{"uri": "x", "path": "y"}"#), serde_json::json!({"uri": "x", "path": "y"}));
        assert_eq!(kept(r#"{"inline_b64": "*"}"#)["not_kept"], "`inline_b64` is no base64");
        let missing = kept(r#"{"path": "/nowhere/at/all"}"#);
        assert!(
            missing["not_kept"].as_str().is_some_and(|why| why.starts_with("/nowhere/at/all: ")),
            "{missing}"
        );
        assert_eq!(missing["path"], "/nowhere/at/all");
    }
}
