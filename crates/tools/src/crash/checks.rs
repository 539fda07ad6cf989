//! What must hold of a run that was killed: by its journal, by the trace that its steps left, and by its result.

use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

pub type Result<T> = std::result::Result<T, String>;

/// A line of the trace: what happened, the step as `run:/path`, and the job as `run:/path#attempt.delivery`.
type Line = Vec<String>;

/// A step and the number of its attempt.
type Attempt = (String, u64);

/// What was known to be over when the run was looked at before, and how many lines it had in the trace then.
#[derive(Default)]
pub struct Seen {
    over: BTreeMap<Attempt, usize>,
    events: Journals,
}

/// What happened in a run and in the runs that it has called, by the id of each.
pub type Journals = BTreeMap<String, Vec<Json>>;

pub struct Totals {
    pub steps: u64,
    pub redeliveries: u64,
}

impl Seen {
    /// Called while no process executes the run. What was recorded stays recorded and leaves no further line.
    pub fn look(&mut self, events: &Journals, trace: &[Line]) -> Result<()> {
        for (run, before) in &self.events {
            if !events.get(run).is_some_and(|now| now.starts_with(before)) {
                return Err(format!("the journal of {run} is not what it was before, with more behind it"));
            }
        }
        for (attempt, lines) in &self.over {
            let now = lines_of(attempt, trace);
            if now != *lines {
                return Err(format!(
                    "{attempt:?} was over with {lines} lines and has {now}\n{}",
                    shown(trace)
                ));
            }
        }
        self.over =
            over(events).into_iter().map(|attempt| (attempt.clone(), lines_of(&attempt, trace))).collect();
        self.events.clone_from(events);
        Ok(())
    }
}

/// What was shown while a run went on is in its journal for ever.
pub fn kept(heard: &[Json], events: &Journals) -> Result<()> {
    for event in heard {
        let number = event["seq"].as_u64().and_then(|seq| usize::try_from(seq).ok()).unwrap_or_default();
        let journal = events.get(&text(&event["run_id"])).map(Vec::as_slice).unwrap_or_default();
        if number.checked_sub(1).and_then(|place| journal.get(place)) != Some(event) {
            return Err(format!("this was shown and is not in the journal: {event}"));
        }
    }
    Ok(())
}

/// The attempts whose end is in the journal.
fn over(events: &Journals) -> Vec<Attempt> {
    let mut last = BTreeMap::new();
    let mut over = Vec::new();
    for event in events.values().flatten() {
        let (step, attempt) = attempt_of(event);
        match text(&event["event"]).as_str() {
            // A task that asks for another round has come to the end of this one.
            "scheduled" => over.extend(
                last.insert(step.clone(), attempt)
                    .filter(|before| *before < attempt)
                    .map(|before| (step, before)),
            ),
            "attempt_failed" | "settled" => over.extend(last.get(&step).map(|attempt| (step, *attempt))),
            _ => {}
        }
    }
    over.sort();
    over.dedup();
    over
}

fn lines_of((step, attempt): &Attempt, trace: &[Line]) -> usize {
    trace.iter().filter(|line| line[1] == *step && job(line).0 == *attempt).count()
}

/// Attempt and delivery of the job that a line is about.
fn job(line: &Line) -> (u64, u64) {
    let numbers =
        line.get(2).and_then(|job| job.rsplit_once('#')).and_then(|(_, numbers)| numbers.split_once('.'));
    let (attempt, delivery) = numbers.unwrap_or_default();
    (attempt.parse().unwrap_or_default(), delivery.parse().unwrap_or_default())
}

/// The whole trace of a run that has ended, against its journal.
pub fn whole(events: &Journals, trace: &[Line], kills: u64) -> Result<Totals> {
    let fail = |what: String| Err(format!("{what}\n{}", shown(trace)));
    let all = || events.values().flatten();
    let scheduled: Vec<&Json> = all().filter(|event| event["event"] == "scheduled").collect();
    let mut starts: BTreeMap<Attempt, Vec<u64>> = BTreeMap::new();
    let mut running: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in trace {
        let (attempt, delivery) = job(line);
        match (line[0].as_str(), line[1].as_str()) {
            ("start", step) => {
                starts.entry((step.to_owned(), attempt)).or_default().push(delivery);
                running.insert(step, (attempt, delivery));
            }
            ("end", step) if running.get(step) == Some(&(attempt, delivery)) => {}
            ("end", step) => return fail(format!("{step} ended after it had been started again")),
            (what, step) => {
                return fail(format!("{step} is {what}: what an earlier owner started was still there"));
            }
        }
    }
    for (attempt, deliveries) in &starts {
        if !deliveries.is_sorted_by(|one, next| one < next) {
            return fail(format!("{attempt:?} was delivered as {deliveries:?}"));
        }
        if deliveries.len() as u64 > 1 + kills {
            return fail(format!("{attempt:?} was started {} times by {kills} kills", deliveries.len()));
        }
        let handed_out = |delivery: &u64| scheduled.iter().any(|event| is_job(event, attempt, *delivery));
        if !deliveries.iter().all(handed_out) {
            return fail(format!("{attempt:?} was started without a word in the journal"));
        }
    }
    let elsewhere: Vec<String> =
        all().filter(|event| is_elsewhere(event)).map(|event| attempt_of(event).0).collect();
    for attempt in over(events).into_iter().filter(|(step, _)| !elsewhere.contains(step)) {
        let last = scheduled.iter().rfind(|event| attempt_of(event) == attempt);
        let last = last.and_then(|event| event["delivery"].as_u64()).unwrap_or_default();
        let ended = trace
            .iter()
            .filter(|line| line[0] == "end" && line[1] == attempt.0 && job(line) == (attempt.1, last));
        if ended.count() != 1 {
            return fail(format!(
                "{attempt:?} is over by delivery {last}, which did not end once in the trace"
            ));
        }
    }
    let redeliveries = scheduled.iter().filter(|event| event["delivery"] != 1).count() as u64;
    let steps = all().filter(|event| event["event"] == "settled").count() as u64;
    Ok(Totals { steps, redeliveries })
}

/// Whether what was handed out leaves no trace: a call, or something that a script answers for.
fn is_elsewhere(event: &Json) -> bool {
    event["executor"].as_str().is_some_and(|executor| executor != "shell" && executor != "task")
}

fn attempt_of(event: &Json) -> Attempt {
    let step = format!("{}:{}", text(&event["run_id"]), text(&event["path"]));
    (step, event["attempt"].as_u64().unwrap_or_default())
}

fn is_job(scheduled: &Json, attempt: &Attempt, delivery: u64) -> bool {
    attempt_of(scheduled) == *attempt && scheduled["delivery"] == delivery
}

/// The same result, apart from what took how long and how often, and from which of those beside each other was the last.
pub fn same(undisturbed: &Json, killed: &Json) -> Result<()> {
    let (one, other) = (lasting(undisturbed), lasting(killed));
    if one == other { Ok(()) } else { Err(format!("undisturbed: {one}\nkilled:      {other}")) }
}

fn lasting(result: &Json) -> Json {
    let steps = result["steps"].as_object();
    let is_last_of_many = |id: &str| {
        let (item, round) = (format!("{id}["), format!(":{id}:"));
        let mut ids = steps.into_iter().flatten().map(|(id, _)| id);
        ids.any(|other| other.starts_with(&item) || other.contains(&round))
    };
    let lasting = steps.into_iter().flatten().filter(|(id, _)| !is_last_of_many(id));
    let steps = lasting.map(|(id, step)| {
        let kept = json!({
            "status": step["status"], "output": step["output"], "error": step["error"],
            "skipped_because": step["skipped_because"], "input": step["input"],
        });
        (id.clone(), kept)
    });
    json!({
        "status": result["status"], "has_failures": result["has_failures"], "outputs": result["outputs"],
        "error": result["error"], "steps": steps.collect::<serde_json::Map<_, _>>(),
    })
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn shown(trace: &[Line]) -> String {
    trace.iter().map(|line| line.join(" ") + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal in short: `scheduled a 1 2` (attempt and delivery), `attempt_failed a`, `settled a`.
    fn journal(text: &str) -> Journals {
        let event = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok());
            let path = format!("/{}", words[1]);
            json!({"event": words[0], "run_id": "r", "path": path, "attempt": number(2), "delivery": number(3)})
        };
        [("r".to_owned(), text.lines().map(event).collect())].into()
    }

    fn trace(text: &str) -> Vec<Line> {
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn a_trace_must_fit_its_journal() {
        let check = |kills: u64, events: &str, lines: &str, problem: Option<&str>| {
            let found = whole(&journal(events), &trace(lines), kills).err();
            let fits = match (&found, problem) {
                (None, None) => true,
                (Some(found), Some(problem)) => found.contains(problem),
                (None, Some(_)) | (Some(_), None) => false,
            };
            assert!(fits, "{problem:?}, but found {found:?}");
        };
        let (once, twice) = ("scheduled a 1 1\nsettled a", "scheduled a 1 1\nscheduled a 1 2\nsettled a");
        check(0, once, "start r:/a r:/a#1.1\nend r:/a r:/a#1.1", None);
        check(1, twice, "start r:/a r:/a#1.1\nstart r:/a r:/a#1.2\nend r:/a r:/a#1.2", None);
        check(
            1,
            twice,
            "start r:/a r:/a#1.1\nend r:/a r:/a#1.1\nstart r:/a r:/a#1.2\nend r:/a r:/a#1.2",
            None,
        );
        check(1, once, "start r:/a r:/a#1.1", Some("did not end once"));
        check(1, once, "", Some("did not end once"));
        check(0, twice, "start r:/a r:/a#1.1\nstart r:/a r:/a#1.2\nend r:/a r:/a#1.2", Some("by 0 kills"));
        check(
            1,
            twice,
            "start r:/a r:/a#1.2\nend r:/a r:/a#1.2\nstart r:/a r:/a#1.2",
            Some("was delivered as [2, 2]"),
        );
        check(
            1,
            once,
            "start r:/a r:/a#1.1\nstart r:/a r:/a#1.2\nend r:/a r:/a#1.2",
            Some("without a word in the journal"),
        );
        check(1, twice, "start r:/a r:/a#1.1\nstart r:/a r:/a#1.2\nend r:/a r:/a#1.1", Some("started again"));
        check(1, twice, "start r:/a r:/a#1.1\nalive r:/a r:/a#1.2", Some("still there"));
    }

    #[test]
    fn what_was_recorded_stays_and_is_not_done_again() {
        let check = |before: (&str, &str), after: (&str, &str), holds: bool| {
            let mut seen = Seen::default();
            seen.look(&journal(before.0), &trace(before.1)).expect("nothing was known before");
            assert_eq!(seen.look(&journal(after.0), &trace(after.1)).is_ok(), holds, "{before:?} {after:?}");
        };
        let done = ("scheduled a 1 1\nsettled a", "start r:/a r:/a#1.1\nend r:/a r:/a#1.1");
        check(done, done, true);
        check(done, ("scheduled a 1 1", done.1), false);
        check(done, (done.0, "start r:/a r:/a#1.1\nend r:/a r:/a#1.1\nstart r:/a r:/a#1.2"), false);
        check(
            ("scheduled a 1 1", "start r:/a r:/a#1.1"),
            ("scheduled a 1 1\nscheduled a 1 2", "start r:/a r:/a#1.1\nstart r:/a r:/a#1.2"),
            true,
        );
    }
}
