//! The output of jobs: one file per run under `logs/`, to which every line is appended as it arrives.
//!
//! Nothing here is flushed and nothing relies on it. Appended lines survive the end of the process; a power failure
//! may lose the last ones, or leave an unreadable line. Unreadable lines are skipped and counted.

use crate::private;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use windlass_engine::{Path, RunId, Timestamp};

/// The maximum output kept for one delivery of a job.
pub const JOB_BYTES_MAX: u64 = 64 << 20;

/// A longer line was not written here.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Above this number of jobs, counters of jobs with little output are dropped.
const COUNTED_MAX: usize = 4096;
const LITTLE_BYTES: u64 = 64 << 10;

/// Lines that arrive together share one line of the file up to this size.
const TOGETHER_BYTES_MAX: usize = 16 << 10;

/// Output of a job: a line, or a piece of a long one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    pub path: Path,
    pub attempt: u32,
    pub delivery: u32,
    pub at: Timestamp,
    pub stream: Printing,
    /// As printed; empty if the rest was left out.
    pub bytes: Vec<u8>,
    /// The output exceeds the limit for one job; this entry stands for the rest.
    pub cut: bool,
}

impl Printed {
    /// Whether two entries have the same source and time, and both or neither are text.
    fn continues_with(&self, next: &Self) -> bool {
        let by = |line: &Self| (line.attempt, line.delivery, line.at, line.stream, line.cut);
        let is_text = |line: &Self| std::str::from_utf8(&line.bytes).is_ok();
        by(self) == by(next)
            && self.path == next.path
            && self.bytes.len() + next.bytes.len() <= TOGETHER_BYTES_MAX
            && is_text(self) == is_text(next)
    }

    /// Line by line.
    fn lines(self) -> VecDeque<Self> {
        if self.bytes.is_empty() {
            return VecDeque::from([self]);
        }
        let bare = Self { bytes: Vec::new(), ..self.clone() };
        let lines = self.bytes.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| Self { bytes: line.to_vec(), ..bare.clone() }).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Printing {
    Stdout,
    Stderr,
}

/// A line of the file. The path comes first, so that the lines of a step can be recognized by their prefix.
#[derive(Serialize, Deserialize)]
struct Written {
    path: Path,
    attempt: u32,
    delivery: u32,
    at: Timestamp,
    stream: Printing,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// For output that is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

impl From<Printed> for Written {
    fn from(printed: Printed) -> Self {
        let Printed { path, attempt, delivery, at, stream, bytes, cut } = printed;
        let (text, hex) = match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(HEXLOWER.encode(error.as_bytes()))),
        };
        Self { path, attempt, delivery, at, stream, text, hex, cut }
    }
}

impl Written {
    fn read(line: &[u8]) -> Option<Printed> {
        let Self { path, attempt, delivery, at, stream, text, hex, cut } =
            serde_json::from_slice(line).ok()?;
        let bytes = match (text, hex) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(hex)) => HEXLOWER.decode(hex.as_bytes()).ok()?,
            (None, None) => return None,
        };
        Some(Printed { path, attempt, delivery, at, stream, bytes, cut })
    }
}

/// The logs of a data folder.
#[derive(Clone, Debug)]
pub struct Logs {
    folder: PathBuf,
}

impl Logs {
    pub fn of(data: &std::path::Path) -> Self {
        Self { folder: data.join("logs") }
    }

    /// Where the output of a run is stored. The file may not exist.
    pub fn file(&self, run: &RunId) -> PathBuf {
        self.folder.join(format!("{run}.jsonl"))
    }

    /// Opens the log of a run for appending. If the run is `new`, removes output of another run with that name whose
    /// start never completed.
    pub fn writer(&self, run: &RunId, new: bool) -> LogWriter {
        LogWriter { file: self.file(run), open: None, new, damaged: false, counted: HashMap::new() }
    }

    /// The output of a run; `None` if there is none.
    pub fn reader(&self, run: &RunId) -> std::io::Result<Option<LogReader>> {
        match File::open(self.file(run)) {
            Ok(file) => Ok(Some(LogReader::new(file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug)]
pub struct LogWriter {
    file: PathBuf,
    /// Opened with the first line.
    open: Option<File>,
    new: bool,
    /// The last line may be incomplete.
    damaged: bool,
    /// Bytes printed by jobs that may print more.
    counted: HashMap<(Path, u32, u32), u64>,
}

impl LogWriter {
    /// Appends lines. On an error they are lost, and the next ones are tried again.
    pub fn append(&mut self, lines: impl IntoIterator<Item = Printed>) -> std::io::Result<()> {
        let mut text = Vec::new();
        let mut write =
            |line: Printed| serde_json::to_writer(&mut text, &Written::from(line)).map(|()| text.push(b'\n'));
        let mut together: Option<Printed> = None;
        for line in lines.into_iter().filter_map(|line| self.within_limit(line)) {
            match &mut together {
                Some(before) if before.continues_with(&line) => before.bytes.extend_from_slice(&line.bytes),
                Some(_) | None => together.replace(line).map_or(Ok(()), &mut write)?,
            }
        }
        together.map_or(Ok(()), &mut write)?;
        if text.is_empty() {
            return Ok(());
        }
        let written = self.opened().and_then(|mut file| file.write_all(&text));
        if written.is_err() {
            (self.open, self.damaged) = (None, true);
        }
        written
    }

    /// The line, a note that nothing is kept from here on, or nothing.
    fn within_limit(&mut self, line: Printed) -> Option<Printed> {
        if self.counted.len() >= COUNTED_MAX {
            self.counted.retain(|_, bytes| *bytes > LITTLE_BYTES);
        }
        let key = (line.path.clone(), line.attempt, line.delivery);
        let bytes = self.counted.entry(key).or_default();
        let before = std::mem::replace(bytes, bytes.saturating_add(line.bytes.len() as u64));
        match (before > JOB_BYTES_MAX, *bytes > JOB_BYTES_MAX) {
            (true, _) => None,
            (false, true) => Some(Printed { bytes: Vec::new(), cut: true, ..line }),
            (false, false) => Some(line),
        }
    }

    fn opened(&mut self) -> std::io::Result<&File> {
        if self.open.is_none() {
            if let Some(folder) = self.file.parent() {
                private::create_folder(folder)?;
            }
            if std::mem::take(&mut self.new) {
                private::create(&self.file)?;
            }
            let mut file = private::options().create(true).append(true).read(true).open(&self.file)?;
            // A crash may have left half a line.
            if std::mem::take(&mut self.damaged) || !ends_with_newline(&mut file)? {
                file.write_all(b"\n")?;
            }
            self.open = Some(file);
        }
        Ok(self.open.as_ref().expect("it was opened above"))
    }
}

fn ends_with_newline(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Reads from the beginning. At the end it can be called again for more.
#[derive(Debug)]
pub struct LogReader {
    file: BufReader<File>,
    /// The beginning of a line whose end was not there yet.
    line: Vec<u8>,
    /// Entries of the last line that were not returned yet.
    read: VecDeque<Printed>,
    /// The number of unreadable lines.
    pub damaged: u64,
}

impl LogReader {
    fn new(file: File) -> Self {
        let file = BufReader::with_capacity(256 << 10, file);
        Self { file, line: Vec::new(), read: VecDeque::new(), damaged: 0 }
    }

    /// Starts from the beginning again.
    pub fn rewind(&mut self) -> std::io::Result<()> {
        (self.line, self.read, self.damaged) = (Vec::new(), VecDeque::new(), 0);
        self.file.rewind()
    }
}

impl Iterator for LogReader {
    type Item = Printed;

    fn next(&mut self) -> Option<Printed> {
        loop {
            if let Some(printed) = self.read.pop_front() {
                return Some(printed);
            }
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len() as u64);
            // A file that cannot be read any further has ended.
            let _ = self.file.by_ref().take(room).read_until(b'\n', &mut self.line);
            let whole = self.line.ends_with(b"\n");
            if !whole && self.line.len() as u64 == LINE_BYTES_MAX {
                // The rest of it is not one of our lines either.
                self.line.clear();
                self.damaged += 1;
                continue;
            }
            if !whole {
                return None;
            }
            let line = std::mem::take(&mut self.line);
            match Written::read(&line) {
                Some(printed) => self.read = printed.lines(),
                None if line.trim_ascii().is_empty() => {}
                None => self.damaged += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::new("r").expect("good")
    }

    /// An empty folder for one test.
    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("windlass-logs-{}-{test}", std::process::id()));
        // The folder may not exist.
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn line(attempt: u32, bytes: &[u8]) -> Printed {
        let path = Path::default().child("a".into(), None);
        let (delivery, at, stream) = (1, Timestamp(7), Printing::Stdout);
        Printed { path, attempt, delivery, at, stream, bytes: bytes.to_vec(), cut: false }
    }

    fn read(logs: &Logs) -> (Vec<Printed>, u64) {
        let mut reader = logs.reader(&run()).expect("readable").expect("there");
        let lines = reader.by_ref().collect();
        (lines, reader.damaged)
    }

    #[test]
    fn appended_output_is_read_in_order() {
        let logs = Logs::of(&folder("order"));
        assert!(logs.reader(&run()).expect("readable").is_none());
        let (plain, bytes) = (line(1, b"one\n"), line(1, b"\xff\x00\n"));
        let lines = [
            plain.clone(),
            plain,
            line(1, b"\n"),
            bytes,
            line(2, "zw\u{1b}[0m\n".as_bytes()),
            line(2, b"end"),
        ];
        logs.writer(&run(), true).append(lines[..4].to_vec()).expect("written");
        assert_eq!(std::fs::read_to_string(logs.file(&run())).expect("text").lines().count(), 2);
        logs.writer(&run(), false).append(lines[4..].to_vec()).expect("written");
        assert_eq!(read(&logs), (lines.to_vec(), 0));
        logs.writer(&run(), true).append([line(1, b"again\n")]).expect("written");
        assert_eq!(read(&logs), (vec![line(1, b"again\n")], 0));
    }

    #[test]
    fn half_a_line_is_skipped_and_more_can_arrive() {
        let logs = Logs::of(&folder("half"));
        logs.writer(&run(), true).append([line(1, b"one\n")]).expect("written");
        let mut file = private::options().append(true).open(logs.file(&run())).expect("there");
        file.write_all(b"{\"path\":[\"a\"").expect("written");
        let mut reader = logs.reader(&run()).expect("readable").expect("there");
        assert_eq!(reader.by_ref().collect::<Vec<_>>(), [line(1, b"one\n")]);
        logs.writer(&run(), false).append([line(2, b"two\n")]).expect("written");
        assert_eq!(reader.by_ref().collect::<Vec<_>>(), [line(2, b"two\n")]);
        assert_eq!(reader.damaged, 1);
        file.write_all(&vec![0; 3 << 20]).expect("written");
        logs.writer(&run(), false).append([line(3, b"three\n")]).expect("written");
        assert_eq!(reader.by_ref().collect::<Vec<_>>(), [line(3, b"three\n")]);
    }

    #[test]
    fn output_of_one_delivery_is_limited() {
        let logs = Logs::of(&folder("limit"));
        let mut writer = logs.writer(&run(), true);
        let much = vec![b'x'; 8 << 20];
        let kept = |attempt| {
            let lines =
                (0..9).map(move |_| line(attempt, b"")).map(|line| Printed { bytes: much.clone(), ..line });
            lines.collect::<Vec<_>>()
        };
        let mut limited = |lines: Vec<Printed>| {
            lines
                .into_iter()
                .filter_map(|line| writer.within_limit(line))
                .map(|line| line.cut)
                .collect::<Vec<_>>()
        };
        let lines = kept(1);
        assert_eq!(limited(lines.clone()), [vec![false; 8], vec![true]].concat());
        assert!(limited(lines).is_empty());
        assert_eq!(limited(vec![line(2, b"another attempt")]), [false]);
    }
}
