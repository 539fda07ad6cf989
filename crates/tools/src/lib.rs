//! Not shipped: checks that drive the built program from outside, for its integration tests and for the binaries beside this
//! library. `conformance` executes the behavior cases of every dialect, `crash` kills runs and resumes them, `pty` is a terminal
//! to run a program in, `plot` draws measured figures, `scratch` a folder that is removed again, and `watch` waits for files.

pub mod conformance;
pub mod crash;
pub mod plot;
pub mod pty;
pub mod scratch;
pub mod watch;

use std::path::PathBuf;

/// The program `windlass` that was built into the same folder as the binary that asks.
pub fn windlass_beside() -> PathBuf {
    std::env::current_exe().expect("a process knows its own file").with_file_name("windlass")
}
