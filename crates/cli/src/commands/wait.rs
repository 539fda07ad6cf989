//! `windlass wait`: waits until runs have ended or wait for people.

use super::face::{Face, Own};
use super::follow::{self, End, Watching};
use super::signals::Signals;
use super::{block_on, call, cannot_start};
use crate::answer::{Answer, Exit, Refused, remark};
use crate::show::{Screen, progress};
use crate::{args, data, terminal};
use std::path::Path;
use windlass_api::operations::GetRun;
use windlass_api::types::Run;
use windlass_api::{Code, Door, Following, Refusal};
use windlass_runtime::RunId;

pub fn run(args: &args::Wait, screen: &Screen) -> Result<Answer, Refused> {
    let folder = data::folder(&args.data, None);
    let engine = data::look(&folder)?;
    let runs = match args.runs.as_slice() {
        [] => vec![engine.find(data::LAST)?],
        names => names.iter().map(|run| engine.find(run)).collect::<Result<Vec<RunId>, _>>()?,
    };
    let by = data::login(args.actor.by.clone());
    let waited = block_on(async {
        let Some(door) = Door::of_owner(&folder, remark).await? else { return Ok(true) };
        for run in &runs {
            // This fails if the owner ended in the meantime.
            let Ok(mut following) = door.follow(run, None).await else { break };
            if runs.len() == 1 && !args.json && terminal::can_paint() {
                return watched(&folder, &door, following, &by, screen).await;
            }
            while following.updates.recv().await.is_some() {}
            // If the owner died, the status of the run shows it.
            let _ = following.done.await;
        }
        Ok(true)
    })?;
    match waited {
        true => answer(&folder, &runs, args.json),
        false => Ok(Answer::new(Exit::Stopped)),
    }
}

/// Follows one run on the terminal. False if the user leaves.
async fn watched(
    folder: &Path,
    door: &Door,
    following: Following,
    by: &str,
    screen: &Screen,
) -> Result<bool, Refusal> {
    let mut signals = Signals::new().map_err(|error| cannot_start(&error))?;
    let attended = Own { json: false }.is_attended();
    let watching = Watching { folder, json: None, virtual_time: false, attended, by, screen };
    match follow::attend(following, door, &mut signals, &watching, None).await {
        Ok(End::Left | End::Stopped) => Ok(false),
        Ok(End::Rests(_)) => Ok(true),
        // If the owner died, the status of the run shows it.
        Err(refusal) if refusal.code == Code::OwnerGone => Ok(true),
        Err(refusal) => Err(refusal),
    }
}

fn answer(folder: &Path, runs: &[RunId], json: bool) -> Result<Answer, Refused> {
    let mut answer = Answer::new(Exit::Done);
    for run in runs {
        let shown = call(folder, GetRun::of(run.as_str()))?;
        answer.status = Exit::worst([answer.status, shown.status.into()]);
        match json {
            true => answer.stdout += &(serde_json::to_string(&shown).unwrap_or_default() + "\n"),
            false => answer.stderr += &data::hinted(&line(&shown), folder),
        }
    }
    Ok(answer)
}

/// The status of a run as one sentence, and what to do about it.
pub(super) fn line(run: &Run) -> String {
    let next = run.waiting_on.iter().filter_map(|wait| progress::next_action(&run.run_id, wait));
    let sentence = progress::sentence(&run.run_id, run.status, &run.headline);
    std::iter::once(sentence).chain(next).map(|line| line + "\n").collect()
}
