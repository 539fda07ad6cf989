//! The top of a file: metadata, configuration, context, defaults, hooks, outputs and triggers.

use super::WORDS;
use super::agent::Surroundings;
use super::names::{VARIABLE_RULE, check_id, is_semver, is_variable};
use super::policy::{self, Defaults};
use super::ports::{self, Outputs};
use super::stage::{self, Document};
use super::table::{Context, Place, Table, wrong_shape};
use super::work::command;
use crate::text::{Kind, Node};
use windlass_ir::Code;
use windlass_ir::expr::Semantics;
use windlass_ir::policy::{Budget, Concurrency, RunPolicy};
use windlass_ir::trigger::{CronSyntax, CronTrigger, SigningSecret, Trigger, TriggerInput, TriggerSource};
use windlass_ir::workflow::{Header, Hook, HookAction, HookMoment, RunInput, Words, Workflow};

const VERSION: &str = "1.0.0";
static SWDL_WORDS: Words = WORDS;

pub fn read<'a>(root: &'a Node, context: &'a Context<'a>) -> Option<Workflow> {
    let Kind::Map(map) = &root.kind else {
        context.diagnostics.borrow_mut().push(wrong_shape(root, "a mapping with `workflow` and `stages`"));
        return None;
    };
    let top = Table::new(context, map, root.span, Place::default());
    let header = read_header(&top);
    let config = top.table("config");
    let defaults = Defaults::read(top.table("error_policy").as_ref());
    let around = Surroundings::read(top.table("context").as_ref());
    let document = Document { defaults: &defaults, around: &around };
    let workflow = Workflow {
        words: &SWDL_WORDS,
        semantics: Semantics::HOUSE,
        header,
        parameters: config.as_ref().map(ports::parameters).unwrap_or_default(),
        input: RunInput::Declared,
        secrets: config
            .as_ref()
            .map(policy::read_secrets)
            .unwrap_or_default()
            .into_iter()
            .map(|s| (s.value, s.span))
            .collect(),
        env: config.as_ref().map(|c| c.bindings_named("env", is_variable, VARIABLE_RULE)).unwrap_or_default(),
        policy: run_policy(config.as_ref()),
        steps: read_stages(&top, &document),
        outputs: ports::outputs(&top, Outputs::Computed),
        result: None,
        hooks: read_hooks(&top),
        triggers: read_triggers(&top),
    };
    config.iter().for_each(|config| config.known(&["timeout"]));
    config.iter().for_each(Table::finish_all);
    top.finish_all();
    Some(workflow)
}

fn read_header(top: &Table<'_>) -> Header {
    let Some(table) = top.table("workflow") else {
        top.demand("workflow", "begin with `workflow: {id: my-workflow, name: My workflow}`");
        return Header {
            id: "".into(),
            name: "".into(),
            version: VERSION.into(),
            description: None,
            author: None,
            tags: Vec::new(),
            requires: indexmap::IndexMap::new(),
        };
    };
    let id = table.text("id");
    match &id {
        Some(id) => check_id(&table, "id", id),
        None if !table.has("id") => {
            table.missing("id", "give the workflow an id in kebab-case, such as `ship-it`");
        }
        None => {}
    }
    let name = table.prose("name");
    table.demand("name", "give the workflow a name that people read");
    let version = table.text("version");
    if let Some(version) = version.as_ref().filter(|version| !is_semver(&version.value)) {
        let text = &version.value;
        let padded =
            [format!("{text}.0"), format!("{text}.0.0")].into_iter().find(|padded| is_semver(padded));
        let finding =
            table.error(Code::BadVersion, "version", version.span, format!("`{text}` is no version"));
        let finding = finding
            .reference(&**text)
            .suggest(padded)
            .help("write three numbers, such as \"1.0.0\", in quotes");
        table.report(finding);
    }
    let header = Header {
        id: id.map_or_else(|| "".into(), |id| id.value),
        name: name.unwrap_or_else(|| "".into()),
        version: version.map_or_else(|| VERSION.into(), |version| version.value),
        description: table.prose("description"),
        author: table.prose("author"),
        tags: table.plain_texts("tags"),
        requires: indexmap::IndexMap::new(),
    };
    table.known(&["ui"]);
    table.finish_all();
    header
}

fn read_stages(top: &Table<'_>, document: &Document<'_>) -> Vec<windlass_ir::workflow::Step> {
    let items = top.list("stages");
    top.demand("stages", "add `stages` with at least one stage");
    if items.is_some_and(<[Node]>::is_empty) {
        let span = top.map.get("stages").map_or(top.span, |entry| entry.key.span);
        let finding = top.error(Code::NoStages, "stages", span, "this workflow has no stages");
        top.report(finding.help("add at least one stage"));
    }
    stage::list(items.unwrap_or_default(), &Place::default().child("stages"), document, top.context)
}

fn run_policy(config: Option<&Table<'_>>) -> RunPolicy {
    RunPolicy {
        timeout: match config {
            Some(config) if config.has("timeout") => config.duration("timeout"),
            Some(_) | None => Some(policy::RUN_TIMEOUT),
        },
        concurrency: config.map_or_else(default_concurrency, policy::read_concurrency),
        budget: config.map_or_else(Budget::default, policy::read_budget),
        ..RunPolicy::unlimited()
    }
}

fn default_concurrency() -> Concurrency {
    Concurrency {
        agents_per_run: policy::AGENTS_PER_RUN,
        steps_per_run: None,
        runs_per_workflow: None,
        key: None,
    }
}

/// In the order of the moments and verbs, whatever the order in the file.
fn read_hooks(top: &Table<'_>) -> Vec<Hook> {
    let Some(table) = top.table("hooks") else { return Vec::new() };
    let moments = [
        ("on_start", HookMoment::Start),
        ("on_complete", HookMoment::Complete),
        ("on_failure", HookMoment::Failure),
    ];
    let mut hooks = Vec::new();
    for (key, on) in moments {
        let Some(moment) = table.table(key) else { continue };
        let actions = [
            moment.bound_text("notify").map(HookAction::Notify),
            moment.bound_text("run").map(|run| command(&moment, "run", run)).map(HookAction::Run),
            moment.bound_text("webhook").map(HookAction::Webhook),
        ];
        moment.finish_all();
        hooks.extend(actions.into_iter().flatten().map(|action| Hook { on, action }));
    }
    table.finish_all();
    hooks
}

fn read_triggers(top: &Table<'_>) -> Vec<Trigger> {
    let items = top.list("triggers").unwrap_or_default();
    let listed = items.iter().enumerate();
    listed.filter_map(|(index, node)| read_trigger(top, index, node)).collect()
}

/// One of `cron`, `webhook` and `message`, and the parameters the run is started with.
fn read_trigger(top: &Table<'_>, index: usize, node: &Node) -> Option<Trigger> {
    let table = Table::of(top.context, node, top.place.child(&format!("triggers[{index}]")))?;
    let cron = table.text("cron");
    let timezone = table.text("timezone");
    let webhook = table.table("webhook");
    let message = table.plain_text("message");
    let with = table.bindings("with");
    table.finish_all();
    let given = ["cron", "webhook", "message"].into_iter().filter(|key| table.has(key)).count();
    if given == 0 {
        table.missing("cron", "say what fires it: `cron`, `webhook` or `message`");
        return None;
    }
    if given > 1 {
        let finding = top.error(
            Code::ConflictingKeys,
            &format!("triggers[{index}]"),
            node.span,
            "a trigger has one of `cron`, `webhook` and `message`",
        );
        top.report(finding.help("split it into one trigger for each"));
        return None;
    }
    if let Some(zone) = timezone.as_ref().filter(|_| !table.has("cron")) {
        let finding =
            table.warning(Code::IgnoredKey, "timezone", zone.span, "`timezone` has no effect without `cron`");
        table.report(finding.reference("timezone").help("take it out"));
    } else if let Some(zone) = &timezone {
        table.check_zone("timezone", zone);
    }
    let source = match (cron, webhook, message) {
        (Some(pattern), ..) => {
            table.check_cron("cron", &pattern, CronSyntax::House);
            TriggerSource::Cron(CronTrigger {
                pattern,
                syntax: CronSyntax::House,
                timezone: timezone.map(|zone| zone.value),
                jitter: None,
                backfill: false,
            })
        }
        (None, Some(hook), _) => {
            let path = hook.plain_text("path");
            let secret = hook.text("secret").map(SigningSecret::Declared);
            hook.finish_all();
            if path.is_none() {
                hook.missing("path", "say where the webhook listens: `path: deploys`");
            }
            TriggerSource::Webhook { path: path?, secret }
        }
        (None, None, message) => TriggerSource::Message { name: message? },
    };
    Some(Trigger {
        id: None,
        enabled: true,
        source,
        input: TriggerInput::Parameters(with),
        runs_max: None,
        debounce: None,
        span: node.span,
    })
}
