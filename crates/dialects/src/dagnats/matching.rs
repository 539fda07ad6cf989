//! `match`: compares a field of an event with a value from the run.

use super::field::{check_path, demanded};
use super::flow;
use super::roster::Roster;
use crate::table::Table;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Namespace};
use windlass_ir::policy::Bindings;
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Spanned};

/// What the right side can read.
#[derive(Clone, Copy, Debug)]
pub enum Sees<'a> {
    /// Only the input of the run.
    Input,
    Steps(&'a Roster<'a>),
}

/// A path into the event and the required value.
pub fn read(table: &Table<'_>, sees: Sees<'_>) -> Bindings {
    let left = demanded(table, "left", "name the field of the event to compare");
    let left = left.filter(|left| check_path(table, "left", left, &left.value));
    table.demand("op", "write \"op\": \"eq\"");
    table.word("op", &[("eq", ())]);
    let right = demanded(table, "right", "name the value it must equal, such as \"input.id\"");
    let right = right.and_then(|right| reference(table, &right, sees));
    table.finish_all();
    let (Some(left), Some(right)) = (left, right) else { return IndexMap::new() };
    IndexMap::from([(left.value, flow::computed(right, table.place.field("right")))])
}

/// `input.PATH` or `step.ID.output.PATH`.
fn reference(table: &Table<'_>, right: &Spanned<Arc<str>>, sees: Sees<'_>) -> Option<Expr> {
    if let Some(path) = right.value.strip_prefix("input.") {
        let input = flow::read(Namespace::Inputs, right.span);
        return checked(table, right, path).map(|path| flow::along(input, path));
    }
    let (Some(rest), Sees::Steps(roster)) = (right.value.strip_prefix("step."), sees) else {
        malformed(table, right, sees);
        return None;
    };
    // Ids may contain dots, and even this word, so a few splits are tried.
    let parts =
        rest.match_indices(".output.").take(4).map(|(at, word)| (&rest[..at], &rest[at + word.len()..]));
    let known = parts.clone().find(|(id, _)| roster.card(id).is_some());
    match (known, parts.clone().next()) {
        (Some((id, path)), _) => {
            checked(table, right, path).map(|path| flow::along(flow::output(id, right.span), path))
        }
        (None, Some((id, _))) => {
            let finding = table
                .error(Code::UnknownStage, "right", right.span, format!("unknown step `{id}`"))
                .reference(id)
                .suggest(table.may_guess().then(|| nearest(id, roster.ids())).flatten());
            table.report(finding.help("name a step of this file"));
            None
        }
        (None, None) => {
            malformed(table, right, sees);
            None
        }
    }
}

fn checked<'p>(table: &Table<'_>, right: &Spanned<Arc<str>>, path: &'p str) -> Option<&'p str> {
    check_path(table, "right", right, path).then_some(path)
}

fn malformed(table: &Table<'_>, right: &Spanned<Arc<str>>, sees: Sees<'_>) {
    let message = format!("`{}` does not name the source of the value", right.value);
    let finding = table.error(Code::ExpressionSyntax, "right", right.span, message).reference(&*right.value);
    table.report(finding.help(match sees {
        Sees::Input => "start with `input.`, such as `input.order.id`",
        Sees::Steps(_) => "write `input.FIELD` or `step.ID.output.FIELD`",
    }));
}
