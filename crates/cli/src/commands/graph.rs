//! `windlass graph`: the steps of a workflow as a drawing.

use crate::answer::{Answer, Status};
use crate::args::{self, Format};
use crate::graph::{Graph, dot, mermaid};
use crate::load;
use crate::show::Screens;

pub fn run(args: &args::Graph, screens: &Screens) -> Answer {
    let opened = match load::open(&args.file, &args.reading) {
        Ok(opened) => opened,
        Err(refusal) => return refusal.answer(&screens.stderr),
    };
    let graph = Graph::new(&opened.plan, opened.words);
    let stdout = match args.format {
        Format::Mermaid => mermaid::render(&graph),
        Format::Dot => dot::render(&graph),
    };
    Answer { stdout, stderr: opened.note(&screens.stderr), status: Status::Done }
}
