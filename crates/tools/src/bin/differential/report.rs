//! What was tried, what was seen to work, and where the programs disagree.

use std::collections::BTreeMap;
use std::fmt;

pub struct Disagreement {
    pub what: String,
    pub how: String,
}

#[derive(Default)]
pub struct Report {
    pub expressions: u64,
    /// Expressions that raise in both programs.
    pub raised: u64,
    /// Workflows of DCC-MCP, which are only read.
    pub documents: u64,
    pub workflows: u64,
    /// Starts and resumes of workflows.
    pub phases: u64,
    /// How the phases ended, in the words of the dialect.
    pub ended: BTreeMap<String, u64>,
    /// How often an operation, a filter or a kind of step was seen to succeed in both programs.
    pub succeeded: BTreeMap<String, u64>,
    /// Disagreements that are meant, by the decision that says so.
    pub decided: BTreeMap<&'static str, u64>,
    pub disagreements: u64,
    /// The smallest form of the first ones, and how often each came up.
    pub explained: BTreeMap<String, (String, u64)>,
}

/// Disagreements of one part that are made small; more of them would rarely tell anything new.
const EXPLAINED_MAX: usize = 40;

impl Report {
    pub fn count(&mut self, what: &str) {
        *self.succeeded.entry(what.to_owned()).or_default() += 1;
    }

    pub fn differ(&mut self, part: u64, explain: impl FnOnce() -> Disagreement) {
        self.disagreements += 1;
        if self.explained.len() < EXPLAINED_MAX {
            let found = explain();
            let how = format!("{}\n  first in part {part}", found.how);
            self.explained.entry(found.what).or_insert((how, 0)).1 += 1;
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.expressions += other.expressions;
        self.raised += other.raised;
        self.documents += other.documents;
        self.workflows += other.workflows;
        self.phases += other.phases;
        self.disagreements += other.disagreements;
        other.ended.into_iter().for_each(|(key, count)| *self.ended.entry(key).or_default() += count);
        other.succeeded.into_iter().for_each(|(key, count)| *self.succeeded.entry(key).or_default() += count);
        other.decided.into_iter().for_each(|(key, count)| *self.decided.entry(key).or_default() += count);
        for (what, (how, count)) in other.explained {
            self.explained.entry(what).or_insert((how, 0)).1 += count;
        }
    }

    /// What must have succeeded at least once and never did.
    pub fn missing<'a>(&'a self, wanted: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        wanted.iter().copied().filter(|name| !self.succeeded.contains_key(*name))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, (how, count)) in &self.explained {
            writeln!(f, "DISAGREE ({count}x) {what}\n  {how}\n")?;
        }
        let list = |counts: &BTreeMap<String, u64>| {
            let shown = counts.iter().map(|(name, count)| format!("{name} {count}"));
            shown.collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "expressions: {}, of them {} raise in both", self.expressions, self.raised)?;
        writeln!(f, "workflows: {} in {} phases: {}", self.workflows, self.phases, list(&self.ended))?;
        writeln!(f, "DCC-MCP workflows read: {}", self.documents)?;
        writeln!(f, "succeeded in both: {}", list(&self.succeeded))?;
        for (decision, count) in &self.decided {
            writeln!(f, "differ by decision: {count}: {decision}")?;
        }
        writeln!(f, "disagreements: {}", self.disagreements)
    }
}
