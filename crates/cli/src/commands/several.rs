//! Acts on every run that a filter selects, after the user has confirmed.

use super::call;
use crate::answer::Refused;
use crate::args::Several;
use crate::show::words::count;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use windlass_api::operations::{ListRuns, RunFilter};
use windlass_api::types::RunSummary;
use windlass_api::{Code, Refusal};

/// Every run that the filter selects, the last started first.
pub fn all(folder: &Path, filter: &RunFilter) -> Result<Vec<RunSummary>, Refusal> {
    const PAGE: usize = 500;
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = call(folder, ListRuns { filter: filter.clone(), limit: Some(PAGE), cursor })?;
        all.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Asks for confirmation on a terminal; refuses without one.
pub fn agreed(verb: &str, runs: &[String], several: &Several) -> Result<(), Refused> {
    if several.yes {
        return Ok(());
    }
    let what = format!("{verb} {}", count(runs.len(), "run"));
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let refusal = Refusal::new(Code::BadRequest, format!("this would {what}"));
        return Err(refusal.help("list them with `--dry-run`, then confirm with `--yes`").into());
    }
    let list: String = runs.iter().map(|run| format!("  {run}\n")).collect();
    ask(&format!("{list}{what}? [y/N] "))
}

/// Asks for confirmation on a terminal. Without one, the command itself is the confirmation.
pub fn confirmed(verb: &str, json: bool) -> Result<(), Refused> {
    match !json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        true => ask(&format!("{verb}? [y/N] ")),
        false => Ok(()),
    }
}

fn ask(question: &str) -> Result<(), Refused> {
    let mut line = String::new();
    let asked = write!(std::io::stderr(), "{question}").and_then(|()| std::io::stderr().flush());
    let heard = asked.and_then(|()| std::io::stdin().lock().read_line(&mut line));
    match heard.is_ok() && matches!(line.trim(), "y" | "Y" | "yes") {
        true => Ok(()),
        false => Err(Refusal::new(Code::BadRequest, "nothing was done").into()),
    }
}
