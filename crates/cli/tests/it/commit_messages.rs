//! The commit message check that `make setup` installs, in a scratch repository.

use crate::scratch::Scratch;
use crate::support::root;
use std::path::Path;
use std::process::{Command, Output};

fn git(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.args(args).current_dir(folder).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    // Ignore the developer's own git settings.
    command.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "dana").env(format!("GIT_{role}_EMAIL"), "dana@example.com");
    }
    command.output().expect("git is installed")
}

/// A repository with our hooks, and this many lines staged for the next commit.
fn repository(scratch: &Scratch, lines: usize) {
    let folder = scratch.path();
    git(folder, &["init", "--quiet"]);
    let hooks = root().join(".githooks").canonicalize().expect("it is part of the repository");
    git(folder, &["config", "core.hooksPath", hooks.to_str().expect("text")]);
    std::fs::write(folder.join("file"), "line\n".repeat(lines)).expect("a writable folder");
    git(folder, &["add", "file"]);
}

#[test]
fn a_message_needs_an_area_and_a_reason() {
    let check = |lines: usize, message: &str, refusal: Option<&str>| {
        let scratch = Scratch::new("commit-message");
        repository(&scratch, lines);
        let output = git(scratch.path(), &["commit", "--quiet", "--message", message]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), refusal.is_none(), "{message}: {stderr}");
        assert!(refusal.is_none_or(|part| stderr.contains(part)), "{message}: {stderr}");
    };
    check(1, "store: fold the WAL back at 1 MB", None);
    check(1, "docs, cli: describe `--mock`", None);
    check(50, "store: fold the WAL back", None);
    check(51, "store: fold the WAL back", Some("51 lines and has no body"));
    check(51, "store: fold the WAL back\n\nIt grew without bound.", None);
    check(51, "store: fold it\n\nCo-authored-by: Dana <dana@example.com>", Some("has no body"));
    check(1, "store: fold the WAL back\nIt grew.", Some("blank line"));
    check(1, "Fold the WAL back", Some("names no area"));
    check(1, "store: Fold the WAL back", Some("capital letter"));
    check(1, "store: fold the WAL back.", Some("period"));
    check(1, "store: folded the WAL back", Some("not imperative"));
    check(1, &format!("store: fold {}", "x".repeat(60)), None);
    check(1, &format!("store: fold {}", "x".repeat(61)), Some("73 characters"));
    check(1, "Revert \"store: fold the WAL back\"", None);
}

#[test]
fn a_worktree_uses_the_check_too() {
    let scratch = Scratch::new("commit-worktree");
    repository(&scratch, 1);
    let folder = scratch.path();
    // `make setup` sets a path relative to the top of each worktree.
    git(folder, &["config", "core.hooksPath", ".githooks"]);
    std::fs::create_dir(folder.join(".githooks")).expect("a writable folder");
    std::fs::copy(root().join(".githooks/commit-msg"), folder.join(".githooks/commit-msg")).expect("a copy");
    git(folder, &["add", ".githooks"]);
    let first = git(folder, &["commit", "--quiet", "--message", "all: begin\n\nWith the check."]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    git(folder, &["worktree", "add", "--quiet", "other"]);
    let other = folder.join("other");
    let refused = git(&other, &["commit", "--quiet", "--allow-empty", "--message", "nothing"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("names no area"), "{refused:?}");
}
