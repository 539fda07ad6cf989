//! What became of past fires, for people and for programs.

use crate::show::Screen;
use crate::show::words::{clean, one_line};
use serde_json::{Value, json};
use windlass_runtime::PastFire;

/// One line for each.
pub fn render(fires: &[PastFire], screen: &Screen) -> String {
    let width = fires.iter().map(|fire| clean(&fire.trigger).chars().count()).max().unwrap_or_default();
    let line = |fire: &PastFire| {
        let due = fire.due.to_string();
        let due = due.get(..19).unwrap_or(&due).replace('T', " ");
        let came = match &fire.came {
            Ok(run) => screen.bold(run.as_str()),
            Err(because) => format!("skipped: {}", one_line(because)),
        };
        let trigger = clean(&fire.trigger);
        format!("{due}Z  {trigger:width$}  {came}\n")
    };
    fires.iter().map(line).collect()
}

pub fn to_json(fire: &PastFire) -> Value {
    json!({
        "trigger": &*fire.trigger,
        "due": fire.due.to_string(),
        "decided_at": fire.decided_at.to_string(),
        "run_id": fire.came.as_ref().ok(),
        "skipped_because": fire.came.as_ref().err(),
    })
}
