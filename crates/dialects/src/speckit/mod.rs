//! Spec Kit workflows: from the tree of a `workflow.yml` to [`windlass_ir::Workflow`].
//!
//! `yaml11` makes the tree mean what Python would read, `overlays` edits its steps, `document` reads the top of it,
//! `inputs` what a run is started with, `step` what all steps share, and one file for each family of steps the rest. `field`
//! is the one way in which all of them ask for a key; `expr` reads expressions and `bind` ties their words.

mod assistant;
mod bind;
mod call;
mod document;
pub mod expr;
mod fan;
mod field;
mod gate;
mod inputs;
mod literal;
mod overlays;
mod project;
mod scope;
mod shell;
mod step;
mod yaml11;

pub use overlays::overlay_folder;
pub(crate) use step::is_step_type;

use crate::table::{Context, Keys};
use crate::text::Node;
use windlass_ir::expr::Namespace;
use windlass_ir::workflow::Words;
use windlass_ir::{Diagnostic, Sources, Workflow};

pub const WORDS: Words = Words {
    dialect: "speckit",
    step: "step",
    needs: "steps",
    parameter: "input",
    outputs: "output",
    opens: "{{",
    namespace: namespace_word,
};

/// The word that the dialect has for a namespace; what it cannot say is called as in the house dialect.
fn namespace_word(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Inputs => "inputs",
        Namespace::Steps => "steps",
        other => crate::swdl::expr::namespace_word(other),
    }
}

/// Reads a workflow from the tree of its file, with overlays applied to its steps. What can be read is read, whatever is
/// wrong with the rest, so that all findings come together.
pub fn read(root: Node, overlays: &[Node], sources: &Sources) -> (Option<Workflow>, Vec<Diagnostic>) {
    let context = Context::new(sources, Keys::Exact, field::OPENS);
    let mut root = root;
    let mut overlays = overlays.to_vec();
    for tree in std::iter::once(&mut root).chain(&mut overlays) {
        yaml11::resolve(tree, &mut context.diagnostics.borrow_mut());
    }
    let root = overlays::apply(root, &overlays, &context);
    let workflow = document::read(&root, &context);
    (workflow, context.diagnostics.into_inner())
}
