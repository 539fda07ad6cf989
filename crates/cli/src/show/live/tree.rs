//! The steps of a run as a tree, kept along with its view event by event, so that a frame costs what it shows and not what
//! the run has.

use std::collections::BTreeSet;
use windlass_ir::workflow::Kind;
use windlass_runtime::ids;
use windlass_runtime::{Decision, Event, Line, Outcome, Path, StepPhase, StepView, View, What};

/// How a step stands, as far as a person wants to know at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending,
    Running,
    /// For time, a signal, a slot or the work of another step.
    Waiting,
    /// For a decision.
    Asking,
    Done,
    /// It failed, and another step took over.
    Recovered,
    Failed,
    Skipped,
    Cancelled,
    /// No step has called for it.
    Hidden,
}

impl State {
    fn of(step: &StepView<'_>) -> Self {
        match &step.phase {
            StepPhase::Dormant => Self::Hidden,
            StepPhase::Pending => Self::Pending,
            StepPhase::Running | StepPhase::Inside => Self::Running,
            StepPhase::Queued { .. }
            | StepPhase::Backoff { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Joined => Self::Waiting,
            StepPhase::Asking { .. } => Self::Asking,
            StepPhase::Settled(outcome) => match outcome {
                Outcome::Done(_) | Outcome::Continue(_) if step.recovered => Self::Recovered,
                Outcome::Done(_) | Outcome::Continue(_) => Self::Done,
                Outcome::Failed(_) if step.recovered => Self::Recovered,
                Outcome::Failed(_) => Self::Failed,
                Outcome::Skipped(_) => Self::Skipped,
                Outcome::Cancelled(_) => Self::Cancelled,
            },
        }
    }

    pub fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Waiting | Self::Asking)
    }
}

/// How many stand how.
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
    /// The node around; the run's own node is 0.
    parent: usize,
    pub children: Vec<usize>,
    pub state: State,
    /// It has no name of its own and does the work of the step around it: both are shown as one.
    pub is_inner: bool,
    /// It is an item or a round.
    pub is_frame: bool,
    /// How its children stand.
    pub kids: Tally,
    pub active: BTreeSet<usize>,
    pub failed: BTreeSet<usize>,
    /// The last line that it printed, or why its last attempt failed.
    pub said: Option<Vec<u8>>,
}

/// Node `n + 1` is step `n` of the view, in which steps come into being and never go.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// How the steps stand that have no steps inside.
    pub total: Tally,
    pub asking: BTreeSet<usize>,
    /// Something happened that changes more than one step.
    is_stale: bool,
}

/// What a step printed is kept up to here: no line is wider.
const SAID_BYTES_MAX: usize = 2_000;

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
            said: None,
        };
        let mut tree =
            Self { nodes: vec![run], total: Tally::default(), asking: BTreeSet::new(), is_stale: false };
        tree.grow(view);
        tree
    }

    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    /// The step that a node stands for.
    pub fn step<'v>(&self, view: &'v View, number: usize) -> Option<(&'v Path, StepView<'v>)> {
        view.step_at(number.checked_sub(1)?)
    }

    /// Follows an event that the view has just heard.
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
                self.say(view, path, failure.message.as_bytes().to_vec());
                self.refresh(view, path);
            }
            What::Scheduled { path, .. } => {
                self.say(view, path, Vec::new());
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

    /// A step printed something.
    pub fn hear(&mut self, view: &View, line: Line) {
        self.say(view, &line.job.path, line.bytes);
    }

    fn say(&mut self, view: &View, path: &Path, mut text: Vec<u8>) {
        if let Some(index) = view.index_of(path) {
            text.truncate(SAID_BYTES_MAX);
            let blank = text.iter().all(u8::is_ascii_whitespace);
            match (blank, text.is_empty()) {
                (_, true) => self.nodes[index + 1].said = None,
                (true, false) => {}
                (false, false) => self.nodes[index + 1].said = Some(text),
            }
        }
    }

    /// Whatever was put off is done now. To be called before a frame is made.
    pub fn settle(&mut self, view: &View) {
        if std::mem::take(&mut self.is_stale) {
            let steps = (1..).zip(view.steps());
            steps.for_each(|(number, (_, step))| self.set(number, State::of(&step)));
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
        let state = State::of(step);
        self.nodes.push(Node {
            parent,
            children: Vec::new(),
            state,
            is_inner: !is_frame && is_inner(view, path, step),
            is_frame,
            kids: Tally::default(),
            active: BTreeSet::new(),
            failed: BTreeSet::new(),
            said: None,
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
            self.set(index + 1, State::of(&step));
        }
    }

    fn set(&mut self, number: usize, state: State) {
        if self.nodes[number].state != state {
            self.leave(number);
            self.nodes[number].state = state;
            self.enter(number);
        }
    }

    /// Counts a node where it is counted.
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

/// Whether a step has no name of its own: what a guard guards is called as the guard, and the only step of a body may have none.
fn is_inner(view: &View, path: &Path, step: &StepView<'_>) -> bool {
    let known = view.plan_step(step);
    let around = path.parent().and_then(|around| view.step(&around));
    let around = around.map(|around| view.plan_step(&around));
    let guarded = around.is_some_and(|around| matches!(around.kind, Kind::Guard(_)) && around.id == known.id);
    guarded || known.implicit && !ids::is_handler(view, path)
}
