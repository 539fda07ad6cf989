//! `windlass explain`: the page about a code.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args;
use windlass_api::operations::GetCode;

pub fn run(args: args::Explain) -> Result<Answer, Refused> {
    let page = pure(GetCode { code: args.code })?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &page),
        false => Answer { stdout: page.text, ..Answer::new(Exit::Done) },
    })
}
