//! Processes left by a crashed owner: found by the list or by their marks, ended as a whole; all others are left
//! alone.

use crate::support::{Case, folder, is_running, key, patiently, sh};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use windlass_engine::{Outcome, RunId};
use windlass_executors::{Children, EndError, end_orphans, orphaned_runs};

/// A group of its own with these variables, and the first line it prints.
fn group(command: &str, variables: &[(&str, &str)]) -> (Child, String) {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("sh starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    (child, line.trim().to_owned())
}

fn end(folder: &Path, run: &str) -> Result<usize, EndError> {
    end_orphans(folder, |found: &RunId| found.as_str() == run)
}

fn was_killed(mut child: Child) -> bool {
    child.wait().expect("our child").signal() == Some(9)
}

fn stop(mut child: Child) {
    child.kill().expect("our child");
    child.wait().expect("our child");
}

#[test]
fn a_process_is_found_by_its_mark() {
    let folder = folder("orphan_by_mark");
    let shown = folder.display().to_string();
    let marks = [("WINDLASS_JOB", "by-mark:/a#1.1"), ("WINDLASS_FOLDER", &*shown)];
    let (marked, _) = group("echo; exec sleep 1000", &marks);
    assert_eq!(end(&folder, "by-mark").expect("ended"), 1);
    assert!(was_killed(marked));
    assert_eq!(end(&folder, "by-mark").expect("nothing left"), 0);
}

#[test]
fn descendants_are_ended_as_well() {
    let folder = folder("orphan_tree");
    // Without the mark and in its own session, but below a marked process.
    let command = "setsid env -i sh -c 'sleep 1000 & echo $$ $!; wait' & wait";
    let shown = folder.display().to_string();
    let (child, pids) = group(command, &[("WINDLASS_JOB", "tree:/a#1.1"), ("WINDLASS_FOLDER", &shown)]);
    assert!(pids.split(' ').all(is_running));
    assert!(end(&folder, "tree").expect("ended") >= 3);
    assert!(was_killed(child));
    assert!(!pids.split(' ').any(is_running), "{pids}");
}

#[tokio::test]
async fn a_group_is_found_in_the_list() {
    let folder = folder("orphan_by_list");
    let children = Some(Arc::new(Children::open(&folder).expect("a writable folder")));
    // Even the leader has removed its marks.
    let command = "exec env -i sh -c 'sleep 1000 & echo $$ $!; wait'";
    let mut running = Case { run: "by-list".into(), children, ..sh(command) }.start();
    let pids = running.line().await;
    let at = folder.clone();
    let end_other = tokio::task::spawn_blocking(move || end(&at, "other"));
    assert_eq!(patiently(end_other).await.expect("no panic").expect("nothing to end"), 0);
    assert!(pids.split(' ').all(is_running));
    let end_ours = tokio::task::spawn_blocking(move || end(&folder, "by-list"));
    assert_eq!(patiently(end_ours).await.expect("no panic").expect("ended"), 2);
    let outcome = patiently(running.outcome).await.expect("no panic");
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(&*failure.message, "killed by signal 9 (SIGKILL)");
    assert!(!pids.split(' ').any(is_running), "{pids}");
}

#[tokio::test]
async fn a_shell_job_carries_the_mark_of_its_folder() {
    let folder = folder("orphan_mark_of_folder");
    let children = Some(Arc::new(Children::open(&folder).expect("a writable folder")));
    let outputs = Case { children, ..sh("printf \"$WINDLASS_FOLDER\"") }.done().await;
    assert_eq!(outputs.get("stdout").and_then(|text| text.as_str()), folder.to_str());
}

#[test]
fn other_processes_are_left_alone() {
    let folder = folder("orphan_others");
    let check = |variables: &[(&str, &str)], why: &str| {
        let (child, pid) = group("echo $$; exec sleep 1000", variables);
        assert_eq!(end(&folder, "others").expect("nothing to end"), 0, "{why}");
        assert_eq!(orphaned_runs(&folder).expect("readable"), BTreeSet::new(), "{why}");
        assert!(is_running(&pid), "{why}");
        stop(child);
    };
    check(&[], "no mark");
    check(&[("WINDLASS_JOB", "others-too:/a#1.1")], "another run");
    check(&[("WINDLASS_JOB", "others")], "no job");
    check(&[("WINDLASS_JOB", "others:/a#1.1")], "a run of that name in no folder");
    check(
        &[("WINDLASS_JOB", "others:/a#1.1"), ("WINDLASS_FOLDER", "/elsewhere")],
        "a run of that name in another folder",
    );
}

#[test]
fn an_entry_of_another_process_or_boot_ends_nothing() {
    let folder = folder("orphan_entries");
    let (child, pid) = group("echo $$; exec sleep 1000", &[]);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let start = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)).expect("a start time");
    let job = "entries:/a#1.1";
    let check = |line: &str, expected: usize| {
        std::fs::write(folder.join("children"), format!("{line}\n")).expect("writable");
        assert_eq!(end(&folder, "entries").expect("readable"), expected, "{line}");
        assert_eq!(is_running(&pid), expected == 0, "{line}");
    };
    check(&format!("{pid} 1 {} {job}", boot.trim()), 0);
    check(&format!("{pid} {start} 00000000-0000-0000-0000-000000000000 {job}"), 0);
    check(&format!("{pid} {start}"), 0);
    check("", 0);
    check("\u{0}\u{1} nonsense", 0);
    check("-1 0 x y:/#1.1", 0);
    check(&format!("{pid} {start} {} {job}", boot.trim()), 1);
    assert!(was_killed(child));
}

#[test]
fn the_list_does_not_grow_forever() {
    let folder = folder("orphan_list");
    let file = folder.join("children");
    let size = || std::fs::metadata(&file).expect("it is there").len();
    std::fs::write(&file, "1 1 another-boot old:/a#1.1\n".repeat(1000)).expect("writable");
    let children = Children::open(&folder).expect("a writable folder");
    assert!(size() < 100, "nothing of it runs");
    let mut largest = 0;
    for _ in 0..300 {
        let mut child = Command::new("true").spawn().expect("it starts");
        for _ in 0..10 {
            children.started(child.id(), &key("list"));
        }
        child.wait().expect("our child");
        largest = largest.max(size());
    }
    assert!((1024..=100 * 1024).contains(&largest), "{largest}");
    assert!(size() < largest, "it was rewritten at least once");
}

#[test]
fn a_missing_folder_is_an_error() {
    let gone = folder("orphan_gone").join("gone");
    assert!(matches!(end(&gone, "r"), Err(EndError::Look(_))));
    assert!(Children::open(&gone).is_err());
}

#[test]
fn a_new_owner_knows_which_jobs_an_earlier_one_started() {
    let folder = folder("orphan_started");
    let first = Children::open(&folder).expect("a writable folder");
    assert!(first.may_have_started(&key("r")), "no owner was here during this boot");
    let (child, _) = group("echo; exec sleep 1000", &[]);
    first.started(child.id(), &key("r"));
    let second = Children::open(&folder).expect("a writable folder");
    assert!(second.may_have_started(&key("r")));
    assert!(!second.may_have_started(&key("other")));
    stop(child);
}
