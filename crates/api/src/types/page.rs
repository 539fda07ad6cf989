//! Lists, a page at a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Part of a list, and where the next part begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
}
