//! The keys of the stages of swdl: those of all stages, and those of stages in which somebody does some work.

use super::{ARTIFACT, DURATION, ENV, ID, LIMIT, MODULE, NAME, TIMEOUT};
use crate::keys::{Block, Form, Key, NOTHING, Part, Rule, Shape, TEXTS, Variants, block, key};

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
/// One stage without a name, or a list of stages.
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
    key("outputs", Shape::Named(NAME, &Shape::Block("output")), "what the work must produce")
        .stands(Part::Data);
const COMPUTED: Key = key(
    "outputs",
    Shape::Named(NAME, &Shape::Block("computed_output")),
    "what can be read of it from outside",
)
.stands(Part::Data);
pub(super) const NO_OUTPUTS: Key = OUTPUTS.warned("the type alone says what this stage gives");
pub(super) const ATTEMPTS: Key =
    key("error_policy", Shape::Block("attempts_policy"), "when it fails").stands(Part::Policy);
const WHOLE: Key = key("error_policy", Shape::Block("scope_policy"), "when it fails").stands(Part::Policy);
const FAILURE_ONLY: Key =
    key("error_policy", Shape::Block("failure_policy"), "when it fails").stands(Part::Policy);
const IDEMPOTENCY: Key =
    key("idempotency", Shape::Block("idempotency"), "takes over the outcome of equal work done before")
        .stands(Part::Policy);
pub(super) const NO_IDEMPOTENCY: Key = IDEMPOTENCY.warned("nothing is attempted that could be taken over");
const RATE: Key = key("rate_limit", Shape::Block("rate_limit"), "how often it starts").stands(Part::Policy);
pub(super) const NO_RATE: Key = RATE.warned("only work can be limited");
const TASK_LIMIT: Key =
    key("task_concurrency", LIMIT, "jobs of the same task at once, over all runs").stands(Part::Policy);
pub(super) const NO_TASK_LIMIT: Key = TASK_LIMIT.warned("only work can be limited");

pub(super) const STAGES: &[Block] = &[
    block(
        "stage",
        "one stage of a list",
        &[
            key("id", ID, "unique in the whole file, nested stages included")
                .required()
                .stands(Part::Who)
                .example("work"),
            key("depends_on", TEXTS, "ids of stages of the same list that must be done first").example("[]"),
        ],
    )
    .includes(&["any_stage"])
    .variants(TYPES),
    block(
        "single_stage",
        "the only stage at its place: a template, a branch",
        &[
            key("id", ID, "what it is called").otherwise("the id of the stage around it").stands(Part::Who),
            key("depends_on", TEXTS, "ids of stages").warned("there is no other stage beside it"),
        ],
    )
    .includes(&["any_stage"])
    .variants(TYPES),
    block(
        "inline_stage",
        "a stage without a name of its own: a template, a compensation, a last act",
        &[
            key("id", ID, "names a stage").warned("such a stage has no name of its own").stands(Part::Who),
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
            key("type", Shape::Words(WORDS), "what kind of stage").default("agent").stands(Part::Who),
            key("condition", Shape::Condition, "the stage is skipped if it does not hold")
                .otherwise("always"),
            key("inputs", Shape::Named(NAME, &Shape::Block("input")), "what the stage is given")
                .stands(Part::Data),
            key("env", ENV, "environment of this stage and the stages in it, added to what is around")
                .stands(Part::Data),
            key("compensate", UNDO, "how the stage is undone: a stage, stages, or the id of another one")
                .example(HANDLER_EXAMPLE)
                .stands(Part::Rest),
            key("finally", HANDLER, "what follows whatever became of the stage")
                .example(HANDLER_EXAMPLE)
                .stands(Part::Rest),
            key("ui", Shape::Any, "whatever an editor keeps there; never looked into").stands(Part::Rest),
            key("parallel_group", Shape::Text, "")
                .warned("independence is what `depends_on` leaves out")
                .stands(Part::Rest),
            key("timeout", DURATION, "").warned("it belongs to `error_policy.timeout`").stands(Part::Rest),
            key("retry", Shape::Any, "").warned("it belongs to `error_policy.retry`").stands(Part::Rest),
            key("on_failure", Shape::Any, "")
                .warned("it belongs to `error_policy.on_failure`")
                .stands(Part::Rest),
            key("max_attempts", LIMIT, "")
                .warned("it belongs to `error_policy.retry.max_attempts`")
                .stands(Part::Rest),
            key("retries", LIMIT, "")
                .warned("it belongs to `error_policy.retry.max_attempts`")
                .stands(Part::Rest),
            key("artifact", ARTIFACT, "").warned("it belongs to `roles.primary.artifact`").stands(Part::Rest),
        ],
    )
    .part(),
    block(
        "work",
        "the keys of stages that are attempted",
        &[OUTPUTS, ATTEMPTS, IDEMPOTENCY, RATE, TASK_LIMIT],
    )
    .part(),
    block(
        "scope",
        "the keys of stages with stages inside",
        &[COMPUTED, WHOLE, NO_IDEMPOTENCY, NO_RATE, NO_TASK_LIMIT],
    )
    .part(),
    block(
        "event",
        "the keys of stages that nobody has to do",
        &[FAILURE_ONLY, NO_IDEMPOTENCY, NO_RATE, NO_TASK_LIMIT],
    )
    .part(),
    block(
        "agent_stage",
        "a stage that an agent does, `type: agent`",
        &[
            key("roles", Shape::Block("roles"), "who does the work").required(),
            key("context", Shape::Block("stage_context"), "modules and memories of this stage")
                .stands(Part::Policy),
            key("handoff", Shape::Block("handoff"), "how the outputs are passed on").stands(Part::Policy),
        ],
    )
    .includes(&["work"])
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
            NO_OUTPUTS,
        ],
    )
    .includes(&["event"])
    .part(),
    block(
        "gate",
        "what a gate asks, and whom",
        &[
            key("kind", Shape::Words(&["manual_approval"]), "the only kind").default("manual_approval"),
            key("approvers", TEXTS, "who may decide")
                .otherwise("anyone who may decide at all")
                .example(r#"["dana"]"#),
            key("quorum", LIMIT, "how many must say yes; one no is a no").default("1"),
            key("self_approval", Shape::Boolean, "whether who started the run may decide, too")
                .default("true"),
            key("timeout", TIMEOUT, "how long the gate waits").default("24h"),
            key("on_timeout", Shape::Words(&["halt", "auto_approve", "reject"]), "what happens then")
                .default("halt"),
            key("message", Shape::TextTemplate, "what the approver is asked"),
            key("form", Shape::Named(NAME, &Shape::Block("form_field")), "fields that the approver fills in"),
            key("options", Shape::Containing(NO), "the choices; everything else says yes")
                .default(r#"["approve", "reject"]"#)
                .example(r#"["yes", "reject"]"#),
            key(
                "on_reject",
                Shape::Either(&[Shape::Words(&["fail", "abort", "skip", "retry"]), Shape::Block("back_to")]),
                "what a no means",
            )
            .default("fail"),
            key("show_file", Shape::TextTemplate, "a file to look at").example("plan.md"),
            key("verdict_input", Shape::Text, "a parameter that decides when it is given").example("verdict"),
            key("subject", Shape::Text, "where the question is published").example("approvals.release"),
            key("metadata", Shape::Map(&Shape::Text), "told with the question"),
        ],
    ),
    block(
        "back_to",
        "a no that lets stages be done again",
        &[
            key(
                "back_to",
                Shape::Text,
                "the first of them: a stage of the same list that the gate waits for",
            )
            .required()
            .example("other"),
            key("max", Shape::Integer { min: 1, max: 1000 }, "how often; after that a no is a failure")
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
            key("cwd", Shape::TextTemplate, "where it runs").otherwise("the folder the run was started in"),
            key("stdin", Shape::Template, "what it reads").otherwise("nothing"),
            key(
                "output_format",
                Shape::Words(&["text", "json"]),
                "with `json` standard output is also parsed, as `data`",
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
            key("server", Shape::Text, "which server has it").example("github"),
            key("args", Shape::Template, "its arguments"),
        ],
    )
    .includes(&["work"])
    .part(),
    block(
        "task_stage",
        "a job for workers, `type: task`",
        &[
            key("task", Shape::Text, "the name workers subscribe to").required().example("resize-image"),
            key("group", Shape::Text, "which group of workers").example("gpu"),
            key("input", Shape::Template, "what the worker is given"),
            key("metadata", Shape::Map(&Shape::Text), "told to the worker"),
            key("capabilities", TEXTS, "what the worker must be able to do").example(r#"["gpu"]"#),
            key("rounds", Shape::Block("rounds"), "repeated until the worker says it is done"),
            key("planner", Shape::Block("planner"), "the worker answers with stages"),
        ],
    )
    .includes(&["work"])
    .part(),
    block(
        "rounds",
        "bounds of work that is repeated until the worker says it is done",
        &[
            key("max", LIMIT, "most rounds").required(),
            key("time", DURATION, "longest time of all rounds"),
            key("delay", DURATION, "pause between rounds"),
            key("warn_at", LIMIT, "told to the worker"),
            key("force_at", LIMIT, "told to the worker"),
        ],
    ),
    block(
        "planner",
        "bounds of the stages that a worker answers with",
        &[
            key("max_stages", LIMIT, "most stages").required(),
            key("max_depth", LIMIT, "deepest chain").otherwise("no bound"),
            key("tasks", TEXTS, "the tasks they may use").otherwise("all"),
        ],
    ),
    block(
        "http_stage",
        "a request, `type: http`",
        &[key("http", Shape::Block("http"), "what is requested").required()],
    )
    .includes(&["work"])
    .part(),
    block(
        "http",
        "a request",
        &[
            key("method", Shape::Words(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]), "how")
                .otherwise("`GET`; with a body `POST`"),
            key("url", Shape::TextTemplate, "where it goes").required().example("https://example.org"),
            key("query", BINDINGS, "what is added to the URL"),
            key("headers", BINDINGS, "headers of the request"),
            key("auth", Shape::Block("auth"), "who asks"),
            key("json", Shape::Template, "the body, as JSON"),
            key("form", BINDINGS, "the body, as fields of a form"),
            key("body", Shape::TextTemplate, "the body, as text"),
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
            key("input", Shape::Template, "its whole input"),
            key(
                "mode",
                Shape::Words(&["child", "detached", "inline"]),
                "as a run of its own, one nobody waits for, or inside this run",
            )
            .default("child"),
        ],
    )
    .includes(&["work"])
    .rules(&[Rule::AtMostOneOf(&["with", "input"])])
    .part(),
];
