//! Errors of the runtime as refusals.

use crate::code::Code;
use crate::refusal::{Place, Refusal};
use windlass_runtime::{BadConfig, Error, StoreError};

const MISSING_HELP: &str =
    "check the folder that `--data` or `WINDLASS_DATA` names, or start a run with `windlass run FILE`";

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = Code::by_word(error.code()).unwrap_or(Code::Bug);
        let place = match &error {
            Error::Config(config) => place(config),
            _ => None,
        };
        let help = match &error {
            Error::Store(StoreError::Missing { .. }) => Some(MISSING_HELP.to_owned()),
            _ => error.help(),
        };
        Self { help, step: error.step().map(str::to_owned), place, ..Self::new(code, error.to_string()) }
    }
}

/// Where the first fault of a windlass.toml is.
fn place(config: &BadConfig) -> Option<Place> {
    let position = config.faults.iter().find_map(|fault| fault.place)?;
    let (line, column) = (u32::try_from(position.line).ok()?, u32::try_from(position.column).ok()?);
    let file = config.file.display().to_string();
    Some(Place { file, line, column, end_line: line, end_column: column })
}
