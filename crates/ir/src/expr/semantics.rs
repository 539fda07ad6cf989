//! The rules in which the dialects' expressions differ, as data.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semantics {
    pub equality: Equality,
    pub truthiness: Truthiness,
    pub text: TextForm,
}

impl Semantics {
    /// The house rules: nothing is converted, little is falsy, data in text is compact JSON.
    pub const HOUSE: Self =
        Self { equality: Equality::Strict, truthiness: Truthiness::House, text: TextForm::Json };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Equality {
    /// No conversion: integers and floats compare by value, booleans are not numbers.
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truthiness {
    /// False, null, zero and the empty text are falsy; everything else is truthy.
    House,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextForm {
    /// Null is empty, booleans are lower case, lists and objects are compact JSON.
    Json,
}
