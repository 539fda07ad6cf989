//! Reads test cases next to a workflow, `NAME.test.yaml`: the inputs of a run, its mock responses and the expected
//! result. Expectations stay nodes of the file, so that differences have a location and actual results can be written
//! there.

use crate::Text;
use crate::table::{Context, Keys, Place, Table, is_null, wrong_shape};
use crate::text::{Kind, Node};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_ir::diagnostic::sort_by_place;
use windlass_ir::{Code, Diagnostic, Sources, Span, Spanned, Value};

/// The suffix of test case files.
pub const ENDINGS: [&str; 2] = [".test.yaml", ".test.yml"];

/// A file of test cases.
#[derive(Debug)]
pub struct Cases {
    pub sources: Sources,
    /// The workflow, relative to the folder of the file. By default, the file with the same name.
    pub workflow: Option<Spanned<Arc<str>>>,
    pub cases: Vec<Case>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Debug)]
pub struct Case {
    pub name: Arc<str>,
    pub span: Span,
    pub inputs: Option<(Value, Span)>,
    pub script: Option<Script>,
    pub env: Vec<(Arc<str>, Arc<str>)>,
    pub by: Option<Arc<str>>,
    /// The time at which the run starts.
    pub now: Option<Spanned<Arc<str>>>,
    pub runs_commands: bool,
    /// Whether time passes at gates that receive no decision.
    pub waits: bool,
    pub expect: Option<Node>,
}

/// The mock responses.
#[derive(Debug)]
pub enum Script {
    File(Spanned<Arc<str>>),
    Here(Value, Span),
}

pub fn read_cases(file: Text) -> Cases {
    let mut sources = Sources::default();
    let mut diagnostics = Vec::new();
    let root = crate::read(file, &mut sources, &mut diagnostics);
    let (workflow, cases) = match &root {
        None => (None, Vec::new()),
        Some(root) => {
            let context = Context::new(&sources, Keys::Exact, "");
            let read = read_file(root, &context);
            diagnostics.extend(context.diagnostics.into_inner());
            read
        }
    };
    sort_by_place(&mut diagnostics);
    Cases { sources, workflow, cases, diagnostics }
}

fn read_file<'a>(root: &'a Node, context: &'a Context<'a>) -> (Option<Spanned<Arc<str>>>, Vec<Case>) {
    let Some(table) = Table::of(context, root, Place::default()) else { return (None, Vec::new()) };
    let workflow = table.text("workflow");
    let items = table.list("cases");
    table.demand("cases", "write the cases as a list: `cases: [{name: …, expect: {…}}]`");
    if items.is_some_and(<[Node]>::is_empty) {
        let span = table.key_span("cases");
        let finding = table.error(Code::MissingField, "cases", span, "this list has no cases");
        table.report(finding.help("add one: `- name: …`"));
    }
    let items = items.unwrap_or_default();
    let place = |number| Place { step: None, prefix: format!("cases[{number}].") };
    let cases = items.iter().enumerate();
    let cases: Vec<Case> =
        cases.filter_map(|(number, item)| read_case(&Table::of(context, item, place(number))?)).collect();
    let mut seen = HashSet::new();
    for case in cases.iter().filter(|case| !seen.insert(case.name.clone())) {
        let message = format!("duplicate case name `{}`", case.name);
        table.report(
            table.error(Code::DuplicateKey, "cases", case.span.head(), message).help("rename one of them"),
        );
    }
    table.finish_all();
    (workflow, cases)
}

fn read_case(table: &Table<'_>) -> Option<Case> {
    let name = table.prose("name");
    table.demand("name", "describe the case in a few words");
    let inputs = table.node("inputs").map(|node| (node.to_value(), node.span));
    let script = table.node("script").and_then(|node| match &node.kind {
        Kind::Scalar(scalar) => Some(Script::File(Spanned::new(scalar.text.clone(), node.span))),
        Kind::Map(_) => Some(Script::Here(node.to_value(), node.span)),
        Kind::List(_) => {
            table.report(
                wrong_shape(node, "mock responses or the name of a file with them")
                    .field(table.place.field("script")),
            );
            None
        }
    });
    let env = table.table("env").map(|env| {
        let entries = env.map.entries.iter();
        entries.filter_map(|entry| Some((entry.key.text.clone(), env.entry_text(entry)?))).collect()
    });
    let (by, now) = (table.plain_text("by"), table.text("now"));
    let runs_commands = table.boolean("run_commands").unwrap_or(false);
    let waits = table.boolean("wait").unwrap_or(false);
    let expect = table.node("expect");
    if let Some(expect) = table.table("expect") {
        check_expect(&expect);
    }
    table.finish_all();
    Some(Case {
        name: name?,
        span: table.span,
        inputs,
        script,
        env: env.unwrap_or_default(),
        by,
        now,
        runs_commands,
        waits,
        expect: expect.cloned(),
    })
}

fn check_expect(table: &Table<'_>) {
    table.text("status");
    table.boolean("has_failures");
    table.node("outputs");
    check_error(table);
    table.texts("waiting_on");
    if let Some(steps) = table.table("steps") {
        for entry in &steps.map.entries {
            match &entry.value.kind {
                Kind::Scalar(_) if !is_null(&entry.value) => {}
                Kind::Scalar(_) | Kind::List(_) => {
                    let wanted = "a status, or a mapping with expectations for the step";
                    steps.report(wrong_shape(&entry.value, wanted).field(steps.place.field(&entry.key.text)));
                }
                Kind::Map(_) => {
                    let place = steps.place.child(&entry.key.text);
                    Table::of(steps.context, &entry.value, place).iter().for_each(check_step);
                }
            }
        }
    }
    table.finish_all();
}

fn check_step(table: &Table<'_>) {
    table.text("status");
    table.integer("attempts", 0, u32::MAX.into());
    let is_number = |item: &&Node| matches!(item.to_value(), Value::Int(_) | Value::Float(_));
    for item in table.list("delays_seconds").unwrap_or_default().iter().filter(|item| !is_number(item)) {
        table.report(wrong_shape(item, "a number of seconds").field(table.place.field("delays_seconds")));
    }
    table.node("input");
    table.node("output");
    check_error(table);
    table.text("skipped_because");
    table.finish_all();
}

fn check_error(table: &Table<'_>) {
    if let Some(error) = table.table("error") {
        for key in ["code", "message", "step", "field"] {
            error.text(key);
        }
        error.finish_all();
    }
}
