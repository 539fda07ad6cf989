//! What a step is known to produce before it runs: its declared outputs and those of its kind.

use crate::contract::Type;
use crate::workflow::{Action, Kind, OUTPUT_FILE, ShellOutput, Step};
use indexmap::IndexMap;
use std::sync::Arc;

/// The outputs of a step, as far as its file tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Produces {
    /// One value per name. An `open` one may contain undeclared names.
    Fields { fields: IndexMap<Arc<str>, Type>, open: bool },
    /// One entry per item, in item order.
    List,
}

impl Step {
    /// The step that does the work: this one, or the one inside its guard.
    pub fn unguarded(&self) -> &Step {
        match &self.kind {
            Kind::Guard(guard) => guard.body.first().map_or(self, Step::unguarded),
            _ => self,
        }
    }

    pub fn produces(&self) -> Produces {
        let step = self.unguarded();
        if matches!(step.kind, Kind::ForEach(_)) {
            return Produces::List;
        }
        let (mut fields, open_when_silent) = implied(&step.kind);
        fields.extend(step.outputs.iter().map(|(name, output)| (name.clone(), output.ty.clone())));
        Produces::Fields { fields, open: open_when_silent && step.outputs.is_empty() }
    }
}

/// The outputs that come with the kind, and whether there may be others as long as none are declared.
fn implied(kind: &Kind<Vec<Step>>) -> (IndexMap<Arc<str>, Type>, bool) {
    let fields =
        |list: &[(&str, Type)]| list.iter().map(|(name, ty)| (Arc::from(*name), ty.clone())).collect();
    let decision = ["decision", "by", "reason", "choice"].map(|name| (name, Type::String));
    let streams = [
        ("exit_code", Type::Integer),
        ("stdout", Type::String),
        ("stdout_raw", Type::String),
        ("stderr", Type::String),
    ];
    let response = [("status", Type::Integer), ("headers", Type::Object), ("body", Type::Any)];
    match kind {
        Kind::Action(Action::Shell(shell)) => {
            let mut fields: IndexMap<_, _> = fields(&streams);
            if shell.output == ShellOutput::Json {
                fields.insert("data".into(), Type::Any);
            }
            // A command that names the file of outputs may leave any in it.
            (fields, shell.run.template.texts().any(|text| text.contains(OUTPUT_FILE)))
        }
        Kind::Action(Action::Http(_)) => (fields(&response), false),
        Kind::Action(
            Action::Tool(_) | Action::Task(_) | Action::Call(_) | Action::Assistant(_) | Action::Builtin(_),
        ) => (IndexMap::new(), true),
        Kind::Gate(gate) => {
            let mut fields: IndexMap<_, _> = fields(&decision);
            fields.extend(gate.form.iter().map(|(name, field)| (name.clone(), field.ty.clone())));
            (fields, false)
        }
        Kind::Wait(_) => (fields(&[("value", Type::Any)]), false),
        Kind::Assign(set) => (set.keys().map(|name| (name.clone(), Type::Any)).collect(), false),
        Kind::Repeat(_) => (fields(&[("iterations", Type::Integer), ("exhausted", Type::Boolean)]), false),
        Kind::Choose(_) => (fields(&[("branch", Type::String)]), false),
        Kind::Parallel(_) => (fields(&[("branch_results", Type::Array(Box::new(Type::String)))]), false),
        Kind::Action(Action::Agent(_))
        | Kind::Finish(_)
        | Kind::Slot(_)
        | Kind::Block(_)
        | Kind::ForEach(_)
        | Kind::Guard(_) => (IndexMap::new(), false),
    }
}
