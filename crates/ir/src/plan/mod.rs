//! The plan: a flat workflow in which names are resolved to numbers and expressions are ready to evaluate. Every run
//! is pinned to one.
//!
//! `lower` builds it from a resolved workflow, `digest` computes its identity, `outline` describes it to people and
//! programs, and `parameters` turns the user's values into the inputs of a run.

mod digest;
mod lower;
mod outline;
mod parameters;

pub use digest::Digest;
pub use outline::{AtOnce, Batch, Estimate, InputOutline, ItemsOutline, Outline, StepContext, StepOutline};
pub use parameters::{Given, Origin, Parameters};

use crate::expr::{Semantics, StepId};
use crate::policy::{Bindings, Policy, RunPolicy};
use crate::workflow::{Condition, Header, Hook, Input, Kind, Output, Parameter, Recorded, RunInput, Words};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// The version of the stored form. A newer program reads every older version; an older program refuses a newer one.
pub const FORMAT: u32 = 2;

/// A lowered workflow. It contains nothing of the file's formatting: two files with the same meaning have the same
/// digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub format: u32,
    pub digest: Digest,
    pub dialect: Arc<str>,
    pub semantics: Semantics,
    pub header: Header,
    pub parameters: IndexMap<Arc<str>, Parameter>,
    pub input: RunInput,
    pub secrets: Vec<Arc<str>>,
    pub env: Bindings,
    pub policy: RunPolicy,
    pub outputs: IndexMap<Arc<str>, Output>,
    pub result: Option<Output>,
    pub hooks: Vec<Hook>,
    /// The steps of the outermost scope, in the order of the file.
    pub roots: Vec<StepId>,
    /// All steps; a [`StepId`] is an index into this list.
    pub steps: Vec<PlanStep>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    pub id: Arc<str>,
    /// The step has no name of its own; it is the body of its parent.
    pub implicit: bool,
    pub name: Arc<str>,
    pub description: Option<Arc<str>>,
    /// The dialect's word for its kind.
    pub word: Arc<str>,
    pub parent: Option<StepId>,
    /// The steps it depends on, in the order of the file, without duplicates.
    pub needs: Vec<StepId>,
    /// Whether it runs only to handle the failure of another step, or to undo one.
    pub takes_over: bool,
    /// The length of the longest chain of dependencies in its scope.
    pub batch: u32,
    /// The steps that its own expressions read, sorted by number.
    pub reads: Vec<StepId>,
    pub condition: Option<Condition>,
    pub inputs: IndexMap<Arc<str>, Input>,
    pub outputs: IndexMap<Arc<str>, Output>,
    pub env: Bindings,
    pub policy: Policy,
    /// What its record shows where its output says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Box<Recorded>>,
    pub kind: Kind<Vec<StepId>>,
}

impl Plan {
    /// Computes the digest of a plan built by hand.
    pub fn seal(&mut self) {
        self.digest = Digest::default();
        self.digest = Digest::of(self);
    }

    pub fn step(&self, id: StepId) -> &PlanStep {
        &self.steps[id.index()]
    }

    /// The step with this id, if any.
    pub fn find(&self, id: &str) -> Option<StepId> {
        let place = self.steps.iter().position(|step| !step.implicit && &*step.id == id)?;
        Some(StepId(u32::try_from(place).expect("a plan has at most 100,000 steps")))
    }

    /// The name of each step in flat listings: its id, or `FAN_OUT:ID` for a step inside a fan-out with its own ids
    /// if the id is already taken.
    pub fn names(&self) -> Vec<String> {
        let mut taken = HashSet::new();
        let mut names: Vec<String> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let around = step.parent.map(|parent| names[parent.index()].as_str());
            let mut name = match around {
                Some(around) if step.implicit => around.to_owned(),
                _ => step.id.to_string(),
            };
            while !step.implicit && !taken.insert(name.clone()) {
                name = format!("{}:{name}", around.unwrap_or_default());
            }
            names.push(name);
        }
        names
    }

    /// The step itself, or the step inside its guard that does the work.
    pub fn unguarded(&self, id: StepId) -> StepId {
        match &self.step(id).kind {
            Kind::Guard(guard) => guard.body.first().map_or(id, |body| self.unguarded(*body)),
            _ => id,
        }
    }

    /// Everything that is finished before this step can start, nearest first: its direct and indirect dependencies,
    /// in its own scope and in the enclosing ones.
    pub fn ancestors(&self, id: StepId) -> Vec<StepId> {
        let mut seen = vec![false; self.steps.len()];
        let mut found = Vec::new();
        let mut around = Some(id);
        while let Some(step) = around {
            let mut queue: Vec<StepId> = self.step(step).needs.clone();
            while let Some(next) = queue.pop() {
                if !std::mem::replace(&mut seen[next.index()], true) {
                    found.push(next);
                    queue.extend(&self.step(next).needs);
                }
            }
            around = self.step(step).parent;
        }
        found
    }

    /// The steps of one list in batches: the steps of a batch can run once all previous batches are done.
    pub fn batches(&self, list: &[StepId]) -> Vec<Vec<StepId>> {
        let count = list.iter().map(|id| self.step(*id).batch as usize + 1).max().unwrap_or(0);
        let mut batches = vec![Vec::new(); count];
        list.iter().for_each(|id| batches[self.step(*id).batch as usize].push(*id));
        batches
    }

    /// The outline for this plan and a set of inputs.
    pub fn outline(&self, words: &Words, parameters: &Parameters) -> Outline {
        outline::of(self, words, parameters)
    }
}
