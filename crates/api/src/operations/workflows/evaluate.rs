//! The value of a single expression.

use crate::code::Code;
use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Perform, value};
use crate::refusal::Refusal;
use crate::types::{Diagnostic, Dialect, Evaluated, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_dialects::{Question, evaluate};
use windlass_ir::Value;

/// Evaluate one expression.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvaluateExpression {
    pub dialect: Dialect,
    pub expression: String,
    /// An object with the values that the expression can read.
    pub context: Option<Json>,
    /// The result is true or false, as in a condition.
    #[serde(default)]
    pub condition: bool,
    /// Warnings are errors.
    #[serde(default)]
    pub strict: bool,
}

impl Operation for EvaluateExpression {
    type Reply = Evaluated;
    const ABOUT: About = About {
        name: "workflows.evaluate",
        summary: "Evaluate an expression",
        errors: &[Code::ExpressionError],
        http: &[Route::post("/workflows/-/evaluate")],
        cli: &["eval"],
        ..About::PURE
    };

    fn example() -> Self {
        Self {
            dialect: Dialect::Swdl,
            expression: "length(parameters.name) > 2".into(),
            context: Some(serde_json::json!({"parameters": {"name": "login"}})),
            condition: false,
            strict: false,
        }
    }
}

impl Perform for EvaluateExpression {
    async fn perform(self, _: &Context) -> Result<Evaluated, Refusal> {
        let context = self.context.map(value).transpose()?.unwrap_or(Value::Null);
        if !matches!(context, Value::Map(_) | Value::Null) {
            return Err(Refusal::new(Code::BadRequest, "the context must be an object").field("context"));
        }
        let question = Question {
            dialect: self.dialect.into(),
            expression: &self.expression,
            context: &context,
            condition: self.condition,
            strict: self.strict,
        };
        let found = evaluate(&question);
        let diagnostics = Diagnostic::list(&found.diagnostics, &found.sources, None);
        match found.value.and_then(|value| value.to_json()) {
            Some(value) => Ok(Evaluated { value, diagnostics }),
            None => Err(Refusal::found(Code::ExpressionError, diagnostics)),
        }
    }
}
