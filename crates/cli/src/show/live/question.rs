//! A gate being answered: an option is chosen by its key, then the fields of the form and a reason are typed, and the last Enter
//! decides. Keys go in, a decision comes out.

use crate::show::cells::{Cells, Tone, width};
use crate::show::words::one_line;
use std::sync::Arc;
use windlass_dialects::DIALECTS;
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::plan::Given;
use windlass_ir::workflow::{FormField, Gate, Kind, Parameter};
use windlass_runtime::ids;
use windlass_runtime::{Choice, Path, StepPhase, View};

/// What a person pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Backspace,
    /// Back to where one came from.
    Escape,
    /// The whole line is wrong.
    Erase,
    Tab,
}

/// What was decided, and who is to be told.
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
    /// The gate, as its user calls it.
    pub step: String,
    pub message: String,
    /// Why the last answer was not taken.
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
    /// Typing what field `filled.len()` holds, or, after the last, the reason.
    Typing {
        option: Arc<str>,
        filled: Vec<Option<Value>>,
        text: String,
    },
    /// On its way to the run.
    Sent,
}

/// A longer answer is no answer.
const TEXT_CHARS_MAX: usize = 2_000;

/// So much room is kept for an answer, even if the question has to be shorter.
const ANSWER_WIDTH: usize = 20;

impl Question {
    /// The question of a gate that waits for a decision.
    pub fn of(view: &View, path: &Path, by: &str) -> Option<Self> {
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
            problem: None,
            by: by.to_owned(),
            approvers: gate.approvers.clone(),
            options: options(gate),
            form: gate.form.iter().map(|(name, field)| (name.clone(), parameter(field))).collect(),
            semantics: view.program().plan.semantics,
            stage: Stage::Choosing,
        })
    }

    /// The run has refused what was decided.
    pub fn refused(&mut self, problem: String) {
        self.problem = Some(problem);
        self.stage = Stage::Choosing;
    }

    /// Whether a key now means more than a choice.
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

    /// Whether somebody else has to decide.
    fn is_strange(&self) -> bool {
        !self.approvers.is_empty() && !self.approvers.iter().any(|approver| **approver == self.by)
    }

    fn choose(&mut self, key: Key) {
        let Key::Char(pressed) = key else { return };
        if self.is_strange() {
            return;
        }
        let pressed = pressed.to_lowercase().next().unwrap_or(pressed);
        if let Some((_, option)) = self.options.iter().find(|(key, _)| *key == pressed) {
            self.problem = None;
            // Whoever says no fills in nothing.
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

    /// None leaves a field to its default.
    fn answer(&self, field: &Parameter, text: &str) -> Result<Option<Value>, String> {
        match text.trim().is_empty() {
            true if field.required && field.default.is_none() => Err("it has to be filled in".to_owned()),
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

    /// The line in which an answer is given.
    pub fn prompt(&self, caret: &str, width_max: usize) -> Cells {
        let mut line = Cells::default().with(Tone::Plain, "   ");
        match &self.stage {
            Stage::Choosing if self.is_strange() => {
                line.push(Tone::Dim, &format!("not for {} to decide; `--by NAME` says who you are", self.by));
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
                // Of a long answer the end is seen, where it is written.
                let room = width_max.saturating_sub(line.width() + width(caret));
                line.push(Tone::Bold, last_of(text, room));
                line.push(Tone::Plain, caret);
                let enter = if filled.len() < self.form.len() { "goes on" } else { "decides" };
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

/// As much of the end of a text as fits.
fn last_of(text: &str, width_max: usize) -> &str {
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let fits = starts.map(|at| &text[at..]).find(|end| width(end) <= width_max);
    fits.unwrap_or_default()
}

/// What a value may be, in a few words.
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
        None if !parameter.required => format!("{kind}, may be left empty"),
        None => kind,
    }
}

fn parameter(field: &FormField) -> Parameter {
    let FormField { ty, required, default, description, choices, span } = field.clone();
    Parameter { ty, required, default, choices, description, span }
}

/// As the engine reads options.
fn says_no(option: &str) -> bool {
    matches!(option.to_lowercase().as_str(), "reject" | "abort")
}

/// Each option by the first letter of its own that no other one has taken, else by its number.
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
