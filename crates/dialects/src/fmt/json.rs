//! Canonical JSON: two spaces per level, one member per line, keys in order. A list of numbers and short strings
//! stays on one line.

use super::order::KeyOrder;
use super::same::texts;
use crate::text::{Entry, Kind, Mapping, Node};
use windlass_ir::Span;

const STEP: usize = 2;
const WIDTH_MAX: usize = 100;

pub(super) fn print(text: &str, root: &Node, order: KeyOrder) -> String {
    let mut printer = Printer { text, out: String::new() };
    printer.value(root, order, 0);
    printer.out.push('\n');
    printer.out
}

struct Printer<'a> {
    text: &'a str,
    out: String,
}

impl<'a> Printer<'a> {
    /// Strings and numbers are kept as written.
    fn written(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn value(&mut self, node: &Node, order: KeyOrder, indent: usize) {
        match &node.kind {
            Kind::Scalar(_) => self.out.push_str(self.written(node.span)),
            Kind::List(items) => self.list(items, order.item(), indent),
            Kind::Map(map) => self.object(map, order, indent),
        }
    }

    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    fn list(&mut self, items: &[Node], order: KeyOrder, indent: usize) {
        if let Some(line) = self.on_one_line(items) {
            self.out.push_str(&line);
            return;
        }
        self.out.push('[');
        for (number, item) in items.iter().enumerate() {
            self.out.push_str(if number > 0 { "," } else { "" });
            self.line(indent + STEP);
            self.value(item, order, indent + STEP);
        }
        self.line(indent);
        self.out.push(']');
    }

    fn on_one_line(&self, items: &[Node]) -> Option<String> {
        let written = items.iter().map(|item| match &item.kind {
            Kind::Scalar(_) => Some(self.written(item.span)),
            Kind::List(_) | Kind::Map(_) => None,
        });
        let line = format!("[{}]", written.collect::<Option<Vec<_>>>()?.join(", "));
        let start = self.out.rfind('\n').map_or(0, |newline| newline + 1);
        let width = self.out[start..].chars().count() + line.chars().count();
        (items.is_empty() || width <= WIDTH_MAX).then_some(line)
    }

    fn object(&mut self, map: &Mapping, order: KeyOrder, indent: usize) {
        if map.entries.is_empty() {
            self.out.push_str("{}");
            return;
        }
        let order = order.mapping(texts(map));
        let mut entries: Vec<&Entry> = map.entries.iter().collect();
        entries.sort_by_key(|entry| order.rank(&entry.key.text));
        self.out.push('{');
        for (number, entry) in entries.into_iter().enumerate() {
            self.out.push_str(if number > 0 { "," } else { "" });
            self.line(indent + STEP);
            self.out.push_str(self.written(entry.key.span));
            self.out.push_str(": ");
            self.value(&entry.value, order.below(&entry.key.text), indent + STEP);
        }
        self.line(indent);
        self.out.push('}');
    }
}
