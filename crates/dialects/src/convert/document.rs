//! Writes the top level of a file: metadata, inputs, limits, outputs and triggers.

use super::policy::{Shared, texts};
use super::stage::{self, output, ports, put_type};
use super::values::{any, bindings, command, text};
use super::work;
use super::yaml::{Map, Yaml};
use crate::swdl::defaults;
use windlass_ir::Type;
use windlass_ir::expr::Semantics;
use windlass_ir::policy::{
    Budget, CancelOn, Concurrency, OnConflict, Priority, RunPolicy, Singleton, Sticky,
};
use windlass_ir::trigger::{
    CatchUp, CronSyntax, CronTrigger, Debounce, HttpTrigger, Overlap, SigningSecret, Trigger, TriggerInput,
    TriggerSource,
};
use windlass_ir::workflow::{Header, Hook, HookAction, HookMoment, Parameter, RunInput, Workflow};

pub fn write(workflow: &Workflow) -> Map {
    let shared = Shared::of(workflow);
    let mut top = Map::in_lines();
    top.put("workflow", header(&workflow.header));
    top.put_filled("config", config(workflow, shared.foreign));
    top.put_filled("context", context(&shared));
    top.put_filled("error_policy", shared.error_policy());
    top.put("stages", stage::list(&workflow.steps, &shared));
    top.put_filled("outputs", ports(&workflow.outputs, output));
    top.put_some("output", workflow.result.as_ref().map(output));
    top.put_filled("hooks", hooks(&workflow.hooks));
    top.put_filled("triggers", Yaml::Lines(workflow.triggers.iter().map(|t| trigger(t).into()).collect()));
    top
}

fn header(header: &Header) -> Map {
    let mut map = Map::in_lines();
    map.put("id", &header.id);
    map.put("name", &header.name);
    if !["", defaults::VERSION].contains(&&*header.version) {
        map.put("version", &header.version);
    }
    map.put_some("description", header.description.as_ref());
    map.put_some("author", header.author.as_ref());
    map.put_filled("tags", texts(&header.tags));
    let mut requires = Map::new();
    header.requires.iter().for_each(|(name, value)| requires.put(&**name, value));
    map.put_filled("requires", requires);
    map
}

fn config(workflow: &Workflow, foreign: bool) -> Map {
    let mut map = Map::in_lines();
    let name = Semantics::NAMED.iter().find(|(_, rules)| *rules == workflow.semantics);
    map.put_some("semantics", name.filter(|_| foreign).map(|(name, _)| *name));
    map.put_filled("parameters", ports(&workflow.parameters, parameter));
    if let RunInput::Open(ty) = &workflow.input {
        let mut input = Map::new();
        match ty {
            Type::Any => input.put("type", "any"),
            ty => put_type(ty, &mut input),
        }
        map.put("input", input);
    }
    map.put_filled("env", bindings(&workflow.env));
    map.put_filled("secrets", Yaml::List(workflow.secrets.keys().map(Yaml::from).collect()));
    run_policy(&workflow.policy, foreign, &mut map);
    map
}

fn parameter(parameter: &Parameter) -> Map {
    let mut map = Map::new();
    put_type(&parameter.ty, &mut map);
    if parameter.required {
        map.put("required", true);
    }
    map.put_some("default", parameter.default.as_ref());
    map.put_filled("choices", Yaml::List(parameter.choices.iter().map(Yaml::from).collect()));
    map.put_some("description", parameter.description.as_ref());
    map
}

fn run_policy(policy: &RunPolicy, foreign: bool, map: &mut Map) {
    if policy.timeout != (!foreign).then_some(defaults::RUN_TIMEOUT) {
        map.put("timeout", policy.timeout.map_or(Yaml::from("none"), Yaml::from));
    }
    map.put_some("concurrency", concurrency(&policy.concurrency, foreign));
    map.put_filled("budget", budget(&policy.budget));
    map.put_some("priority", policy.priority.as_ref().map(priority));
    map.put_some("singleton", policy.singleton.as_ref().map(singleton));
    map.put_some("sticky", policy.sticky.map(|sticky| if sticky == Sticky::Soft { "soft" } else { "hard" }));
    map.put_filled("cancel_on", Yaml::List(policy.cancel_on.iter().map(|on| cancel_on(on).into()).collect()));
    map.put_some("start_key", policy.start_key.as_ref().map(text));
    if policy.compensate_on_cancel {
        map.put("compensate_on_cancel", true);
    }
}

/// The short form, a number, applies if only the stages of one run are limited.
fn concurrency(concurrency: &Concurrency, foreign: bool) -> Option<Yaml> {
    let usual = if foreign { u32::MAX } else { defaults::AGENTS_PER_RUN };
    let agents = concurrency.steps_per_run.unwrap_or(usual);
    let mut map = Map::new();
    map.put_some("per_run", concurrency.steps_per_run);
    if concurrency.agents_per_run != agents {
        let count = concurrency.agents_per_run;
        map.put("agents", if count == u32::MAX { Yaml::from("unlimited") } else { count.into() });
    }
    let only_run = concurrency.agents_per_run == agents;
    map.put_some("per_workflow", concurrency.runs_per_workflow);
    map.put_some("key", concurrency.key.as_ref().map(text));
    match concurrency.steps_per_run {
        Some(count) if only_run && concurrency.runs_per_workflow.is_none() && concurrency.key.is_none() => {
            Some(count.into())
        }
        _ => Some(map.into()).filter(|_| *concurrency != unbounded(usual)),
    }
}

fn unbounded(agents_per_run: u32) -> Concurrency {
    Concurrency { agents_per_run, steps_per_run: None, runs_per_workflow: None, key: None }
}

fn budget(budget: &Budget) -> Map {
    let mut map = Map::new();
    map.put_some("tokens", budget.tokens);
    map.put_some("usd", budget.micro_usd.map(|micros| micros as f64 / 1e6));
    map.put_some("calls", budget.calls);
    map.put_some("time", budget.time);
    map
}

fn priority(priority: &Priority) -> Map {
    let mut map = Map::new();
    map.put("key", text(&priority.key));
    let mut offsets = Map::new();
    priority.offsets.iter().for_each(|(name, seconds)| offsets.put(&**name, *seconds));
    map.put_filled("offsets", offsets);
    if priority.default_offset != 0 {
        map.put("default", priority.default_offset);
    }
    map
}

fn singleton(singleton: &Singleton) -> Map {
    let mut map = Map::new();
    map.put("on_conflict", if singleton.on_conflict == OnConflict::Skip { "skip" } else { "cancel" });
    map.put_some("key", singleton.key.as_ref().map(text));
    map
}

fn cancel_on(cancel: &CancelOn) -> Map {
    let mut map = Map::new();
    map.put("message", &cancel.message);
    map.put_filled("match", bindings(&cancel.matching));
    map.put_some("timeout", cancel.timeout);
    map
}

fn context(shared: &Shared) -> Map {
    let mut map = Map::in_lines();
    map.put_filled("global_modules", texts(&shared.modules));
    map.put_some("memory", shared.memory.as_ref().map(work::memory));
    map
}

fn hooks(hooks: &[Hook]) -> Map {
    let mut map = Map::in_lines();
    let moments = [
        ("on_start", HookMoment::Start),
        ("on_complete", HookMoment::Complete),
        ("on_failure", HookMoment::Failure),
    ];
    for (key, moment) in moments {
        let mut actions = Map::new();
        for hook in hooks.iter().filter(|hook| hook.on == moment) {
            match &hook.action {
                HookAction::Notify(whom) => actions.put("notify", text(whom)),
                HookAction::Run(run) => actions.put("run", command(run)),
                HookAction::Webhook(url) => actions.put("webhook", text(url)),
            }
        }
        map.put_filled(key, actions);
    }
    map
}

fn trigger(trigger: &Trigger) -> Map {
    let mut map = Map::in_lines();
    map.put_some("id", trigger.id.as_ref().map(|id| &id.value));
    if !trigger.enabled {
        map.put("enabled", false);
    }
    source(&trigger.source, &mut map);
    match &trigger.input {
        TriggerInput::Parameters(with) => map.put_filled("with", bindings(with)),
        TriggerInput::Whole(input) => map.put("input", any(input)),
        TriggerInput::Envelope => map.put("envelope", true),
    }
    map.put_some("max_concurrent", trigger.runs_max);
    match trigger.overlap {
        Overlap::Skip => {}
        Overlap::Queue => map.put("overlap", "queue"),
        Overlap::Cancel => map.put("overlap", "cancel"),
    }
    map.put_some("debounce", trigger.debounce.as_ref().map(debounce));
    map
}

fn source(source: &TriggerSource, map: &mut Map) {
    match source {
        TriggerSource::Cron(cron) => self::cron(cron, map),
        TriggerSource::Webhook { path, secret } => {
            let mut inner = Map::new();
            inner.put("path", path);
            inner.put_some("secret", secret.as_ref().map(self::secret));
            map.put("webhook", inner);
        }
        TriggerSource::Http(http) => map.put("http", self::http(http)),
        TriggerSource::Message { name } => map.put("message", name),
        TriggerSource::External { kind, config } => {
            let mut inner = Map::new();
            inner.put("kind", kind);
            inner.put("config", config);
            map.put("external", inner);
        }
    }
}

fn cron(cron: &CronTrigger, map: &mut Map) {
    map.put("cron", &cron.pattern.value);
    match cron.syntax {
        CronSyntax::House => {}
        CronSyntax::Posix => map.put("syntax", "posix"),
        CronSyntax::SecondsFirst => map.put("syntax", "seconds_first"),
    }
    map.put_some("timezone", cron.timezone.as_ref());
    map.put_some("jitter", cron.jitter);
    match cron.catch_up {
        CatchUp::None => {}
        CatchUp::Last => map.put("catch_up", "last"),
        CatchUp::All(most) => {
            map.put("catch_up", "all");
            map.put_some("catch_up_max", Some(most).filter(|most| *most != CatchUp::USUAL));
        }
    }
}

fn secret(secret: &SigningSecret) -> Yaml {
    let mut map = Map::new();
    match secret {
        SigningSecret::Declared(name) => return (&name.value).into(),
        SigningSecret::Variable(name) => map.put("env", name),
        SigningSecret::Literal(text) => map.put("literal", text),
    }
    map.into()
}

fn http(http: &HttpTrigger) -> Map {
    let mut map = Map::new();
    map.put("path", &http.path);
    if &*http.method != "POST" {
        map.put("method", &http.method);
    }
    map.put_some("timeout", http.timeout);
    map.put_some("max_body_bytes", http.body_bytes_max);
    map.put_some("secret", http.secret.as_ref().map(secret));
    map.put_some("idempotency_header", http.idempotency_header.as_ref());
    map.put_some("authentication", http.authentication.as_ref());
    map
}

fn debounce(debounce: &Debounce) -> Map {
    let mut map = Map::new();
    map.put("period", debounce.period);
    map.put_some("timeout", debounce.timeout);
    map.put_some("key", debounce.key.as_ref());
    map
}
