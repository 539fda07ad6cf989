//! Random plans over every kind of step that the engine runs.

use crate::random::Random;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::contract::Type;
use windlass_ir::expr::{BinaryOp, Expr, Namespace, Node, Read, Semantics, StepId, Template};
use windlass_ir::policy::{Backoff, Concurrency, Growth, OnFailure, Policy, Retry, RunPolicy, Spread};
use windlass_ir::workflow::{
    Action, Agent, Bound, Choose, Condition, Gate, Handoff, HandoffFormat, Header, Kind, OnTimeout, Output,
    RunInput, Step, Task, Words, Workflow,
};
use windlass_ir::{Duration, Plan, Span, Spanned, Value, resolve};

static WORDS: Words = Words {
    dialect: "sim",
    step: "step",
    needs: "needs",
    parameter: "input",
    outputs: "outputs",
    opens: "${{",
    namespace: |_| "namespace",
};

/// A valid plan of up to `size` steps on each level.
pub fn generate(random: &mut Random, size: usize) -> Plan {
    let mut next = 0;
    let steps = list(random, size, 2, &mut next);
    let mut workflow = Workflow {
        words: &WORDS,
        semantics: Semantics::HOUSE,
        header: Header {
            id: "sim".into(),
            name: "sim".into(),
            version: "1.0.0".into(),
            description: None,
            author: None,
            tags: Vec::new(),
            requires: IndexMap::new(),
        },
        parameters: IndexMap::new(),
        input: RunInput::Declared,
        secrets: IndexMap::new(),
        env: IndexMap::new(),
        policy: RunPolicy {
            timeout: random.chance(60).then(|| Duration::from_secs(20 + random.below(400) as u64)),
            concurrency: Concurrency {
                agents_per_run: 1 + random.below(3) as u32,
                steps_per_run: random.chance(30).then(|| 1 + random.below(3) as u32),
                runs_per_workflow: None,
                key: None,
            },
            ..RunPolicy::unlimited()
        },
        steps,
        outputs: IndexMap::new(),
        result: None,
        hooks: Vec::new(),
        triggers: Vec::new(),
    };
    let errors: Vec<_> =
        resolve(&mut workflow).into_iter().filter(windlass_ir::Diagnostic::is_error).collect();
    assert!(errors.is_empty(), "the generator made an invalid plan: {errors:#?}");
    Plan::lower(workflow)
}

fn list(random: &mut Random, size: usize, depth: usize, next: &mut u32) -> Vec<Step> {
    let count = 1 + random.below(size);
    let mut steps: Vec<Step> = Vec::new();
    for _ in 0..count {
        let id: Arc<str> = format!("s{next}").into();
        *next += 1;
        let before: Vec<Arc<str>> = steps.iter().map(|step| step.id.value.clone()).collect();
        let needs: Vec<Arc<str>> = before.into_iter().filter(|_| random.chance(35)).collect();
        steps.push(step(random, &id, &needs, depth, next));
    }
    steps
}

fn step(random: &mut Random, id: &Arc<str>, needs: &[Arc<str>], depth: usize, next: &mut u32) -> Step {
    let condition = (!needs.is_empty() && random.chance(25)).then(|| {
        let read = random.pick(needs).clone();
        succeeded(&read, random.chance(80))
    });
    let kind = kind(random, needs, depth, next);
    let produces = matches!(kind, Kind::Action(_)) && random.chance(50);
    Step {
        number: StepId(0),
        id: spanned(id),
        implicit: false,
        name: id.clone(),
        description: None,
        word: "step",
        needs: needs.iter().map(spanned).collect(),
        condition,
        inputs: IndexMap::new(),
        outputs: if produces { IndexMap::from([("n".into(), number(random))]) } else { IndexMap::new() },
        env: IndexMap::new(),
        policy: Policy { timeout: timeout(random, &kind), ..policy(random) },
        kind,
        span: Span::default(),
    }
}

fn number(random: &mut Random) -> Output {
    Output {
        ty: Type::Integer,
        required: random.chance(70),
        default: random.chance(20).then_some(Value::Int(0)),
        description: None,
        source: None,
        span: Span::default(),
    }
}

fn kind(random: &mut Random, needs: &[Arc<str>], depth: usize, next: &mut u32) -> Kind<Vec<Step>> {
    match random.below(if depth > 0 { 10 } else { 8 }) {
        0..=2 => Kind::Action(Action::Task(Task::named("t"))),
        3..=5 => Kind::Action(Action::Agent(agent())),
        6 => Kind::Gate(Gate {
            approvers: if random.chance(50) { vec!["ann".into()] } else { Vec::new() },
            timeout: random.chance(70).then(|| Duration::from_secs(30 + random.below(600) as u64)),
            on_timeout: *random.pick(&[OnTimeout::Halt, OnTimeout::AutoApprove, OnTimeout::Reject]),
            ..Gate::plain()
        }),
        7 => Kind::Assign(IndexMap::from([("x".into(), bound(Template::Constant(Value::Int(1))))])),
        8 => Kind::Block(list(random, 3, depth - 1, next)),
        _ => {
            let condition = match needs.first() {
                Some(need) => succeeded(need, random.chance(50)),
                None => condition(Node::Literal(Value::Bool(random.chance(50)))),
            };
            let then = list(random, 3, depth - 1, next);
            let otherwise = if random.chance(50) { list(random, 2, depth - 1, next) } else { Vec::new() };
            Kind::Choose(Choose::If { condition, then, otherwise })
        }
    }
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

fn policy(random: &mut Random) -> Policy {
    let growths = [Growth::Fixed, Growth::Linear, Growth::Exponential { multiplier: 2.0 }];
    Policy {
        retry: Retry {
            attempts_max: 1 + random.below(3) as u32,
            backoff: Backoff {
                initial: Duration::from_secs(random.below(20) as u64),
                growth: *random.pick(&growths),
                min: Duration::ZERO,
                max: Duration::from_secs(60),
                jitter: 0.0,
                spread: Spread::Above,
            },
            only: Vec::new(),
            never: if random.chance(20) { vec!["fatal".into()] } else { Vec::new() },
            when: None,
        },
        on_failure: random.pick(&[OnFailure::Halt, OnFailure::Continue, OnFailure::SkipDependents]).clone(),
        ..Policy::once()
    }
}

/// Only attempts have one.
fn timeout(random: &mut Random, kind: &Kind<Vec<Step>>) -> Option<Duration> {
    let limited = matches!(kind, Kind::Action(_)) && random.chance(70);
    limited.then(|| Duration::from_secs(5 + random.below(60) as u64))
}

fn spanned(id: &Arc<str>) -> Spanned<Arc<str>> {
    Spanned::new(id.clone(), Span::default())
}

fn bound(template: Template) -> Bound {
    Bound { template, field: "field".into(), span: Span::default() }
}

fn condition(node: Node) -> Condition {
    Condition { expr: expr(node), field: "condition".into() }
}

fn expr(node: Node) -> Expr {
    Expr::new(node, Span::default())
}

/// Whether the status of a step is, or is not, success.
fn succeeded(step: &Arc<str>, wanted: bool) -> Condition {
    let steps = expr(Node::Read(Read::Namespace(Namespace::Steps)));
    let one = expr(Node::Member { of: Box::new(steps), name: step.clone() });
    let status = expr(Node::Member { of: Box::new(one), name: "status".into() });
    let word = expr(Node::Literal(Value::text("success")));
    let op = if wanted { BinaryOp::Equal } else { BinaryOp::NotEqual };
    condition(Node::Binary { op, left: Box::new(status), right: Box::new(word) })
}
