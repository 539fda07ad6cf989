//! Parses YAML 1.2 into a tree: the parser's events get exact locations and go into the [`Tree`]. Events of anchored
//! nodes are also recorded on a tape, and an alias replays its part of the tape.

use super::mapping::{Reports, shorten};
use super::tree::{Shape, Tree};
use super::{Fatal, Kind, Limits, Node, Scalar, Style, decode, empty_file, syntax};
use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, Tag};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use windlass_ir::{Code, Diagnostic, Span};

pub(super) fn read(text: &str, reports: &mut Reports, limits: &Limits) -> Result<Option<Node>, Fatal> {
    check_characters(text, reports)?;
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: limits.depth(),
        block_nesting_limit: limits.depth(),
    };
    let mut reader = Reader::new(text, reports, limits);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| reader.fatal(&error))?;
        let range = span.byte_range().unwrap_or_default();
        reader.take(event, range)?;
        if reader.documents > 1 {
            break;
        }
    }
    reader.finish()
}

/// Characters that YAML does not allow. The parser treats some of them as the end of the file.
fn check_characters(text: &str, reports: &Reports) -> Result<(), Fatal> {
    let bytes = text.as_bytes();
    let forbidden = bytes.iter().enumerate().position(|(at, byte)| match byte {
        0x20..=0x7E => false,
        0x7F => true,
        0xC2 => matches!(bytes.get(at + 1), Some(0x80..=0x84 | 0x86..=0x9F)),
        0xEF => matches!(bytes.get(at + 1..at + 3), Some([0xBF, 0xBE | 0xBF])),
        byte => decode::is_control(*byte),
    });
    let Some((at, character)) = forbidden.and_then(|at| Some((at, text.get(at..)?.chars().next()?))) else {
        return Ok(());
    };
    let message = format!("the character U+{:04X} is not allowed in YAML", u32::from(character));
    let span = reports.span(at, at + character.len_utf8());
    let help = "remove it; inside double quotes it can be written as an escape such as \"\\x1b\"";
    Err(Box::new(Diagnostic::error(Code::Unreadable, message).at(span).help(help)))
}

/// The first position of one of `wanted` at or after `from`, if only whitespace, comments, anchors, tags and opening
/// punctuation precede it.
pub(super) fn find_indicator(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let is_blank = |at: usize| bytes.get(at).is_none_or(u8::is_ascii_whitespace);
    let mut at = from;
    loop {
        let byte = *bytes.get(at)?;
        if wanted.contains(&byte) && (byte != b'-' || is_blank(at + 1)) {
            return Some(at);
        }
        at += match byte {
            b'#' if at == 0 || is_blank(at - 1) => {
                bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'))?
            }
            b'&' | b'!' => bytes[at..].iter().position(u8::is_ascii_whitespace)?,
            b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' | b'?' | b'-' | b'[' | b'{' => 1,
            _ => return None,
        };
    }
}

/// One event with its location, independent of its use: an entry of the tape.
#[derive(Clone)]
enum Step {
    Scalar(Scalar, Span),
    Open(Shape, usize),
    Close(usize),
    Alias(usize, Span),
}

/// A part of the tape; it has no end while the anchored node is being read.
struct Anchor {
    start: usize,
    end: Option<usize>,
}

struct Reader<'a> {
    text: &'a str,
    reports: &'a mut Reports,
    limits: &'a Limits,
    tree: Tree<'a>,
    texts: Texts,
    documents: usize,
    /// The end of the content so far: block collections end there, and the search for indicators starts there.
    content_end: usize,
    last_scalar: Range<usize>,
    tape: Vec<Step>,
    anchors: HashMap<usize, Anchor>,
    /// The anchor of each open collection, 0 for none.
    collections: Vec<usize>,
    recording: usize,
    copied: usize,
    /// A value is unknown, so the meaning of the tree cannot be checked.
    is_incomplete: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, reports: &'a mut Reports, limits: &'a Limits) -> Self {
        Self {
            text,
            reports,
            limits,
            tree: Tree::new(text, limits),
            texts: Texts::default(),
            documents: 0,
            content_end: 0,
            last_scalar: 0..0,
            tape: Vec::new(),
            anchors: HashMap::new(),
            collections: Vec::new(),
            recording: 0,
            copied: 0,
            is_incomplete: false,
        }
    }

    fn fatal(&self, error: &granit_parser::ScanError) -> Fatal {
        let context = syntax::Context {
            text: self.text,
            id: self.reports.id,
            limits: self.limits,
            content_end: self.content_end,
            last_scalar: self.last_scalar.clone(),
        };
        context.explain(error)
    }

    fn finish(self) -> Result<Option<Node>, Fatal> {
        let is_absent = |node: &Node| match &node.kind {
            Kind::Scalar(scalar) => {
                scalar.text.is_empty() && scalar.style == Style::Plain && scalar.tag.is_none()
            }
            Kind::List(_) | Kind::Map(_) => false,
        };
        match self.tree.root {
            Some(_) if self.is_incomplete => Ok(None),
            Some(root) if !is_absent(&root) => Ok(Some(root)),
            Some(_) | None => Err(empty_file(self.reports.id)),
        }
    }

    fn take(&mut self, event: Event<'_>, range: Range<usize>) -> Result<(), Fatal> {
        match event {
            Event::DocumentStart(is_explicit, _) => {
                self.document_start(is_explicit, range);
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), range);
                Ok(())
            }
            Event::SequenceStart(style, anchor, tag) => {
                let start = self.list_start(style, range);
                self.open(Shape::List, start, anchor, tag.as_deref())
            }
            Event::MappingStart(style, anchor, tag) => {
                self.content_end = self.content_end.max(range.end);
                let shape = match style {
                    StructureStyle::Block => Shape::BlockMap,
                    StructureStyle::Flow => Shape::FlowMap,
                };
                self.open(shape, range.start, anchor, tag.as_deref())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close(range);
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, range),
            Event::UnresolvedAlias(name) => {
                self.unknown_alias(&name, range);
                Ok(())
            }
            // All other events concern the stream, not a node.
            _ => Ok(()),
        }
    }

    fn document_start(&mut self, is_explicit: bool, range: Range<usize>) {
        self.documents += 1;
        if is_explicit {
            self.content_end = range.end;
        }
        if self.documents > 1 {
            let message = "unexpected second document: a workflow file can only contain one";
            let help = "move it to a separate file, or remove the `---` or `...` before it";
            let span = self.reports.span(range.start, range.end);
            self.reports.push(Diagnostic::error(Code::Syntax, message).at(span).help(help));
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        range: Range<usize>,
    ) {
        // An omitted value arrives as `~` without a position.
        let is_absent = range.is_empty() && style == ScalarStyle::Plain;
        let place = match style {
            ScalarStyle::Plain if is_absent => self.absent_place(range.start),
            ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => range,
            ScalarStyle::Literal | ScalarStyle::Folded => self.block_scalar_place(range),
        };
        let span = self.reports.span(place.start, place.end);
        self.content_end = self.content_end.max(place.end);
        self.last_scalar = place;
        let text = self.texts.get(if is_absent { "" } else { text });
        let scalar = Scalar { text, style: style_of(style), tag: tag.map(|tag| tag.to_string().into()) };
        if let Some(tag) = tag.filter(|_| scalar.contradicts_its_tag()) {
            self.reports.push(contradiction(&format!("`{}`", shorten(&scalar.text)), tag, span));
        }
        self.start_anchor(anchor);
        self.record(|| Step::Scalar(scalar.clone(), span));
        self.end_anchor(anchor);
        self.tree.scalar(scalar, span, self.reports);
    }

    /// An omitted value is located after its `:` or `-`.
    fn absent_place(&self, at: usize) -> Range<usize> {
        let bytes = self.text.as_bytes();
        if bytes.get(at) == Some(&b':') {
            return at + 1..at + 1;
        }
        let gap = &bytes[self.content_end.min(at)..at];
        let at = at - gap.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
        at..at
    }

    /// The parser's range for a block scalar is its content and the blank lines after it; the location for people
    /// starts with the `|` or `>` and ends with the last character.
    fn block_scalar_place(&self, range: Range<usize>) -> Range<usize> {
        let before = &self.text.as_bytes()[..range.end];
        let header = find_indicator(before, self.content_end, b"|>").filter(|start| *start <= range.start);
        let start = header.unwrap_or(range.start);
        start..start + self.text[start..range.end].trim_ascii_end().len()
    }

    /// A list at the indentation of its key is reported after its first `-`; that dash is its start.
    fn list_start(&mut self, style: StructureStyle, range: Range<usize>) -> usize {
        if style == StructureStyle::Flow {
            self.content_end = self.content_end.max(range.end);
            return range.start;
        }
        let dash = match self.tree.is_in_block_mapping() {
            true => find_indicator(self.text.as_bytes(), self.content_end, b"-")
                .filter(|dash| *dash <= range.start),
            false => None,
        };
        let start = dash.unwrap_or(range.start);
        self.content_end = self.content_end.max(start);
        start
    }

    fn open(&mut self, shape: Shape, start: usize, anchor: usize, tag: Option<&Tag>) -> Result<(), Fatal> {
        if let Some(tag) = tag {
            self.check_collection_tag(shape, start, tag);
        }
        self.start_anchor(anchor);
        self.collections.push(anchor);
        self.record(|| Step::Open(shape, start));
        self.tree.open(shape, start, None, self.reports)
    }

    fn close(&mut self, range: Range<usize>) {
        // Only the bracket of a flow collection has its own location; a block ends with its content.
        if !range.is_empty() {
            self.content_end = self.content_end.max(range.end);
        }
        let end = self.content_end;
        self.record(|| Step::Close(end));
        let anchor = self.collections.pop().unwrap_or_default();
        self.end_anchor(anchor);
        self.tree.close(end, self.reports);
    }

    fn check_collection_tag(&mut self, shape: Shape, start: usize, tag: &Tag) {
        let span = self.reports.span(start, start);
        let (own, word) = match shape {
            Shape::List => ("seq", "a list"),
            Shape::BlockMap | Shape::FlowMap => ("map", "a mapping"),
        };
        match tag.core_suffix() {
            Some(name) if name == own => {}
            Some(_) => self.reports.push(contradiction(word, tag, span)),
            None => {
                let message = format!("the tag `{}` on {word} has no meaning here", shorten(&tag.original()));
                let warning = Diagnostic::warning(Code::WrongShape, message);
                self.reports.push(warning.at(span).help("remove the tag; it is ignored"));
            }
        }
    }

    fn alias(&mut self, anchor: usize, range: Range<usize>) -> Result<(), Fatal> {
        self.content_end = self.content_end.max(range.end);
        let span = self.reports.span(range.start, range.end);
        self.record(|| Step::Alias(anchor, span));
        self.reports.is_muted = true;
        let played = self.play(anchor, span);
        self.reports.is_muted = false;
        played
    }

    /// Builds the anchored node again, including aliases inside it. An anchor is complete before its first alias, so
    /// this terminates; the limits on nodes and depth bound it.
    fn play(&mut self, anchor: usize, place: Span) -> Result<(), Fatal> {
        let mut parts = vec![self.part_of_tape(anchor, place)?];
        let mut alias = Some(place);
        while let Some(part) = parts.last_mut() {
            let Some(at) = part.next() else {
                parts.pop();
                continue;
            };
            match self.tape[at].clone() {
                Step::Scalar(scalar, span) => {
                    self.count_copy(place)?;
                    self.tree.scalar(scalar, alias.take().unwrap_or(span), self.reports);
                }
                Step::Open(shape, start) => {
                    self.count_copy(place)?;
                    self.tree.open(shape, start, alias.take(), self.reports)?;
                }
                Step::Close(end) => self.tree.close(end, self.reports),
                Step::Alias(anchor, span) => {
                    parts.push(self.part_of_tape(anchor, span)?);
                    alias = Some(span);
                }
            }
        }
        Ok(())
    }

    fn part_of_tape(&self, anchor: usize, place: Span) -> Result<Range<usize>, Fatal> {
        if let Some(Anchor { start, end: Some(end) }) = self.anchors.get(&anchor) {
            return Ok(*start..*end);
        }
        let message = "this alias is inside the value that it refers to";
        let help = "write the value out, or move the alias out of the anchored value";
        Err(Box::new(Diagnostic::error(Code::Syntax, message).at(place).help(help)))
    }

    fn count_copy(&mut self, place: Span) -> Result<(), Fatal> {
        self.copied += 1;
        if self.copied <= self.limits.alias_nodes_max {
            return Ok(());
        }
        let message =
            format!("the aliases of this file copy more than {} values", self.limits.alias_nodes_max);
        let help = "use fewer aliases, or anchors with less below them";
        Err(Box::new(Diagnostic::error(Code::AliasExpansion, message).at(place).help(help)))
    }

    fn unknown_alias(&mut self, name: &str, range: Range<usize>) {
        self.content_end = self.content_end.max(range.end);
        let span = self.reports.span(range.start, range.end);
        let name = shorten(name);
        let message = format!("the alias `*{name}` has no anchor `&{name}` before it");
        let help =
            format!("add `&{name}` to a value above, or quote this value if the `*` is part of its text");
        self.reports.push(Diagnostic::error(Code::Syntax, message).at(span).help(help).reference(name));
        self.is_incomplete = true;
        let scalar = Scalar { text: self.texts.get(""), style: Style::Plain, tag: None };
        self.record(|| Step::Scalar(scalar.clone(), span));
        self.tree.scalar(scalar, span, self.reports);
    }

    fn start_anchor(&mut self, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, Anchor { start: self.tape.len(), end: None });
            self.recording += 1;
        }
    }

    fn end_anchor(&mut self, anchor: usize) {
        if anchor != 0
            && let Some(open) = self.anchors.get_mut(&anchor)
        {
            open.end = Some(self.tape.len());
            self.recording -= 1;
        }
    }

    fn record(&mut self, step: impl FnOnce() -> Step) {
        if self.recording > 0 {
            self.tape.push(step());
        }
    }
}

fn contradiction(what: &str, tag: &Tag, span: Span) -> Diagnostic {
    let message = format!("{what} has the tag `{}`, which does not match", shorten(&tag.original()));
    Diagnostic::error(Code::WrongShape, message).at(span).help("correct the value, or remove the tag")
}

fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

/// Shares equal texts. Keys and short values repeat often in a workflow, so the last text of each hash is kept: a hit
/// saves an allocation, a miss costs nothing.
struct Texts {
    recent: Vec<Arc<str>>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { recent: vec![Arc::from(""); Self::SLOTS] }
    }
}

impl Texts {
    const SLOTS: usize = 256;
    const LENGTH_MAX: usize = 24;

    fn get(&mut self, text: &str) -> Arc<str> {
        if text.len() > Self::LENGTH_MAX {
            return Arc::from(text);
        }
        let hash =
            text.bytes().fold(text.len(), |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let slot = &mut self.recent[hash % Self::SLOTS];
        if **slot != *text {
            *slot = Arc::from(text);
        }
        slot.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Read, read};
    use super::*;
    use windlass_ir::{Source, SourceId};

    fn read_yaml(text: &str) -> Read {
        read(&Source::new("f", text), SourceId(0), Format::Yaml, &Limits::default())
    }

    fn under(text: &str, span: Span) -> &str {
        &text[span.start as usize..span.end as usize]
    }

    /// Findings as `code at "source" (label "source"): message`.
    fn findings(text: &str) -> Vec<String> {
        let read = read_yaml(text);
        let shown = read.diagnostics.iter().map(|found| {
            assert_ne!(found.help, "", "{}", found.message);
            let span = found.span.expect("every finding of the reader has a place");
            let labels: String = found
                .labels
                .iter()
                .map(|label| format!(" ({} {:?})", label.text, under(text, label.span)))
                .collect();
            format!("{}@{} {:?}{labels}: {}", found.code, span.start, under(text, span), found.message)
        });
        shown.collect()
    }

    /// Parses `text`, which has no findings; the value is compact JSON.
    fn check(text: &str, expected: &str) {
        assert_eq!(findings(text), [""; 0], "{text:?}");
        let value = read_yaml(text).root.expect("read without findings").to_value();
        assert_eq!(value.to_json_text().as_deref(), Some(expected), "{text:?}");
    }

    fn check_findings(text: &str, expected: &[&str]) {
        assert_eq!(findings(text), expected, "{text:?}");
    }

    /// Every node in reading order as the source under its span; keys as `key=`.
    fn check_spans(text: &str, expected: &[&str]) {
        fn walk(text: &str, node: &Node, out: &mut Vec<String>) {
            out.push(under(text, node.span).to_owned());
            match &node.kind {
                Kind::Scalar(_) => {}
                Kind::List(items) => items.iter().for_each(|item| walk(text, item, out)),
                Kind::Map(map) => {
                    for entry in &map.entries {
                        out.push(format!("{}=", under(text, entry.key.span)));
                        walk(text, &entry.value, out);
                    }
                }
            }
        }
        let mut spans = Vec::new();
        walk(text, &read_yaml(text).root.expect("readable"), &mut spans);
        assert_eq!(spans, expected, "{text:?}");
    }

    #[test]
    fn collections_and_scalars() {
        check(
            "a: 1\nb: [x, 'y', \"z\"]\nc: {d: null, e: , f}\n",
            r#"{"a":1,"b":["x","y","z"],"c":{"d":null,"e":null,"f":null}}"#,
        );
        check("- - a\n  - b\n-\n- c: 1\n  d: 2\n", r#"[["a","b"],null,{"c":1,"d":2}]"#);
        check("a:\n- 1\n- 2\nb: x\n", r#"{"a":[1,2],"b":"x"}"#);
        check(
            "a: |\n  one\n   two\n\nb: >-\n  one\n  two\n\n  three\n",
            r#"{"a":"one\n two\n","b":"one two\nthree"}"#,
        );
        check("a: one\n  two\n", r#"{"a":"one two"}"#);
        check("? a\n: b\n? c\n", r#"{"a":"b","c":null}"#);
        check("%YAML 1.2\n---\na: b\n...\n", r#"{"a":"b"}"#);
        check("x: ~\ny: !!str\nz: !!str 12\nw: ! 12\n", r#"{"x":null,"y":"","z":"12","w":"12"}"#);
        check("run: ${{ a == 'b' }}\n", r#"{"run":"${{ a == 'b' }}"}"#);
        check("1: a\ntrue: b\n~: c\n", r#"{"1":"a","true":"b","~":"c"}"#);
        check("\u{FEFF}a: b", r#"{"a":"b"}"#);
        check("a: \"\\ud83d\\ude00\\x41\\_\"", "{\"a\":\"😀A\u{A0}\"}");
    }

    #[test]
    fn all_line_endings_are_equivalent() {
        let text = "a:\n- |\n  x\n  y\n- \"p\n  q\"\n# c\nb: >\n  r\n  s\n";
        for end in ["\n", "\r\n", "\r"] {
            check(&text.replace('\n', end), r#"{"a":["x\ny\n","p q"],"b":"r s\n"}"#);
        }
    }

    #[test]
    fn tags_are_kept_in_full() {
        let root = read_yaml("%TAG !e! tag:e.org:\n---\n[!!str a, !own b, !<tag:x> c, !e!d d, e]").root;
        let Some(Node { kind: Kind::List(items), .. }) = root else { panic!("a list") };
        let tags: Vec<_> = items
            .iter()
            .map(|item| match &item.kind {
                Kind::Scalar(scalar) => scalar.tag.as_deref(),
                Kind::List(_) | Kind::Map(_) => panic!("a scalar"),
            })
            .collect();
        assert_eq!(
            tags,
            [Some("tag:yaml.org,2002:str"), Some("!own"), Some("tag:x"), Some("tag:e.org:d"), None]
        );
    }

    #[test]
    fn spans_cover_the_source_text() {
        check_spans(
            "a: 'x'\nb: \"y\"  # c\nc: z\n\n",
            &["a: 'x'\nb: \"y\"  # c\nc: z", "a=", "'x'", "b=", "\"y\"", "c=", "z"],
        );
        check_spans(
            "a:\n  - x\n  - y\n\n\nb: 1\n",
            &["a:\n  - x\n  - y\n\n\nb: 1", "a=", "- x\n  - y", "x", "y", "b=", "1"],
        );
        check_spans(
            "a: # - c\n# - d\n- - x\n- é\n\n# e\nb: 1",
            &["a: # - c\n# - d\n- - x\n- é\n\n# e\nb: 1", "a=", "- - x\n- é", "- x", "x", "é", "b=", "1"],
        );
        check_spans("a: &q !!seq\n- x\n", &["a: &q !!seq\n- x", "a=", "- x", "x"]);
        check_spans(
            "a: [ x, {b: c} ] # d\n",
            &["a: [ x, {b: c} ]", "a=", "[ x, {b: c} ]", "x", "{b: c}", "b=", "c"],
        );
        check_spans("[a: b, ? c : d]", &["[a: b, ? c : d]", "a: b", "a=", "b", "? c : d", "c=", "d"]);
        check_spans("- one\n  two\n", &["- one\n  two", "one\n  two"]);
        check_spans(
            "-\n  a: 1\n  b:\n    c: 2\n\n",
            &["-\n  a: 1\n  b:\n    c: 2", "a: 1\n  b:\n    c: 2", "a=", "1", "b=", "c: 2", "c=", "2"],
        );
    }

    #[test]
    fn spans_of_block_scalars_start_with_their_header() {
        check_spans(
            "a: | # c | d\n\n  x\n  # y\n\n\nb: >-\n  z\n",
            &["a: | # c | d\n\n  x\n  # y\n\n\nb: >-\n  z", "a=", "| # c | d\n\n  x\n  # y", "b=", ">-\n  z"],
        );
        check_spans(
            "- |\n x\n- !!str >2\n   y\n# c\n- |-\n",
            &["- |\n x\n- !!str >2\n   y\n# c\n- |-", "|\n x", ">2\n   y", "|-"],
        );
        check_spans("--- |+\n\n\n", &["|+"]);
        check_spans("? |\n  k\n: - v\n", &["? |\n  k\n: - v", "|\n  k=", "- v", "v"]);
    }

    #[test]
    fn omitted_values_are_located_after_their_indicator() {
        let place = |text: &str| {
            let root = read_yaml(text).root.expect("readable");
            match root.kind {
                Kind::Map(map) => map.entries[0].value.span,
                Kind::List(items) => items[0].span,
                Kind::Scalar(_) => root.span,
            }
        };
        for (text, expected) in [
            ("a:\nb: 1", 2),
            ("a : \nb: 1", 3),
            ("-  \n- a", 1),
            ("? a\n", 3),
            ("{a: , b}", 3),
            ("a: &x\n", 5),
        ] {
            assert_eq!(place(text), Span::new(SourceId(0), expected, expected), "{text:?}");
        }
    }

    #[test]
    fn an_alias_is_a_copy_at_its_own_location() {
        check("a: &x {b: [1]}\nc: *x\n", r#"{"a":{"b":[1]},"c":{"b":[1]}}"#);
        check("a: &x 1\nb: &x 2\nc: *x\n", r#"{"a":1,"b":2,"c":2}"#);
        check("- &a [&b x, *b]\n- [*a, *b]\n", r#"[["x","x"],[["x","x"],"x"]]"#);
        check("&k key: 1\nb: *k\n", r#"{"key":1,"b":"key"}"#);
        check_spans("- &x [a]\n- *x\n", &["- &x [a]\n- *x", "[a]", "a", "*x", "a"]);
        check_spans("- &x a\n- *x\n", &["- &x a\n- *x", "a", "*x"]);
        check_spans(
            "&x a: 1\nb: {*x : 2}\n",
            &["&x a: 1\nb: {*x : 2}", "a=", "1", "b=", "{*x : 2}", "*x=", "2"],
        );
    }

    #[test]
    fn merges() {
        check("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n", r#"{"a":{"x":1,"y":2},"b":{"x":1,"y":3}}"#);
        check("b:\n  y: 3\n  <<: {x: 1, y: 2}\n  z: 4\n", r#"{"b":{"y":3,"x":1,"z":4}}"#);
        check("b:\n  <<: [{x: 1}, {x: 2, y: 2}]\n", r#"{"b":{"x":1,"y":2}}"#);
        check("- &a {x: 1}\n- &b {<<: *a, y: 2}\n- {<<: *b}\n", r#"[{"x":1},{"x":1,"y":2},{"x":1,"y":2}]"#);
        check("b: {\"<<\": 1}\n", r#"{"b":{"<<":1}}"#);
        check("b: {<<: []}\n", r#"{"b":{}}"#);
        check_findings(
            "b: {<<: 1}\n",
            &["wrong_shape@8 \"1\": `<<` merges a mapping or a list of mappings, but this is neither"],
        );
        check_findings(
            "b: {<<: [{}, x]}\n",
            &["wrong_shape@8 \"[{}, x]\": `<<` merges a mapping or a list of mappings, but this is neither"],
        );
        check_findings(
            "<<: {}\n<<: {}\n",
            &["duplicate_key@7 \"<<\" (first given here \"<<\"): duplicate key `<<`"],
        );
    }

    #[test]
    fn all_duplicates_are_reported_and_the_first_is_kept() {
        let text = "a: 1\nb: {c: 1, 'c': 2}\n\"a\": 3\na: 4\n";
        check_findings(
            text,
            &[
                "duplicate_key@15 \"'c'\" (first given here \"c\"): duplicate key `c`",
                "duplicate_key@23 \"\\\"a\\\"\" (first given here \"a\"): duplicate key `a`",
                "duplicate_key@30 \"a\" (first given here \"a\"): duplicate key `a`",
            ],
        );
        let value = read_yaml(text).root.expect("reading continues").to_value();
        assert_eq!(value.to_json_text().as_deref(), Some(r#"{"a":1,"b":{"c":1}}"#));
        assert_eq!(findings(&"a: 1\n".repeat(500)).len(), 100);
        assert_eq!(findings("x: &a {b: 1, b: 2}\ny: *a\nz: *a\n").len(), 1, "copies do not repeat findings");
    }

    #[test]
    fn keys_must_be_scalars() {
        check_findings(
            "? [a]\n: b\n? {c: d}\n: {e: 1, e: 2}\nf: g\n",
            &[
                "wrong_shape@2 \"[a]\": a list or a mapping cannot be a key",
                "wrong_shape@12 \"{c: d}\": a list or a mapping cannot be a key",
                "duplicate_key@28 \"e\" (first given here \"e\"): duplicate key `e`",
            ],
        );
        assert_eq!(
            read_yaml("? [a]\n: b\nf: g\n")
                .root
                .expect("reading continues")
                .to_value()
                .to_json_text()
                .as_deref(),
            Some(r#"{"f":"g"}"#)
        );
    }

    #[test]
    fn a_template_without_quotes_is_read_as_text() {
        let text = "a: {{ inputs.x }}\nb: 1\n";
        check_findings(
            text,
            &[
                "wrong_shape@3 \"{{ inputs.x }}\": `{{ inputs.x }}` has no quotes, so YAML reads it as a mapping",
            ],
        );
        let value = read_yaml(text).root.expect("reading continues").to_value();
        assert_eq!(value.to_json_text().as_deref(), Some(r#"{"a":"{{ inputs.x }}","b":1}"#));
    }

    #[test]
    fn contradicting_tags_are_reported() {
        check_findings(
            "a: !!int x\n",
            &["wrong_shape@9 \"x\": `x` has the tag `!!int`, which does not match"],
        );
        check_findings(
            "a: !!str [x]\n",
            &["wrong_shape@9 \"\": a list has the tag `!!str`, which does not match"],
        );
        check_findings(
            "a: !own {}\n",
            &["wrong_shape@8 \"\": the tag `!own` on a mapping has no meaning here"],
        );
    }

    #[test]
    fn files_without_exactly_one_document() {
        for text in ["", "\n\n", "# only\n# comments", "---\n", "--- # c\n...\n", "\u{FEFF}"] {
            check_findings(text, &["syntax@0 \"\": the file is empty"]);
            assert_eq!(read_yaml(text).root, None);
        }
        check_findings(
            "a: 1\n---\nb: 2\n---\n",
            &["syntax@5 \"---\": unexpected second document: a workflow file can only contain one"],
        );
        assert!(read_yaml("a: 1\n---\nb: 2\n").root.is_some(), "the first document can still be checked");
    }

    #[test]
    fn aliases_without_a_value() {
        check_findings(
            "a: *x\nb: *.txt\nc: &x 1\n",
            &[
                "syntax@3 \"*x\": the alias `*x` has no anchor `&x` before it",
                "syntax@9 \"*.txt\": the alias `*.txt` has no anchor `&.txt` before it",
            ],
        );
        assert_eq!(read_yaml("a: *x\n").root, None);
        check_findings(
            "a: &x [1, *x]\n",
            &["syntax@10 \"*x\": this alias is inside the value that it refers to"],
        );
        check_findings(
            "&x a: *x\n&y b: &y {c: *y}\n",
            &["syntax@22 \"*y\": this alias is inside the value that it refers to"],
        );
    }

    #[test]
    fn forbidden_characters_are_shown() {
        check_findings("a: 1\u{0}b", &["unreadable@4 \"\\0\": the character U+0000 is not allowed in YAML"]);
        check_findings(
            "a: \u{7F}",
            &["unreadable@3 \"\\u{7f}\": the character U+007F is not allowed in YAML"],
        );
        check_findings("é\u{92}", &["unreadable@2 \"\\u{92}\": the character U+0092 is not allowed in YAML"]);
        check_findings(
            "é\u{FFFE}",
            &["unreadable@2 \"\\u{fffe}\": the character U+FFFE is not allowed in YAML"],
        );
        check("a: \u{85}\u{A0}é\u{FFFD}", "{\"a\":\"\u{85}\u{A0}é\u{FFFD}\"}");
    }

    #[test]
    fn nesting_is_bounded() {
        let nested =
            |open: &str, close: &str, count: usize| format!("{}x{}", open.repeat(count), close.repeat(count));
        let code = |text: &str| read_yaml(text).diagnostics.first().map(|found| found.code);
        assert_eq!(code(&nested("[", "]", 256)), None);
        assert_eq!(code(&nested("[", "]", 257)), Some(Code::TooDeep));
        let blocks: String = (0..10_000).map(|level| format!("{}a:\n", " ".repeat(level % 1500))).collect();
        for text in [
            &*nested("[", "]", 10_000),
            &*nested("{a: ", "}", 10_000),
            &*nested("[{a: ", "}]", 10_000),
            &"- ".repeat(10_000),
            &"? ".repeat(10_000),
            &"[".repeat(1_000_000),
            &blocks,
            &format!("{}{}", "- ".repeat(200), nested("[", "]", 200)),
            &format!("- &a {}\n- {}", nested("[", "]", 200), nested("[", "]", 100).replace('x', "*a")),
        ] {
            assert_eq!(code(text), Some(Code::TooDeep), "{}", &text[..60]);
            assert_eq!(read_yaml(text).root, None);
        }
    }

    #[test]
    fn aliases_are_bounded() {
        let mut bomb = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..200 {
            bomb += &format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1);
        }
        let read = read_yaml(&bomb);
        assert_eq!((read.root, read.diagnostics[0].code), (None, Code::AliasExpansion));

        let limits = Limits { alias_nodes_max: 4, ..Limits::default() };
        let count = |text: &str| {
            super::super::read(&Source::new("f", text), SourceId(0), Format::Yaml, &limits).diagnostics.len()
        };
        assert_eq!(count("- &a [x]\n- *a\n- *a\n"), 0);
        assert_eq!(count("- &a [x]\n- *a\n- *a\n- *a\n"), 1);
        assert_eq!(count("- &a {x: 1}\n- {<<: *a}\n- *a\n"), 1, "keys count");
    }

    #[test]
    fn nested_anchors_are_not_copied() {
        let text = format!("{}{}", "&a [".repeat(250), "x,".repeat(20_000) + &"]".repeat(250));
        assert_eq!(findings(&text), [""; 0]);
    }

    #[test]
    fn equal_short_texts_are_shared() {
        let mut texts = Texts::default();
        assert!(Arc::ptr_eq(&texts.get("id"), &texts.get("id")));
        assert_eq!(&*texts.get(&"x".repeat(100)), "x".repeat(100));
        for word in 0..2000 {
            assert_eq!(*texts.get(&word.to_string()), *word.to_string());
        }
    }
}
