//! What a workflow is.

use super::source::diagnostics;
use crate::code::Code;
use crate::operation::{About, Operation, Route, Stability, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::{Ref, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_dialects::Loaded;
use windlass_ir::plan::Parameters;

/// Show a workflow: its description, its inputs and its steps.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetWorkflow {
    #[serde(flatten)]
    pub of: Ref,
}

impl Operation for GetWorkflow {
    type Reply = Workflow;
    const ABOUT: About = About {
        name: "workflows.get",
        summary: "Show a workflow",
        subject: Subject::Workflow,
        errors: &[Code::InvalidWorkflow],
        http: &[Route::get("/workflows/{id}")],
        cli: &["show"],
        stability: Stability::Preview,
        ..About::PURE
    };

    fn example() -> Self {
        Self { of: super::sample() }
    }
}

impl Perform for GetWorkflow {
    async fn perform(self, cx: &Context) -> Result<Workflow, Refusal> {
        let (of, found) = self.of.resolved(cx).await?;
        let (file, source) = (of.file.clone(), of.source.clone().unwrap_or_default());
        let mut opened = of.open()?;
        let outline = opened.plan.outline(opened.words, &Parameters::default());
        opened.loaded.plan = Some(opened.plan);
        let etag = crate::library::etag(source.as_bytes());
        Ok(Workflow {
            file,
            skill: found.as_ref().and_then(|found| found.workflow.skill.clone()),
            updated_at: found.and_then(|found| found.workflow.updated_at),
            diagnostics: diagnostics(&opened.loaded),
            source: Some(source),
            outline: Some(outline),
            ..Workflow::of(&opened.loaded, "", etag)
        })
    }
}

impl Workflow {
    /// A workflow that was read, without its file, its text and its outline. `id` is for one whose id cannot be read.
    pub(crate) fn of(loaded: &Loaded, id: &str, etag: String) -> Self {
        let id = loaded.workflow.as_deref().unwrap_or(id);
        let triggers = loaded.triggers.iter().map(|trigger| Some(trigger.id.as_ref()?.value.to_string()));
        let read = Self {
            dialect: Some(loaded.dialect.name().to_owned()),
            etag: Some(etag),
            triggers: triggers.collect(),
            ..Self::unknown(id)
        };
        let Some(plan) = &loaded.plan else {
            let first = diagnostics(loaded).into_iter().find(crate::types::Diagnostic::is_error);
            return Self { diagnostics: first.into_iter().collect(), ..read };
        };
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let header = &plan.header;
        Self {
            name: header.name.to_string(),
            description: header.description.as_deref().and_then(text),
            author: header.author.as_deref().and_then(text),
            version: text(&header.version),
            digest: Some(crate::report::version(plan.digest.as_str())),
            tags: header.tags.iter().map(ToString::to_string).collect(),
            parameters: plan.parameters_schema(),
            steps: plan.steps.iter().filter(|step| !step.implicit).count(),
            valid: true,
            ..read
        }
    }
}
