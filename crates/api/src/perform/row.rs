//! Operations with their types erased: what a face needs to offer them.

use super::admit::forbidden;
use super::{Context, Perform, admit};
use crate::code::Code;
use crate::operation::About;
use crate::refusal::Refusal;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value as Json;
use std::pin::Pin;
use std::sync::{LazyLock, OnceLock};
use windlass_ir::suggest::nearest;

type Performed = Pin<Box<dyn Future<Output = Result<Json, Refusal>> + Send>>;

/// An operation.
pub struct Row {
    pub about: About,
    pub request: LazyLock<Schema>,
    pub reply: LazyLock<Schema>,
    pub example: Json,
    validator: OnceLock<jsonschema::Validator>,
    call: fn(Context, Json) -> Performed,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Row {
    /// Performs the operation. The role is checked before the request is read.
    pub async fn call(&self, cx: Context, request: Json) -> Result<Json, Refusal> {
        self.permit(&cx, &request).await?;
        self.check(&request)?;
        (self.call)(cx, request).await
    }

    /// Refuses a caller without the role, and logs the attempt with what is known of the request.
    pub async fn permit(&self, cx: &Context, request: &Json) -> Result<(), Refusal> {
        let Err(refusal) = cx.permit(self.about.role) else { return Ok(()) };
        let known = members(&self.request);
        let mut request = request.clone();
        if let Some(members) = request.as_object_mut() {
            members.retain(|name, _| known.contains(&name.as_str()));
        }
        Err(forbidden(refusal, cx, &self.about, &request).await)
    }

    /// Checks a request against its schema and reports every violation at once.
    pub fn check(&self, request: &Json) -> Result<(), Refusal> {
        unknown_members(&self.request, request)?;
        let validator = match self.validator.get() {
            Some(validator) => validator,
            None => {
                let validator = jsonschema::validator_for(self.request.as_value())
                    .map_err(|error| Refusal::new(Code::Bug, error.to_string()))?;
                self.validator.get_or_init(|| validator)
            }
        };
        let violations: Vec<(String, String)> = validator
            .iter_errors(request)
            .map(|error| (member(&error.instance_path().to_string()), error.to_string()))
            .collect();
        let Some((field, _)) = violations.first() else { return Ok(()) };
        let lines: Vec<String> = violations.iter().map(|(field, what)| format!("{field}: {what}")).collect();
        Err(Refusal::new(Code::BadRequest, lines.join("; ")).field(field.clone()))
    }
}

pub fn row<T: Perform>() -> Row {
    Row {
        about: T::ABOUT,
        request: LazyLock::new(|| schema::<T>(SchemaSettings::draft2020_12().for_deserialize())),
        reply: LazyLock::new(|| schema::<T::Reply>(SchemaSettings::draft2020_12().for_serialize())),
        example: serde_json::to_value(T::example()).unwrap_or_default(),
        validator: OnceLock::new(),
        call: |cx, json| {
            Box::pin(async move {
                let request: T = serde_json::from_value(json)
                    .map_err(|error| Refusal::new(Code::BadRequest, error.to_string()))?;
                let reply = admit(request, &cx).await?;
                serde_json::to_value(reply).map_err(|error| Refusal::new(Code::Bug, error.to_string()))
            })
        },
    }
}

/// The schema of a request is closed: members that it does not have are refused.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    settings.into_generator().into_root_schema_for::<T>()
}

/// A JSON pointer as the dotted path of a member.
fn member(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// The names of the members of an object, also if the schema is a reference to another one.
fn members(schema: &Schema) -> Vec<&str> {
    let whole = schema.as_value();
    let referred = whole["$ref"].as_str().and_then(|place| whole.pointer(place.trim_start_matches('#')));
    let members = referred.unwrap_or(whole)["properties"].as_object();
    members.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn unknown_members(schema: &Schema, json: &Json) -> Result<(), Refusal> {
    let known = members(schema);
    let given = json.as_object().map(|members| members.keys().map(String::as_str).collect::<Vec<_>>());
    let Some(unknown) = given.unwrap_or_default().into_iter().find(|name| !known.contains(name)) else {
        return Ok(());
    };
    let refusal = Refusal::new(Code::UnknownMember, format!("unknown member `{unknown}`")).field(unknown);
    Err(match nearest(unknown, known.iter().copied()) {
        Some(near) => refusal.help(format!("did you mean `{near}`?")),
        None => refusal.help(format!("the members are {}", known.join(", "))),
    })
}
