//! The results of the cases, and the summary that `make conformance` prints.

use std::fmt;

/// One behavior of a dialect, and whether ours is the same.
#[derive(Debug)]
pub struct Row {
    pub dialect: &'static str,
    pub name: String,
    verdict: Verdict,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Agrees,
    /// Ours follows this decision, and the original program does something else.
    Decided(String),
    /// The expectation and the result.
    Differs(String),
}

impl Row {
    pub fn new(dialect: &'static str, name: String, verdict: Verdict) -> Self {
        Self { dialect, name, verdict }
    }
}

#[derive(Debug)]
pub struct Table(pub(super) Vec<Row>);

impl Table {
    /// The cases that differ without a decision.
    pub fn differing(&self) -> impl Iterator<Item = (&Row, &str)> {
        self.0.iter().filter_map(|row| match &row.verdict {
            Verdict::Differs(how) => Some((row, how.as_str())),
            Verdict::Agrees | Verdict::Decided(_) => None,
        })
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, dialect: &str) -> fmt::Result {
        let cases = || self.0.iter().filter(|case| case.dialect == dialect);
        let agree = cases().filter(|case| case.verdict == Verdict::Agrees).count();
        let mut numbers: Vec<&str> = cases()
            .filter_map(|case| match &case.verdict {
                Verdict::Decided(number) => Some(number.as_str()),
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
