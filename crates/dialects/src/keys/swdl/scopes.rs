//! The keys of swdl stages that contain other stages, wait, compute or end the run, and of the types that come from
//! other dialects.

use super::stages::{ATTEMPTS, BINDINGS, NO_IDEMPOTENCY, NO_OUTPUTS, NO_RATE, NO_TASK_LIMIT, OUTPUTS};
use super::{DURATION, LENGTH, LIMIT, NAME, STAGE_LIST};
use crate::keys::{ANY_COUNT, Block, COUNT, Form, NO_RESPONSE, NOTHING, Rule, Shape, block, key};

const RECORDED: &str = "only workflows with `config.semantics: speckit` record it";

/// A list, or one expression that evaluates to one.
const AXIS: Shape = Shape::Either(&[
    Shape::List(&Shape::Template),
    Shape::Form(Form {
        what: "one expression",
        pattern: r"^\s*\$\{\{",
        example: "${{ ['a'] }}",
        also: NOTHING,
    }),
]);
/// One of several branches.
const BRANCH: Shape = Shape::Either(&[Shape::Block("single_stage"), Shape::List(&Shape::Block("stage"))]);

pub(super) const SCOPES: &[Block] = &[
    block(
        "fan_out_stage",
        "one stage for each item, `type: fan_out`",
        &[
            key("fan_out", Shape::Block("fan_out"), "the items, and the stage for each").required(),
            ATTEMPTS,
            NO_OUTPUTS,
            NO_IDEMPOTENCY,
            NO_RATE,
            NO_TASK_LIMIT,
        ],
    )
    .part(),
    block(
        "fan_out",
        "the items of a fan-out, and the stage for each",
        &[
            key("source", Shape::Template, "the items: a list, or an expression that evaluates to one")
                .example(r#"["a", "b"]"#),
            key("matrix", Shape::Map(&AXIS), "the items are all combinations, with one value for each name")
                .example(r#"{"os": ["linux", "mac"]}"#),
            key("max_items", COUNT, "more items are refused").otherwise("unlimited"),
            key("concurrency", LIMIT, "concurrent items").otherwise("unlimited"),
            key("recorded_concurrency", Shape::Any, "the concurrency as results contain it").warned(RECORDED),
            key("on_failure", Shape::Words(&["halt", "continue"]), "effect of a failed item").default("halt"),
            key("isolated", Shape::Boolean, "whether items see only the stages before the fan-out")
                .default("false"),
            key(
                "stage_template",
                Shape::Block("single_stage"),
                "the stage for each item; may read `item` and \
                `index`",
            ),
            key("stages", STAGE_LIST, "the same as a list of stages"),
        ],
    )
    .rules(&[Rule::OneOf(&["source", "matrix"]), Rule::OneOf(&["stage_template", "stages"])]),
    block(
        "loop_stage",
        "stages that repeat, `type: loop`",
        &[key("loop", Shape::Block("loop"), "the stages, and when to stop").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "loop",
        "the rounds of a loop",
        &[
            key("while", Shape::Condition, "evaluated before each round: continue while it holds"),
            key("until", Shape::Condition, "evaluated after each round: stop once it holds"),
            key("do_while", Shape::Condition, "evaluated after each round: continue while it holds"),
            key("max", Shape::Integer { min: 1, max: 1_000_000 }, "maximum number of rounds").required(),
            key("delay", DURATION, "pause between rounds"),
            key("recorded_condition", Shape::Any, "the condition as results contain it").warned(RECORDED),
            key("stages", STAGE_LIST, "stages of a round; may read `index`").required(),
        ],
    )
    .rules(&[Rule::OneOf(&["while", "until", "do_while"])]),
    block(
        "branch_stage",
        "one of several lists of stages, `type: branch`",
        &[key("branch", Shape::Block("branch"), "the condition, and the lists of stages").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "branch",
        "the arms of a branch",
        &[
            key("if", Shape::Condition, "selects `then` or `else`"),
            key("then", STAGE_LIST, "stages if it holds").beside("if"),
            key("else", Shape::List(&Shape::Block("stage")), "stages if it does not hold").beside("if"),
            key("switch", Shape::Template, "an expression; its text form selects the case").example("run.id"),
            key("cases", Shape::Map(&Shape::List(&Shape::Block("stage"))), "stages for each value")
                .beside("switch"),
            key("default", Shape::List(&Shape::Block("stage")), "stages if no case matches").beside("switch"),
        ],
    )
    .rules(&[Rule::OneOf(&["if", "switch"]), Rule::Needs("if", "then"), Rule::Needs("switch", "cases")]),
    block(
        "wait_stage",
        "a stage that waits, `type: wait`",
        &[key("wait", Shape::Block("wait"), "what to wait for").required(), OUTPUTS],
    )
    .includes(&["event"])
    .part(),
    block(
        "wait",
        "what a stage waits for",
        &[
            key("for", LENGTH, "a duration; `0s` is allowed"),
            key("until", Shape::TextTemplate, "an instant with offset").example("2027-01-31T09:00:00Z"),
            key("cron", Shape::Text, "until a five-field cron pattern matches").example("0 9 * * 1-5"),
            key("signal", Shape::Text, "the name of a signal sent to this run"),
            key("message", Shape::Text, "the name of a published message"),
            key("match", BINDINGS, "required values in the signal or message")
                .beside("signal")
                .otherwise("any"),
            key("timeout", DURATION, "longest wait for it").beside("signal").otherwise("none"),
            key(
                "on_timeout",
                Shape::Either(&[Shape::Words(&["fail"]), Shape::Block("timed_out")]),
                "effect of a timeout",
            )
            .beside("signal")
            .default("fail"),
        ],
    )
    .rules(&[Rule::OneOf(&["for", "until", "cron", "signal", "message"])]),
    block(
        "timed_out",
        "a wait that times out and counts as done",
        &[key("value", Shape::AnyOrNull, "its value in that case").required()],
    ),
    block(
        "assign_stage",
        "computed values, `type: assign`",
        &[key("set", Shape::Named(NAME, &Shape::Template), "each becomes an output").required(), OUTPUTS],
    )
    .includes(&["event"])
    .part(),
    block(
        "finish_stage",
        "ends the run early, `type: finish`",
        &[
            key("finish", Shape::Block("finish"), "how the run ends").otherwise("success, without outputs"),
            NO_OUTPUTS,
        ],
    )
    .includes(&["event"])
    .part(),
    block(
        "finish",
        "how a run ends early",
        &[
            key("status", Shape::Words(&["success", "failed", "cancelled"]), "the status of the run")
                .default("success"),
            key("outputs", Shape::Named(NAME, &Shape::Template), "outputs of the run"),
        ],
    ),
    block(
        "block_stage",
        "stages that count as one, `type: block`",
        &[key("stages", STAGE_LIST, "the stages").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "parallel_stage",
        "parallel branches, `type: parallel`",
        &[key("parallel", Shape::Block("parallel"), "the branches").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "parallel",
        "the branches, and the effect of a failure",
        &[
            key(
                "on_failure",
                Shape::Words(&["wait", "abort", "continue"]),
                "wait for all and fail, stop the others, or continue",
            )
            .default("wait"),
            key("branches", Shape::Several(&BRANCH), "each a stage, or a list of stages").required(),
        ],
    ),
    block(
        "assistant_stage",
        "a command-line agent, `type: assistant`",
        &[key("assistant", Shape::Block("assistant"), "the prompt, and the agent").required()],
    )
    .includes(&["work"])
    .part(),
    block(
        "assistant",
        "the prompt of a command-line agent",
        &[
            key("prompt", Shape::TextTemplate, "the prompt"),
            key("command", Shape::Text, "the name of a command it knows"),
            key("input", BINDINGS, "input of the command").beside("command"),
            key("arguments", Shape::List(&Shape::Template), "additional arguments").beside("command"),
            key("settings", BINDINGS, "additional options").beside("command"),
            key("integration", Shape::TextTemplate, "which agent").example("claude"),
            key("model", Shape::TextTemplate, "which model").example("opus"),
            key("options", Shape::Map(&Shape::Any), "recorded with the result"),
            key(
                "capture",
                Shape::Either(&[Shape::Boolean, Shape::Block("capture")]),
                "whether to capture its output",
            )
            .default("false"),
        ],
    )
    .rules(&[Rule::OneOf(&["prompt", "command"])]),
    block(
        "capture",
        "how much output to capture",
        &[key("max_bytes", ANY_COUNT, "bytes per stream").otherwise("all")],
    ),
    block(
        "builtin_stage",
        "a built-in function, `type: builtin`",
        &[
            key("builtin", Shape::Words(&["speckit_init", "github_add_label", "respond"]), "the function")
                .required(),
            key("args", BINDINGS, "its arguments"),
        ],
    )
    .includes(&["work"])
    .not_yet(NO_RESPONSE)
    .part(),
    block(
        "slot_stage",
        "a place that overlays can fill, `type: slot`",
        &[key("slot", Shape::Text, "its name").required().example("after-tests"), NO_OUTPUTS],
    )
    .includes(&["event"])
    .part(),
];
