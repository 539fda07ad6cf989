//! Planners: steps whose result is a list of further steps.

use super::Turn;
use super::state::Place;
use crate::event::{AddedPlan, Decision, What};
use crate::outcome::{Failure, Outcome, class};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Node, Read, StepId, Template};
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::Policy;
use windlass_ir::workflow::{Action, Bound, Kind, Planner, RunInput, Task};
use windlass_ir::{Plan, Span, Value};

/// The most steps that planners may add to one run.
const PLANNED_MAX: u32 = 500;

/// A step that a planner asks for.
struct Wanted {
    id: Arc<str>,
    task: Arc<str>,
    needs: Vec<Arc<str>>,
}

impl Turn<'_> {
    /// Adds the steps and settles the planner. An invalid list fails it.
    pub(super) fn planned(&mut self, place: Place, planner: &Planner, value: Value) {
        let room = PLANNED_MAX.saturating_sub(self.state().planned);
        let wanted = wanted(&value).and_then(|wanted| checked(wanted, planner, room));
        let (wanted, depths) = match wanted {
            Ok(found) => found,
            Err(problem) => {
                let failure = Failure::new(class::CONTRACT_VIOLATION, problem).in_field("outputs.steps");
                return self.settle(place, Outcome::Failed(failure));
            }
        };
        let outer = &self.state().program(place).plan;
        let prefix = outer.step(self.at(place).step).id.clone();
        let plan = Arc::new(fragment(outer, &prefix, &wanted, &depths, &value));
        let path = self.path(place);
        if !wanted.is_empty() {
            let decision = Decision::Planned { plan: AddedPlan::Whole(plan), output: value.clone() };
            self.emit(What::Entered { path, decision });
        }
        self.settle(place, Outcome::Done(value));
    }
}

fn wanted(value: &Value) -> Result<Vec<Wanted>, String> {
    let Some(Value::List(steps)) = value.get("steps") else {
        return Err("the answer must be an object with a list `steps`".into());
    };
    let text = |step: &Value, key: &str| step.get(key).and_then(Value::as_str).map(Arc::<str>::from);
    let read = |(number, step): (usize, &Value)| {
        let missing = |key: &str| format!("step {number} of the answer has no `{key}`");
        let id = text(step, "id").filter(|id| !id.is_empty()).ok_or_else(|| missing("id"))?;
        let task = text(step, "task").filter(|task| !task.is_empty()).ok_or_else(|| missing("task"))?;
        let needs = match step.get("depends_on") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::List(needs)) => needs.iter().filter_map(Value::as_str).map(Arc::from).collect(),
            Some(other) => return Err(format!("`depends_on` of `{id}` is {}, not a list", other.kind())),
        };
        Ok(Wanted { id, task, needs })
    };
    steps.iter().enumerate().map(read).collect()
}

/// The steps and their depths, if all ids, tasks and dependencies are valid.
fn checked(wanted: Vec<Wanted>, planner: &Planner, room: u32) -> Result<(Vec<Wanted>, Vec<u32>), String> {
    let limit = planner.steps_max.min(room) as usize;
    if wanted.len() > limit {
        return Err(format!("{} steps are more than the {limit} that may be added", wanted.len()));
    }
    let places: HashMap<Arc<str>, usize> =
        wanted.iter().enumerate().map(|(number, step)| (step.id.clone(), number)).collect();
    if places.len() < wanted.len() {
        return Err("two steps of the answer have the same id".into());
    }
    for step in &wanted {
        if !planner.tasks_allowed.is_empty() && !planner.tasks_allowed.contains(&step.task) {
            return Err(format!(
                "`{}` of step `{}` is not among the tasks that may be added",
                step.task, step.id
            ));
        }
        if let Some(stranger) = step.needs.iter().find(|need| !places.contains_key(*need)) {
            return Err(format!("`{}` depends on `{stranger}`, which is not in the answer", step.id));
        }
    }
    let mut depths = vec![0u32; wanted.len()];
    // Without a cycle, the depths are stable after as many passes as there are steps.
    for look in 0..=wanted.len() {
        let mut changed = false;
        for (number, step) in wanted.iter().enumerate() {
            let deep = step.needs.iter().map(|need| depths[places[need]] + 1).max().unwrap_or(0);
            changed |= std::mem::replace(&mut depths[number], deep) != deep;
        }
        if !changed {
            break;
        }
        if look == wanted.len() {
            return Err("the steps of the answer wait for each other".into());
        }
    }
    let deepest = depths.iter().max().map_or(0, |depth| depth + 1);
    match planner.depth_max {
        Some(limit) if deepest > limit => {
            Err(format!("a chain of {deepest} steps is longer than the {limit} that are allowed"))
        }
        _ => Ok((wanted, depths)),
    }
}

/// A plan of tasks, each with the results of its dependencies as input.
fn fragment(outer: &Plan, prefix: &str, wanted: &[Wanted], depths: &[u32], output: &Value) -> Plan {
    let number_of: HashMap<&str, StepId> =
        wanted.iter().zip(0u32..).map(|(step, number)| (&*step.id, StepId(number))).collect();
    let steps = wanted.iter().zip(depths).map(|(step, depth)| {
        let needs: Vec<StepId> = step.needs.iter().map(|need| number_of[&**need]).collect();
        let id: Arc<str> = format!("{prefix}.{}", step.id).into();
        let input = Bound {
            template: input_of(step, &needs, output),
            field: "depends_on".into(),
            span: Span::default(),
        };
        PlanStep {
            id: id.clone(),
            implicit: false,
            name: id,
            description: None,
            word: "normal".into(),
            parent: None,
            needs,
            takes_over: false,
            batch: *depth,
            reads: Vec::new(),
            condition: None,
            inputs: IndexMap::new(),
            outputs: IndexMap::new(),
            env: IndexMap::new(),
            policy: Policy::once(),
            recorded: None,
            kind: Kind::Action(Action::Task(Task { input: Some(input), ..Task::named(step.task.clone()) })),
        }
    });
    let steps: Vec<PlanStep> = steps.collect();
    let mut plan = Plan {
        input: RunInput::Open(windlass_ir::Type::Any),
        parameters: IndexMap::new(),
        outputs: IndexMap::new(),
        result: None,
        hooks: Vec::new(),
        env: IndexMap::new(),
        policy: windlass_ir::policy::RunPolicy::unlimited(),
        roots: (0..steps.len() as u32).map(StepId).collect(),
        steps,
        ..Plan::clone(outer)
    };
    plan.seal();
    plan
}

fn input_of(step: &Wanted, needs: &[StepId], output: &Value) -> Template {
    let read =
        |id: StepId| Template::Expression(Expr::new(Node::Read(Read::StepOutputs(id)), Span::default()));
    match needs {
        [] => Template::Constant(output.clone()),
        [only] => read(*only),
        several => {
            Template::Map(step.needs.iter().cloned().zip(several.iter().map(|id| read(*id))).collect())
        }
    }
}
