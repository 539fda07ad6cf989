//! Steps that wait: for time, for an event, for a person.

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
    let what = config(draft, "say how long: \"config\": {\"duration\": \"10m\"}").and_then(|table| {
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
    // As everywhere in this language, the empty text says that nothing is given.
    let is_given = |key: &&str| match table.lookup(key).map(|entry| entry.value.to_value()) {
        None | Some(Value::Null) => false,
        Some(Value::Text(text)) => !text.is_empty(),
        Some(_) => true,
    };
    let given: Vec<&str> = KEYS.into_iter().filter(is_given).collect();
    if given.is_empty() {
        table.missing("duration", "say how long it sleeps: `duration`, `cron` or `until_input_path`");
    }
    if let [first, second, ..] = given[..] {
        let message = format!("a step sleeps for one reason, but `{first}` and `{second}` are two");
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

/// A length as the house reads it; what is finer than a millisecond is rounded up to one.
fn house(length: Duration) -> String {
    Duration::from_millis(length.0.div_ceil(1_000)).to_string()
}

/// An event that is published by anyone, told from others of its kind by one of its fields.
pub fn wait_for_event(draft: &Draft<'_>) -> Wait {
    let help = "say what it waits for: \"config\": {\"event\": …, \"match\": …, \"timeout\": \"1h\"}";
    let table = config(draft, help);
    let (mut name, mut matching, mut timeout) = (None, IndexMap::new(), None);
    if let Some(table) = &table {
        name = demanded(table, "event", "name the event, such as \"order.paid\"");
        table.demand("match", "say which one: {\"left\": \"id\", \"op\": \"eq\", \"right\": \"input.id\"}");
        let sees = Sees::Steps(&draft.document.roster);
        matching = table.table("match").map(|table| matching::read(&table, sees)).unwrap_or_default();
        timeout =
            duration::demanded(table, "timeout", Duration(u64::MAX), "say how long it waits, such as \"1h\"");
        table.finish_all();
    }
    let name = name.map_or_else(|| "".into(), |name| name.value);
    let late = Value::map([("timeout", Value::Bool(true))]);
    Wait { what: WaitFor::Message { name, matching }, timeout, on_timeout: WaitTimeout::Done(late) }
}

/// A person who says yes or no; a no, and no answer in time, is a failure.
pub fn approval(draft: &Draft<'_>) -> Gate {
    let help = "say where to ask: \"config\": {\"subject\": \"approvals.deploy\", \"timeout\": \"24h\"}";
    let Some(table) = config(draft, help) else { return Gate::plain() };
    let subject =
        demanded(&table, "subject", "say where the request is published, such as \"approvals.deploy\"");
    let timeout =
        duration::demanded(&table, "timeout", APPROVAL_MAX, "say how long it waits, up to \"168h\"");
    let description = table.scalar("description", "text").map(|(scalar, span)| {
        flow::constant(Value::Text(scalar.text.clone()), table.place.field("description"), span)
    });
    let metadata = text_map(&table, "metadata");
    table.finish_all();
    let subject = subject.map(|subject| subject.value);
    Gate { subject, timeout, message: description, metadata, ..Gate::plain() }
}
