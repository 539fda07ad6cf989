//! The keys of the steps of dagnats: those of all steps, those of steps that a worker does, and the block that each type
//! has under `config`.

use super::{ANY_LIMIT, DURATION, FILLED, FILLED_PATH, LENGTH, LIMIT, PATH, TEXT_MAP};
use crate::keys::{Block, Form, Key, NOTHING, Part, Rule, Shape, TEXTS, Variants, block, key};

const TYPES: Variants = Variants {
    by: "type",
    default: Some("normal"),
    of: &[
        ("normal", "normal_step"),
        ("agent", "agent_step"),
        ("agent_loop", "agent_loop_step"),
        ("map", "map_step"),
        ("planner", "planner_step"),
        ("sub_workflow", "sub_workflow_step"),
        ("sleep", "sleep_step"),
        ("wait_for_event", "wait_for_event_step"),
        ("approval", "approval_step"),
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
const ID: Shape = Shape::Form(Form {
    what: "text without `.map.`",
    pattern: r"^(?![\s\S]*\.map\.)[^\x00-\x1f\x7f-\x9f]+$",
    example: "work",
    also: crate::keys::WORD_OR_NUMBER,
});

const AFTER: Key =
    key("depends_on", TEXTS, "ids of steps that must be done first").example("[]").stands(Part::Who);
const NO_CONFIG: Key = key("config", Shape::Any, "what a type needs")
    .example(r#"{"x": 1}"#)
    .warned("this type needs nothing")
    .stands(Part::Data);
const NO_LOOP: Key =
    key("loop", Shape::Any, "bounds of a loop").refused("only an agent loop goes round").stands(Part::Data);
const TIMEOUT: Key = key("timeout", LENGTH, "bounds one attempt").otherwise("none").stands(Part::Policy);
const NO_TIMEOUT: Key = TIMEOUT.warned("the type has its own, or takes no time");
const NO_TASK: Key =
    key("task", Shape::Any, "the name workers subscribe to").example("x").no_effect("no worker does it");

const RETRIES: Key = key("retries", Shape::Integer { min: 0, max: 100_000 }, "further attempts, 5 s apart")
    .default("0")
    .stands(Part::Policy);
const RETRY: Key = key("retry", Shape::Block("retry"), "retry policy")
    .otherwise("`default_retry`, else `retries`")
    .stands(Part::Policy);
const METADATA: Key = key("metadata", TEXT_MAP, "given to the worker").stands(Part::Data);
const GROUP: Key = key("worker_group", Shape::Text, "which group of workers; not with `sticky`")
    .example("gpu")
    .stands(Part::Data);
const CAPABILITIES: Key = key("required_capabilities", TEXTS, "what a worker must be able to do")
    .example(r#"["control-plane"]"#)
    .stands(Part::Data);
const RATE: Key = key("rate_limit", Shape::Block("rate_limit"), "how often it starts").stands(Part::Policy);
const KEYED_RATE: Key =
    key("keyed_rate_limit", Shape::Block("keyed_rate_limit"), "how often it starts for each value of a key")
        .stands(Part::Policy);
const JOBS: Key = key(
    "max_task_concurrency",
    Shape::Integer { min: 0, max: 1000 },
    "jobs of the same task at once, over all runs; 0 is no limit",
)
.stands(Part::Policy);
const NO_WORKER: &str = "no worker does it";

pub(super) const STEPS: &[Block] = &[
    block(
        "step",
        "one step of the graph",
        &[
            key("id", ID, "unique in the workflow").required().stands(Part::Who),
            key("type", Shape::Words(WORDS), "what kind of step").default("normal").stands(Part::Who),
            key("skip_if", Shape::Block("skip_if"), "the step is skipped if this holds"),
            key("on_failure", Shape::Text, "the step that takes over when this one fails")
                .example("other")
                .stands(Part::Rest),
            key("compensate", Shape::Text, "the step that undoes this one")
                .example("other")
                .stands(Part::Rest),
            key("singleton", Shape::Boolean, "one at a time")
                .warned("it never had an effect on a step")
                .stands(Part::Rest),
        ],
    )
    .variants(TYPES),
    block(
        "worker_step",
        "the keys of steps that a worker does",
        &[
            key("task", FILLED, "the name workers subscribe to").required().example("git.fetch"),
            TIMEOUT,
            RETRIES,
            RETRY,
            METADATA,
            GROUP,
            CAPABILITIES,
            RATE,
            KEYED_RATE,
            JOBS,
        ],
    )
    .part(),
    block(
        "other_step",
        "the keys of steps that no worker does",
        &[
            AFTER,
            NO_LOOP,
            RETRIES.warned(NO_WORKER),
            RETRY.warned(NO_WORKER),
            METADATA.warned(NO_WORKER),
            GROUP.warned(NO_WORKER),
            CAPABILITIES.warned(NO_WORKER),
            RATE.warned(NO_WORKER),
            KEYED_RATE.warned(NO_WORKER),
            JOBS.warned(NO_WORKER),
        ],
    )
    .part(),
    worker("normal_step", "a job for a worker, `type: normal`", &[AFTER, NO_CONFIG, NO_LOOP]),
    worker("agent_step", "a job for an agent, `type: agent`", &[AFTER, NO_CONFIG, NO_LOOP]),
    worker(
        "agent_loop_step",
        "a job that is repeated until the worker says it is done, `type: agent_loop`",
        &[
            AFTER,
            key("config", Shape::Block("agent_loop"), "bounds of the loop").stands(Part::Data),
            key("loop", Shape::Block("agent_loop"), "the same, as older files write it").stands(Part::Data),
        ],
    )
    .rules(&[ONE_RATE, Rule::AnyOf(&["config", "loop"])]),
    worker(
        "map_step",
        "one job for each element of what the one step before it gave, `type: map`",
        &[
            key("depends_on", Shape::Sized(&TEXTS, 1, 1), "the id of that step")
                .required()
                .stands(Part::Who)
                .example(r#"["before"]"#),
            key("config", Shape::Block("map"), "bounds of the list").required().stands(Part::Data),
            NO_LOOP,
        ],
    ),
    worker(
        "planner_step",
        "a job whose worker answers with steps, `type: planner`",
        &[
            AFTER,
            key("config", Shape::Block("planner"), "bounds of the answer").required().stands(Part::Data),
            NO_LOOP,
        ],
    ),
    other(
        "sub_workflow_step",
        "another workflow, as a run of its own, `type: sub_workflow`",
        &[
            TIMEOUT,
            key("config", Shape::Block("sub_workflow"), "which one")
                .example(r#"{"workflow": "child"}"#)
                .stands(Part::Data),
            key("task", FILLED, "the name of the other workflow, as older files write it").example("child"),
        ],
    )
    .rules(&[Rule::AnyOf(&["config.workflow", "task"])]),
    other(
        "sleep_step",
        "a wait for time, `type: sleep`",
        &[
            NO_TIMEOUT,
            NO_TASK,
            key("config", Shape::Block("sleep"), "how long").required().stands(Part::Data),
        ],
    ),
    other(
        "wait_for_event_step",
        "a wait for a message, `type: wait_for_event`",
        &[
            NO_TIMEOUT,
            NO_TASK,
            key("config", Shape::Block("wait_for_event"), "which one").required().stands(Part::Data),
        ],
    ),
    other(
        "approval_step",
        "a step where a person decides, `type: approval`",
        &[
            NO_TIMEOUT,
            NO_TASK,
            key("config", Shape::Block("approval"), "whom to ask, and what").required().stands(Part::Data),
        ],
    ),
    other(
        "respond_step",
        "the answer to the request that started the run, `type: respond`",
        &[NO_TIMEOUT, NO_TASK, key("config", Shape::Block("respond"), "what is answered").stands(Part::Data)],
    ),
];

const ONE_RATE: Rule = Rule::AtMostOneOf(&["rate_limit", "keyed_rate_limit"]);

const fn worker(name: &'static str, about: &'static str, keys: &'static [Key]) -> Block {
    block(name, about, keys).includes(&["worker_step"]).rules(&[ONE_RATE]).part()
}

const fn other(name: &'static str, about: &'static str, keys: &'static [Key]) -> Block {
    block(name, about, keys).includes(&["other_step"]).part()
}

pub(super) const CONFIGS: &[Block] = &[
    block(
        "skip_if",
        "a comparison with the output of a step it depends on",
        &[
            key("step_id", FILLED, "that step").required().example("before"),
            key("field", FILLED, "a key of its output").required().example("count"),
            key("op", Shape::Words(&["==", "!=", "<", ">", "<=", ">="]), "how they are compared").required(),
            key("value", Shape::AnyOrNull, "with what").required().example("0"),
        ],
    ),
    block(
        "rate_limit",
        "how often a step starts",
        &[
            key("limit", LIMIT, "starts in each period").required(),
            key("period", DURATION, "how long a period is").required().example("1m"),
        ],
    ),
    block(
        "keyed_rate_limit",
        "how often a step starts for each value of a key",
        &[
            key("key", FILLED_PATH, "a path into the input of the step").required().example("customer.id"),
            key("limit", LIMIT, "units in each period").required(),
            key("period", DURATION, "how long a period is").required().example("1m"),
            key("units", LIMIT, "what one start counts").required(),
        ],
    ),
    block(
        "agent_loop",
        "bounds of an agent loop",
        &[
            key("max_iterations", LIMIT, "most rounds").required(),
            key("max_duration", LENGTH, "longest time of all rounds"),
            key("loop_delay", LENGTH, "pause between rounds"),
            key("budget_warn_at", ANY_LIMIT, "a round; told to the worker"),
            key("budget_force_at", ANY_LIMIT, "a round; told to the worker"),
        ],
    ),
    block(
        "map",
        "bounds of a map",
        &[key("max_items", Shape::Integer { min: 1, max: 10_000 }, "most elements").required()],
    ),
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
        "sub_workflow",
        "a workflow that is called",
        &[
            key("workflow", FILLED, "its name").example("child"),
            key("detach", Shape::Boolean, "whether nobody waits for it").default("false").beside("workflow"),
        ],
    ),
    block(
        "sleep",
        "how long a step sleeps",
        &[
            key("duration", DURATION, "so long, at most 365 days").example("2s"),
            key("cron", FILLED, "until a pattern of five fields is due").example("0 9 * * *"),
            key("until_input_path", FILLED_PATH, "a path to a point in time, or to milliseconds"),
        ],
    )
    .rules(&[Rule::OneOf(&["duration", "cron", "until_input_path"])]),
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
        "a field of a message, and what it must be equal to",
        &[
            key("left", FILLED_PATH, "a path into the message").required(),
            key("op", Shape::Words(&["eq"]), "how they are compared").required(),
            key("right", SOURCE, "what it must be equal to").required(),
        ],
    ),
    block(
        "approval",
        "what is asked, and where",
        &[
            key("subject", FILLED, "where the question is published").required().example("approvals.release"),
            key("timeout", DURATION, "how long it waits, at most 168 hours").required().example("1h"),
            key("description", Shape::Text, "what is asked"),
            key("metadata", TEXT_MAP, "told with the question"),
        ],
    ),
    block(
        "respond",
        "an answer over HTTP",
        &[
            key(
                "status",
                Shape::Either(&[Shape::Integer { min: 100, max: 599 }, Shape::Integer { min: 0, max: 0 }]),
                "status code; 0 is 200",
            )
            .default("200"),
            key("headers", TEXT_MAP, "headers"),
            key("body_from", PATH, "where in the input of the step the body is").otherwise("the whole input"),
            key("content_type", Shape::Text, "what the body is").default("application/json"),
        ],
    ),
];

const SOURCE: Shape = Shape::Form(Form {
    what: "a path such as `input.order.id` or `step.ID.output.order`",
    pattern: r"^(input(\.[^.]+)+|step\..+\.output(\.[^.]+)+)$",
    example: "input.order.id",
    also: NOTHING,
});
