//! The safety check of the formatter: whether two texts have the same trees and comments.

use super::order::KeyOrder;
use super::scalar::is_text;
use super::tree::{Content, Document, Line, Node as Written};
use crate::text::{Kind, Mapping, Node, Scalar, Style};

/// Equal values, in equal order wherever the order is the author's.
pub(super) fn is_same(one: &Node, other: &Node, order: KeyOrder) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Scalar(one), Kind::Scalar(other)) => is_same_scalar(one, other),
        (Kind::List(one), Kind::List(other)) => {
            let pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.into_iter().all(|(a, b)| is_same(a, b, order.item()))
        }
        (Kind::Map(one), Kind::Map(other)) => is_same_map(one, other, order),
        (Kind::Scalar(_) | Kind::List(_) | Kind::Map(_), _) => false,
    }
}

/// Mappings with canonical order are compared in any order, because merged keys may have moved.
fn is_same_map(one: &Mapping, other: &Mapping, order: KeyOrder) -> bool {
    let order = order.mapping(texts(one));
    let sorted = |map: &Mapping| {
        let mut numbers: Vec<usize> = (0..map.entries.len()).collect();
        numbers.sort_by_key(|number| {
            let key = &*map.entries[*number].key.text;
            order.rank(key).map(|_| key)
        });
        numbers
    };
    let mut pairs = sorted(one).into_iter().zip(sorted(other));
    one.entries.len() == other.entries.len()
        && pairs.all(|(a, b)| {
            let (a, b) = (&one.entries[a], &other.entries[b]);
            let is_same_key =
                a.key.text == b.key.text && is_same_style(a.key.style, b.key.style, &a.key.text);
            is_same_key && is_same(&a.value, &b.value, order.below(&a.key.text))
        })
}

/// The keys of a mapping, each with its value if that is a scalar.
pub(super) fn texts(map: &Mapping) -> impl Iterator<Item = (&str, Option<&str>)> + Clone {
    map.entries.iter().map(|entry| {
        let text = match &entry.value.kind {
            Kind::Scalar(scalar) => Some(&*scalar.text),
            Kind::List(_) | Kind::Map(_) => None,
        };
        (&*entry.key.text, text)
    })
}

fn is_same_scalar(one: &Scalar, other: &Scalar) -> bool {
    one.text == other.text && one.tag == other.tag && is_same_style(one.style, other.style, &one.text)
}

/// Without quotes, a string may become a number or a boolean in one version of YAML or the other.
fn is_same_style(one: Style, other: Style, text: &str) -> bool {
    (one == Style::Plain) == (other == Style::Plain) || is_text(text)
}

/// All comments, anchors, tags and aliases of a document, sorted.
pub(super) fn remarks<'a>(document: &Document<'a>) -> Vec<&'a str> {
    let mut remarks = Vec::new();
    add_lines(&document.before, &mut remarks);
    remarks.extend(document.marker.iter().map(|_| "---"));
    remarks.extend(document.marker.as_ref().and_then(|marker| marker.comment));
    add_lines(&document.head, &mut remarks);
    add_node(&document.root, &mut remarks);
    add_lines(&document.foot, &mut remarks);
    remarks.sort_unstable();
    remarks
}

fn add_lines<'a>(lines: &[Line<'a>], remarks: &mut Vec<&'a str>) {
    remarks.extend(lines.iter().filter_map(|line| match line {
        Line::Blank => None,
        Line::Text(text) => Some(text),
    }));
}

fn add_node<'a>(node: &Written<'a>, remarks: &mut Vec<&'a str>) {
    remarks.extend(&node.properties);
    remarks.extend(node.comment);
    match &node.content {
        Content::Absent | Content::Scalar(_) | Content::Block(_) => {}
        Content::Alias(name) => remarks.push(name),
        Content::Collection(collection) => {
            for member in &collection.members {
                add_lines(&member.above, remarks);
                member.key.iter().for_each(|key| add_node(key, remarks));
                add_node(&member.value, remarks);
            }
            add_lines(&collection.tail, remarks);
        }
    }
}
