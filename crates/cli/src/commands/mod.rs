//! One file per command.

mod eval;
mod graph;
mod plan;
mod validate;

use crate::answer::{Answer, Status};
use crate::args::Command;
use crate::load::Refusal;
use crate::show::{Screen, Screens, diagnostics};

pub fn run(command: Command, screens: Screens) -> Answer {
    match command {
        Command::Validate(args) => validate::run(&args, &screens),
        Command::Plan(args) => plan::run(args, &screens),
        Command::Graph(args) => graph::run(&args, &screens),
        Command::Eval(args) => eval::run(&args, &screens),
    }
}

impl Refusal {
    /// What stands in the way, for people.
    fn answer(&self, screen: &Screen) -> Answer {
        let findings = diagnostics::render(&self.findings, &self.sources, self.file.as_deref(), screen);
        Answer { stderr: findings + diagnostics::PAGES, ..Answer::new(Status::Refused) }
    }

    /// The same for people and for a program.
    fn answer_with_json(&self, screen: &Screen) -> Answer {
        let first = self.findings.iter().find(|finding| finding.is_error());
        let json = serde_json::json!({
            "type": "refused",
            "error": first.map(|finding| serde_json::json!({"code": finding.code, "message": finding.message})),
            "diagnostics": diagnostics::to_json(&self.findings, &self.sources, self.file.as_deref()),
        });
        Answer { stderr: self.answer(screen).stderr, ..Answer::json(Status::Refused, &json) }
    }
}
