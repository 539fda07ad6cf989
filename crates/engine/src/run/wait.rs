//! Waits for time, a signal or a message.

use super::records;
use super::state::{Phase, Place, Sleep};
use super::values::Sight;
use super::{Run, Turn};
use crate::coordinator::{Address, Subscription};
use crate::event::{Decision, Listening, Waiting, What};
use crate::input::{Effect, Refused};
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::{Failure, Outcome, class};
use std::sync::Arc;
use windlass_ir::cron::Cron;
use windlass_ir::expr::MessageRule;
use windlass_ir::trigger::CronSyntax;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Bound, Kind, Wait, WaitFor, WaitTimeout};
use windlass_ir::{Duration, Value};

impl Turn<'_> {
    pub(super) fn start_wait(&mut self, place: Place, wait: &Wait) -> Result<(), Failure> {
        let sight = self.sight(Some(place))?;
        let as_text = self.program(place).plan.semantics.messages == MessageRule::ByText;
        let listening = |name: &Arc<str>, matching: Map, message: bool| Waiting {
            until: wait.timeout.map(|timeout| self.now.plus(timeout)),
            on_wall: None,
            signal: Some(Listening { name: name.clone(), matching, message, as_text }),
        };
        let time = |until: Timestamp| Waiting { until: Some(until), on_wall: None, signal: None };
        let on_wall =
            |instant: Timestamp| Waiting { on_wall: Some(instant), ..time(self.run.by_own_clock(instant)) };
        let waiting = match &wait.what {
            WaitFor::Duration(length) => time(self.now.plus(duration(&sight, length)?)),
            WaitFor::Instant(bound) => {
                let waiting = match instant_of(&sight, bound)? {
                    Instant::In(length) => time(self.now.plus(length)),
                    Instant::At(instant) => on_wall(instant),
                };
                let max = self.program(place).plan.semantics.wait_max;
                if let Some(max) = max.filter(|max| waiting.until > Some(self.now.plus(*max))) {
                    let message =
                        format!("the instant is more than {max} ahead, the longest that a step may wait");
                    return Err(Failure::new(class::EXPRESSION_ERROR, message).in_field(bound.field.clone()));
                }
                waiting
            }
            WaitFor::Cron(pattern) => on_wall(self.next_match(pattern)?),
            WaitFor::Signal { name, matching } => {
                listening(name, super::render::bindings(&sight, matching)?, false)
            }
            WaitFor::Message { name, matching } => {
                listening(name, super::render::bindings(&sight, matching)?, true)
            }
        };
        let now = waiting.signal.is_none() && waiting.until.is_some_and(|until| until <= self.now);
        let unread = waiting.signal.as_ref().and_then(|signal| self.unread_for(signal));
        let path = self.path(place);
        let subscription = waiting.signal.as_ref().filter(|signal| signal.message).map(|signal| {
            let address = Address { run: self.run.id.clone(), path: path.clone() };
            let (name, matching) = (signal.name.clone(), signal.matching.clone());
            Subscription { address, name, matching, until: waiting.until, number: 0, as_text }
        });
        self.emit(What::Entered { path, decision: Decision::Wait(Box::new(waiting)) });
        self.answer
            .effects
            .extend(subscription.map(|subscription| Effect::Subscribe(Box::new(subscription))));
        match unread {
            Some((id, value)) => {
                let outcome = Outcome::Done(records::waited(self.state(), place, value));
                self.settle_as(place, outcome, |settled| settled.took = Some(id));
            }
            None if now => self.wait_over(place),
            None => {}
        }
        Ok(())
    }

    /// The first stored signal that this wait accepts. Messages are not stored.
    fn unread_for(&self, signal: &Listening) -> Option<(Arc<str>, Value)> {
        let mut unread = self.state().signals.unread.iter().filter(|_| !signal.message);
        let found = unread.find(|unread| {
            unread.name == signal.name && fits(&signal.matching, &unread.value, signal.as_text)
        });
        found.map(|unread| (unread.id.clone(), unread.value.clone()))
    }

    /// Resets timers for wall-clock instants after the wall clock was set.
    pub(super) fn clock_set(&mut self) {
        let timers: Vec<(Path, Timestamp)> = self.run.astray().collect();
        for (path, until) in timers {
            self.emit(What::TimerSet { path, reason: Reason::Wait, until });
        }
    }

    fn next_match(&self, pattern: &str) -> Result<Timestamp, Failure> {
        let wrong = |message: String| Failure::new(class::EXPRESSION_ERROR, message).in_field("cron");
        let cron = Cron::parse(pattern, CronSyntax::House).map_err(|error| wrong(error.message))?;
        let next = cron.next_micros(self.run.on_wall_clock(self.now).0);
        next.map(Timestamp).ok_or_else(|| wrong(format!("`{pattern}` never matches")))
    }

    /// Settles a wait that timed out or received its value.
    pub(super) fn wait_over(&mut self, place: Place) {
        let Phase::Wait(sleep) = &self.at(place).phase else { return };
        let Kind::Wait(wait) = self.state().kind(place) else { return };
        let outcome = match (&sleep.got, &sleep.signal, &wait.on_timeout) {
            (Some(value), _, _) => Outcome::Done(records::waited(self.state(), place, value.clone())),
            (None, None, _) => Outcome::Done(records::waited(self.state(), place, Value::Null)),
            (None, Some(_), WaitTimeout::Done(value)) => {
                Outcome::Done(records::waited(self.state(), place, value.clone()))
            }
            (None, Some(signal), WaitTimeout::Fail) => {
                let limit = wait.timeout.unwrap_or_default();
                let message = format!("`{}` did not come within {limit}", signal.name);
                Outcome::Failed(Failure::new(class::TIMEOUT, message))
            }
        };
        self.settle(place, outcome);
    }

    /// Delivers a signal to a wait, or stores it for a later one.
    pub(super) fn signalled(
        &mut self,
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        to: Option<Path>,
    ) -> Result<(), Refused> {
        if self.state().signals.ids.contains(&id) {
            return Ok(());
        }
        let path = match to {
            Some(path) => {
                let place = self.state().find(&path).filter(|place| self.listens(*place, &name, None, true));
                place.ok_or_else(|| Refused::NoWait(path.clone()))?;
                Some(path)
            }
            None => self.subscription(&name, &value).map(|place| self.path(place)),
        };
        self.emit(What::Signalled { id, name, by, value, path });
        Ok(())
    }

    /// The first wait that accepts this signal, in the order in which they began.
    fn subscription(&self, name: &str, value: &Value) -> Option<Place> {
        let mut sleeping = self.state().index.sleeping.iter().copied();
        sleeping.find(|place| self.listens(*place, name, Some(value), false))
    }

    fn listens(&self, place: Place, name: &str, value: Option<&Value>, message: bool) -> bool {
        let Phase::Wait(sleep) = &self.at(place).phase else { return false };
        let waits = sleep.signal.as_ref().filter(|signal| &*signal.name == name && sleep.got.is_none());
        let fitting =
            |signal: &Listening| value.is_none_or(|value| fits(&signal.matching, value, signal.as_text));
        waits.is_some_and(|signal| signal.message == message && fitting(signal))
    }
}

impl Run {
    /// The first step that waits for this message. A message sent to one run is delivered like a published one.
    pub fn subscriber(&self, name: &str, value: &Value) -> Option<Path> {
        let waits = |place: &&Place| match &self.state.at(**place).phase {
            Phase::Wait(Sleep { signal: Some(signal), got: None, .. }) => {
                signal.message && &*signal.name == name && fits(&signal.matching, value, signal.as_text)
            }
            _ => false,
        };
        let place = self.state.index.sleeping.iter().find(waits)?;
        Some(self.state.at(*place).path.clone())
    }
}

/// Whether a value has the expected values at dotted paths.
pub fn fits(matching: &Map, value: &Value, as_text: bool) -> bool {
    matching.iter().all(|(path, wanted)| {
        let found = path.split('.').try_fold(value, |value, name| value.get(name));
        found.is_some_and(|found| same(found, wanted) || as_text && reads_as(found, wanted))
    })
}

/// An integer equals a float of the same value.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(left), Value::Float(right)) | (Value::Float(right), Value::Int(left)) => {
            *left as f64 == *right
        }
        (left, right) => left == right,
    }
}

/// Whether two scalar values print alike.
fn reads_as(left: &Value, right: &Value) -> bool {
    let printed = |value: &Value| match value {
        Value::Text(text) => Some(text.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Null | Value::Sealed(_) | Value::List(_) | Value::Map(_) => None,
    };
    printed(left).is_some_and(|left| printed(right).is_some_and(|right| left == right))
}

fn duration(sight: &Sight<'_>, bound: &Bound) -> Result<Duration, Failure> {
    let value = sight.value(bound)?;
    let length = match &value {
        Value::Text(text) => Duration::parse_any(text),
        _ => None,
    };
    length.ok_or_else(|| {
        let message = format!("{} is not a duration such as 10m", shown(&value));
        Failure::new(class::EXPRESSION_ERROR, message).in_field(bound.field.clone())
    })
}

fn shown(value: &Value) -> String {
    value.to_json_text().unwrap_or_else(|| "a secret".into())
}

/// A rendered instant: relative or absolute.
enum Instant {
    In(Duration),
    At(Timestamp),
}

fn instant_of(sight: &Sight<'_>, bound: &Bound) -> Result<Instant, Failure> {
    let wrong =
        |message: String| Failure::new(class::EXPRESSION_ERROR, message).in_field(bound.field.clone());
    match sight.value(bound)? {
        Value::Text(text) => windlass_ir::time::instant(&text)
            .map(|micros| Instant::At(Timestamp(micros)))
            .ok_or_else(|| wrong(format!("`{text}` is not an instant such as 2027-01-31T09:00:00Z"))),
        Value::Int(millis) if millis >= 0 => Ok(Instant::In(Duration::from_millis(millis.unsigned_abs()))),
        Value::Float(millis) if millis >= 0.0 => Ok(Instant::In(Duration((millis * 1_000.0) as u64))),
        other => Err(wrong(format!("{} is not an instant", shown(&other)))),
    }
}

impl Run {
    /// Sets how far the wall clock is ahead of the run's clock, in microseconds.
    pub fn follow_wall(&mut self, ahead: i64) {
        self.wall_ahead = ahead;
    }

    fn by_own_clock(&self, instant: Timestamp) -> Timestamp {
        Timestamp(instant.0.saturating_sub(self.wall_ahead))
    }

    fn on_wall_clock(&self, own: Timestamp) -> Timestamp {
        Timestamp(own.0.saturating_add(self.wall_ahead))
    }

    /// Whether a step waits for a wall-clock instant.
    pub fn waits_on_wall(&self) -> bool {
        self.walls().next().is_some()
    }

    /// The timers for wall-clock instants that are no longer right, with their new times.
    pub(crate) fn astray(&self) -> impl Iterator<Item = (Path, Timestamp)> {
        let timers = self.walls().map(|(place, instant)| (place, self.by_own_clock(instant)));
        timers
            .filter(|(place, until)| self.state.timers.at(*place, Reason::Wait) != Some(*until))
            .map(|(place, until)| (self.state.at(place).path.clone(), until))
    }

    fn walls(&self) -> impl Iterator<Item = (Place, Timestamp)> {
        self.state.index.sleeping.iter().filter_map(|place| match &self.state.at(*place).phase {
            Phase::Wait(Sleep { on_wall, .. }) => on_wall.map(|instant| (*place, instant)),
            _ => None,
        })
    }
}
