//! The life of one run: inputs in, records written, effects carried out, until nothing is left to do or to wait for. `handing_over` is
//! how an input becomes durable, `history` what was written down before; `calling` is about the runs that it calls, `hooks` about what
//! is done around it, `scripted` about what a script does, `printing` about what jobs print.

use crate::artefacts::Artefacts;
use crate::calls::{self, Ended};
use crate::clock::Clock;
use crate::desk::Keeper;
use crate::follow::Followers;
use crate::host::Host;
use crate::rates::Rates;
use crate::report::ids::{self};
use crate::report::{self, Standing};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_engine::{
    Address, Amount, Answer, Decision, DeskInput, Effect, Event, Input, Job, JobKey, Letter, Outcome, Path,
    Refused, Run, RunId, StepPhase, Timestamp, View, What, Work, fits,
};
use windlass_executors::{Context, Line, Notes, Output};
use windlass_ir::Duration;
use windlass_store::{Error, Prev, Store, Ticket};

mod calling;
mod handing_over;
mod history;
mod hooks;
mod printing;
mod scripted;

pub(crate) use history::{History, Replayed};
pub(crate) use printing::channels;

/// Something on its way to a run, and whom to tell what became of it.
#[derive(Debug)]
pub(crate) struct Mail {
    pub told: Told,
    pub reply: Option<oneshot::Sender<Result<(), Refused>>>,
}

#[derive(Debug)]
pub(crate) enum Told {
    /// An input, and the record that it rests on.
    Input(Input, Option<Ticket>),
    /// A message that names no run, for one of those who listened.
    Letter(Address, Letter, Option<Ticket>),
    /// The desk has forgotten what it was asked.
    AskAgain,
    /// Something has happened to a run that this one has called.
    Stirred(RunId),
    /// The process is about to end.
    Stop,
}

/// The runs that this process drives.
pub(crate) type Live = Arc<Mutex<HashMap<RunId, (mpsc::UnboundedSender<Mail>, Followers)>>>;

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

/// How long a run is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until the run has ended.
    Everything,
    /// For every deadline, that of a gate too, but not for people alone.
    Deadlines,
    /// Not for people: gates that wait longer than a minute, signals, pauses.
    Work,
}

/// Gates whose time is up within this are waited for by whoever does not wait for people.
const SHORT: Duration = Duration::from_secs(60);

/// The process must not go on with this run: what is true stands on the disk.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Fatal(pub Error);

/// Why a run is told to make room.
const REPLACED: &str = "replaced by a newer run";

/// What was printed before a run is left is written down within this.
const PRINTING_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// So many reports are handed over before what follows from them is waited for.
const REPORTS_AT_ONCE: usize = 256;

#[derive(Debug)]
pub(crate) struct Driver {
    pub run: Run,
    pub view: View,
    pub tail: Prev,
    pub store: Store,
    pub desk: Keeper,
    /// Told whenever a run is not driven any more.
    pub ended: Arc<Notify>,
    pub host: Host,
    pub clock: Clock,
    pub patience: Patience,
    pub mail: mpsc::UnboundedReceiver<Mail>,
    pub followers: Followers,
    /// Jobs that executors are at work on. Dropping them ends what they started.
    pub work: JoinSet<Ended>,
    pub jobs: HashMap<JobKey, CancellationToken>,
    /// Told first to those whose time is up.
    pub overdue: HashMap<JobKey, CancellationToken>,
    pub keys: HashMap<tokio::task::Id, JobKey>,
    /// The runs that this one has called and that have not ended.
    pub calls: HashMap<RunId, Calling>,
    /// Where the lines and the notes of all jobs of this run go.
    pub output: Output,
    /// Ends when all that was printed is written down and told.
    pub printing: Option<JoinHandle<()>>,
    pub notes: Notes,
    /// What a script will do, by when. The number keeps what falls on one instant in order.
    pub agenda: BTreeMap<(Timestamp, u64), Planned>,
    pub planned: u64,
    /// How many decisions of the script each gate has had, by the id that the user sees.
    pub decided: HashMap<String, usize>,
    /// Rates of a run whose clock jumps: its time is nobody else's.
    pub rates: Rates,
    /// What came at once of what is done around the run.
    pub hooks: Vec<(JobKey, Outcome)>,
    /// The next instant worth waiting for.
    pub due_at: Option<Timestamp>,
    /// Nothing is carried out: whoever takes the run up will do it.
    pub only_record: bool,
    /// What cannot be written is tried again until it can. Not before somebody listens who can be told.
    pub insists: bool,
}

/// A call of another workflow.
#[derive(Debug)]
pub(crate) struct Calling {
    pub job: JobKey,
    pub state: CallState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    /// Somebody waits for the run.
    Followed,
    /// The same, and it may have gone on since it was last looked at.
    Stirred,
    /// The run waits for people.
    Rests,
}

/// One thing that a script will do.
#[derive(Debug)]
pub(crate) enum Planned {
    /// What a job reports, and what it says that it has cost.
    Report(JobKey, Outcome, Option<Amount>),
    Decide(Path),
    /// The signal with this number.
    Signal(usize),
}

enum Wake {
    Mail(Mail),
    /// Jobs have ended; what became of them.
    Reports(Vec<Input>),
    Time,
    /// Another run is not driven any more.
    Ended,
    Rest,
}

impl Driver {
    /// Drives the run until it has ended, or until only people could move it and nobody waits for them.
    pub async fn drive(mut self) -> Result<Standing, Fatal> {
        let standing = self.drive_on().await?;
        self.output = Output::nowhere();
        if let Some(printing) = self.printing.take() {
            // Whoever hears of the end finds what was printed before it; but an end is not held up for ever.
            let _ = tokio::time::timeout(PRINTING_MAX, printing).await;
        }
        Ok(standing)
    }

    async fn drive_on(&mut self) -> Result<Standing, Fatal> {
        self.plan_open_gates();
        self.plan_signals();
        if self.is_asking() {
            // What was answered before anybody could hear it is asked once more.
            self.hand_over(Vec::new()).await.map(drop)?;
        }
        loop {
            if self.run.outcome().is_some() && self.jobs.is_empty() {
                return Ok(report::standing(&self.view));
            }
            self.due_at = self.due();
            match self.wait().await {
                Wake::Mail(Mail { told: Told::Stop, .. }) => return self.stop().await,
                Wake::Mail(mail) => self.take(mail).await?,
                Wake::Reports(reports) => self.take_reports(reports).await?,
                Wake::Time => self.act().await?,
                Wake::Ended => {}
                Wake::Rest => return Ok(self.leave()),
            }
        }
    }

    /// Starts nothing new, ends what is at work and hears what became of it. What was told to stop stays owed: whoever takes
    /// the run up hands it out again. Runs that this one has called are stopped by whoever stops it, and go on with it.
    async fn stop(&mut self) -> Result<Standing, Fatal> {
        self.only_record = true;
        let called: HashSet<JobKey> = self.calls.values().map(|call| call.job.clone()).collect();
        for (_, token) in self.jobs.iter().filter(|(job, _)| !called.contains(job)) {
            token.cancel();
        }
        while self.jobs.keys().any(|job| !called.contains(job)) {
            tokio::select! {
                Some(mail) = self.mail.recv() => self.take(mail).await?,
                Some(done) = self.work.join_next_with_id() => {
                    let mut reports = self.reported(done);
                    reports.retain(|report| !is_given_up(report));
                    self.take_reports(reports).await?;
                }
                else => break,
            }
        }
        Ok(self.leave())
    }

    /// Nobody waits in a line who is not there.
    fn leave(&self) -> Standing {
        let asks: Vec<_> = self.run.asks().collect();
        asks.into_iter().for_each(|asker| self.desk.leave_line(asker));
        report::standing(&self.view)
    }

    async fn wait(&mut self) -> Wake {
        if let Ok(mail) = self.mail.try_recv() {
            return Wake::Mail(mail);
        }
        let asking = self.is_asking();
        // What it asks for may be held by its own scripted jobs, which end in its own time.
        let planned = self.agenda.values().any(|planned| matches!(planned, Planned::Report(..)));
        let waits_for_others =
            asking && !self.asks_in_vain() && !(matches!(self.clock, Clock::Virtual(_)) && planned);
        let busy = !self.jobs.is_empty() || waits_for_others;
        let until = match (&mut self.clock, self.due_at) {
            // Real work takes real time, even beside a clock that jumps.
            (Clock::Virtual(_), _) if busy => None,
            (Clock::Virtual(now), Some(due)) => {
                *now = (*now).max(due);
                return Wake::Time;
            }
            (Clock::Real | Clock::Steady { .. }, Some(due)) => Some(due),
            (_, None) if busy || self.patience == Patience::Everything && !self.view.reached => None,
            (_, None) => return Wake::Rest,
        };
        let left = until.map(|until| std::time::Duration::from_micros(until.since(self.clock.now()).0));
        let ended = self.ended.clone();
        tokio::select! {
            () = ended.notified(), if asking => Wake::Ended,
            mail = self.mail.recv() => mail.map_or(Wake::Rest, Wake::Mail),
            Some(done) = self.work.join_next_with_id() => Wake::Reports(self.reported(done)),
            () = sleep(left) => Wake::Time,
        }
    }

    /// What became of this job, and of all others that have ended meanwhile: they share a commit.
    fn reported(&mut self, done: Result<(tokio::task::Id, Ended), JoinError>) -> Vec<Input> {
        let mut reports: Vec<Input> = self.report(done).into_iter().collect();
        while reports.len() < REPORTS_AT_ONCE
            && let Some(done) = self.work.try_join_next_with_id()
        {
            reports.extend(self.report(done));
        }
        reports
    }

    /// An executor has returned, which is the report, or broken down, and then the job is gone. None for a run that was called and
    /// rests.
    fn report(&mut self, done: Result<(tokio::task::Id, Ended), JoinError>) -> Option<Input> {
        let (id, ended) = match done {
            Ok((id, ended)) => (id, ended),
            Err(error) => (error.id(), Ended::Lost),
        };
        let job = self.keys.remove(&id)?;
        self.jobs.remove(&job);
        self.overdue.remove(&job);
        if !self.calls.is_empty() && !matches!(ended, Ended::Called { outcome: None, .. }) {
            self.calls.retain(|_, call| call.job != job);
        }
        Some(match ended {
            Ended::Reported(outcome) => {
                if job.path.is_hook() {
                    self.hook_ended(&job, &outcome);
                }
                Input::Reported { job, outcome }
            }
            Ended::Called { outcome: Some(outcome), at, .. } => {
                self.clock = self.clock.not_before(at);
                Input::Reported { job, outcome }
            }
            Ended::Called { run, outcome: None, .. } => {
                self.rest(&run);
                return None;
            }
            Ended::Lost => Input::Lost { job, started: true },
        })
    }

    /// The next instant worth waiting for.
    fn due(&self) -> Option<Timestamp> {
        let planned = self.agenda.keys().next().map(|(at, _)| *at);
        let timer = self.run.next_deadline().filter(|due| self.is_worth_waiting_for(*due));
        planned.into_iter().chain(timer).chain(self.rates.next()).min()
    }

    /// Attempts, the waits between them and time that has to pass always are. A gate or a signal alone is, if its time is up
    /// soon or everything is waited for.
    fn is_worth_waiting_for(&self, due: Timestamp) -> bool {
        // A run that was called and rests is no work.
        let working = self.run.is_working() && (self.calls.is_empty() || !self.jobs.is_empty());
        if self.run.is_paused() && !working {
            return false;
        }
        let soon = due <= self.clock.now().plus(SHORT);
        working || soon || self.patience != Patience::Work || report::moves_by_itself(&self.view)
    }

    /// The time has come for something: a step of the script, or a timer of the run.
    async fn act(&mut self) -> Result<(), Fatal> {
        let now = self.clock.now();
        let first = self.agenda.first_key_value().filter(|((at, _), _)| *at <= now).map(|(key, _)| *key);
        match first.and_then(|key| self.agenda.remove(&key)) {
            Some(Planned::Report(job, outcome, used)) => {
                if let Some(used) = used {
                    // A job that is not waited for any more costs what was set aside for it.
                    let _ = self.offer(Input::Spent { job: job.clone(), used }).await?;
                }
                self.offer(Input::Reported { job, outcome }).await.map(drop)
            }
            Some(Planned::Decide(path)) => self.decide(path).await,
            Some(Planned::Signal(number)) => self.signal(number).await,
            None if self.rates.tick(now) => self.hand_over(Vec::new()).await.map(drop),
            None => self.offer(Input::Tick).await.map(drop),
        }
    }

    async fn take(&mut self, mail: Mail) -> Result<(), Fatal> {
        let answered = match mail.told {
            Told::Input(input, needs) => self.offer_resting_on(input, needs).await?,
            Told::Letter(to, letter, needs) => self.take_letter(to, letter, needs).await?,
            Told::AskAgain => self.ask_again().await.map(Ok)?,
            Told::Stirred(run) => {
                self.stirred(&run);
                Ok(())
            }
            // Heard where the run is driven; a second time it changes nothing.
            Told::Stop => Ok(()),
        };
        if let Some(reply) = mail.reply {
            // Whoever asked may have gone away.
            let _ = reply.send(answered);
        }
        Ok(())
    }

    /// Hands an input to the run, with all that follows from it at once.
    pub async fn offer(&mut self, input: Input) -> Result<Result<(), Refused>, Fatal> {
        self.offer_resting_on(input, None).await
    }

    async fn offer_resting_on(
        &mut self,
        input: Input,
        needs: Option<Ticket>,
    ) -> Result<Result<(), Refused>, Fatal> {
        let input = self.addressed(input);
        let answered = self.hand_over(vec![(input, needs)]).await?;
        self.end_hooks().await?;
        Ok(answered)
    }

    /// Hands several inputs to the run, which share a commit.
    pub async fn offer_all(&mut self, inputs: Vec<Input>) -> Result<Result<(), Refused>, Fatal> {
        let answered = self.hand_over(inputs.into_iter().map(|input| (input, None)).collect()).await?;
        self.end_hooks().await?;
        Ok(answered)
    }

    /// Hands over what became of jobs. One that is not waited for any more is heard by nobody.
    async fn take_reports(&mut self, reports: Vec<Input>) -> Result<(), Fatal> {
        if reports.is_empty() {
            return Ok(());
        }
        let _ = self.hand_over(reports.into_iter().map(|report| (report, None)).collect()).await?;
        self.end_hooks().await
    }

    async fn end_hooks(&mut self) -> Result<(), Fatal> {
        while let Some((job, outcome)) = self.hooks.pop() {
            self.hook_ended(&job, &outcome);
            // It cannot change the run, so that it was refused would not either.
            let _ = self.hand_over(vec![(Input::Reported { job, outcome }, None)]).await?;
        }
        Ok(())
    }

    /// A message that comes as a signal is delivered to the first step that waits for such a one.
    fn addressed(&self, input: Input) -> Input {
        let Input::Signal { id, name, by, value, to: None } = input else { return input };
        let listens = |entered: Option<&Decision>| match entered {
            Some(Decision::Wait(waiting)) => waiting.signal.as_ref().is_some_and(|signal| {
                signal.message && signal.name == name && fits(&signal.matching, &value, signal.as_text)
            }),
            _ => false,
        };
        let waiting = self.view.steps.iter().find(|(_, step)| {
            matches!(step.phase, StepPhase::Waiting { .. }) && listens(step.entered.as_deref())
        });
        let to = waiting.map(|(path, _)| path.clone());
        Input::Signal { id, name, by, value, to }
    }

    /// A message for a step that listens, or one that cancels the run. The desk owes it until it was taken, or never will be.
    async fn take_letter(
        &mut self,
        to: Address,
        letter: Letter,
        needs: Option<Ticket>,
    ) -> Result<Result<(), Refused>, Fatal> {
        let Letter { id, name, by, value } = letter;
        let heard = DeskInput::Heard { id: id.clone(), to: to.clone() };
        let input = match to.path.is_run() {
            true => Input::Cancel { path: to.path, why: format!("the message `{name}` came").into(), by },
            false => Input::Signal { id, name, by, value, to: Some(to.path) },
        };
        let answered = self.hand_over(vec![(input, needs)]).await?;
        // Nobody minds that it was heard.
        let _ = self.desk.tell(heard, None, None);
        Ok(answered)
    }

    /// What the desk has for a run that is taken up.
    pub async fn hear_what_is_owed(&mut self) -> Result<(), Fatal> {
        self.listen_again();
        let (letters, cancelled) = self.desk.owed_to(self.run.id());
        for (to, letter) in letters {
            // Who does not wait for it any more does not get it.
            let _ = self.take_letter(to, letter, None).await?;
        }
        if cancelled {
            let cancel = Input::Cancel { path: Path::default(), why: REPLACED.into(), by: "desk".into() };
            let _ = self.offer(cancel).await?;
        }
        Ok(())
    }

    /// Asks again for everything that the run waits for: whoever was asked has forgotten it, or another one.
    pub async fn ask_again(&mut self) -> Result<(), Fatal> {
        self.listen_again();
        self.hand_over(Vec::new()).await.map(drop)
    }

    fn listen_again(&self) {
        for listener in self.run.listeners() {
            // Whoever listens already goes on listening.
            let _ = self.desk.tell(DeskInput::Listen(Box::new(listener)), None, None);
        }
    }

    fn is_asking(&self) -> bool {
        self.run.asks().any(|asker| !self.rates.waits(&asker))
    }

    /// Whether nothing that the run asks for can be given by anybody who is at work here.
    fn asks_in_vain(&self) -> bool {
        self.run.asks().all(|asker| self.desk.waits_in_vain(&asker))
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
        answer.effects.into_iter().for_each(|effect| self.carry_out_effect(effect));
    }

    fn carry_out_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(_) | Effect::Abort(_) if self.only_record => {}
            Effect::Dispatch(job) if job.key.path.is_hook() => self.begin_hook(*job),
            Effect::Dispatch(job) => self.dispatch(*job),
            Effect::Abort(key) => self.abort(&key),
            // What is for the desk was passed on at once, since it becomes durable in the same order.
            Effect::Ask { .. }
            | Effect::Release { .. }
            | Effect::Listen(_)
            | Effect::Deaf(_)
            | Effect::Conclude(_) => {}
        }
    }

    fn is_at_work(&self, key: &JobKey) -> bool {
        let planned = |planned: &Planned| matches!(planned, Planned::Report(job, ..) if job == key);
        self.jobs.contains_key(key)
            || self.agenda.values().any(planned)
            || self.calls.values().any(|call| call.job == *key)
    }

    fn dispatch(&mut self, mut job: Job) {
        if let Some(answer) = self.scripted(&job) {
            // What hangs loses against whatever falls due at the same instant.
            let after = answer.after.plus(Duration(u64::from(answer.hangs)));
            let at = self.clock.now().plus(after);
            let outcome = match Artefacts::concern(&job) {
                true => self.artefacts().keep(answer.outcome, at),
                false => answer.outcome,
            };
            return self.plan(at, Planned::Report(job.key, outcome, answer.used));
        }
        job.step = ids::name(&self.view, &job.key.path).id.into();
        let overdue = CancellationToken::new();
        let abort = overdue.child_token();
        let environment = self.host.environment.clone();
        let (output, notes) = (self.output.clone(), self.notes.clone());
        let secrets = environment.clone();
        let context =
            Context { abort: abort.clone(), overdue: overdue.clone(), output, notes, secrets, environment };
        let key = job.key.clone();
        let task = match job.work.work {
            Work::Call { .. } if self.desk.reads() => {
                let run = self.run_of_call(&job);
                let call = Calling { job: key.clone(), state: CallState::Followed };
                self.calls.insert(run.clone(), call);
                let caller = self.caller(&key);
                self.work.spawn(calls::call(self.desk.engine(), run, job, caller, context))
            }
            _ => {
                let executor = self.host.executor(&job);
                let (artefacts, clock) = (Artefacts::concern(&job).then(|| self.artefacts()), self.clock);
                self.work.spawn(async move {
                    let outcome = executor.run(job, context).await;
                    Ended::Reported(match artefacts {
                        Some(artefacts) => artefacts.keep(outcome, clock.now()),
                        None => outcome,
                    })
                })
            }
        };
        self.keys.insert(task.id(), key.clone());
        self.overdue.insert(key.clone(), overdue);
        self.jobs.insert(key, abort);
    }

    fn artefacts(&self) -> Artefacts {
        let engine = self.desk.engine().upgrade();
        let data = engine.as_ref().map_or(std::path::Path::new(""), |engine| engine.folder());
        Artefacts::new(data, &self.host.environment.directory)
    }

    /// Tells a job to stop. A scripted one stops at once.
    fn abort(&mut self, key: &JobKey) {
        if let Some(token) = self.overdue.get(key).filter(|_| self.run.is_overdue(key)) {
            token.cancel();
        }
        if let Some(token) = self.jobs.get(key) {
            return token.cancel();
        }
        if self.calls.values().any(|call| call.job == *key) {
            return self.end_called(key);
        }
        self.agenda.retain(|_, planned| !matches!(planned, Planned::Report(job, ..) if job == key));
        let stopped = Outcome::Cancelled("told to stop".into());
        self.plan(self.clock.now(), Planned::Report(key.clone(), stopped, None));
    }

    fn notice(&self, text: String) {
        self.followers.tell(&Update::Notice(text));
    }
}

/// Whether this is a job of a process that is about to end, which was told to stop or broke down: nothing to write down.
fn is_given_up(report: &Input) -> bool {
    matches!(report, Input::Lost { .. } | Input::Reported { outcome: Outcome::Cancelled(_), .. })
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
