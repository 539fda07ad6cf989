//! Values that are too large for a record, each stored once under the hash of its content.

use crate::error::Error;
use crate::pending::Pending;

/// Larger values are stored separately from their record.
pub const BLOB_BYTES_MIN: usize = 64 << 10;

/// The BLAKE3 hash of the content, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId(String);

impl BlobId {
    pub fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content).to_hex().to_string())
    }

    /// Parses an id from a record. It becomes a file name, so only 64 hexadecimal digits are accepted.
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

/// Reads a value on the calling thread: the bytes that were written, or an error; `None` if there is no such value.
pub type ReadBlob<'a> = dyn Fn(&BlobId) -> Result<Option<Vec<u8>>, Error> + 'a;

/// Values are written with the record that refers to them, see [`crate::Append`]. Recovery relies on them being there
/// as long as the record is.
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Calls `reader` on a thread that may block.
    fn lend(&self, reader: Box<dyn FnOnce(&ReadBlob<'_>) + Send>);

    fn get(&self, id: &BlobId) -> Pending<Option<Vec<u8>>> {
        let (id, (answer, pending)) = (id.clone(), Pending::waiting());
        self.lend(Box::new(move |get| answer.send(get(&id))));
        pending
    }

    /// The names of all values, and how large each is.
    fn list(&self) -> Pending<Vec<(BlobId, u64)>>;

    /// Begins a sweep, and lists all values. Until [`Blobs::sweep`], the store remembers which values new records
    /// refer to.
    fn begin_sweep(&self) -> Pending<Vec<(BlobId, u64)>>;

    /// Ends the sweep: removes these values, which no record referred to when the caller checked, and returns those
    /// that it removed. A value that a new record refers to stays.
    fn sweep(&self, unused: Vec<BlobId>) -> Pending<Vec<BlobId>>;
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
