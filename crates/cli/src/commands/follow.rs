//! Follows a run while a process executes it: as a live view on a terminal, as lines elsewhere, or as JSON. It also answers
//! gates and handles Ctrl-C.

use super::face::Audience;
use super::signals::{Signals, Stop};
use crate::answer;
use crate::args::Json;
use crate::data;
use crate::show::Screen;
use crate::show::live::question::{Decided, Key, Question};
use crate::show::live::{Painter, Scene, Size, Tree, frame};
use crate::show::marks::State;
use crate::show::progress::Progress;
use crate::terminal::{self, Keyboard};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windlass_api::operations::{ApproveGate, Decide, RejectGate};
use windlass_api::report::Projector;
use windlass_api::{Caller, Door, Following, Refusal};
use windlass_ir::RunStatus;
use windlass_runtime::{Choice, Clock, Engine, Error, RunId, Timestamp, Update, View};

/// How to show a run, and to whom.
#[derive(Debug)]
pub struct Watching<'a> {
    pub folder: &'a Path,
    pub json: Option<Json>,
    /// The clock jumps from deadline to deadline.
    pub virtual_time: bool,
    /// The user can decide at gates.
    pub attended: bool,
    /// The name of the user.
    pub by: &'a str,
    pub screen: &'a Screen,
}

/// Why Windlass stops following a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// No process executes it.
    Rests(RunStatus),
    /// The user stopped it, and can resume it.
    Stopped,
    /// Another process continues to execute it.
    Left,
}

/// Shows updates until no process executes the run, or the user leaves.
pub async fn attend(
    mut following: Following,
    door: &Door,
    signals: &mut Signals,
    watching: &Watching<'_>,
    audience: Option<Box<dyn Audience>>,
) -> Result<End, Refusal> {
    let run = following.id.clone();
    let mut show = match audience {
        Some(audience) => Show::To(audience),
        None => Show::new(&run, door, watching)?,
    };
    let (mut updates, mut stopping) = (Vec::new(), None);
    loop {
        tokio::select! {
            count = following.updates.recv_many(&mut updates, BATCH) => {
                if count == 0 {
                    break;
                }
                updates.drain(..).try_for_each(|update| show.update(update))?;
            }
            stop = signals.next() => match (door, &stopping, stop) {
                (Door::Client(_), ..) => {
                    show.end();
                    return Ok(End::Left);
                }
                (Door::Owner(engine), None, _) => {
                    let engine = engine.clone();
                    stopping = Some(tokio::spawn(async move { engine.stop().await }));
                    show.stopping();
                }
                (Door::Owner(_), Some(_), Stop::Asked) => {
                    show.end();
                    return Ok(End::Stopped);
                }
                (Door::Owner(_), Some(_), Stop::HungUp) => {}
            },
            () = show.next() => {}
        }
    }
    show.end();
    let rests = following.done.await.unwrap_or_else(|_| Err(Error::OwnerGone(following.id).into()))?;
    Ok(match (stopping, rests) {
        (Some(_), status) if !status.is_finished() => End::Stopped,
        (_, rests) => End::Rests(rests),
    })
}

/// The most updates to apply before a frame may be drawn.
const BATCH: usize = 1024;

/// The option that a choice names.
fn option(choice: &Choice) -> Option<String> {
    match choice {
        Choice::Option(option) => Some(option.to_string()),
        Choice::Approve | Choice::Reject => None,
    }
}

enum Show {
    /// Public events as lines; none if only the result is printed.
    Json(Option<Box<Projector>>),
    Lines(Box<Progress>),
    Live(Box<Live>),
    /// The output format of another program.
    To(Box<dyn Audience>),
}

impl Show {
    fn new(run: &RunId, door: &Door, watching: &Watching<'_>) -> Result<Self, Refusal> {
        match watching.json {
            Some(Json::All) => {
                let projector = Projector::new(reader(door, watching)?, run.clone());
                return Ok(Self::Json(Some(Box::new(projector))));
            }
            Some(Json::Final) => return Ok(Self::Json(None)),
            None => {}
        }
        if terminal::can_paint() {
            return Live::new(run, door, watching).map(|live| Self::Live(Box::new(live)));
        }
        answer::remark(&format!("run {run}"));
        let engine = reader(door, watching)?;
        Ok(Self::Lines(Box::new(Progress::new(engine, run.clone(), *watching.screen))))
    }

    fn update(&mut self, update: Update) -> Result<(), Refusal> {
        match (self, update) {
            (Self::Live(live), update) => return live.update(update),
            (Self::To(audience), update) => return audience.update(update),
            // People who watch a program's run must see a refused approval, so it also goes to standard error.
            (Self::Json(Some(_)), Update::Notice(text)) => {
                answer::voice(true)(&text);
                answer::remark(&text);
            }
            (_, Update::Notice(text)) => answer::remark(&text),
            (Self::Json(Some(projector)), Update::Event { seq, event }) => {
                if let Some(public) = projector.next(seq, &event)? {
                    // The run continues even if the reader closed the pipe.
                    answer::line(&serde_json::to_string(&public).unwrap_or_default());
                }
            }
            (Self::Json(_), Update::Event { .. } | Update::Line(_)) => {}
            (Self::Lines(progress), Update::Event { seq, event }) => {
                progress.line(seq, &event)?.iter().for_each(|line| answer::remark(line));
            }
            (Self::Lines(progress), Update::Line(line)) => answer::remark(&progress.output(&line)),
        }
        Ok(())
    }

    fn stopping(&mut self) {
        match self {
            Self::Json(_) | Self::Lines(_) => answer::remark(STOPPING),
            Self::To(audience) => audience.stopping(),
            Self::Live(live) => live.stopping(),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Json(_) | Self::Lines(_) | Self::To(_) => {}
            Self::Live(live) => live.end(),
        }
    }

    async fn next(&mut self) {
        match self {
            Self::Json(_) | Self::Lines(_) => std::future::pending().await,
            Self::Live(live) => live.next().await,
            Self::To(audience) => audience.next().await,
        }
    }
}

/// An engine that reads the folder of a run.
fn reader(door: &Door, watching: &Watching<'_>) -> Result<Arc<Engine>, Error> {
    match door {
        Door::Owner(engine) => Ok(engine.clone()),
        Door::Client(_) => data::look(watching.folder),
    }
}

pub const STOPPING: &str = "stopping; Ctrl-C again ends it at once";

/// The shortest time between a change and the next frame.
const FRAME: Duration = Duration::from_millis(50);
/// The interval of the activity animation.
const BEAT: Duration = Duration::from_millis(120);
/// The interval at which displayed durations advance.
const SECOND: Duration = Duration::from_secs(1);
/// The most lines of a finished run to leave on the screen.
const LEFT_LINES_MAX: usize = 100;

/// The live view of a run.
struct Live {
    run: RunId,
    view: View,
    tree: Tree,
    door: Door,
    by: String,
    screen: Screen,
    virtual_time: bool,
    /// The time of the last event.
    last_at: Timestamp,
    /// None if the user cannot decide at gates.
    keyboard: Option<Keyboard>,
    /// Another process has the terminal.
    is_hidden: bool,
    question: Option<Question>,
    deciding: Option<JoinHandle<Result<(), Refusal>>>,
    hint: &'static str,
    painter: Painter,
    is_changed: bool,
    drawn: Instant,
    beat: usize,
    resized: Signal,
    suspended: Signal,
    continued: Signal,
}

impl Live {
    fn new(run: &RunId, door: &Door, watching: &Watching<'_>) -> Result<Self, Refusal> {
        let failed = |error: std::io::Error| Error::Folder {
            folder: watching.folder.to_owned(),
            cause: error.to_string(),
        };
        let view = reader(door, watching)?.view(run)?;
        let of = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        let tree = Tree::of(&view);
        let keyboard = if watching.attended { Keyboard::open() } else { None };
        Ok(Self {
            run: run.clone(),
            last_at: view.ended_at().or(view.started_at()).unwrap_or_default(),
            view,
            tree,
            door: door.clone(),
            by: watching.by.to_owned(),
            screen: *watching.screen,
            virtual_time: watching.virtual_time,
            keyboard,
            is_hidden: false,
            question: None,
            deciding: None,
            hint: match door {
                Door::Owner(_) => "Ctrl-C stops",
                Door::Client(_) => "Ctrl-C leaves, the run continues",
            },
            painter: Painter::default(),
            is_changed: true,
            drawn: Instant::now(),
            beat: 0,
            resized: signal(SignalKind::window_change()).map_err(failed)?,
            suspended: signal(of(rustix::process::Signal::TSTP)).map_err(failed)?,
            continued: signal(of(rustix::process::Signal::CONT)).map_err(failed)?,
        })
    }

    fn update(&mut self, update: Update) -> Result<(), Refusal> {
        match update {
            Update::Event { seq, event } if seq > self.view.events => {
                self.last_at = event.at;
                self.view.apply(&event).map_err(|cause| Error::contradictory(&self.run, cause))?;
                self.tree.follow(&self.view, &event);
                self.is_changed = true;
            }
            // The view already contains this event.
            Update::Event { .. } => {}
            Update::Line(line) => {
                self.tree.add_line(&self.view, line);
                self.is_changed = true;
            }
            Update::Notice(text) => {
                // In raw mode a line feed does not return the carriage.
                let remark = crate::show::words::clean(&text).replace('\n', "\r\n");
                terminal::write(&(self.painter.clear(terminal::size()) + &remark + "\r\n"));
                self.is_changed = true;
            }
        }
        Ok(())
    }

    fn stopping(&mut self) {
        self.hint = STOPPING;
        self.question = None;
        self.is_changed = true;
    }

    /// Waits for the first of a key, a resize and the time for a frame, and handles it.
    async fn next(&mut self) {
        let due = self.drawn + self.pause();
        let pressed = async {
            match &mut self.keyboard {
                Some(keyboard) if keyboard.is_held() => keyboard.pressed().await,
                Some(_) | None => std::future::pending().await,
            }
        };
        let decided = async {
            match &mut self.deciding {
                Some(deciding) => deciding.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            key = pressed => match key {
                Some(key) => self.press(key),
                None => self.keyboard = None,
            },
            answered = decided => {
                self.deciding = None;
                let problem = answered.ok().and_then(Result::err).map(|refusal| refusal.message);
                if let (Some(question), Some(problem)) = (&mut self.question, problem) {
                    question.refused(problem);
                }
                self.is_changed = true;
            }
            _ = self.resized.recv() => self.is_changed = true,
            _ = self.suspended.recv() => self.suspend(),
            _ = self.continued.recv() => self.come_back(),
            () = tokio::time::sleep_until(due) => self.draw(),
        }
    }

    fn pause(&self) -> Duration {
        match self.is_changed {
            true => FRAME,
            false if self.tree.total.of(State::Running) > 0 => BEAT,
            false => SECOND,
        }
    }

    fn press(&mut self, key: Key) {
        self.is_changed = true;
        let Some(question) = &mut self.question else { return };
        if key == Key::Tab && !question.is_typing() {
            return self.next_question();
        }
        if let Some(decided) = question.press(key) {
            self.decide(decided);
        }
    }

    fn decide(&mut self, decided: Decided) {
        let Decided { path, choice, reason, form } = decided;
        let (door, by) = (self.door.clone(), self.by.clone());
        let decide = Decide {
            run_id: self.run.to_string(),
            step: Some(path.to_string()),
            choice: option(&choice),
            fields: windlass_runtime::data(&form),
            reason,
            id: None,
            by: Some(by.clone()),
        };
        self.deciding = Some(tokio::spawn(async move {
            match choice {
                Choice::Reject => door.call(RejectGate(decide), Caller::user(&by)).await.map(drop),
                Choice::Approve | Choice::Option(_) => {
                    door.call(ApproveGate(decide), Caller::user(&by)).await.map(drop)
                }
            }
        }));
    }

    /// Shows the next gate.
    fn next_question(&mut self) {
        let shown = self.question.as_ref().and_then(|question| self.view.index_of(&question.path));
        let after = shown.map_or(0, |index| index + 2);
        let next = self.tree.asking.range(after..).chain(&self.tree.asking).next();
        self.question = next.and_then(|node| self.asked_at(*node));
    }

    fn asked_at(&self, node: usize) -> Option<Question> {
        let (path, _) = self.tree.step(&self.view, node)?;
        Question::of(&self.run, &self.view, path, &self.by)
    }

    /// Replaces the question on the screen if its gate no longer waits.
    fn look_at_gates(&mut self) {
        let open = |question: &Question| {
            let index = self.view.index_of(&question.path);
            index.is_some_and(|index| self.tree.asking.contains(&(index + 1)))
        };
        if !self.question.as_ref().is_some_and(open) {
            self.question = None;
            if self.keyboard.is_some() && self.hint != STOPPING {
                self.next_question();
            }
        }
    }

    /// A frame without animation and questions.
    fn still(&self) -> Scene<'_> {
        let now = if self.virtual_time { self.last_at } else { Clock::Real.now().max(self.last_at) };
        Scene {
            run: &self.run,
            view: &self.view,
            tree: &self.tree,
            now,
            beat: None,
            question: None,
            hint: "",
            screen: &self.screen,
        }
    }

    fn draw(&mut self) {
        self.is_changed = false;
        self.drawn = Instant::now();
        self.tree.settle(&self.view);
        self.look_at_gates();
        if self.is_hidden {
            return;
        }
        self.beat += 1;
        let size = terminal::size();
        let question = self.question.as_ref();
        let scene = Scene { beat: Some(self.beat), question, hint: self.hint, ..self.still() };
        let lines = frame(&scene, size);
        terminal::write(&self.painter.paint(&lines, size, self.screen.color));
    }

    /// Restores the terminal and leaves a summary of the run on it.
    fn end(&mut self) {
        self.tree.settle(&self.view);
        let size = terminal::size();
        let tall = Size { height: LEFT_LINES_MAX, ..size };
        let lines = frame(&self.still(), tall);
        terminal::write(&self.painter.leave(&lines, size, self.screen.color));
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.release();
        }
    }

    /// Handles Ctrl-Z: restores the terminal for the shell.
    fn suspend(&mut self) {
        terminal::write(&self.painter.clear(terminal::size()));
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.release();
        }
        // If the system does not stop this process, it continues.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
        self.come_back();
    }

    fn come_back(&mut self) {
        self.is_hidden = self.keyboard.as_mut().is_some_and(|keyboard| !keyboard.hold());
        self.is_changed = true;
    }
}
