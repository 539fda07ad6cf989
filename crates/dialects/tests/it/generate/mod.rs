//! Random workflows: every construct of the representation, nested, with names and texts that no person would choose.
//! Under the rules of another dialect nearly everything is allowed; under the native rules only what a file can
//! express.

mod steps;
mod values;

use indexmap::IndexMap;
use std::sync::Arc;
use windlass_dialects::swdl::WORDS;
use windlass_ir::expr::{RecordShape, Semantics, Template};
use windlass_ir::policy::{
    Budget, CancelOn, Concurrency, OnConflict, Priority, RunPolicy, Singleton, Sticky,
};
use windlass_ir::trigger::{
    CatchUp, CronSyntax, CronTrigger, Debounce, HttpTrigger, Overlap, SigningSecret, Trigger, TriggerInput,
    TriggerSource,
};
use windlass_ir::workflow::{Header, Hook, HookAction, HookMoment, Interpreter, RunInput, Workflow};
use windlass_ir::{Duration, Span, Spanned, Value};

/// Pseudorandom numbers that are the same on every machine.
#[derive(Debug)]
pub struct Dice {
    state: u64,
    foreign: bool,
    /// Whether results have the shape of Spec Kit, which contains types and conditions as written.
    speckit: bool,
    names: usize,
    /// Parameters that expressions may read.
    parameters: Vec<Arc<str>>,
    /// Whether gates may send the run back; then no id contains the character that numbers the passes.
    goes_back: bool,
}

const OVERLAPS: [Overlap; 3] = [Overlap::Skip, Overlap::Queue, Overlap::Cancel];

const ODD: &[&str] = &[
    "a", "Z", "9", " ", "-", "_", ".", ":", "#", "'", "\"", "\\", "\n", "\t", "${{", "}}", "{", "]", ",",
    "&", "é", "漢", "\u{1}", "\u{2028}", "true", "~", "%", "@", "<<", "\r", "|", "$",
];

pub fn workflow(seed: u64) -> Workflow {
    let foreign = !seed.is_multiple_of(4);
    let rules = [Semantics::SPECKIT, Semantics::DAGNATS, Semantics::DCC];
    let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut dice =
        Dice { state, foreign, speckit: false, names: 0, parameters: Vec::new(), goes_back: false };
    let dice = &mut dice;
    dice.goes_back = dice.maybe();
    let semantics = if foreign { *dice.pick(&rules) } else { Semantics::HOUSE };
    dice.speckit = semantics.results.record == RecordShape::Everything;
    let parameters = dice.map(3, Dice::parameter);
    dice.parameters = parameters.keys().cloned().collect();
    let secrets: Vec<Arc<str>> = (0..dice.roll(3)).map(|_| dice.name()).collect();
    Workflow {
        words: &WORDS,
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

    /// Text without expressions.
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
        let odd = if self.goes_back { odd.replace('#', "!") } else { odd };
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

    // The top level

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
            // Hooks cannot choose their shell.
            let foreign = self.foreign;
            let shell = |action: &HookAction| match action {
                HookAction::Run(run) if !foreign && run.template.has_lines() => Interpreter::strict(),
                HookAction::Run(_) | HookAction::Notify(_) | HookAction::Webhook(_) => Interpreter::plain(),
            };
            hooks.extend(actions.into_iter().flatten().map(|action| Hook {
                on,
                shell: shell(&action),
                action,
            }));
        }
        hooks
    }

    /// A text that is different from all others.
    fn unique(&mut self) -> Arc<str> {
        self.names += 1;
        let (number, text) = (self.names, self.text());
        format!("/{number}/{text}").into()
    }

    fn some_unless<T>(&mut self, never: bool, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.some(make).filter(|_| !never)
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
                    catch_up: match self.roll(3) {
                        0 => CatchUp::None,
                        1 => CatchUp::Last,
                        _ => CatchUp::All(self.count().clamp(1, 1_000)),
                    },
                })
            }
            1 => TriggerSource::Webhook { path: self.unique(), secret },
            2 => TriggerSource::Http(HttpTrigger {
                path: self.unique(),
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
        let timed = matches!(source, TriggerSource::Cron(_));
        let constant = Self::bound_to(Template::Constant(self.value(2)));
        let runs_max = self.some(Self::count);
        Trigger {
            id: self.some(|dice| Spanned::new(dice.unique(), Span::default())),
            enabled: self.maybe(),
            source,
            input: match self.roll(3) {
                0 => TriggerInput::Envelope,
                1 => TriggerInput::Whole(constant),
                _ => TriggerInput::Parameters(
                    self.parameters.first().map(|name| (name.clone(), constant)).into_iter().collect(),
                ),
            },
            runs_max,
            overlap: *self.pick(if runs_max.is_some() { &OVERLAPS } else { &OVERLAPS[..1] }),
            debounce: self.some_unless(timed, |dice| {
                let period = dice.duration();
                let timeout = dice.some(|dice| period.plus(dice.duration()));
                Debounce { period, timeout, key: dice.some(Self::text) }
            }),
            span: Span::default(),
        }
    }
}
