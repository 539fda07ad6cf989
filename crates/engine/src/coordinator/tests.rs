//! Tests of single rules of the coordinator. The simulator covers their combinations.

use super::*;
use windlass_ir::Duration;

/// A coordinator and runs with one-letter names that ask once.
#[derive(Default)]
struct Scene {
    coordinator: Coordinator,
    now: i64,
}

impl Scene {
    fn tell(&mut self, input: CoordinatorInput) -> Vec<String> {
        let turn = self.coordinator.handle(Timestamp(self.now), input).expect("the coordinator takes it");
        turn.effects.iter().map(shown).collect()
    }

    fn ask(&mut self, run: &str, claims: Vec<Claim>) -> Vec<String> {
        self.ask_as(asker(run, "step", 1), claims)
    }

    fn ask_as(&mut self, asker: Asker, claims: Vec<Claim>) -> Vec<String> {
        let (since, ancestors) = (Timestamp(self.now), Vec::new());
        self.tell(CoordinatorInput::Ask(Box::new(Ask { asker, claims, since, ahead: 0, ancestors })))
    }

    fn release(&mut self, run: &str, end: End) -> Vec<String> {
        self.tell(CoordinatorInput::Release { asker: asker(run, "step", 1), used: Amount::default(), end })
    }

    /// Lets this many seconds pass.
    fn pass(&mut self, seconds: i64) -> Vec<String> {
        self.now += seconds * 1_000_000;
        self.tell(CoordinatorInput::Tick)
    }
}

fn asker(run: &str, step: &str, attempt: u32) -> Asker {
    let path = match step {
        "" => Path::default(),
        step => Path::default().child(step.into(), None),
    };
    Asker { run: RunId::new(run).expect("a good name"), path, attempt }
}

fn shown(effect: &CoordinatorEffect) -> String {
    match effect {
        CoordinatorEffect::Answer { asker, answer } => match answer {
            CoordinatorAnswer::Granted => format!("{} granted", asker.run),
            CoordinatorAnswer::Found(_) => format!("{} found", asker.run),
            CoordinatorAnswer::Denied(denial) => format!("{} denied: {denial}", asker.run),
        },
        CoordinatorEffect::Deliver { to, .. } => format!("{} delivered", to.run),
        CoordinatorEffect::Cancel { run, .. } => format!("{run} cancelled"),
        CoordinatorEffect::Start(order) => format!("{} started", order.run),
    }
}

fn slot(key: &str, limit: u32) -> Claim {
    Claim::Slot { key: key.into(), limit, full: Full::Wait }
}

fn or(full: Full, key: &str, limit: u32) -> Claim {
    Claim::Slot { key: key.into(), limit, full }
}

fn key(key: &str) -> Claim {
    Claim::Key { key: key.into(), ttl: None }
}

const NOTHING: [&str; 0] = [];

#[test]
fn leaving_a_queue_wakes_later_requests() {
    let mut scene = Scene::default();
    assert_eq!(scene.ask("a", vec![slot("k", 2)]), ["a granted"]);
    assert_eq!(scene.ask("b", vec![slot("k", 1)]), NOTHING);
    assert_eq!(scene.ask("c", vec![slot("k", 2)]), NOTHING);
    assert_eq!(scene.release("b", End::Over), ["c granted"]);
}

#[test]
fn one_slot_is_reserved_for_the_first_of_a_queue() {
    let mut scene = Scene::default();
    scene.ask("a", vec![slot("rare", 1)]);
    for run in ["b", "c", "d"] {
        assert_eq!(scene.ask(run, vec![slot("rare", 1), slot("machine", 2)]), NOTHING);
    }
    assert_eq!(scene.ask("e", vec![slot("machine", 2)]), ["e granted"]);
    assert_eq!(scene.ask("f", vec![slot("machine", 2)]), NOTHING);
    assert_eq!(scene.ask("g", vec![or(Full::Deny, "machine", 2)]), ["g denied: `machine` is held by run e"]);
    assert_eq!(scene.release("a", End::Over), ["b granted"]);
    assert_eq!(scene.release("e", End::Over), NOTHING);
    assert_eq!(scene.release("b", End::Over), ["c granted"]);
    assert_eq!(scene.release("c", End::Over), ["d granted", "f granted"]);
}

/// Otherwise the step that owns the key could not try again.
#[test]
fn a_request_that_waits_for_a_key_reserves_nothing() {
    let mut scene = Scene::default();
    scene.ask("a", vec![key("work"), slot("k", 1)]);
    assert_eq!(scene.ask("b", vec![key("work"), slot("k", 1)]), NOTHING);
    assert_eq!(scene.release("a", End::Attempt), NOTHING);
    assert_eq!(scene.ask_as(asker("a", "step", 2), vec![key("work"), slot("k", 1)]), ["a granted"]);
}

#[test]
fn a_step_cannot_wait_for_a_slot_of_its_own_run() {
    let mut scene = Scene::default();
    scene.ask_as(asker("a", "", 1), vec![slot("k", 1)]);
    let answer = "a denied: `k` is held by run a, which waits for this one: a deadlock";
    assert_eq!(scene.ask("a", vec![slot("k", 1)]), [answer]);
}

#[test]
fn an_outdated_attempt_gets_no_answer() {
    let mut scene = Scene::default();
    scene.ask_as(asker("a", "step", 2), vec![slot("k", 2)]);
    assert_eq!(scene.ask("a", vec![slot("k", 2)]), NOTHING);
    assert_eq!(scene.coordinator.askers().count(), 1);
}

#[test]
fn a_failed_step_releases_all_its_keys() {
    let mut scene = Scene::default();
    scene.ask("a", vec![key("one"), key("two")]);
    scene.ask("b", vec![key("one")]);
    scene.ask("c", vec![key("two")]);
    assert_eq!(scene.release("a", End::Over), ["b granted", "c granted"]);
}

#[test]
fn ending_a_step_releases_its_earlier_attempts() {
    let mut scene = Scene::default();
    scene.ask("a", vec![key("work"), slot("k", 1)]);
    let asker = asker("a", "step", 2);
    scene.tell(CoordinatorInput::Release { asker, used: Amount::default(), end: End::Over });
    assert_eq!(scene.coordinator.askers().count(), 0);
    assert_eq!(scene.ask("b", vec![key("work"), slot("k", 1)]), ["b granted"]);
}

#[test]
fn only_full_slots_cancel_their_holders() {
    let mut scene = Scene::default();
    scene.ask("a", vec![slot("busy", 1)]);
    scene.ask("b", vec![slot("free", 2)]);
    assert_eq!(scene.ask("c", vec![slot("busy", 1), or(Full::Replace, "free", 2)]), NOTHING);
    assert_eq!(scene.ask("d", vec![or(Full::Replace, "busy", 1)]), ["a cancelled", "c cancelled"]);
}

#[test]
fn a_snapshot_keeps_the_rates() {
    let rate = || Claim::Rate { key: "r".into(), limit: 1, period: Duration::from_secs(10), units: 1 };
    let mut scene = Scene::default();
    scene.ask("b", vec![rate()]);
    scene.pass(100);
    scene.ask("a", vec![rate()]);
    scene.pass(11);
    scene.coordinator.snapshot(Timestamp(scene.now));
    assert_eq!(scene.ask("c", vec![rate()]), ["c granted"]);
}

/// A caller releases its slot only after the run that it called is done.
#[test]
fn a_called_run_takes_a_free_slot_that_is_reserved_for_another() {
    let mut scene = Scene::default();
    scene.ask_as(asker("caller", "", 1), vec![slot("runs", 2), slot("only", 1)]);
    assert_eq!(scene.ask("b", vec![slot("only", 1), slot("runs", 2)]), NOTHING);
    let ask = |run: &str, ancestors: Vec<RunId>| {
        let (asker, claims) = (asker(run, "", 1), vec![slot("runs", 2)]);
        CoordinatorInput::Ask(Box::new(Ask { asker, claims, since: Timestamp(0), ahead: 0, ancestors }))
    };
    assert_eq!(scene.tell(ask("stranger", Vec::new())), NOTHING);
    let caller = RunId::new("caller").expect("a good name");
    assert_eq!(scene.tell(ask("called", vec![caller])), ["called granted"]);
}

#[test]
fn journals_of_earlier_versions_are_read() {
    let old = [
        r#"{"at":1,"event":"begun"}"#,
        r#"{"at":1,"event":"queued","ask":{"asker":{"run":"a","path":[],"attempt":1},"since":1,"flow":"w","claims":[{"slot":{"key":"house:runs","limit":1,"turns":true}}]},"on":"house:runs","place":{"turn":3,"since":1,"number":0}}"#,
        r#"{"at":2,"event":"insisted","asker":{"run":"a","path":[],"attempt":1}}"#,
        r#"{"at":3,"event":"turns_are","key":"house:runs","now":3,"last":[["w",4]]}"#,
        r#"{"at":4,"event":"granted","asker":{"run":"a","path":[],"attempt":1}}"#,
        r#"{"at":5,"event":"evicted","asker":{"run":"a","path":[],"attempt":1}}"#,
        r#"{"at":6,"event":"granted","asker":{"run":"b","path":["s"],"attempt":1},"ask":{"asker":{"run":"b","path":["s"],"attempt":1},"since":6,"flow":"w","claims":[{"promise":{"key":"key:x","ttl":null}},{"spend":{"account":"day","cap":{},"most":{"calls":1}}}]}}"#,
        r#"{"at":7,"event":"promised","key":"key:y","run":"c","path":["s"],"ttl":null}"#,
        r#"{"at":8,"event":"broken","run":"c","path":["s"]}"#,
        r#"{"at":9,"event":"account_is","account":"all","cap":{"calls":3},"spent":{"calls":1}}"#,
        r#"{"at":10,"event":"listening","address":{"run":"d","path":["w"]},"name":"n","matching":{},"number":0}"#,
        r#"{"at":11,"event":"published","id":"m","name":"n","by":"x","value":1,"to":[{"run":"d","path":["w"]}]}"#,
        r#"{"at":12,"event":"heard","id":"m","to":{"run":"d","path":["w"]}}"#,
        r#"{"at":13,"event":"listening","address":{"run":"d","path":["w"]},"name":"n","matching":{},"number":0}"#,
        r#"{"at":14,"event":"deaf","run":"d","path":["w"]}"#,
    ];
    let events = old.map(|line| serde_json::from_str::<CoordinatorEvent>(line).expect("an old event"));
    let state = Coordinator::replay(&events).expect("a journal without contradictions").state;
    assert_eq!(state.slots.keys().map(|key| &**key).collect::<Vec<_>>(), ["machine:runs"]);
    assert!(state.waiting.is_empty() && state.holds[&asker("a", "", 1)].replaced);
    assert_eq!(state.keys.keys().map(|key| &**key).collect::<Vec<_>>(), ["key:x"]);
    assert_eq!(state.budgets["all"].spent.calls, 1);
    assert_eq!(state.budgets["day"].reserved.len(), 1);
    assert!(state.deliveries.is_empty() && state.subscriptions.is_empty() && state.messages.contains("m"));
}

#[test]
fn a_journal_that_contradicts_itself_is_refused() {
    let check = |lines: &[&str], expected: Option<&str>| {
        let parse = |line: &&str| serde_json::from_str::<CoordinatorEvent>(line).expect("an event");
        let events: Vec<CoordinatorEvent> = lines.iter().map(parse).collect();
        let found = Coordinator::replay(&events).err().map(|contradiction| contradiction.to_string());
        assert_eq!(found.as_deref(), expected);
    };
    let asker = r#""asker":{"run":"a","path":["s"],"attempt":1}"#;
    let ask = format!(r#""ask":{{{asker},"since":1,"claims":[{{"slot":{{"key":"k","limit":1}}}}]}}"#);
    let queued = format!(r#"{{"at":1,"event":"queued",{ask},"on":"k","position":{{"since":1,"number":0}}}}"#);
    let granted = format!(r#"{{"at":2,"event":"granted",{asker}}}"#);
    let released = format!(r#"{{"at":3,"event":"released",{asker},"used":{{}},"end":"over"}}"#);
    check(&[&queued, &granted, &released], None);
    check(&[&queued, &granted, &released, &queued], None);
    let contradicts = |event: &str, expected: &str| {
        format!("event `{event}` at /s contradicts the events before it: expected {expected}, found none")
    };
    check(&[&granted], Some(&contradicts("granted", "an open request")));
    check(&[&queued, &queued], Some(&contradicts("queued", "a new request")));
    check(&[&queued, &released], Some(&contradicts("released", "a granted request")));
    let freed = r#"{"at":1,"event":"keys_freed","run":"a","path":["s"]}"#;
    check(&[freed], Some(&contradicts("keys_freed", "a step that owns keys")));
    let acknowledged = r#"{"at":1,"event":"acknowledged","id":"m","to":{"run":"a","path":["s"]}}"#;
    check(&[acknowledged], Some(&contradicts("acknowledged", "an undelivered message")));
}
