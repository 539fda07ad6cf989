//! Prepares the source lines that a finding shows: one window per place, with long lines cut around the place and control
//! sequences escaped.
//!
//! The drawing library expects one text with one numbering. Windows therefore follow each other in an artificial numbering,
//! with a gap so that no place belongs to two of them. Each window knows its file and its first line.

use super::words::clean;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;
use windlass_ir::source::Position;
use windlass_ir::{Source, Sources, Span};

/// Lines shown before and after a place.
const CONTEXT_LINES: usize = 1;
/// The most characters of a line to keep, unless the terminal is narrower.
pub const LINE_MAX: usize = 200;
const CUT: &str = "...";

#[derive(Debug)]
pub struct Excerpt {
    windows: Vec<Window>,
}

#[derive(Debug)]
struct Window {
    name: String,
    start: usize,
    text: String,
    first_line: usize,
    line_count: usize,
    marks: Vec<Mark>,
}

/// A place in a window, and its real position.
#[derive(Debug)]
struct Mark {
    span: SourceSpan,
    position: Position,
}

/// A place in a source, on one line.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: usize,
    span: Span,
    position: Position,
}

impl Excerpt {
    /// The windows for these places, and the position of each place in them. A place of several lines is reduced to its first
    /// line, because readers look for its start. Longer lines are cut to `line_max` characters.
    pub fn new(sources: &Sources, spans: &[Span], line_max: usize) -> (Self, Vec<SourceSpan>) {
        let mut places: Vec<Place> =
            (0..).zip(spans).map(|(number, span)| place(sources, number, *span)).collect();
        places.sort_by_key(|place| (place.span.source, place.span.start));
        let mut windows: Vec<Window> = Vec::new();
        let mut found = vec![SourceSpan::from((0, 0)); spans.len()];
        let mut groups: Vec<&[Place]> = places.chunk_by(are_near).collect();
        // The first place is the subject of the finding, so its window comes first.
        groups.sort_by_key(|group| group.iter().all(|place| place.number != 0));
        for group in groups {
            let start = windows.last().map_or(0, |before| before.start + before.text.len() + 1);
            let window = Window::new(sources.get(group[0].span.source), group, start, line_max);
            group.iter().zip(&window.marks).for_each(|(place, mark)| found[place.number] = mark.span);
            windows.push(window);
        }
        (Self { windows }, found)
    }
}

fn place(sources: &Sources, number: usize, span: Span) -> Place {
    let source = sources.get(span.source);
    let start = source.text.floor_char_boundary(span.start as usize);
    let end = source.text.ceil_char_boundary(span.end as usize).max(start);
    let end = end.min(line_around(&source.text, start).end).max(start);
    Place {
        number,
        span: Span::new(span.source, start, end),
        position: sources.start_of(Span::new(span.source, start, end)),
    }
}

/// Whether the lines around two places touch.
fn are_near(left: &Place, right: &Place) -> bool {
    left.span.source == right.span.source && right.position.line - left.position.line <= 2 * CONTEXT_LINES + 1
}

/// The line that contains `offset`, without its line break.
fn line_around(text: &str, offset: usize) -> Range<usize> {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
    let end = if text[start..end].ends_with('\r') { end - 1 } else { end };
    start..end.max(start)
}

/// The line after `line`, if there is one.
fn line_after(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let next = line.end + text[line.end..].find('\n')? + 1;
    Some(line_around(text, next))
}

impl Window {
    /// `places` are sorted and close to each other.
    fn new(source: &Source, places: &[Place], start: usize, line_max: usize) -> Self {
        let (first, last) = (places[0], places[places.len() - 1]);
        let lines = lines(&source.text, first, last);
        let first_line = first.position.line - CONTEXT_LINES.min(first.position.line - 1);
        let name = clean(&source.name).into_owned();
        let mut window =
            Self { name, start, text: String::new(), first_line, line_count: lines.len(), marks: Vec::new() };
        for (number, line) in (first_line..).zip(lines) {
            let here: Vec<&Place> = places.iter().filter(|place| place.position.line == number).collect();
            window.push_line(&source.text, line, &here, line_max);
        }
        window
    }

    fn push_line(&mut self, text: &str, line: Range<usize>, places: &[&Place], line_max: usize) {
        let focus = places.first().map_or(line.start, |place| place.span.start as usize);
        let kept = keep(text, &line, focus, line_max);
        self.text.push_str(if kept.start > line.start { CUT } else { "" });
        let base = self.start + self.text.len();
        let shown = |offset: u32| {
            base + clean(&text[kept.start..(offset as usize).clamp(kept.start, kept.end)]).len()
        };
        for place in places {
            let (from, to) = (shown(place.span.start), shown(place.span.end));
            self.marks.push(Mark { span: (from, to - from).into(), position: place.position });
        }
        self.text.push_str(&clean(&text[kept.clone()]));
        self.text.push_str(if kept.end < line.end { CUT } else { "" });
        self.text.push('\n');
    }

    fn holds(&self, span: &SourceSpan) -> bool {
        self.start <= span.offset() && span.offset() + span.len() <= self.start + self.text.len()
    }

    fn contents(&self, line: usize, column: usize) -> MietteSpanContents<'_> {
        let span = (self.start, self.text.len()).into();
        MietteSpanContents::new_named(
            self.name.clone(),
            self.text.as_bytes(),
            span,
            line - 1,
            column,
            self.line_count,
        )
    }
}

/// The lines from before the first place to after the last.
fn lines(text: &str, first: Place, last: Place) -> Vec<Range<usize>> {
    let mut lines = vec![line_around(text, first.span.start as usize)];
    let wanted = last.position.line - first.position.line + 1;
    while let Some(next) = lines.last().and_then(|line| line_after(text, line)) {
        // The empty line after the last line break appears only if a place is there.
        let is_context = lines.len() >= wanted;
        if lines.len() == wanted + CONTEXT_LINES || (is_context && next.start == text.len()) {
            break;
        }
        lines.push(next);
    }
    if let Some(before) = lines[0].start.checked_sub(1) {
        lines.insert(0, line_around(text, before));
    }
    lines
}

/// The visible part of a line: all of it, or a part around `focus` with a third of the room before it.
fn keep(text: &str, line: &Range<usize>, focus: usize, line_max: usize) -> Range<usize> {
    let after =
        |from: usize| text[from..line.end].char_indices().nth(line_max).map_or(line.end, |(at, _)| from + at);
    if after(line.start) == line.end {
        return line.clone();
    }
    let before = &text[line.start..focus.clamp(line.start, line.end)];
    let start = before.char_indices().rev().nth(line_max / 3).map_or(line.start, |(at, _)| line.start + at);
    start..after(start)
}

impl SourceCode for Excerpt {
    /// Without context lines the library asks for the real position; otherwise for the text to draw.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        _lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let window = self.windows.iter().find(|window| window.holds(span)).ok_or(MietteError::OutOfBounds)?;
        let mark = window.marks.iter().find(|mark| mark.span == *span).filter(|_| lines_before == 0);
        Ok(Box::new(match mark {
            Some(mark) => window.contents(mark.position.line, mark.position.column - 1),
            None => window.contents(window.first_line, 0),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_ir::SourceId;

    /// Each window as its first line number and its text, with the places in brackets.
    fn check(text: &str, places: &[(usize, usize)], expected: &[(usize, &str)]) {
        let mut sources = Sources::default();
        let id = sources.add(Source::new("f", text));
        let spans: Vec<Span> = places.iter().map(|(start, end)| Span::new(id, *start, *end)).collect();
        let (excerpt, found) = Excerpt::new(&sources, &spans, 30);
        assert_eq!(found.len(), spans.len());
        let windows: Vec<(usize, String)> =
            excerpt.windows.iter().map(|window| (window.first_line, bracketed(window))).collect();
        let windows: Vec<(usize, &str)> = windows.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(windows, expected, "{text:?} {places:?}");
    }

    fn bracketed(window: &Window) -> String {
        let mut text = window.text.clone();
        for mark in window.marks.iter().rev() {
            let start = mark.span.offset() - window.start;
            text.insert(start + mark.span.len(), ']');
            text.insert(start, '[');
        }
        text
    }

    #[test]
    fn one_line_of_context_on_each_side() {
        check("a\nb\nc\nd\n", &[(2, 3)], &[(1, "a\n[b]\nc\n")]);
        check("a\nb\nc\nd\n", &[(0, 1)], &[(1, "[a]\nb\n")]);
        check("a\nb\nc\nd\n", &[(6, 7)], &[(3, "c\n[d]\n")]);
        check("a", &[(0, 1)], &[(1, "[a]\n")]);
    }

    #[test]
    fn empty_places_ends_of_lines_and_the_end_of_the_file() {
        check("ab\ncd", &[(1, 1)], &[(1, "a[]b\ncd\n")]);
        check("ab\ncd", &[(2, 2)], &[(1, "ab[]\ncd\n")]);
        check("ab\ncd", &[(5, 5)], &[(1, "ab\ncd[]\n")]);
        check("ab\ncd\n", &[(6, 6)], &[(2, "cd\n[]\n")]);
        check("ab", &[(90, 95)], &[(1, "ab[]\n")]);
        check("", &[(0, 0)], &[(1, "[]\n")]);
    }

    #[test]
    fn carriage_returns_are_not_shown() {
        check("ab\r\ncd\r\nef", &[(4, 6)], &[(1, "ab\n[cd]\nef\n")]);
        check("ab\r\ncd\r\nef", &[(6, 8)], &[(1, "ab\ncd[]\nef\n")]);
    }

    #[test]
    fn a_place_of_several_lines_is_reduced_to_the_first() {
        check("a: |\n  b\n  c\nd", &[(3, 12)], &[(1, "a: [|]\n  b\n")]);
    }

    #[test]
    fn a_place_inside_a_character_covers_all_of_it() {
        check("a漢b", &[(2, 3)], &[(1, "a[漢]b\n")]);
    }

    #[test]
    fn near_places_share_a_window_and_far_ones_do_not() {
        check("1\n2\n3\n4\n5\n6\n7\n8", &[(0, 1), (6, 7)], &[(1, "[1]\n2\n3\n[4]\n5\n")]);
        check("1\n2\n3\n4\n5\n6\n7\n8", &[(0, 1), (8, 9)], &[(1, "[1]\n2\n"), (4, "4\n[5]\n6\n")]);
        check("1\n2\n3\n4\n5\n6\n7\n8", &[(8, 9), (0, 1)], &[(4, "4\n[5]\n6\n"), (1, "[1]\n2\n")]);
        check("ab", &[(1, 2), (0, 1)], &[(1, "[a][b]\n")]);
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let (long, part) = ("é".repeat(1_000), |count| "é".repeat(count));
        check(&long, &[(1_000, 1_002)], &[(1, &format!("...{}[é]{}...\n", part(11), part(18)))]);
        check(&long, &[(0, 2)], &[(1, &format!("[é]{}...\n", part(29)))]);
        check(&long, &[(2_000, 2_000)], &[(1, &format!("...{}[]\n", part(11)))]);
        check(&part(30), &[(0, 0)], &[(1, &format!("[]{}\n", part(30)))]);
    }

    #[test]
    fn control_characters_are_replaced() {
        check("\u{1b}[0m\u{9b}x", &[(6, 7)], &[(1, "\u{fffd}[0m\u{fffd}[x]\n")]);
    }

    #[test]
    fn places_in_several_files_have_windows_of_their_own() {
        let mut sources = Sources::default();
        let files = ["base", "over"].map(|text| sources.add(Source::new(format!("{text}.yaml"), text)));
        let spans = files.map(|id: SourceId| Span::new(id, 0, 4));
        let (excerpt, found) = Excerpt::new(&sources, &spans, 30);
        let names: Vec<_> = found
            .iter()
            .map(|span| {
                let contents = excerpt.read_span(span, 1, 1).expect("a place in a window");
                (contents.name().map(str::to_owned), contents.data().to_owned())
            })
            .collect();
        let shown = |name: &str, text: &str| (Some(name.to_owned()), text.as_bytes().to_owned());
        assert_eq!(names, [shown("base.yaml", "base\n"), shown("over.yaml", "over\n")]);
    }
}
