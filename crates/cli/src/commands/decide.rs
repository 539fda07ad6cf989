//! `windlass approve`, `reject`, `signal` and `pause`: one word to a run, heard by its owner or written into its journal.

use super::{block_on, refused};
use crate::answer::{Answer, Status, remark};
use crate::{args, data};
use std::path::Path;
use windlass_dialects::DIALECTS;
use windlass_ir::{RunStatus, Value};
use windlass_runtime::{Choice, Clock, Door, Durability, Error, Order, RunId};

pub fn decide(args: &args::Decide, approve: bool) -> Answer {
    let (choice, word) = match (args.choice.as_deref(), approve) {
        (Some(option), _) => (Choice::Option(option.into()), option),
        (None, true) => (Choice::Approve, "approved"),
        (None, false) => (Choice::Reject, "rejected"),
    };
    let form = Value::map(args.fields.iter().map(|(name, text)| (name.as_str(), field(text))));
    let order = |by: String| Order::Decide {
        // The same decision sent twice is one decision.
        id: format!("{by}-{}", Clock::Real.now().0),
        step: args.step.clone(),
        choice: choice.clone(),
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

pub fn signal(args: args::Signal) -> Answer {
    let value = match args.value.as_deref().map(serde_json::from_str).transpose() {
        Ok(value) => value.unwrap_or(Value::Null),
        Err(error) => {
            let stderr = format!(
                "error[bad_parameter]: what is sent must be JSON: {error}; put text into double quotes\n"
            );
            return Answer { stderr, ..Answer::new(Status::Refused) };
        }
    };
    let order = |by: String| {
        let id = args.id.unwrap_or_else(|| format!("{by}-{}", Clock::Real.now().0));
        Order::Signal { id, name: args.name, value, by }
    };
    tell(&args.data, &args.run, args.by, order, "sent")
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
        Ok(told) => Answer { stderr: format!("{word}: {}\n", told.words()), ..Answer::new(Status::Done) },
        Err(error) => refused(&error),
    }
}

/// What became of a run that was told something.
pub struct Told {
    run: RunId,
    /// Somebody drives it.
    driven: bool,
    status: RunStatus,
}

impl Told {
    pub fn words(&self) -> String {
        let Self { run, status, .. } = self;
        match (self.driven, status.is_finished()) {
            (true, _) => run.to_string(),
            (false, true) => format!("{run}; recorded, the run is {status}"),
            (false, false) => format!("{run}; recorded, `windlass resume {run}` goes on"),
        }
    }
}

fn told(place: &args::Data, name: &str, order: Order) -> Result<Told, Error> {
    let (folder, engine, run) = data::find(place, name)?;
    drop(engine);
    told_in(&folder, &run, order)
}

/// Tells a run of a folder something.
pub fn told_in(folder: &Path, run: &RunId, order: Order) -> Result<Told, Error> {
    let driven = block_on(folder, async {
        Door::open(folder, Durability::Disk, DIALECTS, remark).await?.tell(run, order).await
    })?;
    let status = data::look(folder)?.status(run)?;
    Ok(Told { run: run.clone(), driven, status })
}
