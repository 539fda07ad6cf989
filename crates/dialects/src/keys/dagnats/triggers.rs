//! The keys of what starts runs of dagnats by itself.

use super::{DURATION, FILLED, LENGTH, LIMIT, NAME, PATH};
use crate::keys::{Block, Form, NOTHING, Rule, Shape, Variants, WORD_OR_NUMBER, block, key};

const ROUTE: Shape =
    Shape::Form(Form { what: "a path such as `/orders`", pattern: "^/", example: "/orders", also: NOTHING });
const EXACT_ROUTE: Shape = Shape::Form(Form {
    what: "a path such as `/orders`",
    pattern: r"^/[^*]*$",
    example: "/orders",
    also: NOTHING,
});
/// Sixteen bytes are no more than sixteen letters; what is not ASCII has more bytes than letters.
const SECRET: Shape = Shape::Form(Form {
    what: "text of at least 16 bytes",
    pattern: r"^$|[^\x00-\x7f]|^[\s\S]{16,}$",
    example: "sixteen-char-key!",
    also: NOTHING,
});
const HEADER: Shape = Shape::Form(Form {
    what: "name of a header",
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]*$",
    example: "Idempotency-Key",
    also: WORD_OR_NUMBER,
});

pub(super) const TRIGGERS: &[Block] = &[
    block(
        "trigger",
        "what starts runs by itself",
        &[
            key("id", FILLED, "identifies the trigger").required().example("nightly"),
            key("workflow_id", NAME_OR_NOTHING, "the name of this workflow; filled in")
                .example("code-review"),
            key("enabled", Shape::Boolean, "whether it fires").default("false"),
            key("source", Shape::Any, "where it came from").no_effect("the server fills it in"),
            key("cron", Shape::Block("cron_trigger"), "fires by the clock"),
            key("subject", Shape::Block("subject_trigger"), "fires when something is published"),
            key("webhook", Shape::Block("webhook_trigger"), "fires on a POST request"),
            key("http", Shape::Block("http_trigger"), "fires on a request that waits for the answer"),
            key("external", Shape::Block("external_trigger"), "a kind that a worker brings"),
            key("debounce", Shape::Block("debounce"), "gathers fires that follow each other")
                .beside("subject"),
        ],
    )
    .rules(&[
        Rule::OneOf(&["cron", "subject", "webhook", "http", "external"]),
        Rule::AtMostOneOf(&["cron", "debounce"]),
    ]),
    block(
        "cron_trigger",
        "fires by the clock",
        &[
            key("expression", FILLED, "minute, hour, day, month, weekday")
                .required()
                .example("*/15 6-20 * * 1-5"),
            key("timezone", Shape::Text, "a name of the tz database").example("UTC"),
            key("backfill", Shape::Boolean, "whether missed fires are made up for, the latest 100")
                .default("false"),
        ],
    ),
    block(
        "subject_trigger",
        "fires when something is published",
        &[key("subject", FILLED, "its name, or a pattern of names").required().example("sensors.>")],
    ),
    block(
        "webhook_trigger",
        "fires on a POST request",
        &[
            key("path", ROUTE, "where it listens").required(),
            key("secret", Shape::Text, "signs the requests").example("any"),
        ],
    ),
    block(
        "http_trigger",
        "fires on a request that waits for the answer",
        &[
            key("path", EXACT_ROUTE, "where it listens").required(),
            key("method", Shape::Words(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "how it is asked")
                .required(),
            key("timeout_ms", LIMIT, "longest wait for the answer").required().example("5000"),
            key("max_body_bytes", LIMIT, "largest request").required().example("65536"),
            key("secret", SECRET, "signs the requests"),
            key("idempotency_header", HEADER, "a header; a request with its value is answered once"),
            key(
                "authentication",
                Shape::Block("authentication"),
                "how callers are told to prove who they are",
            ),
        ],
    ),
    block(
        "authentication",
        "how callers are told to prove who they are; a description, which is passed on",
        &[
            key("name", FILLED, "what the scheme is called").required().example("main"),
            key("type", Shape::Words(&["http", "apiKey", "oauth2", "openIdConnect"]), "what kind of scheme")
                .required(),
            key("bearer_format", Shape::Any, "what a token looks like").example("JWT"),
            key("description", Shape::Any, "for people"),
        ],
    )
    .variants(Variants {
        by: "type",
        default: None,
        of: &[
            ("http", "http_authentication"),
            ("apiKey", "key_authentication"),
            ("oauth2", "other_authentication"),
            ("openIdConnect", "other_authentication"),
        ],
    }),
    block(
        "http_authentication",
        "a scheme of HTTP",
        &[
            key("scheme", FILLED, "which one").required().example("bearer"),
            key("in", Shape::Any, "where a key stands").example("header"),
            key("header_name", Shape::Any, "the header of a key").example("X-Key"),
        ],
    )
    .part(),
    block(
        "key_authentication",
        "a key that is sent along",
        &[
            key("in", Shape::Words(&["header", "query", "cookie"]), "where it stands")
                .required()
                .example("query"),
            key("header_name", Shape::Any, "the header it stands in").example("X-Key"),
            key("scheme", Shape::Any, "a scheme of HTTP"),
        ],
    )
    .rules(&[Rule::NeedsWhen("in", "header", "header_name")])
    .part(),
    block(
        "other_authentication",
        "a scheme with its own rules",
        &[
            key("scheme", Shape::Any, "a scheme of HTTP"),
            key("in", Shape::Any, "where a key stands").example("header"),
            key("header_name", Shape::Any, "the header of a key").example("X-Key"),
        ],
    )
    .part(),
    block(
        "external_trigger",
        "a kind that a worker brings",
        &[
            key("kind", FILLED, "which kind").required().example("mail"),
            key("config", Shape::Any, "what the kind needs").example(r#"{"box": "in"}"#),
        ],
    ),
    block(
        "debounce",
        "gathers fires that follow each other",
        &[
            key("period", DURATION, "quiet time after the last one, at most 7 days").required().example("5s"),
            key("timeout", LENGTH, "longest wait of the first one, at least `period`").example("30s"),
            key("key", PATH, "a path; each value of it is gathered apart"),
        ],
    ),
];

const NAME_OR_NOTHING: Shape = Shape::Either(&[Shape::Words(&[""]), NAME]);
