//! One stream of a process on its way to the outcome and to live viewers: redacted first, then split into lines and
//! kept up to a limit.

use crate::context::{Line, Output, Stream};
use crate::redact::{Flow, Redactor};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;
use windlass_engine::JobKey;

const CHUNK_BYTES: usize = 32 * 1024;

/// Longer lines are sent in pieces, so that a line without an end cannot fill the memory.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The maximum length of the last line in messages.
const LAST_LINE_BYTES_MAX: usize = 400;

/// Children of an exited process may hold its output open, perhaps for days. Their output is read for this long;
/// ordinary pipelines finish in a fraction of it.
pub const LINGER: Duration = Duration::from_millis(250);

/// After that, only the content of the pipe is read, which is at most this: the limit of Linux for a pipe without
/// root. So output of the process itself is never lost, even with a slow viewer.
const PIPE_BYTES_MAX: usize = 1024 * 1024;

pub struct Capture {
    job: JobKey,
    stream: Stream,
    output: Output,
    flow: Flow,
    /// The unfinished line.
    line: Vec<u8>,
    last_line: Vec<u8>,
    kept: Kept,
    /// As printed, for reading as data; empty while it is the same as `kept`.
    raw: Option<Kept>,
}

/// The first bytes of a stream.
struct Kept {
    bytes: Vec<u8>,
    bytes_max: usize,
    left_out: u64,
}

impl Kept {
    fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max, left_out: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes_max - self.bytes.len();
        let (fits, rest) = bytes.split_at(bytes.len().min(room));
        self.bytes.extend_from_slice(fits);
        self.left_out += rest.len() as u64;
    }

    /// Whether there is more than this many bytes.
    fn is_cut(&self, bytes_max: usize) -> bool {
        self.left_out > 0 || self.bytes.len() > bytes_max
    }

    fn whole(&self) -> Option<&[u8]> {
        (self.left_out == 0).then_some(&self.bytes)
    }

    /// Exactly as printed, as far as it is UTF-8. A separate line tells how much is missing.
    fn text(&self) -> String {
        if self.left_out == 0 {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        let (mut text, left_out) = self.cut();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[… {left_out} bytes left out]\n"));
        text
    }

    /// Without an incomplete character, and how many bytes are missing then.
    fn cut(&self) -> (String, u64) {
        let begun = if self.left_out == 0 { 0 } else { cut_character(&self.bytes) };
        let whole = self.bytes.len() - begun;
        let text = String::from_utf8_lossy(&self.bytes[..whole]).into_owned();
        (text, self.left_out + begun as u64)
    }
}

/// The number of bytes at the end that start an incomplete character.
fn cut_character(bytes: &[u8]) -> usize {
    let begins = bytes.iter().rev().take(3).position(|byte| byte & 0b1100_0000 != 0b1000_0000);
    let Some(back) = begins else { return 0 };
    let wanted = bytes[bytes.len() - 1 - back].leading_ones() as usize;
    if wanted > back + 1 { back + 1 } else { 0 }
}

impl Capture {
    pub fn new(job: JobKey, stream: Stream, output: Output, redactor: Redactor, bytes_max: usize) -> Self {
        let (line, last_line) = (Vec::new(), Vec::new());
        Self {
            job,
            stream,
            output,
            flow: Flow::new(redactor),
            line,
            last_line,
            kept: Kept::new(bytes_max),
            raw: None,
        }
    }

    /// Also keeps the output with its secrets. It never leaves this crate unredacted.
    #[must_use]
    pub fn with_raw(self) -> Self {
        let raw = Some(Kept::new(self.kept.bytes_max));
        Self { raw, ..self }
    }

    /// Reads until the end, or until the process has exited and its children have had their time.
    pub async fn pump(&mut self, mut pipe: impl AsyncRead + Unpin, exited: &CancellationToken) {
        let mut lingered = pin!(async {
            exited.cancelled().await;
            tokio::time::sleep(LINGER).await;
        });
        let mut chunk = vec![0; CHUNK_BYTES];
        // A pipe that cannot be read has ended.
        loop {
            // Random order: a child that never stops printing must not hide the timeout.
            let read = tokio::select! { read = pipe.read(&mut chunk) => read, () = &mut lingered => break };
            let Ok(bytes @ 1..) = read else { return self.finish().await };
            self.take(&chunk[..bytes]).await;
        }
        let mut left = PIPE_BYTES_MAX;
        while left > 0 {
            // Lets the reactor poll the pipe, which must not seem empty only because it was not polled yet.
            tokio::task::yield_now().await;
            let read =
                tokio::select! { biased; read = pipe.read(&mut chunk) => read, () = async {} => break };
            let Ok(bytes @ 1..) = read else { break };
            self.take(&chunk[..bytes]).await;
            left = left.saturating_sub(bytes);
        }
        self.finish().await;
    }

    async fn take(&mut self, bytes: &[u8]) {
        if let Some(raw) = &mut self.raw {
            raw.push(bytes);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        self.flow.push(bytes, &mut clean);
        self.kept.push(&clean);
        self.send(&clean).await;
    }

    async fn finish(&mut self) {
        let mut clean = Vec::new();
        self.flow.finish(&mut clean);
        self.kept.push(&clean);
        self.send(&clean).await;
        self.end_line().await;
    }

    async fn send(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut rest = part;
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(rest.len().min(LINE_BYTES_MAX - self.line.len()));
                self.line.extend_from_slice(piece);
                rest = more;
                if piece.ends_with(b"\n") || self.line.len() == LINE_BYTES_MAX {
                    self.end_line().await;
                }
            }
        }
    }

    async fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line);
        if bytes.is_empty() {
            return;
        }
        let shown = bytes.trim_ascii();
        if !shown.is_empty() {
            self.last_line.clear();
            self.last_line.extend_from_slice(&shown[..shown.len().min(LAST_LINE_BYTES_MAX)]);
        }
        self.output.send(Line { job: self.job.clone(), stream: self.stream, bytes }).await;
    }

    /// As text, up to this many bytes.
    pub fn head(&self, bytes_max: usize) -> String {
        if bytes_max >= self.kept.bytes.len() {
            return self.kept.text();
        }
        let mut head = Kept::new(bytes_max);
        head.push(&self.kept.bytes);
        head.left_out += self.kept.left_out;
        head.text()
    }

    /// All kept output as text, without an incomplete character at the end.
    pub fn cut(&self) -> String {
        self.kept.cut().0
    }

    /// The bytes that [`Self::head`] shows, if they are not text.
    pub fn base64(&self, bytes_max: usize) -> Option<String> {
        let bytes = &self.kept.bytes[..self.kept.bytes.len().min(bytes_max)];
        let whole = bytes.len() - if self.kept.is_cut(bytes_max) { cut_character(bytes) } else { 0 };
        std::str::from_utf8(&bytes[..whole]).is_err().then(|| data_encoding::BASE64.encode(bytes))
    }

    /// Whether more was printed than is kept.
    pub fn is_cut(&self) -> bool {
        self.kept.left_out > 0
    }

    /// Whether only blanks were printed.
    pub fn is_blank(&self) -> bool {
        self.last_line.is_empty()
    }

    /// The whole output with its secrets, if requested and within the limit.
    pub fn raw(&self) -> Option<&[u8]> {
        self.raw.as_ref().unwrap_or(&self.kept).whole()
    }

    /// The last line that is not blank.
    pub fn last_line(&self) -> Option<String> {
        let whole = self.last_line.len() - cut_character(&self.last_line);
        (whole > 0).then(|| String::from_utf8_lossy(&self.last_line[..whole]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{Path, RunId};

    /// Everything printed, with a limit of `bytes_max` bytes: the text kept, and the lines sent.
    async fn captured(printed: &[u8], bytes_max: usize) -> (String, Vec<Vec<u8>>) {
        let job =
            JobKey { run: RunId::new("r").expect("good"), path: Path::default(), attempt: 1, delivery: 1 };
        let (output, mut lines) = Output::channel(100);
        let mut capture = Capture::new(job, Stream::Stdout, output, Redactor::new([]), bytes_max);
        capture.pump(printed, &CancellationToken::new()).await;
        let text = capture.head(bytes_max);
        drop(capture);
        let mut sent = Vec::new();
        while let Some(line) = lines.recv().await {
            sent.push(line.bytes);
        }
        (text, sent)
    }

    #[tokio::test]
    async fn text_is_kept_up_to_its_limit() {
        let check = async |printed: &[u8], bytes_max: usize, expected: &str| {
            assert_eq!(captured(printed, bytes_max).await.0, expected);
        };
        check(b"", 8, "").await;
        check(b"one\ntwo\n", 8, "one\ntwo\n").await;
        check(b"one\ntwo\n3", 8, "one\ntwo\n[… 1 bytes left out]\n").await;
        check(b"123456789", 8, "12345678\n[… 1 bytes left out]\n").await;
        check("1234567ü9".as_bytes(), 8, "1234567\n[… 3 bytes left out]\n").await;
        check("12345ü".as_bytes(), 7, "12345ü").await;
        check(b"\xff\xfe!", 8, "\u{fffd}\u{fffd}!").await;
        check(b"\x80\x80\x80\x80\x80", 4, "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\n[… 1 bytes left out]\n").await;
    }

    #[tokio::test]
    async fn only_the_requested_part_is_shown() {
        let job =
            JobKey { run: RunId::new("r").expect("good"), path: Path::default(), attempt: 1, delivery: 1 };
        let mut capture = Capture::new(job, Stream::Stdout, Output::nowhere(), Redactor::new([]), 8);
        capture.pump(&b"123456789"[..], &CancellationToken::new()).await;
        assert_eq!(capture.head(100), "12345678\n[… 1 bytes left out]\n");
        assert_eq!(capture.head(3), "123\n[… 6 bytes left out]\n");
    }

    #[tokio::test]
    async fn a_flood_is_held_only_up_to_the_limit() {
        let job =
            JobKey { run: RunId::new("r").expect("good"), path: Path::default(), attempt: 1, delivery: 1 };
        let (bytes, bytes_max) = (200 * 1024 * 1024, 1024 * 1024);
        let mut capture = Capture::new(job, Stream::Stdout, Output::nowhere(), Redactor::new([]), bytes_max);
        capture.pump(tokio::io::repeat(b'x').take(bytes), &CancellationToken::new()).await;
        assert!(
            capture.kept.bytes.capacity() <= 2 * bytes_max && capture.line.capacity() <= 2 * LINE_BYTES_MAX
        );
        assert_eq!(capture.kept.left_out, bytes - bytes_max as u64);
        assert!(capture.is_cut());
    }

    #[tokio::test]
    async fn bytes_are_kept_only_if_they_are_not_text() {
        let check = async |printed: &[u8], bytes_max: usize, expected: Option<&str>| {
            let job = JobKey {
                run: RunId::new("r").expect("good"),
                path: Path::default(),
                attempt: 1,
                delivery: 1,
            };
            let mut capture = Capture::new(job, Stream::Stdout, Output::nowhere(), Redactor::new([]), 100);
            capture.pump(printed, &CancellationToken::new()).await;
            assert_eq!(capture.base64(bytes_max).as_deref(), expected, "{printed:?}");
        };
        check("ü".as_bytes(), 100, None).await;
        check("aü".as_bytes(), 2, None).await;
        check(b"a\xc3", 100, Some("YcM=")).await;
        check(b"\xffab", 2, Some("/2E=")).await;
    }

    #[tokio::test]
    async fn lines_are_sent_with_their_ends_and_long_ones_in_pieces() {
        let check =
            async |printed: &[u8], expected: &[&[u8]]| assert_eq!(captured(printed, 8).await.1, expected);
        check(b"", &[]).await;
        check(b"one\n\nthree", &[b"one\n", b"\n", b"three"]).await;
        let (full, long) = (vec![b'x'; LINE_BYTES_MAX], vec![b'x'; LINE_BYTES_MAX + 3]);
        check(&long, &[&full, b"xxx"]).await;
        check(&[&*full, b"\n"].concat(), &[&full, b"\n"]).await;
    }

    /// What is kept of a pipe that stays open although the process has exited, with a slow viewer.
    async fn left_open(pipe: impl AsyncRead + Unpin) -> usize {
        let job =
            JobKey { run: RunId::new("r").expect("good"), path: Path::default(), attempt: 1, delivery: 1 };
        let (output, mut lines) = Output::channel(1);
        let mut capture = Capture::new(job, Stream::Stdout, output, Redactor::new([]), usize::MAX);
        let exited = CancellationToken::new();
        exited.cancel();
        let watcher = tokio::spawn(async move {
            while lines.recv().await.is_some() {
                tokio::time::sleep(LINGER).await;
            }
        });
        capture.pump(pipe, &exited).await;
        let kept = capture.kept.bytes.len();
        drop(capture);
        watcher.await.expect("no panic");
        kept
    }

    #[tokio::test(start_paused = true)]
    async fn output_of_a_process_is_never_lost_and_its_children_do_not_delay_it() {
        let printed = vec![b'x'; 5 * CHUNK_BYTES];
        let (reader, mut writer) = tokio::io::duplex(printed.len());
        tokio::io::AsyncWriteExt::write_all(&mut writer, &printed).await.expect("it fits");
        assert_eq!(left_open(reader).await, printed.len());
        drop(writer);
        let endless = left_open(tokio::io::repeat(b'x')).await;
        assert!(endless >= PIPE_BYTES_MAX, "{endless}");
    }
}
