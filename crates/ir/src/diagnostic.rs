//! What is wrong with a file: one [`Diagnostic`] per finding, with place, cause and next action.
//!
//! Codes are a closed list so that a test can demand a page under `docs/errors/` for each of them.

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
        /// The stable word for one kind of finding. Programs match on it; people look it up.
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
    BadId = "bad_id",
    BadVersion = "bad_version",
    BadDuration = "bad_duration",
    BadNumber = "bad_number",
    BadEnum = "bad_enum",
    BadName = "bad_name",
    BadTime = "bad_time",
    BadCron = "bad_cron",
    BadArtifactRef = "bad_artifact_ref",
    BadDefault = "bad_default",
    BadSchema = "bad_schema",
    UnknownType = "unknown_type",
    // Steps and how they hang together
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
    // Safety and plausibility
    GateBypassed = "gate_bypassed",
    GateTimeoutExceedsRunTimeout = "gate_timeout_exceeds_run_timeout",
    // Parameters given by the user
    MissingParameter = "missing_parameter",
    BadParameter = "bad_parameter",
    // Overrides
    ProtectedKey = "protected_key",
    UnknownOverrideKey = "unknown_override_key",
    UnusedOverride = "unused_override",
    // Writing a workflow in another dialect
    NotConvertible = "not_convertible",
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

/// A second place worth showing beside the main one, with a few words about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// One finding. `message` is the cause, `help` the next action, `span` the place.
///
/// `step` and `field` say the same place in the words of the file: `field` is relative to the step when
/// there is one. `reference` is the word at fault, `suggest` the word that was probably meant.
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

    /// The next action. The word that was probably meant, if one is known, is offered first.
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

    /// Remembers the word that was probably meant, and offers it in the help when that is still empty.
    #[must_use]
    pub fn suggest(mut self, suggest: Option<impl Into<String>>) -> Self {
        self.suggest = suggest.map(Into::into);
        if let (true, Some(word)) = (self.help.is_empty(), &self.suggest) {
            self.help = did_you_mean(word);
        }
        self
    }

    /// The number of the broken rule, where a dialect numbers its rules.
    #[must_use]
    pub fn rule(mut self, rule: u8) -> Self {
        self.rule = Some(rule);
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The contract that programs read. Lines and columns count from 1, columns in characters, the end is
    /// exclusive; all five place fields are null when the finding has no place in a file.
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

/// In the order of the file; what has no place comes last.
pub fn sort_by_place(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|d| d.span.map_or((1, Span::default()), |span| (0, span)));
}
