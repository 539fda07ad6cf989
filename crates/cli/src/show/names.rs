//! What people call a step while a run executes, and the outputs of a run.

use super::gates::text;
use super::words::{one_line, shorten};
use windlass_api::report::item_name;
use windlass_api::types::Json;
use windlass_dialects::DIALECTS;
use windlass_runtime::{Path, View, ids};

/// `build (mac, stable)` in an item with a name, else the id of the step.
pub fn step(view: &View, path: &Path) -> String {
    let name = ids::name(DIALECTS, view, path);
    match item_name(view, path) {
        Some(item) => one_line(&format!("{} ({item})", name.plain)),
        None => one_line(&name.id),
    }
}

/// The longest value of an output to show.
const OUTPUT_MAX: usize = 200;

/// The outputs of a run, one line each.
pub fn outputs(outputs: &Json) -> Vec<String> {
    let short = |value: &Json| shorten(&text(value), OUTPUT_MAX).into_owned();
    match outputs {
        Json::Null => Vec::new(),
        Json::Object(members) => {
            members.iter().map(|(name, value)| format!("{}: {}", one_line(name), short(value))).collect()
        }
        whole => vec![short(whole)],
    }
}
