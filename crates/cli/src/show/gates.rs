//! A gate in words: who decided, who still has to, what the approver fills in, and what happens if no one decides.

use super::Screen;
use super::times::{clock, instant, ticking};
use super::words::{clean, count, one_line, shorten};
use windlass_api::report::ShownFile;
use windlass_api::types::{Decision, FormField, Gate, Json};
use windlass_runtime::Timestamp;

/// The longest question on one line.
const QUESTION_MAX: usize = 160;
/// The most lines of a shown file.
const FILE_LINES_MAX: usize = 20;

/// The most important fact: the decision, or the question of an open gate.
pub fn headline(gate: &Gate, is_open: bool, now: Timestamp) -> Option<String> {
    match &gate.decided {
        Some(decided) if decided.by == "timeout" => Some(by_timeout(gate, decided)),
        Some(decided) if gate.quorum.have.len() > 1 => {
            Some(format!("{} by {} people", chosen(decided), gate.quorum.have.len()))
        }
        Some(decided) => Some(decision(decided, now)),
        None if !is_open => None,
        None => {
            let question = gate.message.as_ref().map(text).filter(|question| !question.is_empty());
            let question = question.map(|question| format!(": {}", shorten(&question, QUESTION_MAX)));
            Some(format!("{}{}", needed(gate), question.unwrap_or_default()))
        }
    }
}

/// `needs a decision by ann or bob`.
pub fn needed(gate: &Gate) -> String {
    match gate.approvers.as_slice() {
        [] => "needs a decision".to_owned(),
        approvers => format!("needs a decision by {}", one_line(&approvers.join(" or "))),
    }
}

/// `approved by ann at 11:20:07: looks good, channel=blog`.
pub fn decision(decided: &Decision, now: Timestamp) -> String {
    let at = instant(&decided.at).map(|at| format!(" at {}", clock(at, now))).unwrap_or_default();
    let reason = decided.reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
    let by = match decided.by.as_str() {
        "input" => "by an input".to_owned(),
        by => format!("by {}", one_line(by)),
    };
    format!("{} {by}{at}{}{}", chosen(decided), reason.unwrap_or_default(), fields(decided))
}

/// `approved by timeout after 5s, channel=blog`.
fn by_timeout(gate: &Gate, decided: &Decision) -> String {
    let asked = gate.asked_at.as_deref().and_then(instant);
    let after = asked.zip(instant(&decided.at)).map(|(asked, at)| ticking(at.since(asked)));
    let after = after.map(|after| format!(" after {after}")).unwrap_or_default();
    format!("{} by timeout{after}{}", chosen(decided), fields(decided))
}

fn fields(decided: &Decision) -> String {
    let fields = decided.fields.as_object().into_iter().flatten();
    let fields: String = fields.map(|(name, value)| format!(", {name}={}", text(value))).collect();
    one_line(&fields)
}

fn chosen(decided: &Decision) -> String {
    match decided.choice.as_str() {
        "approve" => "approved".to_owned(),
        "reject" => "rejected".to_owned(),
        "abort" => "aborted".to_owned(),
        other => one_line(other),
    }
}

/// `1 of 2 approvals: ann`; none for a gate that needs only one.
pub fn progress(gate: &Gate) -> Option<String> {
    let (have, needed) = (&gate.quorum.have, gate.quorum.needed);
    let names: Vec<String> = have.iter().map(|decision| one_line(&decision.by)).collect();
    (needed > 1).then(|| match names.is_empty() {
        true => format!("0 of {needed} approvals"),
        false => format!("{} of {needed} approvals: {}", names.len(), names.join(", ")),
    })
}

/// What happens without a decision, and when.
pub fn countdown(gate: &Gate, now: Timestamp) -> Option<String> {
    let until = gate.until.as_deref().and_then(instant)?;
    if until <= now {
        return Some(match gate.on_timeout.as_str() {
            "auto_approve" => "timing out: approves itself".to_owned(),
            "reject" => "timing out: is rejected".to_owned(),
            _ => "timing out".to_owned(),
        });
    }
    let left = ticking(until.since(now));
    Some(match gate.on_timeout.as_str() {
        "auto_approve" => format!("approves itself in {left}"),
        "reject" => format!("is rejected in {left}"),
        _ => format!("times out in {left}"),
    })
}

/// Each decision, if there was more than one.
pub fn votes(gate: &Gate, now: Timestamp) -> Vec<String> {
    let votes = gate.quorum.have.iter().filter(|_| gate.quorum.needed > 1);
    votes.map(|vote| decision(vote, now)).collect()
}

/// The lines below an open gate.
pub fn details(gate: &Gate, file: Option<&ShownFile>, now: Timestamp, screen: &Screen) -> Vec<String> {
    let mut lines: Vec<String> = progress(gate).into_iter().chain(votes(gate, now)).collect();
    lines.extend(countdown(gate, now));
    lines.extend(gate.form.iter().map(|(name, field)| format!("field {}", self::field(name, field))));
    lines.extend(file.map(|file| content(file, FILE_LINES_MAX, screen)).unwrap_or_default());
    lines
}

/// `ticket (string): the ticket that asked for it`.
pub fn field(name: &str, field: &FormField) -> String {
    let kind = match field.choices.as_slice() {
        [] => field.kind.clone(),
        choices => choices.iter().map(text).collect::<Vec<_>>().join(" | "),
    };
    let default = match (&field.default, field.required) {
        (Json::Null, true) => ", required".to_owned(),
        (Json::Null, false) => ", optional".to_owned(),
        (default, _) => format!(", else {}", text(default)),
    };
    let about = field.description.as_deref().map(|about| format!(": {}", one_line(about)));
    one_line(&format!("{name} ({kind}{default}){}", about.unwrap_or_default()))
}

/// The name of a file and its first lines.
pub fn content(file: &ShownFile, lines_max: usize, screen: &Screen) -> Vec<String> {
    let bar = if screen.unicode { "│" } else { "|" };
    let all: Vec<&str> = file.text.lines().collect();
    let mut lines = vec![one_line(&file.name)];
    lines.extend(
        all.iter().take(lines_max).map(|line| format!("{bar} {}", clean(line).replace('\t', "    "))),
    );
    match (all.len().saturating_sub(lines_max), file.is_cut) {
        (0, false) => {}
        (_, true) => lines.push(format!("{bar} and more")),
        (left, false) => lines.push(format!("{bar} and {} more", count(left, "line"))),
    }
    lines
}

/// A value as text, on one line.
pub fn text(value: &Json) -> String {
    match value {
        Json::String(text) => one_line(text),
        other => one_line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_api::types::Quorum;

    #[test]
    fn a_countdown_ends_at_its_deadline() {
        let gate = |on_timeout: &str| Gate {
            run_id: String::new(),
            workflow: String::new(),
            step: String::new(),
            path: String::new(),
            message: None,
            options: Vec::new(),
            approvers: Vec::new(),
            quorum: Quorum { needed: 1, have: Vec::new() },
            form: Default::default(),
            show_file: None,
            asked_at: None,
            until: Some("1970-01-01T00:00:05Z".into()),
            on_timeout: on_timeout.to_owned(),
            decided: None,
            can_decide: true,
        };
        let check = |on_timeout: &str, seconds: i64, expected: &str| {
            let shown = countdown(&gate(on_timeout), Timestamp(seconds * 1_000_000));
            assert_eq!(shown.as_deref(), Some(expected), "{on_timeout} at {seconds}");
        };
        check("auto_approve", 1, "approves itself in 4s");
        check("auto_approve", 5, "timing out: approves itself");
        check("reject", 60, "timing out: is rejected");
        check("halt", 4, "times out in 1s");
        check("halt", 6, "timing out");
    }
}
