//! Triggers: each entry of `triggers` has exactly one kind.

use super::duration;
use super::field::{count, demanded, filled, ignored, path};
use super::roster::Roster;
use super::step::StepType;
use crate::table::Table;
use crate::text::Node;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::trigger::{
    CatchUp, CronSyntax, CronTrigger, Debounce, HttpTrigger, Overlap, SigningSecret, Trigger, TriggerInput,
    TriggerSource,
};
use windlass_ir::{Code, Duration, Severity, Span, Spanned, Value};

const KINDS: [&str; 5] = ["cron", "subject", "webhook", "http", "external"];
const DEBOUNCE_MAX: Duration = Duration::from_secs(7 * 86_400);
const SECRET_BYTES_MIN: usize = 16;
const METHODS: [(&str, &str); 5] =
    [("GET", "GET"), ("POST", "POST"), ("PUT", "PUT"), ("PATCH", "PATCH"), ("DELETE", "DELETE")];

pub fn list(top: &Table<'_>, workflow: &str, roster: &Roster<'_>) -> Vec<Trigger> {
    let items = top.list("triggers").unwrap_or_default();
    let mut ids: HashMap<Arc<str>, Span> = HashMap::new();
    let mut triggers = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let place = top.place.child(&format!("triggers[{index}]"));
        let Some(table) = Table::of(top.context, node, place) else { continue };
        let id = demanded(&table, "id", "give the trigger an id");
        if let Some(id) = &id {
            note_id(&table, id, &mut ids);
        }
        check_workflow(&table, workflow);
        triggers.extend(read(&table, node, id, roster));
        table.finish_all();
    }
    triggers
}

fn note_id(table: &Table<'_>, id: &Spanned<Arc<str>>, ids: &mut HashMap<Arc<str>, Span>) {
    if let Some(first) = ids.get(&id.value) {
        let message = format!("duplicate trigger id `{}`", id.value);
        let finding =
            table.error(Code::DuplicateTrigger, "id", id.span, message).label(*first, "first used here");
        table.report(finding.reference(&*id.value).help("rename one of them"));
        return;
    }
    ids.insert(id.value.clone(), id.span);
}

fn check_workflow(table: &Table<'_>, workflow: &str) {
    let Some(named) = filled(table, "workflow_id").filter(|named| *named.value != *workflow) else { return };
    let message =
        format!("this trigger names the workflow `{}`, but this file defines `{workflow}`", named.value);
    let finding = table.error(Code::ConflictingKeys, "workflow_id", named.span, message);
    table.report(
        finding.reference(&*named.value).help("remove `workflow_id`: it is always the workflow of the file"),
    );
}

fn read(
    table: &Table<'_>,
    node: &Node,
    id: Option<Spanned<Arc<str>>>,
    roster: &Roster<'_>,
) -> Option<Trigger> {
    let enabled = table.boolean("enabled").unwrap_or(false);
    if table.has("source") {
        let span = table.key_span("source");
        table.report(ignored(table, Severity::Hint, "source", span, " in a file", "remove it"));
    }
    table.known(&["source"]);
    let sources = [
        table.table("cron").and_then(|table| from_cron(&table)),
        table.table("subject").and_then(|table| from_subject(&table)),
        table.table("webhook").and_then(|table| from_webhook(&table)),
        table.table("http").and_then(|table| from_http(&table, roster)),
        table.table("external").and_then(|table| from_external(&table)),
    ];
    check_kinds(table);
    let debounce = table.table("debounce").and_then(|inner| debounce(table, &inner));
    let source = sources.into_iter().flatten().next()?;
    let input = TriggerInput::Envelope;
    Some(Trigger {
        id,
        enabled,
        source,
        input,
        runs_max: None,
        overlap: Overlap::Skip,
        debounce,
        span: node.span,
    })
}

fn check_kinds(table: &Table<'_>) {
    let given: Vec<&str> = KINDS.into_iter().filter(|key| table.has(key)).collect();
    match given[..] {
        [] => {
            let message = "this trigger has no kind";
            let finding = table.error(Code::MissingField, "cron", table.span.head(), message);
            table.report(finding.help("add one of cron, subject, webhook, http, external"));
        }
        [_] => {}
        [first, second, ..] => {
            let message = format!("a trigger has one kind, but `{first}` and `{second}` are both given");
            let finding = table.error(Code::ConflictingKeys, second, table.key_span(second), message);
            table.report(
                finding.label(table.key_span(first), "the other kind").help("split it into two triggers"),
            );
        }
    }
}

fn from_cron(table: &Table<'_>) -> Option<TriggerSource> {
    let pattern = demanded(table, "expression", "write a cron pattern, such as \"0 9 * * 1-5\"");
    let timezone = filled(table, "timezone");
    let backfill = table.boolean("backfill").unwrap_or(false);
    table.finish_all();
    timezone.iter().for_each(|zone| table.check_zone("timezone", zone));
    let pattern = pattern.filter(|pattern| table.check_cron("expression", pattern, CronSyntax::Posix))?;
    Some(TriggerSource::Cron(CronTrigger {
        pattern,
        syntax: CronSyntax::Posix,
        timezone: timezone.map(|zone| zone.value),
        jitter: None,
        catch_up: if backfill { CatchUp::All(CatchUp::USUAL) } else { CatchUp::None },
    }))
}

fn from_subject(table: &Table<'_>) -> Option<TriggerSource> {
    let subject = demanded(table, "subject", "name the subject, such as \"orders.>\"");
    table.finish_all();
    subject.map(|subject| TriggerSource::Message { name: subject.value })
}

fn from_webhook(table: &Table<'_>) -> Option<TriggerSource> {
    let path = route(table);
    let secret = filled(table, "secret").map(|secret| SigningSecret::Literal(secret.value));
    table.finish_all();
    Some(TriggerSource::Webhook { path: path?, secret })
}

/// A path on the server.
fn route(table: &Table<'_>) -> Option<Arc<str>> {
    let path = demanded(table, "path", "set the path to listen on, such as \"/orders\"")?;
    if !path.value.starts_with('/') {
        let message = format!("`{}` does not start with a slash", path.value);
        let finding = table.error(Code::BadName, "path", path.span, message).reference(&*path.value);
        table.report(finding.suggest(Some(format!("/{}", path.value))));
    }
    Some(path.value)
}

fn from_http(table: &Table<'_>, roster: &Roster<'_>) -> Option<TriggerSource> {
    let path = route(table);
    if let Some(path) = path.as_ref().filter(|path| path.contains('*')) {
        let span = table.node("path").map_or(table.span, |node| node.span);
        let finding =
            table.error(Code::BadName, "path", span, format!("`{path}` matches more than one address"));
        table.report(finding.reference(&**path).help("write the full address, without `*`"));
    }
    table.demand("method", "use one of GET, POST, PUT, PATCH, DELETE");
    let method = table.word("method", &METHODS);
    let timeout = count(table, "timeout_ms", 1, u32::MAX, "set how many milliseconds the caller waits");
    let bytes = count(table, "max_body_bytes", 1, u32::MAX, "set the maximum size of a request in bytes");
    let secret = filled(table, "secret").filter(|secret| check_secret(table, secret));
    let header = filled(table, "idempotency_header").filter(|header| check_header(table, header));
    let authentication = table.table("authentication").map(|inner| authentication(&inner));
    table.finish_all();
    if !roster.has(StepType::Respond) {
        let message = "no step of type respond sends a response, so the caller will time out";
        let finding = table.warning(Code::MissingField, "path", table.span, message);
        table.report(finding.help(
            "add a step of type respond, or use `webhook`, which does not wait for a \
            response",
        ));
    }
    Some(TriggerSource::Http(HttpTrigger {
        path: path?,
        method: method?.into(),
        timeout: timeout.map(|milliseconds| Duration::from_millis(u64::from(milliseconds))),
        body_bytes_max: bytes.map(u64::from),
        secret: secret.map(|secret| SigningSecret::Literal(secret.value)),
        idempotency_header: header.map(|header| header.value),
        authentication,
    }))
}

fn check_secret(table: &Table<'_>, secret: &Spanned<Arc<str>>) -> bool {
    let is_long = secret.value.len() >= SECRET_BYTES_MIN;
    if !is_long {
        let message = format!("a secret of {} bytes is easy to guess", secret.value.len());
        let finding = table.error(Code::BadName, "secret", secret.span, message);
        table.report(finding.help(format!("use at least {SECRET_BYTES_MIN} bytes")));
    }
    is_long
}

fn check_header(table: &Table<'_>, header: &Spanned<Arc<str>>) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let is_name = header.value.bytes().all(is_token);
    if !is_name {
        let message = format!("invalid header name `{}`", header.value);
        let finding = table.error(Code::BadName, "idempotency_header", header.span, message);
        table.report(finding.reference(&*header.value).help("use letters, digits and hyphens"));
    }
    is_name
}

/// How callers should authenticate: a description that is passed on.
fn authentication(table: &Table<'_>) -> Value {
    demanded(table, "name", "give the scheme a name");
    let types = [("http", 0), ("apiKey", 1), ("oauth2", 2), ("openIdConnect", 3)];
    table.demand("type", "use one of http, apiKey, oauth2, openIdConnect");
    let (is_http, is_key) = match table.word("type", &types) {
        Some(ty) => (ty == 0, ty == 1),
        None => (false, false),
    };
    match is_http {
        true => drop(demanded(table, "scheme", "name the scheme, such as \"bearer\"")),
        false => table.known(&["scheme"]),
    }
    if is_key {
        table.demand("in", "use one of header, query, cookie");
        let is_header =
            table.word("in", &[("header", true), ("query", false), ("cookie", false)]) == Some(true);
        if is_header {
            demanded(table, "header_name", "name the header that contains the key");
        }
    }
    table.known(&["in", "header_name", "bearer_format", "description"]);
    table.finish_all();
    let entries = table.map.entries.iter();
    Value::map(entries.map(|entry| (entry.key.text.clone(), entry.value.to_value())))
}

fn from_external(table: &Table<'_>) -> Option<TriggerSource> {
    let kind = demanded(table, "kind", "name the kind of trigger, which a worker provides");
    let config = table.node("config").map_or(Value::Null, Node::to_value);
    table.finish_all();
    Some(TriggerSource::External { kind: kind?.value, config })
}

fn debounce(trigger: &Table<'_>, table: &Table<'_>) -> Option<Debounce> {
    if trigger.has("cron") {
        let message = "`debounce` combines events, but `cron` has none";
        let finding = trigger.error(Code::ConflictingKeys, "debounce", trigger.key_span("debounce"), message);
        trigger.report(finding.help("remove `debounce`"));
    }
    let period = duration::demanded(table, "period", DEBOUNCE_MAX, "set the quiet period, such as \"5s\"");
    let timeout = table.has("timeout").then(|| duration::length(table, "timeout")).flatten();
    table.known(&["timeout"]);
    let key = path(table, "key").map(|key| key.value);
    table.finish_all();
    let timeout = timeout.filter(|timeout| *timeout > Duration::ZERO);
    if let (Some(period), Some(timeout)) = (period, timeout)
        && !(period..=DEBOUNCE_MAX).contains(&timeout)
    {
        let span = table.node("timeout").map_or(table.span, |node| node.span);
        let message = format!("{timeout} is not between the period of {period} and {DEBOUNCE_MAX}");
        let finding = table.error(Code::BadDuration, "timeout", span, message);
        table.report(finding.help("use a value that is at least as long as `period`"));
    }
    Some(Debounce { period: period?, timeout, key })
}
