//! A drawing of a workflow.

use crate::code::Code;
use crate::graph::{Drawing, dot, mermaid, text};
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::{Graph, GraphFormat, Ref};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Draw the steps of a workflow and the dependencies between them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphWorkflow {
    #[serde(flatten)]
    pub of: Ref,
    /// Mermaid by default.
    #[serde(default)]
    pub format: GraphFormat,
}

impl Operation for GraphWorkflow {
    type Reply = Graph;
    const ABOUT: About = About {
        name: "workflows.graph",
        summary: "Draw a workflow",
        subject: Subject::Workflow,
        errors: &[Code::InvalidWorkflow],
        http: &[Route::post("/workflows/{id}/graph")],
        cli: &["graph"],
        ..About::PURE
    };

    fn example() -> Self {
        Self { of: super::sample(), format: GraphFormat::Mermaid }
    }
}

impl Perform for GraphWorkflow {
    async fn perform(self, cx: &Context) -> Result<Graph, Refusal> {
        let (of, _) = self.of.resolved(cx).await?;
        let opened = of.open()?;
        let drawing = Drawing::new(&opened.plan, opened.words);
        let text = match self.format {
            GraphFormat::Mermaid => mermaid::render(&drawing),
            GraphFormat::Dot => dot::render(&drawing),
            GraphFormat::Text => text::render(&drawing),
        };
        Ok(Graph {
            format: self.format,
            text,
            dialect: opened.plan.dialect.to_string(),
            diagnostics: opened.diagnostics(),
        })
    }
}
