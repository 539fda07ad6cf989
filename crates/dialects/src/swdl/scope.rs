//! Stages that contain stages: fan-outs, loops, branches, parallel branches, and blocks.

use super::stage::{Document, list, template_stage, unnamed_block};
use super::table::Table;
use crate::text::{Kind as NodeKind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Node as ExprNode, Template};
use windlass_ir::policy::Bindings;
use windlass_ir::workflow::{
    Bound, BranchFailure, Choose, Condition, ForEach, ItemFailure, Items, Parallel, Repeat, RepeatTest, Step,
};
use windlass_ir::{Code, Value};

/// The maximum number of rounds of a loop.
const ROUNDS_MAX: u64 = 1_000_000;

pub fn fan_out(stage: &Table<'_>, document: &Document<'_>) -> ForEach<Vec<Step>> {
    let Some(table) = stage.table("fan_out") else {
        stage.demand(
            "fan_out",
            "write the items and the stage for each: `fan_out: {source: …, stage_template: {…}}`",
        );
        return ForEach {
            items: no_items(stage),
            body: Vec::new(),
            concurrency: None,
            on_failure: ItemFailure::Halt,
            items_max: None,
            isolated: false,
            as_written: None,
        };
    };
    let source = table.bound("source");
    let matrix = table.has("matrix").then(|| matrix(&table));
    table.known(&["matrix"]);
    let items = match (source, matrix) {
        (Some(source), None) => Items::List(source),
        (None, Some(axes)) => Items::Matrix(axes),
        (Some(source), Some(_)) => {
            let span = table.key_span("matrix");
            let finding = table.error(
                Code::ConflictingKeys,
                "matrix",
                span,
                "`source` and `matrix` cannot both be given",
            );
            table.report(finding.help("keep one of the two"));
            Items::List(source)
        }
        (None, None) => {
            table.missing(
                "source",
                "write the items: `source: \"${{ stages.x.outputs.list }}\"`, or a `matrix` of lists",
            );
            no_items(&table)
        }
    };
    let each = ForEach {
        items,
        body: per_item(stage, &table, document),
        concurrency: table.count("concurrency"),
        on_failure: table
            .word("on_failure", &[("halt", ItemFailure::Halt), ("continue", ItemFailure::Continue)])
            .unwrap_or(ItemFailure::Halt),
        items_max: table.integer("max_items", 1, u64::MAX),
        isolated: table.boolean("isolated").unwrap_or(false),
        as_written: recorded(&table, "recorded_concurrency"),
    };
    finish_recorded(&table);
    each
}

/// The work for each item: one stage from a template, or a list of stages.
fn per_item(stage: &Table<'_>, table: &Table<'_>, document: &Document<'_>) -> Vec<Step> {
    let template = table.node("stage_template");
    if table.has("stages") {
        if template.is_some() {
            let span = table.key_span("stages");
            let message = "`stage_template` and `stages` cannot both be given";
            let finding = table.error(Code::ConflictingKeys, "stages", span, message);
            table.report(finding.help("keep one of the two"));
        }
        return body(table, "stages", document, true);
    }
    table.known(&["stages"]);
    if template.is_none() {
        table.missing("stage_template", "write the stage for each item, without `depends_on`");
    }
    template
        .and_then(|node| template_stage(table, "stage_template", node, stage, document))
        .into_iter()
        .collect()
}

pub fn parallel(stage: &Table<'_>, document: &Document<'_>) -> Parallel<Vec<Step>> {
    let words = [
        ("wait", BranchFailure::Wait),
        ("abort", BranchFailure::Abort),
        ("continue", BranchFailure::Continue),
    ];
    let Some(table) = stage.table("parallel") else {
        stage.demand("parallel", "write the branches: `parallel: {branches: […]}`");
        return Parallel { branches: Vec::new(), on_failure: BranchFailure::Wait };
    };
    let items = table.list("branches");
    if !table.context.foreign
        && items.is_none_or(<[Node]>::is_empty)
        && !(table.has("branches") && items.is_none())
    {
        no_stages(&table, "branches");
    }
    let branches = items.unwrap_or_default().iter().enumerate();
    let parallel = Parallel {
        branches: branches
            .filter_map(|(index, node)| branch_stage(&table, index, node, stage, document))
            .collect(),
        on_failure: table.word("on_failure", &words).unwrap_or(BranchFailure::Wait),
    };
    table.finish_all();
    parallel
}

/// A branch is a stage, with or without an id, or a list of stages.
fn branch_stage(
    table: &Table<'_>,
    index: usize,
    node: &Node,
    stage: &Table<'_>,
    document: &Document<'_>,
) -> Option<Step> {
    let key = format!("branches[{index}]");
    match &node.kind {
        NodeKind::List(items) => {
            let stages = list(items, &table.place.child(&key), document, table.context);
            Some(unnamed_block(stages, node.span, stage, document))
        }
        NodeKind::Map(_) | NodeKind::Scalar(_) => template_stage(table, &key, node, stage, document),
    }
}

/// Stages that count as one.
pub fn block(stage: &Table<'_>, document: &Document<'_>) -> Vec<Step> {
    body(stage, "stages", document, true)
}

fn no_items(table: &Table<'_>) -> Items {
    let template = Template::Constant(Value::list([]));
    Items::List(Bound { template, field: table.place.field("fan_out").into(), span: table.span })
}

/// The axes in alphabetical order, because the order of keys in a mapping has no meaning.
fn matrix(table: &Table<'_>) -> Bindings {
    let mut axes = table.bindings("matrix");
    axes.sort_keys();
    for (name, axis) in &mut axes {
        let is_list = match &axis.template {
            Template::List(_) | Template::Expression(_) | Template::Constant(Value::List(_)) => true,
            Template::Constant(_) | Template::Text(_) | Template::Map(_) => false,
        };
        if !is_list {
            let key = format!("matrix.{name}");
            let finding =
                table.error(Code::WrongShape, &key, axis.span, format!("axis `{name}` must be a list"));
            table.report(finding.help("write a list, or one expression that evaluates to a list"));
            axis.template = Template::Constant(Value::list([]));
        }
    }
    axes
}

pub fn repeat(stage: &Table<'_>, document: &Document<'_>) -> Repeat<Vec<Step>> {
    let Some(table) = stage.table("loop") else {
        stage.demand("loop", "write the stages and when to stop: `loop: {until: …, max: 5, stages: […]}`");
        return Repeat {
            test: RepeatTest::Until,
            condition: always(stage, "loop"),
            rounds_max: 1,
            delay: None,
            body: Vec::new(),
            as_written: None,
        };
    };
    let (test, condition) = repeat_test(&table);
    let rounds_max =
        table.integer("max", 1, if stage.context.foreign { u64::from(u32::MAX) } else { ROUNDS_MAX });
    table.demand("max", "limit the loop: `max: 10` rounds");
    let repeat = Repeat {
        test,
        condition,
        rounds_max: rounds_max.unwrap_or(1) as u32,
        delay: table.duration("delay"),
        body: body(&table, "stages", document, true),
        as_written: recorded(&table, "recorded_condition"),
    };
    finish_recorded(&table);
    repeat
}

/// A value that the results of another dialect contain as its author wrote it, such as the text of a condition.
fn recorded(table: &Table<'_>, key: &'static str) -> Option<Value> {
    table.context.foreign.then(|| table.node(key).map(Node::to_value)).flatten()
}

fn finish_recorded(table: &Table<'_>) {
    table.finish(&["recorded_condition", "recorded_concurrency"], |_| {
        ("without `config.semantics: speckit`".to_owned(), "remove it")
    });
}

fn repeat_test(table: &Table<'_>) -> (RepeatTest, Condition) {
    let tests =
        [("while", RepeatTest::While), ("until", RepeatTest::Until), ("do_while", RepeatTest::DoWhile)];
    let mut given = tests.into_iter().filter_map(|(key, test)| Some((key, test, table.condition(key)?)));
    let Some((first, test, condition)) = given.next() else {
        table.missing(
            "until",
            "state when to stop: `while` is evaluated before each round, `until` and `do_while` after it",
        );
        return (RepeatTest::Until, always(table, "until"));
    };
    for (key, _, _) in given {
        let message = format!("`{first}` and `{key}` cannot both be given");
        let finding = table.error(Code::ConflictingKeys, key, table.key_span(key), message);
        table.report(finding.help("keep one of the two"));
    }
    (test, condition)
}

fn always(table: &Table<'_>, key: &str) -> Condition {
    Condition {
        expr: Expr::new(ExprNode::Literal(Value::Bool(true)), table.span),
        field: table.place.field(key).into(),
    }
}

pub fn branch(stage: &Table<'_>, document: &Document<'_>) -> Choose<Vec<Step>> {
    let nothing = |table: &Table<'_>| Choose::If {
        condition: always(table, "if"),
        then: Vec::new(),
        otherwise: Vec::new(),
    };
    let Some(table) = stage.table("branch") else {
        stage.demand("branch", "write the condition and the stages: `branch: {if: …, then: […], else: […]}`");
        return nothing(stage);
    };
    let choose = match (table.has("if"), table.has("switch")) {
        (true, false) => if_then(&table, document),
        (false, true) => switch(&table, document),
        (both, _) => {
            if both {
                let span = table.key_span("switch");
                let finding = table.error(
                    Code::ConflictingKeys,
                    "switch",
                    span,
                    "`if` and `switch` cannot both be given",
                );
                table.report(finding.help("keep one of the two"));
            } else {
                table.missing(
                    "if",
                    "write the condition: `if` with `then` and `else`, or `switch` with `cases`",
                );
            }
            table.known(&["if", "then", "else", "switch", "cases", "default"]);
            nothing(&table)
        }
    };
    let keys = ["if", "then", "else", "switch", "cases", "default"];
    table.finish(&keys, |_| {
        (
            "in this form of a branch".into(),
            "`if` goes with `then` and `else`, `switch` with `cases` and `default`",
        )
    });
    choose
}

fn if_then(table: &Table<'_>, document: &Document<'_>) -> Choose<Vec<Step>> {
    let condition = table.condition("if").unwrap_or_else(|| always(table, "if"));
    Choose::If {
        condition,
        then: body(table, "then", document, true),
        otherwise: body(table, "else", document, false),
    }
}

/// The text form of a value selects one of several lists.
fn switch(table: &Table<'_>, document: &Document<'_>) -> Choose<Vec<Step>> {
    let value = table.bound("switch").map(as_expression(table));
    let cases = table.table("cases");
    let mut bodies: IndexMap<Arc<str>, Vec<Step>> = IndexMap::new();
    match &cases {
        Some(cases) => {
            for entry in &cases.map.entries {
                bodies.insert(entry.key.text.clone(), case(cases, &entry.key.text, &entry.value, document));
            }
        }
        None if !table.has("cases") => {
            table.missing("cases", "write a list of stages for each value: `cases: {a: […]}`");
        }
        None => {}
    }
    let default = body(table, "default", document, false);
    let nothing = || Bound {
        template: Template::Constant(Value::Null),
        field: table.place.field("switch").into(),
        span: table.span,
    };
    Choose::Switch { value: value.unwrap_or_else(nothing), cases: bodies, default }
}

/// `switch` is an expression, with or without braces.
fn as_expression<'t>(table: &'t Table<'_>) -> impl FnOnce(Bound) -> Bound + 't {
    |bound| match &bound.template {
        Template::Constant(Value::Text(_)) => match table.condition("switch") {
            Some(condition) => Bound { template: Template::Expression(condition.expr), ..bound },
            None => bound,
        },
        Template::Constant(_)
        | Template::Expression(_)
        | Template::Text(_)
        | Template::List(_)
        | Template::Map(_) => bound,
    }
}

fn case(cases: &Table<'_>, key: &str, node: &Node, document: &Document<'_>) -> Vec<Step> {
    match &node.kind {
        NodeKind::List(items) => list(items, &cases.place.child(key), document, cases.context),
        NodeKind::Scalar(_) | NodeKind::Map(_) => {
            let finding = cases.error(
                Code::WrongShape,
                key,
                node.span,
                format!("case `{key}` must be a list of stages"),
            );
            cases.report(finding.help("write a list of stages"));
            Vec::new()
        }
    }
}

/// A list of stages under a key; `needed` means that it must not be empty.
fn body(table: &Table<'_>, key: &'static str, document: &Document<'_>, needed: bool) -> Vec<Step> {
    let items = table.list(key);
    let empty = items.is_none_or(<[Node]>::is_empty);
    if needed && empty && !(table.has(key) && items.is_none()) && !table.context.foreign {
        no_stages(table, key);
    }
    list(items.unwrap_or_default(), &table.place.child(key), document, table.context)
}

fn no_stages(table: &Table<'_>, key: &str) {
    let message = format!("`{}` has no stages", table.place.field(key));
    let span = table.map.get(key).map_or(table.span.head(), |entry| entry.key.span);
    let finding = table.error(Code::NoStages, key, span, message);
    table.report(finding.help("add at least one stage"));
}
