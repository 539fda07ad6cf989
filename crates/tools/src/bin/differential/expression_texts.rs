//! Random expressions: grown from the grammar, and known ones with something broken in them.

use super::dice::Dice;
use serde_json::{Value as Json, json};
use std::sync::LazyLock;

/// What the cases of the dialect have: the context they are evaluated in, and their texts.
pub struct Known {
    pub context: Json,
    pub texts: Vec<String>,
}

pub static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let files = [
        include_str!("../../../../dialects/fixtures/speckit/cases/expressions.json"),
        include_str!("../../../../dialects/fixtures/speckit/cases/more_expressions.json"),
    ];
    let files = files.map(|text| serde_json::from_str::<Json>(text).expect("a file of JSON"));
    let cases = files.iter().flat_map(|file| [&file["cases"], &file["conditions"]]);
    let cases = cases.flat_map(|cases| cases.as_array().expect("a list of cases"));
    let texts = cases.filter_map(|case| case["expr"].as_str().or(case["condition"].as_str()));
    Known { texts: texts.map(str::to_owned).collect(), context: files[0]["context"].clone() }
});

#[rustfmt::skip]
const PATHS: &[&str] = &[
    "inputs.name", "inputs.empty", "inputs.zero", "inputs.count", "inputs.ratio", "inputs.whole", "inputs.neg",
    "inputs.yes", "inputs.no", "inputs.nil", "inputs.numstr", "inputs.floatstr", "inputs.padded", "inputs.tags",
    "inputs.nums", "inputs.none_list", "inputs.mixed", "inputs.objs", "inputs.obj", "inputs.empty_obj",
    "inputs.matrix", "inputs.json", "inputs.badjson", "inputs.jsonstr", "inputs.csv", "inputs.my-key",
    "inputs.with space", "inputs.ключ", "inputs.true", "inputs.evil", "inputs.quote", "inputs.braces",
    "inputs.multiline", "inputs.falsetext", "inputs.attr", "inputs.sep", "inputs.upper", "inputs.emoji", "inputs.a",
    "inputs.list_of_list", "inputs.tags[0]", "inputs.tags[-1]", "inputs.tags[9]", "inputs.mixed[4]",
    "inputs.objs[0].name", "inputs.objs[1].meta.k", "inputs.matrix[1]", "inputs.matrix[0][1]", "inputs.obj.a",
    "inputs.obj.a[1]", "inputs.obj.ü", "inputs.tags.0", "inputs.missing", "inputs.missing.deep", "inputs", "steps",
    "steps.build.output.stdout", "steps.build.status", "steps.my-step.output", "steps.loop:body:1.output.stdout",
    "steps.fan.output.results", "item", "item.name", "item.tags[1]", "item[0]", "fan_in.results", "fan_in.results[0]",
    "fan_in", "context.run_id", "context.workflow_dir", "context", "bogus", "bogus.x",
];
#[rustfmt::skip]
const LITERALS: &[&str] = &[
    "0", "1", "7", "-4", "+5", "007", "1_000", "2.5", "-0.0", "3.0", ".5", "5.", "1.0e3", "1.5e-300", "1.0e400",
    "9007199254740993", "9223372036854775807", "-9223372036854775808", "1e3", "0x10", "- 5", "1__0", "_1", "٣", "٣.٥",
    "true", "false", "True", "FALSE", "none", "None", "null", "NULL", "''", "\"\"", "'a'", "\"b\"", "'it\"s'",
    "\"it's\"", "'true'", "'false'", "' False\n'", "'10'", "' 10 '", "'2.5'", "'1_0'", "'a b'", "'}}'", "'{{ x }}'",
    "'a|b'", "' or '", "','", "', '", "'-'", "'name'", "'meta.k'", "'Ada'", "'red'", "'[1, 2.0, \"x\", null]'",
    "'{\"b\": 1, \"a\": [true]}'", "'{\"a\": 1, \"a\": 2}'", "'NaN'", "'[Infinity, -Infinity]'", "'1e400'",
    "'\"\\ud83d\\ude00\"'", "'straße ŉ ǆ'", "'ΑΣ Σ'", "'İı'", "'\u{1c}5\u{1f}'", "'\u{a0}7\u{3000}'", "'é'", "'👍'",
    "'\u{0}'", "'½'", "'²'", "'-0'", "'-0.0'", "'inf'", "'nan'", "'1.'", "'.'", "'1.e5'", "'tab\there'",
    "'back\\slash'", "'\u{ad}'", "'\u{301}'", "[]", "[1]", "[1, 2]", "[1, 2.0, true]", "['a', 'b']", "[[1], [2]]",
    "['', null]", "[,]", "[1,,2,]", "[ ]", "()", "{}",
];
const COMPARISONS: &[&str] = &["==", "!=", "<", "<=", ">", ">=", "in", "not in"];
const FILTERS: &[&str] = &["upper", "lower", "length", "from_json", "to_json", "default"];
const FILTERS_WITH_ARGUMENT: &[&str] = &["default", "join", "map", "contains", "split"];
const BLANKS: &[&str] = &["  ", "\n", "\t", " \n ", "\u{a0}", "\u{3000}", "\u{1c}", "\u{85}", "\u{200b}", ""];
#[rustfmt::skip]
const SOUP: &[&str] = &[
    "{{", "}}", "{", "}", "'", "\"", "(", ")", "[", "]", "|", ",", ".", " ", "\n", "\u{3000}", "é", "inputs", "item",
    "name", " or ", " and ", "not ", " in ", " not in ", "==", "!=", "<", ">=", "!", "=", "-", "1", "0.5", "_", "0",
    "default", "upper", "length", "map('name')", "join(',')", "&&", "||", "null", "true", "[0]", "[-1]", ":", "\\",
    "\u{0}", "²", "ª", "\u{345}", "\u{93e}", "٣", "ß", "\u{1f}", "\u{feff}", "steps.", " | ", "()", "x",
];

/// A text that may hold any number of expressions.
pub fn text(dice: &mut Dice) -> String {
    let mut text = match dice.roll(10) {
        0..=4 => wrap(dice),
        5..=8 => dice.pick(&KNOWN.texts).clone(),
        _ => (0..dice.roll(16)).map(|_| *dice.pick(SOUP)).collect(),
    };
    let edits = if dice.chance(45) { 0 } else { 1 + dice.roll(3) };
    for _ in 0..edits {
        text = mutate(dice, &text);
    }
    text
}

fn wrap(dice: &mut Dice) -> String {
    let depth = 1 + dice.roll(3);
    let grown = expression(dice, depth, PATHS);
    match dice.roll(20) {
        0..=12 => format!("{{{{ {grown} }}}}"),
        13 => format!("{{{{{grown}}}}}"),
        14 => format!(" {{{{ {grown} }}}}\n"),
        15 => format!("a {{{{ {grown} }}}} b"),
        16 => format!("{{{{ {grown} }}}}{{{{ {} }}}}", expression(dice, 1, PATHS)),
        17 => format!("{{{{{{ {grown} }}}}}}"),
        18 => format!("{{{{ {grown}"),
        _ => grown,
    }
}

/// An expression of the grammar over these paths.
pub fn expression(dice: &mut Dice, depth: usize, paths: &[impl AsRef<str>]) -> String {
    if depth == 0 || dice.chance(15) {
        return atom(dice, paths);
    }
    let inner = |dice: &mut Dice| expression(dice, depth - 1, paths);
    match dice.roll(12) {
        0..=2 => joined(&inner(dice), COMPARISONS, &inner(dice), dice),
        3 | 4 => joined(&inner(dice), &["and", "or"], &inner(dice), dice),
        5 => format!("not {}", inner(dice)),
        6 => format!("({})", inner(dice)),
        7 => format!("[{}, {}]", inner(dice), inner(dice)),
        8 | 9 => format!("{} | {}", operand(dice, depth, paths), filter(dice, depth, paths)),
        10 => {
            let value = operand(dice, depth, paths);
            format!("{value} | {} | {}", filter(dice, depth, paths), filter(dice, depth, paths))
        }
        _ => {
            let left = format!("({} | {})", atom(dice, paths), filter(dice, depth, paths));
            joined(&left, COMPARISONS, &inner(dice), dice)
        }
    }
}

/// What a filter can stand behind.
fn operand(dice: &mut Dice, depth: usize, paths: &[impl AsRef<str>]) -> String {
    if dice.chance(75) { atom(dice, paths) } else { format!("({})", expression(dice, depth - 1, paths)) }
}

fn filter(dice: &mut Dice, depth: usize, paths: &[impl AsRef<str>]) -> String {
    match dice.roll(10) {
        0..=3 => (*dice.pick(FILTERS)).to_owned(),
        4..=6 => format!("{}({})", dice.pick(FILTERS_WITH_ARGUMENT), atom(dice, paths)),
        7 => format!("map('{}')", dice.pick(&["name", "meta.k", "meta", "other", "", "."])),
        8 => format!("join('{}')", dice.pick(&[", ", "", "-", "\n"])),
        _ => format!("{}({})", dice.pick(FILTERS_WITH_ARGUMENT), expression(dice, depth - 1, paths)),
    }
}

fn atom(dice: &mut Dice, paths: &[impl AsRef<str>]) -> String {
    if dice.chance(60) { dice.pick(paths).as_ref().to_owned() } else { (*dice.pick(LITERALS)).to_owned() }
}

/// With one of the words between, mostly with one space on either side, sometimes with another blank or none.
fn joined(left: &str, words: &[&str], right: &str, dice: &mut Dice) -> String {
    let word = *dice.pick(words);
    let mut blank = || if dice.chance(90) { " " } else { dice.pick(BLANKS) };
    let (before, after) = (blank(), blank());
    format!("{left}{before}{word}{after}{right}")
}

fn mutate(dice: &mut Dice, text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = dice.roll(letters.len() + 1);
    let end = (at + 1 + dice.roll(4)).min(letters.len());
    match dice.roll(8) {
        0 => drop(letters.drain(at.min(end)..end)),
        1 => drop(letters.splice(at..at, dice.pick(SOUP).chars())),
        2 => drop(letters.splice(at.min(end)..end, dice.pick(SOUP).chars())),
        3 => drop(letters.splice(at..at, atom(dice, PATHS).chars())),
        4 => {
            let part: Vec<char> = letters[at.min(end)..end].to_vec();
            letters.splice(at..at, part);
        }
        5 if at + 1 < letters.len() => letters.swap(at, at + 1),
        6 => {
            let other: Vec<char> = dice.pick(&KNOWN.texts).chars().collect();
            let from = dice.roll(other.len() + 1);
            letters.truncate(at);
            letters.extend(&other[from..]);
        }
        _ => {
            let number = LITERALS[dice.roll(21)];
            letters.splice(at.min(end)..end, number.chars());
        }
    }
    letters.into_iter().collect()
}

/// The known context, with some of its inputs, and sometimes the item, replaced.
pub fn context(dice: &mut Dice) -> Json {
    let mut context = KNOWN.context.clone();
    let inputs = context["inputs"].as_object_mut().expect("inputs are an object");
    for value in inputs.values_mut() {
        if dice.chance(30) {
            *value = random_value(dice, 2);
        }
    }
    if dice.chance(50) {
        context["item"] = random_value(dice, 2);
    }
    context
}

#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "", " ", "a", "Ada", "true", "False", " false\n", "0", "10", "9", "-3", "2.50", " 7\n", "1_0", "1e3", "0x1",
    "nan", "a,b,,c", "name", "it's", "say \"hi\"", "both ' and \"", "back\\slash", "new\nline", "tab\t",
    "\u{0}\u{1b}\u{7f}", "\u{a0}", "\u{ad}", "\u{301}e", "\u{200b}", "\u{feff}", "ß", "ŉ", "ΑΣ", "İ", "ǆ", "👍🏽",
    "\u{e000}", "\u{10ffff}", "٣", "²", "{{ inputs.name }}", "}}", "[1, 2]", "{\"a\": 1.50, \"b\": [null]}",
    "{\"z\": 1, \"a\": 2}", "\"x\"", "[1,]", "1 2", " [1] ", "\u{feff}[1]", "NaN", "-Infinity", "1.0", "1E5", "-0",
    "01", "\"\\u00e9\"", "\"\\x\"", "1e999",
];

fn random_value(dice: &mut Dice, depth: usize) -> Json {
    match dice.roll(if depth == 0 { 8 } else { 11 }) {
        0 => Json::Null,
        1 => dice.chance(50).into(),
        2 => json!(*dice.pick(&[
            0_i64,
            1,
            -1,
            2,
            3,
            7,
            10,
            42,
            1_000_000,
            i64::MAX,
            i64::MIN,
            9_007_199_254_740_993
        ])),
        3 => json!(*dice.pick(&[
            0.0,
            -0.0,
            1.0,
            2.5,
            -1.5,
            0.1,
            1e16,
            1e15,
            123_456_789.125,
            1e-5,
            1e-4,
            1e22,
            1e300,
            5e-324,
            0.30000000000000004,
        ])),
        4..=7 => json!(dice.pick(TEXTS)),
        8 | 9 => (0..dice.roll(4)).map(|_| random_value(dice, depth - 1)).collect(),
        _ => {
            let keys = ["name", "meta", "k", "a", "b", "ü", "", "with space"];
            let mut entry = || (dice.pick(&keys).to_string(), random_value(dice, depth - 1));
            Json::Object((0..3).map(|_| entry()).collect())
        }
    }
}
