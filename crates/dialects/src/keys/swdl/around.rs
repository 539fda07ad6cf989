//! The keys of swdl around a run: hooks, and triggers that start runs.

use super::{DURATION, LIMIT};
use crate::keys::{
    ANY_COUNT, Block, Form, Key, NO_MESSAGES, NO_SERVER, NO_WORKERS, Rule, Shape, WORD_OR_NUMBER, block, key,
};

const PATH: Shape = Shape::Form(Form {
    what: "non-empty string",
    pattern: r"[\s\S]",
    example: "orders",
    also: WORD_OR_NUMBER,
});
const SECRET: Key = key(
    "secret",
    Shape::Either(&[Shape::Text, Shape::Block("secret")]),
    "the secret that signs requests: a declared name, or where to find it",
)
.example("HOOK_SECRET");

const CATCH_UP_MAX: Shape = Shape::Integer { min: 1, max: 1_000 };

pub(super) const AROUND: &[Block] = &[
    block(
        "hooks",
        "actions around a run; they cannot change its result",
        &[
            key("on_start", Shape::Block("hook"), "when the run starts"),
            key("on_complete", Shape::Block("hook"), "when it succeeds"),
            key("on_failure", Shape::Block("hook"), "when it fails"),
        ],
    ),
    block(
        "hook",
        "actions at one moment",
        &[
            key("notify", Shape::TextTemplate, "whom to notify").example("slack:#builds").not_yet("notifications are not sent"),
            key("run", Shape::TextTemplate, "a command; values are quoted for the shell"),
            key("webhook", Shape::TextTemplate, "a URL to call").example("https://example.org/done").not_yet("webhooks are not called"),
        ],
    ),
    block(
        "trigger",
        "one entry of `triggers`",
        &[
            key("id", Shape::Text, "identifies the trigger"),
            key("enabled", Shape::Boolean, "whether it fires").default("true"),
            key("cron", Shape::Text, "minute, hour, day, month, weekday; with six fields, seconds come first")
                .example("0 9 * * 1-5"),
            key(
                "syntax",
                Shape::Words(&["house", "posix", "seconds_first"]),
                "syntax of the pattern",
            )
            .beside("cron")
            .default("house"),
            key("timezone", Shape::Text, "a name from the tz database").beside("cron").example("Europe/Berlin"),
            key("jitter", DURATION, "each firing is delayed by a random time up to this").beside("cron"),
            key(
                "catch_up",
                Shape::Words(&["all", "last", "none"]),
                "which missed firings are made up for",
            )
            .beside("cron")
            .default("none"),
            key("catch_up_max", CATCH_UP_MAX, "maximum number of them, latest first; with `catch_up: all`")
                .beside("catch_up")
                .default("100"),
            key("webhook", Shape::Block("webhook"), "a POST request").not_yet(NO_SERVER),
            key("http", Shape::Block("http_trigger"), "a request that waits for the response").not_yet(NO_SERVER),
            key("message", Shape::Text, "name of a message").not_yet(NO_MESSAGES),
            key("external", Shape::Block("external"), "a kind that a worker provides").not_yet(NO_WORKERS),
            key(
                "with",
                Shape::Map(&Shape::Template),
                "parameters of the run; may read `item`, the payload",
            )
            .example("{}"),
            key("input", Shape::Template, "the whole input of the run; may read `item`"),
            key("envelope", Shape::Boolean, "passes the payload in an envelope as the input")
                .default("false"),
            key("max_concurrent", LIMIT, "concurrent runs of this trigger").otherwise("unlimited"),
            key(
                "overlap",
                Shape::Words(&["skip", "queue", "cancel"]),
                "effect of a firing beyond that: it is skipped, waits for its turn, or cancels the active runs",
            )
            .beside("max_concurrent")
            .default("skip"),
            key("debounce", Shape::Block("debounce"), "combines firings in quick succession")
                .beside("message"),
        ],
    )
    .rules(&[
        Rule::OneOf(&["cron", "webhook", "http", "message", "external"]),
        Rule::AtMostOneOf(&["with", "input"]),
        Rule::AtMostOneOf(&["cron", "debounce"]),
    ]),
    block(
        "webhook",
        "a webhook that starts runs",
        &[key("path", PATH, "path to listen on").required().example("deploys"), SECRET],
    ),
    block(
        "secret",
        "a signing secret that is not declared",
        &[
            key("env", Shape::Text, "the server's environment variable that contains it").example("HOOK_SECRET"),
            key("literal", Shape::Text, "the secret itself"),
        ],
    )
    .rules(&[Rule::OneOf(&["env", "literal"])]),
    block(
        "http_trigger",
        "a request that starts a run and waits for its response",
        &[
            key("path", PATH, "path to listen on").required().example("orders"),
            key("method", Shape::Words(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "HTTP method")
                .default("POST"),
            key("timeout", DURATION, "longest wait for the response"),
            key("max_body_bytes", ANY_COUNT, "largest request"),
            SECRET,
            key("idempotency_header", Shape::Text, "a header; requests with the same value get the same response")
                .example("Idempotency-Key"),
            key("authentication", Shape::Any, "how callers should authenticate"),
        ],
    ),
    block(
        "external",
        "a kind of trigger that a worker provides",
        &[
            key("kind", Shape::Text, "the kind").required().example("mail"),
            key("config", Shape::Any, "settings of the kind"),
        ],
    ),
    block(
        "debounce",
        "combines firings in quick succession",
        &[
            key("period", DURATION, "quiet time after the last one").required(),
            key("timeout", DURATION, "longest wait of the first one"),
            key("key", Shape::Text, "a path; each of its values is debounced separately").example("order.id"),
        ],
    ),
];
