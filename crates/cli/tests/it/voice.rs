//! The word list: words that are not plain English stay out of documents, comments and messages. The lists at the top are data;
//! a path leaves `UNCLEAN` once it is clean.

use crate::support::root;
use crate::tidy::{DOCUMENT_ROOTS, files, none, read, shown, sources};
use regex::Regex;

/// Files and folders that still contain such words. The test fails if one of them is clean, so the list only shrinks.
const UNCLEAN: &[&str] = &[
    "CHANGELOG.md",
    "crates/cli",
    "crates/engine",
    "crates/runtime",
    "crates/sim",
    "crates/windlass",
    "docs",
];

/// Words that stay: the file, the text that contains the word (none for the whole file), and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("Makefile", "--desk", "an option of the simulator"),
    ("crates/cli/tests/it/voice.rs", "", "it names the words"),
    ("crates/tools/src/conformance/dcc/tools.rs", "artefact://", "the scheme of DCC-MCP"),
];

const WORDS: &str = r"(?i)\b(whoever|nobody|somebody|anew|hurt|mend(ed|s)?|house dialect|desk|artefact|is no (key|value|run|file|text|name|number)|is told|is said|goes on|taken up)\b";

#[test]
fn documents_comments_and_messages_are_plain_english() {
    let words = Regex::new(WORDS).expect("a pattern");
    let documents = DOCUMENT_ROOTS.iter().flat_map(|name| files(&root().join(name), "md"));
    let documents = documents.map(|path| (shown(&path), read(&path)));
    let fuzz =
        files(&root().join("fuzz/fuzz_targets"), "rs").into_iter().map(|path| (path.clone(), read(&path)));
    let code = sources().into_iter().chain(fuzz).map(|(path, text)| (shown(&path), prose(&text)));
    let scripts = ["Makefile", ".githooks/commit-msg", ".ci/run"];
    let scripts = scripts.map(|name| (name.to_owned(), read(&root().join(name))));
    let found: Vec<Finding> =
        documents.chain(code).chain(scripts).flat_map(|(file, text)| find(&words, &file, &text)).collect();
    let is_below = |file: &str, path: &str| {
        file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let problems = found.iter().filter(|finding| !UNCLEAN.iter().any(|path| is_below(&finding.file, path)));
    let problems = problems.map(|Finding { file, line, word }| format!("{file}:{line}: `{word}`"));
    let clean = UNCLEAN.iter().filter(|path| !found.iter().any(|finding| is_below(&finding.file, path)));
    let clean = clean.map(|path| format!("{path} is clean; remove it from UNCLEAN"));
    none(problems.chain(clean));
}

struct Finding {
    file: String,
    line: usize,
    word: String,
}

fn find(words: &Regex, file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let stays = |word: &str| {
            let allows = |part: &str| part.is_empty() || (part.contains(word) && line.contains(part));
            EXCEPTIONS.iter().any(|(of, part, _)| *of == file && allows(part))
        };
        let words = words.find_iter(line).map(|word| word.as_str()).filter(|word| !stays(word));
        found.extend(words.map(|word| Finding {
            file: file.to_owned(),
            line: number + 1,
            word: word.to_owned(),
        }));
    }
    found
}

/// The comments and the texts in quotes of Rust code, line by line; names in code are left out.
fn prose(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let (length, is_prose) = match c {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            '/' if rest.starts_with("/*") => (rest.find("*/").map_or(rest.len(), |end| end + 2), true),
            '"' => (quoted(rest), true),
            'r' if raw(rest).is_some() => (raw(rest).unwrap_or(1), true),
            '\'' => (character(rest), false),
            _ if is_word(c) => (rest.find(|c| !is_word(c)).unwrap_or(rest.len()), false),
            _ => (c.len_utf8(), false),
        };
        let (part, after) = rest.split_at(length);
        match is_prose {
            true => out.push_str(part),
            false => out.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
        }
        rest = after;
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a text in quotes.
fn quoted(code: &str) -> usize {
    let mut is_escaped = false;
    let end = code.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map_or(code.len(), |(at, _)| at + 1)
}

/// The length of a raw text such as `r#"…"#`.
fn raw(code: &str) -> Option<usize> {
    let hashes = code[1..].bytes().take_while(|byte| *byte == b'#').count();
    let start = 1 + hashes;
    code[start..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(code[start + 1..].find(&end).map_or(code.len(), |at| start + 1 + at + end.len()))
}

/// The length of a character in quotes; 1 for the quote of a lifetime.
fn character(code: &str) -> usize {
    let mut chars = code.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => {
            let after = at + c.len_utf8();
            code[after..].find('\'').map_or(1, |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[test]
fn prose_is_what_stands_in_comments_and_quotes() {
    let check = |code: &str, expected: &[&str]| {
        let found = prose(code);
        assert_eq!(found.split_whitespace().collect::<Vec<_>>(), expected, "{code}");
        assert_eq!(found.lines().count(), code.lines().count(), "{code}");
    };
    check("let desk = 1; // why", &["//", "why"]);
    check("say(\"a \\\" b\", desk)", &["\"a", "\\\"", "b\""]);
    check("let r = r#\"a \" b\"#; desk", &["r#\"a", "\"", "b\"#"]);
    check("fn f<'a>(c: &'a str) { '\"'; '\\''; '\\u{41}' } /* x\n y */", &["/*", "x", "y", "*/"]);
    check("for_r(\"x\")", &["\"x\""]);
}

#[test]
fn a_word_of_the_list_is_found_with_its_place() {
    let words = Regex::new(WORDS).expect("a pattern");
    let found = find(&words, "a.md", "fine\nWhoever mends it, artefact://x\n");
    let found: Vec<(usize, &str)> = found.iter().map(|one| (one.line, one.word.as_str())).collect();
    assert_eq!(found, [(2, "Whoever"), (2, "mends"), (2, "artefact")]);
}
