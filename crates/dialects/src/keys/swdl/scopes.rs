//! The keys of the stages of swdl that hold other stages, wait, compute or end the run, and of those that other dialects
//! brought along.

use super::stages::{ATTEMPTS, BINDINGS, NO_IDEMPOTENCY, NO_OUTPUTS, NO_RATE, NO_TASK_LIMIT, OUTPUTS};
use super::{DURATION, LENGTH, LIMIT, NAME, STAGE_LIST};
use crate::keys::{ANY_COUNT, Block, COUNT, Form, NOTHING, Rule, Shape, block, key};

/// A list, or one expression that gives one.
const AXIS: Shape = Shape::Either(&[
    Shape::List(&Shape::Template),
    Shape::Form(Form {
        what: "one expression",
        pattern: r"^\s*\$\{\{",
        example: "${{ ['a'] }}",
        also: NOTHING,
    }),
]);
/// One branch of several.
const BRANCH: Shape = Shape::Either(&[Shape::Block("single_stage"), Shape::List(&Shape::Block("stage"))]);

pub(super) const SCOPES: &[Block] = &[
    block(
        "fan_out_stage",
        "one stage for each item, `type: fan_out`",
        &[
            key("fan_out", Shape::Block("fan_out"), "what is repeated, and for which items").required(),
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
        "the items of a fan-out, and what is done with each",
        &[
            key("source", Shape::Template, "the items: a list, or an expression that gives one")
                .example(r#"["a", "b"]"#),
            key("matrix", Shape::Map(&AXIS), "the items are all combinations, with one value for each name")
                .example(r#"{"os": ["linux", "mac"]}"#),
            key("max_items", COUNT, "more items are refused").otherwise("unlimited"),
            key("concurrency", LIMIT, "items at once").otherwise("unlimited"),
            key("on_failure", Shape::Words(&["halt", "continue"]), "what the failure of an item means")
                .default("halt"),
            key("isolated", Shape::Boolean, "whether items see only what was there before the stage")
                .default("false"),
            key("stage_template", Shape::Block("single_stage"), "what is done; reads `item` and `index`"),
            key("stages", STAGE_LIST, "the same as a list of stages"),
        ],
    )
    .rules(&[Rule::OneOf(&["source", "matrix"]), Rule::OneOf(&["stage_template", "stages"])]),
    block(
        "loop_stage",
        "stages that are repeated, `type: loop`",
        &[key("loop", Shape::Block("loop"), "what is repeated, and how long").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "loop",
        "the rounds of a loop",
        &[
            key("while", Shape::Condition, "asked before each round: go on while it holds"),
            key("until", Shape::Condition, "asked after each round: stop once it holds"),
            key("do_while", Shape::Condition, "asked after each round: go on while it holds"),
            key("max", Shape::Integer { min: 1, max: 1_000_000 }, "most rounds").required(),
            key("delay", DURATION, "pause between rounds"),
            key("stages", STAGE_LIST, "what a round does; may read `index`").required(),
        ],
    )
    .rules(&[Rule::OneOf(&["while", "until", "do_while"])]),
    block(
        "branch_stage",
        "one of several lists of stages, `type: branch`",
        &[key("branch", Shape::Block("branch"), "what decides, and between what").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "branch",
        "the arms of a branch",
        &[
            key("if", Shape::Condition, "decides between `then` and `else`"),
            key("then", STAGE_LIST, "when it holds").beside("if"),
            key("else", Shape::List(&Shape::Block("stage")), "when it does not hold").beside("if"),
            key("switch", Shape::Template, "an expression; its value as text picks the case")
                .example("run.id"),
            key("cases", Shape::Map(&Shape::List(&Shape::Block("stage"))), "stages for each value")
                .beside("switch"),
            key("default", Shape::List(&Shape::Block("stage")), "stages when no case fits").beside("switch"),
        ],
    )
    .rules(&[Rule::OneOf(&["if", "switch"]), Rule::Needs("if", "then"), Rule::Needs("switch", "cases")]),
    block(
        "wait_stage",
        "a stage that waits, `type: wait`",
        &[key("wait", Shape::Block("wait"), "for what it waits").required(), OUTPUTS],
    )
    .includes(&["event"])
    .part(),
    block(
        "wait",
        "what a stage waits for",
        &[
            key("for", LENGTH, "so long; `0s` is allowed"),
            key("until", Shape::TextTemplate, "a point in time with offset").example("2027-01-31T09:00:00Z"),
            key("cron", Shape::Text, "until a pattern of five fields is due").example("0 9 * * 1-5"),
            key("signal", Shape::Text, "the name of a signal sent to this run"),
            key("message", Shape::Text, "the name of a message published to nobody in particular"),
            key("match", BINDINGS, "values the signal or message must carry")
                .beside("signal")
                .otherwise("any"),
            key("timeout", DURATION, "longest wait for it").beside("signal").otherwise("none"),
            key(
                "on_timeout",
                Shape::Either(&[Shape::Words(&["fail"]), Shape::Block("timed_out")]),
                "what happens then",
            )
            .beside("signal")
            .default("fail"),
        ],
    )
    .rules(&[Rule::OneOf(&["for", "until", "cron", "signal", "message"])]),
    block(
        "timed_out",
        "a wait that ran out of time and counts as done",
        &[key("value", Shape::AnyOrNull, "what it gives then").required()],
    ),
    block(
        "assign_stage",
        "values that are computed, `type: assign`",
        &[key("set", Shape::Named(NAME, &Shape::Template), "each becomes an output").required(), OUTPUTS],
    )
    .includes(&["event"])
    .part(),
    block(
        "finish_stage",
        "the early end of a run, `type: finish`",
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
        "stages that are one thing to those around them, `type: block`",
        &[key("stages", STAGE_LIST, "what is done").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "parallel_stage",
        "branches side by side, `type: parallel`",
        &[key("parallel", Shape::Block("parallel"), "the branches").required()],
    )
    .includes(&["scope"])
    .part(),
    block(
        "parallel",
        "branches, and what the failure of one means",
        &[
            key(
                "on_failure",
                Shape::Words(&["wait", "abort", "continue"]),
                "wait for all and fail, stop the others, or go on",
            )
            .default("wait"),
            key("branches", Shape::Several(&BRANCH), "each a stage, or a list of stages").required(),
        ],
    ),
    block(
        "assistant_stage",
        "a command line agent, `type: assistant`",
        &[key("assistant", Shape::Block("assistant"), "what is asked, and whom").required()],
    )
    .includes(&["work"])
    .part(),
    block(
        "assistant",
        "what a command line agent is asked",
        &[
            key("prompt", Shape::TextTemplate, "what it is asked"),
            key("command", Shape::Text, "the name of a command it knows"),
            key("input", BINDINGS, "what the command is given").beside("command"),
            key("arguments", Shape::List(&Shape::Template), "more arguments").beside("command"),
            key("settings", BINDINGS, "more options").beside("command"),
            key("integration", Shape::TextTemplate, "which agent").example("claude"),
            key("model", Shape::TextTemplate, "which model").example("opus"),
            key("options", Shape::Map(&Shape::Any), "kept with the result"),
            key(
                "capture",
                Shape::Either(&[Shape::Boolean, Shape::Block("capture")]),
                "whether its output is kept",
            )
            .default("false"),
        ],
    )
    .rules(&[Rule::OneOf(&["prompt", "command"])]),
    block(
        "capture",
        "how much output is kept",
        &[key("max_bytes", ANY_COUNT, "bytes of each stream").otherwise("all")],
    ),
    block(
        "builtin_stage",
        "something that the program itself can do, `type: builtin`",
        &[
            key("builtin", Shape::Words(&["speckit_init", "github_add_label", "respond"]), "what is done")
                .required(),
            key("args", BINDINGS, "what it is given"),
        ],
    )
    .includes(&["work"])
    .part(),
    block(
        "slot_stage",
        "a place that others fill, `type: slot`",
        &[key("slot", Shape::Text, "its name").required().example("after-tests"), NO_OUTPUTS],
    )
    .includes(&["event"])
    .part(),
];
