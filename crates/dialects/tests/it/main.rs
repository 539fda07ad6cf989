//! Tests of the dialects as a whole: folders of files in, diagnostics and plans out.

mod cases;
mod docs;
mod fixtures;
mod keys;
mod shell;
mod support;
