//! The one type for everything that was refused or went wrong.

use crate::code::Code;
use crate::types::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an operation did nothing: what is wrong, where, and what to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub help: Option<String>,
    pub step: Option<String>,
    pub field: Option<String>,
    pub place: Option<Place>,
    pub diagnostics: Vec<Diagnostic>,
    pub retry_after_seconds: Option<f64>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            help: None,
            step: None,
            field: None,
            place: None,
            diagnostics: Vec::new(),
            retry_after_seconds: None,
        }
    }

    /// A refusal because of findings in a file. The first error gives the message.
    pub fn found(code: Code, diagnostics: Vec<Diagnostic>) -> Self {
        let first = diagnostics.iter().find(|finding| finding.is_error()).or(diagnostics.first());
        let refusal = match first {
            None => Self::new(code, "the file is not valid"),
            Some(first) => Self {
                help: Some(first.help.clone()).filter(|help| !help.is_empty()),
                step: first.step.clone(),
                field: first.field.clone(),
                place: first.place(),
                ..Self::new(code, first.message.clone())
            },
        };
        Self { diagnostics, ..refusal }
    }

    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    #[must_use]
    pub fn step(self, step: impl Into<String>) -> Self {
        Self { step: Some(step.into()), ..self }
    }

    #[must_use]
    pub fn field(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    #[must_use]
    pub fn diagnostics(self, diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics, ..self }
    }
}
