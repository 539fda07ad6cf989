//! A folder of files is a test suite: each gives the snapshot beside it, findings first, then the plan.
