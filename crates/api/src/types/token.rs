//! Access tokens.

use super::Time;
use crate::operation::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token, without its text, which Windlass shows once and does not keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub token_id: String,
    /// The name that decisions and audit entries show.
    pub name: String,
    pub roles: Vec<Role>,
    pub created_at: Time,
    pub created_by: String,
    pub expires_at: Option<Time>,
    pub revoked_at: Option<Time>,
}

/// A token that was just created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewToken {
    #[serde(flatten)]
    pub about: Token,
    /// The text to send as `Authorization: Bearer TEXT`. Null if the call is repeated with the same idempotency key.
    pub token: Option<String>,
}
