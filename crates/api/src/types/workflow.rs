//! Workflow files and what is known about them.

use super::{Diagnostic, Event, Json, Run, Severity, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::plan::Outline;

/// A language of workflow files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    Swdl,
    Speckit,
    Dagnats,
    Dcc,
}

/// A file that travels in a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedText {
    /// Appears in diagnostics. Its ending says whether the text is YAML or JSON.
    pub name: String,
    pub text: String,
}

/// The workflow that an operation is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ref {
    /// The name of the workflow (its id, `SKILL.ID`, or the name of its file), or `-` for only the text in the request.
    pub workflow: String,
    /// The text to use instead of the workflow's file.
    pub source: Option<String>,
    /// The name of its file, for diagnostics. Its ending says whether the text is YAML or JSON.
    pub file: Option<String>,
    /// Found by looking at the text if it is not given.
    pub dialect: Option<Dialect>,
    /// Overrides of an SWDL workflow.
    pub overrides: Option<NamedText>,
    /// Overlays of a Spec Kit workflow.
    #[serde(default)]
    pub overlays: Vec<NamedText>,
}

impl Ref {
    /// Whether the request brings text that becomes part of the workflow.
    pub fn has_text(&self) -> bool {
        self.source.is_some() || self.overrides.is_some() || !self.overlays.is_empty()
    }

    /// A workflow that exists only as a text.
    pub fn text(file: &str, source: &str) -> Self {
        Self { workflow: "-".into(), source: Some(source.into()), file: Some(file.into()), ..Self::default() }
    }
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Workflow,
    Schedules,
    Skill,
    Overlay,
    Overrides,
    Cases,
    /// A `windlass.toml`.
    Config,
}

/// What `workflows.validate` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    pub file: String,
    pub valid: bool,
    /// Null if the file could not be read, or belongs to no dialect.
    pub dialect: Option<String>,
    /// The id of the workflow, if it could be read.
    pub workflow: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
    /// Null if the file could not be read.
    pub kind: Option<FileKind>,
    /// How many steps, schedules, edits, overridden workflows, test cases or tasks are in it.
    pub entries: usize,
    /// How many triggers a workflow has.
    pub triggers: usize,
}

impl Validation {
    /// Decides by its findings whether the file is valid. If `strict`, warnings count too.
    pub fn judge(&mut self, strict: bool) {
        self.valid = !self.diagnostics.iter().any(|finding| match finding.severity {
            Severity::Error => true,
            Severity::Warning => strict,
            Severity::Hint => false,
        });
    }
}

/// A workflow as its users see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workflow {
    /// Its id; the name of the file if it has none.
    pub workflow: String,
    pub name: String,
    /// The skill that declares it. Then `SKILL.ID` names it too.
    pub skill: Option<String>,
    pub description: Option<String>,
    pub author: Option<String>,
    pub version: Option<String>,
    /// The digest of its plan; null if it is not valid.
    pub digest: Option<String>,
    /// Null if the file could not be read.
    pub dialect: Option<String>,
    pub file: Option<String>,
    pub tags: Vec<String>,
    /// A JSON Schema of its inputs.
    pub parameters: Json,
    pub steps: usize,
    /// The ids of its triggers; null for one without an id.
    pub triggers: Vec<Option<String>>,
    pub valid: bool,
    /// In a list only the first error.
    pub diagnostics: Vec<Diagnostic>,
    /// Changes if and only if the text changes; null if the file could not be read.
    pub etag: Option<String>,
    /// When the file was written; null for a text without a file.
    pub updated_at: Option<Time>,
    /// Null in a list.
    pub source: Option<String>,
    /// Its steps, batches and estimate. Null in a list.
    pub outline: Option<Outline>,
}

impl Workflow {
    /// A workflow of which nothing is known but its name.
    pub fn unknown(id: &str) -> Self {
        Self {
            workflow: id.to_owned(),
            name: id.to_owned(),
            skill: None,
            description: None,
            author: None,
            version: None,
            digest: None,
            dialect: None,
            file: None,
            tags: Vec::new(),
            parameters: Json::Null,
            steps: 0,
            triggers: Vec::new(),
            valid: false,
            diagnostics: Vec::new(),
            etag: None,
            updated_at: None,
            source: None,
            outline: None,
        }
    }

    /// `SKILL.ID` for a workflow of a skill, else its id.
    pub fn full_name(&self) -> String {
        match &self.skill {
            Some(skill) => format!("{skill}.{}", self.workflow),
            None => self.workflow.clone(),
        }
    }
}

/// What a run would do, in which order and with which inputs and limits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    #[serde(flatten)]
    pub outline: Outline,
    /// Where the value of each parameter comes from.
    pub parameters_from: IndexMap<String, Origin>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Where the value of a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Given,
    Default,
    /// Not given and without a default: null.
    Absent,
}

impl From<windlass_ir::plan::Origin> for Origin {
    fn from(origin: windlass_ir::plan::Origin) -> Self {
        match origin {
            windlass_ir::plan::Origin::Given => Self::Given,
            windlass_ir::plan::Origin::Default => Self::Default,
            windlass_ir::plan::Origin::Absent => Self::Absent,
        }
    }
}

/// A language for drawings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphFormat {
    #[default]
    Mermaid,
    Dot,
    /// For a terminal.
    Text,
}

/// A drawing of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Graph {
    pub format: GraphFormat,
    pub text: String,
    pub dialect: String,
    pub diagnostics: Vec<Diagnostic>,
}

/// A change to the text of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum Edit {
    /// Orders keys, indents and quotes the text in the canonical way.
    Format,
    /// Writes the workflow in another dialect or syntax.
    Convert { to: Target },
}

/// What a workflow can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The native dialect.
    Swdl,
    /// The same dialect as JSON.
    Json,
    /// The same dialect as YAML.
    Yaml,
}

/// A text after edits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edited {
    /// What to replace in the old text, in order. Empty if the edits change nothing.
    pub changes: Vec<Change>,
    /// The new text.
    pub source: String,
    /// Changes if and only if the text changes.
    pub etag: String,
    pub diagnostics: Vec<Diagnostic>,
    /// Comments of the old text are missing in the new one.
    pub comments_lost: bool,
}

/// A part of a text to replace. Offsets count UTF-16 code units of the old text, as editors do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub from: usize,
    pub to: usize,
    pub insert: String,
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluated {
    pub value: Json,
    /// Warnings about the expression and its context.
    pub diagnostics: Vec<Diagnostic>,
}

/// When triggers fire next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextFirings {
    /// Only firings after this time are listed.
    pub after: Time,
    pub triggers: Vec<NextTrigger>,
    pub diagnostics: Vec<Diagnostic>,
}

/// A trigger and its next firings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextTrigger {
    pub id: Option<String>,
    pub kind: TriggerKind,
    /// The workflow that it starts.
    pub workflow: Option<String>,
    pub enabled: bool,
    pub file: String,
    /// The time zone of its clock.
    pub timezone: Option<String>,
    pub cron: Option<CronPattern>,
    pub path: Option<String>,
    /// The method of an `http` trigger.
    pub method: Option<String>,
    /// Callers must sign their requests.
    pub signed: bool,
    /// The name of the secret for signatures, where the file names one.
    pub secret: Option<String>,
    /// The name of the message, or of the event that a worker sends.
    pub message: Option<String>,
    /// In UTC. Empty for a disabled trigger and for one without a clock.
    pub next: Vec<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    Cron,
    Webhook,
    Http,
    Message,
    External,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CronPattern {
    pub expression: String,
    pub timezone: String,
    pub jitter_seconds: f64,
}

/// A run that existed only in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulation {
    pub run: Run,
    /// All its events, the oldest first.
    pub events: Vec<Event>,
    /// What Windlass remarked while the run was executed.
    pub notices: Vec<String>,
}
