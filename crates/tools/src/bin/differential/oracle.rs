//! The real program, in a process of its own that answers one line of JSON with another.

use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Oracle {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    pub fn start(python: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/differential/oracle.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; `make differential` installs it", python.display()));
        let questions = child.stdin.take().expect("it is a pipe");
        let answers = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, questions, answers }
    }

    pub fn ask(&mut self, request: &Json) -> Json {
        writeln!(self.questions, "{request}").expect("the oracle listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the oracle answers");
        let answer: Json = serde_json::from_str(&readable(&line))
            .unwrap_or_else(|error| panic!("the oracle said {line:?} ({error}) to {request}"));
        match &answer["answer"] {
            Json::Null => panic!("the oracle broke ({answer}) at {request}"),
            answer => answer.clone(),
        }
    }

    pub fn expressions(&mut self, context: &Json, texts: &[String]) -> Vec<Json> {
        let answer = self.ask(&json!({"ask": "expressions", "context": context, "texts": texts}));
        answer.as_array().expect("an answer for each").clone()
    }
}

/// Python has texts with half a surrogate pair in them; they become texts that say so.
fn readable(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("\\u") {
        let backslashes = rest[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        let unit = rest.get(at + 2..at + 6).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let low = rest.get(at + 6..at + 12).and_then(|next| next.strip_prefix("\\u"));
        let low = low.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let (keep, take) = match (backslashes % 2, unit, low) {
            (0, Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (true, 12),
            (0, Some(0xd800..=0xdfff), _) => (false, 6),
            (_, _, _) => (true, 2),
        };
        out.push_str(&rest[..at]);
        out.push_str(if keep { &rest[at..at + take] } else { "<half a surrogate pair>" });
        rest = &rest[at + take..];
    }
    out.push_str(rest);
    out
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It ends by itself once its input is closed; this only hurries it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
