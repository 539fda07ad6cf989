//! A fixture that cases are read from: a file or a folder.

use super::Case;
use std::collections::HashMap;
use std::fmt;

type Read = Box<dyn Fn() -> Vec<Case>>;

pub struct Source {
    dialect: &'static str,
    /// The names of all its cases, and of no others, start with this.
    prefix: String,
    read: Read,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.dialect, self.prefix)
    }
}

impl Source {
    pub fn new(
        dialect: &'static str,
        prefix: impl Into<String>,
        read: impl Fn() -> Vec<Case> + 'static,
    ) -> Self {
        Self { dialect, prefix: prefix.into(), read: Box::new(read) }
    }

    pub fn may_have(&self, id: &str) -> bool {
        let name = id.strip_prefix(self.dialect).and_then(|rest| rest.strip_prefix("::"));
        name.is_some_and(|name| name.starts_with(&self.prefix))
    }

    /// Its cases, with a number added to names that come up again.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = (self.read)();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for case in &mut cases {
            let count = seen.entry(case.id()).or_default();
            *count += 1;
            if *count > 1 {
                case.name = format!("{} ({count})", case.name);
            }
            assert!(self.may_have(&case.id()), "{case:?} is not found under {self:?}");
        }
        cases
    }
}
