//! The keys of dcc: workflow files of DCC-MCP, with their six kinds of steps and their policies.

use super::{
    ANY_COUNT, Block, COUNT, Form, Key, Language, NO_EXECUTOR, NOTHING, Part, Rule, Shape, Variants, block,
    key,
};

pub const LANGUAGE: Language = Language {
    name: "dcc",
    title: "DCC-MCP workflow (dcc)",
    about: "`*.workflow.yaml` of DCC-MCP: a sequence of MCP tools with loops, branches and approvals",
    opens: "{{",
    any_case: false,
    blocks: &[DOCUMENT, STEPS],
    foreign: &[],
};

const FILLED: Shape =
    Shape::Form(Form { what: "non-empty string", pattern: r"[\s\S]", example: "work", also: NOTHING });
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
    key("timeout_secs", COUNT, "timeout of one attempt, of an approval, or of a list of steps as a whole")
        .otherwise("none");
const RETRY: Key = key("retry", Shape::Block("retry"), "when to retry").otherwise("one attempt");
const IDEMPOTENCY_KEY: Key =
    key("idempotency_key", Shape::StringTemplate, "identifies equal work").example("export_{{inputs.id}}");
const IDEMPOTENCY_SCOPE: Key =
    key("idempotency_scope", Shape::Words(&["workflow", "global"]), "within this run, or across runs")
        .default("workflow")
        .beside("idempotency_key");
const IDEMPOTENCY_TTL: Key =
    key("idempotency_ttl_secs", ANY_COUNT, "how long an outcome is kept; 0 means forever")
        .otherwise("forever")
        .beside("idempotency_key");
const ASKED_ONCE: &str = "an approval is requested only once";

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of a workflow file",
        &[
            key("name", Shape::Text, "identifies the workflow").required().example("vendor-intake"),
            key("description", Shape::Text, "for people"),
            key("inputs", Shape::Any, "inputs of a run: names, or a JSON Schema; not enforced")
                .example(r#"{"path": "string"}"#),
            key("steps", Shape::Several(&Shape::Block("step")), "the steps, in order").required(),
        ],
    ),
    block(
        "policy",
        "timeout, retries and idempotency, on a step or in its `policy`; a list of steps passes the last two on \
            to the steps inside",
        &[TIMEOUT, RETRY, IDEMPOTENCY_KEY, IDEMPOTENCY_SCOPE, IDEMPOTENCY_TTL],
    ),
    block(
        "approve_policy",
        "the same for an approval",
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
            key("max_attempts", Shape::Integer { min: 1, max: u32::MAX as i64 }, "total number of attempts")
                .required(),
            key("backoff", Shape::Words(&["fixed", "linear", "exponential"]), "how delays grow")
                .default("exponential"),
            key("initial_delay_ms", ANY_COUNT, "first delay; at most `max_delay_ms`").default("500"),
            key("max_delay_ms", ANY_COUNT, "longest delay; at least `initial_delay_ms`")
                .default("10000")
                .example("20000"),
            key("jitter", Shape::Number, "share by which delays vary, 0 to 1; other values are clamped")
                .default("0.0")
                .example("0.25"),
            key(
                "retry_on",
                Shape::List(&Shape::String),
                "failure classes to retry; an empty list means none",
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
const POLICY: Key = key("policy", Shape::Block("policy"), "the policy keys, in a separate block");

/// A key of another language for one of this one.
const fn misnamed(name: &'static str, note: &'static str) -> Key {
    key(name, Shape::Any, "").warned(note).stands(Part::Rest)
}

const STEPS: &[Block] = &[
    block(
        "step",
        "one step of a list",
        &[
            key("id", FILLED, "unique in the whole file").required(),
            key("kind", Shape::Words(WORDS), "kind of the step; optional if there is a `tool` and no `dcc`")
                .default("tool"),
            key("depends_on", Shape::Any, "ids of earlier steps")
                .example(r#"["before"]"#)
                .no_effect("steps run in the order of the file; a name that is not earlier is a warning"),
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
            key("dcc", Shape::Any, "the server that provides it")
                .example("maya")
                .warned("`kind: tool_remote` names a server")
                .stands(Part::Rest),
        ],
    )
    .includes(&["policy"])
    .not_yet(NO_EXECUTOR)
    .part(),
    block(
        "tool_remote_step",
        "a tool of a named server, `kind: tool_remote`",
        &[
            key("dcc", Shape::String, "the server that provides it").required().example("maya"),
            key("tool", TOOL, "its name").required(),
            ARGS,
            POLICY,
        ],
    )
    .includes(&["policy"])
    .not_yet(NO_EXECUTOR)
    .part(),
    block(
        "foreach_step",
        "steps for each item, `kind: foreach`",
        &[
            key("items", PATH, "the items").required(),
            key("as", Shape::String, "name of the item").default("item"),
            key("concurrency", COUNT, "concurrent items").default("1"),
            key("steps", STEP_LIST, "steps for each item"),
            POLICY,
            misnamed("body", "write `steps` instead"),
            misnamed("do", "write `steps` instead"),
            misnamed("foreach", "write `items` instead"),
            misnamed("in", "write `items` instead"),
        ],
    )
    .includes(&["policy"])
    .part(),
    block(
        "parallel_step",
        "parallel steps, `kind: parallel`",
        &[
            key("on_any_fail", Shape::Words(&["abort", "continue"]), "effect of a failed branch")
                .otherwise("wait for all, then fail"),
            key("steps", STEP_LIST, "the branches"),
            key(
                "branches",
                Shape::List(&Shape::Either(&[Shape::Block("step"), STEP_LIST])),
                "the branches: each is a step, or a list of steps",
            ),
            POLICY,
        ],
    )
    .includes(&["policy"])
    .rules(&[Rule::AtMostOneOf(&["steps", "branches"])])
    .part(),
    block(
        "approve_step",
        "a decision by a person, `kind: approve`",
        &[
            key("prompt", Shape::StringTemplate, "the question").default("").example("Go on?"),
            key("policy", Shape::Block("approve_policy"), "the policy keys, in a separate block"),
            misnamed("message", "write `prompt` instead"),
        ],
    )
    .includes(&["approve_policy"])
    .part(),
    block(
        "branch_step",
        "one of two lists of steps, `kind: branch`",
        &[
            key("on", PATH, "decides").required(),
            key("then", STEP_LIST, "steps if it holds"),
            key("else", STEP_LIST, "steps if it does not hold"),
            POLICY,
            misnamed("if", "write `on` instead"),
            misnamed("condition", "write `on` instead"),
        ],
    )
    .includes(&["policy"])
    .part(),
];
