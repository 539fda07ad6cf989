//! Which folders above a folder belong to the same project. Windlass searches only these for `.windlass` and `windlass.toml`, so
//! that users who can write to folders above them cannot affect runs.

use crate::ownership::current_user;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder itself and its ancestors, nearest first, up to the repository root or the home folder. Outside both, stops at the
/// first folder that the user does not own or that others can write to.
pub fn upwards(from: &Path) -> Vec<PathBuf> {
    let from = from.canonicalize().or_else(|_| std::path::absolute(from)).unwrap_or_else(|_| from.to_owned());
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    climb(&from, current_user(), home.as_deref())
}

fn climb(from: &Path, user: u32, home: Option<&Path>) -> Vec<PathBuf> {
    let folders: Vec<&Path> = from.ancestors().collect();
    let mode =
        |folder: &Path| folder.metadata().ok().filter(|found| found.uid() == user).map(|found| found.mode());
    let is_top =
        |folder: &&Path| Some(*folder) == home || mode(folder).is_some() && folder.join(".git").exists();
    let is_private = |folder: &&&Path| mode(folder).is_some_and(|mode| mode & 0o022 == 0);
    let count = match folders.iter().position(is_top) {
        Some(top) => top + 1,
        None => 1 + folders.iter().skip(1).take_while(is_private).count(),
    };
    folders.into_iter().take(count).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn make(top: &Path, name: &str, mode: u32) -> PathBuf {
        let folder = top.join(name);
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        std::fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("a folder of our own");
        folder
    }

    #[test]
    fn the_search_stops_at_the_project_and_at_folders_that_others_can_write() {
        let scratch = std::env::temp_dir().join(format!("windlass-search-{}", std::process::id()));
        let shared = make(&scratch, "shared", 0o1777);
        let own = make(&shared, "own", 0o755);
        let deep = make(&own, "a/b", 0o755);
        let user = current_user();
        let check = |user: u32, home: Option<&Path>, expected: &Path| {
            assert_eq!(climb(&deep, user, home).last().map(PathBuf::as_path), Some(expected));
        };
        // A folder that everyone can write to stops the search, sticky or not.
        check(user, None, &own);
        // A folder of another user does too.
        check(user + 1, None, &deep);
        check(user, Some(&own.join("a")), &own.join("a"));
        check(user, Some(&shared), &shared);
        make(&shared, ".git", 0o755);
        check(user, None, &shared);
        make(&own, ".git", 0o755);
        check(user, Some(&scratch), &own);
        // A repository of another user does not count.
        check(user + 1, None, &deep);
        std::fs::remove_dir_all(scratch).expect("a folder of our own");
    }
}
