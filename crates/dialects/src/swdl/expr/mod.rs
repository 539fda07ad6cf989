//! The syntax of swdl's expressions: `${{ … }}` in text, and conditions with or without the braces.
//!
//! `template` finds the expressions in a text, `scan` produces tokens, `parse` builds the tree by precedence climbing,
//! and `words` has the names of the language. Unknown names and functions do not stop the parser, so one expression may
//! have several findings; the first syntax error ends it. Nesting and length are limited.

mod parse;
mod scan;
mod template;
mod words;

pub use template::{parse_condition, parse_expression, parse_template};
pub use words::namespace_word;

use std::ops::Range;
use windlass_ir::Span;

/// The maximum nesting of parentheses, calls, lists, operators and members.
pub const DEPTH_MAX: usize = 256;
/// The maximum number of findings for one text.
pub const FINDINGS_MAX: usize = 50;

/// Maps a range of the text to its location in the file.
type Locate<'a> = &'a dyn Fn(Range<usize>) -> Span;
