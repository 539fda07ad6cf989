//! Triggers: each has one source, and the inputs of the runs it starts.

use super::table::Table;
use crate::dcc::schedules::route_shape;
use crate::text::{Kind, Node};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::trigger::{
    CatchUp, CronSyntax, CronTrigger, Debounce, HttpTrigger, Overlap, SigningSecret, Trigger, TriggerInput,
    TriggerSource,
};
use windlass_ir::{Code, Diagnostic, Span, Spanned, Value};

const SOURCES: [&str; 5] = ["cron", "webhook", "http", "message", "external"];
const METHODS: [(&str, &str); 5] =
    [("GET", "GET"), ("POST", "POST"), ("PUT", "PUT"), ("PATCH", "PATCH"), ("DELETE", "DELETE")];
const OVERLAPS: [(&str, Overlap); 3] =
    [("skip", Overlap::Skip), ("queue", Overlap::Queue), ("cancel", Overlap::Cancel)];
/// The maximum number of missed firings that can be made up for.
const CATCH_UP_MAX: u32 = 1_000;

pub fn read(top: &Table<'_>) -> Vec<Trigger> {
    let items = top.list("triggers").unwrap_or_default();
    let mut seen = Seen::default();
    let mut triggers = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let place = top.place.child(&format!("triggers[{index}]"));
        let Some(table) = Table::of(top.context, node, place) else { continue };
        let id = table.text("id");
        seen.note_id(&table, id.as_ref());
        let trigger = read_trigger(top, &table, index, id);
        trigger.iter().for_each(|trigger| seen.note_path(&table, trigger));
        triggers.extend(trigger);
    }
    triggers
}

fn read_trigger(
    top: &Table<'_>,
    table: &Table<'_>,
    index: usize,
    id: Option<Spanned<Arc<str>>>,
) -> Option<Trigger> {
    let cron = cron(table);
    let webhook = table.table("webhook").and_then(|table| webhook(&table));
    let http = table.table("http").and_then(|table| http(&table));
    let message = table.plain_text("message").map(|name| TriggerSource::Message { name });
    let external = table.table("external").and_then(|table| external(&table));
    let enabled = table.boolean("enabled").unwrap_or(true);
    let input = input(table);
    let runs_max = table.count("max_concurrent");
    let overlap = table.word("overlap", &OVERLAPS).unwrap_or_default();
    let debounce = table.table("debounce").and_then(|table| debounce(&table));
    table.finish_all();
    one_source(top, table, index)?;
    only_with_cron(table);
    not_with_cron(table);
    let source = cron.or(webhook).or(http).or(message).or(external)?;
    Some(Trigger { id, enabled, source, input, runs_max, overlap, debounce, span: table.span })
}

/// Values that must be unique among the triggers of a file.
#[derive(Default)]
struct Seen {
    ids: HashMap<Arc<str>, Span>,
    /// By route: the method and the shape of the path.
    paths: HashMap<(Arc<str>, String), Listener>,
}

#[derive(Clone, Copy)]
struct Listener {
    span: Span,
    enabled: bool,
}

impl Seen {
    fn note_id(&mut self, table: &Table<'_>, id: Option<&Spanned<Arc<str>>>) {
        let Some(id) = id else { return };
        let first = *self.ids.entry(id.value.clone()).or_insert(id.span);
        if first != id.span {
            let message = format!("duplicate trigger id `{}`", id.value);
            let finding = table.error(Code::DuplicateTrigger, "id", id.span, message);
            let finding = finding.label(first, "first used here").reference(&*id.value);
            table.report(finding.help("rename one of them"));
        }
    }

    /// Two routes of the same shape cannot both be served. A disabled trigger has no route, but would conflict once
    /// it is enabled. Files of other dialects do not name their server.
    fn note_path(&mut self, table: &Table<'_>, trigger: &Trigger) {
        let Some((kind, method, path)) = route(&trigger.source).filter(|_| !table.context.foreign) else {
            return;
        };
        let written = table.table(kind).and_then(|inner| inner.lookup("path")).map(|entry| entry.value.span);
        let here = Listener { span: written.unwrap_or(table.span), enabled: trigger.enabled };
        let shape = route_shape(path.strip_prefix('/').unwrap_or(path));
        let first = *self.paths.entry((method.clone(), shape)).or_insert(here);
        if first.span != here.span {
            table.report(same_path(table, kind, path, first, here));
        }
    }
}

/// The key of a trigger that listens, its method, and its path.
fn route(source: &TriggerSource) -> Option<(&'static str, Arc<str>, &Arc<str>)> {
    match source {
        TriggerSource::Webhook { path, .. } => Some(("webhook", "POST".into(), path)),
        TriggerSource::Http(http) => Some(("http", http.method.clone(), &http.path)),
        TriggerSource::Cron(_) | TriggerSource::Message { .. } | TriggerSource::External { .. } => None,
    }
}

fn same_path(table: &Table<'_>, kind: &str, path: &str, first: Listener, here: Listener) -> Diagnostic {
    let field = format!("{kind}.path");
    let finding = match first.enabled && here.enabled {
        true => {
            let message = format!("two triggers listen on `{path}`");
            table.error(Code::DuplicateTrigger, &field, here.span, message)
        }
        false => {
            let message = format!("two triggers would listen on `{path}` if both were enabled");
            table.warning(Code::DuplicateTrigger, &field, here.span, message)
        }
    };
    finding.label(first.span, "first used here").reference(path).help("change one of the paths")
}

/// Each trigger has exactly one source.
fn one_source(top: &Table<'_>, table: &Table<'_>, index: usize) -> Option<()> {
    let given = SOURCES.into_iter().filter(|key| table.has(key)).count();
    if given == 0 {
        table.missing("cron", "add one of `cron`, `webhook`, `http`, `message` or `external`");
        return None;
    }
    if given > 1 {
        let finding = top.error(
            Code::ConflictingKeys,
            &format!("triggers[{index}]"),
            table.span,
            "a trigger can only have one of `cron`, `webhook`, `http`, `message` and `external`",
        );
        top.report(finding.help("split it into separate triggers"));
        return None;
    }
    Some(())
}

fn only_with_cron(table: &Table<'_>) {
    let keys = ["timezone", "syntax", "jitter", "catch_up", "catch_up_max"];
    for key in keys.into_iter().filter(|key| table.has(key) && !table.has("cron")) {
        no_effect(table, key, "cron");
    }
    if table.has("overlap") && !table.has("max_concurrent") {
        no_effect(table, "overlap", "max_concurrent");
    }
}

fn no_effect(table: &Table<'_>, key: &str, without: &str) {
    let span = table.lookup(key).map_or(table.span, |entry| entry.value.span);
    let message = format!("`{key}` has no effect without `{without}`");
    table.report(table.warning(Code::IgnoredKey, key, span, message).reference(key).help("remove it"));
}

fn not_with_cron(table: &Table<'_>) {
    if table.has("cron") && table.has("debounce") {
        let message = "`debounce` combines events, but `cron` has none";
        let finding = table.error(Code::ConflictingKeys, "debounce", table.key_span("debounce"), message);
        table.report(finding.help("remove `debounce`"));
    }
}

fn cron(table: &Table<'_>) -> Option<TriggerSource> {
    let words = [
        ("house", CronSyntax::House),
        ("posix", CronSyntax::Posix),
        ("seconds_first", CronSyntax::SecondsFirst),
    ];
    let pattern = table.text("cron");
    let timezone = table.text("timezone");
    let syntax = table.word("syntax", &words).unwrap_or(CronSyntax::House);
    let (jitter, catch_up) = (table.duration("jitter"), catch_up(table));
    let pattern = pattern?;
    timezone.iter().for_each(|zone| table.check_zone("timezone", zone));
    table.check_cron("cron", &pattern, syntax);
    let timezone = timezone.map(|zone| zone.value);
    Some(TriggerSource::Cron(CronTrigger { pattern, syntax, timezone, jitter, catch_up }))
}

fn catch_up(table: &Table<'_>) -> CatchUp {
    let most =
        table.integer("catch_up_max", 1, CATCH_UP_MAX.into()).and_then(|most| u32::try_from(most).ok());
    let all = CatchUp::All(most.unwrap_or(CatchUp::USUAL));
    let words = [("none", CatchUp::None), ("last", CatchUp::Last), ("all", all)];
    let catch_up = table.word("catch_up", &words);
    let all = matches!(catch_up, Some(CatchUp::All(_))) || (catch_up.is_none() && table.has("catch_up"));
    if table.has("catch_up_max") && table.has("cron") && !all {
        no_effect(table, "catch_up_max", "catch_up: all");
    }
    catch_up.unwrap_or_default()
}

fn webhook(table: &Table<'_>) -> Option<TriggerSource> {
    let (path, secret) = (path(table), secret(table));
    table.finish_all();
    Some(TriggerSource::Webhook { path: path?, secret })
}

fn path(table: &Table<'_>) -> Option<Arc<str>> {
    const HELP: &str = "set the path to listen on: `path: deploys`";
    let path = table.text("path");
    table.demand("path", HELP);
    if let Some(path) = path.as_ref().filter(|path| path.value.is_empty()) {
        let message = format!("`{}` is empty", table.place.field("path"));
        table.report(table.error(Code::MissingField, "path", path.span, message).help(HELP));
    }
    path.map(|path| path.value).filter(|path| !path.is_empty())
}

/// The name of a declared secret, `{env: NAME}` or `{literal: TEXT}`.
fn secret(table: &Table<'_>) -> Option<SigningSecret> {
    let node = table.node("secret")?;
    let Kind::Map(_) = &node.kind else { return table.text("secret").map(SigningSecret::Declared) };
    let inner = table.table("secret")?;
    let variable = inner.plain_text("env").map(SigningSecret::Variable);
    let literal = inner.plain_text("literal").map(SigningSecret::Literal);
    inner.finish_all();
    if variable.is_some() == literal.is_some() {
        let message = "a secret must be a declared name, `{env: NAME}` or `{literal: TEXT}`";
        let code = if variable.is_some() { Code::ConflictingKeys } else { Code::MissingField };
        table.report(table.error(code, "secret", node.span, message).help("write exactly one of them"));
    }
    variable.or(literal)
}

fn http(table: &Table<'_>) -> Option<TriggerSource> {
    let path = path(table);
    let trigger = HttpTrigger {
        path: path.clone().unwrap_or_default(),
        method: table.word("method", &METHODS).unwrap_or("POST").into(),
        timeout: table.duration("timeout"),
        body_bytes_max: table.integer("max_body_bytes", 0, u64::MAX),
        secret: secret(table),
        idempotency_header: table.plain_text("idempotency_header"),
        authentication: table.node("authentication").map(Node::to_value),
    };
    table.finish_all();
    path.map(|_| TriggerSource::Http(trigger))
}

fn external(table: &Table<'_>) -> Option<TriggerSource> {
    let kind = table.plain_text("kind");
    table.demand("kind", "name the kind of trigger, which a worker provides");
    let config = table.node("config").map_or(Value::Null, Node::to_value);
    table.finish_all();
    Some(TriggerSource::External { kind: kind?, config })
}

fn debounce(table: &Table<'_>) -> Option<Debounce> {
    let period = table.duration("period");
    table.demand("period", "set the quiet period: `period: 5s`");
    let (timeout, key) = (table.duration("timeout"), table.plain_text("key"));
    table.finish_all();
    let period = period?;
    if let Some(timeout) = timeout.filter(|timeout| *timeout < period) {
        let span = table.node("timeout").map_or(table.span, |node| node.span);
        let message = format!("{timeout} is shorter than the period of {period}");
        let finding = table.error(Code::BadDuration, "timeout", span, message);
        table.report(finding.help("use a value that is at least as long as `period`"));
    }
    Some(Debounce { period, timeout, key })
}

/// `with` passes parameters, `input` the whole input, `envelope` the payload in an envelope.
fn input(table: &Table<'_>) -> TriggerInput {
    let with = table.bindings("with");
    let whole = table.bound("input");
    let envelope = table.boolean("envelope").unwrap_or(false);
    let given: Vec<&str> = ["with", "input", "envelope"]
        .into_iter()
        .filter(|key| table.has(key) && (*key != "envelope" || envelope))
        .collect();
    if let [first, second, ..] = given.as_slice() {
        let message = format!("`{first}` and `{second}` both set the input of the run");
        let finding = table.error(Code::ConflictingKeys, second, table.key_span(second), message);
        table.report(finding.help("keep one of the two"));
    }
    match whole {
        Some(whole) => TriggerInput::Whole(whole),
        None if envelope => TriggerInput::Envelope,
        None => TriggerInput::Parameters(with),
    }
}
