//! The keys of dcc: workflow files of DCC-MCP, with their six kinds of steps and their policies.

use super::{ANY_COUNT, Block, COUNT, Form, Key, Language, NOTHING, Part, Rule, Shape, Variants, block, key};

pub const LANGUAGE: Language = Language {
    name: "dcc",
    title: "DCC-MCP workflow (dcc)",
    about: "`*.workflow.yaml` of DCC-MCP: tools of MCP servers one after the other, with loops, branches and approvals",
    opens: "{{",
    any_case: false,
    blocks: &[DOCUMENT, STEPS],
    foreign: &[],
};

const FILLED: Shape =
    Shape::Form(Form { what: "text that is not empty", pattern: r"[\s\S]", example: "work", also: NOTHING });
const TOOL: Shape = Shape::Form(Form {
    what: "name of a tool",
    pattern: r"^(?=.{1,64}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
    example: "scene__export",
    also: NOTHING,
});
const PATH: Shape = Shape::Form(Form {
    what: "JSONPath such as `$.inputs.files`",
    pattern: r"^\$",
    example: "$.inputs.files",
    also: NOTHING,
});
const STEP_LIST: Shape = Shape::List(&Shape::Block("step"));

const TIMEOUT: Key =
    key("timeout_secs", COUNT, "bounds one attempt, the wait for an answer, or a list of steps as a whole")
        .otherwise("none");
const RETRY: Key = key("retry", Shape::Block("retry"), "when it is tried again").otherwise("one attempt");
const IDEMPOTENCY_KEY: Key =
    key("idempotency_key", Shape::StringTemplate, "equal for equal work").example("export_{{inputs.id}}");
const IDEMPOTENCY_SCOPE: Key =
    key("idempotency_scope", Shape::Words(&["workflow", "global"]), "within this run, or across runs")
        .default("workflow")
        .beside("idempotency_key");
const IDEMPOTENCY_TTL: Key =
    key("idempotency_ttl_secs", ANY_COUNT, "how long an outcome is kept; 0 is no end")
        .otherwise("no end")
        .beside("idempotency_key");
const ASKED_ONCE: &str = "a question is asked once";

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top of a workflow file",
        &[
            key("name", Shape::Text, "identifies the workflow").required().example("vendor-intake"),
            key("description", Shape::Text, "for people"),
            key("inputs", Shape::Any, "what a run is given: names, or a JSON Schema; not enforced")
                .example(r#"{"path": "string"}"#),
            key("steps", Shape::Several(&Shape::Block("step")), "the work, in order").required(),
        ],
    ),
    block(
        "policy",
        "time, attempts and idempotency, on a step or in its `policy`; a list of steps passes the last two on to the steps inside",
        &[TIMEOUT, RETRY, IDEMPOTENCY_KEY, IDEMPOTENCY_SCOPE, IDEMPOTENCY_TTL],
    ),
    block(
        "approve_policy",
        "the same for a step where a person decides",
        &[
            TIMEOUT,
            RETRY.warned(ASKED_ONCE),
            IDEMPOTENCY_KEY.warned(ASKED_ONCE),
            IDEMPOTENCY_SCOPE.warned(ASKED_ONCE),
            IDEMPOTENCY_TTL.warned(ASKED_ONCE),
        ],
    ),
    block(
        "retry",
        "a retry policy",
        &[
            key(
                "max_attempts",
                Shape::Integer { min: 1, max: u32::MAX as i64 },
                "all attempts, the first included",
            )
            .required(),
            key("backoff", Shape::Words(&["fixed", "linear", "exponential"]), "how delays grow")
                .default("exponential"),
            key("initial_delay_ms", ANY_COUNT, "first delay; not above `max_delay_ms`").default("500"),
            key("max_delay_ms", ANY_COUNT, "longest delay; not below `initial_delay_ms`")
                .default("10000")
                .example("20000"),
            key("jitter", Shape::Number, "share by which delays vary, 0 to 1; anything beyond is cut")
                .default("0.0")
                .example("0.25"),
            key(
                "retry_on",
                Shape::List(&Shape::String),
                "classes that are tried again; an empty list is none",
            )
            .otherwise("all")
            .example(r#"["timeout"]"#),
        ],
    ),
];

const KINDS: Variants = Variants {
    by: "kind",
    default: Some("tool"),
    of: &[
        ("tool", "tool_step"),
        ("tool_remote", "tool_remote_step"),
        ("foreach", "foreach_step"),
        ("parallel", "parallel_step"),
        ("approve", "approve_step"),
        ("branch", "branch_step"),
    ],
};
const WORDS: &[&str] = &["tool", "tool_remote", "foreach", "parallel", "approve", "branch"];
const ARGS: Key = key("args", Shape::Template, "its arguments").example(r#"{"path": "{{inputs.path}}"}"#);
const POLICY: Key = key("policy", Shape::Block("policy"), "the policy keys, in a block of their own");

/// A word of another language for a key of this one.
const fn misnamed(name: &'static str, note: &'static str) -> Key {
    key(name, Shape::Any, "").warned(note).stands(Part::Rest)
}

const STEPS: &[Block] = &[
    block(
        "step",
        "one step of a list",
        &[
            key("id", FILLED, "unique in the whole file").required(),
            key(
                "kind",
                Shape::Words(WORDS),
                "what kind of step; may be left out where `tool` is and `dcc` is not",
            )
            .default("tool"),
            key("depends_on", Shape::Any, "ids of earlier steps")
                .example(r#"["before"]"#)
                .no_effect("steps run in the order of the file; a name that is not before it is a warning"),
        ],
    )
    .variants(KINDS),
    block(
        "tool_step",
        "a tool, `kind: tool`",
        &[
            key("tool", TOOL, "its name").required(),
            ARGS,
            POLICY,
            key("dcc", Shape::Any, "which server has it")
                .example("maya")
                .warned("`kind: tool_remote` names a server")
                .stands(Part::Rest),
        ],
    )
    .includes(&["policy"])
    .part(),
    block(
        "tool_remote_step",
        "a tool of a named server, `kind: tool_remote`",
        &[
            key("dcc", Shape::String, "which server has it").required().example("maya"),
            key("tool", TOOL, "its name").required(),
            ARGS,
            POLICY,
        ],
    )
    .includes(&["policy"])
    .part(),
    block(
        "foreach_step",
        "steps for each item, `kind: foreach`",
        &[
            key("items", PATH, "the items").required(),
            key("as", Shape::String, "what an item is called").default("item"),
            key("concurrency", COUNT, "items at once").default("1"),
            key("steps", STEP_LIST, "what is done with each"),
            POLICY,
            misnamed("body", "it is called `steps`"),
            misnamed("do", "it is called `steps`"),
            misnamed("foreach", "it is called `items`"),
            misnamed("in", "it is called `items`"),
        ],
    )
    .includes(&["policy"])
    .part(),
    block(
        "parallel_step",
        "steps at the same time, `kind: parallel`",
        &[
            key("on_any_fail", Shape::Words(&["abort", "continue"]), "what the failure of a branch means")
                .otherwise("wait for all, then fail"),
            key("steps", STEP_LIST, "each is a branch"),
            key(
                "branches",
                Shape::List(&Shape::Either(&[Shape::Block("step"), STEP_LIST])),
                "each is a step, or a list of steps",
            ),
            POLICY,
        ],
    )
    .includes(&["policy"])
    .rules(&[Rule::AtMostOneOf(&["steps", "branches"])])
    .part(),
    block(
        "approve_step",
        "a step where a person decides, `kind: approve`",
        &[
            key("prompt", Shape::StringTemplate, "what is asked").default("").example("Go on?"),
            key("policy", Shape::Block("approve_policy"), "the policy keys, in a block of their own"),
            misnamed("message", "it is called `prompt`"),
        ],
    )
    .includes(&["approve_policy"])
    .part(),
    block(
        "branch_step",
        "one of two lists of steps, `kind: branch`",
        &[
            key("on", PATH, "decides").required(),
            key("then", STEP_LIST, "when it holds"),
            key("else", STEP_LIST, "when it does not hold"),
            POLICY,
            misnamed("if", "it is called `on`"),
            misnamed("condition", "it is called `on`"),
        ],
    )
    .includes(&["policy"])
    .part(),
];
