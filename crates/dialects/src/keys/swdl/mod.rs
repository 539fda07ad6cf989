//! The top-level keys of swdl: header, configuration, context, ports and policies. The keys around a run are in
//! `around`, the stages in `stages` and `scopes`.

mod around;
mod scopes;
mod stages;

use super::{Block, COUNT, Form, Key, Language, NO_MEMORIES, NOTHING, Rule, Shape, TEXTS, WORD, block, key};

pub const LANGUAGE: Language = Language {
    name: "swdl",
    title: "Windlass workflow (swdl)",
    about: "the native dialect: `WORKFLOW.yaml`, `WORKFLOW.yml` or `WORKFLOW.json`, a graph of stages with \
        contracts and gates",
    opens: "${{",
    any_case: false,
    blocks: &[DOCUMENT, PORTS, POLICIES, around::AROUND, stages::STAGES, scopes::SCOPES],
    foreign: &["speckit", "dagnats", "dcc"],
};

const ID: Shape = Shape::Form(Form {
    what: "kebab-case id",
    pattern: "^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
    example: "ship-it",
    also: WORD,
});
const NAME: Form = Form { what: "a name", pattern: "^[A-Za-z_][A-Za-z0-9_-]*$", example: "name", also: WORD };
const VARIABLE: Form = Form {
    what: "name of an environment variable",
    pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
    example: "NAME",
    also: WORD,
};
const VERSION: Shape = Shape::Form(Form {
    what: "version such as `\"1.0.0\"`",
    pattern: r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$",
    example: "1.0.0",
    also: NOTHING,
});
const DURATION: Shape = Shape::Form(Form {
    what: "duration such as `1h30m`",
    pattern: r"^(?=.*[1-9])(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$",
    example: "30s",
    also: NOTHING,
});
/// A timeout that can be turned off.
const TIMEOUT: Shape = Shape::Form(Form {
    what: "duration such as `1h30m`, or `none`",
    pattern: r"^(none|(?=.*[1-9])(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$",
    example: "30s",
    also: NOTHING,
});
/// A duration that may be zero.
const PAUSE: Shape = Shape::Form(Form {
    what: "duration such as `30s`",
    pattern: r"^(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$",
    example: "30s",
    also: NOTHING,
});
/// A duration that may be zero, or an expression.
const LENGTH: Shape = Shape::Form(Form {
    what: "duration such as `10m`, or an expression",
    pattern: r"^(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$|\$\{\{",
    example: "10m",
    also: NOTHING,
});
const ARTIFACT: Shape = Shape::Form(Form {
    what: "agent reference such as `agent:name`",
    pattern: r"^(agent|skill|mcp|command):\s*\S",
    example: "agent:reviewer",
    also: NOTHING,
});
const MODULE: Shape = Shape::Form(Form {
    what: "module such as `ctx:name`",
    pattern: r"^ctx:\s*\S",
    example: "ctx:house-rules",
    also: NOTHING,
});
const TYPE: Shape = Shape::Form(Form {
    what: "`string`, `number`, `integer`, `boolean`, `object`, `artifact_ref`, `memory_item`, `context_module`, `any` or `array<T>`",
    pattern: r"^\s*(array\s*<\s*)*(string|number|integer|boolean|object|artifact_ref|memory_item|context_module|any)(\s*>)*\s*$",
    example: "string",
    also: NOTHING,
});
const LIMIT: Shape = Shape::Integer { min: 1, max: u32::MAX as i64 };
const ENV: Shape = Shape::Named(VARIABLE, &Shape::Template);
const SECONDS: Shape = Shape::Integer { min: i32::MIN as i64, max: i32::MAX as i64 };
const STAGE_LIST: Shape = Shape::Several(&Shape::Block("stage"));

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of a workflow file",
        &[
            key("workflow", Shape::Block("workflow"), "metadata").required(),
            key("config", Shape::Block("config"), "parameters, timeout, environment, secrets, limits"),
            key("context", Shape::Block("global_context"), "modules and memories for every agent"),
            key("triggers", Shape::List(&Shape::Block("trigger")), "triggers that start runs"),
            key("stages", STAGE_LIST, "the stages").required(),
            key("outputs", Shape::Named(NAME, &Shape::Block("computed_output")), "outputs of a run"),
            key("output", Shape::Block("computed_output"), "result of a run, as a single value"),
            key("error_policy", Shape::Block("default_policy"), "defaults for stages"),
            key("hooks", Shape::Block("hooks"), "actions around a run"),
        ],
    ),
    block(
        "workflow",
        "the header, `workflow`",
        &[
            key("id", ID, "identifies the workflow").required(),
            key("name", Shape::Text, "for people").required().example("Ship it"),
            key("version", VERSION, "three numbers, optionally with a pre-release and a build part")
                .default("1.0.0"),
            key("description", Shape::Text, "for people"),
            key("author", Shape::Text, "for people"),
            key("tags", TEXTS, "for people").example(r#"["release"]"#),
            key("requires", Shape::Map(&Shape::Any), "requirements stated by the author; not checked"),
            key("ui", Shape::Any, "data of editors; ignored"),
        ],
    ),
    block(
        "config",
        "settings of a whole run, `config`",
        &[
            key(
                "semantics",
                Shape::Words(&["house", "speckit", "dagnats", "dcc"]),
                "the dialect whose rules apply to expressions, names and limits",
            )
            .default("house"),
            key("parameters", Shape::Named(NAME, &Shape::Block("parameter")), "inputs of a run"),
            key("input", Shape::Block("whole_input"), "a run takes a single value of this type"),
            key("timeout", TIMEOUT, "timeout of the run; time spent waiting at gates does not count")
                .default("2h"),
            key("env", ENV, "environment of every stage, evaluated once at the start"),
            key("secrets", Shape::List(&Shape::Form(NAME)), "names that can be read as `secrets.NAME`")
                .example(r#"["API_TOKEN"]"#),
            key("budget", Shape::Block("budget"), "limits on what a run may spend").otherwise("no limits"),
            key(
                "concurrency",
                Shape::Either(&[LIMIT, Shape::Block("concurrency")]),
                "concurrent stages of a run, as a number, or limits on stages and runs",
            )
            .otherwise("3 agent stages"),
            key("priority", Shape::Block("priority"), "which waiting run starts first"),
            key("singleton", Shape::Block("singleton"), "one run at a time"),
            key("sticky", Shape::Words(&["soft", "hard"]), "one worker does all the work of a run"),
            key("cancel_on", Shape::List(&Shape::Block("cancel_on")), "messages that cancel the run"),
            key(
                "start_key",
                Shape::TextTemplate,
                "a start with the value of an earlier run returns that run",
            ),
            key("compensate_on_cancel", Shape::Boolean, "whether a canceled run is undone as well")
                .default("false"),
        ],
    ),
    block("whole_input", "inputs of a run, `config.input`", &[TYPE_KEY, SCHEMA_KEY]).rules(&[SCHEMA_OR_TYPE]),
    block(
        "priority",
        "which waiting run starts first, `config.priority`",
        &[
            key("key", Shape::TextTemplate, "the value that determines the offset").required(),
            key("offsets", Shape::Map(&SECONDS), "seconds by which a run with each value counts as older"),
            key("default", SECONDS, "seconds for every other value").default("0"),
        ],
    ),
    block(
        "singleton",
        "one run at a time, `config.singleton`",
        &[
            key("on_conflict", Shape::Words(&["skip", "cancel"]), "skip the new run, or cancel the old one")
                .default("skip"),
            key("key", Shape::TextTemplate, "each of its values is limited separately"),
        ],
    ),
    block(
        "cancel_on",
        "a message that cancels the run",
        &[
            key("message", Shape::Text, "its name").required(),
            key("match", Shape::Map(&Shape::Template), "required values in the message"),
            key("timeout", DURATION, "how long to listen for it").otherwise("as long as the run"),
        ],
    ),
    block(
        "budget",
        "limits of a run, `config.budget`",
        &[
            key("tokens", COUNT, "model tokens"),
            key("usd", Shape::Positive, "money"),
            key("calls", COUNT, "model calls"),
            key("time", DURATION, "working time of agents"),
        ],
    ),
    block(
        "concurrency",
        "limits, `config.concurrency`",
        &[
            key("per_run", LIMIT, "concurrent stages of one run, of any type")
                .otherwise("3 agent stages, others unlimited"),
            key(
                "agents",
                Shape::Either(&[LIMIT, Shape::Words(&["unlimited"])]),
                "concurrent agent stages of one run",
            )
            .otherwise("`per_run`, else 3"),
            key("per_workflow", LIMIT, "concurrent runs of this workflow").otherwise("unlimited"),
            key("key", Shape::TextTemplate, "each of its values is limited separately")
                .beside("per_workflow"),
        ],
    )
    .rules(&[Rule::Needs("key", "per_workflow")]),
    block(
        "global_context",
        "context of every agent, `context`",
        &[
            key("global_modules", Shape::List(&MODULE), "modules for every agent"),
            key("memory", Shape::Block("memory"), "memories for every agent").not_yet(NO_MEMORIES),
        ],
    ),
    block(
        "memory",
        "memories that an agent receives",
        &[
            key("project_scope", Shape::Text, "`current`, or the id of a project").default("current"),
            key("min_confidence", Shape::Share, "minimum confidence of a memory").default("0.7"),
            key("categories", TEXTS, "kinds of memories").otherwise("all"),
            key("max_tokens", COUNT, "maximum number of tokens of memories").default("2000"),
        ],
    ),
];

const SCHEMA_OR_TYPE: Rule = Rule::AtMostOneOf(&["type", "schema"]);
const TYPE_KEY: Key = key("type", TYPE, "type of the values").otherwise("anything");
const SCHEMA_KEY: Key =
    key("schema", Shape::Schema, "JSON Schema of the values").example(r#"{"type": "object"}"#);
const DESCRIPTION: Key = key("description", Shape::Text, "for people");

const PORTS: &[Block] = &[
    block(
        "parameter",
        "a parameter, under `config.parameters`",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("required", Shape::Boolean, "whether it is required").default("false"),
            key("default", Shape::Any, "the default value"),
            key("choices", Shape::List(&Shape::Any), "the allowed values").example(r#"["small", "large"]"#),
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
        "an output that the work itself produces",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("source", Shape::Template, "the value").warned("the work itself provides the value"),
            key("required", Shape::Boolean, "whether null is a failure").default("true"),
            key("default", Shape::Any, "the value if the stage was skipped or failed"),
            DESCRIPTION,
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
    block(
        "computed_output",
        "a computed output of the workflow, a loop or a branch",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("source", Shape::Template, "the value").required(),
            key("required", Shape::Boolean, "whether null is a failure").default("true"),
            key("default", Shape::Any, "the value if there is none"),
            DESCRIPTION,
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
    block(
        "form_field",
        "a field that the approver fills in",
        &[
            TYPE_KEY,
            SCHEMA_KEY,
            key("required", Shape::Boolean, "whether it is required").default("true"),
            key("default", Shape::Any, "the value if it is left empty"),
            key("choices", Shape::List(&Shape::Any), "the options").example(r#"["small", "large"]"#),
            DESCRIPTION,
        ],
    )
    .rules(&[SCHEMA_OR_TYPE]),
];

const ON_FAILURE: Key = key(
    "on_failure",
    Shape::Either(&[Shape::Words(&["halt", "continue", "skip_dependents"]), Shape::Block("goto")]),
    "effect of a failure on the run",
)
.otherwise("`on_stage_failure` of the file")
.example("continue");
const RETRY: Key = key("retry", Shape::Block("retry"), "when to retry")
    .otherwise("`default_retry` of the file, field by field");

const POLICIES: &[Block] = &[
    block(
        "default_policy",
        "the `error_policy` of the file",
        &[
            key("default_retry", Shape::Block("retry"), "default retry policy, field by field"),
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
            key(
                "max_attempts",
                Shape::Integer { min: 1, max: 1000 },
                "total number of attempts; without any retry policy, a `shell` stage makes one",
            )
            .default("2"),
            key("initial_interval", PAUSE, "delay after the first attempt").default("30s"),
            key("backoff", Shape::Words(&["fixed", "linear", "exponential"]), "how delays grow")
                .default("exponential"),
            key("backoff_multiplier", Shape::Positive, "factor between consecutive delays").default("2.0"),
            key("min_interval", PAUSE, "shortest delay").default("0s"),
            key("max_interval", PAUSE, "longest delay").default("5m"),
            key("jitter", Shape::Share, "share by which delays vary").default("0"),
            key("spread", Shape::Words(&["above", "around"]), "on which side of the delay they vary")
                .default("above"),
            key("retryable_errors", TEXTS, "the only failure classes to retry")
                .otherwise("all")
                .example(r#"["timeout"]"#),
            key("non_retryable_errors", TEXTS, "failure classes never to retry")
                .example(r#"["merge_conflict"]"#),
            key("when", Shape::Condition, "retries only if this holds for the failed attempt")
                .otherwise("always")
                .example("attempt < 3"),
            key(
                "retry_after",
                Shape::Either(&[Shape::Words(&["at_least"]), Shape::Block("retry_after")]),
                "effect of a delay requested by the failure: a minimum, or a replacement within bounds",
            )
            .default("at_least"),
        ],
    ),
    block(
        "retry_after",
        "bounds within which a requested delay replaces the computed one",
        &[
            key("min", PAUSE, "shortest delay").default("0s"),
            key("max", DURATION, "longest delay").default("1h"),
        ],
    ),
    block(
        "attempts_policy",
        "the `error_policy` of a stage with attempts, and of a fan-out",
        &[
            RETRY,
            key("timeout", TIMEOUT, "timeout of one attempt; for a fan-out, of the whole")
                .otherwise("`30m`; none for a fan-out"),
            ON_FAILURE,
        ],
    ),
    block(
        "scope_policy",
        "the `error_policy` of a loop or a branch",
        &[
            RETRY.warned("the stages inside are retried, not the whole"),
            key("timeout", TIMEOUT, "timeout of the whole").otherwise("none"),
            ON_FAILURE,
        ],
    ),
    block(
        "failure_policy",
        "the `error_policy` of a gate, a wait, an assignment or a finish",
        &[
            RETRY.warned("nothing is attempted"),
            key("timeout", DURATION, "timeout of one attempt").warned("gates and waits have their own"),
            ON_FAILURE,
        ],
    ),
    block(
        "goto",
        "a stage that handles the failure of another",
        &[key("goto", Shape::Text, "its id, in the same list").required().example("other")],
    ),
    block(
        "idempotency",
        "when to reuse the outcome of an earlier stage",
        &[
            key("key", Shape::TextTemplate, "identifies equal work").required().example("order-7"),
            key("scope", Shape::Words(&["run", "global"]), "within this run, or across runs").default("run"),
            key("ttl", DURATION, "how long an outcome can be reused").otherwise("forever"),
        ],
    ),
    block(
        "rate_limit",
        "limits how often a stage starts, across all runs",
        &[
            key("limit", LIMIT, "units in each period").required(),
            key("per", DURATION, "length of a period").required().example("1m"),
            key("key", Shape::TextTemplate, "each of its values is limited separately"),
            key("units", LIMIT, "how much one start counts").default("1"),
        ],
    ),
];
