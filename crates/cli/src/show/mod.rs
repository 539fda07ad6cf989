//! How things look to people: what the terminal can do, findings with their excerpts, labelled fields, a run that is watched.

mod cells;
pub mod diagnostics;
mod excerpt;
pub mod fields;
pub mod live;
pub mod progress;
pub mod steps;
pub mod words;
pub mod workflow;

use clap::builder::styling::Style;
use std::io::IsTerminal;

/// What one output stream can show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Screen {
    pub colour: bool,
    pub unicode: bool,
    /// Lines are broken to fit; none means that a program reads along and lines stay whole.
    pub width: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Screens {
    pub stdout: Screen,
    pub stderr: Screen,
}

impl Screens {
    pub fn with_colours(stdout: bool, stderr: bool) -> Self {
        let mut probe = comfy_table::Table::new();
        let out = Screen::new(stdout, std::io::stdout().is_terminal(), probe.width());
        let err = Screen::new(stderr, std::io::stderr().is_terminal(), probe.use_stderr().width());
        Self { stdout: out, stderr: err }
    }
}

impl Screen {
    fn new(colour: bool, terminal: bool, width: Option<u16>) -> Self {
        /// A narrower terminal is treated as this wide: excerpts need some room.
        const WIDTH_MIN: u16 = 40;
        /// Longer lines of prose are hard to read.
        const WIDTH_MAX: u16 = 120;
        let width = width.filter(|_| terminal).map(|width| width.clamp(WIDTH_MIN, WIDTH_MAX));
        Self { colour, unicode: terminal && speaks_unicode(), width }
    }

    pub fn bold(&self, text: &str) -> String {
        let style = Style::new().bold();
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// The locale decides, in the order in which POSIX asks its variables.
fn speaks_unicode() -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    let locale =
        variables.map(|value| value.to_string_lossy().to_lowercase()).find(|value| !value.is_empty());
    cfg!(windows) || locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}
