//! A run as the coordinator sees it: parts that ask, hold and end, and subscriptions.

use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_engine::{Amount, Ask, Asker, Claim, End, Path, RunId, Subscription, Timestamp};

#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    pub id: RunId,
    pub depth: u32,
    pub ancestors: Vec<RunId>,
    pub over: bool,
    /// The first is the run itself, which asks to begin; the others are steps.
    pub parts: Vec<Part>,
    pub subscriptions: Vec<Subscription>,
    /// Received messages, with the paths that waited for them.
    pub received: BTreeSet<(Path, Arc<str>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub path: Path,
    pub attempt: u32,
    pub claims: Vec<Claim>,
    pub ahead: i32,
    /// When this attempt asked first.
    pub since: Timestamp,
    pub phase: Phase,
    /// How the last finished attempt ended.
    pub ended: Option<Ended>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub attempt: u32,
    pub used: Amount,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Idle,
    /// It has asked and waits for the answer.
    Waiting,
    Holding,
    /// An attempt failed, and the next one has not asked yet.
    Between,
    Over,
}

impl Life {
    pub fn new(id: RunId, depth: u32, ancestors: Vec<RunId>) -> Self {
        let (parts, subscriptions) = (Vec::new(), Vec::new());
        Self { id, depth, ancestors, over: false, parts, subscriptions, received: BTreeSet::new() }
    }

    /// Adds the run itself on the first call, and steps on further calls.
    pub fn needs(&mut self, claims: Vec<Claim>, ahead: i32) {
        let path = match self.parts.len() {
            0 => Path::default(),
            step => Path::default().child(format!("step{step}").into(), None),
        };
        // A run without claims has begun.
        let begun = self.parts.is_empty() && claims.is_empty();
        let phase = if begun { Phase::Holding } else { Phase::Idle };
        self.parts.push(Part { path, attempt: 1, claims, ahead, since: Timestamp(0), phase, ended: None });
    }

    pub fn has_begun(&self) -> bool {
        !self.over && self.parts[0].phase == Phase::Holding
    }

    pub fn asker(&self, part: usize) -> Asker {
        let Part { path, attempt, .. } = &self.parts[part];
        Asker { run: self.id.clone(), path: path.clone(), attempt: *attempt }
    }

    pub fn ask(&self, part: usize) -> Box<Ask> {
        let Part { claims, ahead, since, .. } = &self.parts[part];
        Box::new(Ask {
            asker: self.asker(part),
            claims: claims.clone(),
            since: *since,
            ahead: *ahead,
            ancestors: self.ancestors.clone(),
        })
    }

    pub fn part_at(&self, path: &Path) -> Option<usize> {
        self.parts.iter().position(|part| part.path == *path)
    }

    /// Whether it still needs what this asker asked for.
    pub fn wants(&self, asker: &Asker) -> bool {
        // A slot that a trigger reserved for its run has the number 0.
        let for_run = asker.path.is_run() && asker.attempt == 0;
        let part = self.part_at(&asker.path).map(|part| &self.parts[part]);
        let asked = part.is_some_and(|part| {
            part.attempt == asker.attempt && matches!(part.phase, Phase::Waiting | Phase::Holding)
        });
        !self.over && (for_run || asked)
    }

    /// How the work of an asker that is no longer needed ended.
    pub fn end_of(&self, asker: &Asker) -> (Amount, End) {
        let Some(part) = self.part_at(&asker.path).map(|part| &self.parts[part]) else {
            return (Amount::default(), End::Over);
        };
        match &part.ended {
            Some(ended) if ended.attempt == asker.attempt => (ended.used, ended.end.clone()),
            Some(_) | None if part.phase == Phase::Over => (Amount::default(), End::Over),
            Some(_) | None => (Amount::default(), End::Lost),
        }
    }

    /// Whether it is between two attempts, or asks for one, so that it may still own keys.
    pub fn continues(&self, path: &Path) -> bool {
        let part = self.part_at(path).map(|part| &self.parts[part]);
        !self.over && part.is_some_and(|part| part.phase != Phase::Over && part.phase != Phase::Idle)
    }
}
