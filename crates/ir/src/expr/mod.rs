//! Expressions: one syntax tree, one bounded evaluator, and the few rules in which dialects differ.
//!
//! A dialect brings a parser for its surface and a [`Semantics`] value; everything behind that is shared.
//! `tree` is what was written, `template` text and data with expressions in them, `functions` the built-in
//! functions, `eval` the evaluator, `query` and `search` JSONPath, `print` the way back to text. Nothing here reads a file, a clock or a run: values come in through [`Scope`].

mod eval;
mod filters;
mod functions;
mod pattern;
mod print;
pub mod python;
mod python_json;
mod query;
mod search;
mod semantics;
mod template;
mod tree;

pub use eval::{EvalError, Limits, Scope, equals, evaluate, holds, is_truthy, text_form};
pub use functions::{Arity, Function};
pub use print::{Printer, is_name};
pub use query::{PathPart, Query, QueryError};
pub use semantics::{
    Comparison, ConditionText, FunctionRules, IndexRule, Logic, ParameterRules, ResultShapes, Semantics,
    SkipRule, StatusWords, TextForm, Truthiness, Visibility,
};
pub use template::{Piece, Template, render};
pub use tree::{BinaryOp, Expr, Namespace, Node, Read, StepId};
