//! A workflow as Spec Kit itself holds it: the data of its file with overlays applied, and parts of it as Python writes them.

use super::{dump, field, overlays, yaml11};
use crate::table::{Context, Keys};
use crate::text::{self, Format, Kind, Limits, Mapping, Node};
use windlass_ir::{Source, Sources};

#[derive(Debug)]
pub struct Definition {
    root: Node,
}

impl Definition {
    /// Overlays are YAML documents, one after the other. None if the file cannot be read, or is no mapping.
    pub fn read(source: &str, overlays: &str) -> Option<Self> {
        let mut sources = Sources::default();
        let mut trees = std::iter::once(source)
            .chain(documents(overlays))
            .map(|text| tree(text, &mut sources))
            .collect::<Option<Vec<Node>>>()?;
        let context = Context::new(&sources, Keys::Exact, field::OPENS);
        trees.iter_mut().for_each(|tree| yaml11::resolve(tree, &mut context.diagnostics.borrow_mut()));
        let root = trees.remove(0);
        let root = overlays::apply(root, &trees, &context);
        matches!(root.kind, Kind::Map(_)).then_some(Self { root })
    }

    /// The whole of it, with letters of all languages as they are.
    pub fn yaml(&self) -> String {
        dump::yaml(&self.root, true)
    }

    /// The same in ASCII.
    pub fn ascii(&self) -> String {
        dump::yaml(&self.root, false)
    }

    pub fn steps(&self) -> Option<&Node> {
        member(&self.root, "steps")
    }
}

/// A part of a definition in ASCII, as the tree of a run keeps it.
pub fn ascii(node: &Node) -> String {
    dump::yaml(node, false)
}

/// A member of a mapping, by its key as text.
pub fn member<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    mapping(node)?.get(key).map(|entry| &entry.value)
}

/// A case of a switch, by the text that Python prints for its key.
pub fn case<'n>(cases: &'n Node, key: &str) -> Option<&'n Node> {
    let mut entries = mapping(cases)?.entries.iter();
    entries.find(|entry| *yaml11::python_key(&entry.key) == *key).map(|entry| &entry.value)
}

fn mapping(node: &Node) -> Option<&Mapping> {
    match &node.kind {
        Kind::Map(map) => Some(map),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

fn tree(text: &str, sources: &mut Sources) -> Option<Node> {
    let id = sources.add(Source::new("workflow.yml", text));
    let limits = Limits { typed_keys: true, ..Limits::default() };
    text::read(sources.get(id), id, Format::Yaml, &limits).root
}

/// Texts in one stream of YAML documents.
pub fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    texts.map(|text| format!("---\n{}\n", text.trim_end())).collect()
}

/// The texts between the marks. No scalar can hold a line that begins with one.
fn documents(stream: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in stream.match_indices("---") {
        let begins = at == 0 || stream[..at].ends_with('\n');
        let ends = stream[at + 3..].chars().next().is_none_or(char::is_whitespace);
        if begins && ends {
            found.push(&stream[start..at]);
            start = at + 3;
        }
    }
    found.push(&stream[start..]);
    found.retain(|text| !text.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlays_are_read_back_from_one_stream() {
        let texts = ["id: a\nnote: |\n  x\n  --- y\n", "---\nid: b", "id: '---'\n"];
        let stream = joined(texts.into_iter());
        let found: Vec<String> = documents(&stream).iter().map(|text| text.trim().to_owned()).collect();
        assert_eq!(found, ["id: a\nnote: |\n  x\n  --- y", "id: b", "id: '---'"]);
    }

    #[test]
    fn an_overlay_changes_the_steps() {
        let source = "workflow: {id: w, name: W}\nsteps:\n- {id: a, type: shell, run: one}\n";
        let overlay =
            "id: o\nextends: w\nedits:\n- {insert_after: a, step: {id: b, type: shell, run: two}}\n";
        let definition = Definition::read(source, &joined([overlay].into_iter())).expect("a mapping");
        let steps = definition.steps().map(ascii);
        let expected = "- id: a\n  type: shell\n  run: one\n- id: b\n  type: shell\n  run: two\n";
        assert_eq!(steps.as_deref(), Some(expected));
    }
}
