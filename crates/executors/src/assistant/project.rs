//! What the files of a project say about its agents. Missing or unreadable files are ignored.

use serde_json::Value as Json;
use std::io::Read;
use std::path::Path;

/// Longer files are ignored.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Newer versions are written by newer programs and ignored.
const STATE_SCHEMA_MAX: i64 = 1;

/// The commands that come with Spec Kit.
const COMMANDS: [&str; 10] = [
    "analyze",
    "checklist",
    "clarify",
    "constitution",
    "converge",
    "implement",
    "plan",
    "specify",
    "tasks",
    "taskstoissues",
];

fn json(file: &Path) -> Option<Json> {
    let mut text = Vec::new();
    // Checked before opening, because opening a pipe would wait for a writer.
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    std::fs::File::open(file).ok().filter(|_| is_file)?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The default integration of the project.
pub fn default_integration(root: &Path) -> Option<String> {
    let state = json(&root.join(".specify/integration.json"))?;
    if state["integration_state_schema"].as_i64().is_some_and(|schema| schema > STATE_SCHEMA_MAX) {
        return None;
    }
    let named = [&state["default_integration"], &state["integration"]];
    let installed = state["installed_integrations"].as_array().into_iter().flatten();
    let keys = named.into_iter().chain(installed).filter_map(Json::as_str).map(str::trim);
    keys.into_iter().find(|key| !key.is_empty()).map(str::to_owned)
}

/// Whether a project has agents for Copilot, as created by older versions, and no skills.
pub fn has_agents_of_copilot(root: &Path) -> bool {
    let manifest = json(&root.join(".specify/integrations/copilot.manifest.json"));
    let files = manifest.as_ref().and_then(|manifest| manifest["files"].as_object());
    let lists = |begin: &str, end: &str| {
        files.is_some_and(|files| files.keys().any(|path| path.starts_with(begin) && path.ends_with(end)))
    };
    if lists(".github/skills/speckit-", "/SKILL.md") {
        return false;
    }
    if lists(".github/agents/speckit.", ".agent.md") {
        return true;
    }
    let has = |file: &dyn Fn(&str) -> String| {
        COMMANDS.iter().any(|command| root.join(".github").join(file(command)).is_file())
    };
    let skills = has(&|command| format!("skills/speckit-{command}/SKILL.md"));
    let agents = has(&|command| format!("agents/speckit.{command}.agent.md"));
    !skills && (agents || has(&|command| format!("prompts/speckit.{command}.prompt.md")))
}

/// Whether a project has commands for Bob, as created by older versions, and no skills.
pub fn has_commands_of_bob(root: &Path) -> bool {
    let has = |folder: &str, begin: &str, end: &str| {
        let entries = std::fs::read_dir(root.join(".bob").join(folder)).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name())
            .any(|name| name.to_str().is_some_and(|name| name.starts_with(begin) && name.ends_with(end)))
    };
    !has("skills", "speckit-", "") && has("commands", "speckit.", ".md")
}
