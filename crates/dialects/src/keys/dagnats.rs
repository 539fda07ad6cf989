//! The keys of dagnats: JSON definitions of graphs of worker tasks, their types of steps and their triggers.

use super::{ANY_COUNT, Block, COUNT, Form, Key, Language, Rule, Shape, TEXTS, Variants, block, key};

pub const LANGUAGE: Language = Language {
    name: "dagnats",
    title: "DagNats workflow (dagnats)",
    about: "JSON definitions of DagNats: a graph of worker tasks with compensations, agent loops and triggers",
    opens: "",
    blocks: &[DOCUMENT, STEPS, TRIGGERS],
    foreign: &[],
};

/// Go's text form, or whole nanoseconds.
const DURATION: Shape = Shape::Either(&[
    Shape::Form(Form {
        what: "duration such as `\"1h30m\"`",
        pattern: r"^\s*[+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)\s*$",
        example: "30s",
        is_word: false,
    }),
    ANY_COUNT,
]);
const FILLED: Shape =
    Shape::Form(Form { what: "text that is not empty", pattern: ".", example: "text", is_word: false });
const DOTTED: Shape = Shape::Form(Form {
    what: "a path such as `order.id`",
    pattern: r"^([^.]+(\.[^.]+)*)?$",
    example: "order.id",
    is_word: false,
});
const TEXT_MAP: Shape = Shape::Map(&Shape::Text);

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top of a workflow file",
        &[
            key("$schema", Shape::Text, "where an editor finds the schema; never looked at"),
            key("name", FILLED, "identifies the workflow").required().example("code-review"),
            key("version", Shape::Text, "for people").example("1.0"),
            key("steps", Shape::Several(&Shape::Block("step")), "the work").required(),
            key("default_retry", Shape::Block("retry"), "retry policy of steps without one"),
            key("concurrency", Shape::Block("concurrency"), "limits on runs and steps"),
            key("timeout", DURATION, "bounds the run").otherwise("none"),
            key("input_schema", Shape::Schema, "what the input of a run must look like")
                .example(r#"{"type": "object"}"#),
            key("output_schema", Shape::Schema, "what the output of a run must look like")
                .example(r#"{"type": "object"}"#),
            key(
                "idempotency_key",
                DOTTED,
                "a path into the input; a second start with its value is the first run",
            ),
            key(
                "sticky",
                Shape::Words(&["", "soft", "hard"]),
                "whether one worker does all steps; `hard` needs `timeout`",
            )
            .example("soft"),
            key("priority", Shape::Block("priority"), "which waiting run starts first"),
            key(
                "cancel_on",
                Shape::List(&Shape::Block("cancel_on")),
                "messages that cancel the run; at most 5",
            ),
            key("singleton", Shape::Block("singleton"), "one run at a time"),
            key("triggers", Shape::List(&Shape::Block("trigger")), "what starts runs by itself"),
            key("aux_steps", Shape::Map(&Shape::Boolean), "which steps only undo or take over")
                .no_effect("`on_failure` and `compensate` say it already"),
        ],
    )
    .refuses_unknown(),
    block(
        "retry",
        "a retry policy",
        &[
            key(
                "max_attempts",
                Shape::Integer { min: 0, max: 100_000 },
                "attempts after the first; 0 is none",
            ),
            key("strategy", Shape::Words(&["fixed", "linear", "exponential"]), "how delays grow")
                .default("fixed"),
            key("initial_delay", DURATION, "delay before the first further attempt"),
            key("max_delay", DURATION, "longest delay; 0 is no bound"),
            key("multiplier", Shape::Number, "factor of `exponential`").example("2"),
        ],
    ),
    block(
        "concurrency",
        "limits of a workflow",
        &[
            key("max_runs", Shape::Integer { min: 0, max: i64::MAX }, "runs at once; 0 is no limit"),
            key("max_steps", Shape::Integer { min: 0, max: 1000 }, "steps of a run at once; 0 is no limit"),
        ],
    ),
    block(
        "priority",
        "which waiting run starts first",
        &[
            key("key", DOTTED, "a path into the input").required(),
            key(
                "rules",
                Shape::Map(&Shape::Integer { min: -600, max: 600 }),
                "seconds that each value is ahead; 1 to 20 values",
            )
            .required()
            .example(r#"{"gold": 60}"#),
            key("default_offset", Shape::Integer { min: -600, max: 600 }, "seconds for every other value")
                .default("0"),
        ],
    ),
    block(
        "cancel_on",
        "a message that cancels the run",
        &[
            key("event", FILLED, "its name").required().example("order.gone"),
            key("match", Shape::Any, "what it must carry").example("order.id"),
            key("timeout", DURATION, "how long it is listened for"),
        ],
    ),
    block(
        "singleton",
        "one run at a time",
        &[
            key("mode", Shape::Words(&["skip", "cancel"]), "which of two runs gives way").required(),
            key("key", DOTTED, "a path into the input; runs are counted apart for each value of it"),
        ],
    ),
];

const TYPES: Variants = Variants {
    by: "type",
    default: Some("normal"),
    of: &[
        ("normal", "normal_step"),
        ("agent", "agent_step"),
        ("agent_loop", "agent_loop_step"),
        ("map", "map_step"),
        ("sub_workflow", "sub_workflow_step"),
        ("sleep", "sleep_step"),
        ("wait_for_event", "wait_for_event_step"),
        ("approval", "approval_step"),
        ("planner", "planner_step"),
        ("respond", "respond_step"),
    ],
};
const WORDS: &[&str] = &[
    "normal",
    "agent_loop",
    "sub_workflow",
    "agent",
    "map",
    "sleep",
    "wait_for_event",
    "approval",
    "planner",
    "respond",
];
const TASK: Key = key("task", FILLED, "the name workers subscribe to").required().example("git.fetch");
const NO_TASK: Key = key("task", Shape::Text, "no worker does this step").example("x");

const STEPS: &[Block] = &[
    block(
        "step",
        "one step of the graph",
        &[
            key("id", FILLED, "unique in the workflow").required().example("work"),
            key("type", Shape::Words(WORDS), "what kind of step").default("normal"),
            key("depends_on", TEXTS, "ids of steps that must be done first").example("[]"),
            key("timeout", DURATION, "bounds one attempt").otherwise("none"),
            key(
                "retries",
                Shape::Integer { min: 0, max: 100_000 },
                "further attempts, 5 s apart; `retry` wins",
            )
            .default("0"),
            key("retry", Shape::Block("retry"), "retry policy").otherwise("`default_retry`, else `retries`"),
            key("skip_if", Shape::Block("skip_if"), "the step is skipped if this holds"),
            key("metadata", TEXT_MAP, "given to the worker"),
            key("worker_group", Shape::Text, "which group of workers").example("gpu"),
            key("required_capabilities", TEXTS, "what a worker must be able to do")
                .example(r#"["control-plane"]"#),
            key("on_failure", Shape::Text, "the step that takes over when this one fails").example("other"),
            key("compensate", Shape::Text, "the step that undoes this one").example("other"),
            key("rate_limit", Shape::Block("rate_limit"), "how often it starts"),
            key(
                "keyed_rate_limit",
                Shape::Block("keyed_rate_limit"),
                "how often it starts for each value of a key",
            ),
            key(
                "max_task_concurrency",
                Shape::Integer { min: 0, max: 1000 },
                "jobs of the same task at once, over all runs",
            ),
            key("singleton", Shape::Boolean, "one at a time").warned("it never had an effect on a step"),
        ],
    )
    .rules(&[Rule::AtMostOneOf(&["rate_limit", "keyed_rate_limit"])])
    .variants(TYPES),
    block(
        "skip_if",
        "a comparison with the output of a step it depends on",
        &[
            key("step_id", Shape::Text, "that step").required().example("before"),
            key("field", FILLED, "a key of its output").required().example("count"),
            key("op", Shape::Words(&["==", "!=", "<", ">", "<=", ">="]), "how they are compared").required(),
            key("value", Shape::Any, "with what").required().example("0"),
        ],
    ),
    block(
        "rate_limit",
        "how often a step starts",
        &[
            key("limit", COUNT, "starts in each period").required(),
            key("period", DURATION, "how long a period is").required().example("1m"),
        ],
    ),
    block(
        "keyed_rate_limit",
        "how often a step starts for each value of a key",
        &[
            key("key", FILLED, "a path into the input").required().example("customer.id"),
            key("limit", COUNT, "units in each period").required(),
            key("period", DURATION, "how long a period is").required().example("1m"),
            key("units", COUNT, "what one start counts").required(),
        ],
    ),
    block("normal_step", "a job for a worker, `type: normal`", &[TASK]).part(),
    block("agent_step", "a job for an agent, `type: agent`", &[TASK]).part(),
    block(
        "agent_loop_step",
        "a job that is repeated until the worker says it is done, `type: agent_loop`",
        &[
            TASK,
            key("config", Shape::Block("agent_loop"), "bounds of the loop")
                .example(r#"{"max_iterations": 3}"#),
            key("loop", Shape::Block("agent_loop"), "the same, as older files write it"),
        ],
    )
    .rules(&[Rule::AnyOf(&["config", "loop"])])
    .part(),
    block(
        "agent_loop",
        "bounds of an agent loop",
        &[
            key("max_iterations", COUNT, "most rounds").required(),
            key("max_duration", DURATION, "longest time of all rounds"),
            key("loop_delay", DURATION, "pause between rounds"),
            key("budget_warn_at", Shape::Number, "told to the worker").example("0.8"),
            key("budget_force_at", Shape::Number, "told to the worker").example("0.9"),
        ],
    ),
    block(
        "map_step",
        "one job for each element of a list, `type: map`",
        &[TASK, key("config", Shape::Block("map"), "bounds of the list").required()],
    )
    .part(),
    block(
        "map",
        "bounds of a map",
        &[key("max_items", Shape::Integer { min: 1, max: 10_000 }, "most elements").required()],
    ),
    block(
        "sub_workflow_step",
        "another workflow, as a run of its own, `type: sub_workflow`",
        &[NO_TASK, key("config", Shape::Block("sub_workflow"), "which one").required()],
    )
    .part(),
    block(
        "sub_workflow",
        "a workflow that is called",
        &[
            key("workflow", FILLED, "its name").required().example("child"),
            key("detach", Shape::Boolean, "whether nobody waits for it").default("false"),
        ],
    ),
    block(
        "sleep_step",
        "a wait for time, `type: sleep`",
        &[NO_TASK, key("config", Shape::Block("sleep"), "how long").required()],
    )
    .part(),
    block(
        "sleep",
        "how long a step sleeps",
        &[
            key("duration", DURATION, "so long").example("2s"),
            key("cron", Shape::Text, "until a pattern of five fields is due").example("0 9 * * *"),
            key("until_input_path", DOTTED, "a path to a point in time, or to milliseconds"),
        ],
    )
    .rules(&[Rule::OneOf(&["duration", "cron", "until_input_path"])]),
    block(
        "wait_for_event_step",
        "a wait for a message, `type: wait_for_event`",
        &[NO_TASK, key("config", Shape::Block("wait_for_event"), "which one").required()],
    )
    .part(),
    block(
        "wait_for_event",
        "the message a step waits for",
        &[
            key("event", FILLED, "its name").required().example("paid"),
            key("match", Shape::Block("match"), "what it must carry").required(),
            key("timeout", DURATION, "longest wait").required().example("1m"),
        ],
    ),
    block(
        "match",
        "what a message must carry",
        &[
            key("left", FILLED, "a path into the message").required().example("order"),
            key("op", Shape::Words(&["eq"]), "how they are compared").required(),
            key("right", FILLED, "`input.…` or `step.ID.output.…`").required().example("input.order"),
        ],
    ),
    block(
        "approval_step",
        "a step where a person decides, `type: approval`",
        &[NO_TASK, key("config", Shape::Block("approval"), "whom to ask, and what").required()],
    )
    .part(),
    block(
        "approval",
        "what is asked, and where",
        &[
            key("subject", FILLED, "where the question is published").required().example("approvals.release"),
            key("timeout", DURATION, "how long it waits; at most 168 h").required().example("1h"),
            key("description", Shape::Text, "what is asked"),
            key("metadata", TEXT_MAP, "told with the question"),
        ],
    ),
    block(
        "planner_step",
        "a job whose worker answers with steps, `type: planner`",
        &[TASK, key("config", Shape::Block("planner"), "bounds of the answer").required()],
    )
    .part(),
    block(
        "planner",
        "bounds of what a planner may answer",
        &[
            key("max_steps", Shape::Integer { min: 1, max: 100 }, "most steps").required(),
            key("max_depth", Shape::Integer { min: 0, max: 10 }, "deepest chain; 0 is no bound").default("0"),
            key("allowed_tasks", TEXTS, "the tasks it may use").otherwise("all"),
        ],
    ),
    block(
        "respond_step",
        "the answer to the request that started the run, `type: respond`",
        &[NO_TASK, key("config", Shape::Block("respond"), "what is answered").required()],
    )
    .part(),
    block(
        "respond",
        "an answer over HTTP",
        &[
            key("status", Shape::Integer { min: 100, max: 599 }, "status code").default("200"),
            key("headers", TEXT_MAP, "headers"),
            key("body_from", Shape::Text, "where the body comes from").example("steps"),
            key("content_type", Shape::Text, "what the body is").default("application/json"),
        ],
    ),
];

const PATH: Shape =
    Shape::Form(Form { what: "a path such as `/orders`", pattern: "^/", example: "/orders", is_word: false });

const TRIGGERS: &[Block] = &[
    block(
        "trigger",
        "what starts runs by itself",
        &[
            key("id", Shape::Text, "identifies the trigger").example("nightly"),
            key("workflow_id", Shape::Text, "the name of this workflow; filled in").example("sample"),
            key("enabled", Shape::Boolean, "whether it fires").default("false"),
            key("source", Shape::Text, "told to the run"),
            key("cron", Shape::Block("cron_trigger"), "fires by the clock"),
            key("subject", Shape::Block("subject_trigger"), "fires when something is published"),
            key("webhook", Shape::Block("webhook_trigger"), "fires on a POST request"),
            key("http", Shape::Block("http_trigger"), "fires on a request that waits for the answer"),
            key("external", Shape::Block("external_trigger"), "a kind that a worker brings"),
            key("debounce", Shape::Block("debounce"), "gathers fires that follow each other"),
        ],
    )
    .rules(&[Rule::OneOf(&["cron", "subject", "webhook", "http", "external"])]),
    block(
        "cron_trigger",
        "fires by the clock",
        &[
            key("expression", Shape::Text, "minute, hour, day, month, weekday")
                .required()
                .example("*/15 6-20 * * 1-5"),
            key("timezone", Shape::Text, "a name of the tz database").example("UTC"),
            key("backfill", Shape::Boolean, "whether missed fires are made up for").default("false"),
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
            key("path", PATH, "where it listens").required(),
            key("secret", Shape::Text, "signs the requests").example("any"),
        ],
    ),
    block(
        "http_trigger",
        "fires on a request that waits for the answer",
        &[
            key("path", PATH, "where it listens").required(),
            key("method", Shape::Text, "how it is asked").default("POST"),
            key("timeout_ms", ANY_COUNT, "longest wait for the answer").example("5000"),
            key("max_body_bytes", ANY_COUNT, "largest request").example("65536"),
            key("secret", Shape::Text, "signs the requests; at least 16 characters")
                .example("sixteen-char-key!"),
            key("idempotency_header", Shape::Text, "a header; a request with its value is answered once")
                .example("Idempotency-Key"),
            key("authentication", Shape::Any, "how callers are told to prove who they are")
                .example(r#"{"type": "bearer"}"#),
        ],
    ),
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
            key("period", DURATION, "quiet time after the last one").required().example("5s"),
            key("timeout", DURATION, "longest wait of the first one").example("30s"),
            key("key", DOTTED, "a path; each value of it is gathered apart"),
        ],
    ),
];
