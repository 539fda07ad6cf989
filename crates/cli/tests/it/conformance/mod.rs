//! Every behaviour case of every dialect, lived by the real program: its exit status, what it prints for programs, and what it
//! keeps. The cases lie in the fixtures of the dialects, most of them as the program that a dialect comes from was seen to
//! behave. Runs with the tests, and as `make conformance`, which prints the table of `docs/conformance.md`.

mod dagnats;
mod dcc;
mod program;
mod scenario;
mod speckit;
mod swdl;
mod table;

use program::Program;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::Case;
pub use table::Table;

/// Lives every case with the program at `windlass`, each in a folder of its own below `scratch`.
pub fn conformance(windlass: &Path, scratch: &Path) -> Table {
    let program = Program::new(windlass, scratch);
    let cases = [speckit::cases, swdl::cases, dagnats::cases, dcc::cases];
    Table(cases.iter().flat_map(|cases| cases(&program)).collect())
}

/// How many cases of a dialect are lived at once.
const AT_ONCE: usize = 4;

/// A case that is yet to be lived: its name, and how.
type Job<'a> = (String, Box<dyn Fn() -> Result<(), String> + Sync + Send + 'a>);

/// Lives the cases of a dialect, several at once. `decided` names those in which the source program does something else.
fn lived(dialect: &'static str, decided: &[(&'static str, &'static str)], jobs: &[Job<'_>]) -> Vec<Case> {
    for (name, _) in decided {
        assert!(jobs.iter().any(|(job, _)| job == name), "{dialect} has no case `{name}`");
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let place = next.fetch_add(1, Ordering::Relaxed);
        jobs.get(place).map(|(name, live)| (place, name, live))
    };
    let case = |name: &String, checked| {
        let case = Case::new(dialect, name.clone(), checked);
        match decided.iter().find(|(decided, _)| decided == name) {
            Some((_, number)) => case.decided(number),
            None => case,
        }
    };
    let worker = || -> Vec<(usize, Case)> {
        std::iter::from_fn(take).map(|(place, name, live)| (place, case(name, live()))).collect()
    };
    let mut done: Vec<(usize, Case)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a case that panics is broken")).collect()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, case)| case).collect()
}
