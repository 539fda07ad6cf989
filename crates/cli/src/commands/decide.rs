//! `windlass approve`, `reject`, `cancel` and `pause`: one word to a run, heard by its owner or written into its journal.

use super::refused;
use crate::answer::{Answer, Status};
use crate::{args, data};
use windlass_ir::Value;
use windlass_runtime::{Clock, Door, Durability, Error, Order};

pub fn decide(args: &args::Decide, approve: bool) -> Answer {
    let form = Value::map(args.fields.iter().map(|(name, text)| (name.as_str(), field(text))));
    let word = if approve { "approved" } else { "rejected" };
    let order = |by: String| Order::Decide {
        // The same decision sent twice is one decision.
        id: format!("{by}-{}", Clock::Real.now().0),
        step: args.step.clone(),
        approve,
        by,
        reason: args.reason.clone(),
        form: form.clone(),
    };
    tell(&args.data, &args.run, args.by.clone(), order, word)
}

/// JSON where it reads as JSON, else text.
fn field(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::text(text))
}

pub fn cancel(args: args::Cancel) -> Answer {
    let why = args.reason;
    tell(&args.data, &args.run, args.by, |by| Order::Cancel { why, by }, "cancelled")
}

pub fn pause(args: args::Pause) -> Answer {
    tell(&args.data, &args.run, args.by, |by| Order::Pause { by }, "paused")
}

fn tell(
    place: &args::Data,
    name: &str,
    by: Option<String>,
    order: impl FnOnce(String) -> Order,
    word: &str,
) -> Answer {
    match told(place, name, order(data::login(by))) {
        Ok((run, true)) => Answer { stderr: format!("{word}: {run}\n"), ..Answer::new(Status::Done) },
        Ok((run, false)) => {
            let stderr = format!(
                "{word}: {run}; recorded, nobody drives the run: `windlass resume {run}` goes on, `windlass show {run}` tells how it stands\n"
            );
            Answer { stderr, ..Answer::new(Status::Done) }
        }
        Err(error) => refused(&error),
    }
}

fn told(place: &args::Data, name: &str, order: Order) -> Result<(String, bool), Error> {
    let (folder, engine, run) = data::find(place, name)?;
    drop(engine);
    let door = Door::open(&folder, Durability::Disk)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Folder { folder, cause: error.to_string() })?;
    let driven = runtime.block_on(door.tell(&run, order))?;
    Ok((run.to_string(), driven))
}
