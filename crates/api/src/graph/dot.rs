//! The drawing in the language of Graphviz.

use super::{Drawing, Edge, EdgeKind, Group, Item, Node, Number, Shape};
use std::collections::HashMap;
use std::fmt::Write;

const HEAD: &str = "  compound=true
  labelloc=t
  ranksep=0.6
  fontname=\"Helvetica\"
  node [shape=box, fillcolor=\"#eef2f7\", color=\"#5a6b85\", fontname=\"Helvetica\", fontsize=11]
  edge [color=\"#5a6b85\", fontname=\"Helvetica\", fontsize=9]
";

pub fn render(graph: &Drawing) -> String {
    let mut text = format!("digraph workflow {{\n  label={}\n{HEAD}", quoted(&graph.title));
    items(&graph.items, 1, &mut text);
    let anchors = anchors(&graph.items);
    graph.edges.iter().for_each(|edge| put(&mut text, 1, &write_edge(edge, &anchors)));
    text + "}\n"
}

fn put(text: &mut String, level: usize, line: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{:width$}{line}", "", width = 2 * level);
}

fn items(list: &[Item], level: usize, text: &mut String) {
    for item in list {
        match item {
            Item::Node(node) => put(text, level, &write_node(node)),
            Item::Group(group) => write_group(group, level, text),
        }
    }
}

fn write_group(group: &Group, level: usize, text: &mut String) {
    put(text, level, &format!("subgraph cluster_n{} {{", group.number));
    let style = if group.conditional { "rounded,dashed" } else { "rounded" };
    put(text, level + 1, &format!("label={}", quoted(&group.title)));
    put(text, level + 1, &format!("style={} color=\"#8a94a6\" fontsize=11", quoted(style)));
    items(&group.items, level + 1, text);
    put(text, level, "}");
}

fn write_node(node: &Node) -> String {
    let (outline, shape) = match node.shape {
        Shape::Work => ("rounded,filled", ""),
        Shape::Gate => ("filled", ", shape=hexagon, fillcolor=\"#fff4d6\", color=\"#b7791f\""),
        Shape::FanOut => ("filled", ", shape=box3d"),
        Shape::Wait => ("filled", ", shape=oval"),
        Shape::End => ("filled", ", peripheries=2"),
    };
    let dashed = if node.conditional { ",dashed" } else { "" };
    format!("n{} [label={}, style=\"{outline}{dashed}\"{shape}]", node.number, label(&node.lines))
}

/// An arrow leads to a box; when a whole group is meant it leads to one inside and is cut at the border.
fn write_edge(edge: &Edge, anchors: &HashMap<Number, (Number, Number)>) -> String {
    let (from, to) = (anchors.get(&edge.from), anchors.get(&edge.to));
    let tail = from.map(|_| format!("ltail=cluster_n{}", edge.from));
    let head = to.map(|_| format!("lhead=cluster_n{}", edge.to));
    let (from, to) = (from.map_or(edge.from, |(_, last)| *last), to.map_or(edge.to, |(first, _)| *first));
    let kind = match &edge.kind {
        EdgeKind::Needs => None,
        EdgeKind::Conditional(None) => Some("style=dashed".to_owned()),
        EdgeKind::Conditional(Some(condition)) => {
            Some(format!("style=dashed, label={}", quoted(&format!(" {condition} "))))
        }
        EdgeKind::OnFailure => {
            Some("style=dotted, color=\"#c53030\", fontcolor=\"#c53030\", label=\" on failure \"".to_owned())
        }
        EdgeKind::Afterwards(word) => Some(format!("style=dotted, label={}", quoted(&format!(" {word} ")))),
    };
    let attributes: Vec<String> = [kind, tail, head].into_iter().flatten().collect();
    match attributes.is_empty() {
        true => format!("n{from} -> n{to}"),
        false => format!("n{from} -> n{to} [{}]", attributes.join(", ")),
    }
}

/// For each group the first and the last box inside it.
fn anchors(list: &[Item]) -> HashMap<Number, (Number, Number)> {
    let mut found = HashMap::new();
    anchors_in(list, &mut found);
    found
}

fn anchors_in(list: &[Item], found: &mut HashMap<Number, (Number, Number)>) -> Option<(Number, Number)> {
    let ends: Vec<(Number, Number)> = list
        .iter()
        .filter_map(|item| match item {
            Item::Node(node) => Some((node.number, node.number)),
            Item::Group(group) => {
                let ends = anchors_in(&group.items, found)?;
                found.insert(group.number, ends);
                Some(ends)
            }
        })
        .collect();
    Some((ends.first()?.0, ends.last()?.1))
}

fn label(lines: &[String]) -> String {
    quoted(&lines.join("\n"))
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_quoted() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected, "{text}");
        check("plain", "\"plain\"");
        check("a \"b\" \\N", "\"a \\\"b\\\" \\\\N\"");
        check("a\nb", "\"a\\nb\"");
    }
}
