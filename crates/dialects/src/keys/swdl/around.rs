//! The keys of swdl around a run: hooks, and the triggers that start runs.

use super::{DURATION, LIMIT};
use crate::keys::{ANY_COUNT, Block, Form, Key, Rule, Shape, WORD_OR_NUMBER, block, key};

const PATH: Shape = Shape::Form(Form {
    what: "text that is not empty",
    pattern: r"[\s\S]",
    example: "orders",
    also: WORD_OR_NUMBER,
});
const SECRET: Key = key(
    "secret",
    Shape::Either(&[Shape::Text, Shape::Block("secret")]),
    "what signs the requests: the name of a declared secret, or where it is",
)
.example("HOOK_SECRET");

const CATCH_UP_MAX: Shape = Shape::Integer { min: 1, max: 1_000 };

pub(super) const AROUND: &[Block] = &[
    block(
        "hooks",
        "what is done around a run; it cannot change the result",
        &[
            key("on_start", Shape::Block("hook"), "when the run starts"),
            key("on_complete", Shape::Block("hook"), "when it has succeeded"),
            key("on_failure", Shape::Block("hook"), "when it has failed"),
        ],
    ),
    block(
        "hook",
        "what is done at one moment",
        &[
            key("notify", Shape::TextTemplate, "whom to tell").example("slack:#builds"),
            key("run", Shape::TextTemplate, "a command; values are quoted for the shell"),
            key("webhook", Shape::TextTemplate, "a URL to call").example("https://example.org/done"),
        ],
    ),
    block(
        "trigger",
        "one entry of `triggers`",
        &[
            key("id", Shape::Text, "identifies the trigger"),
            key("enabled", Shape::Boolean, "whether it fires").default("true"),
            key("cron", Shape::Text, "minute, hour, day, month, weekday; with six fields seconds come first")
                .example("0 9 * * 1-5"),
            key(
                "syntax",
                Shape::Words(&["house", "posix", "seconds_first"]),
                "what the fields of the pattern are",
            )
            .beside("cron")
            .default("house"),
            key("timezone", Shape::Text, "a name of the tz database").beside("cron").example("Europe/Berlin"),
            key("jitter", DURATION, "each fire is put off by a random time up to this").beside("cron"),
            key(
                "catch_up",
                Shape::Words(&["all", "last", "none"]),
                "which of the fires that were missed are made up for",
            )
            .beside("cron")
            .default("none"),
            key("catch_up_max", CATCH_UP_MAX, "at most so many of them, the latest; with `catch_up: all`")
                .beside("catch_up")
                .default("100"),
            key("webhook", Shape::Block("webhook"), "a POST request"),
            key("http", Shape::Block("http_trigger"), "a request that waits for the answer"),
            key("message", Shape::Text, "the name of a message"),
            key("external", Shape::Block("external"), "a kind that a worker brings"),
            key(
                "with",
                Shape::Map(&Shape::Template),
                "parameters of the run; may read `item`, what fired it",
            )
            .example("{}"),
            key("input", Shape::Template, "the whole input of the run; may read `item`"),
            key("envelope", Shape::Boolean, "the input is what fired it, with a few words about it")
                .default("false"),
            key("max_concurrent", LIMIT, "runs of this trigger at once").otherwise("unlimited"),
            key(
                "overlap",
                Shape::Words(&["skip", "queue", "cancel"]),
                "a fire beyond that: is skipped, waits for its turn, or cancels the runs under way",
            )
            .beside("max_concurrent")
            .default("skip"),
            key("debounce", Shape::Block("debounce"), "gathers fires that follow each other")
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
        &[key("path", PATH, "where it listens").required().example("deploys"), SECRET],
    ),
    block(
        "secret",
        "a secret that signs requests and is not declared",
        &[
            key("env", Shape::Text, "the variable of the server that holds it").example("HOOK_SECRET"),
            key("literal", Shape::Text, "the secret itself"),
        ],
    )
    .rules(&[Rule::OneOf(&["env", "literal"])]),
    block(
        "http_trigger",
        "a request that starts a run and waits for its answer",
        &[
            key("path", PATH, "where it listens").required().example("orders"),
            key("method", Shape::Words(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "how it is asked")
                .default("POST"),
            key("timeout", DURATION, "longest wait for the answer"),
            key("max_body_bytes", ANY_COUNT, "largest request"),
            SECRET,
            key("idempotency_header", Shape::Text, "a header; a request with its value is answered once")
                .example("Idempotency-Key"),
            key("authentication", Shape::Any, "how callers are told to prove who they are"),
        ],
    ),
    block(
        "external",
        "a kind of trigger that a worker brings",
        &[
            key("kind", Shape::Text, "which kind").required().example("mail"),
            key("config", Shape::Any, "what the kind needs"),
        ],
    ),
    block(
        "debounce",
        "gathers fires that follow each other",
        &[
            key("period", DURATION, "quiet time after the last one").required(),
            key("timeout", DURATION, "longest wait of the first one"),
            key("key", Shape::Text, "a path; each value of it is gathered apart").example("order.id"),
        ],
    ),
];
