//! Text measured in the cells of a terminal: one line of toned pieces, cut so that it never needs more room than there is.

use super::words::clean;
use clap::builder::styling::{AnsiColor, Style};
use unicode_width::UnicodeWidthChar;

/// How a piece of text looks. Without colour only its words are left.
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
        let coloured = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Bold => Style::new().bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Good => coloured(AnsiColor::Green),
            Self::Bad => coloured(AnsiColor::Red),
            Self::Busy => coloured(AnsiColor::Cyan),
            Self::Ask => coloured(AnsiColor::Yellow).bold(),
        }
    }
}

/// One line. What is put on it cannot steer the terminal, and has no line breaks.
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

    /// The same within so many cells.
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

    pub fn render(&self, colour: bool) -> String {
        let piece = |(tone, text): &(Tone, String)| {
            let style = tone.style();
            if colour && *tone != Tone::Plain { format!("{style}{text}{style:#}") } else { text.clone() }
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// How many cells a text takes, at most: what a terminal joins into one picture is counted piece by piece, as one that
/// cannot join it shows it.
pub fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

fn cells(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// At most this many characters may stand in one cell: more marks on one letter are there to annoy.
const PER_CELL_MAX: usize = 8;

/// The text within so many cells; what was cut shows as dots.
pub fn fit(text: &str, width_max: usize, dots: &str) -> String {
    let short = text.chars().take(width_max.saturating_mul(PER_CELL_MAX) + 1).count();
    if width(text) <= width_max && short <= width_max * PER_CELL_MAX {
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

/// The text in lines of so many cells, broken between words where that is possible; at most so many lines.
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

/// A word that needs more than a line, as many languages write whole sentences, in parts that do not.
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
    fn marks_that_take_no_room_are_bounded() {
        let zalgo = format!("a{}", "\u{301}".repeat(10_000));
        assert!(fit(&zalgo, 10, "…").len() < 200);
    }

    #[test]
    fn a_line_is_cut_in_the_piece_where_the_room_ends() {
        let line = || Cells::default().with(Tone::Good, "ok ").with(Tone::Plain, "漢字 and more");
        assert_eq!(line().cut(40, "…").render(false), "ok 漢字 and more");
        assert_eq!(line().cut(8, "…").render(false), "ok 漢字…");
        assert_eq!(line().cut(3, "…").render(false), "ok ");
        assert_eq!(line().cut(0, "…").render(false), "");
        assert_eq!(line().cut(8, "…").render(true), "\u{1b}[32mok \u{1b}[0m漢字…");
    }

    #[test]
    fn nothing_on_a_line_steers_the_terminal() {
        let line = Cells::default().with(Tone::Plain, "a\u{1b}[2J\nb\tc\r");
        assert_eq!(line.render(false), "a\u{fffd}[2J b c\u{fffd}");
    }

    #[test]
    fn prose_is_broken_between_words() {
        assert_eq!(wrap("one two three four", 9, 3, "…"), ["one two", "three", "four"]);
        assert_eq!(wrap("one two three four", 9, 2, "…"), ["one two", "three fo…"]);
        assert_eq!(wrap("漢字漢字漢字", 5, 2, "…"), ["漢字", "漢字…"]);
        assert_eq!(wrap("漢", 1, 2, "…"), ["漢"]);
        assert_eq!(wrap("", 5, 2, "…"), Vec::<String>::new());
    }
}
