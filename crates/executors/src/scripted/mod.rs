//! `scripted`: mock responses from a file instead of agents, tools and people. Pure: the file says what the response
//! is and after how long; the owner of the clock, real or virtual, decides when that is.

mod parse;

pub use parse::Problem;
pub(crate) use parse::{FAILURE_KEYS, failure};

use indexmap::IndexMap;
use std::sync::Arc;
use windlass_engine::{Amount, Choice, Failure, Job, Outcome, Work, class};
use windlass_ir::expr::FailureClass;
use windlass_ir::{Duration, Value};

/// A valid mock file.
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
    /// The delay after the job was dispatched. A job that is aborted before does not respond.
    pub after: Duration,
    /// It never responds, and `outcome` only applies if nothing else ends it: anything due at the same instant comes
    /// first.
    pub hangs: bool,
    /// The reported cost, and the most it could be.
    pub used: Option<Amount>,
    pub most: Option<Amount>,
}

/// Decisions of people, by the id of the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates(IndexMap<Arc<str>, Vec<GateAnswer>>);

#[derive(Clone, Debug, PartialEq)]
pub struct GateAnswer {
    pub choice: Choice,
    /// `None` means the user who runs the mock file.
    pub by: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
    /// The fields of the form, or null.
    pub fields: Value,
    /// The delay after the gate began to wait for this decision.
    pub after: Duration,
}

/// Whom a mock file responds to: an instance of a step, with the names it may be found under.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The displayed id, such as `images[3]`.
    pub id: &'a str,
    /// The id in the file, for any instance of the step.
    pub plain: &'a str,
    /// From 1, including the attempts before the step was sent back.
    pub attempt: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub name: Arc<str>,
    pub value: Value,
    /// The delay after the run started.
    pub at: Duration,
}

impl Script {
    /// Parses a mock file; reports all problems.
    pub fn parse(script: &Value) -> Result<Self, Vec<Problem>> {
        parse::script(script)
    }

    /// The response to a job: the entry for its attempt; the last one repeats. `None` for jobs that the file does not
    /// mention and that need no mock: commands, which are really executed, and calls of other workflows.
    pub fn answer(&self, job: &Job, asker: Asker<'_>) -> Option<Answer> {
        match (self.entry(job, asker), &job.work.work) {
            (Some(answer), _) => Some(answer),
            (None, Work::Shell { .. } | Work::Call { .. }) => None,
            (
                None,
                Work::Agent { .. }
                | Work::Tool { .. }
                | Work::Task { .. }
                | Work::Http(_)
                | Work::Assistant(_)
                | Work::Builtin { .. }
                | Work::Notify { .. },
            ) => Some(unanswered(asker, job.work.work.name())),
        }
    }

    /// The entry for a job, or a failure if there is none.
    pub fn entry_or_none(&self, job: &Job, asker: Asker<'_>) -> Answer {
        self.entry(job, asker).unwrap_or_else(|| unanswered(asker, job.work.work.name()))
    }

    /// The entry for a job, if there is one.
    pub fn entry(&self, job: &Job, asker: Asker<'_>) -> Option<Answer> {
        let names = [Some(asker.id), Some(asker.plain), job.work.work.name()];
        let entries = names.into_iter().flatten().find_map(|name| self.steps.get(name))?;
        let mut answer = entry(entries, asker.attempt).cloned()?;
        if let (Outcome::Failed(failure), FailureClass::FromMessage) =
            (&mut answer.outcome, job.rules.results.failure_class)
            && *failure.class == *class::ERROR
        {
            failure.class = class::named_in(&failure.message).into();
        }
        Some(answer)
    }
}

impl Gates {
    /// Decision `number`, from 0, at a gate. After the last one the gate waits.
    pub fn decision(&self, id: &str, plain: &str, number: usize) -> Option<&GateAnswer> {
        [id, plain].into_iter().find_map(|name| self.0.get(name))?.get(number)
    }
}

fn entry(entries: &[Answer], attempt: u32) -> Option<&Answer> {
    let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    entries.get(index).or(entries.last())
}

fn unanswered(asker: Asker<'_>, work: Option<&str>) -> Answer {
    let Asker { id, plain, .. } = asker;
    let plain = if plain == id { String::new() } else { format!(" or `{plain}`") };
    let work = work.filter(|name| *name != id).map(|name| format!(" or `{name}`")).unwrap_or_default();
    let message = format!("no mock response for `{id}`: add an entry `{id}`{plain}{work} under `steps`");
    let failure = Failure::new(class::NO_MOCK_RESPONSE, message);
    let outcome = Outcome::Failed(failure);
    Answer { outcome, after: Duration::ZERO, hangs: false, used: None, most: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{Assignment, JobKey, Lineage, Path, RunId};
    use windlass_ir::expr::Semantics;
    use windlass_ir::value::Sealable;
    use windlass_ir::workflow::{CallMode, Interpreter, ShellOutput};

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

    fn job(step: &str, work: Work) -> Job {
        let path = Path::default().child(step.into(), None);
        let key = JobKey { run: RunId::new("r").expect("good"), path, attempt: 1, delivery: 1 };
        let work = Arc::new(Assignment {
            input: Value::Null,
            work,
            env: IndexMap::new(),
            key: None,
            claims: Vec::new(),
        });
        Job {
            key,
            step: step.into(),
            work,
            secrets: Arc::from([]),
            timeout: None,
            notes: IndexMap::new(),
            round: None,
            feedback: None,
            rules: Semantics::HOUSE,
        }
    }

    fn answer(id: &str, plain: &str, attempt: u32, work: Work) -> Option<Answer> {
        script().answer(&job(plain, work), Asker { id, plain, attempt })
    }

    fn tool(name: &str) -> Work {
        Work::Tool { tool: name.into(), server: None, args: Sealable(Value::Null) }
    }

    fn shell() -> Work {
        Work::Shell {
            command: Value::text("true"),
            cwd: None,
            stdin: None,
            output: ShellOutput::Text,
            shell: Interpreter::plain(),
        }
    }

    fn call() -> Work {
        let workflow = Value::text("resize");
        Work::Call { workflow, input: Value::Null, mode: CallMode::Child, lineage: Lineage::default() }
    }

    fn check(answer: Option<&Answer>, expected: Option<(&str, &str)>) {
        let shown = answer.map(|answer| {
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
    fn one_entry_per_attempt_and_the_last_repeats() {
        check(answer("call", "call", 1, tool("t")).as_ref(), Some(("rate_limit", "0s")));
        check(answer("call", "call", 2, tool("t")).as_ref(), Some(("1", "3s")));
        check(answer("call", "call", 3, tool("t")).as_ref(), Some(("1", "3s")));
        check(answer("call", "call", u32::MAX, tool("t")).as_ref(), Some(("1", "3s")));
    }

    #[test]
    fn entries_are_found_by_displayed_id_then_plain_id_then_name() {
        check(answer("each[1]", "each", 1, tool("resize")).as_ref(), Some((r#""second""#, "0s")));
        check(answer("each[2]", "each", 1, tool("resize")).as_ref(), Some((r#""any""#, "0s")));
        check(answer("other", "other", 1, tool("resize")).as_ref(), Some((r#""by name""#, "0s")));
        check(answer("other", "other", 1, call()).as_ref(), Some((r#""by name""#, "0s")));
    }

    #[test]
    fn without_an_entry_only_commands_and_calls_are_executed() {
        check(answer("other", "other", 1, tool("t")).as_ref(), Some(("no_mock_response", "0s")));
        check(answer("other", "other", 1, shell()).as_ref(), None);
        check(answer("call", "call", 2, shell()).as_ref(), Some(("1", "3s")));
        let calls_another = Work::Call {
            workflow: Value::text("unknown"),
            input: Value::Null,
            mode: CallMode::Inline,
            lineage: Lineage::default(),
        };
        check(answer("other", "other", 1, calls_another).as_ref(), None);
    }

    #[test]
    fn missing_entries_are_named() {
        let missing = answer("each[2]", "each2", 1, tool("t")).expect("an answer");
        let Outcome::Failed(failure) = missing.outcome else { panic!("{missing:?}") };
        assert_eq!(
            &*failure.message,
            "no mock response for `each[2]`: add an entry `each[2]` or `each2` or `t` under `steps`"
        );
    }

    #[test]
    fn a_hang_ends_in_a_failure_if_nothing_else_ends_it() {
        let hung = answer("build", "build", 1, shell());
        assert!(hung.as_ref().is_some_and(|answer| answer.hangs));
        check(hung.as_ref(), Some(("error", "10s")));
    }

    #[test]
    fn decisions_are_used_up() {
        let gates = script().gates;
        let first = gates.decision("sign[2]", "sign", 0).expect("a decision");
        assert_eq!((&first.choice, first.by.as_deref()), (&Choice::Reject, Some("eve")));
        let second = gates.decision("sign", "sign", 1).expect("a decision");
        assert_eq!((&second.choice, second.after), (&Choice::Option("later".into()), Duration::from_secs(5)));
        assert_eq!(gates.decision("sign", "sign", 2), None);
        assert_eq!(gates.decision("other", "other", 0), None);
    }
}
