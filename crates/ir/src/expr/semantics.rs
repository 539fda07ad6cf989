//! The rules in which the expressions of the dialects differ, as data. A plan carries them, so an engine needs no
//! knowledge of dialects. The native dialect can select any of them with `config.semantics`.

use crate::time::Duration;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semantics {
    pub comparison: Comparison,
    pub truthiness: Truthiness,
    pub condition: ConditionText,
    pub logic: Logic,
    pub index: IndexRule,
    pub text: TextForm,
    pub functions: FunctionRules,
    pub visibility: Visibility,
    pub status: StatusWords,
    pub parameters: ParameterRules,
    pub skips: SkipRule,
    pub results: ResultShapes,
    /// How deeply workflows may call each other.
    pub calls_deep_max: u32,
}

impl Semantics {
    /// The native rules: no conversions, few falsy values, and compact JSON for data in text.
    pub const HOUSE: Self = Self {
        comparison: Comparison::Strict,
        truthiness: Truthiness::House,
        condition: ConditionText::AsAny,
        logic: Logic::Operand,
        index: IndexRule::FromStart,
        text: TextForm::Json,
        functions: FunctionRules::House,
        visibility: Visibility::Scoped,
        status: StatusWords::House,
        parameters: ParameterRules::House,
        skips: SkipRule::PassedOn,
        results: ResultShapes::House,
        calls_deep_max: 16,
    };

    pub const SPECKIT: Self = Self {
        comparison: Comparison::Python,
        truthiness: Truthiness::Empty,
        condition: ConditionText::Spoken,
        logic: Logic::Boolean,
        index: IndexRule::FromBothEnds,
        text: TextForm::Python,
        functions: FunctionRules::Python,
        visibility: Visibility::Flat,
        status: StatusWords::Speckit,
        parameters: ParameterRules::Python,
        skips: SkipRule::Satisfies,
        results: ResultShapes::Speckit,
        calls_deep_max: 16,
    };

    pub const DAGNATS: Self = Self {
        comparison: Comparison::SameKind,
        visibility: Visibility::Flat,
        status: StatusWords::Dagnats,
        skips: SkipRule::Satisfies,
        results: ResultShapes::Dagnats,
        calls_deep_max: 3,
        ..Self::HOUSE
    };

    pub const DCC: Self = Self {
        truthiness: Truthiness::Empty,
        visibility: Visibility::Flat,
        status: StatusWords::Dcc,
        skips: SkipRule::Satisfies,
        results: ResultShapes::Dcc,
        ..Self::HOUSE
    };

    /// Whether messages are matched by the text form of their values instead of by the values.
    pub fn messages_as_text(&self) -> bool {
        match self.results {
            ResultShapes::Dagnats => true,
            ResultShapes::House | ResultShapes::Speckit | ResultShapes::Dcc => false,
        }
    }

    /// The longest wait for an instant that is computed during the run.
    pub fn wait_max(&self) -> Option<Duration> {
        match self.results {
            ResultShapes::Dagnats => Some(Duration::from_secs(365 * 86_400)),
            ResultShapes::House | ResultShapes::Speckit | ResultShapes::Dcc => None,
        }
    }

    /// The named sets of rules.
    pub const NAMED: [(&'static str, Self); 4] =
        [("house", Self::HOUSE), ("speckit", Self::SPECKIT), ("dagnats", Self::DAGNATS), ("dcc", Self::DCC)];
}

/// How values are compared, for equality and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// No conversion: integers and floats compare by value, booleans are not numbers. Comparing values without an
    /// order is an error.
    Strict,
    /// As in Python: booleans are the numbers 0 and 1, numeric strings are ordered as numbers, and comparisons of
    /// values without an order are false.
    Python,
    /// Two numbers, two strings, or (for equality) two booleans. Every other comparison is false, including `!=`.
    SameKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truthiness {
    /// False, null, zero and the empty string are falsy; everything else is truthy.
    House,
    /// The empty list and the empty object are falsy as well.
    Empty,
}

/// How text is read in a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionText {
    /// As anywhere else.
    AsAny,
    /// Text that says `true` or `false`, in any case and with surrounding blanks, is that boolean.
    Spoken,
}

/// The result of `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logic {
    /// The deciding operand.
    Operand,
    /// True or false.
    Boolean,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexRule {
    FromStart,
    /// A negative index counts from the end.
    FromBothEnds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextForm {
    /// Null is empty, booleans are lower case, lists and objects are compact JSON.
    Json,
    /// Null is empty, everything else is formatted as by Python's `str`.
    Python,
}

/// The rules that built-in functions follow where filters of the same name differ between dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionRules {
    House,
    Python,
}

/// Which values are accepted for a parameter of a declared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterRules {
    /// Text from a command line is converted; other values must have the declared type.
    House,
    /// All text is converted by Python's rules: `yes` and `1` are true, `1_000` and `1e3` are whole numbers.
    Python,
}

/// The steps that an expression can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Steps that are always finished when the expression is evaluated; steps inside a scope only through the scope's
    /// outputs.
    Scoped,
    /// All steps, wherever they are; a step that has not run is null.
    Flat,
}

/// The effect of a skipped step on its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipRule {
    /// Dependents are skipped if a gate was skipped, or if a step was skipped because of a failure or a gate.
    PassedOn,
    /// The step counts as completed.
    Satisfies,
}

/// The results that scopes, gates and waits record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultShapes {
    House,
    Speckit,
    Dagnats,
    Dcc,
}

/// The status words that expressions see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusWords {
    House,
    Speckit,
    Dagnats,
    Dcc,
}

impl StatusWords {
    pub fn all(self) -> &'static [&'static str] {
        match self {
            Self::House => {
                &["pending", "running", "waiting", "success", "failed", "skipped", "timed_out", "cancelled"]
            }
            Self::Speckit => &["pending", "running", "completed", "failed", "skipped", "paused"],
            Self::Dagnats => {
                &["pending", "queued", "running", "completed", "failed", "skipped", "cancelled", "recovered"]
            }
            Self::Dcc => &["pending", "running", "completed", "failed", "cancelled", "interrupted"],
        }
    }
}
