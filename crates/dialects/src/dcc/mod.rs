//! DCC-MCP workflows and schedules: from the tree of a file to [`windlass_ir::Workflow`].

mod payload;
mod routes;
pub mod schedules;
pub mod skill;

use crate::text::Node;
use windlass_ir::expr::Namespace;
use windlass_ir::workflow::Words;
use windlass_ir::{Diagnostic, Sources, Workflow};

pub const WORDS: Words = Words {
    dialect: "dcc",
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

pub fn read(_root: &Node, _sources: &Sources) -> (Option<Workflow>, Vec<Diagnostic>) {
    (None, Vec::new())
}
