//! The keys of test cases beside a workflow: what a run is given and what is expected of it.

use super::{Block, Language, Shape, block, key};

pub const LANGUAGE: Language = Language {
    name: "cases",
    title: "Test cases",
    about: "`NAME.test.yaml` beside a workflow: cases that `windlass test` runs",
    opens: "",
    any_case: false,
    blocks: &[DOCUMENT],
    foreign: &[],
};

const COUNT: Shape = Shape::Integer { min: 0, max: u32::MAX as i64 };

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top of a file of cases",
        &[
            key("workflow", Shape::Text, "the file of the workflow, if it has another name than this one")
                .example("WORKFLOW.yaml"),
            key("cases", Shape::Several(&Shape::Block("case")), "each is one run").required(),
        ],
    ),
    block(
        "case",
        "one run of the workflow",
        &[
            key("name", Shape::Text, "what the case is about").required().example("all goes well"),
            key("inputs", Shape::Any, "what the run is given").example(r#"{"feature": "login"}"#),
            key(
                "script",
                Shape::Either(&[Shape::Text, Shape::Map(&Shape::Any)]),
                "who answers, or the file that says so",
            )
            .example(r#"{"steps": {"plan": [{"outputs": {}}]}}"#),
            key("env", Shape::Map(&Shape::Text), "the only variables that there are")
                .example(r#"{"REGION": "eu"}"#),
            key("by", Shape::Text, "who starts the run").example("dana"),
            key("now", Shape::Text, "when it begins").default("2026-01-01T00:00:00Z"),
            key(
                "run_commands",
                Shape::Boolean,
                "whether commands that the script does not answer for are run",
            )
            .default("false"),
            key("wait", Shape::Boolean, "whether the time of gates passes that nobody decides at")
                .default("false"),
            key("expect", Shape::Block("expect"), "what must come of it; `windlass test --update` writes it"),
        ],
    ),
    block(
        "expect",
        "what must come of a run; what is not named is not looked at",
        &[
            key("status", Shape::Text, "of the run, in the words of its dialect").example("success"),
            key("has_failures", Shape::Boolean, "whether a step failed"),
            key("outputs", Shape::Any, "of the run").example(r#"{"merged": true}"#),
            key("error", Shape::Block("error"), "why the run failed"),
            key("waiting_on", Shape::List(&Shape::Text), "the steps that it waits at in the end")
                .example(r#"["sign-off"]"#),
            key(
                "steps",
                Shape::Map(&Shape::Either(&[Shape::Text, Shape::Block("step")])),
                "by the ids that are shown",
            )
            .example(r#"{"plan": "success"}"#),
        ],
    ),
    block(
        "step",
        "what must come of a step",
        &[
            key("status", Shape::Text, "in the words of the dialect").example("skipped"),
            key("attempts", COUNT, "how many were made"),
            key("delays_seconds", Shape::List(&Shape::Number), "the waits between them").example("[1, 2]"),
            key("input", Shape::Any, "what it was given").example(r#"{"feature": "login"}"#),
            key("output", Shape::Any, "what came of it").example(r#"{"passed": true}"#),
            key("error", Shape::Block("error"), "why it failed"),
            key("skipped_because", Shape::Text, "why it was skipped").example("condition_false"),
        ],
    ),
    block(
        "error",
        "a failure",
        &[
            key("code", Shape::Text, "its class").example("timeout"),
            key("message", Shape::Text, "in words"),
            key("step", Shape::Text, "where it happened").example("plan"),
            key("field", Shape::Text, "the field that was wrong").example("inputs.feature"),
        ],
    ),
];
