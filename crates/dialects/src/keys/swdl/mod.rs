//! The keys of swdl at the top of a file: header, configuration, context, ports and policies. What is around a run stands in
//! `around`, the stages in `stages` and `scopes`.

mod around;
mod scopes;
mod stages;

use super::{Block, COUNT, Form, Key, Language, NOTHING, Rule, Shape, TEXTS, WORD, block, key};

pub const LANGUAGE: Language = Language {
    name: "swdl",
    title: "Windlass workflow (swdl)",
    about: "the house dialect: `WORKFLOW.yaml`, `WORKFLOW.yml` or `WORKFLOW.json`, a graph of stages with contracts and gates",
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
const VARIABLE: Form =
    Form { what: "a name of a variable", pattern: "^[A-Za-z_][A-Za-z0-9_]*$", example: "NAME", also: WORD };
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
/// A bound on time that can be lifted.
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
    what: "artifact such as `agent:name`",
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
        "the top of a workflow file",
        &[
            key("workflow", Shape::Block("workflow"), "who this is").required(),
            key("config", Shape::Block("config"), "parameters, time, environment, secrets, limits"),
            key("context", Shape::Block("global_context"), "modules and memories for every agent"),
            key("triggers", Shape::List(&Shape::Block("trigger")), "what starts runs by itself"),
            key("stages", STAGE_LIST, "the work").required(),
            key("outputs", Shape::Named(NAME, &Shape::Block("computed_output")), "what a run gives back"),
            key("output", Shape::Block("computed_output"), "what a run gives back, as one value"),
            key("error_policy", Shape::Block("default_policy"), "what holds for stages that say nothing"),
            key("hooks", Shape::Block("hooks"), "what is done around a run"),
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
            key("requires", Shape::Map(&Shape::Any), "what the author says is needed; advice only"),
            key("ui", Shape::Any, "whatever an editor keeps there; never looked into"),
        ],
    ),
    block(
        "config",
        "what holds for a whole run, `config`",
        &[
            key(
                "semantics",
                Shape::Words(&["house", "speckit", "dagnats", "dcc"]),
                "whose rules hold for expressions, names and bounds",
            )
            .default("house"),
            key("parameters", Shape::Named(NAME, &Shape::Block("parameter")), "what a run is started with"),
            key("input", Shape::Block("whole_input"), "a run is started with one value of this type"),
            key("timeout", TIMEOUT, "bounds the run; time spent waiting at gates does not count")
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
            key("priority", Shape::Block("priority"), "which waiting run starts first"),
            key("singleton", Shape::Block("singleton"), "one run at a time"),
            key("sticky", Shape::Words(&["soft", "hard"]), "one worker does all the work of a run"),
            key("cancel_on", Shape::List(&Shape::Block("cancel_on")), "messages that cancel the run"),
            key("start_key", Shape::TextTemplate, "a start with the value of an earlier one is that run"),
            key("compensate_on_cancel", Shape::Boolean, "whether a cancelled run is undone too")
                .default("false"),
        ],
    ),
    block("whole_input", "what a run is started with, `config.input`", &[TYPE_KEY, SCHEMA_KEY])
        .rules(&[SCHEMA_OR_TYPE]),
    block(
        "priority",
        "which waiting run starts first, `config.priority`",
        &[
            key("key", Shape::TextTemplate, "what the offset goes by").required(),
            key("offsets", Shape::Map(&SECONDS), "seconds by which a run of each value is taken for older"),
            key("default", SECONDS, "seconds for every other value").default("0"),
        ],
    ),
    block(
        "singleton",
        "one run at a time, `config.singleton`",
        &[
            key("on_conflict", Shape::Words(&["skip", "cancel"]), "skip the new run, or cancel the old one")
                .default("skip"),
            key("key", Shape::TextTemplate, "runs are counted apart for each value of it"),
        ],
    ),
    block(
        "cancel_on",
        "a message that cancels the run",
        &[
            key("message", Shape::Text, "its name").required(),
            key("match", Shape::Map(&Shape::Template), "values it must carry"),
            key("timeout", DURATION, "how long it is listened for").otherwise("as long as the run"),
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
            key(
                "agents",
                Shape::Either(&[LIMIT, Shape::Words(&["unlimited"])]),
                "agent stages of one run at once",
            )
            .otherwise("`per_run`, else 3"),
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
            key("choices", Shape::List(&Shape::Any), "the values allowed").example(r#"["small", "large"]"#),
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
            key("source", Shape::Template, "the value").warned("the work itself gives the value"),
            key("required", Shape::Boolean, "whether null is a failure").default("true"),
            key("default", Shape::Any, "the value of a stage that was skipped or failed"),
            DESCRIPTION,
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
            key("choices", Shape::List(&Shape::Any), "the values to choose from")
                .example(r#"["small", "large"]"#),
            DESCRIPTION,
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
            key("initial_interval", PAUSE, "delay after the first attempt").default("30s"),
            key("backoff", Shape::Words(&["fixed", "linear", "exponential"]), "how delays grow")
                .default("exponential"),
            key("backoff_multiplier", Shape::Positive, "each delay is so many times the one before")
                .default("2.0"),
            key("min_interval", PAUSE, "shortest delay").default("0s"),
            key("max_interval", PAUSE, "longest delay").default("5m"),
            key("jitter", Shape::Share, "share by which delays vary").default("0"),
            key("spread", Shape::Words(&["above", "around"]), "on which side of the delay they vary")
                .default("above"),
            key("retryable_errors", TEXTS, "the only classes tried again")
                .otherwise("all")
                .example(r#"["timeout"]"#),
            key("non_retryable_errors", TEXTS, "classes never tried again").example(r#"["merge_conflict"]"#),
            key("when", Shape::Condition, "tried again only if it holds for the failed attempt")
                .otherwise("always")
                .example("attempt < 3"),
            key(
                "retry_after",
                Shape::Either(&[Shape::Words(&["at_least"]), Shape::Block("retry_after")]),
                "what it means when a failure says how long to wait: at least that, or that within bounds",
            )
            .default("at_least"),
        ],
    ),
    block(
        "retry_after",
        "between which bounds a wait that the failure asks for takes the place of the delay",
        &[key("min", PAUSE, "the shortest").default("0s"), key("max", DURATION, "the longest").default("1h")],
    ),
    block(
        "attempts_policy",
        "the `error_policy` of a stage that is attempted, and of a fan-out",
        &[
            RETRY,
            key("timeout", TIMEOUT, "bounds one attempt; for a fan-out the whole")
                .otherwise("`30m`; none for a fan-out"),
            ON_FAILURE,
        ],
    ),
    block(
        "scope_policy",
        "the `error_policy` of a loop or a branch",
        &[
            RETRY.warned("the stages inside are tried again, not the whole"),
            key("timeout", TIMEOUT, "bounds the whole").otherwise("none"),
            ON_FAILURE,
        ],
    ),
    block(
        "failure_policy",
        "the `error_policy` of a gate, a wait, an assignment or a finish",
        &[
            RETRY.warned("nothing is attempted"),
            key("timeout", DURATION, "bounds one attempt").warned("gates and waits have their own"),
            ON_FAILURE,
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
    block(
        "rate_limit",
        "how often a stage starts, over all runs",
        &[
            key("limit", LIMIT, "units in each period").required(),
            key("per", DURATION, "how long a period is").required().example("1m"),
            key("key", Shape::TextTemplate, "starts are counted apart for each value of it"),
            key("units", LIMIT, "what one start counts").default("1"),
        ],
    ),
];
