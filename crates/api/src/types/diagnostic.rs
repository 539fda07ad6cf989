//! What is wrong with a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::{Sources, Span};

/// One finding in a file, with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable word; `windlass explain CODE` prints its page.
    pub code: String,
    pub message: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub end_line: Option<u32>,
    pub end_column: Option<u32>,
    pub step: Option<String>,
    pub field: Option<String>,
    /// The name that could not be resolved.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    pub suggest: Option<String>,
    /// The number of the rule in the dialect's own specification.
    pub rule: Option<u8>,
    pub help: String,
    /// Other places that matter, such as the first of two equal ids.
    #[serde(default)]
    pub labels: Vec<Label>,
}

/// A place beside that of the finding, and what it has to do with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    pub message: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

impl Diagnostic {
    /// A finding of a reader. Lines and columns start at 1, columns count characters, and the end is exclusive. A finding
    /// without a place is about `file`, if that is given.
    pub fn new(finding: &windlass_ir::Diagnostic, sources: &Sources, file: Option<&str>) -> Self {
        let place = finding.span.map(|span| label("", span, sources));
        let named = place.as_ref().map(|place| place.file.clone());
        Self {
            severity: finding.severity.into(),
            code: finding.code.as_str().to_owned(),
            message: finding.message.clone(),
            file: named.or_else(|| file.map(str::to_owned)),
            line: place.as_ref().map(|place| place.line),
            column: place.as_ref().map(|place| place.column),
            end_line: place.as_ref().map(|place| place.end_line),
            end_column: place.as_ref().map(|place| place.end_column),
            step: finding.step.clone(),
            field: finding.field.clone(),
            reference: finding.reference.clone(),
            suggest: finding.suggest.clone(),
            rule: finding.rule,
            help: finding.help.clone(),
            labels: finding.labels.iter().map(|other| label(&other.text, other.span, sources)).collect(),
        }
    }

    /// All findings of a reader, in their order.
    pub fn list(findings: &[windlass_ir::Diagnostic], sources: &Sources, file: Option<&str>) -> Vec<Self> {
        findings.iter().map(|finding| Self::new(finding, sources, file)).collect()
    }

    /// An error about a file as a whole, or about a place in it.
    pub fn error(code: crate::Code, message: &str, file: &str, place: Option<(u32, u32)>) -> Self {
        let (line, column) = place.unzip();
        Self {
            severity: Severity::Error,
            code: code.word(),
            message: message.to_owned(),
            file: Some(file.to_owned()),
            line,
            column,
            end_line: line,
            end_column: column,
            step: None,
            field: None,
            reference: None,
            suggest: None,
            rule: None,
            help: String::new(),
            labels: Vec::new(),
        }
    }

    /// The same at a place in a file.
    #[must_use]
    pub fn at(self, span: Span, sources: &Sources) -> Self {
        let place = label("", span, sources);
        Self {
            file: Some(place.file),
            line: Some(place.line),
            column: Some(place.column),
            end_line: Some(place.end_line),
            end_column: Some(place.end_column),
            ..self
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Where the finding is; none if it is about a file as a whole.
    pub fn place(&self) -> Option<crate::Place> {
        Some(crate::Place {
            file: self.file.clone()?,
            line: self.line?,
            column: self.column?,
            end_line: self.end_line?,
            end_column: self.end_column?,
        })
    }
}

fn label(message: &str, span: Span, sources: &Sources) -> Label {
    let (start, end) = (sources.start_of(span), sources.end_of(span));
    // A file has at most 16 MiB, so both fit.
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Label {
        message: message.to_owned(),
        file: sources.get(span.source).name.to_string(),
        line: number(start.line),
        column: number(start.column),
        end_line: number(end.line),
        end_column: number(end.column),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Hint,
}

impl From<windlass_ir::Severity> for Severity {
    fn from(severity: windlass_ir::Severity) -> Self {
        match severity {
            windlass_ir::Severity::Error => Self::Error,
            windlass_ir::Severity::Warning => Self::Warning,
            windlass_ir::Severity::Hint => Self::Hint,
        }
    }
}
