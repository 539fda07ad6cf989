//! Evaluates a JSONPath by the rules of RFC 9535 on our own values. Each visited node is charged to the [`Meter`]. A
//! secret can be selected but not compared.

use super::eval::{EvalError, Meter, compare, equals_within};
use super::pattern::Patterns;
use super::semantics::Semantics;
use crate::value::Value;
use jsonpath_rust::parser::model::{
    Comparable, Comparison, Filter, FilterAtom, FnArg, JpQuery, Literal, Segment, Selector, SingularQuery,
    SingularQuerySegment, Test, TestFunction,
};
use std::borrow::Cow;
use std::cmp::Ordering;

type Nodes<'v> = Vec<&'v Value>;

/// All nodes that the path selects, in the order of the RFC.
pub(super) fn find<'v>(path: &JpQuery, root: &'v Value, meter: &mut Meter) -> Result<Nodes<'v>, EvalError> {
    Search { root, meter, patterns: Patterns::default() }.segments(&path.segments, root)
}

struct Search<'v, 'm> {
    root: &'v Value,
    meter: &'m mut Meter,
    patterns: Patterns,
}

/// The result of a function or an operand of a comparison. Nothing is different from null.
type Found<'v> = Option<Cow<'v, Value>>;

impl<'v> Search<'v, '_> {
    fn segments(&mut self, segments: &[Segment], from: &'v Value) -> Result<Nodes<'v>, EvalError> {
        let mut nodes = vec![from];
        for segment in segments {
            nodes = self.segment(segment, nodes)?;
        }
        Ok(nodes)
    }

    fn segment(&mut self, segment: &Segment, nodes: Nodes<'v>) -> Result<Nodes<'v>, EvalError> {
        match segment {
            Segment::Descendant(inner) => {
                let nodes = self.descendants(nodes)?;
                self.segment(inner, nodes)
            }
            Segment::Selector(selector) => self.select(std::slice::from_ref(selector), &nodes),
            Segment::Selectors(selectors) => self.select(selectors, &nodes),
        }
    }

    /// The nodes and all their descendants, parents first.
    fn descendants(&mut self, nodes: Nodes<'v>) -> Result<Nodes<'v>, EvalError> {
        let mut found = Vec::new();
        let mut open: Nodes<'v> = nodes.into_iter().rev().collect();
        while let Some(node) = open.pop() {
            self.meter.work(1)?;
            found.push(node);
            let below = open.len();
            open.extend(children(node));
            open[below..].reverse();
        }
        Ok(found)
    }

    fn select(&mut self, selectors: &[Selector], nodes: &[&'v Value]) -> Result<Nodes<'v>, EvalError> {
        let mut found = Vec::new();
        for node in nodes {
            for selector in selectors {
                self.meter.work(1)?;
                self.selector(selector, node, &mut found)?;
            }
        }
        Ok(found)
    }

    fn selector(
        &mut self,
        selector: &Selector,
        node: &'v Value,
        found: &mut Nodes<'v>,
    ) -> Result<(), EvalError> {
        match selector {
            Selector::Name(name) => found.extend(node.get(name)),
            Selector::Index(index) => found.extend(element(node, *index)),
            Selector::Wildcard => {
                let before = found.len();
                found.extend(children(node));
                self.meter.work(found.len() - before)?;
            }
            Selector::Slice(start, end, step) => {
                let before = found.len();
                found.extend(slice(node, *start, *end, *step));
                self.meter.work(found.len() - before)?;
            }
            Selector::Filter(filter) => {
                for child in children(node) {
                    if self.holds(filter, child)? {
                        found.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    fn holds(&mut self, filter: &Filter, node: &'v Value) -> Result<bool, EvalError> {
        self.meter.work(1)?;
        match filter {
            Filter::Or(any) => {
                for filter in any {
                    if self.holds(filter, node)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::And(all) => {
                for filter in all {
                    if !self.holds(filter, node)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Atom(FilterAtom::Filter { expr, not }) => Ok(self.holds(expr, node)? != *not),
            Filter::Atom(FilterAtom::Test { expr, not }) => Ok(self.test(expr, node)? != *not),
            Filter::Atom(FilterAtom::Comparison(comparison)) => self.compare(comparison, node),
        }
    }

    /// A path is true if it selects something, a function if it returns true.
    fn test(&mut self, test: &Test, node: &'v Value) -> Result<bool, EvalError> {
        match test {
            Test::RelQuery(segments) => Ok(!self.segments(segments, node)?.is_empty()),
            Test::AbsQuery(query) => Ok(!self.segments(&query.segments, self.root)?.is_empty()),
            Test::Function(function) => {
                let found = self.function(function, node)?;
                Ok(found.is_some_and(|value| *value == Value::Bool(true)))
            }
        }
    }

    fn compare(&mut self, comparison: &Comparison, node: &'v Value) -> Result<bool, EvalError> {
        let (left, right) = comparison.vals();
        let (left, right) = (self.side(left, node)?, self.side(right, node)?);
        match comparison {
            Comparison::Eq(..) => self.equal(&left, &right),
            Comparison::Ne(..) => Ok(!self.equal(&left, &right)?),
            Comparison::Lt(..) => self.less(&left, &right),
            Comparison::Gt(..) => self.less(&right, &left),
            Comparison::Lte(..) => Ok(self.less(&left, &right)? || self.equal(&left, &right)?),
            Comparison::Gte(..) => Ok(self.less(&right, &left)? || self.equal(&left, &right)?),
        }
    }

    fn equal(&mut self, left: &Found<'_>, right: &Found<'_>) -> Result<bool, EvalError> {
        match (left, right) {
            (Some(left), Some(right)) => equals_within(left, right, &Semantics::HOUSE, self.meter),
            (None, None) => Ok(true),
            (Some(_), None) | (None, Some(_)) => Ok(false),
        }
    }

    /// Only two numbers or two strings have an order.
    fn less(&mut self, left: &Found<'_>, right: &Found<'_>) -> Result<bool, EvalError> {
        let (Some(left), Some(right)) = (left, right) else { return Ok(false) };
        self.meter.read(left.as_str().map_or(0, str::len))?;
        match (&**left, &**right) {
            (Value::Sealed(_), _) | (_, Value::Sealed(_)) => compare(left, right).map(|_| false),
            (_, _) => Ok(compare(left, right).is_ok_and(|order| order == Some(Ordering::Less))),
        }
    }

    fn side(&mut self, side: &Comparable, node: &'v Value) -> Result<Found<'v>, EvalError> {
        match side {
            Comparable::Literal(literal) => Ok(Some(Cow::Owned(value_of(literal)))),
            Comparable::Function(function) => self.function(function, node),
            Comparable::SingularQuery(query) => {
                let (segments, from) = match query {
                    SingularQuery::Current(segments) => (segments, node),
                    SingularQuery::Root(segments) => (segments, self.root),
                };
                self.meter.work(segments.len())?;
                let found = segments.iter().try_fold(from, |here, segment| match segment {
                    SingularQuerySegment::Name(name) => here.get(name),
                    SingularQuerySegment::Index(index) => element(here, *index),
                });
                Ok(found.map(Cow::Borrowed))
            }
        }
    }

    fn function(&mut self, function: &TestFunction, node: &'v Value) -> Result<Found<'v>, EvalError> {
        let value = match function {
            TestFunction::Length(arg) => self.length(arg, node)?,
            TestFunction::Count(arg) => Some(whole(self.argument(arg, node)?.len())),
            TestFunction::Value(arg) => return self.single(arg, node),
            TestFunction::Search(text, pattern) => Some(self.matches(text, pattern, node, false)?),
            TestFunction::Match(text, pattern) => Some(self.matches(text, pattern, node, true)?),
            TestFunction::Custom(name, args) => self.membership(name, args, node)?,
        };
        Ok(value.map(Cow::Owned))
    }

    /// The nodes that a path selects, or the value of a literal or function.
    fn argument(&mut self, arg: &FnArg, node: &'v Value) -> Result<Vec<Cow<'v, Value>>, EvalError> {
        let nodes = match arg {
            FnArg::Literal(literal) => return Ok(vec![Cow::Owned(value_of(literal))]),
            FnArg::Filter(filter) => return Ok(vec![Cow::Owned(Value::Bool(self.holds(filter, node)?))]),
            FnArg::Test(test) => match &**test {
                Test::Function(function) => return Ok(self.function(function, node)?.into_iter().collect()),
                Test::RelQuery(segments) => self.segments(segments, node)?,
                Test::AbsQuery(query) => self.segments(&query.segments, self.root)?,
            },
        };
        Ok(nodes.into_iter().map(Cow::Borrowed).collect())
    }

    fn single(&mut self, arg: &FnArg, node: &'v Value) -> Result<Found<'v>, EvalError> {
        let mut values = self.argument(arg, node)?;
        Ok(if values.len() == 1 { values.pop() } else { None })
    }

    /// The number of characters, elements or members of one value; for a path that can select several nodes, their
    /// number.
    fn length(&mut self, arg: &FnArg, node: &'v Value) -> Result<Option<Value>, EvalError> {
        let values = self.argument(arg, node)?;
        let [value] = values.as_slice() else {
            return Ok((!values.is_empty()).then(|| whole(values.len())));
        };
        Ok(match &**value {
            Value::Text(text) => {
                self.meter.read(text.len())?;
                Some(whole(text.chars().count()))
            }
            Value::List(items) => Some(whole(items.len())),
            Value::Map(map) => Some(whole(map.len())),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Sealed(_) => None,
        })
    }

    fn matches(
        &mut self,
        text: &FnArg,
        pattern: &FnArg,
        node: &'v Value,
        entire: bool,
    ) -> Result<Value, EvalError> {
        let (text, pattern) = (self.single(text, node)?, self.single(pattern, node)?);
        let (Some(text), Some(pattern)) = (&text, &pattern) else { return Ok(Value::Bool(false)) };
        let (Some(text), Some(pattern)) = (text.as_str(), pattern.as_str()) else {
            return Ok(Value::Bool(false));
        };
        self.patterns.matches(text, pattern, entire, self.meter).map(Value::Bool)
    }

    /// Functions that the original program supports in addition to those of the RFC.
    fn membership(
        &mut self,
        name: &str,
        args: &[FnArg],
        node: &'v Value,
    ) -> Result<Option<Value>, EvalError> {
        let mut values = Vec::new();
        for arg in args {
            values.extend(self.argument(arg, node)?);
        }
        let [left, right] = values.as_slice() else { return Ok(None) };
        let Value::List(all) = &**right else { return Ok(None) };
        let of_element = matches!(name, "in" | "nin");
        let wanted = match &**left {
            _ if of_element => std::slice::from_ref(&**left),
            Value::List(items) => items.as_ref(),
            _ => return Ok(None),
        };
        let mut present = 0;
        for item in wanted {
            present += usize::from(self.contains(all, item)?);
        }
        Ok(match name {
            "in" | "any_of" => Some(Value::Bool(present > 0)),
            "nin" | "none_of" => Some(Value::Bool(present == 0)),
            "subset_of" => Some(Value::Bool(present == wanted.len())),
            _ => None,
        })
    }

    fn contains(&mut self, all: &[Value], item: &Value) -> Result<bool, EvalError> {
        for other in all {
            if equals_within(other, item, &Semantics::HOUSE, self.meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The elements of a list or the values of an object, in order.
fn children(node: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match node {
        Value::List(items) => Box::new(items.iter()),
        Value::Map(map) => Box::new(map.values()),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Sealed(_) => Box::new(std::iter::empty()),
    }
}

fn items(node: &Value) -> &[Value] {
    if let Value::List(items) = node { items } else { &[] }
}

/// A negative index counts from the end.
fn element(node: &Value, index: i64) -> Option<&Value> {
    let items = items(node);
    let place = match usize::try_from(index) {
        Ok(place) => place,
        Err(_) => items.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    items.get(place)
}

/// `[start:end:step]`, by the formulas of the RFC.
fn slice(node: &Value, start: Option<i64>, end: Option<i64>, step: Option<i64>) -> Nodes<'_> {
    let items = items(node);
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let place = |at: i64| if at >= 0 { at } else { length.saturating_add(at) };
    let step = step.unwrap_or(1);
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    let range = |from: i64, to: i64| from as usize..to.max(from) as usize;
    match step {
        0 => Vec::new(),
        1.. => {
            let from = place(start.unwrap_or(0)).clamp(0, length);
            let to = place(end.unwrap_or(length)).clamp(0, length);
            items[range(from, to)].iter().step_by(stride).collect()
        }
        _ => {
            // Both bounds are shifted by one compared with the RFC, so that neither is negative.
            let from = place(start.unwrap_or(length - 1)).clamp(-1, length - 1) + 1;
            let to = end.map_or(-1, |end| place(end).clamp(-1, length - 1)) + 1;
            items[range(to, from)].iter().rev().step_by(stride).collect()
        }
    }
}

fn whole(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn value_of(literal: &Literal) -> Value {
    match literal {
        Literal::Int(int) => Value::Int(*int),
        Literal::Float(float) => Value::Float(*float),
        Literal::String(text) => Value::text(text.as_str()),
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::Null => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::{EvalError, Read, Scope};
    use crate::expr::{Expr, Limits, Node, Query, Semantics, evaluate};
    use crate::source::Span;
    use crate::value::Value;

    struct Nothing;

    impl Scope for Nothing {
        fn read(&self, _: Read) -> Result<Value, EvalError> {
            Ok(Value::Null)
        }
    }

    const DATA: &str = r#"{
        "o": [0, 1, [2, 3]],
        "books": [
            {"title": "Sayings", "price": 8.95, "tags": ["a", "b"]},
            {"title": "Sword", "price": 13, "isbn": null},
            {"title": "Moby\rDick", "price": 8.99, "isbn": "0-553", "tags": []}
        ],
        "limit": 9, "list": ["a", "z"], "one": [{"p": [1, 2]}], "e": {"k": {}, "n": null}
    }"#;

    fn query(path: &str, data: Value) -> Result<Value, EvalError> {
        query_within(path, data, &Limits::default())
    }

    fn query_within(path: &str, data: Value, limits: &Limits) -> Result<Value, EvalError> {
        let path = Query::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let of = Box::new(Expr::new(Node::Literal(data), Span::default()));
        let expr = Expr::new(Node::Query { of, path }, Span::default());
        evaluate(&expr, &Nothing, &Semantics::DCC, limits)
    }

    fn check(path: &str, expected: &str) {
        let data = serde_json::from_str(DATA).expect("test data is JSON");
        let found = query(path, data).map(|value| value.to_json_text().expect("no secrets"));
        assert_eq!(found.as_deref(), Ok(expected), "{path}");
    }

    #[test]
    fn names_indices_and_slices() {
        check("$.limit", "9");
        check("$.nowhere", "null");
        check("$.limit.x", "null");
        check("$.o[1]", "1");
        check("$.o[-1]", "[2,3]");
        check("$.o[-4]", "null");
        check("$.o[9]", "null");
        check("$.o[0, 1]", "[0,1]");
        check("$.o[0:2]", "[0,1]");
        check("$.o[-2:]", "[1,[2,3]]");
        check("$.o[::-1]", "[[2,3],1,0]");
        check("$.o[2:0:-2]", "[2,3]");
        check("$.o[1::-1]", "[1,0]");
        check("$.o[::0]", "null");
        check("$.o[5:1]", "null");
        check("$.o[-9007199254740991:9007199254740991:9007199254740991]", "0");
        check("$.limit[0:1]", "null");
    }

    #[test]
    fn one_match_is_a_value_and_several_are_a_list() {
        check("$.one[*].p", "[1,2]");
        check("$.books[*].isbn", r#"[null,"0-553"]"#);
        check("$.e.*", "[{},null]");
        check("$.o[*]", "[0,1,[2,3]]");
        check("$..[1]", r#"[1,3,{"title":"Sword","price":13,"isbn":null},"b","z",2]"#);
        check("$.o..[0, 1]", "[0,1,2,3]");
        check("$..p", "[1,2]");
        check("$..nowhere", "null");
    }

    #[test]
    fn filters() {
        check("$.books[?@.price < 9].title", r#"["Sayings","Moby\rDick"]"#);
        check("$.books[?@.price > $.limit].title", r#""Sword""#);
        check("$.books[?@.price == 13.0].title", r#""Sword""#);
        check("$.books[?@.isbn].title", r#"["Sword","Moby\rDick"]"#);
        check("$.books[?!@.isbn].title", r#""Sayings""#);
        check("$.books[?@.isbn == null].title", r#""Sword""#);
        check("$.books[?@.a == @.b].price", "[8.95,13,8.99]");
        check("$.books[?@.a <= @.b].price", "[8.95,13,8.99]");
        check("$.books[?@.a < 1].price", "null");
        check("$.books[?(@.price < 9 && @.isbn) || @.title == 'Sword'].price", "[13,8.99]");
        check("$.books[?@.title >= 'Sa'].title", r#"["Sayings","Sword"]"#);
        check("$.books[?@.tags == $.one[0].p]", "null");
        check("$.books[?@.tags == @.tags].price", "[8.95,13,8.99]");
        check("$.e[?@ == null]", "null");
        check("$.books[?$.limit].price", "[8.95,13,8.99]");
        check("$.books[?@.tags[?@ == 'b']].title", r#""Sayings""#);
    }

    #[test]
    fn functions() {
        check("$.books[?length(@.title) > 6].title", r#"["Sayings","Moby\rDick"]"#);
        check("$.books[?length(@.tags) == 0].title", r#""Moby\rDick""#);
        check("$.books[?length(@.price) == 1].title", "null");
        check("$.books[?count(@.*) == 3].title", r#"["Sayings","Sword"]"#);
        check("$.books[?count(@.nowhere) == 0].price", "[8.95,13,8.99]");
        check("$.books[?value(@.tags[0]) == 'a'].price", "8.95");
        check("$.books[?match(@.title, 'S.*')].price", "[8.95,13]");
        check("$.books[?match(@.title, 'Moby.Dick')].price", "null");
        check("$.books[?match(@.title, 'Moby[^a]Dick')].price", "8.99");
        check("$.books[?match(@.title, 'S|Sword')].price", "13");
        check("$.books[?search(@.title, 'ay|or')].price", "[8.95,13]");
        check("$.books[?search(@.title, '(')].price", "null");
        check("$.books[?search(@.price, '8')].price", "null");
        check("$.o[?in(@, $.o)]", "[0,1,[2,3]]");
        check("$.list[?nin(@, $.books[0].tags)]", r#""z""#);
        check("$.books[?any_of(@.tags, $.list)].price", "8.95");
        check("$.books[?none_of(@.tags, $.list)].price", "8.99");
        check("$.books[?subset_of(@.tags, $.list)].price", "8.99");
    }

    #[test]
    fn a_secret_is_selected_but_not_compared() {
        let data = || Value::map([("list", Value::list([Value::secret("A"), Value::Int(1)]))]);
        assert_eq!(query("$.list[0]", data()), Ok(Value::secret("A")));
        assert_eq!(query("$.list[0].x", data()), Ok(Value::Null));
        for path in ["$.list[?@ == 1]", "$.list[?@ < 1]", "$.list[?in(@, $.list)]"] {
            assert!(query(path, data()).expect_err(path).message.starts_with("a secret cannot be"), "{path}");
        }
    }

    #[test]
    fn searches_are_bounded() {
        let wide = Value::list((0..100).map(Value::Int));
        let wide = Value::list((0..100).map(|_| wide.clone()));
        let shared = (0..60).fold(Value::Null, |inner, _| Value::list([inner.clone(), inner]));
        let many = format!("${}", "[*]".repeat(60));
        let deep = (0..200).fold(Value::Null, |inner, _| Value::list([inner]));
        let descents = format!("${}", "..*".repeat(40));
        let pairs = "$[?count($[?count($[?count($[*][*]) > 0]) > 0]) > 0]".to_owned();
        for (path, data) in [(many, shared), (descents, deep), (pairs, wide)] {
            let limits = Limits { steps_max: 100_000, ..Limits::default() };
            let error = query_within(&path, data, &limits).expect_err(&path);
            assert_eq!(error.code, crate::Code::ExpressionLimit, "{path}");
        }
    }
}
