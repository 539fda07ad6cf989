//! Listing runs, looking at them and acting on them.

mod act;
mod bulk;
mod carry;
mod compare;
mod execute;
mod get;
mod list;
mod resume;
mod retry;
mod start;

pub use act::{CancelRun, PauseRun, SignalRun, Signaled};
pub use bulk::{Bulk, BulkAction, BulkItem, BulkRuns};
pub use carry::{CarriedRun, CarriedRuns, ExportRuns, ImportRuns};
pub use compare::{DiffRuns, RunDiff, members};
pub(super) use execute::instant;
pub use get::{GetRun, Steps};
pub use list::{ListRuns, RunFilter};
pub use resume::ResumeRun;
pub use retry::{Retried, RetryPlan, RetryRun, RetryStep};
pub use start::{StartRun, StartedRun};
