//! Random plans with all kinds of steps and policies, as small trees that can be shrunk.

use crate::random::Random;

/// A generated workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    pub list: Vec<Node>,
    pub timeout_secs: Option<u64>,
    pub agents: u32,
    pub steps_at_once: Option<u32>,
    pub compensate_on_cancel: bool,
    /// Whether steps can be read by name from anywhere, as in the other dialects.
    pub flat: bool,
    pub outputs: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub id: u32,
    /// Ids of nodes of the same list that come before it.
    pub needs: Vec<u32>,
    pub condition: Option<Asks>,
    pub body: Body,
    pub policy: Knobs,
    /// The steps that undo it, and those that always follow it.
    pub compensate: Option<Vec<Node>>,
    pub finally: Option<Vec<Node>>,
    /// It runs only if another node of its list names it.
    pub target: bool,
}

/// A condition on the status of another node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asks {
    pub of: u32,
    /// The status is, or is not, success.
    pub succeeded: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Knobs {
    pub attempts: u32,
    pub delay_secs: u64,
    pub growth: u8,
    pub only_transient: bool,
    pub never_fatal: bool,
    pub when_early: bool,
    pub timeout_secs: Option<u64>,
    pub on_failure: After,
    pub undone_by: Option<u32>,
    pub key: Option<u8>,
    pub key_secs: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Halt,
    Rollback,
    Continue,
    SkipDependents,
    Goto(u32),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Work { agent: bool, output: Output, rounds: Option<Rounds> },
    Gate(Gate),
    Wait(Wait),
    Assign,
    Finish(u8),
    Slot,
    Block(Vec<Node>),
    Parallel { list: Vec<Node>, rule: u8 },
    Each { items: Items, at_once: Option<u32>, continues: bool, limit: Option<u64>, list: Vec<Node> },
    Loop { test: u8, ends: Ends, rounds_max: u32, delay_secs: Option<u64>, list: Vec<Node> },
    If { asks: Option<Asks>, holds: bool, then: Vec<Node>, otherwise: Vec<Node> },
    Switch { value: u8, cases: Vec<(u8, Vec<Node>)>, default: Vec<Node> },
}

/// The declared outputs of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Anything,
    Number,
    OptionalNumber,
    NumberWithDefault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    pub max: u32,
    pub secs: Option<u64>,
    pub delay_secs: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub approvers: bool,
    pub quorum: u32,
    pub self_approval: bool,
    pub timeout_secs: Option<u64>,
    pub on_timeout: u8,
    pub on_reject: Reject,
    pub verdict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    Fail,
    Abort,
    Skip,
    Retry,
    Back(u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    For(u64),
    Until(u64),
    Cron,
    Signal { matching: bool, timeout_secs: Option<u64>, done: bool },
    Message { timeout_secs: Option<u64>, done: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// A fixed number.
    Count(u32),
    /// The value of an input, which may not be a list.
    Input,
    Matrix(u32, u32),
}

/// When a loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    AfterRound(u32),
    /// After the first step of its body has succeeded.
    First,
    Never,
}

impl Knobs {
    pub fn plain() -> Self {
        Self {
            attempts: 1,
            delay_secs: 0,
            growth: 0,
            only_transient: false,
            never_fatal: false,
            when_early: false,
            timeout_secs: None,
            on_failure: After::Halt,
            undone_by: None,
            key: None,
            key_secs: None,
        }
    }
}

impl Body {
    pub fn lists(&self) -> Vec<&Vec<Node>> {
        match self {
            Self::Work { .. }
            | Self::Gate(_)
            | Self::Wait(_)
            | Self::Assign
            | Self::Finish(_)
            | Self::Slot => Vec::new(),
            Self::Block(list)
            | Self::Parallel { list, .. }
            | Self::Each { list, .. }
            | Self::Loop { list, .. } => vec![list],
            Self::If { then, otherwise, .. } => vec![then, otherwise],
            Self::Switch { cases, default, .. } => {
                cases.iter().map(|(_, list)| list).chain([default]).collect()
            }
        }
    }

    pub fn lists_mut(&mut self) -> Vec<&mut Vec<Node>> {
        match self {
            Self::Work { .. }
            | Self::Gate(_)
            | Self::Wait(_)
            | Self::Assign
            | Self::Finish(_)
            | Self::Slot => Vec::new(),
            Self::Block(list)
            | Self::Parallel { list, .. }
            | Self::Each { list, .. }
            | Self::Loop { list, .. } => vec![list],
            Self::If { then, otherwise, .. } => vec![then, otherwise],
            Self::Switch { cases, default, .. } => {
                cases.iter_mut().map(|(_, list)| list).chain([default]).collect()
            }
        }
    }
}

/// Generates sketches.
pub struct Pencil<'r> {
    random: &'r mut Random,
    next: u32,
}

impl<'r> Pencil<'r> {
    pub fn new(random: &'r mut Random) -> Self {
        Self { random, next: 0 }
    }

    /// A sketch with up to `size` nodes on each level.
    pub fn draw(mut self, size: usize) -> Sketch {
        let list = self.list(size, 2, true);
        let random = self.random;
        Sketch {
            list,
            timeout_secs: random.chance(25).then(|| 20 + random.below(400) as u64),
            agents: 1 + random.below(3) as u32,
            steps_at_once: random.chance(25).then(|| 1 + random.below(3) as u32),
            compensate_on_cancel: random.chance(30),
            flat: random.chance(25),
            outputs: random.chance(40),
        }
    }

    fn list(&mut self, size: usize, depth: usize, may_call: bool) -> Vec<Node> {
        let count = 1 + self.random.below(size);
        let mut list: Vec<Node> = Vec::new();
        for _ in 0..count {
            let before: Vec<u32> = list.iter().filter(|node| !node.target).map(|node| node.id).collect();
            let chance = if self.random.chance(50) { 70 } else { 30 };
            let needs: Vec<u32> = before.into_iter().filter(|_| self.random.chance(chance)).collect();
            let node = self.node(needs, depth, &list);
            list.push(node);
        }
        if may_call && self.random.chance(25) {
            self.add_target(&mut list);
        }
        list
    }

    /// A node that handles the failure of others, or undoes them.
    fn add_target(&mut self, list: &mut Vec<Node>) {
        let id = self.id();
        let undoes = self.random.chance(50);
        for node in list.iter_mut().filter(|node| !node.target) {
            if self.random.chance(50) {
                continue;
            }
            match undoes {
                true => node.policy.undone_by = Some(id),
                false => node.policy.on_failure = After::Goto(id),
            }
        }
        let mut node = self.leaf(id, Vec::new(), 0);
        node.target = true;
        node.policy.on_failure = After::Halt;
        list.push(node);
    }

    fn id(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn leaf(&mut self, id: u32, needs: Vec<u32>, kinds: usize) -> Node {
        let body = match self.random.below(kinds.max(1)) {
            0..=2 => self.work(),
            3 => Body::Assign,
            4 => self.gate(&[]),
            5 => self.wait(),
            _ => Body::Slot,
        };
        let policy = self.knobs(&body);
        Node { id, needs, condition: None, body, policy, compensate: None, finally: None, target: false }
    }

    fn node(&mut self, needs: Vec<u32>, depth: usize, before: &[Node]) -> Node {
        let id = self.id();
        let condition = (!needs.is_empty() && self.random.chance(20)).then(|| {
            let of = *self.random.pick(&needs);
            Asks { of, succeeded: self.random.chance(75) }
        });
        let body = self.body(&needs, depth, before);
        let policy = self.knobs(&body);
        let extra = |pencil: &mut Self, percent| {
            let wanted = depth > 0 && pencil.random.chance(percent);
            wanted.then(|| {
                let id = pencil.id();
                vec![pencil.leaf(id, Vec::new(), 4)]
            })
        };
        // A gate can only send steps of its own list back.
        let goes_back = matches!(&body, Body::Gate(gate) if matches!(gate.on_reject, Reject::Back(..)));
        let compensate = extra(self, if goes_back { 0 } else { 15 });
        let finally = extra(self, if goes_back { 0 } else { 12 });
        Node { id, needs, condition, body, policy, compensate, finally, target: false }
    }

    fn body(&mut self, needs: &[u32], depth: usize, before: &[Node]) -> Body {
        let kinds = if depth > 0 { 24 } else { 12 };
        match self.random.below(kinds) {
            0..=5 => self.work(),
            6 | 7 => self.gate(&targets(needs, before)),
            8 => self.wait(),
            9 | 10 => Body::Assign,
            11 => match self.random.below(4) {
                0 => Body::Finish(self.random.below(3) as u8),
                _ => Body::Slot,
            },
            12..=14 => Body::Block(self.list(3, depth - 1, true)),
            15 | 16 => {
                let mut list = self.list(3, depth - 1, false);
                list.iter_mut().for_each(|node| (node.needs, node.condition) = (Vec::new(), None));
                list.iter_mut().for_each(remove_references);
                Body::Parallel { list, rule: self.random.below(3) as u8 }
            }
            17..=19 => Body::Each {
                items: match self.random.below(6) {
                    0 => Items::Input,
                    1 => Items::Matrix(self.random.below(3) as u32, 1 + self.random.below(2) as u32),
                    _ => Items::Count(self.random.below(5) as u32),
                },
                at_once: self.random.chance(60).then(|| 1 + self.random.below(3) as u32),
                continues: self.random.chance(40),
                limit: self.random.chance(10).then_some(2),
                list: self.list(2, depth - 1, true),
            },
            20 | 21 => Body::Loop {
                test: self.random.below(3) as u8,
                ends: match self.random.below(4) {
                    0 => Ends::Never,
                    1 => Ends::First,
                    _ => Ends::AfterRound(self.random.below(3) as u32),
                },
                rounds_max: 1 + self.random.below(4) as u32,
                delay_secs: self.random.chance(40).then(|| 1 + self.random.below(30) as u64),
                list: self.list(2, depth - 1, true),
            },
            22 => {
                let asks = needs.first().filter(|_| self.random.chance(60));
                let asks = asks.map(|of| Asks { of: *of, succeeded: self.random.chance(50) });
                Body::If {
                    asks,
                    holds: self.random.chance(50),
                    then: self.list(2, depth - 1, true),
                    otherwise: if self.random.chance(50) {
                        self.list(2, depth - 1, true)
                    } else {
                        Vec::new()
                    },
                }
            }
            _ => Body::Switch {
                value: self.random.below(3) as u8,
                cases: vec![(0, self.list(2, depth - 1, true)), (1, self.list(1, depth - 1, false))],
                default: if self.random.chance(50) { self.list(1, depth - 1, false) } else { Vec::new() },
            },
        }
    }

    fn work(&mut self) -> Body {
        let rounds = self.random.chance(15).then(|| Rounds {
            max: 1 + self.random.below(4) as u32,
            secs: self.random.chance(30).then(|| 10 + self.random.below(60) as u64),
            delay_secs: self.random.chance(50).then(|| 1 + self.random.below(20) as u64),
        });
        let outputs = [
            Output::Anything,
            Output::Anything,
            Output::Number,
            Output::OptionalNumber,
            Output::NumberWithDefault,
        ];
        let agent = rounds.is_none() && self.random.chance(40);
        Body::Work { agent, output: *self.random.pick(&outputs), rounds }
    }

    fn gate(&mut self, back: &[u32]) -> Body {
        let on_reject = match self.random.below(7) {
            0 => Reject::Abort,
            1 => Reject::Skip,
            2 => Reject::Retry,
            3 | 4 if !back.is_empty() => {
                Reject::Back(*self.random.pick(back), 1 + self.random.below(2) as u32)
            }
            _ => Reject::Fail,
        };
        Body::Gate(Gate {
            approvers: self.random.chance(50),
            quorum: if self.random.chance(25) { 2 } else { 1 },
            self_approval: self.random.chance(80),
            timeout_secs: self.random.chance(70).then(|| 30 + self.random.below(600) as u64),
            on_timeout: self.random.below(3) as u8,
            on_reject,
            verdict: self.random.chance(20),
        })
    }

    fn wait(&mut self) -> Body {
        let timeout_secs = self.random.chance(80).then(|| 5 + self.random.below(200) as u64);
        let done = self.random.chance(50);
        Body::Wait(match self.random.below(8) {
            0..=2 => Wait::For(self.random.below(60) as u64),
            3 => Wait::Until(self.random.below(100) as u64),
            4 => Wait::Cron,
            5 => Wait::Message { timeout_secs: timeout_secs.or(Some(50)), done },
            _ => Wait::Signal { matching: self.random.chance(40), timeout_secs, done },
        })
    }

    fn knobs(&mut self, body: &Body) -> Knobs {
        let random = &mut *self.random;
        let works = matches!(body, Body::Work { .. });
        let scope = !body.lists().is_empty();
        let after = [After::Halt, After::Halt, After::Rollback, After::Continue, After::SkipDependents];
        let timed = works && random.chance(60) || scope && random.chance(15);
        Knobs {
            attempts: if works { 1 + random.below(3) as u32 } else { 1 },
            delay_secs: random.below(20) as u64,
            growth: random.below(3) as u8,
            only_transient: random.chance(10),
            never_fatal: random.chance(20),
            when_early: random.chance(15),
            timeout_secs: timed.then(|| 5 + random.below(60) as u64),
            on_failure: *random.pick(&after),
            undone_by: None,
            key: (works && random.chance(15)).then(|| random.below(2) as u8),
            key_secs: random.chance(50).then(|| 1 + random.below(60) as u64),
        }
    }
}

/// Nodes that a gate with these needs can go back to.
fn targets(needs: &[u32], before: &[Node]) -> Vec<u32> {
    before.iter().filter(|node| needs.contains(&node.id)).map(|node| node.id).collect()
}

/// A branch has no previous steps that it could read or go back to.
fn remove_references(node: &mut Node) {
    match &mut node.body {
        Body::If { asks, .. } => *asks = None,
        Body::Gate(gate) if matches!(gate.on_reject, Reject::Back(..)) => gate.on_reject = Reject::Fail,
        _ => {}
    }
}

impl Sketch {
    /// Whether the order of successful answers does not affect the result.
    pub fn is_order_free(&self) -> bool {
        self.timeout_secs.is_none() && self.list.iter().all(is_order_free)
    }

    /// Slightly smaller variants of this sketch.
    pub fn smaller(&self) -> Vec<Self> {
        let mut found: Vec<Self> =
            smaller_lists(&self.list).into_iter().map(|list| Self { list, ..self.clone() }).collect();
        let simpler = [
            Self { timeout_secs: None, ..self.clone() },
            Self { steps_at_once: None, ..self.clone() },
            Self { compensate_on_cancel: false, ..self.clone() },
            Self { flat: false, ..self.clone() },
            Self { outputs: false, ..self.clone() },
        ];
        found.extend(simpler.into_iter().filter(|sketch| sketch != self));
        found.retain(|sketch| !sketch.list.is_empty());
        found
    }
}

fn is_order_free(node: &Node) -> bool {
    let calm = match &node.body {
        Body::Work { rounds, .. } => rounds.is_none(),
        Body::Assign | Body::Slot => true,
        Body::Gate(_) | Body::Wait(_) | Body::Finish(_) => false,
        Body::Block(_)
        | Body::Parallel { .. }
        | Body::Each { .. }
        | Body::Loop { .. }
        | Body::If { .. }
        | Body::Switch { .. } => node.body.lists().into_iter().flatten().all(is_order_free),
    };
    let ends = node.compensate.iter().chain(&node.finally).flatten().all(is_order_free);
    calm && ends && node.policy.timeout_secs.is_none() && node.policy.key.is_none()
}

/// Lists with one node less, with a scope replaced by its body, or with a simpler node.
fn smaller_lists(list: &[Node]) -> Vec<Vec<Node>> {
    let mut found = Vec::new();
    for (place, node) in list.iter().enumerate() {
        found.push(without(list, place));
        for inner in node.body.lists().into_iter().filter(|inner| !inner.is_empty()) {
            let mut opened = without(list, place);
            opened.splice(place..place, inner.iter().cloned());
            found.push(opened);
        }
    }
    for (place, node) in list.iter().enumerate() {
        for simpler in smaller_nodes(node) {
            let mut changed = list.to_vec();
            changed[place] = simpler;
            found.push(changed);
        }
    }
    found
}

fn without(list: &[Node], place: usize) -> Vec<Node> {
    let mut rest = list.to_vec();
    let gone = rest.remove(place).id;
    for node in &mut rest {
        node.needs.retain(|need| *need != gone);
        node.condition = node.condition.filter(|asks| asks.of != gone);
        if node.policy.undone_by == Some(gone) {
            node.policy.undone_by = None;
        }
        if node.policy.on_failure == After::Goto(gone) {
            node.policy.on_failure = After::Halt;
        }
        match &mut node.body {
            Body::If { asks, .. } => *asks = asks.filter(|asks| asks.of != gone),
            Body::Gate(gate) if matches!(gate.on_reject, Reject::Back(to, _) if to == gone) => {
                gate.on_reject = Reject::Fail;
            }
            _ => {}
        }
    }
    // A node that is no longer named becomes an ordinary one.
    let named: Vec<u32> = rest.iter().filter_map(|node| node.policy.undone_by).collect();
    let taken: Vec<u32> = rest
        .iter()
        .filter_map(|node| match node.policy.on_failure {
            After::Goto(to) => Some(to),
            After::Halt | After::Rollback | After::Continue | After::SkipDependents => None,
        })
        .collect();
    rest.iter_mut().for_each(|node| node.target &= named.contains(&node.id) || taken.contains(&node.id));
    rest
}

fn smaller_nodes(node: &Node) -> Vec<Node> {
    let mut found = Vec::new();
    let mut offer = |changed: Node| {
        if changed != *node {
            found.push(changed);
        }
    };
    offer(Node { compensate: None, ..node.clone() });
    offer(Node { finally: None, ..node.clone() });
    offer(Node { condition: None, ..node.clone() });
    let keep =
        Knobs { undone_by: node.policy.undone_by, on_failure: node.policy.on_failure, ..Knobs::plain() };
    offer(Node { policy: keep, ..node.clone() });
    offer(Node { policy: Knobs { timeout_secs: None, ..node.policy.clone() }, ..node.clone() });
    offer(Node { policy: Knobs { key: None, ..node.policy.clone() }, ..node.clone() });
    offer(Node { policy: Knobs { attempts: 1, ..node.policy.clone() }, ..node.clone() });
    if !matches!(node.policy.on_failure, After::Goto(_)) {
        offer(Node { policy: Knobs { on_failure: After::Halt, ..node.policy.clone() }, ..node.clone() });
    }
    let plain = Body::Work { agent: false, output: Output::Anything, rounds: None };
    if node.body.lists().is_empty() {
        offer(Node { body: plain, ..node.clone() });
    }
    if node.needs.len() > 1 {
        offer(Node { needs: node.needs[1..].to_vec(), ..node.clone() });
    }
    let count = node.body.lists().len();
    for list in 0..count {
        for smaller in smaller_lists(node.body.lists()[list]) {
            let mut changed = node.clone();
            *changed.body.lists_mut()[list] = smaller;
            if changed.body.lists().iter().any(|list| !list.is_empty()) {
                found.push(changed);
            }
        }
    }
    found
}
