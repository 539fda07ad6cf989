//! The keys of swdl stages: those of all stages, and those of stages that do work.

use super::{ARTIFACT, DURATION, ENV, ID, LIMIT, MODULE, NAME, TIMEOUT};
use crate::keys::{
    Block, Form, Key, NO_EXECUTOR, NO_MEMORIES, NO_PUBLISHER, NOTHING, Part, Rule, Shape, TEXTS, Variants,
    block, key,
};

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
        ("block", "block_stage"),
        ("parallel", "parallel_stage"),
        ("assistant", "assistant_stage"),
        ("builtin", "builtin_stage"),
        ("slot", "slot_stage"),
    ],
};
const WORDS: &[&str] = &[
    "agent",
    "gate",
    "fan_out",
    "shell",
    "tool",
    "task",
    "http",
    "workflow",
    "loop",
    "branch",
    "wait",
    "assign",
    "finish",
    "block",
    "parallel",
    "assistant",
    "builtin",
    "slot",
];
/// One unnamed stage, or a list of stages.
const HANDLER: Shape = Shape::Either(&[Shape::Block("inline_stage"), Shape::List(&Shape::Block("stage"))]);
/// The same, or the id of another stage.
const UNDO: Shape =
    Shape::Either(&[Shape::Text, Shape::Block("inline_stage"), Shape::List(&Shape::Block("stage"))]);
const HANDLER_EXAMPLE: &str = r#"{"type": "shell", "run": "make clean"}"#;
const NO: Form = Form {
    what: "`reject` or `abort`",
    pattern: "^([Rr][Ee][Jj][Ee][Cc][Tt]|[Aa][Bb][Oo][Rr][Tt])$",
    example: "reject",
    also: NOTHING,
};
const STATUS_CODE: Shape = Shape::Integer { min: 100, max: 599 };
pub(super) const BINDINGS: Shape = Shape::Map(&Shape::Template);

pub(super) const OUTPUTS: Key =
    key("outputs", Shape::Named(NAME, &Shape::Block("output")), "outputs that the work must produce")
        .stands(Part::Data);
const COMPUTED: Key = key(
    "outputs",
    Shape::Named(NAME, &Shape::Block("computed_output")),
    "outputs that other stages can read",
)
.stands(Part::Data);
pub(super) const NO_OUTPUTS: Key = OUTPUTS.warned("the type determines the outputs of this stage");
pub(super) const ATTEMPTS: Key =
    key("error_policy", Shape::Block("attempts_policy"), "what to do on failure").stands(Part::Policy);
const WHOLE: Key =
    key("error_policy", Shape::Block("scope_policy"), "what to do on failure").stands(Part::Policy);
const FAILURE_ONLY: Key =
    key("error_policy", Shape::Block("failure_policy"), "what to do on failure").stands(Part::Policy);
const IDEMPOTENCY: Key =
    key("idempotency", Shape::Block("idempotency"), "reuses the outcome of equal work done before")
        .stands(Part::Policy);
pub(super) const NO_IDEMPOTENCY: Key = IDEMPOTENCY.warned("nothing is attempted that could be reused");
const RATE: Key =
    key("rate_limit", Shape::Block("rate_limit"), "limits how often it starts").stands(Part::Policy);
pub(super) const NO_RATE: Key = RATE.warned("only work can be limited");
const TASK_LIMIT: Key =
    key("task_concurrency", LIMIT, "concurrent jobs of the same task, across all runs").stands(Part::Policy);
pub(super) const NO_TASK_LIMIT: Key = TASK_LIMIT.warned("only work can be limited");

pub(super) const STAGES: &[Block] = &[
    block(
        "stage",
        "one stage of a list",
        &[
            key("id", ID, "unique in the whole file, including nested stages")
                .required()
                .stands(Part::Who)
                .example("work"),
            key("depends_on", TEXTS, "ids of stages in the same list that must finish first").example("[]"),
        ],
    )
    .includes(&["any_stage"])
    .variants(TYPES),
    block(
        "single_stage",
        "the only stage in its place: a template, a branch",
        &[
            key("id", ID, "its id").otherwise("the id of the stage around it").stands(Part::Who),
            key("depends_on", TEXTS, "ids of stages").warned("there is no other stage next to it"),
        ],
    )
    .includes(&["any_stage"])
    .variants(TYPES),
    block(
        "inline_stage",
        "an unnamed stage: a template, a compensation, a `finally`",
        &[
            key("id", ID, "names a stage").warned("such a stage has no id").stands(Part::Who),
            key("depends_on", TEXTS, "ids of stages").warned("nothing comes before such a stage"),
        ],
    )
    .includes(&["any_stage"])
    .variants(TYPES),
    block(
        "any_stage",
        "the keys of every stage",
        &[
            key("name", Shape::Text, "for people").otherwise("the id").stands(Part::Who),
            key("description", Shape::Text, "for people").stands(Part::Who),
            key("type", Shape::Words(WORDS), "type of the stage").default("agent").stands(Part::Who),
            key("condition", Shape::Condition, "skips the stage if it does not hold").otherwise("always"),
            key("inputs", Shape::Named(NAME, &Shape::Block("input")), "inputs of the stage")
                .stands(Part::Data),
            key("env", ENV, "environment of this stage and the stages in it, added to the outer one")
                .stands(Part::Data),
            key("compensate", UNDO, "undoes the stage: a stage, stages, or the id of another one")
                .example(HANDLER_EXAMPLE)
                .stands(Part::Rest),
            key("finally", HANDLER, "runs after the stage in any case")
                .example(HANDLER_EXAMPLE)
                .stands(Part::Rest),
            key("ui", Shape::Any, "data of editors; ignored").stands(Part::Rest),
            key("recorded", Shape::Any, "integration, model, options and input as results contain them")
                .warned("only workflows with `config.semantics: speckit` record it")
                .stands(Part::Rest),
            key("parallel_group", Shape::Text, "")
                .warned("stages without `depends_on` run in parallel")
                .stands(Part::Rest),
            key("timeout", DURATION, "").warned("move it to `error_policy.timeout`").stands(Part::Rest),
            key("retry", Shape::Any, "").warned("move it to `error_policy.retry`").stands(Part::Rest),
            key("on_failure", Shape::Any, "")
                .warned("move it to `error_policy.on_failure`")
                .stands(Part::Rest),
            key("max_attempts", LIMIT, "")
                .warned("move it to `error_policy.retry.max_attempts`")
                .stands(Part::Rest),
            key("retries", LIMIT, "")
                .warned("move it to `error_policy.retry.max_attempts`")
                .stands(Part::Rest),
            key("artifact", ARTIFACT, "").warned("move it to `roles.primary.artifact`").stands(Part::Rest),
            key("approvers", TEXTS, "").warned("move it to `gate.approvers`").stands(Part::Rest),
        ],
    )
    .part(),
    block("work", "the keys of stages with attempts", &[OUTPUTS, ATTEMPTS, IDEMPOTENCY, RATE, TASK_LIMIT])
        .part(),
    block(
        "scope",
        "the keys of stages with stages inside",
        &[COMPUTED, WHOLE, NO_IDEMPOTENCY, NO_RATE, NO_TASK_LIMIT],
    )
    .part(),
    block(
        "event",
        "the keys of stages that need no executor",
        &[FAILURE_ONLY, NO_IDEMPOTENCY, NO_RATE, NO_TASK_LIMIT],
    )
    .part(),
    block(
        "agent_stage",
        "work for an agent, `type: agent`",
        &[
            key("roles", Shape::Block("roles"), "the agent").required(),
            key("context", Shape::Block("stage_context"), "modules and memories of this stage")
                .stands(Part::Policy),
            key("handoff", Shape::Block("handoff"), "how the outputs are passed on").stands(Part::Policy),
        ],
    )
    .includes(&["work"])
    .not_yet(NO_EXECUTOR)
    .part(),
    block(
        "roles",
        "the agent of a stage, and its tools",
        &[
            key("primary", Shape::Block("primary"), "the agent").required(),
            key("tools", Shape::List(&ARTIFACT), "its tools").example(r#"["skill:git"]"#),
        ],
    ),
    block(
        "primary",
        "the agent of a stage, `roles.primary`",
        &[
            key("artifact", ARTIFACT, "the agent").required(),
            key("model", Shape::Text, "preferred model").default("opus"),
            key("instructions", Shape::TextTemplate, "instructions for this stage"),
        ],
    ),
    block(
        "stage_context",
        "context of the agent of one stage, in addition to the global context",
        &[
            key("modules", Shape::List(&MODULE), "modules added to the global ones"),
            key("memory", Shape::Block("memory"), "overrides the global one field by field")
                .not_yet(NO_MEMORIES),
        ],
    ),
    block(
        "handoff",
        "how the outputs of an agent are passed on",
        &[
            key("format", Shape::Words(&["structured", "markdown", "raw"]), "structured means JSON")
                .default("structured"),
            key("include_run_log", Shape::Boolean, "whether the log is passed on as well")
                .default("false")
                .not_yet("the log is not passed on"),
            key("summary_prompt", Shape::TextTemplate, "how to summarize the outputs for the next stage")
                .not_yet("outputs are not summarized"),
        ],
    ),
    block(
        "gate_stage",
        "a decision by a person, `type: gate`",
        &[key("gate", Shape::Block("gate"), "approvers, timeout and question").required(), NO_OUTPUTS],
    )
    .includes(&["event"])
    .part(),
    block(
        "gate",
        "what a gate asks, and whom",
        &[
            key("kind", Shape::Words(&["manual_approval"]), "the only kind").default("manual_approval"),
            key("approvers", TEXTS, "who may decide").otherwise("anyone").example(r#"["dana"]"#),
            key("quorum", LIMIT, "required approvals; a single rejection decides").default("1"),
            key("self_approval", Shape::Boolean, "whether the person who started the run may decide as well")
                .default("true"),
            key("timeout", TIMEOUT, "how long the gate waits").default("24h"),
            key("on_timeout", Shape::Words(&["halt", "auto_approve", "reject"]), "effect of a timeout")
                .default("halt"),
            key("message", Shape::TextTemplate, "the question"),
            key("form", Shape::Named(NAME, &Shape::Block("form_field")), "fields that the approver fills in"),
            key(
                "options",
                Shape::Containing(NO),
                "the options; `reject` and `abort` reject, all others approve",
            )
            .default(r#"["approve", "reject"]"#)
            .example(r#"["yes", "reject"]"#),
            key(
                "on_reject",
                Shape::Either(&[Shape::Words(&["fail", "abort", "skip", "retry"]), Shape::Block("back_to")]),
                "effect of a rejection",
            )
            .default("fail"),
            key("show_file", Shape::TextTemplate, "a file to show").example("plan.md"),
            key("verdict_input", Shape::Text, "a parameter that decides if it is not empty")
                .example("verdict"),
            key("subject", Shape::Text, "where the request is published")
                .example("approvals.release")
                .not_yet(NO_PUBLISHER),
            key("metadata", Shape::Map(&Shape::Text), "sent with the request").not_yet(NO_PUBLISHER),
        ],
    ),
    block(
        "back_to",
        "a rejection that repeats stages",
        &[
            key(
                "back_to",
                Shape::Text,
                "the first of them: a stage of the same list that the gate depends on",
            )
            .required()
            .example("other"),
            key(
                "max",
                Shape::Integer { min: 1, max: 1000 },
                "how often; after that a rejection is a failure",
            )
            .default("3"),
        ],
    ),
    block(
        "shell_stage",
        "a command, `type: shell`",
        &[
            key("run", Shape::TextTemplate, "the command; values are quoted for the shell")
                .required()
                .example("make"),
            key(
                "shell",
                Shape::Either(&[
                    Shape::Words(&["sh", "bash", "python", "pwsh"]),
                    Shape::Several(&Shape::Text),
                ]),
                "what runs the command: a name, or a program and its arguments, before the command",
            )
            .otherwise("`sh`; a command of one line continues after an error"),
            key("cwd", Shape::TextTemplate, "working folder")
                .otherwise("the folder where the run was started"),
            key("stdin", Shape::Template, "standard input").otherwise("nothing"),
            key(
                "output_format",
                Shape::Words(&["text", "json"]),
                "with `json`, standard output is also parsed, as `data`",
            )
            .default("text"),
        ],
    )
    .includes(&["work"])
    .part(),
    block(
        "tool_stage",
        "a tool of an MCP server, `type: tool`",
        &[
            key("tool", Shape::Text, "its name").required().example("search"),
            key("server", Shape::Text, "the server that provides it").example("github"),
            key("args", Shape::Template, "its arguments"),
        ],
    )
    .includes(&["work"])
    .not_yet(NO_EXECUTOR)
    .part(),
    block(
        "task_stage",
        "a job for workers, `type: task`",
        &[
            key("task", Shape::Text, "the task that workers subscribe to").required().example("resize-image"),
            key("group", Shape::Text, "which group of workers").example("gpu"),
            key("input", Shape::Template, "input of the worker"),
            key("metadata", Shape::Map(&Shape::Text), "passed to the worker"),
            key("capabilities", TEXTS, "capabilities that the worker needs").example(r#"["gpu"]"#),
            key("rounds", Shape::Block("rounds"), "repeats until the worker reports completion"),
            key("planner", Shape::Block("planner"), "the worker answers with stages"),
        ],
    )
    .includes(&["work"])
    .part(),
    block(
        "rounds",
        "limits of work that repeats until the worker reports completion",
        &[
            key("max", LIMIT, "maximum number of rounds").required(),
            key("time", DURATION, "longest total time of all rounds"),
            key("delay", DURATION, "pause between rounds"),
            key("warn_at", LIMIT, "passed to the worker"),
            key("force_at", LIMIT, "passed to the worker"),
        ],
    ),
    block(
        "planner",
        "limits of the stages that a worker answers with",
        &[
            key("max_stages", LIMIT, "maximum number of stages").required(),
            key("max_depth", LIMIT, "longest chain").otherwise("no limit"),
            key("tasks", TEXTS, "the tasks they may use").otherwise("all"),
        ],
    ),
    block(
        "http_stage",
        "an HTTP request, `type: http`",
        &[key("http", Shape::Block("http"), "the request").required()],
    )
    .includes(&["work"])
    .not_yet(NO_EXECUTOR)
    .part(),
    block(
        "http",
        "a request",
        &[
            key("method", Shape::Words(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]), "how")
                .otherwise("`GET`; with a body `POST`"),
            key("url", Shape::TextTemplate, "the URL").required().example("https://example.org"),
            key("query", BINDINGS, "added to the URL"),
            key("headers", BINDINGS, "headers of the request"),
            key("auth", Shape::Block("auth"), "authentication"),
            key("json", Shape::Template, "the body, as JSON"),
            key("form", BINDINGS, "the body, as form fields"),
            key("body", Shape::TextTemplate, "the body, as text"),
            key(
                "expect",
                Shape::Either(&[STATUS_CODE, Shape::List(&STATUS_CODE)]),
                "status codes that count as success",
            )
            .otherwise("200 to 299")
            .example("[200, 404]"),
        ],
    )
    .rules(&[Rule::AtMostOneOf(&["json", "form", "body"])]),
    block(
        "auth",
        "authentication, `http.auth`",
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
        "another workflow as a separate run, `type: workflow`",
        &[
            key("workflow", Shape::TextTemplate, "its name, or its file relative to this one")
                .required()
                .example("release"),
            key("with", BINDINGS, "its parameters"),
            key("input", Shape::Template, "its whole input"),
            key(
                "mode",
                Shape::Words(&["child", "detached", "inline"]),
                "as a separate run, without waiting for it, or inside this run",
            )
            .default("child"),
        ],
    )
    .includes(&["work"])
    .rules(&[Rule::AtMostOneOf(&["with", "input"])])
    .part(),
];
