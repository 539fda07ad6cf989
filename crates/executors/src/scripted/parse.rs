//! Parses a mock file into a [`Script`]. Finds all problems in one pass, each with its location.

use super::{Answer, GateAnswer, Gates, Script, Signal};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_engine::{Amount, Choice, Failure, Outcome, class};
use windlass_ir::suggest::nearest;
use windlass_ir::value::Map;
use windlass_ir::{Duration, Value};

/// A problem in a mock file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Problem {
    /// Such as `steps.review[1].takes`, counted from 0.
    pub place: String,
    pub message: String,
}

const FORMS: [&str; 5] = ["outputs", "output", "continue", "error", "hang"];
const DURATION_HELP: &str =
    "write days, hours, minutes, seconds and milliseconds in that order, such as `3s`, `1h30m` or `250ms`";
const FORMS_HELP: &str = "use one of `outputs`, `output`, `continue`, `error` and `hang`";

pub fn script(script: &Value) -> Result<Script, Vec<Problem>> {
    let mut reader = Reader { problems: Vec::new() };
    let read = reader.script(script);
    match read {
        Some(script) if reader.problems.is_empty() => Ok(script),
        Some(_) | None => Err(reader.problems),
    }
}

/// The keys of an `error`.
pub const FAILURE_KEYS: [&str; 3] = ["class", "message", "retry_after"];

/// An `error` as written by mock files and local commands. `unsaid` is the default message.
pub fn failure(error: &Map, unsaid: impl FnOnce(&str) -> String) -> Result<Failure, Vec<Problem>> {
    let mut reader = Reader { problems: Vec::new() };
    let read = reader.failure(error, &Place::Key(&Place::Top, "error"), unsaid);
    read.ok_or(reader.problems)
}

/// The current location in the file.
#[derive(Clone, Copy)]
enum Place<'a> {
    Top,
    Key(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_plain = |key: &str| key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        match self {
            Self::Top => f.write_str("script"),
            Self::Key(Self::Top, key) => f.write_str(key),
            Self::Key(outer, key) if is_plain(key) => write!(f, "{outer}.{key}"),
            Self::Key(outer, key) => write!(f, "{outer}.{key:?}"),
            Self::Item(outer, index) => write!(f, "{outer}[{index}]"),
        }
    }
}

struct Reader {
    problems: Vec<Problem>,
}

/// Each of these returns `None` after reporting a problem.
impl Reader {
    fn script(&mut self, value: &Value) -> Option<Script> {
        let top = Place::Top;
        let map = self.object(value, &top, &["steps", "agents", "gates", "signals"])?;
        let mut steps = self.named(map, "steps", Self::answers);
        for (id, answers) in self.named(map, "agents", Self::answers) {
            if steps.contains_key(&id) {
                let place = Place::Key(&Place::Key(&top, "agents"), &id).to_string();
                self.say::<()>(&place, "`steps` also has responses for this step; keep one of the two");
            } else {
                steps.insert(id, answers);
            }
        }
        let gates = Gates(self.named(map, "gates", Self::decisions));
        let signals = given(map, "signals")
            .map_or_else(Vec::new, |value| self.items(value, &Place::Key(&top, "signals"), Self::signal));
        Some(Script { steps, gates, signals })
    }

    /// A section that has a list for every id.
    fn named<T>(
        &mut self,
        map: &Map,
        section: &str,
        read: fn(&mut Self, &Value, &Place) -> Vec<T>,
    ) -> IndexMap<Arc<str>, Vec<T>> {
        let place = Place::Key(&Place::Top, section);
        match given(map, section) {
            None => IndexMap::new(),
            Some(Value::Map(map)) => map
                .iter()
                .map(|(id, value)| (id.clone(), read(self, value, &Place::Key(&place, id))))
                .collect(),
            Some(other) => {
                self.wrong_kind::<()>(other, &place, "an object with a list for each id");
                IndexMap::new()
            }
        }
    }

    fn answers(&mut self, value: &Value, place: &Place) -> Vec<Answer> {
        if matches!(value, Value::List(items) if items.is_empty()) {
            self.say::<()>(place, "this list has no responses: add one, or remove the step");
        }
        self.items(value, place, Self::answer)
    }

    /// May be empty: then the gate waits.
    fn decisions(&mut self, value: &Value, place: &Place) -> Vec<GateAnswer> {
        self.items(value, place, Self::gate)
    }

    fn items<T>(
        &mut self,
        value: &Value,
        place: &Place,
        read: fn(&mut Self, &Value, &Place) -> Option<T>,
    ) -> Vec<T> {
        let Value::List(items) = value else {
            self.wrong_kind::<()>(value, place, "a list");
            return Vec::new();
        };
        let read =
            items.iter().enumerate().filter_map(|(index, item)| read(self, item, &Place::Item(place, index)));
        read.collect()
    }

    fn answer(&mut self, value: &Value, place: &Place) -> Option<Answer> {
        let keys: Vec<&str> = FORMS.into_iter().chain(["takes", "used", "most"]).collect();
        let map = self.object(value, place, &keys)?;
        let takes = self.duration(map, "takes", place);
        let (used, most) = (self.amount(map, "used", place), self.amount(map, "most", place));
        let mut forms = FORMS.into_iter().filter_map(|form| Some((form, map.get(form)?)));
        let Some((form, given)) = forms.next() else {
            return self.say(place, &format!("this entry has no response: {FORMS_HELP}"));
        };
        if let Some((second, _)) = forms.next() {
            return self.say(place, &format!("`{form}` and `{second}` cannot both be given: {FORMS_HELP}"));
        }
        let at = Place::Key(place, form);
        let (outcome, hangs) = match form {
            "outputs" => match given {
                Value::Map(_) => (Outcome::Done(given.clone()), None),
                other => return self.wrong_kind(other, &at, "an object with a value for each output"),
            },
            "continue" => (Outcome::Continue(given.clone()), None),
            "error" => (Outcome::Failed(self.scripted_failure(given, &at)?), None),
            "hang" => {
                let length = self.length(given, &at)?;
                (Outcome::Failed(Failure::new(class::ERROR, format!("hung for {length}"))), Some(length))
            }
            // `output`: whatever it is.
            _ => (Outcome::Done(given.clone()), None),
        };
        let after = takes?.unwrap_or_default().plus(hangs.unwrap_or_default());
        Some(Answer { outcome, after, hangs: hangs.is_some(), used: used?, most: most? })
    }

    /// The cost of work: `tokens`, `usd`, `calls` and `seconds`.
    fn amount(&mut self, map: &Map, key: &str, place: &Place) -> Option<Option<Amount>> {
        let Some(value) = given(map, key) else { return Some(None) };
        let place = Place::Key(place, key);
        let map = self.object(value, &place, &["tokens", "usd", "calls", "seconds"])?;
        let (tokens, calls) = (self.number(map, "tokens", &place), self.number(map, "calls", &place));
        let (usd, seconds) = (self.number(map, "usd", &place), self.number(map, "seconds", &place));
        Some(Some(Amount {
            tokens: tokens? as u64,
            calls: calls? as u64,
            micro_usd: (usd? * 1e6).round() as u64,
            time: Duration((seconds? * 1e6).round() as u64),
        }))
    }

    fn number(&mut self, map: &Map, key: &str, place: &Place) -> Option<f64> {
        match given(map, key) {
            None => Some(0.0),
            Some(Value::Int(number)) if *number >= 0 => Some(*number as f64),
            Some(Value::Float(number)) if *number >= 0.0 => Some(*number),
            Some(other) => self.wrong_kind(other, &Place::Key(place, key), "a number of at least 0"),
        }
    }

    fn scripted_failure(&mut self, value: &Value, place: &Place) -> Option<Failure> {
        let map = self.object(value, place, &FAILURE_KEYS)?;
        self.failure(map, place, |class| format!("a mock failure of class `{class}`"))
    }

    fn failure(&mut self, map: &Map, place: &Place, unsaid: impl FnOnce(&str) -> String) -> Option<Failure> {
        let class = self.text(map, "class", place);
        let message = self.text(map, "message", place);
        let retry_after = given(map, "retry_after")
            .map(|value| self.wait(value, &Place::Key(place, "retry_after")))
            .map_or(Some(None), |wait| wait.map(Some));
        let class = class?.unwrap_or_else(|| class::ERROR.into());
        let message = message?.unwrap_or_else(|| unsaid(&class).into());
        Some(Failure { retry_after: retry_after?, ..Failure::new(&class, message) })
    }

    fn gate(&mut self, value: &Value, place: &Place) -> Option<GateAnswer> {
        let map = self.object(value, place, &["action", "choice", "by", "reason", "fields", "after"])?;
        let (action, choice) = (self.text(map, "action", place), self.text(map, "choice", place));
        let (by, reason) = (self.text(map, "by", place), self.text(map, "reason", place));
        let after = self.duration(map, "after", place);
        let fields = match given(map, "fields") {
            None => Some(Value::Null),
            Some(fields @ Value::Map(_)) => Some(fields.clone()),
            Some(other) => self.wrong_kind(
                other,
                &Place::Key(place, "fields"),
                "an object with a value for each field of the form",
            ),
        };
        let choice = match (action?, choice?) {
            (Some(_), Some(_)) => {
                return self.say(place, "`action` and `choice` cannot both be given: keep one of them");
            }
            (None, None) => {
                return self.say(
                    place,
                    "missing decision: add `action`, which is `approve` or `reject`, or `choice`",
                );
            }
            (None, Some(option)) => Choice::Option(option),
            (Some(action), None) => match &*action {
                "approve" => Choice::Approve,
                "reject" => Choice::Reject,
                other => {
                    let place = Place::Key(place, "action");
                    return self.say(&place, &format!("invalid action `{other}`: use `approve` or `reject`"));
                }
            },
        };
        let after = after?.unwrap_or_default();
        Some(GateAnswer { choice, by: by?, reason: reason?, fields: fields?, after })
    }

    fn signal(&mut self, value: &Value, place: &Place) -> Option<Signal> {
        let map = self.object(value, place, &["name", "value", "at"])?;
        let (name, at) = (self.text(map, "name", place), self.duration(map, "at", place));
        let Some(name) = name? else {
            return self.say(place, "a signal needs a `name`");
        };
        let value = map.get("value").cloned().unwrap_or(Value::Null);
        Some(Signal { name, value, at: at?.unwrap_or_default() })
    }

    /// An object with only these keys.
    fn object<'a>(&mut self, value: &'a Value, place: &Place, keys: &[&str]) -> Option<&'a Map> {
        let Value::Map(map) = value else {
            return self.wrong_kind(value, place, "an object");
        };
        for key in map.keys().filter(|key| !keys.contains(&&***key)) {
            let hint = match nearest(key, keys.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are `{}`", keys.join("`, `")),
            };
            self.say::<()>(&Place::Key(place, key), &format!("unknown key; {hint}"));
        }
        Some(map)
    }

    /// `Some(None)` if it is not given.
    fn text(&mut self, map: &Map, key: &str, place: &Place) -> Option<Option<Arc<str>>> {
        match given(map, key) {
            None => Some(None),
            Some(Value::Text(text)) => Some(Some(text.clone())),
            Some(other) => self.wrong_kind(other, &Place::Key(place, key), "a string"),
        }
    }

    fn duration(&mut self, map: &Map, key: &str, place: &Place) -> Option<Option<Duration>> {
        match given(map, key) {
            None => Some(None),
            Some(value) => self.length(value, &Place::Key(place, key)).map(Some),
        }
    }

    fn length(&mut self, value: &Value, place: &Place) -> Option<Duration> {
        let Value::Text(text) = value else {
            return self.wrong_kind(value, place, "a duration such as \"3s\"");
        };
        match Duration::parse(text) {
            Some(length) => Some(length),
            None => self.say(place, &format!("invalid duration `{text}`: {DURATION_HELP}")),
        }
    }

    /// A duration, or a number of seconds.
    fn wait(&mut self, value: &Value, place: &Place) -> Option<Duration> {
        let wait = match value {
            Value::Text(_) => return self.length(value, place),
            Value::Int(seconds) => Duration::parse(&format!("{seconds}s")),
            Value::Float(seconds) if *seconds >= 0.0 => {
                Duration::parse(&format!("{}ms", (seconds * 1e3).ceil() as u64))
            }
            Value::Float(_) => None,
            other @ (Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) | Value::Sealed(_)) => {
                return self.wrong_kind(other, place, "a number of seconds or a duration such as \"3s\"");
            }
        };
        match wait {
            Some(wait) => Some(wait),
            None => self.say(place, "a wait must be at least zero seconds and at most ten years"),
        }
    }

    fn wrong_kind<T>(&mut self, found: &Value, place: &Place, wanted: &str) -> Option<T> {
        self.say(place, &format!("expected {wanted}, found {}", found.kind()))
    }

    fn say<T>(&mut self, place: &dyn std::fmt::Display, message: &str) -> Option<T> {
        self.problems.push(Problem { place: place.to_string(), message: message.to_owned() });
        None
    }
}

/// A null key is the same as an absent one.
fn given<'a>(map: &'a Map, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|value| **value != Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<Script, Vec<String>> {
        let value = serde_json::from_str(json).expect("JSON");
        Script::parse(&value).map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    fn check(answer: &str, outcome: Outcome, after: &str, hangs: bool) {
        let script = parsed(&format!(r#"{{"agents": {{"a": [{answer}]}}}}"#)).expect("a good script");
        let expected = Answer {
            outcome,
            after: Duration::parse(after).expect("a duration"),
            hangs,
            used: None,
            most: None,
        };
        assert_eq!(script.steps["a"], [expected], "{answer}");
    }

    fn bad(json: &str, expected: &[&str]) {
        assert_eq!(parsed(json).expect_err(json), expected);
    }

    #[test]
    fn every_form_of_a_response() {
        let failed = |class, message: &str| Outcome::Failed(Failure::new(class, message));
        let outputs = Value::map([("n", Value::Int(1))]);
        check(r#"{"outputs": {"n": 1}}"#, Outcome::Done(outputs), "0s", false);
        check(r#"{"output": null, "takes": "1m30s"}"#, Outcome::Done(Value::Null), "90s", false);
        check(r#"{"continue": [3.0]}"#, Outcome::Continue(Value::list([Value::Float(3.0)])), "0s", false);
        check(r#"{"error": {}}"#, failed("error", "a mock failure of class `error`"), "0s", false);
        check(
            r#"{"error": {"class": "oops", "message": "no"}, "takes": null}"#,
            failed("oops", "no"),
            "0s",
            false,
        );
        check(r#"{"hang": "10s"}"#, failed("error", "hung for 10s"), "10s", true);
        check(r#"{"hang": "10s", "takes": "1s"}"#, failed("error", "hung for 10s"), "11s", true);
        let later =
            Failure { retry_after: Some(Duration::from_millis(300)), ..Failure::new("rate_limit", "wait") };
        let answer = r#"{"error": {"class": "rate_limit", "message": "wait", "retry_after": "300ms"}}"#;
        check(answer, Outcome::Failed(later), "0s", false);
        let seconds = |seconds: &str, millis: u64| {
            let retry_after = Some(Duration::from_millis(millis));
            let later = Failure { retry_after, ..Failure::new("error", "wait") };
            let answer = format!(r#"{{"error": {{"message": "wait", "retry_after": {seconds}}}}}"#);
            check(&answer, Outcome::Failed(later), "0s", false);
        };
        seconds("2", 2_000);
        seconds("0", 0);
        seconds("0.25", 250);
        seconds("1e-9", 1);
    }

    #[test]
    fn every_part_is_optional() {
        assert_eq!(parsed("{}"), Ok(Script::default()));
        assert_eq!(
            parsed(r#"{"steps": null, "agents": {}, "gates": null, "signals": []}"#),
            Ok(Script::default())
        );
        let gate = parsed(r#"{"gates": {"g": [{"action": "approve"}], "h": []}}"#).expect("good").gates;
        let bare = GateAnswer {
            choice: Choice::Approve,
            by: None,
            reason: None,
            fields: Value::Null,
            after: Duration::ZERO,
        };
        assert_eq!(gate.0["g"], std::slice::from_ref(&bare));
        let filled =
            parsed(r#"{"gates": {"g": [{"action": "approve", "fields": {"n": 1}}]}}"#).expect("good");
        assert_eq!(filled.gates.0["g"], [GateAnswer { fields: Value::map([("n", Value::Int(1))]), ..bare }]);
        let signals =
            parsed(r#"{"signals": [{"name": "go"}, {"name": "x", "value": 2, "at": "5s"}]}"#).expect("good");
        let go = Signal { name: "go".into(), value: Value::Null, at: Duration::ZERO };
        let x = Signal { name: "x".into(), value: Value::Int(2), at: Duration::from_secs(5) };
        assert_eq!(signals.signals, [go, x]);
    }

    #[test]
    fn invalid_responses() {
        let answer =
            |answer: &str, expected: &str| bad(&format!(r#"{{"steps": {{"a": [{answer}]}}}}"#), &[expected]);
        answer("3", "steps.a[0]: expected an object, found integer");
        answer(
            "{}",
            "steps.a[0]: this entry has no response: use one of `outputs`, `output`, `continue`, `error` and `hang`",
        );
        answer(
            r#"{"output": 1, "hang": "1s"}"#,
            "steps.a[0]: `output` and `hang` cannot both be given: use one of `outputs`, `output`, `continue`, `error` and `hang`",
        );
        answer(r#"{"output": 1, "take": "1s"}"#, "steps.a[0].take: unknown key; did you mean `takes`?");
        answer(
            r#"{"output": 1, "by": "me"}"#,
            "steps.a[0].by: unknown key; there are `outputs`, `output`, `continue`, `error`, `hang`, `takes`, `used`, `most`",
        );
        answer(
            r#"{"outputs": 1}"#,
            "steps.a[0].outputs: expected an object with a value for each output, found integer",
        );
        answer(
            r#"{"output": 1, "takes": "soon"}"#,
            "steps.a[0].takes: invalid duration `soon`: write days, hours, minutes, seconds and milliseconds in that order, such as `3s`, `1h30m` or `250ms`",
        );
        answer(r#"{"hang": true}"#, "steps.a[0].hang: expected a duration such as \"3s\", found boolean");
        answer(r#"{"error": "no"}"#, "steps.a[0].error: expected an object, found string");
        answer(r#"{"error": {"class": 4}}"#, "steps.a[0].error.class: expected a string, found integer");
        for wait in ["-1", "-0.5", "1e300", "400000000"] {
            answer(
                &format!(r#"{{"error": {{"retry_after": {wait}}}}}"#),
                "steps.a[0].error.retry_after: a wait must be at least zero seconds and at most ten years",
            );
        }
        answer(
            r#"{"error": {"retry_after": true}}"#,
            "steps.a[0].error.retry_after: expected a number of seconds or a duration such as \"3s\", found boolean",
        );
        answer(
            r#"{"error": {"code": "x"}}"#,
            "steps.a[0].error.code: unknown key; there are `class`, `message`, `retry_after`",
        );
    }

    #[test]
    fn all_problems_are_reported_at_once_with_their_location() {
        bad("[]", &["script: expected an object, found list"]);
        bad(r#"{"step": {}}"#, &["step: unknown key; did you mean `steps`?"]);
        bad(
            r#"{"steps": {"s[0]": [{"outputs": {}}, {}], "t": [], "u": {"output": 1}}, "signals": [{}], "gates": []}"#,
            &[
                "steps.\"s[0]\"[1]: this entry has no response: use one of `outputs`, `output`, `continue`, `error` and `hang`",
                "steps.t: this list has no responses: add one, or remove the step",
                "steps.u: expected a list, found object",
                "gates: expected an object with a list for each id, found list",
                "signals[0]: a signal needs a `name`",
            ],
        );
        bad(
            r#"{"steps": {"a": [{"output": 1}]}, "agents": {"a": [{"output": 2}]}}"#,
            &["agents.a: `steps` also has responses for this step; keep one of the two"],
        );
    }

    #[test]
    fn invalid_decisions() {
        let gate =
            |gate: &str, expected: &str| bad(&format!(r#"{{"gates": {{"g": [{gate}]}}}}"#), &[expected]);
        gate("{}", "gates.g[0]: missing decision: add `action`, which is `approve` or `reject`, or `choice`");
        gate(
            r#"{"action": "approve", "choice": "a"}"#,
            "gates.g[0]: `action` and `choice` cannot both be given: keep one of them",
        );
        gate(
            r#"{"action": "maybe"}"#,
            "gates.g[0].action: invalid action `maybe`: use `approve` or `reject`",
        );
        gate(r#"{"action": "approve", "by": 7}"#, "gates.g[0].by: expected a string, found integer");
        gate(
            r#"{"action": "approve", "fields": []}"#,
            "gates.g[0].fields: expected an object with a value for each field of the form, found list",
        );
    }
}
