//! Lists past firings of triggers as text.

use crate::show::Screen;
use crate::show::words::{clean, one_line};
use windlass_api::operations::Firing;

/// One line per firing.
pub fn render(firings: &[Firing], screen: &Screen) -> String {
    let width = firings.iter().map(|firing| clean(&firing.trigger).chars().count()).max().unwrap_or_default();
    let line = |firing: &Firing| {
        let due = firing.due_at.get(..19).unwrap_or(&firing.due_at).replace('T', " ");
        let outcome = match (&firing.run_id, &firing.reason) {
            (Some(run), _) => screen.bold(run),
            (None, reason) => format!("skipped: {}", one_line(reason.as_deref().unwrap_or_default())),
        };
        let trigger = clean(&firing.trigger);
        format!("{due}Z  {trigger:width$}  {outcome}\n")
    };
    firings.iter().map(line).collect()
}
