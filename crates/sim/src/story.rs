//! Stories: a workflow, a script of inputs to a run of it, and expectations. The clock jumps.
//!
//! A story is a text file: comments, a workflow of any dialect between two lines of `---` (the first may name the
//! dialect), then one line for each input or expectation. The run writes a journal, which is stored next to the story
//! and must stay readable forever.

use crate::world::REPLAYS;
use std::fmt::Write as _;
use std::sync::Arc;
use windlass_dialects::{Dialect, Options, Text, load};
use windlass_engine::{
    Asker, Choice, CoordinatorAnswer, Denial, Effect, Event, Failure, GateDecision, Input, Job, Lineage,
    Outcome, Path, Program, Refused, Run, RunId, Start, StepPhase, StepView, Timestamp, View, What, Work,
};
use windlass_ir::expr::Semantics;
use windlass_ir::{Duration, Plan, Value};

/// The start of every story: 2026-01-01T00:00:00Z.
const BEGINNING: Timestamp = Timestamp(1_767_225_600_000_000);

/// The run of a story.
#[derive(Debug)]
pub struct Story {
    run: Run,
    view: View,
    pub plan: Plan,
    program: Arc<Program>,
    now: Timestamp,
    pub journal: Vec<Event>,
    /// Inputs, and the length of the journal after each.
    pub taken: Vec<(Timestamp, Input, usize)>,
    /// The last job at each path.
    jobs: Vec<Job>,
    sent: u32,
    started: bool,
}

/// Executes a story. An error names the line that failed.
pub fn execute(text: &str) -> Result<Story, String> {
    let (head, rest) = text.split_once("\n---").ok_or("a story has a workflow between two lines of ---")?;
    let (dialect, rest) = rest.split_once('\n').ok_or("the workflow is missing")?;
    let (workflow, lines) = rest.split_once("\n---\n").ok_or("the workflow has no end")?;
    if !head.lines().all(|line| line.starts_with('#') || line.trim().is_empty()) {
        return Err("before the workflow there are only comments".into());
    }
    let mut story = Story::of(plan_of(dialect.trim(), workflow)?)?;
    for (number, line) in lines.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        story.line(line).map_err(|problem| {
            let at = head.lines().count() + workflow.lines().count() + number + 3;
            format!("line {at}: {line}\n  {problem}\n{}", story.state_of_steps())
        })?;
    }
    Ok(story)
}

/// The plan of a workflow file in any dialect.
pub fn plan_in(file: &str) -> Result<Plan, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let loaded = load(Text { name: file.into(), bytes }, Options::default());
    loaded.plan.ok_or_else(|| format!("invalid workflow: {:#?}", loaded.diagnostics))
}

/// The plan of a workflow in the given dialect.
pub fn plan_of(dialect: &str, workflow: &str) -> Result<Plan, String> {
    let known = [
        ("", Dialect::Swdl, "WORKFLOW.yaml"),
        ("swdl", Dialect::Swdl, "WORKFLOW.yaml"),
        ("speckit", Dialect::Speckit, "workflow.yml"),
        ("dagnats", Dialect::Dagnats, "workflow.json"),
        ("dcc", Dialect::Dcc, "story.workflow.yaml"),
    ];
    let found = known.into_iter().find(|(word, ..)| *word == dialect);
    let (_, dialect, name) = found.ok_or_else(|| format!("unknown dialect `{dialect}`"))?;
    let text = Text { name: name.into(), bytes: workflow.as_bytes().to_vec() };
    let loaded = load(text, Options { dialect: Some(dialect), ..Options::default() });
    loaded.plan.ok_or_else(|| format!("invalid workflow: {:#?}", loaded.diagnostics))
}

impl Story {
    pub fn of(plan: Plan) -> Result<Self, String> {
        let program = Arc::new(Program::new(plan.clone()).map_err(|error| error.to_string())?);
        let id = RunId::new("story").map_err(|error| error.to_string())?;
        Ok(Self {
            run: Run::new(id, program.clone()),
            view: View::new(program.clone()),
            plan,
            program,
            now: BEGINNING,
            journal: Vec::new(),
            taken: Vec::new(),
            jobs: Vec::new(),
            sent: 0,
            started: false,
        })
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "expect" => return self.expect(rest.trim()),
            "refused" => {
                let input = self.input(rest.trim())?;
                return match self.run.clone().handle(self.now, input) {
                    Err(broken @ Refused::Broken(_)) => Err(broken.to_string()),
                    Err(_) => Ok(()),
                    Ok(_) => Err("the input was accepted".into()),
                };
            }
            "wait" => return self.wait(rest.trim()),
            "late" => return self.late(rest.trim()),
            "crash" => return self.crash(),
            _ => {}
        }
        let input = self.input(line)?;
        self.offer(input).map_err(|refused| format!("refused: {refused}"))
    }

    fn input(&mut self, line: &str) -> Result<Input, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (rest, by) = match rest.rsplit_once(" by ") {
            Some((rest, by)) => (rest, by.trim()),
            None => (rest, "ann"),
        };
        let by: Arc<str> = by.into();
        let (first, more) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        let more = more.trim();
        Ok(match word {
            "start" => {
                self.started = true;
                let (rest, callers) = rest.split_once(" under ").unwrap_or((rest, ""));
                let lineage = Lineage(callers.split_whitespace().map(Into::into).collect());
                let inputs = if rest.trim().is_empty() { Value::map::<&str>([]) } else { value(rest)? };
                Input::Start(Box::new(Start { by: Some(by), seed: 7, lineage, ..Start::with(inputs) }))
            }
            "done" => self.report(first, Outcome::Done(value(more)?))?,
            "continue" => self.report(first, Outcome::Continue(value(more)?))?,
            "fail" => self.report(first, Outcome::Failed(failure(more)?))?,
            "stopped" => self.report(first, Outcome::Cancelled("told to".into()))?,
            "lost" => Input::Lost { job: self.job(first)?.key.clone(), started: true },
            "unstarted" => Input::Lost { job: self.job(first)?.key.clone(), started: false },
            "note" => {
                let (key, noted) = more.split_once(' ').ok_or("note PATH KEY JSON")?;
                Input::Noted { job: self.job(first)?.key.clone(), key: key.into(), value: value(noted)? }
            }
            "approve" => self.decide(first, Choice::Approve, more, by)?,
            "reject" => self.decide(first, Choice::Reject, more, by)?,
            "choose" => self.decide(first, Choice::Option(more.into()), "", by)?,
            "signal" | "repeat" => {
                self.sent += u32::from(word == "signal");
                let (id, name) = (format!("signal-{}", self.sent).into(), first.into());
                Input::Signal { id, name, by, value: value(more)?, to: None }
            }
            "deliver" => {
                self.sent += 1;
                let (name, sent) = more.split_once(' ').ok_or("deliver PATH NAME JSON")?;
                let (id, to) = (format!("signal-{}", self.sent).into(), Some(self.path(first)?));
                Input::Signal { id, name: name.into(), by, value: value(sent)?, to }
            }
            "cancel" => {
                let path = if first.is_empty() { Path::default() } else { self.path(first)? };
                Input::Cancel { path, why: "enough".into(), by }
            }
            "pause" => Input::Pause { by },
            "resume" => Input::Resume { by },
            "change" => Input::Change { inputs: value(rest)?, by },
            "reopen" => {
                let inputs = if rest.trim().is_empty() { Value::map::<&str>([]) } else { value(rest)? };
                Input::Reopen { inputs, by }
            }
            "close" => Input::Close,
            "grant" => self.answer(first, CoordinatorAnswer::Granted)?,
            "found" => self.answer(first, CoordinatorAnswer::Found(value(more)?))?,
            "deny" => {
                let what = "tokens".into();
                self.answer(
                    first,
                    CoordinatorAnswer::Denied(Denial::BudgetExceeded { budget: more.into(), what }),
                )?
            }
            "taken" => {
                let by = RunId::new("another").map_err(|error| error.to_string())?;
                self.answer(first, CoordinatorAnswer::Denied(Denial::Taken { key: more.into(), by }))?
            }
            "spent" => {
                let used = value(more)?.to_json().and_then(|json| serde_json::from_value(json).ok());
                let used = used.ok_or("spent PATH {tokens, micro_usd, calls, time}")?;
                Input::Spent { job: self.job(first)?.key.clone(), used }
            }
            "tick" => Input::Tick,
            other => return Err(format!("unknown command `{other}`")),
        })
    }

    /// The answer of the coordinator to the run, or to the last attempt that asked at a path.
    fn answer(&self, path: &str, answer: CoordinatorAnswer) -> Result<Input, String> {
        let outstanding = self.run.outstanding();
        let asks = outstanding.iter().find_map(|effect| match effect {
            Effect::Ask { ask, .. } if ask.asker.path.to_string() == path => Some(ask.asker.clone()),
            _ => None,
        });
        let path = self.path(path).unwrap_or_default();
        let asker = asks.unwrap_or_else(|| Asker { run: self.run.id().clone(), path, attempt: 1 });
        Ok(Input::Answered { asker, answer })
    }

    fn report(&self, path: &str, outcome: Outcome) -> Result<Input, String> {
        Ok(Input::Reported { job: self.job(path)?.key.clone(), outcome })
    }

    fn decide(&mut self, path: &str, choice: Choice, more: &str, by: Arc<str>) -> Result<Input, String> {
        self.sent += 1;
        let (reason, form) = match more.strip_prefix('{') {
            Some(_) => (None, value(more)?),
            None => ((!more.is_empty()).then(|| more.trim_matches('"').into()), Value::Null),
        };
        let decision = GateDecision { choice, by, reason, form };
        Ok(Input::Decide { id: format!("decision-{}", self.sent).into(), path: self.path(path)?, decision })
    }

    fn path(&self, text: &str) -> Result<Path, String> {
        let found = self.view.steps().find(|(path, _)| path.to_string() == text);
        found.map(|(path, _)| path.clone()).ok_or_else(|| format!("there is nothing at {text}"))
    }

    fn step(&self, path: &str) -> Result<StepView<'_>, String> {
        self.view.step(&self.path(path)?).ok_or_else(|| format!("there is nothing at {path}"))
    }

    /// The last job at a path, or with `PATH@N` the n-th.
    fn job(&self, path: &str) -> Result<&Job, String> {
        let (path, number) = match path.split_once('@') {
            Some((path, number)) => (path, Some(number.parse::<usize>().map_err(|error| error.to_string())?)),
            None => (path, None),
        };
        let mut jobs = self.jobs.iter().filter(|job| job.key.path.to_string() == path);
        let job = match number {
            Some(number) => jobs.nth(number.saturating_sub(1)),
            None => jobs.next_back(),
        };
        job.ok_or_else(|| format!("no job was dispatched at {path}"))
    }

    fn offer(&mut self, input: Input) -> Result<(), Refused> {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let answer = self.run.handle(self.now, input.clone())?;
            for event in &answer.events {
                self.view.apply(event).expect(REPLAYS);
            }
            self.journal.extend(answer.events);
            self.taken.push((self.now, input, self.journal.len()));
            for effect in answer.effects {
                if let Effect::Dispatch(job) = effect {
                    self.jobs.push(*job);
                }
            }
            next = answer.again.then_some(Input::Tick);
        }
        Ok(())
    }

    /// Lets time pass, from one deadline to the next.
    fn wait(&mut self, length: &str) -> Result<(), String> {
        let length = Duration::parse(length).ok_or("wait DURATION")?;
        let end = self.now.plus(length);
        while let Some(due) = self.run.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.offer(Input::Tick).map_err(|refused| refused.to_string())?;
        }
        self.now = end;
        self.offer(Input::Tick).map_err(|refused| refused.to_string())
    }

    /// Lets time pass without a tick, so that the next input arrives before overdue timers fire.
    fn late(&mut self, length: &str) -> Result<(), String> {
        let length = Duration::parse(length).ok_or("late DURATION")?;
        self.now = self.now.plus(length);
        Ok(())
    }

    /// The owner dies, and the next one loads the run and reports all jobs as lost.
    fn crash(&mut self) -> Result<(), String> {
        let replayed = Run::replay(self.run.id().clone(), self.program.clone(), &self.journal);
        let replayed = replayed.map_err(|contradiction| contradiction.to_string())?;
        if replayed != self.run {
            return Err("the run differs from its journal".into());
        }
        self.run = replayed;
        let owed = self.run.outstanding();
        self.offer(Input::TakenUp).map_err(|refused| refused.to_string())?;
        for job in owed.iter().filter_map(Effect::job).cloned() {
            self.offer(Input::Lost { job, started: true }).map_err(|refused| refused.to_string())?;
        }
        Ok(())
    }

    fn expect(&self, wanted: &str) -> Result<(), String> {
        let (what, rest) = wanted.split_once(' ').unwrap_or((wanted, ""));
        let rest = rest.trim();
        let found = match what {
            "run" => match self.run.outcome() {
                Some(outcome) => shown(outcome),
                None => "running".into(),
            },
            "undone" => format!("{:?}", self.view.undone()).to_lowercase(),
            "jobs" => {
                let outstanding = self.run.outstanding();
                let mut paths: Vec<String> = outstanding
                    .iter()
                    .filter_map(|effect| match effect {
                        Effect::Dispatch(job) => Some(job.key.path.to_string()),
                        Effect::Abort(key) => Some(format!("{} (aborted)", key.path)),
                        Effect::Ask { ask, .. } => {
                            let keys: Vec<&str> = ask.claims.iter().map(|claim| &**claim.key()).collect();
                            Some(format!("{} (asks for {})", ask.asker.path, keys.join(", ")))
                        }
                        Effect::Release { .. }
                        | Effect::Subscribe(_)
                        | Effect::Unsubscribe(_)
                        | Effect::Conclude(_) => None,
                    })
                    .collect();
                paths.sort();
                return same(&paths.join(" "), rest);
            }
            "failures" => return same(&self.view.has_failures().to_string(), rest),
            "abandoned" => return self.flag(rest, |step| step.abandoned),
            "recovered" => return self.flag(rest, |step| step.recovered),
            "round" => {
                let (path, wanted) = rest.split_once(' ').ok_or("expect round PATH NUMBER [warn] [force]")?;
                let round = self.job(path)?.round.ok_or("the task may not ask for another round")?;
                let flags = [(round.warn, " warn"), (round.force, " force")];
                let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
                return same(&format!("{}{flags}", round.number), wanted);
            }
            "input" => {
                let (path, wanted) = rest.split_once(' ').ok_or("expect input PATH JSON")?;
                return same(&json(&given(self.job(path)?)), &json(&value(wanted)?));
            }
            "notes" => {
                let (path, wanted) = rest.split_once(' ').ok_or("expect notes PATH JSON")?;
                let notes = Value::map(self.job(path)?.notes.clone());
                return same(&json(&notes), &json(&value(wanted)?));
            }
            "attempts" => {
                let (path, wanted) = rest.split_once(' ').ok_or("expect attempts PATH NUMBER")?;
                return same(&self.step(path)?.attempts.to_string(), wanted);
            }
            "delays" => {
                let (path, wanted) = rest.split_once(' ').ok_or("expect delays PATH DURATION…")?;
                let delays = self.step(path)?.delays;
                let found: Vec<String> = delays.iter().map(ToString::to_string).collect();
                let wanted: Vec<&str> = wanted.split(' ').collect();
                let fits = delays.len() == wanted.len()
                    && delays.iter().zip(wanted).all(|(delay, wanted)| within(*delay, wanted));
                return if fits { Ok(()) } else { Err(format!("found: {}", found.join(" "))) };
            }
            "nothing" => {
                let there = self.path(rest).is_ok();
                return if there { Err(format!("there is something at {rest}")) } else { Ok(()) };
            }
            path => phase(&self.step(path)?.phase),
        };
        // The expectation may leave out the end of a line.
        let fits = found == rest || found.starts_with(&format!("{rest} ")) && !rest.is_empty();
        if fits { Ok(()) } else { Err(format!("found: {found}")) }
    }

    fn flag(&self, path: &str, flag: impl Fn(&StepView<'_>) -> bool) -> Result<(), String> {
        if flag(&self.step(path)?) { Ok(()) } else { Err("it is not".into()) }
    }

    /// The state of every step, for debugging.
    fn state_of_steps(&self) -> String {
        let mut text = String::new();
        for (path, step) in self.view.steps() {
            let _ = writeln!(text, "    {path} {}", phase(&step.phase));
        }
        if !self.started {
            text.push_str("    (not started)\n");
        }
        text
    }

    /// The plan and the events as text, one per line.
    pub fn written(&self) -> String {
        let mut text = serde_json::to_string(&self.plan).unwrap_or_default();
        text.push('\n');
        for event in &self.journal {
            text.push_str(&serde_json::to_string(event).unwrap_or_default());
            text.push('\n');
        }
        text
    }

    /// Replays the same inputs from every point of the journal, and expects the same end.
    pub fn check_prefixes(&self) -> Result<(), String> {
        for (cut, (_, _, length)) in self.taken.iter().enumerate() {
            let events = &self.journal[..*length];
            let run = Run::replay(self.run.id().clone(), self.program.clone(), events);
            let mut run = run.map_err(|contradiction| contradiction.to_string())?;
            for (now, input, _) in &self.taken[cut + 1..] {
                if let Err(refused) = run.handle(*now, input.clone()) {
                    return Err(format!("after {length} events {input:?} was refused: {refused}"));
                }
            }
            if run != self.run {
                return Err(format!("continuing after {length} events led to another end"));
            }
        }
        Ok(())
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        self.run.outcome()
    }
}

/// The plan and the events of a stored journal.
fn read(written: &str) -> Result<(Arc<Program>, Vec<Event>), String> {
    let mut lines = written.lines();
    let plan = lines.next().ok_or("the plan is missing")?;
    let plan: Plan = serde_json::from_str(plan).map_err(|error| format!("the plan: {error}"))?;
    let program = Arc::new(Program::new(plan).map_err(|error| error.to_string())?);
    let events: Result<Vec<Event>, String> = lines
        .enumerate()
        .map(|(number, line)| serde_json::from_str(line).map_err(|error| format!("event {number}: {error}")))
        .collect();
    Ok((program, events?))
}

/// The rules in the plan of a journal.
pub fn rules(written: &str) -> Result<Semantics, String> {
    read(written).map(|(program, _)| program.plan.semantics)
}

/// The combined digest of all steps in a stored journal and of the dispatched work.
pub fn digest(written: &str) -> Result<u64, String> {
    let (program, events) = read(written)?;
    let plan = &program.plan;
    let steps = plan.steps.iter().map(|step| windlass_engine::of_step(plan, step));
    let work = events.iter().filter_map(|event| match &event.what {
        What::Scheduled { path, assignment: Some(assignment), .. } => {
            let step = program.step(windlass_engine::step_at(&program, path)?);
            Some(windlass_engine::of_action(plan, step, assignment))
        }
        _ => None,
    });
    Ok(steps.chain(work).fold(0, |all: u64, digest| all.rotate_left(7) ^ digest))
}

/// Replays a stored journal and returns its outcome.
pub fn replay(written: &str) -> Result<Option<Outcome>, String> {
    let (program, events) = read(written)?;
    let id = RunId::new("story").map_err(|error| error.to_string())?;
    let run = Run::replay(id, program.clone(), &events).map_err(|contradiction| contradiction.to_string())?;
    let view = View::of(program, &events).map_err(|contradiction| contradiction.to_string())?;
    let seen = match view.phase() {
        windlass_engine::RunPhase::Ended(outcome) => Some(outcome.clone()),
        windlass_engine::RunPhase::Pending | windlass_engine::RunPhase::Running => None,
    };
    match seen.as_ref() == run.outcome() {
        true => Ok(seen),
        false => Err("the run and the view differ".into()),
    }
}

/// `30s`, or a range such as `20s..30s`.
fn within(delay: Duration, wanted: &str) -> bool {
    match wanted.split_once("..") {
        Some((low, high)) => match (Duration::parse(low), Duration::parse(high)) {
            (Some(low), Some(high)) => low <= delay && delay <= high,
            _ => false,
        },
        None => delay.to_string() == wanted,
    }
}

fn same(found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("found: {found}")) }
}

/// The input of a job.
fn given(job: &Job) -> Value {
    match &job.work.work {
        Work::Task { input, .. } | Work::Call { input, .. } => input.clone(),
        Work::Tool { args, .. } => args.0.clone(),
        Work::Shell { command, .. } => command.clone(),
        Work::Builtin { args, .. } => args.clone(),
        Work::Agent { .. } | Work::Http(_) | Work::Assistant(_) | Work::Notify { .. } => {
            job.work.input.clone()
        }
    }
}

fn value(text: &str) -> Result<Value, String> {
    match text.trim() {
        "" => Ok(Value::Null),
        text => serde_json::from_str(text).map_err(|error| format!("`{text}` is not JSON: {error}")),
    }
}

/// `CLASS`, `CLASS after 30s`, `CLASS "message"`.
fn failure(text: &str) -> Result<Failure, String> {
    let (class, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let failure =
        Failure::new(class, if rest.starts_with('"') { rest.trim_matches('"') } else { "it broke" });
    match rest.strip_prefix("after ") {
        Some(length) => {
            let retry_after = Some(Duration::parse(length).ok_or("CLASS after DURATION")?);
            Ok(Failure { retry_after, ..failure })
        }
        None if rest.starts_with('{') => Ok(Failure { detail: Some(value(rest)?), ..failure }),
        None => Ok(failure),
    }
}

fn json(value: &Value) -> String {
    value.to_json_text().unwrap_or_else(|| "(secret)".into())
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(value) => format!("done {}", json(value)),
        Outcome::Continue(value) => format!("continue {}", json(value)),
        Outcome::Failed(failure) => format!("failed {} {}", failure.class, failure.message),
        Outcome::Skipped(skip) => {
            let because = skip.because_of.as_deref().unwrap_or_default();
            format!("skipped {} {because}", skip.reason.word()).trim_end().to_owned()
        }
        Outcome::Cancelled(why) => format!("cancelled {why}"),
    }
}

fn phase(phase: &StepPhase<'_>) -> String {
    match phase {
        StepPhase::Dormant => "dormant".into(),
        StepPhase::Pending => "pending".into(),
        StepPhase::Queued { .. } => "queued".into(),
        StepPhase::Running => "running".into(),
        StepPhase::Backoff { .. } => "backoff".into(),
        StepPhase::Asking { message, .. } => {
            format!("asking {}", message.map(json).unwrap_or_default()).trim_end().to_owned()
        }
        StepPhase::Waiting { signal, .. } => {
            format!("waiting {}", signal.unwrap_or_default()).trim_end().to_owned()
        }
        StepPhase::Joined => "joined".into(),
        StepPhase::Inside => "inside".into(),
        StepPhase::Settled(outcome) => shown(outcome),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{Effect, End};

    /// Otherwise other runs would wait for the key until this run ends.
    #[test]
    fn a_step_canceled_between_attempts_releases_its_shared_key() {
        let workflow = "name: k\nsteps:\n  - {id: one, tool: t, idempotency_key: x, idempotency_scope: global, \
                        retry: {max_attempts: 3, backoff: fixed, initial_delay_ms: 1000}}\n  \
                        - {id: two, tool: t}\n";
        let mut story = Story::of(plan_of("dcc", workflow).expect("a plan")).expect("a story");
        for line in ["start", "grant /one", "fail /one transient"] {
            story.line(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        let cancel = story.input("cancel /one").expect("an input");
        let answer = story.run.handle(story.now, cancel).expect("accepted");
        let over = |effect: &Effect| matches!(effect, Effect::Release { end: End::Over, .. });
        assert!(answer.effects.iter().any(over), "{:?}", answer.effects);
    }
}
