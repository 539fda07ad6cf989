//! Shared by both parsers: the list of findings, and mappings with unique keys.

use super::{Entry, Key, Mapping, Node, Style};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use windlass_ir::{Code, Diagnostic, SourceId, Span};

/// Findings in the order of occurrence, up to a limit.
#[derive(Debug)]
pub(super) struct Reports {
    pub(super) id: SourceId,
    /// While a copy is built: its problems were reported where it was written.
    pub(super) is_muted: bool,
    list: Vec<Diagnostic>,
}

impl Reports {
    const COUNT_MAX: usize = 100;

    pub(super) fn new(id: SourceId) -> Self {
        Self { id, is_muted: false, list: Vec::new() }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        if !self.is_muted && self.list.len() < Self::COUNT_MAX {
            self.list.push(diagnostic);
        }
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.id, start, end)
    }

    pub(super) fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    /// The finding that ended the parse replaces the last one if necessary, because it explains the missing tree.
    pub(super) fn into_list_with(mut self, fatal: Diagnostic) -> Vec<Diagnostic> {
        self.list.truncate(Self::COUNT_MAX - 1);
        self.list.push(fatal);
        self.list
    }

    pub(super) fn duplicate_key(&mut self, key: &Key, first: Span) {
        let duplicate =
            Diagnostic::error(Code::DuplicateKey, format!("duplicate key `{}`", shorten(&key.text)));
        let help = "remove or rename one of them";
        self.push(duplicate.at(key.span).label(first, "first given here").reference(&*key.text).help(help));
    }
}

/// Shortens a text for messages.
pub(super) fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A mapping under construction. The first of two equal keys is kept.
#[derive(Debug, Default)]
pub(super) struct MapBuilder {
    entries: Vec<Entry>,
    /// The position of each key, only for mappings that are too large for a linear search.
    index: HashMap<(Arc<str>, bool), usize>,
    /// Whether quotes make the same text a different key.
    typed: bool,
    merge: Option<Merge>,
}

/// The mappings that a `<<` merges, and its position among the entries.
#[derive(Debug)]
struct Merge {
    position: usize,
    span: Span,
    maps: Vec<Mapping>,
}

impl MapBuilder {
    const SEARCH_MAX: usize = 12;

    pub(super) fn new(typed: bool) -> Self {
        Self { typed, ..Self::default() }
    }

    /// Adds an entry, or returns the key with the location of the existing one.
    pub(super) fn insert(&mut self, key: Key, value: Node) -> Result<(), (Key, Span)> {
        if let Some(position) = self.position(&key) {
            return Err((key, self.entries[position].key.span));
        }
        self.entries.push(Entry { key, value });
        self.keep_index();
        Ok(())
    }

    /// Remembers what a `<<` merges, or returns the key with the location of the previous one.
    pub(super) fn insert_merge(&mut self, key: Key, maps: Vec<Mapping>) -> Result<(), (Key, Span)> {
        if let Some(first) = &self.merge {
            return Err((key, first.span));
        }
        self.merge = Some(Merge { position: self.entries.len(), span: key.span, maps });
        Ok(())
    }

    pub(super) fn finish(mut self) -> Mapping {
        let merged = self.merge.as_ref().map(|merge| merge.span);
        if let Some(merge) = self.merge.take() {
            let mut seen: HashSet<(Arc<str>, bool)> =
                self.entries.iter().map(|entry| self.identity(&entry.key)).collect();
            let brought = merge.maps.into_iter().flat_map(|map| map.entries);
            let fresh: Vec<Entry> = brought.filter(|entry| seen.insert(self.identity(&entry.key))).collect();
            self.entries.splice(merge.position..merge.position, fresh);
        }
        Mapping { entries: self.entries, merged }
    }

    fn position(&self, key: &Key) -> Option<usize> {
        if self.entries.len() <= Self::SEARCH_MAX {
            let quoted = |key: &Key| self.typed && key.style != Style::Plain;
            let same = |entry: &Entry| entry.key.text == key.text && quoted(&entry.key) == quoted(key);
            return self.entries.iter().position(same);
        }
        self.index.get(&self.identity(key)).copied()
    }

    /// The identity of a key.
    fn identity(&self, key: &Key) -> (Arc<str>, bool) {
        (key.text.clone(), self.typed && key.style != Style::Plain)
    }

    fn keep_index(&mut self) {
        let unindexed = match self.entries.len() {
            0..=Self::SEARCH_MAX => return,
            // When the mapping outgrows a linear search, all keys so far are indexed.
            count if self.index.is_empty() => 0..count,
            count => count - 1..count,
        };
        for at in unindexed {
            let identity = self.identity(&self.entries[at].key);
            self.index.insert(identity, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Scalar, Style};
    use super::*;

    fn key(text: &str, start: usize) -> Key {
        Key {
            text: text.into(),
            style: Style::Plain,
            span: Span::new(SourceId(0), start, start + text.len()),
        }
    }

    fn node(text: &str) -> Node {
        let scalar = Scalar { text: text.into(), style: Style::Plain, tag: None };
        Node { span: Span::default(), kind: Kind::Scalar(scalar) }
    }

    #[test]
    fn duplicates_are_found_in_small_and_large_mappings() {
        for count in [1, MapBuilder::SEARCH_MAX, MapBuilder::SEARCH_MAX + 1, 1000] {
            let mut map = MapBuilder::default();
            for at in 0..count {
                assert_eq!(map.insert(key(&format!("k{at}"), at * 10), node("")), Ok(()));
            }
            for at in 0..count {
                let twice = map.insert(key(&format!("k{at}"), 5), node("")).expect_err("known key");
                assert_eq!(twice.1.start as usize, at * 10, "{count}");
            }
            assert_eq!(map.finish().entries.len(), count);
        }
    }

    #[test]
    fn the_last_finding_is_never_lost() {
        let mut reports = Reports::new(SourceId(0));
        for at in 0..500 {
            reports.push(Diagnostic::error(Code::DuplicateKey, format!("{at}")));
        }
        let list = reports.into_list_with(Diagnostic::error(Code::Syntax, "the end"));
        assert_eq!(list.len(), 100);
        assert_eq!(list[98].message, "98");
        assert_eq!(list[99].message, "the end");
    }

    #[test]
    fn long_texts_are_shortened_between_characters() {
        assert_eq!(shorten("short"), "short");
        assert_eq!(shorten(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
    }
}
