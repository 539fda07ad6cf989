//! Idempotency keys: text with references in a stricter form than elsewhere, checked before a run.

use super::inventory::Inventory;
use super::step::Around;
use super::table::{
    Context, FAILS, Place, StepOf, Table, located, strict_text, text_template, whole, with_consequence,
};
use super::template::{CLOSE, Locate, OPEN};
use crate::text::Scalar;
use std::sync::Arc;
use windlass_ir::expr::{Piece, Template};
use windlass_ir::policy::{Idempotency, IdempotencyScope};
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::Bound;
use windlass_ir::{Code, Diagnostic, Duration, Span, Value};

/// A key as written. Its names are resolved where it is used, because a key on a loop may read the item of that loop.
#[derive(Clone, Debug)]
pub struct KeyText<'a> {
    text: &'a Scalar,
    span: Span,
    place: Place,
    scope: IdempotencyScope,
    ttl: Option<Duration>,
}

/// `home` tells which table contains a key.
pub fn read<'a, 't>(home: impl Fn(&str) -> &'t Table<'a>, inventory: &Inventory) -> Option<KeyText<'a>>
where
    'a: 't,
{
    let table = home("idempotency_key");
    let words = [("workflow", IdempotencyScope::Run), ("global", IdempotencyScope::Global)];
    let scope = home("idempotency_scope").word("idempotency_scope", &words);
    let ttl = whole(home("idempotency_ttl_secs"), "idempotency_ttl_secs", 0);
    if !table.has("idempotency_key") {
        for key in ["idempotency_scope", "idempotency_ttl_secs"] {
            note_useless(home(key), key);
        }
    }
    let (text, span) = strict_text(table, "idempotency_key")?;
    let findings = located(text, span, table.context, |locate| check(&text.text, locate, inventory));
    let is_wrong = !findings.is_empty();
    for finding in findings {
        table.report(finding.step_of(&table.place).field(table.place.field("idempotency_key")));
    }
    (!is_wrong).then(|| KeyText {
        text,
        span,
        place: table.place.clone(),
        scope: scope.unwrap_or(IdempotencyScope::Run),
        ttl: ttl.filter(|secs| *secs > 0).map(Duration::from_secs),
    })
}

fn note_useless(table: &Table<'_>, key: &str) {
    if table.has(key) {
        let message = format!("`{key}` has no effect without `idempotency_key`");
        let finding = table.warning(Code::IgnoredKey, key, table.key_span(key), message);
        table.report(finding.reference(key).help("add an `idempotency_key`, or remove it"));
    }
}

/// Every reference must have the form `name.name…` and start with a word that is known somewhere in the file.
fn check(text: &str, locate: Locate<'_>, inventory: &Inventory) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(OPEN).map(|found| rest + found) {
        let body = start + OPEN.len();
        let Some(close) = text[body..].find(CLOSE).map(|found| body + found) else {
            let finding = Diagnostic::error(Code::ExpressionSyntax, "`{{` has no closing `}}`");
            findings.push(finding.at(locate(start..body)).help("close it with `}}`"));
            break;
        };
        rest = close + CLOSE.len();
        findings
            .extend(problem(text[body..close].trim(), inventory).map(|found| found.at(locate(start..rest))));
    }
    findings
}

fn problem(path: &str, inventory: &Inventory) -> Option<Diagnostic> {
    if path.is_empty() {
        let finding = Diagnostic::error(Code::ExpressionSyntax, "this reference is empty");
        return Some(finding.help("write a path such as `{{inputs.scene}}`"));
    }
    if !path.split('.').all(is_word) {
        let message = format!("`{path}` is not allowed in an idempotency key");
        let finding = Diagnostic::error(Code::ExpressionSyntax, message).reference(path);
        let help = "write names of letters, digits and underscores separated by dots; brackets and dashes are \
            not allowed here";
        return Some(finding.help(help));
    }
    let root = path.split('.').next().unwrap_or(path);
    let words = ["inputs", "steps", "item", "env"];
    let known = words.contains(&root) || inventory.input_words.contains(root) || inventory.has_step(root);
    (!known).then(|| {
        let names = words.into_iter().chain(inventory.parameters.keys().map(|name| &**name));
        let finding = Diagnostic::error(Code::UnknownNamespace, format!("unknown name `{root}` in an \
            idempotency key"));
        let help = "start with `inputs`, `steps`, `item` (also for a loop with another item name) or `env`, or \
            name an input or a step";
        finding.reference(root).suggest(nearest(root, names)).help(help)
    })
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl KeyText<'_> {
    /// The key of the step that declares it.
    pub fn bind(&self, around: &Around<'_>, context: &Context<'_>) -> Idempotency {
        self.finish(self.template(around, context))
    }

    /// The key of a step inside the one that declares it. The id is appended because steps with the same key share
    /// one result.
    pub fn bind_for(&self, id: &Arc<str>, around: &Around<'_>, context: &Context<'_>) -> Idempotency {
        let ending = format!("/{id}");
        self.finish(match self.template(around, context) {
            Template::Constant(Value::Text(text)) => {
                Template::Constant(Value::text(format!("{text}{ending}")))
            }
            Template::Expression(expr) => {
                Template::Text(vec![Piece::Expression(expr), Piece::Text(ending.into())])
            }
            Template::Text(pieces) => {
                Template::Text(pieces.into_iter().chain([Piece::Text(ending.into())]).collect())
            }
            other @ (Template::Constant(_) | Template::List(_) | Template::Map(_)) => other,
        })
    }

    fn template(&self, around: &Around<'_>, context: &Context<'_>) -> Template {
        let mut binder = around.binder(self.place.field("idempotency_key"));
        let template = text_template(self.text, self.span, &mut binder, context);
        let findings = with_consequence(binder.findings, FAILS).into_iter();
        let findings = findings.map(|finding| finding.step_of(&self.place));
        context.diagnostics.borrow_mut().extend(findings);
        template
    }

    fn finish(&self, template: Template) -> Idempotency {
        let field = self.place.field("idempotency_key").into();
        Idempotency { key: Bound { template, field, span: self.span }, scope: self.scope, ttl: self.ttl }
    }
}
