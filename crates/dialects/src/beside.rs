//! Files that change a workflow, checked on their own: SWDL overrides and Spec Kit overlays. Everything that depends on the
//! workflow itself is checked when the two are read together.

use crate::table::{Context, Keys};
use crate::text::{Kind, Node};
use crate::{Text, speckit, swdl};
use windlass_ir::diagnostic::sort_by_place;
use windlass_ir::{Diagnostic, Sources};

/// The result of checking such a file.
#[derive(Debug)]
pub struct Beside {
    pub sources: Sources,
    /// The workflows that it changes.
    pub workflows: Vec<String>,
    /// The number of changes: blocks of overrides, or edits of an overlay.
    pub entries: usize,
    /// All findings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks an overrides file.
pub fn read_overrides(file: Text) -> Beside {
    check(file, |root, sources| {
        let context = Context::new(sources, Keys::Exact, "");
        let workflows = swdl::check_overrides(root, &context);
        let entries = workflows.len();
        (workflows, entries, context.diagnostics.into_inner())
    })
}

/// Checks an overlay.
pub fn read_overlay(file: Text) -> Beside {
    check(file, speckit::check_overlay)
}

fn check(file: Text, read: impl FnOnce(&Node, &Sources) -> (Vec<String>, usize, Vec<Diagnostic>)) -> Beside {
    let mut sources = Sources::default();
    let mut diagnostics = Vec::new();
    let root = crate::read(file, &mut sources, &mut diagnostics);
    let (workflows, entries) = match root {
        None => (Vec::new(), 0),
        Some(root) => {
            let (workflows, entries, found) = read(&root, &sources);
            diagnostics.extend(found);
            (workflows, entries)
        }
    };
    sort_by_place(&mut diagnostics);
    Beside { sources, workflows, entries, diagnostics }
}

/// Whether a file has the keys of overrides, or else their name.
pub fn is_overrides(file: &Text) -> bool {
    let has_name = file.name.rsplit(['/', '\\']).next() == Some(swdl::OVERRIDES_FILE);
    let root = crate::read(file.clone(), &mut Sources::default(), &mut Vec::new());
    match root.map(|root| root.kind) {
        Some(Kind::Map(map)) => {
            let others = ["stages", "steps", "tasks", "workflow", "schedules"];
            has_name || map.get("overrides").is_some() && !others.iter().any(|other| map.get(other).is_some())
        }
        Some(Kind::Scalar(_) | Kind::List(_)) | None => has_name,
    }
}
