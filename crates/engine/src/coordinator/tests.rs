//! Single rules of the coordinator. What happens when all of them meet is lived by the simulator.

use super::*;
use windlass_ir::Duration;

/// A coordinator at which every run is named by a message and asks once.
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

    /// So many seconds pass.
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

fn key_state(key: &str) -> Claim {
    Claim::Key { key: key.into(), ttl: None }
}

const NOTHING: [&str; 0] = [];

#[test]
fn whoever_stood_behind_one_who_leaves_is_looked_at() {
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
        assert_eq!(scene.ask(run, vec![slot("rare", 1), slot("house", 2)]), NOTHING);
    }
    assert_eq!(scene.ask("e", vec![slot("house", 2)]), ["e granted"]);
    assert_eq!(scene.ask("f", vec![slot("house", 2)]), NOTHING);
    assert_eq!(scene.ask("g", vec![or(Full::Deny, "house", 2)]), ["g denied: `house` is held by run e"]);
    assert_eq!(scene.release("a", End::Over), ["b granted"]);
    assert_eq!(scene.release("e", End::Over), NOTHING);
    assert_eq!(scene.release("b", End::Over), ["c granted"]);
    assert_eq!(scene.release("c", End::Over), ["d granted", "f granted"]);
}

/// Otherwise the step that has promised could not try again.
#[test]
fn nothing_is_reserved_for_one_who_waits_for_the_work_of_another() {
    let mut scene = Scene::default();
    scene.ask("a", vec![key_state("work"), slot("k", 1)]);
    assert_eq!(scene.ask("b", vec![key_state("work"), slot("k", 1)]), NOTHING);
    assert_eq!(scene.release("a", End::Attempt), NOTHING);
    assert_eq!(scene.ask_as(asker("a", "step", 2), vec![key_state("work"), slot("k", 1)]), ["a granted"]);
}

#[test]
fn a_step_is_refused_what_its_own_run_holds() {
    let mut scene = Scene::default();
    scene.ask_as(asker("a", "", 1), vec![slot("k", 1)]);
    let answer = "a denied: `k` is held by run a, which waits for this one: neither could go on";
    assert_eq!(scene.ask("a", vec![slot("k", 1)]), [answer]);
}

#[test]
fn nobody_answers_an_attempt_that_is_past() {
    let mut scene = Scene::default();
    scene.ask_as(asker("a", "step", 2), vec![slot("k", 2)]);
    assert_eq!(scene.ask("a", vec![slot("k", 2)]), NOTHING);
    assert_eq!(scene.coordinator.askers().count(), 1);
}

#[test]
fn all_that_a_step_promised_is_broken_with_it() {
    let mut scene = Scene::default();
    scene.ask("a", vec![key_state("one"), key_state("two")]);
    scene.ask("b", vec![key_state("one")]);
    scene.ask("c", vec![key_state("two")]);
    assert_eq!(scene.release("a", End::Over), ["b granted", "c granted"]);
}

#[test]
fn a_step_that_is_over_has_no_other_attempt() {
    let mut scene = Scene::default();
    scene.ask("a", vec![key_state("work"), slot("k", 1)]);
    let asker = asker("a", "step", 2);
    scene.tell(CoordinatorInput::Release { asker, used: Amount::default(), end: End::Over });
    assert_eq!(scene.coordinator.askers().count(), 0);
    assert_eq!(scene.ask("b", vec![key_state("work"), slot("k", 1)]), ["b granted"]);
}

#[test]
fn only_a_place_that_is_taken_is_cleared() {
    let mut scene = Scene::default();
    scene.ask("a", vec![slot("busy", 1)]);
    scene.ask("b", vec![slot("free", 2)]);
    assert_eq!(scene.ask("c", vec![slot("busy", 1), or(Full::Replace, "free", 2)]), NOTHING);
    assert_eq!(scene.ask("d", vec![or(Full::Replace, "busy", 1)]), ["a cancelled", "c cancelled"]);
}

#[test]
fn what_was_taken_of_a_rate_is_told_again_as_it_was() {
    let rate = || Claim::Rate { key: "r".into(), limit: 1, period: Duration::from_secs(10), units: 1 };
    let mut scene = Scene::default();
    scene.ask("b", vec![rate()]);
    scene.pass(100);
    scene.ask("a", vec![rate()]);
    scene.pass(11);
    scene.coordinator.snapshot(Timestamp(scene.now));
    assert_eq!(scene.ask("c", vec![rate()]), ["c granted"]);
}

/// A caller cannot give its slot back before the run that it called is done.
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
fn events_of_earlier_versions_change_nothing() {
    let old = [
        r#"{"at":1,"event":"queued","ask":{"asker":{"run":"a","path":[],"attempt":1},"since":1,"flow":"w","claims":[{"slot":{"key":"k","limit":1,"turns":true}}]},"on":"k","position":{"turn":3,"since":1,"number":0}}"#,
        r#"{"at":2,"event":"insisted","asker":{"run":"a","path":[],"attempt":1}}"#,
        r#"{"at":3,"event":"turns_are","key":"k","now":3,"last":[["w",4]]}"#,
        r#"{"at":4,"event":"granted","asker":{"run":"a","path":[],"attempt":1}}"#,
    ];
    let events = old.map(|queue| serde_json::from_str::<CoordinatorEvent>(queue).expect("an old event"));
    let coordinator = Coordinator::replay(&events);
    assert_eq!(coordinator.askers().map(|asker| asker.run.to_string()).collect::<Vec<_>>(), ["a"]);
    assert!(coordinator.state().waiting.is_empty());
}
