//! A [`Diagnostic`] describes one problem in a file: where it is, what is wrong, and how to fix it.
//!
//! The list of codes is closed, so a test can require a page under `docs/errors/` for each of them.

use crate::source::{Sources, Span};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Hint,
}

macro_rules! codes {
    ($($variant:ident = $word:literal),* $(,)?) => {
        /// The stable name for one kind of problem. Programs match on it, and people look it up.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $word),* }
            }
        }
    };
}

codes! {
    // The file itself
    Unreadable = "unreadable",
    NotUtf8 = "not_utf8",
    TooLarge = "too_large",
    TooDeep = "too_deep",
    TooManySteps = "too_many_steps",
    AliasExpansion = "alias_expansion",
    UnknownExtension = "unknown_extension",
    NotAWorkflow = "not_a_workflow",
    Syntax = "syntax",
    DuplicateKey = "duplicate_key",
    WrongShape = "wrong_shape",
    NotFormatted = "not_formatted",
    // Keys and plain values
    UnknownKey = "unknown_key",
    MissingField = "missing_field",
    ConflictingKeys = "conflicting_keys",
    IgnoredKey = "ignored_key",
    KeyCase = "key_case",
    MergeKey = "merge_key",
    TasksDialect = "tasks_dialect",
    BadId = "bad_id",
    BadVersion = "bad_version",
    BadDuration = "bad_duration",
    BadNumber = "bad_number",
    BadEnum = "bad_enum",
    BadName = "bad_name",
    BadTime = "bad_time",
    BadCron = "bad_cron",
    BadPath = "bad_path",
    BadArtifactRef = "bad_artifact_ref",
    BadDefault = "bad_default",
    BadSchema = "bad_schema",
    BadField = "bad_field",
    UnknownType = "unknown_type",
    // Steps and their dependencies
    NoStages = "no_stages",
    DuplicateStageId = "duplicate_stage_id",
    MissingRoles = "missing_roles",
    MissingGate = "missing_gate",
    UnknownStage = "unknown_stage",
    Cycle = "cycle",
    BadTarget = "bad_target",
    // Expressions
    ExpressionSyntax = "expression_syntax",
    ExpressionType = "expression_type",
    ExpressionValue = "expression_value",
    ExpressionLimit = "expression_limit",
    UnknownNamespace = "unknown_namespace",
    UnknownFunction = "unknown_function",
    BadArity = "bad_arity",
    UnknownParameter = "unknown_parameter",
    UnknownOutput = "unknown_output",
    UnknownField = "unknown_field",
    UnknownEnv = "unknown_env",
    UnknownSecret = "unknown_secret",
    SecretExposed = "secret_exposed",
    UnsafeQuoting = "unsafe_quoting",
    NotAnAncestor = "not_an_ancestor",
    NotAvailableHere = "not_available_here",
    TypeMismatch = "type_mismatch",
    NeverTrue = "never_true",
    UnboundContext = "unbound_context",
    SilentNull = "silent_null",
    ConditionWithoutBraces = "condition_without_braces",
    ConditionBlockUnclosable = "condition_block_unclosable",
    ConditionNotOneBlock = "condition_not_one_block",
    BareName = "bare_name",
    DocsStylePath = "docs_style_path",
    ShadowedBinding = "shadowed_binding",
    // Triggers and schedules
    DuplicateTrigger = "duplicate_trigger",
    UnknownWorkflow = "unknown_workflow",
    // Safety and plausibility
    GateBypassed = "gate_bypassed",
    GateTimeoutExceedsRunTimeout = "gate_timeout_exceeds_run_timeout",
    // Parameters passed by the user
    MissingParameter = "missing_parameter",
    BadParameter = "bad_parameter",
    // Overrides
    ProtectedKey = "protected_key",
    UnknownOverrideKey = "unknown_override_key",
    UnusedOverride = "unused_override",
    // Conversion to another dialect
    NotConvertible = "not_convertible",
    // Spec Kit: the top of a file
    SchemaVersion = "schema_version",
    WorkflowIdFormat = "workflow_id_format",
    WorkflowNameMissing = "workflow_name_missing",
    WorkflowVersionNotString = "workflow_version_not_string",
    WorkflowIntegrationType = "workflow_integration_type",
    WorkflowModelType = "workflow_model_type",
    WorkflowOptionsType = "workflow_options_type",
    RequiresPermissionsForbidden = "requires_permissions_forbidden",
    RequiresUnknownKey = "requires_unknown_key",
    InputNotMapping = "input_not_mapping",
    InputTypeUnknown = "input_type_unknown",
    InputEnumNotList = "input_enum_not_list",
    InputDefaultInvalid = "input_default_invalid",
    OutputNameReserved = "output_name_reserved",
    OutputEntryNotExactlyValue = "output_entry_not_exactly_value",
    YamlDate = "yaml_date",
    // Spec Kit: steps
    StepNotMapping = "step_not_mapping",
    StepIdMissing = "step_id_missing",
    StepIdNotString = "step_id_not_string",
    StepIdHasColon = "step_id_has_colon",
    StepIdDuplicate = "step_id_duplicate",
    StepTypeNotString = "step_type_not_string",
    StepTypeUnknown = "step_type_unknown",
    WaitForEmptyOrNotList = "wait_for_empty_or_not_list",
    WaitForEntryNotString = "wait_for_entry_not_string",
    WaitForSelf = "wait_for_self",
    WaitForUnknownOrLater = "wait_for_unknown_or_later",
    GateNoRejectOption = "gate_no_reject_option",
    VerdictInputUndeclared = "verdict_input_undeclared",
    VerdictInputInFanOut = "verdict_input_in_fan_out",
    VerdictInputCannotReset = "verdict_input_cannot_reset",
    WorkflowTargetId = "workflow_target_id",
    SlotInFanOut = "slot_in_fan_out",
    // Spec Kit: overlays
    OverlayExtends = "overlay_extends",
    OverlayAnchorMissing = "overlay_anchor_missing",
    OverlayConflict = "overlay_conflict",
    OverlayShadowed = "overlay_shadowed",
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A second location to show next to the main one, with a short note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// One problem. `message` is the cause, `help` says how to fix it, and `span` is the location.
///
/// `step` and `field` describe the location in terms of the file; `field` is relative to the step if there is one.
/// `reference` is the word that is wrong, `suggest` the word that the author probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    pub message: String,
    pub help: String,
    pub span: Option<Span>,
    pub labels: Vec<Label>,
    pub step: Option<String>,
    pub field: Option<String>,
    pub reference: Option<String>,
    pub suggest: Option<String>,
    pub rule: Option<u8>,
}

impl Diagnostic {
    pub fn new(severity: Severity, code: Code, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            help: String::new(),
            span: None,
            labels: Vec::new(),
            step: None,
            field: None,
            reference: None,
            suggest: None,
            rule: None,
        }
    }

    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    pub fn hint(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Hint, code, message)
    }

    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Sets the help text. A suggestion, if there is one, comes first.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        let help = help.into();
        self.help = match &self.suggest {
            Some(word) => format!("{} {help}", did_you_mean(word)),
            None => help,
        };
        self
    }

    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    #[must_use]
    pub fn step(mut self, step: impl Into<String>) -> Self {
        self.step = Some(step.into());
        self
    }

    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    #[must_use]
    pub fn reference(mut self, reference: impl Into<String>) -> Self {
        self.reference = Some(reference.into());
        self
    }

    /// Sets the suggestion, and offers it in the help text if that is still empty.
    #[must_use]
    pub fn suggest(mut self, suggest: Option<impl Into<String>>) -> Self {
        self.suggest = suggest.map(Into::into);
        if let (true, Some(word)) = (self.help.is_empty(), &self.suggest) {
            self.help = did_you_mean(word);
        }
        self
    }

    /// Sets the number of the broken rule, for dialects that number their rules.
    #[must_use]
    pub fn rule(mut self, rule: u8) -> Self {
        self.rule = Some(rule);
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The JSON form that programs read. Lines and columns start at 1, columns count characters, and the end is
    /// exclusive. All five location fields are null if the problem has no location in a file.
    pub fn to_json(&self, sources: &Sources) -> serde_json::Value {
        let start = self.span.map(|span| sources.start_of(span));
        let end = self.span.map(|span| sources.end_of(span));
        serde_json::json!({
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "file": self.span.map(|span| sources.get(span.source).name.to_string()),
            "line": start.map(|p| p.line),
            "column": start.map(|p| p.column),
            "end_line": end.map(|p| p.line),
            "end_column": end.map(|p| p.column),
            "step": self.step,
            "field": self.field,
            "ref": self.reference,
            "suggest": self.suggest,
            "rule": self.rule,
            "help": self.help,
        })
    }
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean `{word}`?")
}

/// Sorts by position in the file; problems without a location come last.
pub fn sort_by_place(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|d| d.span.map_or((1, Span::default()), |span| (0, span)));
}
