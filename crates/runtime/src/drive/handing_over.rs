//! How inputs reach a run: what it decides and what the desk says to that go to the journal in one order, and each is carried out as
//! soon as it is durable. What could not be written is tried again.

use super::{Driver, Fatal, History, REPORTS_AT_ONCE, Replayed};
use crate::clock::Clock;
use crate::rates::Passed;
use std::collections::VecDeque;
use windlass_engine::{
    Answer, Ask, Claim, DeskAnswer, DeskEffect, DeskInput, Effect, Full, Input, Job, Refused,
};
use windlass_store::{Append, Appended, Error, Pending, Prev, Ticket};

/// How the first wait after a failed write grows.
const RETRY_FIRST: std::time::Duration = std::time::Duration::from_millis(50);
const RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// What an input led to, and what is on its way to the journal because of it.
struct Link {
    answer: Answer,
    pending: Option<Pending<Appended>>,
}

/// Inputs from when they are handed over until all that they led to is durable.
struct Flight {
    /// Not yet taken by the run.
    inputs: VecDeque<(Input, Option<Ticket>)>,
    /// Taken, in the order in which they become durable.
    underway: VecDeque<Underway>,
    /// What the run waits for is asked for again before anything else.
    asks: bool,
    /// What the run said to the last one that it refused.
    answered: Result<(), Refused>,
}

/// An input that the run has taken.
struct Underway {
    /// None for what was asked again, and for what is durable in part: the rest of it is what the desk says.
    input: Option<Input>,
    links: VecDeque<Link>,
}

impl Flight {
    fn new(inputs: Vec<(Input, Option<Ticket>)>) -> Self {
        let asks = inputs.is_empty();
        Self { inputs: inputs.into(), underway: VecDeque::new(), asks, answered: Ok(()) }
    }

    /// What there is more to decide about is written down before the next input.
    fn next_input(&mut self) -> Option<(Input, Option<Ticket>)> {
        let again = |taken: &Underway| taken.links.iter().any(|link| link.answer.again);
        if self.underway.back().is_some_and(again) { None } else { self.inputs.pop_front() }
    }

    /// What becomes durable next.
    fn first(&mut self) -> Option<&mut Link> {
        while self.underway.front().is_some_and(|taken| taken.links.is_empty()) {
            self.underway.pop_front();
        }
        self.underway.front_mut()?.links.front_mut()
    }

    /// The first link is durable.
    fn land(&mut self) -> Option<Answer> {
        let taken = self.underway.front_mut()?;
        taken.input = None;
        let answer = taken.links.pop_front()?.answer;
        if answer.again {
            self.inputs.push_front((Input::Tick, None));
        }
        Some(answer)
    }

    /// What has not become durable is handed over once more, less what the desk said, which may not be true any more.
    fn turn_back(&mut self) {
        let taken = self.underway.drain(..).filter_map(|taken| taken.input);
        let taken: Vec<_> = taken.filter(|input| !matches!(input, Input::Answered { .. })).collect();
        taken.into_iter().rev().for_each(|input| self.inputs.push_front((input, None)));
        self.asks = true;
    }
}

/// What happens first while inputs are underway.
enum Next {
    /// The first link is durable.
    Durable,
    /// Somebody else wrote first, or what it rests on was not written.
    Outrun,
    Failed(Error),
    /// More jobs have ended.
    Reports(Vec<Input>),
}

impl Driver {
    /// Hands inputs to the run, makes what follows durable, and only then carries it out. Without any, the run asks again for what
    /// it waits for. One that is refused ends it there, unless it is a report: of many jobs one may not be waited for any more.
    ///
    /// Reports that come while others are underway join them: the disk and the jobs do not wait for each other.
    pub(super) async fn hand_over(
        &mut self,
        inputs: Vec<(Input, Option<Ticket>)>,
    ) -> Result<Result<(), Refused>, Fatal> {
        let joins = !inputs.is_empty() && inputs.iter().all(|(input, _)| is_report(input));
        let (mut flight, mut pause) = (Flight::new(inputs), RETRY_FIRST);
        loop {
            self.take_in(&mut flight);
            let may_join = joins && flight.underway.len() < REPORTS_AT_ONCE && self.has_time();
            if let Err(Refused::Broken(contradiction)) = flight.answered {
                let run = self.run.id().clone();
                return Err(Fatal(Error::Contradictory { run, contradiction }));
            }
            let Some(link) = flight.first() else { return Ok(flight.answered) };
            match self.next(link, may_join).await {
                Next::Durable => {
                    pause = RETRY_FIRST;
                    flight.land().into_iter().for_each(|answer| self.carry_out(answer));
                }
                Next::Reports(reports) => {
                    flight.inputs.extend(reports.into_iter().map(|report| (report, None)));
                }
                Next::Outrun => self.turn_back(&mut flight)?,
                Next::Failed(error @ Error::Io { fatal: false, .. }) if self.insists => {
                    self.turn_back(&mut flight)?;
                    // Nothing new is dispatched or acknowledged until this is written.
                    self.notice(format!("cannot write the journal, which is tried until it can be: {error}"));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
                Next::Failed(error) => return Err(Fatal(error)),
            }
        }
    }

    /// What is in memory and not on the disk is worth nothing.
    fn turn_back(&mut self, flight: &mut Flight) -> Result<(), Fatal> {
        flight.turn_back();
        self.replay()
    }

    /// Gives the run what it can take. What follows is then on its way to the journal.
    fn take_in(&mut self, flight: &mut Flight) {
        if std::mem::take(&mut flight.asks)
            && let Ok(links) = self.turn(None, None)
        {
            flight.underway.push_back(Underway { input: None, links });
        }
        while let Some((input, needs)) = flight.next_input() {
            match self.turn(Some(input.clone()), needs) {
                Ok(links) => flight.underway.push_back(Underway { input: Some(input), links }),
                Err(refused) => {
                    flight.answered = Err(refused);
                    if !is_report(&input) || matches!(flight.answered, Err(Refused::Broken(_))) {
                        flight.inputs.clear();
                    }
                }
            }
        }
    }

    async fn next(&mut self, link: &mut Link, may_join: bool) -> Next {
        let Some(pending) = &mut link.pending else { return Next::Durable };
        tokio::select! {
            biased;
            written = pending => match written {
                Ok(Appended::At(_)) => Next::Durable,
                Ok(Appended::Conflict { .. }) => Next::Outrun,
                Err(error) => Next::Failed(error),
            },
            Some(done) = self.work.join_next_with_id(), if may_join => Next::Reports(self.reported(done)),
        }
    }

    /// Whether nothing waits for this run but the reports of its jobs.
    fn has_time(&self) -> bool {
        let steps_aside = self.only_record || matches!(self.clock, Clock::Virtual(_));
        let is_due = || self.due().is_some_and(|due| due <= self.clock.now());
        !steps_aside && self.mail.is_empty() && self.hooks.is_empty() && !is_due()
    }

    /// Takes an input and whatever the desk says to what follows from it. Everything is on its way to the journal when this
    /// returns, in order; nothing is carried out.
    fn turn(&mut self, input: Option<Input>, needs: Option<Ticket>) -> Result<VecDeque<Link>, Refused> {
        let limits = &self.host.limits;
        self.run.ask_always(limits.jobs.is_some() || limits.processes.is_some() || self.desk.has_budgets());
        let mut chain = VecDeque::new();
        let mut inputs: VecDeque<(Input, Option<Ticket>)> = VecDeque::new();
        match input {
            Some(input) => inputs.push_back((input, needs)),
            None => {
                for effect in self.run.owed_asks() {
                    self.tell_desk(effect, None, &mut inputs);
                }
            }
        }
        while let Some((input, needs)) = inputs.pop_front() {
            let now = self.clock.now();
            let asked = match &input {
                Input::Answered { asker, answer: DeskAnswer::Granted } => Some(asker.clone()),
                _ => None,
            };
            let handled = match self.only_record {
                true => self.run.record(now, input),
                false => self.run.handle(now, input),
            };
            let answer = match (handled, asked) {
                (Ok(answer), _) => answer,
                (Err(broken @ Refused::Broken(_)), _) => return Err(broken),
                // It was granted to somebody who is not there any more.
                (Err(_), Some(asker)) if !self.run.needs(&asker) => {
                    self.desk.give_back(asker);
                    continue;
                }
                (Err(_), Some(_)) => continue,
                (Err(refused), None) if chain.is_empty() => return Err(refused),
                (Err(_), None) => continue,
            };
            let pending = self.append(&answer, needs);
            for effect in &answer.effects {
                self.tell_desk(effect.clone(), self.ticket(), &mut inputs);
            }
            chain.push_back(Link { answer, pending });
        }
        Ok(chain)
    }

    /// The record that was handed over last.
    fn ticket(&self) -> Option<Ticket> {
        match &self.tail {
            Prev::After(ticket) => Some(ticket.clone()),
            Prev::At(_) => None,
        }
    }

    fn append(&mut self, answer: &Answer, needs: Option<Ticket>) -> Option<Pending<Appended>> {
        if answer.events.is_empty() {
            return None;
        }
        let run = self.run.id().clone();
        match Append::new(run, self.tail.clone(), &answer.events) {
            Ok(append) => {
                let append = append.needing(needs);
                self.tail = Prev::After(append.ticket().clone());
                Some(self.store.journal.append(append))
            }
            Err(error) => {
                self.tail = Prev::After(Ticket::default());
                Some(Pending::refused(error))
            }
        }
    }

    /// Passes on to the desk what is for the desk. What it says at once comes back as inputs.
    fn tell_desk(
        &mut self,
        effect: Effect,
        needs: Option<Ticket>,
        inputs: &mut VecDeque<(Input, Option<Ticket>)>,
    ) {
        let (input, asker) = match effect {
            Effect::Ask { .. } if self.only_record => return,
            Effect::Ask { mut ask, job } => {
                if let Some(job) = &job {
                    self.add_to_ask(&mut ask, job);
                }
                let asker = ask.asker.clone();
                if let Clock::Virtual(now) = self.clock {
                    match self.rates.pass(now, &mut ask) {
                        Passed::Through => {}
                        Passed::Waits => return,
                        Passed::Answered(answer) => {
                            inputs.push_back((Input::Answered { asker, answer }, None));
                            return;
                        }
                    }
                }
                (DeskInput::Ask(ask), Some(asker))
            }
            Effect::Release { asker, used, end } => (DeskInput::Release { asker, used, end }, None),
            Effect::Listen(listener) => (DeskInput::Listen(listener), None),
            Effect::Deaf(address) => (DeskInput::Deaf(address), None),
            Effect::Conclude(_) => (DeskInput::Gone { run: self.run.id().clone() }, None),
            Effect::Dispatch(_) | Effect::Abort(_) => return,
        };
        // None of these is ever refused.
        let Ok(said) = self.desk.tell(input, needs, asker.as_ref()) else { return };
        for effect in said.effects {
            if let DeskEffect::Answer { asker, answer } = effect {
                inputs.push_back((Input::Answered { asker, answer }, said.rests_on.clone()));
            }
        }
    }

    /// What the house asks for beside what the plan says, and the most that a job can cost.
    fn add_to_ask(&self, ask: &mut Ask, job: &Job) {
        let most = self.scripted(job).and_then(|answer| answer.most);
        self.desk.add_budgets(ask, job);
        for claim in &mut ask.claims {
            if let (Claim::Spend { most: asked, .. }, Some(most)) = (claim, most) {
                *asked = most;
            }
        }
        let processes = self.host.limits.processes.filter(|_| self.host.starts_process(job));
        let house = [("house:jobs", self.host.limits.jobs), ("house:processes", processes)];
        for (key, limit) in house {
            if let Some(limit) = limit {
                ask.claims.push(Claim::Slot { key: key.into(), limit, full: Full::Wait, turns: true });
            }
        }
    }

    fn replay(&mut self) -> Result<(), Fatal> {
        let history = History::read(&self.store, self.run.id()).map_err(Fatal)?;
        let replayed = Replayed::of(self.run.id(), self.run.program(), &history).map_err(Fatal)?;
        (self.run, self.view, self.tail) = (replayed.run, replayed.view, Prev::At(replayed.tail));
        Ok(())
    }
}

/// Whether this is what became of a job.
fn is_report(input: &Input) -> bool {
    matches!(input, Input::Reported { .. } | Input::Lost { .. })
}
