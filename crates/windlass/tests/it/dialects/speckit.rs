//! What Spec Kit itself has made of the workflows in `fixtures/speckit/cases`, phase by phase: `speckit.json` holds what it wrote
//! down (status, inputs, and for each recorded id its status and output). Wordings of errors are our own.

use super::{cases, workflow};
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use windlass::{Clock, Engine, Environment, Error, Patience, RunId, Value, Workflow, report};
use windlass_ir::plan::Given;

fn expected() -> IndexMap<String, Json> {
    serde_json::from_str(include_str!("speckit.json")).expect("JSON")
}

/// A project of its own for one run.
struct Project {
    folder: PathBuf,
    workflow: Workflow,
    engine: Engine,
}

impl Project {
    fn new(name: &str, phase: usize, case: &Json) -> Self {
        let folder =
            std::env::temp_dir().join(format!("windlass-speckit-{name}-{phase}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::copy(cases("speckit").join(name).join("workflow.yml"), folder.join("workflow.yml"))
            .expect("a copy");
        let mut variables: IndexMap<OsString, OsString> = std::env::vars_os().collect();
        // Agents of whoever tests have nothing to do with it.
        variables.retain(|name, _| !name.to_string_lossy().starts_with("SPECKIT"));
        let env = case["env"].as_object().into_iter().flatten();
        variables.extend(env.map(|(name, value)| (name.into(), value.as_str().expect("text").into())));
        if case["agents"] == true {
            let path = format!("{}:/usr/bin:/bin", fake_agents(&folder).display());
            variables.insert("PATH".into(), path.into());
        }
        let environment = Environment { variables, directory: folder.clone() };
        let engine =
            Engine::in_memory().with_environment(environment).with_workflow_file(folder.join("workflow.yml"));
        Self { folder, workflow: workflow("speckit", &format!("{name}/workflow.yml")), engine }
    }

    /// Values as text, which the declared types convert.
    fn given(&self, phase: &Json) -> Value {
        let given = phase["given"].as_object().expect("an object").iter();
        let given =
            given.map(|(name, text)| (name.clone(), Given::Text(text.as_str().expect("text").into())));
        let plan = self.workflow.plan().expect("a valid case");
        let parameters = plan.parameters(&given.collect(), &windlass_dialects::speckit::WORDS);
        parameters.unwrap_or_else(|findings| panic!("{findings:?}")).to_value()
    }

    async fn run(&self, phase: &Json) -> RunId {
        let plan = self.workflow.plan().expect("a valid case");
        let run = self.engine.run_with(plan, self.given(phase), Clock::Real, Patience::Work).await;
        let run = run.expect("a start");
        let id = run.id.clone();
        run.outcome().await.expect("no trouble");
        id
    }

    async fn resume(&self, id: &RunId, phase: &Json) -> Result<(), Error> {
        let all = self.given(phase);
        let names = phase["given"].as_object().expect("an object").keys();
        let changes = Value::map(names.map(|name| (name.as_str(), all.get(name).cloned().expect("given"))));
        let run = self.engine.resume(id, changes, Clock::Real, Patience::Work).await?;
        run.outcome().await.expect("no trouble");
        Ok(())
    }

    fn result(&self, id: &RunId) -> Json {
        report::result(id, &self.engine.view(id).expect("a run"))
    }
}

/// Agents that only tell how they were started; with `FAKE_RC` they fail.
fn fake_agents(folder: &Path) -> PathBuf {
    let tells = "#!/bin/sh\nprintf 'argc=%s\\n' \"$#\"\nfor a in \"$@\"; do printf 'arg=%s\\n' \"$a\"; done\nexit ${FAKE_RC:-0}\n";
    let bin = folder.join("fake-bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    for agent in ["claude", "codex", "copilot", "gemini"] {
        let file = bin.join(agent);
        std::fs::write(&file, tells).expect("a file");
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("our file");
    }
    bin
}

impl Drop for Project {
    fn drop(&mut self) {
        // Left behind, it would only take up room.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn play(name: &str, case: &Json) {
    let phases = case["phases"].as_array().expect("phases");
    let mut current: Option<(Project, RunId)> = None;
    for (number, phase) in phases.iter().enumerate() {
        let what = format!("{name}, phase {number}");
        if phase["do"] == "run" {
            let project = Project::new(name, number, case);
            let id = project.run(phase).await;
            current = Some((project, id));
        }
        let (project, id) = current.as_ref().expect("a run comes first");
        touch(&project.folder, phase);
        if phase["do"] == "resume" {
            let before = project.result(id);
            let resumed = project.resume(id, phase).await;
            if phase["refused"] == true {
                assert_eq!(resumed.expect_err(&what).code(), "run_finished", "{what}");
                assert_eq!(project.result(id), before, "{what}: nothing changes");
                continue;
            }
            resumed.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        compare(&what, phase, &project.result(id), id);
    }
}

fn touch(folder: &Path, phase: &Json) {
    for file in phase["touch_before"].as_array().into_iter().flatten() {
        std::fs::write(folder.join(file.as_str().expect("a name")), "").expect("a file");
    }
}

fn compare(what: &str, phase: &Json, result: &Json, id: &RunId) {
    let expected: Json =
        serde_json::from_str(&phase.to_string().replace("<RUN_ID>", id.as_str())).expect("still JSON");
    for key in ["status", "inputs", "current_step"] {
        assert_eq!(result[key], expected[key], "{key} of {what}: {result:#}");
    }
    let steps = |json: &Json| json["steps"].as_object().expect("steps").clone();
    let (ours, theirs) = (steps(result), steps(&expected));
    for (id, step) in &theirs {
        let own = ours.get(id).unwrap_or_else(|| panic!("{what}: `{id}` is missing in {result:#}"));
        assert_eq!(own["status"], step["status"], "{what}: {id}: {own:#}");
        assert_eq!(own["output"], step["output"], "{what}: {id}");
    }
    let extra: Vec<&String> = ours.keys().filter(|id| !theirs.contains_key(*id)).collect();
    assert!(extra.is_empty(), "{what}: {extra:?} are on record");
}

#[tokio::test]
async fn every_phase_leaves_what_it_must() {
    for (name, case) in expected() {
        play(&name, &case).await;
    }
}
