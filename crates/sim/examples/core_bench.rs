//! The speed of the core alone, in memory: a chain, a wide graph, a fan-out and nested loops. It prints ratios within
//! one run of the program, which are comparable across machines.

use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_engine::{Effect, Input, JobKey, Outcome, Program, Run, RunId, Start, Timestamp};
use windlass_ir::expr::{Expr, Namespace, Node, Read, StepId, Template};
use windlass_ir::policy::RunPolicy;
use windlass_ir::workflow::{
    Action, Bound, Condition, ForEach, ItemFailure, Items, Kind, Repeat, RepeatTest, Task,
};
use windlass_ir::{Plan, Span, Value};
use windlass_sim::story::plan_of;

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    // Counting instructions needs one part only, and once.
    let rounds = if only.is_some() { 1 } else { 9 };
    let drive = |plan: &Plan, slice| best_of(rounds, plan, slice);
    if wanted("chain") {
        let (short, long) = (drive(&chain(10_000), 1_000), drive(&chain(100_000), 1_000));
        println!("chain of 10,000 steps:      {}", short.line());
        println!("chain of 100,000 steps:     {}", long.line());
        let ratio = long.per_step(98).as_secs_f64() / long.per_step(1).as_secs_f64();
        println!("step 99,000 / step 1,000:   {ratio:.2} (aim at most 1.10)");
    }
    if wanted("graph") {
        let (small, large) = (drive(&wide(10_000), 1_000), drive(&wide(20_000), 1_000));
        println!("wide graph of 10,000 steps: {}", small.line());
        println!("wide graph of 20,000 steps: {}", large.line());
        let ratio = large.total().as_secs_f64() / small.total().as_secs_f64();
        println!("20,000 / 10,000 steps:      {ratio:.2} (linear is 2.00)");
    }
    if wanted("items") {
        let done = drive(&items(100_000, Some(100)), 10_000);
        println!("fan-out of 100,000 items:   {}", done.line());
    }
    if wanted("loops") {
        let done = drive(&loops(300, 300), 10_000);
        println!("300 rounds of 300 rounds:   {}", done.line());
    }
}

/// The duration of a run, in slices of a fixed number of answers.
struct Done {
    slices: Vec<Duration>,
    slice: usize,
    answers: u64,
    events: u64,
}

impl Done {
    fn total(&self) -> Duration {
        self.slices.iter().sum()
    }

    /// The time per step in a slice: the median of three slices, to exclude other load on the machine.
    fn per_step(&self, slice: usize) -> Duration {
        let last = self.slices.len() - 1;
        let mut around: Vec<Duration> =
            (slice.saturating_sub(1)..=(slice + 1).min(last)).map(|slice| self.slices[slice]).collect();
        around.sort();
        around[around.len() / 2] / u32::try_from(self.slice).unwrap_or(1)
    }

    fn line(&self) -> String {
        let seconds = self.total().as_secs_f64();
        let rate = self.events as f64 / seconds;
        format!(
            "{:>7} answers, {:>7} events, {seconds:.2} s, {rate:.0} events a second",
            self.answers, self.events
        )
    }
}

/// The fastest time of each slice over several rounds, to exclude other load on the machine.
fn best_of(rounds: u32, plan: &Plan, slice: usize) -> Done {
    let mut best = drive(plan, slice);
    for _ in 1..rounds {
        let again = drive(plan, slice);
        best.slices.iter_mut().zip(again.slices).for_each(|(best, again)| *best = again.min(*best));
    }
    best
}

fn drive(plan: &Plan, slice: usize) -> Done {
    let program = Arc::new(Program::new(plan.clone()).expect("a plan that can be run"));
    let mut run = Run::new(RunId::new("bench").expect("a good name"), program);
    let done = live(&mut run, slice);
    assert!(matches!(run.outcome(), Some(Outcome::Done(_))), "{:?}", run.outcome());
    done
}

/// Answers every job at once, until the run has ended. Instruction counts include only this function.
#[inline(never)]
fn live(run: &mut Run, slice: usize) -> Done {
    let mut done = Done { slices: Vec::new(), slice, answers: 0, events: 0 };
    let mut jobs: std::collections::VecDeque<JobKey> = std::collections::VecDeque::new();
    let mut begun = Instant::now();
    let mut next = Some(Input::Start(Box::new(Start::with(Value::map::<&str>([])))));
    while let Some(input) = next.take() {
        let answer = run.handle(Timestamp(0), input).expect("every answer is taken");
        done.events += answer.events.len() as u64;
        for effect in answer.effects {
            if let Effect::Dispatch(job) = effect {
                jobs.push_back(job.key);
            }
        }
        next = match answer.again {
            true => Some(Input::Tick),
            false => {
                jobs.pop_front().map(|job| Input::Reported { job, outcome: Outcome::Done(Value::Int(1)) })
            }
        };
        if let Some(Input::Reported { .. }) = &next {
            done.answers += 1;
            if done.answers.is_multiple_of(slice as u64) {
                done.slices.push(begun.elapsed());
                begun = Instant::now();
            }
        }
    }
    done.slices.push(begun.elapsed());
    done
}

/// A plan with one task, used as a template.
fn base() -> Plan {
    let text = "workflow: {id: bench, name: Bench}\nconfig: {timeout: none}\nstages: [{id: a, type: task, task: t}]\n";
    let mut plan = plan_of("swdl", text).expect("a good workflow");
    plan.policy = RunPolicy::unlimited();
    plan
}

/// The dependencies, the parent and the kind of a step.
type Draft = (Vec<StepId>, Option<StepId>, Kind<Vec<StepId>>);

fn with_steps(kinds: Vec<Draft>) -> Plan {
    let mut plan = base();
    let model = plan.steps[0].clone();
    let steps = kinds.into_iter().enumerate().map(|(number, (needs, parent, kind))| {
        let mut step = model.clone();
        step.id = format!("s{number}").into();
        (step.needs, step.parent, step.kind) = (needs, parent, kind);
        step
    });
    plan.steps = steps.collect();
    let roots = plan.steps.iter().enumerate().filter(|(_, step)| step.parent.is_none());
    plan.roots = roots.map(|(number, _)| id(number)).collect();
    plan.seal();
    plan
}

fn id(number: usize) -> StepId {
    StepId(u32::try_from(number).expect("a small number"))
}

fn task() -> Kind<Vec<StepId>> {
    Kind::Action(Action::Task(Task::named("t")))
}

fn chain(count: usize) -> Plan {
    let needs = |number: usize| number.checked_sub(1).map(id).into_iter().collect();
    with_steps((0..count).map(|number| (needs(number), None, task())).collect())
}

/// Layers of a hundred steps, each of which depends on three steps of the previous layer.
fn wide(count: usize) -> Plan {
    let needs = |number: usize| match number.checked_sub(100) {
        None => Vec::new(),
        Some(above) => {
            let layer = above - above % 100;
            (0..3).map(|step| id(layer + (above + step * 31) % 100)).collect()
        }
    };
    with_steps((0..count).map(|number| (needs(number), None, task())).collect())
}

fn items(count: i64, at_once: Option<u32>) -> Plan {
    let list = Template::Constant(Value::list((0..count).map(Value::Int)));
    let each = ForEach {
        items: Items::List(Bound { template: list, field: "items".into(), span: Span::default() }),
        body: vec![id(1)],
        concurrency: at_once,
        on_failure: ItemFailure::Halt,
        items_max: None,
        isolated: false,
        as_written: None,
    };
    with_steps(vec![(Vec::new(), None, Kind::ForEach(each)), (Vec::new(), Some(id(0)), task())])
}

fn loops(outer: u32, inner: u32) -> Plan {
    let always = Expr::new(Node::Literal(Value::Bool(true)), Span::default());
    let repeat = |rounds_max, body| {
        Kind::Repeat(Repeat {
            test: RepeatTest::While,
            condition: Condition { expr: always.clone(), field: "while".into() },
            rounds_max,
            delay: None,
            body: vec![body],
            as_written: None,
        })
    };
    let index = Expr::new(Node::Read(Read::Namespace(Namespace::Index)), Span::default());
    let input = Bound { template: Template::Expression(index), field: "input".into(), span: Span::default() };
    let work = Kind::Action(Action::Task(Task { input: Some(input), ..Task::named("t") }));
    with_steps(vec![
        (Vec::new(), None, repeat(outer, id(1))),
        (Vec::new(), Some(id(0)), repeat(inner, id(2))),
        (Vec::new(), Some(id(1)), work),
    ])
}
