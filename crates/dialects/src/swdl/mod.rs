//! SWDL, the native dialect: from the tree of a file to [`windlass_ir::Workflow`].
//!
//! `document` reads the top level of a file with `config` and `triggers`, `stage` the common keys of stages, `agent`,
//! `assistant`, `gate`, `work`, `scope` and `leaf` the keys of each type; `ports` reads contracts, `policy` error
//! policies with their inheritance, `overrides` merges a project's overrides into the tree beforehand, and
//! `neighbors` knows what other languages call our keys. All of them read keys through `table`.

mod agent;
mod assistant;
mod config;
mod dialect;
mod document;
mod duration;
pub mod expr;
mod gate;
mod leaf;
mod names;
mod neighbors;
mod overrides;
mod policy;
mod ports;
mod scope;
mod shell_text;
mod stage;
mod table;
mod triggers;
mod values;
mod work;

pub use dialect::Swdl;
pub(crate) use overrides::check as check_overrides;
pub use values::scope;
pub(crate) use values::{subtractions, unused};

use crate::table::Keys;
use crate::text::Node;
use windlass_ir::workflow::Words;
use windlass_ir::{Diagnostic, Sources, Workflow};

/// The defaults of the language; the converter leaves them out.
pub(crate) mod defaults {
    pub(crate) use super::agent::MODEL;
    pub(crate) use super::config::{AGENTS_PER_RUN, RUN_TIMEOUT};
    pub(crate) use super::document::VERSION;
    pub(crate) use super::gate::{TIMEOUT as GATE_TIMEOUT, TIMES_BACK};
    pub(crate) use super::policy::{TIMEOUT, base_retry as retry, no_retry, retry_of_commands};
    pub(crate) use super::work::{SHELLS, usual_shell};
}

/// The file in a project that overrides parts of workflows.
pub const OVERRIDES_FILE: &str = ".skillmeat-workflow-overrides.yaml";

pub static WORDS: Words = Words {
    dialect: "swdl",
    step: "stage",
    needs: "depends_on",
    parameter: "parameter",
    outputs: "outputs",
    opens: "${{",
    namespace: expr::namespace_word,
};

/// Reads a workflow from the tree of its file, with a project's overrides merged in. Reading continues after errors,
/// so that all problems are reported together.
pub fn read(root: Node, overrides: Option<&Node>, sources: &Sources) -> (Option<Workflow>, Vec<Diagnostic>) {
    let mut context = table::Context::new(sources, Keys::Exact, "${{");
    let root = match overrides {
        Some(overrides) => overrides::apply(root, overrides, &context),
        None => root,
    };
    context.foreign = config::is_foreign(&root);
    let workflow = document::read(&root, &context);
    let mut findings = context.diagnostics.into_inner();
    if let Some(overrides) = overrides {
        findings.iter_mut().for_each(|finding| overrides::harden(finding, overrides));
    }
    (workflow, findings)
}
