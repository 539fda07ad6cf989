//! `windlass audit`: who changed what.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::show::Screen;
use crate::show::words::one_line;
use crate::{args, data};
use windlass_api::operations::ListAudit;
use windlass_api::types::{AuditEntry, AuditOutcome};

pub fn run(args: args::Audit, screen: &Screen) -> Result<Answer, Refused> {
    let request = ListAudit {
        by: args.by,
        operation: args.operation,
        object: args.object,
        since: args.since.map(|since| since.to_string()),
        limit: Some(args.limit.into()),
        ..ListAudit::default()
    };
    let page = call(&data::listed(&args.data), request)?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &page),
        false if page.items.is_empty() => Answer { stderr: "no changes\n".into(), ..Answer::new(Exit::Done) },
        false => {
            let stdout = page.items.iter().map(|entry| line(entry, screen)).collect();
            Answer { stdout, ..Answer::new(Exit::Done) }
        }
    })
}

fn line(entry: &AuditEntry, screen: &Screen) -> String {
    let at = entry.at.get(..19).unwrap_or(&entry.at).replace('T', " ");
    let objects: Vec<String> =
        entry.objects.iter().map(|object| format!("{} {}", object.kind, one_line(&object.id))).collect();
    let refused = match (entry.outcome, entry.code) {
        (AuditOutcome::Refused, Some(code)) => format!("  refused: {code}"),
        (AuditOutcome::Refused, None) => "  refused".to_owned(),
        (AuditOutcome::Done, _) => String::new(),
    };
    let by = one_line(&entry.by);
    format!("{at}Z  {by}  {}  {}{refused}\n", screen.bold(&entry.operation), objects.join(", "))
}
