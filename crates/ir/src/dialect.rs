//! What the rest of Windlass asks a dialect about: its words, what its steps are called, how its runs are reported, and where its
//! projects keep workflows. Everything that changes what a run does is in the plan instead, as
//! [`Semantics`](crate::expr::Semantics).

use crate::status::{RunStatus, StepStatus};
use crate::workflow::Words;

/// One dialect at the border.
pub trait Dialect: std::fmt::Debug + Send + Sync {
    fn words(&self) -> &'static Words;

    fn name(&self) -> &'static str {
        self.words().dialect
    }

    /// The dialect's own word for the status of a run.
    fn run_word(&self, run: &RunFacts) -> &'static str;

    /// The dialect's own word for the status of a step.
    fn step_word(&self, step: &StepFacts) -> &'static str;

    /// What users call an occurrence of a step within its workflow, such as `images[3]`.
    fn step_id(&self, step: &Occurrence<'_>) -> String;

    /// Whether all items and rounds of a step go by the same id. Mock files tell them apart by number all the same.
    fn shares_ids(&self) -> bool {
        false
    }

    fn reporting(&self) -> Reporting;

    fn layout(&self) -> Layout {
        Layout::default()
    }

    /// The dialect's own message about a call that cannot be made. None leaves it to Windlass.
    fn uncallable(&self, _: &Uncallable<'_>) -> Option<String> {
        None
    }
}

/// Every dialect, the native one first.
#[derive(Clone, Copy, Debug)]
pub struct Dialects(pub &'static [&'static dyn Dialect]);

impl Dialects {
    /// The dialect with this name. A run of an unknown one is reported like a native run.
    ///
    /// # Panics
    ///
    /// If there is no dialect at all.
    pub fn named(self, name: &str) -> &'static dyn Dialect {
        let known = self.0.iter().find(|dialect| dialect.name() == name);
        *known.or(self.0.first()).expect("there is a native dialect")
    }

    pub fn layouts(self) -> impl Iterator<Item = Layout> {
        self.0.iter().map(|dialect| dialect.layout())
    }
}

/// What is known about a run when its status is put into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFacts {
    pub status: RunStatus,
    /// A process marked it as interrupted instead of resuming it.
    pub marked: bool,
    /// A person ended it at a gate.
    pub aborted: bool,
    pub undone: Option<Undone>,
}

/// Whether completed work was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    All,
    Part,
}

/// What is known about a step when its status is put into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFacts {
    pub phase: StepPhase,
    /// The run has not come to it, so that nothing but its plan is known.
    pub unborn: bool,
    /// It failed because its time was up.
    pub timed_out: bool,
    /// It failed, and another step took over.
    pub recovered: bool,
    /// It was cancelled before it began because another step failed.
    pub left: bool,
    /// A branch, a loop or a fan-out that has been entered, whatever became of it.
    pub entered: bool,
    /// A call whose steps belong to the same run.
    pub calls: bool,
    /// Someone has asked for the run to be cancelled.
    pub cancel_requested: bool,
    pub run: RunFacts,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// It runs only if another step needs it to.
    Dormant,
    Pending,
    /// For a slot, a rate or a budget.
    Queued,
    Running,
    /// Between two attempts.
    Backoff,
    /// At a gate.
    Asking,
    /// For time, a signal or a message.
    Waiting,
    /// For another step with the same idempotency key.
    Joined,
    /// Its steps are at work.
    Inside,
    Done,
    Failed,
    Skipped,
    Cancelled,
}

impl StepFacts {
    /// The facts about a step in this phase, of which nothing else is known.
    pub fn new(phase: StepPhase, run: RunFacts) -> Self {
        Self {
            phase,
            unborn: false,
            timed_out: false,
            recovered: false,
            left: false,
            entered: false,
            calls: false,
            cancel_requested: false,
            run,
        }
    }

    pub fn status(&self) -> StepStatus {
        match self.phase {
            StepPhase::Dormant if !self.run.status.is_finished() => StepStatus::Pending,
            StepPhase::Dormant if self.cancel_requested => StepStatus::Cancelled,
            StepPhase::Dormant | StepPhase::Skipped => StepStatus::Skipped,
            StepPhase::Pending => StepStatus::Pending,
            StepPhase::Running | StepPhase::Inside | StepPhase::Joined => StepStatus::Running,
            StepPhase::Queued | StepPhase::Backoff | StepPhase::Asking | StepPhase::Waiting => {
                StepStatus::Waiting
            }
            StepPhase::Done => StepStatus::Success,
            StepPhase::Failed if self.recovered => StepStatus::Recovered,
            StepPhase::Failed => StepStatus::Failed,
            StepPhase::Cancelled => StepStatus::Cancelled,
        }
    }
}

/// One occurrence of a step: the step itself, or one item or round of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence<'a> {
    /// The id in the file.
    pub plain: &'a str,
    /// The numbers of the items and rounds around it, the outermost first.
    pub numbers: &'a [u32],
    /// The item or round that it is directly in.
    pub within: Option<Within<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within<'a> {
    /// What users call the fan-out or loop.
    pub owner: &'a str,
    pub number: u32,
    pub is_item: bool,
}

impl Occurrence<'_> {
    /// The id in the file with all numbers, such as `images[3][0]`.
    pub fn numbered(&self) -> String {
        self.numbers.iter().fold(self.plain.to_owned(), |id, number| format!("{id}[{number}]"))
    }
}

/// How a run is reported to the users of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporting {
    pub listing: Listing,
    pub input: ShownInput,
    pub output: ShownOutput,
    pub current: CurrentStep,
    /// Inputs without a value are left out.
    pub hides_missing_inputs: bool,
}

/// Which occurrences of steps are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Every step of the file, as its last occurrence left it.
    Once,
    /// Every step of the file, its items and rounds after it, then handlers and steps that were added.
    WithItems,
    /// Every step of the file, every occurrence of those without a name, and steps that were added.
    WithUnnamed,
    /// What has begun, in this order. A later round also replaces the entry of its step.
    Begun,
}

/// Which input of a step is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownInput {
    /// The declared inputs; without any, what its work was given.
    Declared,
    /// What its work was given.
    Given,
    /// What an agent or a called workflow was asked.
    Asked,
}

/// Which output of a step is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownOutput {
    /// That of a step that is done.
    Done,
    /// Also the arm of a branch and the branches of a group that failed.
    Progress,
    /// Everything that the step has on record, from the moment it is entered.
    Record,
}

/// Which step a run is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrentStep {
    /// The first that does something.
    Active,
    /// The one that failed, or that began last.
    LastBegun,
}

/// How the workflows of a dialect lie on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The file names of a workflow that has a folder of its own.
    pub files: &'static [&'static str],
    pub installed: Option<Installed>,
    /// The environment variable that names the folder in which steps run.
    pub directory_variable: Option<&'static str>,
}

/// Where a project keeps the workflows that were installed into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Has a folder for each workflow.
    pub folder: &'static str,
    /// The workflow in its folder.
    pub file: &'static str,
    /// The JSON file beside these folders that says which workflows are enabled.
    pub registry: &'static str,
}

/// Why a workflow cannot be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncallable<'a> {
    NotFound { workflow: &'a str },
    Disabled { workflow: &'a str },
    UndeclaredInputs { workflow: &'a str, names: &'a [&'a str] },
}
