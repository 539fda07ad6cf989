//! How fast Windlass is beside what the machine allows at the same durability.
//!
//! Every part is a file here and can be measured alone: `windlass-bench many`. What counts is ratios of figures and limits that
//! were measured in turns; times alone say more about the disk of the day than about Windlass.
#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

mod fan_out;
mod limits;
mod many;
mod report;
mod sequential;
mod setting;
mod stats;

use clap::{Parser, ValueEnum};
use limits::Limits;
use report::Row;
use setting::Setting;
use std::path::PathBuf;

/// Measure Windlass beside the limits of this machine
#[derive(Debug, Parser)]
struct Args {
    /// What to measure [default: everything]
    parts: Vec<Part>,
    /// Print the table as Markdown
    #[arg(long)]
    markdown: bool,
    /// Measure in a folder below this one, on the disk that is asked about [default: where temporary files go]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// One run of many steps
    Sequential,
    /// Many runs in flight
    Many,
    /// One run with many items
    FanOut,
}

impl Part {
    fn measure(self, setting: &Setting) -> Vec<Row> {
        match self {
            Self::Sequential => sequential::measure(setting),
            Self::Many => many::measure(setting),
            Self::FanOut => fan_out::measure(setting),
        }
    }
}

fn main() {
    let args = Args::parse();
    let setting = Setting::new(&args.folder.unwrap_or_else(std::env::temp_dir));
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    let (mut rows, mut limits) = (Vec::new(), Limits::now(&setting));
    let say = |text: &str| {
        if !args.markdown {
            println!("{text}");
        }
    };
    for part in parts {
        say(&format!("{part:?}\n  before: {}", report::limits(&limits)));
        let measured = part.measure(&setting);
        limits = Limits::now(&setting);
        say(&format!("{}  after:  {}\n", report::table(&measured), report::limits(&limits)));
        rows.extend(measured);
    }
    if args.markdown {
        print!("{}", report::markdown(&rows));
    }
}
