//! The six kinds of steps: how the kind is determined, and the keys of each.

use super::bind::Loop;
use super::path::parse_query;
use super::policy::Written;
use super::step::{Around, chain, listed_step, plain, side_by_side};
use super::table::{
    FAILS, Place, StepOf, Table, located, plain_text, strict_text, template, text_template, whole,
    with_consequence,
};
use crate::text::{Kind as NodeKind, Node};
use std::convert::Infallible;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Function, Node as ExprNode, Template};
use windlass_ir::workflow::{
    Action, Bound, BranchFailure, Choose, Condition, ForEach, Gate, ItemFailure, Items, Kind, OnTimeout,
    Parallel, Step, Tool,
};
use windlass_ir::{Code, Diagnostic, Spanned, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    Tool,
    ToolRemote,
    Foreach,
    Parallel,
    Approve,
    Branch,
}

const KINDS: [(&str, StepKind); 6] = [
    ("tool", StepKind::Tool),
    ("tool_remote", StepKind::ToolRemote),
    ("foreach", StepKind::Foreach),
    ("parallel", StepKind::Parallel),
    ("approve", StepKind::Approve),
    ("branch", StepKind::Branch),
];

/// Every key that has a meaning on some kind of step.
pub const KEYS: [&str; 13] = [
    "tool",
    "args",
    "dcc",
    "items",
    "as",
    "steps",
    "concurrency",
    "branches",
    "on_any_fail",
    "prompt",
    "on",
    "then",
    "else",
];

const TOOL_NAME_MAX: usize = 64;

impl StepKind {
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("tool", |(word, _)| word)
    }
}

/// The written kind, or `tool` for a step with a tool and no other kind. If the kind is missing, it is inferred from
/// the other keys after reporting it, so that the rest can be read.
pub fn kind_of(table: &Table<'_>) -> Option<StepKind> {
    if table.has("kind") {
        return table.word("kind", &KINDS);
    }
    table.known(&["kind"]);
    if table.has("tool") && !table.has("dcc") {
        return Some(StepKind::Tool);
    }
    let telling = [
        ("dcc", StepKind::ToolRemote),
        ("items", StepKind::Foreach),
        ("foreach", StepKind::Foreach),
        ("branches", StepKind::Parallel),
        ("prompt", StepKind::Approve),
        ("on", StepKind::Branch),
    ];
    let guess = telling.into_iter().find(|(key, _)| table.has(key)).map(|(_, kind)| kind);
    table.missing(
        "kind",
        match guess {
            Some(kind) => format!("add `kind: {}`", kind.word()),
            None => {
                "name a `tool`, or set the kind: `kind: foreach`, `parallel`, `approve` or `branch`".into()
            }
        },
    );
    guess
}

pub fn read<'a>(
    kind: StepKind,
    table: &Table<'a>,
    id: Option<&Arc<str>>,
    written: &Written<'a>,
    around: &Around<'a>,
    inside: &Around<'a>,
) -> Kind<Vec<Step>> {
    match kind {
        StepKind::Tool => Kind::Action(Action::Tool(tool(table, None, around))),
        StepKind::ToolRemote => {
            table.demand("dcc", "name the host that provides the tool: `dcc: unreal`");
            let server = plain_text(table, "dcc");
            Kind::Action(Action::Tool(tool(table, server, around)))
        }
        StepKind::Foreach => Kind::ForEach(foreach(table, id, around, inside)),
        StepKind::Parallel => Kind::Parallel(parallel(table, inside)),
        StepKind::Approve => Kind::Gate(approve(table, written, around)),
        StepKind::Branch => Kind::Choose(branch(table, around, inside)),
    }
}

fn tool(table: &Table<'_>, server: Option<Arc<str>>, around: &Around<'_>) -> Tool {
    table.demand("tool", "name the tool: `tool: maya_animation__export_fbx`");
    let name = tool_name(table).unwrap_or_else(|| "".into());
    let args = table.node("args").map(|node| {
        let mut binder = around.binder(table.place.field("args"));
        let template = template(node, &mut binder, table.context);
        report(table, with_consequence(binder.findings, FAILS));
        Bound { template, field: table.place.field("args").into(), span: node.span }
    });
    Tool { tool: name, server, args }
}

/// Letters, digits, `_` and `-`; older names have such parts separated by dots.
fn tool_name(table: &Table<'_>) -> Option<Arc<str>> {
    let (scalar, span) = strict_text(table, "tool")?;
    let name = &scalar.text;
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    if name.len() > TOOL_NAME_MAX || !name.split('.').all(is_part) {
        let message = match name.len() > TOOL_NAME_MAX {
            true => format!("the tool name is too long ({} characters)", name.len()),
            false => format!("invalid tool name `{name}`"),
        };
        let help = "use 1 to 64 letters, digits, `_` and `-`; references are not evaluated here";
        table.report(table.error(Code::BadName, "tool", span, message).reference(&**name).help(help));
    } else if name.contains('.') {
        let message = format!("newer servers have no tool names with dots, such as `{name}`");
        let finding = table.warning(Code::BadName, "tool", span, message).reference(&**name);
        let suggest = name.replace('.', "_");
        table.report(finding.suggest(Some(suggest)).help("use the name that the server lists"));
    }
    Some(name.clone())
}

fn foreach<'a>(
    table: &Table<'a>,
    id: Option<&Arc<str>>,
    around: &Around<'a>,
    inside: &Around<'a>,
) -> ForEach<Vec<Step>> {
    table.demand("items", "set the items to iterate over: `items: $.inputs.files`");
    let items = path(table, "items", around).map_or_else(
        || Template::Constant(Value::list([])),
        |items| {
            let span = items.span;
            Template::Expression(Expr::new(
                ExprNode::Call { function: Function::AsList, args: vec![items] },
                span,
            ))
        },
    );
    let span = table.lookup("items").map_or(table.span, |entry| entry.value.span);
    let items = Items::List(Bound { template: items, field: table.place.field("items").into(), span });
    let mut inside = inside.clone();
    inside.loops.push(Loop { step: id.cloned(), name: element_name(table) });
    ForEach {
        items,
        body: chain(
            table.list("steps").unwrap_or_default(),
            &table.place.child("steps"),
            &inside,
            table.context,
        ),
        concurrency: Some(concurrency(table)),
        on_failure: ItemFailure::Halt,
        items_max: None,
        isolated: false,
        as_written: None,
    }
}

fn concurrency(table: &Table<'_>) -> u32 {
    let count = whole(table, "concurrency", 1).unwrap_or(1);
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn element_name(table: &Table<'_>) -> Arc<str> {
    let name = plain_text(table, "as").unwrap_or_else(|| "item".into());
    if matches!(&*name, "inputs" | "steps") {
        let span = table.lookup("as").map_or(table.span, |entry| entry.value.span);
        let message =
            format!("inside this loop `{name}` is the item, so the {name} of the run cannot be read there");
        let finding = table.warning(Code::ShadowedBinding, "as", span, message).reference(&*name);
        table.report(finding.help("choose another name for the item"));
    }
    name
}

fn parallel<'a>(table: &Table<'a>, inside: &Around<'a>) -> Parallel<Vec<Step>> {
    let steps = table.list("steps").unwrap_or_default();
    let branches = table.list("branches").unwrap_or_default();
    if table.has("steps") && table.has("branches") {
        let span = table.key_span("branches");
        let message = "`steps` and `branches` both define the branches";
        let finding = table.error(Code::ConflictingKeys, "branches", span, message);
        table.report(finding.label(table.key_span("steps"), "also given here").help("keep one of the two"));
    }
    let words = [("abort", BranchFailure::Abort), ("continue", BranchFailure::Continue)];
    let mut all = side_by_side(steps, &table.place.child("steps"), inside, table.context);
    let listed = branches.iter().enumerate();
    all.extend(listed.filter_map(|(index, node)| one_branch(table, index, node, inside)));
    Parallel { branches: all, on_failure: table.word("on_any_fail", &words).unwrap_or(BranchFailure::Wait) }
}

/// A step, or a list of steps that run one after the other.
fn one_branch<'a>(table: &Table<'a>, index: usize, node: &'a Node, inside: &Around<'a>) -> Option<Step> {
    let NodeKind::List(items) = &node.kind else {
        return listed_step(node, index, &table.place.child("branches"), inside, table.context);
    };
    let prefix = format!("{}[{index}].", table.place.field("branches"));
    let place = Place { step: table.place.step.clone(), prefix };
    let mut steps = chain(items, &place, inside, table.context);
    if steps.len() == 1 {
        return steps.pop();
    }
    let id = table.place.step.clone().unwrap_or_else(|| "branches".into());
    Some(plain(Spanned::new(id, node.span.head()), true, "branch", Kind::Block(steps), node.span))
}

fn approve(table: &Table<'_>, written: &Written<'_>, around: &Around<'_>) -> Gate {
    let message =
        strict_text(table, "prompt").filter(|(prompt, _)| !prompt.text.is_empty()).map(|(prompt, span)| {
            let mut binder = around.binder(table.place.field("prompt"));
            let template = text_template(prompt, span, &mut binder, table.context);
            report(table, with_consequence(binder.findings, "it is left empty"));
            Bound { template: without_failures(template), field: table.place.field("prompt").into(), span }
        });
    Gate { message, timeout: written.timeout, on_timeout: OnTimeout::Reject, ..Gate::plain() }
}

/// An approval is requested even if part of its text cannot be filled in.
fn without_failures(template: Template) -> Template {
    let Ok(template) = template.map_expressions::<Infallible>(&mut |expr| {
        let fails = matches!(expr.node, ExprNode::Call { function: Function::Fail, .. });
        Ok(if fails { Expr::new(ExprNode::Literal(Value::Null), expr.span) } else { expr })
    });
    template
}

fn branch<'a>(table: &Table<'a>, around: &Around<'a>, inside: &Around<'a>) -> Choose<Vec<Step>> {
    table.demand("on", "name the deciding value: `on: $.steps.check.output.passed`");
    let expr = path(table, "on", around)
        .unwrap_or_else(|| Expr::new(ExprNode::Literal(Value::Bool(true)), table.span.head()));
    let arm = |key: &'static str| {
        chain(table.list(key).unwrap_or_default(), &table.place.child(key), inside, table.context)
    };
    Choose::If {
        condition: Condition { expr, field: table.place.field("on").into() },
        then: arm("then"),
        otherwise: arm("else"),
    }
}

/// A JSONPath, resolved against the names in scope.
fn path(table: &Table<'_>, key: &'static str, around: &Around<'_>) -> Option<Expr> {
    let (scalar, span) = table.scalar(key, "a JSONPath")?;
    let query = match parse_query(&scalar.text, span) {
        Ok(query) => query,
        Err(finding) => {
            report(table, vec![finding.field(table.place.field(key))]);
            return None;
        }
    };
    let mut binder = around.binder(table.place.field(key));
    let expr = located(scalar, span, table.context, |locate| binder.path(&query, locate));
    report(table, binder.findings);
    Some(expr)
}

fn report(table: &Table<'_>, findings: Vec<Diagnostic>) {
    findings.into_iter().for_each(|finding| table.report(finding.step_of(&table.place)));
}

/// Keys of other languages and their names here.
pub fn misnamed(table: &Table<'_>, kind: StepKind) {
    const HOMES: [(&str, Option<StepKind>, &str); 9] = [
        ("body", Some(StepKind::Foreach), "steps"),
        ("do", Some(StepKind::Foreach), "steps"),
        ("foreach", Some(StepKind::Foreach), "items"),
        ("in", Some(StepKind::Foreach), "items"),
        ("if", Some(StepKind::Branch), "on"),
        ("condition", Some(StepKind::Branch), "on"),
        ("message", Some(StepKind::Approve), "prompt"),
        ("timeout", None, "timeout_secs"),
        ("retries", None, "retry"),
    ];
    let is_here = |of: Option<StepKind>| of.is_none_or(|of| of == kind);
    for (key, _, home) in HOMES.into_iter().filter(|(key, of, _)| is_here(*of) && table.has(key)) {
        let message = format!("unknown key `{key}`");
        let finding = table.warning(Code::UnknownKey, key, table.key_span(key), message);
        table.report(finding.reference(key).suggest(Some(home)));
        table.known(&[key]);
    }
}
