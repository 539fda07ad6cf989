//! Stored plans and their programs.

use super::{Engine, Error, lock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{RwLock, RwLockWriteGuard};
use windlass_engine::Program;
use windlass_ir::Plan;
use windlass_store::StoredPlan;

#[derive(Debug, Default)]
pub(super) struct Plans {
    /// Programs by the digest of their plan. The plan is stored before its program gets here.
    programs: Mutex<HashMap<String, Arc<Program>>>,
    /// Shared while storing a plan, exclusive while removing unused plans.
    storing: RwLock<()>,
}

impl Engine {
    /// Stores a plan and returns its program. The plan is durable when this returns.
    pub(crate) async fn stored(
        &self,
        plan: &Plan,
        source: String,
        overrides: String,
    ) -> Result<Arc<Program>, Error> {
        // Wait for a sweep that removes plans. After it, the cache contains only stored plans.
        let _storing = self.plans.storing.read().await;
        if let Some(known) = self.programs().get(plan.digest.as_str()) {
            return Ok(known.clone());
        }
        let digest = plan.digest.as_str().to_owned();
        let json = serde_json::to_string(plan).expect("a plan has no secrets, and all its keys are text");
        let stored =
            StoredPlan { digest: digest.clone(), format: plan.format, plan: json, source, overrides };
        let program = Arc::new(Program::new(plan.clone())?);
        self.store.plans.put(stored).await?;
        self.programs().insert(digest, program.clone());
        Ok(program)
    }

    /// Keeps other tasks from storing plans while the guard lives.
    pub(crate) async fn lock_plans(&self) -> RwLockWriteGuard<'_, ()> {
        self.plans.storing.write().await
    }

    pub(crate) fn programs(&self) -> MutexGuard<'_, HashMap<String, Arc<Program>>> {
        lock(&self.plans.programs)
    }
}
