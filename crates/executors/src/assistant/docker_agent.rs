//! Docker Agent: the only integration whose steps set more than a prompt and a model. It needs a reference to the
//! agent to run, and accepts a few settings.

use super::integrations::Call;

const SETTINGS: [(&str, &str); 2] = [("agent", "--agent"), ("safety", "--safety")];
const SAFETY: [&str; 4] = ["autonomous", "balanced", "restricted", "strict"];

pub fn arguments(call: &Call<'_>, prompt: &str, extra: &[String]) -> Result<Vec<String>, String> {
    let mut argv = vec!["run".to_owned(), "--exec".to_owned()];
    argv.extend(reference(call.arguments, extra)?.iter().cloned());
    for (name, value) in call.settings {
        argv.extend([flag(name, value)?.to_owned(), value.clone()]);
    }
    argv.extend(call.model.into_iter().flat_map(|model| ["--model".to_owned(), model.to_owned()]));
    // After this, even `--help` is part of the prompt.
    argv.extend(["--".to_owned(), prompt.to_owned()]);
    Ok(argv)
}

/// From the step, otherwise from the variable with its other contents.
fn reference<'a>(own: &'a [String], extra: &'a [String]) -> Result<&'a [String], String> {
    let missing = "Docker Agent needs the agent to run: write `integration_args: [./agent.yaml]`";
    match (own, extra) {
        ([], [first, ..]) if !first.is_empty() && !first.starts_with('-') => Ok(extra),
        ([], _) => Err(format!("{missing}, or start SPECKIT_INTEGRATION_DOCKER_AGENT_EXTRA_ARGS with it")),
        ([only], _) if !only.trim().is_empty() && !only.starts_with('-') => Ok(own),
        ([_], _) => Err(missing.to_owned()),
        (_, _) => Err(format!("{missing}; only one is allowed")),
    }
}

fn flag(name: &str, value: &str) -> Result<&'static str, String> {
    let known = SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag);
    let Some(flag) = known else {
        let hint = if name == "model" { ": set the model with `model`" } else { ": use `agent` or `safety`" };
        return Err(format!("unknown Docker Agent setting `{name}`{hint}"));
    };
    if value.trim().is_empty() {
        return Err(format!("the Docker Agent setting `{name}` is empty: set a value or remove it"));
    }
    if name == "safety" && !SAFETY.contains(&value) {
        return Err(format!("the Docker Agent setting `safety` must be one of {}", SAFETY.join(", ")));
    }
    Ok(flag)
}
