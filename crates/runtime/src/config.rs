//! `windlass.toml`: what a project brings to the runs that are started in it. Only a file of the user is read, and strictly: every
//! key that means nothing is a fault, and all faults are told at once.

use crate::ownership::{current_user, described};
use crate::search::upwards;
use indexmap::IndexMap;
use std::io::Read;
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

/// Nobody writes a longer one by hand.
const BYTES_MAX: u64 = 1024 * 1024;

/// Under which word a run remembers its file.
pub(crate) const RECORDED: &str = "config";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Absolute.
    pub file: PathBuf,
    /// What is started for a task, by its name.
    pub tasks: IndexMap<Arc<str>, TaskCommand>,
    pub limits: Limits,
}

/// How many at once; none where the file does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub runs: Option<u32>,
    pub jobs: Option<u32>,
    /// Child processes.
    pub processes: Option<u32>,
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
    /// None when it is the file as a whole.
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
    /// The nearest file in the projects around these folders, of which earlier ones go first.
    pub fn find(folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
        let folders = folders.into_iter().flat_map(|folder| upwards(&folder));
        folders.map(|folder| folder.join(NAME)).find(|file| file.is_file())
    }

    /// The file that a run was started with, if it is still there.
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
        let (tasks, limits) = parse(&text).map_err(|faults| BadConfig { file: file.to_owned(), faults })?;
        Ok(Self { file: absolute, tasks, limits })
    }

    /// Where its commands run.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }
}

fn text_of(path: &Path, user: u32) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    // Looked at before it is opened: opening a pipe would wait for a writer.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err("it is no regular file".to_owned());
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

type Parsed = (IndexMap<Arc<str>, TaskCommand>, Limits);

fn parse(text: &str) -> Result<Parsed, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { faults: Vec::new() };
    for error in errors {
        let at = error.span().map_or(text.len(), |span| span.start);
        reader.faults.push((at, format!("this is not TOML: {}", error.message())));
    }
    // What is left of a broken file would only be misunderstood.
    let parsed = if reader.faults.is_empty() { reader.top(table.get_ref()) } else { Parsed::default() };
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

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;

struct Reader {
    /// Each with its offset.
    faults: Vec<(usize, String)>,
}

const COMMAND_HELP: &str = r#"write `command = ["program", "argument"]`"#;

impl Reader {
    fn top(&mut self, top: &DeTable<'_>) -> Parsed {
        let (mut tasks, mut limits) = Parsed::default();
        for (key, value) in top {
            match &**key.get_ref() {
                "tasks" => tasks = self.tasks(value),
                "limits" => limits = self.limits(value),
                _ => self.unknown(key, "", &["tasks", "limits"]),
            }
        }
        (tasks, limits)
    }

    fn tasks(&mut self, value: &Spanned<DeValue<'_>>) -> IndexMap<Arc<str>, TaskCommand> {
        let DeValue::Table(tasks) = value.get_ref() else {
            self.wrong_kind::<()>(value, "`tasks`", "a table: write `[tasks.\"NAME\"]` for each task");
            return IndexMap::new();
        };
        let read = tasks.iter().filter_map(|(name, value)| {
            let task = self.task(name, value)?;
            Some((Arc::from(&**name.get_ref()), task))
        });
        read.collect()
    }

    fn task(&mut self, name: &Key<'_>, value: &Spanned<DeValue<'_>>) -> Option<TaskCommand> {
        let shown = name.get_ref();
        let DeValue::Table(task) = value.get_ref() else {
            let help = format!("write `[tasks.{shown:?}]`, and under it `command = [\"program\"]`");
            return self.wrong_kind(value, &format!("the task `{shown}`"), &format!("a table: {help}"));
        };
        if shown.is_empty() {
            return self.say(name.span().start, "the name of a task is not empty");
        }
        let mut command = None;
        let mut is_in_parts = false;
        for (key, value) in task {
            match (&**key.get_ref(), value.get_ref()) {
                ("command", _) => command = Some(self.command(value)),
                (part, DeValue::Table(inner)) => {
                    is_in_parts = true;
                    let whole = format!("{shown}.{part}{}", rest_of_name(inner));
                    let message = format!("a name with dots stands in quotes: write `[tasks.{whole:?}]`");
                    self.say::<()>(key.span().start, &message);
                }
                _ => self.unknown(key, &format!(" of the task `{shown}`"), &["command"]),
            }
        }
        match command {
            Some(command) => command,
            None if is_in_parts => None,
            None => {
                let message = format!("the task `{shown}` has no command: {COMMAND_HELP}");
                self.say(name.span().start, &message)
            }
        }
    }

    fn command(&mut self, value: &Spanned<DeValue<'_>>) -> Option<TaskCommand> {
        let DeValue::Array(items) = value.get_ref() else {
            let help = match value.get_ref() {
                DeValue::String(_) => {
                    format!("{COMMAND_HELP}, or for a shell `command = [\"sh\", \"-c\", \"…\"]`")
                }
                _ => COMMAND_HELP.to_owned(),
            };
            return self.wrong_kind(value, "`command`", &format!("a list of texts: {help}"));
        };
        let words: Vec<Option<String>> = items.iter().map(|item| self.word(item)).collect();
        let words: Vec<String> = words.into_iter().collect::<Option<_>>()?;
        match words.split_first() {
            Some((program, arguments)) if !program.is_empty() => {
                Some(TaskCommand { program: program.clone(), arguments: arguments.to_vec() })
            }
            Some(_) | None => {
                self.say(value.span().start, &format!("`command` names no program: {COMMAND_HELP}"))
            }
        }
    }

    fn word(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                self.say(value.span().start, "a command cannot hold NUL characters")
            }
            DeValue::String(text) => Some(text.clone().into_owned()),
            _ => self.wrong_kind(value, "each part of `command`", "text: put it in quotes"),
        }
    }

    fn limits(&mut self, value: &Spanned<DeValue<'_>>) -> Limits {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_kind::<()>(value, "`limits`", "a table: write `[limits]`");
            return Limits::default();
        };
        let mut limits = Limits::default();
        for (key, value) in table {
            let limit = match &**key.get_ref() {
                "runs" => &mut limits.runs,
                "jobs" => &mut limits.jobs,
                "processes" => &mut limits.processes,
                _ => {
                    self.unknown(key, " of `limits`", &["runs", "jobs", "processes"]);
                    continue;
                }
            };
            *limit = self.count(key.get_ref(), value);
        }
        limits
    }

    fn count(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<u32> {
        let wanted = format!("a whole number from 1 to {}", u32::MAX);
        let DeValue::Integer(number) = value.get_ref() else {
            return self.wrong_kind(value, &format!("`{key}`"), &wanted);
        };
        match u32::from_str_radix(number.as_str(), number.radix()) {
            Ok(count @ 1..) => Some(count),
            Ok(0) | Err(_) => self.say(value.span().start, &format!("`{key}` must be {wanted}")),
        }
    }

    fn unknown(&mut self, key: &Key<'_>, of: &str, known: &[&str]) {
        let hint = match nearest(key.get_ref(), known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is `{}`", known.join("`, `")),
        };
        let message = format!("the key `{}`{of} is not known; {hint}", key.get_ref());
        self.say::<()>(key.span().start, &message);
    }

    fn wrong_kind<T>(&mut self, value: &Spanned<DeValue<'_>>, what: &str, wanted: &str) -> Option<T> {
        let kind = match value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.say(value.span().start, &format!("{what} must be {wanted} (it is {kind})"))
    }

    fn say<T>(&mut self, at: usize, message: &str) -> Option<T> {
        self.faults.push((at, message.to_owned()));
        None
    }
}

/// What follows of a name with dots that was written without quotes.
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
        "#;
        let (tasks, limits) = parse(text).expect("good");
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
        assert_eq!(parse("").expect("good"), Parsed::default());
        assert_eq!(parse("# nothing\n[tasks]\n[limits]\n").expect("good"), Parsed::default());
    }

    #[test]
    fn every_fault_has_its_place_and_what_to_do() {
        bad("task = 1", &["w:1:1: the key `task` is not known; did you mean `tasks`?"]);
        bad("\nfoo = 1", &["w:2:1: the key `foo` is not known; there is `tasks`, `limits`"]);
        bad(
            "[tasks.a]\ncomand = ['x']",
            &[
                "w:1:8: the task `a` has no command: write `command = [\"program\", \"argument\"]`",
                "w:2:1: the key `comand` of the task `a` is not known; did you mean `command`?",
            ],
        );
        bad(
            "[tasks.a]\ncommand = ['x']\nshell = true",
            &["w:3:1: the key `shell` of the task `a` is not known; there is `command`"],
        );
        bad(
            "[tasks.git.fetch.all]\ncommand = ['x']",
            &["w:1:12: a name with dots stands in quotes: write `[tasks.\"git.fetch.all\"]`"],
        );
        bad("[tasks.\"\"]\ncommand = ['x']", &["w:1:8: the name of a task is not empty"]);
        bad(
            "[tasks]\na = ['x']",
            &[
                "w:2:5: the task `a` must be a table: write `[tasks.\"a\"]`, and under it `command = [\"program\"]` (it is a list)",
            ],
        );
        bad(
            "[[tasks]]",
            &["w:1:1: `tasks` must be a table: write `[tasks.\"NAME\"]` for each task (it is a list)"],
        );
    }

    #[test]
    fn commands_that_start_nothing() {
        let command = |value: &str, expected: &str| {
            bad(&format!("[tasks.a]\ncommand = {value}"), &[expected]);
        };
        let help = "write `command = [\"program\", \"argument\"]`";
        command(
            "'make all'",
            &format!(
                "w:2:11: `command` must be a list of texts: {help}, or for a shell `command = [\"sh\", \"-c\", \"…\"]` (it is text)"
            ),
        );
        command("7", &format!("w:2:11: `command` must be a list of texts: {help} (it is an integer)"));
        command("[]", &format!("w:2:11: `command` names no program: {help}"));
        command("['']", &format!("w:2:11: `command` names no program: {help}"));
        command(
            "['x', 7]",
            "w:2:17: each part of `command` must be text: put it in quotes (it is an integer)",
        );
        command("['x', \"a\\u0000\"]", "w:2:17: a command cannot hold NUL characters");
    }

    #[test]
    fn limits_are_counts() {
        let wanted = "a whole number from 1 to 4294967295";
        bad("[limits]\nruns = 0", &[&format!("w:2:8: `runs` must be {wanted}")]);
        bad("[limits]\njobs = -3", &[&format!("w:2:8: `jobs` must be {wanted}")]);
        bad("[limits]\njobs = 4294967296", &[&format!("w:2:8: `jobs` must be {wanted}")]);
        bad("[limits]\njobs = 2.0", &[&format!("w:2:8: `jobs` must be {wanted} (it is a float)")]);
        bad("[limits]\nrun = 1", &["w:2:1: the key `run` of `limits` is not known; did you mean `runs`?"]);
        bad("limits = 3", &["w:1:10: `limits` must be a table: write `[limits]` (it is an integer)"]);
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
    fn what_is_no_toml_is_told_at_its_place() {
        for (text, place) in
            [("[tasks", "w:1:7: "), ("a = ", "w:1:5: "), ("[limits]\nruns = 1\nruns = 2", "w:3:1: ")]
        {
            let faults = parse(text).expect_err(text);
            let shown = faults[0].shown("w".as_ref());
            assert!(shown.starts_with(&format!("{place}this is not TOML: ")), "{shown}");
        }
    }
}
