//! The keys of DCC-MCP schedules files: which workflow starts when.

use super::{Block, Form, Language, NO_SERVER, NOTHING, Shape, Variants, WORD_OR_NUMBER, block, key};

pub const LANGUAGE: Language = Language {
    name: "schedules",
    title: "DCC-MCP schedules",
    about: "`schedules.yaml` and `*.schedules.yaml` of DCC-MCP: workflows that start on a schedule or on a request",
    opens: "{{",
    any_case: false,
    blocks: &[DOCUMENT],
    foreign: &[],
};

const COUNT: Shape = Shape::Integer { min: 0, max: u32::MAX as i64 };
const FILLED: Shape = Shape::Form(Form {
    what: "text that is not blank",
    pattern: r"\S",
    example: "nightly",
    also: WORD_OR_NUMBER,
});
const PATH: Shape = Shape::Form(Form {
    what: "a path such as `/hooks/new`",
    pattern: "^/",
    example: "/hooks/new",
    also: NOTHING,
});

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of a schedules file",
        &[key("schedules", Shape::List(&Shape::Block("schedule")), "the schedules")],
    ),
    block(
        "schedule",
        "one schedule",
        &[
            key("id", FILLED, "unique across all files").required(),
            key("workflow", FILLED, "the name of the workflow").required().example("tidy-up"),
            key("enabled", Shape::Boolean, "whether it fires").default("true"),
            key("trigger", Shape::Block("trigger"), "what starts it").required(),
            key("inputs", Shape::Template, "inputs of the run; may read `trigger`")
                .example(r#"{"path": "{{trigger.payload.path}}"}"#),
            key("max_concurrent", COUNT, "concurrent runs; 0 means no limit").default("1"),
        ],
    ),
    block(
        "trigger",
        "what starts the workflow",
        &[key("kind", Shape::Words(&["cron", "webhook"]), "on a schedule, or on a request").required()],
    )
    .variants(Variants {
        by: "kind",
        default: None,
        of: &[("cron", "cron_trigger"), ("webhook", "webhook_trigger")],
    }),
    block(
        "cron_trigger",
        "on a schedule, `kind: cron`",
        &[
            key("expression", Shape::Text, "second, minute, hour, day, month, weekday, optionally year")
                .required()
                .example("0 0 3 * * *"),
            key("timezone", Shape::Text, "a name from the tz database").default("UTC"),
            key("jitter_secs", COUNT, "each firing is delayed at random by up to this many seconds")
                .default("0"),
        ],
    )
    .part(),
    block(
        "webhook_trigger",
        "on a POST request, `kind: webhook`",
        &[
            key("path", PATH, "path to listen on").required(),
            key("secret_env", FILLED, "the environment variable with the secret that signs requests")
                .example("HOOK_SECRET"),
        ],
    )
    .not_yet(NO_SERVER)
    .part(),
];
