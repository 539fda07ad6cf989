//! DCC-MCP workflows and schedules: from the tree of a file to [`windlass_ir::Workflow`] and its triggers.
//!
//! `document` reads the top level of a file, `inputs` the description of its inputs, `step` the common keys of steps,
//! `kinds` the keys of each kind, and `policy` retries, timeouts and idempotency; `tasks` explains the related
//! language that nothing runs. `template` and `path` are the two expression syntaxes, and `bind` resolves their names
//! with the help of `inventory`, the index of all steps. `schedules` reads files of triggers, with `payload` for the
//! values they pass on and `routes` for the paths they listen on, and `skill` the files that a skill refers to.

mod bind;
mod dialect;
mod document;
mod inputs;
mod inventory;
mod key;
mod kinds;
pub mod path;
mod payload;
mod policy;
mod routes;
pub mod schedules;
pub mod skill;
mod step;
mod table;
mod tasks;
pub mod template;

pub use dialect::Dcc;

use crate::table::{Context, Keys};
use crate::text::Node;
use windlass_ir::expr::{EvalError, Namespace, Read, Scope};
use windlass_ir::workflow::Words;
use windlass_ir::{Diagnostic, Sources, Value, Workflow};

pub static WORDS: Words = Words {
    dialect: "dcc",
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
        Namespace::Host => "env",
        other => crate::swdl::expr::namespace_word(other),
    }
}

/// Reads a workflow from the tree of its file. Reading continues after errors.
pub fn read(root: &Node, sources: &Sources) -> (Option<Workflow>, Vec<Diagnostic>) {
    let context = Context::new(sources, Keys::Exact, template::OPEN);
    let workflow = document::read(root, &context);
    (workflow, context.diagnostics.into_inner())
}

/// The scope of a standalone expression: a context of `inputs`, `steps`, `item` and the names of loops.
pub fn scope(context: &Value) -> impl Scope {
    Whole { context }
}

struct Whole<'a> {
    context: &'a Value,
}

impl Scope for Whole<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        let word = match read {
            Read::Namespace(Namespace::Root) => return Ok(self.context.clone()),
            Read::Namespace(namespace) => namespace_word(namespace),
            Read::StepOutputs(_)
            | Read::StepStatus(_)
            | Read::StepOutcome(_)
            | Read::Now
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_) => return Ok(Value::Null),
        };
        Ok(self.context.get(word).cloned().unwrap_or(Value::Null))
    }
}
