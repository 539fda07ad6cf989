//! The keys of the stages of swdl: those of all stages, and those that each type adds.

use super::swdl::{ARTIFACT, DURATION, ENV, ID, LENGTH, LIMIT, MODULE, NAME, STAGE_LIST};
use super::{Block, Form, Key, Rule, Shape, TEXTS, Variants, block, key};

const TYPES: Variants = Variants {
    by: "type",
    default: Some("agent"),
    of: &[
        ("agent", "agent_stage"),
        ("gate", "gate_stage"),
        ("fan_out", "fan_out_stage"),
        ("shell", "shell_stage"),
        ("tool", "tool_stage"),
        ("task", "task_stage"),
        ("http", "http_stage"),
        ("workflow", "workflow_stage"),
        ("loop", "loop_stage"),
        ("branch", "branch_stage"),
        ("wait", "wait_stage"),
        ("assign", "assign_stage"),
        ("finish", "finish_stage"),
    ],
};
const WORDS: &[&str] = &[
    "agent", "gate", "fan_out", "shell", "tool", "task", "http", "workflow", "loop", "branch", "wait",
    "assign", "finish",
];
/// One stage without a name, or a list of stages.
const HANDLER: Shape = Shape::Either(&[Shape::Block("inline_stage"), Shape::List(&Shape::Block("stage"))]);
const HANDLER_EXAMPLE: &str = r#"{"type": "shell", "run": "make clean"}"#;
/// A list, or one expression that gives one.
const AXIS: Shape = Shape::Either(&[
    Shape::List(&Shape::Template),
    Shape::Form(Form {
        what: "one expression",
        pattern: r"^\s*\$\{\{",
        example: "${{ ['a'] }}",
        is_word: false,
    }),
]);
const STATUS_CODE: Shape = Shape::Integer { min: 100, max: 599 };
const BINDINGS: Shape = Shape::Map(&Shape::Template);

const OUTPUTS: Key =
    key("outputs", Shape::Named(NAME, &Shape::Block("output")), "what the work must produce");
const COMPUTED: Key = key(
    "outputs",
    Shape::Named(NAME, &Shape::Block("computed_output")),
    "what can be read of it from outside",
);
const NO_OUTPUTS: Key = OUTPUTS.warned("the type alone says what this stage gives");
const ATTEMPTS: Key = key("error_policy", Shape::Block("attempts_policy"), "when it fails");
const WHOLE: Key = key("error_policy", Shape::Block("scope_policy"), "when it fails");
const FAILURE_ONLY: Key = key("error_policy", Shape::Block("failure_policy"), "when it fails");
const IDEMPOTENCY: Key =
    key("idempotency", Shape::Block("idempotency"), "takes over the outcome of equal work done before");
const NO_IDEMPOTENCY: Key = IDEMPOTENCY.warned("nothing is attempted that could be taken over");

pub const STAGES: &[Block] = &[
    block(
        "stage",
        "one stage of a list",
        &[
            key("id", ID, "unique in the whole file, nested stages included").required().example("work"),
            key("depends_on", TEXTS, "ids of stages of the same list that must be done first").example("[]"),
        ],
    )
    .includes(&["any_stage"])
    .variants(TYPES),
    block(
        "inline_stage",
        "a stage without a name of its own: a template, a compensation, a last act",
        &[
            key("id", ID, "names a stage").warned("such a stage has no name of its own"),
            key("depends_on", TEXTS, "ids of stages").warned("nothing comes before such a stage"),
        ],
    )
    .includes(&["any_stage"])
    .variants(TYPES),
    block(
        "any_stage",
        "the keys of every stage",
        &[
            key("name", Shape::Text, "for people").otherwise("the id"),
            key("description", Shape::Text, "for people"),
            key("type", Shape::Words(WORDS), "what kind of stage").default("agent"),
            key("condition", Shape::Condition, "the stage is skipped if it does not hold")
                .otherwise("always"),
            key("inputs", Shape::Named(NAME, &Shape::Block("input")), "what the stage is given"),
            key("env", ENV, "environment of this stage and the stages in it, added to what is around"),
            key("compensate", HANDLER, "how the stage is undone").example(HANDLER_EXAMPLE),
            key("finally", HANDLER, "what follows whatever became of the stage").example(HANDLER_EXAMPLE),
            key("ui", Shape::Any, "whatever an editor keeps there; never looked into"),
            key("parallel_group", Shape::Text, "").warned("independence is what `depends_on` leaves out"),
            key("timeout", DURATION, "").warned("it belongs to `error_policy.timeout`"),
            key("retry", Shape::Any, "").warned("it belongs to `error_policy.retry`"),
            key("on_failure", Shape::Any, "").warned("it belongs to `error_policy.on_failure`"),
            key("max_attempts", LIMIT, "").warned("it belongs to `error_policy.retry.max_attempts`"),
            key("retries", LIMIT, "").warned("it belongs to `error_policy.retry.max_attempts`"),
            key("artifact", ARTIFACT, "").warned("it belongs to `roles.primary.artifact`"),
        ],
    )
    .part(),
    block(
        "agent_stage",
        "a stage that an agent does, `type: agent`",
        &[
            key("roles", Shape::Block("roles"), "who does the work").required(),
            key("context", Shape::Block("stage_context"), "modules and memories of this stage"),
            key("handoff", Shape::Block("handoff"), "how the outputs are passed on"),
            OUTPUTS,
            ATTEMPTS,
            IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "roles",
        "who does the work of a stage, and with what",
        &[
            key("primary", Shape::Block("primary"), "who does the work").required(),
            key("tools", Shape::List(&ARTIFACT), "what it may use").example(r#"["skill:git"]"#),
        ],
    ),
    block(
        "primary",
        "the agent of a stage, `roles.primary`",
        &[
            key("artifact", ARTIFACT, "the agent").required(),
            key("model", Shape::Text, "preferred model").default("opus"),
            key("instructions", Shape::TextTemplate, "what it is told for this stage"),
        ],
    ),
    block(
        "stage_context",
        "what the agent of one stage is given, beside what all are given",
        &[
            key("modules", Shape::List(&MODULE), "modules added to the global ones"),
            key("memory", Shape::Block("memory"), "laid over the global one field by field"),
        ],
    ),
    block(
        "handoff",
        "how the outputs of an agent are passed on",
        &[
            key("format", Shape::Words(&["structured", "markdown", "raw"]), "structured is JSON")
                .default("structured"),
            key("include_run_log", Shape::Boolean, "whether the log is passed on as well").default("false"),
            key("summary_prompt", Shape::TextTemplate, "how to summarise the outputs for the next stage"),
        ],
    ),
    block(
        "gate_stage",
        "a stage where a person decides, `type: gate`",
        &[
            key("gate", Shape::Block("gate"), "who decides, until when, and what they are asked").required(),
            FAILURE_ONLY,
            NO_OUTPUTS,
            NO_IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "gate",
        "what a gate asks, and whom",
        &[
            key("kind", Shape::Words(&["manual_approval"]), "the only kind").default("manual_approval"),
            key("approvers", TEXTS, "who may decide")
                .otherwise("anyone who may decide at all")
                .example(r#"["dana"]"#),
            key("timeout", DURATION, "how long the gate waits").default("24h"),
            key("on_timeout", Shape::Words(&["halt", "auto_approve", "reject"]), "what happens then")
                .default("halt"),
            key("message", Shape::TextTemplate, "what the approver is asked"),
            key("form", Shape::Named(NAME, &Shape::Block("form_field")), "fields that the approver fills in"),
        ],
    ),
    block(
        "fan_out_stage",
        "one stage for each item, `type: fan_out`",
        &[
            key("fan_out", Shape::Block("fan_out"), "what is repeated, and for which items").required(),
            ATTEMPTS,
            NO_OUTPUTS,
            NO_IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "fan_out",
        "the items of a fan-out, and what is done with each",
        &[
            key("source", Shape::Template, "the items: a list, or an expression that gives one")
                .example(r#"["a", "b"]"#),
            key("matrix", Shape::Map(&AXIS), "the items are all combinations, with one value for each name")
                .example(r#"{"os": ["linux", "mac"]}"#),
            key("stage_template", Shape::Block("inline_stage"), "what is done; reads `item` and `index`")
                .required(),
            key("concurrency", LIMIT, "items at once").otherwise("unlimited"),
            key("on_failure", Shape::Words(&["halt", "continue"]), "what the failure of an item means")
                .default("halt"),
        ],
    )
    .rules(&[Rule::OneOf(&["source", "matrix"])]),
    block(
        "shell_stage",
        "a command, `type: shell`",
        &[
            key("run", Shape::TextTemplate, "the command; values are quoted for the shell")
                .required()
                .example("make"),
            key("cwd", Shape::TextTemplate, "where it runs").otherwise("the folder the run was started in"),
            key("stdin", Shape::Template, "what it reads").otherwise("nothing"),
            key(
                "output_format",
                Shape::Words(&["text", "json"]),
                "with `json` standard output is also parsed, as `data`",
            )
            .default("text"),
            OUTPUTS,
            ATTEMPTS,
            IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "tool_stage",
        "a tool of an MCP server, `type: tool`",
        &[
            key("tool", Shape::Text, "its name").required().example("search"),
            key("server", Shape::Text, "which server has it").example("github"),
            key("args", Shape::Template, "its arguments"),
            OUTPUTS,
            ATTEMPTS,
            IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "task_stage",
        "a job for workers, `type: task`",
        &[
            key("task", Shape::Text, "the name workers subscribe to").required().example("resize-image"),
            key("group", Shape::Text, "which group of workers").example("gpu"),
            key("input", Shape::Template, "what the worker is given"),
            OUTPUTS,
            ATTEMPTS,
            IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "http_stage",
        "a request, `type: http`",
        &[key("http", Shape::Block("http"), "what is requested").required(), OUTPUTS, ATTEMPTS, IDEMPOTENCY],
    )
    .part(),
    block(
        "http",
        "a request",
        &[
            key("url", Shape::TextTemplate, "where it goes").required().example("https://example.org"),
            key("method", Shape::Words(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]), "how")
                .otherwise("`GET`; with a body `POST`"),
            key("headers", BINDINGS, "headers of the request"),
            key("query", BINDINGS, "what is added to the URL"),
            key("json", Shape::Template, "the body, as JSON"),
            key("form", BINDINGS, "the body, as fields of a form"),
            key("body", Shape::TextTemplate, "the body, as text"),
            key("auth", Shape::Block("auth"), "who asks"),
            key(
                "expect",
                Shape::Either(&[STATUS_CODE, Shape::List(&STATUS_CODE)]),
                "status codes that are a success",
            )
            .otherwise("200 to 299")
            .example("[200, 404]"),
        ],
    )
    .rules(&[Rule::AtMostOneOf(&["json", "form", "body"])]),
    block(
        "auth",
        "who asks, `http.auth`",
        &[
            key("bearer", Shape::TextTemplate, "a token"),
            key("basic", Shape::Block("basic"), "user and password"),
        ],
    )
    .rules(&[Rule::AtMostOneOf(&["bearer", "basic"])]),
    block(
        "basic",
        "user and password, `http.auth.basic`",
        &[
            key("user", Shape::TextTemplate, "the name").required().example("robot"),
            key("password", Shape::TextTemplate, "the password").required().example("x"),
        ],
    ),
    block(
        "workflow_stage",
        "another workflow, as a run of its own, `type: workflow`",
        &[
            key("workflow", Shape::TextTemplate, "its name, or its file relative to this one")
                .required()
                .example("release"),
            key("with", BINDINGS, "its parameters"),
            OUTPUTS,
            ATTEMPTS,
            IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "loop_stage",
        "stages that are repeated, `type: loop`",
        &[
            key("loop", Shape::Block("loop"), "what is repeated, and how long").required(),
            COMPUTED,
            WHOLE,
            NO_IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "loop",
        "the rounds of a loop",
        &[
            key("while", Shape::Condition, "asked before each round: go on while it holds"),
            key("until", Shape::Condition, "asked after each round: stop once it holds"),
            key("max", Shape::Integer { min: 1, max: 1_000_000 }, "most rounds").required(),
            key("delay", DURATION, "pause between rounds"),
            key("stages", STAGE_LIST, "what a round does; may read `index`").required(),
        ],
    )
    .rules(&[Rule::OneOf(&["while", "until"])]),
    block(
        "branch_stage",
        "one of several lists of stages, `type: branch`",
        &[
            key("branch", Shape::Block("branch"), "what decides, and between what").required(),
            COMPUTED,
            WHOLE,
            NO_IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "branch",
        "the arms of a branch",
        &[
            key("if", Shape::Condition, "decides between `then` and `else`"),
            key("then", STAGE_LIST, "when it holds").beside("if"),
            key("else", Shape::List(&Shape::Block("stage")), "when it does not hold").beside("if"),
            key("switch", Shape::Template, "an expression; its value as text picks the case")
                .example("run.id"),
            key("cases", Shape::Map(&Shape::List(&Shape::Block("stage"))), "stages for each value")
                .beside("switch"),
            key("default", Shape::List(&Shape::Block("stage")), "stages when no case fits").beside("switch"),
        ],
    )
    .rules(&[Rule::OneOf(&["if", "switch"]), Rule::Needs("if", "then"), Rule::Needs("switch", "cases")]),
    block(
        "wait_stage",
        "a stage that waits, `type: wait`",
        &[
            key("wait", Shape::Block("wait"), "for what it waits").required(),
            OUTPUTS,
            FAILURE_ONLY,
            NO_IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "wait",
        "what a stage waits for",
        &[
            key("for", LENGTH, "so long; `0s` is allowed"),
            key("until", Shape::TextTemplate, "a point in time with offset").example("2027-01-31T09:00:00Z"),
            key("signal", Shape::Text, "the name of a signal sent to this run"),
            key("message", Shape::Text, "the name of a message published to nobody in particular"),
            key("match", BINDINGS, "values the signal or message must carry")
                .beside("signal")
                .otherwise("any"),
            key("timeout", DURATION, "longest wait for it").beside("signal").otherwise("none"),
        ],
    )
    .rules(&[Rule::OneOf(&["for", "until", "signal", "message"])]),
    block(
        "assign_stage",
        "values that are computed, `type: assign`",
        &[
            key("set", Shape::Named(NAME, &Shape::Template), "each becomes an output").required(),
            OUTPUTS,
            FAILURE_ONLY,
            NO_IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "finish_stage",
        "the early end of a run, `type: finish`",
        &[
            key("finish", Shape::Block("finish"), "how the run ends").otherwise("success, without outputs"),
            FAILURE_ONLY,
            NO_OUTPUTS,
            NO_IDEMPOTENCY,
        ],
    )
    .part(),
    block(
        "finish",
        "how a run ends early",
        &[
            key("status", Shape::Words(&["success", "failed", "cancelled"]), "the status of the run")
                .default("success"),
            key("outputs", Shape::Named(NAME, &Shape::Template), "outputs of the run"),
        ],
    ),
];
