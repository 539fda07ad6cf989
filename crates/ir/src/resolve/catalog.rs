//! An index of all steps of a file: where each is, what it is known to produce, and the graph of each scope.
//!
//! Building it finds structural problems: duplicate ids, unknown dependencies, cycles and invalid targets.

use super::back::{self, List};
use super::graph::Graph;
use crate::contract::Type;
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::StepId;
use crate::policy::OnFailure;
use crate::produces::Produces;
use crate::source::{Span, Spanned};
use crate::suggest::{GUESSES_MAX, nearest};
use crate::workflow::{Choose, Items, Kind, Step, Words};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

#[derive(Debug)]
pub struct Catalog {
    pub cards: Vec<Card>,
    pub scopes: Vec<Scope>,
    by_id: HashMap<Arc<str>, Vec<StepId>>,
    /// Namespaces of ids, each with its parent.
    spaces: Vec<Option<usize>>,
    /// Steps that run only to handle a failure or to undo another step.
    pub takes_over: HashSet<StepId>,
    /// Steps that a gate can repeat, not counting the steps inside them.
    pub done_again: HashSet<StepId>,
}

/// What other steps may know about a step.
#[derive(Debug)]
pub struct Card {
    pub id: Arc<str>,
    /// The nearest named step: this one, or the one whose body it is.
    pub named: StepId,
    pub scope: usize,
    /// The namespace that its id belongs to.
    space: usize,
    /// Its position among the steps of its scope.
    pub place: u32,
    pub produces: Produces,
    /// Whether declared outputs are added to those of its kind.
    pub adds_outputs: bool,
    pub span: Span,
}

/// One list of steps that can depend on each other.
#[derive(Debug)]
pub struct Scope {
    pub parent: Option<StepId>,
    pub role: Role,
    pub steps: Vec<StepId>,
    pub graph: Graph,
}

/// The role of a scope for its parent step.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// The body of the step.
    Body,
    /// One instance per item, with the type of the items as far as the file tells.
    Item(Type),
    Round,
    /// Runs after the step; may read the step itself.
    After,
}

impl Catalog {
    /// Numbers the steps and checks their structure.
    pub fn build(steps: &mut [Step], words: &Words, diagnostics: &mut Vec<Diagnostic>) -> Self {
        number(steps, &mut 0);
        let mut catalog = Self {
            cards: Vec::new(),
            scopes: Vec::new(),
            by_id: HashMap::new(),
            spaces: vec![None],
            takes_over: HashSet::new(),
            done_again: HashSet::new(),
        };
        catalog.enter(steps, None, Role::Body, 0, words, diagnostics);
        for scope in 0..catalog.scopes.len() {
            catalog.connect(scope, steps, words, diagnostics);
        }
        back::check_ids(steps, diagnostics);
        catalog
    }

    pub fn card(&self, step: StepId) -> &Card {
        &self.cards[step.index()]
    }

    pub fn scope_of(&self, step: StepId) -> &Scope {
        &self.scopes[self.card(step).scope]
    }

    /// The step that `reader` means by this id: the one in the innermost enclosing namespace that has it.
    pub fn find(&self, id: &str, reader: Option<StepId>) -> Option<StepId> {
        let candidates = self.by_id.get(id)?;
        let mut space = Some(reader.map_or(0, |reader| self.card(reader).space));
        while let Some(here) = space {
            if let Some(found) = candidates.iter().find(|step| self.card(**step).space == here) {
                return Some(*found);
            }
            space = self.spaces[here];
        }
        None
    }

    /// The id closest to a mistyped one, other than the id of the step that contains the mistake.
    pub fn suggest(&self, id: &str, reader: Option<StepId>) -> Option<&str> {
        let own = reader.map(|reader| &self.card(self.card(reader).named).id);
        let others =
            self.cards.iter().filter(|card| self.by_id.contains_key(&card.id) && Some(&card.id) != own);
        nearest(id, others.map(|card| &*card.id))
    }

    /// The step in the scope of `target` that contains `step`; `step` itself if they share the scope.
    pub fn beside(&self, target: StepId, step: StepId) -> Option<StepId> {
        let scope = self.card(target).scope;
        let outwards = std::iter::successors(Some(step), |here| self.scope_of(*here).parent);
        outwards.into_iter().find(|here| self.card(*here).scope == scope)
    }

    /// Indexes the steps of one list and then the steps inside each.
    fn enter(
        &mut self,
        steps: &[Step],
        parent: Option<StepId>,
        role: Role,
        space: usize,
        words: &Words,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let scope = self.scopes.len();
        let numbers = steps.iter().map(|step| step.number).collect();
        self.scopes.push(Scope { parent, role, steps: numbers, graph: Graph::default() });
        for (place, step) in (0u32..).zip(steps) {
            let named = if step.implicit {
                parent.map_or(step.number, |parent| self.card(parent).named)
            } else {
                step.number
            };
            self.cards.push(Card {
                id: step.id.value.clone(),
                named,
                scope,
                space,
                place,
                produces: step.produces(),
                adds_outputs: matches!(step.unguarded().kind, Kind::Action(_)),
                span: step.id.span,
            });
            if !step.implicit {
                self.claim_id(step, words, diagnostics);
            }
            let inner = self.space_inside(&step.kind, space);
            for (word, body) in step.kind.bodies() {
                self.enter(body, Some(step.number), role_of(&step.kind, word), inner, words, diagnostics);
            }
        }
    }

    /// An isolated fan-out has its own namespace of ids.
    fn space_inside(&mut self, kind: &Kind<Vec<Step>>, around: usize) -> usize {
        match kind {
            Kind::ForEach(each) if each.isolated => {
                self.spaces.push(Some(around));
                self.spaces.len() - 1
            }
            _ => around,
        }
    }

    fn claim_id(&mut self, step: &Step, words: &Words, diagnostics: &mut Vec<Diagnostic>) {
        let id = &step.id.value;
        let space = self.card(step.number).space;
        let same =
            self.by_id.get(id).and_then(|steps| steps.iter().find(|other| self.card(**other).space == space));
        let Some(first) = same.copied() else {
            self.by_id.entry(id.clone()).or_default().push(step.number);
            return;
        };
        let stage = words.step;
        diagnostics.push(
            Diagnostic::error(Code::DuplicateStageId, format!("duplicate {stage} id `{id}`"))
                .at(step.id.span)
                .label(self.card(first).span, "first used here")
                .help(format!(
                    "rename one of them; ids must be unique in the whole file, including nested {stage}s"
                ))
                .step(&**id)
                .field("id")
                .reference(&**id),
        );
    }

    /// Builds the graph of one scope from the declared dependencies.
    fn connect(&mut self, scope: usize, all: &[Step], words: &Words, diagnostics: &mut Vec<Diagnostic>) {
        let steps: Vec<&Step> = steps_of(all, &self.scopes[scope]);
        let mut places: HashMap<&str, u32> = HashMap::new();
        for (place, step) in (0u32..).zip(&steps).filter(|(_, step)| !step.implicit) {
            places.entry(&step.id.value).or_insert(place);
        }
        let mut before: Vec<Vec<u32>> = Vec::with_capacity(steps.len());
        for step in &steps {
            let mut needs = Vec::with_capacity(step.needs.len());
            for need in &step.needs {
                match places.get(&*need.value) {
                    Some(place) => needs.push(*place),
                    None => {
                        let finding = self.unknown_sibling(step, need, words.needs, words, diagnostics.len());
                        diagnostics.push(finding);
                    }
                }
            }
            before.push(needs);
        }
        let graph = Graph::new(before.clone());
        report_cycles(&graph, &steps, words, diagnostics);
        let handovers = self.handovers(&graph, &steps, &places, words, diagnostics);
        self.compensations(&steps, &places, words, diagnostics);
        // Invalid handlers are reported; their reads do not matter.
        let targets = steps.iter().filter_map(|step| match &step.policy.on_failure {
            OnFailure::Goto(target) => places.get(&*target.value),
            OnFailure::Halt | OnFailure::Rollback | OnFailure::Continue | OnFailure::SkipDependents => None,
        });
        self.takes_over.extend(targets.map(|to| steps[*to as usize].number));
        self.send_back(List { steps: &steps, places: &places }, words, diagnostics);
        self.scopes[scope].graph = if handovers.is_empty() {
            graph
        } else {
            handovers.iter().for_each(|(from, to)| before[*to as usize].push(*from));
            let full = Graph::new(before);
            if graph.is_acyclic() {
                report_handover_cycles(&full, &steps, words, diagnostics);
            }
            full
        };
    }

    /// The edges that `on_failure: {goto: …}` adds: the handler comes after the step that may fail.
    fn handovers(
        &self,
        graph: &Graph,
        steps: &[&Step],
        places: &HashMap<&str, u32>,
        words: &Words,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<(u32, u32)> {
        let mut edges = Vec::new();
        for (from, step) in (0u32..).zip(steps) {
            let OnFailure::Goto(target) = &step.policy.on_failure else { continue };
            match places.get(&*target.value) {
                None => {
                    diagnostics.push(self.unknown_sibling(
                        step,
                        target,
                        "error_policy.on_failure",
                        words,
                        diagnostics.len(),
                    ));
                }
                Some(to) => edges.push((from, *to, target)),
            }
        }
        let backwards: Vec<(u32, u32)> = edges.iter().map(|(from, to, _)| (*to, *from)).collect();
        let before = graph.are_ancestors(&backwards);
        let (wrong, right): (Vec<_>, Vec<_>) =
            edges.into_iter().zip(before).partition(|((from, to, _), before)| from == to || *before);
        diagnostics.extend(
            wrong.into_iter().map(|((from, _, target), _)| going_back(steps[from as usize], target, words)),
        );
        right.into_iter().map(|((from, to, _), _)| (from, to)).collect()
    }

    /// Steps named by `compensate` have no other purpose.
    fn compensations(
        &mut self,
        steps: &[&Step],
        places: &HashMap<&str, u32>,
        words: &Words,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        for step in steps {
            let Some(target) = &step.policy.compensate else { continue };
            match places.get(&*target.value) {
                None => {
                    diagnostics.push(self.unknown_sibling(
                        step,
                        target,
                        "compensate",
                        words,
                        diagnostics.len(),
                    ));
                }
                Some(to) if steps[*to as usize].number == step.number => {
                    diagnostics.push(undoing_itself(step, target, words));
                }
                Some(to) => drop(self.takes_over.insert(steps[*to as usize].number)),
            }
        }
    }

    pub(super) fn unknown_sibling(
        &self,
        step: &Step,
        name: &Spanned<Arc<str>>,
        field: &str,
        words: &Words,
        found: usize,
    ) -> Diagnostic {
        let (stage, id, wanted) = (words.step, &step.id.value, &name.value);
        let elsewhere = self.find(wanted, Some(step.number));
        let message = if elsewhere.is_some() {
            format!("{stage} `{id}` names `{wanted}`, which is not in the same list of {stage}s")
        } else {
            format!("{stage} `{id}` names `{wanted}`, but there is no {stage} with that id")
        };
        let siblings = self.scope_of(step.number).steps.iter().map(|sibling| &*self.card(*sibling).id);
        let others = siblings.filter(|sibling| **sibling != **id);
        let suggest = (found < GUESSES_MAX).then(|| nearest(wanted, others)).flatten();
        let diagnostic = Diagnostic::error(Code::UnknownStage, message)
            .at(name.span)
            .step(&**id)
            .field(field)
            .reference(&**wanted)
            .suggest(suggest);
        match (elsewhere.and_then(|target| self.where_instead(target, step, words)), suggest) {
            (Some(help), _) => diagnostic.help(help),
            (None, None) if elsewhere.is_some() => {
                diagnostic.help(format!("name a {stage} of the same list"))
            }
            (None, None) => {
                diagnostic.help(format!("add a {stage} with the id `{wanted}`, or remove the name"))
            }
            (None, Some(_)) => diagnostic,
        }
    }

    /// What to write instead of a step of another list.
    fn where_instead(&self, target: StepId, step: &Step, words: &Words) -> Option<String> {
        let id = |step: StepId| &self.card(self.card(step).named).id;
        if let Some(around) = self.beside(target, step.number) {
            return Some(format!(
                "add `{}` to `{}` of `{}`, which is in the same list",
                id(target),
                words.needs,
                id(around)
            ));
        }
        let around = self.beside(step.number, target)?;
        Some(format!("name `{}`, the {} that contains it", id(around), words.step))
    }
}

fn number(steps: &mut [Step], next: &mut u32) {
    for step in steps {
        step.number = StepId(*next);
        *next += 1;
        sort_cases(&mut step.kind);
        step.kind.bodies_mut().into_iter().for_each(|body| number(body, next));
    }
}

/// Cases come from a mapping, whose order has no meaning, so they are numbered in alphabetical order.
fn sort_cases(kind: &mut Kind<Vec<Step>>) {
    if let Kind::Choose(Choose::Switch { cases, .. }) = kind {
        cases.sort_keys();
    }
}

/// The steps of a scope, found in the tree by their numbers.
fn steps_of<'a>(all: &'a [Step], scope: &Scope) -> Vec<&'a Step> {
    let Some(first) = scope.steps.first() else { return Vec::new() };
    find_list(all, *first).map_or_else(Vec::new, |list| list.iter().collect())
}

/// The list that starts with the step of this number. Outer steps have lower numbers, so each level is a binary
/// search.
fn find_list(list: &[Step], first: StepId) -> Option<&[Step]> {
    if list.first()?.number == first {
        return Some(list);
    }
    let around = list.partition_point(|step| step.number <= first).checked_sub(1)?;
    list[around].kind.bodies().into_iter().find_map(|(_, body)| find_list(body, first))
}

fn role_of(kind: &Kind<Vec<Step>>, word: &str) -> Role {
    match kind {
        Kind::ForEach(each) => Role::Item(match &each.items {
            Items::List(_) => Type::Any,
            Items::Matrix(_) => Type::Object,
        }),
        Kind::Repeat(_) => Role::Round,
        Kind::Guard(_) if word != "body" => Role::After,
        Kind::Action(_)
        | Kind::Gate(_)
        | Kind::Wait(_)
        | Kind::Assign(_)
        | Kind::Finish(_)
        | Kind::Slot(_)
        | Kind::Block(_)
        | Kind::Parallel(_)
        | Kind::Choose(_)
        | Kind::Guard(_) => Role::Body,
    }
}

fn report_cycles(graph: &Graph, steps: &[&Step], words: &Words, diagnostics: &mut Vec<Diagnostic>) {
    for cycle in graph.cycles() {
        let ids: Vec<&str> = cycle.iter().map(|place| &*steps[*place as usize].id.value).collect();
        let path = ids.join(" -> ");
        let first = steps[cycle[0] as usize];
        let message = match cycle.len() {
            2 => format!("{} `{}` depends on itself", words.step, ids[0]),
            _ => format!("circular dependency between {}s: {path}", words.step),
        };
        let at = first
            .needs
            .iter()
            .find(|need| ids.contains(&&*need.value))
            .map_or(first.id.span, |need| need.span);
        diagnostics.push(
            Diagnostic::error(Code::Cycle, message)
                .at(at)
                .help(format!("remove one of the names from `{}`", words.needs))
                .step(ids[0])
                .field(words.needs)
                .reference(path),
        );
    }
}

/// Reports steps that only handle each other's failures.
fn report_handover_cycles(graph: &Graph, steps: &[&Step], words: &Words, diagnostics: &mut Vec<Diagnostic>) {
    for cycle in graph.cycles() {
        let ids: Vec<&str> = cycle.iter().map(|place| &*steps[*place as usize].id.value).collect();
        let path = ids.join(" -> ");
        let first = steps[cycle[0] as usize];
        diagnostics.push(
            Diagnostic::error(
                Code::BadTarget,
                format!("circular dependency between {}s through failure handlers: {path}", words.step),
            )
            .at(first.id.span)
            .help(format!("let a {} handle the failure that depends on none of them", words.step))
            .step(ids[0])
            .field("error_policy.on_failure")
            .reference(path),
        );
    }
}

fn going_back(step: &Step, target: &Spanned<Arc<str>>, words: &Words) -> Diagnostic {
    let (stage, id, to) = (words.step, &step.id.value, &target.value);
    let message = match id == to {
        true => format!("{stage} `{id}` cannot handle its own failure"),
        false => format!("`{to}` comes before {stage} `{id}`, so it cannot handle its failure"),
    };
    Diagnostic::error(Code::BadTarget, message)
        .at(target.span)
        .help(format!("name a {stage} that has no other purpose"))
        .step(&**id)
        .field("error_policy.on_failure")
        .reference(&**to)
}

fn undoing_itself(step: &Step, target: &Spanned<Arc<str>>, words: &Words) -> Diagnostic {
    let (stage, id) = (words.step, &step.id.value);
    Diagnostic::error(Code::BadTarget, format!("{stage} `{id}` cannot undo itself"))
        .at(target.span)
        .help(format!("name a {stage} that has no other purpose"))
        .step(&**id)
        .field("compensate")
        .reference(&*target.value)
}
