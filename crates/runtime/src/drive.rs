//! The life of one run: inputs in, records written, effects carried out, until nothing is left to do or to wait for.

use crate::clock::Clock;
use crate::host::Host;
use crate::report::ids::{self, Name};
use crate::report::{self, Standing};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_engine::{
    Answer, Decision, Effect, Event, Failure, GateDecision, Input, Job, JobKey, Outcome, Path, Program,
    Refused, Run, StepPhase, Timestamp, View, What, class, fits,
};
use windlass_executors::{Asker, Context, GateAnswer, Line, Notes, Output};
use windlass_ir::{Duration, Value};
use windlass_store::{Append, Appended, Error, Lsn, Store};

/// An input on its way to a run, and whom to tell what became of it.
#[derive(Debug)]
pub(crate) struct Mail {
    pub input: Input,
    pub reply: Option<oneshot::Sender<Result<(), Refused>>>,
}

/// What followers of a run are told.
#[derive(Clone, Debug)]
pub enum Update {
    /// Something happened, and is durable.
    Event { seq: u64, event: Event },
    /// A job printed something. Live, and never remembered as an event.
    Line(Line),
    /// Something a person should know that changes nothing.
    Notice(String),
}

/// Everybody who follows a run. Nobody has to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followers(Arc<Mutex<Vec<mpsc::UnboundedSender<Update>>>>);

impl Followers {
    pub fn add(&self) -> mpsc::UnboundedReceiver<Update> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.list().push(sender);
        receiver
    }

    pub fn tell(&self, update: &Update) {
        self.list().retain(|follower| follower.send(update.clone()).is_ok());
    }

    /// Nobody hears anything any more: every follower comes to the end of what it was told.
    pub fn dismiss(&self) {
        self.list().clear();
    }

    fn list(&self) -> MutexGuard<'_, Vec<mpsc::UnboundedSender<Update>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a run is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until the run has ended.
    Everything,
    /// Not for people: gates that wait longer than a minute, signals, pauses.
    Work,
}

/// Gates whose time is up within this are waited for by whoever does not wait for people.
const SHORT: Duration = Duration::from_secs(60);

/// The process must not go on with this run: what is true stands on the disk.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Fatal(pub Error);

/// How the first wait after a failed write grows.
const RETRY_FIRST: std::time::Duration = std::time::Duration::from_millis(50);
const RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Driver {
    pub run: Run,
    pub view: View,
    pub tail: Option<Lsn>,
    pub store: Store,
    pub host: Host,
    pub clock: Clock,
    pub patience: Patience,
    pub mail: mpsc::UnboundedReceiver<Mail>,
    pub followers: Followers,
    /// Jobs that executors are at work on. Dropping them ends what they started.
    pub work: JoinSet<Outcome>,
    pub jobs: HashMap<JobKey, CancellationToken>,
    pub keys: HashMap<tokio::task::Id, JobKey>,
    /// Where the lines and the notes of all jobs of this run go.
    pub output: Output,
    pub notes: Notes,
    /// What a script will do, by when. The number keeps what falls on one instant in order.
    pub agenda: BTreeMap<(Timestamp, u64), Planned>,
    pub planned: u64,
    /// How many decisions of the script each gate has had, by the id that the user sees.
    pub decided: HashMap<String, usize>,
    /// What is to be done around the run and nobody does.
    pub hooks: Vec<JobKey>,
    pub said_hooks: bool,
    /// The next instant worth waiting for.
    pub due_at: Option<Timestamp>,
    /// Nothing is carried out: whoever takes the run up will do it.
    pub only_record: bool,
}

/// One thing that a script will do.
#[derive(Debug)]
pub(crate) enum Planned {
    Report(JobKey, Outcome),
    Decide(Path),
    /// The signal with this number.
    Signal(usize),
}

enum Wake {
    Mail(Mail),
    Time,
    Rest,
}

impl Driver {
    /// Drives the run until it has ended, or until only people could move it and nobody waits for them.
    pub async fn drive(mut self) -> Result<Standing, Fatal> {
        self.plan_open_gates();
        self.plan_signals();
        loop {
            if self.run.outcome().is_some() && self.jobs.is_empty() {
                return Ok(report::standing(&self.view));
            }
            self.due_at = self.due();
            match self.wait().await {
                Wake::Mail(mail) => self.take(mail).await?,
                Wake::Time => self.act().await?,
                Wake::Rest => return Ok(report::standing(&self.view)),
            }
        }
    }

    async fn wait(&mut self) -> Wake {
        if let Ok(mail) = self.mail.try_recv() {
            return Wake::Mail(mail);
        }
        let busy = !self.jobs.is_empty();
        let until = match (&mut self.clock, self.due_at) {
            // Real work takes real time, even beside a clock that jumps.
            (Clock::Virtual(_), _) if busy => None,
            (Clock::Virtual(now), Some(due)) => {
                *now = (*now).max(due);
                return Wake::Time;
            }
            (Clock::Real, Some(due)) => Some(due),
            (_, None) if busy || self.patience == Patience::Everything => None,
            (_, None) => return Wake::Rest,
        };
        let left = until.map(|until| std::time::Duration::from_micros(until.since(self.clock.now()).0));
        tokio::select! {
            mail = self.mail.recv() => mail.map_or(Wake::Rest, Wake::Mail),
            Some(done) = self.work.join_next_with_id() => self.reported(done),
            () = sleep(left) => Wake::Time,
        }
    }

    /// An executor has returned, which is the report, or broken down, and then the job is gone.
    fn reported(&mut self, done: Result<(tokio::task::Id, Outcome), JoinError>) -> Wake {
        let (id, outcome) = match done {
            Ok((id, outcome)) => (id, Some(outcome)),
            Err(error) => (error.id(), None),
        };
        let Some(job) = self.keys.remove(&id) else { return Wake::Time };
        self.jobs.remove(&job);
        let input = match outcome {
            Some(outcome) => Input::Reported { job, outcome },
            None => Input::Lost { job },
        };
        Wake::Mail(Mail { input, reply: None })
    }

    /// The next instant worth waiting for.
    fn due(&self) -> Option<Timestamp> {
        let planned = self.agenda.keys().next().map(|(at, _)| *at);
        let timer = self.run.next_deadline().filter(|due| self.is_worth_waiting_for(*due));
        planned.into_iter().chain(timer).min()
    }

    /// Attempts, the waits between them and time that has to pass always are. A gate or a signal alone is, if its time is up
    /// soon or everything is waited for.
    fn is_worth_waiting_for(&self, due: Timestamp) -> bool {
        let working = self.run.is_working();
        if self.run.is_paused() && !working {
            return false;
        }
        let soon = due <= self.clock.now().plus(SHORT);
        working || soon || self.patience == Patience::Everything || report::moves_by_itself(&self.view)
    }

    /// The time has come for something: a step of the script, or a timer of the run.
    async fn act(&mut self) -> Result<(), Fatal> {
        let now = self.clock.now();
        let first = self.agenda.first_key_value().filter(|((at, _), _)| *at <= now).map(|(key, _)| *key);
        match first.and_then(|key| self.agenda.remove(&key)) {
            Some(Planned::Report(job, outcome)) => {
                self.offer(Input::Reported { job, outcome }).await.map(drop)
            }
            Some(Planned::Decide(path)) => self.decide(path).await,
            Some(Planned::Signal(number)) => self.signal(number).await,
            None => self.offer(Input::Tick).await.map(drop),
        }
    }

    async fn take(&mut self, mail: Mail) -> Result<(), Fatal> {
        let answered = self.offer(mail.input).await?;
        if let Some(reply) = mail.reply {
            // Whoever asked may have gone away.
            let _ = reply.send(answered);
        }
        Ok(())
    }

    /// Hands an input to the run, with all that follows from it at once.
    pub async fn offer(&mut self, input: Input) -> Result<Result<(), Refused>, Fatal> {
        let input = self.addressed(input);
        let answered = self.hand_over(input).await?;
        while let Some(job) = self.hooks.pop() {
            if !std::mem::replace(&mut self.said_hooks, true) {
                self.notice("hooks are not carried out yet".to_owned());
            }
            let failure = Failure::new(class::ERROR, "hooks are not carried out yet");
            // It cannot change the run, so that it was refused would not either.
            let _ = self.hand_over(Input::Reported { job, outcome: Outcome::Failed(failure) }).await?;
        }
        Ok(answered)
    }

    /// A message that comes as a signal is delivered to the first step that waits for such a one.
    fn addressed(&self, input: Input) -> Input {
        let Input::Signal { id, name, by, value, to: None } = input else { return input };
        let listens = |entered: Option<&Decision>| match entered {
            Some(Decision::Wait(waiting)) => waiting.signal.as_ref().is_some_and(|signal| {
                signal.message && signal.name == name && fits(&signal.matching, &value)
            }),
            _ => false,
        };
        let waiting = self.view.steps.iter().find(|(_, step)| {
            matches!(step.phase, StepPhase::Waiting { .. }) && listens(step.entered.as_deref())
        });
        let to = waiting.map(|(path, _)| path.clone());
        Input::Signal { id, name, by, value, to }
    }

    /// Hands an input to the run, makes what follows durable, and only then carries it out.
    async fn hand_over(&mut self, input: Input) -> Result<Result<(), Refused>, Fatal> {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let now = self.clock.now();
            let handled = match self.only_record {
                true => self.run.record(now, input.clone()),
                false => self.run.handle(now, input.clone()),
            };
            let answer = match handled {
                Ok(answer) => answer,
                Err(refused) => return Ok(Err(refused)),
            };
            if !self.record(&answer).await? {
                // Somebody else wrote first: what is in memory is worth nothing.
                self.replay()?;
                next = Some(input);
                continue;
            }
            if answer.again {
                next = Some(Input::Tick);
            }
            self.carry_out(answer);
        }
        Ok(Ok(()))
    }

    /// Writes what was decided; false when the run is not where it was thought to be.
    async fn record(&mut self, answer: &Answer) -> Result<bool, Fatal> {
        if answer.events.is_empty() {
            return Ok(true);
        }
        let mut pause = RETRY_FIRST;
        loop {
            let append = Append::apart(self.run.id().clone(), self.tail, &answer.events, &*self.store.blobs);
            let appended = match append {
                Ok(append) => self.store.journal.append(append).await,
                Err(error) => Err(error),
            };
            match appended {
                Ok(Appended::At(lsn)) => {
                    self.tail = Some(lsn);
                    return Ok(true);
                }
                Ok(Appended::Conflict { .. }) => return Ok(false),
                Err(error @ Error::Io { fatal: false, .. }) => {
                    // Nothing new is dispatched or acknowledged until this is written.
                    self.notice(format!("cannot write the journal, trying again: {error}"));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
                Err(error) => return Err(Fatal(error)),
            }
        }
    }

    fn replay(&mut self) -> Result<(), Fatal> {
        let replayed = replayed(&self.store, self.run.id(), self.run.program()).map_err(Fatal)?;
        (self.run, self.view, self.tail) = (replayed.run, replayed.view, replayed.tail);
        Ok(())
    }

    fn carry_out(&mut self, answer: Answer) {
        for event in answer.events {
            self.view.apply(&event);
            match &event.what {
                What::Entered { path, decision: Decision::Gate(_) } => self.plan_decision(path),
                // Another instance of the gate will ask.
                What::SentBack { gate, .. } => {
                    self.agenda
                        .retain(|_, planned| !matches!(planned, Planned::Decide(path) if path == gate));
                }
                _ => {}
            }
            self.followers.tell(&Update::Event { seq: self.view.events, event });
        }
        for effect in answer.effects {
            match effect {
                Effect::Dispatch(job) if job.key.path.is_hook() => self.hooks.push(job.key),
                Effect::Dispatch(_) | Effect::Abort(_) if self.only_record => {}
                Effect::Dispatch(job) => self.dispatch(*job),
                Effect::Abort(key) => self.abort(&key),
                Effect::Conclude(_) => {}
            }
        }
    }

    fn dispatch(&mut self, mut job: Job) {
        let Name { id, plain } = ids::name(&self.view, &job.key.path);
        let attempt = job.key.attempt + ids::attempts_before(&self.view, &job.key.path);
        let asker = Asker { id: &id, plain: &plain, attempt };
        let answer = self.host.answer(&job, asker);
        if let Some(answer) = answer {
            // What hangs loses against whatever falls due at the same instant.
            let after = answer.after.plus(Duration(u64::from(answer.hangs)));
            return self.plan(self.clock.now().plus(after), Planned::Report(job.key, answer.outcome));
        }
        job.step = id.into();
        let abort = CancellationToken::new();
        let environment = self.host.environment.clone();
        let (output, notes) = (self.output.clone(), self.notes.clone());
        let context =
            Context { abort: abort.clone(), output, notes, secrets: environment.clone(), environment };
        let (executor, key) = (self.host.executor(&job), job.key.clone());
        let task = self.work.spawn(async move { executor.run(job, context).await });
        self.keys.insert(task.id(), key.clone());
        self.jobs.insert(key, abort);
    }

    /// Tells a job to stop. A scripted one stops at once.
    fn abort(&mut self, key: &JobKey) {
        if let Some(token) = self.jobs.get(key) {
            return token.cancel();
        }
        self.agenda.retain(|_, planned| !matches!(planned, Planned::Report(job, _) if job == key));
        self.plan(self.clock.now(), Planned::Report(key.clone(), Outcome::Cancelled("told to stop".into())));
    }

    fn plan(&mut self, at: Timestamp, planned: Planned) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), planned);
    }

    /// Gates that were open when the run was taken up.
    fn plan_open_gates(&mut self) {
        let asking =
            self.view.steps.iter().filter(|(_, step)| matches!(step.phase, StepPhase::Asking { .. }));
        let open: Vec<Path> = asking.map(|(path, _)| path.clone()).collect();
        open.iter().for_each(|path| self.plan_decision(path));
    }

    /// Signals are counted from the start of the run. One that came before the run was taken up again is not heard twice.
    fn plan_signals(&mut self) {
        let (Some(script), Some(started)) = (self.host.script.clone(), self.view.started_at) else { return };
        for (number, signal) in script.signals.iter().enumerate() {
            self.plan(started.plus(signal.at), Planned::Signal(number));
        }
    }

    /// The decision that a gate is given next, if there is one and it is not planned already.
    fn scripted_decision(&self, path: &Path) -> Option<(String, usize, GateAnswer)> {
        let script = self.host.script.as_ref()?;
        let Name { id, plain } = ids::name(&self.view, path);
        let number = self.decided.get(&id).copied().unwrap_or_default();
        let answer = script.gates.decision(&id, &plain, number)?.clone();
        Some((id, number, answer))
    }

    fn plan_decision(&mut self, path: &Path) {
        let is_planned = |planned: &Planned| matches!(planned, Planned::Decide(other) if other == path);
        if self.agenda.values().any(is_planned) {
            return;
        }
        if let Some((_, _, answer)) = self.scripted_decision(path) {
            self.plan(self.clock.now().plus(answer.after), Planned::Decide(path.clone()));
        }
    }

    async fn decide(&mut self, path: Path) -> Result<(), Fatal> {
        let Some((step, number, answer)) = self.scripted_decision(&path) else { return Ok(()) };
        let GateAnswer { choice, by, reason, .. } = answer;
        let by = by.unwrap_or_else(|| "script".into());
        let id = format!("{SCRIPT}{step}-{number}").into();
        let decision = GateDecision { choice, by, reason, form: Value::Null };
        self.decided.insert(step, number + 1);
        // Before what follows from this one, so that it is heard even if the run ends at once.
        self.plan_decision(&path);
        if let Err(refused) = self.offer(Input::Decide { id, path, decision }).await? {
            self.notice(refused.to_string());
        }
        Ok(())
    }

    async fn signal(&mut self, number: usize) -> Result<(), Fatal> {
        let signal = self.host.script.as_ref().and_then(|script| script.signals.get(number).cloned());
        let Some(signal) = signal else { return Ok(()) };
        let id = format!("{SCRIPT}signal-{number}").into();
        let input =
            Input::Signal { id, name: signal.name, by: "script".into(), value: signal.value, to: None };
        if let Err(refused) = self.offer(input).await? {
            self.notice(refused.to_string());
        }
        Ok(())
    }

    fn notice(&self, text: String) {
        self.followers.tell(&Update::Notice(text));
    }
}

/// Passes on what jobs print and what they want remembered. Both end with the last job and the driver.
pub(crate) fn channels(followers: &Followers, sender: &mpsc::UnboundedSender<Mail>) -> (Output, Notes) {
    let (output, mut lines) = Output::channel(256);
    let followers = followers.clone();
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            followers.tell(&Update::Line(line));
        }
    });
    let (notes, mut kept) = Notes::channel(16);
    // Held weakly: the mailbox closes when nobody but this is left to write to it.
    let sender = sender.downgrade();
    tokio::spawn(async move {
        while let Some(note) = kept.recv().await {
            let Some(sender) = sender.upgrade() else { return };
            let (reply, answer) = oneshot::channel();
            let input = Input::Noted { job: note.job, key: note.key, value: note.value };
            if sender.send(Mail { input, reply: Some(reply) }).is_ok() && matches!(answer.await, Ok(Ok(()))) {
                let _ = note.durable.send(());
            }
        }
    });
    (output, notes)
}

/// Waits so long, or for ever.
async fn sleep(length: Option<std::time::Duration>) {
    match length {
        Some(length) => tokio::time::sleep(length).await,
        None => std::future::pending().await,
    }
}

/// What the ids of decisions and signals of a script begin with.
const SCRIPT: &str = "script-";

/// A run as its journal tells it.
pub(crate) struct Replayed {
    pub run: Run,
    pub view: View,
    pub tail: Option<Lsn>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
    /// How many decisions of a script each gate has had, by the id that the user sees.
    pub decided: HashMap<String, usize>,
}

pub(crate) fn replayed(
    store: &Store,
    id: &windlass_engine::RunId,
    program: &Arc<Program>,
) -> Result<Replayed, Error> {
    let records = store.journal.read(id, None)?;
    let mut events: Vec<Event> = Vec::new();
    for record in &records {
        events.extend(record.whole_events(&*store.blobs)?);
    }
    let run = Run::replay(id.clone(), program.clone(), &events);
    let view = View::of(program.clone(), &events);
    let mut decided = HashMap::new();
    for event in &events {
        if let What::Decided { id, path, .. } = &event.what
            && id.starts_with(SCRIPT)
        {
            *decided.entry(ids::name(&view, path).id).or_default() += 1;
        }
    }
    let last_at = events.last().map(|event| event.at);
    Ok(Replayed { run, view, tail: records.last().map(|record| record.lsn), last_at, decided })
}
