//! Tests of the whole from file to result, in process.

mod calls;
mod dialects;
mod embed;
mod hooks;
mod large;
mod shown;
mod triggers;
