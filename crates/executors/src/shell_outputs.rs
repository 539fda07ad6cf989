//! The second channel for outputs of a command: a file that it appends to, as lines `name=value`, as blocks
//! `name<<END`, or as one JSON object.

use crate::process::exhausted;
use crate::redact::Redactor;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_engine::{Failure, class};
use windlass_ir::Value;
use windlass_ir::expr::is_name;
use windlass_ir::value::Map;
use windlass_ir::workflow::OUTPUT_FILE;

/// The maximum size of the file.
const BYTES_MAX: u64 = 1024 * 1024;

/// The file of one job, removed when it is dropped.
pub struct OutputFile(PathBuf);

impl OutputFile {
    /// An empty file that only this user can read. `folder` must be absolute, because the command may run anywhere.
    pub fn create(folder: &Path) -> Result<Self, Failure> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let failed = |error: std::io::Error| {
            let this = format!("create a file for outputs in `{}`", folder.display());
            exhausted(&this, &error)
                .unwrap_or_else(|| Failure::new(class::TRANSIENT, format!("cannot {this}: {error}")))
        };
        own_folder(folder).map_err(failed)?;
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("windlass-output-{}-{number}", std::process::id()));
            match new_file(&path) {
                Ok(_) => return Ok(Self(path)),
                // Left by an earlier process with the same id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The outputs in it, without secrets, or why it cannot be read.
    pub fn read(&self, redactor: &Redactor) -> Result<Map, String> {
        let found = self.bytes()?;
        let text = String::from_utf8(found)
            .map_err(|error| format!("line {} of ${OUTPUT_FILE} is not UTF-8", line_of(&error)))?;
        // A secret of several lines must not come apart, and one that only JSON escapes must not come through.
        let text = redactor.text(&text);
        match redactor.value(&Value::Map(parse(&text)?.into())) {
            Value::Map(outputs) => Ok((*outputs).clone()),
            _ => Ok(Map::new()),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        let unreadable = |error: std::io::Error| format!("${OUTPUT_FILE} cannot be read: {error}");
        match fs::symlink_metadata(&self.0) {
            Ok(found) if found.is_file() => {}
            Ok(_) => {
                return Err(format!(
                    "${OUTPUT_FILE} is no longer a file: append to it instead of replacing it"
                ));
            }
            // A command that removes it leaves nothing.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error)),
        }
        let mut bytes = Vec::new();
        let file = File::open(&self.0).map_err(unreadable)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        match bytes.len() as u64 > BYTES_MAX {
            true => Err(format!(
                "${OUTPUT_FILE} is larger than {BYTES_MAX} bytes: write large results to a file of your own and output its path"
            )),
            false => Ok(bytes),
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        // The command may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Creates the folder if it does not exist, for this user only.
fn own_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(unix)]
fn new_file(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn new_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn line_of(error: &std::string::FromUtf8Error) -> usize {
    let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The outputs in a text. If a name occurs twice, the last value counts.
fn parse(text: &str) -> Result<Map, String> {
    if text.trim_start().starts_with('{') {
        return match serde_json::from_str::<Value>(text) {
            Ok(Value::Map(outputs)) => Ok((*outputs).clone()),
            Ok(_) => Err(format!("${OUTPUT_FILE} is JSON, but not an object")),
            Err(error) => Err(format!(
                "line {} of ${OUTPUT_FILE} is not valid JSON: write one object and nothing else",
                error.line()
            )),
        };
    }
    let mut outputs = Map::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        let problem = |problem: &str| format!("line {number} of ${OUTPUT_FILE} {problem}");
        let (name, value) = match (line.find('='), line.find("<<")) {
            (equals, Some(block)) if equals.is_none_or(|equals| block < equals) => {
                let end = &line[block + 2..];
                if end.is_empty() {
                    return Err(problem("names no end of its block: write `name<<END`"));
                }
                let mut inside = Vec::new();
                loop {
                    match lines.next() {
                        Some((_, line)) if line == end => break,
                        Some((_, line)) => inside.push(line),
                        None => return Err(problem("starts a block that does not end")),
                    }
                }
                (&line[..block], inside.join("\n"))
            }
            (Some(equals), _) => (&line[..equals], line[equals + 1..].to_owned()),
            (None, _) => return Err(problem("is neither `name=value` nor `name<<END`")),
        };
        if !is_name(name) {
            return Err(problem(
                "has an invalid name: use letters, digits, `_` and `-`, starting with a letter or `_`",
            ));
        }
        outputs.insert(name.into(), Value::text(value));
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = parse(text).map(|outputs| Value::Map(outputs.into()).to_json_text().expect("plain data"));
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text:?}");
    }

    #[test]
    fn three_forms() {
        check("", Ok("{}"));
        check("\n  \n", Ok("{}"));
        check(
            "a=1\nb = 2 \nurl=https://x/?q=1\n",
            Err(
                "line 2 of $WINDLASS_OUTPUT has an invalid name: use letters, digits, `_` and `-`, starting with a letter or `_`",
            ),
        );
        check(
            "a=1\r\nurl=https://x/?q=1<<2\nempty=\n",
            Ok(r#"{"a":"1","url":"https://x/?q=1<<2","empty":""}"#),
        );
        check("a=1\na=2", Ok(r#"{"a":"2"}"#));
        check("text<<END\none\n\ntwo=2\nEND\nb=3", Ok(r#"{"text":"one\n\ntwo=2","b":"3"}"#));
        check("none<<END\nEND", Ok(r#"{"none":""}"#));
        check(" {\"a\": [1, null],\n\"b c\": {}}\n", Ok(r#"{"a":[1,null],"b c":{}}"#));
    }

    #[test]
    fn problems_name_their_line() {
        check("a=1\nword", Err("line 2 of $WINDLASS_OUTPUT is neither `name=value` nor `name<<END`"));
        check("a<<END\nx", Err("line 1 of $WINDLASS_OUTPUT starts a block that does not end"));
        check("a<<\nx", Err("line 1 of $WINDLASS_OUTPUT names no end of its block: write `name<<END`"));
        check(
            "{\"a\": 1}\nb=2",
            Err("line 2 of $WINDLASS_OUTPUT is not valid JSON: write one object and nothing else"),
        );
        check(
            "{\"a\":\n",
            Err("line 2 of $WINDLASS_OUTPUT is not valid JSON: write one object and nothing else"),
        );
    }
}
