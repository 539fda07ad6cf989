//! One behavior of a dialect, with the check that compares ours to it. A case needs no other: each can be executed alone.

use super::table::Verdict;
use super::{Checked, Program};
use std::fmt;

type Check = Box<dyn Fn(&Program, &str) -> Checked + Send + Sync>;

pub struct Case {
    pub dialect: &'static str,
    /// The file or folder, and the scenario.
    pub name: String,
    /// The decision by which ours differs from the original program.
    decision: Option<String>,
    check: Check,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())
    }
}

impl Case {
    /// The check gets the program and a name for a folder that no other case uses.
    pub fn new(
        dialect: &'static str,
        name: impl Into<String>,
        check: impl Fn(&Program, &str) -> Checked + Send + Sync + 'static,
    ) -> Self {
        Self { dialect, name: name.into(), decision: None, check: Box::new(check) }
    }

    pub fn decided(self, decision: Option<&str>) -> Self {
        Self { decision: decision.map(str::to_owned), ..self }
    }

    /// The name of its test: one line, as test runners list a test per line.
    pub fn id(&self) -> String {
        let mut id = format!("{}::", self.dialect);
        for c in self.name.trim().chars() {
            match c.is_control() {
                true => id.extend(c.escape_default()),
                false => id.push(c),
            }
        }
        id
    }

    pub fn check(&self, program: &Program) -> Checked {
        (self.check)(program, &format!("{} {}", self.dialect, self.name))
    }

    pub(super) fn verdict(&self, program: &Program) -> Verdict {
        match (self.check(program), &self.decision) {
            (Err(difference), _) => Verdict::Differs(difference),
            (Ok(()), Some(decision)) => Verdict::Decided(decision.clone()),
            (Ok(()), None) => Verdict::Agrees,
        }
    }
}

/// Notes the decisions on the cases that they are about.
pub(super) fn decided(mut cases: Vec<Case>, decisions: &[(&str, &str)]) -> Vec<Case> {
    for (name, decision) in decisions {
        let mut about = cases.iter_mut().filter(|case| case.name == *name).peekable();
        assert!(about.peek().is_some(), "there is no case `{name}`");
        about.for_each(|case| case.decision = Some((*decision).to_owned()));
    }
    cases
}
