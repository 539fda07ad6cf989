//! The one representation that every dialect is parsed into: nested as in the file, each node with its location.
//!
//! Leaves are actions, gates, waits, assignments and an early end; scopes contain further steps. A scope is generic
//! over how its steps are held: a nested `Vec<Step>` here, numbers in the flat [`crate::Plan`], so that both share
//! one definition.

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

/// A workflow as written in its file, with defaults filled in and overrides applied.
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
    /// The result of the run, if it is not an object of `outputs`.
    pub result: Option<Output>,
    pub hooks: Vec<Hook>,
    pub triggers: Vec<Trigger>,
}

/// The vocabulary of a dialect, for messages and output.
#[derive(Debug)]
pub struct Words {
    pub dialect: &'static str,
    pub step: &'static str,
    pub needs: &'static str,
    pub parameter: &'static str,
    /// The word for a step's results.
    pub outputs: &'static str,
    /// What opens an expression in text; `}}` closes it.
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
    /// Requirements stated by the author: displayed, not checked.
    pub requires: IndexMap<Arc<str>, Value>,
}

impl Header {
    /// The name, with the version if there is one.
    pub fn title(&self) -> String {
        match &*self.version {
            "" => self.name.to_string(),
            version => format!("{} v{version}", self.name),
        }
    }
}

/// The inputs that a run accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunInput {
    /// An object with the declared parameters and nothing else.
    Declared,
    /// Any value of this type. Parameters may be declared as well; they only determine how text passed for them is
    /// read.
    Open(Type),
}

/// One input of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    pub ty: Type,
    pub required: bool,
    pub default: Option<Value>,
    /// The allowed values; empty means all values of the type.
    pub choices: Vec<Value>,
    pub description: Option<Arc<str>>,
    #[serde(skip)]
    pub span: Span,
}

/// A template and its location in the file. `field` is relative to the step it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    pub template: Template,
    pub field: Arc<str>,
    #[serde(skip)]
    pub span: Span,
}

/// An expression used as a condition.
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
    /// Where a scope or a run takes it from; outputs of a leaf need none.
    pub source: Option<Bound>,
    #[serde(skip)]
    pub span: Span,
}

/// One step. An `implicit` step has no name of its own: it is the body of the step around it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Numbered through the whole file, outer before inner; assigned by [`crate::resolve()`].
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
    /// What its record shows where its output says nothing; none is [`Recorded::default`].
    pub recorded: Option<Box<Recorded>>,
    pub kind: Kind<Vec<Step>>,
    pub span: Span,
}

/// Members of a step's record that the file gives, for dialects whose records have them. A member of the step's output with
/// the same name comes first, unless it is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub integration: Value,
    pub model: Value,
    pub options: Value,
    pub input: Value,
}

impl Default for Recorded {
    fn default() -> Self {
        let empty = || Value::map::<&str>([]);
        Self { integration: Value::Null, model: Value::Null, options: empty(), input: empty() }
    }
}

impl Recorded {
    /// What the record of a step shows beside its output, whose members `own` gives.
    pub fn beside(&self, own: impl Fn(&str) -> Option<Value>) -> [(&'static str, Value); 4] {
        let member = |name: &'static str, given: &Value| {
            let own = own(name).filter(|own| !own.is_empty());
            (name, own.unwrap_or_else(|| given.clone()))
        };
        [
            member("integration", &self.integration),
            member("model", &self.model),
            member("options", &self.options),
            member("input", &self.input),
        ]
    }
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
    /// A named place where others can insert steps. On its own it does nothing and counts as skipped.
    Slot(Arc<str>),
    Block(B),
    Parallel(Parallel<B>),
    ForEach(ForEach<B>),
    Repeat(Repeat<B>),
    Choose(Choose<B>),
    Guard(Guard<B>),
}

/// Work done by an executor.
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

/// The memories that an agent is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Expressions in it are already wrapped so that they are shell-quoted when rendered.
    pub run: Bound,
    pub cwd: Option<Bound>,
    pub stdin: Option<Bound>,
    pub output: ShellOutput,
    #[serde(default, skip_serializing_if = "Interpreter::is_plain")]
    pub shell: Interpreter,
}

/// The environment variable with the name of the file in which a command leaves outputs.
pub const OUTPUT_FILE: &str = "WINDLASS_OUTPUT";

/// The program that runs a command, with its arguments. The command follows as the last argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Interpreter(pub Vec<Arc<str>>);

impl Interpreter {
    /// `sh -c`, which continues after a line that fails.
    pub fn plain() -> Self {
        Self::of(&["sh", "-c"])
    }

    /// `sh -e -c`, which stops at the first line that fails.
    pub fn strict() -> Self {
        Self::of(&["sh", "-e", "-c"])
    }

    pub fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|word| Arc::from(*word)).collect())
    }

    pub fn is_plain(&self) -> bool {
        *self == Self::plain()
    }
}

impl Default for Interpreter {
    fn default() -> Self {
        Self::plain()
    }
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
    /// Sent to the worker with the job.
    pub metadata: IndexMap<Arc<str>, Arc<str>>,
    /// The capabilities that the worker needs.
    pub capabilities: Vec<Arc<str>>,
    /// Present if the worker may answer `continue`.
    pub rounds: Option<Rounds>,
    /// Present if the worker's answer is a list of further steps.
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

/// A task that repeats with its own answer as the next input until it reports completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    pub rounds_max: u32,
    pub time_max: Option<Duration>,
    pub delay: Option<Duration>,
    /// Rounds after which the worker is warned that few are left, and that it must finish.
    pub warn_at: Option<u32>,
    pub force_at: Option<u32>,
}

/// Limits on the steps that a worker may add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planner {
    pub steps_max: u32,
    /// The longest chain among them; `None` means no limit.
    pub depth_max: Option<u32>,
    /// Empty means any task.
    pub tasks_allowed: Vec<Arc<str>>,
}

/// A prompt or a named command for a command-line agent that an integration can start.
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
        /// `args` is sent, the rest is only recorded.
        input: Bindings,
        arguments: Vec<Bound>,
        settings: Bindings,
    },
}

/// Capture the agent's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Limit for each stream; `None` means no limit.
    pub bytes_max: Option<u64>,
}

/// A function of Windlass itself, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Builtin {
    pub what: BuiltinKind,
    pub args: Bindings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltinKind {
    /// Sets up a Spec Kit project.
    #[serde(rename = "speckit_init")]
    InitProject,
    /// Adds a label to an issue or a pull request.
    GithubAddLabel,
    /// Answers the request that started the run.
    Respond,
}

impl BuiltinKind {
    pub const ALL: [Self; 3] = [Self::InitProject, Self::GithubAddLabel, Self::Respond];

    pub fn word(self) -> &'static str {
        match self {
            Self::InitProject => "speckit_init",
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

/// A call of another workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// A name, or a path relative to the calling file.
    pub workflow: Bound,
    /// The whole input of the called workflow.
    pub input: Option<Bound>,
    pub mode: CallMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallMode {
    /// A separate run; the caller waits for it.
    Child,
    /// A separate run; the caller only starts it.
    Detached,
    /// Steps of the same run that see nothing of the caller except their input.
    Inline,
}

/// A decision by a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Empty means anyone.
    pub approvers: Vec<Arc<str>>,
    /// How many approvals are needed; at least 1. A single rejection decides.
    pub quorum: u32,
    /// Whether the person who started the run may decide as well.
    pub self_approval: bool,
    pub timeout: Option<Duration>,
    pub on_timeout: OnTimeout,
    pub message: Option<Bound>,
    pub form: IndexMap<Arc<str>, FormField>,
    /// The options. `reject` and `abort`, in any case, reject; every other option approves.
    pub options: Vec<Arc<str>>,
    pub on_reject: OnReject,
    /// A file shown with the question.
    pub show_file: Option<Bound>,
    /// A parameter that contains the decision if it is not empty.
    pub verdict_input: Option<Spanned<Arc<str>>>,
    /// Where the request is published.
    pub subject: Option<Arc<str>>,
    pub metadata: IndexMap<Arc<str>, Arc<str>>,
}

impl Gate {
    /// Asks anyone to approve or reject, without a timeout.
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

/// The effect of a rejection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnReject {
    /// The gate fails, with the class `gate_rejected`.
    Fail,
    /// The run ends and cannot be resumed.
    Abort,
    /// The gate completes, and the run continues with the decision on record.
    Skip,
    /// The question is asked again.
    Retry,
    /// A step of the same list that the gate depends on and all steps between the two run again, with the comment, at
    /// most this many times. After that, a rejection is a failure.
    Back { to: Spanned<Arc<str>>, times_max: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    Halt,
    AutoApprove,
    Reject,
}

/// A field that the approver fills in; it becomes an output of the gate.
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
    /// The step completes with this value.
    Done(Value),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    Duration(Bound),
    /// An instant, or a number of milliseconds from now.
    Instant(Bound),
    /// The next match of a five-field pattern, in UTC.
    Cron(Arc<str>),
    /// Addressed to this run.
    Signal {
        name: Arc<str>,
        matching: Bindings,
    },
    /// Published without a recipient.
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
    /// Whether the steps of an item are visible only inside that item.
    pub isolated: bool,
    /// The concurrency written in the file, in dialects that record it in the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Value>,
}

/// Branches that run in parallel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parallel<B> {
    /// Each step is one branch.
    pub branches: B,
    pub on_failure: BranchFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchFailure {
    /// All branches finish; then the step fails.
    Wait,
    /// The other branches are canceled, and the step fails.
    Abort,
    /// The step succeeds regardless of its branches.
    Continue,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Items {
    List(Bound),
    /// The product of the lists: axes in alphabetical order, the last one varies fastest.
    Matrix(Bindings),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemFailure {
    /// Starts no further items; the fan-out fails.
    Halt,
    /// Continues; a failed item is null in the list.
    Continue,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeat<B> {
    pub test: RepeatTest,
    pub condition: Condition,
    pub rounds_max: u32,
    pub delay: Option<Duration>,
    pub body: B,
    /// The condition as written in the file, in dialects that record it in the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatTest {
    /// Tested before each round: continues while it holds.
    While,
    /// Tested after each round: stops once it holds.
    Until,
    /// Tested after each round: continues while it holds.
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
    /// The text form of the value selects the case.
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

/// A body with the steps that undo it and the steps that always follow it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guard<B> {
    pub body: B,
    pub compensate: Option<B>,
    pub finally: Option<B>,
}

/// An action around a run that cannot change its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub on: HookMoment,
    pub action: HookAction,
    /// Runs the command of the action, if it has one.
    #[serde(default, skip_serializing_if = "Interpreter::is_plain")]
    pub shell: Interpreter,
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

    /// The bodies of a scope with a name for each; empty for a leaf.
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
