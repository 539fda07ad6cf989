//! What the journal of a run has and its public events leave out: work and environment.

use super::program::Program;
use serde_json::Value as Json;
use std::path::Path;
use windlass_dialects::DIALECTS;
use windlass_runtime::{Engine, Executed, RunId};

/// The events of a run as the journal stores them.
pub fn events(program: &Program, folder: &Path, run: &str) -> Vec<Json> {
    let read = || {
        let engine = Engine::look(&program.data(folder), DIALECTS, |_| Executed::nothing()).ok()?;
        engine.events(&RunId::new(run).ok()?).ok()
    };
    let events = read().unwrap_or_default();
    events.iter().filter_map(|event| serde_json::to_value(&event.what).ok()).collect()
}
