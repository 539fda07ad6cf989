//! The token that a server writes to its data folder, where the command line of the same user finds it. It stays the same
//! across restarts, so that clients can reconnect.

use data_encoding::BASE64URL_NOPAD;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

pub const TOKEN_FILE: &str = "server.token";
/// Shorter texts are not tokens of ours.
const CHARACTERS_MIN: usize = 40;

/// The token of a server, and its file.
#[derive(Clone)]
pub struct TokenFile {
    pub path: PathBuf,
    digest: blake3::Hash,
}

impl std::fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TokenFile {
    /// Reads the token of a data folder, or writes a new one that only this user can read.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        let path = folder.join(TOKEN_FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) if text.trim().len() >= CHARACTERS_MIN && is_private(&path)? => {
                return Ok(Self { path, digest: blake3::hash(text.trim().as_bytes()) });
            }
            // A file that others could read, or that is cut off, is replaced.
            Ok(_) => std::fs::remove_file(&path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let token = format!("wl_{}", BASE64URL_NOPAD.encode(&rand::random::<[u8; 32]>()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        file.write_all(format!("{token}\n").as_bytes())?;
        file.sync_all()?;
        Ok(Self { path, digest: blake3::hash(token.as_bytes()) })
    }

    /// Whether a text is the token. Comparing digests takes the same time wherever the texts differ.
    pub fn is(&self, text: &str) -> bool {
        blake3::hash(text.as_bytes()) == self.digest
    }
}

#[cfg(unix)]
fn is_private(path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> std::io::Result<bool> {
    Ok(true)
}
