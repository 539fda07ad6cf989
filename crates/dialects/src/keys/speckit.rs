//! The keys of speckit: `workflow.yml` of Spec Kit with its fourteen step types.

use super::{Block, COUNT, Form, Key, Language, NOTHING, Part, Shape, Variants, block, key};

pub const LANGUAGE: Language = Language {
    name: "speckit",
    title: "Spec Kit workflow (speckit)",
    about: "`workflow.yml` of Spec Kit: a sequence of steps with loops, gates and AI assistants",
    opens: "{{",
    any_case: false,
    blocks: &[DOCUMENT, STEPS],
    foreign: &[],
};

const WORKFLOW_ID: Form = Form {
    what: "id of lower-case letters, digits and hyphens",
    pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    example: "plan-feature",
    also: NOTHING,
};
const VERSION: Shape = Shape::Form(Form {
    what: "version such as `\"1.0.0\"`",
    pattern: r"^\d+\.\d+\.\d+$",
    example: "1.0.0",
    also: NOTHING,
});
const OUTPUT_NAME: Form = Form {
    what: "name of an output",
    pattern: "^(?!(workflow|status|error|aborted|integration|model|options|input)$)[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    example: "report",
    also: NOTHING,
};
const STEP_ID: Shape =
    Shape::Form(Form { what: "text without `:`", pattern: "^[^:]+$", example: "work", also: NOTHING });
const FILLED: Shape =
    Shape::Form(Form { what: "non-empty string", pattern: r"\S", example: "text", also: NOTHING });
const BRACES: Shape = Shape::Form(Form {
    what: "an expression",
    pattern: r"\{\{",
    example: "{{ inputs.kind }}",
    also: NOTHING,
});
const REPOSITORY: Shape = Shape::Form(Form {
    what: "OWNER/NAME, or an expression",
    pattern: r"\{\{|^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$",
    example: "owner/repo",
    also: NOTHING,
});
const NUMBER: Shape = Shape::Form(Form {
    what: "an expression",
    pattern: r"\{\{|^\s*[0-9]*[1-9][0-9]*\s*$",
    example: "{{ inputs.number }}",
    also: NOTHING,
});
const LABEL: Shape = Shape::Form(Form {
    what: "text of at most 50 characters, or an expression",
    pattern: r"\{\{|^[\s\S]{1,50}$",
    example: "ready",
    also: NOTHING,
});
const TARGET: Shape = Shape::Form(Form {
    what: "id of a workflow, or an expression",
    pattern: r"\{\{|^(?!(overlays|runs|steps)$)[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    example: "other-flow",
    also: NOTHING,
});
const STEP_LIST: Shape = Shape::List(&Shape::Block("step"));
/// A whole condition: `true`, `false`, or one block of braces.
const CONDITION: Shape = Shape::Either(&[
    Shape::Boolean,
    Shape::Form(Form {
        what: "one expression in braces",
        pattern: r"^\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|\{\{[\s\S]*\}\})?\s*$",
        example: "{{ true }}",
        also: NOTHING,
    }),
]);

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of a workflow file",
        &[
            key(
                "schema_version",
                Shape::Either(&[Shape::Words(&["1.0"]), Shape::Integer { min: 1, max: 1 }]),
                "version of the language; there is only one",
            )
            .not_null()
            .default("1.0"),
            key("workflow", Shape::Block("workflow"), "metadata, and defaults for steps").required(),
            key("requires", Shape::Block("requires"), "requirements stated by the author; not checked")
                .not_null(),
            key("inputs", Shape::Map(&Shape::Block("input")), "inputs of a run").not_null(),
            key("steps", Shape::Several(&Shape::Block("step")), "the steps, in order").required(),
            key(
                "outputs",
                Shape::Named(OUTPUT_NAME, &Shape::Block("output")),
                "outputs that a calling workflow receives",
            )
            .not_null(),
        ],
    ),
    block(
        "workflow",
        "the header, `workflow`",
        &[
            key("id", Shape::Form(WORKFLOW_ID), "identifies the workflow").required(),
            key("name", FILLED, "for people").required().example("Plan a feature"),
            key("version", VERSION, "three numbers, in quotes").not_null().default("0.0.0"),
            key("author", Shape::Any, "for people"),
            key("description", Shape::Any, "for people"),
            key("integration", Shape::String, "default assistant").example("claude"),
            key("model", Shape::String, "default model").example("opus"),
            key("options", Shape::Map(&Shape::Any), "default options of steps"),
        ],
    ),
    block(
        "requires",
        "requirements stated by the author",
        &[
            key("speckit_version", Shape::Any, "supported versions of Spec Kit").example(">=1.0"),
            key("integrations", Shape::Any, "which assistants").example(r#"["claude"]"#),
            key("permissions", Shape::Any, "permissions").refused("nothing would enforce it"),
        ],
    )
    .refuses_unknown(),
    block(
        "input",
        "an input of the workflow",
        &[
            key(
                "type",
                Shape::Words(&["string", "number", "boolean", ""]),
                "type that values are converted to",
            )
            .default("string"),
            key("required", Shape::Any, "whether a run without it is refused").default("false"),
            key("default", Shape::Any, "default value; checked against type and enum").example("x"),
            key("enum", Shape::List(&Shape::Any), "the allowed values").example(r#"["a", "b"]"#),
            key("prompt", Shape::Any, "question shown to people"),
            key("description", Shape::Any, "for people"),
        ],
    ),
    block(
        "output",
        "an output of the workflow",
        &[key("value", Shape::AnyOrNull, "the value, with expressions").required()],
    )
    .refuses_unknown(),
];

const TYPES: Variants = Variants {
    by: "type",
    default: Some("command"),
    of: &[
        ("command", "command_step"),
        ("prompt", "prompt_step"),
        ("shell", "shell_step"),
        ("gate", "gate_step"),
        ("if", "if_step"),
        ("switch", "switch_step"),
        ("while", "while_step"),
        ("do-while", "do_while_step"),
        ("fan-out", "fan_out_step"),
        ("fan-in", "fan_in_step"),
        ("init", "init_step"),
        ("slot", "slot_step"),
        ("github", "github_step"),
        ("workflow", "workflow_step"),
    ],
};
const WORDS: &[&str] = &[
    "command", "prompt", "shell", "gate", "if", "switch", "while", "do-while", "fan-out", "fan-in", "init",
    "slot", "github", "workflow",
];

const GO_ON: Key = key("continue_on_error", Shape::Boolean, "whether the run continues if the step fails")
    .not_null()
    .default("false")
    .stands(Part::Rest);
const NO_GO_ON: Key = GO_ON.warned("failures of the steps inside are not caught");
const INTEGRATION: Key = key("integration", Shape::StringTemplate, "which assistant")
    .otherwise("the assistant of the workflow")
    .example("claude");
const MODEL: Key =
    key("model", Shape::StringTemplate, "which model").otherwise("the model of the workflow").example("opus");
const CAPTURE: Key =
    key("capture", Shape::Boolean, "whether to capture its output").not_null().default("false");
const CAPTURE_MAX: Key = key(
    "capture_max_bytes",
    Shape::Either(&[COUNT, Shape::Integer { min: -1, max: -1 }]),
    "captured bytes per stream; -1 means no limit",
)
.default("1048576")
.beside("capture");
const ROUNDS: Key =
    key("max_iterations", COUNT, "maximum number of rounds; reaching it is a success").default("10");
const BODY: Key = key("steps", STEP_LIST, "steps of a round").required();

const STEPS: &[Block] = &[
    block(
        "step",
        "one step of a list",
        &[
            key("id", STEP_ID, "unique in the whole file").required().stands(Part::Who),
            key("type", Shape::Words(WORDS), "type of the step")
                .not_null()
                .default("command")
                .stands(Part::Who),
        ],
    )
    .variants(TYPES),
    block(
        "command_step",
        "a Spec Kit command for an assistant, `type: command`",
        &[
            GO_ON,
            key("command", Shape::String, "its name").required().example("speckit.plan"),
            key("input", Shape::Map(&Shape::Template), "`args` is passed to the assistant")
                .not_null()
                .example(r#"{"args": "login"}"#),
            INTEGRATION,
            MODEL,
            key("options", Shape::Map(&Shape::Any), "recorded with the result").not_null(),
            key(
                "integration_args",
                Shape::List(&Shape::StringTemplate),
                "additional arguments of the assistant",
            )
            .not_null(),
            key("integration_options", Shape::Map(&Shape::Template), "additional options of the assistant")
                .not_null(),
            CAPTURE,
            CAPTURE_MAX,
            key("timeout", Shape::Positive, "seconds; only with `capture`")
                .not_null()
                .default("600")
                .beside("capture"),
        ],
    )
    .part(),
    block(
        "prompt_step",
        "a prompt for an assistant, `type: prompt`",
        &[
            GO_ON,
            key("prompt", Shape::StringTemplate, "the prompt").required().example("Say hello."),
            INTEGRATION,
            MODEL,
            key("timeout", Shape::Positive, "seconds").not_null().default("300"),
            CAPTURE,
            CAPTURE_MAX,
        ],
    )
    .part(),
    block(
        "shell_step",
        "a shell command, `type: shell`",
        &[
            GO_ON,
            key("run", Shape::StringTemplate, "the command; values are inserted without quoting")
                .required()
                .example("make"),
            key("timeout", Shape::Positive, "seconds").not_null().default("300"),
            key("output_format", Shape::Words(&["json"]), "standard output is also parsed, as `data`"),
        ],
    )
    .part(),
    block(
        "gate_step",
        "a decision by a person, `type: gate`",
        &[
            GO_ON,
            key("message", Shape::TextTemplate, "the question").required().example("Go on?"),
            key(
                "options",
                Shape::Several(&Shape::String),
                "the options; one must be `reject` or `abort` unless `on_reject` is `skip`",
            )
            .not_null()
            .default(r#"["approve", "reject"]"#)
            .example(r#"["yes", "reject"]"#),
            key("on_reject", Shape::Words(&["abort", "skip", "retry"]), "effect of a rejection")
                .not_null()
                .default("abort"),
            key("show_file", Shape::StringTemplate, "a file to show").example("plan.md"),
            key("verdict_input", FILLED, "an input that decides if it is not empty")
                .not_null()
                .example("verdict"),
        ],
    )
    .part(),
    block(
        "if_step",
        "one of two lists of steps, `type: if`",
        &[
            NO_GO_ON,
            key("condition", CONDITION, "decides").required(),
            key("then", STEP_LIST, "steps if it holds").required(),
            key("else", STEP_LIST, "steps if it does not hold"),
        ],
    )
    .part(),
    block(
        "switch_step",
        "one of several lists of steps, `type: switch`",
        &[
            NO_GO_ON,
            key("expression", Shape::AnyOrNull, "an expression; its text form selects the case")
                .required()
                .example("{{ inputs.x }}"),
            key("cases", Shape::Map(&STEP_LIST), "steps for each value").required(),
            key("default", STEP_LIST, "steps if no case matches"),
        ],
    )
    .part(),
    block(
        "while_step",
        "steps that repeat while a condition holds, `type: while`",
        &[NO_GO_ON, key("condition", CONDITION, "evaluated before each round").required(), ROUNDS, BODY],
    )
    .part(),
    block(
        "do_while_step",
        "steps that run once and repeat while a condition holds, `type: do-while`",
        &[NO_GO_ON, key("condition", CONDITION, "evaluated after each round").required(), ROUNDS, BODY],
    )
    .part(),
    block(
        "fan_out_step",
        "one step for each item, `type: fan-out`",
        &[
            GO_ON,
            key("items", Shape::AnyOrNull, "a list, or an expression that evaluates to one")
                .required()
                .example(r#"["a", "b"]"#),
            key("max_concurrency", Shape::Any, "concurrent items").default("1"),
            key("step", Shape::Block("step"), "the step for each item; may read `item`").required(),
        ],
    )
    .part(),
    block(
        "fan_in_step",
        "combines the results of earlier steps, `type: fan-in`",
        &[
            GO_ON,
            key("wait_for", Shape::Several(&Shape::String), "ids of earlier steps")
                .required()
                .example(r#"["before"]"#),
            key("output", Shape::Map(&Shape::Template), "values; may read `fan_in.results`"),
        ],
    )
    .part(),
    block(
        "init_step",
        "sets up a Spec Kit project, `type: init`",
        &[
            GO_ON,
            key("project", Shape::Template, "its name").example("app"),
            key("here", Shape::Template, "whether to use the current folder").example("true"),
            key("integration", Shape::StringTemplate, "which assistant").example("claude"),
            key("integration_options", Shape::Template, "options of the assistant").example("--x"),
            key("script", Shape::Either(&[Shape::Words(&["sh", "ps", "py"]), BRACES]), "type of scripts"),
            key("force", Shape::Template, "whether to overwrite files").example("true"),
            key("ignore_agent_tools", Shape::Template, "whether to accept a missing assistant")
                .default("true"),
            key("preset", Shape::Template, "which preset").example("lean"),
        ],
    )
    .part(),
    block(
        "slot_step",
        "a place that overlays can fill, `type: slot`",
        &[GO_ON, key("name", FILLED, "its name").required().example("after-plan")],
    )
    .part(),
    block(
        "github_step",
        "an action on GitHub, `type: github`; any other key is an error",
        &[
            GO_ON,
            key("operation", Shape::Words(&["add-label"]), "the action").required(),
            key("target", Shape::Words(&["issue", "pull_request"]), "what to label").required(),
            key("repository", REPOSITORY, "owner and name").required().example("owner/repo"),
            key("number", Shape::Either(&[COUNT, NUMBER]), "number of the issue or pull request")
                .required()
                .example("7"),
            key("label", LABEL, "at most 50 characters").required().example("ready"),
        ],
    )
    .part()
    .refuses_unknown(),
    block(
        "workflow_step",
        "another workflow, inside this run, `type: workflow`",
        &[
            GO_ON,
            key("workflow", TARGET, "its id").required().example("other-flow"),
            key("input", Shape::Map(&Shape::Template), "its inputs").not_null(),
        ],
    )
    .part(),
];
