//! The steps of one scope as a graph: which comes before which, in what order, and whether there are cycles.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::VecDeque;

/// Edges run from a step to its dependents. Steps are numbered in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
    /// Steps in topological order; steps in a cycle are missing.
    order: Vec<u32>,
    batch: Vec<u32>,
}

impl Graph {
    pub fn new(before: Vec<Vec<u32>>) -> Self {
        let mut after = vec![Vec::new(); before.len()];
        for (step, needs) in (0u32..).zip(&before) {
            for need in needs {
                after[*need as usize].push(step);
            }
        }
        let mut graph = Self { batch: vec![0; before.len()], before, after, order: Vec::new() };
        graph.sort();
        graph
    }

    /// Kahn's algorithm: a step is ready when all its dependencies are placed. Its batch is one more than theirs.
    fn sort(&mut self) {
        let mut waiting: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut ready: VecDeque<u32> =
            (0u32..).zip(&waiting).filter(|(_, count)| **count == 0).map(|(step, _)| step).collect();
        while let Some(step) = ready.pop_front() {
            self.order.push(step);
            for next in &self.after[step as usize] {
                let place = *next as usize;
                self.batch[place] = self.batch[place].max(self.batch[step as usize] + 1);
                waiting[place] -= 1;
                if waiting[place] == 0 {
                    ready.push_back(*next);
                }
            }
        }
    }

    pub fn needs(&self, step: usize) -> &[u32] {
        &self.before[step]
    }

    pub fn dependents(&self, step: usize) -> &[u32] {
        &self.after[step]
    }

    pub fn batch(&self, step: usize) -> u32 {
        self.batch[step]
    }

    pub fn is_acyclic(&self) -> bool {
        self.order.len() == self.before.len()
    }

    /// One cycle for each strongly connected component, in order of execution, with the first step repeated at the
    /// end.
    pub fn cycles(&self) -> Vec<Vec<u32>> {
        if self.is_acyclic() {
            return Vec::new();
        }
        let mut graph = DiGraph::<(), ()>::with_capacity(self.before.len(), 0);
        for _ in &self.before {
            graph.add_node(());
        }
        for (step, after) in (0u32..).zip(&self.after) {
            for next in after {
                graph.add_edge(NodeIndex::new(step as usize), NodeIndex::new(*next as usize), ());
            }
        }
        let mut cycles: Vec<Vec<u32>> = kosaraju_scc(&graph)
            .into_iter()
            .filter_map(|knot| {
                let mut members: Vec<u32> = knot.iter().map(|node| node.index() as u32).collect();
                members.sort_unstable();
                self.shortest_cycle(members[0], &members)
            })
            .collect();
        cycles.sort_unstable();
        cycles
    }

    /// The shortest path from `start` back to itself inside a component.
    fn shortest_cycle(&self, start: u32, knot: &[u32]) -> Option<Vec<u32>> {
        let mut came_from = vec![None; self.before.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(step) = queue.pop_front() {
            for next in self.after[step as usize].iter().filter(|next| knot.binary_search(next).is_ok()) {
                if *next == start {
                    return Some(trace(&came_from, start, step));
                }
                if came_from[*next as usize].is_none() {
                    came_from[*next as usize] = Some(step);
                    queue.push_back(*next);
                }
            }
        }
        None
    }

    /// Answers many queries "does `ancestor` come before `step`?" at once.
    ///
    /// One pass over the graph follows 64 ancestors, so the cost is one pass per 64 different ancestors, however long
    /// the chains are. Steps in a cycle count as coming after everything: the cycle itself is reported, and more
    /// findings about its dependents would be noise.
    pub fn are_ancestors(&self, questions: &[(u32, u32)]) -> Vec<bool> {
        let mut answers = vec![false; questions.len()];
        let mut asked: Vec<u32> = questions.iter().map(|(ancestor, _)| *ancestor).collect();
        asked.sort_unstable();
        asked.dedup();
        let mut placed = vec![false; self.before.len()];
        self.order.iter().for_each(|step| placed[*step as usize] = true);
        for chunk in asked.chunks(64) {
            let bit = |step: u32| chunk.binary_search(&step).map_or(0, |at| 1u64 << at);
            let mut seen = vec![0u64; self.before.len()];
            for step in &self.order {
                let masks = self.before[*step as usize].iter().map(|need| seen[*need as usize] | bit(*need));
                seen[*step as usize] = masks.fold(0, |all, mask| all | mask);
            }
            for ((ancestor, step), answer) in questions.iter().zip(&mut answers) {
                let hit = bit(*ancestor) != 0 && seen[*step as usize] & bit(*ancestor) != 0;
                *answer |= hit || !placed[*step as usize] || !placed[*ancestor as usize];
            }
        }
        answers
    }

    /// For each step, the last of the marked steps that come before it, in the order of execution.
    pub fn nearest_before(&self, is_marked: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
        let mut rank = vec![0; self.before.len()];
        for (at, step) in self.order.iter().enumerate() {
            rank[*step as usize] = at;
        }
        let mut nearest: Vec<Option<u32>> = vec![None; self.before.len()];
        for step in &self.order {
            let needs = self.before[*step as usize].iter();
            let marked = needs.filter_map(|need| match is_marked(*need as usize) {
                true => Some(*need),
                false => nearest[*need as usize],
            });
            nearest[*step as usize] = marked.max_by_key(|marked| rank[*marked as usize]);
        }
        nearest
    }

    /// For each step, whether it lies between the two steps of one of these pairs, including the first of the pair.
    ///
    /// One pass down and one pass up the graph follow 64 pairs, as in [`Graph::are_ancestors`].
    pub fn are_between(&self, pairs: &[(u32, u32)]) -> Vec<bool> {
        let mut answers = vec![false; self.before.len()];
        for chunk in pairs.chunks(64) {
            let mut down = self.marked(chunk.iter().map(|(from, _)| *from));
            for step in &self.order {
                let masks = self.before[*step as usize].iter().map(|need| down[*need as usize]);
                down[*step as usize] |= masks.fold(0, |all, mask| all | mask);
            }
            let ends = self.marked(chunk.iter().map(|(_, to)| *to));
            let mut up = vec![0u64; self.before.len()];
            for step in self.order.iter().rev() {
                let after = self.after[*step as usize].iter().map(|next| *next as usize);
                up[*step as usize] = after.fold(0, |all, next| all | up[next] | ends[next]);
            }
            answers.iter_mut().zip(down.iter().zip(&up)).for_each(|(answer, (a, b))| *answer |= a & b != 0);
        }
        answers
    }

    /// One bit for each of at most 64 steps, at its position.
    fn marked(&self, steps: impl Iterator<Item = u32>) -> Vec<u64> {
        let mut masks = vec![0u64; self.before.len()];
        steps.enumerate().for_each(|(bit, step)| masks[step as usize] |= 1 << bit);
        masks
    }
}

/// The path from `start` to `last` along the recorded predecessors, and back to `start`.
fn trace(came_from: &[Option<u32>], start: u32, last: u32) -> Vec<u32> {
    let mut path = vec![start, last];
    if last == start {
        return path;
    }
    let mut step = last;
    while let Some(previous) = came_from[step as usize] {
        if previous == start {
            break;
        }
        path.push(previous);
        step = previous;
    }
    path.push(start);
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(needs: &[&[u32]]) -> Graph {
        Graph::new(needs.iter().map(|list| list.to_vec()).collect())
    }

    #[test]
    fn batches_are_levels() {
        let diamond = graph(&[&[2, 3], &[], &[1], &[1]]);
        let batches: Vec<u32> = (0..4).map(|step| diamond.batch(step)).collect();
        assert_eq!(batches, [2, 0, 1, 1]);
        assert!(diamond.cycles().is_empty());
    }

    #[test]
    fn every_component_yields_one_cycle() {
        assert_eq!(graph(&[&[2], &[0], &[1], &[3]]).cycles(), [vec![0, 1, 2, 0], vec![3, 3]]);
        let two_in_one = graph(&[&[1, 2], &[0], &[0], &[0]]);
        assert_eq!(two_in_one.cycles(), [vec![0, 1, 0]]);
    }

    #[test]
    fn long_chains_do_not_overflow_the_stack() {
        let chain = Graph::new((0..100_000u32).map(|i| i.checked_sub(1).into_iter().collect()).collect());
        assert!(chain.is_acyclic());
        assert_eq!(chain.are_ancestors(&[(0, 99_999), (99_999, 0)]), [true, false]);
    }

    #[test]
    fn ancestors_are_found_beyond_sixty_four() {
        let chain = Graph::new((0..200u32).map(|i| i.checked_sub(1).into_iter().collect()).collect());
        let questions: Vec<(u32, u32)> = (0..199).map(|i| (i, 199)).chain([(5, 5), (9, 3)]).collect();
        let answers = chain.are_ancestors(&questions);
        assert!(answers[..199].iter().all(|yes| *yes));
        assert_eq!(answers[199..], [false, false]);
    }

    #[test]
    fn steps_between_two_others_are_found() {
        // 0 -> 1 -> 3 -> 4, 0 -> 2 -> 3, 1 -> 5
        let check = |pairs: &[(u32, u32)], expected: &[usize]| {
            let diamond = graph(&[&[], &[0], &[0], &[1, 2], &[3], &[1]]);
            let answers = diamond.are_between(pairs);
            let found: Vec<usize> = (0..6).filter(|step| answers[*step]).collect();
            assert_eq!(found, expected, "{pairs:?}");
        };
        check(&[(0, 4)], &[0, 1, 2, 3]);
        check(&[(1, 4)], &[1, 3]);
        check(&[(2, 5)], &[]);
        check(&[(1, 5), (3, 4)], &[1, 3]);
        check(&[(4, 0), (3, 3)], &[]);
        check(&[(4, 5); 70].into_iter().chain([(2, 3)]).collect::<Vec<_>>(), &[2]);
    }
}
