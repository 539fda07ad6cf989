//! Workflows made by dice: every construct of the representation, nested, with names and texts that no person would choose.
//! Under the rules of another dialect nearly everything is allowed; under the house rules only what a file could say.

use indexmap::IndexMap;
use std::sync::Arc;
use windlass_dialects::swdl::WORDS;
use windlass_ir::expr::{
    BinaryOp, Expr, Function, Namespace, Node, Piece, Query, Read, Semantics, StepId, Template,
};
use windlass_ir::policy::{
    Backoff, Bindings, Budget, CancelOn, Concurrency, Growth, Idempotency, IdempotencyScope, OnConflict,
    OnFailure, Policy, Priority, Rate, Retry, RunPolicy, Singleton, Spread, Sticky,
};
use windlass_ir::trigger::{
    CronSyntax, CronTrigger, Debounce, HttpTrigger, SigningSecret, Trigger, TriggerInput, TriggerSource,
};
use windlass_ir::workflow::{
    Action, Agent, Ask, Assistant, Bound, BranchFailure, Builtin, BuiltinKind, Call, CallMode, Capture,
    Choose, Condition, Finish, FinishStatus, ForEach, FormField, Gate, Guard, Handoff, HandoffFormat, Header,
    Hook, HookAction, HookMoment, Http, HttpAuth, HttpBody, Input, ItemFailure, Items, Kind, Memory,
    OnReject, OnTimeout, Output, Parallel, Parameter, Planner, Repeat, RepeatTest, Rounds, RunInput, Shell,
    ShellOutput, Step, Task, Tool, Wait, WaitFor, WaitTimeout, Words, Workflow,
};
use windlass_ir::{Duration, Span, Spanned, Type, Value};

static SWDL: Words = WORDS;

/// Numbers that look like chance and are the same on every machine.
#[derive(Debug)]
pub struct Dice {
    state: u64,
    foreign: bool,
    names: usize,
    /// Parameters that expressions may read.
    parameters: Vec<Arc<str>>,
}

const ODD: &[&str] = &[
    "a", "Z", "9", " ", "-", "_", ".", ":", "#", "'", "\"", "\\", "\n", "\t", "${{", "}}", "{", "]", ",",
    "&", "é", "漢", "\u{1}", "\u{2028}", "true", "~", "%", "@", "<<", "\r", "|", "$",
];

pub fn workflow(seed: u64) -> Workflow {
    let foreign = seed % 4 != 0;
    let rules = [Semantics::SPECKIT, Semantics::DAGNATS, Semantics::DCC];
    let mut dice =
        Dice { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), foreign, names: 0, parameters: Vec::new() };
    let dice = &mut dice;
    let semantics = if foreign { *dice.pick(&rules) } else { Semantics::HOUSE };
    let parameters = dice.map(3, |dice| dice.parameter());
    dice.parameters = parameters.keys().cloned().collect();
    let secrets: Vec<Arc<str>> = (0..dice.roll(3)).map(|_| dice.name()).collect();
    Workflow {
        words: &SWDL,
        semantics,
        header: dice.header(),
        parameters,
        input: if dice.maybe() { RunInput::Open(dice.ty()) } else { RunInput::Declared },
        env: dice.variables(),
        policy: dice.run_policy(),
        steps: dice.steps(3, 1),
        outputs: dice.map(2, |dice| dice.output(true)),
        result: dice.some(|dice| dice.output(true)),
        hooks: dice.hooks(),
        triggers: (0..dice.roll(3)).map(|_| dice.trigger(&secrets)).collect(),
        secrets: secrets.into_iter().map(|name| (name, Span::default())).collect(),
    }
}

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).expect("31 bits fit") % sides
    }

    fn maybe(&mut self) -> bool {
        self.roll(3) == 0
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }

    fn some<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.maybe().then(|| make(self))
    }

    fn map<T>(&mut self, max: usize, make: impl Fn(&mut Self) -> T) -> IndexMap<Arc<str>, T> {
        (0..self.roll(max + 1)).map(|_| (self.name(), make(self))).collect()
    }

    // Texts

    fn odd(&mut self) -> String {
        (0..self.roll(6)).map(|_| *self.pick(ODD)).collect()
    }

    /// Text that takes no expressions.
    fn text(&mut self) -> Arc<str> {
        match self.foreign {
            true => self.odd().into(),
            false => self.odd().replace("${{", "!").into(),
        }
    }

    fn texts(&mut self) -> Vec<Arc<str>> {
        (0..self.roll(3)).map(|_| self.text()).collect()
    }

    fn fresh(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    fn id(&mut self) -> Arc<str> {
        let number = self.fresh();
        let odd = if self.foreign && self.maybe() { self.odd() } else { String::new() };
        format!("s{number}{odd}").into()
    }

    fn name(&mut self) -> Arc<str> {
        let number = self.fresh();
        let odd = if self.foreign && self.maybe() { self.odd() } else { String::new() };
        format!("n_{number}{odd}").into()
    }

    fn duration(&mut self) -> Duration {
        match self.foreign {
            true => Duration(*self.pick(&[0, 1, 1_500, 30_000_000, 86_400_000_001, u64::MAX / 3])),
            false => Duration::from_secs(1 + self.roll(100_000) as u64),
        }
    }

    fn count(&mut self) -> u32 {
        1 + self.roll(9) as u32
    }

    // Data and expressions

    fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => Value::Bool(self.maybe()),
            2 => Value::Int(*self.pick(&[0, -7, 12, i64::MAX, i64::MIN])),
            3 => Value::Float(*self.pick(&[0.5, -2.0, 1e20, 1e-9, 3.0])),
            4 => Value::text(self.odd()),
            5 => Value::list((0..self.roll(3)).map(|_| self.value(depth - 1))),
            _ => {
                Value::map((0..self.roll(3)).map(|_| (self.odd(), self.value(depth - 1))).collect::<Vec<_>>())
            }
        }
    }

    fn expr(&mut self, depth: usize) -> Expr {
        let node = if self.foreign { self.any_node(depth) } else { self.house_node() };
        Expr::new(node, Span::default())
    }

    fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    fn any_node(&mut self, depth: usize) -> Node {
        const READS: &[Namespace] = &[
            Namespace::Inputs,
            Namespace::Steps,
            Namespace::Context,
            Namespace::Item,
            Namespace::Index,
            Namespace::Host,
            Namespace::Failure,
            Namespace::Undo,
            Namespace::Run,
        ];
        const OPS: &[BinaryOp] = &[
            BinaryOp::Equal,
            BinaryOp::NotEqual,
            BinaryOp::Less,
            BinaryOp::LessOrEqual,
            BinaryOp::Greater,
            BinaryOp::GreaterOrEqual,
            BinaryOp::And,
            BinaryOp::Or,
        ];
        let Some(below) = depth.checked_sub(1) else {
            return match self.maybe() {
                true => Node::Literal(self.value(1)),
                false => Node::Read(Read::Namespace(*self.pick(READS))),
            };
        };
        match self.roll(9) {
            0 => Node::Literal(self.value(2)),
            1 => Node::List((0..self.roll(3)).map(|_| self.expr(below)).collect()),
            2 => Node::Member { of: self.boxed(below), name: self.odd().into() },
            3 => Node::Index { of: self.boxed(below), at: self.boxed(below) },
            4 => {
                let function = *self.pick(Function::ALL);
                let arity = function.arity();
                let count = arity.min + self.roll(arity.max.unwrap_or(arity.min + 3) - arity.min + 1);
                Node::Call { function, args: (0..count).map(|_| self.expr(below)).collect() }
            }
            5 => {
                let path = *self.pick(&["$", "$.a[*].b", "$['it''s']", "$..x", "$[?@.n > 1]"]);
                let path = Query::parse(path).unwrap_or_else(|_| Query::parse("$.a").expect("a path"));
                Node::Query { of: self.boxed(below), path }
            }
            6 => Node::Not(self.boxed(below)),
            7 => Node::Binary { op: *self.pick(OPS), left: self.boxed(below), right: self.boxed(below) },
            _ => Node::Choice {
                when: self.boxed(below),
                then: self.boxed(below),
                otherwise: self.boxed(below),
            },
        }
    }

    /// What can be read everywhere but in triggers, and fits every type.
    fn house_node(&mut self) -> Node {
        let parameters = self.parameters.clone();
        let Some(name) = (!parameters.is_empty()).then(|| self.pick(&parameters).clone()) else {
            return Node::Literal(self.value(1));
        };
        let read = Expr::new(Node::Read(Read::Namespace(Namespace::Inputs)), Span::default());
        let member = Expr::new(Node::Member { of: Box::new(read), name }, Span::default());
        match self.roll(4) {
            0 => member.node,
            1 => Node::Not(Box::new(member)),
            2 => {
                Node::Binary { op: BinaryOp::Equal, left: Box::new(member.clone()), right: Box::new(member) }
            }
            _ => Node::Literal(self.value(1)),
        }
    }

    fn template(&mut self, depth: usize) -> Template {
        match self.roll(if depth == 0 { 3 } else { 5 }) {
            0 => Template::Constant(self.value(2)),
            1 => Template::Expression(self.expr(3)),
            2 => Template::Text(self.pieces()),
            3 => Template::List((0..self.roll(3)).map(|_| self.template(depth - 1)).collect()),
            _ => {
                let count = self.roll(3);
                Template::Map((0..count).map(|_| (self.odd().into(), self.template(depth - 1))).collect())
            }
        }
    }

    fn pieces(&mut self) -> Vec<Piece> {
        (0..self.roll(4))
            .map(|_| match self.maybe() {
                true => Piece::Expression(self.expr(2)),
                false => Piece::Text(self.odd().into()),
            })
            .collect()
    }

    fn bound_to(template: Template) -> Bound {
        Bound { template, field: "".into(), span: Span::default() }
    }

    fn any(&mut self) -> Bound {
        Self::bound_to(self.template(2))
    }

    /// For a key that is read as text.
    fn words(&mut self) -> Bound {
        Self::bound_to(self.template(0))
    }

    fn command(&mut self) -> Bound {
        let foreign = self.foreign;
        let pieces = (0..self.roll(4)).map(|_| match self.maybe() {
            true => {
                let function = if foreign { Function::Raw } else { Function::ShellQuote };
                let args = vec![self.expr(2)];
                Piece::Expression(Expr::new(Node::Call { function, args }, Span::default()))
            }
            false if foreign => Piece::Text(self.odd().into()),
            false => Piece::Text(" make it \n".into()),
        });
        Self::bound_to(Template::Text(pieces.collect()))
    }

    fn bindings(&mut self) -> Bindings {
        self.map(2, |dice| dice.any())
    }

    fn variables(&mut self) -> Bindings {
        self.map(2, |dice| dice.any())
    }

    fn condition(&mut self) -> Condition {
        Condition { expr: self.expr(3), field: "".into() }
    }

    fn ty(&mut self) -> Type {
        let schema =
            serde_json::json!({"type": "object", "properties": {"a": {"const": null}}, "maxProperties": 3});
        match self.roll(6) {
            0 => Type::Integer,
            1 => Type::Array(Box::new(Type::Array(Box::new(Type::String)))),
            2 => Type::Schema(Arc::new(schema)),
            _ => Type::Any,
        }
    }

    /// A default that fits every type there is, if the type is any.
    fn default(&mut self, ty: &Type) -> Option<Value> {
        let value = self.value(2);
        let fits = *ty == Type::Any && (self.foreign || value != Value::Null);
        (fits && self.maybe()).then_some(value)
    }

    fn parameter(&mut self) -> Parameter {
        let ty = if self.foreign { self.ty() } else { Type::Any };
        let default = self.default(&ty);
        Parameter {
            required: default.is_some() && self.maybe(),
            choices: match self.foreign && self.maybe() {
                true => vec![self.value(0), self.value(1)],
                false => Vec::new(),
            },
            description: self.some(|dice| dice.odd().into()),
            span: Span::default(),
            default,
            ty,
        }
    }

    fn input(&mut self) -> Input {
        Input {
            ty: Type::Any,
            source: self.some(Self::any),
            required: self.maybe(),
            description: self.some(|dice| dice.odd().into()),
            span: Span::default(),
        }
    }

    fn output(&mut self, computed: bool) -> Output {
        let ty = if self.foreign { self.ty() } else { Type::Any };
        Output {
            required: self.maybe(),
            default: self.default(&ty),
            description: self.some(|dice| dice.odd().into()),
            source: computed.then(|| self.any()),
            span: Span::default(),
            ty,
        }
    }

    // The top

    fn header(&mut self) -> Header {
        let number = self.roll(9);
        Header {
            id: self.id(),
            name: self.odd().into(),
            version: if self.foreign { self.text() } else { format!("1.0.{number}").into() },
            description: self.some(|dice| dice.odd().into()),
            author: self.some(|dice| dice.odd().into()),
            tags: self.texts(),
            requires: self.map(2, |dice| dice.value(2)),
        }
    }

    fn run_policy(&mut self) -> RunPolicy {
        let runs = self.some(Self::count);
        let steps = self.some(Self::count);
        let agents = [3, 7, u32::MAX];
        RunPolicy {
            timeout: self.some(Self::duration),
            concurrency: Concurrency {
                agents_per_run: *self.pick(&agents),
                steps_per_run: steps,
                runs_per_workflow: runs,
                key: runs.and_then(|_| self.some(Self::words)),
            },
            budget: Budget {
                tokens: self.some(|dice| u64::from(dice.count())),
                micro_usd: self.some(|dice| 250_000 * u64::from(dice.count())),
                calls: self.some(|dice| u64::from(dice.count())),
                time: self.some(Self::duration),
            },
            priority: self.some(|dice| Priority {
                key: dice.words(),
                offsets: dice.map(2, |dice| dice.roll(100) as i32 - 50),
                default_offset: dice.roll(3) as i32 - 1,
            }),
            singleton: self.some(|dice| Singleton {
                on_conflict: *dice.pick(&[OnConflict::Skip, OnConflict::Cancel]),
                key: dice.some(Self::words),
            }),
            sticky: self.some(|dice| *dice.pick(&[Sticky::Soft, Sticky::Hard])),
            cancel_on: (0..self.roll(2))
                .map(|_| CancelOn {
                    message: self.text(),
                    matching: self.bindings(),
                    timeout: self.some(Self::duration),
                })
                .collect(),
            start_key: self.some(Self::words),
            compensate_on_cancel: self.maybe(),
        }
    }

    fn hooks(&mut self) -> Vec<Hook> {
        let mut hooks = Vec::new();
        for on in [HookMoment::Start, HookMoment::Complete, HookMoment::Failure] {
            let actions = [
                self.some(Self::words).map(HookAction::Notify),
                self.some(Self::command).map(HookAction::Run),
                self.some(Self::words).map(HookAction::Webhook),
            ];
            hooks.extend(actions.into_iter().flatten().map(|action| Hook { on, action }));
        }
        hooks
    }

    fn trigger(&mut self, secrets: &[Arc<str>]) -> Trigger {
        let declared =
            secrets.first().map(|name| SigningSecret::Declared(Spanned::new(name.clone(), Span::default())));
        let secret = match self.roll(4) {
            0 => declared,
            1 => Some(SigningSecret::Variable(self.text())),
            2 => Some(SigningSecret::Literal(self.text())),
            _ => None,
        };
        let source = match self.roll(5) {
            0 => {
                let patterns = [
                    (CronSyntax::House, "0 9 * * 1-5"),
                    (CronSyntax::Posix, "*/5 * * * *"),
                    (CronSyntax::SecondsFirst, "0 0 9 * * Mon 2027"),
                ];
                let (syntax, pattern) = *self.pick(&patterns);
                TriggerSource::Cron(CronTrigger {
                    pattern: Spanned::new(pattern.into(), Span::default()),
                    syntax,
                    timezone: self.some(|_| "Europe/Berlin".into()),
                    jitter: self.some(Self::duration),
                    backfill: self.maybe(),
                })
            }
            1 => TriggerSource::Webhook { path: self.text(), secret },
            2 => TriggerSource::Http(HttpTrigger {
                path: self.text(),
                method: self.pick(&["POST", "GET"]).to_owned().into(),
                timeout: self.some(Self::duration),
                body_bytes_max: self.some(|dice| u64::from(dice.count())),
                secret,
                idempotency_header: self.some(Self::text),
                authentication: self.some(|dice| Value::map([("scheme", dice.value(1))])),
            }),
            3 => TriggerSource::Message { name: self.text() },
            _ => TriggerSource::External { kind: self.text(), config: self.value(2) },
        };
        let constant = Self::bound_to(Template::Constant(self.value(2)));
        Trigger {
            id: self.some(|dice| Spanned::new(dice.text(), Span::default())),
            enabled: self.maybe(),
            source,
            input: match self.roll(3) {
                0 => TriggerInput::Envelope,
                1 => TriggerInput::Whole(constant),
                _ => TriggerInput::Parameters(
                    self.parameters.first().map(|name| (name.clone(), constant)).into_iter().collect(),
                ),
            },
            runs_max: self.some(Self::count),
            debounce: self.some(|dice| Debounce {
                period: dice.duration(),
                timeout: dice.some(Self::duration),
                key: dice.some(Self::text),
            }),
            span: Span::default(),
        }
    }

    // Policies

    fn retry(&mut self) -> Retry {
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
            },
        }
    }

    /// The house gives each kind only what means something for it.
    fn policy(&mut self, works: bool, bounded: bool) -> Policy {
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

    fn idempotency(&mut self) -> Idempotency {
        Idempotency {
            key: self.words(),
            scope: *self.pick(&[IdempotencyScope::Run, IdempotencyScope::Global]),
            ttl: self.some(Self::duration),
        }
    }

    fn rate(&mut self) -> Rate {
        Rate {
            limit: self.count(),
            period: self.duration(),
            key: self.some(Self::words),
            units: self.count(),
        }
    }

    // Steps

    fn steps(&mut self, depth: usize, least: usize) -> Vec<Step> {
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
        steps
    }

    /// Lets a step hand its failure to a later one, or be undone by one.
    fn tie(&mut self, steps: &mut [Step]) {
        let Some(last) = steps.last().map(|step| step.id.clone()) else { return };
        let free = steps.len() > 1 && !matches!(steps[0].kind, Kind::Guard(_));
        if free && self.maybe() {
            steps[0].policy.on_failure = OnFailure::Goto(last.clone());
        }
        if free && self.maybe() {
            steps[0].policy.compensate = Some(last);
        }
    }

    fn step(&mut self, id: Arc<str>, implicit: bool, depth: usize) -> Step {
        let kind = self.kind(&id, depth);
        let works = matches!(kind, Kind::Action(_));
        let scope = !kind.bodies().is_empty();
        let declares = self.foreign || works || (scope && !matches!(kind, Kind::ForEach(_)));
        let computed = scope || (self.foreign && self.maybe());
        let step = Step {
            number: StepId(0),
            implicit,
            name: if self.maybe() { self.odd().into() } else { id.clone() },
            description: self.some(|dice| dice.odd().into()),
            word: "",
            needs: Vec::new(),
            condition: self.some(Self::condition),
            inputs: self.map(2, |dice| dice.input()),
            outputs: if declares { self.map(2, |dice| dice.output(computed)) } else { IndexMap::new() },
            env: self.variables(),
            policy: self.policy(works, scope),
            kind,
            span: Span::default(),
            id: Spanned::new(id, Span::default()),
        };
        if depth > 0 && self.roll(8) == 0 { self.guarded(step, depth - 1) } else { step }
    }

    /// As the house dialect wraps a stage that says how it is undone.
    fn guarded(&mut self, step: Step, depth: usize) -> Step {
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
                    ..step.clone()
                }],
                compensate,
                finally,
            }),
            ..step
        }
    }

    fn handler(&mut self, id: &Arc<str>, depth: usize) -> Vec<Step> {
        match self.maybe() {
            true => self.steps(depth, 1),
            false => vec![self.step(id.clone(), true, depth)],
        }
    }

    fn kind(&mut self, id: &Arc<str>, depth: usize) -> Kind<Vec<Step>> {
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
            }),
            4 => Kind::Repeat(Repeat {
                test: *self.pick(&[RepeatTest::While, RepeatTest::Until, RepeatTest::DoWhile]),
                condition: self.condition(),
                rounds_max: self.count(),
                delay: self.some(Self::duration),
                body: self.steps(below, least),
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

    fn items(&mut self) -> Items {
        match self.maybe() {
            true => Items::Matrix(IndexMap::from([(
                "os".into(),
                Self::bound_to(Template::Constant(Value::list([self.value(1)]))),
            )])),
            false => Items::List(self.any()),
        }
    }

    fn branches(&mut self, id: &Arc<str>, depth: usize) -> Vec<Step> {
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

    fn leaf(&mut self) -> Kind<Vec<Step>> {
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

    fn gate(&mut self) -> Gate {
        let choices = vec![self.value(0)];
        let parameters = self.parameters.clone();
        Gate {
            approvers: self.texts(),
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
            on_reject: *self.pick(&[OnReject::Fail, OnReject::Abort, OnReject::Skip, OnReject::Retry]),
            show_file: self.some(Self::words),
            verdict_input: parameters.first().map(|name| Spanned::new(name.clone(), Span::default())),
            subject: self.some(Self::text),
            metadata: self.map(2, |dice| dice.text()),
        }
    }

    fn wait(&mut self) -> Wait {
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

    fn agent(&mut self) -> Agent {
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

    fn task(&mut self) -> Task {
        Task {
            task: self.text(),
            group: self.some(Self::text),
            input: self.some(Self::any),
            metadata: self.map(2, |dice| dice.text()),
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

    fn http(&mut self) -> Http {
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

    fn assistant(&mut self) -> Assistant {
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
