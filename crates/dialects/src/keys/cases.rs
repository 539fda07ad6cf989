//! The keys of test case files: the inputs of a run and its expected result.

use super::{Block, Language, Shape, block, key};

pub const LANGUAGE: Language = Language {
    name: "cases",
    title: "Test cases",
    about: "`NAME.test.yaml` next to a workflow: cases that `windlass test` runs",
    opens: "",
    any_case: false,
    blocks: &[DOCUMENT],
    foreign: &[],
};

const COUNT: Shape = Shape::Integer { min: 0, max: u32::MAX as i64 };

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of a test case file",
        &[
            key("workflow", Shape::Text, "the workflow file, if it is not the one with the same name")
                .example("WORKFLOW.yaml"),
            key("cases", Shape::Several(&Shape::Block("case")), "the cases; each is one run").required(),
        ],
    ),
    block(
        "case",
        "one run of the workflow",
        &[
            key("name", Shape::Text, "what the case tests").required().example("everything succeeds"),
            key("inputs", Shape::Any, "inputs of the run").example(r#"{"feature": "login"}"#),
            key(
                "script",
                Shape::Either(&[Shape::Text, Shape::Map(&Shape::Any)]),
                "mock responses, or a file with them",
            )
            .example(r#"{"steps": {"plan": [{"outputs": {}}]}}"#),
            key("env", Shape::Map(&Shape::Text), "the only environment variables of the run")
                .example(r#"{"REGION": "eu"}"#),
            key("by", Shape::Text, "who starts the run").example("dana"),
            key("now", Shape::Text, "when the run starts").default("2026-01-01T00:00:00Z"),
            key("run_commands", Shape::Boolean, "whether to run commands that have no mock response")
                .default("false"),
            key("wait", Shape::Boolean, "whether time passes at gates that receive no decision")
                .default("false"),
            key("expect", Shape::Block("expect"), "the expected result; `windlass test --update` writes it"),
        ],
    ),
    block(
        "expect",
        "the expected result of a run; keys that are absent are not checked",
        &[
            key("status", Shape::Text, "status of the run, in the dialect's own words").example("success"),
            key("has_failures", Shape::Boolean, "whether a step failed"),
            key("outputs", Shape::Any, "outputs of the run").example(r#"{"merged": true}"#),
            key("error", Shape::Block("error"), "why the run failed"),
            key(
                "waiting_on",
                Shape::List(&Shape::Text),
                "the steps that the run is waiting at when it stops",
            )
            .example(r#"["sign-off"]"#),
            key(
                "steps",
                Shape::Map(&Shape::Either(&[Shape::Text, Shape::Block("step")])),
                "expectations by step id as displayed",
            )
            .example(r#"{"plan": "success"}"#),
        ],
    ),
    block(
        "step",
        "the expected result of a step",
        &[
            key("status", Shape::Text, "status, in the dialect's own words").example("skipped"),
            key("attempts", COUNT, "number of attempts"),
            key("delays_seconds", Shape::List(&Shape::Number), "delays between attempts").example("[1, 2]"),
            key("input", Shape::Any, "inputs of the step").example(r#"{"feature": "login"}"#),
            key("output", Shape::Any, "outputs of the step").example(r#"{"passed": true}"#),
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
            key("field", Shape::Text, "the invalid field").example("inputs.feature"),
        ],
    ),
];
