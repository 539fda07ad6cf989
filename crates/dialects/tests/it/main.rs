//! Tests of the dialects as a whole: folders of files in, diagnostics and plans out.

mod cases;
mod dagnats;
mod dcc;
mod docs;
mod fixtures;
mod fmt;
mod shell;
mod speckit;
mod speckit_expr;
mod support;
