//! Stories about calls that are repeated: with their key, after a crash of the owner, or with the id of another run.

use super::admit::{Kept, begun, digest, key_of, put};
use super::{Caller, Context, Perform, admit};
use crate::code::Code;
use crate::operation::{Operation as _, Role};
use crate::operations::{
    ApproveGate, BulkAction, BulkRuns, CollectGarbage, Decide, Retried, RetryRun, RunFilter, SignalRun,
    StartRun, StartedRun, operations,
};
use crate::types::{Json, Ref, Run};
use std::path::PathBuf;
use std::sync::Arc;
use windlass_dialects::DIALECTS;
use windlass_runtime::{Durability, Engine, RunId, What};
use windlass_tools::scratch::Scratch;

const TWO_GATES: &str = "workflow: { id: release, name: Release }
stages:
  - { id: first, type: gate, gate: { kind: manual_approval } }
  - { id: second, type: gate, depends_on: [first], gate: { kind: manual_approval } }
";

/// A data folder and its owner.
struct Owner {
    _scratch: Scratch,
    folder: PathBuf,
    engine: Arc<Engine>,
}

impl Owner {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let folder = scratch.path().join("data");
        let engine = opened(&folder);
        Self { _scratch: scratch, folder, engine }
    }

    /// Another process owns the folder from now on.
    async fn restarted(self) -> Self {
        let Self { _scratch, folder, engine } = self;
        engine.stop().await;
        drop(engine);
        let engine = opened(&folder);
        Self { _scratch, folder, engine }
    }

    fn context(&self, key: Option<&str>) -> Context {
        Context::owning(self.engine.clone(), Caller::user("ann").with_key(key))
    }

    async fn start(&self, run: &str, source: &str) -> Run {
        let start = StartRun {
            of: Ref::text("w.yaml", source),
            run_id: Some(run.into()),
            wait_seconds: Some(10.0),
            ..StartRun::default()
        };
        match admit(start, &self.context(None)).await.expect("a run") {
            StartedRun::Run(run) => *run,
            StartedRun::Plan(_) => panic!("a dry run"),
        }
    }

    /// Changes the document of a key, as a crash or the passing of time would.
    async fn change(&self, operation: &str, key: &str, change: impl FnOnce(&mut Kept)) {
        let name = key_of(&self.context(None), operation, key).expect("a key");
        let body = self.engine.document("key", &name).await.expect("readable").expect("a kept reply");
        let mut kept: Kept = serde_json::from_slice(&body).expect("a kept reply");
        change(&mut kept);
        self.engine.note(vec![put(name, &kept)]).await.expect("written");
    }

    /// Performs a call whose owner ends after the effect and before it keeps the reply.
    async fn crashed<T: Perform>(&self, request: T, key: &str) {
        let (cx, name) = (self.context(Some(key)), T::ABOUT.name);
        let json = serde_json::to_value(&request).expect("JSON");
        let whole = (key_of(&cx, name, key).expect("a key"), digest(&json));
        let call = begun(&cx, name, &json, Some(whole)).expect("a call");
        request.perform(&cx.calling(call)).await.expect("performed");
    }

    async fn has_key(&self, operation: &str, key: &str) -> bool {
        let name = key_of(&self.context(None), operation, key).expect("a key");
        self.engine.document("key", &name).await.expect("readable").is_some()
    }
}

fn opened(folder: &std::path::Path) -> Arc<Engine> {
    Engine::open(folder, Durability::Process, DIALECTS).expect("a writable folder")
}

fn signal(run: &str, name: &str) -> SignalRun {
    SignalRun { run_id: run.into(), name: name.into(), value: Json::Null, id: None, by: None }
}

fn approval(run: &str) -> ApproveGate {
    let (run_id, fields) = (run.to_owned(), Json::Null);
    ApproveGate(Decide { run_id, step: None, choice: None, fields, reason: None, id: None, by: None })
}

#[tokio::test]
async fn a_key_may_be_used_again_after_its_time() {
    let owner = Owner::new("key-expiry");
    owner.start("a", TWO_GATES).await;
    admit(signal("a", "go"), &owner.context(Some("k"))).await.expect("sent");
    let other = admit(signal("a", "stop"), &owner.context(Some("k"))).await;
    assert_eq!(other.map_err(|refusal| refusal.code), Err(Code::KeyReused));
    let now = windlass_runtime::Clock::Real.now().0;
    owner
        .change("runs.signal", "k", |kept| {
            let day = 24 * 60 * 60 * 1_000_000;
            assert!((now + day - 60_000_000..=now + day).contains(&kept.until), "{}", kept.until - now);
            kept.until = now;
        })
        .await;
    admit(signal("a", "stop"), &owner.context(Some("k"))).await.expect("a new request");
    owner.change("runs.signal", "k", |kept| kept.until = now).await;
    admit(CollectGarbage::default(), &owner.context(None)).await.expect("collected");
    assert!(!owner.has_key("runs.signal", "k").await);
}

#[tokio::test]
async fn an_approval_repeated_after_a_crash_is_the_same_decision() {
    let owner = Owner::new("key-crash");
    owner.start("a", TWO_GATES).await;
    let first = admit(approval("a"), &owner.context(Some("k"))).await.expect("approved");
    assert_eq!(first.step, "first");
    // The owner ended after the commit of the decision and before it kept the reply.
    owner.change("gates.approve", "k", |kept| kept.reply = None).await;
    let owner = owner.restarted().await;
    let again = admit(approval("a"), &owner.context(Some("k"))).await.expect("the same reply");
    assert_eq!((again.step, again.decided), (first.step, first.decided));
    let events = owner.engine.events(&RunId::new("a").expect("an id")).expect("its events");
    let decisions = events.iter().filter(|event| matches!(event.what, What::Decided { .. }));
    assert_eq!(decisions.count(), 1);
}

#[tokio::test]
async fn a_refused_start_leaves_the_run_with_its_id_alone() {
    let owner = Owner::new("start-twice");
    let run = RunId::new("a").expect("an id");
    owner.start("a", TWO_GATES).await;
    assert!(owner.engine.is_live(&run));
    let again =
        StartRun { of: Ref::text("w.yaml", TWO_GATES), run_id: Some("a".into()), ..StartRun::default() };
    let refused = admit(again, &owner.context(None)).await.map(drop).map_err(|refusal| refusal.code);
    assert_eq!(refused, Err(Code::RunExists));
    assert!(owner.engine.is_live(&run) && owner.engine.executed().contains(&run));
    let shown = owner.context(None).run(&run).await.expect("a run");
    assert_eq!(shown.status, windlass_ir::RunStatus::Waiting);
}

#[tokio::test]
async fn a_call_without_the_role_is_logged_as_refused() {
    let owner = Owner::new("refused-role");
    let viewer = Caller { roles: [Role::Viewer].into(), ..Caller::user("eve") };
    let context = Context::owning(owner.engine.clone(), viewer);
    let rows = operations();
    let cancel = rows.iter().find(|row| row.about.name == "runs.cancel").expect("an operation");
    let request = serde_json::json!({"run_id": "a", "reason": "why", "strange": 1});
    let refused = cancel.call(context.clone(), request).await.map_err(|refusal| refusal.code);
    assert_eq!(refused, Err(Code::Forbidden));
    let refused = admit(signal("a", "go"), &context).await.map_err(|refusal| refusal.code);
    assert_eq!(refused, Err(Code::Forbidden));
    let log = owner.engine.log(None, 10).expect("readable");
    let entry = |(_, body): &(u64, Vec<u8>)| {
        let entry: Json = serde_json::from_slice(body).expect("JSON");
        ["operation", "principal", "outcome", "code"].map(|member| entry[member].clone())
    };
    let expected =
        ["runs.signal", "runs.cancel"].map(|name| [name, "eve", "refused", "forbidden"].map(Json::from));
    assert_eq!(log.iter().map(entry).collect::<Vec<_>>(), expected);
    let first: Json = serde_json::from_slice(&log[1].1).expect("JSON");
    assert_eq!(first["changed"], serde_json::json!({"run_id": "a", "reason": "why"}));
}

#[tokio::test]
async fn a_bulk_call_repeated_after_a_crash_acts_on_the_same_runs() {
    let owner = Owner::new("bulk-crash");
    owner.start("a", TWO_GATES).await;
    owner.start("b", TWO_GATES).await;
    let filter = RunFilter { workflow: vec!["release".into()], ..RunFilter::default() };
    let cancel = BulkRuns { action: BulkAction::Cancel, filter, dry_run: false, ..BulkRuns::example() };
    owner.crashed(cancel.clone(), "k").await;
    owner.start("c", TWO_GATES).await;
    let owner = owner.restarted().await;
    let again = admit(cancel, &owner.context(Some("k"))).await.expect("a reply");
    let items: Vec<_> = again.items.iter().map(|item| (item.run_id.as_str(), item.done)).collect();
    assert_eq!(items, [("b", true), ("a", true)], "{again:#?}");
    let later = owner.context(None).run(&RunId::new("c").expect("an id")).await.expect("a run");
    assert!(!later.status.is_finished());
}

#[tokio::test]
async fn a_start_that_found_an_earlier_run_names_it_again_after_a_crash() {
    const ONCE: &str = "workflow: { id: once, name: Once }
config: { start_key: nightly }
stages: [{ id: wait, type: gate, gate: { kind: manual_approval } }]
";
    let owner = Owner::new("start-key-crash");
    owner.start("a", ONCE).await;
    let start = StartRun { of: Ref::text("w.yaml", ONCE), ..StartRun::default() };
    owner.crashed(start.clone(), "k").await;
    let owner = owner.restarted().await;
    match admit(start, &owner.context(Some("k"))).await.expect("a run") {
        StartedRun::Run(run) => assert_eq!(run.run_id, "a"),
        StartedRun::Plan(_) => panic!("a dry run"),
    }
}

#[tokio::test]
async fn a_retry_with_overrides_changes_the_workflow_of_the_run() {
    const FAILS: &str = "workflow: { id: fails, name: Fails }
stages: [{ id: say, type: shell, run: exit 3 }]
";
    let owner = Owner::new("retry-overrides");
    assert_eq!(owner.start("a", FAILS).await.status, windlass_ir::RunStatus::Failed);
    let text = "overrides: { fails: { stages: { say: { run: exit 0 } } } }\n".to_owned();
    let overrides = Some(crate::types::NamedText { name: "o.yaml".into(), text });
    let retry = RetryRun { run_id: "a".into(), overrides, wait_seconds: Some(10.0), ..RetryRun::default() };
    let operator = Caller { roles: [Role::Operator].into(), ..Caller::user("bob") };
    let refused = admit(retry.clone(), &Context::owning(owner.engine.clone(), operator)).await;
    assert_eq!(refused.map(drop).map_err(|refusal| refusal.code), Err(Code::Forbidden));
    match admit(retry, &owner.context(None)).await.expect("a run") {
        Retried::Run(run) => assert_eq!(run.status, windlass_ir::RunStatus::Success, "{}", run.headline),
        Retried::Plan(_) => panic!("a dry run"),
    }
}
