//! The keys of dagnats steps: those of all steps, those of steps that a worker executes, and the `config` block of
//! each type.

use super::{ANY_LIMIT, DURATION, FILLED, FILLED_PATH, LENGTH, LIMIT, PATH, TEXT_MAP};
use crate::keys::{
    Block, Form, Key, NO_PUBLISHER, NO_RESPONSE, NOTHING, Part, Rule, Shape, TEXTS, Variants, block, key,
};

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
    key("depends_on", TEXTS, "ids of steps that must finish first").example("[]").stands(Part::Who);
const NO_CONFIG: Key = key("config", Shape::Any, "settings of the type")
    .example(r#"{"x": 1}"#)
    .warned("this type has no settings")
    .stands(Part::Data);
const NO_LOOP: Key =
    key("loop", Shape::Any, "limits of a loop").refused("only an agent loop repeats").stands(Part::Data);
const TIMEOUT: Key = key("timeout", LENGTH, "timeout of one attempt").otherwise("none").stands(Part::Policy);
const NO_TIMEOUT: Key = TIMEOUT.warned("the type has its own timeout, or takes no time");
const NO_TASK: Key = key("task", Shape::Any, "the task that workers subscribe to")
    .example("x")
    .no_effect("no worker executes it");

const RETRIES: Key = key("retries", Shape::Integer { min: 0, max: 100_000 }, "number of retries, 5 s apart")
    .default("0")
    .stands(Part::Policy);
const RETRY: Key = key("retry", Shape::Block("retry"), "retry policy")
    .otherwise("`default_retry`, else `retries`")
    .stands(Part::Policy);
const METADATA: Key = key("metadata", TEXT_MAP, "passed to the worker").stands(Part::Data);
const GROUP: Key = key("worker_group", Shape::Text, "which group of workers; not with `sticky`")
    .example("gpu")
    .stands(Part::Data);
const CAPABILITIES: Key = key("required_capabilities", TEXTS, "capabilities that a worker needs")
    .example(r#"["control-plane"]"#)
    .stands(Part::Data);
const RATE: Key =
    key("rate_limit", Shape::Block("rate_limit"), "limits how often it starts").stands(Part::Policy);
const KEYED_RATE: Key = key(
    "keyed_rate_limit",
    Shape::Block("keyed_rate_limit"),
    "limits how often it starts for each value of a \
        key",
)
.stands(Part::Policy);
const JOBS: Key = key(
    "max_task_concurrency",
    Shape::Integer { min: 0, max: 1000 },
    "concurrent jobs of the same task, across all runs; 0 means no limit",
)
.stands(Part::Policy);
const NO_WORKER: &str = "no worker executes it";

pub(super) const STEPS: &[Block] = &[
    block(
        "step",
        "one step of the graph",
        &[
            key("id", ID, "unique in the workflow").required().stands(Part::Who),
            key("type", Shape::Words(WORDS), "type of the step").default("normal").stands(Part::Who),
            key("skip_if", Shape::Block("skip_if"), "skips the step if this holds"),
            key("on_failure", Shape::Text, "the step that handles a failure of this one")
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
        "the keys of steps that a worker executes",
        &[
            key("task", FILLED, "the task that workers subscribe to").required().example("git.fetch"),
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
        "the keys of steps that no worker executes",
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
        "a job that repeats until the worker reports completion, `type: agent_loop`",
        &[
            AFTER,
            key("config", Shape::Block("agent_loop"), "limits of the loop").stands(Part::Data),
            key("loop", Shape::Block("agent_loop"), "limits of the loop, in older files").stands(Part::Data),
        ],
    )
    .rules(&[ONE_RATE, Rule::AnyOf(&["config", "loop"])]),
    worker(
        "map_step",
        "one job for each element in the output of its only dependency, `type: map`",
        &[
            key("depends_on", Shape::Sized(&TEXTS, 1, 1), "the id of that step")
                .required()
                .stands(Part::Who)
                .example(r#"["before"]"#),
            key("config", Shape::Block("map"), "limits of the list").required().stands(Part::Data),
            NO_LOOP,
        ],
    ),
    worker(
        "planner_step",
        "a job whose worker answers with steps, `type: planner`",
        &[
            AFTER,
            key("config", Shape::Block("planner"), "limits of the answer").required().stands(Part::Data),
            NO_LOOP,
        ],
    ),
    other(
        "sub_workflow_step",
        "another workflow as a separate run, `type: sub_workflow`",
        &[
            TIMEOUT,
            key("config", Shape::Block("sub_workflow"), "the workflow to call")
                .example(r#"{"workflow": "child"}"#)
                .stands(Part::Data),
            key("task", FILLED, "the name of the other workflow, in older files").example("child"),
        ],
    )
    .rules(&[Rule::AnyOf(&["config.workflow", "task"])]),
    other(
        "sleep_step",
        "a pause, `type: sleep`",
        &[
            NO_TIMEOUT,
            NO_TASK,
            key("config", Shape::Block("sleep"), "how long to sleep").required().stands(Part::Data),
        ],
    ),
    other(
        "wait_for_event_step",
        "waits for a message, `type: wait_for_event`",
        &[
            NO_TIMEOUT,
            NO_TASK,
            key("config", Shape::Block("wait_for_event"), "the message to wait for")
                .required()
                .stands(Part::Data),
        ],
    ),
    other(
        "approval_step",
        "a decision by a person, `type: approval`",
        &[
            NO_TIMEOUT,
            NO_TASK,
            key("config", Shape::Block("approval"), "where to ask, and what").required().stands(Part::Data),
        ],
    ),
    other(
        "respond_step",
        "the response to the request that started the run, `type: respond`",
        &[NO_TIMEOUT, NO_TASK, key("config", Shape::Block("respond"), "the response").stands(Part::Data)],
    )
    .not_yet(NO_RESPONSE),
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
        "a comparison with the output of a dependency",
        &[
            key("step_id", FILLED, "id of the step").required().example("before"),
            key("field", FILLED, "a key of its output").required().example("count"),
            key("op", Shape::Words(&["==", "!=", "<", ">", "<=", ">="]), "comparison operator").required(),
            key("value", Shape::AnyOrNull, "the value to compare with").required().example("0"),
        ],
    ),
    block(
        "rate_limit",
        "limits how often a step starts",
        &[
            key("limit", LIMIT, "starts in each period").required(),
            key("period", DURATION, "length of a period").required().example("1m"),
        ],
    ),
    block(
        "keyed_rate_limit",
        "limits how often a step starts for each value of a key",
        &[
            key("key", FILLED_PATH, "a path into the input of the step").required().example("customer.id"),
            key("limit", LIMIT, "units in each period").required(),
            key("period", DURATION, "length of a period").required().example("1m"),
            key("units", LIMIT, "how much one start counts").required(),
        ],
    ),
    block(
        "agent_loop",
        "limits of an agent loop",
        &[
            key("max_iterations", LIMIT, "maximum number of rounds").required(),
            key("max_duration", LENGTH, "longest total time of all rounds"),
            key("loop_delay", LENGTH, "pause between rounds"),
            key("budget_warn_at", ANY_LIMIT, "a round; passed to the worker"),
            key("budget_force_at", ANY_LIMIT, "a round; passed to the worker"),
        ],
    ),
    block(
        "map",
        "limits of a map",
        &[key("max_items", Shape::Integer { min: 1, max: 10_000 }, "maximum number of elements").required()],
    ),
    block(
        "planner",
        "limits of a planner's answer",
        &[
            key("max_steps", Shape::Integer { min: 1, max: 100 }, "maximum number of steps").required(),
            key("max_depth", Shape::Integer { min: 0, max: 10 }, "longest chain; 0 means no limit")
                .default("0"),
            key("allowed_tasks", TEXTS, "the tasks it may use").otherwise("all"),
        ],
    ),
    block(
        "sub_workflow",
        "the workflow to call",
        &[
            key("workflow", FILLED, "its name").example("child"),
            key("detach", Shape::Boolean, "whether to start it without waiting")
                .default("false")
                .beside("workflow"),
        ],
    ),
    block(
        "sleep",
        "how long a step sleeps",
        &[
            key("duration", DURATION, "duration, at most 365 days").example("2s"),
            key("cron", FILLED, "until a five-field cron pattern matches").example("0 9 * * *"),
            key("until_input_path", FILLED_PATH, "a path to an instant, or to a number of milliseconds"),
        ],
    )
    .rules(&[Rule::OneOf(&["duration", "cron", "until_input_path"])]),
    block(
        "wait_for_event",
        "the message that a step waits for",
        &[
            key("event", FILLED, "its name").required().example("paid"),
            key("match", Shape::Block("match"), "required content of the message").required(),
            key("timeout", DURATION, "longest wait").required().example("1m"),
        ],
    ),
    block(
        "match",
        "compares a field of a message with a value",
        &[
            key("left", FILLED_PATH, "a path into the message").required(),
            key("op", Shape::Words(&["eq"]), "comparison operator").required(),
            key("right", SOURCE, "the required value").required(),
        ],
    ),
    block(
        "approval",
        "where to ask, and what",
        &[
            key("subject", FILLED, "subject where the request is published")
                .required()
                .example("approvals.release")
                .not_yet(NO_PUBLISHER),
            key("timeout", DURATION, "how long to wait, at most 168 hours").required().example("1h"),
            key("description", Shape::Text, "the question"),
            key("metadata", TEXT_MAP, "sent with the request").not_yet(NO_PUBLISHER),
        ],
    ),
    block(
        "respond",
        "an HTTP response",
        &[
            key(
                "status",
                Shape::Either(&[Shape::Integer { min: 100, max: 599 }, Shape::Integer { min: 0, max: 0 }]),
                "status code; 0 means 200",
            )
            .default("200"),
            key("headers", TEXT_MAP, "headers"),
            key("body_from", PATH, "path to the body in the input of the step").otherwise("the whole input"),
            key("content_type", Shape::Text, "content type of the body").default("application/json"),
        ],
    ),
];

const SOURCE: Shape = Shape::Form(Form {
    what: "a path such as `input.order.id` or `step.ID.output.order`",
    pattern: r"^(input(\.[^.]+)+|step\..+\.output(\.[^.]+)+)$",
    example: "input.order.id",
    also: NOTHING,
});
