//! Writes stages that do work themselves: actions, gates, waits, and the early end of a run.

use super::policy::{Shared, number, texts};
use super::stage::{ports, put_type};
use super::values::{any, bindings, command, text};
use super::yaml::{Map, Yaml};
use crate::swdl::defaults;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::Template;
use windlass_ir::workflow::{
    Action, Agent, Ask, Assistant, Bound, Call, CallMode, Finish, FinishStatus, FormField, Gate,
    HandoffFormat, Http, HttpAuth, HttpBody, Interpreter, Memory, OnReject, OnTimeout, Shell, ShellOutput,
    Task, Wait, WaitFor, WaitTimeout,
};
use windlass_ir::{Value, workflow};

/// The `type` of the stage for an action.
pub fn word(action: &Action) -> &'static str {
    match action {
        Action::Agent(_) => "agent",
        Action::Shell(_) => "shell",
        Action::Tool(_) => "tool",
        Action::Task(_) => "task",
        Action::Http(_) => "http",
        Action::Call(_) => "workflow",
        Action::Assistant(_) => "assistant",
        Action::Builtin(_) => "builtin",
    }
}

pub fn action(action: &Action, shared: &Shared, map: &mut Map) {
    match action {
        Action::Agent(agent) => self::agent(agent, shared, map),
        Action::Shell(shell) => self::shell(shell, shared.foreign, map),
        Action::Tool(tool) => {
            map.put("tool", &tool.tool);
            map.put_some("server", tool.server.as_ref());
            map.put_some("args", tool.args.as_ref().map(any));
        }
        Action::Task(task) => self::task(task, map),
        Action::Http(http) => map.put("http", self::http(http)),
        Action::Call(call) => self::call(call, map),
        Action::Assistant(assistant) => map.put("assistant", self::assistant(assistant)),
        Action::Builtin(builtin) => {
            map.put("builtin", builtin.what.word());
            map.put_filled("args", bindings(&builtin.args));
        }
    }
}

fn agent(agent: &Agent, shared: &Shared, map: &mut Map) {
    let mut primary = Map::new();
    primary.put("artifact", &agent.artifact);
    if &*agent.model != defaults::MODEL {
        primary.put("model", &agent.model);
    }
    primary.put_some("instructions", agent.instructions.as_ref().map(text));
    let mut roles = Map::new();
    roles.put("primary", primary);
    roles.put_filled("tools", texts(&agent.tools));
    map.put("roles", roles);
    let mut context = Map::new();
    context.put_filled("modules", texts(&agent.modules[shared.modules.len()..]));
    if agent.memory != shared.memory {
        context.put_some("memory", agent.memory.as_ref().map(memory));
    }
    map.put_filled("context", context);
    map.put_filled("handoff", handoff(&agent.handoff));
}

pub fn memory(memory: &Memory) -> Map {
    let mut map = Map::new();
    map.put("project_scope", &memory.project_scope);
    map.put("min_confidence", number(memory.min_confidence));
    map.put_filled("categories", texts(&memory.categories));
    map.put("max_tokens", memory.max_tokens);
    map
}

fn handoff(handoff: &workflow::Handoff) -> Map {
    let mut map = Map::new();
    match handoff.format {
        HandoffFormat::Structured => {}
        HandoffFormat::Markdown => map.put("format", "markdown"),
        HandoffFormat::Raw => map.put("format", "raw"),
    }
    if handoff.include_run_log {
        map.put("include_run_log", true);
    }
    map.put_some("summary_prompt", handoff.summary_prompt.as_ref().map(text));
    map
}

fn shell(shell: &Shell, foreign: bool, map: &mut Map) {
    map.put("run", command(&shell.run));
    if shell.shell != defaults::usual_shell(&shell.run, foreign) {
        let known = defaults::SHELLS.iter().find(|(_, words)| Interpreter::of(words) == shell.shell);
        map.put("shell", known.map_or_else(|| texts(&shell.shell.0), |(word, _)| Yaml::from(*word)));
    }
    map.put_some("cwd", shell.cwd.as_ref().map(text));
    map.put_some("stdin", shell.stdin.as_ref().map(any));
    if shell.output == ShellOutput::Json {
        map.put("output_format", "json");
    }
}

fn task(task: &Task, map: &mut Map) {
    map.put("task", &task.task);
    map.put_some("group", task.group.as_ref());
    map.put_some("input", task.input.as_ref().map(any));
    map.put_filled("metadata", labels(&task.metadata));
    map.put_filled("capabilities", texts(&task.capabilities));
    if let Some(rounds) = &task.rounds {
        let mut inner = Map::new();
        inner.put("max", rounds.rounds_max);
        inner.put_some("time", rounds.time_max);
        inner.put_some("delay", rounds.delay);
        inner.put_some("warn_at", rounds.warn_at);
        inner.put_some("force_at", rounds.force_at);
        map.put("rounds", inner);
    }
    if let Some(planner) = &task.planner {
        let mut inner = Map::new();
        inner.put("max_stages", planner.steps_max);
        inner.put_some("max_depth", planner.depth_max);
        inner.put_filled("tasks", texts(&planner.tasks_allowed));
        map.put("planner", inner);
    }
}

fn labels(labels: &IndexMap<Arc<str>, Arc<str>>) -> Yaml {
    let mut map = Map::new();
    labels.iter().for_each(|(name, value)| map.put(&**name, value));
    map.into()
}

fn http(http: &Http) -> Map {
    let mut map = Map::new();
    map.put("url", text(&http.url));
    let usual = if http.body == HttpBody::Empty { "GET" } else { "POST" };
    if &*http.method != usual {
        map.put("method", &http.method);
    }
    map.put_filled("headers", bindings(&http.headers));
    map.put_filled("query", bindings(&http.query));
    match &http.body {
        HttpBody::Empty => {}
        HttpBody::Json(body) => map.put("json", any(body)),
        HttpBody::Form(fields) => map.put("form", bindings(fields)),
        HttpBody::Text(body) => map.put("body", text(body)),
    }
    map.put_some("auth", http.auth.as_ref().map(auth));
    map.put_filled("expect", Yaml::List(http.expect.iter().map(|code| Yaml::from(*code)).collect()));
    map
}

fn auth(auth: &HttpAuth) -> Map {
    let mut map = Map::new();
    match auth {
        HttpAuth::Bearer(token) => map.put("bearer", text(token)),
        HttpAuth::Basic { user, password } => {
            let mut basic = Map::new();
            basic.put("user", text(user));
            basic.put("password", text(password));
            map.put("basic", basic);
        }
    }
    map
}

fn call(call: &Call, map: &mut Map) {
    map.put("workflow", text(&call.workflow));
    if let Some(input) = &call.input {
        map.put(if is_map(input) { "with" } else { "input" }, any(input));
    }
    match call.mode {
        CallMode::Child => {}
        CallMode::Detached => map.put("mode", "detached"),
        CallMode::Inline => map.put("mode", "inline"),
    }
}

fn is_map(bound: &Bound) -> bool {
    matches!(bound.template, Template::Map(_) | Template::Constant(Value::Map(_)))
}

fn assistant(assistant: &Assistant) -> Map {
    let mut map = Map::new();
    match &assistant.ask {
        Ask::Prompt(prompt) => map.put("prompt", text(prompt)),
        Ask::Command { command, input, arguments, settings } => {
            map.put("command", command);
            map.put_filled("input", bindings(input));
            map.put_filled("arguments", Yaml::List(arguments.iter().map(argument).collect()));
            map.put_filled("settings", bindings(settings));
        }
    }
    map.put_some("integration", assistant.integration.as_ref().map(text));
    map.put_some("model", assistant.model.as_ref().map(text));
    let mut options = Map::new();
    assistant.options.iter().for_each(|(name, value)| options.put(&**name, value));
    map.put_filled("options", options);
    if let Some(capture) = assistant.capture {
        let mut limit = Map::new();
        limit.put_some("max_bytes", capture.bytes_max);
        map.put("capture", if limit.is_empty() { Yaml::Bool(true) } else { limit.into() });
    }
    map
}

/// In a list, null is an ordinary value.
fn argument(bound: &Bound) -> Yaml {
    match &bound.template {
        Template::Constant(Value::Null) => Yaml::Null,
        _ => any(bound),
    }
}

pub fn gate(gate: &Gate, foreign: bool) -> Map {
    let mut map = Map::new();
    map.put_filled("approvers", texts(&gate.approvers));
    if gate.quorum != 1 {
        map.put("quorum", gate.quorum);
    }
    if !gate.self_approval {
        map.put("self_approval", false);
    }
    if gate.timeout != (!foreign).then_some(defaults::GATE_TIMEOUT) {
        map.put("timeout", gate.timeout.map_or(Yaml::from("none"), Yaml::from));
    }
    match gate.on_timeout {
        OnTimeout::Halt => {}
        OnTimeout::AutoApprove => map.put("on_timeout", "auto_approve"),
        OnTimeout::Reject => map.put("on_timeout", "reject"),
    }
    map.put_some("message", gate.message.as_ref().map(text));
    map.put_some("show_file", gate.show_file.as_ref().map(text));
    if gate.options != Gate::plain().options {
        map.put("options", texts(&gate.options));
    }
    match &gate.on_reject {
        OnReject::Fail => {}
        OnReject::Abort => map.put("on_reject", "abort"),
        OnReject::Skip => map.put("on_reject", "skip"),
        OnReject::Retry => map.put("on_reject", "retry"),
        OnReject::Back { to, times_max } => map.put("on_reject", back(&to.value, *times_max)),
    }
    map.put_some("verdict_input", gate.verdict_input.as_ref().map(|name| &name.value));
    map.put_some("subject", gate.subject.as_ref());
    map.put_filled("metadata", labels(&gate.metadata));
    map.put_filled("form", ports(&gate.form, form_field));
    map
}

fn back(to: &Arc<str>, times_max: u32) -> Map {
    let mut map = Map::new();
    map.put("back_to", to);
    if times_max != defaults::TIMES_BACK {
        map.put("max", times_max);
    }
    map
}

fn form_field(field: &FormField) -> Map {
    let mut map = Map::new();
    put_type(&field.ty, &mut map);
    if !field.required {
        map.put("required", false);
    }
    map.put_some("default", field.default.as_ref());
    map.put_some("description", field.description.as_ref());
    map.put_filled("choices", Yaml::List(field.choices.iter().map(Yaml::from).collect()));
    map
}

pub fn wait(wait: &Wait) -> Map {
    let mut map = Map::new();
    match &wait.what {
        WaitFor::Duration(length) => map.put("for", text(length)),
        WaitFor::Instant(instant) => map.put("until", text(instant)),
        WaitFor::Cron(pattern) => map.put("cron", pattern),
        WaitFor::Signal { name, matching } => {
            map.put("signal", name);
            map.put_filled("match", bindings(matching));
        }
        WaitFor::Message { name, matching } => {
            map.put("message", name);
            map.put_filled("match", bindings(matching));
        }
    }
    map.put_some("timeout", wait.timeout);
    if let WaitTimeout::Done(value) = &wait.on_timeout {
        let mut done = Map::new();
        done.put("value", value);
        map.put("on_timeout", done);
    }
    map
}

pub fn finish(finish: &Finish) -> Map {
    let mut map = Map::new();
    match finish.status {
        FinishStatus::Success => {}
        FinishStatus::Failed => map.put("status", "failed"),
        FinishStatus::Cancelled => map.put("status", "cancelled"),
    }
    map.put_filled("outputs", bindings(&finish.outputs));
    map
}
