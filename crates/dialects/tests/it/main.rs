//! Tests of the dialects as a whole: folders of files in, diagnostics and plans out.

mod cases;
mod convert;
mod docs;
mod fixtures;
mod generate;
mod shell;
mod support;
