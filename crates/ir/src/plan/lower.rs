//! Lowers the nested workflow to the flat plan.

use super::{Digest, FORMAT, Plan, PlanStep};
use crate::expr::{Expr, Node, Read, StepId, Template};
use crate::policy::OnFailure;
use crate::resolve::Graph;
use crate::resolve::{Slot, of_step};
use crate::workflow::{Step, Workflow};
use std::collections::HashMap;
use std::sync::Arc;

impl Plan {
    /// Lowers a workflow in which [`crate::resolve()`] found no errors.
    pub fn lower(workflow: Workflow) -> Self {
        let mut lowering = Lowering { steps: Vec::new() };
        let roots = lowering.list(workflow.steps, None);
        let steps =
            lowering.steps.into_iter().map(|step| step.expect("every number was lowered once")).collect();
        let mut plan = Self {
            format: FORMAT,
            digest: Digest::default(),
            dialect: workflow.words.dialect.into(),
            semantics: workflow.semantics,
            header: workflow.header,
            parameters: workflow.parameters,
            input: workflow.input,
            secrets: workflow.secrets.into_keys().collect(),
            env: workflow.env,
            policy: workflow.policy,
            outputs: workflow.outputs,
            result: workflow.result,
            hooks: workflow.hooks,
            roots,
            steps,
        };
        plan.digest = Digest::of(&plan);
        plan
    }
}

struct Lowering {
    steps: Vec<Option<PlanStep>>,
}

impl Lowering {
    fn list(&mut self, steps: Vec<Step>, parent: Option<StepId>) -> Vec<StepId> {
        let numbers: Vec<StepId> = steps.iter().map(|step| step.number).collect();
        let layout = Layout::of(&steps);
        for (place, step) in steps.into_iter().enumerate() {
            let needs = layout.graph.needs(place).iter().map(|need| numbers[*need as usize]).collect();
            self.step(step, parent, needs, layout.graph.batch(place), layout.takes_over[place]);
        }
        numbers
    }

    fn step(
        &mut self,
        mut step: Step,
        parent: Option<StepId>,
        needs: Vec<StepId>,
        batch: u32,
        takes_over: bool,
    ) {
        let number = step.number;
        let reads = reads(&mut step);
        let kind = step.kind.map_bodies(&mut |body| self.list(body, Some(number)));
        let lowered = PlanStep {
            id: step.id.value,
            implicit: step.implicit,
            name: step.name,
            description: step.description,
            word: step.word.into(),
            parent,
            needs,
            takes_over,
            batch,
            reads,
            condition: step.condition,
            inputs: step.inputs,
            outputs: step.outputs,
            env: step.env,
            policy: step.policy,
            recorded: step.recorded,
            kind,
        };
        if self.steps.len() <= number.index() {
            self.steps.resize_with(number.index() + 1, || None);
        }
        self.steps[number.index()] = Some(lowered);
    }
}

/// The order of one list of steps, and which of them run only to handle a failure or to undo another step.
struct Layout {
    graph: Graph,
    takes_over: Vec<bool>,
}

impl Layout {
    fn of(steps: &[Step]) -> Self {
        let places: HashMap<&Arc<str>, u32> = steps.iter().map(|step| &step.id.value).zip(0u32..).collect();
        let place = |id: &Arc<str>| places.get(id).copied();
        let mut before: Vec<Vec<u32>> = steps
            .iter()
            .map(|step| step.needs.iter().filter_map(|need| place(&need.value)).collect())
            .collect();
        let mut takes_over = vec![false; steps.len()];
        for (from, step) in (0u32..).zip(steps) {
            if let OnFailure::Goto(target) = &step.policy.on_failure
                && let Some(to) = place(&target.value)
            {
                before[to as usize].push(from);
                takes_over[to as usize] = true;
            }
            if let Some(to) = step.policy.compensate.as_ref().and_then(|target| place(&target.value)) {
                takes_over[to as usize] = true;
            }
        }
        before.iter_mut().for_each(unique);
        Self { graph: Graph::new(before), takes_over }
    }
}

/// Drops repeated entries and keeps the first.
fn unique(list: &mut Vec<u32>) {
    let mut seen = std::collections::HashSet::new();
    list.retain(|entry| seen.insert(*entry));
}

/// The steps that the expressions of a step read.
fn reads(step: &mut Step) -> Vec<StepId> {
    let mut found = Vec::new();
    let mut note = |expr: &Expr| {
        expr.walk(&mut |part| {
            if let Node::Read(
                Read::StepOutputs(id) | Read::StepStatus(id) | Read::StepOutcome(id) | Read::StepRecord(id),
            ) = part.node
            {
                found.push(id);
            }
        });
    };
    of_step(step, &mut |slot, _| match slot {
        Slot::Condition(condition) => note(&condition.expr),
        Slot::Bound(bound) => expressions(&bound.template, &mut note),
    });
    found.sort_unstable();
    found.dedup();
    found
}

fn expressions(template: &Template, note: &mut impl FnMut(&Expr)) {
    template.expressions().into_iter().for_each(note);
}
