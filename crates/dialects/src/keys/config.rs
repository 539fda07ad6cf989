//! The keys of `windlass.toml`. The reader is in `windlass-runtime`; a test of the command line compares the two.

use super::{Block, Language, Shape, block, key};

pub const LANGUAGE: Language = Language {
    name: "config",
    title: "windlass.toml",
    about: "the settings of a project on this machine, in TOML",
    opens: "",
    any_case: false,
    blocks: &[DOCUMENT],
    foreign: &[],
};

const SLOTS: Shape = Shape::Integer { min: 1, max: u32::MAX as i64 };

const DOCUMENT: &[Block] = &[
    block(
        "file",
        "the top level of `windlass.toml`",
        &[
            key("tasks", Shape::Map(&Shape::Block("task")), "the command of each task, by the name of the task")
                .example(r#"{"lint.run": {"command": ["./tools/lint.sh"]}}"#),
            key("limits", Shape::Block("limits"), "how much Windlass executes at once in the data folder"),
            key("runs", Shape::Block("runs"), "how runs are treated"),
        ],
    )
    .refuses_unknown(),
    block(
        "task",
        "a task, `[tasks.\"NAME\"]`",
        &[key(
            "command",
            Shape::Several(&Shape::String),
            "the program and its arguments; no shell is involved",
        )
        .required()
        .example(r#"["git", "diff", "--stat"]"#)],
    )
    .refuses_unknown(),
    block(
        "limits",
        "limits on this machine, `[limits]`",
        &[
            key("runs", SLOTS, "concurrent runs").otherwise("no limit"),
            key("jobs", SLOTS, "concurrent attempts of steps").otherwise("no limit"),
            key("processes", SLOTS, "concurrent child processes").otherwise("no limit"),
        ],
    )
    .refuses_unknown(),
    block(
        "runs",
        "the treatment of runs, `[runs]`",
        &[key(
            "recover",
            Shape::Words(&["resume", "interrupt"]),
            "what `windlass serve` does with unfinished runs when it starts: continue them, or mark them as interrupted",
        )
        .default("resume")],
    )
    .refuses_unknown(),
];
