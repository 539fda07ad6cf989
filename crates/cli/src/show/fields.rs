//! Labeled fields, with the labels in one column and their values in the next.

use super::Screen;
use super::words::clean;
use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, Width};

/// Rows of a label and its lines. Rows without lines are omitted.
#[derive(Debug, Default)]
pub struct Fields {
    rows: Vec<(&'static str, String)>,
}

impl Fields {
    pub fn add(&mut self, label: &'static str, content: impl Into<String>) {
        let content = content.into();
        if !content.is_empty() {
            self.rows.push((label, clean(&content).into_owned()));
        }
    }

    pub fn add_lines(&mut self, label: &'static str, lines: impl IntoIterator<Item = String>) {
        self.add(label, lines.into_iter().collect::<Vec<_>>().join("\n"));
    }

    /// The rows, with `indent` spaces before each line.
    pub fn render(&self, indent: usize, screen: &Screen) -> String {
        let Some(longest) = self.rows.iter().map(|(label, _)| label.len()).max() else {
            return String::new();
        };
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING).enforce_styling();
        if let Some(width) = screen.width {
            let room = width.saturating_sub(u16::try_from(indent).unwrap_or(u16::MAX)).max(ROOM_MIN);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(room);
        }
        for (label, content) in &self.rows {
            let label = Cell::new(format!("{label}:"));
            let label = if screen.color { label.add_attribute(Attribute::Dim) } else { label };
            table.add_row([label, Cell::new(content)]);
        }
        let label_width = u16::try_from(longest + 2).unwrap_or(u16::MAX);
        if let Some(column) = table.column_mut(0) {
            column.set_padding((0, 1)).set_constraint(ColumnConstraint::Absolute(Width::Fixed(label_width)));
        }
        if let Some(column) = table.column_mut(1) {
            column.set_padding((0, 0));
        }
        table.lines().map(|line| " ".repeat(indent) + line.trim_end() + "\n").collect()
    }
}

/// The smallest width of a value, however deep the indentation.
const ROOM_MIN: u16 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&'static str, &str)], screen: Screen, expected: &str) {
        let mut fields = Fields::default();
        rows.iter().for_each(|(label, content)| fields.add(label, *content));
        assert_eq!(fields.render(2, &screen), expected);
    }

    #[test]
    fn labels_are_aligned_and_empty_rows_omitted() {
        let rows = [("Agent", "agent:x (opus)"), ("Outputs", "a: string\nb: integer"), ("Tools", "")];
        check(
            &rows,
            Screen::default(),
            "  Agent:   agent:x (opus)\n  Outputs: a: string\n           b: integer\n",
        );
        check(&[], Screen::default(), "");
    }

    #[test]
    fn long_content_wraps_only_at_a_known_width() {
        let words = "one two three four five six seven eight nine ten";
        check(&[("A", words)], Screen::default(), &format!("  A: {words}\n"));
        let narrow = Screen { width: Some(42), ..Screen::default() };
        check(&[("A", words)], narrow, "  A: one two three four five six seven\n     eight nine ten\n");
    }

    #[test]
    fn labels_are_dim_in_color() {
        let color = Screen { color: true, ..Screen::default() };
        check(&[("A", "b")], color, "  \u{1b}[2mA: \u{1b}[0mb\n");
    }
}
