//! Data folders that earlier versions wrote stay usable: each committed folder is copied, listed, shown and continued.
//! `fixtures/data-folders/record.sh` writes a folder.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder of our own");
    for entry in std::fs::read_dir(from).expect("a committed folder") {
        let entry = entry.expect("a committed file");
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => std::fs::copy(entry.path(), &target).map(drop).expect("a writable folder"),
        }
    }
}

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/data-folders");
    let entries = std::fs::read_dir(all).expect("the committed folders");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder").path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

struct Copy {
    scratch: Scratch,
}

impl Copy {
    fn of(folder: &Path) -> Self {
        let scratch = Scratch::new("kept");
        copy(folder, &scratch.path().join("data"));
        Self { scratch }
    }

    fn windlass(&self, args: &[&str]) -> Seen {
        let args: Vec<&str> = args.iter().copied().chain(["--data", "data"]).collect();
        windlass_in(self.scratch.path(), &args).env("PATH", "/usr/bin:/bin").env("WINDLASS_GO", "1").see()
    }

    fn check(&self, args: &[&str], status: i32, says: &str) {
        let seen = self.windlass(args);
        assert_eq!(seen.status, status, "{seen}");
        assert!(format!("{}{}", seen.stdout, seen.stderr).contains(says), "`{says}` is not printed\n{seen}");
    }

    /// The status of each run except those that a trigger started.
    fn statuses(&self) -> BTreeMap<String, String> {
        let page = self.windlass(&["runs", "--json"]).json();
        let runs = page["items"].as_array().expect("a page of runs").iter();
        let text = |run: &serde_json::Value, key: &str| run[key].as_str().unwrap_or_default().to_owned();
        let runs = runs.map(|run| (text(run, "run_id"), text(run, "status")));
        runs.filter(|(id, _)| !id.starts_with("every-second")).collect()
    }
}

#[test]
fn data_folders_of_earlier_versions_are_readable() {
    let folders = folders();
    assert!(!folders.is_empty(), "a folder is committed");
    for folder in folders {
        let copy = Copy::of(&folder);
        let expected = [
            ("failed", "failed"),
            ("finished", "success"),
            ("interrupted", "interrupted"),
            ("listening", "waiting"),
            ("queued", "pending"),
            ("waiting", "waiting"),
        ];
        let expected = expected.map(|(run, status)| (run.to_owned(), status.to_owned()));
        assert_eq!(copy.statuses(), BTreeMap::from(expected), "{}", folder.display());
        copy.check(&["doctor"], 0, "");
        copy.check(&["show", "finished"], 0, "greet");
        copy.check(&["logs", "finished", "greet"], 0, "hello dana");
        copy.check(&["events", "failed"], 0, "fragile");
        copy.check(&["limits"], 0, "runs:waiting");
        copy.check(&["budgets"], 0, "day");
        copy.check(&["triggers", "history"], 0, "every-second");
        copy.check(&["diff", "finished", "failed"], 0, "");
        let result = copy.windlass(&["show", "finished", "--json"]).json();
        assert_eq!(result["outputs"], json!({"name": "dana"}));
    }
}

#[test]
fn runs_of_earlier_versions_continue() {
    for folder in folders() {
        let copy = Copy::of(&folder);
        copy.check(&["resume", "failed"], 0, "after");
        copy.check(&["resume", "interrupted"], 0, "slow");
        copy.check(&["approve", "waiting", "--field", "ticket=CR-7"], 0, "");
        copy.check(&["resume", "waiting"], 0, "ticket CR-7");
        copy.check(&["resume", "queued"], 3, "sign-off");
        copy.check(&["reject", "queued"], 0, "");
        copy.check(&["signal", "listening", "go", r#"{"n": 1}"#], 0, "");
        copy.check(&["resume", "listening"], 0, "heard 1");
        copy.check(&["retry", "finished", "--from-step", "each", "--run-id", "again"], 0, "item b");
        let statuses = copy.statuses();
        assert_eq!((&*statuses["queued"], &*statuses["again"]), ("failed", "success"), "{statuses:?}");
        copy.check(&["doctor"], 0, "");
        copy.check(&["gc", "--older-than", "0s"], 0, "");
    }
}
