//! The HTTP API: every operation that has a route, over one generic handler, with access tokens, problems as RFC 9457 and
//! server-sent events.
//!
//! This crate translates and decides nothing: roles, schemas, idempotency keys and the audit log belong to `api`. It does not
//! know what an operation does.

mod access;
mod answer;
mod connections;
mod docs;
mod document;
mod problem;
mod request;
mod router;
mod stream;
mod token_file;

pub use connections::Connections;
pub use document::openapi;
pub use router::{Server, router};
pub use token_file::{TOKEN_FILE, TokenFile};

/// Where the operations are found.
pub const PREFIX: &str = "/api/v1";
