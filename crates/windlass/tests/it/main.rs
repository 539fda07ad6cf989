//! Tests of the whole from file to result, in process.

mod embed;
mod large;
mod scenarios;
