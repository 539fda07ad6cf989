//! Steps that wait: for time, an event, or a person.

use super::field::{demanded, filled, path, text_map};
use super::matching::{self, Sees};
use super::step::Draft;
use super::work::config;
use super::{duration, flow};
use crate::table::Table;
use indexmap::IndexMap;
use windlass_ir::expr::Namespace;
use windlass_ir::trigger::CronSyntax;
use windlass_ir::workflow::{Gate, Wait, WaitFor, WaitTimeout};
use windlass_ir::{Code, Duration, Value};

const SLEEP_MAX: Duration = Duration::from_secs(365 * 86_400);
const APPROVAL_MAX: Duration = Duration::from_secs(168 * 3_600);

/// Exactly one of `duration`, `cron` and `until_input_path`.
pub fn sleep(draft: &Draft<'_>) -> Wait {
    let what = config(draft, "state the duration: \"config\": {\"duration\": \"10m\"}").and_then(|table| {
        let what = sleep_until(&table);
        table.finish_all();
        what
    });
    let nothing = || WaitFor::Duration(flow::constant(Value::text("0s"), "config", draft.table.span));
    Wait { what: what.unwrap_or_else(nothing), timeout: None, on_timeout: WaitTimeout::Fail }
}

fn sleep_until(table: &Table<'_>) -> Option<WaitFor> {
    const KEYS: [&str; 3] = ["duration", "cron", "until_input_path"];
    let length = duration::bounded(table, "duration", SLEEP_MAX);
    let pattern =
        filled(table, "cron").filter(|pattern| table.check_cron("cron", pattern, CronSyntax::Posix));
    let instant = path(table, "until_input_path");
    // As everywhere in this language, empty text means that the key is absent.
    let is_given = |key: &&str| match table.lookup(key).map(|entry| entry.value.to_value()) {
        None | Some(Value::Null) => false,
        Some(Value::Text(text)) => !text.is_empty(),
        Some(_) => true,
    };
    let given: Vec<&str> = KEYS.into_iter().filter(is_given).collect();
    if given.is_empty() {
        table.missing("duration", "state how long to sleep: `duration`, `cron` or `until_input_path`");
    }
    if let [first, second, ..] = given[..] {
        let message =
            format!("a step can only sleep for one reason, but `{first}` and `{second}` are both given");
        let finding = table.error(Code::ConflictingKeys, second, table.key_span(second), message);
        table.report(finding.help("keep one; use two steps to sleep twice"));
    }
    let field = |key| table.place.field(key);
    match (length, pattern, instant) {
        (Some(length), _, _) => {
            let span = table.key_span("duration");
            Some(WaitFor::Duration(flow::constant(Value::text(house(length)), field("duration"), span)))
        }
        (None, Some(pattern), _) => Some(WaitFor::Cron(pattern.value)),
        (None, None, Some(path)) => {
            let instant = flow::along(flow::read(Namespace::Inputs, path.span), &path.value);
            Some(WaitFor::Instant(flow::computed(instant, field("until_input_path"))))
        }
        (None, None, None) => None,
    }
}

/// A duration in the native format, rounded up to milliseconds.
fn house(length: Duration) -> String {
    Duration::from_millis(length.0.div_ceil(1_000)).to_string()
}

/// An event published by anyone and selected by one of its fields.
pub fn wait_for_event(draft: &Draft<'_>) -> Wait {
    let help = "name the event to wait for: \"config\": {\"event\": …, \"match\": …, \"timeout\": \"1h\"}";
    let table = config(draft, help);
    let (mut name, mut matching, mut timeout) = (None, IndexMap::new(), None);
    if let Some(table) = &table {
        name = demanded(table, "event", "name the event, such as \"order.paid\"");
        table
            .demand("match", "select the event: {\"left\": \"id\", \"op\": \"eq\", \"right\": \"input.id\"}");
        let sees = Sees::Steps(&draft.document.roster);
        matching = table.table("match").map(|table| matching::read(&table, sees)).unwrap_or_default();
        timeout =
            duration::demanded(table, "timeout", Duration(u64::MAX), "set how long to wait, such as \"1h\"");
        table.finish_all();
    }
    let name = name.map_or_else(|| "".into(), |name| name.value);
    let late = Value::map([("timeout", Value::Bool(true))]);
    Wait { what: WaitFor::Message { name, matching }, timeout, on_timeout: WaitTimeout::Done(late) }
}

/// A decision by a person; a rejection or a timeout is a failure.
pub fn approval(draft: &Draft<'_>) -> Gate {
    let help = "name where to ask: \"config\": {\"subject\": \"approvals.deploy\", \"timeout\": \"24h\"}";
    let Some(table) = config(draft, help) else { return Gate::plain() };
    let subject = demanded(
        &table,
        "subject",
        "name the subject where the request is published, such as \
            \"approvals.deploy\"",
    );
    let timeout = duration::demanded(&table, "timeout", APPROVAL_MAX, "set how long to wait, up to \"168h\"");
    let description = table.scalar("description", "text").map(|(scalar, span)| {
        flow::constant(Value::Text(scalar.text.clone()), table.place.field("description"), span)
    });
    let metadata = text_map(&table, "metadata");
    let help = "shorten `timeout` of the step or raise `timeout` of the workflow; \
                time spent at an approval does not count toward the timeout of the run";
    table.check_gate_timeout(timeout, draft.document.run_timeout, help);
    table.finish_all();
    let subject = subject.map(|subject| subject.value);
    Gate { subject, timeout, message: description, metadata, ..Gate::plain() }
}
