//! The loop that joins engine, store and executors.

pub mod report;
