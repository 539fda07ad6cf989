//! The table of integrations: the program that each one starts, how it writes a Spec Kit command, and its arguments.
//! The arguments are those of Spec Kit 1.2.3, recorded in `fixtures/spec-kit-argv.json`.

use super::{docker_agent, project, words};
use crate::context::Environment;
use std::ffi::OsStr;
use std::path::Path;

/// What an agent is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Prompt(String),
    /// The command with or without the prefix `speckit.`, and its arguments.
    Command {
        name: String,
        args: String,
    },
}

/// The inputs of the argument table.
pub struct Call<'a> {
    pub asked: &'a Asked,
    pub model: Option<&'a str>,
    /// `integration_args` and `integration_options` of the step.
    pub arguments: &'a [String],
    pub settings: &'a [(String, String)],
    /// The folder where the agent runs.
    pub root: &'a Path,
    pub environment: &'a Environment,
}

#[derive(Debug)]
pub struct Integration {
    pub key: &'static str,
    /// The program to start, unless a variable overrides it.
    program: &'static str,
    spelling: Spelling,
    /// `None` for an integration that cannot be started because it runs in an editor.
    form: Form,
}

#[derive(Debug)]
enum Form {
    None,
    Pieces(&'static [Piece]),
    /// The only one with its own arguments and settings.
    DockerAgent,
}

/// How `speckit.git.commit` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// `/speckit-git-commit`
    Skill,
    /// `$speckit-git-commit`
    Dollar,
    /// `/skill:speckit-git-commit`
    NamedSkill,
    /// `/speckit.git.commit`
    Dotted,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Word(&'static str),
    Prompt,
    /// The words of `SPECKIT_INTEGRATION_<KEY>_EXTRA_ARGS`.
    Extra,
    /// The flag and the model, if there is one.
    Model(&'static str),
    /// Part of the prompt, in a specific form.
    Part(fn(&str) -> Vec<String>),
    /// `--agent`, if the Copilot project has agents and no skills.
    Agent,
    /// `--yolo`, unless a variable forbids it.
    Yolo,
    /// `--dangerously-skip-permissions`, if a variable allows it.
    SkipPermissions,
    /// The flag and the working folder.
    Root(&'static str),
}

use Piece::{Agent, Extra, Model, Part, Prompt, Root, SkipPermissions, Word, Yolo};
use Spelling::{Dollar, Dotted, NamedSkill, Skill};

const PLAIN: &[Piece] = &[Word("-p"), Prompt, Extra, Model("--model")];
const SHORT_MODEL: &[Piece] = &[Word("-p"), Prompt, Extra, Model("-m")];
const NO_MODEL: &[Piece] = &[Word("-p"), Prompt, Extra];
const EXEC: &[Piece] = &[Word("exec"), Prompt, Extra, Model("--model")];

const fn by(key: &'static str, spelling: Spelling, pieces: &'static [Piece]) -> Integration {
    Integration { key, program: key, spelling, form: Form::Pieces(pieces) }
}

const fn in_editor(key: &'static str) -> Integration {
    Integration { key, program: key, spelling: Skill, form: Form::None }
}

pub static ALL: &[Integration] = &[
    by("agy", Skill, &[SkipPermissions, Model("--model"), Root("--add-dir"), Extra, Word("--print"), Prompt]),
    by("alquimia", Skill, PLAIN),
    by("amp", Dotted, &[Extra, Word("--execute"), Prompt]),
    by("auggie", Dotted, PLAIN),
    by(
        "bob",
        Skill,
        &[Word("run"), Word("--trust"), Word("--accept-license"), Word("-f"), Word("pretty"), Extra, Prompt],
    ),
    by("claude", Skill, PLAIN),
    in_editor("cline"),
    by("codebuddy", Dotted, PLAIN),
    by("codex", Dollar, EXEC),
    by("command-code", Dollar, PLAIN),
    by("copilot", Skill, &[Word("-p"), Prompt, Extra, Agent, Yolo, Model("--model")]),
    by(
        "cursor-agent",
        Skill,
        &[
            Word("-p"),
            Word("--trust"),
            Word("--approve-mcps"),
            Word("--force"),
            Prompt,
            Extra,
            Model("--model"),
        ],
    ),
    by("devin", Skill, PLAIN),
    Integration { key: "docker-agent", program: "docker-agent", spelling: Skill, form: Form::DockerAgent },
    by("droid", Skill, &[Word("exec"), Prompt, Model("--model"), Extra]),
    by("dsh", Skill, &[Word("--profile"), Word("headless"), Extra, Prompt]),
    in_editor("firebender"),
    by("forge", Skill, &[Extra, Word("-p"), Prompt]),
    by("gemini", Dotted, SHORT_MODEL),
    in_editor("generic"),
    by("goose", Dotted, &[Word("run"), Extra, Model("--model"), Part(recipe)]),
    by("grok", Skill, &[Word("-p"), Prompt, Word("--always-approve"), Extra, Model("--model")]),
    by("hermes", Skill, &[Word("chat"), Word("-Q"), Extra, Model("-m"), Part(skill_and_query)]),
    by("junie", Skill, PLAIN),
    in_editor("kilocode"),
    by("kimi", NamedSkill, PLAIN),
    by("kiro-cli", Dotted, PLAIN),
    in_editor("lingma"),
    by("mcode", Skill, &[Word("exec"), Prompt, Word("--permission"), Word("full"), Extra, Model("--model")]),
    by("muse", Skill, EXEC),
    in_editor("none"),
    by("omp", Dotted, &[Word("--print"), Extra, Model("--model"), Prompt]),
    by("opencode", Dotted, &[Word("run"), Extra, Part(command_flag), Model("-m"), Part(message)]),
    by("pi", Dotted, PLAIN),
    by("qodercli", Skill, PLAIN),
    by("qwen", Dotted, PLAIN),
    Integration {
        key: "rovodev",
        program: "acli",
        spelling: Skill,
        form: Form::Pieces(&[Word("rovodev"), Word("run"), Prompt, Extra]),
    },
    in_editor("shai"),
    by("tabnine", Dotted, SHORT_MODEL),
    in_editor("trae"),
    by("vibe", Skill, NO_MODEL),
    by("zcode", Dollar, NO_MODEL),
    in_editor("zed"),
];

pub fn find(key: &str) -> Option<&'static Integration> {
    ALL.iter().find(|integration| integration.key == key)
}

impl Integration {
    /// Whether it has a program at all.
    pub fn can_be_started(&self) -> bool {
        match self.form {
            Form::None => false,
            Form::Pieces(_) | Form::DockerAgent => true,
        }
    }

    pub fn takes_arguments(&self) -> bool {
        match self.form {
            Form::DockerAgent => true,
            Form::None | Form::Pieces(_) => false,
        }
    }

    /// The name of a variable for this integration.
    pub fn variable(&self, what: &str) -> String {
        format!("SPECKIT_INTEGRATION_{}_{what}", self.key.to_uppercase().replace('-', "_"))
    }

    /// The program to start, by name or path.
    pub fn program(&self, environment: &Environment) -> String {
        let own = said(environment, &self.variable("EXECUTABLE"));
        own.unwrap_or_else(|| self.program.to_owned())
    }

    /// All arguments, or why there are none.
    pub fn arguments(&self, call: &Call<'_>) -> Result<Vec<String>, String> {
        let prompt = self.prompt(call);
        let pieces = match self.form {
            Form::None => return Err(format!("the integration `{}` cannot be started", self.key)),
            // The variable replaces what the step leaves out, and is ignored otherwise.
            Form::DockerAgent if call.arguments.is_empty() => {
                return docker_agent::arguments(call, &prompt, &self.extra(call.environment)?);
            }
            Form::DockerAgent => return docker_agent::arguments(call, &prompt, &[]),
            Form::Pieces(pieces) => pieces,
        };
        let extra = self.extra(call.environment)?;
        let mut argv = Vec::new();
        for piece in pieces {
            match piece {
                Word(word) => argv.push((*word).to_owned()),
                Prompt => argv.push(prompt.clone()),
                Extra => argv.extend(extra.iter().cloned()),
                Model(flag) => argv.extend(call.model.into_iter().flat_map(|model| flagged(flag, model))),
                Part(part) => argv.extend(part(&prompt)),
                Agent => argv.extend(self.agent(call).into_iter().flat_map(|name| flagged("--agent", &name))),
                Yolo if allows_all(call.environment) => argv.push("--yolo".to_owned()),
                SkipPermissions if skips_permissions(call.environment) => {
                    argv.push("--dangerously-skip-permissions".to_owned());
                }
                Yolo | SkipPermissions => {}
                Root(flag) => argv.extend(flagged(flag, &call.root.to_string_lossy())),
            }
        }
        Ok(argv)
    }

    fn extra(&self, environment: &Environment) -> Result<Vec<String>, String> {
        let name = self.variable("EXTRA_ARGS");
        let Some(text) = said(environment, &name) else { return Ok(Vec::new()) };
        words::split(&text).map_err(|problem| {
            format!(
                "`{name}` cannot be split into words: {problem}; group words with quotes: {name}='--flag \
                \"two words\"'"
            )
        })
    }

    fn prompt(&self, call: &Call<'_>) -> String {
        let (name, args) = match call.asked {
            Asked::Prompt(prompt) => return prompt.clone(),
            Asked::Command { args, .. } if self.agent(call).is_some() => return args.clone(),
            Asked::Command { name, args } => (stem(name), args),
        };
        let dashed = name.replace('.', "-");
        let spelled = match self.spelling {
            Skill if self.key == "bob" && project::has_commands_of_bob(call.root) => {
                format!("/speckit.{name}")
            }
            Skill => format!("/speckit-{dashed}"),
            Dollar => format!("$speckit-{dashed}"),
            NamedSkill => format!("/skill:speckit-{dashed}"),
            Dotted => format!("/speckit.{name}"),
        };
        if args.is_empty() { spelled } else { format!("{spelled} {args}") }
    }

    /// The agent for a command in a Copilot project that has agents and no skills.
    fn agent(&self, call: &Call<'_>) -> Option<String> {
        let Asked::Command { name, .. } = call.asked else { return None };
        let has_agents = self.key == "copilot" && project::has_agents_of_copilot(call.root);
        has_agents.then(|| format!("speckit.{}", stem(name)))
    }
}

fn stem(name: &str) -> &str {
    name.strip_prefix("speckit.").unwrap_or(name)
}

fn flagged(flag: &str, value: &str) -> [String; 2] {
    [flag.to_owned(), value.to_owned()]
}

/// A prompt that starts with a command: its name, and the rest.
fn slash(prompt: &str) -> Option<(&str, &str)> {
    let rest = prompt.strip_prefix('/')?;
    let (command, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    (!command.is_empty()).then_some((command, rest))
}

/// OpenCode takes a command separately from its arguments.
fn command_flag(prompt: &str) -> Vec<String> {
    slash(prompt).map(|(command, _)| flagged("--command", command).into()).unwrap_or_default()
}

fn message(prompt: &str) -> Vec<String> {
    let message = slash(prompt).map_or(prompt, |(_, rest)| rest);
    if message.is_empty() { Vec::new() } else { vec![message.to_owned()] }
}

/// Hermes takes the name of a skill separately from the query.
fn skill_and_query(prompt: &str) -> Vec<String> {
    let Some((skill, query)) = slash(prompt) else { return flagged("-q", prompt).into() };
    let query = (!query.is_empty()).then(|| flagged("-q", query));
    flagged("-s", skill).into_iter().chain(query.into_iter().flatten()).collect()
}

/// Goose has a recipe for each Spec Kit command; everything else is text.
fn recipe(prompt: &str) -> Vec<String> {
    let command = slash(prompt).and_then(|(command, rest)| Some((command.strip_prefix("speckit.")?, rest)));
    let Some((stem, rest)) = command.filter(|(stem, _)| !stem.is_empty()) else {
        return flagged("-t", prompt).into();
    };
    let file = format!(".goose/recipes/speckit.{stem}.yaml");
    let params = (!rest.trim().is_empty()).then(|| flagged("--params", &format!("args={rest}")));
    flagged("--recipe", &file).into_iter().chain(params.into_iter().flatten()).collect()
}

/// Copilot may do everything unless a variable is `0`; the second name is the older one.
fn allows_all(environment: &Environment) -> bool {
    let names = ["SPECKIT_COPILOT_ALLOW_ALL_TOOLS", "SPECKIT_ALLOW_ALL_TOOLS"];
    let set = names.iter().find_map(|name| environment.variables.get(OsStr::new(name)));
    set.is_none_or(|value| value != "0")
}

/// Agy may not, unless a variable allows it.
fn skips_permissions(environment: &Environment) -> bool {
    let names = ["SPECKIT_INTEGRATION_AGY_ALLOW_ALL_TOOLS", "SPECKIT_AGY_ALLOW_ALL_TOOLS"];
    let set = names.iter().find_map(|name| said(environment, name));
    set.is_some_and(|value| ["1", "true", "yes", "on"].contains(&&*value.to_lowercase()))
}

/// The value of a variable, if it is not empty.
pub fn said(environment: &Environment, name: &str) -> Option<String> {
    let value = environment.variables.get(OsStr::new(name))?.to_string_lossy();
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;
    use std::path::PathBuf;

    /// A temporary project with these files.
    fn project(test: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("windlass-{test}-{}", std::process::id()));
        for (name, text) in files {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a new folder");
            std::fs::write(file, text).expect("a new file");
        }
        root
    }

    fn texts(json: &Json) -> Vec<String> {
        json.as_array().into_iter().flatten().map(|text| text.as_str().expect("text").to_owned()).collect()
    }

    #[test]
    fn arguments_match_spec_kit() {
        let rows: Vec<Json> =
            serde_json::from_str(include_str!("../../fixtures/spec-kit-argv.json")).expect("JSON");
        let mut seen = std::collections::BTreeSet::new();
        for row in &rows {
            let key = row["key"].as_str().expect("a key");
            let integration = find(key).unwrap_or_else(|| panic!("{key}"));
            let variables = row["environment"].as_object().into_iter().flatten();
            let variables =
                variables.map(|(name, value)| (name.into(), value.as_str().expect("text").into()));
            let environment = Environment { variables: variables.collect(), directory: PathBuf::new() };
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            let asked = match text("prompt") {
                Some(prompt) => Asked::Prompt(prompt),
                None => {
                    let (name, args) =
                        (text("command").expect("a command"), text("args").unwrap_or_default());
                    Asked::Command { name, args }
                }
            };
            let settings = row["settings"].as_object().into_iter().flatten();
            let settings: Vec<(String, String)> =
                settings.map(|(name, value)| (name.clone(), value.as_str().expect("text").into())).collect();
            let call = Call {
                asked: &asked,
                model: row["model"].as_str(),
                arguments: &texts(&row["arguments"]),
                settings: &settings,
                root: Path::new("/project"),
                environment: &environment,
            };
            let mut argv = vec![integration.program(&environment)];
            argv.extend(integration.arguments(&call).unwrap_or_else(|problem| panic!("{row}: {problem}")));
            assert_eq!(argv, texts(&row["argv"]), "{row}");
            seen.insert(key);
        }
        let started = ALL.iter().filter(|one| one.can_be_started()).map(|one| one.key);
        assert_eq!(seen, started.collect(), "every row of the table was tried");
    }

    fn commit(key: &str, root: &Path) -> Vec<String> {
        let asked = Asked::Command { name: "speckit.git.commit".into(), args: "now".into() };
        let (arguments, settings, environment) = (&[][..], &[][..], &Environment::default());
        let call = Call { asked: &asked, model: None, arguments, settings, root, environment };
        find(key).expect("known").arguments(&call).expect("it can be said")
    }

    #[test]
    fn older_project_layouts_are_supported() {
        let check = |test: &str, key: &str, files: &[(&str, &str)], expected: &[&str]| {
            let root = project(test, files);
            assert_eq!(commit(key, &root), expected, "{test}");
            std::fs::remove_dir_all(root).expect("a folder of ours");
        };
        let skills: &[&str] = &["-p", "/speckit-git-commit now", "--yolo"];
        let agents: &[&str] = &["-p", "now", "--agent", "speckit.git.commit", "--yolo"];
        let agent = (".github/agents/speckit.plan.agent.md", "");
        let skill = (".github/skills/speckit-plan/SKILL.md", "");
        check("copilot-none", "copilot", &[("other", "")], skills);
        check("copilot-agents", "copilot", &[agent], agents);
        check("copilot-prompts", "copilot", &[(".github/prompts/speckit.plan.prompt.md", "")], agents);
        check("copilot-both", "copilot", &[agent, skill], skills);
        let manifest = ".specify/integrations/copilot.manifest.json";
        let listed = r#"{"files": {".github/agents/speckit.plan.agent.md": "0"}}"#;
        check("copilot-listed", "copilot", &[(manifest, listed), skill], agents);
        check("copilot-broken", "copilot", &[(manifest, "{"), agent], agents);
        let bob = |said: &'static str| ["run", "--trust", "--accept-license", "-f", "pretty", said];
        check(
            "bob-commands",
            "bob",
            &[(".bob/commands/speckit.plan.md", "")],
            &bob("/speckit.git.commit now"),
        );
        check(
            "bob-skills",
            "bob",
            &[(".bob/skills/speckit-plan/SKILL.md", "")],
            &bob("/speckit-git-commit now"),
        );
    }

    #[test]
    fn docker_agent_needs_an_agent_and_checks_its_settings() {
        let asked = Asked::Prompt("P".into());
        let check = |arguments: &[&str], settings: &[(&str, &str)], extra: &str, expected: &str| {
            let variables = [("SPECKIT_INTEGRATION_DOCKER_AGENT_EXTRA_ARGS".into(), extra.into())];
            let environment = Environment { variables: variables.into(), directory: PathBuf::new() };
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            let settings: Vec<_> =
                settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let call = Call {
                asked: &asked,
                model: None,
                arguments: &arguments,
                settings: &settings,
                root: Path::new("/"),
                environment: &environment,
            };
            let problem = find("docker-agent").expect("known").arguments(&call).expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        };
        check(&[], &[], "", "integration_args: [./agent.yaml]");
        check(&[], &[], "--verbose", "start SPECKIT_INTEGRATION_DOCKER_AGENT_EXTRA_ARGS with it");
        check(&[], &[], "'a", "a quote is not closed");
        check(&["--x"], &[], "", "integration_args: [./agent.yaml]");
        check(&["a", "b"], &[], "", "only one is allowed");
        check(&["a"], &[("model", "m")], "", "set the model with `model`");
        check(&["a"], &[("colour", "m")], "", "use `agent` or `safety`");
        check(&["a"], &[("safety", "none")], "", "one of autonomous, balanced");
        check(&["a"], &[("agent", " ")], "", "is empty");
    }
}
