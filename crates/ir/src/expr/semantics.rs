//! The rules in which the dialects differ, as data. A plan carries them, so the engine and the executors follow named
//! choices and know no dialect. The native dialect can select any of these sets with `config.semantics`.

use super::shapes::{ResultShapes, StatusWords};
use crate::time::Duration;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    pub no_input: NoInput,
    pub skips: SkipRule,
    pub failures: FailureRule,
    pub gates: GateRule,
    pub fan_out: FanOutRule,
    pub messages: MessageRule,
    pub results: ResultShapes,
    /// The longest wait for an instant that is computed during the run.
    pub wait_max: Option<Duration>,
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
        status: StatusWords::HOUSE,
        parameters: ParameterRules::House,
        no_input: NoInput::Object,
        skips: SkipRule::PassedOn,
        failures: FailureRule::ByPolicy,
        gates: GateRule::KeepQuestion,
        fan_out: FanOutRule::AnyOrder,
        messages: MessageRule::ByValue,
        results: ResultShapes::HOUSE,
        wait_max: None,
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
        status: StatusWords::SPECKIT,
        parameters: ParameterRules::Python,
        skips: SkipRule::Satisfies,
        failures: FailureRule::HaltInside,
        gates: GateRule::AskAgain,
        fan_out: FanOutRule::InOrder,
        results: ResultShapes::SPECKIT,
        ..Self::HOUSE
    };

    pub const DAGNATS: Self = Self {
        comparison: Comparison::SameKind,
        visibility: Visibility::Flat,
        status: StatusWords::DAGNATS,
        no_input: NoInput::Null,
        skips: SkipRule::Satisfies,
        messages: MessageRule::ByText,
        results: ResultShapes::DAGNATS,
        wait_max: Some(Duration::from_secs(365 * 86_400)),
        calls_deep_max: 3,
        ..Self::HOUSE
    };

    pub const DCC: Self = Self {
        truthiness: Truthiness::Empty,
        visibility: Visibility::Flat,
        status: StatusWords::DCC,
        skips: SkipRule::Satisfies,
        results: ResultShapes::DCC,
        ..Self::HOUSE
    };

    /// These rules as a plan of format 1 means them, which names their set.
    pub const fn of_format_1(self) -> Self {
        Self { results: self.results.of_format_1(), ..self }
    }

    /// The named sets of rules.
    pub const NAMED: [(&'static str, Self); 4] =
        [("house", Self::HOUSE), ("speckit", Self::SPECKIT), ("dagnats", Self::DAGNATS), ("dcc", Self::DCC)];
}

impl<'de> Deserialize<'de> for Semantics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        stored::Rules::deserialize(deserializer)?.read().map_err(serde::de::Error::custom)
    }
}

/// The rules as plans have stored them. A plan of format 1 has the name of a set in place of some rules.
mod stored {
    use super::{
        Comparison, ConditionText, Deserialize, Duration, FailureRule, FanOutRule, FunctionRules, GateRule,
        IndexRule, Logic, MessageRule, NoInput, ParameterRules, ResultShapes, Semantics, SkipRule,
        StatusWords, TextForm, Truthiness, Visibility,
    };

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Named<T> {
        Choices(T),
        Set(String),
    }

    #[derive(Deserialize)]
    pub(super) struct Rules {
        comparison: Comparison,
        truthiness: Truthiness,
        condition: ConditionText,
        logic: Logic,
        index: IndexRule,
        text: TextForm,
        functions: FunctionRules,
        visibility: Visibility,
        status: Named<StatusWords>,
        parameters: ParameterRules,
        no_input: Option<NoInput>,
        skips: SkipRule,
        failures: Option<FailureRule>,
        gates: Option<GateRule>,
        fan_out: Option<FanOutRule>,
        messages: Option<MessageRule>,
        results: Named<ResultShapes>,
        wait_max: Option<Duration>,
        calls_deep_max: u32,
    }

    fn named(name: &str) -> Result<Semantics, String> {
        let known = Semantics::NAMED.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, rules)| rules).ok_or_else(|| format!("unknown set of rules `{name}`"))
    }

    impl Rules {
        pub fn read(self) -> Result<Semantics, String> {
            let status = match self.status {
                Named::Choices(choices) => choices,
                Named::Set(name) => named(&name)?.status,
            };
            let (results, wait_max, set) = match self.results {
                Named::Choices(choices) => (choices, self.wait_max, Semantics::HOUSE),
                Named::Set(name) => named(&name).map(|set| (set.of_format_1().results, set.wait_max, set))?,
            };
            Ok(Semantics {
                comparison: self.comparison,
                truthiness: self.truthiness,
                condition: self.condition,
                logic: self.logic,
                index: self.index,
                text: self.text,
                functions: self.functions,
                visibility: self.visibility,
                status,
                parameters: self.parameters,
                no_input: self.no_input.unwrap_or(set.no_input),
                skips: self.skips,
                failures: self.failures.unwrap_or(set.failures),
                gates: self.gates.unwrap_or(set.gates),
                fan_out: self.fan_out.unwrap_or(set.fan_out),
                messages: self.messages.unwrap_or(set.messages),
                results,
                wait_max,
                calls_deep_max: self.calls_deep_max,
            })
        }
    }
}

/// How values are compared, for equality and for order.
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

/// The input of a run that is started without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoInput {
    /// An empty object.
    Object,
    /// Null, where the contract allows that.
    Null,
}

/// Which failures halt a run whatever the policy of their step says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureRule {
    /// None.
    ByPolicy,
    /// A person has aborted the run, an expression has no value, or a step inside a scope has failed. Only a call catches these.
    HaltInside,
}

/// What becomes of an open gate when a run is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateRule {
    /// It waits for a decision as before.
    KeepQuestion,
    /// Its question is rendered again.
    AskAgain,
}

/// Which item of a fan-out with a limit starts next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FanOutRule {
    /// The next one, as soon as any item is done.
    AnyOrder,
    /// The next one, when the first of those at work is done.
    InOrder,
}

/// How a message is matched with the values that a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRule {
    ByValue,
    /// By how the values read as text.
    ByText,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_are_read_as_they_were_stored() {
        for (name, rules) in Semantics::NAMED {
            let stored = serde_json::to_value(rules).expect("rules are plain data");
            assert_eq!(serde_json::from_value::<Semantics>(stored).expect(name), rules, "{name}");
        }
    }

    /// A plan of format 1 names the set that shapes, words and the rules that came later are from.
    #[test]
    fn rules_of_format_1_are_read_by_the_name_of_their_set() {
        for (name, rules) in Semantics::NAMED {
            let mut stored = serde_json::to_value(rules).expect("rules are plain data");
            let members = stored.as_object_mut().expect("an object");
            for later in ["no_input", "failures", "gates", "fan_out", "messages", "wait_max"] {
                members.remove(later);
            }
            members.extend(["status", "results"].map(|key| (key.to_owned(), json!(name))));
            assert_eq!(
                serde_json::from_value::<Semantics>(stored).expect(name),
                rules.of_format_1(),
                "{name}"
            );
        }
        let unknown = json!({"status": "klingon"});
        assert!(serde_json::from_value::<Semantics>(unknown).is_err());
    }
}
