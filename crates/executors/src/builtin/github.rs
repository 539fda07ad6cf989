//! `github_add_label`: adds one label to an issue or a pull request, with two requests of the `gh` program. An
//! existing label is not added again.

use super::{Builtins, broken};
use crate::context::{Context, Output};
use crate::process::{Ended, located, not_installed, stopped};
use std::path::Path;
use std::sync::Arc;
use windlass_engine::{Failure, Job, Outcome, class};
use windlass_ir::Value;
use windlass_ir::value::Map;

const LABEL_CHARS_MAX: usize = 50;

/// The target and the label.
struct Wanted {
    repository: Arc<str>,
    target: Target,
    number: i64,
    label: Arc<str>,
}

#[derive(Clone, Copy)]
enum Target {
    Issue,
    PullRequest,
}

impl Target {
    fn word(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::PullRequest => "pull_request",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Issue => "issues",
            Self::PullRequest => "pulls",
        }
    }
}

impl Builtins {
    pub(super) async fn add_label(
        &self,
        args: &Value,
        job: &Job,
        context: &Context,
    ) -> Result<Outcome, Failure> {
        let wanted = Wanted::read(args)?;
        let gh = located("gh", &context.environment).ok_or_else(|| {
            not_installed(
                "gh",
                "install the GitHub CLI (https://cli.github.com) and log in with `gh auth login`",
            )
        })?;
        let Wanted { repository, target, number, label } = &wanted;
        let repository = format!("https://api.github.com/repos/{repository}");
        // The content of an issue and the account of `gh` stay private.
        let context = &Context { output: Output::nowhere(), ..context.clone() };
        let about = format!("{repository}/{}/{number}", target.path());
        let Some(found) = self.request(&gh, "GET", &about, None, (job, context)).await? else {
            return Ok(stopped(context, Map::new));
        };
        let is_it = match (target, found.get("pull_request")) {
            (Target::Issue, Some(_)) => false,
            (Target::Issue | Target::PullRequest, _) => found.get("number") == Some(&Value::Int(*number)),
        };
        if !is_it {
            let message = format!("{} has no {} with the number {number}", wanted.repository, target.word());
            return Err(broken("number", message));
        }
        let has =
            |labels: Option<&Value>| Ok::<_, Failure>(names(labels, &about)?.any(|name| same(name, label)));
        if has(found.get("labels"))? {
            return Ok(wanted.done(false));
        }
        let labels = format!("{repository}/issues/{number}/labels");
        let body = Value::map([("labels", Value::list([Value::Text(label.clone())]))]).to_json_text();
        let Some(after) = self.request(&gh, "POST", &labels, body, (job, context)).await? else {
            return Ok(stopped(context, Map::new));
        };
        if !has(Some(&after))? {
            let message = format!("GitHub did not add the label `{label}` to number {number}");
            return Err(Failure::new(class::ERROR, message));
        }
        Ok(wanted.done(true))
    }

    /// The response; `None` if the step was stopped.
    async fn request(
        &self,
        gh: &Path,
        method: &str,
        address: &str,
        body: Option<String>,
        around: (&Job, &Context),
    ) -> Result<Option<Value>, Failure> {
        let mut arguments = vec!["api", "--method", method, address];
        if body.is_some() {
            arguments.extend(["--header", "Content-Type: application/json", "--input", "-"]);
        }
        let exited = match self.program(gh, &arguments, body.map(Into::into), around).await? {
            Ended::Stopped(_) => return Ok(None),
            Ended::Exited(exited) => exited,
        };
        if !exited.status.success() {
            let message = format!(
                "gh cannot request {address}: {}; try `gh api {address}`, and check your account with `gh auth \
                    status`",
                exited.shown()
            );
            return Err(Failure::new(class::ERROR, message));
        }
        let unreadable =
            |_| Failure::new(class::ERROR, format!("the response of gh for {address} is not valid JSON"));
        exited.printed.data().map(Some).map_err(unreadable)
    }
}

fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn names<'a>(labels: Option<&'a Value>, address: &str) -> Result<impl Iterator<Item = &'a str>, Failure> {
    let named = |label: &'a Value| label.get("name").and_then(Value::as_str);
    match labels {
        Some(Value::List(labels)) if labels.iter().all(|label| named(label).is_some()) => {
            Ok(labels.iter().filter_map(named))
        }
        Some(_) | None => {
            Err(Failure::new(class::ERROR, format!("the response of gh for {address} has no list of labels")))
        }
    }
}

impl Wanted {
    /// The values of expressions follow the same rules as constants in the file.
    fn read(args: &Value) -> Result<Self, Failure> {
        let text = |name| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let target = match text("target") {
            "issue" => Target::Issue,
            "pull_request" => Target::PullRequest,
            _ => return Err(broken("target", "`target` must be issue or pull_request".to_owned())),
        };
        let (repository, label) = (text("repository"), text("label"));
        if !is_repository(repository) {
            return Err(broken("repository", "`repository` must be OWNER/NAME".to_owned()));
        }
        let is_short = label.chars().count() <= LABEL_CHARS_MAX && !label.chars().any(char::is_control);
        if label.trim().is_empty() || !is_short {
            return Err(broken("label", "`label` must be a string of at most 50 characters".to_owned()));
        }
        let number = args.get("number").and_then(number);
        let number = number
            .ok_or_else(|| broken("number", "`number` must be a whole number above zero".to_owned()))?;
        Ok(Self { repository: repository.into(), target, number, label: label.into() })
    }

    fn done(&self, added: bool) -> Outcome {
        Outcome::Done(Value::map([
            ("repository", Value::Text(self.repository.clone())),
            ("target", Value::text(self.target.word())),
            ("number", Value::Int(self.number)),
            ("label", Value::Text(self.label.clone())),
            ("added", Value::Bool(added)),
        ]))
    }
}

fn is_repository(text: &str) -> bool {
    let is_part = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(allowed)
    };
    text.split_once('/').is_some_and(|(owner, name)| is_part(owner) && is_part(name))
}

fn number(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Int(number) => Some(*number),
        Value::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0') => {
            text.parse().ok()
        }
        Value::Text(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Sealed(_)
        | Value::List(_)
        | Value::Map(_) => None,
    };
    number.filter(|number| *number > 0)
}
