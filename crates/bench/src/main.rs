//! Measures the speed of Windlass relative to the limits of the machine at the same durability.
//!
//! Every part is a file here and can be measured alone: `windlass-bench many`. The results are ratios of figures and
//! limits that were measured alternately; absolute times say more about the disk than about Windlass.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its results")]

mod child;
mod fan_out;
mod flatness;
mod history;
mod json;
mod latency;
mod limits;
mod many;
mod memory;
mod processes;
mod recovery;
mod report;
mod sequential;
mod setting;
mod sizes;
mod start;
mod stats;
mod store;

use clap::{Parser, ValueEnum};
use json::Sizes;
use limits::Limits;
use report::Row;
use setting::Setting;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Measure Windlass relative to the limits of this machine
#[derive(Debug, Parser)]
struct Args {
    /// What to measure [default: everything except the store alone, recorded in bench/history.jsonl]
    parts: Vec<Part>,
    /// Print the table as Markdown
    #[arg(long)]
    markdown: bool,
    /// Print the plain figures as one line of JSON; sizes from SEQ, RUNS, FAN, LAT, MEMRUNS
    #[arg(long, conflicts_with_all = ["parts", "markdown"])]
    json: bool,
    /// Measure in a folder below this one, on its disk [default: the folder for temporary files]
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
    /// Submit to finish of one step
    Latency,
    /// `windlass run` from start to exit
    Start,
    /// Memory, idle and with many runs
    Memory,
    /// Recovery after a kill
    Recovery,
    /// Steps that are processes
    Processes,
    /// The cost of a step by its index
    Flatness,
    /// Large outputs; bytes on the disk
    Sizes,
    /// The store alone
    Store,
}

impl Part {
    const WHOLE: [Self; 10] = [
        Self::Sequential,
        Self::Many,
        Self::FanOut,
        Self::Latency,
        Self::Start,
        Self::Memory,
        Self::Recovery,
        Self::Processes,
        Self::Flatness,
        Self::Sizes,
    ];

    fn measure(self, setting: &Setting) -> Vec<Row> {
        match self {
            Self::Sequential => sequential::measure(setting),
            Self::Many => many::measure(setting),
            Self::FanOut => fan_out::measure(setting),
            Self::Latency => latency::measure(setting),
            Self::Start => start::measure(setting),
            Self::Memory => memory::measure(setting),
            Self::Recovery => recovery::measure(setting),
            Self::Processes => processes::measure(setting),
            Self::Flatness => flatness::measure(setting),
            Self::Sizes => sizes::measure(setting),
            Self::Store => store::measure(setting),
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == "child") {
        child::live(&words[2..]);
        return ExitCode::SUCCESS;
    }
    match bench(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn bench(args: Args) -> Result<(), String> {
    let program = setting::windlass();
    if !program.exists() {
        return Err(format!(
            "{} is measured too, but does not exist: cargo build --release -p windlass-cli",
            program.display()
        ));
    }
    let sizes = Sizes::from_environment()?;
    let folder = args.folder.unwrap_or_else(std::env::temp_dir);
    let setting = Setting::new(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if args.json {
        println!("{}", json::line(&setting, sizes));
        return Ok(());
    }
    let whole = args.parts.is_empty();
    let parts = if whole { &Part::WHOLE } else { &*args.parts };
    let say = |text: &str| {
        if !args.markdown {
            println!("{text}");
        }
    };
    let (begun, mut rows, mut limits) = (Instant::now(), Vec::new(), Limits::now(&setting));
    for part in parts {
        say(&format!("{part:?}\n  before: {}", report::limits(&limits)));
        let (started, measured) = (Instant::now(), part.measure(&setting));
        let took_s = started.elapsed().as_secs_f64();
        limits = Limits::now(&setting);
        let table = report::table(&measured);
        say(&format!("{table}  after:  {}\n  in {took_s:.0} s\n", report::limits(&limits)));
        rows.extend(measured);
    }
    if args.markdown {
        print!("{}", report::markdown(&rows));
    }
    say(&format!("{} in {:.0} s", report::verdict(&rows), begun.elapsed().as_secs_f64()));
    if whole {
        match history::keep(&rows) {
            Ok(said) => say(&said),
            Err(why) => say(&format!("not recorded: {why}")),
        }
    }
    Ok(())
}
