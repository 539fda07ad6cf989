//! `{{trigger.payload.a.0.b}}` and similar placeholders in the inputs of a schedule, as a template over the payload:
//! an item with `payload`, `schedule_id` and `workflow`.
//!
//! A placeholder that is the whole text keeps the type of its value. A placeholder that does not resolve stays in the
//! text as written. If that is known in advance it is a warning; otherwise it is decided when the schedule fires.

use crate::table::Table;
use crate::text::{Kind, Locator, Node, Scalar};
use std::ops::Range;
use std::sync::Arc;
use windlass_ir::expr::{BinaryOp, Expr, Function, Namespace, Node as ExprNode, Piece, Read, Template};
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::Bound;
use windlass_ir::{Code, Diagnostic, Span, Value};

/// What fires a schedule. A clock has no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fires {
    Cron,
    Webhook,
}

/// The maximum number of mistakes listed for one text.
const FINDINGS_MAX: usize = 20;
/// Trees are walked recursively, so the length of a path is limited.
const SEGMENTS_MAX: usize = 64;
const BYTES_MAX: usize = 1_000;

/// The value of a key with its placeholders; null if the key is absent.
pub(super) fn bound(table: &Table<'_>, key: &'static str, fires: Fires) -> Bound {
    let field: Arc<str> = table.place.field(key).into();
    let Some(node) = table.node(key) else {
        return Bound { template: Template::Constant(Value::Null), field, span: table.span.head() };
    };
    let reader = Reader { table, key, fires };
    let template = reader.template(node).unwrap_or_else(|| Template::Constant(node.to_value()));
    Bound { template, field, span: node.span }
}

/// Why a placeholder does not resolve. Boxed, because it is large and rare.
type Wrong = Box<Diagnostic>;

struct Reader<'a> {
    table: &'a Table<'a>,
    key: &'static str,
    fires: Fires,
}

impl Reader<'_> {
    /// `None` for plain data, which needs no template.
    fn template(&self, node: &Node) -> Option<Template> {
        match &node.kind {
            Kind::Scalar(scalar) => self.text(scalar, node),
            Kind::List(items) => {
                let read: Vec<_> = items.iter().map(|item| (item, self.template(item))).collect();
                let found = read.iter().any(|(_, template)| template.is_some());
                found.then(|| {
                    Template::List(read.into_iter().map(|(item, read)| or_plain(item, read)).collect())
                })
            }
            Kind::Map(map) => {
                let read: Vec<_> =
                    map.entries.iter().map(|entry| (entry, self.template(&entry.value))).collect();
                let found = read.iter().any(|(_, template)| template.is_some());
                let entry = |(entry, read): (&crate::text::Entry, Option<Template>)| {
                    (entry.key.text.clone(), or_plain(&entry.value, read))
                };
                found.then(|| Template::Map(read.into_iter().map(entry).collect()))
            }
        }
    }

    fn text(&self, scalar: &Scalar, node: &Node) -> Option<Template> {
        let text = &scalar.text;
        if !text.contains("{{") {
            return None;
        }
        let locator = Locator::new(node, self.table.context.sources.get(node.span.source));
        let split = Split::new(text);
        let places = split.places.iter().take(FINDINGS_MAX);
        let open = split.open.map(|at| Box::new(unclosed(locator.span(at..at + 2))));
        let wrong = places.filter_map(|place| self.parse(place, text, &locator).err()).chain(open);
        wrong.for_each(|finding| self.report(*finding));
        if let [only] = split.places.as_slice()
            && text.trim() == &text[only.clone()]
        {
            let path = self.parse(only, text, &locator).ok()?;
            return Some(Template::Expression(path.value(&Value::Null, text)));
        }
        self.pieces(&split, text, &locator)
    }

    /// Text with placeholders. A placeholder that does not resolve is written without the blanks inside its braces.
    fn pieces(&self, split: &Split, text: &str, locator: &Locator) -> Option<Template> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut end = 0;
        for place in &split.places {
            plain.push_str(&text[end..place.start]);
            end = place.end;
            let kept = format!("{{{{{}}}}}", inside(place, text).trim());
            match self.parse(place, text, locator) {
                Ok(path) => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
                    pieces.push(Piece::Expression(path.value(&Value::text("null"), &kept)));
                }
                Err(_) => plain.push_str(&kept),
            }
        }
        plain.push_str(&text[end..]);
        if pieces.is_empty() {
            return Some(Template::Constant(Value::text(plain)));
        }
        pieces.push(Piece::Text(plain.into()));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Some(Template::Text(pieces))
    }

    fn report(&self, finding: Diagnostic) {
        self.table.report(finding.field(self.table.place.field(self.key)));
    }

    fn parse(&self, place: &Range<usize>, text: &str, locator: &Locator) -> Result<Path, Wrong> {
        let path = inside(place, text);
        let start = place.start + 2 + (path.len() - path.trim_start().len());
        let path = path.trim();
        let span = locator.span(start..start + path.len());
        match path.is_empty() {
            true => Err(Box::new(nothing_inside(locator.span(place.clone())))),
            false => Path::parse(path, span, self.fires),
        }
    }
}

fn or_plain(node: &Node, template: Option<Template>) -> Template {
    template.unwrap_or_else(|| Template::Constant(node.to_value()))
}

/// The text between the braces.
fn inside<'t>(place: &Range<usize>, text: &'t str) -> &'t str {
    &text[place.start + 2..place.end - 2]
}

/// The positions of the placeholders in a text, and of braces that are never closed.
struct Split {
    places: Vec<Range<usize>>,
    open: Option<usize>,
}

impl Split {
    fn new(text: &str) -> Self {
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(start) = text[from..].find("{{").map(|at| from + at) {
            let Some(end) = text[start + 2..].find("}}").map(|at| start + 2 + at + 2) else {
                return Self { places, open: Some(start) };
            };
            places.push(start..end);
            from = end;
        }
        Self { places, open: None }
    }
}

const HELP: &str = "use `trigger.payload` or a part of it, `trigger.schedule_id` or `trigger.workflow`";

fn kept(code: Code, message: &str, span: Span) -> Diagnostic {
    Diagnostic::warning(code, format!("{message}; it stays in the text as it is")).at(span)
}

fn unclosed(span: Span) -> Diagnostic {
    let help = "close it with `}}`, or use a single brace";
    Diagnostic::warning(Code::ExpressionSyntax, "`{{` is never closed and stays as it is").at(span).help(help)
}

fn too_long(message: &str, span: Span) -> Diagnostic {
    let help = "pass part of the payload as a whole, and take it apart in the workflow";
    kept(Code::ExpressionLimit, message, span).help(help)
}

fn nothing_inside(span: Span) -> Diagnostic {
    kept(Code::ExpressionSyntax, "the placeholder is empty", span).help(HELP)
}

/// A placeholder that may resolve.
#[derive(Debug)]
struct Path {
    root: &'static str,
    segments: Vec<Segment>,
    span: Span,
}

#[derive(Debug)]
enum Segment {
    Name(Arc<str>),
    /// Digits are a list index, never a key.
    Index(i64),
}

const ROOTS: [&str; 3] = ["payload", "schedule_id", "workflow"];

impl Path {
    fn parse(path: &str, span: Span, fires: Fires) -> Result<Self, Wrong> {
        if path.len() > BYTES_MAX {
            return Err(Box::new(too_long(&format!("the path is longer than {BYTES_MAX} bytes"), span)));
        }
        let mut words = path.split('.');
        if words.next() != Some("trigger") {
            let first = path.split('.').next().unwrap_or_default();
            let finding = kept(Code::UnknownNamespace, &format!("unknown placeholder `{path}`"), span);
            return Err(Box::new(finding.reference(first).suggest(nearest(first, ["trigger"])).help(HELP)));
        }
        let word = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let root = ROOTS.into_iter().find(|root| *root == word);
        let Some(root) = root.filter(|root| *root == "payload" || rest.is_empty()) else {
            return Err(Box::new(unknown(path, word, span)));
        };
        if fires == Fires::Cron && !rest.is_empty() {
            let message = format!("a clock has no payload, so `{path}` never has a value");
            let help = "write the value itself, or start the workflow with a webhook";
            return Err(Box::new(kept(Code::NotAvailableHere, &message, span).reference(path).help(help)));
        }
        if rest.len() > SEGMENTS_MAX {
            return Err(Box::new(too_long(&format!("the path has more than {SEGMENTS_MAX} parts"), span)));
        }
        let segments = rest.into_iter().map(|word| segment(word, path, span)).collect::<Result<_, _>>()?;
        Ok(Self { root, segments, span })
    }

    /// The value, or the text if there is none. A value that is present but null becomes `null`.
    fn value(&self, null: &Value, text: &str) -> Expr {
        let of = Box::new(self.expr(ExprNode::Read(Read::Namespace(Namespace::Item))));
        let root = self.expr(ExprNode::Member { of, name: self.root.into() });
        let Some((last, outer)) = self.segments.split_last() else {
            return self.or(root, self.literal(null.clone()));
        };
        let parent = outer.iter().fold(root, |value, segment| self.below(value, segment));
        let missing = match last {
            Segment::Name(name) => {
                let args = vec![self.literal(Value::Text(name.clone())), parent.clone()];
                self.choice(
                    self.expr(ExprNode::Call { function: Function::In, args }),
                    self.literal(null.clone()),
                    self.literal(Value::text(text)),
                )
            }
            Segment::Index(_) => self.literal(Value::text(text)),
        };
        self.or(self.below(parent, last), missing)
    }

    fn or(&self, value: Expr, missing: Expr) -> Expr {
        let is_there = ExprNode::Binary {
            op: BinaryOp::NotEqual,
            left: Box::new(value.clone()),
            right: Box::new(self.literal(Value::Null)),
        };
        self.choice(self.expr(is_there), value, missing)
    }

    fn below(&self, of: Expr, segment: &Segment) -> Expr {
        let of = Box::new(of);
        self.expr(match segment {
            Segment::Name(name) => ExprNode::Member { of, name: name.clone() },
            Segment::Index(index) => ExprNode::Index { of, at: Box::new(self.literal(Value::Int(*index))) },
        })
    }

    fn choice(&self, when: Expr, then: Expr, otherwise: Expr) -> Expr {
        let [when, then, otherwise] = [when, then, otherwise].map(Box::new);
        self.expr(ExprNode::Choice { when, then, otherwise })
    }

    fn literal(&self, value: Value) -> Expr {
        self.expr(ExprNode::Literal(value))
    }

    fn expr(&self, node: ExprNode) -> Expr {
        Expr::new(node, self.span)
    }
}

fn segment(word: &str, path: &str, span: Span) -> Result<Segment, Wrong> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let bad = |message: &str| kept(Code::ExpressionSyntax, message, span).reference(path);
    let finding = match word {
        _ if digits => match word.parse() {
            Ok(place) => return Ok(Segment::Index(place)),
            Err(_) => bad(&format!("list index `{word}` is too large")).help("use a smaller number"),
        },
        "" => bad(&format!("nothing follows a dot in `{path}`")).help("write a name between the dots"),
        _ if word.contains(['[', ']']) => {
            let dotted = path.replace('[', ".").replace([']', '"', '\''], "");
            bad(&format!("brackets are not supported in `{path}`"))
                .suggest(Some(dotted))
                .help("write a dot before the index or the name")
        }
        name => return Ok(Segment::Name(name.into())),
    };
    Err(Box::new(finding))
}

fn unknown(path: &str, word: &str, span: Span) -> Diagnostic {
    // Some hosts read everything that starts with `payload` as the whole payload.
    let glued = word.strip_prefix("payload").filter(|rest| !rest.is_empty());
    let meant = match glued {
        Some(rest) => Some(format!("trigger.payload.{}", rest.trim_start_matches(['_', '-', '[', '.']))),
        None => nearest(word, ROOTS).map(|root| format!("trigger.{root}")),
    };
    let message = format!("unknown placeholder `{path}`");
    kept(Code::UnknownField, &message, span)
        .reference(path)
        .suggest(meant.filter(|meant| meant != path))
        .help(HELP)
}
