//! The parser: precedence climbing over tokens.

use super::scan::{Kind, Token};
use super::words::{
    NAMESPACES, NOW, QUERY, bad_arity, namespace_word, shortened, unknown_function, unknown_namespace,
};
use super::{DEPTH_MAX, FINDINGS_MAX, Locate};
use std::ops::Range;
use windlass_ir::expr::{BinaryOp, Expr, Function, Node, Query, Read, is_name};
use windlass_ir::{Code, Diagnostic, Value};

/// Parsing stopped; the reason is among the diagnostics.
pub(super) struct Stop;

/// An expression, its source range including parentheses, and its height as a tree. It is small because the functions
/// that return it recurse hundreds of levels deep.
struct Parsed {
    expr: Box<Expr>,
    range: Range<usize>,
    height: usize,
}

pub(super) struct Parser<'a> {
    /// Ends where the expression ends.
    pub(super) text: &'a str,
    pub(super) token: Token,
    pub(super) locate: Locate<'a>,
    depth: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, start: usize, locate: Locate<'a>) -> Self {
        let token = Token { kind: Kind::End, range: start..start };
        Self { text, token, locate, depth: 0, diagnostics: Vec::new() }
    }

    pub(super) fn run(mut self) -> Result<Expr, Vec<Diagnostic>> {
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
            if op == BinaryOp::Subtract && !self.has_spaces() {
                return Err(self.tight_minus());
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
            (Kind::Symbol, "+") => (BinaryOp::Add, Level::Sum),
            (Kind::Symbol, "-") => (BinaryOp::Subtract, Level::Sum),
            (Kind::Symbol, "*") => (BinaryOp::Multiply, Level::Product),
            (Kind::Symbol, "/") => (BinaryOp::Divide, Level::Product),
            (Kind::Symbol, "%") => (BinaryOp::Remainder, Level::Product),
            _ => return None,
        };
        Some(found)
    }

    /// Whether the token has whitespace on both sides. A minus without it could be part of a name or a number.
    fn has_spaces(&self) -> bool {
        let before = self.text[..self.token.range.start].ends_with(char::is_whitespace);
        before && self.text[self.token.range.end..].starts_with(char::is_whitespace)
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
            let message = "a minus in front of a value is only allowed in a number such as `-3`";
            return Err(self.syntax(message, "write `0 - value`", minus));
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
        match word {
            QUERY => return self.query(name),
            NOW => return self.now(name),
            _ => {}
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

    /// `now()`: read from the run, which records every value that it decides with.
    fn now(&mut self, name: Range<usize>) -> Result<Parsed, Stop> {
        let (args, end, _) = self.items(")", "`)`")?;
        let range = name.start..end;
        if !args.is_empty() {
            let message = format!("`{NOW}` takes no arguments, got {}", args.len());
            let found = Diagnostic::error(Code::BadArity, message).reference(NOW);
            self.report(range.clone(), || found.help(format!("write `{NOW}()`")));
        }
        self.node(Node::Read(Read::Now), range, 0)
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
    Sum,
    Product,
    /// Tighter than every operator.
    Operand,
}

impl Level {
    fn tighter(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Equality,
            Self::Equality => Self::Ordering,
            Self::Ordering => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Operand => Self::Operand,
        }
    }

    fn is_comparison(self) -> bool {
        matches!(self, Self::Equality | Self::Ordering)
    }
}

/// What is wrong, and what to write instead.
impl Parser<'_> {
    pub(super) fn syntax(&mut self, message: &str, help: &str, range: Range<usize>) -> Stop {
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

    fn tight_minus(&mut self) -> Stop {
        let message = "a minus needs a space on both sides";
        let help = "write `a - b` to subtract; without spaces a hyphen is part of a name";
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
                self.syntax(
                    &message,
                    "the operators are `+ - * / % == != < <= > >= && || !` and `a ? b : c`",
                    range,
                )
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
