//! Turns the user's values into the inputs of a run: converts them to the declared types, fills in defaults and
//! refuses unknown names.

use super::Plan;
use crate::contract::{Contract, Type};
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::{NoInput, ParameterRules, Semantics, equals};
use crate::suggest::nearest;
use crate::value::Value;
use crate::workflow::{Parameter, RunInput, Words};
use indexmap::IndexMap;
use serde_json::json;
use std::sync::Arc;

/// One value as passed by the user: text from a command line, or data from a file or a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    Text(String),
    Value(Value),
}

/// Where the value of a parameter came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Given,
    Default,
    /// Not passed and without a default: null.
    Absent,
}

/// The values of all declared parameters, in the order of declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    pub values: IndexMap<Arc<str>, (Value, Origin)>,
    /// The whole input, if it is not an object.
    pub whole: Option<Value>,
}

impl Parameters {
    pub fn to_value(&self) -> Value {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        Value::map(self.values.iter().map(|(name, (value, _))| (name.clone(), value.clone())))
    }
}

impl Plan {
    /// Converts the user's values and reports all problems together. After any problem, the run does not start.
    pub fn parameters(
        &self,
        given: &IndexMap<String, Given>,
        words: &Words,
    ) -> Result<Parameters, Vec<Diagnostic>> {
        if let RunInput::Open(ty) = &self.input {
            return self.open(given, ty, words);
        }
        let mut problems: Vec<Diagnostic> = Vec::new();
        for name in given.keys().filter(|name| !self.parameters.contains_key(name.as_str())) {
            problems.push(unknown(name, self.parameters.keys(), words));
        }
        let mut values = IndexMap::new();
        for (name, parameter) in &self.parameters {
            match value_of(name, parameter, given.get(&**name), &self.semantics, words) {
                Ok(value) => drop(values.insert(name.clone(), value)),
                Err(problem) => problems.push(*problem),
            }
        }
        if problems.is_empty() { Ok(Parameters { values, whole: None }) } else { Err(problems) }
    }

    /// Accepts any names that match the contract of the whole input; a declared name determines how its text is read.
    fn open(
        &self,
        given: &IndexMap<String, Given>,
        ty: &Type,
        words: &Words,
    ) -> Result<Parameters, Vec<Diagnostic>> {
        if given.is_empty() && self.semantics.no_input == NoInput::Null && check(&Value::Null, ty).is_ok() {
            return Ok(Parameters { values: IndexMap::new(), whole: Some(Value::Null) });
        }
        let mut values = IndexMap::new();
        for (name, given) in given {
            let known = match self.parameters.get(name.as_str()) {
                Some(parameter) => parameter.ty.clone(),
                None => property(ty, name),
            };
            let value = match given {
                Given::Value(value) => value.clone(),
                Given::Text(text) => from_text(text, &known).unwrap_or_else(|_| Value::text(text.as_str())),
            };
            values.insert(Arc::from(name.as_str()), (value, Origin::Given));
        }
        kept(Parameters { values, whole: None }, ty, words)
    }

    /// Takes a whole input that is not an object.
    pub fn whole_input(&self, whole: Value, words: &Words) -> Result<Parameters, Vec<Diagnostic>> {
        let ty = match &self.input {
            RunInput::Open(ty) => ty,
            RunInput::Declared => &Type::Object,
        };
        kept(Parameters { values: IndexMap::new(), whole: Some(whole) }, ty, words)
    }

    /// The required parameters that were not passed, for prompting the user.
    pub fn wanted(&self, is_given: impl Fn(&str) -> bool) -> Vec<(Arc<str>, Parameter)> {
        let all: Vec<(Arc<str>, Parameter)> = match &self.input {
            RunInput::Declared => self.parameters.iter().map(|(name, p)| (name.clone(), p.clone())).collect(),
            RunInput::Open(ty) => demanded_by(ty),
        };
        all.into_iter().filter(|(name, parameter)| is_demanded(parameter) && !is_given(name)).collect()
    }

    /// The parameters as a JSON Schema, for programs that prompt for them.
    pub fn parameters_schema(&self) -> serde_json::Value {
        if let RunInput::Open(Type::Schema(schema)) = &self.input {
            return (**schema).clone();
        }
        let properties: serde_json::Map<String, serde_json::Value> = self
            .parameters
            .iter()
            .map(|(name, parameter)| (name.to_string(), schema_of(parameter)))
            .collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|(_, p)| is_demanded(p)).map(|(name, _)| &**name).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": self.input != RunInput::Declared,
        })
    }
}

/// The type of one property, if the schema states it as a single word.
fn property(ty: &Type, name: &str) -> Type {
    let Type::Schema(schema) = ty else { return Type::Any };
    match schema["properties"][name]["type"].as_str() {
        Some("array") => Type::Array(Box::new(Type::Any)),
        Some(word) => Type::parse(word).unwrap_or(Type::Any),
        None => Type::Any,
    }
}

/// The required properties in a schema of the whole input.
fn demanded_by(ty: &Type) -> Vec<(Arc<str>, Parameter)> {
    let Type::Schema(schema) = ty else { return Vec::new() };
    let names = schema["required"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    let parameter = |name: &str| {
        let about = &schema["properties"][name];
        let value = |json: &serde_json::Value| serde_json::from_value(json.clone()).ok();
        Parameter {
            ty: property(ty, name),
            required: true,
            default: about.get("default").and_then(value),
            choices: about["enum"].as_array().into_iter().flatten().filter_map(value).collect(),
            description: about["description"].as_str().map(Into::into),
            span: Default::default(),
        }
    };
    names.map(|name| (Arc::from(name), parameter(name))).collect()
}

/// Checks the input as a whole against its contract.
fn kept(parameters: Parameters, ty: &Type, words: &Words) -> Result<Parameters, Vec<Diagnostic>> {
    match check(&parameters.to_value(), ty) {
        Ok(()) => Ok(parameters),
        Err(cause) => {
            let message = format!("the {} does not match its schema: {cause}", words.parameter);
            Err(vec![
                Diagnostic::error(Code::BadParameter, message).help("pass a value that matches the schema"),
            ])
        }
    }
}

fn is_demanded(parameter: &Parameter) -> bool {
    parameter.required && parameter.default.is_none()
}

fn schema_of(parameter: &Parameter) -> serde_json::Value {
    let mut schema = match parameter.ty.to_schema() {
        serde_json::Value::Object(map) => map,
        _ => serde_json::Map::new(),
    };
    if let Some(description) = &parameter.description {
        schema.insert("description".into(), json!(description));
    }
    if let Some(default) = &parameter.default {
        schema.insert("default".into(), json!(default));
    }
    if !parameter.choices.is_empty() {
        schema.insert("enum".into(), json!(parameter.choices));
    }
    serde_json::Value::Object(schema)
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a Arc<str>>, words: &Words) -> Diagnostic {
    let word = words.parameter;
    let known: Vec<&str> = known.map(|key| &**key).collect();
    let finding = Diagnostic::error(Code::UnknownParameter, format!("unknown {word} `{name}`"))
        .reference(name)
        .suggest(nearest(name, known.iter().copied()));
    match (finding.help.is_empty(), known.is_empty()) {
        (false, _) => finding,
        (true, true) => finding.help(format!("this workflow takes no {word}s; remove it")),
        (true, false) => finding.help(format!("use one of {}", known.join(", "))),
    }
}

fn value_of(
    name: &str,
    parameter: &Parameter,
    given: Option<&Given>,
    semantics: &Semantics,
    words: &Words,
) -> Result<(Value, Origin), Box<Diagnostic>> {
    let word = words.parameter;
    match given {
        Some(given) => {
            parameter.accept(given, semantics).map(|value| (value, Origin::Given)).map_err(|cause| {
                let problem = format!("invalid value for {word} `{name}` of type {}: {cause}", parameter.ty);
                Box::new(
                    Diagnostic::error(Code::BadParameter, problem)
                        .reference(name)
                        .help(example(name, parameter)),
                )
            })
        }
        None => match &parameter.default {
            Some(default) => Ok((default.clone(), Origin::Default)),
            None if parameter.required => {
                let problem = format!("missing required {word} `{name}`");
                let problem = Diagnostic::error(Code::MissingParameter, problem).reference(name);
                Err(Box::new(problem.help(example(name, parameter))))
            }
            None => Ok((Value::Null, Origin::Absent)),
        },
    }
}

impl Parameter {
    /// Converts the given value, or says why it is invalid.
    pub fn accept(&self, given: &Given, semantics: &Semantics) -> Result<Value, String> {
        let value = match semantics.parameters {
            ParameterRules::House => convert(given, &self.ty)?,
            ParameterRules::Python => convert_as_python(given, &self.ty)?,
        };
        let is_same = |choice: &Value| equals(choice, &value, semantics).unwrap_or(false);
        if self.choices.is_empty() || self.choices.iter().any(is_same) {
            return Ok(value);
        }
        let choices: Vec<String> = self.choices.iter().map(shown).collect();
        Err(format!("{} is not one of {}", shown(&value), choices.join(", ")))
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("`{text}`"),
        other => format!("`{}`", other.to_json_text().unwrap_or_default()),
    }
}

fn example(name: &str, parameter: &Parameter) -> String {
    if let Some(Value::Text(choice)) = parameter.choices.first() {
        return format!("pass it as `-p {name}={choice}`");
    }
    let sample = match &parameter.ty {
        Type::Integer => "3",
        Type::Number => "2.5",
        Type::Boolean => "true",
        Type::Object | Type::Schema(_) => "'{\"key\": \"value\"}'",
        Type::Array(_) => "'[\"a\", \"b\"]'",
        Type::ArtifactRef => "agent:name",
        Type::ContextModule => "ctx:name",
        Type::Any | Type::String | Type::MemoryItem => "VALUE",
    };
    format!("pass it as `-p {name}={sample}`")
}

fn convert(given: &Given, ty: &Type) -> Result<Value, String> {
    let value = match given {
        Given::Value(value) => value.clone(),
        Given::Text(text) => from_text(text, ty)?,
    };
    check(&value, ty).map(|()| value)
}

fn check(value: &Value, ty: &Type) -> Result<(), String> {
    let contract = Contract::new(ty).map_err(|error| error.to_string())?;
    contract.check(value).map_err(|violation| match violation.path.as_str() {
        "" => violation.message,
        path => format!("{path}: {}", violation.message),
    })
}

fn from_text(text: &str, ty: &Type) -> Result<Value, String> {
    let trimmed = text.trim();
    match ty {
        Type::String | Type::ArtifactRef | Type::MemoryItem | Type::ContextModule => Ok(Value::text(text)),
        Type::Integer => {
            trimmed.parse().map(Value::Int).map_err(|_| format!("`{text}` is not a whole number"))
        }
        Type::Number => number(trimmed).ok_or_else(|| format!("`{text}` is not a number")),
        Type::Boolean => match trimmed {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(format!("`{text}` is neither true nor false")),
        },
        Type::Object | Type::Array(_) => {
            from_json(text).map_err(|cause| format!("`{text}` is not valid JSON ({cause})"))
        }
        Type::Any | Type::Schema(_) => Ok(from_json(text).unwrap_or_else(|_| Value::text(text))),
    }
}

fn number(text: &str) -> Option<Value> {
    let whole = text.parse().map(Value::Int).ok();
    whole.or_else(|| text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Value::Float))
}

/// Converts text from any source; refuses values of other types.
fn convert_as_python(given: &Given, ty: &Type) -> Result<Value, String> {
    let value = match given {
        Given::Text(text) => Value::text(text.as_str()),
        Given::Value(value) => value.clone(),
    };
    let wrong = |wanted: &str| Err(format!("{} is {wanted}", shown(&value)));
    match (ty, &value) {
        (Type::String, Value::Text(_)) => Ok(value),
        (Type::String, _) => wrong("not a string"),
        (Type::Boolean, Value::Bool(_)) => Ok(value),
        (Type::Boolean, Value::Text(text)) => match text.trim().to_lowercase().as_str() {
            "true" | "1" | "yes" => Ok(Value::Bool(true)),
            "false" | "0" | "no" => Ok(Value::Bool(false)),
            _ => wrong("neither true nor false"),
        },
        (Type::Boolean, _) => wrong("neither true nor false"),
        (Type::Number, Value::Int(_)) => Ok(value),
        (Type::Number, Value::Float(float)) => whole(*float).map_or_else(|| wrong("not a number"), Ok),
        (Type::Number, Value::Text(text)) => python_number(text).map_or_else(|| wrong("not a number"), Ok),
        (Type::Number, _) => wrong("not a number"),
        (_, _) => convert(given, ty),
    }
}

/// Digits may be separated by single underscores. A whole number is an integer in every notation.
fn python_number(text: &str) -> Option<Value> {
    let text = text.trim();
    let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let joins = |at: usize| at > 0 && digit(at - 1) && digit(at + 1);
    if text.match_indices('_').any(|(at, _)| !joins(at)) {
        return None;
    }
    let plain = text.replace('_', "");
    // Rust's parser also accepts inf, infinity and nan.
    if !plain.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E')) {
        return None;
    }
    plain.parse().map(Value::Int).ok().or_else(|| whole(plain.parse().ok()?))
}

/// A float without a fraction as an integer, if it fits; `None` for NaN and infinities.
fn whole(float: f64) -> Option<Value> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    let fits = float.fract() == 0.0 && (-BEYOND..BEYOND).contains(&float);
    float.is_finite().then_some(if fits { Value::Int(float as i64) } else { Value::Float(float) })
}

fn from_json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_the_whole_input_determines_the_prompts() {
        let schema = json!({
            "required": ["size", "count"],
            "properties": {
                "size": {"type": "string", "enum": ["small", "large"], "description": "How big"},
                "count": {"type": "integer", "default": 1},
                "more": {"type": "string"},
            },
        });
        let wanted = demanded_by(&Type::Schema(Arc::new(schema)));
        let names: Vec<(&str, bool)> = wanted.iter().map(|(name, p)| (&**name, is_demanded(p))).collect();
        assert_eq!(names, [("size", true), ("count", false)]);
        assert_eq!(wanted[0].1.choices, [Value::text("small"), Value::text("large")]);
        assert_eq!((&wanted[0].1.ty, wanted[0].1.description.as_deref()), (&Type::String, Some("How big")));
        assert_eq!(demanded_by(&Type::Object), []);
    }

    #[test]
    fn text_is_converted_by_declared_type() {
        let check = |ty: &str, text: &str, expected: Result<&str, &str>| {
            let converted = convert(&Given::Text(text.into()), &Type::parse(ty).expect("a type"));
            let shown = converted.map(|value| value.to_json_text().expect("no secret"));
            match expected {
                Ok(json) => assert_eq!(shown.as_deref(), Ok(json), "{ty} {text}"),
                Err(part) => assert!(shown.expect_err(text).contains(part), "{ty} {text}"),
            }
        };
        check("string", "false", Ok("\"false\""));
        check("boolean", "false", Ok("false"));
        check("boolean", "no", Err("neither true nor false"));
        check("integer", "3", Ok("3"));
        check("integer", "3.5", Err("not a whole number"));
        check("number", "3", Ok("3"));
        check("number", "2.50", Ok("2.5"));
        check("number", "inf", Err("not a number"));
        check("array<string>", "[\"a\"]", Ok("[\"a\"]"));
        check("array<string>", "[1]", Err("[0]"));
        check("array<string>", "a,b", Err("not valid JSON"));
        check("object", "{\"a\": 1}", Ok("{\"a\":1}"));
        check("artifact_ref", "agent:x", Ok("\"agent:x\""));
        check("artifact_ref", "x", Err("match"));
        check("any", "plain", Ok("\"plain\""));
        check("any", "3", Ok("3"));
    }

    #[test]
    fn python_converts_text_from_any_source() {
        let check = |ty: &str, json: &str, expected: Option<&str>| {
            let value: Value = serde_json::from_str(json).expect("JSON");
            let ty = Type::parse(ty).expect("a type");
            let converted = convert_as_python(&Given::Value(value), &ty).ok();
            let shown = converted.map(|value| value.to_json_text().expect("no secret"));
            assert_eq!(shown.as_deref(), expected, "{ty} {json}");
        };
        check("string", "\" a \"", Some("\" a \""));
        check("string", "5", None);
        check("number", "\" 7 \"", Some("7"));
        check("number", "\"1_000\"", Some("1000"));
        check("number", "\"9007199254740993\"", Some("9007199254740993"));
        check("number", "\"9007199254740993.0\"", Some("9007199254740992"));
        check("number", "\"3.0\"", Some("3"));
        check("number", "\"-0.0\"", Some("0"));
        check("number", "\"1e3\"", Some("1000"));
        check("number", "\"2.50\"", Some("2.5"));
        check("number", "3.0", Some("3"));
        for bad in ["true", "\"\"", "\"abc\"", "\"0x10\"", "\"inf\"", "\"nan\"", "\"1__0\"", "\"_1\"", "[1]"]
        {
            check("number", bad, None);
        }
        check("boolean", "\"YES\"", Some("true"));
        check("boolean", "\"0\"", Some("false"));
        check("boolean", "true", Some("true"));
        for bad in ["\"\"", "\"maybe\"", "0", "1"] {
            check("boolean", bad, None);
        }
    }

    #[test]
    fn choices_are_compared_by_the_rules_of_the_dialect() {
        let check = |semantics: &Semantics, text: &str, expected: bool| {
            let parameter = Parameter {
                ty: Type::Number,
                required: false,
                default: None,
                choices: vec![Value::Int(1), Value::Float(2.5)],
                description: None,
                span: crate::source::Span::default(),
            };
            assert_eq!(parameter.accept(&Given::Text(text.into()), semantics).is_ok(), expected, "{text}");
        };
        check(&Semantics::SPECKIT, "2.50", true);
        check(&Semantics::SPECKIT, "1.0", true);
        check(&Semantics::SPECKIT, "2", false);
        check(&Semantics::HOUSE, "1", true);
        check(&Semantics::HOUSE, "3", false);
    }
}
