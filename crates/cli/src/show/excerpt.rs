//! The few lines of source that a finding shows, prepared for drawing: one window per place, long lines cut around
//! what is pointed at, nothing in them that could steer a terminal.
//!
//! The drawing library wants one text with one numbering. Windows are therefore laid out behind each other in a
//! made-up numbering, with a gap so that no place belongs to two of them; each knows its file and its first line.

use super::words::clean;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;
use windlass_ir::source::Position;
use windlass_ir::{Source, Sources, Span};

/// Lines shown before and after a place.
const CONTEXT_LINES: usize = 1;
/// Characters kept of a longer line, and how many of them stand before the place.
const LINE_MAX: usize = 200;
const LEAD: usize = 60;
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

/// A place in a window, and where it really is.
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
    /// The windows for these places, and where each of them came to lie. A place of several lines is reduced to its
    /// first: where something begins is what a reader looks for.
    pub fn new(sources: &Sources, spans: &[Span]) -> (Self, Vec<SourceSpan>) {
        let mut places: Vec<Place> = (0..).zip(spans).map(|(number, span)| place(sources, number, *span)).collect();
        places.sort_by_key(|place| (place.span.source, place.span.start));
        let mut windows: Vec<Window> = Vec::new();
        let mut found = vec![SourceSpan::from((0, 0)); spans.len()];
        for group in places.chunk_by(are_near) {
            let start = windows.last().map_or(0, |before| before.start + before.text.len() + 1);
            let window = Window::new(sources.get(group[0].span.source), group, start);
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
    Place { number, span: Span::new(span.source, start, end), position: sources.start_of(Span::new(span.source, start, end)) }
}

/// Whether the lines around two places touch.
fn are_near(left: &Place, right: &Place) -> bool {
    left.span.source == right.span.source && right.position.line - left.position.line <= 2 * CONTEXT_LINES + 1
}

/// The line that `offset` stands on, without its end.
fn line_around(text: &str, offset: usize) -> Range<usize> {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
    let end = if text[start..end].ends_with('\r') { end - 1 } else { end };
    start..end.max(start)
}

/// The line after the one that ends at or before the next line break behind `line`.
fn line_after(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let next = line.end + text[line.end..].find('\n')? + 1;
    // The nothing behind the last line break is no line to show.
    (next < text.len()).then(|| line_around(text, next))
}

impl Window {
    fn new(source: &Source, places: &[Place], start: usize) -> Self {
        let text = &*source.text;
        let mut lines = vec![line_around(text, places[0].span.start as usize)];
        let mut first_line = places[0].position.line;
        if lines[0].start > 0 {
            lines.insert(0, line_around(text, lines[0].start - 1));
            first_line -= 1;
        }
        let last_line = places[places.len() - 1].position.line + CONTEXT_LINES;
        while let Some(last) = lines.last().filter(|_| first_line + lines.len() <= last_line) {
            match line_after(text, last) {
                Some(next) => lines.push(next),
                None => break,
            }
        }
        // A place behind the last line break stands on a line that no other line leads to.
        let end = places[places.len() - 1].span.start as usize;
        if lines.last().is_some_and(|last| last.end < end) {
            lines.push(line_around(text, end));
        }
        let mut window =
            Self { name: clean(&source.name).into_owned(), start, text: String::new(), first_line, line_count: lines.len(), marks: Vec::new() };
        for line in lines {
            window.push_line(text, line, places);
        }
        window
    }

    fn push_line(&mut self, text: &str, line: Range<usize>, places: &[Place]) {
        let here = |place: &&Place| line.start <= place.span.start as usize && place.span.start as usize <= line.end;
        let focus = places.iter().find(here).map_or(line.start, |place| place.span.start as usize);
        let kept = keep(text, &line, focus);
        let before = if kept.start > line.start { CUT } else { "" };
        let base = self.start + self.text.len() + before.len();
        let shown = |offset: u32| base + clean(&text[kept.start..(offset as usize).clamp(kept.start, kept.end)]).len();
        for place in places.iter().filter(here).skip_while(|place| self.marks.len() > place_number(places, place)) {
            let (from, to) = (shown(place.span.start), shown(place.span.end));
            self.marks.push(Mark { span: (from, to - from).into(), position: place.position });
        }
        self.text.push_str(before);
        self.text.push_str(&clean(&text[kept.clone()]));
        self.text.push_str(if kept.end < line.end { CUT } else { "" });
        self.text.push('\n');
    }
}
