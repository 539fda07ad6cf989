//! Text measured in terminal cells: one line of styled pieces, cut to the available width.

use super::words::clean;
use clap::builder::styling::{AnsiColor, Style};
use unicode_width::UnicodeWidthChar;

/// The style of a piece of text. Without color only the text remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Busy,
    Ask,
}

impl Tone {
    fn style(self) -> Style {
        let colored = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Bold => Style::new().bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Good => colored(AnsiColor::Green),
            Self::Bad => colored(AnsiColor::Red),
            Self::Busy => colored(AnsiColor::Cyan),
            Self::Ask => colored(AnsiColor::Yellow).bold(),
        }
    }
}

/// One line. It escapes control sequences and line breaks in its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    pieces: Vec<(Tone, String)>,
    width: usize,
}

impl Cells {
    #[must_use]
    pub fn with(mut self, tone: Tone, text: &str) -> Self {
        self.push(tone, text);
        self
    }

    pub fn push(&mut self, tone: Tone, text: &str) {
        let text = clean(text).replace(['\n', '\t'], " ");
        self.width += width(&text);
        self.pieces.push((tone, text));
    }

    /// Adds spaces up to a column.
    pub fn pad(&mut self, column: usize) {
        if column > self.width {
            self.push(Tone::Plain, &" ".repeat(column - self.width));
        }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// Cuts the line to this many cells.
    #[must_use]
    pub fn cut(self, width_max: usize, dots: &str) -> Self {
        if self.width <= width_max {
            return self;
        }
        let mut cut = Self::default();
        for (tone, text) in self.pieces {
            let room = width_max - cut.width;
            if width(&text) > room || room == 0 {
                return cut.with(tone, &fit(&(text + dots), room, dots));
            }
            cut.push(tone, &text);
        }
        cut
    }

    pub fn render(&self, color: bool) -> String {
        let piece = |(tone, text): &(Tone, String)| {
            let style = tone.style();
            if color && *tone != Tone::Plain { format!("{style}{text}{style:#}") } else { text.clone() }
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// The most cells a text can take: it counts the parts of a joined emoji separately, because some terminals show them so.
pub fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

fn cells(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The most characters in one cell; more combining marks are abuse.
const PER_CELL_MAX: usize = 8;

/// Cuts a text to this many cells, and marks the cut with dots.
pub fn fit(text: &str, width_max: usize, dots: &str) -> String {
    let short = text.chars().take(width_max.saturating_mul(PER_CELL_MAX).saturating_add(1)).count();
    if width(text) <= width_max && short <= width_max.saturating_mul(PER_CELL_MAX) {
        return text.to_owned();
    }
    let dots = if width(dots) <= width_max { dots } else { "" };
    let (room, mut used) = (width_max - width(dots), 0);
    let kept = text.chars().take(room * PER_CELL_MAX).take_while(|c| {
        used += cells(*c);
        used <= room
    });
    kept.collect::<String>().trim_end().to_owned() + dots
}

/// Wraps a text at this many cells, between words if possible, and keeps at most `lines_max` lines.
pub fn wrap(text: &str, width_max: usize, lines_max: usize, dots: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in text.split_whitespace().flat_map(|word| pieces(word, width_max)) {
        let fits = lines.last().is_some_and(|last| width(last) + 1 + width(piece) <= width_max);
        let is_full = lines.len() == lines_max;
        match lines.last_mut() {
            Some(last) if fits => {
                last.push(' ');
                last.push_str(piece);
            }
            Some(last) if is_full => {
                *last = fit(&format!("{last} {piece}{dots}"), width_max, dots);
                return lines;
            }
            Some(_) | None => lines.push(piece.to_owned()),
        }
    }
    lines
}

/// Splits a word that is wider than a line; some languages write sentences without spaces.
fn pieces(word: &str, width_max: usize) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let mut used = 0;
        let fits = rest.char_indices().find(|(at, c)| {
            used += cells(*c);
            used > width_max && *at > 0
        });
        let (piece, left) = rest.split_at(fits.map_or(rest.len(), |(at, _)| at));
        rest = left;
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_cells() {
        let check = |text: &str, room, expected: &str| {
            let cut = fit(text, room, "…");
            assert_eq!(cut, expected);
            assert!(width(&cut) <= room, "{cut}");
        };
        check("", 0, "");
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        check("漢字漢字", 8, "漢字漢字");
        check("漢字漢字", 7, "漢字漢…");
        check("漢字漢字", 6, "漢字…");
        check("👩‍👩‍👧 family", 4, "👩‍…");
        check("abc", 0, "");
        check("ab", 1, "…");
    }

    #[test]
    fn combining_marks_are_bounded() {
        let zalgo = format!("a{}", "\u{301}".repeat(10_000));
        assert!(fit(&zalgo, 10, "…").len() < 200);
    }

    #[test]
    fn a_line_is_cut_within_a_piece() {
        let line = || Cells::default().with(Tone::Good, "ok ").with(Tone::Plain, "漢字 and more");
        assert_eq!(line().cut(40, "…").render(false), "ok 漢字 and more");
        assert_eq!(line().cut(8, "…").render(false), "ok 漢字…");
        assert_eq!(line().cut(3, "…").render(false), "ok ");
        assert_eq!(line().cut(0, "…").render(false), "");
        assert_eq!(line().cut(8, "…").render(true), "\u{1b}[32mok \u{1b}[0m漢字…");
    }

    #[test]
    fn control_sequences_on_a_line_are_escaped() {
        let line = Cells::default().with(Tone::Plain, "a\u{1b}[2J\nb\tc\r");
        assert_eq!(line.render(false), "a\u{fffd}[2J b c\u{fffd}");
    }

    #[test]
    fn prose_wraps_between_words() {
        assert_eq!(wrap("one two three four", 9, 3, "…"), ["one two", "three", "four"]);
        assert_eq!(wrap("one two three four", 9, 2, "…"), ["one two", "three fo…"]);
        assert_eq!(wrap("漢字漢字漢字", 5, 2, "…"), ["漢字", "漢字…"]);
        assert_eq!(wrap("漢", 1, 2, "…"), ["漢"]);
        assert_eq!(wrap("", 5, 2, "…"), Vec::<String>::new());
    }
}
