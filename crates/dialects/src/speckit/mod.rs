//! Spec Kit workflows: from the tree of a `workflow.yml` to [`windlass_ir::Workflow`].
//!
//! `yaml11` gives the tree the meaning that Python would read, `overlays` edits its steps, `document` reads the top
//! level, `inputs` the inputs of a run, `step` the common keys of steps, and one file per family of steps the rest.
//! All of them read keys through `field`; `expr` parses expressions and `bind` resolves their names. `definition` is
//! a file as Spec Kit itself holds it, and `dump` writes it as Python would.

mod assistant;
mod bind;
mod call;
mod definition;
mod dialect;
mod document;
mod dump;
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

pub use definition::{Definition, ascii, case, joined, member};
pub use overlays::overlay_folder;
pub(crate) use step::is_step_type;
pub use step::type_of;
pub(crate) use yaml11::{python_key as key_text, resolve_scalars};

pub use dialect::Speckit;

use crate::table::{Context, Keys};
use crate::text::Node;
use windlass_ir::expr::Namespace;
use windlass_ir::workflow::Words;
use windlass_ir::{Diagnostic, Sources, Workflow};

pub static WORDS: Words = Words {
    dialect: "speckit",
    step: "step",
    needs: "steps",
    parameter: "input",
    outputs: "output",
    opens: "{{",
    namespace: namespace_word,
};

/// The dialect's word for a namespace, or the native word if it has none.
fn namespace_word(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Inputs => "inputs",
        Namespace::Steps => "steps",
        other => crate::swdl::expr::namespace_word(other),
    }
}

/// Reads a workflow from the tree of its file, with overlays applied to its steps. Reading continues after errors, so
/// that all problems are reported together.
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

/// Checks an overlay without its workflow: the workflow that it extends, the number of its edits, and all findings.
pub(crate) fn check_overlay(root: &Node, sources: &Sources) -> (Vec<String>, usize, Vec<Diagnostic>) {
    let context = Context::new(sources, Keys::Exact, field::OPENS);
    let mut root = root.clone();
    yaml11::resolve(&mut root, &mut context.diagnostics.borrow_mut());
    let (extends, edits) = overlays::check(&root, &context);
    (extends.into_iter().collect(), edits, context.diagnostics.into_inner())
}
