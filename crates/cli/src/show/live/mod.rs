//! The live view of a run on a terminal. `tree` follows the events, `frame` selects the lines for a screen size, `question`
//! handles answers at a gate, and `paint` turns frames into terminal output. None of them uses a clock or a device.

mod frame;
mod paint;
pub mod question;
mod tree;

pub use frame::{Scene, Size, frame};
pub use paint::Painter;
pub use tree::Tree;

#[cfg(test)]
mod tests;
