//! What starts runs by itself: one source for each trigger, and what the run is given.

use super::table::Table;
use crate::text::{Kind, Node};
use std::str::FromStr;
use std::sync::Arc;
use windlass_ir::trigger::{
    CronSyntax, CronTrigger, Debounce, HttpTrigger, SigningSecret, Trigger, TriggerInput, TriggerSource,
};
use windlass_ir::{Code, Spanned, Value};

const SOURCES: [&str; 5] = ["cron", "webhook", "http", "message", "external"];

pub fn read(top: &Table<'_>) -> Vec<Trigger> {
    let items = top.list("triggers").unwrap_or_default();
    let listed = items.iter().enumerate();
    listed.filter_map(|(index, node)| read_trigger(top, index, node)).collect()
}

fn read_trigger(top: &Table<'_>, index: usize, node: &Node) -> Option<Trigger> {
    let table = Table::of(top.context, node, top.place.child(&format!("triggers[{index}]")))?;
    let cron = cron(&table);
    let webhook = table.table("webhook").and_then(|table| webhook(&table));
    let http = table.table("http").and_then(|table| http(&table));
    let message = table.plain_text("message").map(|name| TriggerSource::Message { name });
    let external = table.table("external").and_then(|table| external(&table));
    let (id, enabled) = (table.text("id"), table.boolean("enabled").unwrap_or(true));
    let input = input(&table);
    let runs_max = table.count("max_concurrent");
    let debounce = table.table("debounce").and_then(|table| debounce(&table));
    table.finish_all();
    one_source(top, &table, index, node)?;
    only_with_cron(&table);
    let source = cron.or(webhook).or(http).or(message).or(external)?;
    Some(Trigger { id, enabled, source, input, runs_max, debounce, span: node.span })
}

/// Exactly one thing fires a trigger.
fn one_source(top: &Table<'_>, table: &Table<'_>, index: usize, node: &Node) -> Option<()> {
    let given = SOURCES.into_iter().filter(|key| table.has(key)).count();
    if given == 0 {
        table.missing("cron", "say what fires it: `cron`, `webhook`, `http`, `message` or `external`");
        return None;
    }
    if given > 1 {
        let finding = top.error(
            Code::ConflictingKeys,
            &format!("triggers[{index}]"),
            node.span,
            "a trigger has one of `cron`, `webhook`, `http`, `message` and `external`",
        );
        top.report(finding.help("split it into one trigger for each"));
        return None;
    }
    Some(())
}

fn only_with_cron(table: &Table<'_>) {
    let keys = ["timezone", "syntax", "jitter", "backfill"];
    for key in keys.into_iter().filter(|key| table.has(key) && !table.has("cron")) {
        let span = table.lookup(key).map_or(table.span, |entry| entry.value.span);
        let finding =
            table.warning(Code::IgnoredKey, key, span, format!("`{key}` has no effect without `cron`"));
        table.report(finding.reference(key).help("take it out"));
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
    let (jitter, backfill) = (table.duration("jitter"), table.boolean("backfill").unwrap_or(false));
    let pattern = pattern?;
    check_zone(table, timezone.as_ref());
    check_cron(table, &pattern, syntax);
    let timezone = timezone.map(|zone| zone.value);
    Some(TriggerSource::Cron(CronTrigger { pattern, syntax, timezone, jitter, backfill }))
}

fn check_zone(table: &Table<'_>, zone: Option<&Spanned<Arc<str>>>) {
    let Some(zone) = zone.filter(|zone| jiff::tz::TimeZone::get(&zone.value).is_err()) else { return };
    let message = format!("there is no time zone `{}`", zone.value);
    let finding = table.error(Code::BadTime, "timezone", zone.span, message).reference(&*zone.value);
    table.report(finding.help("write a name of the tz database, such as `Europe/Berlin`"));
}

fn check_cron(table: &Table<'_>, pattern: &Spanned<Arc<str>>, syntax: CronSyntax) {
    let text = &*pattern.value;
    let fields = text.split_whitespace().count();
    let (cause, help) = match syntax {
        CronSyntax::House => match croner::Cron::from_str(text) {
            Ok(_) => return,
            Err(error) => {
                let cause = error.to_string();
                let cause =
                    cause.trim_start_matches("Component error: ").trim_end_matches('.').to_lowercase();
                (
                    cause,
                    "write minute, hour, day, month and weekday, such as `0 9 * * 1-5`; a sixth field in front is seconds",
                )
            }
        },
        CronSyntax::Posix if fields != 5 => (
            format!("it has {fields} fields instead of 5"),
            "write minute, hour, day, month and weekday, such as `0 9 * * 1-5`",
        ),
        CronSyntax::SecondsFirst if !text.trim_start().starts_with('@') && !(6..=7).contains(&fields) => (
            format!("it has {fields} fields instead of 6 or 7"),
            "write second, minute, hour, day, month and weekday, such as `0 0 9 * * Mon`",
        ),
        CronSyntax::Posix | CronSyntax::SecondsFirst => return,
    };
    let finding =
        table.error(Code::BadCron, "cron", pattern.span, format!("`{text}` is no cron pattern: {cause}"));
    table.report(finding.reference(text).help(help));
}

fn webhook(table: &Table<'_>) -> Option<TriggerSource> {
    let (path, secret) = (path(table), secret(table));
    table.finish_all();
    Some(TriggerSource::Webhook { path: path?, secret })
}

fn path(table: &Table<'_>) -> Option<Arc<str>> {
    let path = table.plain_text("path");
    table.demand("path", "say where it listens: `path: deploys`");
    path
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
        let message = "a secret is a declared name, `{env: NAME}` or `{literal: TEXT}`";
        let code = if variable.is_some() { Code::ConflictingKeys } else { Code::MissingField };
        table.report(table.error(code, "secret", node.span, message).help("give exactly one of them"));
    }
    variable.or(literal)
}

fn http(table: &Table<'_>) -> Option<TriggerSource> {
    let path = path(table);
    let trigger = HttpTrigger {
        path: path.clone().unwrap_or_default(),
        method: table.plain_text("method").unwrap_or_else(|| "POST".into()),
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
    table.demand("kind", "name the kind of trigger that a worker brings");
    let config = table.node("config").map_or(Value::Null, Node::to_value);
    table.finish_all();
    Some(TriggerSource::External { kind: kind?, config })
}

fn debounce(table: &Table<'_>) -> Option<Debounce> {
    let period = table.duration("period");
    table.demand("period", "say how long it must be quiet: `period: 5s`");
    let (timeout, key) = (table.duration("timeout"), table.plain_text("key"));
    table.finish_all();
    Some(Debounce { period: period?, timeout, key })
}

/// `with` gives parameters, `input` the whole input, `envelope` what fired it with a few words about it.
fn input(table: &Table<'_>) -> TriggerInput {
    let with = table.bindings("with");
    let whole = table.bound("input");
    let envelope = table.boolean("envelope").unwrap_or(false);
    let given: Vec<&str> = ["with", "input", "envelope"]
        .into_iter()
        .filter(|key| table.has(key) && (*key != "envelope" || envelope))
        .collect();
    if let [first, second, ..] = given.as_slice() {
        let message = format!("`{first}` and `{second}` both say what the run is given");
        let finding = table.error(Code::ConflictingKeys, second, table.key_span(second), message);
        table.report(finding.help("keep one of the two"));
    }
    match whole {
        Some(whole) => TriggerInput::Whole(whole),
        None if envelope => TriggerInput::Envelope,
        None => TriggerInput::Parameters(with),
    }
}
