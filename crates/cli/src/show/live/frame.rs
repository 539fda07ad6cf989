//! Which lines show a run on a screen of some size. What does not fit is folded: finished parts first, then what is to come, then
//! even what is at work; the lines never outgrow the screen.

use super::question::Question;
use super::tree::{State, Tally, Tree};
use crate::show::Screen;
use crate::show::cells::{Cells, Tone, fit, width, wrap};
use crate::show::words::one_line;
use windlass_dialects::DIALECTS;
use windlass_ir::workflow::Kind;
use windlass_ir::{Duration, Value};
use windlass_runtime::ids;
use windlass_runtime::{Decision, Outcome, Path, RunId, RunPhase, StepPhase, StepView, Timestamp, View};

/// The cells of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

/// All that a frame shows.
#[derive(Debug)]
pub struct Scene<'a> {
    pub run: &'a RunId,
    pub view: &'a View,
    pub tree: &'a Tree,
    pub now: Timestamp,
    /// Grows from frame to frame, so that what is at work is seen to move; none in a picture that stays.
    pub beat: Option<usize>,
    pub question: Option<&'a Question>,
    /// What the last line says to whoever might press a key.
    pub hint: &'a str,
    pub screen: &'a Screen,
}

/// How much is shown of what is not at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    All,
    /// Finished scopes are one line.
    Scopes,
    /// Only so many steps before and after one that is at work.
    Near(usize),
    /// No more than fits, wherever that ends.
    Cut,
}

const DETAILS: [Detail; 6] =
    [Detail::All, Detail::Scopes, Detail::Near(3), Detail::Near(1), Detail::Near(0), Detail::Cut];

/// How many items of a fan-out are shown that are at work, and how many that failed. All are counted.
const ACTIVE_SHOWN: usize = 8;
const FAILED_SHOWN: usize = 3;

enum Row {
    Step {
        node: usize,
        depth: usize,
    },
    Fold {
        depth: usize,
        folded: Tally,
    },
    /// So many more are at work.
    More {
        depth: usize,
        left: usize,
    },
}

/// The lines, each within the width, no more than the height.
pub fn frame(scene: &Scene<'_>, size: Size) -> Vec<Cells> {
    let width_max = size.width.saturating_sub(1).max(1);
    let question = scene.question.map(|question| scene.question(question, width_max)).unwrap_or_default();
    let room = size.height.saturating_sub(2 + question.len()).max(1);
    let rows = DETAILS.into_iter().find_map(|detail| Rows::of(scene, detail, room)).unwrap_or_default();
    let mut lines = vec![scene.header(width_max)];
    lines.extend(scene.rows(&rows, width_max));
    lines.extend(question);
    lines.push(scene.footer(width_max));
    // On a screen of a few lines the last ones say most.
    let over = lines.len().saturating_sub(size.height.max(1));
    lines.drain(..over);
    let dots = scene.dots();
    lines.into_iter().map(|line| line.cut(width_max, dots)).collect()
}

/// Collects rows until there are too many.
struct Rows<'a> {
    scene: &'a Scene<'a>,
    detail: Detail,
    room: usize,
    rows: Vec<Row>,
}

/// There are more rows than room.
struct Full;

impl<'a> Rows<'a> {
    fn of(scene: &'a Scene<'a>, detail: Detail, room: usize) -> Option<Vec<Row>> {
        let mut rows = Self { scene, detail, room, rows: Vec::new() };
        match rows.below(0, 0) {
            Ok(()) => Some(rows.rows),
            Err(Full) if detail != Detail::Cut => None,
            Err(Full) => {
                rows.rows.truncate(room.saturating_sub(1));
                let is_active = |row: &Row| match row {
                    Row::Step { node, .. } => rows.is_leaf_at_work(*node),
                    Row::Fold { .. } | Row::More { .. } => false,
                };
                let shown = rows.rows.iter().filter(|row| is_active(row)).count();
                let total = &scene.tree.total;
                let active = [State::Running, State::Waiting, State::Asking].map(|state| total.of(state));
                let left = (active.iter().sum::<u32>() as usize).saturating_sub(shown);
                rows.rows.push(Row::More { depth: 0, left });
                Some(rows.rows)
            }
        }
    }

    fn is_leaf_at_work(&self, node: usize) -> bool {
        let face = self.scene.face(node);
        self.scene.tree.node(face).children.is_empty() && self.scene.tree.node(face).state.is_active()
    }

    fn push(&mut self, row: Row) -> Result<(), Full> {
        self.rows.push(row);
        if self.rows.len() > self.room { Err(Full) } else { Ok(()) }
    }

    /// The rows of all that is inside a node.
    fn below(&mut self, node: usize, depth: usize) -> Result<(), Full> {
        let inside = self.scene.tree.node(self.scene.face(node));
        if inside.children.first().is_some_and(|child| self.scene.tree.node(*child).is_frame) {
            return self.frames(self.scene.face(node), depth);
        }
        let kids = self.scene.kids(node);
        let is_loud = |kid: &usize| {
            let state = self.scene.tree.node(*kid).state;
            state.is_active() || state == State::Failed
        };
        let loud: Vec<bool> = kids.iter().map(is_loud).collect();
        let mut folded = Vec::new();
        for (at, kid) in kids.into_iter().enumerate() {
            let near = |reach: usize| loud[at.saturating_sub(reach)..].iter().take(reach * 2 + 1).any(|l| *l);
            let shown = match self.detail {
                Detail::All | Detail::Scopes => true,
                Detail::Near(reach) => near(reach),
                Detail::Cut => loud[at],
            };
            if !shown {
                folded.push(kid);
                continue;
            }
            self.fold(&mut folded, depth)?;
            self.push(Row::Step { node: kid, depth })?;
            let open = self.detail == Detail::All || self.scene.tree.node(kid).state.is_active();
            if open || loud[at] && self.detail == Detail::Scopes {
                self.below(kid, depth + 1)?;
            }
        }
        self.fold(&mut folded, depth)
    }

    /// Of items and rounds only those at work, and some of those that failed; the rest is counted where they belong to.
    fn frames(&mut self, owner: usize, depth: usize) -> Result<(), Full> {
        let node = self.scene.tree.node(owner);
        let failed = node.failed.iter().take(FAILED_SHOWN);
        let shown: Vec<usize> = node.active.iter().take(ACTIVE_SHOWN).chain(failed).copied().collect();
        for frame in shown {
            self.push(Row::Step { node: frame, depth })?;
            self.below(frame, depth + 1)?;
        }
        match node.active.len().saturating_sub(ACTIVE_SHOWN) {
            0 => Ok(()),
            left => self.push(Row::More { depth, left }),
        }
    }

    /// One line for those that were left out. A single one needs no more room itself.
    fn fold(&mut self, folded: &mut Vec<usize>, depth: usize) -> Result<(), Full> {
        let left_out = std::mem::take(folded);
        match left_out.as_slice() {
            [] => Ok(()),
            [single] => self.push(Row::Step { node: *single, depth }),
            several => {
                let mut tally = Tally::default();
                several.iter().for_each(|kid| tally.add(self.scene.tree.node(*kid).state));
                self.push(Row::Fold { depth, folded: tally })
            }
        }
    }
}

impl Scene<'_> {
    fn dots(&self) -> &'static str {
        if self.screen.unicode { "…" } else { "..." }
    }

    fn dot(&self) -> &'static str {
        if self.screen.unicode { " · " } else { ", " }
    }

    /// The node that does the work of this one: itself, or what is shown as one with it.
    fn face(&self, node: usize) -> usize {
        let inner = self.tree.node(node).children.iter().copied().find(|child| {
            let child = self.tree.node(*child);
            child.is_inner && child.state != State::Hidden
        });
        inner.map_or(node, |inner| self.face(inner))
    }

    /// The steps that are shown below this one.
    fn kids(&self, node: usize) -> Vec<usize> {
        let mut kids = Vec::new();
        for child in &self.tree.node(node).children {
            let inside = self.tree.node(*child);
            match inside.is_inner {
                _ if inside.state == State::Hidden => {}
                true => kids.extend(self.kids(*child)),
                false => kids.push(*child),
            }
        }
        kids
    }

    fn ended(&self) -> bool {
        matches!(self.view.phase(), RunPhase::Ended(_))
    }

    fn header(&self, width_max: usize) -> Cells {
        let header = &self.view.program().plan.header;
        let name = if header.name.is_empty() { &header.id } else { &header.name };
        let mut line = Cells::default().with(Tone::Bold, &one_line(name));
        line.push(Tone::Dim, &format!("{}{}", self.dot(), self.run));
        if self.view.about().get("scripted") == Some(&Value::Bool(true)) {
            line.push(Tone::Dim, &format!("{}scripted", self.dot()));
        }
        let (paused, cancelled) = (self.view.is_paused(), self.view.cancel_requested());
        let state = match (self.view.phase(), paused, cancelled) {
            (RunPhase::Ended(_), ..) => "",
            (_, _, true) => "being cancelled",
            (_, true, _) => "paused",
            (RunPhase::Pending, ..) => "waits for its turn",
            (RunPhase::Running, ..) => "",
        };
        if !state.is_empty() {
            line.push(Tone::Ask, &format!("{}{state}", self.dot()));
        }
        let end = self.view.ended_at().unwrap_or(self.now);
        let took =
            self.view.started_at().map(|start| took(end.since(start), self.ended())).unwrap_or_default();
        let room = width_max.saturating_sub(width(&took) + 2);
        let mut line = line.cut(room, self.dots());
        line.pad(width_max.saturating_sub(width(&took)));
        line.with(Tone::Dim, &took)
    }

    /// How many stand how, and what can be done about it.
    fn footer(&self, width_max: usize) -> Cells {
        let mut line = Cells::default().with(Tone::Plain, " ");
        self.counts(&self.tree.total, &mut line);
        let gap = width_max.saturating_sub(line.width() + width(self.hint));
        if !self.hint.is_empty() && gap >= 2 {
            line.pad(line.width() + gap);
            line.push(Tone::Dim, self.hint);
        }
        line
    }

    fn counts(&self, tally: &Tally, line: &mut Cells) {
        let done = tally.of(State::Done) + tally.of(State::Recovered);
        let parts = [
            (tally.of(State::Failed), "failed", Tone::Bad),
            (done, "done", Tone::Good),
            (tally.of(State::Running), "running", Tone::Busy),
            (tally.of(State::Asking), "to decide", Tone::Ask),
            (tally.of(State::Waiting), "waiting", Tone::Plain),
            (tally.of(State::Skipped), "skipped", Tone::Dim),
            (tally.of(State::Cancelled), "cancelled", Tone::Dim),
            (if self.ended() { 0 } else { tally.of(State::Pending) }, "to come", Tone::Dim),
        ];
        let mut between = "";
        for (count, word, tone) in parts.into_iter().filter(|(count, ..)| *count > 0) {
            line.push(Tone::Dim, between);
            line.push(tone, &format!("{count} {word}"));
            between = self.dot();
        }
    }

    fn mark(&self, state: State) -> (&'static str, Tone) {
        const BEATS: [&str; 8] = ["⠇", "⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠏"];
        let (fine, plain, tone) = match state {
            State::Pending | State::Hidden => ("○", ".", Tone::Dim),
            State::Running => (self.beat.map_or("●", |beat| BEATS[beat % BEATS.len()]), ">", Tone::Busy),
            State::Waiting => ("◷", "~", Tone::Plain),
            State::Asking => ("◆", "?", Tone::Ask),
            State::Done => ("✓", "+", Tone::Good),
            State::Recovered => ("↻", "~", Tone::Good),
            State::Failed => ("✗", "x", Tone::Bad),
            State::Skipped => ("–", "-", Tone::Dim),
            State::Cancelled => ("⊘", "!", Tone::Dim),
        };
        (if self.screen.unicode { fine } else { plain }, tone)
    }

    fn rows(&self, rows: &[Row], width_max: usize) -> Vec<Cells> {
        /// How far the names of steps may push what stands beside them.
        const NAMES_PART: usize = 45;
        const NAMES_MIN: usize = 20;
        let indent = |depth: usize| 1 + 2 * depth.min(width_max / 8);
        let names_max = (width_max * NAMES_PART / 100).max(12).min(width_max);
        let name_end = |row: &Row| match row {
            Row::Step { node, depth } => indent(*depth) + 2 + width(&self.label(*node)),
            Row::Fold { .. } | Row::More { .. } => 0,
        };
        // So wide at least that the columns beside do not move with every step.
        let column = rows.iter().map(name_end).max().unwrap_or(0).max(NAMES_MIN).min(names_max);
        let line = |row: &Row| match row {
            Row::Step { node, depth } => self.step(*node, indent(*depth), column, width_max),
            Row::Fold { depth, folded } => {
                let mut line = Cells::default().with(Tone::Plain, &" ".repeat(indent(*depth)));
                line.push(Tone::Dim, &format!("{} ", if self.screen.unicode { "⋮" } else { ":" }));
                self.counts(folded, &mut line);
                line
            }
            Row::More { depth, left } => {
                let text = format!("{}{} {left} more at work", " ".repeat(indent(*depth)), self.dots());
                Cells::default().with(Tone::Dim, &text)
            }
        };
        rows.iter().map(line).collect()
    }

    /// One step: its state, its name, how long it takes, and the one thing worth saying about it.
    fn step(&self, node: usize, indent: usize, column: usize, width_max: usize) -> Cells {
        let face = self.face(node);
        let Some((_, step)) = self.tree.step(self.view, node) else { return Cells::default() };
        let Some((_, doing)) = self.tree.step(self.view, face) else { return Cells::default() };
        let own = self.tree.node(node).state;
        // What is at work inside tells more than that something is.
        let state = match (own, self.tree.node(face).state) {
            (State::Running, inner @ (State::Waiting | State::Asking)) => inner,
            (own, _) => own,
        };
        let (mark, tone) = self.mark(state);
        let mut line = Cells::default().with(Tone::Plain, &" ".repeat(indent));
        line.push(tone, mark);
        let label = fit(&self.label(node), column.saturating_sub(indent + 2), self.dots());
        let name_tone = match state {
            State::Pending | State::Skipped | State::Cancelled | State::Hidden => Tone::Dim,
            State::Asking => Tone::Bold,
            State::Running | State::Waiting | State::Done | State::Recovered | State::Failed => Tone::Plain,
        };
        line.push(name_tone, &format!(" {label}"));
        let start = step.started_at.or(doing.started_at).filter(|_| state != State::Pending);
        let time = start.map(|start| {
            let end = step.ended_at.unwrap_or(self.now);
            took(end.since(start), step.ended_at.is_some())
        });
        let time = time.unwrap_or_default();
        let note = self.note(face, &step, &doing);
        if time.is_empty() && note.is_empty() {
            return line;
        }
        line.pad(column + TIME_WIDTH.saturating_sub(width(&time)));
        line.push(Tone::Dim, &time);
        let room = width_max.saturating_sub(line.width() + 2);
        if !note.is_empty() && room > 3 {
            let tone = if state == State::Failed { Tone::Bad } else { Tone::Dim };
            line.push(tone, &format!("  {}", fit(&note, room, self.dots())));
        }
        line
    }

    fn label(&self, node: usize) -> String {
        let Some((path, step)) = self.tree.step(self.view, node) else { return String::new() };
        match (step.frame, &self.view.plan_step(&step).kind) {
            (Some(number), Kind::Repeat(_)) => format!("round {}", number + 1),
            (Some(number), _) => format!("[{number}]{}", self.item(path, number)),
            (None, _) => one_line(&ids::name(DIALECTS, self.view, path).plain),
        }
    }

    /// What an item is, where that can be said in a few words.
    fn item(&self, path: &Path, number: u32) -> String {
        const ITEM_WIDTH_MAX: usize = 24;
        let owner = path.frames().last().and_then(|(_, owner, _)| self.view.step(&owner));
        let items = match owner.and_then(|owner| owner.entered) {
            Some(Decision::Items { items: Value::List(items), .. }) => items.get(number as usize),
            _ => None,
        };
        let text = match items {
            Some(Value::Text(text)) => text.to_string(),
            Some(value @ (Value::Int(_) | Value::Float(_))) => value.to_json_text().unwrap_or_default(),
            _ => return String::new(),
        };
        format!(" {}", fit(&one_line(&text), ITEM_WIDTH_MAX, self.dots()))
    }

    fn note(&self, face: usize, step: &StepView<'_>, doing: &StepView<'_>) -> String {
        let left = |until: Timestamp| took(until.since(self.now), false);
        let known = self.view.plan_step(doing);
        let said = || {
            let said = self.tree.node(face).said.as_deref();
            said.map(|said| one_line(&String::from_utf8_lossy(said)))
        };
        match (&step.phase, &doing.phase) {
            (StepPhase::Settled(Outcome::Failed(failure)), _) => {
                one_line(&format!("{}: {}", failure.class, failure.message))
            }
            (StepPhase::Settled(Outcome::Skipped(skip)), _) => {
                let because = skip.because_of.as_ref().map(|step| format!(": {step}")).unwrap_or_default();
                one_line(&format!("{}{because}", skip.reason.word().replace('_', " ")))
            }
            (StepPhase::Settled(_), _) => tried(doing).unwrap_or_else(|| self.progress(doing, face)),
            (_, StepPhase::Backoff { until }) => {
                let why = said().map(|why| format!(": {why}")).unwrap_or_default();
                match doing.attempts {
                    0 => format!("again in {}", left(*until)),
                    attempt => format!("attempt {} in {}{why}", attempt + 1, left(*until)),
                }
            }
            (_, StepPhase::Queued { .. }) => "waits for its turn".to_owned(),
            (_, StepPhase::Joined) => "the same work is done elsewhere".to_owned(),
            (_, StepPhase::Waiting { signal: Some(signal), .. }) => {
                one_line(&format!("waits for the signal {signal}"))
            }
            (_, StepPhase::Waiting { signal: None, until }) => {
                until.map(|until| format!("{} left", left(until))).unwrap_or_default()
            }
            (_, StepPhase::Asking { .. }) => match &known.kind {
                Kind::Gate(gate) if !gate.approvers.is_empty() => {
                    one_line(&format!("for {} to decide", gate.approvers.join(" or ")))
                }
                _ => "to be decided".to_owned(),
            },
            (_, StepPhase::Running) => {
                let parts = [tried(doing), said()].into_iter().flatten();
                parts.collect::<Vec<_>>().join(self.dot())
            }
            (_, StepPhase::Inside) => self.progress(doing, face),
            (_, StepPhase::Dormant | StepPhase::Pending | StepPhase::Settled(_)) => String::new(),
        }
    }

    /// How far a scope has come.
    fn progress(&self, step: &StepView<'_>, node: usize) -> String {
        let kids = &self.tree.node(node).kids;
        match (step.frame, step.entered) {
            (None, Some(Decision::Items { items, .. })) => {
                let total = match items {
                    Value::List(items) => items.len(),
                    _ => 0,
                };
                self.items(kids, total, matches!(step.phase, StepPhase::Settled(_)))
            }
            (None, Some(Decision::Round { .. })) => match step.phase {
                StepPhase::Settled(_) => format!("{} rounds", step.rounds),
                _ => format!("round {}", step.rounds),
            },
            (None, Some(Decision::Arm { arm, .. })) => one_line(arm),
            _ => String::new(),
        }
    }

    fn items(&self, kids: &Tally, total: usize, settled: bool) -> String {
        let done = kids.of(State::Done) + kids.of(State::Recovered) + kids.of(State::Skipped);
        let active = kids.of(State::Running) + kids.of(State::Waiting) + kids.of(State::Asking);
        let (failed, cancelled) = (kids.of(State::Failed), kids.of(State::Cancelled));
        let counts = [(failed, "failed"), (active, "at work"), (cancelled, "cancelled")];
        let more = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{}{count} {word}", self.dot()));
        let bar = if settled { String::new() } else { self.bar((done + failed + cancelled) as usize, total) };
        format!("{bar}{done}/{total} done{}", more.collect::<String>())
    }

    fn bar(&self, done: usize, total: usize) -> String {
        const CELLS: usize = 12;
        let full = (done * CELLS).checked_div(total).unwrap_or(CELLS).min(CELLS);
        let (on, off) = if self.screen.unicode { ("━", "╌") } else { ("#", "-") };
        format!("{}{} ", on.repeat(full), off.repeat(CELLS - full))
    }

    /// What a gate asks, and how it is answered.
    fn question(&self, question: &Question, width_max: usize) -> Vec<Cells> {
        /// A longer message is cut: the screen has to show the run, too.
        const MESSAGE_LINES: usize = 4;
        let (mark, tone) = self.mark(State::Asking);
        let mut lines = vec![Cells::default()];
        let mut title = Cells::default().with(Tone::Plain, " ").with(tone, mark);
        title.push(Tone::Bold, &format!(" {}", one_line(&question.step)));
        let others = self.tree.asking.len();
        if others > 1 {
            title.push(Tone::Dim, &format!("{}one of {others}, Tab shows the next", self.dot()));
        }
        lines.push(title);
        let room = width_max.saturating_sub(3).max(1);
        for line in wrap(&question.message, room, MESSAGE_LINES, self.dots()) {
            lines.push(Cells::default().with(Tone::Plain, &format!("   {line}")));
        }
        if let Some(problem) = &question.problem {
            for line in wrap(&one_line(problem), room, 2, self.dots()) {
                lines.push(Cells::default().with(Tone::Plain, "   ").with(Tone::Bad, &line));
            }
        }
        let caret = if self.screen.unicode { "▏" } else { "_" };
        lines.push(question.prompt(caret, width_max));
        lines
    }
}

/// That it was not the first attempt.
fn tried(step: &StepView<'_>) -> Option<String> {
    match step.phase {
        _ if step.attempts < 2 => None,
        StepPhase::Settled(_) => Some(format!("{} attempts", step.attempts)),
        _ => Some(format!("attempt {}", step.attempts)),
    }
}

const TIME_WIDTH: usize = 8;

/// A length of time as people say it; short ones by tenths of a second once they are over.
fn took(length: Duration, over: bool) -> String {
    let seconds = length.0 / 1_000_000;
    match seconds {
        0..10 if over => format!("{}.{}s", seconds, length.0 / 100_000 % 10),
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}
