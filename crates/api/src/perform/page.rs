//! Pages of lists: how long they are and where the next one begins.

use crate::code::Code;
use crate::refusal::Refusal;
use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};

const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 500;

/// How many items a page may have.
pub fn limit(asked: Option<usize>) -> Result<usize, Refusal> {
    match asked.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        limit => {
            let refusal = Refusal::new(Code::BadRequest, format!("invalid limit {limit}")).field("limit");
            Err(refusal.help(format!("a page has 1 to {LIMIT_MAX} items")))
        }
    }
}

/// The run that a page ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// When it started, in microseconds.
    pub at: i64,
    pub id: String,
}

#[derive(Serialize, Deserialize)]
struct Written {
    at: i64,
    id: String,
    filter: u64,
}

impl Cursor {
    /// A text that only means something together with the same filter.
    pub fn write(&self, filter: &impl Serialize) -> String {
        let written = Written { at: self.at, id: self.id.clone(), filter: digest(filter) };
        BASE64URL_NOPAD.encode(&serde_json::to_vec(&written).unwrap_or_default())
    }

    pub fn read(text: &str, filter: &impl Serialize) -> Result<Self, Refusal> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        match bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(Written { at, id, filter: before }) if before == digest(filter) => Ok(Self { at, id }),
            Some(_) => Err(refused("the cursor belongs to a list with other filters")),
            None => Err(refused("invalid cursor")),
        }
    }
}

fn refused(message: &str) -> Refusal {
    let refusal = Refusal::new(Code::BadCursor, message).field("cursor");
    refusal.help("use `next` of the page before, with the same filters")
}

fn digest(filter: &impl Serialize) -> u64 {
    let hash = blake3::hash(&serde_json::to_vec(filter).unwrap_or_default());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_only_fits_its_filter() {
        let cursor = Cursor { at: 17, id: "a".into() };
        let text = cursor.write(&["failed"]);
        assert_eq!(Cursor::read(&text, &["failed"]), Ok(cursor));
        for (text, filter) in [(text.as_str(), ["success"]), ("?", ["failed"]), ("e30", ["failed"])] {
            assert_eq!(Cursor::read(text, &filter).map_err(|refusal| refusal.code), Err(Code::BadCursor));
        }
    }

    #[test]
    fn a_page_has_a_length_within_limits() {
        assert_eq!([None, Some(1), Some(500)].map(|asked| limit(asked).ok()), [Some(50), Some(1), Some(500)]);
        assert!(limit(Some(0)).is_err() && limit(Some(501)).is_err());
    }
}
