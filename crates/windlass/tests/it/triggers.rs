//! Trigger firings from file to run. The tests pass the time explicitly; the first task of a run reports that it
//! began.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;
use windlass::{
    BoxFuture, Choice, Context, DIALECTS, Environment, Executor, GateDecision, Host, Input, Job, Outcome,
    Returned, RunId, RunStatus, Since, Value,
};
use windlass_dialects::{Loaded, Options, Text};
use windlass_ir::trigger::TriggerSource;
use windlass_runtime::{
    Clock, Durability, Engine, PastFiring, Patience, Query, Scheduled, StepPhase, Timestamp, Triggers,
};

/// Ten past nine on a Sunday; the triggers here are due every hour.
const NOW: Timestamp = Timestamp(1_774_775_400_000_000);
const HOUR: i64 = 3_600_000_000;

fn hour(number: i64) -> Timestamp {
    Timestamp(NOW.0 - NOW.0 % HOUR + number * HOUR)
}

/// Does every task at once, and reports its run.
struct Reporter(mpsc::UnboundedSender<(RunId, Value)>);

impl Executor for Reporter {
    fn start(&self, job: Job, _: Context) -> BoxFuture<'_, Returned> {
        let windlass::Work::Task { input, .. } = &job.work.work else { panic!("only tasks: {job:?}") };
        let _ = self.0.send((job.key.run.clone(), input.clone()));
        Box::pin(async { Outcome::Done(Value::Null).into() })
    }
}

/// An engine, and the reports of its runs.
struct World {
    engine: Arc<Engine>,
    began: mpsc::UnboundedReceiver<(RunId, Value)>,
}

impl World {
    fn of(engine: Arc<Engine>) -> Self {
        let (sender, began) = mpsc::unbounded_channel();
        let mut host = Host::new(Environment::default());
        host.others = Arc::new(Reporter(sender));
        engine.set_default_host(host);
        Self { engine, began }
    }

    fn in_memory() -> Self {
        Self::of(Engine::in_memory(DIALECTS))
    }

    async fn load(&self, entries: Vec<Scheduled>, now: Timestamp) -> Triggers {
        let (triggers, parked) = Triggers::load(&self.engine, entries, now).await;
        assert!(parked.is_empty(), "{parked:?}");
        triggers
    }

    /// The next run that executes a task.
    async fn began(&mut self) -> RunId {
        self.began.recv().await.expect("a sender is left").0
    }

    fn runs(&self) -> usize {
        self.engine.runs(&Query { limit: 100, ..Query::default() }).expect("runs").len()
    }

    /// All firings, oldest first.
    fn history(&self) -> Vec<String> {
        let shown = |firing: PastFiring| match firing.came {
            Ok(run) => format!("{} {run}", firing.due),
            Err(because) => format!("{} skipped: {because}", firing.due),
        };
        let mut all: Vec<String> =
            self.engine.firings(None, 100, |_| true).expect("firings").into_iter().map(shown).collect();
        all.reverse();
        all
    }

    /// Approves the gate of a run, which ends the run.
    async fn approve(&self, run: &RunId) {
        // A process stops following a run that waits only for people.
        let left = self.engine.follow(run, Since::Now, Patience::Work).await.expect("a run").done.await;
        left.expect("it is not aborted").expect("a good store");
        let path = self.engine.gate(run, None).expect("it waits there");
        let decision =
            GateDecision { choice: Choice::Approve, by: "me".into(), reason: None, form: Value::Null };
        self.engine.tell(run, Input::Decide { id: "d".into(), path, decision }).await.expect("it waits");
    }
}

fn loaded(name: &str, text: &str) -> Loaded {
    let text = Text { name: name.to_owned(), bytes: text.as_bytes().to_vec() };
    let loaded = windlass_dialects::load(text, Options::default());
    assert!(loaded.is_valid(), "{:?}", loaded.diagnostics);
    loaded
}

/// The scheduled triggers of a workflow.
fn scheduled(name: &str, text: &str) -> Vec<Scheduled> {
    let Loaded { plan, triggers, words, .. } = loaded(name, text);
    let plan = plan.expect("a valid file");
    let each = triggers.into_iter().map(|trigger| {
        let TriggerSource::Cron(cron) = trigger.source else { panic!("only clocks here") };
        Scheduled {
            id: trigger.id.expect("an id").value,
            cron,
            input: trigger.input,
            runs_max: trigger.runs_max,
            overlap: trigger.overlap,
            semantics: plan.semantics,
            plan: plan.clone(),
            words,
            source: text.to_owned(),
            overrides: String::new(),
        }
    });
    each.collect()
}

/// A workflow that runs a task and waits at a gate, every hour.
fn hourly(keys: &str) -> Vec<Scheduled> {
    let text = format!(
        r#"
workflow: {{ id: hello, name: Hello }}
config: {{ parameters: {{ when: {{ type: string, required: true }}, whom: {{ type: string, default: you }} }} }}
stages:
  - {{ id: hello, type: task, task: hello, input: "${{{{ parameters.when }}}} ${{{{ parameters.whom }}}}" }}
  - {{ id: wait, type: gate, depends_on: [hello], gate: {{ kind: manual_approval, approvers: [me], timeout: 1h }} }}
triggers:
  - {{ id: hourly, cron: "0 * * * *", with: {{ when: "${{{{ item.time }}}}" }}, {keys} }}
"#
    );
    scheduled("hello.yaml", &text)
}

#[tokio::test]
async fn a_firing_starts_one_run_with_the_inputs_of_the_trigger() {
    let mut world = World::in_memory();
    let triggers = world.load(hourly("max_concurrent: 1"), NOW).await;
    assert_eq!(triggers.look(NOW).await, Some(hour(1)));
    assert_eq!(triggers.look(hour(1)).await, Some(hour(2)));
    let (run, input) = world.began.recv().await.expect("it begins");
    assert!(run.as_str().starts_with("hourly-20260329-100000-"), "{run}");
    assert_eq!(input, Value::text("2026-03-29T10:00:00Z you"));
    // A second check, or another process, finds it decided.
    assert_eq!(triggers.look(hour(1)).await, Some(hour(2)));
    let others = world.load(hourly("max_concurrent: 1"), hour(1)).await;
    assert_eq!(others.look(hour(1)).await, Some(hour(2)));
    world.engine.start_orders().await;
    assert_eq!(world.runs(), 1);
    assert_eq!(
        world.history(),
        ["2026-03-29T09:10:00Z skipped: loaded".to_owned(), format!("2026-03-29T10:00:00Z {run}")]
    );
}

#[test]
fn a_decided_firing_starts_once_after_a_crash() {
    let folder = folder("decided_and_not_started");
    // Nothing of a process survives it.
    let process = |work: &dyn Fn(World) -> Process| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            work(World::of(
                Engine::open(&folder, Durability::Process, DIALECTS).expect("a folder of our own"),
            ))
            .await;
        });
    };
    process(&|world| {
        Box::pin(async move {
            let triggers = world.load(hourly("max_concurrent: 1"), NOW).await;
            triggers.look(NOW).await;
            // The process ends as soon as the decision is made.
            assert_eq!(triggers.look(hour(1)).await, Some(hour(2)));
            assert_eq!(triggers.look(hour(1)).await, Some(hour(2)));
        })
    });
    process(&|world| {
        Box::pin(async move {
            let triggers = world.load(hourly("max_concurrent: 1"), hour(1)).await;
            triggers.look(hour(1)).await;
            world.engine.start_orders().await;
            assert_eq!((world.history().len(), world.runs()), (2, 1));
        })
    });
    process(&|world| {
        Box::pin(async move {
            let triggers = world.load(hourly("max_concurrent: 1"), hour(1)).await;
            triggers.look(hour(1)).await;
            world.engine.start_orders().await;
            assert_eq!((world.history().len(), world.runs()), (2, 1));
        })
    });
}

/// The work of one process.
type Process = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    folder
}

#[tokio::test]
async fn overlap_skip_starts_nothing_during_a_run() {
    let mut world = World::in_memory();
    let triggers = world.load(hourly("max_concurrent: 1"), NOW).await;
    triggers.look(NOW).await;
    triggers.look(hour(1)).await;
    let first = world.began().await;
    triggers.look(hour(2)).await;
    let because = format!("{} skipped: at most 1 at once, and {first} is still running", hour(2));
    assert_eq!(world.history().last(), Some(&because));
    world.approve(&first).await;
    triggers.look(hour(3)).await;
    let third = world.began().await;
    assert_eq!(world.history().last(), Some(&format!("{} {third}", hour(3))));
    assert_eq!(world.runs(), 2);
}

#[tokio::test]
async fn overlap_queue_makes_the_next_run_wait() {
    let mut world = World::in_memory();
    let triggers = world.load(hourly("max_concurrent: 1, overlap: queue"), NOW).await;
    triggers.look(NOW).await;
    triggers.look(hour(1)).await;
    let first = world.began().await;
    triggers.look(hour(2)).await;
    world.engine.start_orders().await;
    assert_eq!(world.runs(), 2);
    assert!(world.began.try_recv().is_err(), "the second one waits");
    world.approve(&first).await;
    let second = world.began().await;
    assert_eq!(world.history().last(), Some(&format!("{} {second}", hour(2))));
}

#[tokio::test]
async fn overlap_cancel_replaces_the_current_run() {
    let mut world = World::in_memory();
    let triggers = world.load(hourly("max_concurrent: 1, overlap: cancel"), NOW).await;
    triggers.look(NOW).await;
    triggers.look(hour(1)).await;
    let first = world.began().await;
    triggers.look(hour(2)).await;
    let second = world.began().await;
    assert_ne!(first, second);
    let view = world.engine.view(&first).expect("a run");
    assert_eq!(world.engine.status(&first).expect("a run"), RunStatus::Cancelled);
    assert!(!view.steps().any(|(_, step)| matches!(step.phase, StepPhase::Asking { .. })));
}

#[tokio::test]
async fn missed_firings_are_made_up_for() {
    let mut world = World::in_memory();
    world.load(hourly("catch_up: all, catch_up_max: 2"), NOW).await.look(NOW).await;
    let later = Timestamp(hour(5).0 + 1);
    world.load(hourly("catch_up: all, catch_up_max: 2"), later).await.look(later).await;
    let runs = [world.began().await, world.began().await];
    let history = world.history();
    assert!(history[1].starts_with(&format!("{} skipped: 3 missed", hour(3))), "{}", history[1]);
    for (number, firing) in [(4, &history[2]), (5, &history[3])] {
        assert!(runs.iter().any(|run| *firing == format!("{} {run}", hour(number))), "{firing}: {runs:?}");
    }
}

#[tokio::test]
async fn a_trigger_that_cannot_fire_is_parked_and_the_others_continue() {
    let world = World::in_memory();
    let mut entries = hourly("max_concurrent: 1");
    let mut wrong = entries[0].clone();
    (wrong.id, wrong.cron.timezone) = ("mars".into(), Some("Mars/Olympus".into()));
    let mut given = entries[0].clone();
    given.id = "nothing".into();
    given.input = windlass_ir::trigger::TriggerInput::Envelope;
    entries.extend([wrong, given, entries[0].clone()]);
    let (triggers, parked) = Triggers::load(&world.engine, entries, NOW).await;
    let reasons: Vec<String> = parked.iter().map(|one| format!("{}: {}", one.trigger, one.why)).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert_eq!(reasons[0], "mars: unknown time zone `Mars/Olympus`");
    assert!(reasons[1].starts_with("nothing: its input does not fit: "), "{}", reasons[1]);
    assert_eq!(reasons[2], "hourly: another trigger has the same id");
    assert_eq!(triggers.look(NOW).await, Some(hour(1)));
}

#[tokio::test]
async fn a_dagnats_run_receives_the_envelope() {
    let text = r#"{"name": "w", "version": "1", "steps": [{"id": "say", "task": "greet"}],
        "triggers": [{"id": "t", "enabled": true, "cron": {"expression": "0 * * * *"}}]}"#;
    let mut world = World::in_memory();
    let triggers = world.load(scheduled("w.json", text), NOW).await;
    triggers.look(NOW).await;
    triggers.look(hour(1)).await;
    let (_, input) = world.began.recv().await.expect("it begins");
    let expected = [
        ("trigger", Value::text("cron")),
        ("source", Value::text("t")),
        ("workflow_id", Value::text("w")),
        ("timestamp", Value::text("2026-03-29T10:00:00Z")),
        ("data", Value::Null),
    ];
    assert_eq!(input, Value::map(expected));
}

#[tokio::test]
async fn the_loop_wakes_by_itself() {
    let mut world = World::in_memory();
    let mut entries = hourly("catch_up: last");
    entries[0].cron.pattern.value = "* * * * * *".into();
    let triggers = world.load(entries, Clock::Real.now()).await;
    let firing = tokio::spawn(triggers.run());
    let first = world.began().await;
    firing.abort();
    assert!(world.history().iter().any(|firing| firing.ends_with(first.as_str())));
}
