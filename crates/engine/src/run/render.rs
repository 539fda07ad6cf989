//! Jobs with all expressions rendered.

use super::Turn;
use super::state::Place;
use super::values::{Sight, check_size, expression_error};
use crate::event::{Assignment, IdempotencyKey};
use crate::input::Lineage;
use crate::job::{AssistantAsk, AssistantWork, Request, RequestAuth, RequestBody, Work};
use crate::outcome::Failure;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::text_form;
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::{Bindings, Idempotency, IdempotencyScope};
use windlass_ir::value::{Map, Sealable, VALUE_BYTES_MAX};
use windlass_ir::workflow::{Action, Ask, Assistant, Bound, Http, HttpAuth, HttpBody};

impl Turn<'_> {
    /// Everything that an attempt of a step receives.
    pub(super) fn assignment(
        &self,
        place: Place,
        step: &PlanStep,
        action: &Action,
    ) -> Result<Assignment, Failure> {
        let sight = self.sight(Some(place))?;
        let input = sight.inputs(step)?;
        let work = self.work(place, action, &sight)?;
        let env = variables(&sight.env);
        let own = step.policy.idempotency.as_ref().filter(|key| key.scope == IdempotencyScope::Run);
        let key = own.map(|key| idempotency_key(&sight, key)).transpose()?;
        let claims = self.claims(step, action, &sight)?;
        Ok(Assignment { input, work, env, key, claims })
    }

    fn work(&self, place: Place, action: &Action, sight: &Sight<'_>) -> Result<Work, Failure> {
        let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
        Ok(match action {
            Action::Agent(agent) => Work::Agent {
                artifact: agent.artifact.clone(),
                model: agent.model.clone(),
                instructions: sight.optional(agent.instructions.as_ref())?,
                tools: agent.tools.clone(),
                modules: agent.modules.clone(),
                handoff: agent.handoff.format,
            },
            Action::Shell(shell) => Work::Shell {
                command: sight.value(&shell.run)?,
                cwd: sight.optional(shell.cwd.as_ref())?,
                stdin: sight.optional(shell.stdin.as_ref())?.map(Sealable),
                output: shell.output,
                shell: shell.shell.clone(),
            },
            Action::Tool(tool) => Work::Tool {
                tool: tool.tool.clone(),
                server: tool.server.clone(),
                args: Sealable(or_null(sight.optional(tool.args.as_ref())?)),
            },
            Action::Task(task) => Work::Task {
                task: task.task.clone(),
                group: task.group.clone(),
                input: or_null(sight.optional(task.input.as_ref())?),
                metadata: task.metadata.clone(),
                capabilities: task.capabilities.clone(),
            },
            Action::Http(http) => Work::Http(Box::new(request(http, sight)?)),
            Action::Call(call) => Work::Call {
                workflow: sight.value(&call.workflow)?,
                input: or_null(sight.optional(call.input.as_ref())?),
                mode: call.mode,
                lineage: Lineage(self.lineage(place)),
            },
            Action::Assistant(assistant) => Work::Assistant(Box::new(assistance(assistant, sight)?)),
            Action::Builtin(builtin) => {
                Work::Builtin { what: builtin.what, args: object(sight, &builtin.args)? }
            }
        })
    }
}

/// An environment as the variables of a process.
pub fn variables(env: &Value) -> IndexMap<Arc<str>, Sealable> {
    match env {
        Value::Map(map) => map.iter().map(|(name, value)| (name.clone(), Sealable(value.clone()))).collect(),
        _ => IndexMap::new(),
    }
}

pub fn bindings(sight: &Sight<'_>, bindings: &Bindings) -> Result<Map, Failure> {
    let values = bindings.iter().map(|(name, bound)| Ok((name.clone(), sight.value(bound)?)));
    let values: Arc<Map> = Arc::new(values.collect::<Result<_, Failure>>()?);
    let names = || values.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    check_size(names, &Value::Map(values.clone()), VALUE_BYTES_MAX)?;
    Ok(Arc::unwrap_or_clone(values))
}

fn object(sight: &Sight<'_>, named: &Bindings) -> Result<Value, Failure> {
    Ok(Value::Map(Arc::new(bindings(sight, named)?)))
}

fn idempotency_key(sight: &Sight<'_>, idempotency: &Idempotency) -> Result<IdempotencyKey, Failure> {
    Ok(IdempotencyKey { key: text(sight, &idempotency.key)?, ttl: idempotency.ttl })
}

/// The value of an expression as text.
pub fn text(sight: &Sight<'_>, bound: &Bound) -> Result<Arc<str>, Failure> {
    let value = sight.value(bound)?;
    text_form(&value, &sight.program().plan.semantics).map_err(|error| expression_error(&error, &bound.field))
}

fn request(http: &Http, sight: &Sight<'_>) -> Result<Request, Failure> {
    let body = match &http.body {
        HttpBody::Empty => RequestBody::Empty,
        HttpBody::Json(body) => RequestBody::Json(Sealable(sight.value(body)?)),
        HttpBody::Form(fields) => RequestBody::Form(Sealable(object(sight, fields)?)),
        HttpBody::Text(body) => RequestBody::Text(Sealable(sight.value(body)?)),
    };
    let auth = match &http.auth {
        None => None,
        Some(HttpAuth::Bearer(token)) => Some(RequestAuth::Bearer(Sealable(sight.value(token)?))),
        Some(HttpAuth::Basic { user, password }) => Some(RequestAuth::Basic {
            user: Sealable(sight.value(user)?),
            password: Sealable(sight.value(password)?),
        }),
    };
    Ok(Request {
        method: http.method.clone(),
        url: Sealable(sight.value(&http.url)?),
        headers: Sealable(object(sight, &http.headers)?),
        query: Sealable(object(sight, &http.query)?),
        body,
        auth,
        expect: http.expect.clone(),
    })
}

fn assistance(assistant: &Assistant, sight: &Sight<'_>) -> Result<AssistantWork, Failure> {
    let ask = match &assistant.ask {
        Ask::Prompt(prompt) => AssistantAsk::Prompt(sight.value(prompt)?),
        Ask::Command { command, input, arguments, settings } => AssistantAsk::Command {
            command: command.clone(),
            input: object(sight, input)?,
            arguments: arguments.iter().map(|argument| sight.value(argument)).collect::<Result<_, _>>()?,
            settings: object(sight, settings)?,
        },
    };
    Ok(AssistantWork {
        ask,
        integration: sight.optional(assistant.integration.as_ref())?,
        model: sight.optional(assistant.model.as_ref())?,
        options: assistant.options.clone(),
        capture: assistant.capture,
    })
}
