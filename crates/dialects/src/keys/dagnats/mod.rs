//! The keys of dagnats: JSON definitions of graphs of worker tasks. Here stands the top of a file; `steps` has the types of
//! steps, `triggers` what starts runs.

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

/// Go's text form, or whole nanoseconds. Zero is as good as none.
const LENGTH: Shape = Shape::Either(&[
    Shape::Form(Form {
        what: "duration such as `\"1h30m\"`",
        pattern: r"^[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$",
        example: "30s",
        also: NOTHING,
    }),
    ANY_COUNT,
]);
/// The same, and not zero.
const DURATION: Shape = Shape::Either(&[
    Shape::Form(Form {
        what: "duration such as `\"1h30m\"`",
        pattern: r"^(?=.*[1-9])[+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$",
        example: "30s",
        also: NOTHING,
    }),
    super::COUNT,
]);
const FILLED: Shape = Shape::Form(Form {
    what: "text that is not empty",
    pattern: r"[\s\S]",
    example: "text",
    also: WORD_OR_NUMBER,
});
const NAME: Shape = Shape::Form(Form {
    what: "letters, digits and `-`, `_`, `=`, `/`, `.`, with no dot at either end",
    pattern: "^[A-Za-z0-9_=/-]([A-Za-z0-9_=/.-]*[A-Za-z0-9_=/-])?$",
    example: "code-review",
    also: WORD_OR_NUMBER,
});
/// A path that may be left empty.
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
        "the top of a workflow file",
        &[
            key("$schema", Shape::Any, "where an editor finds the schema; never looked at"),
            key("name", NAME, "identifies the workflow").required(),
            key("version", Shape::Text, "for people").example("1.0"),
            key("timeout", LENGTH, "bounds the run").otherwise("none"),
            key(
                "idempotency_key",
                PATH,
                "a path into the input; a second start with its value is the first run",
            ),
            key("sticky", Shape::Words(&["", "soft", "hard"]), "whether one worker does all steps")
                .example("soft"),
            key("priority", Shape::Block("priority"), "which waiting run starts first"),
            key("singleton", Shape::Block("singleton"), "one run at a time"),
            key("concurrency", Shape::Block("concurrency"), "limits on runs and steps"),
            key(
                "cancel_on",
                Shape::Sized(&Shape::List(&Shape::Block("cancel_on")), 0, 5),
                "messages that cancel the run",
            ),
            key("compensate_on_cancel", Shape::Boolean, "whether a cancelled run is undone too")
                .default("false"),
            key("default_retry", Shape::Block("retry"), "retry policy of steps without one"),
            key("input_schema", Shape::Schema, "what the input of a run must look like"),
            key("output_schema", Shape::Schema, "what the output of a run must look like"),
            key("triggers", Shape::List(&Shape::Block("trigger")), "what starts runs by itself"),
            key("aux_steps", Shape::Any, "which steps only undo or take over")
                .no_effect("`on_failure` and `compensate` say it already"),
            key("steps", Shape::Several(&Shape::Block("step")), "the work").required(),
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
            key("initial_delay", LENGTH, "delay before the first further attempt"),
            key("max_delay", LENGTH, "longest delay; 0 is one hour"),
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
                "runs at once; 0 is no limit",
            ),
            key("max_steps", Shape::Integer { min: 0, max: 1000 }, "steps of a run at once; 0 is no limit"),
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
                "seconds that each value is ahead",
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
            key("match", Shape::Block("input_match"), "what it must carry"),
            key("timeout", LENGTH, "how long it is listened for"),
        ],
    ),
    block(
        "input_match",
        "a field of a message, and what of the input it must be equal to",
        &[
            key("left", FILLED_PATH, "a path into the message").required(),
            key("op", Shape::Words(&["eq"]), "how they are compared").required(),
            key("right", INPUT, "what it must be equal to").required(),
        ],
    ),
    block(
        "singleton",
        "one run at a time",
        &[
            key("mode", Shape::Words(&["skip", "cancel"]), "which of two runs gives way").required(),
            key("key", PATH, "a path into the input; runs are counted apart for each value of it"),
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
