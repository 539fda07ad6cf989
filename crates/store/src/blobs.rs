//! Values that are too large for a record, each kept once under the hash of its content.

use crate::error::Error;

/// A value is stored apart when it is larger than this.
pub const BLOB_BYTES_MIN: usize = 64 << 10;

/// The BLAKE3 hash of the content, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId(String);

impl BlobId {
    pub fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content).to_hex().to_string())
    }

    /// Reads one from a record. It names a file later, so nothing but 64 hexadecimal digits passes.
    pub fn parse(text: &str) -> Option<Self> {
        let good = text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        good.then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for BlobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The methods block while they read and write.
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Recovery relies on: when this has returned the content is there after any crash, so call it before the append of
    /// the record that names the blob. Putting the same content twice keeps it once; a damaged one is replaced.
    fn put(&self, content: &[u8]) -> Result<BlobId, Error>;

    /// The names of all values, and how large each is.
    fn list(&self) -> Result<Vec<(BlobId, u64)>, Error>;

    /// Removes one that no record names, which the caller has made sure of. One that was put since this store was opened stays: the
    /// record that names it may be on its way. False where it stayed, or was not there.
    fn forget(&self, id: &BlobId) -> Result<bool, Error>;

    /// Recovery relies on: the bytes that were put, or an error. `None` if they were never put.
    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_as_file_names() {
        let id = BlobId::of(b"x");
        assert_eq!(BlobId::parse(id.as_str()), Some(id.clone()));
        for bad in
            ["", "..", &id.as_str()[1..], &id.as_str().to_uppercase(), &format!("../{}", &id.as_str()[3..])]
        {
            assert_eq!(BlobId::parse(bad), None, "{bad}");
        }
    }
}
