//! Which runs a command acts on: the one that was named, or all that a filter means, once somebody has agreed to that.

use crate::answer::{Answer, Status};
use crate::args::{Filter, Several};
use crate::show::words::{clean, count};
use std::io::{BufRead, IsTerminal, Write};
use windlass_runtime::{Engine, Error, RunRow};

/// All runs that a filter means and that `fits` takes, the last started first.
pub fn meant(engine: &Engine, filter: &Filter, fits: impl Fn(&RunRow) -> bool) -> Result<Vec<RunRow>, Error> {
    Ok(engine.runs(&filter.query(usize::MAX))?.into_iter().filter(fits).collect())
}

/// The runs, a line each.
pub fn list(rows: &[RunRow]) -> String {
    let line = |row: &RunRow| format!("  {}  {}  {}\n", row.run, row.row.status, clean(&row.row.workflow));
    rows.iter().map(line).collect()
}

/// Whether it may be done to these runs: asked on a terminal, refused where there is nobody to ask.
pub fn agreed(verb: &str, rows: &[RunRow], several: &Several) -> Result<(), Answer> {
    if several.yes {
        return Ok(());
    }
    let what = format!("{verb} {}", count(rows.len(), "run"));
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let stderr = format!(
            "{}error[refused]: this would {what}: look at them with `--dry-run`, then say `--yes`\n",
            list(rows)
        );
        return Err(Answer { stderr, ..Answer::new(Status::Refused) });
    }
    let mut line = String::new();
    let asked =
        write!(std::io::stderr(), "{}{what}? [y/N] ", list(rows)).and_then(|()| std::io::stderr().flush());
    let heard = asked.and_then(|()| std::io::stdin().lock().read_line(&mut line));
    match heard.is_ok() && matches!(line.trim(), "y" | "Y" | "yes") {
        true => Ok(()),
        false => Err(Answer { stderr: "nothing was done\n".into(), ..Answer::new(Status::Refused) }),
    }
}
