//! Tests of the dialects as a whole: folders of files in, diagnostics and plans out.

mod cases;
mod dagnats;
mod docs;
mod fixtures;
mod fmt;
mod keys;
mod shell;
mod support;
