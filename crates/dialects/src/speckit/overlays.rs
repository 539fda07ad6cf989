//! Overlays: files that insert, replace and remove steps of a workflow before it is read.
//!
//! The overlay with the lowest priority number wins; among equals, the one whose id comes last in alphabetical order.
//! Of several replacements and removals of one step, only the winner's is applied. All insertions are applied, with
//! the winner's nearest to the step. An edit names a step of the workflow itself, at any depth, but not inside the
//! template of a fan-out.

use super::document::{RESERVED_IDS, is_id};
use super::field::{self, as_text, bad, given, needed, present, what};
use crate::table::{Context, Place, Table, wrong_shape};
use crate::text::{Kind, Mapping, Node};
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use windlass_ir::suggest::{GUESSES_MAX, nearest};
use windlass_ir::{Code, Diagnostic, Span, Spanned, Value};

const PRIORITY: i64 = 10;

/// The keys of a step that contain lists of steps; `cases` has one for each of its keys.
const BODIES: [&str; 4] = ["then", "else", "steps", "default"];

/// The folder with the overlays of an installed workflow: `.specify/workflows/overlays/ID` for
/// `.specify/workflows/ID/workflow.yml`. `None` for a file that is not installed.
pub fn overlay_folder(workflow_path: &str) -> Option<String> {
    let (folder, file) = workflow_path.rsplit_once(['/', '\\'])?;
    let (workflows, id) = folder.rsplit_once(['/', '\\'])?;
    let parts: Vec<&str> = workflows.rsplit(['/', '\\']).take(2).collect();
    let installed = file == "workflow.yml" && parts == ["workflows", ".specify"];
    (installed && is_id(id) && !RESERVED_IDS.contains(&id)).then(|| format!("{workflows}/overlays/{id}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    InsertAfter,
    InsertBefore,
    Replace,
    Remove,
}

const OPERATIONS: [(&str, Operation); 4] = [
    ("insert_after", Operation::InsertAfter),
    ("insert_before", Operation::InsertBefore),
    ("replace", Operation::Replace),
    ("remove", Operation::Remove),
];

impl Operation {
    /// Whether it changes the step itself.
    fn decides(self) -> bool {
        match self {
            Self::Replace | Self::Remove => true,
            Self::InsertAfter | Self::InsertBefore => false,
        }
    }
}

#[derive(Debug)]
struct Overlay {
    id: Arc<str>,
    id_span: Span,
    priority: i64,
    edits: Vec<Edit>,
}

#[derive(Debug)]
struct Edit {
    operation: Operation,
    anchor: Spanned<Arc<str>>,
    /// `None` only for a removal.
    step: Option<Node>,
}

/// The tree with the edits of all overlays applied.
pub fn apply(mut root: Node, overlays: &[Node], context: &Context<'_>) -> Node {
    let workflow = workflow_id(&root);
    let read = overlays.iter().filter_map(|node| read(node, workflow.as_deref(), context));
    let mut overlays: Vec<Overlay> = read.collect();
    let mut findings = same_ids(&overlays);
    // The winner comes last.
    overlays.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.id.cmp(&b.id)));
    if let Some(steps) = steps_mut(&mut root) {
        let known = Known::of(steps);
        let mut edits = Edits::gather(&overlays, &known, &mut findings);
        edits.compose(steps);
    }
    context.diagnostics.borrow_mut().extend(findings);
    root
}

/// Checks an overlay without its workflow. Returns the workflow that it extends and the number of its edits.
pub fn check(overlay: &Node, context: &Context<'_>) -> (Option<String>, usize) {
    let extends =
        as_map(overlay).and_then(|map| as_text(&map.get("extends")?.value).map(ToString::to_string));
    let edits = as_map(overlay).and_then(|map| match &map.get("edits")?.value.kind {
        Kind::List(edits) => Some(edits.len()),
        Kind::Scalar(_) | Kind::Map(_) => None,
    });
    read(overlay, None, context);
    (extends, edits.unwrap_or_default())
}

fn workflow_id(root: &Node) -> Option<Arc<str>> {
    let block = as_map(&as_map(root)?.get("workflow")?.value)?;
    as_text(&block.get("id")?.value).cloned()
}

fn as_map(node: &Node) -> Option<&Mapping> {
    match &node.kind {
        Kind::Map(map) => Some(map),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

fn steps_mut(root: &mut Node) -> Option<&mut Vec<Node>> {
    let Kind::Map(map) = &mut root.kind else { return None };
    let steps = map.entries.iter_mut().find(|entry| &*entry.key.text == "steps")?;
    match &mut steps.value.kind {
        Kind::List(items) => Some(items),
        Kind::Scalar(_) | Kind::Map(_) => None,
    }
}

fn step_id(step: &Node) -> Option<&Arc<str>> {
    as_text(&as_map(step)?.get("id")?.value)
}

/// The lists of steps directly inside a step.
fn bodies(step: &Node) -> Vec<&Vec<Node>> {
    let Some(map) = as_map(step) else { return Vec::new() };
    let mut lists = Vec::new();
    for entry in &map.entries {
        match (&*entry.key.text, &entry.value.kind) {
            (key, Kind::List(items)) if BODIES.contains(&key) => lists.push(items),
            ("cases", Kind::Map(cases)) => lists.extend(cases.entries.iter().filter_map(|case| {
                if let Kind::List(items) = &case.value.kind { Some(items) } else { None }
            })),
            (_, _) => {}
        }
    }
    lists
}

fn bodies_mut(step: &mut Node) -> Vec<&mut Vec<Node>> {
    let Kind::Map(map) = &mut step.kind else { return Vec::new() };
    let mut lists = Vec::new();
    for entry in &mut map.entries {
        match (&*entry.key.text, &mut entry.value.kind) {
            (key, Kind::List(items)) if BODIES.contains(&key) => lists.push(items),
            ("cases", Kind::Map(cases)) => lists.extend(cases.entries.iter_mut().filter_map(|case| {
                if let Kind::List(items) = &mut case.value.kind { Some(items) } else { None }
            })),
            (_, _) => {}
        }
    }
    lists
}

/// The steps that an edit can name, in the order of the file, each with its parent.
struct Known {
    around: IndexMap<Arc<str>, Option<Arc<str>>>,
}

impl Known {
    fn of(steps: &[Node]) -> Self {
        let mut known = Self { around: IndexMap::new() };
        known.enter(steps, None);
        known
    }

    fn enter(&mut self, steps: &[Node], around: Option<&Arc<str>>) {
        for step in steps {
            let id = step_id(step);
            if let Some(id) = id {
                self.around.entry(id.clone()).or_insert_with(|| around.cloned());
            }
            bodies(step).into_iter().for_each(|body| self.enter(body, id.or(around)));
        }
    }

    /// The steps around one, from the inside out. A duplicate id in the file could cause a cycle.
    fn outwards<'k>(&'k self, id: &'k Arc<str>) -> impl Iterator<Item = &'k Arc<str>> {
        let next = |id: &&'k Arc<str>| self.around.get(*id).and_then(Option::as_ref);
        std::iter::successors(next(&id), next).take(self.around.len())
    }
}

/// The edits of all overlays by the step that they name, the winner's last.
struct Edits<'a>(HashMap<Arc<str>, Vec<&'a Edit>>);

impl<'a> Edits<'a> {
    fn gather(overlays: &'a [Overlay], known: &Known, findings: &mut Vec<Diagnostic>) -> Self {
        let mut edits: HashMap<Arc<str>, Vec<&'a Edit>> = HashMap::new();
        for overlay in overlays {
            let mut decided: HashMap<&Arc<str>, Span> = HashMap::new();
            for edit in &overlay.edits {
                let anchor = &edit.anchor;
                if !known.around.contains_key(&anchor.value) {
                    findings.push(no_anchor(anchor, known, findings.len() < GUESSES_MAX));
                    continue;
                }
                if edit.operation.decides()
                    && let Some(first) = decided.insert(&anchor.value, anchor.span)
                {
                    findings.push(decided_twice(anchor, first));
                }
                edits.entry(anchor.value.clone()).or_default().push(edit);
            }
        }
        let edits = Self(edits);
        edits.check_around(overlays, known, findings);
        edits.check_shadowed(overlays, findings);
        edits
    }

    /// The replacement or removal that is applied.
    fn decision(&self, id: &Arc<str>) -> Option<&'a Edit> {
        self.0.get(id)?.iter().rev().find(|edit| edit.operation.decides()).copied()
    }

    /// Steps inside a step that is removed or replaced cannot be edited as well.
    fn check_around(&self, overlays: &[Overlay], known: &Known, findings: &mut Vec<Diagnostic>) {
        for edit in overlays.iter().flat_map(|overlay| &overlay.edits) {
            let mut outwards = known.outwards(&edit.anchor.value);
            let Some(gone) = outwards.find_map(|around| self.decision(around)) else { continue };
            let (inner, outer) = (&edit.anchor, &gone.anchor);
            let message =
                format!("`{}` is inside `{}`, which is replaced or removed", inner.value, outer.value);
            let finding = Diagnostic::error(Code::OverlayConflict, message).at(inner.span);
            let finding = finding.label(outer.span, "replaced or removed here").reference(&*inner.value);
            findings.push(finding.field("edits").help("keep one of the two edits"));
        }
    }

    fn check_shadowed(&self, overlays: &[Overlay], findings: &mut Vec<Diagnostic>) {
        for edit in overlays.iter().flat_map(|overlay| &overlay.edits) {
            let Some(done) = self.decision(&edit.anchor.value) else { continue };
            let same_file = done.anchor.span.source == edit.anchor.span.source;
            if !edit.operation.decides() || same_file {
                continue;
            }
            let id = &edit.anchor.value;
            let message =
                format!("this edit has no effect because another overlay replaces or removes `{id}`");
            let finding = Diagnostic::hint(Code::OverlayShadowed, message).at(edit.anchor.span);
            let finding =
                finding.label(done.anchor.span, "replaced or removed here").reference(&**id).field("edits");
            findings.push(finding.help("give this overlay a lower `priority`, or remove the edit"));
        }
    }

    /// Applies the edits to a list of steps and recursively to nested ones. A duplicate id is edited once.
    fn compose(&mut self, steps: &mut Vec<Node>) {
        let before = std::mem::take(steps);
        for mut step in before {
            bodies_mut(&mut step).into_iter().for_each(|body| self.compose(body));
            let decision = step_id(&step).and_then(|id| self.decision(id));
            let edits = step_id(&step).cloned().and_then(|id| self.0.remove(&id)).unwrap_or_default();
            let inserted = |operation: Operation| {
                let of_kind = edits.iter().filter(move |edit| edit.operation == operation);
                of_kind.filter_map(|edit| edit.step.clone()).collect::<Vec<Node>>()
            };
            steps.extend(inserted(Operation::InsertBefore));
            match decision {
                Some(edit) => steps.extend(edit.step.clone()),
                None => steps.push(step),
            }
            steps.extend(inserted(Operation::InsertAfter).into_iter().rev());
        }
    }
}

fn no_anchor(anchor: &Spanned<Arc<str>>, known: &Known, may_guess: bool) -> Diagnostic {
    let id = &*anchor.value;
    let message = format!("unknown step `{id}` in an overlay");
    Diagnostic::error(Code::OverlayAnchorMissing, message)
        .at(anchor.span)
        .field("edits")
        .reference(id)
        .suggest(may_guess.then(|| nearest(id, known.around.keys().map(|known| &**known))).flatten())
        .help("name a step of the workflow itself; steps of other overlays and of fan-outs cannot be named")
}

fn decided_twice(anchor: &Spanned<Arc<str>>, first: Span) -> Diagnostic {
    let message = format!("this overlay replaces or removes `{}` twice", anchor.value);
    let finding = Diagnostic::error(Code::OverlayConflict, message).at(anchor.span);
    finding
        .label(first, "first edited here")
        .field("edits")
        .reference(&*anchor.value)
        .help("keep one of the two edits")
}

fn same_ids(overlays: &[Overlay]) -> Vec<Diagnostic> {
    let mut seen: HashMap<&Arc<str>, Span> = HashMap::new();
    let mut findings = Vec::new();
    for overlay in overlays.iter().filter(|overlay| !overlay.id.is_empty()) {
        if let Some(first) = seen.insert(&overlay.id, overlay.id_span) {
            let message = format!("duplicate overlay id `{}`", overlay.id);
            let finding = Diagnostic::error(Code::OverlayConflict, message).at(overlay.id_span).field("id");
            let finding = finding.label(first, "the other overlay").reference(&*overlay.id);
            findings.push(finding.help("rename one of them"));
        }
    }
    findings
}

/// Reads one overlay file; `None` if it is disabled or cannot be read at all.
fn read<'a>(node: &'a Node, workflow: Option<&str>, context: &'a Context<'a>) -> Option<Overlay> {
    let Kind::Map(map) = &node.kind else {
        context
            .diagnostics
            .borrow_mut()
            .push(wrong_shape(node, "a mapping with `id`, `extends` and `edits`"));
        return None;
    };
    let table = Table::new(context, map, node.span, Place::default());
    let id = identifier(&table, "id", "give the overlay an id: `id: more-checks`");
    check_extends(&table, workflow);
    let priority = read_priority(&table);
    let enabled = field::boolean(&table, "enabled").unwrap_or(true);
    let edits = read_edits(&table);
    table.finish_all();
    let (id, id_span) = id.map_or_else(|| ("".into(), node.span.head()), |id| (id.value, id.span));
    enabled.then_some(Overlay { id, id_span, priority, edits })
}

fn identifier(table: &Table<'_>, key: &'static str, help: &str) -> Option<Spanned<Arc<str>>> {
    let node = needed(table, key, help)?;
    let id = field::text(table, key, node)?;
    if !is_id(&id.value) || RESERVED_IDS.contains(&&*id.value) {
        bad(table, key, node, "an id of lower-case letters, digits and hyphens");
    }
    Some(id)
}

fn check_extends(table: &Table<'_>, workflow: Option<&str>) {
    let extends = identifier(table, "extends", "name the workflow that it changes: `extends: ID`");
    let (Some(extends), Some(workflow)) = (extends, workflow) else { return };
    if *extends.value != *workflow {
        let message = format!("this overlay changes `{}`, but the workflow is `{workflow}`", extends.value);
        let finding = table.error(Code::OverlayExtends, "extends", extends.span, message);
        let finding = finding.reference(&*extends.value).suggest(Some(workflow));
        table.report(finding.help("correct the id, or move the file to the overlays of the other workflow"));
    }
}

fn read_priority(table: &Table<'_>) -> i64 {
    match present(table, "priority").map(|node| (node, node.to_value())) {
        None => PRIORITY,
        Some((_, Value::Int(priority))) if priority >= 1 => priority,
        Some((node, _)) => {
            bad(table, "priority", node, "a whole number of at least 1");
            PRIORITY
        }
    }
}

fn read_edits(table: &Table<'_>) -> Vec<Edit> {
    let help = "write the changes: `edits: [{insert_after: STEP, step: {id: …}}]`";
    let Some(node) = needed(table, "edits", help) else { return Vec::new() };
    let wanted = "a list of at least one edit";
    let items = field::list(table, "edits", node, wanted).unwrap_or_default();
    if items.is_empty() && matches!(node.kind, Kind::List(_)) {
        bad(table, "edits", node, wanted);
    }
    let listed = items.iter().enumerate();
    listed
        .filter_map(|(index, item)| read_edit(&field::mapping(table, &format!("edits[{index}]"), item)?))
        .collect()
}

fn read_edit(table: &Table<'_>) -> Option<Edit> {
    let named = read_operation(table);
    let step = given(table, "step");
    table.finish_all();
    let (operation, anchor) = named?;
    match (operation, step) {
        (Operation::Remove, None) => Some(Edit { operation, anchor, step: None }),
        (Operation::Remove, Some(step)) => {
            let message = "a removal takes no `step`";
            let finding = table.error(Code::ConflictingKeys, "step", step.span, message);
            table.report(finding.help("remove `step`, or write `replace`"));
            None
        }
        (_, None) => {
            table.missing("step", "write the new step: `step: {id: …}`");
            None
        }
        (_, Some(step)) => {
            field::mapping(table, "step", step)?;
            Some(Edit { operation, anchor, step: Some(step.clone()) })
        }
    }
}

/// `insert_after: STEP`, or `operation: insert_after` with `anchor: STEP`; exactly one of them.
fn read_operation(table: &Table<'_>) -> Option<(Operation, Spanned<Arc<str>>)> {
    let short: Vec<(&'static str, Operation, &Node)> = OPERATIONS
        .iter()
        .filter_map(|(key, operation)| Some((*key, *operation, present(table, key)?)))
        .collect();
    let long = present(table, "operation");
    let anchor = present(table, "anchor");
    let (operation, key, node) = match (short.as_slice(), long) {
        ([(key, operation, node)], None) => {
            if let Some(anchor) = anchor {
                let message = format!("`anchor` has no effect next to `{key}`, which names the step itself");
                let finding = table.warning(Code::IgnoredKey, "anchor", anchor.span, message);
                table.report(finding.reference("anchor").help("remove it"));
            }
            (*operation, *key, *node)
        }
        ([], Some(word)) => {
            let operation = operation_word(table, word)?;
            (operation, "anchor", needed(table, "anchor", "name the step: `anchor: STEP`")?)
        }
        ([], None) => {
            table.missing("operation", "set the operation: insert_after, insert_before, replace or remove");
            return None;
        }
        (several, _) => {
            let keys: HashSet<&str> = several.iter().map(|(key, ..)| *key).collect();
            let (key, _, node) = several[several.len() - 1];
            let message = match keys.len() {
                1 => format!("`operation` and `{key}` are two edits in one"),
                _ => "an edit can only do one thing".to_owned(),
            };
            let finding = table.error(Code::ConflictingKeys, key, node.span, message);
            table.report(finding.help("split it into separate edits"));
            return None;
        }
    };
    let anchor = field::text(table, key, node)?;
    if anchor.value.is_empty() {
        bad(table, key, node, "the id of a step");
        return None;
    }
    Some((operation, anchor))
}

fn operation_word(table: &Table<'_>, node: &Node) -> Option<Operation> {
    let word = as_text(node).map_or("", |word| word);
    let found = OPERATIONS.iter().find(|(known, _)| *known == word).map(|(_, operation)| *operation);
    if found.is_none() {
        let known = OPERATIONS.iter().map(|(known, _)| *known);
        let words: Vec<&str> = known.clone().collect();
        let message = format!("invalid operation {}", what(table, node));
        let finding = table.error(Code::BadField, "operation", node.span, message).reference(word);
        table.report(finding.suggest(nearest(word, known)).help(format!("use one of {}", words.join(", "))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overlays_folder_is_next_to_the_workflow() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(overlay_folder(path).as_deref(), expected, "{path}");
        };
        check(".specify/workflows/ship/workflow.yml", Some(".specify/workflows/overlays/ship"));
        check("/p/.specify/workflows/ship/workflow.yml", Some("/p/.specify/workflows/overlays/ship"));
        check("workflow.yml", None);
        check("ship/workflow.yml", None);
        check("workflows/ship/workflow.yml", None);
        check(".specify/workflows/overlays/workflow.yml", None);
        check(".specify/workflows/ship/other.yml", None);
    }
}
