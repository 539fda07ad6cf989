//! The keys of dagnats triggers.

use super::{DURATION, FILLED, LENGTH, LIMIT, NAME, PATH};
use crate::keys::{
    Block, Form, NO_MESSAGES, NO_SERVER, NO_WORKERS, NOTHING, Rule, Shape, Variants, WORD_OR_NUMBER, block,
    key,
};

const ROUTE: Shape =
    Shape::Form(Form { what: "a path such as `/orders`", pattern: "^/", example: "/orders", also: NOTHING });
const EXACT_ROUTE: Shape = Shape::Form(Form {
    what: "a path such as `/orders`",
    pattern: r"^/[^*]*$",
    example: "/orders",
    also: NOTHING,
});
/// Sixteen bytes are at most sixteen characters; characters beyond ASCII take several bytes.
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
        "a trigger that starts runs",
        &[
            key("id", FILLED, "identifies the trigger").required().example("nightly"),
            key("workflow_id", NAME_OR_NOTHING, "the name of this workflow; filled in")
                .example("code-review"),
            key("enabled", Shape::Boolean, "whether it fires").default("false"),
            key("source", Shape::Any, "where it came from").no_effect("the server fills it in"),
            key("cron", Shape::Block("cron_trigger"), "fires on a schedule"),
            key("subject", Shape::Block("subject_trigger"), "fires when a message is published")
                .not_yet(NO_MESSAGES),
            key("webhook", Shape::Block("webhook_trigger"), "fires on a POST request").not_yet(NO_SERVER),
            key("http", Shape::Block("http_trigger"), "fires on a request that waits for the response")
                .not_yet(NO_SERVER),
            key("external", Shape::Block("external_trigger"), "a kind that a worker provides")
                .not_yet(NO_WORKERS),
            key("debounce", Shape::Block("debounce"), "combines firings in quick succession")
                .beside("subject"),
        ],
    )
    .rules(&[
        Rule::OneOf(&["cron", "subject", "webhook", "http", "external"]),
        Rule::AtMostOneOf(&["cron", "debounce"]),
    ]),
    block(
        "cron_trigger",
        "fires on a schedule",
        &[
            key("expression", FILLED, "minute, hour, day, month, weekday")
                .required()
                .example("*/15 6-20 * * 1-5"),
            key("timezone", Shape::Text, "a name from the tz database").example("UTC"),
            key("backfill", Shape::Boolean, "whether missed firings are made up for, up to the latest 100")
                .default("false"),
        ],
    ),
    block(
        "subject_trigger",
        "fires when a message is published",
        &[key("subject", FILLED, "subject, or a pattern of subjects").required().example("sensors.>")],
    ),
    block(
        "webhook_trigger",
        "fires on a POST request",
        &[
            key("path", ROUTE, "path to listen on").required(),
            key("secret", Shape::Text, "secret that signs the requests").example("any"),
        ],
    ),
    block(
        "http_trigger",
        "fires on a request that waits for the response",
        &[
            key("path", EXACT_ROUTE, "path to listen on").required(),
            key("method", Shape::Words(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "HTTP method").required(),
            key("timeout_ms", LIMIT, "longest wait for the response").required().example("5000"),
            key("max_body_bytes", LIMIT, "largest request").required().example("65536"),
            key("secret", SECRET, "secret that signs the requests"),
            key("idempotency_header", HEADER, "a header; requests with the same value get the same response"),
            key("authentication", Shape::Block("authentication"), "how callers should authenticate"),
        ],
    ),
    block(
        "authentication",
        "how callers should authenticate; a description that is passed on",
        &[
            key("name", FILLED, "name of the scheme").required().example("main"),
            key("type", Shape::Words(&["http", "apiKey", "oauth2", "openIdConnect"]), "kind of scheme")
                .required(),
            key("bearer_format", Shape::Any, "format of a token").example("JWT"),
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
        "an HTTP scheme",
        &[
            key("scheme", FILLED, "the HTTP scheme").required().example("bearer"),
            key("in", Shape::Any, "where the key is sent").example("header"),
            key("header_name", Shape::Any, "name of the key's header").example("X-Key"),
        ],
    )
    .part(),
    block(
        "key_authentication",
        "an API key",
        &[
            key("in", Shape::Words(&["header", "query", "cookie"]), "where it is sent")
                .required()
                .example("query"),
            key("header_name", Shape::Any, "name of its header").example("X-Key"),
            key("scheme", Shape::Any, "an HTTP scheme"),
        ],
    )
    .rules(&[Rule::NeedsWhen("in", "header", "header_name")])
    .part(),
    block(
        "other_authentication",
        "a scheme with its own rules",
        &[
            key("scheme", Shape::Any, "an HTTP scheme"),
            key("in", Shape::Any, "where the key is sent").example("header"),
            key("header_name", Shape::Any, "name of the key's header").example("X-Key"),
        ],
    )
    .part(),
    block(
        "external_trigger",
        "a kind that a worker provides",
        &[
            key("kind", FILLED, "the kind").required().example("mail"),
            key("config", Shape::Any, "settings of the kind").example(r#"{"box": "in"}"#),
        ],
    ),
    block(
        "debounce",
        "combines firings in quick succession",
        &[
            key("period", DURATION, "quiet time after the last one, at most 7 days").required().example("5s"),
            key("timeout", LENGTH, "longest wait of the first one, at least `period`").example("30s"),
            key("key", PATH, "a path; each of its values is debounced separately"),
        ],
    ),
];

const NAME_OR_NOTHING: Shape = Shape::Either(&[Shape::Words(&[""]), NAME]);
