//! Answers a gate from the keyboard: a key chooses an option, then the user types the fields of the form and a reason. The last
//! Enter submits the decision.

use crate::show::cells::{Cells, Tone, width};
use crate::show::words::one_line;
use std::sync::Arc;
use windlass_api::report::{Report, ShownFile};
use windlass_dialects::DIALECTS;
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::plan::Given;
use windlass_ir::workflow::{FormField, Gate, Kind, Parameter};
use windlass_runtime::ids;
use windlass_runtime::{Choice, Path, RunId, StepPhase, View};

/// A key that the user pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Backspace,
    /// Goes back one stage.
    Escape,
    /// Erases the line.
    Erase,
    Tab,
}

/// A decision and its gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    pub path: Path,
    pub choice: Choice,
    pub reason: Option<String>,
    pub form: Value,
}

#[derive(Clone, Debug)]
pub struct Question {
    pub path: Path,
    /// The id of the gate in the words of its dialect.
    pub step: String,
    pub message: String,
    /// What the gate shows with its question.
    pub file: Option<ShownFile>,
    /// Why Windlass rejected the last answer.
    pub problem: Option<String>,
    by: String,
    approvers: Vec<Arc<str>>,
    options: Vec<(char, Arc<str>)>,
    form: Vec<(Arc<str>, Parameter)>,
    semantics: Semantics,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Choosing,
    /// Typing the value of field `filled.len()`, or, after the last field, the reason.
    Typing {
        option: Arc<str>,
        filled: Vec<Option<Value>>,
        text: String,
    },
    /// The decision is on its way to the run.
    Sent,
}

/// The longest answer, in characters.
const TEXT_CHARS_MAX: usize = 2_000;

/// The least room for an answer; the question is shortened if necessary.
const ANSWER_WIDTH: usize = 20;

impl Question {
    /// The question of a gate that waits for a decision.
    pub fn of(run: &RunId, view: &View, path: &Path, by: &str) -> Option<Self> {
        let step = view.step(path)?;
        let StepPhase::Asking { message, .. } = step.phase else { return None };
        let Kind::Gate(gate) = &view.plan_step(&step).kind else { return None };
        let message = match message {
            Some(Value::Text(text)) => one_line(text),
            Some(other) => one_line(&other.to_json_text().unwrap_or_default()),
            None => String::new(),
        };
        Some(Self {
            path: path.clone(),
            step: ids::name(DIALECTS, view, path).id,
            message,
            file: Report::in_passing(DIALECTS, run, view).shown_file(path),
            problem: None,
            by: by.to_owned(),
            approvers: gate.approvers.clone(),
            options: options(gate),
            form: gate.form.iter().map(|(name, field)| (name.clone(), parameter(field))).collect(),
            semantics: view.program().plan.semantics,
            stage: Stage::Choosing,
        })
    }

    /// Shows why the run refused the decision.
    pub fn refused(&mut self, problem: String) {
        self.problem = Some(problem);
        self.stage = Stage::Choosing;
    }

    /// Whether the user is typing text, not choosing an option.
    pub fn is_typing(&self) -> bool {
        matches!(self.stage, Stage::Typing { .. })
    }

    pub fn press(&mut self, key: Key) -> Option<Decided> {
        match std::mem::replace(&mut self.stage, Stage::Choosing) {
            Stage::Choosing => {
                self.choose(key);
                None
            }
            Stage::Typing { option, filled, text } => self.typed(key, option, filled, text),
            Stage::Sent => {
                self.stage = Stage::Sent;
                None
            }
        }
    }

    /// What the field that the user types is for.
    pub fn about_field(&self) -> Option<String> {
        let Stage::Typing { filled, .. } = &self.stage else { return None };
        let (_, field) = self.form.get(filled.len())?;
        let choices = Some(about(field)).filter(|_| !field.choices.is_empty());
        let parts: Vec<String> =
            choices.into_iter().chain(field.description.as_deref().map(str::to_owned)).collect();
        Some(parts.join(": ")).filter(|about| !about.is_empty())
    }

    /// Whether the user is not among the approvers.
    fn cannot_decide(&self) -> bool {
        !self.approvers.is_empty() && !self.approvers.iter().any(|approver| **approver == self.by)
    }

    fn choose(&mut self, key: Key) {
        let Key::Char(pressed) = key else { return };
        if self.cannot_decide() {
            return;
        }
        let pressed = pressed.to_lowercase().next().unwrap_or(pressed);
        if let Some((_, option)) = self.options.iter().find(|(key, _)| *key == pressed) {
            self.problem = None;
            // A rejection has no form.
            let skipped = if says_no(option) { self.form.len() } else { 0 };
            self.stage =
                Stage::Typing { option: option.clone(), filled: vec![None; skipped], text: String::new() };
        }
    }

    fn typed(
        &mut self,
        key: Key,
        option: Arc<str>,
        mut filled: Vec<Option<Value>>,
        mut text: String,
    ) -> Option<Decided> {
        match key {
            Key::Escape => return None,
            Key::Char(c) if text.chars().count() < TEXT_CHARS_MAX => text.push(c),
            Key::Char(_) | Key::Tab => {}
            Key::Backspace => drop(text.pop()),
            Key::Erase => text.clear(),
            Key::Enter => match self.form.get(filled.len()) {
                None => {
                    self.stage = Stage::Sent;
                    return Some(self.decided(&option, &filled, &text));
                }
                Some((name, field)) => match self.answer(field, &text) {
                    Ok(value) => {
                        self.problem = None;
                        filled.push(value);
                        text.clear();
                    }
                    Err(problem) => self.problem = Some(format!("{name}: {problem}")),
                },
            },
        }
        self.stage = Stage::Typing { option, filled, text };
        None
    }

    /// None uses the default of the field.
    fn answer(&self, field: &Parameter, text: &str) -> Result<Option<Value>, String> {
        match text.trim().is_empty() {
            true if field.required && field.default.is_none() => Err("a value is required".to_owned()),
            true => Ok(None),
            false => field.accept(&Given::Text(text.to_owned()), &self.semantics).map(Some),
        }
    }

    fn decided(&self, option: &Arc<str>, filled: &[Option<Value>], reason: &str) -> Decided {
        let fields = self.form.iter().zip(filled);
        let form = fields.filter_map(|((name, _), value)| Some((name.clone(), value.clone()?)));
        let reason = Some(reason.trim()).filter(|reason| !reason.is_empty());
        Decided {
            path: self.path.clone(),
            choice: Choice::Option(option.clone()),
            reason: reason.map(str::to_owned),
            form: Value::map(form),
        }
    }

    /// The input line.
    pub fn prompt(&self, caret: &str, width_max: usize) -> Cells {
        let mut line = Cells::default().with(Tone::Plain, "   ");
        match &self.stage {
            Stage::Choosing if self.cannot_decide() => {
                line.push(
                    Tone::Dim,
                    &format!("{} is not an approver; set your name with `--by NAME`", self.by),
                );
            }
            Stage::Choosing => {
                for (key, option) in &self.options {
                    line.push(Tone::Ask, &format!("{key} "));
                    line.push(Tone::Plain, &format!("{}   ", one_line(option)));
                }
                line.push(Tone::Dim, &format!("as {}", self.by));
            }
            Stage::Typing { option, filled, text } => {
                line.push(Tone::Ask, &one_line(option));
                let (short, long) = match self.form.get(filled.len()) {
                    Some((name, field)) => (format!("  {name}: "), format!("  {name} ({}): ", about(field))),
                    None => ("  why? ".to_owned(), "  why? (may be left empty): ".to_owned()),
                };
                let wide = line.width() + width(&long) + ANSWER_WIDTH <= width_max;
                line.push(Tone::Plain, if wide { &long } else { &short });
                // Show the end of a long answer, where the cursor is.
                let room = width_max.saturating_sub(line.width() + width(caret));
                line.push(Tone::Bold, last_of(text, room));
                line.push(Tone::Plain, caret);
                let enter = if filled.len() < self.form.len() { "continues" } else { "decides" };
                let help = format!("   Enter {enter}, Esc goes back");
                if line.width() + width(&help) <= width_max {
                    line.push(Tone::Dim, &help);
                }
            }
            Stage::Sent => line.push(Tone::Dim, "decided"),
        }
        line
    }
}

/// The end of a text that fits into this many cells.
fn last_of(text: &str, width_max: usize) -> &str {
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let fits = starts.map(|at| &text[at..]).find(|end| width(end) <= width_max);
    fits.unwrap_or_default()
}

/// A short description of the allowed values.
pub fn about(parameter: &Parameter) -> String {
    let shown = |value: &Value| match value {
        Value::Text(text) => one_line(text),
        other => one_line(&other.to_json_text().unwrap_or_default()),
    };
    let kind = match parameter.choices.as_slice() {
        [] => parameter.ty.to_string(),
        choices => choices.iter().map(shown).collect::<Vec<_>>().join(" | "),
    };
    match &parameter.default {
        Some(default) => format!("{kind}, else {}", shown(default)),
        None if !parameter.required => format!("{kind}, optional"),
        None => kind,
    }
}

fn parameter(field: &FormField) -> Parameter {
    let FormField { ty, required, default, description, choices, span } = field.clone();
    Parameter { ty, required, default, choices, description, span }
}

/// Matches the engine's reading of options.
fn says_no(option: &str) -> bool {
    matches!(option.to_lowercase().as_str(), "reject" | "abort")
}

/// Assigns each option its first letter that no other option has, else its number.
fn options(gate: &Gate) -> Vec<(char, Arc<str>)> {
    let mut keys: Vec<(char, Arc<str>)> = Vec::new();
    for (number, option) in gate.options.iter().enumerate() {
        let letters = option.to_lowercase();
        let letters = letters.chars().filter(char::is_ascii_alphabetic);
        let digits = char::from_digit(number as u32 + 1, 36);
        let free = |key: &char| keys.iter().all(|(taken, _)| taken != key);
        if let Some(key) = letters.chain(digits).find(free) {
            keys.push((key, option.clone()));
        }
    }
    keys
}
