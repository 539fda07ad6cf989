//! Applies scripted events, renders frames for many screen sizes, and paints them on an emulated terminal.

#![expect(clippy::needless_pass_by_value, reason = "the events are written as literals")]

use super::question::{Key, Question};
use super::{Painter, Scene, Size, Tree, frame};
use crate::show::Screen;
use crate::show::cells::{Cells, Tone};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use windlass_dialects::{Options, Text};
use windlass_ir::Value;
use windlass_runtime::{Choice, Event, Line, Program, RunId, Timestamp, View};

/// A run built from scripted events.
struct Story {
    run: RunId,
    view: View,
    tree: Tree,
    now: f64,
}

const SCREEN: Screen = Screen { color: false, unicode: true, width: None };

impl Story {
    fn of(workflow: &str) -> Self {
        let text = Text { name: "w.yaml".to_owned(), bytes: workflow.as_bytes().to_vec() };
        let loaded = windlass_dialects::load(text, Options::default());
        let plan = loaded.plan.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        let view = View::new(Arc::new(Program::new(plan).expect("a valid program")));
        let run = RunId::new("r").expect("a valid id");
        let mut story = Self { run, tree: Tree::of(&view), view, now: 0.0 };
        story.apply(json!({"event": "started", "inputs": {}, "env": {"plain": {}}, "seed": 1, "about": {}}));
        story
    }

    fn after(&mut self, seconds: f64) -> &mut Self {
        self.now += seconds;
        self
    }

    fn apply(&mut self, mut event: Json) -> &mut Self {
        event["at"] = json!(self.at());
        let event: Event = serde_json::from_value(event).expect("an event");
        self.view.apply(&event).expect("an event that applies");
        self.tree.follow(&self.view, &event);
        self
    }

    fn at(&self) -> Timestamp {
        Timestamp((self.now * 1e6) as i64)
    }

    fn starts(&mut self, path: Json) -> &mut Self {
        let work = json!({"tool": {"tool": "t", "server": null, "args": {"plain": {}}}});
        let assignment = json!({"input": {}, "work": work});
        self.apply(json!({"event": "scheduled", "path": path, "attempt": 1, "delivery": 1, "assignment": assignment}))
    }

    fn settles(&mut self, path: Json, outcome: Json) -> &mut Self {
        self.apply(json!({"event": "settled", "path": path, "outcome": outcome}))
    }

    fn cancels(&mut self, path: Json) -> &mut Self {
        self.apply(json!({"event": "cancel_requested", "path": path, "why": "halted", "by": "me"}))
    }

    fn done(&mut self, path: Json) -> &mut Self {
        self.settles(path, json!({"done": null}))
    }

    fn enters(&mut self, path: Json, decision: Json) -> &mut Self {
        self.apply(json!({"event": "entered", "path": path, "decision": decision}))
    }

    fn asks(&mut self, path: Json, message: &str) -> &mut Self {
        let gate = json!({"gate": {"message": message, "input": {}, "on_timeout": "halt"}});
        self.enters(path, gate)
    }

    fn prints(&mut self, path: Json, text: &[u8]) -> &mut Self {
        let job = json!({"run": "r", "path": path, "attempt": 1, "delivery": 1});
        let job = serde_json::from_value(job).expect("a job");
        let line = Line { job, stream: windlass_runtime::Stream::Stdout, bytes: text.to_vec() };
        self.tree.add_line(&self.view, line);
        self
    }

    fn lines(&mut self, size: Size, question: Option<&Question>, screen: &Screen) -> Vec<Cells> {
        self.tree.settle(&self.view);
        let scene = Scene {
            run: &self.run,
            view: &self.view,
            tree: &self.tree,
            now: self.at(),
            beat: Some(0),
            question,
            hint: "Ctrl-C stops",
            screen,
        };
        let lines = frame(&scene, size);
        assert!(lines.len() <= size.height, "{} lines on {size:?}", lines.len());
        for line in &lines {
            assert!(line.width() < size.width.max(2), "{} on {size:?}", line.render(false));
        }
        lines
    }

    /// The frames for several screen sizes, one below the other.
    fn seen(&mut self, sizes: &[(usize, usize)], question: Option<&Question>) -> String {
        let mut text = String::new();
        for (width, height) in sizes.iter().copied() {
            text += &format!("==== {width} x {height}\n");
            for line in self.lines(Size { width, height }, question, &SCREEN) {
                text += &format!("{}\n", line.render(false).trim_end());
            }
        }
        text
    }
}

const SHIP: &str = "
workflow: { id: ship, name: 'Ship 出荷 🚀' }
stages:
  - { id: research, type: shell, run: a }
  - { id: build-everything-that-there-is, type: shell, run: a, depends_on: [research] }
  - id: photos
    type: fan_out
    depends_on: [research]
    fan_out: { source: [東京, Bonn, Lima], stage_template: { type: shell, run: a } }
  - { id: flaky, type: shell, run: a, depends_on: [research] }
  - { id: gate, type: gate, gate: { approvers: [dana] }, depends_on: [flaky] }
  - { id: last, type: shell, run: a, depends_on: [gate] }
";

fn ship() -> Story {
    let mut story = Story::of(SHIP);
    story.starts(json!(["research"])).after(2.5).done(json!(["research"]));
    story.starts(json!(["build-everything-that-there-is"])).starts(json!(["flaky"]));
    story.enters(json!(["photos"]), json!({"items": {"items": ["東京", "Bonn", "Lima"]}}));
    for item in 0..2 {
        story.starts(json!([["photos", item], "photos"]));
    }
    story.prints(
        json!(["build-everything-that-there-is"]),
        "コンパイル中 crate 17 of 90 👩‍👩‍👧 \u{1b}[2J\n".as_bytes(),
    );
    story.after(64.0).done(json!([["photos", 0], "photos"])).done(json!([["photos", 0]]));
    story.apply(json!({"event": "attempt_failed", "path": ["flaky"], "attempt": 1, "delay": 30_000_000,
        "failure": {"class": "transient", "message": "no\tanswer\u{7}"}}));
    story.after(4.0);
    story
}

const SIZES: [(usize, usize); 5] = [(120, 40), (80, 24), (60, 8), (24, 6), (9, 2)];

#[test]
fn a_running_workflow_fits_screens_of_many_sizes() {
    insta::assert_snapshot!(ship().seen(&SIZES, None));
}

#[test]
fn a_terminal_without_unicode_gets_ascii_marks() {
    let plain = Screen { unicode: false, ..SCREEN };
    let lines = ship().lines(Size { width: 80, height: 24 }, None, &plain);
    insta::assert_snapshot!(lines.iter().map(|line| line.render(false) + "\n").collect::<String>());
}

#[test]
fn a_finished_run_shows_the_result_of_each_step() {
    let mut story = ship();
    let failed =
        json!({"failed": {"class": "error", "message": "exit status 1: \u{1b}]0;owned\u{7}no room"}});
    story.settles(json!(["build-everything-that-there-is"]), failed);
    story.done(json!([["photos", 1], "photos"])).done(json!([["photos", 1]]));
    story.cancels(json!(["photos"])).cancels(json!(["flaky"]));
    for path in
        [json!([["photos", 2], "photos"]), json!([["photos", 2]]), json!(["photos"]), json!(["flaky"])]
    {
        story.settles(path, json!({"cancelled": "halted"}));
    }
    story
        .settles(json!(["gate"]), json!({"skipped": {"reason": "dependency_failed", "because_of": "flaky"}}));
    story.settles(json!(["last"]), json!({"skipped": {"reason": "gate_skipped"}}));
    let outcome = json!({"failed": {"class": "error", "message": "x"}});
    story.apply(json!({"event": "concluded", "outcome": outcome, "has_failures": true}));
    insta::assert_snapshot!(story.seen(&[(80, 24)], None));
}

const FORM: &str = "
workflow: { id: form, name: Form }
stages:
  - { id: a, type: shell, run: a }
  - id: sign-off
    type: gate
    gate:
      approvers: [dana]
      form:
        ticket: { type: string, required: true }
        count: { type: integer, required: false, default: 1 }
  - { id: other, type: gate, gate: {} }
";

fn gates() -> (Story, Question) {
    let mut story = Story::of(FORM);
    story
        .starts(json!(["a"]))
        .asks(json!(["sign-off"]), "Ship 漢字 now?\u{1b}[31m\nAll of it, everywhere, at once?");
    story.asks(json!(["other"]), "").after(3.0);
    let path = serde_json::from_value(json!(["sign-off"])).expect("a path");
    let question = Question::of(&story.run, &story.view, &path, "dana").expect("it asks");
    (story, question)
}

fn types(question: &mut Question, text: &str) {
    text.chars().for_each(|c| assert_eq!(question.press(Key::Char(c)), None));
}

#[test]
fn the_keyboard_answers_a_gate() {
    let (mut story, mut question) = gates();
    let sizes = [(60, 16), (32, 9)];
    let mut seen = story.seen(&sizes, Some(&question));
    types(&mut question, "xa");
    assert_eq!(question.press(Key::Enter), None, "the ticket is missing");
    seen += &story.seen(&sizes, Some(&question));
    types(&mut question, "CR-8");
    question.press(Key::Backspace);
    types(&mut question, "7");
    assert_eq!(question.press(Key::Enter), None);
    types(&mut question, "many");
    assert_eq!(question.press(Key::Enter), None, "not a number");
    seen += &story.seen(&sizes[..1], Some(&question));
    question.press(Key::Erase);
    types(&mut question, "3");
    assert_eq!(question.press(Key::Enter), None);
    types(&mut question, "because of all the arguments in the long thread before, and more");
    seen += &story.seen(&sizes, Some(&question));
    let decided = question.press(Key::Enter).expect("the last Enter submits");
    assert_eq!(decided.choice, Choice::Option("approve".into()));
    assert_eq!(decided.form, Value::map([("ticket", Value::text("CR-7")), ("count", Value::Int(3))]));
    assert!(decided.reason.is_some_and(|reason| reason.ends_with("and more")));
    insta::assert_snapshot!(seen);
}

#[test]
fn a_rejection_skips_the_form_and_escape_goes_back() {
    let (_, mut question) = gates();
    types(&mut question, "a");
    question.press(Key::Escape);
    assert!(!question.is_typing());
    types(&mut question, "r");
    let decided = question.press(Key::Enter).expect("only the reason is missing");
    assert_eq!((decided.choice, decided.reason), (Choice::Option("reject".into()), None));
    assert_eq!(question.press(Key::Char('a')), None, "the decision is already sent");
    question.refused("another user was faster".into());
    types(&mut question, "a");
    assert!(question.is_typing());
}

#[test]
fn a_user_who_is_not_an_approver_cannot_decide() {
    let (mut story, _) = gates();
    let path = serde_json::from_value(json!(["sign-off"])).expect("a path");
    let question = Question::of(&story.run, &story.view, &path, "eve").expect("it asks");
    insta::assert_snapshot!(story.seen(&[(80, 12)], Some(&question)));
}

#[test]
fn ten_thousand_items_are_counted_not_listed() {
    let mut story = Story::of(SHIP);
    story.starts(json!(["research"])).done(json!(["research"]));
    let items: Vec<u32> = (0..10_000).collect();
    story.enters(json!(["photos"]), json!({"items": {"items": items}}));
    for item in 0..9_500 {
        story.starts(json!([["photos", item], "photos"]));
    }
    for item in 0..9_000 {
        let outcome = if item % 1_000 == 7 {
            json!({"failed": {"class": "error", "message": "bad"}})
        } else {
            json!({"done": 1})
        };
        story.settles(json!([["photos", item], "photos"]), outcome.clone());
        story.settles(json!([["photos", item]]), outcome);
    }
    insta::assert_snapshot!(story.seen(&[(80, 24), (50, 10)], None));
}

#[test]
fn ten_thousand_steps_are_folded_around_the_active_ones() {
    let stages: String = (0..10_000).map(|n| format!("  - {{ id: s{n}, type: shell, run: a }}\n")).collect();
    let mut story = Story::of(&format!("workflow: {{ id: flat, name: Flat }}\nstages:\n{stages}"));
    for n in 0..5_000 {
        story.starts(json!([format!("s{n}")])).done(json!([format!("s{n}")]));
    }
    for n in [5_000, 5_001, 7_000] {
        story.starts(json!([format!("s{n}")]));
    }
    let mut seen = story.seen(&[(80, 24), (60, 9)], None);
    for n in 5_002..6_000 {
        story.starts(json!([format!("s{n}")]));
    }
    seen += &story.seen(&[(60, 12)], None);
    insta::assert_snapshot!(seen);
}

/// A screen with pseudorandom lines.
fn random_lines(number: &mut u64, size: Size) -> Vec<Cells> {
    let mut next = |below: usize| {
        *number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*number >> 33) as usize % below.max(1)
    };
    let count = 1 + next(size.height);
    let line = |_| {
        let words: String = (0..next(30)).map(|_| ["漢", "a", "é", " ", "word "][next(5)]).collect();
        Cells::default().with([Tone::Plain, Tone::Good][next(2)], &words).cut(size.width - 1, "…")
    };
    (0..count).map(line).collect()
}

/// The screen after a resize: longer lines wrap, and the cursor stays with its line.
fn resized(terminal: &vt100::Parser, size: Size) -> vt100::Parser {
    let screen = terminal.screen();
    let rows: Vec<String> = screen.rows(0, screen.size().1).collect();
    let (last, _) = screen.cursor_position();
    let (above, line) = (&rows[..last as usize], rows[last as usize].trim_end());
    let mut resized = vt100::Parser::new(size.height as u16, size.width as u16, 0);
    above.iter().for_each(|row| resized.process(format!("{}\r\n", row.trim_end()).as_bytes()));
    let broken = crate::show::cells::width(line).saturating_sub(1) / size.width;
    let up = if broken > 0 { format!("\u{1b}[{broken}A") } else { String::new() };
    resized.process(format!("{line}\r{up}").as_bytes());
    resized
}

#[test]
fn each_frame_replaces_the_last_one_completely() {
    let sizes = [(80, 24), (80, 24), (40, 24), (100, 10), (20, 5), (20, 30)];
    for seed in 0..200 {
        let mut number = seed;
        let mut terminal = vt100::Parser::new(24, 80, 0);
        terminal.process(b"before\r\n");
        let mut painter = Painter::default();
        for step in 0..12 {
            let (width, height) = sizes[if step < 6 { 0 } else { (seed as usize + step) % sizes.len() }];
            let size = Size { width, height };
            if step >= 6 {
                terminal = resized(&terminal, size);
            }
            let lines = random_lines(&mut number, Size { height: height.min(20), ..size });
            terminal.process(painter.paint(&lines, size, seed % 2 == 0).as_bytes());
            let rows: Vec<String> = terminal.screen().rows(0, width as u16).collect();
            let (last, column) = terminal.screen().cursor_position();
            assert_eq!(column, 0, "seed {seed}, step {step}");
            let shown = &rows[(last as usize + 1).saturating_sub(lines.len())..=last as usize];
            let expected: Vec<String> = lines.iter().map(|line| line.render(false)).collect();
            let trimmed =
                |lines: &[String]| lines.iter().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
            assert_eq!(trimmed(shown), trimmed(&expected), "seed {seed}, step {step}");
            assert!(
                rows[last as usize + 1..].iter().all(|row| row.trim().is_empty()),
                "seed {seed}, step {step}"
            );
            if step < 6 {
                assert_eq!(
                    rows[0].trim_end(),
                    "before",
                    "seed {seed}, step {step}: the lines above are lost"
                );
            }
        }
    }
}

#[test]
fn final_lines_replace_the_live_ones() {
    let size = Size { width: 40, height: 10 };
    let lines = |texts: &[&str]| {
        texts.iter().map(|text| Cells::default().with(Tone::Plain, text)).collect::<Vec<_>>()
    };
    let mut terminal = vt100::Parser::new(10, 40, 0);
    let mut painter = Painter::default();
    terminal.process(painter.paint(&lines(&["a", "b", "c"]), size, false).as_bytes());
    assert_eq!(painter.paint(&lines(&["a", "b", "c"]), size, false), "", "nothing has changed");
    terminal.process(painter.clear(size).as_bytes());
    terminal.process(b"a notice\r\n");
    terminal.process(painter.paint(&lines(&["a", "b"]), size, false).as_bytes());
    terminal.process(painter.leave(&lines(&["the end"]), size, false).as_bytes());
    assert_eq!(terminal.screen().contents(), "a notice\nthe end");
    assert_eq!(terminal.screen().cursor_position(), (2, 0));
}
