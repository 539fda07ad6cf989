//! A project in a folder of its own: its files before a case begins, and the execution of a phase there.

use super::super::Program;
use super::super::program::json;
use super::compare::Seen;
use rustix::pty::OpenptFlags;
use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct Project<'a> {
    program: &'a Program,
    folder: PathBuf,
    env: Vec<(String, String)>,
    /// The run that a phase resumes.
    run: Option<String>,
}

impl<'a> Project<'a> {
    pub fn new(program: &'a Program, case: &Path, id: &str, about: &Json) -> Self {
        let folder = program.folder(id);
        copy(case, &folder);
        let env = about["env"].as_object().into_iter().flatten();
        let mut env: Vec<(String, String)> = env
            .map(|(name, value)| (name.clone(), words(value).replace("<PROJECT>", &folder.to_string_lossy())))
            .collect();
        let prefix =
            about["path_prefix"].as_str().map(|prefix| format!("{}:", folder.join(prefix).display()));
        // Agents that are installed on this machine have no effect.
        env.push(("PATH".to_owned(), format!("{}/usr/bin:/bin", prefix.unwrap_or_default())));
        let project = Self { program, folder, env, run: None };
        let setup = about["setup"].as_array().into_iter().flatten();
        setup.for_each(|command| project.set_up(&strings(command)));
        project
    }

    /// What Spec Kit does to a project before a workflow is run in it.
    fn set_up(&self, command: &[&str]) {
        match command {
            ["mkdir", folder] => std::fs::create_dir_all(self.folder.join(folder)).expect("a folder"),
            ["specify", "workflow", "add", source, "--dev"] => self.install(source),
            ["specify", "workflow", "disable", id] => self.register(id, false),
            ["specify", "workflow", "overlay", "add", file] => self.overlay(file, None),
            ["specify", "workflow", "overlay", "add", file, "--priority", priority] => {
                self.overlay(file, Some(priority));
            }
            other => panic!("unknown setup {other:?}"),
        }
    }

    fn install(&self, source: &str) {
        let source = self.folder.join(source);
        let workflow = yaml(&source.join("workflow.yml"));
        let id = words(&workflow["workflow"]["id"]);
        copy(&source, &self.folder.join(".specify/workflows").join(id));
        self.register(id, true);
    }

    fn register(&self, id: &str, enabled: bool) {
        let file = self.folder.join(".specify/workflows/workflow-registry.json");
        let mut registry: Json = std::fs::read(&file).map_or_else(
            |_| json!({"schema_version": "1.0", "workflows": {}}),
            |text| serde_json::from_slice(&text).expect("our own file"),
        );
        registry["workflows"][id] =
            json!({"name": id, "version": "1.0.0", "source": "dev", "enabled": enabled});
        std::fs::write(file, registry.to_string()).expect("a file");
    }

    fn overlay(&self, file: &str, priority: Option<&str>) {
        let mut overlay = yaml(&self.folder.join(file));
        if let Some(priority) = priority {
            overlay["priority"] = priority.parse::<i64>().expect("a number").into();
        }
        let folder = self.folder.join(".specify/workflows/overlays").join(words(&overlay["extends"]));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join(format!("{}.yml", words(&overlay["id"])));
        std::fs::write(file, overlay.to_string()).expect("a file");
    }

    /// Does what a phase says, and gives what is to be seen then.
    pub fn live(&mut self, phase: &Json) -> Result<Seen, String> {
        for file in phase["touch_before"].as_array().into_iter().flatten() {
            std::fs::write(self.folder.join(words(file)), "").expect("a file");
        }
        for (file, text) in phase["write_before"].as_object().into_iter().flatten() {
            std::fs::write(self.folder.join(file), words(text)).expect("a file");
        }
        let output = self.start(phase);
        let payload = if output.stdout.is_empty() { Json::Null } else { json(&output)? };
        if let Some(run) = payload["run_id"].as_str() {
            self.run = Some(run.to_owned());
        }
        let kept = match &self.run {
            Some(run) => Some(json(&self.ask(&["show", run, "--json"]))?),
            None => None,
        };
        // A run that is shown is there; otherwise none may be.
        let runs = if kept.is_some() { None } else { Some(json(&self.ask(&["runs", "--json"]))?) };
        let problems = match phase.get("validation_problems") {
            Some(_) => json(&self.ask(&["validate", source(phase), "--json"]))?["diagnostics"].take(),
            None => Json::Null,
        };
        Ok(Seen {
            status: output.status.code(),
            payload,
            kept,
            runs,
            problems,
            folder: self.folder.display().to_string(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn start(&self, phase: &Json) -> Output {
        let run = self.run.as_deref().unwrap_or("none");
        let what = match words(&phase["command"]) {
            "run" => ["run", source(phase)],
            "resume" => ["resume", run],
            other => panic!("unknown command {other}"),
        };
        let args = what.into_iter().chain(["--compat", "speckit", "--json"]).chain(strings(&phase["args"]));
        let mut command = self.command();
        command.args(args);
        match phase["tty_answers"].as_array() {
            Some(answers) => at_terminal(&command, answers),
            None => command.output().expect("the program starts"),
        }
    }

    fn command(&self) -> Command {
        let mut command = self.program.command(&self.folder);
        let own = std::env::vars().map(|(name, _)| name);
        own.filter(|name| name.starts_with("SPECKIT") || name.starts_with("SPECIFY")).for_each(|name| {
            command.env_remove(name);
        });
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn ask(&self, args: &[&str]) -> Output {
        self.command().args(args).output().expect("the program starts")
    }
}

/// Only its input is a terminal, on which the answers are typed; a control key ends no line.
fn at_terminal(command: &Command, answers: &[Json]) -> Output {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let keys = rustix::pty::openpt(flags).expect("a system with terminals");
    rustix::pty::grantpt(&keys).and_then(|()| rustix::pty::unlockpt(&keys)).expect("our own terminal");
    let other = rustix::pty::ioctl_tiocgptpeer(&keys, flags).expect("its other end");
    // A session of its own, so that Ctrl-C reaches it.
    let mut inside = Command::new("setsid");
    inside.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
    inside.current_dir(command.get_current_dir().expect("a folder"));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    inside.stdin(Stdio::from(other)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = inside.spawn().expect("setsid is part of Linux");
    let (mut keys, mut asks) = (File::from(keys), child.stderr.take().expect("a pipe"));
    let mut stderr = Vec::new();
    for answer in answers {
        if !is_asked(&mut asks, &mut stderr) {
            break;
        }
        let end = if words(answer).starts_with(char::is_control) { "" } else { "\n" };
        write!(keys, "{}{end}", words(answer)).expect("the program has the terminal");
    }
    asks.read_to_end(&mut stderr).expect("a pipe");
    let output = child.wait_with_output().expect("the program ends");
    Output { stderr, ..output }
}

/// Reads until the program asks. False if it ends before.
fn is_asked(asks: &mut impl Read, stderr: &mut Vec<u8>) -> bool {
    let mut byte = [0];
    while asks.read(&mut byte).is_ok_and(|count| count > 0) {
        stderr.push(byte[0]);
        if stderr.ends_with(b" > ") {
            return true;
        }
    }
    false
}

fn source(phase: &Json) -> &str {
    phase["source"].as_str().unwrap_or("workflow.yml")
}

fn words(json: &Json) -> &str {
    json.as_str().expect("text")
}

fn strings(json: &Json) -> Vec<&str> {
    json.as_array().expect("a list").iter().map(words).collect()
}

fn yaml(file: &Path) -> Json {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder of the case") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name");
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false if name == "expected.json" => {}
            false => drop(std::fs::copy(&path, to.join(name)).expect("a copy")),
        }
    }
}
