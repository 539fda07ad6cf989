//! Every behaviour case of every dialect. The same as `make conformance`.

use crate::conformance::conformance;
use crate::scratch::Scratch;
use std::path::Path;

#[test]
fn every_case_of_every_dialect_agrees() {
    let scratch = Scratch::new("conformance");
    let table = conformance(Path::new(env!("CARGO_BIN_EXE_windlass")), scratch.path());
    let differing: Vec<String> =
        table.differing().map(|(case, how)| format!("{} {}:\n{how}", case.dialect, case.name)).collect();
    assert!(differing.is_empty(), "{}\n{table}", differing.join("\n\n"));
}
