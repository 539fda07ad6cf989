//! Asks at gates line by line, as Spec Kit does. The options are numbered; the user answers with a number or an option in any
//! letter case, and any other answer repeats the question. End of input means no. If a rejected gate asks again, the run stays
//! waiting.

use crate::answer;
use crate::show::words::{clean, one_line};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use windlass_api::operations::{ApproveGate, Decide};
use windlass_api::{Caller, Door, Refusal};
use windlass_ir::Value;
use windlass_ir::workflow::Kind;
use windlass_runtime::{Decision, Event, Path, RunId, StepPhase, StepView, View, What, says_no};

/// The most lines of a file to show at a gate.
const FILE_LINES_MAX: usize = 200;

#[derive(Debug)]
pub struct Asker {
    run: RunId,
    door: Door,
    by: String,
    /// Gates to ask about.
    open: VecDeque<Path>,
    /// Gates decided in this process.
    decided: HashSet<Path>,
    /// The current gate and its options.
    asked: Option<(Path, Vec<Arc<str>>)>,
    deciding: Option<JoinHandle<Result<(), Refusal>>>,
    wants: Sender<()>,
    lines: UnboundedReceiver<Option<String>>,
}

impl Asker {
    pub fn new(run: &RunId, view: &View, door: &Door, by: &str) -> Self {
        let (wants, wanted) = std::sync::mpsc::channel();
        let (read, lines) = tokio::sync::mpsc::unbounded_channel();
        // Reading a line blocks and cannot be canceled, so it needs its own thread. The thread ends with the process.
        std::thread::spawn(move || {
            while wanted.recv().is_ok() {
                let mut line = String::new();
                let count = std::io::stdin().read_line(&mut line).unwrap_or(0);
                if read.send((count > 0).then_some(line)).is_err() {
                    return;
                }
            }
        });
        let asking = view.steps().filter(|(_, step)| matches!(step.phase, StepPhase::Asking { .. }));
        Self {
            run: run.clone(),
            door: door.clone(),
            by: by.to_owned(),
            open: asking.map(|(path, _)| path.clone()).collect(),
            decided: HashSet::new(),
            asked: None,
            deciding: None,
            wants,
            lines,
        }
    }

    /// Queues a gate that asks, for the first time or again.
    pub fn apply(&mut self, event: &Event) {
        let What::Entered { path, decision: Decision::Gate(_) } = &event.what else { return };
        let asked = self.asked.as_ref().is_some_and(|(asked, _)| asked == path);
        if !asked && !self.open.contains(path) {
            self.open.push_back(path.clone());
        }
    }

    /// Asks about the next gate, unless a question is open, and handles the answer.
    pub async fn next(&mut self, view: &View) {
        if let Some(deciding) = &mut self.deciding {
            let decided = deciding.await;
            self.deciding = None;
            if let Ok(Err(error)) = decided {
                answer::remark(&error.to_string());
            }
            return;
        }
        if self.asked.is_none() {
            self.ask(view);
        }
        match &self.asked {
            None => std::future::pending().await,
            Some(_) => {
                let line = self.lines.recv().await.flatten();
                self.answer(line.as_deref());
            }
        }
    }

    fn ask(&mut self, view: &View) {
        let Some(path) = self.open.pop_front() else { return };
        // A gate that its input decides never waits.
        let asks = |step: &StepView<'_>| matches!(step.phase, StepPhase::Asking { .. });
        let Some(step) = view.step(&path).filter(asks) else { return };
        let Kind::Gate(gate) = &view.plan_step(&step).kind else { return };
        if self.decided.contains(&path) {
            return self.leave();
        }
        if let Some(Decision::Gate(question)) = step.entered {
            let words = |value: &Value| {
                value.as_str().map_or_else(|| value.to_json_text().unwrap_or_default(), str::to_owned)
            };
            answer::remark(
                &question
                    .message
                    .as_ref()
                    .map(words)
                    .map(|text| clean(&text).into_owned())
                    .unwrap_or_default(),
            );
            question.show_file.as_ref().and_then(Value::as_str).into_iter().for_each(show);
        }
        for (number, option) in (1..).zip(&gate.options) {
            answer::remark(&format!("  [{number}] {}", one_line(option)));
        }
        self.asked = Some((path, gate.options.clone()));
        self.want();
    }

    fn want(&mut self) {
        let count = self.asked.as_ref().map_or(0, |(_, options)| options.len());
        answer::prompt(&format!("choose 1 to {count}, or an option > "));
        // The thread reads as long as `self` exists.
        let _ = self.wants.send(());
    }

    fn answer(&mut self, line: Option<&str>) {
        let Some((path, options)) = self.asked.take() else { return };
        let chosen = match line.map(str::trim) {
            Some(word) => {
                let number =
                    word.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
                number.or_else(|| options.iter().find(|option| option.to_lowercase() == word.to_lowercase()))
            }
            None => options.iter().find(|option| says_no(option)).or(options.last()),
        };
        let Some(choice) = chosen.cloned() else {
            self.asked = Some((path, options));
            return self.want();
        };
        let (by, step) = (self.by.clone(), Some(path.to_string()));
        self.decided.insert(path);
        let decide = Decide {
            run_id: self.run.to_string(),
            step,
            choice: Some(choice.to_string()),
            fields: serde_json::Value::Null,
            reason: None,
            id: None,
            by: Some(by.clone()),
        };
        let door = self.door.clone();
        self.deciding =
            Some(tokio::spawn(
                async move { door.call(ApproveGate(decide), Caller::user(&by)).await.map(drop) },
            ));
    }

    /// Stops the run at the gate; the next resume asks again.
    fn leave(&self) {
        if let Door::Owner(engine) = &self.door {
            let engine = engine.clone();
            tokio::spawn(async move { engine.stop().await });
        }
    }
}

/// Prints the file that the user should read before deciding.
fn show(file: &str) {
    match std::fs::read(file) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let mut lines = text.lines();
            lines
                .by_ref()
                .take(FILE_LINES_MAX)
                .for_each(|line| answer::remark(&format!("  | {}", one_line(line))));
            if lines.next().is_some() {
                answer::remark(&format!("  (the rest of {} is not shown)", one_line(file)));
            }
        }
        Err(error) => answer::remark(&format!("  ({}: {error})", one_line(file))),
    }
}
