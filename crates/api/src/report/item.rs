//! The items of fan-outs and the rounds of loops: their names, and how many there are.

use super::{Report, items_of};
use crate::types::Children;
use crate::words::{one_line, shorten};
use indexmap::IndexMap;
use windlass_ir::{StepStatus, Value};
use windlass_runtime::{Decision, Path, StepView, View};

/// The longest name of an item, and of each of its parts, in characters.
const NAME_MAX: usize = 48;
const PART_MAX: usize = 24;

/// The name of the item that a path is, or is inside of. None for items without anything short to call them.
pub fn item_name(view: &View, path: &Path) -> Option<String> {
    let (_, owner, number) = path.frames().last()?;
    let owner = view.step(&owner)?;
    match owner.entered {
        Some(Decision::Items { items: Value::List(items), .. }) => name(items.get(number as usize)?),
        _ => None,
    }
}

/// A scalar as it is, an object or a list by its scalars: `mac, stable`.
fn name(item: &Value) -> Option<String> {
    let parts: Vec<String> = match item {
        Value::Map(members) => members.values().filter_map(scalar).collect(),
        Value::List(items) => items.iter().filter_map(scalar).collect(),
        other => scalar(other).into_iter().collect(),
    };
    let name = shorten(&parts.join(", "), NAME_MAX).into_owned();
    Some(name).filter(|name| !name.is_empty())
}

fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::Text(text) => one_line(text),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => value.to_json_text()?,
        _ => return None,
    };
    Some(shorten(&text, PART_MAX).into_owned()).filter(|text| !text.is_empty())
}

impl Report<'_> {
    pub(super) fn item(&self, path: &Path) -> Option<String> {
        item_name(self.view, path)
    }

    /// `1 of 4 items failed`, for a fan-out in which some did.
    pub fn failed_items(&self, path: &Path, step: &StepView<'_>) -> Option<String> {
        let children = self.children(path, step).filter(|_| items_of(step) > 0)?;
        let failed = children.by_status.get(StepStatus::Failed.word())?;
        Some(format!("{failed} of {} items failed", children.total))
    }

    /// The items or rounds of a step.
    pub(super) fn children(&self, path: &Path, step: &StepView<'_>) -> Option<Children> {
        if step.frame.is_some() {
            return None;
        }
        let (total, begun) = match step.entered {
            Some(Decision::Items { .. }) => (items_of(step), items_of(step)),
            Some(Decision::Round { .. }) => (step.rounds as usize, step.rounds as usize),
            _ => return None,
        };
        let mut by_status: IndexMap<String, usize> = IndexMap::new();
        for number in 0..u32::try_from(begun).unwrap_or(u32::MAX) {
            let frame = self.view.step(&path.frame(number));
            let status = frame.map_or(StepStatus::Pending, |frame| self.words(&self.step_facts(&frame)).0);
            *by_status.entry(status.to_string()).or_default() += 1;
        }
        Some(Children { total, by_status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_named_by_their_scalars() {
        let check = |item: serde_json::Value, expected: Option<&str>| {
            assert_eq!(name(&Value::from(&item)).as_deref(), expected, "{item}");
        };
        check(serde_json::json!({"os": "mac", "ch": "stable", "more": [1]}), Some("mac, stable"));
        check(serde_json::json!({"n": 2.5, "ok": true}), Some("2.5, true"));
        check(serde_json::json!("a\n b"), Some("a b"));
        check(serde_json::json!(["a", 7]), Some("a, 7"));
        check(serde_json::json!({"deep": {}}), None);
        check(serde_json::json!(null), None);
    }
}
