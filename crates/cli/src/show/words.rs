//! Numbers as text: counts with their nouns, and byte sizes.

pub use windlass_api::words::{clean, one_line, shorten};

/// `1 error`, `2 errors`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// `512 B`, `1.5 KiB`, `12 MiB`.
pub fn bytes(number: u64) -> String {
    let mut amount = number as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return if unit == "B" || amount >= 10.0 {
                format!("{amount:.0} {unit}")
            } else {
                format!("{amount:.1} {unit}")
            };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_are_singular_or_plural() {
        assert_eq!([0, 1, 2].map(|n| count(n, "error")), ["0 errors", "1 error", "2 errors"]);
    }

    #[test]
    fn byte_sizes_are_short() {
        let shown = [0, 1023, 1024, 1536, 20_480, 5 << 20, 3 << 30, 2 << 40].map(bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "20 KiB", "5.0 MiB", "3.0 GiB", "2.0 TiB"]);
    }
}
