//! The keys of dcc: workflow files of DCC-MCP, with their six kinds of steps and their policies.

use super::{
    ANY_COUNT, Block, COUNT, Form, Key, Language, NOTHING, Rule, Shape, TEXTS, Variants, WORD, block, key,
};

pub const LANGUAGE: Language = Language {
    name: "dcc",
    title: "DCC-MCP workflow (dcc)",
    about: "`*.workflow.yaml` of DCC-MCP: tools of MCP servers one after the other, with loops, branches and approvals",
    opens: "{{",
    blocks: &[DOCUMENT],
    foreign: &[],
};

const FILLED: Shape =
    Shape::Form(Form { what: "text that is not empty", pattern: ".", example: "work", also: NOTHING });
const TOOL: Shape = Shape::Form(Form {
    what: "name of a tool",
    pattern: r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
    example: "scene__export",
    also: WORD,
});
const PATH: Shape = Shape::Form(Form {
    what: "JSONPath such as `$.inputs.files`",
    pattern: r"^\$",
    example: "$.inputs.files",
    also: NOTHING,
});
const STEP_LIST: Shape = Shape::List(&Shape::Block("step"));

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
        "step",
        "one step of a list",
        &[
            key("id", FILLED, "unique in the whole file").required(),
            key("kind", Shape::Words(WORDS), "what kind of step; `tool` may be left out").default("tool"),
            key("depends_on", TEXTS, "ids of earlier steps")
                .example("[]")
                .no_effect("steps run one after the other anyway"),
            key("policy", Shape::Block("policy"), "the policy keys of the step, in a block of their own"),
        ],
    )
    .includes(&["policy"])
    .variants(KINDS),
    block(
        "policy",
        "time, attempts and idempotency, on a step or in its `policy`",
        &[
            key("timeout_secs", COUNT, "bounds one attempt; for a list of steps the whole").otherwise("none"),
            key("retry", Shape::Block("retry"), "when it is tried again").otherwise("one attempt"),
            key("idempotency_key", Shape::TextTemplate, "equal for equal work")
                .example("export_{{inputs.id}}"),
            key(
                "idempotency_scope",
                Shape::Words(&["workflow", "global"]),
                "within this run, or across runs",
            )
            .default("workflow"),
            key("idempotency_ttl_secs", ANY_COUNT, "how long an outcome is kept; 0 is no end")
                .otherwise("no end"),
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
            key("max_delay_ms", ANY_COUNT, "longest delay; not below `initial_delay_ms`").default("10000"),
            key("jitter", Shape::Number, "share by which delays vary, 0 to 1; anything beyond is cut")
                .default("0.0"),
            key("retry_on", TEXTS, "classes that are tried again; an empty list is none")
                .otherwise("all")
                .example(r#"["timeout"]"#),
        ],
    ),
    block(
        "tool_step",
        "a tool, `kind: tool`",
        &[
            key("tool", TOOL, "its name").required(),
            ARGS,
            key("dcc", Shape::Text, "which server has it").warned("`kind: tool_remote` names a server"),
        ],
    )
    .part(),
    block(
        "tool_remote_step",
        "a tool of a named server, `kind: tool_remote`",
        &[
            key("dcc", Shape::Text, "which server has it").required().example("maya"),
            key("tool", TOOL, "its name").required(),
            ARGS,
        ],
    )
    .part(),
    block(
        "foreach_step",
        "steps for each item, `kind: foreach`",
        &[
            key("items", PATH, "the items").required(),
            key("as", Shape::Text, "what an item is called").default("item"),
            key("steps", STEP_LIST, "what is done with each"),
            key("concurrency", COUNT, "items at once").default("1"),
        ],
    )
    .part(),
    block(
        "parallel_step",
        "steps at the same time, `kind: parallel`",
        &[
            key("steps", STEP_LIST, "each is a branch"),
            key(
                "branches",
                Shape::List(&Shape::Either(&[Shape::Block("step"), STEP_LIST])),
                "each is a step, or a list of steps",
            )
            .example(r#"[[{"id": "inner", "tool": "scene__export"}]]"#),
            key("on_any_fail", Shape::Words(&["abort", "continue"]), "what the failure of a branch means")
                .otherwise("wait for all, then fail"),
        ],
    )
    .rules(&[Rule::AtMostOneOf(&["steps", "branches"])])
    .part(),
    block(
        "approve_step",
        "a step where a person decides, `kind: approve`",
        &[key("prompt", Shape::TextTemplate, "what is asked").default("")],
    )
    .part(),
    block(
        "branch_step",
        "one of two lists of steps, `kind: branch`",
        &[
            key("on", PATH, "decides").required(),
            key("then", STEP_LIST, "when it holds"),
            key("else", STEP_LIST, "when it does not hold"),
        ],
    )
    .part(),
];
