//! The drawing for a terminal: one line for each step, with rails from each step to those that need it.

use super::{Drawing, Edge, EdgeKind, Group, Item, Number, Shape};
use std::collections::{HashMap, HashSet};

pub fn render(graph: &Drawing) -> String {
    let mut page = Page { edges: &graph.edges, names: HashMap::new(), text: format!("{}\n\n", graph.title) };
    page.name(&graph.items);
    page.list(&graph.items, "");
    page.text
}

/// The same with nothing but ASCII in the rails and marks.
pub fn ascii(text: &str) -> String {
    let plain = |c: char| match c {
        '│' => '|',
        '─' => '-',
        '├' | '┼' | '┬' | '┴' | '╮' | '╯' => '+',
        '●' => '*',
        '◆' => '?',
        '◷' => '~',
        '▤' => '=',
        '■' => '#',
        other => other,
    };
    text.chars().map(plain).collect()
}

struct Page<'a> {
    edges: &'a [Edge],
    /// What people call each box.
    names: HashMap<Number, String>,
    text: String,
}

impl Page<'_> {
    fn name(&mut self, items: &[Item]) {
        for item in items {
            let (number, name) = match item {
                Item::Node(node) => (node.number, node.lines.first().cloned().unwrap_or_default()),
                Item::Group(group) => {
                    self.name(&group.items);
                    (group.number, group.title.split(": ").next().unwrap_or_default().to_owned())
                }
            };
            self.names.insert(number, name);
        }
    }

    /// A list of steps, each behind those that it needs.
    fn list(&mut self, items: &[Item], prefix: &str) {
        let mut rails = Rails::default();
        for item in self.sorted(items) {
            let number = item.number();
            if let Some(row) = rails.merge(number) {
                self.line(prefix, &row, "");
            }
            let lane = rails.lane(number);
            let row = rails.row(lane, item.mark());
            self.line(prefix, &row, &self.about(item));
            let next = self.next(items, number);
            rails.lanes[lane] = next.first().copied();
            if let Item::Group(group) = item {
                let inside = format!("{prefix}{}  ", rails.bars());
                self.list(&group.items, &inside);
            }
            if let Some(row) = rails.fork(lane, next.get(1..).unwrap_or_default()) {
                self.line(prefix, &row, "");
            }
            rails.trim();
        }
    }

    fn line(&mut self, prefix: &str, row: &str, about: &str) {
        let line = format!("{prefix}{row} {about}");
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// In the order of the file, as far as no step comes before one that it needs.
    fn sorted<'i>(&self, items: &'i [Item]) -> Vec<&'i Item> {
        let here: HashSet<Number> = items.iter().map(Item::number).collect();
        let (mut left, mut sorted): (Vec<&Item>, Vec<&Item>) = (items.iter().collect(), Vec::new());
        let mut done = HashSet::new();
        while !left.is_empty() {
            let is_free = |item: &&Item| {
                let needs = self.edges.iter().filter(|edge| edge.to == item.number() && edge.is_order());
                needs.map(|edge| edge.from).all(|from| !here.contains(&from) || done.contains(&from))
            };
            // A plan has no cycles; should it have one, its steps keep the order of the file.
            let at = left.iter().position(is_free).unwrap_or(0);
            let item = left.remove(at);
            done.insert(item.number());
            sorted.push(item);
        }
        sorted
    }

    /// The steps of the same list that need this one.
    fn next(&self, items: &[Item], from: Number) -> Vec<Number> {
        let order = self.sorted(items);
        let needs =
            |to: Number| self.edges.iter().any(|edge| edge.from == from && edge.to == to && edge.is_order());
        order.into_iter().map(Item::number).filter(|to| needs(*to)).collect()
    }

    fn about(&self, item: &Item) -> String {
        let number = item.number();
        let mut parts = match item {
            Item::Node(node) => {
                let (id, rest) =
                    node.lines.split_first().map_or(("", &[][..]), |(id, rest)| (id.as_str(), rest));
                [id.to_owned()]
                    .into_iter()
                    .chain((!rest.is_empty()).then(|| rest.join(", ")))
                    .collect::<Vec<_>>()
            }
            Item::Group(group) => vec![group.title.clone()],
        };
        for edge in self.edges {
            match &edge.kind {
                EdgeKind::Conditional(Some(condition)) if edge.to == number => {
                    parts.push(format!("if {condition}"));
                }
                EdgeKind::OnFailure if edge.from == number => {
                    parts.push(format!("on failure: {}", self.called(edge.to)));
                }
                EdgeKind::OnFailure if edge.to == number => {
                    parts.push(format!("only if {} fails", self.called(edge.from)));
                }
                EdgeKind::Afterwards(word) if edge.from == number => {
                    parts.push(format!("{word}: {}", self.called(edge.to)));
                }
                EdgeKind::Afterwards(word) if edge.to == number => {
                    parts.push(format!("{word} of {}", self.called(edge.from)));
                }
                EdgeKind::Needs
                | EdgeKind::Conditional(_)
                | EdgeKind::OnFailure
                | EdgeKind::Afterwards(_) => {}
            }
        }
        parts.join("  ")
    }

    fn called(&self, number: Number) -> &str {
        self.names.get(&number).map_or("", String::as_str)
    }
}

impl Edge {
    /// Whether the step behind it waits for the one before it.
    fn is_order(&self) -> bool {
        match self.kind {
            EdgeKind::Needs | EdgeKind::Conditional(_) => true,
            EdgeKind::OnFailure | EdgeKind::Afterwards(_) => false,
        }
    }
}

impl Item {
    fn number(&self) -> Number {
        match self {
            Self::Node(node) => node.number,
            Self::Group(Group { number, .. }) => *number,
        }
    }

    fn mark(&self) -> char {
        match self {
            Self::Group(_) => '▤',
            Self::Node(node) => match node.shape {
                Shape::Work => '●',
                Shape::Gate => '◆',
                Shape::FanOut => '▤',
                Shape::Wait => '◷',
                Shape::End => '■',
            },
        }
    }
}

/// The rails that lead down, each to the step that it ends at.
#[derive(Default)]
struct Rails {
    lanes: Vec<Option<Number>>,
}

impl Rails {
    /// The lane of a step: the first that leads to it, or a free one.
    fn lane(&mut self, number: Number) -> usize {
        let known = self.lanes.iter().position(|lane| *lane == Some(number));
        known.unwrap_or_else(|| self.free(0))
    }

    fn free(&mut self, from: usize) -> usize {
        let free = (from..self.lanes.len()).find(|lane| self.lanes[*lane].is_none());
        free.unwrap_or_else(|| {
            self.lanes.push(None);
            self.lanes.len() - 1
        })
    }

    /// Joins all lanes that lead to a step. None if there is only one.
    fn merge(&mut self, number: Number) -> Option<String> {
        let all = self.lanes.iter().enumerate().filter(|(_, lane)| **lane == Some(number));
        let all: Vec<usize> = all.map(|(at, _)| at).collect();
        let (first, others) = all.split_first().filter(|(_, others)| !others.is_empty())?;
        let row = self.joint(*first, others, ('┴', '╯'));
        others.iter().for_each(|at| self.lanes[*at] = None);
        self.trim();
        Some(row)
    }

    /// Opens a lane for each further step that needs this one.
    fn fork(&mut self, lane: usize, more: &[Number]) -> Option<String> {
        let mut opened = Vec::new();
        for number in more {
            let at = self.free(lane + 1);
            self.lanes[at] = Some(*number);
            opened.push(at);
        }
        opened.sort_unstable();
        (!opened.is_empty()).then(|| self.joint(lane, &opened, ('┬', '╮')))
    }

    /// A row with a line from one lane to others on its right.
    fn joint(&self, from: usize, to: &[usize], (inner, last): (char, char)) -> String {
        let end = to.last().copied().unwrap_or(from);
        let lane = |at: usize| match at {
            _ if at == from => '├',
            _ if at == end => last,
            _ if to.contains(&at) => inner,
            _ if at > from && at < end && self.lanes[at].is_some() => '┼',
            _ if at > from && at < end => '─',
            _ if self.lanes[at].is_some() => '│',
            _ => ' ',
        };
        let mut row = String::new();
        for at in 0..self.lanes.len() {
            row.push(lane(at));
            row.push(if at >= from && at < end { '─' } else { ' ' });
        }
        row
    }

    fn row(&self, lane: usize, mark: char) -> String {
        let cells = self.lanes.iter().enumerate().map(|(at, target)| match target {
            _ if at == lane => mark,
            Some(_) => '│',
            None => ' ',
        });
        cells.flat_map(|cell| [cell, ' ']).collect()
    }

    fn bars(&self) -> String {
        self.lanes.iter().flat_map(|lane| [if lane.is_some() { '│' } else { ' ' }, ' ']).collect()
    }

    fn trim(&mut self) {
        while self.lanes.last().is_some_and(Option::is_none) {
            self.lanes.pop();
        }
    }
}
