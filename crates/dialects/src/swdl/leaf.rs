//! Stages that need no executor: waits, assignments, and the early end of a run.

use super::duration;
use super::names::{NAME_RULE, is_name};
use super::table::Table;
use crate::text::Kind;
use std::sync::Arc;
use windlass_ir::expr::Template;
use windlass_ir::policy::Bindings;
use windlass_ir::trigger::CronSyntax;
use windlass_ir::workflow::{Bound, Finish, FinishStatus, Wait, WaitFor, WaitTimeout};
use windlass_ir::{Code, Spanned, Value};

pub fn wait(stage: &Table<'_>) -> Wait {
    let Some(table) = stage.table("wait") else {
        stage.demand("wait", "state what to wait for: `wait: {for: 10m}`");
        return Wait { what: for_nothing(stage), timeout: None, on_timeout: WaitTimeout::Fail };
    };
    let length = table.bound_text("for");
    let instant = table.bound_text("until");
    let cron = table.text("cron");
    let signal = table.plain_text("signal");
    let message = table.plain_text("message");
    let matching = table.bindings("match");
    let timeout = table.duration("timeout");
    let on_timeout = on_timeout(&table);
    table.finish_all();
    let present: Vec<&str> =
        ["for", "until", "cron", "signal", "message"].into_iter().filter(|key| table.has(key)).collect();
    if let [first, second, ..] = present.as_slice() {
        let span = table.map.get(second).map_or(table.span, |entry| entry.key.span);
        let finding = table.error(
            Code::ConflictingKeys,
            second,
            span,
            format!("`{first}` and `{second}` cannot both be given"),
        );
        table.report(finding.help("keep one; use two stages to wait for both"));
    }
    if present.is_empty() {
        table.missing("for", "state what to wait for: `for`, `until`, `cron`, `signal` or `message`");
    }
    let timed = length.is_some() || instant.is_some() || cron.is_some();
    for key in ["match", "timeout", "on_timeout"].into_iter().filter(|key| timed && table.has(key)) {
        let span = table.map.get(key).map_or(table.span, |entry| entry.key.span);
        let finding =
            table.warning(Code::IgnoredKey, key, span, format!("`{key}` has no effect on a wait for time"));
        table.report(finding.reference(key).help("remove it, or wait for a signal or a message"));
    }
    let what = match (length, instant, cron, signal, message) {
        (Some(length), ..) => WaitFor::Duration(checked_length(&table, length)),
        (None, Some(instant), ..) => WaitFor::Instant(checked_instant(&table, instant)),
        (None, None, Some(pattern), ..) => WaitFor::Cron(checked_cron(&table, pattern)),
        (None, None, None, Some(name), _) => WaitFor::Signal { name, matching },
        (None, None, None, None, Some(name)) => WaitFor::Message { name, matching },
        (None, None, None, None, None) => for_nothing(&table),
    };
    Wait { what, timeout, on_timeout }
}

/// `fail`, or `{value: …}`: the wait completes with this value.
fn on_timeout(table: &Table<'_>) -> WaitTimeout {
    match table.node("on_timeout").map(|node| &node.kind) {
        Some(Kind::Map(_)) => {
            let Some(inner) = table.table("on_timeout") else { return WaitTimeout::Fail };
            inner.known(&["value"]);
            inner.finish_all();
            let value = inner.lookup("value").map(|entry| entry.value.to_value());
            if value.is_none() {
                inner.missing("value", "state the value of the wait: `on_timeout: {value: …}`");
            }
            value.map_or(WaitTimeout::Fail, WaitTimeout::Done)
        }
        Some(Kind::Scalar(_) | Kind::List(_)) => {
            table.word("on_timeout", &[("fail", ())]);
            WaitTimeout::Fail
        }
        None => WaitTimeout::Fail,
    }
}

fn checked_cron(table: &Table<'_>, pattern: Spanned<Arc<str>>) -> Arc<str> {
    table.check_cron("cron", &pattern, CronSyntax::Posix);
    pattern.value
}

fn for_nothing(table: &Table<'_>) -> WaitFor {
    let template = Template::Constant(Value::text("0s"));
    WaitFor::Duration(Bound { template, field: table.place.field("wait").into(), span: table.span })
}

/// A constant can be checked at once; an expression only when it has a value.
fn checked_length(table: &Table<'_>, bound: Bound) -> Bound {
    if let Template::Constant(Value::Text(text)) = &bound.template
        && table.context.parse_length(text).is_none()
    {
        let finding = table.error(Code::BadDuration, "for", bound.span, format!("invalid duration `{text}`"));
        table.report(finding.reference(&**text).help(duration::HELP));
    }
    bound
}

fn checked_instant(table: &Table<'_>, bound: Bound) -> Bound {
    if let Template::Constant(Value::Text(text)) = &bound.template
        && text.parse::<jiff::Timestamp>().is_err()
    {
        let finding = table.error(Code::BadTime, "until", bound.span, format!("invalid instant `{text}`"));
        table.report(
            finding.reference(&**text).help("write date, time and offset, such as `2027-01-31T09:00:00Z`"),
        );
    }
    bound
}

pub fn assign(stage: &Table<'_>) -> Bindings {
    stage.demand("set", "state the values: `set: {total: \"${{ stages.x.outputs.count }}\"}`");
    stage.bindings_named("set", is_name, NAME_RULE)
}

pub fn slot(stage: &Table<'_>) -> Arc<str> {
    let name = stage.plain_text("slot");
    stage.demand("slot", "name the slot: `slot: after-tests`");
    name.unwrap_or_else(|| "".into())
}

pub fn finish(stage: &Table<'_>) -> Finish {
    let words = [
        ("success", FinishStatus::Success),
        ("failed", FinishStatus::Failed),
        ("cancelled", FinishStatus::Cancelled),
    ];
    let table = stage.table("finish");
    let finish = Finish {
        status: table.as_ref().and_then(|t| t.word("status", &words)).unwrap_or(FinishStatus::Success),
        outputs: table.as_ref().map(|t| t.bindings_named("outputs", is_name, NAME_RULE)).unwrap_or_default(),
    };
    table.iter().for_each(Table::finish_all);
    finish
}
