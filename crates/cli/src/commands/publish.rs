//! `windlass publish`: a message to every step that waits for it.

use super::{act, call_once};
use crate::answer::{Answer, Exit, Refused};
use crate::show::words::count;
use crate::{args, data};
use windlass_api::operations::PublishMessage;

pub fn run(args: args::Publish) -> Result<Answer, Refused> {
    let value = act::json(args.value.as_deref())?;
    let message = PublishMessage { name: args.name, value, id: args.id, by: args.actor.by };
    let published = call_once(&data::existing(&args.data)?, message, args.once.key.as_deref())?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &published),
        false => {
            let stderr = format!("published to {}\n", count(published.subscribers, "subscriber"));
            Answer { stderr, ..Answer::new(Exit::Done) }
        }
    })
}
