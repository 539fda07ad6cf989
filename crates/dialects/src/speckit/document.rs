//! Reads the top level of a file: the schema version, the workflow block with the defaults of steps, requirements and
//! outputs.

use super::bind::{Binder, Budget, member};
use super::field::{self, as_text, bad, evaluated, present, what};
use super::inputs;
use super::step::{self, Around};
use super::{WORDS, assistant};
use crate::table::{Context, Place, Table, wrong_shape};
use crate::text::{Entry, Kind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Namespace, Semantics, Template, text_form};
use windlass_ir::policy::{Bindings, RunPolicy};
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{Bound, Header, Output, Parameter, RunInput, Step, Workflow};
use windlass_ir::{Code, Span, Type, Value};

/// Ids of folders next to the installed workflows.
pub const RESERVED_IDS: [&str; 3] = ["overlays", "runs", "steps"];

/// The fields in which a calling step keeps its own results.
const RESERVED_OUTPUTS: [&str; 8] =
    ["workflow", "status", "error", "aborted", "integration", "model", "options", "input"];

/// The parts of the top level that steps need.
#[derive(Debug)]
pub struct Document {
    pub defaults: assistant::Defaults,
    /// `None` if the block itself is invalid: then names cannot be checked.
    pub inputs: Option<IndexMap<Arc<str>, Parameter>>,
    pub budget: Budget,
}

pub fn read<'a>(root: &'a Node, context: &'a Context<'a>) -> Option<Workflow> {
    let Kind::Map(map) = &root.kind else {
        context.diagnostics.borrow_mut().push(wrong_shape(root, "a mapping with `workflow` and `steps`"));
        return None;
    };
    let top = Table::new(context, map, root.span, Place::default());
    top.known(&["schema_version", "workflow", "requires", "inputs", "outputs", "steps"]);
    let outputs = read_outputs(&top);
    check_schema_version(&top);
    let block = workflow_block(&top);
    let mut header = read_header(&top, block.as_ref());
    header.requires = read_requires(&top);
    let document = Document {
        defaults: block.as_ref().map(assistant::Defaults::read).unwrap_or_default(),
        inputs: inputs::read(&top),
        budget: Budget::default(),
    };
    let steps = read_steps(&top, &document);
    block.iter().for_each(Table::finish_all);
    top.finish_all();
    Some(Workflow {
        words: &WORDS,
        semantics: Semantics::SPECKIT,
        header,
        parameters: document.inputs.unwrap_or_default(),
        input: RunInput::Declared,
        secrets: IndexMap::new(),
        env: environment(root.span.head()),
        policy: RunPolicy::unlimited(),
        steps,
        outputs,
        result: None,
        hooks: Vec::new(),
        triggers: Vec::new(),
    })
}

/// Every command finds the folder of its workflow in a variable.
fn environment(span: Span) -> Bindings {
    let name = "SPECKIT_WORKFLOW_DIR";
    let template = Template::Expression(member(Namespace::Workflow, "dir", span));
    IndexMap::from([(name.into(), Bound { template, field: format!("env.{name}").into(), span })])
}

/// The text that Python prints for a value.
pub fn python_text(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        value => text_form(value, &Semantics::SPECKIT).map(|text| text.to_string()).unwrap_or_default(),
    }
}

fn check_schema_version(top: &Table<'_>) {
    let Some(node) = present(top, "schema_version") else { return };
    if python_text(&node.to_value()) == "1.0" {
        return;
    }
    let message = format!("the schema version must be 1.0, not {}", what(top, node));
    let finding = top.error(Code::SchemaVersion, "schema_version", node.span, message);
    top.report(finding.suggest(Some("\"1.0\"")).help("write `schema_version: \"1.0\"`"));
}

/// Anything other than a mapping counts as empty; then the id and the name are missing.
fn workflow_block<'a>(top: &Table<'a>) -> Option<Table<'a>> {
    let node = present(top, "workflow")?;
    match &node.kind {
        Kind::Map(map) => Some(Table::new(top.context, map, node.span, top.place.child("workflow"))),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

fn read_header(top: &Table<'_>, block: Option<&Table<'_>>) -> Header {
    let Some(table) = block else {
        let span = top.key_span("workflow");
        missing_id(top, "workflow.id", span);
        missing_name(top, "workflow.name", span);
        return empty_header();
    };
    Header {
        id: read_id(table).unwrap_or_else(|| "".into()),
        name: read_name(table).unwrap_or_else(|| "".into()),
        version: read_version(table).unwrap_or_else(|| "0.0.0".into()),
        description: free_text(table, "description"),
        author: free_text(table, "author"),
        ..empty_header()
    }
}

fn empty_header() -> Header {
    Header {
        id: "".into(),
        name: "".into(),
        version: "0.0.0".into(),
        description: None,
        author: None,
        tags: Vec::new(),
        requires: IndexMap::new(),
    }
}

fn free_text(table: &Table<'_>, key: &'static str) -> Option<Arc<str>> {
    field::given(table, key).map(|node| python_text(&node.to_value()).into())
}

fn is_empty(node: &Node) -> bool {
    node.to_value() == Value::Null || as_text(node).is_some_and(|text| text.is_empty())
}

/// Lower-case letters, digits and hyphens, with no hyphen at either end.
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The closest valid id to an invalid text.
pub fn to_id(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    Some(words.join("-")).filter(|id| is_id(id))
}

fn read_id(table: &Table<'_>) -> Option<Arc<str>> {
    let Some(node) = present(table, "id").filter(|node| !is_empty(node)) else {
        missing_id(table, "id", table.key_span("id"));
        return None;
    };
    let id = as_text(node);
    if let Some(id) = id.filter(|id| is_id(id)) {
        return Some(id.clone());
    }
    let message = format!("invalid workflow id {}", what(table, node));
    let finding = table
        .error(Code::WorkflowIdFormat, "id", node.span, message)
        .reference(field::written(table, node.span))
        .suggest(id.and_then(|id| to_id(id)))
        .help("use lower-case letters, digits and hyphens, without a hyphen at either end");
    table.report(finding);
    id.cloned()
}

fn missing_id(table: &Table<'_>, key: &str, span: Span) {
    let finding = table.error(Code::MissingField, key, span, "the workflow has no id");
    table.report(
        finding.help("start with `workflow: {id: my-workflow, name: My workflow, version: \"1.0.0\"}`"),
    );
}

fn read_name(table: &Table<'_>) -> Option<Arc<str>> {
    let node = present(table, "name").filter(|node| !is_empty(node));
    match node.map(|node| (node, as_text(node))) {
        Some((_, Some(name))) => Some(name.clone()),
        Some((node, None)) => {
            let message = format!("the name must be a string, not {}", what(table, node));
            let finding = table.error(Code::WorkflowNameMissing, "name", node.span, message);
            table.report(finding.help("put the name in quotes"));
            None
        }
        None => {
            missing_name(table, "name", table.key_span("name"));
            None
        }
    }
}

fn missing_name(table: &Table<'_>, key: &str, span: Span) {
    let finding = table.error(Code::WorkflowNameMissing, key, span, "the workflow has no name");
    table.report(finding.help("give the workflow a readable name: `name: My workflow`"));
}

fn read_version(table: &Table<'_>) -> Option<Arc<str>> {
    let node = present(table, "version")?;
    let Some(version) = as_text(node) else {
        let message = format!("the version must be a string, not {}", what(table, node));
        let finding = table.error(Code::WorkflowVersionNotString, "version", node.span, message);
        let suggest = padded(&field::written(table, node.span)).map(|version| format!("\"{version}\""));
        table.report(finding.suggest(suggest).help("write three numbers in quotes, such as \"1.0.0\""));
        return None;
    };
    if !is_version(version) {
        let finding =
            table.error(Code::BadVersion, "version", node.span, format!("invalid version `{version}`"));
        let finding = finding.reference(&**version).suggest(padded(version));
        table.report(finding.help("write three numbers, such as \"1.0.0\", in quotes"));
    }
    Some(version.clone())
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(is_number)
}

fn padded(text: &str) -> Option<String> {
    [format!("{text}.0"), format!("{text}.0.0")].into_iter().find(|padded| is_version(padded))
}

fn read_requires(top: &Table<'_>) -> IndexMap<Arc<str>, Value> {
    const KEYS: [&str; 2] = ["speckit_version", "integrations"];
    let Some(node) = present(top, "requires") else { return IndexMap::new() };
    let Some(table) = field::mapping(top, "requires", node) else { return IndexMap::new() };
    for Entry { key, .. } in table.map.entries.iter().filter(|entry| !KEYS.contains(&&*entry.key.text)) {
        let name = &*key.text;
        let finding = if name == "permissions" {
            let message =
                "`permissions` restricts nothing: commands run with the rights of the user who runs Windlass";
            let finding = table.error(Code::RequiresPermissionsForbidden, name, key.span, message);
            finding.help("remove it, and put a gate before steps that need a review")
        } else {
            let message = format!("unknown key `{name}` in `requires`");
            let finding = table.error(Code::RequiresUnknownKey, name, key.span, message);
            finding.suggest(nearest(name, KEYS)).help(format!("use one of {}", KEYS.join(", ")))
        };
        top.report(finding.reference(name));
    }
    let known = table.map.entries.iter().filter(|entry| KEYS.contains(&&*entry.key.text));
    known.map(|entry| (entry.key.text.clone(), entry.value.to_value())).collect()
}

fn read_outputs(top: &Table<'_>) -> IndexMap<Arc<str>, Output> {
    let Some(node) = present(top, "outputs") else { return IndexMap::new() };
    let Some(table) = field::mapping(top, "outputs", node) else { return IndexMap::new() };
    let entries = table.map.entries.iter();
    entries.filter_map(|entry| Some((entry.key.text.clone(), read_output(&table, entry)?))).collect()
}

fn read_output(table: &Table<'_>, entry: &Entry) -> Option<Output> {
    check_output_name(table, entry);
    let name = &*entry.key.text;
    let value = match &entry.value.kind {
        Kind::Map(map) if map.entries.len() == 1 => map.get("value").map(|entry| &entry.value),
        Kind::Map(_) | Kind::Scalar(_) | Kind::List(_) => None,
    };
    let Some(node) = value else {
        let message = format!("output `{name}` must be a mapping with only the key `value`");
        let finding = table.error(Code::OutputEntryNotExactlyValue, name, entry.value.span, message);
        table.report(finding.reference(name).help(format!("write `{name}: {{value: \"{{{{ … }}}}\"}}`")));
        return None;
    };
    let key = format!("{name}.value");
    if !is_json(&node.to_value()) {
        bad(table, &key, node, "a value that JSON can represent");
    }
    let source = Some(evaluated(table, &key, node, Binder::default()));
    let span = entry.key.span;
    Some(Output { ty: Type::Any, required: false, default: None, description: None, source, span })
}

fn is_json(value: &Value) -> bool {
    match value {
        Value::Float(float) => float.is_finite(),
        Value::List(items) => items.iter().all(is_json),
        Value::Map(map) => map.values().all(is_json),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Text(_) | Value::Sealed(_) => true,
    }
}

fn check_output_name(table: &Table<'_>, entry: &Entry) {
    let name = &*entry.key.text;
    let span = entry.key.span;
    let finding = if RESERVED_OUTPUTS.contains(&name) {
        let message = format!("invalid output name `{name}`: a call has a field with that name");
        let finding = table.error(Code::OutputNameReserved, name, span, message);
        finding.help(format!("choose another name; reserved names are {}", RESERVED_OUTPUTS.join(", ")))
    } else if !is_id(name) {
        let finding = table.error(Code::BadName, name, span, format!("invalid output name `{name}`"));
        finding
            .suggest(to_id(name))
            .help("use lower-case letters, digits and hyphens, without a hyphen at either end")
    } else {
        return;
    };
    table.report(finding.reference(name));
}

fn read_steps(top: &Table<'_>, document: &Document) -> Vec<Step> {
    let node = present(top, "steps");
    let items = match node {
        Some(node) => field::list(top, "steps", node, "a list of steps"),
        None => Some(Default::default()),
    };
    if items.is_some_and(<[Node]>::is_empty) {
        let finding = top.error(Code::NoStages, "steps", top.key_span("steps"), "this workflow has no steps");
        top.report(finding.help("add `steps` with at least one step"));
    }
    let around = Around::new(document);
    step::list(items.unwrap_or_default(), &Place::default().child("steps"), &around, top.context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_ids_get_a_suggestion() {
        let check = |text: &str, valid: bool, near: Option<&str>| {
            assert_eq!((is_id(text), to_id(text).as_deref()), (valid, near), "{text}");
        };
        check("a", true, Some("a"));
        check("ship-it-2", true, Some("ship-it-2"));
        check("Bad_ID", false, Some("bad-id"));
        check("-a-", false, Some("a"));
        check("a--b", true, Some("a-b"));
        check("", false, None);
        check("é", false, None);
    }

    #[test]
    fn versions_have_three_numbers() {
        let check = |text: &str, near: Option<&str>| {
            assert_eq!((is_version(text), padded(text).as_deref()), (near.is_none(), near), "{text}");
        };
        check("1.0.0", None);
        check("1.0", Some("1.0.0"));
        check("2", Some("2.0.0"));
        assert!(!is_version("1.0.0-rc1") && !is_version("1..0") && padded("x").is_none());
    }
}
