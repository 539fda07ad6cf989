//! Expressions: one syntax tree, one bounded evaluator, and the few rules in which dialects differ.
//!
//! A dialect provides a parser for its syntax and a [`Semantics`] value; everything else is shared. `tree` is the
//! syntax tree, `template` text and data that contain expressions, `functions` the built-in functions with `format`,
//! `eval` the evaluator with `arithmetic`, `query` and `search` JSONPath, and `print` turns a tree back into text. Nothing here reads a file, a
//! clock or a run: values come in through [`Scope`].

mod arithmetic;
mod eval;
mod filters;
mod format;
mod functions;
mod pattern;
mod print;
pub mod python;
mod python_json;
mod query;
mod search;
mod semantics;
mod shapes;
mod template;
mod tree;

pub(crate) use arithmetic::JOIN_HELP;
pub use arithmetic::RANGE_ELEMENTS_MAX;
pub use eval::{EvalError, Limits, Scope, equals, evaluate, holds, is_truthy, text_form};
pub use functions::{Arity, Function};
pub use print::{Printer, is_name};
pub use query::{PathPart, Query, QueryError};
pub use semantics::{
    Comparison, ConditionText, FailureRule, FanOutRule, FunctionRules, GateRule, IndexRule, Logic,
    MessageRule, NoInput, ParameterRules, Semantics, SkipRule, TextForm, Truthiness, Visibility,
};
pub use shapes::{
    AssistantFields, BranchShape, CallShape, DoneWord, EnteredWord, FailedShape, FailureClass, GateShape,
    ItemShape, ItemsShape, Occurrences, ProcessShape, RecordShape, RecoveredWord, RepeatShape, ResultShapes,
    StatusWords, StepState, TimeoutWord, UndoneShape, WaitShape, WaitingWord,
};
pub use template::{Piece, Template, render};
pub use tree::{BinaryOp, Expr, Namespace, Node, Read, StepId};
