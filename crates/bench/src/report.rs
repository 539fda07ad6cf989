//! The results as a table for people: figure, limit, ratio, target, met or missed.

use crate::limits::{CALLERS, Limits};
use crate::stats::Compared;

/// One measurement and what it is compared with.
#[derive(Clone, Debug)]
pub struct Row {
    /// The key of the ratio across commits.
    pub key: String,
    pub what: String,
    pub figure: Figure,
    pub limit: Option<Limit>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    Of(f64, Unit),
    /// With the reason.
    LeftOut(String),
}

#[derive(Clone, Debug)]
pub struct Limit {
    pub name: String,
    pub value: f64,
    /// The figure divided by the limit, of the same rounds.
    pub ratio: f64,
    pub target: Option<Target>,
}

/// The required range of the ratio of figure to limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    PerSecond,
    Milliseconds,
    Megabytes,
    Bytes,
    Microseconds,
    Times,
}

impl Row {
    /// A figure compared with a limit, whose name is set later.
    pub fn of(key: impl Into<String>, what: impl Into<String>, compared: Compared, unit: Unit) -> Self {
        let Compared { figure, limit, ratio } = compared;
        let limit = Some(Limit { name: String::new(), value: limit, ratio, target: None });
        Self { key: key.into(), what: what.into(), figure: Figure::Of(figure, unit), limit }
    }

    /// A figure without a comparison.
    pub fn plain(key: impl Into<String>, what: impl Into<String>, figure: f64, unit: Unit) -> Self {
        Self { key: key.into(), what: what.into(), figure: Figure::Of(figure, unit), limit: None }
    }

    /// A skipped measurement.
    pub fn left_out(key: impl Into<String>, what: impl Into<String>, why: String) -> Self {
        Self { key: key.into(), what: what.into(), figure: Figure::LeftOut(why), limit: None }
    }

    /// A figure with a fixed maximum.
    pub fn under(
        key: impl Into<String>,
        what: impl Into<String>,
        figure: f64,
        unit: Unit,
        most: f64,
    ) -> Self {
        let compared = Compared { figure, limit: most, ratio: figure / most };
        Self::of(key, what, compared, unit).with("fixed", Target::AtMost(1.0))
    }

    /// Something that must not have happened.
    pub fn never(key: impl Into<String>, what: impl Into<String>, times: usize) -> Self {
        let compared = Compared { figure: times as f64, limit: 0.0, ratio: times as f64 };
        Self::of(key, what, compared, Unit::Times).with("fixed", Target::AtMost(0.0))
    }

    #[must_use]
    pub fn with(mut self, limit: impl Into<String>, target: Target) -> Self {
        self = self.beside(limit);
        if let Some(limit) = &mut self.limit {
            limit.target = Some(target);
        }
        self
    }

    /// Names the limit if there is no target.
    #[must_use]
    pub fn beside(mut self, limit: impl Into<String>) -> Self {
        if let Some(known) = &mut self.limit {
            known.name = limit.into();
        }
        self
    }

    fn cells(&self) -> [String; 6] {
        let cells = |rest: [String; 5]| {
            let [figure, limit, ratio, target, verdict] = rest;
            [self.what.clone(), figure, limit, ratio, target, verdict]
        };
        let (figure, unit) = match &self.figure {
            Figure::Of(figure, unit) => (unit.show(*figure), unit),
            Figure::LeftOut(why) => {
                let [limit, ratio, target] = Default::default();
                return cells([why.clone(), limit, ratio, target, "left out".to_owned()]);
            }
        };
        let Some(limit) = &self.limit else {
            let [limit, ratio, target, verdict] = Default::default();
            return cells([figure, limit, ratio, target, verdict]);
        };
        let named = format!("{} ({})", unit.show(limit.value), limit.name);
        let (target, verdict) = limit.target.map_or_else(Default::default, |target| {
            let verdict = if target.is_met(limit.ratio) { "met" } else { "missed" };
            (target.show(), verdict.to_owned())
        });
        cells([figure, named, ratio(limit.ratio), target, verdict])
    }
}

impl Target {
    pub fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }

    /// How much worse a ratio is than an earlier one: 0.2 if a fifth is lost.
    pub fn loss(self, before: f64, now: f64) -> f64 {
        match self {
            Self::AtLeast(_) => 1.0 - now / before,
            Self::AtMost(_) => 1.0 - before / now,
        }
    }

    fn show(self) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {}", ratio(least)),
            Self::AtMost(most) => format!("≤ {}", ratio(most)),
        }
    }
}

/// As a percentage, unless it is a multiple.
pub fn ratio(ratio: f64) -> String {
    if ratio < 5.0 { format!("{:.0} %", ratio * 100.0) } else { format!("{ratio:.1} ×") }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", thousands(value)),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Bytes => format!("{} B", thousands(value)),
            Self::Microseconds => format!("{value:.1} µs"),
            Self::Times => thousands(value),
        }
    }
}

/// `12,345`.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    if value < 0.0 { format!("-{shown}") } else { shown }
}

/// The limits of the machine in one line.
pub fn limits(limits: &Limits) -> String {
    let Limits { flushes, single, grouped } = limits;
    let [flushes, single, grouped] = [flushes, single, grouped].map(|rate| thousands(*rate));
    format!("fdatasync {flushes}/s, commits of one row {single}/s, rows of {CALLERS} callers {grouped}/s")
}

/// The number of targets met.
pub fn verdict(rows: &[Row]) -> String {
    let targets = rows.iter().filter_map(|row| row.limit.as_ref());
    let met: Vec<bool> = targets.filter_map(|limit| Some(limit.target?.is_met(limit.ratio))).collect();
    let missed = met.iter().filter(|met| !**met).count();
    format!("{} targets met, {missed} missed,", met.len() - missed)
}

const HEADINGS: [&str; 6] = ["measurement", "figure", "limit", "ratio", "target", ""];

/// Columns for a terminal.
pub fn table(rows: &[Row]) -> String {
    let cells: Vec<_> =
        std::iter::once(HEADINGS.map(str::to_owned)).chain(rows.iter().map(Row::cells)).collect();
    let widths: [usize; 6] =
        std::array::from_fn(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; 6]| {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  "));
        format!("  {}\n", padded.collect::<String>().trim_end())
    };
    cells.iter().map(line).collect()
}

pub fn markdown(rows: &[Row]) -> String {
    let line = |row: [String; 6]| format!("| {} |\n", row.join(" | "));
    let head = line(HEADINGS.map(str::to_owned)) + "|---|---|---|---|---|---|\n";
    head + &rows.iter().map(|row| line(row.cells())).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::{Row, Target, Unit, table, thousands};

    #[test]
    fn numbers_have_thousands_separators() {
        assert_eq!(
            ["1", "999", "1000", "1234567"].map(|n| thousands(n.parse().unwrap_or(0.0))),
            ["1", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn a_missed_target_is_shown() {
        let row = |figure| Row::under("memory.idle", "idle", figure, Unit::Megabytes, 25.0);
        assert!(table(&[row(20.0)]).contains("80 %   ≤ 100 %  met"), "{}", table(&[row(20.0)]));
        assert!(table(&[row(50.0)]).contains("200 %  ≤ 100 %  missed"));
    }

    #[test]
    fn worse_is_less_of_a_rate_and_more_of_a_cost() {
        assert!((Target::AtLeast(0.5).loss(0.8, 0.6) - 0.25).abs() < 1e-9);
        assert!((Target::AtMost(1.0).loss(0.6, 0.8) - 0.25).abs() < 1e-9);
        assert!(Target::AtMost(1.0).loss(0.8, 0.6) < 0.0);
    }
}
