//! Who may own the files that Windlass trusts: only the user it runs as. Another owner of the data folder, its lock or its socket could
//! read what clients send, and another owner of the journal could say what has happened.

use crate::engine::Error;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The user that this process acts as.
pub fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The login name of a user.
pub fn user_name(user: u32) -> Option<String> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let user = user.to_string();
    let line = accounts.lines().find(|line| line.split(':').nth(2) == Some(&user))?;
    line.split(':').next().map(str::to_owned)
}

/// A user as messages name one.
pub(crate) fn described(user: u32) -> String {
    match user_name(user) {
        Some(name) => format!("`{name}` (uid {user})"),
        None => format!("uid {user}"),
    }
}

/// Refuses a data folder in which another user owns something that Windlass relies on. Nothing has to be there.
pub(crate) fn check(folder: &Path, user: u32) -> Result<(), Error> {
    check_owner(folder, folder.metadata(), user)?;
    for name in ["owner.lock", "owner.sock", "tidying.lock", "journal.db"] {
        let file = folder.join(name);
        check_owner(&file, file.symlink_metadata(), user)?;
    }
    Ok(())
}

fn check_owner(file: &Path, found: std::io::Result<std::fs::Metadata>, user: u32) -> Result<(), Error> {
    match found {
        Ok(found) if found.uid() == user => Ok(()),
        Ok(found) => Err(Error::Foreign { file: file.to_owned(), owner: found.uid(), user }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::Folder { folder: file.to_owned(), cause: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_user_is_refused_by_name() {
        let folder = std::env::temp_dir().join(format!("windlass-ownership-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        let (user, other) = (current_user(), current_user() + 1);
        check(&folder, user).expect("our own");
        check(&folder.join("none"), other).expect("nothing there");
        let error = check(&folder, other).expect_err("not theirs");
        assert_eq!(error.code(), "wrong_owner");
        let message = error.to_string();
        for part in [&*folder.display().to_string(), &described(user), &described(other), "--data", "chown"] {
            assert!(message.contains(part), "{message}");
        }
        std::fs::remove_dir_all(folder).expect("a folder of our own");
    }
}
