//! `windlass.toml`: the settings of a project, with one struct per section. Windlass reads only files that the user owns, and
//! reads them strictly: an unknown key is a fault. Users see all faults at once.

use crate::ownership::{current_user, described};
use crate::search::upwards;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IntoDeserializer as _, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_executors::TaskCommand;
use windlass_ir::Value;
use windlass_ir::source::{Position, Source};
use windlass_ir::suggest::nearest;

const NAME: &str = "windlass.toml";

/// Far longer than any file written by hand.
const BYTES_MAX: u64 = 1024 * 1024;

/// The key under which a run records its `windlass.toml`.
pub(crate) const RECORDED: &str = "config";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Absolute.
    pub file: PathBuf,
    /// The command of each task, by the name of the task.
    pub tasks: IndexMap<Arc<str>, TaskCommand>,
    pub limits: Limits,
    pub runs: Runs,
}

/// The section `limits`: how many may run at once. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    #[serde(deserialize_with = "count")]
    pub runs: Option<u32>,
    #[serde(deserialize_with = "count")]
    pub jobs: Option<u32>,
    /// Child processes.
    #[serde(deserialize_with = "count")]
    pub processes: Option<u32>,
}

/// The section `runs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Runs {
    pub recover: Recover,
}

/// How `windlass serve` treats unfinished runs when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recover {
    #[default]
    Resume,
    /// Marks them as interrupted until a user resumes them.
    Interrupt,
}

/// A task in the section `tasks`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Task {
    #[serde(deserialize_with = "command")]
    command: Option<TaskCommand>,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .faults.iter().map(|fault| fault.shown(.file)).collect::<Vec<_>>().join("\n"))]
pub struct BadConfig {
    pub file: PathBuf,
    /// At least one, in the order of the file.
    pub faults: Vec<Fault>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `None` if the fault concerns the whole file.
    pub place: Option<Position>,
    pub message: String,
}

impl Fault {
    fn shown(&self, file: &Path) -> String {
        let file = file.display();
        match self.place {
            Some(Position { line, column }) => format!("{file}:{line}:{column}: {}", self.message),
            None => format!("{file}: {}", self.message),
        }
    }
}

impl Config {
    /// The nearest file in the projects around these folders. Earlier folders take precedence.
    pub fn find(folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
        let folders = folders.into_iter().flat_map(|folder| upwards(&folder));
        folders.map(|folder| folder.join(NAME)).find(|file| file.is_file())
    }

    /// The file that a run was started with, if it still exists.
    pub fn recorded(about: &Value) -> Option<PathBuf> {
        let file = PathBuf::from(about.get(RECORDED)?.as_str()?);
        file.is_file().then_some(file)
    }

    pub fn read(file: &Path) -> Result<Self, BadConfig> {
        let bad = |message: String| BadConfig {
            file: file.to_owned(),
            faults: vec![Fault { place: None, message }],
        };
        let absolute = std::path::absolute(file).map_err(|error| bad(error.to_string()))?;
        let text = text_of(file, current_user()).map_err(bad)?;
        let Parsed { tasks, limits, runs } =
            parse(&text).map_err(|faults| BadConfig { file: file.to_owned(), faults })?;
        Ok(Self { file: absolute, tasks, limits, runs })
    }

    /// Checks the text of a file and counts its tasks.
    pub fn check(text: &str) -> Result<usize, Vec<Fault>> {
        parse(text).map(|parsed| parsed.tasks.len())
    }

    /// The folder that its commands run in.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }
}

fn text_of(path: &Path, user: u32) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    // Opening a pipe would wait for a writer.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    let owner = file.metadata().map_err(failed)?.uid();
    if owner != user {
        let (owner, user) = (described(owner), described(user));
        return Err(format!(
            "it belongs to {owner}, and its commands would run as {user}: put a `windlass.toml` of your own into a nearer folder, or change the owner with `chown`"
        ));
    }
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err("it is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8: save it as UTF-8".to_owned())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Parsed {
    tasks: IndexMap<Arc<str>, TaskCommand>,
    limits: Limits,
    runs: Runs,
}

fn parse(text: &str) -> Result<Parsed, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut parsed = Parsed::default();
    let mut reader = Reader { faults: Vec::new() };
    for error in &errors {
        let at = error.span().map_or(text.len(), |span| span.start);
        reader.say::<()>(at, format!("invalid TOML: {}", error.message()));
    }
    // The rest of a broken file would only cause misleading faults.
    for (key, value) in table.into_inner().into_iter().filter(|_| errors.is_empty()) {
        match &**key.get_ref() {
            "tasks" => parsed.tasks = reader.tasks(value),
            "limits" => parsed.limits = reader.section("limits", value),
            "runs" => parsed.runs = reader.section("runs", value),
            name => reader.unknown(key.span().start, "key", name, "", &["tasks", "limits", "runs"]),
        }
    }
    if reader.faults.is_empty() {
        return Ok(parsed);
    }
    reader.faults.sort();
    let source = Source::new(NAME, text);
    let placed = |(at, message): (usize, String)| {
        let place = Some(source.position(u32::try_from(at).unwrap_or(u32::MAX)));
        Fault { place, message }
    };
    Err(reader.faults.into_iter().map(placed).collect())
}

struct Reader {
    /// Each fault with its offset.
    faults: Vec<(usize, String)>,
}

const COMMAND_HELP: &str = r#"write `command = ["program", "argument"]`"#;

impl Reader {
    /// Reads a section. The fields of its type are the keys that it may have.
    fn section<'i, T: Deserialize<'i> + Default>(&mut self, name: &str, value: Spanned<DeValue<'i>>) -> T {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => self.table(&format!("`{name}`"), table, &span),
            _ => self.say(span.start, format!("`{name}` must be a table: write `[{name}]`")),
        }
    }

    fn tasks(&mut self, value: Spanned<DeValue<'_>>) -> IndexMap<Arc<str>, TaskCommand> {
        let start = value.span().start;
        let DeValue::Table(tasks) = value.into_inner() else {
            return self.say(start, "`tasks` must be a table: write `[tasks.\"NAME\"]` for each task".into());
        };
        let read = tasks.into_iter().filter_map(|(name, value)| {
            let (start, name) = (name.span().start, name.into_inner());
            Some((Arc::from(&*name), self.task(start, &name, value)?))
        });
        read.collect()
    }

    fn task(&mut self, start: usize, name: &str, value: Spanned<DeValue<'_>>) -> Option<TaskCommand> {
        let span = value.span();
        let DeValue::Table(task) = value.into_inner() else {
            let help = format!("write `[tasks.{name:?}]`, and under it `command = [\"program\"]`");
            return self.say(span.start, format!("the task `{name}` must be a table: {help}"));
        };
        if name.is_empty() {
            return self.say(start, "the name of a task cannot be empty".into());
        }
        for (part, inner) in &task {
            if let DeValue::Table(inner) = inner.get_ref() {
                let whole = format!("{name}.{}{}", part.get_ref(), rest_of_name(inner));
                let message = format!("put a name with dots in quotes: write `[tasks.{whole:?}]`");
                return self.say(part.span().start, message);
            }
        }
        let has_command = task.iter().any(|(key, _)| **key.get_ref() == *"command");
        let Task { command } = self.table(&format!("the task `{name}`"), task, &span);
        if !has_command {
            return self.say(start, format!("the task `{name}` has no command: {COMMAND_HELP}"));
        }
        command
    }

    /// Serde stops at the first fault. This removes the faulty key and reads the rest again, to report every fault.
    fn table<'i, T: Deserialize<'i> + Default>(
        &mut self,
        of: &str,
        mut table: DeTable<'i>,
        span: &Range<usize>,
    ) -> T {
        loop {
            let whole = Spanned::new(span.clone(), DeValue::Table(table.clone()));
            let error = match T::deserialize(whole.into_deserializer()) {
                Ok(read) => return read,
                Err(error) => error,
            };
            let at = error.span().map_or(span.start, |span| span.start);
            let has = |span: Range<usize>| span.contains(&at);
            let faulty = table.iter().find(|(key, value)| has(key.span()) || has(value.span()));
            let Some(key) = faulty.map(|(key, _)| key.get_ref().to_string()) else {
                return self.say(at, format!("{of}: {}", error.message()));
            };
            self.refused(at, of, &key, error.message());
            table = table.into_iter().filter(|(other, _)| **other.get_ref() != *key).collect();
        }
    }

    /// Rewrites Serde's message for a fault in the words of the user.
    fn refused(&mut self, at: usize, of: &str, key: &str, message: &str) {
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        match (message.split_once(", expected "), &*quoted) {
            (Some((found, _)), [word, known @ ..]) if found.starts_with("unknown field") => {
                self.unknown(at, "key", word, &format!(" in {of}"), known);
            }
            (Some((found, _)), [word, known @ ..]) if found.starts_with("unknown variant") => {
                self.unknown(at, "value", word, &format!(" for `{key}`"), known);
            }
            (Some((found, wanted)), _) => {
                let found = found.split_once(": ").map_or(found, |(_, found)| found);
                self.say::<()>(at, format!("`{key}` must be {wanted}, not {found}"));
            }
            (None, _) => self.say(at, format!("`{key}` {message}")),
        }
    }

    fn unknown(&mut self, at: usize, what: &str, word: &str, of: &str, known: &[&str]) {
        let hint = match nearest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.len() == 1 => format!("use `{}`", known[0]),
            None => format!("use one of `{}`", known.join("`, `")),
        };
        self.say::<()>(at, format!("unknown {what} `{word}`{of}; {hint}"));
    }

    fn say<T: Default>(&mut self, at: usize, message: String) -> T {
        self.faults.push((at, message));
        T::default()
    }
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Count;
    impl Visitor<'_> for Count {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number from 1 to {}", u32::MAX)
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<u32, E> {
            let count = u32::try_from(number).ok().filter(|count| *count > 0);
            count.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
        }
    }
    deserializer.deserialize_any(Count).map(Some)
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TaskCommand>, D::Error> {
    struct Command;
    impl<'de> Visitor<'de> for Command {
        type Value = TaskCommand;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(
                f,
                "a list of strings ({COMMAND_HELP}, or for a shell `command = [\"sh\", \"-c\", \"…\"]`)"
            )
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TaskCommand, A::Error> {
            let program = items.next_element()?.map(|Word(program)| program);
            let unnamed = || A::Error::custom(format!("names no program: {COMMAND_HELP}"));
            let program = program.filter(|program| !program.is_empty()).ok_or_else(unnamed)?;
            let mut arguments = Vec::new();
            while let Some(Word(argument)) = items.next_element()? {
                arguments.push(argument);
            }
            Ok(TaskCommand { program, arguments })
        }
    }
    deserializer.deserialize_any(Command).map(Some)
}

/// The program or an argument of a command.
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of strings (put each part in quotes)")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Word, E> {
                match text.contains('\0') {
                    true => Err(E::custom("must not contain NUL characters")),
                    false => Ok(Word(text.to_owned())),
                }
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// The rest of a name with dots that is missing its quotes.
fn rest_of_name(mut table: &DeTable<'_>) -> String {
    let mut rest = String::new();
    while let Some((part, DeValue::Table(inner))) =
        table.iter().next().map(|(key, value)| (key.get_ref(), value.get_ref()))
    {
        rest.push('.');
        rest.push_str(part);
        table = inner;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(text: &str, expected: &[&str]) {
        let faults = parse(text).expect_err(text);
        let shown: Vec<String> = faults.iter().map(|fault| fault.shown("w".as_ref())).collect();
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn commands_and_limits_are_read() {
        let text = r#"
            [tasks."git.fetch"]
            command = ["./fetch", "-q", ""]
            [tasks.lint]
            command = ['lint']
            [limits]
            runs = 1_000
            processes = 0x10
            [runs]
            recover = "interrupt"
        "#;
        let Parsed { tasks, limits, runs } = parse(text).expect("good");
        let command = |program: &str, arguments: &[&str]| TaskCommand {
            program: program.to_owned(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        };
        let expected = [
            (Arc::from("git.fetch"), command("./fetch", &["-q", ""])),
            (Arc::from("lint"), command("lint", &[])),
        ];
        assert_eq!(tasks, IndexMap::from(expected));
        assert_eq!(limits, Limits { runs: Some(1_000), jobs: None, processes: Some(16) });
        assert_eq!(runs.recover, Recover::Interrupt);
        assert_eq!(parse("").expect("good"), Parsed::default());
        assert_eq!(parse("# nothing\n[tasks]\n[limits]\n[runs]\n").expect("good"), Parsed::default());
    }

    #[test]
    fn every_fault_has_a_location_and_a_hint() {
        bad("task = 1", &["w:1:1: unknown key `task`; did you mean `tasks`?"]);
        bad("\nfoo = 1", &["w:2:1: unknown key `foo`; use one of `tasks`, `limits`, `runs`"]);
        bad(
            "[tasks.a]\ncomand = ['x']",
            &[
                "w:1:8: the task `a` has no command: write `command = [\"program\", \"argument\"]`",
                "w:2:1: unknown key `comand` in the task `a`; did you mean `command`?",
            ],
        );
        bad(
            "[tasks.a]\n[tasks.b]\ncommand = 7\nshell = true\n[limits]\nruns = 0\njob = 2",
            &[
                "w:1:8: the task `a` has no command: write `command = [\"program\", \"argument\"]`",
                "w:3:11: `command` must be a list of strings (write `command = [\"program\", \"argument\"]`, or for a shell `command = [\"sh\", \"-c\", \"…\"]`), not integer `7`",
                "w:4:1: unknown key `shell` in the task `b`; use `command`",
                "w:6:8: `runs` must be a whole number from 1 to 4294967295, not integer `0`",
                "w:7:1: unknown key `job` in `limits`; did you mean `jobs`?",
            ],
        );
        bad(
            "[tasks.a]\ncommand = ['x']\nshell = true",
            &["w:3:1: unknown key `shell` in the task `a`; use `command`"],
        );
        bad(
            "[tasks.git.fetch.all]\ncommand = ['x']",
            &["w:1:12: put a name with dots in quotes: write `[tasks.\"git.fetch.all\"]`"],
        );
        bad("[tasks.\"\"]\ncommand = ['x']", &["w:1:8: the name of a task cannot be empty"]);
        bad(
            "[tasks]\na = ['x']",
            &[
                "w:2:5: the task `a` must be a table: write `[tasks.\"a\"]`, and under it `command = [\"program\"]`",
            ],
        );
        bad("[[tasks]]", &["w:1:1: `tasks` must be a table: write `[tasks.\"NAME\"]` for each task"]);
    }

    #[test]
    fn invalid_commands() {
        let command = |value: &str, expected: &str| {
            bad(&format!("[tasks.a]\ncommand = {value}"), &[expected]);
        };
        let help = "write `command = [\"program\", \"argument\"]`";
        command(
            "'make all'",
            &format!(
                "w:2:11: `command` must be a list of strings ({help}, or for a shell `command = [\"sh\", \"-c\", \"…\"]`), not string \"make all\""
            ),
        );
        command("[]", &format!("w:2:11: `command` names no program: {help}"));
        command("['']", &format!("w:2:11: `command` names no program: {help}"));
        command(
            "['x', 7]",
            "w:2:17: `command` must be a list of strings (put each part in quotes), not integer `7`",
        );
        command("['x', \"a\\u0000\"]", "w:2:17: `command` must not contain NUL characters");
    }

    #[test]
    fn invalid_values_of_sections() {
        let wanted = "a whole number from 1 to 4294967295";
        let limit = |value: &str, found: &str| {
            bad(
                &format!("[limits]\njobs = {value}"),
                &[&format!("w:2:8: `jobs` must be {wanted}, not {found}")],
            );
        };
        limit("0", "integer `0`");
        limit("-3", "integer `-3`");
        limit("4294967296", "integer `4294967296`");
        limit("2.0", "floating point `2.0`");
        bad("[limits]\nrun = 1", &["w:2:1: unknown key `run` in `limits`; did you mean `runs`?"]);
        bad("limits = 3", &["w:1:10: `limits` must be a table: write `[limits]`"]);
        bad(
            "[runs]\nrecover = 'resumed'",
            &["w:2:11: unknown value `resumed` for `recover`; did you mean `resume`?"],
        );
        bad(
            "[runs]\nrecover = 'later'",
            &["w:2:11: unknown value `later` for `recover`; use one of `resume`, `interrupt`"],
        );
        bad(
            "[runs]\nrecovery = 'resume'",
            &["w:2:1: unknown key `recovery` in `runs`; did you mean `recover`?"],
        );
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        let file = std::env::temp_dir().join(format!("windlass-config-{}.toml", std::process::id()));
        std::fs::write(&file, "[limits]\nruns = 1\n").expect("a file of our own");
        let user = current_user();
        text_of(&file, user).expect("our own");
        let fault = text_of(&file, user + 1).expect_err("not theirs");
        assert!(fault.starts_with(&format!("it belongs to {}", described(user))), "{fault}");
        std::fs::remove_file(file).expect("a file of our own");
    }

    #[test]
    fn a_syntax_error_has_a_location() {
        for (text, place) in
            [("[tasks", "w:1:7: "), ("a = ", "w:1:5: "), ("[limits]\nruns = 1\nruns = 2", "w:3:1: ")]
        {
            let faults = parse(text).expect_err(text);
            let shown = faults[0].shown("w".as_ref());
            assert!(shown.starts_with(&format!("{place}invalid TOML: ")), "{shown}");
        }
    }
}
