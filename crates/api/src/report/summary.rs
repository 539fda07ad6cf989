//! A run in a list, and in one sentence.

use super::{instant, waits};
use crate::types::{Failure, Progress, RunSummary, Undone, Wait, WaitKind};
use windlass_ir::RunStatus;
use windlass_runtime::{RowWait, RowWaitKind, RunRow};

/// A run in a list.
pub fn summary(row: &RunRow) -> RunSummary {
    let (run, details) = (&row.row, &row.row.details);
    let ended = run.ended_at;
    let failed_step = run.failed_step.clone().filter(|_| ended.is_some() && run.reason.is_some());
    let failure = details.failure.as_ref().filter(|_| ended.is_some());
    let error = failure.map(|(code, message)| Failure {
        code: code.clone(),
        message: message.clone(),
        step: failed_step.clone(),
        field: None,
    });
    let waiting_on: Vec<Wait> = details.waits.iter().map(wait).collect();
    let is_pending = run.status == RunStatus::Pending;
    let started = details.began_at.or(run.started_at).filter(|_| !is_pending);
    RunSummary {
        run_id: row.run.to_string(),
        workflow: run.workflow.clone(),
        version: super::version(&run.plan),
        dialect: run.dialect.clone(),
        status: run.status,
        dialect_status: run.dialect_status.clone(),
        headline: headline(&Told {
            status: run.status,
            error: error.as_ref(),
            waiting_on: &waiting_on,
            canceled_by: None,
            failures: run.has_failures.then_some("with failed steps".to_owned()),
        }),
        has_failures: run.has_failures,
        mocked: details.mocked,
        waiting_on,
        created_at: run.started_at.map(instant),
        started_at: started.map(instant),
        ended_at: ended.map(instant),
        duration_seconds: started.zip(ended).map(|(start, end)| end.since(start).into()),
        by: details.by.clone(),
        undone: details.undone.map(|all| if all { Undone::All } else { Undone::Part }),
        parent_run_id: details.parent.clone(),
        root_run_id: details.root.clone().unwrap_or_else(|| row.run.to_string()),
        retry_of: details.retry_of.clone(),
        seq: details.events,
        resumable: row.broken.is_none()
            && match run.status {
                RunStatus::Failed => !details.aborted && details.undone.is_none(),
                status => !status.is_finished(),
            },
        progress: details.steps.map(|total| Progress { done: details.steps_over.min(total), total }),
        error,
        failed_step,
        damaged: row.broken.is_some(),
    }
}

fn wait(row: &RowWait) -> Wait {
    let kind = match row.kind {
        RowWaitKind::Gate => WaitKind::Gate,
        RowWaitKind::Signal => WaitKind::Signal,
        RowWaitKind::Run => WaitKind::Run,
        RowWaitKind::Start => WaitKind::Timer,
        RowWaitKind::Slot => WaitKind::Slot,
    };
    Wait {
        message: row.message.as_deref().map(Into::into),
        since: Some(instant(row.since)),
        until: row.until.map(instant),
        child_run_id: row.message.clone().filter(|_| kind == WaitKind::Run),
        ..waits(row.step.clone(), kind)
    }
}

/// What a headline is about.
pub(super) struct Told<'a> {
    pub status: RunStatus,
    pub error: Option<&'a Failure>,
    pub waiting_on: &'a [Wait],
    pub canceled_by: Option<&'a str>,
    /// What failed in a run that has not failed itself.
    pub failures: Option<String>,
}

/// Completes the sentence "the run is …", or "the run …" for one that succeeded or failed.
pub(super) fn headline(told: &Told<'_>) -> String {
    let message = told.error.map(|error| format!(": {}", error.message)).unwrap_or_default();
    match told.status {
        RunStatus::Success => match &told.failures {
            Some(failures) => format!("succeeded {failures}"),
            None => "succeeded".to_owned(),
        },
        RunStatus::Failed => {
            let step = told.error.and_then(|error| error.step.as_ref());
            format!("failed{}{message}", step.map(|step| format!(" in `{step}`")).unwrap_or_default())
        }
        RunStatus::Cancelled => {
            let by = told.canceled_by.map(|by| format!(" by {by}")).unwrap_or_default();
            format!("canceled{by}{message}")
        }
        RunStatus::Interrupted => "interrupted: no process executes it".to_owned(),
        RunStatus::Paused => "paused".to_owned(),
        RunStatus::Running => "running".to_owned(),
        RunStatus::Pending => match told.waiting_on.first() {
            Some(wait) => of_wait("pending", wait),
            None => "pending".to_owned(),
        },
        RunStatus::Waiting => {
            let people = |wait: &&Wait| matches!(wait.kind, WaitKind::Gate | WaitKind::Signal);
            let first = told.waiting_on.iter().find(people).or(told.waiting_on.first());
            let more = match told.waiting_on.len() {
                0 | 1 => String::new(),
                count => format!(", and for {} more", count - 1),
            };
            first.map_or("waiting".to_owned(), |first| of_wait("waiting", first)) + &more
        }
    }
}

fn of_wait(word: &str, wait: &Wait) -> String {
    let at = wait.step.as_ref().map(|step| format!(" at `{step}`")).unwrap_or_default();
    let message = wait.message.as_ref().and_then(|message| message.as_str()).unwrap_or_default();
    match wait.kind {
        WaitKind::Gate => {
            let approvers = wait.approvers.as_ref().filter(|approvers| !approvers.is_empty());
            let by = approvers.map(|names| format!(" by {}", names.join(" or "))).unwrap_or_default();
            let question = if message.is_empty() { String::new() } else { format!(": {message}") };
            format!("{word}{at} for a decision{by}{question}")
        }
        WaitKind::Signal => format!("{word}{at} for the signal `{message}`"),
        WaitKind::Timer if wait.step.is_none() => format!("{word} until its start time"),
        WaitKind::Timer => format!("{word}{at} for time to pass"),
        WaitKind::Slot => {
            let of = if message.is_empty() { String::new() } else { format!(" of {message}") };
            let position = wait.position.map(|number| format!(", number {number} in the queue"));
            format!("{word}{at} for a slot{of}{}", position.unwrap_or_default())
        }
        WaitKind::Run => format!("{word}{at} for run {message}"),
    }
}
