//! DagNats definitions: from the tree of a JSON (or YAML) file to [`windlass_ir::Workflow`].
//!
//! `document` reads the top level of a file, `step` the common keys of steps, `work`, `pause` and `respond` the keys
//! of each type; `flow` makes the data flow between steps explicit, and `roster` is an index of all steps that is
//! built first.

mod dialect;
mod document;
mod duration;
mod field;
mod flow;
mod matching;
mod pause;
mod policy;
mod respond;
mod retry;
mod roster;
mod run_policy;
mod skip_if;
mod step;
mod trigger;
mod work;

pub use skip_if::{parse_skip_if, scope};

pub use dialect::Dagnats;

use crate::table::{Context, Keys};
use crate::text::Node;
use windlass_ir::expr::Namespace;
use windlass_ir::workflow::Words;
use windlass_ir::{Code, Diagnostic, Sources, Workflow};

pub static WORDS: Words = Words {
    dialect: "dagnats",
    step: "step",
    needs: "depends_on",
    parameter: "input",
    outputs: "output",
    opens: "${{",
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

/// Reads a workflow from the tree of its file. Reading continues after errors, so that all problems are reported
/// together.
pub fn read(root: &Node, sources: &Sources) -> (Option<Workflow>, Vec<Diagnostic>) {
    let context = Context::new(sources, Keys::AnyCase, "");
    let workflow = document::read(root, &context);
    (workflow, context.diagnostics.into_inner())
}

/// Adds the number of the broken rule and a location in the dialect's terms to a finding of
/// [`windlass_ir::resolve()`].
pub fn number_rule(finding: &mut Diagnostic) {
    if finding.field.as_deref() == Some("error_policy.on_failure") {
        finding.field = Some("on_failure".into());
    }
    finding.rule = match (finding.code, finding.field.as_deref()) {
        (Code::DuplicateStageId, _) => Some(3),
        (Code::UnknownStage, Some("depends_on")) => Some(5),
        (Code::UnknownStage, Some("on_failure")) => Some(6),
        (Code::UnknownStage, Some("compensate")) => Some(7),
        (Code::Cycle, _) => Some(13),
        (_, _) => finding.rule,
    };
}
