//! The help of every command, found by walking down from `windlass --help`, and the replies to wrong usage.

use crate::support::{Seen, windlass};

/// First words of summaries that are not imperative.
const NOT_VERBS: &[&str] = &[
    "A", "All", "An", "Any", "Each", "Every", "How", "The", "This", "What", "When", "Where", "Whether",
    "Which",
];

/// A command, given by the words after `windlass`, and its help.
struct Help {
    words: Vec<String>,
    seen: Seen,
}

impl Help {
    fn of(words: Vec<String>) -> Self {
        let args: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let seen = windlass(&args).see();
        assert_eq!(seen.status, 0, "{seen}");
        Self { words, seen }
    }

    /// The name and the summary of each subcommand. Sections of commands may have any heading; their lines are indented by two
    /// spaces, and at least two spaces follow the name.
    fn commands(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.seen.stdout.lines().filter_map(|line| line.strip_prefix("  "));
        let entries = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        let entries =
            entries.filter_map(|line| line.split_once("  ")).filter(|(name, _)| !name.contains(' '));
        entries.map(|(name, summary)| (name, summary.trim())).filter(|(name, _)| *name != "help")
    }

    fn problems(&self, listed: Option<&str>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |holds: bool, problem: &str| {
            if !holds {
                problems.push(format!("windlass {}: {problem}", self.words.join(" ")));
            }
        };
        let summary = self.seen.stdout.lines().next().unwrap_or_default();
        let first = summary.split([' ', ',']).next().unwrap_or_default();
        check(is_imperative(first), "the summary does not start with a verb");
        check(!summary.ends_with('.'), "the summary ends with a period");
        check(self.seen.stdout.lines().nth(1) == Some(""), "the summary does not fit one line");
        check(
            listed.is_none_or(|listed| listed.split(" [alias").next() == Some(summary)),
            "the summary is cut off in the list of commands",
        );
        let examples = self.seen.stdout.lines().skip_while(|line| !line.eq_ignore_ascii_case("examples:"));
        let name = ["  windlass", self.words.first().map_or("", String::as_str)].join(" ");
        check(examples.skip(1).any(|line| line.starts_with(name.trim_end())), "it has no example");
        problems
    }
}

fn is_imperative(word: &str) -> bool {
    let is_other_form =
        word.ends_with("ing") || word.ends_with("ed") || (word.ends_with('s') && !word.ends_with("ss"));
    word.starts_with(|c: char| c.is_ascii_uppercase()) && !NOT_VERBS.contains(&word) && !is_other_form
}

/// This command and all its subcommands, with the summaries under which their parents list them.
fn walk(help: Help, listed: Option<String>) -> Vec<(Help, Option<String>)> {
    let below: Vec<(Help, Option<String>)> = help
        .commands()
        .flat_map(|(name, summary)| {
            let words = help.words.iter().cloned().chain([name.to_owned()]).collect();
            walk(Help::of(words), Some(summary.to_owned()))
        })
        .collect();
    std::iter::once((help, listed)).chain(below).collect()
}

/// The words of every command without subcommands, and of those that work with and without.
pub fn leaves() -> Vec<Vec<String>> {
    let all = walk(Help::of(Vec::new()), None).into_iter().map(|(help, _)| help);
    let own = ["runs", "budgets"];
    let is_leaf =
        |help: &Help| help.commands().next().is_none() || own.contains(&help.words.join(" ").as_str());
    all.filter(|help| !help.words.is_empty() && is_leaf(help)).map(|help| help.words).collect()
}

/// The words of every command with subcommands.
pub fn parents() -> Vec<Vec<String>> {
    let all = walk(Help::of(Vec::new()), None).into_iter().map(|(help, _)| help);
    all.filter(|help| help.commands().next().is_some()).map(|help| help.words).collect()
}

/// The words of every command, and its help, which `docs/reference/cli.md` shows.
pub fn all() -> Vec<(Vec<String>, String)> {
    let all = walk(Help::of(Vec::new()), None).into_iter();
    all.map(|(help, _)| (help.words, help.seen.stdout)).collect()
}

#[test]
fn every_command_explains_itself() {
    let all = walk(Help::of(Vec::new()), None);
    assert!(all.len() > 30, "all commands are found: {}", all.len());
    let lines = all[0].0.seen.stdout.lines().count();
    assert!(lines <= 60, "the list of commands has {lines} lines");
    let problems: Vec<String> =
        all.iter().flat_map(|(help, listed)| help.problems(listed.as_deref())).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn summaries_are_imperative() {
    for verb in ["Check", "Show", "Express", "Run"] {
        assert!(is_imperative(verb), "{verb}");
    }
    for other in ["Shows", "Checking", "Stopped", "What", "show"] {
        assert!(!is_imperative(other), "{other}");
    }
}

#[test]
fn version_is_printed() {
    let seen = windlass(&["--version"]).see();
    assert_eq!(
        (seen.status, seen.stdout.as_str()),
        (0, concat!("windlass ", env!("CARGO_PKG_VERSION"), "\n"))
    );
}

#[test]
fn bad_usage_is_refused() {
    let check = |args: &[&str], part: &str| {
        let seen = windlass(args).see();
        assert_eq!((seen.status, seen.stdout.as_str()), (2, ""), "{seen}");
        assert!(seen.stderr.contains(part), "{seen}");
    };
    check(&[], "Usage: windlass <COMMAND>");
    check(&["validte", "x.yaml"], "'validate'");
    check(&["plan"], "<FILE>");
    check(&["plan", "x.yaml", "-p", "novalue"], "write it as NAME=VALUE");
    check(&["graph", "x.yaml", "--format", "svg"], "[possible values: text, mermaid, dot]");
    check(&["schema", "x"], "[possible values: swdl, speckit, dagnats, dcc, schedules, cases, mock, config]");
    check(&["eval", "1", "--dialect", "x"], "[possible values: swdl, speckit, dagnats, dcc]");
}

#[test]
fn help_is_a_command_too() {
    let seen = windlass(&["help", "plan"]).see();
    assert_eq!(seen.status, 0);
    assert_eq!(seen.stdout, windlass(&["plan", "--help"]).see().stdout);
}
