//! Windlass trusts only files of the user it runs as. Another owner of the data folder, its lock or its socket could read what
//! clients send, and another owner of the journal could forge events.

use crate::engine::Error;
use std::fs::{FileType, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The user that this process runs as.
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

/// A user, formatted for messages.
pub(crate) fn described(user: u32) -> String {
    match user_name(user) {
        Some(name) => format!("`{name}` (uid {user})"),
        None => format!("uid {user}"),
    }
}

/// Refuses a data folder if another user owns a file that Windlass relies on, or if a lock or the socket has the wrong type:
/// opening a pipe would block. Missing files are fine.
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

/// Refuses a data folder if a user other than the current one owns a file that Windlass relies on.
pub fn check_folder(folder: &Path) -> Result<(), Error> {
    check(folder, current_user())
}

/// Refuses the other end of a socket if it is not a process of the current user.
pub fn check_peer(socket: &Path, stream: &tokio::net::UnixStream) -> Result<(), Error> {
    check_peer_of(socket, stream, current_user())
}

fn check_peer_of(socket: &Path, stream: &tokio::net::UnixStream, user: u32) -> Result<(), Error> {
    match stream.peer_cred().map(|peer| peer.uid()) {
        Ok(owner) if owner == user => Ok(()),
        Ok(owner) => Err(Error::Foreign { file: socket.to_owned(), owner, user }),
        Err(error) => Err(Error::Unreachable { socket: socket.to_owned(), cause: error.to_string() }),
    }
}

/// The type of a file of this user. `None` if the file does not exist.
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

    #[tokio::test]
    async fn a_peer_of_another_user_is_refused() {
        let (stream, _peer) = tokio::net::UnixStream::pair().expect("a pair of sockets");
        let (socket, user) = (Path::new("owner.sock"), current_user());
        check_peer_of(socket, &stream, user).expect("this process");
        let error = check_peer_of(socket, &stream, user + 1).expect_err("another user");
        assert_eq!(error.code(), "wrong_owner");
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        let folder = std::env::temp_dir().join(format!("windlass-ownership-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        let (user, other) = (current_user(), current_user() + 1);
        check(&folder, user).expect("our own");
        check(&folder.join("none"), other).expect("nothing there");
        let error = check(&folder, other).expect_err("not theirs");
        assert_eq!(error.code(), "wrong_owner");
        let message = format!("{error}; {}", error.help().unwrap_or_default());
        for part in [&*folder.display().to_string(), &described(user), &described(other), "--data", "chown"] {
            assert!(message.contains(part), "{message}");
        }
        std::os::unix::fs::symlink("/dev/null", folder.join("owner.lock")).expect("a folder of our own");
        let error = check(&folder, user).expect_err("not a lock");
        assert!(error.to_string().contains("not a regular file"), "{error}");
        std::fs::remove_dir_all(folder).expect("a folder of our own");
    }
}
