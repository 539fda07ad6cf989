//! `windlass schema`: the JSON Schema of a kind of file, for editors.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args;
use clap::ValueEnum;
use windlass_api::operations::GetSchema;

pub fn run(args: &args::Schema) -> Result<Answer, Refused> {
    let kind = args.language.to_possible_value().map(|value| value.get_name().to_owned());
    let schema = pure(GetSchema { kind: kind.unwrap_or_default(), strict: args.strict })?;
    Ok(Answer::json(Exit::Done, &schema))
}
