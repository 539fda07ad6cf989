//! Every behavior case of every dialect as a test of its own. `make conformance` executes the same cases and prints a summary.

use libtest_mimic::{Arguments, Trial};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use windlass_tools::conformance::{Program, cases, cases_beside};
use windlass_tools::scratch::Scratch;

fn main() -> ExitCode {
    let scratch = Scratch::new("conformance");
    let program = Arc::new(Program::new(Path::new(env!("CARGO_BIN_EXE_windlass")), scratch.path()));
    let args = Arguments::from_args();
    let cases = match (&args.filter, args.exact) {
        (Some(id), true) => cases_beside(id),
        _ => cases(),
    };
    let trials = cases.into_iter().map(|case| {
        let program = Arc::clone(&program);
        Trial::test(case.id(), move || case.check(&program).map_err(Into::into))
    });
    libtest_mimic::run(&args, trials.collect()).exit_code()
}
