//! Follows a run that another process executes. Events and lines come from the files; the owner only signals that there are
//! more.

use super::block_on;
use crate::answer::remark;
use crate::data;
use std::path::Path;
use windlass_api::{Door, Refusal};
use windlass_runtime::{Engine, RunId, Update};

/// Calls `each` with every update about a run until no process executes it, or `each` returns false. A call without an
/// update asks `each` to show the contents of the files: once after subscribing, and once at the end. Returns a remark about the
/// end.
pub fn follow(
    folder: &Path,
    engine: &Engine,
    run: &RunId,
    mut each: impl FnMut(Option<Update>) -> Result<bool, Refusal>,
) -> Result<String, Refusal> {
    let reads = block_on(async {
        let following = match Door::of_owner(folder, remark).await? {
            // This fails if the owner ended in the meantime.
            Some(door) => door.follow(run, None).await.ok(),
            None => None,
        };
        if !each(None)? {
            return Ok(false);
        }
        let Some(mut following) = following else { return Ok(true) };
        while let Some(update) = following.updates.recv().await {
            if !each(Some(update))? {
                return Ok(false);
            }
        }
        each(None)
    })?;
    match reads && engine.view(run)?.ended_at().is_none() {
        true => {
            let text = format!("no process executes run {run}: continue it with `windlass resume {run}`\n");
            Ok(data::hinted(&text, folder))
        }
        false => Ok(String::new()),
    }
}
