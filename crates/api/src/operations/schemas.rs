//! The shape of files, for editors.

use crate::code::Code;
use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_dialects::keys::{self, LANGUAGES};
use windlass_ir::suggest::nearest;

/// Get the JSON Schema of a kind of file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetSchema {
    /// A dialect, `schedules` or `cases`.
    pub kind: String,
    /// Refuse keys that have no effect.
    #[serde(default)]
    pub strict: bool,
}

impl Operation for GetSchema {
    /// A JSON Schema.
    type Reply = serde_json::Map<String, Json>;
    const ABOUT: About = About {
        name: "schemas.get",
        summary: "Get the JSON Schema of a kind of file",
        errors: &[Code::NoSchema],
        http: &[Route::get("/schemas/{kind}")],
        cli: &["schema"],
        ..About::PURE
    };

    fn example() -> Self {
        Self { kind: "swdl".into(), strict: false }
    }
}

impl Perform for GetSchema {
    async fn perform(self, _: &Context) -> Result<Self::Reply, Refusal> {
        let Some(language) = LANGUAGES.into_iter().find(|language| language.name == self.kind) else {
            let refusal =
                Refusal::new(Code::NoSchema, format!("no schema for `{}`", self.kind)).field("kind");
            let names: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
            return Err(match nearest(&self.kind, names.iter().copied()) {
                Some(near) => refusal.help(format!("did you mean `{near}`?")),
                None => refusal.help(format!("use one of {}", names.join(", "))),
            });
        };
        match keys::schema(language, self.strict) {
            Json::Object(schema) => Ok(schema),
            other => Err(Refusal::new(Code::Bug, format!("the schema of `{}` is {other}", self.kind))),
        }
    }
}
