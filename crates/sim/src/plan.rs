//! Turns a sketch into a plan, in the same way as a file: builds a workflow, resolves it and lowers it.

use crate::sketch::{After, Asks, Body, Ends, Gate, Items, Knobs, Node, Output, Reject, Sketch, Wait};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::contract::Type;
use windlass_ir::expr::{
    BinaryOp, Expr, Namespace, Node as ExprNode, Read, Semantics, StepId, Template, Visibility,
};
use windlass_ir::policy::{
    Backoff, Bindings, Concurrency, Growth, Idempotency, IdempotencyScope, OnFailure, Policy, Retry,
    RetryAfter, RunPolicy, Spread,
};
use windlass_ir::workflow::{
    Action, Agent, Bound, BranchFailure, Choose, Condition, Finish, FinishStatus, ForEach, Gate as PlanGate,
    Guard, Handoff, HandoffFormat, Header, ItemFailure, Items as PlanItems, Kind, OnReject, OnTimeout,
    Output as PlanOutput, Parallel, Parameter, Repeat, RepeatTest, Rounds, RunInput, Step, Task,
    Wait as PlanWait, WaitFor, WaitTimeout, Words, Workflow,
};
use windlass_ir::{Diagnostic, Duration, Plan, Span, Spanned, Value, resolve};

static WORDS: Words = Words {
    dialect: "sim",
    step: "step",
    needs: "needs",
    parameter: "input",
    outputs: "outputs",
    opens: "${{",
    namespace: |_| "namespace",
};

/// The decision input of gates, and the input that provides the items of fan-outs.
pub const VERDICT: &str = "verdict";
pub const ITEMS: &str = "items";

/// The plan of a sketch. An error means that the generator produced an invalid workflow.
pub fn plan(sketch: &Sketch) -> Result<Plan, String> {
    let visibility = if sketch.flat { Visibility::Flat } else { Visibility::Scoped };
    let first = sketch.list.iter().find(|node| !node.target).map(|node| node.id);
    let mut workflow = Workflow {
        words: &WORDS,
        semantics: Semantics { visibility, ..Semantics::HOUSE },
        header: Header {
            id: "sim".into(),
            name: "sim".into(),
            version: "1.0.0".into(),
            description: None,
            author: None,
            tags: Vec::new(),
            requires: IndexMap::new(),
        },
        parameters: [VERDICT, ITEMS].map(|name| (name.into(), parameter())).into_iter().collect(),
        input: RunInput::Declared,
        secrets: IndexMap::new(),
        env: IndexMap::new(),
        policy: RunPolicy {
            timeout: sketch.timeout_secs.map(Duration::from_secs),
            concurrency: Concurrency {
                agents_per_run: sketch.agents,
                steps_per_run: sketch.steps_at_once,
                runs_per_workflow: None,
                key: None,
            },
            compensate_on_cancel: sketch.compensate_on_cancel,
            ..RunPolicy::unlimited()
        },
        steps: list(&sketch.list),
        outputs: match first.filter(|_| sketch.outputs) {
            Some(id) => IndexMap::from([("first".into(), computed(status(id)))]),
            None => IndexMap::new(),
        },
        result: None,
        hooks: Vec::new(),
        triggers: Vec::new(),
    };
    let errors: Vec<_> = resolve(&mut workflow).into_iter().filter(Diagnostic::is_error).collect();
    match errors.is_empty() {
        true => Ok(Plan::lower(workflow)),
        false => Err(format!("the generator made an invalid plan: {errors:#?}")),
    }
}

fn parameter() -> Parameter {
    Parameter {
        ty: Type::Any,
        required: false,
        default: None,
        choices: Vec::new(),
        description: None,
        span: Span::default(),
    }
}

fn name(id: u32) -> Arc<str> {
    format!("s{id}").into()
}

fn list(nodes: &[Node]) -> Vec<Step> {
    nodes.iter().map(step).collect()
}

fn step(node: &Node) -> Step {
    let kind = kind(&node.body);
    let produces = match &node.body {
        Body::Work { output, .. } => work_outputs(*output),
        Body::Block(inner) | Body::Loop { list: inner, .. } => inner_outputs(inner),
        _ => IndexMap::new(),
    };
    let plain = Step {
        number: StepId(0),
        id: spanned(node.id),
        implicit: false,
        name: name(node.id),
        description: None,
        word: word(&node.body),
        needs: node.needs.iter().map(|need| spanned(*need)).collect(),
        condition: node.condition.as_ref().map(asks),
        inputs: IndexMap::new(),
        outputs: produces,
        env: IndexMap::new(),
        policy: policy(&node.policy),
        recorded: None,
        kind,
        span: Span::default(),
    };
    if node.compensate.is_none() && node.finally.is_none() {
        return plain;
    }
    Step {
        policy: Policy { timeout: None, idempotency: None, ..plain.policy.clone() },
        inputs: IndexMap::new(),
        outputs: IndexMap::new(),
        kind: Kind::Guard(Guard {
            compensate: node.compensate.as_ref().map(|inner| list(inner)),
            finally: node.finally.as_ref().map(|inner| list(inner)),
            body: vec![Step {
                implicit: true,
                needs: Vec::new(),
                condition: None,
                policy: Policy { on_failure: OnFailure::Halt, compensate: None, ..plain.policy.clone() },
                ..plain.clone()
            }],
        }),
        ..plain
    }
}

fn word(body: &Body) -> &'static str {
    match body {
        Body::Work { rounds: Some(_), .. } => "rounds",
        Body::Work { agent: true, .. } => "agent",
        Body::Work { .. } => "task",
        Body::Gate(_) => "gate",
        Body::Wait(_) => "wait",
        Body::Assign => "assign",
        Body::Finish(_) => "finish",
        Body::Slot => "slot",
        Body::Block(_) => "block",
        Body::Parallel { .. } => "parallel",
        Body::Each { .. } => "fan_out",
        Body::Loop { .. } => "loop",
        Body::If { .. } => "if",
        Body::Switch { .. } => "switch",
    }
}

fn work_outputs(output: Output) -> IndexMap<Arc<str>, PlanOutput> {
    let number = |required, default| PlanOutput {
        ty: Type::Integer,
        required,
        default,
        description: None,
        source: None,
        span: Span::default(),
    };
    let one = |output| IndexMap::from([("n".into(), output)]);
    match output {
        Output::Anything => IndexMap::new(),
        Output::Number => one(number(true, None)),
        Output::OptionalNumber => one(number(false, None)),
        Output::NumberWithDefault => one(number(false, Some(Value::Int(7)))),
    }
}

/// A scope outputs the status of its last step.
fn inner_outputs(inner: &[Node]) -> IndexMap<Arc<str>, PlanOutput> {
    let last = inner.iter().rev().find(|node| !node.target);
    last.map(|node| ("last".into(), computed(status(node.id)))).into_iter().collect()
}

fn kind(body: &Body) -> Kind<Vec<Step>> {
    match body {
        Body::Work { agent: true, .. } => Kind::Action(Action::Agent(agent())),
        Body::Work { rounds, .. } => {
            let rounds = rounds.map(|rounds| Rounds {
                rounds_max: rounds.max,
                time_max: rounds.secs.map(Duration::from_secs),
                delay: rounds.delay_secs.map(Duration::from_secs),
                warn_at: Some(1),
                force_at: Some(2),
            });
            let input = Some(bound(Template::Constant(Value::Int(0))));
            Kind::Action(Action::Task(Task { rounds, input, ..Task::named("t") }))
        }
        Body::Gate(asked) => Kind::Gate(gate(asked)),
        Body::Wait(waits) => Kind::Wait(wait(*waits)),
        Body::Assign => {
            Kind::Assign(IndexMap::from([("x".into(), bound(Template::Constant(Value::Int(1))))]))
        }
        Body::Finish(status) => Kind::Finish(Finish {
            status: [FinishStatus::Success, FinishStatus::Failed, FinishStatus::Cancelled][*status as usize],
            outputs: IndexMap::from([("why".into(), bound(Template::Constant(Value::text("early"))))]),
        }),
        Body::Slot => Kind::Slot("place".into()),
        Body::Block(inner) => Kind::Block(list(inner)),
        Body::Parallel { list: inner, rule } => Kind::Parallel(Parallel {
            branches: list(inner),
            on_failure: [BranchFailure::Wait, BranchFailure::Abort, BranchFailure::Continue][*rule as usize],
        }),
        Body::Each { items, at_once, continues, limit, list: inner } => Kind::ForEach(ForEach {
            items: each_items(*items),
            body: list(inner),
            concurrency: *at_once,
            on_failure: if *continues { ItemFailure::Continue } else { ItemFailure::Halt },
            items_max: *limit,
            isolated: false,
            as_written: None,
        }),
        Body::Loop { test, ends, rounds_max, delay_secs, list: inner } => {
            let test = [RepeatTest::While, RepeatTest::Until, RepeatTest::DoWhile][*test as usize];
            Kind::Repeat(Repeat {
                test,
                condition: loop_condition(*ends, test, inner),
                rounds_max: *rounds_max,
                delay: delay_secs.map(Duration::from_secs),
                body: list(inner),
                as_written: None,
            })
        }
        Body::If { asks: asked, holds, then, otherwise } => Kind::Choose(Choose::If {
            condition: match asked {
                Some(asked) => asks(asked),
                None => condition(ExprNode::Literal(Value::Bool(*holds))),
            },
            then: list(then),
            otherwise: list(otherwise),
        }),
        Body::Switch { value, cases, default } => Kind::Choose(Choose::Switch {
            value: bound(Template::Constant(Value::Int(i64::from(*value)))),
            cases: cases.iter().map(|(case, inner)| (case.to_string().into(), list(inner))).collect(),
            default: list(default),
        }),
    }
}

fn each_items(items: Items) -> PlanItems {
    let numbers = |count: u32| Template::Constant(Value::list((0..i64::from(count)).map(Value::Int)));
    match items {
        Items::Count(count) => PlanItems::List(bound(numbers(count))),
        Items::Input => PlanItems::List(bound(Template::Expression(input(ITEMS)))),
        Items::Matrix(rows, columns) => PlanItems::Matrix(Bindings::from([
            ("a".into(), bound(numbers(rows))),
            ("b".into(), bound(numbers(columns))),
        ])),
    }
}

/// The condition for another round, for each kind of loop.
fn loop_condition(ends: Ends, test: RepeatTest, inner: &[Node]) -> Condition {
    let index = Box::new(expr(ExprNode::Read(Read::Namespace(Namespace::Index))));
    let another_round = match ends {
        Ends::AfterRound(round) => {
            let round = Box::new(expr(ExprNode::Literal(Value::Int(i64::from(round)))));
            expr(ExprNode::Binary { op: BinaryOp::Less, left: index, right: round })
        }
        Ends::First => {
            let first = inner.iter().find(|node| !node.target).map_or(0, |node| node.id);
            asks(&Asks { of: first, succeeded: false }).expr
        }
        Ends::Never => expr(ExprNode::Literal(Value::Bool(true))),
    };
    let asked = match test {
        RepeatTest::Until => expr(ExprNode::Not(Box::new(another_round))),
        RepeatTest::While | RepeatTest::DoWhile => another_round,
    };
    Condition { expr: asked, field: "condition".into() }
}

fn gate(asked: &Gate) -> PlanGate {
    PlanGate {
        approvers: if asked.approvers { vec!["ann".into(), "cid".into(), "dan".into()] } else { Vec::new() },
        quorum: asked.quorum,
        self_approval: asked.self_approval,
        timeout: asked.timeout_secs.map(Duration::from_secs),
        on_timeout: [OnTimeout::Halt, OnTimeout::AutoApprove, OnTimeout::Reject][asked.on_timeout as usize],
        on_reject: match asked.on_reject {
            Reject::Fail => OnReject::Fail,
            Reject::Abort => OnReject::Abort,
            Reject::Skip => OnReject::Skip,
            Reject::Retry => OnReject::Retry,
            Reject::Back(to, times_max) => OnReject::Back { to: spanned(to), times_max },
        },
        verdict_input: asked.verdict.then(|| Spanned::new(VERDICT.into(), Span::default())),
        ..PlanGate::plain()
    }
}

fn wait(waits: Wait) -> PlanWait {
    let late = |done: bool| if done { WaitTimeout::Done(Value::text("late")) } else { WaitTimeout::Fail };
    let signal = |name: &str, matching: bool| {
        let one = || bound(Template::Constant(Value::Int(1)));
        let matching = if matching { Bindings::from([("k.v".into(), one())]) } else { Bindings::new() };
        (Arc::from(name), matching)
    };
    let (what, timeout_secs, done) = match waits {
        Wait::For(secs) => {
            let length = Duration::from_secs(secs).to_string();
            (WaitFor::Duration(bound(Template::Constant(Value::text(length)))), None, false)
        }
        Wait::Until(secs) => {
            let millis = i64::try_from(secs * 1000).unwrap_or(0);
            (WaitFor::Instant(bound(Template::Constant(Value::Int(millis)))), None, false)
        }
        Wait::Cron => (WaitFor::Cron("*/2 * * * *".into()), None, false),
        Wait::Signal { matching, timeout_secs, done } => {
            let (name, matching) = signal("go", matching);
            (WaitFor::Signal { name, matching }, timeout_secs, done)
        }
        Wait::Message { timeout_secs, done } => {
            let (name, matching) = signal("news", true);
            (WaitFor::Message { name, matching }, timeout_secs, done)
        }
    };
    PlanWait { what, timeout: timeout_secs.map(Duration::from_secs), on_timeout: late(done) }
}

fn agent() -> Agent {
    Agent {
        artifact: "agent:a".into(),
        model: "m".into(),
        instructions: None,
        tools: Vec::new(),
        modules: Vec::new(),
        memory: None,
        handoff: Handoff { format: HandoffFormat::Structured, include_run_log: false, summary_prompt: None },
    }
}

fn policy(knobs: &Knobs) -> Policy {
    let growths = [Growth::Fixed, Growth::Linear, Growth::Exponential { multiplier: 2.0 }];
    let attempt = expr(ExprNode::Read(Read::Namespace(Namespace::Attempt)));
    let two = expr(ExprNode::Literal(Value::Int(2)));
    let early = ExprNode::Binary { op: BinaryOp::Less, left: Box::new(attempt), right: Box::new(two) };
    Policy {
        retry: Retry {
            attempts_max: knobs.attempts,
            backoff: Backoff {
                initial: Duration::from_secs(knobs.delay_secs),
                growth: growths[knobs.growth as usize],
                min: Duration::ZERO,
                max: Duration::from_secs(60),
                jitter: 0.0,
                spread: Spread::Above,
            },
            only: if knobs.only_transient { vec!["transient".into()] } else { Vec::new() },
            never: if knobs.never_fatal { vec!["fatal".into()] } else { Vec::new() },
            when: knobs.when_early.then(|| condition(early)),
            after: RetryAfter::AtLeast,
        },
        timeout: knobs.timeout_secs.map(Duration::from_secs),
        on_failure: match knobs.on_failure {
            After::Halt => OnFailure::Halt,
            After::Rollback => OnFailure::Rollback,
            After::Continue => OnFailure::Continue,
            After::SkipDependents => OnFailure::SkipDependents,
            After::Goto(to) => OnFailure::Goto(spanned(to)),
        },
        idempotency: knobs.key.map(|key| Idempotency {
            key: bound(Template::Constant(Value::text(format!("key{key}")))),
            scope: IdempotencyScope::Run,
            ttl: knobs.key_secs.map(Duration::from_secs),
        }),
        compensate: knobs.undone_by.map(spanned),
        ..Policy::once()
    }
}

fn spanned(id: u32) -> Spanned<Arc<str>> {
    Spanned::new(name(id), Span::default())
}

fn bound(template: Template) -> Bound {
    Bound { template, field: "field".into(), span: Span::default() }
}

fn computed(source: Expr) -> PlanOutput {
    PlanOutput {
        ty: Type::Any,
        required: false,
        default: None,
        description: None,
        source: Some(bound(Template::Expression(source))),
        span: Span::default(),
    }
}

fn condition(node: ExprNode) -> Condition {
    Condition { expr: expr(node), field: "condition".into() }
}

fn expr(node: ExprNode) -> Expr {
    Expr::new(node, Span::default())
}

fn input(name: &str) -> Expr {
    let inputs = Box::new(expr(ExprNode::Read(Read::Namespace(Namespace::Inputs))));
    expr(ExprNode::Member { of: inputs, name: name.into() })
}

fn status(id: u32) -> Expr {
    let steps = expr(ExprNode::Read(Read::Namespace(Namespace::Steps)));
    let one = expr(ExprNode::Member { of: Box::new(steps), name: name(id) });
    expr(ExprNode::Member { of: Box::new(one), name: "status".into() })
}

/// Whether the status of a step is, or is not, success.
fn asks(asked: &Asks) -> Condition {
    let word = expr(ExprNode::Literal(Value::text("success")));
    let op = if asked.succeeded { BinaryOp::Equal } else { BinaryOp::NotEqual };
    condition(ExprNode::Binary { op, left: Box::new(status(asked.of)), right: Box::new(word) })
}
