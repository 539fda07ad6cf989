//! The one representation that every dialect is read into: nested as it was written, each node with its place.
//!
//! Leaves are actions, gates, waits, assignments and an early end; scopes hold further steps. A scope is generic over
//! how its steps are held: nested `Vec<Step>` here, numbers in the flat [`crate::Plan`], so that both share one definition.

use crate::contract::Type;
use crate::expr::{Expr, Namespace, Semantics, StepId, Template};
use crate::policy::{Bindings, Policy, RunPolicy};
use crate::source::{Span, Spanned};
use crate::time::Duration;
use crate::trigger::Trigger;
use crate::value::Value;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workflow as its file says it, with defaults filled in and overrides laid over.
#[derive(Clone, Debug)]
pub struct Workflow {
    pub words: &'static Words,
    pub semantics: Semantics,
    pub header: Header,
    pub parameters: IndexMap<Arc<str>, Parameter>,
    pub input: RunInput,
    /// Names that executors may resolve; `secrets.NAME` in expressions.
    pub secrets: IndexMap<Arc<str>, Span>,
    pub env: Bindings,
    pub policy: RunPolicy,
    pub steps: Vec<Step>,
    pub outputs: IndexMap<Arc<str>, Output>,
    /// The value that the run ends with, where it is not an object of `outputs`.
    pub result: Option<Output>,
    pub hooks: Vec<Hook>,
    pub triggers: Vec<Trigger>,
}

/// The words in which a dialect's user thinks, for messages and for what is shown.
#[derive(Debug)]
pub struct Words {
    pub dialect: &'static str,
    pub step: &'static str,
    pub needs: &'static str,
    pub parameter: &'static str,
    /// What a step's results are read as.
    pub outputs: &'static str,
    /// What stands before an expression in text; `}}` ends it.
    pub opens: &'static str,
    pub namespace: fn(Namespace) -> &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub version: Arc<str>,
    pub description: Option<Arc<str>>,
    pub author: Option<Arc<str>>,
    pub tags: Vec<Arc<str>>,
    /// What its author says that it needs: shown, not checked.
    pub requires: IndexMap<Arc<str>, Value>,
}

impl Header {
    /// The name, with the version where there is one.
    pub fn title(&self) -> String {
        match &*self.version {
            "" => self.name.to_string(),
            version => format!("{} v{version}", self.name),
        }
    }
}

/// What a run may be started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunInput {
    /// An object of the declared parameters and nothing else.
    Declared,
    /// Any value of this type. Parameters that are declared as well are only known by name: they say how text that is
    /// given for one is read.
    Open(Type),
}

/// One value the run is started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    pub ty: Type,
    pub required: bool,
    pub default: Option<Value>,
    /// The only values allowed; empty means all of the type.
    pub choices: Vec<Value>,
    pub description: Option<Arc<str>>,
    #[serde(skip)]
    pub span: Span,
}

/// A value with expressions in it, and where it stands in the file. `field` is relative to the step it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    pub template: Template,
    pub field: Arc<str>,
    #[serde(skip)]
    pub span: Span,
}

/// An expression whose truth decides something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    pub expr: Expr,
    pub field: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub ty: Type,
    pub source: Option<Bound>,
    pub required: bool,
    pub description: Option<Arc<str>>,
    #[serde(skip)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub ty: Type,
    pub required: bool,
    pub default: Option<Value>,
    pub description: Option<Arc<str>>,
    /// Where a scope or a run takes it from; what a leaf produces needs none.
    pub source: Option<Bound>,
    #[serde(skip)]
    pub span: Span,
}

/// One step. An `implicit` one has no name of its own: it is the inside of the step around it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Counted through the whole file, outer before inner; given by [`crate::resolve()`].
    pub number: StepId,
    pub id: Spanned<Arc<str>>,
    pub implicit: bool,
    pub name: Arc<str>,
    pub description: Option<Arc<str>>,
    /// The dialect's word for this kind of step.
    pub word: &'static str,
    pub needs: Vec<Spanned<Arc<str>>>,
    pub condition: Option<Condition>,
    pub inputs: IndexMap<Arc<str>, Input>,
    pub outputs: IndexMap<Arc<str>, Output>,
    pub env: Bindings,
    pub policy: Policy,
    pub kind: Kind<Vec<Step>>,
    pub span: Span,
}

/// What a step does. `B` is how the steps inside a scope are held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind<B> {
    Action(Action),
    Gate(Gate),
    Wait(Wait),
    Assign(Bindings),
    Finish(Finish),
    /// A named place where others put steps; nothing happens there by itself, and it counts as skipped.
    Slot(Arc<str>),
    Block(B),
    Parallel(Parallel<B>),
    ForEach(ForEach<B>),
    Repeat(Repeat<B>),
    Choose(Choose<B>),
    Guard(Guard<B>),
}

/// Work that an executor does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Agent(Agent),
    Shell(Shell),
    Tool(Tool),
    Task(Task),
    Http(Box<Http>),
    Call(Call),
    Assistant(Box<Assistant>),
    Builtin(Builtin),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    pub artifact: Arc<str>,
    pub model: Arc<str>,
    pub instructions: Option<Bound>,
    pub tools: Vec<Arc<str>>,
    pub modules: Vec<Arc<str>>,
    pub memory: Option<Memory>,
    pub handoff: Handoff,
}

/// Which memories an agent is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    pub project_scope: Arc<str>,
    pub min_confidence: f64,
    pub categories: Vec<Arc<str>>,
    pub max_tokens: u64,
}

/// How the outputs of a step are passed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    pub format: HandoffFormat,
    pub include_run_log: bool,
    pub summary_prompt: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffFormat {
    Structured,
    Markdown,
    Raw,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shell {
    /// Expressions in it are already wrapped so that they render shell-quoted.
    pub run: Bound,
    pub cwd: Option<Bound>,
    pub stdin: Option<Bound>,
    pub output: ShellOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellOutput {
    Text,
    /// Standard output is also parsed, as `data`.
    Json,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub tool: Arc<str>,
    pub server: Option<Arc<str>>,
    pub args: Option<Bound>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task: Arc<str>,
    pub group: Option<Arc<str>>,
    pub input: Option<Bound>,
    /// Told to the worker with the job.
    pub metadata: IndexMap<Arc<str>, Arc<str>>,
    /// What the worker must be allowed to do.
    pub capabilities: Vec<Arc<str>>,
    /// There when the worker may answer `continue`.
    pub rounds: Option<Rounds>,
    /// There when the worker's answer is a list of further steps.
    pub planner: Option<Planner>,
}

impl Task {
    pub fn named(task: impl Into<Arc<str>>) -> Self {
        Self {
            task: task.into(),
            group: None,
            input: None,
            metadata: IndexMap::new(),
            capabilities: Vec::new(),
            rounds: None,
            planner: None,
        }
    }
}

/// A task that is done again, with its own answer as the next input, until it says that it is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    pub rounds_max: u32,
    pub time_max: Option<Duration>,
    pub delay: Option<Duration>,
    /// Rounds after which the worker is told that few are left, and that it must come to an end.
    pub warn_at: Option<u32>,
    pub force_at: Option<u32>,
}

/// Bounds on the steps that a worker may add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planner {
    pub steps_max: u32,
    /// The longest chain among them; none is no limit.
    pub depth_max: Option<u32>,
    /// Empty means any task.
    pub tasks_allowed: Vec<Arc<str>>,
}

/// A prompt or a named command for a command line agent, which an integration knows how to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assistant {
    pub ask: Ask,
    pub integration: Option<Bound>,
    pub model: Option<Bound>,
    /// Recorded with the step, never sent.
    pub options: IndexMap<Arc<str>, Value>,
    pub capture: Option<Capture>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    Prompt(Bound),
    Command {
        command: Arc<str>,
        /// `args` is sent, the rest is recorded.
        input: Bindings,
        arguments: Vec<Bound>,
        settings: Bindings,
    },
}

/// Keep what the agent prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Of each stream; none is no limit.
    pub bytes_max: Option<u64>,
}

/// Something that the program itself can do, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Builtin {
    pub what: BuiltinKind,
    pub args: Bindings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltinKind {
    /// Sets up a Spec Kit project.
    SpeckitInit,
    /// Puts a label on an issue or a pull request.
    GithubAddLabel,
    /// Answers the request that started the run.
    Respond,
}

impl BuiltinKind {
    pub const ALL: [Self; 3] = [Self::SpeckitInit, Self::GithubAddLabel, Self::Respond];

    pub fn word(self) -> &'static str {
        match self {
            Self::SpeckitInit => "speckit_init",
            Self::GithubAddLabel => "github_add_label",
            Self::Respond => "respond",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Http {
    pub method: Arc<str>,
    pub url: Bound,
    pub headers: Bindings,
    pub query: Bindings,
    pub body: HttpBody,
    pub auth: Option<HttpAuth>,
    /// Status codes that count as success; empty means 200 to 299.
    pub expect: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    Empty,
    Json(Bound),
    Form(Bindings),
    Text(Bound),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpAuth {
    Bearer(Bound),
    Basic { user: Bound, password: Bound },
}

/// Another workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// A name or a path relative to the calling file.
    pub workflow: Bound,
    /// The whole input of the other workflow.
    pub input: Option<Bound>,
    pub mode: CallMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallMode {
    /// A run of its own that is waited for.
    Child,
    /// A run of its own that is only started.
    Detached,
    /// Steps of the same run, which see nothing of the caller but their input.
    Inline,
}

/// A human decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Empty means anyone who may decide at all.
    pub approvers: Vec<Arc<str>>,
    /// How many must say yes; at least 1. One no is a no.
    pub quorum: u32,
    /// Whether who started the run may decide, too.
    pub self_approval: bool,
    pub timeout: Option<Duration>,
    pub on_timeout: OnTimeout,
    pub message: Option<Bound>,
    pub form: IndexMap<Arc<str>, FormField>,
    /// What can be chosen. `reject` and `abort`, in any case, say no; everything else says yes.
    pub options: Vec<Arc<str>>,
    pub on_reject: OnReject,
    /// A file shown with the question.
    pub show_file: Option<Bound>,
    /// A parameter that holds the decision when it is not empty.
    pub verdict_input: Option<Spanned<Arc<str>>>,
    /// Where the request is published.
    pub subject: Option<Arc<str>>,
    pub metadata: IndexMap<Arc<str>, Arc<str>>,
}

impl Gate {
    /// Asks anyone, for as long as it takes, for a yes or a no.
    pub fn plain() -> Self {
        Self {
            approvers: Vec::new(),
            quorum: 1,
            self_approval: true,
            timeout: None,
            on_timeout: OnTimeout::Halt,
            message: None,
            form: IndexMap::new(),
            options: vec!["approve".into(), "reject".into()],
            on_reject: OnReject::Fail,
            show_file: None,
            verdict_input: None,
            subject: None,
            metadata: IndexMap::new(),
        }
    }
}

/// What a no means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnReject {
    /// The gate fails, with the class `gate_rejected`.
    Fail,
    /// The run is over and cannot be taken up again.
    Abort,
    /// The gate is done, and the run goes on with the choice on record.
    Skip,
    /// The question is asked anew.
    Retry,
    /// A step of the same list that the gate waits for, and all between the two, are done again, with the comment, at most
    /// so many times; then a no is a failure.
    Back { to: Spanned<Arc<str>>, times_max: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    Halt,
    AutoApprove,
    Reject,
}

/// Something the approver is asked to fill in; it becomes an output of the gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FormField {
    pub ty: Type,
    pub required: bool,
    pub default: Option<Value>,
    pub description: Option<Arc<str>>,
    pub choices: Vec<Value>,
    #[serde(skip)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    pub what: WaitFor,
    pub timeout: Option<Duration>,
    pub on_timeout: WaitTimeout,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitTimeout {
    Fail,
    /// It counts as done, with this value.
    Done(Value),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    Duration(Bound),
    /// A point in time, or a number of milliseconds from now.
    Instant(Bound),
    /// The next time that a pattern of five fields matches, in UTC.
    Cron(Arc<str>),
    /// Addressed to this run.
    Signal {
        name: Arc<str>,
        matching: Bindings,
    },
    /// Published to nobody in particular.
    Message {
        name: Arc<str>,
        matching: Bindings,
    },
}

/// Ends the run early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    pub status: FinishStatus,
    pub outputs: Bindings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishStatus {
    Success,
    Failed,
    Cancelled,
}

/// One instance of the body per item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForEach<B> {
    pub items: Items,
    pub body: B,
    pub concurrency: Option<u32>,
    pub on_failure: ItemFailure,
    /// More items than this are a failure.
    pub items_max: Option<u64>,
    /// Whether the steps of an item are seen only inside that item.
    pub isolated: bool,
    /// What the file says about how many at once, where the results tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Value>,
}

/// Branches that run side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parallel<B> {
    /// Each step is one branch.
    pub branches: B,
    pub on_failure: BranchFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchFailure {
    /// All branches come to their end; then the step fails.
    Wait,
    /// The others are cancelled, and the step fails.
    Abort,
    /// The step is done whatever became of its branches.
    Continue,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Items {
    List(Bound),
    /// The product of the lists: the axes in the alphabetical order of their names, the last one fastest.
    Matrix(Bindings),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemFailure {
    /// Start no further item; the fan-out fails.
    Halt,
    /// Go on; a failed item leaves null in the list.
    Continue,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeat<B> {
    pub test: RepeatTest,
    pub condition: Condition,
    pub rounds_max: u32,
    pub delay: Option<Duration>,
    pub body: B,
    /// The condition as the file has it, where the results tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatTest {
    /// Before each round: go on while it holds.
    While,
    /// After each round: stop once it holds.
    Until,
    /// After each round: go on while it holds.
    DoWhile,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choose<B> {
    If {
        condition: Condition,
        then: B,
        otherwise: B,
    },
    /// The text form of the value picks the case.
    Switch {
        value: Bound,
        cases: IndexMap<Arc<str>, B>,
        default: B,
    },
}

impl<B> Choose<B> {
    /// All arms with their names.
    pub fn arms(&self) -> Vec<(&str, &B)> {
        match self {
            Self::If { then, otherwise, .. } => vec![("then", then), ("else", otherwise)],
            Self::Switch { cases, default, .. } => {
                cases.iter().map(|(key, body)| (&**key, body)).chain([("default", default)]).collect()
            }
        }
    }
}

/// A body with what belongs to its end: how to undo it, and what to do whatever became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guard<B> {
    pub body: B,
    pub compensate: Option<B>,
    pub finally: Option<B>,
}

/// Something done around a run that cannot change its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub on: HookMoment,
    pub action: HookAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookMoment {
    Start,
    Complete,
    Failure,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookAction {
    Notify(Bound),
    Run(Bound),
    Webhook(Bound),
}

impl HookAction {
    pub fn bound_mut(&mut self) -> &mut Bound {
        match self {
            Self::Notify(bound) | Self::Run(bound) | Self::Webhook(bound) => bound,
        }
    }
}

impl<B> Kind<B> {
    pub fn is_gate(&self) -> bool {
        matches!(self, Self::Gate(_))
    }

    /// The bodies of a scope with a word for each; none for a leaf.
    pub fn bodies(&self) -> Vec<(&str, &B)> {
        match self {
            Self::Action(_)
            | Self::Gate(_)
            | Self::Wait(_)
            | Self::Assign(_)
            | Self::Finish(_)
            | Self::Slot(_) => Vec::new(),
            Self::Block(body) => vec![("steps", body)],
            Self::Parallel(parallel) => vec![("branches", &parallel.branches)],
            Self::ForEach(each) => vec![("item", &each.body)],
            Self::Repeat(repeat) => vec![("round", &repeat.body)],
            Self::Choose(choose) => choose.arms(),
            Self::Guard(guard) => {
                let after = [("compensate", &guard.compensate), ("finally", &guard.finally)];
                let after = after.into_iter().filter_map(|(word, body)| Some((word, body.as_ref()?)));
                std::iter::once(("body", &guard.body)).chain(after).collect()
            }
        }
    }

    pub fn bodies_mut(&mut self) -> Vec<&mut B> {
        match self {
            Self::Action(_)
            | Self::Gate(_)
            | Self::Wait(_)
            | Self::Assign(_)
            | Self::Finish(_)
            | Self::Slot(_) => Vec::new(),
            Self::Block(body) => vec![body],
            Self::Parallel(parallel) => vec![&mut parallel.branches],
            Self::ForEach(each) => vec![&mut each.body],
            Self::Repeat(repeat) => vec![&mut repeat.body],
            Self::Choose(Choose::If { then, otherwise, .. }) => vec![then, otherwise],
            Self::Choose(Choose::Switch { cases, default, .. }) => {
                cases.values_mut().chain([default]).collect()
            }
            Self::Guard(guard) => {
                let Guard { body, compensate, finally } = guard;
                std::iter::once(body).chain(compensate).chain(finally).collect()
            }
        }
    }

    /// The same kind with its bodies held in another way.
    pub fn map_bodies<C>(self, f: &mut impl FnMut(B) -> C) -> Kind<C> {
        match self {
            Self::Action(action) => Kind::Action(action),
            Self::Gate(gate) => Kind::Gate(gate),
            Self::Wait(wait) => Kind::Wait(wait),
            Self::Assign(set) => Kind::Assign(set),
            Self::Finish(finish) => Kind::Finish(finish),
            Self::Slot(name) => Kind::Slot(name),
            Self::Block(body) => Kind::Block(f(body)),
            Self::Parallel(parallel) => {
                Kind::Parallel(Parallel { branches: f(parallel.branches), on_failure: parallel.on_failure })
            }
            Self::ForEach(each) => Kind::ForEach(ForEach {
                items: each.items,
                body: f(each.body),
                concurrency: each.concurrency,
                on_failure: each.on_failure,
                items_max: each.items_max,
                isolated: each.isolated,
                as_written: each.as_written,
            }),
            Self::Repeat(repeat) => Kind::Repeat(Repeat {
                test: repeat.test,
                condition: repeat.condition,
                rounds_max: repeat.rounds_max,
                delay: repeat.delay,
                body: f(repeat.body),
                as_written: repeat.as_written,
            }),
            Self::Choose(Choose::If { condition, then, otherwise }) => {
                Kind::Choose(Choose::If { condition, then: f(then), otherwise: f(otherwise) })
            }
            Self::Choose(Choose::Switch { value, cases, default }) => Kind::Choose(Choose::Switch {
                value,
                cases: cases.into_iter().map(|(key, body)| (key, f(body))).collect(),
                default: f(default),
            }),
            Self::Guard(guard) => Kind::Guard(Guard {
                body: f(guard.body),
                compensate: guard.compensate.map(&mut *f),
                finally: guard.finally.map(f),
            }),
        }
    }
}
