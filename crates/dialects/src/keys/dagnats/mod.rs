//! The keys of dagnats: JSON definitions of graphs of worker tasks. This file has the top level; `steps` has the step
//! types, `triggers` the triggers.

mod steps;
mod triggers;

use super::{ANY_COUNT, Block, Form, Language, NOTHING, Rule, Shape, WORD_OR_NUMBER, block, key};

pub const LANGUAGE: Language = Language {
    name: "dagnats",
    title: "DagNats workflow (dagnats)",
    about: "JSON definitions of DagNats: a graph of worker tasks with compensations, agent loops and triggers",
    opens: "",
    any_case: true,
    blocks: &[DOCUMENT, steps::STEPS, steps::CONFIGS, triggers::TRIGGERS],
    foreign: &[],
};

/// Go's text form, or whole nanoseconds. Zero means none.
const LENGTH: Shape = Shape::Either(&[
    Shape::Form(Form {
        what: "duration such as `\"1h30m\"`",
        pattern: r"^[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$",
        example: "30s",
        also: NOTHING,
    }),
    ANY_COUNT,
]);
/// The same, but not zero.
const DURATION: Shape = Shape::Either(&[
    Shape::Form(Form {
        what: "duration such as `\"1h30m\"`",
        pattern: r"^(?=.*[1-9])[+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$",
        example: "30s",
        also: NOTHING,
    }),
    super::COUNT,
]);
const FILLED: Shape =
    Shape::Form(Form { what: "non-empty string", pattern: r"[\s\S]", example: "text", also: WORD_OR_NUMBER });
const NAME: Shape = Shape::Form(Form {
    what: "letters, digits and `-`, `_`, `=`, `/`, `.`, without a dot at either end",
    pattern: "^[A-Za-z0-9_=/-]([A-Za-z0-9_=/.-]*[A-Za-z0-9_=/-])?$",
    example: "code-review",
    also: WORD_OR_NUMBER,
});
/// A path that may be empty.
const PATH: Shape = Shape::Form(Form {
    what: "a path such as `order.id`",
    pattern: r"^([^.]+(\.[^.]+)*)?$",
    example: "order.id",
    also: WORD_OR_NUMBER,
});
const FILLED_PATH: Shape = Shape::Form(Form {
    what: "a path such as `order.id`",
    pattern: r"^[^.]+(\.[^.]+)*$",
    example: "order.id",
    also: WORD_OR_NUMBER,
});
const TEXT_MAP: Shape = Shape::Map(&Shape::Text);
const LIMIT: Shape = Shape::Integer { min: 1, max: u32::MAX as i64 };
const ANY_LIMIT: Shape = Shape::Integer { min: 0, max: u32::MAX as i64 };
const OFFSET: Shape = Shape::Integer { min: -600, max: 600 };

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of a workflow file",
        &[
            key("$schema", Shape::Any, "the schema for editors; ignored by Windlass"),
            key("name", NAME, "identifies the workflow").required(),
            key("version", Shape::Text, "for people").example("1.0"),
            key("timeout", LENGTH, "timeout of the run").otherwise("none"),
            key(
                "idempotency_key",
                PATH,
                "a path into the input; a second start with the same value returns the first run",
            ),
            key("sticky", Shape::Words(&["", "soft", "hard"]), "whether one worker executes all steps")
                .example("soft"),
            key("priority", Shape::Block("priority"), "which waiting run starts first"),
            key("singleton", Shape::Block("singleton"), "one run at a time"),
            key("concurrency", Shape::Block("concurrency"), "limits on runs and steps"),
            key(
                "cancel_on",
                Shape::Sized(&Shape::List(&Shape::Block("cancel_on")), 0, 5),
                "messages that cancel the run",
            ),
            key("compensate_on_cancel", Shape::Boolean, "whether a canceled run is undone as well")
                .default("false"),
            key("default_retry", Shape::Block("retry"), "retry policy of steps without their own"),
            key("input_schema", Shape::Schema, "schema of the input of a run"),
            key("output_schema", Shape::Schema, "schema of the output of a run"),
            key("triggers", Shape::List(&Shape::Block("trigger")), "triggers that start runs"),
            key("aux_steps", Shape::Any, "steps that only undo others or handle failures")
                .no_effect("`on_failure` and `compensate` already say it"),
            key("steps", Shape::Several(&Shape::Block("step")), "the steps").required(),
        ],
    )
    .rules(&[Rule::NeedsWhen("sticky", "hard", "timeout")])
    .refuses_unknown(),
    block(
        "retry",
        "a retry policy",
        &[
            key("max_attempts", Shape::Integer { min: 0, max: 100_000 }, "attempts after the first")
                .default("0"),
            key("strategy", Shape::Words(&["fixed", "linear", "exponential"]), "how delays grow")
                .default("fixed")
                .example("exponential"),
            key("initial_delay", LENGTH, "delay before the first retry"),
            key("max_delay", LENGTH, "longest delay; 0 means one hour"),
            key("multiplier", Shape::NotNegative, "factor of `exponential`").example("2").beside("strategy"),
        ],
    ),
    block(
        "concurrency",
        "limits of a workflow",
        &[
            key(
                "max_runs",
                Shape::Integer { min: i64::MIN, max: u32::MAX as i64 },
                "concurrent runs; 0 means no limit",
            ),
            key(
                "max_steps",
                Shape::Integer { min: 0, max: 1000 },
                "concurrent steps of a run; 0 means no limit",
            ),
        ],
    ),
    block(
        "priority",
        "which waiting run starts first",
        &[
            key("key", FILLED_PATH, "a path into the input").required(),
            key(
                "rules",
                Shape::Sized(&Shape::Map(&OFFSET_OR_NULL), 1, 20),
                "seconds that runs with each value are ahead",
            )
            .required()
            .example(r#"{"gold": 60}"#),
            key("default_offset", OFFSET, "seconds for every other value").default("0"),
        ],
    ),
    block(
        "cancel_on",
        "a message that cancels the run",
        &[
            key("event", FILLED, "its name").required().example("order.gone"),
            key("match", Shape::Block("input_match"), "required content of the message"),
            key("timeout", LENGTH, "how long to listen for it"),
        ],
    ),
    block(
        "input_match",
        "compares a field of a message with a value of the input",
        &[
            key("left", FILLED_PATH, "a path into the message").required(),
            key("op", Shape::Words(&["eq"]), "comparison operator").required(),
            key("right", INPUT, "the required value").required(),
        ],
    ),
    block(
        "singleton",
        "one run at a time",
        &[
            key("mode", Shape::Words(&["skip", "cancel"]), "which of two runs gives way").required(),
            key("key", PATH, "a path into the input; each of its values is limited separately"),
        ],
    ),
];

const OFFSET_OR_NULL: Shape = Shape::Either(&[OFFSET, Shape::Null]);
const INPUT: Shape = Shape::Form(Form {
    what: "a path such as `input.order.id`",
    pattern: r"^input(\.[^.]+)+$",
    example: "input.order.id",
    also: NOTHING,
});
