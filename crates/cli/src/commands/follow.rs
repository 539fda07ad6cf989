//! Following a run until nobody drives it any more: as a live view on a terminal, as lines elsewhere, as JSON for programs. Here a
//! gate is answered in place, and Ctrl-C is heard.

use super::face::Audience;
use super::signals::{Signals, Stop};
use crate::answer;
use crate::args::Json;
use crate::data;
use crate::show::Screen;
use crate::show::live::question::{Decided, Key, Question};
use crate::show::live::{Painter, Scene, Size, State, Tree, frame};
use crate::show::progress::{self, Progress};
use crate::terminal::{self, Keyboard};
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windlass_ir::RunStatus;
use windlass_runtime::{Clock, Door, Error, Following, Order, RunId, Timestamp, Update, View};

/// How a run is shown, and to whom.
#[derive(Debug)]
pub struct Watching<'a> {
    pub folder: &'a Path,
    pub json: Option<Json>,
    /// Its clock jumps.
    pub virtual_time: bool,
    /// Somebody is there who can decide.
    pub attended: bool,
    /// Who that is.
    pub by: &'a str,
    pub screen: &'a Screen,
}

/// Why a run is not followed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody drives it.
    Rests(RunStatus),
    /// It was stopped, and can go on.
    Stopped,
    /// Somebody else drives it and goes on doing so.
    Left,
}

/// Shows what happens until nobody drives the run any more, or somebody wants to see no more of it.
pub async fn attend(
    mut following: Following,
    door: &Door,
    signals: &mut Signals,
    watching: &Watching<'_>,
    audience: Option<Box<dyn Audience>>,
) -> Result<End, Error> {
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
                updates.drain(..).try_for_each(|update| show.tell(&run, update))?;
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
    let rests = following.done.await.unwrap_or(Err(Error::OwnerGone(following.id)))?;
    Ok(match (stopping, rests) {
        (Some(_), status) if !status.is_finished() => End::Stopped,
        (_, rests) => End::Rests(rests),
    })
}

/// How much is taken in before a frame may be drawn.
const BATCH: usize = 1024;

enum Show {
    Json(Option<Json>),
    Lines(Progress),
    Live(Box<Live>),
    /// In the manner of another program.
    To(Box<dyn Audience>),
}

impl Show {
    fn new(run: &RunId, door: &Door, watching: &Watching<'_>) -> Result<Self, Error> {
        match watching.json {
            Some(Json::All) => return Ok(Self::Json(Some(Json::All))),
            Some(Json::Final) => return Ok(Self::Json(None)),
            None => {}
        }
        if terminal::can_paint() {
            return Live::new(run, door, watching).map(|live| Self::Live(Box::new(live)));
        }
        answer::remark(&format!("run {run}"));
        Ok(Self::Lines(Progress::default()))
    }

    fn tell(&mut self, run: &RunId, update: Update) -> Result<(), Error> {
        match (self, update) {
            (Self::Live(live), update) => return live.tell(update),
            (Self::To(audience), update) => return audience.tell(update),
            (_, Update::Notice(text)) => answer::remark(&text),
            (Self::Json(Some(_)), Update::Event { seq, event }) => {
                // Nobody may be reading any more, which is no reason to stop the work.
                answer::line(&progress::event_json(run, seq, &event).to_string());
            }
            (Self::Json(_), Update::Event { .. } | Update::Line(_)) => {}
            (Self::Lines(progress), Update::Event { event, .. }) => {
                progress.line(&event).iter().for_each(|line| answer::remark(line));
            }
            (Self::Lines(_), Update::Line(line)) => answer::remark(&progress::output(&line)),
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

/// A run as it stands when somebody begins to follow it.
fn view(run: &RunId, door: &Door, watching: &Watching<'_>) -> Result<View, Error> {
    match door {
        Door::Owner(engine) => engine.view(run),
        Door::Client(_) => data::look(watching.folder)?.view(run),
    }
}

pub const STOPPING: &str = "stopping; Ctrl-C again ends it at once";

/// A frame follows a change no sooner than this.
const FRAME: Duration = Duration::from_millis(50);
/// How often it is seen that something is at work.
const BEAT: Duration = Duration::from_millis(120);
/// How often a clock is seen to go.
const SECOND: Duration = Duration::from_secs(1);
/// As much of a finished run stays on the screen.
const LEFT_LINES_MAX: usize = 100;

/// A run on the screen.
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
    /// None when nobody there can decide.
    keyboard: Option<Keyboard>,
    /// Somebody else has the terminal for now.
    is_hidden: bool,
    question: Option<Question>,
    deciding: Option<JoinHandle<Result<bool, Error>>>,
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
    fn new(run: &RunId, door: &Door, watching: &Watching<'_>) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::Folder {
            folder: watching.folder.to_owned(),
            cause: error.to_string(),
        };
        let view = view(run, door, watching)?;
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
                Door::Client(_) => "Ctrl-C leaves, the run goes on",
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

    fn tell(&mut self, update: Update) -> Result<(), Error> {
        match update {
            Update::Event { seq, event } if seq > self.view.events => {
                self.last_at = event.at;
                self.view.apply(&event).map_err(|cause| Error::contradictory(&self.run, cause))?;
                self.tree.follow(&self.view, &event);
                self.is_changed = true;
            }
            // What the view was made of has it already.
            Update::Event { .. } => {}
            Update::Line(line) => {
                self.tree.hear(&self.view, line);
                self.is_changed = true;
            }
            Update::Notice(text) => {
                // A held terminal does not return the carriage by itself.
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

    /// Waits for whatever comes first and does it: a key, another size, the time for a frame.
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
                let problem = answered.ok().and_then(Result::err).map(|error| error.to_string());
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
        let by = self.by.clone();
        let id = format!("{by}-{}", Clock::Real.now().0);
        let order = Order::Decide { id, step: Some(path.to_string()), choice, by, reason, form };
        let (door, run) = (self.door.clone(), self.run.clone());
        self.deciding = Some(tokio::spawn(async move { door.tell(&run, order).await }));
    }

    /// The gate after the one that is shown.
    fn next_question(&mut self) {
        let shown = self.question.as_ref().and_then(|question| self.view.index_of(&question.path));
        let after = shown.map_or(0, |index| index + 2);
        let next = self.tree.asking.range(after..).chain(&self.tree.asking).next();
        self.question = next.and_then(|node| self.asked_at(*node));
    }

    fn asked_at(&self, node: usize) -> Option<Question> {
        let (path, _) = self.tree.step(&self.view, node)?;
        Question::of(&self.view, path, &self.by)
    }

    /// The question on the screen is one that is still open.
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

    /// None of it moves, and nobody is asked anything.
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
        terminal::write(&self.painter.paint(&lines, size, self.screen.colour));
    }

    /// Leaves the terminal as it was found, and the run as a person wants to remember it.
    fn end(&mut self) {
        self.tree.settle(&self.view);
        let size = terminal::size();
        let tall = Size { height: LEFT_LINES_MAX, ..size };
        let lines = frame(&self.still(), tall);
        terminal::write(&self.painter.leave(&lines, size, self.screen.colour));
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.release();
        }
    }

    /// Ctrl-Z: whoever has the terminal next finds it as it was.
    fn suspend(&mut self) {
        terminal::write(&self.painter.clear(terminal::size()));
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.release();
        }
        // Nothing to be done if the system does not stop us: then we go on.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
        self.come_back();
    }

    fn come_back(&mut self) {
        self.is_hidden = self.keyboard.as_mut().is_some_and(|keyboard| !keyboard.hold());
        self.is_changed = true;
    }
}
