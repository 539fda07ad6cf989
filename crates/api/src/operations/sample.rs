//! The runs of the sample data folder that examples name.

/// A run that waits at a gate.
pub const WAITING: &str = "sample-waiting";

/// A run that succeeded.
pub const FINISHED: &str = "sample-finished";

/// A run that failed.
pub const FAILED: &str = "sample-failed";

/// A token.
pub const TOKEN: &str = "0011223344556677";
