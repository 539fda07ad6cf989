//! `windlass backup`: a copy of a data folder.

use super::refused;
use crate::answer::{Answer, Status};
use crate::show::words::{bytes, clean, count};
use crate::{args, data};
use windlass_runtime::backup;

pub fn run(args: &args::Backup) -> Answer {
    let folder = data::folder(&args.data, None);
    match backup(&folder, &args.to) {
        Ok(copied) if args.json => match serde_json::to_value(&copied) {
            Ok(json) => Answer::json(Status::Done, &json),
            Err(error) => Answer::bug(&error),
        },
        Ok(copied) => {
            let to = copied.folder.display().to_string();
            let files = count(usize::try_from(copied.files).unwrap_or(usize::MAX), "file");
            let stderr = format!("{}: {files}, {}\n", clean(&to), bytes(copied.bytes));
            Answer { stderr, ..Answer::new(Status::Done) }
        }
        Err(error) => refused(&error),
    }
}
