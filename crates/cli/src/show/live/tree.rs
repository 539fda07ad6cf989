//! The steps of a run as a tree that follows its events, so that the cost of a frame depends on what it shows and not on the
//! size of the run.

use crate::show::marks::State;
use std::collections::BTreeSet;
use windlass_ir::workflow::Kind;
use windlass_runtime::ids;
use windlass_runtime::{Decision, Event, Line, Outcome, Path, StepPhase, StepView, View, What};

fn state_of(step: &StepView<'_>) -> State {
    match &step.phase {
        StepPhase::Dormant => State::Hidden,
        StepPhase::Pending => State::Pending,
        StepPhase::Running | StepPhase::Inside => State::Running,
        StepPhase::Queued { .. }
        | StepPhase::Backoff { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::Joined => State::Waiting,
        StepPhase::Asking { .. } => State::Asking,
        StepPhase::Settled(outcome) => match outcome {
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Failed(_) if step.recovered => {
                State::Recovered
            }
            Outcome::Done(_) | Outcome::Continue(_) => State::Done,
            Outcome::Failed(_) => State::Failed,
            Outcome::Skipped(_) => State::Skipped,
            Outcome::Cancelled(_) => State::Cancelled,
        },
    }
}

/// The number of steps in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally([u32; State::Hidden as usize + 1]);

impl Tally {
    pub fn of(&self, state: State) -> u32 {
        self.0[state as usize]
    }

    pub fn add(&mut self, state: State) {
        self.0[state as usize] += 1;
    }

    fn remove(&mut self, state: State) {
        self.0[state as usize] -= 1;
    }
}

#[derive(Debug)]
pub struct Node {
    /// The parent node; the node of the run is 0.
    parent: usize,
    pub children: Vec<usize>,
    pub state: State,
    /// It has no name of its own and does the work of its parent; both are shown as one.
    pub is_inner: bool,
    /// It is an item or a round.
    pub is_frame: bool,
    /// The states of its children.
    pub kids: Tally,
    pub active: BTreeSet<usize>,
    pub failed: BTreeSet<usize>,
    /// The last line that it printed, or why its last attempt failed.
    pub printed: Option<Vec<u8>>,
}

/// Node `n + 1` is step `n` of the view. The view only adds steps and never removes them.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// The states of the steps without inner steps.
    pub total: Tally,
    pub asking: BTreeSet<usize>,
    /// An event changed more than one step.
    is_stale: bool,
}

/// The most bytes of a step's output line to keep; no screen is wider.
const PRINTED_BYTES_MAX: usize = 2_000;

impl Tree {
    pub fn of(view: &View) -> Self {
        let run = Node {
            parent: 0,
            children: Vec::new(),
            state: State::Running,
            is_inner: false,
            is_frame: false,
            kids: Tally::default(),
            active: BTreeSet::new(),
            failed: BTreeSet::new(),
            printed: None,
        };
        let mut tree =
            Self { nodes: vec![run], total: Tally::default(), asking: BTreeSet::new(), is_stale: false };
        tree.grow(view);
        tree
    }

    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    /// The step of a node.
    pub fn step<'v>(&self, view: &'v View, number: usize) -> Option<(&'v Path, StepView<'v>)> {
        view.step_at(number.checked_sub(1)?)
    }

    /// Follows an event that the view has just applied.
    pub fn follow(&mut self, view: &View, event: &Event) {
        self.grow(view);
        match &event.what {
            What::Entered { path, decision } => {
                // Steps that existed before may start over.
                self.is_stale |= matches!(
                    decision,
                    Decision::Planned { .. }
                        | Decision::TakenOver { .. }
                        | Decision::Undo { .. }
                        | Decision::Finally
                );
                self.refresh(view, path);
            }
            What::AttemptFailed { path, failure, .. } => {
                self.set_printed(view, path, failure.message.as_bytes().to_vec());
                self.refresh(view, path);
            }
            What::Scheduled { path, .. } => {
                self.set_printed(view, path, Vec::new());
                self.refresh(view, path);
            }
            What::Asked { path, .. }
            | What::Lost { path, .. }
            | What::Joined { path, .. }
            | What::Decided { path, .. }
            | What::TimerSet { path, .. } => self.refresh(view, path),
            What::Settled(settled) => self.refresh(view, &settled.path),
            What::Started { .. }
            | What::Kept(_)
            | What::Reopened { .. }
            | What::SentBack { .. }
            | What::CancelRequested { .. }
            | What::Concluded { .. } => self.is_stale = true,
            What::Admitted { .. }
            | What::Spent { .. }
            | What::Noted { .. }
            | What::TimerFired { .. }
            | What::Signalled { .. }
            | What::Paused { .. }
            | What::Resumed { .. }
            | What::Interrupted
            | What::Continued
            | What::InputsChanged { .. }
            | What::Rebound { .. }
            | What::Closed => {}
        }
    }

    /// Records a line that a step printed.
    pub fn add_line(&mut self, view: &View, line: Line) {
        self.set_printed(view, &line.job.path, line.bytes);
    }

    fn set_printed(&mut self, view: &View, path: &Path, mut text: Vec<u8>) {
        if let Some(index) = view.index_of(path) {
            text.truncate(PRINTED_BYTES_MAX);
            let blank = text.iter().all(u8::is_ascii_whitespace);
            match (blank, text.is_empty()) {
                (_, true) => self.nodes[index + 1].printed = None,
                (true, false) => {}
                (false, false) => self.nodes[index + 1].printed = Some(text),
            }
        }
    }

    /// Applies postponed updates. Call this before making a frame.
    pub fn settle(&mut self, view: &View) {
        if std::mem::take(&mut self.is_stale) {
            let steps = (1..).zip(view.steps());
            steps.for_each(|(number, (_, step))| self.set(number, state_of(&step)));
        }
    }

    fn grow(&mut self, view: &View) {
        for index in self.nodes.len() - 1..view.steps().len() {
            let Some((path, step)) = view.step_at(index) else { return };
            self.add(view, path, &step);
        }
    }

    fn add(&mut self, view: &View, path: &Path, step: &StepView<'_>) {
        let number = self.nodes.len();
        let is_frame = step.frame.is_some();
        let owner = || path.frames().last().map(|(_, owner, _)| owner);
        let around = if is_frame { owner() } else { path.parent() };
        let parent = around.and_then(|around| view.index_of(&around)).map_or(0, |index| index + 1);
        let state = state_of(step);
        self.nodes.push(Node {
            parent,
            children: Vec::new(),
            state,
            is_inner: !is_frame && is_inner(view, path, step),
            is_frame,
            kids: Tally::default(),
            active: BTreeSet::new(),
            failed: BTreeSet::new(),
            printed: None,
        });
        if parent != 0 && self.nodes[parent].children.is_empty() {
            let around = self.nodes[parent].state;
            self.total.remove(around);
        }
        self.nodes[parent].children.push(number);
        self.enter(number);
    }

    fn refresh(&mut self, view: &View, path: &Path) {
        if let Some((index, step)) = view.index_of(path).zip(view.step(path)) {
            self.set(index + 1, state_of(&step));
        }
    }

    fn set(&mut self, number: usize, state: State) {
        if self.nodes[number].state != state {
            self.leave(number);
            self.nodes[number].state = state;
            self.enter(number);
        }
    }

    /// Adds a node to the counts.
    fn enter(&mut self, number: usize) {
        let Node { parent, state, .. } = self.nodes[number];
        if self.nodes[number].children.is_empty() {
            self.total.add(state);
        }
        let around = &mut self.nodes[parent];
        around.kids.add(state);
        if state.is_active() {
            around.active.insert(number);
        }
        if state == State::Failed {
            around.failed.insert(number);
        }
        if state == State::Asking {
            self.asking.insert(number);
        }
    }

    fn leave(&mut self, number: usize) {
        let Node { parent, state, .. } = self.nodes[number];
        if self.nodes[number].children.is_empty() {
            self.total.remove(state);
        }
        let around = &mut self.nodes[parent];
        around.kids.remove(state);
        around.active.remove(&number);
        around.failed.remove(&number);
        self.asking.remove(&number);
    }
}

/// Whether a step has no name of its own: a guarded step shares the name of its guard, and the only step of a body may have
/// none.
fn is_inner(view: &View, path: &Path, step: &StepView<'_>) -> bool {
    let known = view.plan_step(step);
    let around = path.parent().and_then(|around| view.step(&around));
    let around = around.map(|around| view.plan_step(&around));
    let guarded = around.is_some_and(|around| matches!(around.kind, Kind::Guard(_)) && around.id == known.id);
    (guarded || known.implicit) && !ids::is_handler(view, path)
}
