//! Reads the common keys of steps: ids, order and failure handling; and dispatches on the type.

use super::document::Document;
use super::field::{self, as_text, present, what};
use super::{assistant, call, fan, gate, literal, project, scope, shell};
use crate::table::{Context, Place, StepOf, Table};
use crate::text::{Kind as NodeKind, Mapping, Node};
use indexmap::IndexMap;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::policy::{OnFailure, Policy};
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{Action, Ask, BuiltinKind, Choose, Kind, Recorded, RepeatTest, Step};
use windlass_ir::{Code, Diagnostic, Duration, Span, Spanned, Value};

/// The surroundings of a step: the file, the ids so far, and whether a fan-out repeats it.
#[derive(Debug)]
pub struct Around<'a> {
    pub document: &'a Document,
    /// In the order of the file, with locations. The template of a fan-out has its own set.
    ids: RefCell<IndexMap<Arc<str>, Span>>,
    pub in_fan_out: bool,
    /// The nesting depth of the current list.
    depth: Cell<usize>,
}

/// The maximum nesting of lists of steps; reading and running are recursive.
const DEPTH_MAX: usize = 64;

impl<'a> Around<'a> {
    pub fn new(document: &'a Document) -> Self {
        Self { document, ids: RefCell::default(), in_fan_out: false, depth: Cell::new(0) }
    }

    fn inside_fan_out(&self) -> Self {
        let depth = Cell::new(self.depth.get() + 1);
        Self { document: self.document, ids: RefCell::default(), in_fan_out: true, depth }
    }

    pub fn knows(&self, id: &str) -> bool {
        self.ids.borrow().contains_key(id)
    }

    /// The id so far that is closest to a mistyped one, other than `own`.
    pub fn suggest(&self, id: &str, own: &str) -> Option<String> {
        let ids = self.ids.borrow();
        nearest(id, ids.keys().map(|known| &**known).filter(|known| *known != own)).map(str::to_owned)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepType {
    Command,
    Prompt,
    Shell,
    Gate,
    If,
    Switch,
    While,
    DoWhile,
    FanOut,
    FanIn,
    Init,
    Slot,
    Github,
    Workflow,
}

const TYPES: [(&str, StepType); 14] = [
    ("command", StepType::Command),
    ("prompt", StepType::Prompt),
    ("shell", StepType::Shell),
    ("gate", StepType::Gate),
    ("if", StepType::If),
    ("switch", StepType::Switch),
    ("while", StepType::While),
    ("do-while", StepType::DoWhile),
    ("fan-out", StepType::FanOut),
    ("fan-in", StepType::FanIn),
    ("init", StepType::Init),
    ("slot", StepType::Slot),
    ("github", StepType::Github),
    ("workflow", StepType::Workflow),
];

pub fn is_step_type(word: &str) -> bool {
    TYPES.iter().any(|(known, _)| *known == word)
}

/// The type that Spec Kit has for a kind of step, if it has one.
pub fn type_of<B>(kind: &Kind<B>) -> Option<&'static str> {
    let ty = match kind {
        Kind::Action(Action::Assistant(assistant)) => match assistant.ask {
            Ask::Command { .. } => StepType::Command,
            Ask::Prompt(_) => StepType::Prompt,
        },
        Kind::Action(Action::Shell(_)) => StepType::Shell,
        Kind::Action(Action::Call(_)) => StepType::Workflow,
        Kind::Action(Action::Builtin(builtin)) => match builtin.what {
            BuiltinKind::InitProject => StepType::Init,
            BuiltinKind::GithubAddLabel => StepType::Github,
            BuiltinKind::Respond => return None,
        },
        Kind::Gate(_) => StepType::Gate,
        Kind::Assign(_) => StepType::FanIn,
        Kind::Slot(_) => StepType::Slot,
        Kind::Choose(Choose::If { .. }) => StepType::If,
        Kind::Choose(Choose::Switch { .. }) => StepType::Switch,
        Kind::Repeat(repeat) => match repeat.test {
            RepeatTest::While => StepType::While,
            RepeatTest::Until | RepeatTest::DoWhile => StepType::DoWhile,
        },
        Kind::ForEach(_) => StepType::FanOut,
        Kind::Action(Action::Agent(_) | Action::Tool(_) | Action::Task(_) | Action::Http(_))
        | Kind::Wait(_)
        | Kind::Finish(_)
        | Kind::Block(_)
        | Kind::Parallel(_)
        | Kind::Guard(_) => return None,
    };
    Some(word(ty))
}

/// The work of a step, and its timeout.
pub type Work = (Kind<Vec<Step>>, Option<Duration>);

/// The steps of a list, each after the previous one. `place` is the path of the list, with a trailing dot.
pub fn list<'a>(
    items: &'a [Node],
    place: &Place,
    around: &Around<'_>,
    context: &'a Context<'a>,
) -> Vec<Step> {
    if around.depth.get() >= DEPTH_MAX {
        context.diagnostics.borrow_mut().extend(items.first().map(|first| too_deep(first.span, place)));
        return Vec::new();
    }
    around.depth.set(around.depth.get() + 1);
    let mut steps: Vec<Step> = Vec::with_capacity(items.len());
    let mut before: Option<Spanned<Arc<str>>> = None;
    for (index, node) in items.iter().enumerate() {
        let Some(mut step) = listed(node, index, place, around, context) else { continue };
        step.needs = before.iter().cloned().collect();
        if !step.implicit {
            before = Some(step.id.clone());
        }
        steps.push(step);
    }
    around.depth.set(around.depth.get() - 1);
    steps
}

fn too_deep(span: Span, place: &Place) -> Diagnostic {
    let message = format!("steps are nested more than {DEPTH_MAX} levels deep");
    let finding = Diagnostic::error(Code::TooDeep, message).at(span.head()).step_of(place);
    let field = place.prefix.trim_end_matches('.');
    finding.field(field).help("flatten the file, or move the inner steps to another workflow")
}

fn listed<'a>(
    node: &'a Node,
    index: usize,
    place: &Place,
    around: &Around<'_>,
    context: &'a Context<'a>,
) -> Option<Step> {
    let at = format!("{}[{index}]", place.prefix.trim_end_matches('.'));
    let NodeKind::Map(map) = &node.kind else {
        let finding = Diagnostic::error(Code::StepNotMapping, "a step must be a mapping").at(node.span);
        let finding =
            finding.step_of(place).field(at).help("write a step: `- {id: build, type: shell, run: make}`");
        context.diagnostics.borrow_mut().push(finding);
        return None;
    };
    Some(step(context, map, node.span, Place { step: place.step.clone(), prefix: format!("{at}.") }, around))
}

/// The template of a fan-out: one step, with its own set of ids.
pub fn template(table: &Table<'_>, key: &str, around: &Around<'_>) -> Option<Step> {
    let place = Place { step: table.place.step.clone(), prefix: format!("{key}.") };
    if around.depth.get() >= DEPTH_MAX {
        table.report(too_deep(table.span, &place));
        return None;
    }
    Some(step(table.context, table.map, table.span, place, &around.inside_fan_out()))
}

/// `unnamed` is the path of a step without an id.
fn step<'a>(
    context: &'a Context<'a>,
    map: &'a Mapping,
    span: Span,
    unnamed: Place,
    around: &Around<'_>,
) -> Step {
    let table = Table::new(context, map, span, unnamed);
    let Some(id) = read_id(&table) else {
        // No other step can name it, but problems inside it are still reported.
        let at = table.place.prefix.trim_end_matches('.');
        return build(&table, Spanned::new(at.into(), span.head()), true, around);
    };
    let table = Table::new(context, map, span, Place { step: Some(id.value.clone()), prefix: String::new() });
    table.known(&["id"]);
    let fresh = claim_id(&table, &id, around);
    build(&table, id, !fresh, around)
}

fn read_id(table: &Table<'_>) -> Option<Spanned<Arc<str>>> {
    let node = present(table, "id").filter(|node| node.to_value() != Value::Null);
    match node.map(|node| (node, as_text(node))) {
        Some((node, Some(id))) if !id.is_empty() => return Some(Spanned::new(id.clone(), node.span)),
        Some((node, None)) => {
            let message = format!("the id of a step must be a string, not {}", what(table, node));
            let finding = table.error(Code::StepIdNotString, "id", node.span, message);
            let written = field::written(table, node.span);
            table.report(
                finding.help(format!("put it in quotes, such as `id: \"{written}\"`, or use a word")),
            );
        }
        Some((_, Some(_))) | None => {
            let finding = table.error(Code::StepIdMissing, "id", table.key_span("id"), "missing step id");
            table.report(finding.help("give the step an id, such as `id: build`"));
        }
    }
    None
}

/// Whether the id is unique; checks both rules about ids.
fn claim_id(table: &Table<'_>, id: &Spanned<Arc<str>>, around: &Around<'_>) -> bool {
    let text = &id.value;
    if text.contains(':') {
        let message = format!("invalid step id `{text}`: colons are reserved for rounds and items");
        let finding = table.error(Code::StepIdHasColon, "id", id.span, message).reference(&**text);
        table.report(finding.suggest(Some(text.replace(':', "-"))));
    }
    let first = around.ids.borrow_mut().insert(text.clone(), id.span);
    if let Some(first) = first {
        let finding =
            table.error(Code::StepIdDuplicate, "id", id.span, format!("duplicate step id `{text}`"));
        let help = "rename one of them; ids must be unique in the whole file, including nested steps";
        table.report(finding.reference(&**text).label(first, "first used here").help(help));
    }
    first.is_none()
}

fn read_type(table: &Table<'_>) -> Option<StepType> {
    let Some(node) = present(table, "type") else { return Some(StepType::Command) };
    let Some(word) = as_text(node) else {
        let message = format!("the type of a step must be a string, not {}", what(table, node));
        let finding = table.error(Code::StepTypeNotString, "type", node.span, message);
        table.report(finding.help("write one of the types, such as `type: shell`"));
        return None;
    };
    let found = TYPES.iter().find(|(known, _)| **known == **word);
    if found.is_none() {
        let known = TYPES.iter().map(|(known, _)| *known);
        let message = format!("unknown step type `{word}`");
        let finding = table.error(Code::StepTypeUnknown, "type", node.span, message).reference(&**word);
        let types: Vec<&str> = known.clone().collect();
        let help = format!("use one of {}; custom step types are not supported", types.join(", "));
        table.report(finding.suggest(nearest(word, known)).help(help));
    }
    found.map(|(_, ty)| *ty)
}

fn build(table: &Table<'_>, id: Spanned<Arc<str>>, implicit: bool, around: &Around<'_>) -> Step {
    let ty = read_type(table);
    let (kind, timeout) = match ty {
        Some(ty) => work(ty, table, around),
        None => (Kind::Assign(IndexMap::new()), None),
    };
    let on_failure = read_on_failure(table, ty);
    match ty {
        Some(StepType::Github) => project::refuse_other_keys(table),
        Some(_) => {
            literal::check(table);
            table.finish_all();
        }
        // The keys of an unknown type are not known either.
        None => {}
    }
    Step {
        number: StepId(0),
        implicit,
        name: id.value.clone(),
        description: None,
        word: ty.map_or("command", word),
        needs: Vec::new(),
        condition: None,
        inputs: IndexMap::new(),
        outputs: IndexMap::new(),
        env: IndexMap::new(),
        policy: Policy { timeout, on_failure, ..Policy::once() },
        recorded: ty.filter(|ty| *ty != StepType::Workflow).and_then(|_| recorded(table, around)),
        kind,
        span: table.span,
        id,
    }
}

/// What the file says about a step that its record shows. A call shows none of it: what it was given is private.
fn recorded(table: &Table<'_>, around: &Around<'_>) -> Option<Box<Recorded>> {
    let said = |key: &str| table.lookup(key).map(|entry| entry.value.to_value());
    let defaults = &around.document.defaults;
    let or_default = |key: &str, default: &Option<Value>| {
        let own = said(key).filter(|own| !own.is_empty());
        own.or_else(|| default.clone()).unwrap_or(Value::Null)
    };
    let plain = Recorded::default();
    let recorded = Recorded {
        integration: or_default("integration", &defaults.said_integration),
        model: or_default("model", &defaults.said_model),
        options: said("options").unwrap_or_else(|| plain.options.clone()),
        input: said("input").unwrap_or_else(|| plain.input.clone()),
    };
    (recorded != plain).then(|| Box::new(recorded))
}

fn word(ty: StepType) -> &'static str {
    TYPES.iter().find(|(_, known)| *known == ty).map_or("command", |(word, _)| word)
}

fn work(ty: StepType, table: &Table<'_>, around: &Around<'_>) -> Work {
    let whole = |kind| (kind, None);
    match ty {
        StepType::Command => assistant::command(table, around),
        StepType::Prompt => assistant::prompt(table, around),
        StepType::Shell => shell::read(table),
        StepType::Gate => whole(Kind::Gate(gate::read(table, around))),
        StepType::If => whole(Kind::Choose(scope::choose(table, around))),
        StepType::Switch => whole(Kind::Choose(scope::switch(table, around))),
        StepType::While => whole(Kind::Repeat(scope::repeat_while(table, around))),
        StepType::DoWhile => whole(Kind::Repeat(scope::do_while(table, around))),
        StepType::FanOut => whole(Kind::ForEach(fan::out(table, around))),
        StepType::FanIn => whole(Kind::Assign(fan::join(table, around))),
        StepType::Init => whole(Kind::Action(Action::Builtin(project::init(table, around)))),
        StepType::Slot => whole(project::slot(table, around)),
        StepType::Github => project::github(table),
        StepType::Workflow => whole(Kind::Action(Action::Call(call::read(table)))),
    }
}

/// A step that may fail without ending the run. Steps that contain others never catch their failures.
fn read_on_failure(table: &Table<'_>, ty: Option<StepType>) -> OnFailure {
    let goes_on = field::boolean(table, "continue_on_error").unwrap_or(false);
    let Some(ty) = ty.filter(|_| goes_on) else { return OnFailure::Halt };
    match ty {
        StepType::If | StepType::Switch | StepType::While | StepType::DoWhile => {
            let key = "continue_on_error";
            let message = format!("`{key}` on a step of type {} does not catch failures inside it", word(ty));
            let finding = table.warning(Code::IgnoredKey, key, table.key_span(key), message);
            table.report(finding.reference(key).help("move it to the inner steps that may fail"));
            OnFailure::Halt
        }
        StepType::Command
        | StepType::Prompt
        | StepType::Shell
        | StepType::Gate
        | StepType::FanIn
        | StepType::FanOut
        | StepType::Init
        | StepType::Slot
        | StepType::Github
        | StepType::Workflow => OnFailure::Continue,
    }
}
