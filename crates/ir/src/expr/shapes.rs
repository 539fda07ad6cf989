//! What steps leave behind for others to read, and the words that expressions read their status as: one named choice for each
//! thing in which the dialects differ.

use serde::{Deserialize, Serialize};

/// The shapes of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultShapes {
    pub undone: UndoneShape,
    pub failed: FailedShape,
    pub branch: BranchShape,
    pub repeat: RepeatShape,
    pub items: ItemsShape,
    pub item: ItemShape,
    pub gate: GateShape,
    pub wait: WaitShape,
    pub call: CallShape,
    pub record: RecordShape,
    pub occurrences: Occurrences,
    pub process: ProcessShape,
    pub failure_class: FailureClass,
    pub assistant: AssistantFields,
}

impl ResultShapes {
    pub const HOUSE: Self = Self {
        undone: UndoneShape::Defaults,
        failed: FailedShape::Produced,
        branch: BranchShape::Name,
        repeat: RepeatShape::Count,
        items: ItemsShape::List,
        item: ItemShape::Steps,
        gate: GateShape::Decision,
        wait: WaitShape::Value,
        call: CallShape::Outputs,
        record: RecordShape::Outputs,
        occurrences: Occurrences::Last,
        process: ProcessShape::Trimmed,
        failure_class: FailureClass::AsGiven,
        assistant: AssistantFields::Arguments,
    };

    pub const SPECKIT: Self = Self {
        undone: UndoneShape::Nothing,
        failed: FailedShape::Detail,
        branch: BranchShape::Case,
        repeat: RepeatShape::Test,
        items: ItemsShape::Report,
        gate: GateShape::Question,
        call: CallShape::Report,
        record: RecordShape::Everything,
        occurrences: Occurrences::Each,
        process: ProcessShape::Python,
        assistant: AssistantFields::Integration,
        ..Self::HOUSE
    };

    pub const DAGNATS: Self = Self {
        undone: UndoneShape::Nothing,
        failed: FailedShape::AsUndone,
        gate: GateShape::Description,
        wait: WaitShape::Plain,
        process: ProcessShape::Exact,
        ..Self::HOUSE
    };

    pub const DCC: Self = Self {
        undone: UndoneShape::Nothing,
        failed: FailedShape::Progress,
        branch: BranchShape::Condition,
        items: ItemsShape::Iterations,
        item: ItemShape::AllInside,
        gate: GateShape::Approval,
        wait: WaitShape::Plain,
        record: RecordShape::WithFiles,
        process: ProcessShape::Exact,
        failure_class: FailureClass::FromMessage,
        ..Self::HOUSE
    };
}

impl ResultShapes {
    /// The shapes of a set as plans of format 1 mean them by its name.
    pub(super) const fn of_format_1(self) -> Self {
        match self.process {
            ProcessShape::Trimmed => {
                Self { failed: FailedShape::AsUndone, process: ProcessShape::Exact, ..self }
            }
            ProcessShape::Exact | ProcessShape::Python => self,
        }
    }
}

/// What is read of a step that was skipped, cancelled or not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoneShape {
    /// An object with the declared defaults.
    Defaults,
    /// Null; of an empty slot, its name.
    Nothing,
}

/// What is read of a step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedShape {
    /// The same as of a step that was not reached.
    AsUndone,
    /// The same, with the outputs that the failed work has left behind.
    Produced,
    /// How far a scope has come.
    Progress,
    /// How far a scope has come, or all that the failed work has left behind.
    Detail,
}

/// What is read of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchShape {
    /// `branch`, when it is done.
    Name,
    /// `condition_result`, or `matched_case` and `expression_value`, from the moment it is entered.
    Case,
    /// `condition` and `taken`, from the moment it is entered.
    Condition,
}

/// What is read of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatShape {
    /// `iterations` and `exhausted`, when it is done.
    Count,
    /// The condition, `max_iterations` and `loop_type`, from the moment it is entered.
    Test,
}

/// What is read of a fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemsShape {
    /// The list of results, when it is done.
    List,
    /// The same list as `iterations`.
    Iterations,
    /// `items`, `max_concurrency`, `item_count` and the `results` up to the first failure, from the moment it is entered.
    Report,
}

/// What one item of a fan-out comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemShape {
    /// The result of its only step, or those of its steps by id.
    Steps,
    /// The results of all steps that are done inside, at any depth, by id.
    AllInside,
}

/// What is read of a gate, and what its failure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateShape {
    /// `decision`, `by`, `reason`, `choice` and the fields of the form.
    Decision,
    /// The question with its `choice`, which is null until there is one.
    Question,
    /// `description`, `metadata`, `by` and `reason`.
    Description,
    /// `approved` and `reason`. A failure reads `approval denied`.
    Approval,
}

/// What is read of a wait for a signal or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitShape {
    /// An object with `value`.
    Value,
    /// What was sent.
    Plain,
}

/// What is read of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallShape {
    /// The outputs of the called workflow.
    Outputs,
    /// `workflow` and `status` before the outputs; of a call that failed these two and `error`.
    Report,
}

/// What an expression reads as the step itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordShape {
    /// `outputs` and `status`.
    Outputs,
    /// `type`, what was asked, `output`, `status` and `error`.
    Everything,
    /// `output`, and as `file_refs` the files that a tool has handed over.
    WithFiles,
}

/// Which rounds and items of a step have names that expressions can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occurrences {
    /// Only the last, under the id of the step.
    Last,
    /// Each, also under a name of its own.
    Each,
}

/// What a process leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessShape {
    /// The bytes as they were printed, and the status that a shell would show.
    Exact,
    /// The same, but `stdout` has no line breaks at its end, as in `$(…)`; `stdout_raw` is exact. A command can also leave
    /// outputs in a file.
    Trimmed,
    /// As Python reads it: one kind of line ends, text only, and a negative status if a signal ended it.
    Python,
}

/// Which class a failure has that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    AsGiven,
    /// The class whose name is part of the message.
    FromMessage,
}

/// What the arguments and settings of a command line agent are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssistantFields {
    /// `arguments` and `settings`.
    Arguments,
    /// `integration_args` and `integration_options`.
    Integration,
}

/// The words that expressions read the status of a step as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusWords {
    pub done: DoneWord,
    pub timeout: TimeoutWord,
    pub recovered: RecoveredWord,
    pub waiting: WaitingWord,
    pub entered: EnteredWord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneWord {
    Success,
    Completed,
}

/// The word for a step whose time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutWord {
    TimedOut,
    Failed,
}

/// The word for a step that failed and that another step took over from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveredWord {
    Failed,
    Recovered,
}

/// The word for a gate or a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingWord {
    Waiting,
    Paused,
    Running,
}

/// The word for a scope whose steps are at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnteredWord {
    Running,
    Completed,
}

/// The state of a step as far as expressions tell states apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    Pending,
    Running,
    /// A scope whose steps are at work.
    Entered,
    /// At a gate, or for time, a signal or a message.
    Waiting,
    Done,
    Failed {
        /// Its time was up.
        timed_out: bool,
        /// Another step took over.
        recovered: bool,
    },
    Skipped,
    Cancelled,
}

impl StepState {
    const ALL: [Self; 10] = [
        Self::Pending,
        Self::Running,
        Self::Entered,
        Self::Waiting,
        Self::Done,
        Self::Failed { timed_out: false, recovered: false },
        Self::Skipped,
        Self::Failed { timed_out: true, recovered: false },
        Self::Cancelled,
        Self::Failed { timed_out: false, recovered: true },
    ];
}

impl StatusWords {
    pub const HOUSE: Self = Self {
        done: DoneWord::Success,
        timeout: TimeoutWord::TimedOut,
        recovered: RecoveredWord::Failed,
        waiting: WaitingWord::Waiting,
        entered: EnteredWord::Running,
    };

    pub const SPECKIT: Self = Self {
        done: DoneWord::Completed,
        timeout: TimeoutWord::Failed,
        waiting: WaitingWord::Paused,
        entered: EnteredWord::Completed,
        ..Self::HOUSE
    };

    pub const DAGNATS: Self = Self {
        done: DoneWord::Completed,
        timeout: TimeoutWord::Failed,
        recovered: RecoveredWord::Recovered,
        waiting: WaitingWord::Running,
        ..Self::HOUSE
    };

    pub const DCC: Self = Self {
        done: DoneWord::Completed,
        timeout: TimeoutWord::Failed,
        waiting: WaitingWord::Running,
        ..Self::HOUSE
    };

    pub fn word(&self, state: StepState) -> &'static str {
        match state {
            StepState::Pending => "pending",
            StepState::Running => "running",
            StepState::Entered => match self.entered {
                EnteredWord::Running => "running",
                EnteredWord::Completed => "completed",
            },
            StepState::Waiting => match self.waiting {
                WaitingWord::Waiting => "waiting",
                WaitingWord::Paused => "paused",
                WaitingWord::Running => "running",
            },
            StepState::Done => match self.done {
                DoneWord::Success => "success",
                DoneWord::Completed => "completed",
            },
            StepState::Failed { timed_out, recovered } => match (self.recovered, self.timeout) {
                (RecoveredWord::Recovered, _) if recovered => "recovered",
                (_, TimeoutWord::TimedOut) if timed_out => "timed_out",
                (_, _) => "failed",
            },
            StepState::Skipped => "skipped",
            StepState::Cancelled => "cancelled",
        }
    }

    /// The words for how a step ended, the same in all dialects.
    pub const OUTCOMES: [&'static str; 4] = ["success", "failed", "skipped", "cancelled"];

    /// Every word, once.
    pub fn all(&self) -> Vec<&'static str> {
        let mut words = Vec::new();
        for word in StepState::ALL.map(|state| self.word(state)) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }
}
