//! The step that answers the request that started the run.

use super::field::{filled, optional_count, path, text_map};
use super::flow::{self, Input};
use super::step::Draft;
use crate::table::Table;
use indexmap::IndexMap;
use windlass_ir::expr::Namespace;
use windlass_ir::policy::Bindings;
use windlass_ir::workflow::{Builtin, BuiltinKind};
use windlass_ir::{Code, Value};

const STATUS: u32 = 200;
const CONTENT_TYPE: &str = "application/json";

pub fn read(draft: &Draft<'_>) -> Builtin {
    let table = draft.table;
    let block = table.table("config");
    if !table.has("config") {
        let message = "`config` is missing, so the response is 200 with the input of this step";
        let finding = table.warning(Code::MissingField, "config", table.span.head(), message);
        table.report(finding.help("describe the response: \"config\": {\"status\": 200}"));
    }
    let args = arguments(draft, block.as_ref());
    block.iter().for_each(Table::finish_all);
    Builtin { what: BuiltinKind::Respond, args }
}

fn arguments(draft: &Draft<'_>, block: Option<&Table<'_>>) -> Bindings {
    let span = block.map_or(draft.table.span, |block| block.span);
    let status = block.and_then(|block| optional_count(block, "status", 0, 599)).filter(|status| *status > 0);
    if let (Some(block), Some(low)) = (block, status.filter(|status| *status < 100)) {
        let span = block.node("status").map_or(span, |node| node.span);
        let finding = block.error(Code::BadNumber, "status", span, format!("invalid status code `{low}`"));
        block.report(finding.reference(low.to_string()).help("use a code from 100 to 599"));
    }
    let headers = block.map(|block| text_map(block, "headers")).unwrap_or_default();
    let headers = Value::map(headers.into_iter().map(|(name, value)| (name, Value::Text(value))));
    let content_type = block.and_then(|block| filled(block, "content_type"));
    let content_type = content_type.map_or_else(|| CONTENT_TYPE.into(), |text| text.value);
    let mut body = source(draft);
    if let Some(path) = block.and_then(|block| path(block, "body_from")) {
        body.span = path.span;
        body = flow::along(body, &path.value);
    }
    let constant = |value, key: &str| flow::constant(value, format!("config.{key}"), span);
    IndexMap::from([
        ("status".into(), constant(Value::Int(i64::from(status.unwrap_or(STATUS))), "status")),
        ("headers".into(), constant(headers, "headers")),
        ("content_type".into(), constant(Value::Text(content_type), "content_type")),
        ("body".into(), flow::computed(body, "config.body_from")),
    ])
}

/// The output of the preceding step, or the input of the run if that output is empty.
fn source(draft: &Draft<'_>) -> windlass_ir::expr::Expr {
    let span = draft.table.key_span("depends_on");
    let input = draft.input.expr(span);
    match draft.input {
        Input::Step(_) => flow::or_else(input, flow::read(Namespace::Inputs, span)),
        Input::Run | Input::Several(_) | Input::Failure | Input::Undo | Input::FailureOrUndo => input,
    }
}
