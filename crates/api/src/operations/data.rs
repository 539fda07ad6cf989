//! Looking after a data folder.

use crate::code::Code;
use crate::operation::{About, Effect, Operation, Role, Route, Stability};
use crate::perform::{Context, Perform, off_thread};
use crate::refusal::Refusal;
use crate::types::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use windlass_dialects::DIALECTS;
use windlass_ir::{Duration, RunStatus};
use windlass_runtime::{
    Checkup, StoreError, Sweep, Swept, accept_older, backup, examine, rebuild, renew_limits,
};

/// Check a data folder for damage.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckData {}

/// The state of a data folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataReport {
    pub healthy: bool,
    pub runs: usize,
    pub records: u64,
    pub plans: usize,
    pub values: usize,
    pub findings: Vec<DataFinding>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataFinding {
    pub code: String,
    /// The file or the part of the folder.
    pub place: String,
    pub run_id: Option<String>,
    pub message: String,
    pub help: String,
}

impl Operation for CheckData {
    type Reply = DataReport;
    const ABOUT: About = About {
        name: "data.check",
        summary: "Check a data folder for damage",
        role: Role::Admin,
        errors: &[Code::NoRun],
        http: &[Route::get("/doctor")],
        cli: &["doctor"],
        ..About::READS
    };

    fn example() -> Self {
        Self {}
    }
}

impl Perform for CheckData {
    async fn perform(self, cx: &Context) -> Result<DataReport, Refusal> {
        let folder = cx.folder().to_owned();
        off_thread(move || Ok(checked(examine(&folder, DIALECTS)?))).await
    }
}

fn checked(checkup: Checkup) -> DataReport {
    let findings = checkup.findings.into_iter().map(|finding| DataFinding {
        code: finding.code,
        place: finding.place,
        run_id: finding.run_id.map(|run| run.to_string()),
        message: finding.message,
        help: finding.help,
    });
    DataReport {
        healthy: checkup.healthy,
        runs: checkup.runs,
        records: checkup.records,
        plans: checkup.plans,
        values: checkup.values,
        findings: findings.collect(),
    }
}

/// Repair a data folder, then check it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RepairData {
    /// Rebuild the lists of runs from the journal.
    pub rebuild: bool,
    /// Accept a journal that is older than the one this machine knew.
    pub accept_older: bool,
    /// Reset limits and budgets that cannot be read.
    pub renew_limits: bool,
}

impl Operation for RepairData {
    type Reply = DataReport;
    const ABOUT: About = About {
        name: "data.repair",
        summary: "Repair a data folder",
        effect: Effect::Repairs,
        role: Role::Admin,
        errors: &[Code::Orphans, Code::NoRun],
        cli: &["doctor"],
        stability: Stability::Internal,
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { rebuild: true, ..Self::default() }
    }
}

impl Perform for RepairData {
    async fn perform(self, cx: &Context) -> Result<DataReport, Refusal> {
        let owner = cx.owner().ok().cloned();
        if let (Some(engine), true) = (&owner, self.rebuild) {
            engine.rebuild_view().await?;
        }
        let folder = cx.folder().to_owned();
        off_thread(move || {
            if self.accept_older {
                accept_older(&folder, DIALECTS)?;
            }
            if self.renew_limits {
                renew_limits(&folder, DIALECTS)?;
            }
            if self.rebuild && owner.is_none() {
                rebuild(&folder, DIALECTS)?;
            }
            Ok(checked(examine(&folder, DIALECTS)?))
        })
        .await
    }
}

/// Remove finished runs, and values, plans and logs that no run needs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CollectGarbage {
    /// Only runs with one of these results: neutral words, or words of a dialect.
    pub status: Vec<String>,
    /// Only runs that ended at least this many seconds ago.
    pub older_than_seconds: Option<f64>,
    /// Keep this many of the newest runs.
    pub keep: Option<usize>,
    /// Only list what would be removed.
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GcReport {
    pub runs: Vec<RemovedRun>,
    /// Runs that stay because something refers to them.
    pub kept: Vec<KeptRun>,
    pub records: u64,
    pub plans: usize,
    pub values: usize,
    pub value_bytes: u64,
    pub artifacts: usize,
    pub artifact_bytes: u64,
    pub logs: usize,
    /// How much smaller the journal is now.
    pub journal_bytes: u64,
    /// How much of the journal is free for new records.
    pub free_bytes: u64,
    /// The journal is damaged, so values and artifacts stay.
    pub damaged: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedRun {
    pub run_id: String,
    pub workflow: String,
    pub status: RunStatus,
    pub ended_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptRun {
    pub run_id: String,
    pub because: String,
}

impl Operation for CollectGarbage {
    type Reply = GcReport;
    const ABOUT: About = About {
        name: "data.gc",
        summary: "Remove finished runs and what no run needs",
        role: Role::Admin,
        errors: &[Code::NoRun],
        http: &[Route::post("/gc")],
        cli: &["gc"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { status: vec!["failed".into()], dry_run: true, ..Self::default() }
    }
}

impl Perform for CollectGarbage {
    async fn perform(self, cx: &Context) -> Result<GcReport, Refusal> {
        let older_than = match self.older_than_seconds {
            Some(seconds) if !(0.0..=1e12).contains(&seconds) => {
                let refusal = Refusal::new(Code::BadRequest, format!("invalid age {seconds}"));
                return Err(refusal.field("older_than_seconds"));
            }
            age => age.map(|seconds| Duration((seconds * 1e6) as u64)),
        };
        let sweep = Sweep { older_than, keep: self.keep, statuses: self.status, dry_run: self.dry_run };
        Ok(collected(cx.owner()?.sweep(sweep).await?))
    }
}

fn collected(swept: Swept) -> GcReport {
    let runs = swept.runs.into_iter().map(|run| RemovedRun {
        run_id: run.run_id.to_string(),
        workflow: run.workflow,
        status: run.status,
        ended_at: run.ended_at,
    });
    let kept =
        swept.kept.into_iter().map(|run| KeptRun { run_id: run.run_id.to_string(), because: run.because });
    GcReport {
        runs: runs.collect(),
        kept: kept.collect(),
        records: swept.records,
        plans: swept.plans,
        values: swept.values,
        value_bytes: swept.value_bytes,
        artifacts: swept.artifacts,
        artifact_bytes: swept.artifact_bytes,
        logs: swept.logs,
        journal_bytes: swept.journal_bytes,
        free_bytes: swept.free_bytes,
        damaged: swept.damaged,
    }
}

/// Copy a data folder while its owner works.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BackUp {
    /// A folder that does not exist yet.
    pub to: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackedUp {
    pub folder: PathBuf,
    pub files: u64,
    pub bytes: u64,
}

impl Operation for BackUp {
    type Reply = BackedUp;
    const ABOUT: About = About {
        name: "data.backup",
        summary: "Copy a data folder while its owner works",
        role: Role::Admin,
        errors: &[Code::NoRun],
        cli: &["backup"],
        stability: Stability::Internal,
        ..About::READS
    };

    fn example() -> Self {
        Self { to: "copy".into() }
    }
}

impl Perform for BackUp {
    async fn perform(self, cx: &Context) -> Result<BackedUp, Refusal> {
        let folder = cx.folder().to_owned();
        off_thread(move || {
            if !folder.join("journal.db").exists() {
                let missing = StoreError::Missing { folder: folder.display().to_string() };
                return Err(windlass_runtime::Error::from(missing).into());
            }
            let copied = backup(&folder, &self.to)?;
            Ok(BackedUp { folder: copied.folder, files: copied.files, bytes: copied.bytes })
        })
        .await
    }
}
