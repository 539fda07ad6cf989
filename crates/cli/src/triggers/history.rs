//! What became of past firings, for people and for programs.

use crate::show::Screen;
use crate::show::words::{clean, one_line};
use serde_json::{Value, json};
use windlass_runtime::PastFiring;

/// One line for each.
pub fn render(firings: &[PastFiring], screen: &Screen) -> String {
    let width = firings.iter().map(|firing| clean(&firing.trigger).chars().count()).max().unwrap_or_default();
    let line = |firing: &PastFiring| {
        let due = firing.due.to_string();
        let due = due.get(..19).unwrap_or(&due).replace('T', " ");
        let came = match &firing.came {
            Ok(run) => screen.bold(run.as_str()),
            Err(because) => format!("skipped: {}", one_line(because)),
        };
        let trigger = clean(&firing.trigger);
        format!("{due}Z  {trigger:width$}  {came}\n")
    };
    firings.iter().map(line).collect()
}

pub fn to_json(firing: &PastFiring) -> Value {
    json!({
        "trigger": &*firing.trigger,
        "due": firing.due.to_string(),
        "decided_at": firing.decided_at.to_string(),
        "run_id": firing.came.as_ref().ok(),
        "skipped_because": firing.came.as_ref().err(),
    })
}
