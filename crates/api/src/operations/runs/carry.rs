//! Carrying runs to another data folder: both ends are folders of this machine.

use super::super::sample;
use crate::code::Code;
use crate::operation::{About, Operation, Role, Stability, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::report::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use windlass_runtime::Carried;

/// Write runs into a folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExportRuns {
    pub run_ids: Vec<String>,
    /// Each run gets a folder of its own in this one.
    pub folder: PathBuf,
}

/// Import the runs of a folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImportRuns {
    pub folder: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedRuns {
    pub items: Vec<CarriedRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedRun {
    /// Null if it was refused.
    pub run_id: Option<String>,
    pub folder: PathBuf,
    pub events: usize,
    pub error: Option<Refusal>,
}

impl Operation for ExportRuns {
    type Reply = CarriedRuns;
    const ABOUT: About = About {
        name: "runs.export",
        summary: "Write runs into a folder",
        role: Role::Operator,
        subject: Subject::Run,
        errors: &[Code::BadExport],
        cli: &["runs export"],
        stability: Stability::Internal,
        ..About::READS
    };

    fn example() -> Self {
        Self { run_ids: vec![sample::FINISHED.into()], folder: "exported".into() }
    }
}

impl Perform for ExportRuns {
    async fn perform(self, cx: &Context) -> Result<CarriedRuns, Refusal> {
        let runs = self.run_ids.iter().map(|run| cx.run_id(run)).collect::<Result<Vec<_>, _>>()?;
        cx.read(move |engine| {
            let exported = runs.iter().map(|run| {
                let view = engine.view(run)?;
                engine.export(run, &self.folder, &Report::of(engine, run, &view).run()).map(carried)
            });
            Ok(CarriedRuns { items: exported.collect::<Result<_, _>>()? })
        })
        .await
    }
}

impl Operation for ImportRuns {
    type Reply = CarriedRuns;
    const ABOUT: About = About {
        name: "runs.import",
        summary: "Import the runs of a folder",
        role: Role::Admin,
        errors: &[Code::BadExport, Code::RunExists],
        cli: &["runs import"],
        stability: Stability::Internal,
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { folder: "exported".into() }
    }
}

impl Perform for ImportRuns {
    async fn perform(self, cx: &Context) -> Result<CarriedRuns, Refusal> {
        let items = cx.owner()?.import(&self.folder).await?;
        Ok(CarriedRuns { items: items.into_iter().map(carried).collect() })
    }
}

fn carried(run: Carried) -> CarriedRun {
    CarriedRun {
        run_id: run.run.map(|run| run.to_string()),
        folder: run.folder,
        events: run.events,
        error: run.refused.map(Into::into),
    }
}
