//! The keys of swdl around the stages: the file, its header, configuration, context, ports, policies, hooks and triggers.

use super::swdl_stages::STAGES;
use super::{Block, COUNT, Form, Key, Language, Rule, Shape, TEXTS, block, key};

pub const LANGUAGE: Language = Language {
    name: "swdl",
    title: "Windlass workflow (swdl)",
    about: "the house dialect: `WORKFLOW.yaml`, `WORKFLOW.yml` or `WORKFLOW.json`, a graph of stages with contracts and gates",
    opens: "${{",
    blocks: &[DOCUMENT, PORTS, POLICIES, AROUND, STAGES],
};

pub(super) const ID: Shape = Shape::Form(Form {
    what: "kebab-case id",
    pattern: "^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
    example: "ship-it",
    is_word: true,
});
pub(super) const NAME: Form =
    Form { what: "a name", pattern: "^[A-Za-z_][A-Za-z0-9_-]*$", example: "name", is_word: true };
pub(super) const VARIABLE: Form = Form {
    what: "a name of a variable",
    pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
    example: "NAME",
    is_word: true,
};
const VERSION: Shape = Shape::Form(Form {
    what: "version such as `\"1.0.0\"`",
    pattern: r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$",
    example: "1.0.0",
    is_word: false,
});
pub(super) const DURATION: Shape = Shape::Form(Form {
    what: "duration such as `1h30m`",
    pattern: r"^(?=.*[1-9])(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$",
    example: "30s",
    is_word: false,
});
/// A duration that may be zero, or an expression.
pub(super) const LENGTH: Shape = Shape::Form(Form {
    what: "duration such as `10m`, or an expression",
    pattern: r"^(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$|\$\{\{",
    example: "10m",
    is_word: false,
});
pub(super) const ARTIFACT: Shape = Shape::Form(Form {
    what: "artifact such as `agent:name`",
    pattern: r"^(agent|skill|mcp|command):\s*\S",
    example: "agent:reviewer",
    is_word: false,
});
pub(super) const MODULE: Shape = Shape::Form(Form {
    what: "module such as `ctx:name`",
    pattern: r"^ctx:\s*\S",
    example: "ctx:house-rules",
    is_word: false,
});
const TYPE: Shape = Shape::Form(Form {
    what: "`string`, `number`, `integer`, `boolean`, `object`, `artifact_ref`, `memory_item`, `context_module`, `any` or `array<T>`",
    pattern: r"^\s*(array\s*<\s*)*(string|number|integer|boolean|object|artifact_ref|memory_item|context_module|any)(\s*>)*\s*$",
    example: "string",
    is_word: false,
});
pub(super) const LIMIT: Shape = Shape::Integer { min: 1, max: u32::MAX as i64 };
pub(super) const ENV: Shape = Shape::Named(VARIABLE, &Shape::Template);
pub(super) const STAGE_LIST: Shape = Shape::Several(&Shape::Block("stage"));

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top of a workflow file",
        &[
            key("workflow", Shape::Block("workflow"), "who this is").required(),
            key("config", Shape::Block("config"), "parameters, time, environment, secrets, limits"),
            key("context", Shape::Block("global_context"), "modules and memories for every agent"),
            key("stages", STAGE_LIST, "the work").required(),
            key("error_policy", Shape::Block("default_policy"), "what holds for stages that say nothing"),
            key("outputs", Shape::Named(NAME, &Shape::Block("computed_output")), "what a run gives back"),
            key("hooks", Shape::Block("hooks"), "what is done around a run"),
            key("triggers", Shape::List(&Shape::Block("trigger")), "what starts runs by itself"),
        ],
    ),
    block(
        "workflow",
        "the header, `workflow`",
        &[
            key("id", ID, "identifies the workflow").required(),
            key("name", Shape::Text, "for people").required().example("Ship it"),
            key("version", VERSION, "three numbers, optionally a pre-release and a build part")
                .default("1.0.0"),
            key("description", Shape::Text, "for people"),
            key("author", Shape::Text, "for people"),
            key("tags", TEXTS, "for people").example(r#"["release"]"#),
            key("ui", Shape::Any, "whatever an editor keeps there; never looked into"),
        ],
    ),
    block(
        "config",
        "what holds for a whole run, `config`",
        &[
            key("parameters", Shape::Named(NAME, &Shape::Block("parameter")), "what a run is started with"),
            key("timeout", DURATION, "bounds the run; time spent waiting at gates does not count")
                .default("2h"),
            key("env", ENV, "environment of every stage, evaluated once at the start"),
            key("secrets", Shape::List(&Shape::Form(NAME)), "names that may be read as `secrets.NAME`")
                .example(r#"["API_TOKEN"]"#),
            key("budget", Shape::Block("budget"), "caps on what a run may spend").otherwise("no caps"),
            key(
                "concurrency",
                Shape::Either(&[LIMIT, Shape::Block("concurrency")]),
                "stages of a run at once, as a number, or limits on stages and runs",
            )
            .otherwise("3 agent stages"),
        ],
    ),
    block(
        "budget",
        "caps of a run, `config.budget`",
        &[
            key("tokens", COUNT, "tokens of models"),
            key("usd", Shape::Positive, "money"),
            key("calls", COUNT, "calls of models"),
            key("time", DURATION, "time of agents"),
        ],
    ),
    block(
        "concurrency",
        "limits, `config.concurrency`",
        &[
            key("per_run", LIMIT, "stages of one run at once, of any type")
                .otherwise("agent stages 3, others unlimited"),
            key("per_workflow", LIMIT, "runs of this workflow at once").otherwise("unlimited"),
            key("key", Shape::TextTemplate, "runs are counted apart for each value of it")
                .beside("per_workflow"),
        ],
    )
    .rules(&[Rule::Needs("key", "per_workflow")]),
    block(
        "global_context",
        "what every agent is given, `context`",
        &[
            key("global_modules", Shape::List(&MODULE), "modules given to every agent"),
            key("memory", Shape::Block("memory"), "which memories every agent is given"),
        ],
    ),
    block(
        "memory",
        "which memories an agent is given",
        &[
            key("project_scope", Shape::Text, "`current`, or the id of a project").default("current"),
            key("min_confidence", Shape::Share, "how sure a memory must be").default("0.7"),
            key("categories", TEXTS, "kinds of memories").otherwise("all"),
            key("max_tokens", COUNT, "at most so many tokens of memories").default("2000"),
        ],
    ),
];

const SCHEMA_OR_TYPE: Rule = Rule::AtMostOneOf(&["type", "schema"]);
const TYPE_KEY: Key = key("type", TYPE, "what values look like").otherwise("anything");
const SCHEMA_KEY: Key =
    key("schema", Shape::Schema, "what values look like, as a JSON Schema").example(r#"{"type": "object"}"#);
const DESCRIPTION: Key = key("description", Shape::Text, "for people");

const PORTS: &[Block] = &[
    block(
        "parameter",
        "a parameter, under `config.parameters`",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("required", Shape::Boolean, "whether it must be given").default("false"),
            key("default", Shape::Any, "the value when it is not given"),
            DESCRIPTION,
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
    block(
        "input",
        "an input of a stage",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("source", Shape::Template, "the value"),
            key("required", Shape::Boolean, "whether null fails the stage").default("true"),
            DESCRIPTION,
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
    block(
        "output",
        "an output that whoever does the work produces",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("required", Shape::Boolean, "whether null is a failure").default("true"),
            key("default", Shape::Any, "the value of a stage that was skipped or failed"),
            DESCRIPTION,
            key("source", Shape::Template, "the value").warned("the work itself gives the value"),
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
    block(
        "computed_output",
        "an output that is computed: of the workflow, a loop or a branch",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("source", Shape::Template, "the value").required(),
            key("required", Shape::Boolean, "whether null is a failure").default("true"),
            key("default", Shape::Any, "the value when there is none"),
            DESCRIPTION,
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
    block(
        "form_field",
        "a field that the approver at a gate fills in",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("required", Shape::Boolean, "whether it must be filled in").default("true"),
            key("default", Shape::Any, "the value when it is left empty"),
            DESCRIPTION,
            key("choices", Shape::List(&Shape::Any), "the values to choose from")
                .example(r#"["small", "large"]"#),
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
];

const ON_FAILURE: Key = key(
    "on_failure",
    Shape::Either(&[Shape::Words(&["halt", "continue", "skip_dependents"]), Shape::Block("goto")]),
    "what a failure means for the run",
)
.otherwise("`on_stage_failure` of the file")
.example("continue");
const RETRY: Key = key("retry", Shape::Block("retry"), "when it is tried again")
    .otherwise("`default_retry` of the file, field by field");

const POLICIES: &[Block] = &[
    block(
        "default_policy",
        "the `error_policy` of the file",
        &[
            key("default_retry", Shape::Block("retry"), "retry policy for stages that leave something out"),
            key(
                "on_stage_failure",
                Shape::Words(&["halt", "continue", "rollback"]),
                "for stages without `on_failure`",
            )
            .default("halt"),
        ],
    ),
    block(
        "retry",
        "a retry policy",
        &[
            key("max_attempts", Shape::Integer { min: 1, max: 1000 }, "all attempts, the first included")
                .default("2"),
            key("initial_interval", DURATION, "delay after the first attempt").default("30s"),
            key("backoff_multiplier", Shape::Positive, "each delay is so many times the one before")
                .default("2.0"),
            key("max_interval", DURATION, "longest delay").default("5m"),
            key("non_retryable_errors", TEXTS, "classes never tried again").example(r#"["merge_conflict"]"#),
            key("when", Shape::Condition, "tried again only if it holds for the failed attempt")
                .otherwise("always")
                .example("attempt < 3"),
        ],
    ),
    block(
        "attempts_policy",
        "the `error_policy` of a stage that is attempted, and of a fan-out",
        &[
            RETRY,
            key("timeout", DURATION, "bounds one attempt; for a fan-out the whole")
                .otherwise("`30m`; none for a fan-out"),
            ON_FAILURE,
        ],
    ),
    block(
        "scope_policy",
        "the `error_policy` of a loop or a branch",
        &[
            key("timeout", DURATION, "bounds the whole").otherwise("none"),
            ON_FAILURE,
            RETRY.warned("the stages inside are tried again, not the whole"),
        ],
    ),
    block(
        "failure_policy",
        "the `error_policy` of a gate, a wait, an assignment or a finish",
        &[
            ON_FAILURE,
            RETRY.warned("nothing is attempted"),
            key("timeout", DURATION, "bounds one attempt").warned("gates and waits have their own"),
        ],
    ),
    block(
        "goto",
        "a stage that takes over when another fails",
        &[key("goto", Shape::Text, "its id, in the same list").required().example("other")],
    ),
    block(
        "idempotency",
        "when the outcome of an earlier stage is taken over",
        &[
            key("key", Shape::TextTemplate, "equal for equal work").required().example("order-7"),
            key("scope", Shape::Words(&["run", "global"]), "within this run, or across runs").default("run"),
            key("ttl", DURATION, "how long an outcome is kept for this").otherwise("no end"),
        ],
    ),
];

const AROUND: &[Block] = &[
    block(
        "hooks",
        "what is done around a run; it cannot change the result",
        &[
            key("on_start", Shape::Block("hook"), "when the run starts"),
            key("on_complete", Shape::Block("hook"), "when it has succeeded"),
            key("on_failure", Shape::Block("hook"), "when it has failed"),
        ],
    ),
    block(
        "hook",
        "what is done at one moment",
        &[
            key("notify", Shape::TextTemplate, "whom to tell").example("slack:#builds"),
            key("run", Shape::TextTemplate, "a command; values are quoted for the shell"),
            key("webhook", Shape::TextTemplate, "a URL to call").example("https://example.org/done"),
        ],
    ),
    block(
        "trigger",
        "one entry of `triggers`",
        &[
            key("cron", Shape::Text, "minute, hour, day, month, weekday; with six fields seconds come first")
                .example("0 9 * * 1-5"),
            key("webhook", Shape::Block("webhook"), "a POST request"),
            key("message", Shape::Text, "the name of a message"),
            key("timezone", Shape::Text, "a name of the tz database").beside("cron").example("Europe/Berlin"),
            key(
                "with",
                Shape::Map(&Shape::Template),
                "parameters of the run; may read `item`, what fired it",
            )
            .example("{}"),
        ],
    )
    .rules(&[Rule::OneOf(&["cron", "webhook", "message"])]),
    block(
        "webhook",
        "a webhook that starts runs",
        &[
            key("path", Shape::Text, "where it listens").required().example("deploys"),
            key("secret", Shape::Text, "the declared secret that signs it").example("HOOK_SECRET"),
        ],
    ),
];
