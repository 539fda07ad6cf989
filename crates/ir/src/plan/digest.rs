//! The identity of a plan: equal for files with the same meaning.
//!
//! The stored form is hashed with the keys of every mapping in alphabetical order. Spacing, comments and spans have
//! no effect; the order of lists does.

use super::Plan;
use serde::{Deserialize, Serialize};

/// A BLAKE3 hash in hexadecimal; empty until it has been computed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of the whole plan except for the digest itself.
    pub fn of(plan: &Plan) -> Self {
        let bare = Plan { digest: Self::default(), ..plan.clone() };
        let json = serde_json::to_value(&bare).expect("a plan holds no secret and no key but text");
        let mut hasher = blake3::Hasher::new();
        feed(&json, &mut hasher);
        Self(hasher.finalize().to_hex().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A prefix that is long enough for people to tell plans apart.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

/// Each node starts with its kind and length, so no two trees produce the same bytes.
fn feed(json: &serde_json::Value, hasher: &mut blake3::Hasher) {
    match json {
        serde_json::Value::Null => drop(hasher.update(b"n")),
        serde_json::Value::Bool(b) => drop(hasher.update(if *b { b"t" } else { b"f" })),
        serde_json::Value::Number(number) => text(b'#', &number.to_string(), hasher),
        serde_json::Value::String(string) => text(b'"', string, hasher),
        serde_json::Value::Array(items) => {
            length(b'[', items.len(), hasher);
            items.iter().for_each(|item| feed(item, hasher));
        }
        serde_json::Value::Object(map) => {
            length(b'{', map.len(), hasher);
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in entries {
                text(b'"', key, hasher);
                feed(value, hasher);
            }
        }
    }
}

fn length(kind: u8, length: usize, hasher: &mut blake3::Hasher) {
    hasher.update(&[kind]);
    hasher.update(&(length as u64).to_le_bytes());
}

fn text(kind: u8, text: &str, hasher: &mut blake3::Hasher) {
    length(kind, text.len(), hasher);
    hasher.update(text.as_bytes());
}
