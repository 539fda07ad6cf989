//! Did-you-mean: the candidate nearest to a mistyped word, if any is near enough to be worth offering.

/// After this many findings nobody needs another guess: looking for one costs as much as there are names in the file.
pub const GUESSES_MAX: usize = 100;

/// Letters beyond these are not looked at.
const LENGTH_MAX: usize = 64;

/// The candidate with the smallest edit distance to `word`, unless even that one is too far away; the first by letters
/// among equals.
///
/// Near enough means at most one edit for every three characters (and at least one); letter case is free.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = letters(word);
    let allowed = (wanted.len() / 3).max(1);
    let near = candidates.into_iter().filter(|candidate| *candidate != word).filter_map(|candidate| {
        // Bytes are at least as many as letters, so this many are too few.
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

/// Edit distance with swaps of neighbours counted as one edit (optimal string alignment).
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
    fn finds_the_nearest_word() {
        assert_eq!(nearest("strng", ["string", "integer"]), Some("string"));
        assert_eq!(nearest("depend_on", ["depends_on", "description"]), Some("depends_on"));
        assert_eq!(nearest("stydy", ["study", "act"]), Some("study"));
        assert_eq!(nearest("topik", ["topic"]), Some("topic"));
        assert_eq!(nearest("taht", ["that"]), Some("that"), "a swap is one edit");
        assert_eq!(nearest("Parameters", ["parameters"]), Some("parameters"));
        assert_eq!(nearest("stepx", ["stepc", "stepa", "stepb"]), Some("stepa"), "in any order of the names");
    }

    #[test]
    fn far_words_are_not_offered() {
        assert_eq!(nearest("x", ["string"]), None);
        assert_eq!(nearest("spiral", ["agent", "gate", "fan_out"]), None);
        assert_eq!(nearest("", ["a"]), Some("a"));
    }
}
