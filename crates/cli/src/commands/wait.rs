//! `windlass wait`: until runs have ended, or wait for people.

use super::face::{Face, Own};
use super::follow::{self, End, Watching};
use super::signals::Signals;
use super::{block_on, refused};
use crate::answer::{Answer, Status, remark};
use crate::show::Screen;
use crate::{args, data, terminal};
use std::path::Path;
use windlass_ir::RunStatus;
use windlass_runtime::{Door, Engine, Error, Following, RunId};

pub fn run(args: &args::Wait, screen: &Screen) -> Answer {
    let folder = data::folder(&args.data, None);
    let found = || -> Result<Vec<RunId>, Error> {
        let engine = data::look(&folder)?;
        args.runs.iter().map(|run| engine.find(run)).collect()
    };
    let runs = match found() {
        Ok(runs) => runs,
        Err(error) => return refused(&error),
    };
    let waited = block_on(&folder, async {
        if let Some(door) = Door::of_owner(&folder, remark).await? {
            for run in &runs {
                // An owner that has ended meanwhile drives nothing any more.
                let Ok(mut following) = door.follow(run).await else { break };
                if runs.len() == 1 && !args.json && terminal::can_paint() {
                    return watched(&folder, &door, following, screen).await;
                }
                while following.updates.recv().await.is_some() {}
                // Whether the owner has died meanwhile is seen in how the run stands.
                let _ = following.done.await;
            }
        }
        Ok(true)
    });
    match waited {
        Ok(true) => {}
        Ok(false) => return Answer::new(Status::Stopped),
        Err(error) => return refused(&error),
    }
    match data::look(&folder) {
        Ok(engine) => told(&engine, &runs, args.json),
        Err(error) => refused(&error),
    }
}

/// Shows one run on the terminal while it is waited for. False when nobody wants to see more of it.
async fn watched(folder: &Path, door: &Door, following: Following, screen: &Screen) -> Result<bool, Error> {
    let failed =
        |error: std::io::Error| Error::Folder { folder: folder.to_owned(), cause: error.to_string() };
    let mut signals = Signals::new().map_err(failed)?;
    let by = data::login(None);
    let watching = Watching {
        folder,
        json: None,
        virtual_time: false,
        attended: Own { json: false }.is_attended(),
        by: &by,
        screen,
    };
    match follow::attend(following, door, &mut signals, &watching, None).await {
        Ok(End::Left | End::Stopped) => Ok(false),
        // Whether the owner has died meanwhile is seen in how the run stands.
        Ok(End::Rests(_)) | Err(Error::OwnerGone(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

fn told(engine: &Engine, runs: &[RunId], json: bool) -> Answer {
    let mut answer = Answer::new(Status::Done);
    let rank = |status: Status| match status {
        Status::Done => 0,
        Status::Stopped => 1,
        Status::Waiting => 2,
        Status::Cancelled => 3,
        Status::Failed | Status::Refused | Status::Bug => 4,
    };
    for run in runs {
        let (result, status) = match engine.result(run).and_then(|result| Ok((result, engine.status(run)?))) {
            Ok(found) => found,
            Err(error) => return refused(&error),
        };
        if rank(status.into()) > rank(answer.status) {
            answer.status = status.into();
        }
        match json {
            true => answer.stdout += &format!("{result}\n"),
            false => {
                let left = match status {
                    RunStatus::Interrupted => format!("; `windlass resume {run}` continues it"),
                    _ => String::new(),
                };
                answer.stderr += &format!("{run}: {status}{left}\n");
            }
        }
    }
    answer
}
