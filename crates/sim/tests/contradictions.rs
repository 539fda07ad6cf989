//! A journal that contradicts itself is an error for every event: none is skipped, and no gate passes because of it.

use std::sync::Arc;
use windlass_engine::{Effect, Event, Input, Outcome, Program, Run, RunId, Start, Timestamp};
use windlass_ir::Value;
use windlass_sim::story::plan_of;

/// `a` is done, `ask` waits for a decision, `z` waits for `ask`, `work` and `nap` are running, and `rescue` is
/// dormant.
const GATE: &str = "
workflow: { id: gate, name: Gate }
stages:
  - { id: a, type: shell, run: echo a }
  - { id: ask, type: gate, gate: { approvers: [dana] }, depends_on: [a] }
  - { id: z, type: shell, run: echo z, depends_on: [ask] }
  - { id: work, type: shell, run: sleep 9, error_policy: { on_failure: { goto: rescue } } }
  - { id: rescue, type: shell, run: echo rescued }
  - { id: nap, type: wait, wait: { for: 1h } }
";

fn journal() -> (Arc<Program>, Vec<Event>) {
    let program = Arc::new(Program::new(plan_of("swdl", GATE).expect("good")).expect("it can be run"));
    let mut run = Run::new(RunId::new("r").expect("a good name"), program.clone());
    let begun = run.handle(Timestamp(0), Input::Start(Box::new(Start::with(Value::map::<&str>([])))));
    let begun = begun.expect("accepted");
    let job = begun.effects.iter().find_map(|effect| match effect {
        Effect::Dispatch(job) if &*job.step == "a" => Some(job.key.clone()),
        _ => None,
    });
    let outcome = Outcome::Done(Value::Null);
    let report = Input::Reported { job: job.expect("`a` was dispatched"), outcome };
    let after = run.handle(Timestamp(1), report).expect("accepted");
    (program, begun.events.into_iter().chain(after.events).collect())
}

const QUESTION: &str = r#"{"gate":{"message":null,"input":{},"on_timeout":"halt"}}"#;

#[test]
fn every_impossible_event_is_an_error() {
    let (program, journal) = journal();
    let replay = |more: &str| {
        let event: Event = serde_json::from_str(&format!(r#"{{"at":2,{more}}}"#)).expect("an event");
        let (id, word) = (RunId::new("r").expect("a good name"), event.what.word());
        (word, Run::replay(id, program.clone(), journal.iter().chain([&event])))
    };
    let done = r#""outcome":{"done":null}"#;
    let cases = [
        ("/", r#""event":"started","inputs":{},"env":{"plain":{}},"seed":7,"about":null"#.to_owned()),
        ("/z", format!(r#""event":"kept","path":["z"],"order":0,"seen":0,{done}"#)),
        ("/", r#""event":"closed""#.into()),
        ("/", format!(r#""event":"concluded","has_failures":false,{done}"#)),
        ("/", r#""event":"reopened","paths":[["a"]],"inputs":{},"by":"x""#.into()),
        ("/", r#""event":"resumed","by":"x""#.into()),
        ("/", r#""event":"paused","by":"x","reached":true"#.into()),
        ("/", r#""event":"admitted","path":[],"attempt":1"#.into()),
        ("/", r#""event":"timer_fired","path":[],"reason":"wait""#.into()),
        ("/", r#""event":"timer_fired","path":[],"reason":"timeout""#.into()),
        ("/", r#""event":"timer_set","path":[],"reason":"wait","until":9"#.into()),
        // Only a decision or a timeout passes a gate.
        ("/ask", format!(r#""event":"settled","path":["ask"],{done}"#)),
        ("/ask", r#""event":"entered","path":["ask"],"decision":{"arm":{"arm":"then","value":true}}"#.into()),
        ("/ask", r#""event":"entered","path":["ask"],"decision":{"round":{"number":0,"value":null}}"#.into()),
        ("/ask", r#""event":"entered","path":["ask"],"decision":"steps""#.into()),
        ("/ask", r#""event":"timer_fired","path":["ask"],"reason":"wait""#.into()),
        ("/ask", r#""event":"sent_back","gate":["ask"],"steps":[{"path":["x"],"pass":2}],"because":null"#.into()),
        ("/ask", r#""event":"sent_back","gate":["ask"],"steps":[{"path":["a"],"pass":2}],"because":null"#.into()),
        ("/ask", r#""event":"scheduled","path":["ask"],"attempt":1,"delivery":1"#.into()),
        // A step settles once, and not before it has started.
        ("/a", format!(r#""event":"settled","path":["a"],{done}"#)),
        ("/z", format!(r#""event":"settled","path":["z"],{done}"#)),
        ("/z", r#""event":"settled","path":["z"],"outcome":{"cancelled":"why"}"#.into()),
        ("/rescue", format!(r#""event":"settled","path":["rescue"],{done}"#)),
        ("/nap", format!(r#""event":"settled","path":["nap"],{done}"#)),
        ("/x", format!(r#""event":"settled","path":["x"],{done}"#)),
        ("/hook:on_start.0", format!(r#""event":"settled","path":["hook:on_start.0"],{done}"#)),
        ("/z", r#""event":"entered","path":["z"],"decision":{"items":{"items":[],"at_once":null}}"#.into()),
        ("/z", r#""event":"entered","path":["z"],"decision":{"wait":{}}"#.into()),
        ("/z", format!(r#""event":"entered","path":["z"],"decision":{QUESTION}"#)),
        ("/z", r#""event":"entered","path":["z"],"decision":"finally""#.into()),
        ("/a", r#""event":"entered","path":["a"],"decision":{"undo":{"because":null}}"#.into()),
        ("/work", r#""event":"entered","path":["work"],"decision":{"taken_over":{"by":"z","failure":{"class":"error","message":""}}}"#.into()),
        ("/work", r#""event":"entered","path":["work"],"decision":{"again":{"number":1,"input":null,"delay":0}}"#.into()),
        ("/work", r#""event":"entered","path":["work"],"decision":{"finish":{"outcome":{"done":null}}}"#.into()),
        ("/z", r#""event":"joined","path":["z"],"key":"k""#.into()),
        ("/z", r#""event":"scheduled","path":["z"],"attempt":1,"delivery":1"#.into()),
        ("/work", r#""event":"scheduled","path":["work"],"attempt":2,"delivery":1"#.into()),
        ("/work", r#""event":"lost","path":["work"],"attempt":1,"delivery":2"#.into()),
        ("/work", r#""event":"attempt_failed","path":["work"],"attempt":2,"failure":{"class":"error","message":""},"delay":0"#.into()),
        ("/z", r#""event":"noted","path":["z"],"key":"k","value":1"#.into()),
        ("/work", r#""event":"decided","id":"d","path":["work"],"by":"x","value":null"#.into()),
        ("/work", r#""event":"signalled","id":"s","name":"n","by":"x","value":1,"path":["work"]"#.into()),
        ("/work", r#""event":"rebound","path":["work"],"inputs":{}"#.into()),
        ("/work", r#""event":"timer_set","path":["work"],"reason":"grace","until":9"#.into()),
        ("/a", r#""event":"cancel_requested","path":["a"],"why":"w","by":"x""#.into()),
        ("/rescue", r#""event":"cancel_requested","path":["rescue"],"why":"w","by":"x""#.into()),
    ];
    for (path, more) in cases {
        let (word, replayed) = replay(&more);
        let contradiction = replayed.map(drop).expect_err(&more);
        assert_eq!((contradiction.event, contradiction.path.to_string().as_str()), (word, path), "{more}");
    }
    let (_, fits) = replay(r#""event":"decided","id":"d","path":["ask"],"by":"x","value":null"#);
    assert!(fits.is_ok(), "{fits:?}");
}

#[test]
fn a_journal_begins_with_the_start_and_ends_with_the_end() {
    let (program, journal) = journal();
    let replay =
        |events: &[Event]| Run::replay(RunId::new("r").expect("a good name"), program.clone(), events);
    let error = replay(&journal[1..]).map(drop).expect_err("it does not begin with the start");
    assert_eq!(error.expected, "a run that has started");
    let message =
        replay(&[journal.clone(), journal].concat()).map(drop).expect_err("it starts twice").to_string();
    assert_eq!(
        message,
        "event `started` at / contradicts the events before it: expected a run that has not started, found a run in progress"
    );
}
