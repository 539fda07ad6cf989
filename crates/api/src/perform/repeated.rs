//! Stories about calls that are repeated: with their key, after a crash of the owner, or with the id of another run.

use super::admit::{Kept, key_of, put};
use super::{Caller, Context, admit};
use crate::code::Code;
use crate::operations::{ApproveGate, CollectGarbage, Decide, SignalRun, StartRun, StartedRun};
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
    fn restarted(self) -> Self {
        let Self { _scratch, folder, engine } = self;
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
    let owner = owner.restarted();
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
