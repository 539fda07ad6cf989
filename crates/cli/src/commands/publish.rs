//! `windlass publish`: a message to everybody who waits for it.

use super::{block_on, refused};
use crate::answer::{Answer, Status, remark};
use crate::{args, data};
use serde_json::json;
use windlass_dialects::DIALECTS;
use windlass_ir::Value;
use windlass_runtime::{Clock, Door, Durability};

pub fn run(args: args::Publish) -> Answer {
    let value = match args.value.as_deref().map(serde_json::from_str).transpose() {
        Ok(value) => value.unwrap_or(Value::Null),
        Err(error) => {
            let stderr = format!(
                "error[bad_parameter]: what is published must be JSON: {error}; put text into double quotes\n"
            );
            return Answer { stderr, ..Answer::new(Status::Refused) };
        }
    };
    let by = data::login(args.by);
    let id = args.id.unwrap_or_else(|| format!("{by}-{}", Clock::Real.now().0));
    let folder = data::folder(&args.data, None);
    let published = block_on(&folder, async {
        Door::open(&folder, Durability::Disk, DIALECTS, remark)
            .await?
            .publish(id.clone(), args.name, value, by)
            .await
    });
    match published {
        Ok(listeners) if args.json => Answer::json(Status::Done, &json!({"id": id, "listeners": listeners})),
        Ok(listeners) => {
            let heard = match listeners {
                0 => "nobody listened".to_owned(),
                1 => "one listened".to_owned(),
                many => format!("{many} listened"),
            };
            Answer { stderr: format!("published: {heard}\n"), ..Answer::new(Status::Done) }
        }
        Err(error) => refused(&error),
    }
}
