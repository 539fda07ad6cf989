//! Writes policies as far as they differ from the defaults of the file. [`Shared`] finds the defaults that are worth
//! stating once.

use super::values::{condition, text};
use super::yaml::{Map, Yaml};
use crate::swdl::defaults;
use std::sync::Arc;
use windlass_ir::expr::Semantics;
use windlass_ir::policy::{Growth, IdempotencyScope, OnFailure, Policy, Retry, RetryAfter, Spread};
use windlass_ir::workflow::{Action, Agent, Kind, Memory, Step, Workflow};

/// At most this many different retry policies are compared.
const RETRIES_COMPARED: usize = 32;

/// The defaults at the top of the file.
#[derive(Debug)]
pub struct Shared {
    pub foreign: bool,
    retry: Retry,
    pub on_failure: OnFailure,
    pub modules: Vec<Arc<str>>,
    pub memory: Option<Memory>,
}

impl Shared {
    pub fn of(workflow: &Workflow) -> Self {
        let foreign = workflow.semantics != Semantics::HOUSE;
        let mut found = Found {
            of_commands: defaults::retry_of_commands(foreign, false),
            retries: Vec::new(),
            agents: Vec::new(),
            rolls_back: false,
            all_continue: false,
            steps: 0,
        };
        found.look(&workflow.steps);
        Self {
            foreign,
            retry: found.common_retry(defaults::retry(foreign)),
            on_failure: found.common_failure(),
            modules: found.common_modules(),
            memory: found.common_memory(),
        }
    }

    /// `error_policy` of the workflow.
    pub fn error_policy(&self) -> Map {
        let mut map = Map::new();
        map.put_filled("default_retry", retry(&self.retry, &defaults::retry(self.foreign)));
        match &self.on_failure {
            OnFailure::Continue => map.put("on_stage_failure", "continue"),
            OnFailure::Rollback => map.put("on_stage_failure", "rollback"),
            OnFailure::Halt | OnFailure::SkipDependents | OnFailure::Goto(_) => {}
        }
        map
    }

    /// Whether `default_retry` is written.
    fn writes_retry(&self) -> bool {
        self.retry != defaults::retry(self.foreign)
    }

    /// `error_policy` of a stage. `outer` determines the effect of a failure; it differs from the stage itself if
    /// that is guarded.
    pub fn of_stage(&self, outer: &Step, step: &Step) -> Map {
        let works = matches!(step.kind, Kind::Action(_));
        let policy = &step.policy;
        let mut map = Map::new();
        let is_command = matches!(step.kind, Kind::Action(Action::Shell(_))) && !self.writes_retry();
        let usual = match works {
            true if is_command => defaults::retry_of_commands(self.foreign, false),
            true => self.retry.clone(),
            false => defaults::no_retry(self.foreign),
        };
        let mut written = retry(&policy.retry, &usual);
        // With any policy of its own, a command no longer has one attempt by default.
        if is_command
            && !self.foreign
            && !written.is_empty()
            && policy.retry.attempts_max == usual.attempts_max
        {
            written.put("max_attempts", policy.retry.attempts_max);
        }
        map.put_filled("retry", written);
        let bounded = works && !matches!(step.kind, Kind::Action(Action::Call(_)));
        let timeout = (bounded && !self.foreign).then_some(defaults::TIMEOUT);
        if policy.timeout != timeout {
            map.put("timeout", policy.timeout.map_or(Yaml::from("none"), Yaml::from));
        }
        if outer.policy.on_failure != self.on_failure {
            map.put("on_failure", on_failure(&outer.policy.on_failure));
        }
        map
    }

    /// Whether a block can be written as a plain list of its stages.
    pub fn is_plain(&self, policy: &Policy) -> bool {
        let plain = Policy {
            retry: defaults::no_retry(self.foreign),
            on_failure: self.on_failure.clone(),
            ..Policy::once()
        };
        *policy == plain
    }
}

fn on_failure(on_failure: &OnFailure) -> Yaml {
    match on_failure {
        OnFailure::Halt => "halt".into(),
        OnFailure::Rollback => "rollback".into(),
        OnFailure::Continue => "continue".into(),
        OnFailure::SkipDependents => "skip_dependents".into(),
        OnFailure::Goto(target) => {
            let mut map = Map::new();
            map.put("goto", &target.value);
            map.into()
        }
    }
}

/// The parts of a retry policy that differ from the default.
fn retry(retry: &Retry, usual: &Retry) -> Map {
    let mut map = Map::new();
    let (backoff, before) = (&retry.backoff, &usual.backoff);
    if retry.attempts_max != usual.attempts_max {
        map.put("max_attempts", retry.attempts_max);
    }
    if backoff.growth != before.growth {
        match backoff.growth {
            Growth::Fixed => map.put("backoff", "fixed"),
            Growth::Linear => map.put("backoff", "linear"),
            Growth::Exponential { multiplier } => map.put("backoff_multiplier", number(multiplier)),
        }
    }
    let intervals = [
        ("initial_interval", backoff.initial, before.initial),
        ("min_interval", backoff.min, before.min),
        ("max_interval", backoff.max, before.max),
    ];
    for (key, own, usual) in intervals {
        if own != usual {
            map.put(key, own);
        }
    }
    if backoff.jitter != before.jitter {
        map.put("jitter", number(backoff.jitter));
    }
    if backoff.spread != before.spread {
        map.put("spread", if backoff.spread == Spread::Above { "above" } else { "around" });
    }
    for (key, own, usual) in
        [("retryable_errors", &retry.only, &usual.only), ("non_retryable_errors", &retry.never, &usual.never)]
    {
        if own != usual {
            map.put(key, texts(own));
        }
    }
    map.put_some("when", retry.when.as_ref().map(condition));
    if retry.after != usual.after {
        map.put("retry_after", retry_after(retry.after));
    }
    map
}

fn retry_after(after: RetryAfter) -> Yaml {
    match after {
        RetryAfter::AtLeast => "at_least".into(),
        RetryAfter::Instead { min, max } => {
            let mut map = Map::new();
            map.put("min", min);
            map.put("max", max);
            map.into()
        }
    }
}

/// Writes a number without a fraction as an integer.
pub fn number(float: f64) -> Yaml {
    match float.fract() == 0.0 && float.abs() < 1e9 {
        true => Yaml::Int(float as i128),
        false => Yaml::Float(float),
    }
}

pub fn texts(texts: &[Arc<str>]) -> Yaml {
    Yaml::List(texts.iter().map(Yaml::from).collect())
}

/// The keys next to `error_policy` on a stage.
pub fn limits(policy: &Policy, stage: &mut Map) {
    if let Some(idempotency) = &policy.idempotency {
        let mut map = Map::new();
        map.put("key", text(&idempotency.key));
        if idempotency.scope == IdempotencyScope::Global {
            map.put("scope", "global");
        }
        map.put_some("ttl", idempotency.ttl);
        stage.put("idempotency", map);
    }
    if let Some(rate) = &policy.rate {
        let mut map = Map::new();
        map.put("limit", rate.limit);
        map.put("per", rate.period);
        map.put_some("key", rate.key.as_ref().map(text));
        if rate.units != 1 {
            map.put("units", rate.units);
        }
        stage.put("rate_limit", map);
    }
    stage.put_some("task_concurrency", policy.task_jobs_max);
}

/// Collects what the stages have in common, in one pass.
struct Found<'a> {
    /// The default of commands, which needs no mention.
    of_commands: Retry,
    retries: Vec<(&'a Retry, usize)>,
    agents: Vec<&'a Agent>,
    rolls_back: bool,
    all_continue: bool,
    steps: usize,
}

impl<'a> Found<'a> {
    fn look(&mut self, steps: &'a [Step]) {
        for step in steps {
            self.look_at_failure(step);
            self.look_inside(step);
        }
    }

    fn look_at_failure(&mut self, step: &Step) {
        let continues = step.policy.on_failure == OnFailure::Continue;
        self.all_continue = continues && (self.steps == 0 || self.all_continue);
        self.rolls_back |= step.policy.on_failure == OnFailure::Rollback;
        self.steps += 1;
    }

    fn look_inside(&mut self, step: &'a Step) {
        if let Kind::Action(action) = &step.kind {
            let usual = matches!(action, Action::Shell(_)) && step.policy.retry == self.of_commands;
            if !usual {
                self.count(&step.policy.retry);
            }
            if let Action::Agent(agent) = action {
                self.agents.push(agent);
            }
        }
        if let Kind::Guard(guard) = &step.kind {
            // The guard determines the effect of a failure of its body.
            guard.body.iter().for_each(|body| self.look_inside(body));
            guard.compensate.iter().chain(&guard.finally).for_each(|list| self.look(list));
            return;
        }
        step.kind.bodies().into_iter().for_each(|(_, body)| self.look(body));
    }

    fn count(&mut self, retry: &'a Retry) {
        match self.retries.iter().position(|(known, _)| *known == retry) {
            Some(at) => self.retries[at].1 += 1,
            None if self.retries.len() < RETRIES_COMPARED => self.retries.push((retry, 1)),
            None => {}
        }
    }

    /// The most frequent policy. A stage cannot remove an inherited condition, so a policy with a condition is never
    /// the default.
    fn common_retry(&self, usual: Retry) -> Retry {
        let most = self.retries.iter().filter(|(retry, count)| retry.when.is_none() && *count > 1);
        // Takes the first of several equally frequent policies.
        let most = most.rev().max_by_key(|(_, count)| *count);
        let held = self.retries.iter().find(|(retry, _)| **retry == usual).map_or(0, |(_, count)| *count);
        most.filter(|(_, count)| *count > held).map_or(usual, |(retry, _)| (*retry).clone())
    }

    fn common_failure(&self) -> OnFailure {
        match (self.rolls_back, self.all_continue && self.steps > 1) {
            (true, _) => OnFailure::Rollback,
            (false, true) => OnFailure::Continue,
            (false, false) => OnFailure::Halt,
        }
    }

    /// The modules that start the lists of all agents.
    fn common_modules(&self) -> Vec<Arc<str>> {
        let [first, others @ ..] = self.agents.as_slice() else { return Vec::new() };
        let shared = |at: &usize| others.iter().all(|agent| agent.modules.get(*at) == first.modules.get(*at));
        let count = if others.is_empty() { 0 } else { (0..first.modules.len()).take_while(shared).count() };
        first.modules[..count].to_vec()
    }

    fn common_memory(&self) -> Option<Memory> {
        let [first, others @ ..] = self.agents.as_slice() else { return None };
        let shared = !others.is_empty() && others.iter().all(|agent| agent.memory == first.memory);
        first.memory.clone().filter(|_| shared)
    }
}
