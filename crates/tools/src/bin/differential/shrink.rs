//! The smallest thing that still shows a disagreement.

/// Goes from `start` to a smaller one as long as one of its candidates still differs. `first` tells which one of several
/// does, so that many can be asked about at once. What lies before a candidate that was taken is tried again only when nothing
/// behind it is left.
pub fn shrink<T>(
    start: T,
    mut tries: usize,
    candidates: impl Fn(&T) -> Vec<T>,
    mut first: impl FnMut(&[T]) -> Option<usize>,
) -> T {
    let (mut smallest, mut at, mut progress) = (start, 0, false);
    loop {
        let mut smaller = candidates(&smallest);
        smaller.truncate(at + tries);
        match first(&smaller[at.min(smaller.len())..]) {
            Some(found) => {
                tries = tries.saturating_sub(found + 1);
                at += found;
                smallest = smaller.swap_remove(at);
                progress = true;
            }
            None if progress && tries > 0 => {
                tries = tries.saturating_sub(smaller.len().saturating_sub(at));
                (at, progress) = (0, false);
            }
            None => return smallest,
        }
    }
}

/// The text without one of its parts: halves first, then quarters, down to single letters.
pub fn shorter(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut size = letters.len() / 2;
    while size > 0 {
        for start in (0..letters.len()).step_by(size) {
            let end = (start + size).min(letters.len());
            found.push(letters[..start].iter().chain(&letters[end..]).collect());
        }
        size /= 2;
    }
    found
}
