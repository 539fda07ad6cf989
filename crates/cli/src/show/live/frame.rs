//! Selects the lines that show a run on a screen of some size. If they do not fit, it folds finished steps first, then pending
//! ones, then running ones. A frame never exceeds the screen.

use super::question::Question;
use super::tree::{Tally, Tree};
use crate::show::Screen;
use crate::show::cells::{Cells, Tone, fit, width, wrap};
use crate::show::gates;
use crate::show::marks::State;
use crate::show::names;
use crate::show::times::{length, ticking};
use crate::show::words::one_line;
use windlass_api::report::Report;
use windlass_dialects::DIALECTS;
use windlass_ir::Value;
use windlass_ir::workflow::Kind;
use windlass_runtime::ids;
use windlass_runtime::{Decision, Outcome, Path, RunId, RunPhase, StepPhase, StepView, Timestamp, View};

/// The size of a screen in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

/// Everything that a frame shows.
#[derive(Debug)]
pub struct Scene<'a> {
    pub run: &'a RunId,
    pub view: &'a View,
    pub tree: &'a Tree,
    pub now: Timestamp,
    /// Increases with each frame to animate running steps; none in a still frame.
    pub beat: Option<usize>,
    pub question: Option<&'a Question>,
    /// A hint about keys in the last line.
    pub hint: &'a str,
    pub screen: &'a Screen,
}

/// How much to show of steps that are not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    All,
    /// Folds finished scopes into one line.
    Scopes,
    /// Shows this many steps before and after an active one.
    Near(usize),
    /// Shows what fits and cuts the rest.
    Cut,
}

const DETAILS: [Detail; 6] =
    [Detail::All, Detail::Scopes, Detail::Near(3), Detail::Near(1), Detail::Near(0), Detail::Cut];

/// The most active and failed items of a fan-out to show; all items are counted.
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
    /// The number of further active and failed items.
    More {
        depth: usize,
        active: usize,
        failed: usize,
    },
}

/// The lines of a frame, within the width and height.
pub fn frame(scene: &Scene<'_>, size: Size) -> Vec<Cells> {
    let width_max = size.width.saturating_sub(1).max(1);
    let question = scene.question.map(|question| scene.question(question, width_max, size.height));
    let question = question.unwrap_or_default();
    let room = size.height.saturating_sub(2 + question.len()).max(1);
    let rows = DETAILS.into_iter().find_map(|detail| Rows::of(scene, detail, room)).unwrap_or_default();
    let mut lines = vec![scene.header(width_max)];
    lines.extend(scene.rows(&rows, width_max));
    lines.extend(question);
    lines.push(scene.footer(width_max));
    // On a very small screen keep the last lines, which matter most.
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

/// There are more rows than fit.
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
                    Row::Step { node, .. } => rows.is_active_leaf(*node),
                    Row::Fold { .. } | Row::More { .. } => false,
                };
                let shown = rows.rows.iter().filter(|row| is_active(row)).count();
                let total = &scene.tree.total;
                let active = [State::Running, State::Waiting, State::Asking].map(|state| total.of(state));
                let left = (active.iter().sum::<u32>() as usize).saturating_sub(shown);
                if left > 0 {
                    rows.rows.push(Row::More { depth: 0, active: left, failed: 0 });
                }
                Some(rows.rows)
            }
        }
    }

    fn is_active_leaf(&self, node: usize) -> bool {
        let face = self.scene.face(node);
        self.scene.tree.node(face).children.is_empty() && self.scene.tree.node(face).state.is_active()
    }

    fn push(&mut self, row: Row) -> Result<(), Full> {
        self.rows.push(row);
        if self.rows.len() > self.room { Err(Full) } else { Ok(()) }
    }

    /// Adds the rows inside a node.
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

    /// Adds the active items or rounds and some failed ones; the line of the owner counts the rest.
    fn frames(&mut self, owner: usize, depth: usize) -> Result<(), Full> {
        let node = self.scene.tree.node(owner);
        let failed = node.failed.iter().take(FAILED_SHOWN);
        let shown: Vec<usize> = node.active.iter().take(ACTIVE_SHOWN).chain(failed).copied().collect();
        for frame in shown {
            self.push(Row::Step { node: frame, depth })?;
            self.below(frame, depth + 1)?;
        }
        let active = node.active.len().saturating_sub(ACTIVE_SHOWN);
        match (active, node.failed.len().saturating_sub(FAILED_SHOWN)) {
            (0, 0) => Ok(()),
            (active, failed) => self.push(Row::More { depth, active, failed }),
        }
    }

    /// Adds one line for the omitted steps, or the step itself if it is only one.
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

    /// The node that does the work of this one: itself, or the inner node that is shown with it.
    fn face(&self, node: usize) -> usize {
        let inner = self.tree.node(node).children.iter().copied().find(|child| {
            let child = self.tree.node(*child);
            child.is_inner && child.state != State::Hidden
        });
        inner.map_or(node, |inner| self.face(inner))
    }

    /// The steps to show below this one.
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
            line.push(Tone::Dim, &format!("{}mocked", self.dot()));
        }
        let (paused, cancelled) = (self.view.is_paused(), self.view.cancel_requested());
        let state = match (self.view.phase(), paused, cancelled) {
            (RunPhase::Ended(_), ..) => "",
            (_, _, true) => "canceling",
            (_, true, _) => "paused",
            (RunPhase::Pending, ..) => "waits in the queue",
            (RunPhase::Running, ..) => "",
        };
        if !state.is_empty() {
            line.push(Tone::Ask, &format!("{}{state}", self.dot()));
        }
        let end = self.view.ended_at().unwrap_or(self.now);
        let took = self.view.started_at().map(|start| self.took(end.since(start), self.ended()));
        let took = took.unwrap_or_default();
        let room = width_max.saturating_sub(width(&took) + 2);
        let mut line = line.cut(room, self.dots());
        line.pad(width_max.saturating_sub(width(&took)));
        line.with(Tone::Dim, &took)
    }

    /// The counts of steps by state, and the hint about keys.
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
            (tally.of(State::Cancelled), "canceled", Tone::Dim),
            (if self.ended() { 0 } else { tally.of(State::Pending) }, "pending", Tone::Dim),
        ];
        let mut between = "";
        for (count, word, tone) in parts.into_iter().filter(|(count, ..)| *count > 0) {
            line.push(Tone::Dim, between);
            line.push(tone, &format!("{count} {word}"));
            between = self.dot();
        }
    }

    fn mark(&self, state: State) -> &'static str {
        const BEATS: [&str; 8] = ["⠇", "⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠏"];
        match (state, self.beat) {
            (State::Running, Some(beat)) if self.screen.unicode => BEATS[beat % BEATS.len()],
            (state, _) => state.symbol(self.screen),
        }
    }

    /// A duration: measured, or growing on the screen.
    fn took(&self, took: windlass_ir::Duration, over: bool) -> String {
        if over { length(took) } else { ticking(took) }
    }

    fn report(&self) -> Report<'_> {
        Report::in_passing(DIALECTS, self.run, self.view)
    }

    fn rows(&self, rows: &[Row], width_max: usize) -> Vec<Cells> {
        /// The largest share of the width that step names may take, in percent.
        const NAMES_PART: usize = 45;
        const NAMES_MIN: usize = 20;
        let indent = |depth: usize| 1 + 2 * depth.min(width_max / 8);
        let names_max = (width_max * NAMES_PART / 100).max(12).min(width_max);
        let name_end = |row: &Row| match row {
            Row::Step { node, depth } => indent(*depth) + 2 + width(&self.label(*node)),
            Row::Fold { .. } | Row::More { .. } => 0,
        };
        // The minimum width keeps the next columns from moving with every step.
        let column = rows.iter().map(name_end).max().unwrap_or(0).max(NAMES_MIN).min(names_max);
        let line = |row: &Row| match row {
            Row::Step { node, depth } => self.step(*node, indent(*depth), column, width_max),
            Row::Fold { depth, folded } => {
                let mut line = Cells::default().with(Tone::Plain, &" ".repeat(indent(*depth)));
                line.push(Tone::Dim, &format!("{} ", if self.screen.unicode { "⋮" } else { ":" }));
                self.counts(folded, &mut line);
                line
            }
            Row::More { depth, active, failed } => {
                let counts =
                    [(*active, "active"), (*failed, "failed")].into_iter().filter(|(count, _)| *count > 0);
                let counts: Vec<String> =
                    counts.map(|(count, word)| format!("{count} more {word}")).collect();
                let text =
                    format!("{}{} {}", " ".repeat(indent(*depth)), self.dots(), counts.join(self.dot()));
                Cells::default().with(Tone::Dim, &text)
            }
        };
        rows.iter().map(line).collect()
    }

    /// One step: its state, its name, its duration, and the most important remark.
    fn step(&self, node: usize, indent: usize, column: usize, width_max: usize) -> Cells {
        let face = self.face(node);
        let Some((_, step)) = self.tree.step(self.view, node) else { return Cells::default() };
        let Some((_, doing)) = self.tree.step(self.view, face) else { return Cells::default() };
        let own = self.tree.node(node).state;
        // The state of the inner step is more precise.
        let state = match (own, self.tree.node(face).state) {
            (State::Running, inner @ (State::Waiting | State::Asking)) => inner,
            (own, _) => own,
        };
        let mut line = Cells::default().with(Tone::Plain, &" ".repeat(indent));
        line.push(state.tone(), self.mark(state));
        let label = fit(&self.label(node), column.saturating_sub(indent + 2), self.dots());
        let name_tone = match state {
            State::Pending | State::Skipped | State::Cancelled | State::Hidden => Tone::Dim,
            State::Asking => Tone::Bold,
            State::Running
            | State::Waiting
            | State::Paused
            | State::Interrupted
            | State::Done
            | State::Recovered
            | State::Failed => Tone::Plain,
        };
        line.push(name_tone, &format!(" {label}"));
        let start = step.started_at.or(doing.started_at).filter(|_| state != State::Pending);
        let time = start.map(|start| {
            let end = step.ended_at.unwrap_or(self.now);
            self.took(end.since(start), step.ended_at.is_some())
        });
        let time = time.unwrap_or_default();
        let room = width_max.saturating_sub(column + TIME_WIDTH + 2);
        let note = self.note(node, face, room);
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
        let kind = &self.view.plan_step(&step).kind;
        match (step.frame, kind) {
            (Some(number), Kind::Repeat(_)) => format!("round {}", number + 1),
            (Some(number), _) => self.item(path, number),
            (None, _) => one_line(&ids::name(DIALECTS, self.view, path).plain),
        }
    }

    /// The name of an item: `[3] readme.md` for a scalar, `build (mac, stable)` for more.
    fn item(&self, path: &Path, number: u32) -> String {
        const ITEM_WIDTH_MAX: usize = 40;
        let owner = path.frames().last().and_then(|(_, owner, _)| self.view.step(&owner));
        let item = match owner.and_then(|owner| owner.entered) {
            Some(Decision::Items { items: Value::List(items), .. }) => items.get(number as usize),
            _ => None,
        };
        let name = windlass_api::report::item_name(self.view, path);
        let text = match (item, name) {
            (Some(Value::Map(_) | Value::List(_)), Some(_)) => names::step(self.view, path),
            (_, Some(name)) => format!("[{number}] {name}"),
            (_, None) => format!("[{number}]"),
        };
        fit(&text, ITEM_WIDTH_MAX, self.dots())
    }

    fn note(&self, node: usize, face: usize, room: usize) -> String {
        let Some((path, step)) = self.tree.step(self.view, node) else { return String::new() };
        let Some((doing_path, doing)) = self.tree.step(self.view, face) else { return String::new() };
        let note = self.doing(path, &step, (doing_path, &doing), face, room);
        let undone = match step.undone.or(doing.undone) {
            Some(true) => Some("undone".to_owned()),
            Some(false) => Some("being undone".to_owned()),
            None => None,
        };
        let around = path.parent().and_then(|around| Some((self.view.step(&around)?, around)));
        let undoes = around.filter(|(step, _)| step.undone.is_some() && step.frame.is_none());
        let undoes = undoes.map(|(_, around)| format!("undoes {}", names::step(self.view, &around)));
        let kept = (step.kept || doing.kept).then(|| "kept from the earlier run".to_owned());
        let parts = [undone, undoes, kept, Some(note)].into_iter().flatten();
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(self.dot())
    }

    /// What a step does or waits for, or how it ended.
    fn doing(
        &self,
        path: &Path,
        step: &StepView<'_>,
        (doing_path, doing): (&Path, &StepView<'_>),
        face: usize,
        room: usize,
    ) -> String {
        let left = |until: Timestamp| ticking(until.since(self.now));
        let printed = || {
            let printed = self.tree.node(face).printed.as_deref();
            printed.map(|printed| one_line(&String::from_utf8_lossy(printed)))
        };
        match (&step.phase, &doing.phase) {
            (StepPhase::Settled(Outcome::Failed(failure)), _) => {
                one_line(&format!("{}: {}", failure.class, failure.message))
            }
            (StepPhase::Settled(Outcome::Skipped(_) | Outcome::Cancelled(_)), _) => {
                self.report().because(path, step).unwrap_or_default()
            }
            (StepPhase::Settled(_), _) => {
                let gate = self.report().gate(doing_path, "");
                let gate = gate.and_then(|gate| gates::headline(&gate, false, self.now));
                let decided = || self.report().decided(doing_path, doing);
                let note = gate.or_else(|| tried(doing)).or_else(decided);
                note.unwrap_or_else(|| self.progress(doing, face, room))
            }
            (_, StepPhase::Backoff { until }) => {
                let why = printed().map(|why| format!(": {why}")).unwrap_or_default();
                match doing.attempts {
                    0 => format!("again in {}", left(*until)),
                    attempt => format!("attempt {} in {}{why}", attempt + 1, left(*until)),
                }
            }
            (_, StepPhase::Queued { .. }) => "waits for a slot".to_owned(),
            (_, StepPhase::Joined) => "another step does the same work".to_owned(),
            (_, StepPhase::Waiting { signal: Some(signal), .. }) => {
                one_line(&format!("waits for the signal {signal}"))
            }
            (_, StepPhase::Waiting { signal: None, until }) => {
                until.map(|until| format!("{} left", left(until))).unwrap_or_default()
            }
            (_, StepPhase::Asking { .. }) => {
                let Some(gate) = self.report().gate(doing_path, "") else { return String::new() };
                let parts =
                    [Some(gates::needed(&gate)), gates::progress(&gate), gates::countdown(&gate, self.now)];
                parts.into_iter().flatten().collect::<Vec<_>>().join(self.dot())
            }
            (_, StepPhase::Running) => {
                let parts = [tried(doing), printed()].into_iter().flatten();
                parts.collect::<Vec<_>>().join(self.dot())
            }
            (_, StepPhase::Inside) => self.progress(doing, face, room),
            (_, StepPhase::Dormant | StepPhase::Pending | StepPhase::Settled(_)) => String::new(),
        }
    }

    /// The progress of a scope.
    fn progress(&self, step: &StepView<'_>, node: usize, room: usize) -> String {
        let kids = &self.tree.node(node).kids;
        match (step.frame, step.entered) {
            (None, Some(Decision::Items { items, .. })) => {
                let total = match items {
                    Value::List(items) => items.len(),
                    _ => 0,
                };
                self.items(kids, total, matches!(step.phase, StepPhase::Settled(_)), room)
            }
            (None, Some(Decision::Round { .. })) => match step.phase {
                StepPhase::Settled(_) => format!("{} rounds", step.rounds),
                _ => format!("round {}", step.rounds),
            },
            (None, Some(Decision::Arm { arm, .. })) => one_line(arm),
            _ => String::new(),
        }
    }

    fn items(&self, kids: &Tally, total: usize, settled: bool, room: usize) -> String {
        let done = kids.of(State::Done) + kids.of(State::Recovered) + kids.of(State::Skipped);
        let active = kids.of(State::Running) + kids.of(State::Waiting) + kids.of(State::Asking);
        let (failed, cancelled) = (kids.of(State::Failed), kids.of(State::Cancelled));
        let counts = [(failed, "failed"), (active, "active"), (cancelled, "canceled")];
        let more = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{}{count} {word}", self.dot()));
        let text = format!("{done}/{total} done{}", more.collect::<String>());
        let bar = self.bar((done + failed + cancelled) as usize, total);
        // The numbers matter more than the bar.
        if settled || width(&bar) + width(&text) > room { text } else { bar + &text }
    }

    fn bar(&self, done: usize, total: usize) -> String {
        const CELLS: usize = 12;
        let full = (done * CELLS).checked_div(total).unwrap_or(CELLS).min(CELLS);
        let (on, off) = if self.screen.unicode { ("━", "╌") } else { ("#", "-") };
        format!("{}{} ", on.repeat(full), off.repeat(CELLS - full))
    }

    /// The question of a gate and its input line.
    fn question(&self, question: &Question, width_max: usize, height: usize) -> Vec<Cells> {
        /// The most lines of a message, so that the run stays visible.
        const MESSAGE_LINES: usize = 4;
        /// The most lines of a file that the gate shows.
        const FILE_LINES: usize = 12;
        let gate = self.report().gate(&question.path, "");
        let mut lines = vec![Cells::default()];
        let mut title = Cells::default().with(Tone::Plain, " ");
        title.push(State::Asking.tone(), self.mark(State::Asking));
        title.push(Tone::Bold, &format!(" {}", one_line(&question.step)));
        let others = self.tree.asking.len();
        if others > 1 {
            title.push(Tone::Dim, &format!("{}one of {others}, Tab shows the next", self.dot()));
        }
        let gate = gate.as_ref();
        let facts = [gate.and_then(gates::progress), gate.and_then(|gate| gates::countdown(gate, self.now))];
        for fact in facts.into_iter().flatten() {
            title.push(Tone::Dim, &format!("{}{fact}", self.dot()));
        }
        lines.push(title);
        let room = width_max.saturating_sub(3).max(1);
        for line in wrap(&question.message, room, MESSAGE_LINES, self.dots()) {
            lines.push(Cells::default().with(Tone::Plain, &format!("   {line}")));
        }
        if let Some(file) = &question.file {
            let lines_max = (height / 3).min(FILE_LINES);
            for line in gates::content(file, lines_max, self.screen).iter().filter(|_| lines_max > 0) {
                lines.push(Cells::default().with(Tone::Dim, &format!("   {line}")));
            }
        }
        if let Some(about) = question.about_field() {
            lines.push(Cells::default().with(Tone::Dim, &format!("   {}", one_line(&about))));
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

/// The attempt, unless it is the first.
fn tried(step: &StepView<'_>) -> Option<String> {
    match step.phase {
        _ if step.attempts < 2 => None,
        StepPhase::Settled(_) => Some(format!("{} attempts", step.attempts)),
        _ => Some(format!("attempt {}", step.attempts)),
    }
}

const TIME_WIDTH: usize = 8;
