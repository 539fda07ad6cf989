//! A run as it is watched on a terminal. `tree` is kept along with the events, `frame` says which lines a screen of some size
//! shows, `question` is a gate being answered, `paint` turns frames into what a terminal is told. None of them knows a clock or
//! a device.

mod frame;
mod paint;
pub mod question;
mod tree;

pub use frame::{Scene, Size, frame};
pub use paint::Painter;
pub use tree::{State, Tree};

#[cfg(test)]
mod tests;
