//! The drawing as a Mermaid flowchart.

use super::{Drawing, Edge, EdgeKind, Group, Item, Node, Shape};
use std::fmt::Write;

const HEAD: &str = "flowchart TD
  classDef gate fill:#fff4d6,stroke:#b7791f,color:#5f370e
  classDef conditional stroke-dasharray:5 4
  classDef group fill:none,stroke:#8a94a6
  classDef conditionalGroup fill:none,stroke:#8a94a6,stroke-dasharray:5 4
";

pub fn render(graph: &Drawing) -> String {
    let mut text = format!("---\ntitle: {}\n---\n{HEAD}", title(&graph.title));
    items(&graph.items, 1, &mut text);
    graph.edges.iter().for_each(|edge| write_edge(edge, &mut text));
    // Only now: an arrow to a subgraph would take its classes away again.
    group_classes(&graph.items, &mut text);
    let failures = (0..).zip(&graph.edges).filter(|(_, edge)| edge.kind == EdgeKind::OnFailure);
    let failures: Vec<String> = failures.map(|(number, _): (usize, _)| number.to_string()).collect();
    if !failures.is_empty() {
        put(&mut text, 1, &format!("linkStyle {} stroke:#c53030", failures.join(",")));
    }
    text
}

/// The title stands in a YAML head, where a JSON text is a quoted scalar.
fn title(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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
    put(text, level, &format!("subgraph n{}[\"{}\"]", group.number, escape(&group.title)));
    items(&group.items, level + 1, text);
    put(text, level, "end");
}

fn group_classes(list: &[Item], text: &mut String) {
    for item in list {
        if let Item::Group(group) = item {
            let class = if group.conditional { "conditionalGroup" } else { "group" };
            put(text, 1, &format!("class n{} {class}", group.number));
            group_classes(&group.items, text);
        }
    }
}

fn write_node(node: &Node) -> String {
    let (open, close) = match node.shape {
        Shape::Work => ("[", "]"),
        Shape::Gate => ("{{", "}}"),
        Shape::FanOut => ("[[", "]]"),
        Shape::Wait => ("(", ")"),
        Shape::End => ("([", "])"),
    };
    let class = match (node.shape == Shape::Gate, node.conditional) {
        (true, _) => ":::gate",
        (false, true) => ":::conditional",
        (false, false) => "",
    };
    format!("n{}{open}\"{}\"{close}{class}", node.number, label(&node.lines))
}

fn write_edge(edge: &Edge, text: &mut String) {
    let (from, to) = (edge.from, edge.to);
    let line = match &edge.kind {
        EdgeKind::Needs => format!("n{from} --> n{to}"),
        EdgeKind::Conditional(None) => format!("n{from} -.-> n{to}"),
        EdgeKind::Conditional(Some(condition)) => format!("n{from} -. \"{}\" .-> n{to}", escape(condition)),
        EdgeKind::OnFailure => format!("n{from} -. \"on failure\" .-> n{to}"),
        EdgeKind::Afterwards(word) => format!("n{from} -. \"{}\" .-> n{to}", escape(word)),
    };
    put(text, 1, &line);
}

fn label(lines: &[String]) -> String {
    lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br/>")
}

/// Everything that Mermaid, its Markdown or HTML could take for more than a letter becomes a number.
fn escape(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '*' | '_' | '~' | '\\' | '[' | ']' | '{' | '}' | '('
            | ')' | '|' | ';' | '%' | '$' => {
                out.push_str(&format!("#{};", c as u32));
            }
            '\n' => out.push_str("<br/>"),
            letter => out.push(letter),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_nothing_but_letters() {
        let check = |text: &str, expected: &str| assert_eq!(escape(text), expected, "{text}");
        check("Research & Discovery", "Research #38; Discovery");
        check("say \"hi\" #1", "say #34;hi#34; #35;1");
        check("a[0] {b} (c)\nd", "a#91;0#93; #123;b#125; #40;c#41;<br/>d");
        check("</script>", "#60;/script#62;");
    }
}
