//! The keys of speckit: `workflow.yml` of Spec Kit, and its fourteen types of steps.

use super::{Block, COUNT, Form, Key, Language, NOTHING, Part, Shape, Variants, block, key};

pub const LANGUAGE: Language = Language {
    name: "speckit",
    title: "Spec Kit workflow (speckit)",
    about: "`workflow.yml` of Spec Kit: steps one after the other, with loops, gates and calls of assistants",
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
    what: "a name of an output",
    pattern: "^(?!(workflow|status|error|aborted|integration|model|options|input)$)[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    example: "report",
    also: NOTHING,
};
const STEP_ID: Shape =
    Shape::Form(Form { what: "text without `:`", pattern: "^[^:]+$", example: "work", also: NOTHING });
const FILLED: Shape =
    Shape::Form(Form { what: "text that is not empty", pattern: r"\S", example: "text", also: NOTHING });
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
        "the top of a workflow file",
        &[
            key(
                "schema_version",
                Shape::Either(&[Shape::Words(&["1.0"]), Shape::Integer { min: 1, max: 1 }]),
                "the version of the language; there is one",
            )
            .not_null()
            .default("1.0"),
            key("workflow", Shape::Block("workflow"), "who this is, and defaults for steps").required(),
            key("requires", Shape::Block("requires"), "what the author says is needed; advice only")
                .not_null(),
            key("inputs", Shape::Map(&Shape::Block("input")), "what a run is started with").not_null(),
            key("steps", Shape::Several(&Shape::Block("step")), "the work, in order").required(),
            key(
                "outputs",
                Shape::Named(OUTPUT_NAME, &Shape::Block("output")),
                "what a call of this workflow gives back",
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
            key("integration", Shape::String, "assistant of steps that name none").example("claude"),
            key("model", Shape::String, "model of steps that name none").example("opus"),
            key("options", Shape::Map(&Shape::Any), "laid under the options of steps"),
        ],
    ),
    block(
        "requires",
        "what the author says is needed",
        &[
            key("speckit_version", Shape::Any, "which versions of Spec Kit").example(">=1.0"),
            key("integrations", Shape::Any, "which assistants").example(r#"["claude"]"#),
            key("permissions", Shape::Any, "what it may do").refused("nothing would enforce it"),
        ],
    )
    .refuses_unknown(),
    block(
        "input",
        "an input of the workflow",
        &[
            key("type", Shape::Words(&["string", "number", "boolean", ""]), "what values are converted to")
                .default("string"),
            key("required", Shape::Any, "whether a run without it is refused").default("false"),
            key("default", Shape::Any, "the value when none is given; checked against type and enum")
                .example("x"),
            key("enum", Shape::List(&Shape::Any), "the values allowed").example(r#"["a", "b"]"#),
            key("prompt", Shape::Any, "what people are told about it"),
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

const GO_ON: Key = key("continue_on_error", Shape::Boolean, "whether the run goes on when it fails")
    .not_null()
    .default("false")
    .stands(Part::Rest);
const NO_GO_ON: Key = GO_ON.warned("failures of the steps inside are not caught");
const INTEGRATION: Key = key("integration", Shape::StringTemplate, "which assistant")
    .otherwise("that of the workflow")
    .example("claude");
const MODEL: Key =
    key("model", Shape::StringTemplate, "which model").otherwise("that of the workflow").example("opus");
const CAPTURE: Key = key("capture", Shape::Boolean, "whether its output is kept").not_null().default("false");
const CAPTURE_MAX: Key = key(
    "capture_max_bytes",
    Shape::Either(&[COUNT, Shape::Integer { min: -1, max: -1 }]),
    "bytes kept of each stream; -1 is no limit",
)
.default("1048576")
.beside("capture");
const ROUNDS: Key = key("max_iterations", COUNT, "most rounds; reaching it is a success").default("10");
const BODY: Key = key("steps", STEP_LIST, "what a round does").required();

const STEPS: &[Block] = &[
    block(
        "step",
        "one step of a list",
        &[
            key("id", STEP_ID, "unique in the whole file").required().stands(Part::Who),
            key("type", Shape::Words(WORDS), "what kind of step")
                .not_null()
                .default("command")
                .stands(Part::Who),
        ],
    )
    .variants(TYPES),
    block(
        "command_step",
        "a command of Spec Kit, done by an assistant, `type: command`",
        &[
            GO_ON,
            key("command", Shape::String, "its name").required().example("speckit.plan"),
            key("input", Shape::Map(&Shape::Template), "`args` reaches the assistant")
                .not_null()
                .example(r#"{"args": "login"}"#),
            INTEGRATION,
            MODEL,
            key("options", Shape::Map(&Shape::Any), "kept with the result").not_null(),
            key("integration_args", Shape::List(&Shape::StringTemplate), "more arguments of the assistant")
                .not_null(),
            key("integration_options", Shape::Map(&Shape::Template), "more options of the assistant")
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
            key("prompt", Shape::StringTemplate, "what it is asked").required().example("Say hello."),
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
        "a command of the shell, `type: shell`",
        &[
            GO_ON,
            key("run", Shape::StringTemplate, "the command; values are inserted as they are")
                .required()
                .example("make"),
            key("timeout", Shape::Positive, "seconds").not_null().default("300"),
            key("output_format", Shape::Words(&["json"]), "standard output is also parsed, as `data`"),
        ],
    )
    .part(),
    block(
        "gate_step",
        "a step where a person decides, `type: gate`",
        &[
            GO_ON,
            key("message", Shape::TextTemplate, "what is asked").required().example("Go on?"),
            key(
                "options",
                Shape::Several(&Shape::String),
                "the choices; unless a no is skipped, one is `reject` or `abort`",
            )
            .not_null()
            .default(r#"["approve", "reject"]"#)
            .example(r#"["yes", "reject"]"#),
            key("on_reject", Shape::Words(&["abort", "skip", "retry"]), "what a rejection means")
                .not_null()
                .default("abort"),
            key("show_file", Shape::StringTemplate, "a file to look at").example("plan.md"),
            key("verdict_input", FILLED, "an input that decides when it is given")
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
            key("then", STEP_LIST, "when it holds").required(),
            key("else", STEP_LIST, "when it does not hold"),
        ],
    )
    .part(),
    block(
        "switch_step",
        "one of several lists of steps, `type: switch`",
        &[
            NO_GO_ON,
            key("expression", Shape::AnyOrNull, "an expression; its value as text picks the case")
                .required()
                .example("{{ inputs.x }}"),
            key("cases", Shape::Map(&STEP_LIST), "steps for each value").required(),
            key("default", STEP_LIST, "steps when no case fits"),
        ],
    )
    .part(),
    block(
        "while_step",
        "steps that are repeated while a condition holds, `type: while`",
        &[NO_GO_ON, key("condition", CONDITION, "asked before each round").required(), ROUNDS, BODY],
    )
    .part(),
    block(
        "do_while_step",
        "steps that are done once and repeated while a condition holds, `type: do-while`",
        &[NO_GO_ON, key("condition", CONDITION, "asked after each round").required(), ROUNDS, BODY],
    )
    .part(),
    block(
        "fan_out_step",
        "one step for each item, `type: fan-out`",
        &[
            GO_ON,
            key("items", Shape::AnyOrNull, "a list, or an expression that gives one")
                .required()
                .example(r#"["a", "b"]"#),
            key("max_concurrency", Shape::Any, "items at once").default("1"),
            key("step", Shape::Block("step"), "what is done; reads `item`").required(),
        ],
    )
    .part(),
    block(
        "fan_in_step",
        "results of earlier steps put together, `type: fan-in`",
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
        "sets up a project for Spec Kit, `type: init`",
        &[
            GO_ON,
            key("project", Shape::Template, "its name").example("app"),
            key("here", Shape::Template, "whether it is the current folder").example("true"),
            key("integration", Shape::StringTemplate, "which assistant").example("claude"),
            key("integration_options", Shape::Template, "options of the assistant").example("--x"),
            key(
                "script",
                Shape::Either(&[Shape::Words(&["sh", "ps", "py"]), BRACES]),
                "which kind of scripts",
            ),
            key("force", Shape::Template, "whether files are overwritten").example("true"),
            key("ignore_agent_tools", Shape::Template, "whether a missing assistant is no error")
                .default("true"),
            key("preset", Shape::Template, "which preset").example("lean"),
        ],
    )
    .part(),
    block(
        "slot_step",
        "a place that overlays fill, `type: slot`",
        &[GO_ON, key("name", FILLED, "its name").required().example("after-plan")],
    )
    .part(),
    block(
        "github_step",
        "something done on GitHub, `type: github`; any other key is an error",
        &[
            GO_ON,
            key("operation", Shape::Words(&["add-label"]), "what is done").required(),
            key("target", Shape::Words(&["issue", "pull_request"]), "to what").required(),
            key("repository", REPOSITORY, "owner and name").required().example("owner/repo"),
            key("number", Shape::Either(&[COUNT, NUMBER]), "which one").required().example("7"),
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
