//! Tests that stories cannot express: runs that keep results of earlier ones, nested workflows, and hooks.

use std::sync::Arc;
use windlass_engine::{
    Choice, CoordinatorAnswer, Effect, End, Event, GateDecision, Input, Job, Lineage, Outcome, Path, Program,
    Reach, Refused, Renewed, Run, RunId, Start, Timestamp, What, Work, kept,
};
use windlass_ir::{Plan, Value};
use windlass_sim::story::plan_of;

/// A run with manual answers.
struct Hand {
    run: Run,
    journal: Vec<Event>,
    jobs: Vec<Job>,
}

impl Hand {
    fn start(plan: Plan, start: Start) -> Self {
        let program = Arc::new(Program::new(plan).expect("a plan that can be run"));
        let run = Run::new(RunId::new("hand").expect("a good name"), program);
        let mut hand = Self { run, journal: Vec::new(), jobs: Vec::new() };
        hand.offer(Input::Start(Box::new(start)));
        hand
    }

    fn offer(&mut self, input: Input) {
        self.offer_at(0, input);
    }

    fn offer_at(&mut self, seconds: i64, input: Input) {
        let answer = self.run.handle(Timestamp(seconds * 1_000_000), input).expect("accepted");
        self.journal.extend(answer.events);
        for effect in answer.effects {
            if let Effect::Dispatch(job) = effect {
                self.jobs.push(*job);
            }
        }
        let replayed = Run::replay(self.run.id().clone(), self.run.program().clone(), &self.journal);
        assert!(replayed.as_ref() == Ok(&self.run), "the run matches its journal");
    }

    /// The paths of all dispatched jobs, in order.
    fn handed_out(&self) -> Vec<String> {
        self.jobs.iter().map(|job| job.key.path.to_string()).collect()
    }

    fn job(&self, path: &str) -> &Job {
        let job = self.jobs.iter().rev().find(|job| job.key.path.to_string() == path);
        job.unwrap_or_else(|| panic!("no job at {path}, only at {:?}", self.handed_out()))
    }

    fn answer(&mut self, path: &str, outcome: Outcome) {
        let job = self.job(path).key.clone();
        self.offer(Input::Reported { job, outcome });
    }

    fn done(&mut self, path: &str, value: Value) {
        self.answer(path, Outcome::Done(value));
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn swdl(text: &str) -> Plan {
    plan_of("swdl", text).expect("a good workflow")
}

const CHAIN: &str = "
workflow: { id: chain, name: Chain }
config: { parameters: { who: { type: string, default: ann } } }
stages:
  - { id: first, type: task, task: a, input: 1 }
  - { id: second, depends_on: [first], type: task, task: b, input: '${{ parameters.who }}' }
  - { id: third, depends_on: [second], type: task, task: c, input: '${{ stages.first.outputs }}' }
  - { id: beside, depends_on: [first], type: task, task: d }
";

fn chain_done() -> Hand {
    let mut hand = Hand::start(swdl(CHAIN), Start::with(json(r#"{"who": "ann"}"#)));
    hand.done("/first", json("10"));
    hand.done("/second", json("20"));
    hand.done("/beside", json("40"));
    hand.done("/third", json("30"));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))));
    hand
}

fn again(plan: Plan, from: &str, inputs: &str) -> Hand {
    let before = chain_done();
    let from = Path::default().child(from.into(), None);
    let changed = plan.digest != before.run.program().plan.digest || inputs != r#"{"who": "ann"}"#;
    let renewed = if changed { Renewed::Changed } else { Renewed::Same };
    let keep = kept(before.run.program(), &before.journal, &[from], renewed);
    Hand::start(plan, Start { keep, ..Start::with(json(inputs)) })
}

#[test]
fn a_retry_from_a_step_repeats_it_and_its_dependents() {
    let mut hand = again(swdl(CHAIN), "second", r#"{"who": "ann"}"#);
    assert_eq!(hand.handed_out(), ["/second"]);
    hand.done("/second", json("21"));
    assert_eq!(hand.handed_out(), ["/second", "/third"]);
    let Work::Task { input, .. } = &hand.job("/third").work.work else { panic!("a task") };
    assert_eq!(*input, json("10"), "the kept results are read");
    hand.done("/third", json("31"));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))));
    let kept = hand.journal.iter().filter(|event| matches!(event.what, What::Kept(_))).count();
    assert_eq!(kept, 2, "`first` and `beside` were kept");
    let from = Path::default().child("third".into(), None);
    let keep = windlass_engine::kept(hand.run.program(), &hand.journal, &[from], Renewed::Same);
    let once_more = Hand::start(swdl(CHAIN), Start { keep, ..Start::with(json(r#"{"who": "ann"}"#)) });
    assert_eq!(once_more.handed_out(), ["/third"], "kept results are kept again");
}

/// Another version of Windlass may compute another digest. A run that keeps steps and changes nothing must not depend
/// on it.
#[test]
fn unchanged_steps_are_kept_regardless_of_their_digest() {
    let before = again(swdl(CHAIN), "second", r#"{"who": "ann"}"#);
    let from = Path::default().child("second".into(), None);
    let mut keep = kept(before.run.program(), &before.journal, &[from], Renewed::Same);
    keep.iter_mut().for_each(|kept| kept.seen ^= 1);
    let hand = Hand::start(swdl(CHAIN), Start { keep, ..Start::with(json(r#"{"who": "ann"}"#)) });
    assert_eq!(hand.handed_out(), ["/second"]);
}

#[test]
fn changed_steps_are_not_kept() {
    let other_input = again(swdl(CHAIN), "third", r#"{"who": "bob"}"#);
    assert_eq!(other_input.handed_out(), ["/second"], "`second` has another input");
    let changed = CHAIN.replace("task: d", "task: e");
    let other_plan = again(swdl(&changed), "third", r#"{"who": "ann"}"#);
    assert_eq!(other_plan.handed_out(), ["/third", "/beside"], "`beside` is another task");
}

#[test]
fn items_before_a_step_are_kept() {
    let plan = || {
        swdl(
            "
workflow: { id: items, name: Items }
stages:
  - id: each
    type: fan_out
    fan_out:
      source: [a, b, c]
      concurrency: 1
      stages:
        - { id: one, type: task, task: t, input: '${{ item }}' }
        - { id: two, depends_on: [one], type: task, task: t }
",
        )
    };
    let mut before = Hand::start(plan(), Start::with(json("{}")));
    for path in ["/each[0]/one", "/each[0]/two", "/each[1]/one"] {
        before.done(path, json("1"));
    }
    let from = Path::default().child("each".into(), Some(1)).child("two".into(), None);
    let keep = kept(before.run.program(), &before.journal, &[from], Renewed::Same);
    let hand = Hand::start(plan(), Start { keep, ..Start::with(json("{}")) });
    assert_eq!(hand.handed_out(), ["/each[1]/two"], "the first item and the first step of the second one");
}

/// Edits above or around a step do not change its digest; edits of the step do.
#[test]
fn the_digest_of_a_step_does_not_depend_on_its_position() {
    let earlier = "stages:\n  - { id: before, type: task, task: z }\n  - { id: first, name: Once more,";
    let moved = CHAIN.replace("stages:\n  - { id: first,", earlier);
    let hand = again(swdl(&moved), "third", r#"{"who": "ann"}"#);
    assert_eq!(hand.handed_out(), ["/before", "/third"], "the others are unchanged");
    let scope = |inner: &str| {
        swdl(&format!(
            "
workflow: {{ id: scoped, name: Scoped }}
stages:
  - id: box
    type: block
    stages:
      - {{ id: in, type: task, task: {inner} }}
  - {{ id: out, depends_on: [box], type: task, task: o }}
"
        ))
    };
    let mut before = Hand::start(scope("one"), Start::with(json("{}")));
    before.done("/box/in", json("1"));
    before.done("/out", json("2"));
    let keep = kept(before.run.program(), &before.journal, &[], Renewed::Changed);
    let hand = Hand::start(scope("two"), Start { keep, ..Start::with(json("{}")) });
    assert_eq!(hand.handed_out(), ["/box/in"], "a scope changes with the steps in it");
}

#[test]
fn undone_steps_run_again() {
    let plan = || {
        plan_of(
            "dagnats",
            r#"{"name": "trip", "version": "1", "steps": [
                {"id": "book", "task": "book", "type": "normal", "compensate": "unbook"},
                {"id": "pay", "task": "pay", "type": "normal", "depends_on": ["book"]},
                {"id": "unbook", "task": "unbook", "type": "normal"}]}"#,
        )
        .expect("a good workflow")
    };
    let mut before = Hand::start(plan(), Start::with(json("{}")));
    before.done("/book", json("1"));
    before.answer("/pay", Outcome::Failed(windlass_engine::Failure::new("auth_failure", "no")));
    before.done("/book/unbook", json("2"));
    assert!(before.run.outcome().is_some());
    let from = Path::default().child("pay".into(), None);
    let keep = kept(before.run.program(), &before.journal, &[from], Renewed::Same);
    let hand = Hand::start(plan(), Start { keep, ..Start::with(json("{}")) });
    assert_eq!(hand.handed_out(), ["/book"]);
}

#[test]
fn a_dagnats_step_sleeps_for_at_most_a_year() {
    let check = |until: &str, refused: bool| {
        let plan = plan_of(
            "dagnats",
            r#"{"name": "nap", "version": "1", "steps": [
                {"id": "nap", "type": "sleep", "config": {"until_input_path": "until"}}]}"#,
        )
        .expect("a good workflow");
        let hand = Hand::start(plan, Start::with(json(&format!(r#"{{"until": {until}}}"#))));
        let message = match hand.run.outcome() {
            Some(Outcome::Failed(failure)) => Some(failure.message.to_string()),
            Some(other) => panic!("{until}: {other:?}"),
            None => None,
        };
        assert_eq!(message.is_some(), refused, "{until}: {message:?}");
        assert!(message.is_none_or(|message| message.contains("more than 365d ahead")), "{until}");
    };
    check("31536000000", false);
    check("31536000001", true);
    check("\"2999-01-01T00:00:00Z\"", true);
}

#[test]
fn a_delayed_run_does_nothing_before_its_start() {
    let at = Some(Timestamp(60_000_000));
    let mut hand = Hand::start(swdl(CHAIN), Start { at, ..Start::with(json(r#"{"who": "ann"}"#)) });
    assert_eq!(hand.run.next_deadline(), at);
    hand.offer_at(30, Input::Tick);
    hand.offer_at(31, Input::TakenUp);
    assert_eq!(hand.handed_out(), Vec::<String>::new());
    hand.offer_at(60, Input::Tick);
    assert_eq!(hand.handed_out(), ["/first"]);
    let view = windlass_engine::View::of(hand.run.program().clone(), &hand.journal).expect("it replays");
    assert_eq!(view.begins_at(), None);

    let mut cancelled = Hand::start(swdl(CHAIN), Start { at, ..Start::with(json(r#"{"who": "ann"}"#)) });
    cancelled.offer(Input::Cancel { path: Path::default(), why: "no".into(), by: "ann".into() });
    assert!(matches!(cancelled.run.outcome(), Some(Outcome::Cancelled(_))));
}

#[test]
fn a_run_until_a_step_pauses_after_it() {
    let reach = Some(Reach::Until("second".into()));
    let mut hand = Hand::start(swdl(CHAIN), Start { reach, ..Start::with(json(r#"{"who": "ann"}"#)) });
    hand.done("/first", json("10"));
    hand.done("/second", json("20"));
    assert!(hand.run.is_paused());
    assert_eq!(hand.handed_out(), ["/first", "/second", "/beside"], "`third` has not started");
    hand.offer(Input::Resume { by: "ann".into() });
    assert!(!hand.run.is_paused());
    hand.done("/third", json("30"));
    hand.done("/beside", json("40"));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))));
}

#[test]
fn a_run_limited_to_one_step_does_nothing_else() {
    let before = chain_done();
    let only = Path::default().child("third".into(), None);
    let keep = kept(before.run.program(), &before.journal, std::slice::from_ref(&only), Renewed::Only);
    // Reads return the recorded result, even if the step that produced it has changed.
    let plan = swdl(&CHAIN.replace("task: a,", "task: other,").replace("task: b,", "task: more,"));
    let reach = Some(Reach::Only(only));
    let mut hand = Hand::start(plan, Start { keep, reach, ..Start::with(json(r#"{"who": "bob"}"#)) });
    assert_eq!(hand.handed_out(), ["/third"]);
    let Work::Task { input, .. } = &hand.job("/third").work.work else { panic!("a task") };
    assert_eq!(*input, json("10"));
    hand.done("/third", json("33"));
    assert_eq!(hand.run.outcome(), Some(&Outcome::Done(json("33"))));

    let nothing = Start {
        reach: Some(Reach::Only(Path::default().child("first".into(), None))),
        ..Start::with(json("{}"))
    };
    let mut hand = Hand::start(swdl(CHAIN), nothing);
    hand.done("/first", json("1"));
    assert_eq!(hand.run.outcome(), Some(&Outcome::Done(json("1"))), "all others are skipped");
}

const CALLER: &str = "
schema_version: '1.0'
workflow: { id: caller, name: Caller, version: 1.0.0 }
steps:
  - { id: call, type: workflow, workflow: inner, input: { n: 3 } }
  - { id: after, type: shell, run: 'echo {{ steps.call.output.answer }}' }
";

const INNER: &str = "
schema_version: '1.0'
workflow: { id: inner, name: Inner, version: 1.0.0 }
inputs: { n: { type: number, default: 1 } }
outputs: { answer: { value: '{{ steps.work.output.stdout }}' } }
steps:
  - { id: work, type: shell, run: 'echo {{ inputs.n }}' }
";

fn answer_to_call(inner: &str) -> Value {
    let plan = plan_of("speckit", inner).expect("a good workflow");
    let plan = Value::from(&serde_json::to_value(&plan).expect("JSON"));
    Value::map([("plan", plan), ("inputs", json(r#"{"n": 3}"#))])
}

fn command(job: &Job) -> &Value {
    let Work::Shell { command, .. } = &job.work.work else { panic!("a command") };
    command
}

#[test]
fn a_called_workflow_reads_its_inputs_and_returns_its_outputs() {
    let mut hand = Hand::start(plan_of("speckit", CALLER).expect("good"), Start::with(json("{}")));
    hand.done("/call", answer_to_call(INNER));
    assert_eq!(*command(hand.job("/call/work")), Value::text("echo 3"));
    hand.done("/call/work", json(r#"{"exit_code": 0, "stdout": "7", "stderr": ""}"#));
    assert_eq!(*command(hand.job("/after")), Value::text("echo 7"));
    hand.done("/after", json(r#"{"exit_code": 0, "stdout": "", "stderr": ""}"#));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))));
}

#[test]
fn a_workflow_that_calls_itself_fails() {
    let mut hand = Hand::start(plan_of("speckit", CALLER).expect("good"), Start::with(json("{}")));
    hand.done("/call", answer_to_call(&INNER.replace("id: inner", "id: caller")));
    let Some(Outcome::Failed(failure)) = hand.run.outcome() else { panic!("it fails") };
    assert!(failure.message.contains("calls itself"), "{}", failure.message);
}

/// Whether a run with this many workflows around it may call another one.
fn may_call_below(callers: usize) -> bool {
    let lineage = Lineage((0..callers).map(|number| format!("caller-{number}").into()).collect());
    let caller = plan_of("speckit", CALLER).expect("good");
    let mut hand = Hand::start(caller, Start { lineage, ..Start::with(json("{}")) });
    hand.done("/call", answer_to_call(INNER));
    match hand.run.outcome() {
        None => true,
        Some(Outcome::Failed(failure)) if failure.message.contains("more than 16 deep") => false,
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn calls_are_at_most_16_deep() {
    assert!(may_call_below(14));
    assert!(may_call_below(15), "the workflow that is called is the 16th below the first");
    assert!(!may_call_below(16));
}

#[test]
fn a_call_of_spec_kit_reports_the_workflow_and_its_status() {
    let asks = "{{ steps.call.output.workflow }} {{ steps.call.output.status }}";
    let caller = CALLER.replace("{{ steps.call.output.answer }}", asks);
    let mut hand = Hand::start(plan_of("speckit", &caller).expect("good"), Start::with(json("{}")));
    hand.done("/call", answer_to_call(INNER));
    hand.done("/call/work", json(r#"{"exit_code": 0, "stdout": "7", "stderr": ""}"#));
    assert_eq!(*command(hand.job("/after")), Value::text("echo inner completed"));
}

#[test]
fn a_repeated_decision_is_accepted_and_a_late_one_is_refused() {
    let plan = swdl(
        "
workflow: { id: gate, name: Gate }
stages:
  - { id: ask, type: gate, gate: { timeout: none } }
  - { id: work, depends_on: [ask], type: task, task: t }
",
    );
    let ask = Path::default().child("ask".into(), None);
    let decide = |id: &str, by: &str| Input::Decide {
        id: id.into(),
        path: ask.clone(),
        decision: GateDecision { choice: Choice::Approve, by: by.into(), reason: None, form: Value::Null },
    };
    let faster = || Refused::AlreadyDecided { path: ask.clone(), by: "ann".into() };
    let mut hand = Hand::start(plan, Start::with(json("{}")));
    hand.offer(decide("1", "ann"));
    let written = hand.journal.len();
    hand.offer(decide("1", "ann"));
    assert_eq!(hand.run.handle(Timestamp(0), decide("2", "bob")).err(), Some(faster()));
    assert_eq!(hand.journal.len(), written, "nothing was decided again");
    hand.done("/work", json("1"));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))));
    hand.offer(decide("1", "ann"));
    assert_eq!(hand.run.handle(Timestamp(0), decide("2", "bob")).err(), Some(faster()));
}

#[test]
fn a_repeated_rejection_does_not_decide_a_reopened_gate() {
    let plan = swdl(
        "
workflow: { id: gate, name: Gate }
stages:
  - { id: ask, type: gate, gate: { timeout: none, on_reject: fail } }
",
    );
    let decide = |id: &str, choice: Choice| Input::Decide {
        id: id.into(),
        path: Path::default().child("ask".into(), None),
        decision: GateDecision { choice, by: "ann".into(), reason: None, form: Value::Null },
    };
    let mut hand = Hand::start(plan, Start::with(json("{}")));
    hand.offer(decide("1", Choice::Reject));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Failed(_))));
    hand.offer(Input::Reopen { inputs: json("{}"), by: "bob".into() });
    hand.offer(decide("1", Choice::Reject));
    assert_eq!(hand.run.outcome(), None, "the gate still asks");
    hand.offer(decide("2", Choice::Approve));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))));
}

#[test]
fn a_call_without_a_plan_in_its_answer_fails() {
    let mut hand = Hand::start(plan_of("speckit", CALLER).expect("good"), Start::with(json("{}")));
    hand.done("/call", json(r#"{"plan": {"roots": [17]}}"#));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Failed(_))));
}

#[test]
fn a_hook_that_cannot_be_rendered_is_recorded_as_failed() {
    let plan = swdl(
        "
workflow: { id: hooked, name: Hooked }
stages: [{ id: work, type: task, task: t, outputs: { v: { type: any } } }]
hooks:
  on_complete: { run: \"echo ${{ split(stages.work.outputs.v, ',') }}\" }
",
    );
    let mut hand = Hand::start(plan, Start::with(json("{}")));
    hand.done("/work", json(r#"{"v": [1, 2]}"#));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))), "a hook changes nothing");
    let failed = hand.journal.iter().find_map(|event| match &event.what {
        What::Settled(settled) if settled.path.is_hook() => {
            Some((settled.path.to_string(), &settled.outcome))
        }
        _ => None,
    });
    assert!(
        matches!(&failed, Some((path, Outcome::Failed(_))) if path == "/hook:on_complete[0]"),
        "{failed:?}"
    );
    assert!(hand.journal.iter().any(|event| event.what == What::Closed));
}

#[test]
fn hooks_do_not_change_a_run() {
    let plan = swdl(
        "
workflow: { id: hooked, name: Hooked }
stages: [{ id: work, type: task, task: t }]
hooks:
  on_start: { notify: '#builds' }
  on_complete: { run: 'echo ${{ stages.work.status }}' }
  on_failure: { notify: '#alerts' }
",
    );
    let mut hand = Hand::start(plan, Start::with(json("{}")));
    assert_eq!(hand.handed_out(), ["/hook:on_start[0]", "/work"]);
    hand.done("/work", json("1"));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))), "the result is final before the hook");
    let hook = hand.job("/hook:on_complete[1]");
    assert_eq!(*command(hook), Value::text("echo 'success'"));
    let failure = windlass_engine::Failure::new("error", "no listener");
    hand.answer("/hook:on_complete[1]", Outcome::Failed(failure.clone()));
    let closed = |hand: &Hand| hand.journal.iter().any(|event| event.what == What::Closed);
    assert!(!closed(&hand), "the start hook is still running");
    hand.answer("/hook:on_start[0]", Outcome::Failed(failure));
    assert!(closed(&hand));
    assert!(matches!(hand.run.outcome(), Some(Outcome::Done(_))), "a hook changes nothing");
}

#[test]
fn a_lost_job_is_charged_and_asked_for_again() {
    let check = |stage: &str, asks_always: bool, charged: bool| {
        let plan = swdl(&format!("workflow: {{ id: w, name: W }}\nstages: [{{ id: a, {stage} }}]\n"));
        let program = Arc::new(Program::new(plan).expect("a plan that can be run"));
        let mut run = Run::new(RunId::new("lost").expect("a good name"), program.clone());
        run.ask_always(asks_always);
        let mut journal = Vec::new();
        let mut offer = |run: &mut Run, input| {
            let answer = run.handle(Timestamp(0), input).expect("accepted");
            journal.extend(answer.events);
            let replayed = Run::replay(run.id().clone(), program.clone(), &journal);
            let mut replayed = replayed.expect("a good journal");
            replayed.ask_always(asks_always);
            assert!(replayed == *run, "the run matches its journal");
            answer.effects
        };
        let asked = |effects: &[Effect]| {
            effects.iter().find_map(|effect| match effect {
                Effect::Ask { ask, .. } => Some(ask.asker.clone()),
                _ => None,
            })
        };
        let mut effects = offer(&mut run, Input::Start(Box::new(Start::with(json("{}")))));
        let first = asked(&effects);
        if let Some(asker) = first.clone() {
            effects = offer(&mut run, Input::Answered { asker, answer: CoordinatorAnswer::Granted });
        }
        let job = effects.iter().find_map(|effect| match effect {
            Effect::Dispatch(job) => Some(job.key.clone()),
            _ => None,
        });
        let effects = offer(&mut run, Input::Lost { job: job.expect("dispatched"), started: true });
        let given_up = effects.iter().any(|effect| {
            matches!(effect, Effect::Release { asker, end: End::Lost, .. } if Some(asker) == first.as_ref())
        });
        assert_eq!(given_up, charged, "{stage}: {effects:?}");
        let again = asked(&effects);
        assert_eq!(again.is_some(), charged, "{stage}: {effects:?}");
        assert!(again.is_none() || again != first, "{stage}: the lost call and the next one are two");
    };
    check("type: task, task: t", true, true);
    check("type: task, task: t", false, false);
    check("type: shell, run: 'true'", true, false);
}

#[test]
fn a_step_fails_if_its_value_is_too_large() {
    let mut text = "workflow: { id: x, name: X }\nstages:\n  - { id: s0, type: assign, set: { v: [1, 2, 3, 4, 5, 6, 7, 8] } }\n".to_owned();
    for n in 1..60 {
        let v = format!("\"${{{{ stages.s{}.outputs.v }}}}\"", n - 1);
        text += &format!(
            "  - {{ id: s{n}, depends_on: [s{}], type: assign, set: {{ v: [{v}, {v}] }} }}\n",
            n - 1
        );
    }
    let hand = Hand::start(swdl(&text), Start::with(json("{}")));
    let Some(Outcome::Failed(failure)) = hand.run.outcome() else { panic!("{:?}", hand.run.outcome()) };
    let expected =
        "`v` would take 81 MiB of memory, more than the limit of 64 MiB; pass on less, or the path of a file";
    assert_eq!((&*failure.class, &*failure.message), ("expression_error", expected));
}

#[test]
fn a_fan_out_may_collect_more_than_a_step_may_produce() {
    let plan = "
workflow: { id: x, name: X }
stages:
  - id: each
    type: fan_out
    fan_out: { source: ITEMS, stage_template: { type: task, task: t } }
";
    let check = |items: usize, fits: bool| {
        let list: Vec<usize> = (0..items).collect();
        let mut hand =
            Hand::start(swdl(&plan.replace("ITEMS", &format!("{list:?}"))), Start::with(json("{}")));
        let shared = Value::map([("text", Value::text("x".repeat(60 << 20)))]);
        for number in 0..items {
            let path = hand.jobs[number].key.path.to_string();
            hand.done(&path, shared.clone());
        }
        match hand.run.outcome() {
            Some(Outcome::Done(_)) => assert!(fits, "{items}"),
            Some(Outcome::Failed(failure)) => {
                assert!(
                    !fits && failure.message.starts_with("the output of `each` would take"),
                    "{failure:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    };
    check(4, true);
    check(9, false);
}

#[test]
fn a_run_does_not_start_with_a_too_large_input() {
    let program =
        Program::new(swdl("workflow: { id: x, name: X }\nstages: [{ id: a, type: task, task: t }]\n"));
    let mut run = Run::new(RunId::new("large").expect("good"), Arc::new(program.expect("good")));
    let inputs = Value::map([("text", Value::text("x".repeat(65 << 20)))]);
    let refused = run.handle(Timestamp(0), Input::Start(Box::new(Start::with(inputs))));
    let expected = "the input of the run would take 66 MiB of memory, more than the limit of 64 MiB; pass on less, or the path of a file";
    assert_eq!(refused.err(), Some(Refused::BadInput(expected.into())));
}
