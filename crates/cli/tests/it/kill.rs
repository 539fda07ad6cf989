//! Runs of the real program survive `kill -9` at any moment. The short form of `make crash-test`.

use crate::crash::{Power, crash_test, shared_test};
use crate::scratch::Scratch;
use std::path::Path;

#[test]
fn a_killed_run_continues_where_it_left_off() {
    let scratch = Scratch::new("kill");
    let counts = crash_test(Path::new(env!("CARGO_BIN_EXE_windlass")), scratch.path(), 1, 16, Power::Stays);
    let counts = counts.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(counts.redeliveries > 0, "no kill hit a step in flight\n{counts}");
}

#[test]
fn a_power_loss_keeps_everything_that_was_shown() {
    let scratch = Scratch::new("power");
    let counts = crash_test(Path::new(env!("CARGO_BIN_EXE_windlass")), scratch.path(), 2, 16, Power::Fails);
    let counts = counts.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(counts.sectors_lost > 0 && counts.kept > 0, "nothing was lost\n{counts}");
}

#[test]
fn shared_limits_hold_when_their_owner_is_killed() {
    let scratch = Scratch::new("shared");
    let shared = shared_test(Path::new(env!("CARGO_BIN_EXE_windlass")), scratch.path(), 30, 4);
    let shared = shared.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(shared.kills > 0, "{shared}");
}
