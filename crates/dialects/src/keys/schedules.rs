//! The keys of schedules files of DCC-MCP: which workflow starts when.

use super::{Block, Form, Language, NOTHING, Shape, Variants, WORD_OR_NUMBER, block, key};

pub const LANGUAGE: Language = Language {
    name: "schedules",
    title: "DCC-MCP schedules",
    about: "`schedules.yaml` and `*.schedules.yaml` of DCC-MCP: workflows that start by the clock or on a request",
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
        "the top of a schedules file",
        &[key("schedules", Shape::List(&Shape::Block("schedule")), "what starts when")],
    ),
    block(
        "schedule",
        "one entry",
        &[
            key("id", FILLED, "unique over all files").required(),
            key("workflow", FILLED, "the name of the workflow").required().example("tidy-up"),
            key("enabled", Shape::Boolean, "whether it fires").default("true"),
            key("trigger", Shape::Block("trigger"), "what starts it").required(),
            key("inputs", Shape::Template, "what the run is given; may read `trigger`")
                .example(r#"{"path": "{{trigger.payload.path}}"}"#),
            key("max_concurrent", COUNT, "runs at once; 0 is no limit").default("1"),
        ],
    ),
    block(
        "trigger",
        "what starts the workflow",
        &[key("kind", Shape::Words(&["cron", "webhook"]), "by the clock, or on a request").required()],
    )
    .variants(Variants {
        by: "kind",
        default: None,
        of: &[("cron", "cron_trigger"), ("webhook", "webhook_trigger")],
    }),
    block(
        "cron_trigger",
        "by the clock, `kind: cron`",
        &[
            key("expression", Shape::Text, "second, minute, hour, day, month, weekday, optionally year")
                .required()
                .example("0 0 3 * * *"),
            key("timezone", Shape::Text, "a name of the tz database").default("UTC"),
            key("jitter_secs", COUNT, "each fire is put off by up to so many seconds").default("0"),
        ],
    )
    .part(),
    block(
        "webhook_trigger",
        "on a POST request, `kind: webhook`",
        &[
            key("path", PATH, "where it listens").required(),
            key("secret_env", FILLED, "the variable that holds the secret that signs requests")
                .example("HOOK_SECRET"),
        ],
    )
    .part(),
];
