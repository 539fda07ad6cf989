//! The rules in which the dialects' expressions differ, as data. A plan carries them, so that an engine needs to know no
//! dialect; the house dialect can ask for any of them with `config.semantics`.

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
    /// How deep workflows may call each other.
    pub calls_deep_max: u32,
}

impl Semantics {
    /// The house rules: nothing is converted, little is falsy, data in text is compact JSON.
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

    /// Whether a message that is waited for is told from others by how its values read, not by what they are.
    pub fn messages_as_text(&self) -> bool {
        match self.results {
            ResultShapes::Dagnats => true,
            ResultShapes::House | ResultShapes::Speckit | ResultShapes::Dcc => false,
        }
    }

    /// The sets of rules that have a name.
    pub const NAMED: [(&'static str, Self); 4] =
        [("house", Self::HOUSE), ("speckit", Self::SPECKIT), ("dagnats", Self::DAGNATS), ("dcc", Self::DCC)];
}

/// How values are compared, for equality and for order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// No conversion: integers and floats compare by value, booleans are not numbers. What has no order is an error.
    Strict,
    /// As Python: booleans are the numbers 0 and 1, texts that hold numbers are ordered as numbers, and a comparison of
    /// things without an order is false.
    Python,
    /// Two numbers, two texts, or (for equality) two booleans. Every other comparison is false, `!=` too.
    SameKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truthiness {
    /// False, null, zero and the empty text are falsy; everything else is truthy.
    House,
    /// The empty list and the empty object are falsy as well.
    Empty,
}

/// What a text means where a condition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionText {
    /// The same as anywhere else.
    AsAny,
    /// A text that says `true` or `false`, in any case and with blanks around it, is that.
    Spoken,
}

/// What `&&` and `||` give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logic {
    /// The operand that decided.
    Operand,
    /// True or false.
    Boolean,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexRule {
    FromStart,
    /// A negative number counts from the end.
    FromBothEnds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextForm {
    /// Null is empty, booleans are lower case, lists and objects are compact JSON.
    Json,
    /// Null is empty, everything else as Python's `str` shows it.
    Python,
}

/// Which rules the built-in functions follow where the dialects' filters of the same name differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionRules {
    House,
    Python,
}

/// What may be given for a parameter of a declared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterRules {
    /// Text from a command line is converted; a value must be of the type.
    House,
    /// Any text is converted, by Python's rules: `yes` and `1` are true, `1_000` and `1e3` are whole numbers.
    Python,
}

/// Which steps an expression can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Those that are settled whenever the reader is evaluated; what is inside a scope only through its outputs.
    Scoped,
    /// All of them, wherever they stand; one that has not run is null.
    Flat,
}

/// What a step that was skipped means for those that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipRule {
    /// A gate that was skipped, and a step that was skipped because of a failure or a gate, skips those that wait for it.
    PassedOn,
    /// It is as good as done.
    Satisfies,
}

/// What scopes, gates and waits leave behind for others to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultShapes {
    House,
    Speckit,
    Dagnats,
    Dcc,
}

/// The words that the status of a step is read as.
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
