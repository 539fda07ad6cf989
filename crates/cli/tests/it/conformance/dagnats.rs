use super::{Case, Program};

pub fn cases(_: &Program) -> Vec<Case> {
    Vec::new()
}
