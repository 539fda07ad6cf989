//! The keys of mock files: the responses of agents, tools and people. The reader is in `windlass-executors`; a test of the
//! command line compares the two.

use super::{Block, Form, Language, NOTHING, Shape, block, key};

pub const LANGUAGE: Language = Language {
    name: "mock",
    title: "Mock responses",
    about: "the file of `windlass run --mock`, and `script` of a test case: responses of steps, decisions at gates, signals",
    opens: "",
    any_case: false,
    blocks: &[DOCUMENT],
    foreign: &[],
};

const DURATION: Shape = Shape::Form(Form {
    what: "duration such as `1h30m`",
    pattern: r"^(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$",
    example: "30s",
    also: NOTHING,
});

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of a mock file",
        &[
            key(
                "steps",
                Shape::Map(&Shape::Several(&Shape::Block("response"))),
                "responses by step id as displayed, step id, or name of the task or tool: one per attempt; the last one repeats. A step in a loop or a fan-out starts with the first in each round or item; name one of them as `probe[2]`",
            )
            .example(r#"{"review": [{"outputs": {"verdict": "approved"}}]}"#),
            key(
                "agents",
                Shape::Map(&Shape::Several(&Shape::Block("response"))),
                "the same as `steps`, for other steps",
            )
            .example(r#"{"write": [{"outputs": {"report": "done"}}]}"#),
            key(
                "gates",
                Shape::Map(&Shape::List(&Shape::Block("decision"))),
                "decisions by gate id; after the last one the gate waits",
            )
            .example(r#"{"sign-off": [{"action": "approve", "by": "dana"}]}"#),
            key("signals", Shape::List(&Shape::Block("signal")), "signals to send to the run")
                .example(r#"[{"name": "build-finished", "at": "5m"}]"#),
        ],
    )
    .refuses_unknown(),
    block(
        "response",
        "the response of one attempt: exactly one of `outputs`, `output`, `continue`, `error` and `hang`",
        &[
            key("outputs", Shape::Map(&Shape::Any), "success, with these outputs").example(r#"{"passed": true}"#),
            key("output", Shape::AnyOrNull, "success, with any value as the result").example("3"),
            key("continue", Shape::AnyOrNull, "another round of a task, with this value as its input"),
            key("error", Shape::Block("error"), "failure"),
            key("hang", DURATION, "no response for this long, then a failure"),
            key("takes", DURATION, "how long the response takes").default("0s"),
            key("used", Shape::Block("cost"), "the cost of the attempt"),
            key("most", Shape::Block("cost"), "the most that the attempt could have cost"),
        ],
    )
    .refuses_unknown(),
    block(
        "error",
        "a failure",
        &[
            key("class", Shape::String, "its class, such as `rate_limit`").default("error"),
            key("message", Shape::String, "in words").example("try again later"),
            key(
                "retry_after",
                Shape::Either(&[Shape::NotNegative, DURATION]),
                "how long to wait before the next attempt, in seconds or as a duration",
            )
            .example("30s"),
        ],
    )
    .refuses_unknown(),
    block(
        "cost",
        "a cost, for budgets",
        &[
            key("tokens", Shape::NotNegative, "model tokens").default("0"),
            key("usd", Shape::NotNegative, "US dollars").default("0"),
            key("calls", Shape::NotNegative, "calls of agents and tools").default("0"),
            key("seconds", Shape::NotNegative, "working time").default("0"),
        ],
    )
    .refuses_unknown(),
    block(
        "decision",
        "a decision at a gate: either `action` or `choice`",
        &[
            key("action", Shape::Words(&["approve", "reject"]), "the decision"),
            key("choice", Shape::String, "an option of the gate instead").example("ship it"),
            key("by", Shape::String, "who decides").otherwise("the user who started the run").example("dana"),
            key("reason", Shape::String, "why").example("looks good"),
            key("fields", Shape::Map(&Shape::Any), "the fields of the form; defaults apply to the others")
                .example(r#"{"ticket": "T-1"}"#),
            key("after", DURATION, "how long the gate waits for it").default("0s"),
        ],
    )
    .refuses_unknown(),
    block(
        "signal",
        "a signal",
        &[
            key("name", Shape::String, "its name").required().example("build-finished"),
            key("value", Shape::AnyOrNull, "its value").default("null").example(r#"{"ok": true}"#),
            key("at", DURATION, "when it is sent, after the start of the run").default("0s"),
        ],
    )
    .refuses_unknown(),
];
