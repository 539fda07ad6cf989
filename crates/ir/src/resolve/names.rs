//! Checks every expression against the declarations of the file: unknown names, steps that do not come before, types
//! that do not match, comparisons that are never true. It also narrows reads of steps to step numbers.

use super::catalog::{Catalog, Role};
use super::fields::{Sight, Slot, Use};
use crate::contract::{Contract, Type};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::expr::{
    BinaryOp, Comparison, Expr, Function, FunctionRules, JOIN_HELP, Namespace, Node, Piece, Read, Semantics,
    StatusWords, StepId, Template, Visibility,
};
use crate::policy::Bindings;
use crate::produces::Produces;
use crate::source::Span;
use crate::suggest::{GUESSES_MAX, nearest};
use crate::value::Value;
use crate::workflow::{Bound, RunInput, Words, Workflow};
use indexmap::IndexMap;
use std::sync::Arc;

/// The field whose value is compared between starts.
const START_KEY: &str = "config.start_key";

/// The declarations of the file outside its steps.
#[derive(Debug)]
pub struct Declared {
    pub parameters: IndexMap<Arc<str>, Type>,
    pub secrets: Vec<Arc<str>>,
    pub env: Vec<Variable>,
    pub words: &'static Words,
    pub semantics: Semantics,
    /// Whether undeclared parameters are allowed.
    pub open: bool,
}

impl Declared {
    pub fn of(workflow: &Workflow) -> Self {
        Self {
            parameters: workflow.parameters.iter().map(|(name, p)| (name.clone(), p.ty.clone())).collect(),
            secrets: workflow.secrets.keys().cloned().collect(),
            env: variables(&workflow.env),
            words: workflow.words,
            semantics: workflow.semantics,
            open: workflow.input != RunInput::Declared,
        }
    }
}

/// Checks the expressions of one file, one field after another.
#[derive(Debug)]
pub struct Names<'a> {
    pub declared: &'a Declared,
    pub catalog: &'a Catalog,
    pub diagnostics: Vec<Diagnostic>,
    /// Reads whose step must come before the reader, per scope; checked together at the end.
    questions: Vec<Vec<Question>>,
}

/// Whether one step of a scope comes before another, and the problem to report if not.
#[derive(Debug)]
struct Question {
    target: u32,
    reader: u32,
    finding: Diagnostic,
}

/// A name in the environment, and whether its value contains a secret.
pub type Variable = (Arc<str>, bool);

/// The reader: its step (none for the run itself), its environment, and the rules of the field.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    pub step: Option<StepId>,
    pub env: &'a [Variable],
    /// Names that the same block defines; its values cannot read each other.
    pub own_env: &'a [Variable],
    pub place: Use<'a>,
    pub field: &'a str,
}

/// One link of a path, from the first word on.
enum Link {
    Name(Arc<str>, Span),
    Other,
}

impl<'a> Names<'a> {
    pub fn new(declared: &'a Declared, catalog: &'a Catalog) -> Self {
        let questions = catalog.scopes.iter().map(|_| Vec::new()).collect();
        Self { declared, catalog, diagnostics: Vec::new(), questions }
    }

    pub fn slot(&mut self, slot: Slot<'_>, reader: &Reader<'_>) {
        match slot {
            Slot::Condition(condition) => drop(self.expr(&mut condition.expr, reader, false)),
            Slot::Bound(bound) => self.bound(bound, reader),
        }
    }

    /// Answers the deferred queries and returns all problems.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        for (scope, asked) in self.catalog.scopes.iter().zip(std::mem::take(&mut self.questions)) {
            let pairs: Vec<(u32, u32)> =
                asked.iter().map(|question| (question.target, question.reader)).collect();
            let answers = scope.graph.are_ancestors(&pairs);
            let wrong: Vec<Question> =
                asked.into_iter().zip(answers).filter(|(_, is)| !is).map(|(asked, _)| asked).collect();
            let reversed: Vec<(u32, u32)> =
                wrong.iter().map(|question| (question.reader, question.target)).collect();
            let backwards = scope.graph.are_ancestors(&reversed);
            self.diagnostics.extend(wrong.into_iter().zip(backwards).map(|(question, backwards)| {
                match backwards && question.finding.is_error() {
                    true => question
                        .finding
                        .help("it comes after the reader; read a step that comes before, or swap the two"),
                    false => question.finding,
                }
            }));
        }
        self.diagnostics
    }

    fn bound(&mut self, bound: &mut Bound, reader: &Reader<'_>) {
        let found = self.template(&mut bound.template, reader);
        let Some(expected) = reader.place.expects else { return };
        let fits = match &bound.template {
            Template::Constant(value) => {
                expected.accepts(&found)
                    || Contract::new(expected).is_ok_and(|contract| contract.check(value).is_ok())
            }
            Template::Expression(_) | Template::Text(_) | Template::List(_) | Template::Map(_) => {
                expected.accepts(&found)
            }
        };
        if !fits {
            let message = format!("expected {expected} here, found {found}");
            let help = "change one of the two types; otherwise the run can fail here";
            self.report(Diagnostic::warning(Code::TypeMismatch, message).help(help), bound.span, reader);
        }
    }

    fn template(&mut self, template: &mut Template, reader: &Reader<'_>) -> Type {
        match template {
            Template::Constant(value) => Type::of(value),
            Template::Expression(expr) => self.expr(expr, reader, true),
            Template::Text(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Text(_) => {}
                        Piece::Expression(expr) => drop(self.expr(expr, reader, true)),
                    }
                }
                Type::String
            }
            Template::List(items) => {
                let types: Vec<Type> = items.iter_mut().map(|item| self.template(item, reader)).collect();
                Type::Array(Box::new(common(&types)))
            }
            Template::Map(entries) => {
                for (key, entry) in entries {
                    let field = format!("{}.{key}", reader.field);
                    self.template(entry, &Reader { field: &field, ..*reader });
                }
                Type::Object
            }
        }
    }

    /// Checks an expression and returns its type. `whole` means that its value is passed on unchanged.
    fn expr(&mut self, expr: &mut Expr, reader: &Reader<'_>, whole: bool) -> Type {
        let span = expr.span;
        match &mut expr.node {
            Node::Literal(value) => Type::of(value),
            Node::Read(Read::Now) => {
                self.now(span, reader);
                Type::String
            }
            Node::Read(_) | Node::Member { .. } | Node::Index { .. } => self.path(expr, reader, whole),
            Node::List(items) => {
                let types: Vec<Type> = items.iter_mut().map(|item| self.expr(item, reader, false)).collect();
                Type::Array(Box::new(common(&types)))
            }
            Node::Call { function: Function::Raw, args } if whole && reader.place.command => {
                args.iter_mut().for_each(|arg| drop(self.expr(arg, reader, false)));
                Type::String
            }
            Node::Call { function, args } => {
                let types: Vec<Type> = args.iter_mut().map(|arg| self.expr(arg, reader, false)).collect();
                self.call(*function, &types, span, reader)
            }
            Node::Query { of, .. } => {
                self.expr(of, reader, false);
                Type::Any
            }
            Node::Not(inner) => {
                self.expr(inner, reader, false);
                Type::Boolean
            }
            Node::Binary { op, left, right } => {
                let types = [self.expr(left, reader, false), self.expr(right, reader, false)];
                self.status_word(*op, left, right, reader);
                self.binary(*op, &types, right, span, reader)
            }
            Node::Choice { when, then, otherwise } => {
                self.expr(when, reader, false);
                common(&[self.expr(then, reader, false), self.expr(otherwise, reader, false)])
            }
        }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        types: &[Type; 2],
        second: &Expr,
        span: Span,
        reader: &Reader<'_>,
    ) -> Type {
        let [left, right] = types;
        if self.declared.semantics.comparison != Comparison::Strict && !op.is_arithmetic() {
            return Type::Boolean;
        }
        match op {
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Remainder => self.arithmetic(op, types, second, span, reader),
            BinaryOp::And | BinaryOp::Or => common(types),
            BinaryOp::Equal | BinaryOp::NotEqual => {
                if !left.overlaps(right) {
                    let verdict = if op == BinaryOp::Equal { "never true" } else { "always true" };
                    let message = format!("comparing {left} with {right} is {verdict}");
                    let help = "comparisons do not convert values; compare values of the same type";
                    self.report(Diagnostic::warning(Code::NeverTrue, message).help(help), span, reader);
                }
                Type::Boolean
            }
            BinaryOp::Less | BinaryOp::LessOrEqual | BinaryOp::Greater | BinaryOp::GreaterOrEqual => {
                let ordered = |ty: &Type| ty.overlaps(&Type::Number) || ty.overlaps(&Type::String);
                if !left.overlaps(right) || !ordered(left) || !ordered(right) {
                    let message = format!("`{}` cannot compare {left} with {right}", op.symbol());
                    let help = "only two numbers or two strings can be ordered";
                    self.report(Diagnostic::error(Code::ExpressionType, message).help(help), span, reader);
                }
                Type::Boolean
            }
        }
    }

    /// The time is recorded by a run, so there is none where no run decides.
    fn now(&mut self, span: Span, reader: &Reader<'_>) {
        let (message, help) = match reader.place.sight {
            Sight::Trigger => {
                ("`now()` cannot be read by a trigger", "read the time of the firing: `item.time`")
            }
            Sight::Start if reader.field == START_KEY => {
                ("`now()` would make every key different", "build the key from parameters")
            }
            _ => return,
        };
        self.report(Diagnostic::error(Code::NotAvailableHere, message).help(help), span, reader);
    }

    /// Both sides must be numbers, and a divisor must not be the number 0.
    fn arithmetic(
        &mut self,
        op: BinaryOp,
        types: &[Type; 2],
        right: &Expr,
        span: Span,
        reader: &Reader<'_>,
    ) -> Type {
        let divides = matches!(op, BinaryOp::Divide | BinaryOp::Remainder);
        if types.iter().any(|ty| !ty.overlaps(&Type::Number)) {
            let [left, right] = types;
            let message = format!("`{}` needs two numbers, not {left} and {right}", op.symbol());
            let joins = op == BinaryOp::Add && types.contains(&Type::String);
            let help = if joins { JOIN_HELP } else { "calculate with numbers only" };
            self.report(Diagnostic::error(Code::ExpressionType, message).help(help), span, reader);
        } else if divides && matches!(right.node, Node::Literal(Value::Int(0))) {
            let finding = Diagnostic::error(Code::ExpressionValue, "division by zero");
            self.report(finding.help("divide by another number"), right.span, reader);
        }
        let integers = types.iter().all(|ty| *ty == Type::Integer) && op != BinaryOp::Divide;
        if integers { Type::Integer } else { Type::Number }
    }

    /// `stages.x.status == 'completed'` is never true if no status is spelled that way.
    fn status_word(&mut self, op: BinaryOp, left: &Expr, right: &Expr, reader: &Reader<'_>) {
        let sides = [(left, right), (right, left)];
        let word = sides.into_iter().find_map(|(status, word)| match (&status.node, &word.node) {
            (Node::Read(Read::StepStatus(_)), Node::Literal(Value::Text(text))) => {
                Some(("status", self.declared.semantics.status.all(), text.clone(), word.span))
            }
            (Node::Read(Read::StepOutcome(_)), Node::Literal(Value::Text(text))) => {
                Some(("outcome", StatusWords::OUTCOMES.to_vec(), text.clone(), word.span))
            }
            _ => None,
        });
        let Some((facet, words, text, span)) =
            word.filter(|(_, words, text, _)| op.is_equality() && !words.contains(&&**text))
        else {
            return;
        };
        let suggest = match &*text {
            "completed" | "succeeded" | "success" | "done" => {
                words.iter().copied().find(|word| matches!(*word, "success" | "completed"))
            }
            "failure" | "error" | "timed_out" => Some("failed"),
            "canceled" => Some("cancelled"),
            other => nearest(other, words.iter().copied()),
        };
        let message = format!("no {} ever has the {facet} `{text}`", self.declared.words.step);
        let finding = Diagnostic::warning(Code::NeverTrue, message)
            .reference(&*text)
            .suggest(suggest)
            .help(format!("use one of {}", words.join(", ")));
        self.report(finding, span, reader);
    }

    fn call(&mut self, function: Function, types: &[Type], span: Span, reader: &Reader<'_>) -> Type {
        let first = types.first().unwrap_or(&Type::Any);
        if let Some(message) = refusal(function, first, self.declared.semantics.functions) {
            let help = "pass a value of a type that the function accepts";
            self.report(Diagnostic::error(Code::ExpressionType, message).help(help), span, reader);
        }
        match function {
            Function::Length => Type::Integer,
            Function::Contains | Function::StartsWith | Function::EndsWith | Function::In => Type::Boolean,
            Function::ToJson
            | Function::Lower
            | Function::Upper
            | Function::Join
            | Function::Text
            | Function::Trim
            | Function::ShellQuote => Type::String,
            Function::Format | Function::Replace => Type::String,
            Function::Range => Type::Array(Box::new(Type::Integer)),
            Function::Object => Type::Object,
            Function::AsList | Function::Map => Type::Array(Box::new(Type::Any)),
            Function::Split | Function::Keys => Type::Array(Box::new(Type::String)),
            Function::Values => Type::Array(Box::new(Type::Any)),
            Function::First | Function::Last => item_of(first),
            Function::FromJson | Function::Flatten | Function::Min | Function::Max | Function::Fail => {
                Type::Any
            }
            Function::Default => common(types),
            Function::Raw => {
                let message = "`raw()` is only allowed around a whole expression inside a shell command";
                let help = "put it around the whole expression of a command, or remove it";
                self.report(Diagnostic::error(Code::NotAvailableHere, message).help(help), span, reader);
                first.clone()
            }
        }
    }

    /// A path such as `stages.plan.outputs.spec[0]`: the first word determines the meaning of the rest.
    fn path(&mut self, expr: &mut Expr, reader: &Reader<'_>, whole: bool) -> Type {
        let mut links = Vec::new();
        let base = self.links(expr, &mut links, reader);
        links.reverse();
        match base {
            Base::Value(ty) => links.iter().fold(ty, |ty, link| self.member(&ty, link, reader)),
            Base::Namespace(namespace, span) => self.namespace(namespace, span, &links, expr, reader, whole),
        }
    }

    /// Collects the links of a path from the outside in and checks the expressions in brackets.
    fn links(&mut self, expr: &mut Expr, links: &mut Vec<Link>, reader: &Reader<'_>) -> Base {
        let span = expr.span;
        match &mut expr.node {
            Node::Member { of, name } => {
                links.push(Link::Name(name.clone(), span));
                self.links(of, links, reader)
            }
            Node::Index { of, at } => {
                links.push(match &at.node {
                    Node::Literal(Value::Text(name)) => Link::Name(name.clone(), at.span),
                    _ => Link::Other,
                });
                self.expr(at, reader, false);
                self.links(of, links, reader)
            }
            Node::Read(Read::Namespace(namespace)) => Base::Namespace(*namespace, span),
            Node::Literal(_)
            | Node::List(_)
            | Node::Read(_)
            | Node::Call { .. }
            | Node::Query { .. }
            | Node::Not(_)
            | Node::Binary { .. }
            | Node::Choice { .. } => Base::Value(self.expr(expr, reader, false)),
        }
    }

    fn member(&mut self, ty: &Type, link: &Link, reader: &Reader<'_>) -> Type {
        match (ty, link) {
            (Type::Array(item), Link::Other) => (**item).clone(),
            (Type::Any | Type::Schema(_) | Type::Object, _) => Type::Any,
            (_, Link::Name(name, span)) => {
                let message = format!("a value of type {ty} has no member `{name}`, so this is always null");
                let help = match &**name {
                    "length" | "size" | "count" => "use `length(…)` around the value",
                    _ => "read a member of an object, or an element of a list with `[0]`",
                };
                self.report(Diagnostic::warning(Code::UnknownField, message).help(help), *span, reader);
                Type::Any
            }
            (_, Link::Other) => Type::Any,
        }
    }

    fn namespace(
        &mut self,
        namespace: Namespace,
        span: Span,
        links: &[Link],
        expr: &mut Expr,
        reader: &Reader<'_>,
        whole: bool,
    ) -> Type {
        if let Some(finding) = self.absent(namespace, reader) {
            self.report(finding, span, reader);
            return Type::Any;
        }
        let word = (self.declared.words.namespace)(namespace);
        let rest = links.get(1..).unwrap_or_default();
        let deeper =
            |names: &mut Self, ty: Type| rest.iter().fold(ty, |ty, link| names.member(&ty, link, reader));
        match namespace {
            Namespace::Steps => self.step_path(links, expr, reader),
            Namespace::Inputs => {
                let ty = self.parameter(links.first(), reader);
                deeper(self, ty)
            }
            Namespace::Context => {
                self.context(links.first(), span, reader);
                Type::Any
            }
            Namespace::Env => {
                self.environment(links.first(), span, whole, reader);
                deeper(self, Type::String)
            }
            Namespace::Secrets => {
                self.secret(links.first(), span, whole, reader);
                deeper(self, Type::String)
            }
            Namespace::Run => {
                self.field("run", &["id", "started_at"], links.first(), reader);
                deeper(self, if links.is_empty() { Type::Object } else { Type::String })
            }
            Namespace::Workflow => {
                self.field("workflow", &["id", "name", "version", "dir"], links.first(), reader);
                deeper(self, if links.is_empty() { Type::Object } else { Type::String })
            }
            Namespace::Item => {
                links.iter().fold(self.item_type(reader), |ty, link| self.member(&ty, link, reader))
            }
            Namespace::Loops => self.loop_path(links, expr, reader),
            Namespace::Failure => {
                self.field(word, &["step", "class", "message", "detail"], links.first(), reader);
                Type::Any
            }
            Namespace::Undo => {
                self.field(word, &["step", "output", "uncertain"], links.first(), reader);
                Type::Any
            }
            Namespace::Host => deeper(self, Type::Any),
            Namespace::Index | Namespace::Attempt => Type::Integer,
            Namespace::ExitCode | Namespace::FanIn | Namespace::Root => Type::Any,
            Namespace::Class | Namespace::Message => Type::String,
        }
    }

    /// Why a first word has no meaning in this field, if so.
    fn absent(&self, namespace: Namespace, reader: &Reader<'_>) -> Option<Diagnostic> {
        let sight = reader.place.sight;
        let (stage, word) = (self.declared.words.step, (self.declared.words.namespace)(namespace));
        let here =
            |message: String, help: &str| Some(Diagnostic::error(Code::NotAvailableHere, message).help(help));
        match namespace {
            Namespace::Item if sight == Sight::Trigger => None,
            _ if sight == Sight::Trigger => here(
                format!("`{word}` cannot be read by a trigger"),
                "a trigger can only read its payload: `item`",
            ),
            Namespace::Steps if sight == Sight::Start => here(
                format!("`{word}` cannot be read here because no {stage} has run yet"),
                "this is evaluated once when the run starts; read parameters, run, workflow or context",
            ),
            Namespace::Env if sight == Sight::Start && !reader.place.own_env => here(
                format!("`{word}` cannot be read in the environment"),
                "build the value from parameters, run, workflow or context",
            ),
            Namespace::Item if !self.is_inside(reader, |role| matches!(role, Role::Item(_))) => here(
                format!("`{word}` has a value only inside the template of a fan-out"),
                match self.declared.semantics.visibility {
                    Visibility::Scoped => {
                        "move this into `fan_out.stage_template`, or read an output instead"
                    }
                    Visibility::Flat => {
                        "read it in a step that runs once per item, or read an output instead"
                    }
                },
            ),
            Namespace::Index if sight == Sight::Round => None,
            Namespace::Index
                if !self.is_inside(reader, |role| matches!(role, Role::Item(_) | Role::Round)) =>
            {
                here(
                    format!("`{word}` has a value only inside a fan-out or a loop"),
                    "move this into a `fan_out.stage_template` or into the stages of a loop",
                )
            }
            Namespace::Failure if !self.takes_over(reader) && !self.is_done_again(reader) => here(
                format!(
                    "`{word}` has a value only in a {stage} that handles a failure, undoes another, or runs \
                        again after a rejection"
                ),
                "move this into what `goto`, `compensate` or `back_to` names",
            ),
            Namespace::Undo if !self.takes_over(reader) => here(
                format!("`{word}` has a value only in a {stage} that handles a failure or undoes another"),
                "move this into what `goto` or `compensate` names",
            ),
            Namespace::FanIn | Namespace::Root => {
                here(format!("`{word}` cannot be read in a workflow"), "name the value you need")
            }
            Namespace::Class | Namespace::ExitCode | Namespace::Message | Namespace::Attempt
                if sight != Sight::Retry =>
            {
                here(
                    format!("`{word}` has a value only in `retry.when`"),
                    "put the text in quotes if you meant a string",
                )
            }
            _ => None,
        }
    }

    /// Whether the reader, or a step around it, runs only to handle a failure or to undo another step.
    fn takes_over(&self, reader: &Reader<'_>) -> bool {
        self.outwards(reader).any(|here| {
            self.catalog.takes_over.contains(&here) || self.catalog.scope_of(here).role == Role::After
        })
    }

    /// Whether a gate can repeat the reader, or a step around it.
    fn is_done_again(&self, reader: &Reader<'_>) -> bool {
        self.outwards(reader).any(|here| self.catalog.done_again.contains(&here))
    }

    /// The reading step and the steps around it.
    fn outwards(&self, reader: &Reader<'_>) -> impl Iterator<Item = StepId> {
        std::iter::successors(reader.step, |here| self.catalog.scope_of(*here).parent)
    }

    /// `loops.<id>.item` or `loops.<id>.index`: a fan-out or loop that contains the reader.
    fn loop_path(&mut self, links: &[Link], expr: &mut Expr, reader: &Reader<'_>) -> Type {
        let (Some(Link::Name(id, span)), Some(Link::Name(facet, _))) = (links.first(), links.get(1)) else {
            let finding = Diagnostic::error(Code::NotAvailableHere, "`loops` cannot be read as a whole");
            self.report(finding.help("read `item` or `index` of one of them, by its id"), expr.span, reader);
            return Type::Any;
        };
        let around = std::iter::successors(reader.step, |here| self.catalog.scope_of(*here).parent);
        let inside = |here: &StepId| matches!(self.catalog.scope_of(*here).role, Role::Item(_) | Role::Round);
        let mut loops = around.filter(inside).filter_map(|here| self.catalog.scope_of(here).parent);
        let found = loops.find(|step| self.catalog.card(self.catalog.card(*step).named).id == *id);
        let read = match (found, &**facet) {
            (Some(step), "item") => Read::LoopItem(step),
            (Some(step), "index") => Read::LoopIndex(step),
            (_, _) => {
                let message = format!("there is no enclosing loop `{id}` with `{facet}`");
                let finding = Diagnostic::error(Code::NotAvailableHere, message).reference(&**id);
                self.report(
                    finding.help("name an enclosing fan-out or loop, and `item` or `index`"),
                    *span,
                    reader,
                );
                return Type::Any;
            }
        };
        narrow(expr, links.len() - 2, read);
        Type::Any
    }

    /// Whether the reader is in a scope of this role, at any depth.
    fn is_inside(&self, reader: &Reader<'_>, wanted: impl Fn(&Role) -> bool) -> bool {
        self.scopes_around(reader).any(wanted)
    }

    fn scopes_around(&self, reader: &Reader<'_>) -> impl Iterator<Item = &Role> {
        let scope = |step: StepId| self.catalog.scope_of(step);
        std::iter::successors(reader.step.map(scope), move |inner| inner.parent.map(scope))
            .map(|scope| &scope.role)
    }

    fn item_type(&self, reader: &Reader<'_>) -> Type {
        let nearest = self.scopes_around(reader).find_map(|role| match role {
            Role::Item(ty) => Some(ty.clone()),
            Role::Body | Role::Round | Role::After => None,
        });
        nearest.unwrap_or(Type::Any)
    }

    fn parameter(&mut self, link: Option<&Link>, reader: &Reader<'_>) -> Type {
        let Some(Link::Name(name, span)) = link else { return Type::Any };
        if let Some(ty) = self.declared.parameters.get(name) {
            return ty.clone();
        }
        if self.declared.open {
            return Type::Any;
        }
        let word = self.declared.words.parameter;
        let may_guess = self.diagnostics.len() < GUESSES_MAX;
        let known = self.declared.parameters.keys().map(|key| &**key);
        let suggest = may_guess.then(|| nearest(name, known)).flatten().map(str::to_owned);
        let hyphen =
            name.split_once('-').filter(|(before, _)| self.declared.parameters.contains_key(*before));
        let finding = Diagnostic::error(Code::UnknownParameter, format!("unknown {word} `{name}`"));
        let finding = match (hyphen, &suggest) {
            (Some((before, after)), _) => finding.help(format!(
                "hyphens are part of names; to subtract, write spaces on both sides: `{before} - {after}`"
            )),
            (None, Some(_)) => finding,
            (None, None) => {
                let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
                finding.help(format!("declare it as {article} {word}, or read one that is declared"))
            }
        };
        self.report(finding.reference(&**name).suggest(suggest), *span, reader);
        Type::Any
    }

    fn context(&mut self, link: Option<&Link>, span: Span, reader: &Reader<'_>) {
        let name = match link {
            Some(Link::Name(name, _)) => format!("context.{name}"),
            Some(Link::Other) | None => "context".to_owned(),
        };
        let message = format!("`{name}` is not bound, so this is null");
        let help = "pass the value as a parameter, or make sure that the host of this workflow provides it";
        self.report(
            Diagnostic::warning(Code::UnboundContext, message).reference(name).help(help),
            span,
            reader,
        );
    }

    fn environment(&mut self, link: Option<&Link>, whole_span: Span, whole: bool, reader: &Reader<'_>) {
        let Some(Link::Name(name, span)) = link else { return };
        if let Some((_, sealed)) = reader.env.iter().rev().find(|(known, _)| known == name) {
            if *sealed && !(whole && reader.place.secrets) {
                self.exposed(whole_span, reader);
            }
            return;
        }
        if reader.own_env.iter().any(|(own, _)| own == name) {
            let message =
                format!("`{name}` is defined in the same `env`, whose values cannot read each other");
            let help = "build the value from the same parts, or define one of them in an outer `env`";
            return self.report(
                Diagnostic::error(Code::UnknownEnv, message).reference(&**name).help(help),
                *span,
                reader,
            );
        }
        let suggest = nearest(name, reader.env.iter().map(|(known, _)| &**known)).map(str::to_owned);
        let finding = Diagnostic::error(
            Code::UnknownEnv,
            format!(
                "unknown environment variable `{name}`: no \
            enclosing `env` defines it"
            ),
        )
        .reference(&**name)
        .suggest(suggest);
        let finding = match finding.help.is_empty() {
            true => finding.help("declare it under `config.env` or in the `env` of the stage"),
            false => finding,
        };
        self.report(finding, *span, reader);
    }

    fn secret(&mut self, link: Option<&Link>, span: Span, whole: bool, reader: &Reader<'_>) {
        if let Some(Link::Name(name, span)) = link
            && !self.declared.secrets.contains(name)
        {
            let suggest =
                nearest(name, self.declared.secrets.iter().map(|known| &**known)).map(str::to_owned);
            let finding = Diagnostic::error(Code::UnknownSecret, format!("unknown secret `{name}`"))
                .reference(&**name)
                .suggest(suggest);
            let finding = match finding.help.is_empty() {
                true => finding.help("list it under `config.secrets`"),
                false => finding,
            };
            self.report(finding, *span, reader);
        }
        if link.is_none() || !(whole && reader.place.secrets) {
            self.exposed(span, reader);
        }
    }

    fn exposed(&mut self, span: Span, reader: &Reader<'_>) {
        let message =
            "a secret cannot be used here because it would end up in text, in a log or in a decision";
        let help = "pass it on as it is, in `env`, in `stdin`, in `args` of a tool, or in url, query, headers, \
            body or auth of `http`";
        self.report(Diagnostic::error(Code::SecretExposed, message).help(help), span, reader);
    }

    fn field(&mut self, of: &str, known: &[&str], link: Option<&Link>, reader: &Reader<'_>) {
        let Some(Link::Name(name, span)) = link else { return };
        if known.contains(&&**name) {
            return;
        }
        let finding = Diagnostic::error(Code::UnknownField, format!("`{of}` has no field `{name}`"))
            .reference(&**name)
            .suggest(nearest(name, known.iter().copied()))
            .help(format!("use one of {}", known.join(", ")));
        self.report(finding, *span, reader);
    }

    /// The id that the author probably meant, as long as the search stays cheap.
    fn guess(&self, id: &str, reader: &Reader<'_>) -> Option<&'a str> {
        let catalog = self.catalog;
        (self.diagnostics.len() < GUESSES_MAX).then(|| catalog.suggest(id, reader.step)).flatten()
    }

    /// `stages.<id>.outputs…` or `stages.<id>.status`: the step must exist and come before, and the output must be
    /// declared.
    fn step_path(&mut self, links: &[Link], expr: &mut Expr, reader: &Reader<'_>) -> Type {
        let words = self.declared.words;
        let flat = self.declared.semantics.visibility == Visibility::Flat;
        let (stage, plural) = (words.step, (words.namespace)(Namespace::Steps));
        let Some(Link::Name(id, id_span)) = links.first() else {
            if flat {
                return Type::Any;
            }
            let message = format!("`{plural}` cannot be read as a whole");
            let help = format!(
                "name one {stage}: `{plural}.<id>.outputs`, `{plural}.<id>.status` or `{plural}.<id>.outcome`"
            );
            self.report(Diagnostic::error(Code::NotAvailableHere, message).help(help), expr.span, reader);
            return Type::Any;
        };
        let Some(step) = self.catalog.find(id, reader.step) else {
            if flat && self.is_occurrence(id, reader) {
                return Type::Any;
            }
            let finding = Diagnostic::error(Code::UnknownStage, format!("unknown {stage} `{id}`"))
                .reference(&**id)
                .suggest(self.guess(id, reader));
            let finding = match finding.help.is_empty() {
                true => finding.help(format!("add a {stage} with that id, or read one that exists")),
                false => finding,
            };
            self.report(finding, *id_span, reader);
            return Type::Any;
        };
        if flat {
            self.may_see(step, *id_span, reader);
        } else {
            self.must_see(step, *id_span, reader);
        }
        let rest = links.get(2..).unwrap_or_default();
        let (read, ty) = match links.get(1) {
            Some(Link::Name(word, _)) if &**word == "status" => (Read::StepStatus(step), Type::String),
            Some(Link::Name(word, _)) if &**word == "outcome" && !flat => {
                (Read::StepOutcome(step), Type::String)
            }
            Some(Link::Name(word, _)) if &**word == "outputs" => {
                let ty = if flat { Type::Any } else { self.outputs_type(step, rest, reader) };
                (Read::StepOutputs(step), ty)
            }
            _ if flat => {
                narrow(expr, links.len() - 1, Read::StepRecord(step));
                return Type::Any;
            }
            other => {
                self.no_such_facet(id, other, expr.span, reader);
                return Type::Any;
            }
        };
        narrow(expr, rest.len(), read);
        match read {
            Read::StepStatus(_) | Read::StepOutcome(_) => {
                rest.iter().fold(ty, |ty, link| self.member(&ty, link, reader))
            }
            Read::StepOutputs(_)
            | Read::Namespace(_)
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_)
            | Read::Now => ty,
        }
    }

    /// `loop:step:2` names one round of a step inside a loop, which exists only in a run.
    fn is_occurrence(&self, id: &str, reader: &Reader<'_>) -> bool {
        let (loop_id, rest) = id.split_once(':').unwrap_or_default();
        let numbered = rest.rsplit(':').next().is_some_and(|last| last.parse::<u32>().is_ok());
        numbered && self.catalog.find(loop_id, reader.step).is_some()
    }

    fn no_such_facet(&mut self, id: &str, link: Option<&Link>, span: Span, reader: &Reader<'_>) {
        let plural = (self.declared.words.namespace)(Namespace::Steps);
        let help = format!("read `{plural}.{id}.outputs`, `{plural}.{id}.status` or `{plural}.{id}.outcome`");
        let (finding, span) = match link {
            Some(Link::Name(word, span)) => {
                let known = ["outputs", "status", "outcome"];
                let message = format!("a {} has no field `{word}`", self.declared.words.step);
                let finding = Diagnostic::error(Code::UnknownField, message).reference(&**word);
                (finding.suggest(nearest(word, known)), *span)
            }
            Some(Link::Other) | None => {
                let message = format!("`{plural}.{id}` cannot be read as a whole");
                (Diagnostic::error(Code::NotAvailableHere, message), span)
            }
        };
        self.report(finding.help(help), span, reader);
    }

    /// The type of `outputs` and the links that follow it.
    fn outputs_type(&mut self, step: StepId, links: &[Link], reader: &Reader<'_>) -> Type {
        let card = self.catalog.card(step);
        let (fields, open) = match &card.produces {
            Produces::List => {
                let list = Type::Array(Box::new(Type::Object));
                return links.iter().fold(list, |ty, link| self.list_member(&card.id, &ty, link, reader));
            }
            Produces::Fields { fields, open } => (fields, *open),
        };
        let Some(first) = links.first() else { return Type::Object };
        let rest = &links[1..];
        let Link::Name(name, span) = first else { return Type::Any };
        match fields.get(name) {
            Some(ty) => rest.iter().fold(ty.clone(), |ty, link| self.member(&ty, link, reader)),
            None if open => Type::Any,
            None => {
                let word = self.declared.words.step;
                let message = format!("{word} `{}` has no output `{name}`", card.id);
                let names: Vec<&str> = fields.keys().map(|key| &**key).collect();
                let finding = Diagnostic::error(Code::UnknownOutput, message)
                    .reference(&**name)
                    .suggest(nearest(name, names.iter().copied()));
                let finding = match (finding.help.is_empty(), names.is_empty()) {
                    (true, true) => {
                        finding.help(format!("declare it under `outputs` of {word} `{}`", card.id))
                    }
                    (true, false) => finding.help(format!(
                        "use one of its outputs: {}{}",
                        names.join(", "),
                        if card.adds_outputs { "; or declare it under `outputs`" } else { "" }
                    )),
                    (false, _) => finding,
                };
                self.report(finding.label(card.span, format!("this {word}")), *span, reader);
                Type::Any
            }
        }
    }

    /// The outputs of a fan-out are a list: first an element, then its fields.
    fn list_member(&mut self, id: &str, ty: &Type, link: &Link, reader: &Reader<'_>) -> Type {
        match (ty, link) {
            (Type::Array(_), Link::Name(name, span)) => {
                let message =
                    format!("the outputs of fan-out `{id}` are a list, which has no member `{name}`");
                let help = format!("read one element: `outputs[0].{name}`");
                let finding = Diagnostic::error(Code::UnknownOutput, message).reference(&**name).help(help);
                self.report(finding, *span, reader);
                Type::Any
            }
            (Type::Array(_), Link::Other) => Type::Any,
            (_, _) => Type::Any,
        }
    }

    /// In dialects where every step can be read, a later step has no value yet, unless a loop repeats the reader.
    fn may_see(&mut self, target: StepId, span: Span, reader: &Reader<'_>) {
        let Some(reading) = reader.step else { return };
        let own_body = matches!(reader.place.sight, Sight::Body | Sight::Round);
        let looped = self.is_inside(reader, |role| matches!(role, Role::Item(_) | Role::Round));
        if target < reading || looped || (own_body && target > reading) {
            return;
        }
        let name = |step: StepId| &self.catalog.card(self.catalog.card(step).named).id;
        let (id, me) = (name(target), name(reading));
        let message = format!("`{me}` reads `{id}`, which has not run yet, so this is null");
        let finding = Diagnostic::warning(Code::NotAnAncestor, message).reference(&**id);
        let help = format!("read a {} that comes before it", self.declared.words.step);
        let mut finding = finding.help(help);
        let (card, around) = (self.catalog.card(target), self.catalog.beside(target, reading));
        let Some(around) = around.filter(|around| *around != target) else {
            return self.report(finding, span, reader);
        };
        // A step further down in the file may still come before in the order of execution.
        self.place(&mut finding, span, reader);
        let reader = self.catalog.card(around).place;
        self.questions[card.scope].push(Question { target: card.place, reader, finding });
    }

    /// Requires that `target` is always finished when the reader is evaluated.
    fn must_see(&mut self, target: StepId, span: Span, reader: &Reader<'_>) {
        let catalog = self.catalog;
        let card = catalog.card(target);
        let Some(reading) = reader.step else {
            if catalog.scopes[card.scope].parent.is_some() {
                self.report(self.hidden(target, None), span, reader);
            }
            return;
        };
        if matches!(reader.place.sight, Sight::Body | Sight::Round)
            && catalog.scopes[card.scope].parent == Some(reading)
        {
            return;
        }
        let mut here = reading;
        let mut after = false;
        loop {
            let around = catalog.card(here);
            if here == target && !after {
                let finding = self.not_before(target, here, reader);
                return self.report(finding, span, reader);
            }
            if here == target {
                return;
            }
            if around.scope == card.scope {
                let direct = catalog.scope_of(here).graph.needs(around.place as usize).contains(&card.place);
                if !direct {
                    let mut finding = self.not_before(target, here, reader);
                    self.place(&mut finding, span, reader);
                    self.questions[card.scope].push(Question {
                        target: card.place,
                        reader: around.place,
                        finding,
                    });
                }
                return;
            }
            let scope = catalog.scope_of(here);
            after = scope.role == Role::After;
            match scope.parent {
                Some(parent) => here = parent,
                None => return self.report(self.hidden(target, Some(reading)), span, reader),
            }
        }
    }

    /// `here` is the reader, or the step around it in the same list as the target.
    fn not_before(&self, target: StepId, here: StepId, reader: &Reader<'_>) -> Diagnostic {
        let words = self.declared.words;
        let name = |step: StepId| &self.catalog.card(self.catalog.card(step).named).id;
        let (id, beside) = (name(target), name(here));
        let me = reader.step.map_or(beside, name);
        let (message, help) = if me == id {
            let help = format!("use the outputs of a {} that comes before it", words.step);
            (format!("{} `{id}` uses its own output", words.step), help)
        } else if here == target {
            let help =
                format!("use the outputs of a {} that comes before `{id}`, or of one inside it", words.step);
            (
                format!(
                    "{} `{me}` uses an output of `{id}`, the {} that contains it",
                    words.step, words.step
                ),
                help,
            )
        } else {
            let help =
                format!("add `{id}` to `{}` of `{beside}`, or of a {} before it", words.needs, words.step);
            (format!("{} `{me}` uses an output of `{id}` but does not depend on it", words.step), help)
        };
        Diagnostic::error(Code::NotAnAncestor, message).reference(&**id).help(help)
    }

    /// The target is inside a scope that does not contain the reader.
    fn hidden(&self, target: StepId, reader: Option<StepId>) -> Diagnostic {
        let words = self.declared.words;
        let card = self.catalog.card(target);
        let parent = self.catalog.scopes[card.scope].parent;
        let around = parent.map_or("", |parent| &*self.catalog.card(self.catalog.card(parent).named).id);
        let message = format!("`{}` is inside `{around}` and cannot be read from here", card.id);
        let outwards = std::iter::successors(reader, |here| self.catalog.scope_of(*here).parent);
        let same = parent.is_some() && outwards.into_iter().any(|here| Some(here) == parent);
        let help = match same {
            true => format!(
                "it is in another part of `{around}`, which may not have run; read a step that comes before \
                    `{around}`"
            ),
            false => format!(
                "declare an output of {} `{around}` (and of each one around it) whose `source` reads it, and \
                    read that",
                words.step
            ),
        };
        Diagnostic::error(Code::NotAnAncestor, message).reference(&*card.id).help(help)
    }

    fn place(&self, finding: &mut Diagnostic, span: Span, reader: &Reader<'_>) {
        finding.span = Some(span);
        finding.field = Some(reader.field.to_owned());
        finding.step = reader.step.map(|step| {
            let named = self.catalog.card(step).named;
            self.catalog.card(named).id.to_string()
        });
    }

    /// In dialects where every step can be read, missing values are null, so this is only a warning.
    fn report(&mut self, mut finding: Diagnostic, span: Span, reader: &Reader<'_>) {
        if self.declared.semantics.visibility == Visibility::Flat && finding.severity == Severity::Error {
            finding.severity = Severity::Warning;
        }
        self.place(&mut finding, span, reader);
        self.diagnostics.push(finding);
    }
}

/// The names in a block of the environment.
pub fn variables(env: &Bindings) -> Vec<Variable> {
    let holds_secret = |expr: &&Expr| {
        let mut found = false;
        expr.walk(&mut |part| found |= part.node == Node::Read(Read::Namespace(Namespace::Secrets)));
        found
    };
    env.iter()
        .map(|(name, bound)| (name.clone(), bound.template.expressions().iter().any(holds_secret)))
        .collect()
}

/// The beginning of a path.
enum Base {
    Namespace(Namespace, Span),
    Value(Type),
}

/// Replaces the part of a path that names the step, `outer` links below the whole, with the read itself.
fn narrow(expr: &mut Expr, outer: usize, read: Read) {
    let mut here = expr;
    for _ in 0..outer {
        here = match &mut here.node {
            Node::Member { of, .. } | Node::Index { of, .. } => of,
            Node::Literal(_)
            | Node::List(_)
            | Node::Read(_)
            | Node::Call { .. }
            | Node::Query { .. }
            | Node::Not(_)
            | Node::Binary { .. }
            | Node::Choice { .. } => return,
        };
    }
    here.node = Node::Read(read);
}

/// Why a function always fails for a first argument of this type.
fn refusal(function: Function, first: &Type, rules: FunctionRules) -> Option<String> {
    let takes: &[Type] = match function {
        Function::Contains | Function::Join if rules == FunctionRules::Python => return None,
        Function::Length if rules == FunctionRules::Python => {
            &[Type::String, Type::Array(Box::new(Type::Any))]
        }
        Function::Length | Function::Contains => {
            &[Type::String, Type::Object, Type::Array(Box::new(Type::Any))]
        }
        Function::FromJson
        | Function::StartsWith
        | Function::EndsWith
        | Function::Lower
        | Function::Upper => &[Type::String],
        Function::Split | Function::Trim | Function::Format | Function::Replace => &[Type::String],
        Function::Range => &[Type::Integer],
        Function::Join | Function::First | Function::Last | Function::Flatten => {
            &[Type::Array(Box::new(Type::Any))]
        }
        Function::Keys | Function::Values => &[Type::Object],
        Function::ToJson
        | Function::Default
        | Function::Min
        | Function::Max
        | Function::Map
        | Function::In
        | Function::Text
        | Function::AsList
        | Function::Object
        | Function::Fail
        | Function::Raw
        | Function::ShellQuote => {
            return None;
        }
    };
    let fits = takes.iter().any(|ty| ty.overlaps(first));
    (!fits).then(|| {
        let words: Vec<String> = takes
            .iter()
            .map(|ty| if let Type::Array(_) = ty { "a list".into() } else { ty.to_string() })
            .collect();
        format!("`{}()` expects {}, not {first}", function.name(), words.join(" or "))
    })
}

fn item_of(ty: &Type) -> Type {
    match ty {
        Type::Array(item) => (**item).clone(),
        _ => Type::Any,
    }
}

/// The type that all of these share, or any.
fn common(types: &[Type]) -> Type {
    let mut types = types.iter();
    let Some(first) = types.next() else { return Type::Any };
    if types.all(|ty| ty == first) { first.clone() } else { Type::Any }
}
