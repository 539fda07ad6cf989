//! Executes the documents that teach: every file and every command of a page, exactly as printed, in an empty folder with the
//! program on the PATH.
//!
//! The words after the language of a block say what it is. `yaml site.yaml` is a file, `yaml append=site.yaml` goes to its
//! end, `sh` is executed and must succeed, `sh exits=3` ends with that status, and `sh setup` installs the program, so it is
//! not executed. A `text` block after commands is what they print; `…` stands for anything.

use crate::scratch::Scratch;
use crate::support::root;
use crate::tidy::{files, none, read};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Pages on which every command is executed.
const PAGES: &[&str] = &[
    "README.md",
    "docs/start/install.md",
    "docs/start/tutorial.md",
    "docs/guides/cookbook.md",
    "docs/guides/switching.md",
];

struct Block<'a> {
    line: usize,
    words: Vec<&'a str>,
    text: String,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                open =
                    Some(Block { line: number + 1, words: info.split(' ').collect(), text: String::new() });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(block)) => open = Some(Block { text: block.text + line + "\n", ..block }),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "the last block does not end");
    blocks
}

/// The output of commands in a folder, and their exit status.
fn execute(script: &str, folder: &Path, home: &Path) -> (String, i32) {
    let program = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().expect("a folder").display();
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut child = Command::new("sh");
    child.args(["-e", "-c", script]).current_dir(folder).env_clear();
    child
        .env("PATH", format!("{program}:/usr/local/bin:/usr/bin:/bin"))
        .env("HOME", home)
        .env("USER", "dana");
    child.stdin(std::process::Stdio::null()).stdout(writer.try_clone().expect("a pipe")).stderr(writer);
    let mut running = child.spawn().expect("a shell");
    drop(child);
    let mut output = String::new();
    std::io::Read::read_to_string(&mut reader, &mut output).expect("text");
    let status = running.wait().expect("the shell ends");
    (output, status.code().unwrap_or(-1))
}

/// Whether the output has these lines, in this order.
fn prints(output: &str, expected: &str) -> Result<(), String> {
    let mut lines = output.lines();
    for wanted in expected.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
        if !lines.any(|line| matches(line.trim_end(), wanted.trim_end())) {
            return Err(format!("`{wanted}` is not printed"));
        }
    }
    Ok(())
}

fn matches(line: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

fn execute_page(name: &str) {
    let page = read(&root().join(name));
    let folder = Scratch::new("printed");
    let mut printed: Option<String> = None;
    let mut executed = 0;
    for block in blocks(&page) {
        let place = format!("{name}:{}", block.line);
        let file = |name: &str| folder.path().join(name);
        match *block.words {
            ["sh", "setup"] => {}
            ["sh"] | ["sh", _] if !block.words[1..].iter().any(|word| word.contains('.')) => {
                let exits =
                    block.words.get(1).map_or("0", |word| word.strip_prefix("exits=").expect("exits=N"));
                let (output, status) = execute(&block.text, folder.path(), folder.path());
                assert_eq!(status.to_string(), exits, "{place}\n{}\n{output}", block.text);
                printed = Some(output);
                executed += 1;
                continue;
            }
            ["text"] => {
                if let Some(output) = printed.take()
                    && let Err(why) = prints(&output, &block.text)
                {
                    panic!("{place}: {why}\n{output}");
                }
            }
            [_, word] if word.starts_with("append=") => {
                let name = word.trim_start_matches("append=");
                let mut open =
                    std::fs::OpenOptions::new().append(true).open(file(name)).expect("an earlier file");
                open.write_all(block.text.as_bytes()).expect("a writable file");
            }
            [_, name] if name.contains('.') => {
                std::fs::create_dir_all(file(name).parent().expect("a folder")).expect("a writable folder");
                std::fs::write(file(name), &block.text).expect("a writable folder");
            }
            _ => {}
        }
        printed = None;
    }
    assert!(executed > 0, "{name} has commands");
}

#[test]
fn the_readme_is_executed() {
    execute_page(PAGES[0]);
}

#[test]
fn the_installation_page_is_executed() {
    execute_page(PAGES[1]);
}

#[test]
fn the_tutorial_is_executed() {
    execute_page(PAGES[2]);
}

#[test]
fn the_cookbook_is_executed() {
    execute_page(PAGES[3]);
}

#[test]
fn the_page_about_switching_is_executed() {
    execute_page(PAGES[4]);
}

/// What `make run` starts: without a terminal the gate approves itself.
#[test]
fn the_repository_examines_itself() {
    let data = Scratch::new("examine");
    let script =
        format!("export WINDLASS_DATA={}/data; examples/examine-repository/run.sh", data.path().display());
    let (output, status) = execute(&script, &root(), data.path());
    assert_eq!(status, 0, "{output}");
    assert!(output.contains("windlass show examine-"), "it says where to look\n{output}");
    let written = read(&root().join("target/report.md"));
    assert!(written.contains("| engine |") && written.contains("Approved by timeout"), "{written}");
}

#[test]
fn the_readme_is_short() {
    let words = read(&root().join("README.md")).split_whitespace().count();
    assert!(words <= 600, "README.md has {words} words");
}

#[test]
fn output_is_compared_line_by_line() {
    assert!(prints("a\nrun r1 succeeded in 2.3s\nb\n", "run … succeeded in …s\nb\n").is_ok());
    assert!(prints("a\nb\n", "b\na\n").is_err());
    assert!(prints("abc\n", "ab\n").is_err() && prints("abc\n", "ab…\n").is_ok());
}

/// `a#part` leads to a heading of the page.
#[test]
fn links_lead_to_headings() {
    let pages = ["README.md", "CONTRIBUTING.md", "docs", "examples"];
    let pages: Vec<_> = pages.iter().flat_map(|name| files(&root().join(name), "md")).collect();
    none(pages.iter().flat_map(|page| {
        let text = read(page);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let parts =
            targets.filter_map(|target| target.split_once('#')).filter(|(file, _)| !file.contains(':'));
        let gone = parts.filter(|(file, part)| {
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            target.is_file() && !headings(&read(&target)).any(|heading| heading == *part)
        });
        gone.map(|(file, part)| format!("{}: `{file}#{part}` is not a heading", page.display()))
            .collect::<Vec<_>>()
    }));
}

/// The names that GitHub gives to headings.
fn headings(page: &str) -> impl Iterator<Item = String> {
    let lines = page.lines().filter(|line| line.starts_with('#'));
    let texts = lines.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    texts.map(|text| {
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    })
}
