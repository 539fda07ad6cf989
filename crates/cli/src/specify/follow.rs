//! A run as Spec Kit shows it while it proceeds: the steps that begin, and questions at gates. Meanwhile the run folder is kept up
//! to date.

use super::ask::Asker;
use super::folder::Folder;
use super::log::Begun;
use crate::answer;
use crate::commands::face::{Audience, Followed};
use crate::commands::follow::STOPPING;
use crate::show::progress;
use crate::show::words::one_line;
use windlass_runtime::{BoxFuture, Error, Update};

pub struct Telling {
    folder: Folder,
    /// None if no one is there to ask.
    asker: Option<Asker>,
    json: bool,
}

impl Telling {
    /// `known` is the number of events that were there before the run was started or resumed.
    pub fn new(followed: &Followed<'_>, known: u64, json: bool, attended: bool) -> Result<Self, Error> {
        let mut folder = Folder::open(&*followed.engine()?, followed.run)?;
        folder.begin();
        let asker = attended.then(|| Asker::new(followed.run, folder.view(), followed.door, followed.by));
        let mut telling = Self { folder, asker, json };
        telling.tell_begun(known);
        Ok(telling)
    }

    fn tell_begun(&mut self, known: u64) {
        let begun = self.folder.begun().into_iter().filter(|begun| begun.event > known && !self.json);
        for Begun { id, label, .. } in begun {
            answer::line(&format!("  \u{25b8} [{}] {} \u{2026}", one_line(&id), one_line(&label)));
        }
    }
}

impl Audience for Telling {
    fn tell(&mut self, update: Update) -> Result<(), Error> {
        match update {
            Update::Event { seq, event } => {
                if seq <= self.folder.view().events {
                    return Ok(());
                }
                self.folder.hear(&event)?;
                if let Some(asker) = &mut self.asker {
                    asker.hear(&event);
                }
                self.tell_begun(0);
            }
            Update::Line(line) => answer::remark(&progress::output(&line)),
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
