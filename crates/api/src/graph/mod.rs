//! A plan as a drawing: boxes, groups and arrows, before any drawing language. `mermaid`, `dot` and `text` write it down.

pub mod dot;
pub mod mermaid;
pub mod text;

use crate::words::{one_line, shorten};
use std::collections::HashMap;
use windlass_ir::Plan;
use windlass_ir::expr::StepId;
use windlass_ir::plan::{Outline, Parameters, PlanStep};
use windlass_ir::policy::OnFailure;
use windlass_ir::workflow::{Choose, Kind, Words};

/// Boxes and groups are numbered together, in the order of the file.
pub type Number = usize;

#[derive(Debug)]
pub struct Drawing {
    pub title: String,
    pub items: Vec<Item>,
    pub edges: Vec<Edge>,
}

#[derive(Debug)]
pub enum Item {
    Node(Node),
    Group(Group),
}

#[derive(Debug)]
pub struct Node {
    pub number: Number,
    pub lines: Vec<String>,
    pub shape: Shape,
    pub conditional: bool,
}

/// A scope with steps to show. The arms of a choice are groups inside their group.
#[derive(Debug)]
pub struct Group {
    pub number: Number,
    pub title: String,
    pub conditional: bool,
    pub items: Vec<Item>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Work,
    Gate,
    FanOut,
    Wait,
    End,
}

#[derive(Debug)]
pub struct Edge {
    pub from: Number,
    pub to: Number,
    pub kind: EdgeKind,
}

#[derive(Debug, PartialEq, Eq)]
pub enum EdgeKind {
    Needs,
    /// The step behind it runs only if its condition holds; the text stands at the first arrow that leads to it.
    Conditional(Option<String>),
    OnFailure,
    /// To what belongs to the end of a step: how it is undone, what follows in any case.
    Afterwards(String),
}

const CONDITION_MAX: usize = 60;
const LINE_MAX: usize = 60;

impl Drawing {
    pub fn new(plan: &Plan, words: &Words) -> Self {
        let outline = plan.outline(words, &Parameters::default());
        let mut builder = Builder {
            plan,
            outline: &outline,
            names: plan.names(),
            numbers: HashMap::new(),
            next: 0,
            afterwards: Vec::new(),
        };
        let items = builder.items(&plan.roots);
        let title = one_line(&plan.header.title());
        let mut edges = builder.edges();
        edges.extend(builder.afterwards);
        Self { title, items, edges }
    }
}

struct Builder<'a> {
    plan: &'a Plan,
    outline: &'a Outline,
    names: Vec<String>,
    numbers: HashMap<StepId, Number>,
    next: Number,
    afterwards: Vec<Edge>,
}

impl Builder<'_> {
    /// The steps of a list; in place of one without a name of its own those inside it.
    fn items(&mut self, list: &[StepId]) -> Vec<Item> {
        let plan = self.plan;
        let mut items = Vec::new();
        for id in list {
            let step = plan.step(*id);
            if step.implicit {
                step.kind.bodies().into_iter().for_each(|(_, body)| items.extend(self.items(body)));
            } else {
                self.draw(*id, step, &mut items);
            }
        }
        items
    }

    fn draw(&mut self, id: StepId, step: &PlanStep, items: &mut Vec<Item>) {
        let number = self.number();
        self.numbers.insert(id, number);
        let conditional = step.condition.is_some();
        let inside = self.inside(step);
        let lines = self.lines(id, step, !inside.is_empty());
        items.push(if inside.is_empty() {
            let shape = shape(&self.plan.step(self.plan.unguarded(id)).kind);
            Item::Node(Node { number, lines, shape, conditional })
        } else {
            Item::Group(Group { number, title: lines.join(": "), conditional, items: inside })
        });
        if let Kind::Guard(guard) = &step.kind {
            let ends = [("compensate", &guard.compensate), ("finally", &guard.finally)];
            for (word, body) in ends.into_iter().filter_map(|(word, body)| Some((word, body.as_ref()?))) {
                let item = match self.group(word, body) {
                    Some(group) => Item::Group(group),
                    None => self.unnamed(id, word),
                };
                let to = match &item {
                    Item::Group(group) => group.number,
                    Item::Node(node) => node.number,
                };
                let kind = EdgeKind::Afterwards(word.to_owned());
                self.afterwards.push(Edge { from: number, to, kind });
                items.push(item);
            }
        }
    }

    /// A handler without a name of its own.
    fn unnamed(&mut self, of: StepId, word: &str) -> Item {
        let outline = self.outline.steps.get(&self.names[of.index()]);
        let runs =
            outline.map(|outline| if word == "compensate" { &outline.compensate } else { &outline.finally });
        let runs = runs.into_iter().flatten().map(|line| shorten(&one_line(line), LINE_MAX).into_owned());
        let lines = [format!("{}.{word}", self.plan.step(of).id)].into_iter().chain(runs).collect();
        Item::Node(Node { number: self.number(), lines, shape: Shape::Work, conditional: false })
    }

    fn number(&mut self) -> Number {
        let number = self.next;
        self.next += 1;
        number
    }

    /// What is inside a step; the arms of a choice get a group each.
    fn inside(&mut self, step: &PlanStep) -> Vec<Item> {
        match &step.kind {
            Kind::Action(_)
            | Kind::Gate(_)
            | Kind::Wait(_)
            | Kind::Assign(_)
            | Kind::Finish(_)
            | Kind::Slot(_) => Vec::new(),
            Kind::Block(body) => self.unwrapped(body),
            Kind::Parallel(parallel) => self.items(&parallel.branches),
            Kind::ForEach(each) => self.unwrapped(&each.body),
            Kind::Repeat(repeat) => self.unwrapped(&repeat.body),
            Kind::Guard(guard) => self.unwrapped(&guard.body),
            Kind::Choose(choose) => self.arms(choose),
        }
    }

    fn arms(&mut self, choose: &Choose<Vec<StepId>>) -> Vec<Item> {
        let arms: Vec<(String, &Vec<StepId>)> = match choose {
            Choose::If { then, otherwise, .. } => {
                vec![("then".to_owned(), then), ("else".to_owned(), otherwise)]
            }
            Choose::Switch { cases, default, .. } => {
                let cases = cases.iter().map(|(case, body)| (format!("case {case}"), body));
                cases.chain([("otherwise".to_owned(), default)]).collect()
            }
        };
        arms.into_iter().filter_map(|(word, body)| self.group(&word, body)).map(Item::Group).collect()
    }

    fn group(&mut self, word: &str, body: &[StepId]) -> Option<Group> {
        let number = self.number();
        let items = self.items(body);
        if items.is_empty() {
            self.next = number;
            return None;
        }
        let title = shorten(&one_line(word), LINE_MAX).into_owned();
        Some(Group { number, title, conditional: false, items })
    }

    /// What stands inside may itself be a scope without a name, whose arms are still arms.
    fn unwrapped(&mut self, body: &[StepId]) -> Vec<Item> {
        let plan = self.plan;
        match body {
            [only] if plan.step(*only).implicit => self.inside(plan.step(*only)),
            list => self.items(list),
        }
    }

    fn lines(&self, number: StepId, step: &PlanStep, is_group: bool) -> Vec<String> {
        let id = one_line(&step.id);
        let name = (*step.name != *step.id).then(|| one_line(&step.name));
        let outline = self.outline.steps.get(&self.names[number.index()]);
        let is_telling = is_group || outline.is_some_and(|outline| outline.model.is_none());
        let runs = outline.filter(|_| is_telling).map(|outline| one_line(&outline.runs));
        let lonely = self
            .condition(number)
            .filter(|_| step.needs.is_empty())
            .map(|condition| format!("if {condition}"));
        let lines = [Some(id), name, runs, lonely].into_iter().flatten().filter(|line| !line.is_empty());
        lines.map(|line| shorten(&line, LINE_MAX).into_owned()).collect()
    }

    fn condition(&self, step: StepId) -> Option<String> {
        let text = self.outline.steps.get(&self.names[step.index()])?.condition.as_deref()?;
        Some(shorten(&one_line(text), CONDITION_MAX).into_owned())
    }

    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (id, step) in (0u32..).map(StepId).zip(&self.plan.steps) {
            let Some(to) = self.numbers.get(&id).copied() else { continue };
            let mut condition = self.condition(id);
            for need in &step.needs {
                let Some(from) = self.numbers.get(need).copied() else { continue };
                let kind = match step.condition {
                    _ if self.hands_over(*need, step) => EdgeKind::OnFailure,
                    Some(_) => EdgeKind::Conditional(condition.take()),
                    None => EdgeKind::Needs,
                };
                edges.push(Edge { from, to, kind });
            }
            let undone = step.policy.compensate.as_ref().and_then(|target| self.beside(step, &target.value));
            edges.extend(undone.map(|undo| Edge {
                from: to,
                to: undo,
                kind: EdgeKind::Afterwards("compensate".to_owned()),
            }));
        }
        edges
    }

    /// The step of the same list with this id.
    fn beside(&self, step: &PlanStep, id: &str) -> Option<Number> {
        let mut steps = (0u32..).map(StepId).zip(&self.plan.steps);
        let (found, _) = steps.find(|(_, other)| &*other.id == id && other.parent == step.parent)?;
        self.numbers.get(&found).copied()
    }

    fn hands_over(&self, from: StepId, to: &PlanStep) -> bool {
        let policies = [from, self.plan.unguarded(from)].map(|id| &self.plan.step(id).policy.on_failure);
        to.takes_over
            && policies
                .into_iter()
                .any(|policy| matches!(policy, OnFailure::Goto(target) if target.value == to.id))
    }
}

fn shape(kind: &Kind<Vec<StepId>>) -> Shape {
    match kind {
        Kind::Gate(_) => Shape::Gate,
        Kind::ForEach(_) => Shape::FanOut,
        Kind::Wait(_) => Shape::Wait,
        Kind::Finish(_) => Shape::End,
        Kind::Action(_)
        | Kind::Assign(_)
        | Kind::Slot(_)
        | Kind::Block(_)
        | Kind::Parallel(_)
        | Kind::Repeat(_)
        | Kind::Choose(_)
        | Kind::Guard(_) => Shape::Work,
    }
}
