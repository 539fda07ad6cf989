//! `windlass graph`: draws the steps of a workflow.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args;
use crate::load;
use crate::show::cells::fit;
use crate::show::{Screen, Screens};
use windlass_api::graph::text::ascii;
use windlass_api::operations::GraphWorkflow;
use windlass_api::types::{Graph, GraphFormat};

pub fn run(args: &args::Graph, screens: &Screens) -> Result<Answer, Refused> {
    let asked = load::ask(&args.file, &args.reading, true)?;
    let request = GraphWorkflow { of: asked.of.clone(), format: args.format.into() };
    let graph = match pure(request) {
        Ok(graph) => graph,
        Err(refusal) => return Err(asked.refused(refusal)),
    };
    let (diagnostics, overrides) = asked.sorted(&graph.dialect, graph.diagnostics);
    let stderr = load::note(&diagnostics, overrides.as_deref(), &asked.sources, &screens.stderr);
    Ok(match args.json {
        true => Answer::json(Exit::Done, &Graph { diagnostics, ..graph }),
        false => {
            Answer { stdout: drawn(graph.format, graph.text, &screens.stdout), stderr, status: Exit::Done }
        }
    })
}

/// The drawing, for a terminal with what its locale and its width allow.
fn drawn(format: GraphFormat, text: String, screen: &Screen) -> String {
    match format {
        GraphFormat::Mermaid | GraphFormat::Dot => text,
        GraphFormat::Text => {
            let text = if screen.unicode { text } else { ascii(&text) };
            let room = screen.width.map_or(usize::MAX, usize::from);
            let dots = if screen.unicode { "…" } else { "..." };
            text.lines().map(|line| fit(line, room, dots) + "\n").collect()
        }
    }
}
