//! Renders output for people: terminal abilities, findings with excerpts, labeled fields, runs and their steps. `marks` and `times`
//! are the common language of all of them.

pub mod cells;
pub mod diagnostics;
mod excerpt;
pub mod fields;
pub mod gates;
pub mod live;
pub mod marks;
pub mod names;
pub mod progress;
pub mod steps;
pub mod times;
pub mod words;
pub mod workflow;

use clap::builder::styling::Style;
use std::io::IsTerminal;

/// The abilities of one output stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Screen {
    pub color: bool,
    pub unicode: bool,
    /// The width to wrap lines at; none if a program reads the output.
    pub width: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Screens {
    pub stdout: Screen,
    pub stderr: Screen,
}

impl Screens {
    pub fn with_colors(stdout: bool, stderr: bool) -> Self {
        let mut probe = comfy_table::Table::new();
        let out = Screen::new(stdout, std::io::stdout().is_terminal(), probe.width());
        let err = Screen::new(stderr, std::io::stderr().is_terminal(), probe.use_stderr().width());
        Self { stdout: out, stderr: err }
    }
}

impl Screen {
    fn new(color: bool, terminal: bool, width: Option<u16>) -> Self {
        /// The smallest width to assume, because excerpts need some room.
        const WIDTH_MIN: u16 = 40;
        /// Longer lines of prose are hard to read.
        const WIDTH_MAX: u16 = 120;
        let width = width.filter(|_| terminal).map(|width| width.clamp(WIDTH_MIN, WIDTH_MAX));
        Self { color, unicode: terminal && speaks_unicode(), width }
    }

    pub fn bold(&self, text: &str) -> String {
        let style = Style::new().bold();
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Checks the locale variables in POSIX order.
fn speaks_unicode() -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    let locale =
        variables.map(|value| value.to_string_lossy().to_lowercase()).find(|value| !value.is_empty());
    cfg!(windows) || locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}
