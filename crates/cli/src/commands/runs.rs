//! `windlass runs`: the runs of a data folder.

use super::{call, carry, logs, several, show};
use crate::answer::{Answer, Exit, Refused};
use crate::args::{self, RunsCommand};
use crate::data;
use crate::show::cells::{Cells, Tone, width};
use crate::show::marks::State;
use crate::show::times::{self, instant};
use crate::show::words::{one_line, shorten};
use crate::show::{Screen, Screens};
use windlass_api::operations::ListRuns;
use windlass_api::types::{Page, RunSummary, Undone};
use windlass_ir::RunStatus;
use windlass_runtime::{Clock, Timestamp};

pub fn run(args: args::Runs, screens: &Screens) -> Result<Answer, Refused> {
    match args.command {
        Some(RunsCommand::Export { names, sqlite: Some(file), json, data }) => {
            carry::export_sqlite(&names, &file, json, &data)
        }
        Some(RunsCommand::Export { mut names, sqlite: None, json, data }) => {
            let folder = names.pop().unwrap_or_default();
            carry::export(&names, folder.as_ref(), json, &data)
        }
        Some(RunsCommand::Import { folder, json, data }) => carry::import(&folder, json, &data),
        None => one_or_all(args, screens),
    }
}

fn one_or_all(args: args::Runs, screens: &Screens) -> Result<Answer, Refused> {
    let args::Runs { json, data, .. } = args;
    match args.run {
        Some(run) if args.logs => {
            logs::run(&args::Logs { run: Some(run), json, data, ..args::Logs::default() })
        }
        Some(name) => {
            show::run(&args::Show { name: Some(name), event: None, all: false, json, data }, screens)
        }
        None => list(&args::Runs { data, ..args }, &screens.stdout),
    }
}

fn list(args: &args::Runs, screen: &Screen) -> Result<Answer, Refused> {
    let page = page(args)?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &page),
        false if page.items.is_empty() => {
            let none = if args.filter.is_empty() { "no runs\n" } else { "no matching runs\n" };
            Answer { stderr: none.into(), ..Answer::new(Exit::Done) }
        }
        false => {
            let stdout = table(&page.items, Clock::Real.now(), screen);
            let more =
                if page.next.is_some() { "there are more: use `--limit COUNT` or `--all`\n" } else { "" };
            Answer { stdout, stderr: more.to_owned(), ..Answer::new(Exit::Done) }
        }
    })
}

/// As many runs as the user requested. One page of the operation may be shorter.
fn page(args: &args::Runs) -> Result<Page<RunSummary>, Refused> {
    const PAGE: usize = 500;
    let folder = data::listed(&args.data);
    let filter = args.filter.members();
    if args.all {
        return Ok(Page { items: several::all(&folder, &filter)?, next: None });
    }
    let mut whole = Page { items: Vec::new(), next: None };
    loop {
        let left = (args.limit as usize).saturating_sub(whole.items.len());
        let limit = Some(left.min(PAGE));
        let page = call(&folder, ListRuns { filter: filter.clone(), limit, cursor: whole.next })?;
        whole = Page { items: [whole.items, page.items].concat(), next: page.next };
        if whole.next.is_none() || whole.items.len() >= args.limit as usize {
            return Ok(whole);
        }
    }
}

/// The columns of the list; the remark behind them takes the rest of the line.
const HEADINGS: [&str; 5] = ["RUN", "STATUS", "STARTED", "TOOK", "WORKFLOW"];

fn table(runs: &[RunSummary], now: Timestamp, screen: &Screen) -> String {
    let rows: Vec<[String; 5]> = runs.iter().map(|run| row(run, now, screen)).collect();
    let column = |number: usize| {
        let widths = rows.iter().map(|row| width(&row[number]));
        widths.max().unwrap_or_default().max(HEADINGS[number].len())
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(column).collect();
    let line = |cells: [&str; 5], tones: [Tone; 5]| {
        let mut line = Cells::default();
        let mut end = 0;
        for ((cell, tone), width) in cells.iter().zip(tones).zip(&widths) {
            line.push(tone, cell);
            end += width + 2;
            line.pad(end);
        }
        line
    };
    let mut lines = vec![line(HEADINGS, [Tone::Dim; 5])];
    for (run, cells) in runs.iter().zip(&rows) {
        let state = State::of_run(run.status, &run.waiting_on);
        let tones = [Tone::Bold, state.tone(), Tone::Plain, Tone::Dim, Tone::Plain];
        let line = line(cells.each_ref().map(String::as_str), tones);
        let tone = if state == State::Failed { Tone::Bad } else { Tone::Dim };
        lines.push(line.with(tone, &remark(run)));
    }
    let room = screen.width.map_or(usize::MAX, usize::from);
    let dots = if screen.unicode { "…" } else { "..." };
    lines
        .into_iter()
        .map(|line| line.cut(room, dots).render(screen.color).trim_end().to_owned() + "\n")
        .collect()
}

fn row(run: &RunSummary, now: Timestamp, screen: &Screen) -> [String; 5] {
    let state = State::of_run(run.status, &run.waiting_on);
    let at = run.started_at.as_deref().or(run.created_at.as_deref()).and_then(instant);
    let took = match (run.duration_seconds, at) {
        (Some(took), _) => times::seconds(took),
        (None, Some(at)) if run.status == RunStatus::Running => times::ticking(now.since(at)),
        (None, _) => String::new(),
    };
    [
        run.run_id.clone(),
        format!("{} {}", state.symbol(screen), run.status),
        at.map(|at| times::clock(at, now)).unwrap_or_default(),
        took,
        one_line(&run.workflow),
    ]
}

/// Why a run failed, or what it waits for.
fn remark(run: &RunSummary) -> String {
    const REMARK_MAX: usize = 100;
    if run.damaged {
        return "damaged: see `windlass doctor`".to_owned();
    }
    let headline = match run.status {
        RunStatus::Success => run.headline.trim_start_matches("succeeded"),
        RunStatus::Failed => run.headline.trim_start_matches("failed"),
        RunStatus::Cancelled => run.headline.trim_start_matches("canceled"),
        RunStatus::Interrupted => "continue it with `windlass resume`",
        RunStatus::Pending | RunStatus::Running | RunStatus::Waiting | RunStatus::Paused => {
            run.headline.trim_start_matches(run.status.word())
        }
    };
    let headline = headline.trim_start_matches([':', ' ']);
    let undone = run.undone.map(|undone| match undone {
        Undone::All => "everything undone",
        Undone::Part => "only partly undone",
    });
    let retry = run.retry_of.as_ref().map(|of| format!("retry of {of}"));
    let parts = [Some(headline.to_owned()), undone.map(str::to_owned), retry];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    shorten(&one_line(&parts.join("; ")), REMARK_MAX).into_owned()
}
