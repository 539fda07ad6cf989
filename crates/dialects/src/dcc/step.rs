//! Reads the common keys of steps: ids, order, and inherited policies.

use super::bind::{Binder, Loop};
use super::inventory::Inventory;
use super::key::KeyText;
use super::kinds::{self, StepKind};
use super::policy::{self, Written};
use super::table::{Context, Place, StepOf, Table, strict_text, wrong_shape};
use crate::text::{Kind as NodeKind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::policy::{Policy, Retry};
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{Kind, Step};
use windlass_ir::{Code, Diagnostic, Span, Spanned};

/// The maximum nesting of steps; reading and checking are recursive.
const DEPTH_MAX: usize = 48;

/// The surroundings of a step: its loops, and the policies that it inherits.
#[derive(Clone, Debug)]
pub struct Around<'a> {
    pub inventory: &'a Inventory,
    pub loops: Vec<Loop>,
    pub retry: Option<Retry>,
    pub key: Option<KeyText<'a>>,
    depth: usize,
}

impl<'a> Around<'a> {
    pub fn top(inventory: &'a Inventory) -> Self {
        Self { inventory, loops: Vec::new(), retry: None, key: None, depth: 0 }
    }

    /// The surroundings of the steps inside a step with these policies.
    fn inside(&self, written: &Written<'a>) -> Self {
        Self {
            inventory: self.inventory,
            loops: self.loops.clone(),
            retry: written.retry.clone().or_else(|| self.retry.clone()),
            key: written.key.clone().or_else(|| self.key.clone().filter(|_| !written.names_key)),
            depth: self.depth + 1,
        }
    }

    pub fn binder(&self, field: String) -> Binder<'_> {
        Binder::new(self.inventory, &self.loops, field)
    }
}

/// Steps that run one after the other. `place` is the path of the list, with a trailing dot.
pub fn chain<'a>(
    items: &'a [Node],
    place: &Place,
    around: &Around<'a>,
    context: &'a Context<'a>,
) -> Vec<Step> {
    let mut steps = side_by_side(items, place, around, context);
    for at in 1..steps.len() {
        let before = &steps[at - 1];
        // A step without an id is already an error, and cannot be named.
        let need = (!before.implicit).then(|| Spanned::new(before.id.value.clone(), steps[at].id.span));
        steps[at].needs.extend(need);
    }
    steps
}

/// Steps that do not depend on each other.
pub fn side_by_side<'a>(
    items: &'a [Node],
    place: &Place,
    around: &Around<'a>,
    context: &'a Context<'a>,
) -> Vec<Step> {
    let listed = items.iter().enumerate();
    listed.filter_map(|(index, node)| listed_step(node, index, place, around, context)).collect()
}

pub fn listed_step<'a>(
    node: &'a Node,
    index: usize,
    place: &Place,
    around: &Around<'a>,
    context: &'a Context<'a>,
) -> Option<Step> {
    let at = format!("{}[{index}]", place.prefix.trim_end_matches('.'));
    if around.depth > DEPTH_MAX {
        context.diagnostics.borrow_mut().push(too_deep(node.span).step_of(place).field(at));
        return None;
    }
    let NodeKind::Map(map) = &node.kind else {
        let finding = wrong_shape(node, "a step, which is a mapping").step_of(place).field(at);
        context.diagnostics.borrow_mut().push(finding);
        return None;
    };
    let unnamed = Place { step: place.step.clone(), prefix: format!("{at}.") };
    let table = Table::new(context, map, node.span, unnamed);
    Some(match read_id(&table) {
        Some(id) => {
            let place = Place { step: Some(id.value.clone()), prefix: String::new() };
            step(&Table::new(context, map, node.span, place), id, false, around)
        }
        // No other step can name it, but problems inside it are still reported.
        None => step(&table, Spanned::new(at.into(), node.span.head()), true, around),
    })
}

fn too_deep(span: Span) -> Diagnostic {
    let message = format!("steps are nested more than {DEPTH_MAX} levels deep");
    Diagnostic::error(Code::TooDeep, message).at(span).help("flatten the workflow")
}

fn read_id(table: &Table<'_>) -> Option<Spanned<Arc<str>>> {
    table.demand("id", "give the step an id: `id: import`");
    let (scalar, span) = strict_text(table, "id")?;
    if scalar.text.is_empty() {
        let finding = table.error(Code::BadId, "id", span, "the id is empty");
        table.report(finding.help("give the step an id that is unique in the file"));
        return None;
    }
    Some(Spanned::new(scalar.text.clone(), span))
}

fn step<'a>(table: &Table<'a>, id: Spanned<Arc<str>>, implicit: bool, around: &Around<'a>) -> Step {
    table.known(&["id", "kind"]);
    table.known(&policy::KEYS);
    let kind = kinds::kind_of(table);
    let known = kind.unwrap_or(StepKind::Tool);
    let written = policy::read(table, around.inventory);
    let name = (!implicit).then(|| id.value.clone());
    let body = match kind {
        Some(kind) => kinds::read(kind, table, name.as_ref(), &written, around, &around.inside(&written)),
        None => {
            table.known(&kinds::KEYS);
            Kind::Assign(IndexMap::new())
        }
    };
    let policy = match known {
        StepKind::Tool | StepKind::ToolRemote => policy::of_leaf(&written, around, table.context, &id.value),
        StepKind::Approve => Policy::once(),
        StepKind::Foreach | StepKind::Parallel | StepKind::Branch => {
            Policy { timeout: written.timeout, ..Policy::once() }
        }
    };
    if known == StepKind::Approve {
        policy::not_for_gates(table);
    }
    depends_on(table, name.as_deref(), around.inventory);
    kinds::misnamed(table, known);
    table.finish(&kinds::KEYS, |_| {
        (format!("on a step of kind {}", known.word()), "remove it, or change `kind`")
    });
    Step { policy, ..plain(id, implicit, known.word(), body, table.span) }
}

/// A step with default properties.
pub fn plain(
    id: Spanned<Arc<str>>,
    implicit: bool,
    word: &'static str,
    kind: Kind<Vec<Step>>,
    span: Span,
) -> Step {
    Step {
        number: StepId(0),
        name: id.value.clone(),
        id,
        implicit,
        description: None,
        word,
        needs: Vec::new(),
        condition: None,
        inputs: IndexMap::new(),
        outputs: IndexMap::new(),
        env: IndexMap::new(),
        policy: Policy::once(),
        recorded: None,
        kind,
        span,
    }
}

/// The original documents this key, but runs steps in the order of the file anyway.
fn depends_on(table: &Table<'_>, own: Option<&str>, inventory: &Inventory) {
    let Some(node) = table.node("depends_on") else { return };
    let names = match &node.kind {
        NodeKind::List(items) => items.as_slice(),
        NodeKind::Scalar(_) | NodeKind::Map(_) => std::slice::from_ref(node),
    };
    for node in names {
        let NodeKind::Scalar(scalar) = &node.kind else {
            let finding = wrong_shape(node, "the id of a step").step_of(&table.place);
            table.report(finding.field(table.place.field("depends_on")));
            continue;
        };
        let finding = dependency(&scalar.text, own, inventory).at(node.span).step_of(&table.place);
        table.report(finding.field(table.place.field("depends_on")).reference(&*scalar.text));
    }
}

fn dependency(name: &str, own: Option<&str>, inventory: &Inventory) -> Diagnostic {
    if own.is_some_and(|own| inventory.is_before(name, own)) {
        let message = format!("`depends_on` has no effect: `{name}` always runs before this step");
        return Diagnostic::hint(Code::IgnoredKey, message)
            .help("remove it: steps run in the order of the file");
    }
    if inventory.has_step(name) {
        let message = format!("`depends_on` has no effect: it does not make this step wait for `{name}`");
        let help = format!("steps run in the order of the file: put this step after `{name}`");
        return Diagnostic::warning(Code::IgnoredKey, message).help(help);
    }
    let finding = Diagnostic::warning(Code::UnknownStage, format!("unknown step `{name}`"));
    finding.help("remove it: steps run in the order of the file").suggest(nearest(name, inventory.step_ids()))
}
