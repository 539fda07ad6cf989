//! Reads the top level of a file: its name, the description of its inputs, and its steps.

use super::inventory::Inventory;
use super::step::{self, Around};
use super::table::{Context, Place, Table, wrong_shape};
use super::{WORDS, inputs, tasks};
use crate::text::{Kind, Node};
use indexmap::IndexMap;
use windlass_ir::expr::Semantics;
use windlass_ir::policy::RunPolicy;
use windlass_ir::workflow::{Header, RunInput, Step, Workflow};
use windlass_ir::{Code, Diagnostic, Span, Type};

pub fn read<'a>(root: &'a Node, context: &'a Context<'a>) -> Option<Workflow> {
    let Kind::Map(map) = &root.kind else {
        context.diagnostics.borrow_mut().push(wrong_shape(root, "a mapping with `name` and `steps`"));
        return None;
    };
    let top = Table::new(context, map, root.span, Place::default());
    if tasks::is_tasks(map) {
        tasks::explain(&top);
        return None;
    }
    note_merges(root, context);
    let mut inventory = Inventory::of(map);
    let header = read_header(&top);
    inputs::check(&top);
    let steps = read_steps(&top, &inventory);
    top.finish_all();
    Some(Workflow {
        words: &WORDS,
        semantics: Semantics::DCC,
        header,
        parameters: std::mem::take(&mut inventory.parameters),
        input: RunInput::Open(Type::Any),
        secrets: IndexMap::new(),
        env: IndexMap::new(),
        policy: RunPolicy::unlimited(),
        steps,
        outputs: IndexMap::new(),
        result: None,
        hooks: Vec::new(),
        triggers: Vec::new(),
    })
}

fn read_header(top: &Table<'_>) -> Header {
    let name = top.prose("name");
    top.demand("name", "give the workflow a name: `name: vendor_intake`");
    let name = name.unwrap_or_else(|| "".into());
    Header {
        id: name.clone(),
        name,
        version: "".into(),
        description: top.prose("description"),
        author: None,
        tags: Vec::new(),
        requires: IndexMap::new(),
    }
}

fn read_steps(top: &Table<'_>, inventory: &Inventory) -> Vec<Step> {
    let items = top.list("steps");
    if items.is_some_and(<[Node]>::is_empty) || !top.has("steps") {
        let finding = top.error(Code::NoStages, "steps", top.key_span("steps"), "this workflow has no steps");
        top.report(finding.help("add `steps` with at least one step: `- {id: first, tool: TOOL}`"));
    }
    let place = Place::default().child("steps");
    step::chain(items.unwrap_or_default(), &place, &Around::top(inventory), top.context)
}

/// The original treats `<<` as an unknown key. The author's intent is clear, so the merge is done.
fn note_merges(root: &Node, context: &Context<'_>) {
    let mut found = Vec::new();
    merges(root, &mut found);
    for span in found {
        let finding = Diagnostic::hint(Code::MergeKey, "`<<` merges these keys; other programs ignore it");
        let help = "write the keys out if other programs also read this file";
        context.diagnostics.borrow_mut().push(finding.at(span).reference("<<").help(help));
    }
}

fn merges(node: &Node, found: &mut Vec<Span>) {
    match &node.kind {
        Kind::Scalar(_) => {}
        Kind::List(items) => items.iter().for_each(|item| merges(item, found)),
        Kind::Map(map) => {
            found.extend(map.merged);
            map.entries.iter().for_each(|entry| merges(&entry.value, found));
        }
    }
}
