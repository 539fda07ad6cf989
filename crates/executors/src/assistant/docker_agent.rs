//! Docker Agent: the one integration whose steps say more than a prompt and a model. It wants a reference to the agent it
//! is to run, and takes a few settings.

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
    // Behind this even `--help` is something to say to the agent.
    argv.extend(["--".to_owned(), prompt.to_owned()]);
    Ok(argv)
}

/// That of the step, else the variable with whatever else stands in it.
fn reference<'a>(own: &'a [String], extra: &'a [String]) -> Result<&'a [String], String> {
    let missing = "Docker Agent must be told which agent it runs: write `integration_args: [./agent.yaml]`";
    match (own, extra) {
        ([], [first, ..]) if !first.is_empty() && !first.starts_with('-') => Ok(extra),
        ([], _) => Err(format!("{missing}, or begin SPECKIT_INTEGRATION_DOCKER_AGENT_EXTRA_ARGS with it")),
        ([only], _) if !only.trim().is_empty() && !only.starts_with('-') => Ok(own),
        ([_], _) => Err(missing.to_owned()),
        (_, _) => Err(format!("{missing}; it is the only one that there can be")),
    }
}

fn flag(name: &str, value: &str) -> Result<&'static str, String> {
    let known = SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag);
    let Some(flag) = known else {
        let hint =
            if name == "model" { ": name the model with `model`" } else { ": there is `agent` and `safety`" };
        return Err(format!("Docker Agent has no setting `{name}`{hint}"));
    };
    if value.trim().is_empty() {
        return Err(format!("the setting `{name}` of Docker Agent is empty: say something or leave it out"));
    }
    if name == "safety" && !SAFETY.contains(&value) {
        return Err(format!("the setting `safety` of Docker Agent is one of {}", SAFETY.join(", ")));
    }
    Ok(flag)
}
