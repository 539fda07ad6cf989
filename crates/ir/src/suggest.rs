//! Did-you-mean: the candidate closest to a mistyped word, if it is close enough.

/// After this many problems there are no more suggestions, because each search visits all names in the file.
pub const GUESSES_MAX: usize = 100;

/// Only this many characters are compared.
const LENGTH_MAX: usize = 64;

/// The candidate with the smallest edit distance to `word`, if it is close enough; the first in alphabetical order
/// among equals.
///
/// Close enough means at most one edit per three characters (and at least one). Case does not count.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = letters(word);
    let allowed = (wanted.len() / 3).max(1);
    let near = candidates.into_iter().filter(|candidate| *candidate != word).filter_map(|candidate| {
        // A word has at least as many bytes as characters, so the difference in bytes is a lower bound.
        if candidate.len() + allowed < wanted.len() {
            return None;
        }
        let letters = letters(candidate);
        let near = letters.len().abs_diff(wanted.len()) <= allowed;
        let distance = near.then(|| distance(&wanted, &letters))?;
        (distance <= allowed).then_some((distance, candidate))
    });
    near.min().map(|(_, candidate)| candidate)
}

fn letters(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).take(LENGTH_MAX).collect()
}

/// Edit distance in which swapping two neighbors counts as one edit (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = [0; LENGTH_MAX + 1];
    let mut last = [0; LENGTH_MAX + 1];
    last.iter_mut().enumerate().for_each(|(at, cell)| *cell = at);
    for i in 1..=a.len() {
        let mut row = [i; LENGTH_MAX + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_found() {
        assert_eq!(nearest("strng", ["string", "integer"]), Some("string"));
        assert_eq!(nearest("depend_on", ["depends_on", "description"]), Some("depends_on"));
        assert_eq!(nearest("stydy", ["study", "act"]), Some("study"));
        assert_eq!(nearest("topik", ["topic"]), Some("topic"));
        assert_eq!(nearest("taht", ["that"]), Some("that"), "a swap is one edit");
        assert_eq!(nearest("Parameters", ["parameters"]), Some("parameters"));
        assert_eq!(nearest("stepx", ["stepc", "stepa", "stepb"]), Some("stepa"), "in any order of the names");
    }

    #[test]
    fn distant_words_are_not_suggested() {
        assert_eq!(nearest("x", ["string"]), None);
        assert_eq!(nearest("spiral", ["agent", "gate", "fan_out"]), None);
        assert_eq!(nearest("", ["a"]), Some("a"));
    }
}
