//! `windlass backup`: a copy of a data folder.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::show::words::{bytes, clean, count};
use crate::{args, data};
use windlass_api::operations::BackUp;

pub fn run(args: args::Backup) -> Result<Answer, Refused> {
    let copied = call(&data::folder(&args.data, None), BackUp { to: args.to })?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &copied),
        false => {
            let files = count(usize::try_from(copied.files).unwrap_or(usize::MAX), "file");
            let to = clean(&copied.folder.display().to_string()).into_owned();
            let stderr = format!("{to}: {files}, {}\n", bytes(copied.bytes));
            Answer { stderr, ..Answer::new(Exit::Done) }
        }
    })
}
