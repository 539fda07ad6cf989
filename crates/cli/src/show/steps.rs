//! The steps of a run as a tree. Many completed items or rounds are only counted.

use super::Screen;
use super::cells::{Cells, Tone, width};
use super::gates;
use super::marks::State;
use super::times::{clock, instant, length, ticking};
use super::words::{count, one_line, shorten};
use std::collections::BTreeMap;
use windlass_api::report::{Attempt, Handler, Node};
use windlass_api::types::{Wait, WaitKind};
use windlass_ir::StepStatus;
use windlass_runtime::Timestamp;

/// The most items or rounds to list one by one.
const FRAMES_MAX: usize = 12;
/// The widest column of names.
const NAMES_MAX: usize = 40;
const TIME_WIDTH: usize = 7;
/// The longest error message; the header has the whole one.
const MESSAGE_MAX: usize = 160;

pub fn render(tree: &[Node], now: Timestamp, all: bool, screen: &Screen) -> String {
    let mut widths = Widths::default();
    widths.add(tree, 0, all);
    let mut page =
        Page { now, all, screen, names: widths.names.min(NAMES_MAX), words: widths.words, lines: Vec::new() };
    page.list(tree, 0);
    let room = screen.width.map_or(usize::MAX, usize::from);
    let dots = if screen.unicode { "…" } else { "..." };
    let lines = page.lines.into_iter().map(|line| line.cut(room, dots).render(screen.color));
    lines.map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The name of a node below its parent.
fn label(node: &Node) -> String {
    let base = node.id.split('[').next().unwrap_or(&node.id);
    match &node.item {
        Some(item) => one_line(&format!("{base} ({item})")),
        None => one_line(&node.id),
    }
}

/// The widths of the columns.
#[derive(Default)]
struct Widths {
    names: usize,
    words: usize,
}

impl Widths {
    fn add(&mut self, nodes: &[Node], depth: usize, all: bool) {
        let many = !all && nodes.len() > FRAMES_MAX && nodes.iter().any(|node| node.is_frame);
        let quiet = |node: &&Node| !(many && node.is_frame && is_quiet(node));
        for node in nodes.iter().filter(quiet) {
            self.names = self.names.max(depth * 2 + width(&label(node)));
            self.words = self.words.max(node.status.to_string().len());
            self.add(&node.inside, depth + 1, all);
        }
    }
}

struct Page<'a> {
    now: Timestamp,
    all: bool,
    screen: &'a Screen,
    names: usize,
    words: usize,
    lines: Vec<Cells>,
}

impl Page<'_> {
    fn list(&mut self, nodes: &[Node], depth: usize) {
        let frames = nodes.iter().filter(|node| node.is_frame).count();
        if self.all || frames <= FRAMES_MAX {
            return nodes.iter().for_each(|node| self.node(node, depth));
        }
        let mut left: BTreeMap<StepStatus, usize> = BTreeMap::new();
        let mut shown = 0;
        for node in nodes {
            if node.is_frame && (is_quiet(node) || shown == FRAMES_MAX) {
                *left.entry(node.status).or_default() += 1;
            } else {
                shown += 1;
                self.node(node, depth);
            }
        }
        let counts: Vec<String> = left.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let more = if shown > 0 { " more" } else { "" };
        let total: usize = left.values().sum();
        if total > 0 {
            self.below(depth.saturating_sub(1), Tone::Dim, &format!("{total}{more}: {}", counts.join(", ")));
        }
    }

    fn node(&mut self, node: &Node, depth: usize) {
        let state = State::of_step(node.status, node.wait.as_ref());
        let mut line = Cells::default().with(Tone::Plain, &" ".repeat(2 + depth * 2));
        line.push(state.tone(), state.symbol(self.screen));
        let name = match state {
            State::Pending | State::Skipped | State::Cancelled => Tone::Dim,
            _ => Tone::Bold,
        };
        line.push(Tone::Plain, " ");
        line.push(name, &label(node));
        line.pad(4 + self.names);
        line.push(Tone::Plain, "  ");
        line.push(state.tone(), &node.status.to_string());
        line.pad(6 + self.names + self.words);
        let time = self.time(node);
        line.push(Tone::Dim, &format!("  {}{time}", " ".repeat(TIME_WIDTH.saturating_sub(width(&time)))));
        let note = self.note(node);
        let tone = if state == State::Failed { Tone::Bad } else { Tone::Plain };
        if !note.is_empty() {
            line.push(tone, &format!("  {note}"));
        }
        self.lines.push(line);
        self.details(node, depth);
        self.list(&node.inside, depth + 1);
    }

    fn time(&self, node: &Node) -> String {
        match (node.started_at, node.ended_at, node.status) {
            (Some(start), Some(end), _) => length(end.since(start)),
            (Some(start), None, StepStatus::Running | StepStatus::Waiting) => ticking(self.now.since(start)),
            (_, _, _) => String::new(),
        }
    }

    fn note(&self, node: &Node) -> String {
        let mut parts = Vec::new();
        if node.kept {
            parts.push("kept from the earlier run".to_owned());
        }
        match node.undone {
            Some(true) => parts.push("undone".to_owned()),
            Some(false) => parts.push("not undone completely".to_owned()),
            None => {}
        }
        parts.extend(node.handles.as_ref().map(|handles| match handles {
            Handler::Undoes(step) => format!("undoes {}", one_line(step)),
            Handler::After(step) => format!("runs after {} in any case", one_line(step)),
            Handler::TakesOver(step) => format!("takes over from {}", one_line(step)),
        }));
        if node.attempts > 1 {
            parts.push(count(node.attempts as usize, "attempt"));
        }
        let frames: Vec<&Node> = node.inside.iter().filter(|inner| inner.is_frame).collect();
        let failed = frames.iter().filter(|frame| frame.status == StepStatus::Failed).count();
        let is_items = frames.iter().any(|frame| frame.item.is_some()) || node.rounds == 0;
        if !frames.is_empty() && is_items {
            let done = frames.iter().filter(|frame| is_over(frame.status)).count();
            parts.push(match (node.status, failed) {
                (StepStatus::Running, _) => format!("{done} of {} started are done", frames.len()),
                (_, 0) => count(frames.len(), "item"),
                (_, failed) => format!("{failed} of {} failed", count(frames.len(), "item")),
            });
        }
        parts.extend(node.decided.as_deref().map(one_line));
        if node.abandoned {
            parts.push("did not stop in time".to_owned());
        }
        parts.extend(node.because.as_deref().map(one_line));
        match (&node.gate, &node.wait) {
            (Some(gate), wait) => parts.extend(gates::headline(gate, wait.is_some(), self.now)),
            (None, Some(wait)) => parts.push(wait_words(wait, self.now)),
            (None, None) => {}
        }
        if node.gate.as_ref().is_none_or(|gate| gate.decided.is_none()) {
            parts.extend(
                node.error.as_ref().map(|error| {
                    format!("{}: {}", error.code, shorten(&one_line(&error.message), MESSAGE_MAX))
                }),
            );
        }
        parts.join(if self.screen.unicode { " · " } else { ", " })
    }

    /// The lines below a step: its failed attempts, and everything about an open gate.
    fn details(&mut self, node: &Node, depth: usize) {
        for attempt in &node.failed {
            let text = self.attempt(attempt);
            self.below(depth, Tone::Dim, &text);
        }
        if let Some(gate) = &node.gate {
            let lines = match node.wait.is_some() {
                true => gates::details(gate, node.file.as_ref(), self.now, self.screen),
                false => gates::votes(gate, self.now),
            };
            lines.iter().for_each(|line| self.below(depth, Tone::Dim, line));
        }
    }

    fn attempt(&self, attempt: &Attempt) -> String {
        let Attempt { number, started_at, ended_at, error, delay } = attempt;
        let (at, took) = (clock(*started_at, self.now), length(ended_at.since(*started_at)));
        let message = shorten(&one_line(&error.message), MESSAGE_MAX).into_owned();
        let next = delay.map(|delay| format!("; the next one {} later", length(delay))).unwrap_or_default();
        format!("attempt {number} at {at} failed after {took}: {}: {message}{next}", error.code)
    }

    fn below(&mut self, depth: usize, tone: Tone, text: &str) {
        let line = Cells::default().with(Tone::Plain, &" ".repeat(6 + depth * 2));
        self.lines.push(line.with(tone, text));
    }
}

fn is_over(status: StepStatus) -> bool {
    match status {
        StepStatus::Success
        | StepStatus::Failed
        | StepStatus::Recovered
        | StepStatus::Skipped
        | StepStatus::Cancelled => true,
        StepStatus::Pending | StepStatus::Running | StepStatus::Waiting => false,
    }
}

/// Whether counting this item or round is enough.
fn is_quiet(node: &Node) -> bool {
    match node.status {
        StepStatus::Success | StepStatus::Skipped | StepStatus::Pending | StepStatus::Cancelled => true,
        StepStatus::Failed | StepStatus::Recovered | StepStatus::Running | StepStatus::Waiting => false,
    }
}

/// What a step or a run waits for.
pub fn wait_words(wait: &Wait, now: Timestamp) -> String {
    let message = wait.message.as_ref().and_then(|message| message.as_str()).map(one_line);
    let until = wait.until.as_deref().and_then(instant);
    let left = until.map(|until| ticking(until.since(now)));
    match (wait.kind, message) {
        (WaitKind::Gate, _) => "needs a decision".to_owned(),
        (WaitKind::Signal, name) => {
            let left = left.map(|left| format!(", for {left} at most")).unwrap_or_default();
            format!("waits for the signal `{}`{left}", name.unwrap_or_default())
        }
        (WaitKind::Run, run) => format!("waits for run {}", run.unwrap_or_default()),
        (WaitKind::Slot, keys) => {
            let keys = keys.filter(|keys| !keys.is_empty()).map(|keys| format!(" of {keys}"));
            let position = wait.position.map(|position| format!(", number {position} in the queue"));
            let since = wait.since.as_deref().and_then(instant);
            let since = since.map(|since| format!(", since {}", clock(since, now)));
            let parts = [Some("waits for a slot".to_owned()), keys, position, since];
            parts.into_iter().flatten().collect()
        }
        (WaitKind::Timer, message) => {
            let what = match wait.step {
                Some(_) => message.unwrap_or_else(|| "waits".to_owned()),
                None => "waits for its start time".to_owned(),
            };
            match (until, left) {
                (Some(until), Some(left)) => format!("{what}, until {} ({left} left)", clock(until, now)),
                (_, _) => what,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, status: StepStatus, is_frame: bool, inside: Vec<Node>) -> Node {
        Node { is_frame, inside, ..Node::new(id.into(), "shell".into(), status) }
    }

    #[test]
    fn many_items_are_counted_and_failed_ones_are_shown() {
        let items = |count: usize| {
            let items = (0..count).map(|number| {
                let state = if number == 7 { StepStatus::Failed } else { StepStatus::Success };
                node(&format!("each[{number}]"), state, true, Vec::new())
            });
            vec![node("each", StepStatus::Failed, false, items.collect())]
        };
        let text = render(&items(10_000), Timestamp(0), false, &Screen::default());
        assert_eq!(
            text,
            "  x each       failed           1 of 10000 items failed\n    x each[7]  failed\n      9999 more: 9999 success\n"
        );
        assert_eq!(render(&items(9), Timestamp(0), false, &Screen::default()).lines().count(), 10);
        assert_eq!(render(&items(99), Timestamp(0), true, &Screen::default()).lines().count(), 100);
    }

    #[test]
    fn control_sequences_in_names_are_escaped() {
        let nodes = [node("a\u{1b}[2J", StepStatus::Success, false, Vec::new())];
        assert!(!render(&nodes, Timestamp(0), false, &Screen::default()).contains('\u{1b}'));
    }
}
