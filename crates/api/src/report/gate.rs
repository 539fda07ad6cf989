//! A gate as its approvers see it.

use super::{Report, data, form, gate, instant, texts, words};
use crate::types::{Decision, Gate, Json, Quorum};
use serde_json::json;
use std::io::Read as _;
use windlass_ir::Value;
use windlass_ir::workflow::OnTimeout;
use windlass_runtime::{Decision as Entered, GateVote, Outcome, Path, StepPhase, StepView, says_no};

/// Who decided at a gate that an input decides.
const BY_INPUT: &str = "input";
/// Who decided at a gate that approved itself.
const BY_TIMEOUT: &str = "timeout";

impl Report<'_> {
    /// The gate at a path; `by` asks whether they may decide. None if there is no gate.
    pub fn gate(&self, path: &Path, by: &str) -> Option<Gate> {
        let view = self.view;
        let step = view.step(path)?;
        let known = gate(view, &step)?;
        let (message, until) = match &step.phase {
            StepPhase::Asking { message, until } => (*message, *until),
            _ => (None, None),
        };
        let question = match step.entered {
            Some(Entered::Gate(question)) => Some(question),
            _ => None,
        };
        let is_settled = matches!(step.phase, StepPhase::Settled(_));
        let decided = step.votes.last().filter(|_| is_settled);
        let decided = self.timed_out(&step).or_else(|| decided.and_then(|vote| self.decision(&step, vote)));
        let is_approver = known.approvers.is_empty() || known.approvers.iter().any(|name| **name == *by);
        let is_own = view.by().is_some_and(|starter| **starter == *by) && !known.self_approval;
        let on_timeout = question.map_or(known.on_timeout, |question| question.on_timeout);
        Some(Gate {
            run_id: self.run.to_string(),
            workflow: view.program().plan.header.id.to_string(),
            step: self.id(path),
            path: path.to_string(),
            message: message.or(question.and_then(|question| question.message.as_ref())).map(words),
            options: texts(&known.options),
            approvers: texts(&known.approvers),
            quorum: Quorum { needed: known.quorum, have: self.approvals(&step) },
            form: form(known),
            show_file: question.and_then(|question| question.show_file.as_ref()).map(data),
            asked_at: step.started_at.map(instant),
            until: until.map(instant),
            on_timeout: match on_timeout {
                OnTimeout::Halt => "halt",
                OnTimeout::AutoApprove => "auto_approve",
                OnTimeout::Reject => "reject",
            }
            .to_owned(),
            can_decide: !is_settled && is_approver && !is_own,
            decided,
        })
    }

    /// The decision of a gate that approved itself, which has no vote.
    fn timed_out(&self, step: &StepView<'_>) -> Option<Decision> {
        let StepPhase::Settled(Outcome::Done(value)) = &step.phase else { return None };
        if step.kept || self.is_decided(step) {
            return None;
        }
        let vote = GateVote { by: BY_TIMEOUT.into(), at: step.ended_at?, value: value.clone() };
        self.decision(step, &vote)
    }

    /// The approvals since the question was last asked.
    fn approvals(&self, step: &StepView<'_>) -> Vec<Decision> {
        let all = step.votes.iter().rev().filter_map(|vote| self.decision(step, vote));
        let mut approvals: Vec<Decision> = all.take_while(|decision| !says_no(&decision.choice)).collect();
        approvals.reverse();
        approvals
    }

    /// Whether the last decision at a gate settles its question.
    pub(super) fn is_decided(&self, step: &StepView<'_>) -> bool {
        let Some(known) = gate(self.view, step) else { return false };
        let last = step.votes.last().and_then(|vote| self.decision(step, vote));
        last.is_some_and(|last| {
            let is_enough = self.approvals(step).len() >= known.quorum as usize;
            last.by == BY_INPUT || says_no(&last.choice) || is_enough
        })
    }

    /// A decision in neutral words; dialects differ in what a gate returns.
    pub(super) fn decision(&self, step: &StepView<'_>, vote: &GateVote) -> Option<Decision> {
        let known = gate(self.view, step)?;
        let text = |name: &str| vote.value.get(name).and_then(Value::as_str).map(str::to_owned);
        let field = |name: &str| {
            let form = vote.value.get("form").and_then(|form| form.get(name));
            form.or_else(|| vote.value.get(name)).map(data)
        };
        let fields: serde_json::Map<String, Json> =
            known.form.keys().filter_map(|name| Some((name.to_string(), field(name)?))).collect();
        let rejected = match vote.value.get("approved") {
            Some(approved) => *approved == Value::Bool(false),
            None => matches!(step.phase, StepPhase::Settled(Outcome::Failed(_))),
        };
        let choice = text("choice").or_else(|| text("decision")).unwrap_or_else(|| {
            let word = if rejected { "reject" } else { "approve" };
            word.to_owned()
        });
        Some(Decision {
            by: vote.by.to_string(),
            choice,
            at: instant(vote.at),
            reason: text("reason").or_else(|| text("comment")).filter(|reason| !reason.is_empty()),
            fields: json!(fields),
        })
    }

    /// The beginning of the file that a gate shows with its question, if it can be read.
    pub fn shown_file(&self, path: &Path) -> Option<ShownFile> {
        let step = self.view.step(path)?;
        let Some(Entered::Gate(question)) = step.entered else { return None };
        let name = question.show_file.as_ref()?.as_str()?;
        let folder = self.view.about().get("directory").and_then(Value::as_str).unwrap_or_default();
        let file = std::path::Path::new(folder).join(name);
        let (text, is_cut) = beginning(&file)?;
        Some(ShownFile { name: name.to_owned(), text, is_cut })
    }
}

/// The beginning of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFile {
    pub name: String,
    pub text: String,
    /// The file has more.
    pub is_cut: bool,
}

/// How much of a file a gate shows.
const FILE_BYTES_MAX: u64 = 16 << 10;

fn beginning(file: &std::path::Path) -> Option<(String, bool)> {
    // Opening a pipe or a device could wait for ever.
    let about = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some((String::from_utf8_lossy(&bytes).into_owned(), about.len() > FILE_BYTES_MAX))
}
