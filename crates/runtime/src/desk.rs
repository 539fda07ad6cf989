//! The desk of a data folder, while this process owns it: what runs share, kept in one stream of its own beside the runs.
//!
//! What the desk decides and what follows from it in a run are handed to the journal one after the other and become durable
//! together: a shared limit costs records, not flushes. Each record names the one that it rests on, so that none is written if
//! that one is not. When that happens the desk is read anew, and everybody asks again.

use crate::clock::{Clock, Onward};
use crate::drive::{Live, Mail, Told};
use crate::engine::Engine;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, mpsc, watch};
use windlass_engine::{
    Address, Amount, Ask, Asker, Claim, Desk, DeskAnswer, DeskEffect, DeskEvent, DeskInput, DeskRefused,
    DeskState, DeskWhat, End, Input, Job, Key, Letter, Order, Path, Run, RunId, Work,
};
use windlass_ir::policy::Budget;
use windlass_store::{Append, Appended, Error, Lsn, Pending, Prev, Store, Ticket};

/// What the accounts that are not those of one run begin with.
const HOUSE_ACCOUNTS: [&str; 3] = ["all", "day", "workflow:"];

fn capped<'s>(state: &'s DeskState, kind: &str) -> Option<&'s Key> {
    let from: Key = kind.into();
    let mut accounts = state.accounts.range(from..).take_while(|(key, _)| key.starts_with(kind));
    accounts.find(|(_, account)| account.cap.is_some()).map(|(key, _)| key)
}

/// Who acts for the desk in messages to runs.
const DESK: &str = "desk";

/// How long the first attempt after a failed write waits, and the longest such wait.
const RETRY_FIRST: std::time::Duration = std::time::Duration::from_millis(50);
const RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// The stream is begun anew when so many events have come since, and more than twice as many as that takes.
const TOLD_AGAIN_AFTER: usize = 2_000;

#[derive(Clone, Debug)]
pub(crate) struct Keeper(Arc<Kept>);

struct Kept {
    store: Store,
    live: Live,
    engine: Weak<Engine>,
    state: Mutex<State>,
    clock: Onward,
    /// Told whenever the next deadline may be another one.
    changed: Notify,
    /// The last record that is known to be written, and how often the desk was read anew.
    written: watch::Sender<(u64, u64)>,
    attended: AtomicBool,
    /// Whether every run is driven here, so that whoever waits will be there.
    drives_all: AtomicBool,
    /// Whether runs are still being taken up.
    taking_up: AtomicBool,
    /// Whether there are caps that are not those of one run.
    budgets: AtomicBool,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

struct State {
    desk: Desk,
    tail: Prev,
    /// Events since the stream was begun, and how many that took.
    events: usize,
    begun_with: usize,
    /// How often it was read anew: what was handed over before that is not waited for any more.
    readings: u64,
    /// How many records were handed over.
    records: u64,
    /// Where everything that was handed over goes, to hear whether it was written.
    handed_over: Option<mpsc::UnboundedSender<HandedOver>>,
}

/// A record on its way: its number, after how many readings it was handed over, and what becomes of it.
type HandedOver = (u64, u64, Pending<Appended>);

/// What the desk said, and the record that this rests on.
pub(crate) struct Said {
    pub effects: Vec<DeskEffect>,
    /// How many a message was delivered to.
    pub delivered: usize,
    pub rests_on: Option<Ticket>,
}

impl Keeper {
    /// `found` is what was read from the store.
    pub fn open(store: Store, live: Live, engine: Weak<Engine>, found: (Desk, Option<Lsn>, usize)) -> Self {
        let (desk, tail, events) = found;
        let state = State {
            desk,
            tail: Prev::At(tail),
            events,
            begun_with: 0,
            readings: 0,
            records: 0,
            handed_over: None,
        };
        let kept = Kept {
            store,
            live,
            engine,
            state: Mutex::new(state),
            clock: Onward::starting_now(),
            changed: Notify::new(),
            written: watch::Sender::new((0, 0)),
            attended: AtomicBool::new(false),
            drives_all: AtomicBool::new(false),
            taking_up: AtomicBool::new(false),
            budgets: AtomicBool::new(false),
        };
        let keeper = Self(Arc::new(kept));
        keeper.note_budgets(&keeper.state());
        keeper
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the desk as it is.
    pub fn look<T>(&self, look: impl FnOnce(&DeskState) -> T) -> T {
        look(self.state().desk.state())
    }

    /// Hands an input to the desk. What it decides is on its way to the journal when this returns; it is written only if `needs`
    /// is. What concerns other runs has been passed on to them; what is left is for the caller.
    pub fn tell(
        &self,
        input: DeskInput,
        needs: Option<Ticket>,
        asks: Option<&Asker>,
    ) -> Result<Said, DeskRefused> {
        let mut state = self.state();
        let now = self.0.clock.now();
        let turn = state.desk.handle(now, input)?;
        if !turn.events.is_empty() {
            if turn.events.iter().any(|event| matches!(event.what, DeskWhat::AccountIs { .. })) {
                self.note_budgets(&state);
            }
            self.hand_over(&mut state, &turn.events, needs);
            if state.events > TOLD_AGAIN_AFTER + 2 * state.begun_with {
                let again = state.desk.told_again(now);
                self.hand_over(&mut state, &again, None);
                (state.events, state.begun_with) = (0, again.len());
            }
        }
        let rests_on = match &state.tail {
            Prev::After(ticket) => Some(ticket.clone()),
            Prev::At(_) => None,
        };
        drop(state);
        if !turn.events.is_empty() {
            self.0.changed.notify_one();
        }
        let is_own = |effect: &DeskEffect| match effect {
            DeskEffect::Answer { asker, .. } => Some(asker) == asks,
            DeskEffect::Deliver { .. } | DeskEffect::Cancel { .. } | DeskEffect::Start(_) => false,
        };
        let (own, others): (Vec<_>, Vec<_>) = turn.effects.into_iter().partition(is_own);
        let delivered = others.iter().filter(|effect| matches!(effect, DeskEffect::Deliver { .. })).count();
        others.into_iter().for_each(|effect| self.pass_on(effect, rests_on.clone()));
        Ok(Said { effects: own, delivered, rests_on })
    }

    /// The same, and returns when it is durable.
    pub async fn told(&self, input: DeskInput) -> Result<Said, crate::Error> {
        self.attend();
        let mut written = self.0.written.subscribe();
        let mut pause = RETRY_FIRST;
        loop {
            let readings = self.state().readings;
            let said = self.tell(input.clone(), None, None)?;
            let handed_over = (self.state().records, readings);
            let seen = written.wait_for(|seen| fate(handed_over, *seen) != Fate::Underway).await;
            match seen.map(|seen| fate(handed_over, *seen)) {
                Ok(Fate::Written) => return Ok(said),
                // The reason is most likely a full disk, which needs time.
                Ok(Fate::Lost | Fate::Underway) => tokio::time::sleep(pause).await,
                Err(_) => return Err(Error::Stopped.into()),
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    fn hand_over(&self, state: &mut State, events: &[DeskEvent], needs: Option<Ticket>) {
        state.events += events.len();
        let append = Append::desk(state.tail.clone(), events);
        let pending = match append {
            Ok(append) => {
                let append = append.needing(needs);
                state.tail = Prev::After(append.ticket().clone());
                self.0.store.journal.append(append)
            }
            Err(error) => {
                // Nothing that rests on this is written, since it never will be.
                state.tail = Prev::After(Ticket::default());
                Pending::refused(error)
            }
        };
        state.records += 1;
        if let Some(handed_over) = &state.handed_over {
            let _ = handed_over.send((state.records, state.readings, pending));
        }
    }

    /// Passes on what concerns runs. Whoever is not driven here hears it when it is taken up.
    fn pass_on(&self, effect: DeskEffect, rests_on: Option<Ticket>) {
        match effect {
            DeskEffect::Answer { asker, answer } => {
                let run = asker.run.clone();
                let told = Told::Input(Input::Answered { asker: asker.clone(), answer }, rests_on);
                if self.mail(&run, told) {
                    return;
                }
                match self.0.drives_all.load(Ordering::Acquire) {
                    true => self.wake(&run),
                    // Nobody would make use of it.
                    false => self.give_back(asker),
                }
            }
            DeskEffect::Deliver { to, letter } => {
                let run = to.run.clone();
                if !self.mail(&run, Told::Letter(to, letter, rests_on)) {
                    self.wake(&run);
                }
            }
            DeskEffect::Cancel { run, why } => {
                let path = Path::default();
                let input = Input::Cancel { path, why, by: DESK.into() };
                if !self.mail(&run, Told::Input(input.clone(), rests_on)) {
                    self.errand(move |engine| async move {
                        // A run that has ended meanwhile has made room.
                        let _ = engine.tell(&run, input).await;
                    });
                }
            }
            DeskEffect::Start(order) => self.start(order),
        }
    }

    /// Something has happened to a run that another one has called.
    pub fn stir(&self, caller: &RunId, run: &RunId) {
        if !self.mail(caller, Told::Stirred(run.clone())) {
            self.wake(caller);
        }
    }

    /// Whoever this desk belongs to.
    pub fn engine(&self) -> Weak<Engine> {
        self.0.engine.clone()
    }

    /// Whether workflows that are called can be read here.
    pub fn reads(&self) -> bool {
        self.0.engine.upgrade().is_some_and(|engine| engine.reads())
    }

    /// Something has happened to a run that nobody drives.
    pub fn wake(&self, run: &RunId) {
        let run = run.clone();
        self.errand(move |engine| async move { engine.wake(&run).await });
    }

    /// Starts a run that a trigger has ordered.
    pub fn start(&self, order: Order) {
        self.errand(move |engine| async move { engine.start_ordered(order).await });
    }

    fn errand<F: Future<Output = ()> + Send>(&self, errand: impl FnOnce(Arc<Engine>) -> F + Send + 'static) {
        let engine = self.0.engine.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(engine) = engine.upgrade() {
                    errand(engine).await;
                }
            });
        }
    }

    fn mail(&self, run: &RunId, told: Told) -> bool {
        let live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.get(run).is_some_and(|(mail, _)| mail.send(Mail { told, reply: None }).is_ok())
    }

    /// From now on every run is driven here.
    pub fn drive_all(&self) {
        self.0.drives_all.store(true, Ordering::Release);
        self.0.taking_up.store(true, Ordering::Release);
    }

    /// All of them are.
    pub fn all_taken_up(&self) {
        self.0.taking_up.store(false, Ordering::Release);
    }

    /// Somebody who waited is not there any more. Where every run is driven it is called when its turn comes, and keeps its place.
    pub fn leave_line(&self, asker: Asker) {
        if !self.0.drives_all.load(Ordering::Acquire) {
            self.give_back(asker);
        }
    }

    /// From now on time passes at the desk, and what could not be written is noticed.
    pub fn attend(&self) {
        if self.0.attended.swap(true, Ordering::AcqRel) {
            return;
        }
        if !self.0.drives_all.load(Ordering::Acquire) {
            self.clear_lines();
        }
        let (sender, mut handed_over) = mpsc::unbounded_channel::<HandedOver>();
        self.state().handed_over = Some(sender);
        let kept = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            while let Some((record, reading, pending)) = handed_over.recv().await {
                let written = matches!(pending.await, Ok(Appended::At(_)));
                let Some(kept) = kept.upgrade() else { return };
                match written {
                    true => kept.written.send_modify(|seen| seen.0 = record),
                    false => Keeper(kept).read_anew(reading).await,
                }
            }
        });
        let kept = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            while let Some(keeper) = kept.upgrade().map(Keeper) {
                let due = keeper.state().desk.next_deadline();
                let kept = keeper.0.clone();
                drop(keeper);
                let left = due.map(|due| due.since(kept.clock.now()));
                let until = async {
                    match left {
                        Some(left) => tokio::time::sleep(std::time::Duration::from_micros(left.0)).await,
                        None => std::future::pending().await,
                    }
                };
                let time = {
                    let changed = kept.changed.notified();
                    tokio::select! { () = until => true, () = changed => false }
                };
                if time {
                    // Time is refused by nobody.
                    let _ = Keeper(kept).tell(DeskInput::Tick, None, None);
                }
            }
        });
    }

    /// Something was not written, so what is in memory is worth nothing.
    async fn read_anew(&self, reading: u64) {
        if self.state().readings != reading {
            return;
        }
        let mut pause = RETRY_FIRST;
        let found = loop {
            match read(&self.0.store) {
                Ok(found) => break found,
                Err(error) if error.is_fatal() => {
                    // Nobody who waits for the desk would ever hear anything.
                    if let Some(engine) = self.0.engine.upgrade() {
                        engine.must_end(&error);
                    }
                    return;
                }
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(RETRY_MAX);
        };
        let mut state = self.state();
        (state.desk, state.tail, state.events) = (found.0, Prev::At(found.1), found.2);
        self.note_budgets(&state);
        state.readings += 1;
        let readings = state.readings;
        drop(state);
        self.0.written.send_modify(|seen| seen.1 = readings);
        let live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        for (mail, _) in live.values() {
            let _ = mail.send(Mail { told: Told::AskAgain, reply: None });
        }
    }

    /// Nobody who waits is there any more: whoever is taken up asks again, and keeps its place.
    fn clear_lines(&self) {
        let waiting: Vec<Asker> = self.look(|state| state.waiting.keys().cloned().collect());
        waiting.into_iter().for_each(|asker| self.give_back(asker));
    }

    /// Gives up what runs hold and do not need any more, because whoever drove them died before it could say so.
    pub fn settle_accounts(&self, run: &Run) {
        let own: Vec<Asker> =
            self.state().desk.askers().filter(|asker| asker.run == *run.id()).cloned().collect();
        for asker in own.into_iter().filter(|asker| !run.needs(asker)) {
            let (used, end) = run.ended(&asker);
            // The desk takes back whatever is given back.
            let _ = self.tell(DeskInput::Release { asker, used, end }, None, None);
        }
        if run.outcome().is_some() {
            let _ = self.tell(DeskInput::Gone { run: run.id().clone() }, None, None);
        }
    }

    /// The runs that have something at the desk.
    pub fn runs(&self) -> BTreeSet<RunId> {
        let state = self.state();
        let askers = state.desk.askers().map(|asker| asker.run.clone());
        askers.chain(state.desk.state().ears.keys().map(|address| address.run.clone())).collect()
    }

    /// What is owed to a run that is taken up: messages that it has not taken, and whether it has to make room.
    pub fn owed_to(&self, run: &RunId) -> (Vec<(Address, Letter)>, bool) {
        let state = self.state();
        let (mut letters, mut cancelled) = (Vec::new(), false);
        for effect in state.desk.outstanding() {
            match effect {
                DeskEffect::Deliver { to, letter } if to.run == *run => letters.push((to, letter)),
                DeskEffect::Cancel { run: other, .. } if other == *run => cancelled = true,
                DeskEffect::Deliver { .. }
                | DeskEffect::Cancel { .. }
                | DeskEffect::Start(_)
                | DeskEffect::Answer { .. } => {}
            }
        }
        (letters, cancelled)
    }

    /// Runs that triggers have ordered and that have not begun.
    pub fn orders(&self) -> Vec<Order> {
        self.look(|state| state.orders.values().map(|(_, order)| order.clone()).collect())
    }

    /// What was granted to somebody who is not there any more.
    pub fn give_back(&self, asker: Asker) {
        let (used, end) = (Amount::default(), End::Attempt);
        // The desk takes back whatever is given back.
        let _ = self.tell(DeskInput::Release { asker, used, end }, None, None);
    }

    /// Whether there are caps that are not those of one run.
    pub fn has_budgets(&self) -> bool {
        self.0.budgets.load(Ordering::Acquire)
    }

    fn note_budgets(&self, state: &State) {
        let capped = HOUSE_ACCOUNTS.iter().any(|kind| capped(state.desk.state(), kind).is_some());
        self.0.budgets.store(capped, Ordering::Release);
    }

    /// Lets a job that may cost something draw on the accounts of the house and of its workflow, where these have caps.
    pub fn add_budgets(&self, ask: &mut Ask, job: &Job) {
        let spends = match &job.work.work {
            Work::Agent { .. }
            | Work::Tool { .. }
            | Work::Task { .. }
            | Work::Http(_)
            | Work::Assistant(_) => true,
            Work::Shell { .. } | Work::Call { .. } | Work::Builtin { .. } | Work::Notify { .. } => false,
        };
        if !spends {
            return;
        }
        let own = format!("workflow:{}", ask.flow);
        let accounts = self.look(|state| {
            let known = |account: &&str| state.accounts.get(*account).is_some_and(|it| it.cap.is_some());
            ["all", "day", &own].into_iter().filter(known).map(Key::from).collect::<Vec<Key>>()
        });
        let most = Amount { calls: 1, ..Amount::default() };
        let claims =
            accounts.into_iter().map(|account| Claim::Spend { account, cap: Budget::default(), most });
        ask.claims.extend(claims);
    }

    /// Whether an asker waits for something that only a run which nobody drives can give.
    pub fn waits_in_vain(&self, asker: &Asker) -> bool {
        let state = self.state();
        let desk = state.desk.state();
        let Some(waiting) = desk.waiting.get(asker) else { return false };
        if self.0.taking_up.load(Ordering::Acquire) {
            return false;
        }
        if desk.timed.contains(&waiting.on) {
            return false;
        }
        let live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        let holders = desk.slots.get(&waiting.on).into_iter().flatten().map(|holder| &holder.run);
        let promiser = match desk.promises.get(&waiting.on) {
            Some(windlass_engine::DeskPromise::Pending { run, .. }) => Some(run),
            Some(windlass_engine::DeskPromise::Kept { .. }) | None => None,
        };
        !holders.chain(promiser).any(|run| live.contains_key(run))
    }

    /// What whoever starts a run with this key is told: the run that was started with it before, or that this one is the first.
    pub fn start_once(&self, key: &Arc<str>, run: &RunId, ttl: windlass_ir::Duration) -> Option<RunId> {
        let asker = Asker::start(run.clone(), 0);
        let claims = vec![Claim::Promise { key: key.clone(), ttl: Some(ttl) }];
        let ask = Ask {
            asker: asker.clone(),
            claims,
            since: self.0.clock.now(),
            ahead: 0,
            flow: key.clone(),
            ancestors: Vec::new(),
        };
        let said = self.tell(DeskInput::Ask(Box::new(ask)), None, Some(&asker)).ok()?;
        let found = said.effects.into_iter().find_map(|effect| match effect {
            DeskEffect::Answer { answer: DeskAnswer::Found(value), .. } => {
                value.as_str().and_then(RunId::written)
            }
            DeskEffect::Answer { .. }
            | DeskEffect::Deliver { .. }
            | DeskEffect::Cancel { .. }
            | DeskEffect::Start(_) => None,
        });
        if found.is_none() {
            let end = End::Done(windlass_ir::Value::text(run.as_str()));
            let used = Amount::default();
            // What was granted a moment ago is given back.
            let _ = self.tell(DeskInput::Release { asker, used, end }, None, None);
        }
        found
    }
}

/// Whether an input of the desk that was handed over is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Underway,
    Written,
    /// The desk was read again before this was known to be written, so it has to be handed over again.
    Lost,
}

/// Both arguments are the number of a record and the number of times the desk had been read again by then. Records are counted on
/// after it was read again: a later record says nothing about an earlier one.
fn fate((record, readings): (u64, u64), (written, seen): (u64, u64)) -> Fate {
    match () {
        () if seen > readings => Fate::Lost,
        () if written >= record => Fate::Written,
        () => Fate::Underway,
    }
}

/// The desk as its stream tells it, the last record of that, and how many events were read. What stands before the last beginning
/// is not needed, and not looked at if it is damaged.
pub(crate) fn read(store: &Store) -> Result<(Desk, Option<Lsn>, usize), Error> {
    let stream = RunId::desk();
    let mut records: Vec<Vec<DeskEvent>> = Vec::new();
    let (mut before, mut tail, mut page) = (None, None, PAGE);
    'pages: loop {
        let found = match store.journal.back(&stream, before, page).wait() {
            Err(error) if page > 1 && error.is_of_one_run() => {
                // One at a time, up to the damage: a beginning may stand in front of it.
                page = 1;
                continue;
            }
            found => found?,
        };
        let Some(last) = found.last() else { break };
        before = Some(last.lsn);
        for record in found {
            tail.get_or_insert(record.lsn);
            let events = record.desk_events(&*store.blobs).wait()?;
            let begins = matches!(events.first(), Some(first) if first.what == DeskWhat::Begun);
            records.push(events);
            if begins {
                break 'pages;
            }
        }
    }
    let events: Vec<DeskEvent> = records.into_iter().rev().flatten().collect();
    Ok((Desk::replay(&events), tail, events.len()))
}

/// Records of the stream that are read at once.
const PAGE: usize = 256;

/// Begins the desk anew behind whatever cannot be read: nothing is held, waited for, promised or spent any more.
pub(crate) fn renew(store: &Store) -> Result<(), Error> {
    let events = [DeskEvent { at: Clock::Real.now(), what: DeskWhat::Begun }];
    let mut prev = None;
    loop {
        let append = Append::desk(prev, &events)?;
        match store.journal.append(append).wait()? {
            Appended::At(_) => return Ok(()),
            // The journal knows where its damaged end is.
            Appended::Conflict { tail } => prev = tail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_later_reading_acknowledges_nothing() {
        assert_eq!(fate((2, 0), (1, 0)), Fate::Underway);
        assert_eq!(fate((2, 0), (2, 0)), Fate::Written);
        assert_eq!(fate((2, 0), (0, 1)), Fate::Lost);
        assert_eq!(fate((2, 0), (3, 1)), Fate::Lost);
    }
}
