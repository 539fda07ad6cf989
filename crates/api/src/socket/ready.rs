//! What a plan needs from this machine: secrets, programs, folders and files. Windlass looks before a run starts, because a step
//! may come hours later.
//!
//! Only what is written literally is checked. A missing secret of a step that certainly runs is an error. Everything else is a
//! warning, because an earlier step may still produce it or the step may be skipped.

use super::Surroundings;
use super::executors::check_executors;
use crate::code::Code;
use crate::refusal::Refusal;
use crate::types::{Diagnostic, Severity};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Namespace, Node, Piece, Read, Template};
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, Bound, HttpAuth, HttpBody, Kind};
use windlass_ir::{Plan, Sources, Span, Value};
use windlass_runtime::{Config, Environment, agent_program};

/// A plan that is about to run.
pub struct Needs<'a> {
    pub plan: &'a Plan,
    /// The texts that the plan was read from; empty for a stored plan.
    pub sources: &'a Sources,
    /// The workflow file.
    pub file: Option<&'a Path>,
    pub from: &'a Surroundings,
    /// Whether a step may run at all.
    pub runs: &'a dyn Fn(&PlanStep) -> bool,
    /// Whether the run goes to its end at once.
    pub to_the_end: bool,
}

/// The interpreters whose commands begin with a program.
const SHELLS: [&str; 3] = ["sh", "bash", "zsh"];

impl std::fmt::Debug for Needs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Needs").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Needs<'_> {
    /// Refuses a run that cannot succeed here, and returns warnings about what else is missing.
    pub fn check(&self) -> Result<Vec<Diagnostic>, Refusal> {
        check_executors(self.plan, self.from, self.runs)?;
        let found = self.missing();
        match found.iter().any(Diagnostic::is_error) {
            true => Err(Refusal::found(Code::NotRunnable, found)),
            false => Ok(found),
        }
    }

    /// Everything that is missing here. Mock responses need nothing.
    pub fn missing(&self) -> Vec<Diagnostic> {
        if self.from.mock.is_some() {
            return Vec::new();
        }
        let steps = || self.plan.steps.iter().filter(|step| (self.runs)(step));
        let config = self.from.config.as_deref().and_then(|file| Config::read(file).ok());
        let mut found = self.secrets(steps());
        found.extend(steps().flat_map(|step| self.programs_and_files(step, config.as_ref())));
        found
    }

    /// One finding for each secret that is not set, at the first place that reads it.
    fn secrets<'p>(&self, steps: impl Iterator<Item = &'p PlanStep>) -> Vec<Diagnostic> {
        let mut uses: BTreeMap<&str, (bool, Span, &PlanStep)> = BTreeMap::new();
        for step in steps {
            let certain = self.to_the_end && self.runs_for_sure(step);
            // The variables of the workflow are set for every command.
            let shared = self.plan.env.values().filter(|_| matches!(step.kind, Kind::Action(_)));
            for bound in shared.chain(with_secrets(step)) {
                for expr in bound.template.expressions() {
                    expr.walk(&mut |part| {
                        let Some(name) = secret(part) else { return };
                        let (known, ..) = uses.entry(name).or_insert((certain, part.span, step));
                        *known |= certain;
                    });
                }
            }
        }
        let variables = &self.from.variables;
        let is_set = |name: &str| variables.iter().any(|(known, _)| known == OsStr::new(name));
        let missing = uses.into_iter().filter(|(name, _)| !is_set(name));
        let finding = |(name, (certain, span, step)): (&str, (bool, Span, &PlanStep))| Diagnostic {
            severity: if certain { Severity::Error } else { Severity::Warning },
            reference: Some(name.to_owned()),
            help: format!("set the environment variable `{name}` where you start the run"),
            ..self.finding(step, span, &format!("the secret `{name}` is not set"))
        };
        missing.map(finding).collect()
    }

    /// Whether a step runs in every run that gets that far.
    fn runs_for_sure(&self, step: &PlanStep) -> bool {
        let mut inner = step;
        loop {
            if inner.condition.is_some() || inner.takes_over {
                return false;
            }
            let Some(parent) = inner.parent.map(|parent| self.plan.step(parent)) else { return true };
            let is_body = |body: &[windlass_ir::expr::StepId]| {
                body.iter().any(|step| std::ptr::eq(self.plan.step(*step), inner))
            };
            match &parent.kind {
                Kind::Block(_) | Kind::Parallel(_) => {}
                Kind::Guard(guard) if is_body(&guard.body) => {}
                _ => return false,
            }
            inner = parent;
        }
    }

    fn programs_and_files(&self, step: &PlanStep, config: Option<&Config>) -> Vec<Diagnostic> {
        let directory = &self.from.directory;
        match &step.kind {
            Kind::Action(Action::Shell(shell)) => {
                let folder = shell.cwd.as_ref().map_or(Some(directory.clone()), |cwd| {
                    literal(&cwd.template).map(|cwd| directory.join(&*cwd))
                });
                if let (Some(folder), Some(cwd)) = (&folder, &shell.cwd)
                    && !folder.is_dir()
                {
                    let name = literal(&cwd.template).unwrap_or_default();
                    let message = format!("the folder `{name}` does not exist");
                    return vec![self.warning(step, cwd.span, &message, "create it before this step runs")];
                }
                let folder = folder.as_deref();
                let interpreter = shell.shell.0.first().map_or("sh", |program| &**program);
                let place = folder.unwrap_or(directory);
                match self.unless_found(step, shell.run.span, interpreter, place) {
                    Some(missing) => vec![missing],
                    // Only a shell starts the first word of its command.
                    None if SHELLS.contains(&interpreter) => {
                        self.program_of(step, &shell.run, folder).into_iter().collect()
                    }
                    None => Vec::new(),
                }
            }
            Kind::Action(Action::Task(task)) => {
                let Some(command) = config.and_then(|config| config.tasks.get(&task.task)) else {
                    return Vec::new();
                };
                let folder = config.map_or(directory.as_path(), Config::folder);
                self.unless_found(step, Span::default(), &command.program, folder).into_iter().collect()
            }
            Kind::Action(Action::Assistant(assistant)) => {
                let bound = assistant.integration.as_ref();
                let Some(key) = bound.and_then(|bound| literal(&bound.template)) else { return Vec::new() };
                let span = bound.map(|bound| bound.span).unwrap_or_default();
                let variables = self.from.variables.iter().cloned().collect();
                let environment = Environment { variables, directory: directory.clone() };
                let program = agent_program(&key, &environment);
                program
                    .and_then(|program| self.unless_found(step, span, &program, directory))
                    .into_iter()
                    .collect()
            }
            Kind::Action(Action::Call(call)) => {
                let around = self.file.and_then(Path::parent);
                let (Some(name), Some(around)) = (literal(&call.workflow.template), around) else {
                    return Vec::new();
                };
                let is_path = [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
                match is_path && !around.join(&*name).exists() {
                    true => {
                        let message = format!("there is no workflow file `{name}`");
                        let help = "paths are relative to the calling file";
                        vec![self.warning(step, call.workflow.span, &message, help)]
                    }
                    false => Vec::new(),
                }
            }
            Kind::Gate(gate) => {
                let Some(shown) = &gate.show_file else { return Vec::new() };
                match literal(&shown.template).filter(|file| !directory.join(&**file).exists()) {
                    Some(file) => {
                        let message = format!("the file `{file}`, which the gate shows, does not exist");
                        vec![self.warning(step, shown.span, &message, "an earlier step must write it")]
                    }
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// The program that a command starts first, if it is missing.
    fn program_of(&self, step: &PlanStep, run: &Bound, folder: Option<&Path>) -> Option<Diagnostic> {
        let sets_path = |name: &Arc<str>| **name == *"PATH";
        if step.env.keys().chain(self.plan.env.keys()).any(sets_path) {
            return None;
        }
        let text = match &run.template {
            Template::Constant(Value::Text(text)) => text.to_string(),
            // The word may continue in the expression, so it must end before it.
            Template::Text(pieces) => match pieces.first()? {
                Piece::Text(text) => format!("{text}$"),
                Piece::Expression(_) => return None,
            },
            _ => return None,
        };
        let program = first_program(&text)?;
        // A path is relative to the folder of the step, which may depend on an expression.
        let folder = if program.contains('/') { folder? } else { folder.unwrap_or(&self.from.directory) };
        self.unless_found(step, run.span, program, folder)
    }

    /// A warning if there is no such program.
    fn unless_found(&self, step: &PlanStep, span: Span, program: &str, folder: &Path) -> Option<Diagnostic> {
        if program.contains('/') {
            let message = format!("there is no program `{program}`");
            let help = "an earlier step must produce it";
            return (!is_executable(&folder.join(program))).then(|| self.warning(step, span, &message, help));
        }
        // Without a PATH the shell uses its own.
        let (_, path) = self.from.variables.iter().find(|(name, _)| name == "PATH")?;
        let mut places = std::env::split_paths(path).map(|entry| folder.join(entry).join(program));
        let message = format!("there is no program `{program}` in your PATH");
        let help = "install it, unless an earlier step does";
        (!places.any(|file| is_executable(&file))).then(|| self.warning(step, span, &message, help))
    }

    fn warning(&self, step: &PlanStep, span: Span, message: &str, help: &str) -> Diagnostic {
        let finding = self.finding(step, span, message);
        Diagnostic { severity: Severity::Warning, help: help.to_owned(), ..finding }
    }

    fn finding(&self, step: &PlanStep, span: Span, message: &str) -> Diagnostic {
        // A stored plan has no places.
        let known = self.sources.iter().count() > usize::from(span.source.0) && span != Span::default();
        let file = self.file.map(|file| file.display().to_string());
        let named = self.sources.iter().next().map(|source| source.name.to_string());
        let finding = Diagnostic::error(Code::NotRunnable, message, "", None);
        let step = Some(step.id.to_string());
        match known {
            true => Diagnostic { step, ..finding.at(span, self.sources) },
            false => Diagnostic { file: named.or(file), step, ..finding },
        }
    }
}

/// The expressions of a step that may read secrets.
fn with_secrets(step: &PlanStep) -> Vec<&Bound> {
    let own = step.env.values();
    let mut bounds: Vec<&Bound> = own.collect();
    match &step.kind {
        Kind::Action(Action::Shell(shell)) => {
            bounds.extend([Some(&shell.run), shell.stdin.as_ref()].into_iter().flatten());
        }
        Kind::Action(Action::Tool(tool)) => bounds.extend(&tool.args),
        Kind::Action(Action::Http(http)) => {
            bounds.push(&http.url);
            bounds.extend(http.headers.values().chain(http.query.values()));
            match &http.body {
                HttpBody::Empty => {}
                HttpBody::Json(body) | HttpBody::Text(body) => bounds.push(body),
                HttpBody::Form(fields) => bounds.extend(fields.values()),
            }
            match &http.auth {
                None => {}
                Some(HttpAuth::Bearer(token)) => bounds.push(token),
                Some(HttpAuth::Basic { user, password }) => bounds.extend([user, password]),
            }
        }
        _ => {}
    }
    bounds
}

/// The name of the secret that an expression reads.
fn secret(expr: &Expr) -> Option<&str> {
    let Node::Member { of, name } = &expr.node else { return None };
    matches!(of.node, Node::Read(Read::Namespace(Namespace::Secrets))).then_some(name)
}

/// The text of a template without expressions.
fn literal(template: &Template) -> Option<Arc<str>> {
    match template {
        Template::Constant(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Words that a POSIX shell, or the `sh` of common systems, understands itself.
const BUILTINS: [&str; 69] = [
    ".", ":", "[", "[[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "chdir",
    "command", "compgen", "continue", "coproc", "declare", "dirs", "do", "done", "echo", "elif", "else",
    "enable", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function",
    "getopts", "hash", "help", "history", "if", "in", "jobs", "kill", "let", "local", "printf", "pwd",
    "read", "readonly", "return", "select", "set", "shift", "shopt", "source", "test", "then", "time",
    "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until", "while",
];

/// The program that a command starts first; none if that is not certain.
fn first_program(command: &str) -> Option<&str> {
    let is_plain = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("set ");
    let line = command.lines().map(str::trim).find(is_plain)?;
    let end = line.find([' ', '\t', ';', '&', '|', '<', '>', '(', ')']).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let is_simple = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '+' | '/');
    let is_known = BUILTINS.contains(&word) || rest.trim_start().starts_with('(');
    // A file descriptor before `<` or `>` is not a program.
    let is_number = word.chars().all(|letter| letter.is_ascii_digit());
    (!word.is_empty() && word.chars().all(is_simple) && !is_known && !is_number).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_of_a_command_is_found_only_if_it_is_certain() {
        let check = |command: &str, expected: Option<&str>| {
            assert_eq!(first_program(command), expected, "{command}");
        };
        check("make build", Some("make"));
        check("# comment\n\n  set -eu\n./build.sh --fast", Some("./build.sh"));
        check("make;true", Some("make"));
        check("make", Some("make"));
        for unsure in [
            "",
            "cd build && make",
            "if true; then make; fi",
            "X=1 make",
            "$MAKE all",
            "\"my make\"",
            "build() { :; }",
            "build () { :; }",
            "(cd x; make)",
            "! make",
            "~/bin/make",
            "ma*",
            "make$",
            "{ make; }",
            "2>&1 make",
        ] {
            check(unsure, None);
        }
    }

    #[test]
    fn builtins_are_sorted_and_unique() {
        assert!(BUILTINS.is_sorted_by(|one, other| one < other));
    }
}
