//! The steps of a run as a tree of lines. Where there are many items or rounds, those that went well are counted.

use super::Screen;
use super::words::{clean, one_line, shorten};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use windlass_ir::{Duration, StepStatus};
use windlass_runtime::Timestamp;
use windlass_runtime::report::Node;

/// More items or rounds than this are not all shown.
const FRAMES_MAX: usize = 12;

pub fn render(tree: &[Node], now: Timestamp, all: bool, screen: &Screen) -> String {
    let width = width(tree, 0, all).min(40);
    let mut page = Page { now, all, screen, width, text: String::new() };
    page.list(tree, 0);
    page.text
}

/// How wide the column of ids is.
fn width(nodes: &[Node], depth: usize, all: bool) -> usize {
    let many = !all && nodes.len() > FRAMES_MAX && nodes.iter().any(|node| node.is_frame);
    let seen = if many { &nodes[..FRAMES_MAX] } else { nodes };
    let widths = seen.iter().map(|node| {
        let own = depth * 2 + node.id.chars().count();
        own.max(width(&node.inside, depth + 1, all))
    });
    widths.max().unwrap_or_default()
}

struct Page<'a> {
    now: Timestamp,
    all: bool,
    screen: &'a Screen,
    width: usize,
    text: String,
}

impl Page<'_> {
    fn list(&mut self, nodes: &[Node], depth: usize) {
        let frames = nodes.iter().filter(|node| node.is_frame).count();
        if self.all || frames <= FRAMES_MAX {
            return nodes.iter().for_each(|node| self.node(node, depth));
        }
        let mut left: BTreeMap<StepStatus, usize> = BTreeMap::new();
        let mut shown = 0;
        for node in nodes {
            if node.is_frame && (is_quiet(node) || shown == FRAMES_MAX) {
                *left.entry(node.status).or_default() += 1;
            } else {
                shown += 1;
                self.node(node, depth);
            }
        }
        let counts: Vec<String> = left.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let more = if shown > 0 { " more" } else { "" };
        let total: usize = left.values().sum();
        let indent = depth * 2 + 2;
        self.text += &format!("{:indent$}  {total}{more}: {}\n", "", counts.join(", "));
    }

    fn node(&mut self, node: &Node, depth: usize) {
        let indent = depth * 2;
        let id = clean(&node.id).into_owned();
        let room = self.width.saturating_sub(indent + id.chars().count());
        let line = format!(
            "{:indent$}  {} {}{:room$}  {}",
            "",
            mark(node.status),
            self.screen.bold(&id),
            "",
            self.about(node)
        );
        self.text += line.trim_end();
        self.text.push('\n');
        self.list(&node.inside, depth + 1);
    }

    fn about(&self, node: &Node) -> String {
        let mut parts = vec![node.status.to_string()];
        if node.attempts > 1 {
            let waits: Vec<String> = node.delays.iter().map(|delay| length(*delay)).collect();
            let waits =
                if waits.is_empty() { String::new() } else { format!(" (waited {})", waits.join(", ")) };
            parts.push(format!("{} attempts{waits}", node.attempts));
        }
        if node.rounds > 1 {
            parts.push(format!("{} rounds", node.rounds));
        }
        let frames: Vec<&Node> = node.inside.iter().filter(|inner| inner.is_frame).collect();
        if node.status == StepStatus::Running && !frames.is_empty() {
            let done = frames.iter().filter(|frame| is_over(frame.status)).count();
            parts.push(format!("{done} of {} begun are over", frames.len()));
        }
        match (node.started_at, node.ended_at, node.status) {
            (Some(start), Some(end), _) => parts.push(length(end.since(start))),
            (Some(start), None, StepStatus::Running | StepStatus::Waiting) => {
                parts.push(format!("for {}", length(self.now.since(start))));
            }
            (_, _, _) => {}
        }
        if node.abandoned {
            parts.push("did not stop in time".to_owned());
        }
        parts.extend(node.because.as_deref().map(|why| format!("because {}", one_line(why))));
        parts.extend(node.wait.as_ref().map(wait_words));
        let error = node.error.as_ref();
        parts.extend(error.map(|(code, message)| format!("{code}: {}", shorten(&one_line(message), 160))));
        parts.join("  ")
    }
}

fn mark(status: StepStatus) -> char {
    match status {
        StepStatus::Pending => '.',
        StepStatus::Running => '>',
        StepStatus::Waiting => '?',
        StepStatus::Success => '+',
        StepStatus::Failed => 'x',
        StepStatus::Recovered => '~',
        StepStatus::Skipped => '-',
        StepStatus::Cancelled => '!',
    }
}

fn is_over(status: StepStatus) -> bool {
    match status {
        StepStatus::Success
        | StepStatus::Failed
        | StepStatus::Recovered
        | StepStatus::Skipped
        | StepStatus::Cancelled => true,
        StepStatus::Pending | StepStatus::Running | StepStatus::Waiting => false,
    }
}

/// Nobody has to be told about it singly.
fn is_quiet(node: &Node) -> bool {
    match node.status {
        StepStatus::Success | StepStatus::Skipped | StepStatus::Pending | StepStatus::Cancelled => true,
        StepStatus::Failed | StepStatus::Recovered | StepStatus::Running | StepStatus::Waiting => false,
    }
}

/// What is waited for, as it stands in the result of a run.
pub fn wait_words(wait: &Json) -> String {
    let text = |key: &str| wait[key].as_str().map(one_line);
    let what = match (wait["kind"].as_str(), text("message")) {
        (Some("gate"), Some(question)) => format!("waits for a decision: {}", shorten(&question, 160)),
        (Some("gate"), None) => "waits for a decision".to_owned(),
        (Some("signal"), Some(name)) => format!("waits for `{name}`"),
        (Some("run"), Some(run)) => format!("waits for run {run}"),
        (Some("slot"), Some(keys)) if !keys.is_empty() => format!("waits for a place at {keys}"),
        (Some("slot"), _) => "waits for a place".to_owned(),
        (_, Some(message)) => message,
        (_, None) => "waits".to_owned(),
    };
    let place = wait["position"].as_u64().map(|place| format!(", number {place} in line"));
    let since = text("since").map(|since| format!(", since {since}"));
    let until = text("until").map(|until| format!(", until {until}"));
    let people: Vec<&str> =
        wait["approvers"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let by = (!people.is_empty()).then(|| format!(", by {}", one_line(&people.join(" or "))));
    [Some(what), place, since, by, until].into_iter().flatten().collect()
}

/// A length of time as precisely as one wants to read it: `0.4s`, `12.0s`, `3m05s`, `2h07m`.
pub fn length(length: Duration) -> String {
    let seconds = length.0 / 1_000_000;
    match seconds {
        ..60 => format!("{:.1}s", (length.0 / 100_000) as f64 / 10.0),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600.. => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_rounded_down() {
        let check = |micros: u64, expected: &str| assert_eq!(length(Duration(micros)), expected);
        check(0, "0.0s");
        check(1_299_999, "1.2s");
        check(59_999_999, "59.9s");
        check(60_000_000, "1m00s");
        check(7_384_000_000, "2h03m");
    }

    fn node(id: &str, status: StepStatus, is_frame: bool, inside: Vec<Node>) -> Node {
        Node {
            id: id.into(),
            word: "shell".into(),
            status,
            attempts: 1,
            rounds: 0,
            delays: Vec::new(),
            started_at: None,
            ended_at: None,
            error: None,
            because: None,
            wait: None,
            abandoned: false,
            is_frame,
            inside,
        }
    }

    #[test]
    fn many_items_are_counted_and_those_that_failed_are_shown() {
        let items = |count: usize| {
            let items = (0..count).map(|number| {
                let state = if number == 7 { StepStatus::Failed } else { StepStatus::Success };
                node(&format!("each[{number}]"), state, true, Vec::new())
            });
            vec![node("each", StepStatus::Failed, false, items.collect())]
        };
        let text = render(&items(10_000), Timestamp(0), false, &Screen::default());
        assert_eq!(text, "  x each        failed\n    x each[7]   failed\n      9999 more: 9999 success\n");
        assert_eq!(render(&items(9), Timestamp(0), false, &Screen::default()).lines().count(), 10);
        assert_eq!(render(&items(99), Timestamp(0), true, &Screen::default()).lines().count(), 100);
    }

    #[test]
    fn names_cannot_steer_a_terminal() {
        let nodes = [node("a\u{1b}[2J", StepStatus::Success, false, Vec::new())];
        assert!(!render(&nodes, Timestamp(0), false, &Screen::default()).contains('\u{1b}'));
    }
}
