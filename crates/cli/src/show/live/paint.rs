//! Turns frames into terminal output. It tracks where the last lines are, which of them changed, and how resizing the screen
//! affects them. The lines are part of the normal terminal output, below earlier lines, and remain there at the end.

use super::frame::Size;
use crate::show::cells::Cells;

/// Tracks the contents of the screen. Between frames the cursor is at the beginning of the last line.
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

/// Starts a synchronized update, hides the cursor, and turns off line wrapping.
const BEGIN: &str = "\u{1b}[?2026h\u{1b}[?25l\u{1b}[?7l\r";
const END: &str = "\r\u{1b}[?7h\u{1b}[?25h\u{1b}[?2026l";
const ERASE_LINE: &str = "\u{1b}[K";
const ERASE_BELOW: &str = "\u{1b}[J";

impl Painter {
    /// The output that replaces the current lines.
    pub fn paint(&mut self, lines: &[Cells], size: Size, color: bool) -> String {
        let lines: Vec<Shown> =
            lines.iter().map(|line| Shown { text: line.render(color), width: line.width() }).collect();
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
            // The cursor may be in a line that is still correct.
            text += "\n\r";
            text += ERASE_BELOW;
            text += "\u{1b}[A";
        }
        (self.shown, self.size) = (lines, Some(size));
        text + END
    }

    /// Removes the lines to make room for other output.
    pub fn clear(&mut self, size: Size) -> String {
        let text = if self.shown.is_empty() {
            String::new()
        } else {
            BEGIN.to_owned() + &self.up(size) + ERASE_BELOW + END
        };
        *self = Self::default();
        text
    }

    /// Replaces the current lines with lines that stay.
    pub fn leave(&mut self, lines: &[Cells], size: Size, color: bool) -> String {
        let text: String = lines.iter().map(|line| line.render(color) + "\r\n").collect();
        self.clear(size) + &text
    }

    /// Moves the cursor to the first line. A terminal that became narrower has wrapped longer lines.
    fn up(&self, size: Size) -> String {
        let Some((_, before)) = self.shown.split_last() else { return String::new() };
        let rows: usize = before.iter().map(|line| line.width.max(1).div_ceil(size.width.max(1))).sum();
        match rows.min(size.height.saturating_sub(1)) {
            0 => String::new(),
            rows => format!("\u{1b}[{rows}A"),
        }
    }
}
