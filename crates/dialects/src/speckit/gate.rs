//! Gates: the question, the options, and the effect of a rejection.

use super::bind::Binder;
use super::field::{self, bad, evaluated, evaluated_text, given, needed, present, text};
use super::step::Around;
use crate::table::Table;
use crate::text::{Kind, Node};
use std::sync::Arc;
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{Bound, Gate, OnReject};
use windlass_ir::{Code, Spanned, Value};

const ON_REJECT: [(&str, OnReject); 3] =
    [("abort", OnReject::Abort), ("skip", OnReject::Skip), ("retry", OnReject::Retry)];

pub fn read(table: &Table<'_>, around: &Around<'_>) -> Gate {
    let message = message(table);
    let options = options(table);
    let on_reject = on_reject(table);
    if let (Some(options), Some(on_reject)) = (&options, &on_reject) {
        check_reject_option(table, options, on_reject);
    }
    let on_reject = on_reject.unwrap_or(OnReject::Abort);
    Gate {
        message,
        options: options.unwrap_or_else(|| Gate::plain().options),
        verdict_input: verdict_input(table, &on_reject, around),
        on_reject,
        show_file: given(table, "show_file").and_then(|node| evaluated_text(table, "show_file", node)),
        ..Gate::plain()
    }
}

fn message(table: &Table<'_>) -> Option<Bound> {
    let node = needed(table, "message", "write the question: `message: Ship it?`")?;
    let bound = evaluated(table, "message", node, Binder::default());
    match (&node.kind, node.to_value()) {
        // A number stays one in the record of the step.
        (Kind::Scalar(_), value) if value != Value::Null => Some(bound),
        (_, _) => {
            bad(table, "message", node, "text");
            None
        }
    }
}

fn options(table: &Table<'_>) -> Option<Vec<Arc<str>>> {
    let wanted = "a list of at least one string";
    let Some(node) = present(table, "options") else { return Some(Gate::plain().options) };
    let items = field::list(table, "options", node, wanted)?;
    let texts: Option<Vec<Arc<str>>> = items.iter().map(|item| field::as_text(item).cloned()).collect();
    let texts = texts.filter(|texts| !texts.is_empty());
    if texts.is_none() {
        let wrong: Option<&Node> = items.iter().find(|item| field::as_text(item).is_none());
        let message = match wrong {
            Some(item) => format!("an option must be a string, not {}", field::what(table, item)),
            None => "a gate needs at least one option".to_owned(),
        };
        let span = wrong.map_or(node.span, |item| item.span);
        table.report(table.error(Code::BadField, "options", span, message).help(format!("write {wanted}")));
    }
    texts
}

fn on_reject(table: &Table<'_>) -> Option<OnReject> {
    let Some(node) = present(table, "on_reject") else { return Some(OnReject::Abort) };
    let word = field::as_text(node).map_or("", |word| word);
    let found = ON_REJECT.iter().find(|(known, _)| *known == word).map(|(_, value)| value.clone());
    if found.is_none() {
        let message = format!("invalid value for `on_reject`: {}", field::what(table, node));
        let finding = table.error(Code::BadField, "on_reject", node.span, message).reference(word);
        let suggest = nearest(word, ON_REJECT.iter().map(|(known, _)| *known));
        table.report(finding.suggest(suggest).help("use abort, skip or retry"));
    }
    found
}

/// A rejection that ends the run or asks again must be one of the options.
fn check_reject_option(table: &Table<'_>, options: &[Arc<str>], on_reject: &OnReject) {
    let says_no = |option: &Arc<str>| ["reject", "abort"].iter().any(|no| option.eq_ignore_ascii_case(no));
    if *on_reject == OnReject::Skip || options.iter().any(says_no) {
        return;
    }
    let message = "none of the options rejects, so this gate can only be approved";
    let finding = table.error(Code::GateNoRejectOption, "options", table.key_span("options"), message);
    table.report(finding.help("add the option `reject`, or write `on_reject: skip`"));
}

fn verdict_input(table: &Table<'_>, on_reject: &OnReject, around: &Around<'_>) -> Option<Spanned<Arc<str>>> {
    let node = present(table, "verdict_input")?;
    let name = text(table, "verdict_input", node)?;
    if name.value.is_empty() {
        bad(table, "verdict_input", node, "the name of an input");
        return None;
    }
    if let Some((code, message, help)) = verdict_problem(&name.value, on_reject, around) {
        let inputs = around.document.inputs.iter().flat_map(|inputs| inputs.keys().map(|known| &**known));
        let guess = code == Code::VerdictInputUndeclared && table.may_guess();
        let suggest = guess.then(|| nearest(&name.value, inputs)).flatten();
        let finding = table.error(code, "verdict_input", name.span, message).reference(&*name.value);
        table.report(finding.suggest(suggest).help(help));
    }
    Some(name)
}

fn verdict_problem(
    name: &str,
    on_reject: &OnReject,
    around: &Around<'_>,
) -> Option<(Code, String, &'static str)> {
    if around.in_fan_out {
        let message = "one input cannot decide for every item of a fan-out".to_owned();
        return Some((
            Code::VerdictInputInFanOut,
            message,
            "remove it, or move the gate before or after the fan-out",
        ));
    }
    let inputs = around.document.inputs.as_ref()?;
    let Some(input) = inputs.get(name) else {
        let message = format!("unknown input `{name}` in `verdict_input`");
        return Some((
            Code::VerdictInputUndeclared,
            message,
            "declare it under `inputs`, with the default \"\"",
        ));
    };
    let empty = Value::text("");
    let refused = !input.choices.is_empty() && !input.choices.contains(&empty);
    (*on_reject == OnReject::Retry && refused).then(|| {
        let message = format!(
            "a rejection clears the input `{name}`, but its `enum` does not allow an empty \
            value"
        );
        (
            Code::VerdictInputCannotReset,
            message,
            "add \"\" to its `enum`, or write `on_reject: abort` or `skip`",
        )
    })
}
