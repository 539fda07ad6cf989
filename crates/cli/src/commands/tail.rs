//! Following a run that another process drives. What has happened is in the files; the owner only says that there is more.

use super::block_on;
use crate::answer::remark;
use std::path::Path;
use windlass_runtime::{Door, Engine, Error, RunId, Update};

/// Calls `each` with everything that the owner tells of a run, until nobody drives the run or `each` has had enough. With nothing in
/// hand it is to show what is in the files: once when nothing can be missed any more, and once at the end.
/// Returns what is worth saying about the end.
pub fn follow(
    folder: &Path,
    engine: &Engine,
    run: &RunId,
    mut each: impl FnMut(Option<Update>) -> Result<bool, Error>,
) -> Result<String, Error> {
    let reads = block_on(folder, async {
        let following = match Door::of_owner(folder, remark).await? {
            // An owner that has ended meanwhile drives nothing any more.
            Some(door) => door.follow(run).await.ok(),
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
        true => Ok(format!("nobody drives run {run} now: `windlass resume {run}` goes on with it\n")),
        false => Ok(String::new()),
    }
}
