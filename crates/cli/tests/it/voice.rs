//! The word list: keeps words that are not plain English out of documents, comments and messages. The lists at the top are
//! data; remove a path from `UNCLEAN` once it is clean.

use crate::support::root;
use crate::tidy::{DOCUMENT_ROOTS, files, none, read, shown, sources};
use regex::Regex;

/// Files and folders that still contain such words. The test fails if one of them is clean, so the list only shrinks.
const UNCLEAN: &[&str] = &[];

/// Allowed words: the file, the text that contains the word (empty for the whole file), and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/cli/src/args.rs", "\"desk\"", "the earlier name of `windlass limits`"),
    ("crates/cli/src/args/upkeep.rs", "renew-desk", "the earlier name of `--renew-limits`"),
    ("crates/cli/tests/it/limits.rs", "\"desk\"", "the earlier name of `windlass limits`"),
    ("crates/cli/tests/it/upkeep.rs", "--renew-desk", "the earlier name of `--renew-limits`"),
    ("crates/cli/tests/it/upkeep.rs", ".desk", "the coordinator's stream in existing journals"),
    ("crates/cli/tests/it/voice.rs", "", "it names the words"),
    ("crates/engine/src/keys.rs", ".desk", "the coordinator's stream in existing journals"),
    ("crates/engine/src/run/gate.rs", "nobody decided within", "a message in existing journals"),
    ("crates/runtime/src/artifacts.rs", "artefact://", "the scheme of DCC-MCP"),
    ("crates/tools/src/conformance/dcc/tools.rs", "artefact://", "the scheme of DCC-MCP"),
    ("docs/dialects/dcc.md", "artefact://", "the scheme of DCC-MCP"),
    (
        "docs/decisions/0011-coordinator-beside-the-runs.md",
        ".desk",
        "the coordinator's stream in existing journals",
    ),
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

/// Words in identifiers that are not plain English. `is_no_x` reads as *is unknown x* or *is not x*.
const IDENTIFIERS: &str = r"_(house|nobody|standing|driving|told|goes_on|is_no)_";

/// The crates whose identifiers are clean.
const CLEAN: [&str; 5] =
    ["crates/engine/", "crates/executors/", "crates/runtime/", "crates/sim/", "crates/store/"];

/// Allowed identifiers, and the reason.
const NAMED_ELSEWHERE: [(&str, &str); 2] =
    [("House", "the native syntax of cron in `ir`"), ("HOUSE", "the native semantics in `ir`")];

#[test]
fn identifiers_are_plain_english() {
    let words = Regex::new(IDENTIFIERS).expect("a pattern");
    let files = sources().into_iter().map(|(path, text)| (shown(&path), text));
    let files = files.filter(|(file, _)| CLEAN.iter().any(|folder| file.starts_with(folder)));
    let mut used = Vec::new();
    let mut problems = Vec::new();
    for (file, text) in files {
        for (number, line) in without_prose(&text).lines().enumerate() {
            for name in line.split(|c| !is_word(c)).filter(|name| words.is_match(&in_words(name))) {
                match NAMED_ELSEWHERE.iter().find(|(allowed, _)| *allowed == name) {
                    Some((allowed, _)) => used.push(*allowed),
                    None => problems.push(format!("{file}:{}: `{name}`", number + 1)),
                }
            }
        }
    }
    let unused = NAMED_ELSEWHERE.iter().filter(|(name, _)| !used.contains(name));
    none(problems.into_iter().chain(unused.map(|(name, _)| format!("`{name}` needs no exception"))));
}

/// The words of an identifier in snake case, with `_` around it: `_nobody_for_` for `NobodyFor`.
fn in_words(identifier: &str) -> String {
    let mut words = String::from("_");
    let mut was_lower = false;
    for c in identifier.chars() {
        if c.is_uppercase() && was_lower {
            words.push('_');
        }
        was_lower = c.is_lowercase();
        words.extend(c.to_lowercase());
    }
    words + "_"
}

#[test]
fn identifiers_are_split_into_words() {
    let check = |name: &str, expected: bool| {
        assert_eq!(Regex::new(IDENTIFIERS).expect("a pattern").is_match(&in_words(name)), expected, "{name}");
    };
    ["NobodyFor", "TOLD", "is_told", "is_no_program", "set_house", "finished_goes_on"]
        .iter()
        .for_each(|name| check(name, true));
    ["outstanding", "Household", "goes", "is_now", "tell"].iter().for_each(|name| check(name, false));
}

/// The comments and string literals of Rust code, line by line, without identifiers.
fn prose(code: &str) -> String {
    parts(code, true)
}

/// Rust code without comments and string literals, line by line.
fn without_prose(code: &str) -> String {
    parts(code, false)
}

/// One kind of text in Rust code, with spaces for the other kind.
fn parts(code: &str, wants_prose: bool) -> String {
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
        match is_prose == wants_prose {
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

/// The length of a string literal.
fn quoted(code: &str) -> usize {
    let mut is_escaped = false;
    let end = code.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map_or(code.len(), |(at, _)| at + 1)
}

/// The length of a raw string literal such as `r#"…"#`.
fn raw(code: &str) -> Option<usize> {
    let hashes = code[1..].bytes().take_while(|byte| *byte == b'#').count();
    let start = 1 + hashes;
    code[start..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(code[start + 1..].find(&end).map_or(code.len(), |at| start + 1 + at + end.len()))
}

/// The length of a character literal; 1 for the quote of a lifetime.
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
fn prose_is_the_text_of_comments_and_strings() {
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
fn listed_words_are_found_with_their_lines() {
    let words = Regex::new(WORDS).expect("a pattern");
    let found = find(&words, "a.md", "fine\nWhoever mends it, artefact://x\n");
    let found: Vec<(usize, &str)> = found.iter().map(|one| (one.line, one.word.as_str())).collect();
    assert_eq!(found, [(2, "Whoever"), (2, "mends"), (2, "artefact")]);
}
