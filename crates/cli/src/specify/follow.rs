//! Shows a run the way Spec Kit does: the steps as they begin, and questions at gates. Keeps the run folder up to date
//! meanwhile.

use super::ask::Asker;
use super::folder::Folder;
use super::log::Begun;
use crate::answer;
use crate::commands::face::{Audience, Followed};
use crate::commands::follow::STOPPING;
use crate::show::words::one_line;
use crate::show::{names, progress};
use windlass_api::Refusal;
use windlass_runtime::{BoxFuture, Update};

pub struct Follower {
    folder: Folder,
    /// None without a terminal to ask on.
    asker: Option<Asker>,
    json: bool,
}

impl Follower {
    /// `known` is the number of events before the run was started or resumed.
    pub fn new(followed: &Followed<'_>, known: u64, json: bool, attended: bool) -> Result<Self, Refusal> {
        let mut folder = Folder::open(&*followed.engine()?, followed.run)?;
        folder.begin();
        let asker = attended.then(|| Asker::new(followed.run, folder.view(), followed.door, followed.by));
        let mut follower = Self { folder, asker, json };
        follower.show_begun(known);
        Ok(follower)
    }

    fn show_begun(&mut self, known: u64) {
        let begun = self.folder.begun().into_iter().filter(|begun| begun.event > known && !self.json);
        for Begun { id, label, .. } in begun {
            answer::line(&format!("  \u{25b8} [{}] {} \u{2026}", one_line(&id), one_line(&label)));
        }
    }
}

impl Audience for Follower {
    fn update(&mut self, update: Update) -> Result<(), Refusal> {
        match update {
            Update::Event { seq, event } => {
                if seq <= self.folder.view().events {
                    return Ok(());
                }
                self.folder.apply(&event)?;
                if let Some(asker) = &mut self.asker {
                    asker.apply(&event);
                }
                self.show_begun(0);
            }
            Update::Line(line) => {
                let step = names::step(self.folder.view(), &line.job.path);
                answer::remark(&progress::output(&step, &line));
            }
            Update::Notice(text) => answer::remark(&text),
        }
        Ok(())
    }

    fn stopping(&mut self) {
        answer::remark(STOPPING);
    }

    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let due = self.folder.due();
            let asks = async {
                match &mut self.asker {
                    Some(asker) => asker.next(self.folder.view()).await,
                    None => std::future::pending().await,
                }
            };
            let write = tokio::select! {
                () = asks => false,
                () = sleep_until(due) => true,
            };
            if write {
                self.folder.write();
            }
        })
    }
}

async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
