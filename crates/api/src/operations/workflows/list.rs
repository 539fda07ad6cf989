//! The workflows of a project.

use crate::code::Code;
use crate::library::{Entry, Library};
use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Cursor, Perform, limit, off_thread};
use crate::refusal::Refusal;
use crate::types::{Dialect, Page, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List the workflows of a project, sorted by name. A file that is not valid is listed with its first error.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListWorkflows {
    #[serde(flatten)]
    pub filter: WorkflowFilter,
    /// At most so many, 1 to 500; 50 by default.
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    pub cursor: Option<String>,
}

/// Which workflows are meant. Different members combine with AND, the values of a list with OR.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkflowFilter {
    /// Occurs in the name, the tags, the description or the search hint of the skill; case does not matter.
    pub query: Option<String>,
    pub tag: Vec<String>,
    pub dialect: Option<Dialect>,
    /// The skill that declares the workflow.
    pub skill: Option<String>,
}

impl WorkflowFilter {
    fn takes(&self, entry: &Entry) -> bool {
        let Workflow { dialect, skill, tags, .. } = &entry.workflow;
        let asked = self.dialect.map(|dialect| windlass_dialects::Dialect::from(dialect).name());
        self.query.as_ref().is_none_or(|query| entry.matches(query))
            && (self.tag.is_empty() || self.tag.iter().any(|tag| tags.contains(tag)))
            && asked.is_none_or(|asked| dialect.as_deref() == Some(asked))
            && (self.skill.is_none() || self.skill == *skill)
    }
}

impl Operation for ListWorkflows {
    type Reply = Page<Workflow>;
    const ABOUT: About = About {
        name: "workflows.list",
        summary: "List the workflows of a project",
        errors: &[Code::BadCursor],
        http: &[Route::get("/workflows")],
        cli: &["list"],
        ..About::PURE
    };

    fn example() -> Self {
        let filter = WorkflowFilter { query: Some("release".into()), ..WorkflowFilter::default() };
        Self { filter, limit: Some(10), cursor: None }
    }
}

impl Perform for ListWorkflows {
    async fn perform(self, cx: &Context) -> Result<Page<Workflow>, Refusal> {
        let limit = limit(self.limit)?;
        let after = self.cursor.as_deref().map(|text| Cursor::read(text, &self.filter)).transpose()?;
        let folders = cx.workflow_folders().to_vec();
        let library = off_thread(move || Ok(Library::scan(&folders))).await?;
        let filter = self.filter;
        let mut meant = library.entries.into_iter().filter(|entry| filter.takes(entry)).collect::<Vec<_>>();
        if let Some(after) = after {
            meant.retain(|entry| key(entry) > after.id);
        }
        let more = meant.len() > limit;
        meant.truncate(limit);
        let next = meant.last().filter(|_| more).map(|last| Cursor { at: 0, id: key(last) }.write(&filter));
        Ok(Page { items: meant.into_iter().map(|entry| entry.workflow).collect(), next })
    }
}

/// The order of the list. A line break sorts before everything that a name can contain.
fn key(entry: &Entry) -> String {
    format!("{}\n{}", entry.full_name(), entry.file.display())
}
