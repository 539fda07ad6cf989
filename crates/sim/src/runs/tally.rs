//! Totals, and a table of faults by the state of the run.

use std::fmt::{Display, Formatter, Result};
use windlass_engine::Presence;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Crash,
    FailedWrite,
    LateMail,
    Cancel,
    ClockForward,
    ClockBack,
    LostJob,
    SlowLoad,
    Unusable,
}

impl Fault {
    pub const ALL: [(Self, &str); 9] = [
        (Self::Crash, "crash"),
        (Self::FailedWrite, "failed write"),
        (Self::LateMail, "late mail"),
        (Self::Cancel, "cancel"),
        (Self::ClockForward, "clock set forward"),
        (Self::ClockBack, "clock set back"),
        (Self::LostJob, "lost job"),
        (Self::SlowLoad, "slow load"),
        (Self::Unusable, "unusable journal"),
    ];
}

/// The totals over a range of seeds.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub steps: u64,
    pub records: u64,
    pub lost_records: u64,
    pub processes: u64,
    pub runs: u64,
    pub jobs: u64,
    pub adopted: u64,
    pub called: u64,
    pub evicted: u64,
    pub replies: u64,
    pub refused: u64,
    pub timers: u64,
    pub quiet: u64,
    pub jumps: u64,
    pub parked: u64,
    pub removed: u64,
    /// How often each fault hit a resting, loading or live run.
    pub faults: [[u64; 3]; 9],
}

impl Tally {
    pub fn met(&mut self, fault: Fault, presence: Presence) {
        let column = match presence {
            Presence::Resting => 0,
            Presence::Loading => 1,
            Presence::Live => 2,
        };
        self.faults[fault as usize][column] += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts().into_iter().zip(other.clone().counts()) {
            *sum.1 += *count.1;
        }
        for (sum, row) in self.faults.iter_mut().zip(other.faults) {
            sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
        }
    }

    fn counts(&mut self) -> [(&'static str, &mut u64); 16] {
        [
            ("steps", &mut self.steps),
            ("records", &mut self.records),
            ("records lost in crashes", &mut self.lost_records),
            ("processes", &mut self.processes),
            ("runs", &mut self.runs),
            ("jobs", &mut self.jobs),
            ("adopted jobs", &mut self.adopted),
            ("called runs", &mut self.called),
            ("evictions", &mut self.evicted),
            ("replies", &mut self.replies),
            ("refusals", &mut self.refused),
            ("timers fired", &mut self.timers),
            ("quiet moments checked", &mut self.quiet),
            ("virtual jumps", &mut self.jumps),
            ("parked runs", &mut self.parked),
            ("removed runs", &mut self.removed),
        ]
    }
}

/// Markdown: the totals, then the table of faults.
impl Display for Tally {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut tally = self.clone();
        for (name, count) in tally.counts() {
            writeln!(f, "{name}: {count}")?;
        }
        writeln!(f, "\n| fault | resting | loading | live |\n|---|---:|---:|---:|")?;
        for ((_, name), [resting, loading, live]) in Fault::ALL.iter().zip(self.faults) {
            writeln!(f, "| {name} | {resting} | {loading} | {live} |")?;
        }
        Ok(())
    }
}
