//! Every behavior case of every dialect, executed by the built program: its exit status, the JSON it prints, and the run it
//! stores. The cases are in the fixtures of the dialects, and most of them record how the original program behaves. The test
//! target `conformance` of the command line makes each a test of its own; `make conformance` prints the table of
//! `docs/internals/conformance.md`.

mod case;
mod dagnats;
mod dcc;
mod journal;
mod program;
mod scenario;
mod source;
mod speckit;
mod swdl;
mod table;

pub use case::Case;
pub use program::Program;
use source::Source;
use std::sync::atomic::{AtomicUsize, Ordering};
pub use table::Table;

/// What differs from the expectation, if anything.
pub type Checked = Result<(), String>;

/// Every case, in the order of the table.
pub fn cases() -> Vec<Case> {
    sources().iter().flat_map(Source::cases).collect()
}

/// The cases of the fixture that the case with this id comes from. A test runner that starts a process for each case has no time
/// to read the others.
pub fn cases_beside(id: &str) -> Vec<Case> {
    sources().iter().filter(|source| source.may_have(id)).flat_map(Source::cases).collect()
}

fn sources() -> Vec<Source> {
    [speckit::sources(), swdl::sources(), dagnats::sources(), dcc::sources()].into_iter().flatten().collect()
}

/// Most cases wait for processes, so more of them than there are cores run at once.
const AT_ONCE: usize = 4;

/// Executes all cases, several at once, and keeps their order.
pub fn check_all(program: &Program) -> Table {
    let cases = cases();
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        cases.get(index).map(|case| (index, case))
    };
    let worker = || -> Vec<_> {
        std::iter::from_fn(take).map(|(index, case)| (index, case.verdict(program))).collect()
    };
    let mut verdicts: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a case that panics is broken")).collect()
    });
    verdicts.sort_by_key(|(index, _)| *index);
    let rows = cases.into_iter().zip(verdicts);
    Table(rows.map(|(case, (_, verdict))| table::Row::new(case.dialect, case.name, verdict)).collect())
}
