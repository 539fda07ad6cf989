//! Spec Kit workflows: from the tree of a `workflow.yml` to [`windlass_ir::Workflow`].

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

/// Where the overlays of an installed workflow lie: for `.specify/workflows/ID/workflow.yml` in `.specify/workflows/overlays/ID`.
pub fn overlay_folder(file: &str) -> Option<String> {
    let (folder, name) = file.rsplit_once('/')?;
    let (workflows, id) = folder.rsplit_once('/')?;
    let installed = workflows == ".specify/workflows" || workflows.ends_with("/.specify/workflows");
    (installed && name == "workflow.yml").then(|| format!("{workflows}/overlays/{id}"))
}

pub fn read(_root: Node, _overlays: &[Node], _sources: &Sources) -> (Option<Workflow>, Vec<Diagnostic>) {
    (None, Vec::new())
}
