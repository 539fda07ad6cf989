//! Steps about the project itself: setting one up, labels on GitHub, and slots that overlays fill.

use super::assistant::inherited;
use super::bind::Binder;
use super::field::{OPENS, as_text, bad, evaluated, given, needed, nothing, present, text, what};
use super::step::{Around, Work};
use crate::table::Table;
use crate::text::Node;
use indexmap::IndexMap;
use windlass_ir::expr::Template;
use windlass_ir::policy::Bindings;
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{Action, Bound, Builtin, BuiltinKind, Kind, Step};
use windlass_ir::{Code, Duration, Value};

const SCRIPTS: [&str; 3] = ["sh", "ps", "py"];
const GITHUB_TIMEOUT: Duration = Duration::from_secs(60);
const GITHUB_KEYS: [&str; 8] =
    ["id", "type", "continue_on_error", "operation", "target", "repository", "number", "label"];
const LABEL_CHARS_MAX: usize = 50;

pub fn init(table: &Table<'_>, around: &Around<'_>) -> Builtin {
    let mut args: Bindings = IndexMap::new();
    for key in ["project", "here", "integration_options", "script", "force", "ignore_agent_tools", "preset"] {
        let Some(node) = given(table, key) else { continue };
        if key == "script" {
            check_script(table, node);
        }
        args.insert(key.into(), evaluated(table, key, node, Binder::default()));
    }
    let integration = inherited(table, "integration", around.document.defaults.integration(), around);
    args.extend(integration.map(|integration| ("integration".into(), integration)));
    // No one is present to install a missing tool, so there is no check unless the file asks for it.
    let unattended = || constant(table, "ignore_agent_tools", Value::Bool(true));
    args.entry("ignore_agent_tools".into()).or_insert_with(unattended);
    Builtin { what: BuiltinKind::InitProject, args }
}

fn constant(table: &Table<'_>, key: &str, value: Value) -> Bound {
    Bound { template: Template::Constant(value), ..nothing(table, key) }
}

fn check_script(table: &Table<'_>, node: &Node) {
    let fits = as_text(node).is_some_and(|script| script.contains(OPENS) || SCRIPTS.contains(&&**script));
    if !fits {
        bad(table, "script", node, "sh, ps or py");
    }
}

pub fn github(table: &Table<'_>) -> Work {
    let mut args: Bindings = IndexMap::new();
    one_of(table, "operation", &["add-label"]);
    args.extend(one_of(table, "target", &["issue", "pull_request"]).map(|target| ("target".into(), target)));
    let repository = needed(table, "repository", "name the repository: `repository: owner/name`");
    args.extend(repository.and_then(|node| checked(table, "repository", node, "OWNER/NAME", is_repository)));
    let number = needed(table, "number", "give the number of the issue or pull request: `number: 7`");
    args.extend(
        number.and_then(|node| checked(table, "number", node, "a whole number above zero", is_number)),
    );
    let label = needed(table, "label", "give the label: `label: ready`");
    let wanted = "text of at most 50 characters";
    args.extend(label.and_then(|node| checked(table, "label", node, wanted, is_label)));
    let builtin = Builtin { what: BuiltinKind::GithubAddLabel, args };
    (Kind::Action(Action::Builtin(builtin)), Some(GITHUB_TIMEOUT))
}

fn one_of(table: &Table<'_>, key: &'static str, words: &[&str]) -> Option<Bound> {
    let node = needed(table, key, &format!("write `{key}: {}`", words[0]))?;
    let word = as_text(node).map_or("", |word| word);
    if !words.contains(&word) {
        let message =
            format!("invalid value for `{key}`: expected {}, not {}", words.join(" or "), what(table, node));
        let finding = table.error(Code::BadField, key, node.span, message).reference(word);
        table.report(
            finding
                .suggest(nearest(word, words.iter().copied()))
                .help(format!("write {}", words.join(" or "))),
        );
        return None;
    }
    Some(evaluated(table, key, node, Binder::default()))
}

type Argument = (std::sync::Arc<str>, Bound);

/// An expression can only be checked once it has a value.
fn checked(
    table: &Table<'_>,
    key: &'static str,
    node: &Node,
    wanted: &str,
    fits: fn(&Value) -> bool,
) -> Option<Argument> {
    let is_expression = as_text(node).is_some_and(|text| text.contains(OPENS));
    if !is_expression && !fits(&node.to_value()) {
        bad(table, key, node, wanted);
        return None;
    }
    Some((key.into(), evaluated(table, key, node, Binder::default())))
}

fn is_repository(value: &Value) -> bool {
    let is_part = |part: &str| {
        let relative = part.is_empty() || part == "." || part == "..";
        !relative && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
    };
    let parts = value.as_str().and_then(|text| text.split_once('/'));
    parts.is_some_and(|(owner, name)| is_part(owner) && is_part(name))
}

fn is_number(value: &Value) -> bool {
    match value {
        Value::Int(int) => *int > 0,
        Value::Text(text) => {
            !text.starts_with('0') && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
        }
        Value::Null
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Sealed(_)
        | Value::List(_)
        | Value::Map(_) => false,
    }
}

fn is_label(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    !text.trim().is_empty() && text.chars().count() <= LABEL_CHARS_MAX && !text.chars().any(char::is_control)
}

/// The only type for which an unknown key is an error.
pub fn refuse_other_keys(table: &Table<'_>) {
    for entry in table.map.entries.iter().filter(|entry| !GITHUB_KEYS.contains(&&*entry.key.text)) {
        let key = &*entry.key.text;
        let message = format!("unknown key `{key}` of a github step");
        let finding = table.error(Code::UnknownKey, key, entry.key.span, message).reference(key);
        let help = format!("use one of {}", GITHUB_KEYS.join(", "));
        table.report(finding.suggest(nearest(key, GITHUB_KEYS)).help(help));
    }
}

pub fn slot(table: &Table<'_>, around: &Around<'_>) -> Kind<Vec<Step>> {
    if around.in_fan_out {
        let message = "a slot cannot be inside a fan-out because overlays do not apply there";
        let finding = table.error(Code::SlotInFanOut, "type", table.key_span("type"), message);
        table.report(finding.help("move it before or after the fan-out"));
    }
    let node = needed(table, "name", "give the slot a name: `name: after build`");
    let name = node.and_then(|node| text(table, "name", node));
    if let (Some(node), Some(_)) =
        (present(table, "name"), name.as_ref().filter(|name| name.value.trim().is_empty()))
    {
        bad(table, "name", node, "text that is not blank");
    }
    Kind::Slot(name.map_or_else(|| "".into(), |name| name.value))
}
