//! What a run would do.

use super::source::Opened;
use crate::code::Code;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform, value};
use crate::refusal::Refusal;
use crate::socket::{Needs, Surroundings};
use crate::types::{Diagnostic, Json, Plan, Ref, Severity};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use windlass_ir::plan::{Given, Parameters};
use windlass_ir::workflow::{RunInput, Words};
use windlass_ir::{Sources, Value};
use windlass_runtime::Config;

/// Show what a run would do: the order of its steps, their inputs and their limits. Nothing runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanWorkflow {
    #[serde(flatten)]
    pub of: Ref,
    /// The inputs by name. Some dialects take any value as a whole.
    pub inputs: Option<Json>,
    /// Inputs as text, which Windlass converts to the declared types. They take precedence over `inputs`.
    #[serde(default)]
    pub input_texts: IndexMap<String, String>,
}

impl Operation for PlanWorkflow {
    type Reply = Plan;
    const ABOUT: About = About {
        name: "workflows.plan",
        summary: "Show what a run would do",
        subject: Subject::Workflow,
        errors: &[Code::InvalidWorkflow, Code::BadParameter, Code::MissingParameter],
        http: &[Route::post("/workflows/{id}/plan")],
        cli: &["plan"],
        ..About::PURE
    };

    fn example() -> Self {
        Self { of: super::sample(), inputs: None, input_texts: IndexMap::new() }
    }
}

impl Perform for PlanWorkflow {
    async fn perform(self, cx: &Context) -> Result<Plan, Refusal> {
        let (of, _) = self.of.resolved(cx).await?;
        let file = of.file.clone().filter(|file| file != "-").and_then(|file| std::path::absolute(file).ok());
        let opened = of.open()?;
        let whole = self.inputs.map(value).transpose()?;
        let parameters = parameters(&opened.plan, opened.words, whole, self.input_texts)?;
        Ok(shown(&opened, &parameters, file.as_deref(), &cx.surroundings()))
    }
}

/// What a run with these inputs would do, and what it would miss on this machine.
pub fn shown(opened: &Opened, parameters: &Parameters, file: Option<&Path>, from: &Surroundings) -> Plan {
    let mut diagnostics = opened.diagnostics();
    diagnostics.extend(missing(opened, file, from));
    let from = parameters.values.iter().map(|(name, (_, origin))| (name.to_string(), (*origin).into()));
    Plan {
        outline: opened.plan.outline(opened.words, parameters),
        parameters_from: from.collect(),
        diagnostics,
    }
}

/// What a run would miss on this machine. A plan is not refused because of it.
fn missing(opened: &Opened, file: Option<&Path>, from: &Surroundings) -> Vec<Diagnostic> {
    let around = [Some(from.directory.clone()), file.and_then(Path::parent).map(Path::to_owned)];
    let config = from.config.clone().or_else(|| Config::find(around.into_iter().flatten()));
    let from = Surroundings { config, ..from.clone() };
    let (plan, sources) = (&opened.plan, &opened.loaded.sources);
    let needs = Needs { plan, sources, file, from: &from, runs: &|_| true, to_the_end: true };
    let as_warning = |finding: Diagnostic| Diagnostic { severity: Severity::Warning, ..finding };
    needs.missing().into_iter().map(as_warning).collect()
}

fn described(value: &Value) -> String {
    match value.kind() {
        kind @ ("null" | "text") => kind.to_owned(),
        kind @ "integer" => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

/// The values that a run would start with.
pub fn parameters(
    plan: &windlass_ir::Plan,
    words: &'static Words,
    whole: Option<Value>,
    texts: IndexMap<String, String>,
) -> Result<Parameters, Refusal> {
    let texts = texts.into_iter().map(|(name, text)| (name, Given::Text(text)));
    let parameters = match whole {
        None | Some(Value::Null) => plan.parameters(&texts.collect(), words),
        Some(Value::Map(map)) => {
            let given = map.iter().map(|(name, value)| (name.to_string(), Given::Value(value.clone())));
            plan.parameters(&given.chain(texts).collect(), words)
        }
        Some(whole) if plan.input == RunInput::Declared => {
            let message = format!("the inputs must be an object, not {}", described(&whole));
            return Err(Refusal::new(Code::BadParameter, message).help("write them as {\"name\": value}"));
        }
        Some(whole) if texts.len() == 0 => plan.whole_input(whole, words),
        Some(_) => {
            let message = "the input is not an object, so a single parameter cannot be set in it";
            return Err(Refusal::new(Code::BadParameter, message).help("remove one of the two"));
        }
    };
    parameters.map_err(|findings| {
        let findings = Diagnostic::list(&findings, &Sources::default(), None);
        let missing = Code::MissingParameter.word();
        let is_missing = findings.iter().all(|finding| !finding.is_error() || finding.code == missing);
        Refusal::found(if is_missing { Code::MissingParameter } else { Code::BadParameter }, findings)
    })
}
