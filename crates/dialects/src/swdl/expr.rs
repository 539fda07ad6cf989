//! The syntax of swdl's expressions: `${{ … }}` in text, and conditions with or without the braces.
//!
//! One scanner finds the end of an expression, a second one produces tokens, and precedence climbing builds the tree.
//! Unknown names and functions do not stop the parser, so one expression may have several findings; the first syntax
//! error ends it. Nesting and length are limited.

use std::ops::Range;
use std::sync::Arc;
use windlass_ir::expr::{BinaryOp, Expr, Function, Namespace, Node, Piece, Query, Read, Template, is_name};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic, Span, Value};

/// The maximum nesting of parentheses, calls, lists, operators and members.
const DEPTH_MAX: usize = 256;
const EXPRESSION_BYTES_MAX: usize = 64 << 10;
/// The maximum number of findings for one text.
const FINDINGS_MAX: usize = 50;
const OPEN: &str = "${{";
const CLOSE: &str = "}}";
/// Looks like a function, but its path is part of the expression.
const QUERY: &str = "jsonpath";

const NAMESPACES: &[Namespace] = &[
    Namespace::Inputs,
    Namespace::Steps,
    Namespace::Context,
    Namespace::Env,
    Namespace::Run,
    Namespace::Workflow,
    Namespace::Item,
    Namespace::Index,
    Namespace::Loops,
    Namespace::Host,
    Namespace::Failure,
    Namespace::Undo,
    Namespace::Secrets,
    Namespace::Class,
    Namespace::ExitCode,
    Namespace::Message,
    Namespace::Attempt,
];

/// Words of other languages that have another name here.
const FOREIGN_NAMESPACES: &[(&str, &str)] = &[
    ("params", "parameters"),
    ("inputs", "parameters"),
    ("vars", "parameters"),
    ("steps", "stages"),
    ("needs", "stages"),
    ("jobs", "stages"),
];
const FOREIGN_FUNCTIONS: &[(&str, &str)] = &[
    ("len", "length"),
    ("size", "length"),
    ("count", "length"),
    ("includes", "contains"),
    ("coalesce", "default"),
    ("tojson", "toJSON"),
    ("fromjson", "fromJSON"),
];

/// The swdl word for a namespace.
pub fn namespace_word(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Inputs => "parameters",
        Namespace::Steps => "stages",
        Namespace::Context => "context",
        Namespace::Env => "env",
        Namespace::Run => "run",
        Namespace::Workflow => "workflow",
        Namespace::Item => "item",
        Namespace::Index => "index",
        Namespace::Loops => "loops",
        Namespace::Host => "host",
        Namespace::Failure => "failure",
        Namespace::Undo => "undo",
        Namespace::FanIn => "fan_in",
        Namespace::Root => "$",
        Namespace::Secrets => "secrets",
        Namespace::Class => "class",
        Namespace::ExitCode => "exit_code",
        Namespace::Message => "message",
        Namespace::Attempt => "attempt",
    }
}

/// Maps a range of the text to its location in the file.
type Locate<'a> = &'a dyn Fn(Range<usize>) -> Span;

/// Parses a bare expression, without braces.
pub fn parse_expression(text: &str, locate: Locate<'_>) -> Result<Expr, Vec<Diagnostic>> {
    parse_body(text, 0..text.len(), 0..text.len(), locate)
}

/// Parses text with any number of `${{ … }}`. A single expression with nothing around it keeps its type; a final line
/// break does not count, because folded blocks end with one. An invalid expression becomes null.
pub fn parse_template(text: &str, locate: Locate<'_>) -> (Template, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut pieces = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(OPEN).map(|found| rest + found) {
        push_text(&mut pieces, &text[rest..start]);
        rest = text.len();
        let parsed = find_end(text, start, locate).and_then(|body| {
            rest = body.end + CLOSE.len();
            parse_body(text, body, start..rest, locate)
        });
        pieces.push(Piece::Expression(parsed.unwrap_or_else(|found| {
            diagnostics.extend(found.into_iter().take(FINDINGS_MAX - diagnostics.len()));
            Expr::new(Node::Literal(Value::Null), locate(start..rest))
        })));
    }
    push_text(&mut pieces, &text[rest..]);
    (assemble(text, pieces), diagnostics)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.into()));
    }
}

fn assemble(text: &str, mut pieces: Vec<Piece>) -> Template {
    if matches!(pieces.as_slice(), [Piece::Expression(_), Piece::Text(after)] if &**after == "\n") {
        pieces.pop();
    }
    match <[Piece; 1]>::try_from(pieces) {
        Ok([Piece::Expression(expr)]) => Template::Expression(expr),
        Ok([Piece::Text(text)]) => Template::Constant(Value::Text(text)),
        Err(pieces) if pieces.is_empty() => Template::Constant(Value::text(text)),
        Err(pieces) => Template::Text(pieces),
    }
}

/// Parses a condition: one expression, bare or in one pair of braces.
pub fn parse_condition(text: &str, locate: Locate<'_>) -> Result<Expr, Vec<Diagnostic>> {
    let Range { start, end } = trimmed(text, 0..text.len());
    let Some(open) = find_open(&text[start..end]).map(|found| start + found) else {
        return parse_body(text, start..end, 0..text.len(), locate);
    };
    let body = find_end(&text[..end], open, locate)?;
    let close = body.end + CLOSE.len();
    let outside = if open > start { trimmed(text, start..open) } else { trimmed(text, close..end) };
    if outside.is_empty() {
        return parse_body(text, body, open..close, locate);
    }
    let second = text[outside.clone()].contains(OPEN);
    let message = if second {
        "this condition has more than one `${{ … }}`"
    } else {
        "a condition must be a single expression"
    };
    let help = "put the whole condition in one pair of braces, e.g. `${{ a && b }}`, or remove the braces";
    Err(vec![Diagnostic::error(Code::ExpressionSyntax, message).at(locate(outside)).help(help)])
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.end - part.trim_start().len();
    start..start + part.trim().len()
}

/// The position of the first `${{` outside a string literal.
fn find_open(text: &str) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(OPEN) {
            return Some(at);
        }
        at += match rest.as_bytes()[0] {
            // An unterminated literal is reported when the expression is parsed.
            b'\'' | b'"' => literal_length(rest)?,
            _ => char_length(rest),
        };
    }
    None
}

/// The range between the `${{` at `start` and its `}}`. Braces in string literals do not count.
fn find_end(text: &str, start: usize, locate: Locate<'_>) -> Result<Range<usize>, Vec<Diagnostic>> {
    let body = start + OPEN.len();
    let mut at = body;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(CLOSE) {
            return Ok(body..at);
        }
        at += match rest.as_bytes()[0] {
            b'\'' | b'"' => match literal_length(rest) {
                Some(length) => length,
                None => return Err(vec![unclosed_literal(locate(at..text.len()))]),
            },
            _ => char_length(rest),
        };
    }
    let message = "`${{` has no closing `}}`";
    let help = "close the expression with `}}`; to write the braces as text, use `${{ '${{' }}`";
    Err(vec![Diagnostic::error(Code::ExpressionSyntax, message).at(locate(start..body)).help(help)])
}

fn unclosed_literal(span: Span) -> Diagnostic {
    Diagnostic::error(Code::ExpressionSyntax, "unterminated string")
        .at(span)
        .help("end it with the same quote; write a quote inside it as `\\'` or `\\\"`")
}

fn char_length(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

/// The length of the string literal at the start of `text`, including both quotes; `None` if it is not terminated.
fn literal_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = *bytes.first()?;
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Parses the expression in `body`; `whole` is the location to report if it is empty.
fn parse_body(
    text: &str,
    body: Range<usize>,
    whole: Range<usize>,
    locate: Locate<'_>,
) -> Result<Expr, Vec<Diagnostic>> {
    if body.len() > EXPRESSION_BYTES_MAX {
        let message = format!("the expression is longer than {EXPRESSION_BYTES_MAX} bytes");
        let help = "move data out of the expression, into a parameter or a file";
        return Err(vec![Diagnostic::error(Code::ExpressionLimit, message).at(locate(whole)).help(help)]);
    }
    if text[body.clone()].trim().is_empty() {
        let help = "write a value such as `parameters.name`";
        return Err(vec![
            Diagnostic::error(Code::ExpressionSyntax, "the expression is empty").at(locate(whole)).help(help),
        ]);
    }
    Parser::new(&text[..body.end], body.start, locate).run()
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Name,
    Number,
    Text(Arc<str>),
    /// One of the operators or any other single character.
    Symbol,
    End,
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    range: Range<usize>,
}

/// Parsing stopped; the reason is among the diagnostics.
struct Stop;

/// An expression, its source range including parentheses, and its height as a tree. It is small because the functions
/// that return it recurse hundreds of levels deep.
struct Parsed {
    expr: Box<Expr>,
    range: Range<usize>,
    height: usize,
}

struct Parser<'a> {
    /// Ends where the expression ends.
    text: &'a str,
    token: Token,
    locate: Locate<'a>,
    depth: usize,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, start: usize, locate: Locate<'a>) -> Self {
        let token = Token { kind: Kind::End, range: start..start };
        Self { text, token, locate, depth: 0, diagnostics: Vec::new() }
    }

    fn run(mut self) -> Result<Expr, Vec<Diagnostic>> {
        match self.whole() {
            Ok(expr) if self.diagnostics.is_empty() => Ok(expr),
            Ok(_) | Err(Stop) => Err(self.diagnostics),
        }
    }

    fn whole(&mut self) -> Result<Expr, Stop> {
        self.advance()?;
        let parsed = self.expression()?;
        if self.token.kind != Kind::End {
            return Err(self.unexpected("an operator or the end of the expression"));
        }
        Ok(*parsed.expr)
    }

    fn expression(&mut self) -> Result<Parsed, Stop> {
        if self.depth == DEPTH_MAX {
            return Err(self.too_deep(self.token.range.clone()));
        }
        self.depth += 1;
        let parsed = self.choice();
        self.depth -= 1;
        parsed
    }

    /// `a ? b : c`, which binds most loosely and to the right.
    fn choice(&mut self) -> Result<Parsed, Stop> {
        let when = self.binary(Level::Or)?;
        if !self.is("?") {
            return Ok(when);
        }
        self.advance()?;
        let then = self.expression()?;
        if !self.is(":") {
            return Err(self.unexpected("`:` and the value for the other case"));
        }
        self.advance()?;
        let otherwise = self.expression()?;
        let range = when.range.start..otherwise.range.end;
        let height = when.height.max(then.height).max(otherwise.height);
        let node = Node::Choice { when: when.expr, then: then.expr, otherwise: otherwise.expr };
        self.node(node, range, height)
    }

    /// Operators of this level or tighter.
    fn binary(&mut self, weakest: Level) -> Result<Parsed, Stop> {
        let mut left = self.unary()?;
        let mut chained = None;
        while let Some((op, level)) = self.operator().filter(|(_, level)| *level >= weakest) {
            if chained == Some(level) {
                return Err(self.chained_comparison());
            }
            self.advance()?;
            let right = self.binary(level.tighter())?;
            // A second `==` after `a == b` is an error, while `<` has already been consumed by the right side.
            chained = level.is_comparison().then_some(level);
            let range = left.range.start..right.range.end;
            let height = left.height.max(right.height);
            let node = Node::Binary { op, left: left.expr, right: right.expr };
            left = self.node(node, range, height)?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(BinaryOp, Level)> {
        let found = match (&self.token.kind, self.slice()) {
            (Kind::Symbol, "||") => (BinaryOp::Or, Level::Or),
            (Kind::Symbol, "&&") => (BinaryOp::And, Level::And),
            (Kind::Symbol, "==") => (BinaryOp::Equal, Level::Equality),
            (Kind::Symbol, "!=") => (BinaryOp::NotEqual, Level::Equality),
            (Kind::Symbol, "<") => (BinaryOp::Less, Level::Ordering),
            (Kind::Symbol, "<=") => (BinaryOp::LessOrEqual, Level::Ordering),
            (Kind::Symbol, ">") => (BinaryOp::Greater, Level::Ordering),
            (Kind::Symbol, ">=") => (BinaryOp::GreaterOrEqual, Level::Ordering),
            _ => return None,
        };
        Some(found)
    }

    /// Any number of `!`, counted instead of recursed, because a file may contain a million of them.
    fn unary(&mut self) -> Result<Parsed, Stop> {
        let mut starts = Vec::new();
        while self.is("!") {
            starts.push(self.token.range.start);
            if starts.len() > DEPTH_MAX {
                return Err(self.too_deep(self.token.range.clone()));
            }
            self.advance()?;
        }
        let mut parsed = self.path()?;
        for start in starts.into_iter().rev() {
            let range = start..parsed.range.end;
            parsed = self.node(Node::Not(parsed.expr), range, parsed.height)?;
        }
        Ok(parsed)
    }

    /// A value and its members: `.name` and `[index]`.
    fn path(&mut self) -> Result<Parsed, Stop> {
        let mut of = self.primary()?;
        loop {
            if self.is(".") {
                of = self.member(of)?;
            } else if self.is("[") {
                of = self.index(of)?;
            } else if self.is("(") {
                let message = "only a function can be called, by its name";
                return Err(self.syntax(message, "write `function(value)`", self.token.range.clone()));
            } else {
                return Ok(of);
            }
        }
    }

    fn member(&mut self, of: Parsed) -> Result<Parsed, Stop> {
        self.advance()?;
        if self.token.kind == Kind::Number {
            let help = format!("select an element of a list with `[{}]`", self.slice());
            return Err(self.syntax("a number is not a name", &help, self.token.range.clone()));
        }
        if self.token.kind != Kind::Name {
            return Err(self.unexpected("a name after `.`"));
        }
        let name = self.slice().into();
        let range = of.range.start..self.token.range.end;
        self.advance()?;
        self.node(Node::Member { of: of.expr, name }, range, of.height)
    }

    fn index(&mut self, of: Parsed) -> Result<Parsed, Stop> {
        let open = self.token.range.clone();
        self.advance()?;
        let at = self.expression()?;
        if !self.is("]") {
            return Err(self.not_closed(open, "`]`"));
        }
        let range = of.range.start..self.token.range.end;
        self.advance()?;
        let height = of.height.max(at.height);
        // Only brackets can contain a key that is not a name; it becomes a member, as in the other dialects.
        let node = match at.expr.node {
            Node::Literal(Value::Text(name)) if !is_name(&name) => Node::Member { of: of.expr, name },
            node => Node::Index { of: of.expr, at: Box::new(Expr { node, ..*at.expr }) },
        };
        self.node(node, range, height)
    }

    fn primary(&mut self) -> Result<Parsed, Stop> {
        match (&self.token.kind, self.slice()) {
            (Kind::Text(text), _) => {
                let value = Value::Text(text.clone());
                self.literal(value)
            }
            (Kind::Number, _) => self.number(self.token.range.start),
            (Kind::Name, _) => self.word(),
            (Kind::Symbol, "(") => self.group(),
            (Kind::Symbol, "[") => self.list(),
            (Kind::Symbol, "-") => self.negative(),
            (Kind::Symbol, ".") => {
                let help = "a number starts with a digit, such as `0.5`; a path starts with a name, such as \
                        `parameters.name`";
                Err(self.syntax("a value cannot start with `.`", help, self.token.range.clone()))
            }
            (Kind::Symbol, _) | (Kind::End, _) => Err(self.unexpected("a value")),
        }
    }

    fn literal(&mut self, value: Value) -> Result<Parsed, Stop> {
        let range = self.token.range.clone();
        self.advance()?;
        self.node(Node::Literal(value), range, 0)
    }

    fn negative(&mut self) -> Result<Parsed, Stop> {
        let minus = self.token.range.clone();
        let digit_follows = self.text[minus.end..].starts_with(|next: char| next.is_ascii_digit());
        if !digit_follows {
            return Err(self.unexpected("a value"));
        }
        self.advance()?;
        self.number(minus.start)
    }

    /// The number of the token, with an optional minus from `start`.
    fn number(&mut self, start: usize) -> Result<Parsed, Stop> {
        let range = start..self.token.range.end;
        let digits = &self.text[range.clone()];
        let value = if digits.contains('.') {
            digits.parse().ok().filter(|float: &f64| float.is_finite()).map(Value::Float)
        } else {
            digits.parse().ok().map(Value::Int)
        };
        let Some(value) = value else {
            let help = "write it as a string in quotes if it is never compared";
            return Err(self.syntax("the number does not fit into 64 bits", help, range));
        };
        self.advance()?;
        self.node(Node::Literal(value), range, 0)
    }

    fn group(&mut self) -> Result<Parsed, Stop> {
        let open = self.token.range.clone();
        self.advance()?;
        let mut inner = self.expression()?;
        if !self.is(")") {
            return Err(self.not_closed(open, "`)`"));
        }
        inner.range = open.start..self.token.range.end;
        self.advance()?;
        Ok(inner)
    }

    fn list(&mut self) -> Result<Parsed, Stop> {
        let start = self.token.range.start;
        let (items, end, height) = self.items("]", "`,` or `]`")?;
        self.node(Node::List(items), start..end, height)
    }

    /// Expressions separated by commas up to `close`; also returns its end and the greatest height.
    fn items(&mut self, close: &str, expected: &str) -> Result<(Vec<Expr>, usize, usize), Stop> {
        let open = self.token.range.clone();
        self.advance()?;
        let (mut items, mut height) = (Vec::new(), 0);
        while items.is_empty() && !self.is(close) || !items.is_empty() && self.is(",") {
            if !items.is_empty() {
                self.advance()?;
            }
            let item = self.expression()?;
            height = height.max(item.height);
            items.push(*item.expr);
        }
        if !self.is(close) {
            return Err(self.not_closed(open, expected));
        }
        let end = self.token.range.end;
        self.advance()?;
        Ok((items, end, height))
    }

    /// `true`, `false`, `null`, a function call, or the start of a path.
    fn word(&mut self) -> Result<Parsed, Stop> {
        match self.slice() {
            "true" => return self.literal(Value::Bool(true)),
            "false" => return self.literal(Value::Bool(false)),
            "null" => return self.literal(Value::Null),
            "and" | "or" | "not" | "in" => return Err(self.unexpected("a value")),
            _ => {}
        }
        let range = self.token.range.clone();
        self.advance()?;
        if self.is("(") { self.call(range) } else { self.namespace(range) }
    }

    fn call(&mut self, name: Range<usize>) -> Result<Parsed, Stop> {
        let word = &self.text[name.clone()];
        if word == QUERY {
            return self.query(name);
        }
        let function = Function::by_name(word);
        if function.is_none() {
            self.report(name.clone(), || unknown_function(word));
        }
        let (args, end, height) = self.items(")", "`,` or `)`")?;
        let range = name.start..end;
        let Some(function) = function else { return self.node(Node::Literal(Value::Null), range, height) };
        if !function.arity().accepts(args.len()) {
            self.report(range.clone(), || bad_arity(function, args.len()));
        }
        self.node(Node::Call { function, args }, range, height)
    }

    /// `jsonpath(value, '$.path')`. The path is parsed with the expression, so it must be a string literal.
    fn query(&mut self, name: Range<usize>) -> Result<Parsed, Stop> {
        let (args, end, height) = self.items(")", "`,` or `)`")?;
        let range = name.start..end;
        let help = "write the value and the path as a string: `jsonpath(value, '$.a[*].b')`";
        let [of, Expr { node: Node::Literal(Value::Text(text)), span }] = args.as_slice() else {
            return Err(self.syntax("`jsonpath` takes a value and a path in quotes", help, range));
        };
        let (of, path, span) = (of.clone(), Query::parse(text), *span);
        match path {
            Ok(path) => self.node(Node::Query { of: Box::new(of), path }, range, height),
            Err(error) => {
                // The parser's message contains a drawing; its last line is the cause.
                let drawn = error.to_string();
                let cause = drawn.lines().last().unwrap_or_default().trim_start_matches([' ', '=']);
                let message = format!("invalid JSONPath: {cause}");
                let found = Diagnostic::error(Code::ExpressionSyntax, message).at(span).help(help);
                self.diagnostics.push(found);
                Err(Stop)
            }
        }
    }

    fn namespace(&mut self, range: Range<usize>) -> Result<Parsed, Stop> {
        let word = &self.text[range.clone()];
        if let Some(namespace) = NAMESPACES.iter().find(|namespace| namespace_word(**namespace) == word) {
            return self.node(Node::Read(Read::Namespace(*namespace)), range, 0);
        }
        let after = &self.text[range.end..];
        self.report(range.clone(), || unknown_namespace(word, after));
        self.node(Node::Literal(Value::Null), range, 0)
    }

    /// `below` is the height of the tallest child.
    fn node(&mut self, node: Node, range: Range<usize>, below: usize) -> Result<Parsed, Stop> {
        if below == DEPTH_MAX {
            return Err(self.too_deep(range));
        }
        let span = (self.locate)(range.clone());
        Ok(Parsed { expr: Box::new(Expr::new(node, span)), range, height: below + 1 })
    }

    fn slice(&self) -> &'a str {
        &self.text[self.token.range.clone()]
    }

    fn is(&self, symbol: &str) -> bool {
        self.token.kind == Kind::Symbol && self.slice() == symbol
    }
}

/// How tightly a binary operator binds, the loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Equality,
    Ordering,
    /// Tighter than every operator.
    Operand,
}

impl Level {
    fn tighter(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Equality,
            Self::Equality => Self::Ordering,
            Self::Ordering | Self::Operand => Self::Operand,
        }
    }

    fn is_comparison(self) -> bool {
        matches!(self, Self::Equality | Self::Ordering)
    }
}

/// Tokens.
impl Parser<'_> {
    fn advance(&mut self) -> Result<(), Stop> {
        let rest = self.text[self.token.range.end..].trim_start();
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            // Points right after the last token, not after the whitespace that follows it.
            let end = self.token.range.end;
            self.token = Token { kind: Kind::End, range: end..end };
            return Ok(());
        };
        let (kind, length) = match first {
            '\'' | '"' => self.text_token(rest, start)?,
            '0'..='9' => (Kind::Number, self.number_length(rest, start)?),
            'A'..='Z' | 'a'..='z' | '_' => (Kind::Name, name_length(rest)),
            _ => (Kind::Symbol, symbol_length(rest)),
        };
        self.token = Token { kind, range: start..start + length };
        Ok(())
    }

    fn number_length(&mut self, rest: &str, start: usize) -> Result<usize, Stop> {
        let whole = digits_length(rest);
        let fraction = rest[whole..].strip_prefix('.').map_or(0, digits_length);
        let length = if fraction > 0 { whole + 1 + fraction } else { whole };
        let after = &rest[length..];
        if after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_' || next == '.') {
            let end = start
                + length
                + after.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(after.len());
            let help =
                "numbers are digits with an optional fraction, such as `12` or `0.5`; put strings in quotes";
            return Err(self.syntax(
                "this is neither a number nor a name",
                help,
                start..end.max(start + length + 1),
            ));
        }
        Ok(length)
    }

    fn text_token(&mut self, rest: &str, start: usize) -> Result<(Kind, usize), Stop> {
        let Some(length) = literal_length(rest) else {
            self.diagnostics.push(unclosed_literal((self.locate)(start..self.text.len())));
            return Err(Stop);
        };
        let inside = &rest[1..length - 1];
        match unescape(inside) {
            Ok(text) => Ok((Kind::Text(text.into()), length)),
            Err(bad) => {
                let range = start + 1 + bad.start..start + 1 + bad.end;
                let help = "write four hexadecimal digits after `\\u`, e.g. `\\u00e9`";
                Err(self.syntax("invalid escape sequence", help, range))
            }
        }
    }
}

fn digits_length(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A hyphen belongs to the name, anywhere after the first letter.
fn name_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
}

fn symbol_length(text: &str) -> usize {
    const PAIRS: [&str; 6] = ["==", "!=", "<=", ">=", "&&", "||"];
    if PAIRS.iter().any(|pair| text.starts_with(pair)) { 2 } else { char_length(text) }
}

/// The text between the quotes with its escapes resolved. A backslash before any other character stays, as in
/// `'\d+'`. The error is the range of an invalid escape.
fn unescape(raw: &str) -> Result<String, Range<usize>> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = &rest[at..];
        let start = raw.len() - escape.len();
        let (character, length) = match escape.as_bytes().get(1) {
            Some(b'n') => ('\n', 2),
            Some(b't') => ('\t', 2),
            Some(b'r') => ('\r', 2),
            Some(b'\\') => ('\\', 2),
            Some(b'\'') => ('\'', 2),
            Some(b'"') => ('"', 2),
            Some(b'u') => unicode_escape(escape).ok_or(start..raw.len().min(start + 2))?,
            Some(_) | None => ('\\', 1),
        };
        text.push(character);
        rest = &escape[length..];
    }
    text.push_str(rest);
    Ok(text)
}

/// `\u` and four digits, or two of them for a character beyond 16 bits, as in JSON.
fn unicode_escape(escape: &str) -> Option<(char, usize)> {
    let high = code_unit(escape)?;
    if let Some(character) = char::from_u32(high) {
        return Some((character, 6));
    }
    let low = code_unit(&escape[6..])?;
    let pair = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
    match char::decode_utf16(pair).collect::<Result<Vec<char>, _>>().ok()?.as_slice() {
        [character] => Some((*character, 12)),
        _ => None,
    }
}

fn code_unit(escape: &str) -> Option<u32> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// What is wrong, and what to write instead.
impl Parser<'_> {
    fn syntax(&mut self, message: &str, help: &str, range: Range<usize>) -> Stop {
        let found = Diagnostic::error(Code::ExpressionSyntax, message).at((self.locate)(range)).help(help);
        self.diagnostics.push(found);
        Stop
    }

    /// Records a finding that does not stop the parser.
    fn report(&mut self, range: Range<usize>, make: impl FnOnce() -> Diagnostic) {
        if self.diagnostics.len() < FINDINGS_MAX {
            self.diagnostics.push(make().at((self.locate)(range)));
        }
    }

    fn too_deep(&mut self, range: Range<usize>) -> Stop {
        let message = format!("the expression is nested more than {DEPTH_MAX} levels deep");
        let found = Diagnostic::error(Code::ExpressionLimit, message).at((self.locate)(range));
        self.diagnostics.push(found.help("split it into several expressions"));
        Stop
    }

    fn chained_comparison(&mut self) -> Stop {
        let message = "comparisons cannot be chained";
        let help = "compare twice and join with `&&`, e.g. `a < b && b < c`";
        self.syntax(message, help, self.token.range.clone())
    }

    /// A bracket was opened, and something else is in the place of its closing bracket.
    fn not_closed(&mut self, open: Range<usize>, expected: &str) -> Stop {
        let opened = (self.locate)(open);
        let stop = self.unexpected(expected);
        if let Some(found) = self.diagnostics.pop() {
            self.diagnostics.push(found.label(opened, "opened here"));
        }
        stop
    }

    fn unexpected(&mut self, expected: &str) -> Stop {
        let range = self.token.range.clone();
        let word = self.slice();
        if let Some((message, help)) = self.mistake() {
            return self.syntax(&message, help, range);
        }
        match &self.token.kind {
            Kind::End => {
                let message = format!("expected {expected}, but the expression ends here");
                self.syntax(&message, "finish the expression", range)
            }
            Kind::Name | Kind::Number | Kind::Text(_) => {
                let message = format!("expected {expected}, found `{}`", shortened(word));
                self.syntax(&message, "join two values with an operator such as `==` or `&&`", range)
            }
            Kind::Symbol => {
                let message = format!("expected {expected}, found `{word}`");
                self.syntax(&message, "the operators are `== != < <= > >= && || !` and `a ? b : c`", range)
            }
        }
    }

    /// Words and operators of other languages, each with its own message.
    fn mistake(&self) -> Option<(String, &'static str)> {
        let word = self.slice();
        let help = match (&self.token.kind, word) {
            (Kind::Name, "and") => "write `&&`",
            (Kind::Name, "or") => "write `||`",
            (Kind::Name, "not") => "write `!` before the value",
            (Kind::Name, "in") => "write `contains(list, value)`",
            (Kind::Symbol, "=") => "write `==` for equality",
            (Kind::Symbol, "&") => "write `&&` for \"and\"",
            (Kind::Symbol, "|") => "write `||` for \"or\"; a function is called as `length(value)`",
            (Kind::Symbol, "+") => {
                return Some((
                    no_arithmetic(word),
                    "to join strings, put them side by side: `${{ a }}${{ b }}`",
                ));
            }
            (Kind::Symbol, "-") => {
                return Some((
                    no_arithmetic(word),
                    "compute the value in a stage; a hyphen in a name has no space around it",
                ));
            }
            (Kind::Symbol, "*" | "/" | "%") => {
                return Some((no_arithmetic(word), "compute the value in a stage"));
            }
            (Kind::Symbol, "$") => {
                "inside an expression, write values without braces, such as `parameters.name`"
            }
            (Kind::Symbol, "{" | "}") => "parse objects from text: `fromJSON('{\"a\": 1}')`",
            (Kind::Symbol, "‘" | "’" | "“" | "”" | "`") => "put strings in straight quotes: `'text'`",
            (Kind::Symbol, other) if !other.is_ascii() => {
                "names are ASCII letters, digits, `_` and `-`; write any other key as `['key']`"
            }
            (Kind::Name | Kind::Number | Kind::Text(_) | Kind::Symbol | Kind::End, _) => return None,
        };
        Some((format!("`{word}` is not part of the language"), help))
    }
}

fn no_arithmetic(sign: &str) -> String {
    format!("`{sign}` is not an operator: expressions have no arithmetic")
}

/// Shortens a long token for messages.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn foreign(word: &str, table: &[(&str, &'static str)]) -> Option<&'static str> {
    table.iter().find(|(other, _)| *other == word.to_ascii_lowercase()).map(|(_, ours)| *ours)
}

fn unknown_function(word: &str) -> Diagnostic {
    let names = || Function::ALL.iter().map(|function| function.name());
    let suggest = foreign(word, FOREIGN_FUNCTIONS).or_else(|| nearest(word, names()));
    let found = Diagnostic::error(Code::UnknownFunction, format!("unknown function `{}`", shortened(word)))
        .reference(word)
        .suggest(suggest);
    if suggest.is_some() {
        return found;
    }
    found.help(format!("use one of {}", names().collect::<Vec<_>>().join(", ")))
}

fn bad_arity(function: Function, given: usize) -> Diagnostic {
    let message = format!("`{}` takes {}, got {given}", function.name(), function.arity());
    let help = format!("write `{}`", function.usage());
    Diagnostic::error(Code::BadArity, message).help(help).reference(function.name())
}

/// `after` is the text after the word: it distinguishes a path from an unquoted string.
fn unknown_namespace(word: &str, after: &str) -> Diagnostic {
    const WORDS: [&str; 3] = ["true", "false", "null"];
    let names = || NAMESPACES.iter().map(|namespace| namespace_word(*namespace));
    let suggest = foreign(word, FOREIGN_NAMESPACES).or_else(|| nearest(word, names().chain(WORDS)));
    let short = shortened(word);
    let found = Diagnostic::error(Code::UnknownNamespace, format!("unknown name `{short}`"))
        .reference(word)
        .suggest(suggest);
    if suggest.is_some() {
        return found;
    }
    let after = after.trim_start();
    if [".outputs", ".status"].iter().any(|member| after.starts_with(member)) {
        found.help(format!("read a stage as `stages.{short}`"))
    } else if after.starts_with(['.', '[']) {
        found.help(format!("a path starts with one of {}", names().collect::<Vec<_>>().join(", ")))
    } else {
        found.help(format!("put strings in quotes: `'{short}'`; read values as `parameters.{short}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_ir::SourceId;
    use windlass_ir::expr::{EvalError, Limits, Scope, Semantics, evaluate, render};

    /// Locations are offsets into the text itself, so that a span can be read back.
    fn locate(range: Range<usize>) -> Span {
        Span::new(SourceId(0), range.start, range.end)
    }

    fn under(text: &str, span: Span) -> &str {
        &text[span.start as usize..span.end as usize]
    }

    fn json(text: &str) -> Value {
        serde_json::from_str::<serde_json::Value>(text)
            .map(|json| Value::from(&json))
            .expect("test data is JSON")
    }

    /// A run in which one stage has succeeded.
    struct Tour;

    impl Scope for Tour {
        fn read(&self, read: Read) -> Result<Value, EvalError> {
            let Read::Namespace(namespace) = read else { return Ok(Value::Null) };
            Ok(match namespace {
                Namespace::Inputs => json(
                    r#"{"branch": "release-7", "limit": 3, "dry": false, "labels": ["red", "blue"],
                        "blob": "{\"a\": {\"b-c\": [10, 20]}}", "empty": "", "n-1": "hyphen"}"#,
                ),
                Namespace::Steps => json(
                    r#"{"pick-files": {"status": "success", "outputs":
                        {"files": ["a", "b"], "meta": {"k": 1}, "note": null}}}"#,
                ),
                Namespace::Env => json(r#"{"WHERE": "br/release-7"}"#),
                Namespace::Run => json(r#"{"id": "r-1"}"#),
                Namespace::Workflow => json(r#"{"id": "expression-tour", "version": "3.2.1"}"#),
                Namespace::Item => json(r#"{"name": "it's"}"#),
                Namespace::Index => Value::Int(2),
                Namespace::Secrets => Value::map([("TOKEN", Value::secret("TOKEN"))]),
                Namespace::Context
                | Namespace::Loops
                | Namespace::Host
                | Namespace::Failure
                | Namespace::Undo
                | Namespace::FanIn
                | Namespace::Root
                | Namespace::Class
                | Namespace::ExitCode
                | Namespace::Message
                | Namespace::Attempt => Value::Null,
            })
        }
    }

    /// The value as JSON, or each finding as its code and the text under its span.
    fn outcome(text: &str) -> Result<String, Vec<(&'static str, String)>> {
        let expr = parse_expression(text, &locate).map_err(|found| summary(text, &found))?;
        evaluate(&expr, &Tour, &Semantics::HOUSE, &Limits::default())
            .map(|value| value.to_json_text().unwrap_or_else(|| "secret".to_owned()))
            .map_err(|error| summary(text, &[error.into_diagnostic()]))
    }

    fn summary(text: &str, found: &[Diagnostic]) -> Vec<(&'static str, String)> {
        let place = |found: &Diagnostic| found.span.map_or("nowhere", |span| under(text, span)).to_owned();
        found.iter().map(|found| (found.code.as_str(), place(found))).collect()
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(outcome(text), Ok(expected.to_owned()), "{text}");
    }

    fn check_error(text: &str, expected: &[(&'static str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(code, place)| (*code, (*place).to_owned())).collect();
        assert_eq!(outcome(text), Err(expected), "{text}");
    }

    #[test]
    fn the_tour_of_the_language() {
        check("parameters.limit == 3", "true");
        check("parameters.limit == 3.0", "true");
        check("parameters.dry == 0", "false");
        check("1 == true", "false");
        check("\"a\" == 'a'", "true");
        check("!parameters.dry", "true");
        check("true || false && false", "true");
        check("(true || false) && false", "false");
        check("length(stages.pick-files.outputs.files) > 1", "true");
        check("length(stages.pick-files.outputs.files) <= 1", "false");
        check("length(stages.pick-files.outputs.meta)", "1");
        check("contains(parameters.branch, 'release')", "true");
        check("contains(parameters.labels, 'blu')", "false");
        check("contains('Release', 'release')", "false");
        check("fromJSON(parameters.blob).a.b-c", "[10,20]");
        check("fromJSON(parameters.blob).a['b-c'][1]", "20");
        check("stages['pick-files'].outputs.files[5]", "null");
        check("stages.pick-files.outputs.note == null", "true");
        check("stages.pick-files.status == 'success'", "true");
        check("stages.pick-files.outputs.meta.none.deeper", "null");
        check("stages.pick-files.outputs.note || 'none'", "\"none\"");
        check("workflow.version", "\"3.2.1\"");
        check("env.WHERE", "\"br/release-7\"");
        check("'a }} b'", "\"a }} b\"");
        check(
            "length(stages.pick-files.outputs.files) >= parameters.limit ? true : contains(parameters.branch, 'release')",
            "true",
        );
    }

    #[test]
    fn the_errors_of_the_tour() {
        check_error("parameters.limit - 1", &[("expression_syntax", "-")]);
        check_error("1 < 2 < 3", &[("expression_syntax", "<")]);
        check_error("parameters.limit =", &[("expression_syntax", "=")]);
        check_error("vault.x", &[("unknown_namespace", "vault")]);
        check_error("shout('x')", &[("unknown_function", "shout")]);
        check_error("length()", &[("bad_arity", "length()")]);
        check_error(
            "stages.pick-files.outputs.note > 3",
            &[("expression_type", "stages.pick-files.outputs.note > 3")],
        );
        check_error(
            "length(stages.pick-files.outputs.note)",
            &[("expression_type", "stages.pick-files.outputs.note")],
        );
        check_error("fromJSON('{')", &[("expression_value", "'{'")]);
    }

    #[test]
    fn literals() {
        check("-12", "-12");
        check("-9223372036854775808", "-9223372036854775808");
        check("3.50", "3.5");
        check("3.0", "3.0");
        check("[]", "[]");
        check("[1, 'a', [null, true]]", "[1,\"a\",[null,true]]");
        check(r"'it\'s'", "\"it's\"");
        check(r#""say \"hi\"""#, r#""say \"hi\"""#);
        check(r"'a\n\t\r\\b'", r#""a\n\t\r\\b""#);
        check(r"'\u00e9\ud83d\ude00'", "\"é😀\"");
        check(r"'\d+'", r#""\\d+""#);
        check("'two\nlines'", r#""two\nlines""#);
    }

    #[test]
    fn operators_have_precedence() {
        check("false ? 1 : false ? 2 : 3", "3");
        check("true ? false ? 1 : 2 : 3", "2");
        check("false || null ? 'yes' : 'no'", "\"no\"");
        check("1 == 2 || 3 == 3 && 4 != 4", "false");
        check("1 < 2 == 3 > 2", "true");
        check("!true == false", "true");
        check("!!'x'", "true");
        check("![]", "false");
        check("'' || 0 || null", "null");
        check("1 && 'last'", "\"last\"");
        check("false && fromJSON('{')", "false");
        check("true || fromJSON('{')", "true");
        check("true ? 1 : fromJSON('{')", "1");
        check("'10' < '9'", "true");
        check("(1 < 2) == true", "true");
    }

    #[test]
    fn paths() {
        check("parameters.labels[1]", "\"blue\"");
        check("parameters.labels[1.0]", "\"blue\"");
        check("parameters.labels[0.5]", "null");
        check("parameters.labels[-1]", "null");
        check("parameters.labels['red']", "null");
        check("parameters[0]", "null");
        check("parameters.branch.length", "null");
        check("parameters.branch[0]", "null");
        check("parameters.n-1", "\"hyphen\"");
        check("parameters . labels [ 0 ]", "\"red\"");
        check("stages[parameters.empty || 'pick-files'].status", "\"success\"");
        check("[[1, 2], [3]][0][1]", "2");
        check("('x')", "\"x\"");
        check("index", "2");
        check("item.name", "\"it's\"");
        check("context.repo.deep", "null");
    }

    #[test]
    fn mistakes_point_to_their_word() {
        for (text, place) in [
            ("n", "n"),
            ("parameters.a &  parameters.b", "&"),
            ("parameters.a | parameters.b", "|"),
            ("parameters.a + 1", "+"),
            ("parameters.a * 1", "*"),
            ("parameters.a / 1", "/"),
            ("parameters.a % 1", "%"),
            ("parameters.n -1", "-"),
            ("- 1", "-"),
            ("parameters.a and parameters.b", "and"),
            ("parameters.a or parameters.b", "or"),
            ("not parameters.a", "not"),
            ("'a' in parameters.labels", "in"),
            ("parameters.a = 1", "="),
            ("parameters.a === 1", "="),
            ("1 == 2 == 3", "=="),
            ("1 < 2 >= 3", ">="),
            (".5", "."),
            ("5.", "5."),
            ("1e5", "1e5"),
            ("0x10", "0x10"),
            ("1_000", "1_"),
            ("99999999999999999999", "99999999999999999999"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("'open", "'open"),
            ("'open\\'", "'open\\'"),
            (r"'a\u12'", r"\u"),
            (r"'a\ud800b'", r"\u"),
            ("parameters.0", "0"),
            ("parameters.", ""),
            ("parameters..a", "."),
            ("parameters.a(1)", "("),
            ("(1", ""),
            ("(1]", "]"),
            ("[1, 2", ""),
            ("[1,]", "]"),
            ("length(1 2)", "2"),
            ("length(,)", ","),
            ("parameters.labels[]", "]"),
            ("true ? 1", ""),
            ("true ? : 1", ":"),
            ("1 2", "2"),
            ("1 'a'", "'a'"),
            ("parameters.é", "é"),
            ("“a”", "“"),
            ("{}", "{"),
            ("${{ item }}", "$"),
            ("item )", ")"),
            ("", ""),
            ("  ", "  "),
            ("!", ""),
        ] {
            let code = if text == "n" { "unknown_namespace" } else { "expression_syntax" };
            check_error(text, &[(code, place)]);
        }
    }

    #[test]
    fn unknown_names_do_not_stop_the_parser() {
        check_error(
            "parameter.x == shout(vault) && length(1, 2)",
            &[
                ("unknown_namespace", "parameter"),
                ("unknown_function", "shout"),
                ("unknown_namespace", "vault"),
                ("bad_arity", "length(1, 2)"),
            ],
        );
        check_error("vault.x == ", &[("unknown_namespace", "vault"), ("expression_syntax", "")]);
    }

    fn check_words(text: &str, message: &str, help: &str) {
        let found = parse_expression(text, &locate).expect_err(text);
        let words: Vec<_> = found.iter().map(|found| (found.message.as_str(), found.help.as_str())).collect();
        assert_eq!(words, [(message, help)], "{text}");
    }

    #[test]
    fn messages_say_what_to_do_next() {
        check_words("parameter.x", "unknown name `parameter`", "did you mean `parameters`?");
        check_words("params.x", "unknown name `params`", "did you mean `parameters`?");
        check_words("True", "unknown name `True`", "did you mean `true`?");
        check_words(
            "stages.a.status == approved",
            "unknown name `approved`",
            "put strings in quotes: `'approved'`; read values as `parameters.approved`",
        );
        check_words(
            "pick-files.outputs.x",
            "unknown name `pick-files`",
            "read a stage as `stages.pick-files`",
        );
        check_words(
            "vault['x']",
            "unknown name `vault`",
            "a path starts with one of parameters, stages, context, env, run, workflow, item, index, loops, host, failure, undo, secrets, \
             class, exit_code, message, attempt",
        );
        check_words("toJson(1)", "unknown function `toJson`", "did you mean `toJSON`?");
        check_words("len(1)", "unknown function `len`", "did you mean `length`?");
        check_words(
            "contains('a')",
            "`contains` takes 2 arguments, got 1",
            "write `contains(string or list, value)`",
        );
        check_words("join()", "`join` takes 1 to 2 arguments, got 0", "write `join(list, separator)`");
        check_words("min()", "`min` takes at least 1 argument, got 0", "write `min(a, b)`");
        check_words("1 = 1", "`=` is not part of the language", "write `==` for equality");
        check_words("true and true", "`and` is not part of the language", "write `&&`");
        check_words(
            "1 * 2",
            "`*` is not an operator: expressions have no arithmetic",
            "compute the value in a stage",
        );
        check_words(
            "1 < 2 < 3",
            "comparisons cannot be chained",
            "compare twice and join with `&&`, e.g. `a < b && b < c`",
        );
        check_words("(1", "expected `)`, but the expression ends here", "finish the expression");
    }

    #[test]
    fn unclosed_brackets_show_where_they_were_opened() {
        let found = parse_expression("length(item", &locate).expect_err("not closed");
        let label = &found[0].labels[0];
        assert_eq!((under("length(item", label.span), label.text.as_str()), ("(", "opened here"));
    }

    #[test]
    fn every_node_covers_exactly_its_text() {
        let text = " ( item.a || !contains( parameters.b , 'x') ) && [1, -2][0] >= 3 ? null : stages['s'] ";
        let expr = parse_expression(text, &locate).expect("valid");
        let mut places = Vec::new();
        expr.walk(&mut |part| places.push(under(text, part.span)));
        assert_eq!(
            places,
            [
                "( item.a || !contains( parameters.b , 'x') ) && [1, -2][0] >= 3 ? null : stages['s']",
                "( item.a || !contains( parameters.b , 'x') ) && [1, -2][0] >= 3",
                "item.a || !contains( parameters.b , 'x')",
                "item.a",
                "item",
                "!contains( parameters.b , 'x')",
                "contains( parameters.b , 'x')",
                "parameters.b",
                "parameters",
                "'x'",
                "[1, -2][0] >= 3",
                "[1, -2][0]",
                "[1, -2]",
                "1",
                "-2",
                "0",
                "3",
                "null",
                "stages['s']",
                "stages",
                "'s'",
            ]
        );
    }

    fn rendered(text: &str) -> Result<Value, Vec<(&'static str, String)>> {
        let (template, found) = parse_template(text, &locate);
        if !found.is_empty() {
            return Err(summary(text, &found));
        }
        render(&template, &Tour, &Semantics::HOUSE, &Limits::default())
            .map_err(|error| summary(text, &[error.into_diagnostic()]))
    }

    fn check_template(text: &str, expected: &str) {
        assert_eq!(rendered(text), Ok(json(expected)), "{text}");
    }

    #[test]
    fn templates() {
        check_template("plain", "\"plain\"");
        check_template("", "\"\"");
        check_template("a $ {{ b }} }} ${ c }", "\"a $ {{ b }} }} ${ c }\"");
        check_template("${{ parameters.limit }}", "3");
        check_template("${{parameters.labels}}", "[\"red\",\"blue\"]");
        check_template("${{ parameters.labels }}\n", "[\"red\",\"blue\"]");
        check_template("${{ parameters.limit }}\n\n", r#""3\n\n""#);
        check_template(" ${{ parameters.limit }}", "\" 3\"");
        check_template("${{ parameters.limit }} ", "\"3 \"");
        check_template("${{ 1 }}${{ 2 }}", "\"12\"");
        check_template("br/${{ parameters.branch }}", "\"br/release-7\"");
        check_template("${{ 'a }} b' }} c", "\"a }} b c\"");
        check_template("${{ '${{' }}!", "\"${{!\"");
        check_template(
            "n=${{ length(stages.pick-files.outputs.files) }} dry=${{ parameters.dry }} \
             note=[${{ stages.pick-files.outputs.note }}]",
            "\"n=2 dry=false note=[]\"",
        );
        check_template(
            "${{ stages.pick-files.outputs.meta }};${{ [1.0, null] }}",
            r#""{\"k\":1};[1.0,null]""#,
        );
        check_template("grüß ${{ 'ö' }} dich", "\"grüß ö dich\"");
    }

    #[test]
    fn a_template_reports_each_expression() {
        let check_error = |text: &str, expected: &[(&'static str, &str)]| {
            let expected = expected.iter().map(|(code, place)| (*code, (*place).to_owned())).collect();
            assert_eq!(rendered(text), Err(expected), "{text}");
        };
        check_error(
            "a ${{ vault.x }} b ${{ 1 + 1 }}",
            &[("unknown_namespace", "vault"), ("expression_syntax", "+")],
        );
        check_error("a ${{ }} b", &[("expression_syntax", "${{ }}")]);
        check_error("${{}}", &[("expression_syntax", "${{}}")]);
        check_error("a ${{ item", &[("expression_syntax", "${{")]);
        check_error("${{ 'a }} b", &[("expression_syntax", "'a }} b")]);
        check_error("${{ item } }", &[("expression_syntax", "${{")]);
        check_error("${{ item ${{ item }}", &[("expression_syntax", "$")]);
        check_error("x ${{ length(null) }}", &[("expression_type", "null")]);
    }

    #[test]
    fn secrets_stay_whole() {
        assert_eq!(rendered("${{ secrets.TOKEN }}"), Ok(Value::secret("TOKEN")));
        assert!(matches!(rendered("Bearer ${{ secrets.TOKEN }}"), Ok(Value::Sealed(_))));
        check("secrets.NONE", "null");
        check("true ? secrets.TOKEN : 1", "secret");
        for text in [
            "secrets.TOKEN == 'a'",
            "secrets.TOKEN < 'a'",
            "secrets.TOKEN.a",
            "secrets.TOKEN[0]",
            "parameters[secrets.TOKEN]",
        ] {
            check_error(text, &[("expression_type", text)]);
        }
        check_error("secrets.TOKEN ? 1 : 2", &[("expression_type", "secrets.TOKEN")]);
        check_error("!secrets.TOKEN", &[("expression_type", "secrets.TOKEN")]);
        check_error("secrets.TOKEN || 1", &[("expression_type", "secrets.TOKEN")]);
        check_error("default(secrets.TOKEN, 1)", &[("expression_type", "secrets.TOKEN")]);
        check_error("toJSON(secrets)", &[("expression_type", "secrets")]);
    }

    fn check_condition(text: &str, expected: Result<&str, (&'static str, &str)>) {
        let found = parse_condition(text, &locate).map(|expr| under(text, expr.span).to_owned());
        let expected = expected.map(str::to_owned).map_err(|(code, place)| vec![(code, place.to_owned())]);
        assert_eq!(found.map_err(|found| summary(text, &found)), expected, "{text}");
    }

    #[test]
    fn conditions() {
        check_condition("item == 1", Ok("item == 1"));
        check_condition(" ${{ item == 1 }}\n", Ok("item == 1"));
        check_condition("item == '${{'", Ok("item == '${{'"));
        check_condition("${{ item == '}}' }}", Ok("item == '}}'"));
        check_condition("", Err(("expression_syntax", "")));
        check_condition("${{ }}", Err(("expression_syntax", "${{ }}")));
        check_condition("${{ item }} == 1", Err(("expression_syntax", "== 1")));
        check_condition("1 == ${{ item }}", Err(("expression_syntax", "1 ==")));
        check_condition("${{ item }} && ${{ index }}", Err(("expression_syntax", "&& ${{ index }}")));
        check_condition("${{ item", Err(("expression_syntax", "${{")));
        check_condition("vault", Err(("unknown_namespace", "vault")));
        let two = parse_condition("${{ item }} && ${{ index }}", &locate).expect_err("two pairs of braces");
        assert_eq!(two[0].message, "this condition has more than one `${{ … }}`");
    }

    #[test]
    fn hostile_texts_are_refused() {
        let limit = |text: &str| {
            let found = parse_expression(text, &locate).expect_err("over a limit");
            assert_eq!(found.last().map(|found| found.code), Some(Code::ExpressionLimit), "{}", &text[..20]);
        };
        limit(&"(".repeat(10_000));
        limit(&"!".repeat(1 << 20));
        limit(&"!".repeat(60_000));
        limit(&format!("item{}", ".a".repeat(10_000)));
        limit(&format!("item{}", "[0]".repeat(10_000)));
        limit(&"[".repeat(10_000));
        limit(&"first(".repeat(10_000));
        limit(&format!("1{}", "||1".repeat(10_000)));
        limit(&"1?1:".repeat(10_000));
        limit(&format!("[{}1]", "1,".repeat(40_000)));
        let mistakes = parse_expression(&"x||".repeat(200), &locate).expect_err("unknown names");
        assert!(mistakes.len() <= FINDINGS_MAX + 1, "{}", mistakes.len());
        let (_, mistakes) = parse_template(&"${{}}".repeat(200_000), &locate);
        assert_eq!(mistakes.len(), FINDINGS_MAX);
        let (_, mistakes) = parse_template(&r"${{ '\}} ${{ \'".repeat(50_000), &locate);
        assert!(!mistakes.is_empty());
    }

    #[test]
    fn texts_within_the_limits_are_parsed_and_evaluated() {
        let deep = |open: &str, close: &str, count: usize| {
            outcome(&format!("{}null{}", open.repeat(count), close.repeat(count))).map(|_| ())
        };
        assert_eq!(deep("(", ")", DEPTH_MAX - 1), Ok(()));
        assert_eq!(deep("!", "", DEPTH_MAX - 1), Ok(()));
        assert_eq!(deep("[", "]", DEPTH_MAX - 1), Ok(()));
        assert_eq!(deep("null[", "]", DEPTH_MAX - 1), Ok(()));
        assert_eq!(deep("1==2||(", ")", 100), Ok(()));
        assert_eq!(outcome(&format!("length([{}1])", "1,".repeat(30_000))), Ok("30001".to_owned()));
    }

    /// Pseudorandom numbers that are the same on every machine.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).expect("31 bits fit") % sides
        }

        fn pick(&mut self, words: &[&str]) -> String {
            words[self.roll(words.len())].to_owned()
        }
    }

    /// A fully parenthesized expression, and the same one with only the necessary parentheses.
    fn generate(dice: &mut Dice, depth: usize, weakest: Level) -> (String, String) {
        let operator = |dice: &mut Dice, level: Level, signs: &[&str], chains: bool| {
            let sign = dice.pick(signs);
            let (left, bare_left) = generate(dice, depth - 1, if chains { level } else { level.tighter() });
            let (right, bare_right) = generate(dice, depth - 1, level.tighter());
            let bare = format!("{bare_left} {sign} {bare_right}");
            let bare = if level >= weakest { bare } else { format!("( {bare})") };
            (format!("({left} {sign} {right})"), bare)
        };
        match if depth == 0 { 0 } else { dice.roll(9) } {
            0 => {
                let words = [
                    "item",
                    "parameters.a-b",
                    "'}}'",
                    "\"\\\"\"",
                    "-1",
                    "2.5",
                    "true",
                    "null",
                    "stages['x']",
                ];
                let word = dice.pick(&words);
                (word.clone(), word)
            }
            1 => operator(dice, Level::Or, &["||"], true),
            2 => operator(dice, Level::And, &["&&"], true),
            3 => operator(dice, Level::Equality, &["==", "!="], false),
            4 => operator(dice, Level::Ordering, &["<", "<=", ">", ">="], false),
            5 => {
                let (inner, bare) = generate(dice, depth - 1, Level::Operand);
                (format!("!({inner})"), format!("!{bare}"))
            }
            6 => {
                let (inner, bare) = generate(dice, depth - 1, Level::Or);
                (format!("default({inner}, [{inner}])"), format!("default ({bare},[ {bare} ] )"))
            }
            7 => {
                let (inner, bare) = generate(dice, depth - 1, Level::Or);
                (format!("item.a[{inner}].b"), format!("item . a[ {bare}] .b"))
            }
            _ => {
                let (when, bare_when) = generate(dice, depth - 1, Level::Or);
                let (then, bare_then) = generate(dice, depth - 1, Level::Or);
                let (other, bare_other) = generate(dice, depth - 1, Level::Or);
                let full = format!("(({when}) ? ({then}) : ({other}))");
                (full, format!("( {bare_when} ? {bare_then} : {bare_other})"))
            }
        }
    }

    /// Spans are not serialized, so trees from two texts can be compared.
    fn tree(text: &str) -> serde_json::Value {
        let expr = parse_expression(text, &locate).unwrap_or_else(|found| panic!("{text}: {found:?}"));
        serde_json::to_value(expr).expect("trees have no secrets")
    }

    #[test]
    fn precedence_means_the_same_as_parentheses() {
        let mut dice = Dice(1);
        for _ in 0..2_000 {
            let (full, bare) = generate(&mut dice, 4, Level::Or);
            assert_eq!(tree(&full), tree(&bare), "{full}\n{bare}");
        }
    }

    #[test]
    fn the_text_of_every_node_means_that_node() {
        let mut dice = Dice(2);
        for _ in 0..300 {
            let (_, text) = generate(&mut dice, 4, Level::Or);
            let expr = parse_expression(&text, &locate).expect("generated texts are valid");
            expr.walk(&mut |part| {
                let expected = serde_json::to_value(part).expect("trees have no secrets");
                assert_eq!(tree(under(&text, part.span)), expected, "{text}");
            });
        }
    }

    #[test]
    fn random_tokens_never_panic() {
        const WORDS: &[&str] = &[
            "${{",
            "}}",
            "'",
            "\"",
            "\\",
            "\\u12",
            "item",
            ".",
            "[",
            "]",
            "(",
            ")",
            ",",
            "-",
            "1",
            "0.5",
            "!",
            "=",
            "==",
            "&&",
            "|",
            "?",
            ":",
            " ",
            "\n",
            "é",
            "length",
            "toJSON",
            "null",
            "secrets.TOKEN",
            "{",
            "$",
        ];
        let mut dice = Dice(3);
        for _ in 0..20_000 {
            let text: String = (0..dice.roll(24)).map(|_| dice.pick(WORDS)).collect();
            // `summary` reads the text under each span, so an invalid span would panic.
            if let Ok(value) = rendered(&text) {
                assert!(!matches!(value, Value::Float(_)) || text.contains('.'), "{text}");
            }
            if let Err(found) = parse_condition(&text, &locate) {
                assert!(!summary(&text, &found).is_empty(), "{text}");
            }
        }
    }
}
