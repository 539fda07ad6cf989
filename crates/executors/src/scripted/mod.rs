//! `scripted`: answers from a file instead of agents, tools and people. Pure: a script says what is answered and after how
//! long; whoever keeps the clock, a real one or a virtual one, decides when that is.

mod parse;

pub use parse::Problem;

use indexmap::IndexMap;
use std::sync::Arc;
use windlass_engine::{Failure, Job, Outcome, Path, Work, class};
use windlass_ir::{Duration, Value};

/// A script that has been read and holds no mistake.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// By the id of a step, or the name of a task or tool; never an empty list.
    steps: IndexMap<Arc<str>, Vec<Answer>>,
    pub gates: Gates,
    /// In the order of the file.
    pub signals: Vec<Signal>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub outcome: Outcome,
    /// How long after the job was handed out. A job that is aborted before does not answer.
    pub after: Duration,
    /// It answers nothing at all, and `outcome` is only what ends it if nothing else does: whatever falls due at the same
    /// instant comes first.
    pub hangs: bool,
}

/// What people decide, by the id of the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates(IndexMap<Arc<str>, Vec<GateAnswer>>);

#[derive(Clone, Debug, PartialEq)]
pub struct GateAnswer {
    pub choice: Choice,
    /// None: whoever runs the script.
    pub by: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
    /// How long after the gate began to wait for this decision.
    pub after: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Approve,
    Reject,
    Option(Arc<str>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub name: Arc<str>,
    pub value: Value,
    /// How long after the run started.
    pub at: Duration,
}

impl Script {
    /// Reads a script; says everything that is wrong with it.
    pub fn parse(script: &Value) -> Result<Self, Vec<Problem>> {
        parse::script(script)
    }

    /// The answer to a job: the entry for its attempt, the last one for all later ones. None for a shell step that the
    /// script does not mention, which is really run.
    pub fn answer(&self, job: &Job) -> Option<Answer> {
        let names = [Some(&*job.step), plain_id(&job.key.path), job.work.work.name()];
        let entries = names.into_iter().flatten().find_map(|name| self.steps.get(name));
        let answer = entries.and_then(|entries| entry(entries, job.key.attempt));
        match (answer, &job.work.work) {
            (Some(answer), _) => Some(answer.clone()),
            (None, Work::Shell { .. }) => None,
            (None, Work::Agent { .. } | Work::Tool { .. } | Work::Task { .. }) => Some(unanswered(job)),
        }
    }
}

impl Gates {
    /// The decision number `number`, from 0, at a gate. When they are used up the gate waits.
    pub fn for_step(&self, step: &str, path: &Path, number: usize) -> Option<&GateAnswer> {
        let names = [Some(step), plain_id(path)];
        names.into_iter().flatten().find_map(|name| self.0.get(name))?.get(number)
    }
}

/// The id as it stands in the file, whichever instance of the step this is.
fn plain_id(path: &Path) -> Option<&str> {
    path.segments().last().map(|segment| &*segment.name)
}

fn entry(entries: &[Answer], attempt: u32) -> Option<&Answer> {
    let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    entries.get(index).or(entries.last())
}

fn unanswered(job: &Job) -> Answer {
    let name = job.work.work.name().map(|name| format!(" or `{name}`")).unwrap_or_default();
    let step = &job.step;
    let message = format!("the script has no answer for `{step}`: add an entry `{step}`{name} under `steps`");
    let failure = Failure::new(class::NO_SCRIPTED_ANSWER, message);
    Answer { outcome: Outcome::Failed(failure), after: Duration::ZERO, hangs: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{Assignment, JobKey, RunId};
    use windlass_ir::value::Sealable;
    use windlass_ir::workflow::ShellOutput;

    const SCRIPT: &str = r#"{
        "steps": {
            "call": [{"error": {"class": "rate_limit", "retry_after": "2s"}}, {"output": 1, "takes": "3s"}],
            "each[1]": [{"output": "second"}],
            "each": [{"output": "any"}],
            "resize": [{"output": "by name"}],
            "build": [{"hang": "10s"}]
        },
        "gates": {"sign": [{"action": "reject", "by": "eve"}, {"choice": "later", "after": "5s"}]}
    }"#;

    fn script() -> Script {
        Script::parse(&serde_json::from_str(SCRIPT).expect("JSON")).expect("a good script")
    }

    fn job(step: &str, plain: &str, attempt: u32, work: Work) -> Job {
        let path = Path::default().child(plain.into(), None);
        let key = JobKey { run: RunId::new("r").expect("good"), path, attempt, delivery: 1 };
        let work = Arc::new(Assignment { input: Value::Null, work, env: IndexMap::new() });
        Job { key, step: step.into(), work, secrets: Arc::from([]), timeout: None, notes: IndexMap::new() }
    }

    fn tool(name: &str) -> Work {
        Work::Tool { tool: name.into(), server: None, args: Sealable(Value::Null) }
    }

    fn shell() -> Work {
        Work::Shell { command: Value::text("true"), cwd: None, stdin: None, output: ShellOutput::Text }
    }

    fn check(job: &Job, expected: Option<(&str, &str)>) {
        let answer = script().answer(job);
        let shown = answer.as_ref().map(|answer| {
            let outcome = match &answer.outcome {
                Outcome::Done(value) => value.to_json_text().expect("no secret"),
                Outcome::Failed(failure) => failure.class.to_string(),
                Outcome::Continue(_) | Outcome::Skipped(_) | Outcome::Cancelled(_) => panic!("{answer:?}"),
            };
            (outcome, answer.after.to_string())
        });
        assert_eq!(shown.as_ref().map(|(outcome, after)| (&**outcome, &**after)), expected);
    }

    #[test]
    fn one_entry_for_each_attempt_and_the_last_repeats() {
        check(&job("call", "call", 1, tool("t")), Some(("rate_limit", "0s")));
        check(&job("call", "call", 2, tool("t")), Some(("1", "3s")));
        check(&job("call", "call", 3, tool("t")), Some(("1", "3s")));
        check(&job("call", "call", u32::MAX, tool("t")), Some(("1", "3s")));
    }

    #[test]
    fn found_by_visible_id_then_plain_id_then_name() {
        check(&job("each[1]", "each", 1, tool("resize")), Some((r#""second""#, "0s")));
        check(&job("each[2]", "each", 1, tool("resize")), Some((r#""any""#, "0s")));
        check(&job("other", "other", 1, tool("resize")), Some((r#""by name""#, "0s")));
    }

    #[test]
    fn without_an_entry_only_shell_steps_are_really_run() {
        check(&job("other", "other", 1, tool("t")), Some(("no_scripted_answer", "0s")));
        check(&job("other", "other", 1, shell()), None);
        check(&job("call", "call", 2, shell()), Some(("1", "3s")));
    }

    #[test]
    fn a_hang_ends_in_a_failure_if_nothing_else_ends_it() {
        let answer = script().answer(&job("build", "build", 1, shell())).expect("an entry");
        assert!(answer.hangs);
        check(&job("build", "build", 1, shell()), Some(("error", "10s")));
    }

    #[test]
    fn decisions_are_used_up() {
        let gates = script().gates;
        let path = Path::default().child("sign".into(), Some(2));
        let first = gates.for_step("sign[2]", &path, 0).expect("a decision");
        assert_eq!((&first.choice, first.by.as_deref()), (&Choice::Reject, Some("eve")));
        let second = gates.for_step("sign", &path, 1).expect("a decision");
        assert_eq!((&second.choice, second.after), (&Choice::Option("later".into()), Duration::from_secs(5)));
        assert_eq!(gates.for_step("sign", &path, 2), None);
        assert_eq!(gates.for_step("other", &Path::default(), 0), None);
    }
}
