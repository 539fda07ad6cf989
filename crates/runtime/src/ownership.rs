//! Who may own the files that Windlass trusts: only the user it runs as. Another owner of the data folder, its lock or its socket could
//! read what clients send, and another owner of the journal could say what has happened.

use crate::engine::Error;
use std::fs::{FileType, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
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

/// Refuses a data folder in which another user owns something that Windlass relies on, or in which a lock or the socket is
/// something else: opening a pipe would wait for its other end. Nothing has to be there.
pub(crate) fn check(folder: &Path, user: u32) -> Result<(), Error> {
    check_owner(folder, folder.metadata(), user)?;
    for name in ["owner.lock", "tidying.lock", "owner.sock", "journal.db"] {
        let file = folder.join(name);
        let Some(kind) = check_owner(&file, file.symlink_metadata(), user)? else { continue };
        let expected = match name {
            "journal.db" => None,
            "owner.sock" => (!kind.is_socket()).then_some("a socket"),
            _ => (!kind.is_file()).then_some("a regular file"),
        };
        if let Some(expected) = expected {
            let cause = format!("it is not {expected}: remove it, or name another data folder with `--data`");
            return Err(Error::Folder { folder: file, cause });
        }
    }
    Ok(())
}

/// The kind of a file of this user. None when there is no such file.
fn check_owner(file: &Path, found: std::io::Result<Metadata>, user: u32) -> Result<Option<FileType>, Error> {
    match found {
        Ok(found) if found.uid() == user => Ok(Some(found.file_type())),
        Ok(found) => Err(Error::Foreign { file: file.to_owned(), owner: found.uid(), user }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
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
        std::os::unix::fs::symlink("/dev/null", folder.join("owner.lock")).expect("a folder of our own");
        let error = check(&folder, user).expect_err("not a lock");
        assert!(error.to_string().contains("not a regular file"), "{error}");
        std::fs::remove_dir_all(folder).expect("a folder of our own");
    }
}
