//! Checks files against each other: no two may use the same trigger id or path. The reader of a file has already checked it for
//! duplicates.

use super::{Entry, Found};
use std::collections::HashMap;
use windlass_dialects::dcc::schedules::route_shape;
use windlass_ir::trigger::TriggerSource;
use windlass_ir::{Code, Diagnostic};

/// The first use of an id or path.
#[derive(Clone, Copy)]
struct First {
    file: usize,
    enabled: bool,
}

pub fn check(found: &mut [Found]) {
    let mut ids: HashMap<String, First> = HashMap::new();
    let mut paths: HashMap<(Option<&'static str>, String), First> = HashMap::new();
    let mut findings: Vec<(usize, Diagnostic)> = Vec::new();
    let others = |first: First, file: usize| (first.file != file).then(|| found[first.file].file.as_str());
    for (number, file) in found.iter().enumerate() {
        for entry in &file.entries {
            let here = First { file: number, enabled: entry.trigger.enabled };
            if let Some(id) = &entry.trigger.id
                && let Some(other) = others(*ids.entry(id.value.to_string()).or_insert(here), number)
            {
                let message = format!("a trigger of {other} has the id `{}` too", id.value);
                let finding = Diagnostic::error(Code::DuplicateTrigger, message).at(id.span).field("id");
                findings.push((number, finding.reference(&*id.value).help("give one of them another id")));
            }
            if let Some(path) = path(entry) {
                // Each dialect serves its paths under its own prefix.
                let first = *paths.entry((file.dialect(), route_shape(path))).or_insert(here);
                findings
                    .extend(others(first, number).map(|other| (number, clash(entry, path, other, first))));
            }
        }
    }
    findings.into_iter().for_each(|(file, finding)| found[file].shared.push(finding));
}

fn path(entry: &Entry) -> Option<&str> {
    match &entry.trigger.source {
        TriggerSource::Webhook { path, .. } => Some(path.strip_prefix('/').unwrap_or(path)),
        TriggerSource::Cron(_)
        | TriggerSource::Http(_)
        | TriggerSource::Message { .. }
        | TriggerSource::External { .. } => None,
    }
}

fn clash(entry: &Entry, path: &str, other: &str, first: First) -> Diagnostic {
    let finding = match first.enabled && entry.trigger.enabled {
        true => Diagnostic::error(
            Code::DuplicateTrigger,
            format!("a webhook of {other} listens on `/{path}` too"),
        ),
        false => Diagnostic::warning(
            Code::DuplicateTrigger,
            format!("a webhook of {other} would listen on `/{path}` too if both were enabled"),
        ),
    };
    finding
        .at(entry.trigger.span)
        .field("path")
        .reference(format!("/{path}"))
        .help("give one of them another path")
}
