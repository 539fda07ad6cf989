//! Steps of every kind, with their policies.

use super::Dice;
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;
use windlass_dialects::speckit;
use windlass_ir::expr::{StepId, Template};
use windlass_ir::policy::{
    Backoff, Growth, Idempotency, IdempotencyScope, OnFailure, Policy, Rate, Retry, RetryAfter, Spread,
};
use windlass_ir::workflow::{
    Action, Agent, Ask, Assistant, BranchFailure, Builtin, BuiltinKind, Call, CallMode, Capture, Choose,
    Finish, FinishStatus, ForEach, FormField, Gate, Guard, Handoff, HandoffFormat, Http, HttpAuth, HttpBody,
    Interpreter, ItemFailure, Items, Kind, Memory, OnReject, OnTimeout, Parallel, Planner, Repeat,
    RepeatTest, Rounds, Shell, ShellOutput, Step, Task, Tool, Wait, WaitFor, WaitTimeout,
};
use windlass_ir::{Duration, Span, Spanned, Type, Value};

impl Dice {
    // Policies

    pub(super) fn retry(&mut self) -> Retry {
        let growths = [Growth::Fixed, Growth::Linear, Growth::Exponential { multiplier: 1.5 }];
        match self.roll(3) {
            0 => Retry::once(),
            _ => Retry {
                attempts_max: self.count(),
                backoff: Backoff {
                    initial: *self.pick(&[Duration::ZERO, Duration::from_secs(30)]),
                    growth: *self.pick(&growths),
                    min: *self.pick(&[Duration::ZERO, Duration::from_millis(1)]),
                    max: *self.pick(&[Duration::ZERO, Duration::from_secs(300)]),
                    jitter: *self.pick(&[0.0, 0.25, 1.0]),
                    spread: *self.pick(&[Spread::Above, Spread::Around]),
                },
                only: self.texts(),
                never: self.texts(),
                when: self.some(Self::condition),
                after: match self.maybe() {
                    true => RetryAfter::AtLeast,
                    false => RetryAfter::Instead {
                        min: *self.pick(&[Duration::ZERO, Duration::from_millis(100)]),
                        max: *self.pick(&[Duration::from_millis(100), Duration::from_secs(3_600)]),
                    },
                },
            },
        }
    }

    /// The native dialect accepts for each kind only what applies to it.
    pub(super) fn policy(&mut self, works: bool, bounded: bool) -> Policy {
        let failures = [OnFailure::Halt, OnFailure::Rollback, OnFailure::Continue, OnFailure::SkipDependents];
        let open = self.foreign || works;
        let house_once = Retry {
            attempts_max: 1,
            backoff: Backoff {
                initial: Duration::from_secs(30),
                growth: Growth::Exponential { multiplier: 2.0 },
                min: Duration::ZERO,
                max: Duration::from_secs(300),
                jitter: 0.0,
                spread: Spread::Above,
            },
            ..Retry::once()
        };
        Policy {
            retry: if open { self.retry() } else { house_once },
            timeout: if open || bounded { self.some(Self::duration) } else { None },
            on_failure: self.pick(&failures).clone(),
            idempotency: if open { self.some(Self::idempotency) } else { None },
            compensate: None,
            rate: if open { self.some(Self::rate) } else { None },
            task_jobs_max: if open { self.some(Self::count) } else { None },
        }
    }

    pub(super) fn idempotency(&mut self) -> Idempotency {
        Idempotency {
            key: self.words(),
            scope: *self.pick(&[IdempotencyScope::Run, IdempotencyScope::Global]),
            ttl: self.some(Self::duration),
        }
    }

    pub(super) fn rate(&mut self) -> Rate {
        Rate {
            limit: self.count(),
            period: self.duration(),
            key: self.some(Self::words),
            units: self.count(),
        }
    }

    // Steps

    pub(super) fn steps(&mut self, depth: usize, least: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..least + self.roll(3) {
            let id = self.id();
            let mut step = self.step(id, false, depth);
            for earlier in &steps {
                if self.maybe() {
                    step.needs.push(earlier.id.clone());
                }
            }
            steps.push(step);
        }
        self.tie(&mut steps);
        if self.goes_back {
            self.send_back(&mut steps);
        }
        steps
    }

    /// Lets a step hand its failure to a later one, or be undone by one.
    pub(super) fn tie(&mut self, steps: &mut [Step]) {
        let Some(last) = steps.last().map(|step| step.id.clone()) else { return };
        let free = steps.len() > 1 && !matches!(steps[0].kind, Kind::Guard(_));
        if free && self.maybe() {
            steps[0].policy.on_failure = OnFailure::Goto(last.clone());
        }
        if free && self.maybe() {
            steps[0].policy.compensate = Some(last);
        }
    }

    /// Lets gates send the run back to one of their dependencies.
    pub(super) fn send_back(&mut self, steps: &mut [Step]) {
        let ties = steps.first().map(|step| &step.policy);
        let tied = ties.is_some_and(|policy| {
            policy.compensate.is_some() || matches!(policy.on_failure, OnFailure::Goto(_))
        });
        let free = steps.len() - usize::from(tied);
        for step in &mut steps[..free] {
            let times_max = self.count();
            if let (Kind::Gate(gate), Some(to)) = (&mut step.kind, step.needs.last()) {
                gate.on_reject = OnReject::Back { to: to.clone(), times_max };
            }
        }
    }

    /// A value that results contain as its author wrote it.
    fn written(&mut self) -> Option<Value> {
        if self.speckit { self.some(|dice| Value::text(dice.odd())) } else { None }
    }

    pub(super) fn step(&mut self, id: Arc<str>, implicit: bool, depth: usize) -> Step {
        let kind = self.kind(&id, depth);
        let works = matches!(kind, Kind::Action(_));
        let scope = !kind.bodies().is_empty();
        let declares = self.foreign || works || (scope && !matches!(kind, Kind::ForEach(_)));
        let computed = scope || (self.foreign && self.maybe());
        let recorded = if self.speckit { speckit::type_of(&kind) } else { None };
        let step = Step {
            number: StepId(0),
            implicit,
            name: if self.maybe() { self.odd().into() } else { id.clone() },
            description: self.some(|dice| dice.odd().into()),
            word: recorded.unwrap_or_default(),
            needs: Vec::new(),
            condition: self.some(Self::condition),
            inputs: self.map(2, Self::input),
            outputs: if declares { self.map(2, |dice| dice.output(computed)) } else { IndexMap::new() },
            env: self.variables(),
            policy: self.policy(works, scope),
            recorded: None,
            kind,
            span: Span::default(),
            id: Spanned::new(id, Span::default()),
        };
        if depth > 0 && self.roll(8) == 0 { self.guarded(step, depth - 1) } else { step }
    }

    /// As the native dialect wraps a stage with a compensation.
    pub(super) fn guarded(&mut self, step: Step, depth: usize) -> Step {
        let compensate = self.some(|dice| dice.handler(&step.id.value, depth));
        let finally =
            Some(self.handler(&step.id.value, depth)).filter(|_| compensate.is_none() || self.maybe());
        Step {
            inputs: IndexMap::new(),
            outputs: IndexMap::new(),
            policy: Policy { timeout: None, idempotency: None, ..step.policy.clone() },
            kind: Kind::Guard(Guard {
                body: vec![Step {
                    implicit: true,
                    needs: Vec::new(),
                    condition: None,
                    env: IndexMap::new(),
                    policy: Policy { on_failure: OnFailure::Halt, compensate: None, ..step.policy.clone() },
                    ..step.clone()
                }],
                compensate,
                finally,
            }),
            ..step
        }
    }

    pub(super) fn handler(&mut self, id: &Arc<str>, depth: usize) -> Vec<Step> {
        match self.maybe() {
            true => self.steps(depth, 1),
            false => vec![self.step(id.clone(), true, depth)],
        }
    }

    pub(super) fn kind(&mut self, id: &Arc<str>, depth: usize) -> Kind<Vec<Step>> {
        let least = usize::from(!self.foreign);
        let Some(below) = depth.checked_sub(1) else { return self.leaf() };
        match self.roll(12) {
            0 => Kind::Block(self.steps(below, least)),
            1 => Kind::Parallel(Parallel {
                branches: self.branches(id, below),
                on_failure: *self.pick(&[BranchFailure::Wait, BranchFailure::Abort, BranchFailure::Continue]),
            }),
            2 | 3 => Kind::ForEach(ForEach {
                items: self.items(),
                body: match self.roll(3) {
                    0 => self.steps(below, 1),
                    1 => {
                        let id = self.id();
                        vec![self.step(id, false, below)]
                    }
                    _ => vec![self.step(id.clone(), true, below)],
                },
                concurrency: self.some(Self::count),
                on_failure: *self.pick(&[ItemFailure::Halt, ItemFailure::Continue]),
                items_max: self.some(|dice| u64::from(dice.count())),
                isolated: self.maybe(),
                as_written: self.written(),
            }),
            4 => Kind::Repeat(Repeat {
                test: *self.pick(&[RepeatTest::While, RepeatTest::Until, RepeatTest::DoWhile]),
                condition: self.condition(),
                rounds_max: self.count(),
                delay: self.some(Self::duration),
                body: self.steps(below, least),
                as_written: self.written(),
            }),
            5 => Kind::Choose(Choose::If {
                condition: self.condition(),
                then: self.steps(below, least),
                otherwise: if self.maybe() { Vec::new() } else { self.steps(below, 1) },
            }),
            6 => Kind::Choose(Choose::Switch {
                value: self.any(),
                cases: self.map(3, |dice| dice.steps(below, 0)),
                default: self.steps(below, 0),
            }),
            _ => self.leaf(),
        }
    }

    pub(super) fn items(&mut self) -> Items {
        match self.maybe() {
            true => Items::Matrix(IndexMap::from([(
                "os".into(),
                Self::bound_to(Template::Constant(Value::list([self.value(1)]))),
            )])),
            false => Items::List(self.any()),
        }
    }

    pub(super) fn branches(&mut self, id: &Arc<str>, depth: usize) -> Vec<Step> {
        (0..1 + self.roll(2))
            .map(|_| match self.roll(3) {
                0 => {
                    let own = self.id();
                    self.step(own, false, depth)
                }
                1 => self.step(id.clone(), true, depth),
                _ => {
                    let block = Kind::Block(self.steps(depth, 1));
                    let policy = self.policy(false, true);
                    Step {
                        kind: block,
                        policy,
                        name: id.clone(),
                        inputs: IndexMap::new(),
                        outputs: IndexMap::new(),
                        ..self.step(id.clone(), true, 0)
                    }
                }
            })
            .collect()
    }

    pub(super) fn leaf(&mut self) -> Kind<Vec<Step>> {
        match self.roll(13) {
            0 => Kind::Gate(self.gate()),
            1 => Kind::Wait(self.wait()),
            2 => Kind::Assign(self.bindings()),
            3 => Kind::Finish(Finish {
                status: *self.pick(&[FinishStatus::Success, FinishStatus::Failed, FinishStatus::Cancelled]),
                outputs: self.bindings(),
            }),
            4 => Kind::Slot(self.text()),
            5 => Kind::Action(Action::Agent(self.agent())),
            6 => Kind::Action(Action::Shell(Shell {
                run: self.command(),
                shell: Interpreter::of(self.pick::<&[&str]>(&[
                    &["sh", "-c"],
                    &["sh", "-e", "-c"],
                    &["bash", "-eo", "pipefail", "-c"],
                    &["/bin/dash", "-c"],
                ])),
                cwd: self.some(Self::words),
                stdin: self.some(Self::any),
                output: *self.pick(&[ShellOutput::Text, ShellOutput::Json]),
            })),
            7 => Kind::Action(Action::Tool(Tool {
                tool: self.text(),
                server: self.some(Self::text),
                args: self.some(Self::any),
            })),
            8 => Kind::Action(Action::Task(self.task())),
            9 => Kind::Action(Action::Http(Box::new(self.http()))),
            10 => Kind::Action(Action::Call(Call {
                workflow: self.words(),
                input: self.some(Self::any),
                mode: *self.pick(&[CallMode::Child, CallMode::Detached, CallMode::Inline]),
            })),
            11 => Kind::Action(Action::Assistant(Box::new(self.assistant()))),
            _ => Kind::Action(Action::Builtin(Builtin {
                what: *self.pick(&BuiltinKind::ALL),
                args: self.bindings(),
            })),
        }
    }

    pub(super) fn gate(&mut self) -> Gate {
        let choices = vec![self.value(0)];
        let parameters = self.parameters.clone();
        let approvers = self.texts();
        let people = approvers.iter().collect::<HashSet<_>>().len();
        Gate {
            quorum: 1 + self.roll(if people == 0 { 9 } else { people }) as u32,
            self_approval: self.maybe(),
            approvers,
            timeout: self.some(Self::duration),
            on_timeout: *self.pick(&[OnTimeout::Halt, OnTimeout::AutoApprove, OnTimeout::Reject]),
            message: self.some(Self::words),
            form: self.map(2, |dice| FormField {
                ty: Type::Any,
                required: dice.maybe(),
                default: choices.first().filter(|value| **value != Value::Null).cloned(),
                description: dice.some(|dice| dice.odd().into()),
                choices: choices.clone(),
                span: Span::default(),
            }),
            options: match self.roll(3) {
                0 if self.foreign => self.texts(),
                1 => vec!["ship it".into(), "Abort".into()],
                _ => Gate::plain().options,
            },
            on_reject: self.pick(&[OnReject::Fail, OnReject::Abort, OnReject::Skip, OnReject::Retry]).clone(),
            show_file: self.some(Self::words),
            verdict_input: parameters.first().map(|name| Spanned::new(name.clone(), Span::default())),
            subject: self.some(Self::text),
            metadata: self.map(2, Self::text),
        }
    }

    pub(super) fn wait(&mut self) -> Wait {
        let what = match self.roll(5) {
            0 => WaitFor::Duration(Self::bound_to(Template::Constant(Value::text("1h30m")))),
            1 => WaitFor::Instant(Self::bound_to(Template::Constant(Value::text("2027-01-31T09:00:00Z")))),
            2 => WaitFor::Cron("0 9 * * 1-5".into()),
            3 => WaitFor::Signal { name: self.text(), matching: self.bindings() },
            _ => WaitFor::Message { name: self.text(), matching: self.bindings() },
        };
        let on_timeout = match self.maybe() {
            true => WaitTimeout::Done(self.value(1)),
            false => WaitTimeout::Fail,
        };
        Wait { what, timeout: self.some(Self::duration), on_timeout }
    }

    pub(super) fn agent(&mut self) -> Agent {
        let modules = ["ctx:rules", "ctx:style", "ctx:notes"];
        Agent {
            artifact: "agent:ann".into(),
            model: self.pick(&["opus", "sonnet"]).to_owned().into(),
            instructions: self.some(Self::words),
            tools: if self.maybe() { vec!["skill:git".into()] } else { Vec::new() },
            modules: modules[..self.roll(4)].iter().map(|module| (*module).into()).collect(),
            memory: self.some(|dice| Memory {
                project_scope: dice.text(),
                min_confidence: *dice.pick(&[0.0, 0.5, 0.7]),
                categories: dice.texts(),
                max_tokens: u64::from(dice.count()),
            }),
            handoff: Handoff {
                format: *self.pick(&[HandoffFormat::Structured, HandoffFormat::Markdown, HandoffFormat::Raw]),
                include_run_log: self.maybe(),
                summary_prompt: self.some(Self::words),
            },
        }
    }

    pub(super) fn task(&mut self) -> Task {
        Task {
            task: self.text(),
            group: self.some(Self::text),
            input: self.some(Self::any),
            metadata: self.map(2, Self::text),
            capabilities: self.texts(),
            rounds: self.some(|dice| Rounds {
                rounds_max: dice.count(),
                time_max: dice.some(Self::duration),
                delay: dice.some(Self::duration),
                warn_at: dice.some(Self::count),
                force_at: dice.some(Self::count),
            }),
            planner: self.some(|dice| Planner {
                steps_max: dice.count(),
                depth_max: dice.some(Self::count),
                tasks_allowed: dice.texts(),
            }),
        }
    }

    pub(super) fn http(&mut self) -> Http {
        Http {
            method: self.pick(&["GET", "POST", "DELETE"]).to_owned().into(),
            url: self.words(),
            headers: self.bindings(),
            query: self.bindings(),
            body: match self.roll(4) {
                0 => HttpBody::Empty,
                1 => HttpBody::Json(self.any()),
                2 => HttpBody::Form(self.bindings()),
                _ => HttpBody::Text(self.words()),
            },
            auth: match self.roll(3) {
                0 => Some(HttpAuth::Bearer(self.words())),
                1 => Some(HttpAuth::Basic { user: self.words(), password: self.words() }),
                _ => None,
            },
            expect: if self.maybe() { vec![200, 404] } else { Vec::new() },
        }
    }

    pub(super) fn assistant(&mut self) -> Assistant {
        Assistant {
            ask: match self.maybe() {
                true => Ask::Prompt(self.words()),
                false => Ask::Command {
                    command: self.text(),
                    input: self.bindings(),
                    arguments: (0..self.roll(3)).map(|_| self.any()).collect(),
                    settings: self.bindings(),
                },
            },
            integration: self.some(Self::words),
            model: self.some(Self::words),
            options: self.map(2, |dice| dice.value(2)),
            capture: self.some(|dice| Capture { bytes_max: dice.some(|dice| u64::from(dice.count())) }),
        }
    }
}
