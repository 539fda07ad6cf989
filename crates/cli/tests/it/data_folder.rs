//! The data folder through the program: where it is found, who can open it, and what its owner and its clients do in bad times.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const HELLO: &str = "workflow: { id: s, name: S }\nstages: [{ id: a, type: shell, run: \"echo hi\" }]\n";

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a folder of our own");
    std::fs::write(file, text).expect("a folder of our own");
}

fn windlass(folder: &Path, args: &[&str]) -> Seen {
    windlass_in(folder, args).env("PATH", PATH).see()
}

fn set_mode(file: &Path, mode: u32) {
    std::fs::set_permissions(file, Permissions::from_mode(mode)).expect("a file of our own");
}

#[test]
fn a_data_folder_above_the_project_is_not_used() {
    let scratch = Scratch::new("search");
    let shared = scratch.path();
    set_mode(shared, 0o1777);
    std::fs::create_dir(shared.join(".windlass")).expect("a folder of our own");
    for project in ["repository/.git", "plain"] {
        std::fs::create_dir_all(shared.join(project)).expect("a folder of our own");
        let project = shared.join(project.trim_end_matches("/.git"));
        write(&project, "flows/s.yaml", HELLO);
        let seen = windlass(&project, &["run", "flows/s.yaml"]);
        assert_eq!(seen.status, 0, "{seen}");
        assert!(project.join(".windlass/journal.db").exists(), "{seen}");
    }
    assert!(!shared.join(".windlass/journal.db").exists());
}
