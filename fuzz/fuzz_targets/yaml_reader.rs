//! Any bytes go through the reader. The first byte chooses the format; nothing may panic, every place must
//! lie inside the text and between characters, and what is read must stay within the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use windlass_dialects::text::{Format, Kind, Limits, Locator, Node, decode_within, read};
use windlass_ir::{Source, SourceId, Span};

const LIMITS: Limits = Limits { bytes_max: 1 << 16, depth_max: 64, alias_nodes_max: 1000, typed_keys: false };

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let format = if choice % 2 == 0 { Format::Yaml } else { Format::Json };
    // The text goes in as it is, too: `read` must not rely on `decode` having refused something.
    let decoded = decode_within(bytes, &LIMITS).map(|text| check(&text, format));
    if let (Err(_), Ok(text)) = (decoded, std::str::from_utf8(bytes)) {
        check(text, format);
    }
});

fn check(text: &str, format: Format) {
    let source = Source::new("fuzz", text);
    let read = read(&source, SourceId(0), format, &LIMITS);
    assert!(read.root.is_some() || !read.diagnostics.is_empty(), "a missing tree is explained");
    assert!(read.diagnostics.len() <= 100);
    for found in &read.diagnostics {
        let span = found.span.expect("every finding has a place");
        found.labels.iter().map(|label| label.span).chain([span]).for_each(|span| check_span(text, span));
        assert!(!found.message.is_empty() && !found.help.is_empty());
    }
    if let Some(root) = &read.root {
        check_node(root, &source, 0);
        // An alias brings in nodes from elsewhere; without one, parts lie inside the whole.
        if !text.contains('*') {
            check_inside(root, root.span);
        }
        root.to_value();
    }
}

fn check_node(node: &Node, source: &Source, depth: usize) {
    check_span(&source.text, node.span);
    match &node.kind {
        Kind::Scalar(scalar) => check_locator(node, &scalar.text, source),
        Kind::List(items) => {
            assert!(depth < LIMITS.depth_max);
            items.iter().for_each(|item| check_node(item, source, depth + 1));
        }
        Kind::Map(map) => {
            assert!(depth < LIMITS.depth_max);
            for (at, entry) in map.entries.iter().enumerate() {
                check_span(&source.text, entry.key.span);
                assert!(map.entries[..at].iter().take(50).all(|before| before.key.text != entry.key.text));
                check_node(&entry.value, source, depth + 1);
            }
        }
    }
}

fn check_inside(node: &Node, outer: Span) {
    assert!(outer.start <= node.span.start && node.span.end <= outer.end, "{:?} inside {outer:?}", node.span);
    match &node.kind {
        Kind::Scalar(_) => {}
        Kind::List(items) => items.iter().for_each(|item| check_inside(item, node.span)),
        Kind::Map(map) => map.entries.iter().for_each(|entry| check_inside(&entry.value, node.span)),
    }
}

fn check_locator(node: &Node, text: &str, source: &Source) {
    let locator = Locator::new(node, source);
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).take(100).collect();
    for pair in starts.windows(2) {
        let span = locator.span(pair[0]..pair[1]);
        check_span(&source.text, span);
        let (written, meant) =
            (&source.text[span.start as usize..span.end as usize], &text[pair[0]..pair[1]]);
        let is_converted = written.trim_ascii().is_empty() || written == "''" || written.starts_with('\\');
        assert!(written == meant || is_converted || span == node.span, "{written:?} for {meant:?}");
        check_span(&source.text, locator.span(pair[0]..text.len()));
        check_span(&source.text, locator.span(pair[0]..pair[0]));
    }
    // Ranges that make no sense may point anywhere, but may not panic.
    for range in [text.len()..usize::from(u16::MAX), Range { start: 5, end: 2 }, 1..2] {
        locator.span(range);
    }
}

fn check_span(text: &str, span: Span) {
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} in {} bytes", text.len());
}
