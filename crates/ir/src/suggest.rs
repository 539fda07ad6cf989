//! Did-you-mean: the candidate nearest to a mistyped word, if any is near enough to be worth offering.

/// The candidate with the smallest edit distance to `word`, unless even that one is too far away.
///
/// Near enough means at most one edit for every three characters (and at least one); letter case is free.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LENGTH_MAX: usize = 64;
    let wanted: Vec<char> = word.to_lowercase().chars().take(LENGTH_MAX).collect();
    let allowed = (wanted.len() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .filter_map(|candidate| {
            let letters: Vec<char> = candidate.to_lowercase().chars().take(LENGTH_MAX).collect();
            if letters.len().abs_diff(wanted.len()) > allowed {
                return None;
            }
            let distance = distance(&wanted, &letters);
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance with swaps of neighbours counted as one edit (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
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
    }

    #[test]
    fn far_words_are_not_offered() {
        assert_eq!(nearest("x", ["string"]), None);
        assert_eq!(nearest("spiral", ["agent", "gate", "fan_out"]), None);
        assert_eq!(nearest("", ["a"]), Some("a"));
    }
}
