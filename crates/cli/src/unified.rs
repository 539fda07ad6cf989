//! Two texts as a unified diff, the format that `diff -u` and `git diff` print.

/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// Above this many pairs of lines, the whole middle counts as changed.
const PAIRS_MAX: usize = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The changes from one text to another; empty if there are none.
pub fn unified(file: &str, old: &str, new: &str) -> String {
    let lines = lines(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let mut text = String::new();
    let mut next = 0;
    while let Some(found) = lines[next..].iter().position(is_change) {
        let first = next + found;
        let mut last = first;
        // Changes that are close together share a hunk.
        while let Some(gap) = lines[last + 1..].iter().take(2 * CONTEXT + 1).position(is_change) {
            last += gap + 1;
        }
        let (from, to) = (first.saturating_sub(CONTEXT).max(next), (last + 1 + CONTEXT).min(lines.len()));
        text += &hunk(&lines, from, to);
        next = to;
    }
    if text.is_empty() { text } else { format!("--- {file}\n+++ {file}\n{text}") }
}

fn hunk(lines: &[Line<'_>], from: usize, to: usize) -> String {
    let olds = |lines: &[Line<'_>]| lines.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let news = |lines: &[Line<'_>]| lines.iter().filter(|line| !matches!(line, Line::Old(_))).count();
    let (before, own) = (&lines[..from], &lines[from..to]);
    let range = |start: usize, count: usize| match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let (old, new) = (range(olds(before), olds(own)), range(news(before), news(own)));
    let line = |line: &Line<'_>| match line {
        Line::Same(text) => format!(" {text}\n"),
        Line::Old(text) => format!("-{text}\n"),
        Line::New(text) => format!("+{text}\n"),
    };
    format!("@@ -{old} +{new} @@\n{}", own.iter().map(line).collect::<String>())
}

/// All lines of both texts, in order.
fn lines<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end =
        old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let middle = changed(&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let same = |lines: &[&'a str]| lines.iter().map(|line| Line::Same(line)).collect::<Vec<_>>();
    [same(&old[..start]), middle, same(&old[old.len() - end..])].concat()
}

/// The shortest way from one list of lines to the other: the longest common subsequence stays.
fn changed<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let all =
        || old.iter().map(|line| Line::Old(line)).chain(new.iter().map(|line| Line::New(line))).collect();
    let width = new.len() + 1;
    if (old.len() + 1).saturating_mul(width) > PAIRS_MAX {
        return all();
    }
    // `common[i * width + j]` is the length of the longest common subsequence of `old[i..]` and `new[j..]`.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = match old[i] == new[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let check = |old: &str, new: &str, expected: &str| assert_eq!(unified("f", old, new), expected);
        check("a\nb\n", "a\nb\n", "");
        check("a\nb\nc\n", "a\nX\nc\n", "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+X\n c\n");
        check("", "a\n", "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n");
        check("a\n", "", "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n");
        let old: String = (1..=20).map(|number| format!("{number}\n")).collect();
        let new = old.replace("2\n3\n", "2\n2.5\n3\n").replace("19\n", "");
        check(
            &old,
            &new,
            "--- f\n+++ f\n@@ -1,5 +1,6 @@\n 1\n 2\n+2.5\n 3\n 4\n 5\n@@ -16,5 +17,4 @@\n 16\n 17\n 18\n-19\n 20\n",
        );
    }
}
