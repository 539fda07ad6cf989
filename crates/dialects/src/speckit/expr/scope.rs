//! The scope of a standalone expression: one JSON value with `inputs`, `steps`, `item`, `fan_in`, `run_id` and
//! `workflow_dir`.

use windlass_ir::Value;
use windlass_ir::expr::{EvalError, Namespace, Read, Scope, Semantics, is_truthy};

struct Alone {
    inputs: Value,
    steps: Value,
    item: Value,
    fan_in: Value,
    context: Value,
}

/// Missing or empty entries become an empty object or an empty string; only the item may be anything.
pub fn scope(context: &Value) -> impl Scope + use<> {
    let given = |key: &str| context.get(key).cloned().unwrap_or(Value::Null);
    let or = |key: &str, instead: Value| {
        let value = given(key);
        if is_truthy(&value, &Semantics::SPECKIT).unwrap_or(false) { value } else { instead }
    };
    let object = || Value::map::<&str>([]);
    Alone {
        inputs: or("inputs", object()),
        steps: or("steps", object()),
        item: given("item"),
        fan_in: or("fan_in", object()),
        context: Value::map(["run_id", "workflow_dir"].map(|key| (key, or(key, Value::text(""))))),
    }
}

impl Scope for Alone {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        Ok(match read {
            Read::Namespace(Namespace::Inputs) => self.inputs.clone(),
            Read::Namespace(Namespace::Steps) => self.steps.clone(),
            Read::Namespace(Namespace::Item) => self.item.clone(),
            Read::Namespace(Namespace::FanIn) => self.fan_in.clone(),
            Read::Namespace(Namespace::Context) => self.context.clone(),
            Read::Namespace(_)
            | Read::StepOutputs(_)
            | Read::StepStatus(_)
            | Read::StepOutcome(_)
            | Read::Now
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_) => Value::Null,
        })
    }
}
