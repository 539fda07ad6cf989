//! Tests of whole dialects: folders of files in, diagnostics and plans out.

mod cases;
mod convert;
mod dagnats;
mod dcc;
mod dcc_values;
mod docs;
mod fixtures;
mod fmt;
mod generate;
mod keys;
mod shell;
mod speckit;
mod speckit_dump;
mod speckit_expr;
mod support;
mod swdl_expr;
mod triggers;
