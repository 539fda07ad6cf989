//! Frames become what a terminal is told: where the lines are that were shown last, which of them changed, and what is left of
//! them when the screen is another size. The lines stand in the normal flow of the terminal, below what was printed before, and
//! stay there at the end.

use super::frame::Size;
use crate::show::cells::Cells;

/// Knows what is on the screen. Between frames the cursor stands at the beginning of the last line.
#[derive(Debug, Default)]
pub struct Painter {
    shown: Vec<Shown>,
    size: Option<Size>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    text: String,
    width: usize,
}

/// All at once where the terminal can, without the cursor, and without lines that run on below.
const BEGIN: &str = "\u{1b}[?2026h\u{1b}[?25l\u{1b}[?7l\r";
const END: &str = "\r\u{1b}[?7h\u{1b}[?25h\u{1b}[?2026l";
const ERASE_LINE: &str = "\u{1b}[K";
const ERASE_BELOW: &str = "\u{1b}[J";

impl Painter {
    /// What brings these lines onto the screen in place of those that were there.
    pub fn paint(&mut self, lines: &[Cells], size: Size, colour: bool) -> String {
        let lines: Vec<Shown> =
            lines.iter().map(|line| Shown { text: line.render(colour), width: line.width() }).collect();
        let same_size = self.size == Some(size);
        if same_size && self.shown == lines {
            return String::new();
        }
        let mut text = BEGIN.to_owned() + &self.up(size);
        if !same_size {
            text += ERASE_BELOW;
        }
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                text += "\r\n";
            }
            if !same_size || self.shown.get(number) != Some(line) {
                text += &line.text;
                text += ERASE_LINE;
            }
        }
        if same_size && self.shown.len() > lines.len() {
            // The cursor may stand in a line that is right already.
            text += "\n\r";
            text += ERASE_BELOW;
            text += "\u{1b}[A";
        }
        (self.shown, self.size) = (lines, Some(size));
        text + END
    }

    /// Takes the lines away, so that something else can be printed where they were.
    pub fn clear(&mut self, size: Size) -> String {
        let text = if self.shown.is_empty() {
            String::new()
        } else {
            BEGIN.to_owned() + &self.up(size) + ERASE_BELOW + END
        };
        *self = Self::default();
        text
    }

    /// Prints lines that stay, in place of those that were there.
    pub fn leave(&mut self, lines: &[Cells], size: Size, colour: bool) -> String {
        let text: String = lines.iter().map(|line| line.render(colour) + "\r\n").collect();
        self.clear(size) + &text
    }

    /// Up to the first line that was shown. A terminal that became narrower has broken the longer ones.
    fn up(&self, size: Size) -> String {
        let Some((_, before)) = self.shown.split_last() else { return String::new() };
        let rows: usize = before.iter().map(|line| line.width.max(1).div_ceil(size.width.max(1))).sum();
        match rows.min(size.height.saturating_sub(1)) {
            0 => String::new(),
            rows => format!("\u{1b}[{rows}A"),
        }
    }
}
