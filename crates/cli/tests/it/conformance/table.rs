//! What became of the cases, and the table that tells it.

use std::fmt;

/// One behaviour that a dialect has, and whether ours is the same.
#[derive(Debug)]
pub struct Case {
    pub dialect: &'static str,
    /// The file or folder, and what is done with it.
    pub name: String,
    pub verdict: Verdict,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Agrees,
    /// Ours is what the decision of this number says, and the source program does something else.
    Decided(&'static str),
    /// What was expected and what came.
    Differs(String),
}

impl Case {
    /// A case that agrees unless something is wrong with it.
    pub fn new(dialect: &'static str, name: impl Into<String>, checked: Result<(), String>) -> Self {
        let verdict = checked.map_or_else(Verdict::Differs, |()| Verdict::Agrees);
        Self { dialect, name: name.into(), verdict }
    }

    /// A case in which the right result is not the source program's.
    pub fn decided(self, number: &'static str) -> Self {
        let verdict = match self.verdict {
            Verdict::Agrees => Verdict::Decided(number),
            other @ (Verdict::Decided(_) | Verdict::Differs(_)) => other,
        };
        Self { verdict, ..self }
    }
}

#[derive(Debug)]
pub struct Table(pub Vec<Case>);

impl Table {
    /// What differs, and is not meant to.
    pub fn differing(&self) -> impl Iterator<Item = (&Case, &str)> {
        self.0.iter().filter_map(|case| match &case.verdict {
            Verdict::Differs(how) => Some((case, how.as_str())),
            Verdict::Agrees | Verdict::Decided(_) => None,
        })
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, dialect: &str) -> fmt::Result {
        let cases = || self.0.iter().filter(|case| case.dialect == dialect);
        let agree = cases().filter(|case| case.verdict == Verdict::Agrees).count();
        let mut numbers: Vec<&str> = cases()
            .filter_map(|case| match case.verdict {
                Verdict::Decided(number) => Some(number),
                Verdict::Agrees | Verdict::Differs(_) => None,
            })
            .collect();
        let decided = numbers.len();
        numbers.sort_by_key(|number| (number.len(), *number));
        numbers.dedup();
        let decided = match decided {
            0 => String::new(),
            some => format!("{some} ({})", numbers.join(", ")),
        };
        let differ: Vec<&str> = cases()
            .filter(|case| matches!(case.verdict, Verdict::Differs(_)))
            .map(|case| case.name.as_str())
            .collect();
        writeln!(f, "| {dialect} | {} | {agree} | {decided} | {} |", cases().count(), differ.join(", "))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| dialect | cases | agree | differ by decision | differ |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        ["speckit", "swdl", "dagnats", "dcc"].iter().try_for_each(|dialect| self.row(f, dialect))
    }
}
