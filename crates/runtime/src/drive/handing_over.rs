//! How inputs reach a run: what it decides and what the desk says to that go to the journal in one order, are waited for together,
//! and only then carried out. What could not be written is tried again.

use super::{Driver, Fatal, History, Replayed, Update};
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

/// How much of what an input led to was written.
enum Written {
    All,
    /// The rest was not.
    Some,
    /// Nothing; with the cause, where it was no conflict.
    None(Option<Error>),
}

impl Driver {
    /// Hands inputs to the run, makes what follows durable, and only then carries it out. Without any, the run asks again for what
    /// it waits for. One that is refused ends it there, unless it is a report: of many jobs one may not be waited for any more.
    pub(super) async fn hand_over(
        &mut self,
        mut inputs: Vec<(Input, Option<Ticket>)>,
    ) -> Result<Result<(), Refused>, Fatal> {
        let (mut pause, mut asks) = (RETRY_FIRST, inputs.is_empty());
        loop {
            let (mut chain, mut begins, mut answered) = (Vec::new(), Vec::new(), Ok(()));
            if std::mem::take(&mut asks)
                && let Ok(links) = self.turn(None, None)
            {
                chain = links;
            }
            // What there is more to decide about is written down before the next input.
            while begins.len() < inputs.len() && !chain.last().is_some_and(|link: &Link| link.answer.again) {
                let (input, needs) = &mut inputs[begins.len()];
                begins.push(chain.len());
                match self.turn(Some(input.clone()), needs.take()) {
                    Ok(links) => chain.extend(links),
                    Err(refused) => {
                        answered = Err(refused);
                        if !is_report(input) {
                            inputs.truncate(begins.len());
                        }
                    }
                }
            }
            let (answers, written) = self.written(chain).await?;
            match written {
                Written::All => {
                    let again = answers.iter().any(|answer| answer.again);
                    answers.into_iter().for_each(|answer| self.carry_out(answer));
                    inputs.drain(..begins.len());
                    if again {
                        inputs.insert(0, (Input::Tick, None));
                    } else if inputs.is_empty() {
                        return Ok(answered);
                    }
                }
                // Somebody else wrote first, or what it rests on was not written: what is in memory is worth nothing.
                Written::Some => {
                    self.replay()?;
                    self.catch_up(&answers);
                    inputs.drain(..begins.partition_point(|begin| *begin < answers.len()));
                    asks = true;
                }
                Written::None(cause) => {
                    self.replay()?;
                    if let Some(error) = cause {
                        if !self.insists {
                            return Err(Fatal(error));
                        }
                        // Nothing new is dispatched or acknowledged until this is written.
                        self.notice(format!(
                            "cannot write the journal, which is tried until it can be: {error}"
                        ));
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(RETRY_MAX);
                    }
                    // What the desk said may not be true any more.
                    inputs.retain(|(input, _)| !matches!(input, Input::Answered { .. }));
                    asks = inputs.is_empty();
                }
            }
        }
    }

    /// Takes an input and whatever the desk says to what follows from it. Everything is on its way to the journal when this
    /// returns, in order; nothing is carried out.
    fn turn(&mut self, input: Option<Input>, needs: Option<Ticket>) -> Result<Vec<Link>, Refused> {
        let limits = &self.host.limits;
        self.run.ask_always(limits.jobs.is_some() || limits.processes.is_some() || self.desk.has_budgets());
        let mut chain: Vec<Link> = Vec::new();
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
            chain.push(Link { answer, pending });
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
        match Append::apart(run, self.tail.clone(), &answer.events, &*self.store.blobs) {
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

    /// Waits until all of it is durable, or is known not to be.
    async fn written(&mut self, chain: Vec<Link>) -> Result<(Vec<Answer>, Written), Fatal> {
        let (mut answers, mut last) = (Vec::with_capacity(chain.len()), None);
        for Link { answer, pending } in chain {
            let appended = match pending {
                None => None,
                Some(pending) => Some(pending.await),
            };
            let cause = match appended {
                None => {
                    answers.push(answer);
                    continue;
                }
                Some(Ok(Appended::At(lsn))) => {
                    last = Some(lsn);
                    answers.push(answer);
                    continue;
                }
                Some(Ok(Appended::Conflict { .. })) => None,
                Some(Err(error @ Error::Io { fatal: false, .. })) => Some(error),
                Some(Err(error)) => return Err(Fatal(error)),
            };
            let written = if last.is_none() { Written::None(cause) } else { Written::Some };
            return Ok((answers, written));
        }
        if let Some(last) = last {
            self.tail = Prev::At(Some(last));
        }
        Ok((answers, Written::All))
    }

    /// What was written before the rest could not be is known to everybody all the same.
    fn catch_up(&mut self, answers: &[Answer]) {
        let events = answers.iter().flat_map(|answer| &answer.events);
        let before = self.view.events.saturating_sub(events.clone().count() as u64);
        for (number, event) in (1..).zip(events) {
            self.followers.tell(&Update::Event { seq: before + number, event: event.clone() });
        }
        for effect in self.run.outstanding() {
            match &effect {
                Effect::Dispatch(job) if self.is_at_work(&job.key) => {}
                _ => self.carry_out_effect(effect),
            }
        }
    }

    fn replay(&mut self) -> Result<(), Fatal> {
        let history = History::read(&self.store, self.run.id()).map_err(Fatal)?;
        let replayed = Replayed::of(self.run.id(), self.run.program(), &history);
        (self.run, self.view, self.tail) = (replayed.run, replayed.view, Prev::At(replayed.tail));
        Ok(())
    }
}

/// Whether this is what became of a job.
fn is_report(input: &Input) -> bool {
    matches!(input, Input::Reported { .. } | Input::Lost { .. })
}
